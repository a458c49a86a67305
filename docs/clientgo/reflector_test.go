package clientgo_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
	factories "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// The first request of a reflector is a watch that begins with the list: every object as ADDED,
// then a bookmark that ends the list. The same connection goes on with the changes.
func Example_listIsStreamed() {
	connection := stream(event("ADDED", foo("a", "7")), event("ADDED", foo("b", "3")), endOfList("10"))
	w := newWire(connection)
	factory := newFactory(w, 0)
	seen := make(chan string)
	foosOf(factory).TypedInformer().AddTypedEventHandler(notes(seen))
	defer start(factory)()

	fmt.Println("GET", <-w.requests)
	for range 2 {
		<-seen // a and b, in any order
	}
	connection.lines <- event("MODIFIED", foo("a", "11"))
	fmt.Println(<-seen)
	fmt.Println("further requests:", len(w.requests))
	// Output:
	// GET allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true
	// update a 7 to 11
	// further requests: 0
}

// A server that does not stream lists refuses the first request. The reflector then makes two
// requests, as older versions did: a list, and a watch from the resourceVersion of the list on.
func Example_listIsAskedForWhenItIsNotStreamed() {
	const refusal = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 422, ` +
		`"reason": "Invalid", "message": "sendInitialEvents: Forbidden"}`
	list := `{"apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "FooList", ` +
		`"metadata": {"resourceVersion": "10"}, "items": [` + foo("a", "7") + `]}`
	w := newWire(reply(http.StatusUnprocessableEntity, refusal), reply(http.StatusOK, list))
	factory := newFactory(w, 0)
	foosOf(factory).Informer()
	defer start(factory)()

	for range 3 {
		fmt.Println("GET", <-w.requests)
	}
	// Output:
	// GET allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true
	// GET limit=500&resourceVersion=0
	// GET allowWatchBookmarks=true&resourceVersion=10&watch=true
}

// A watch asks the server to end it after five to ten minutes.
func TestWatchAsksToBeEndedAfterSomeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seconds int64
		informer := cache.NewSharedIndexInformer(&cache.ListWatch{
			WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
				seconds = *o.TimeoutSeconds
				return watch.NewFake(), nil
			},
		}, &v1alpha1.Foo{}, 0, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		informer.RunWithContext(ctx)
		if seconds < 300 || seconds > 600 {
			t.Errorf("timeout of the watch: got %ds, want 300s to 600s", seconds)
		}
	})
}

// A fake clientset declares that it cannot stream lists, so its informers never ask for a stream.
func TestFakeClientIsAskedForAListAndAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := foofake.NewClientset()
		factory := factories.NewSharedInformerFactory(client, 0)
		foosOf(factory).Informer()
		defer start(factory)()
		synctest.Wait()

		var verbs []string
		for _, action := range client.Actions() {
			verbs = append(verbs, action.GetVerb())
		}
		expect(t, verbs, "list", "watch")
	})
}

// A server ends each watch after some minutes. The next watch begins where the last one ended. If
// nothing that this informer selects has changed, that is the resourceVersion of a bookmark.
func TestBookmarkMovesTheWatchOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := stream(event("ADDED", foo("a", "7")), endOfList("10"), bookmark("20"))
		w := newWire(connection)
		factory := newFactory(w, 0)
		store := foosOf(factory).Informer().GetStore()
		defer start(factory)()
		synctest.Wait()
		drain(w.requests)

		object, _, _ := store.GetByKey("default/a")
		expect(t, []string{object.(*v1alpha1.Foo).ResourceVersion, store.LastStoreSyncResourceVersion()},
			"7", "20")
		close(connection.lines)
		synctest.Wait()
		expect(t, drain(w.requests), "allowWatchBookmarks=true&resourceVersion=20&watch=true")
	})
}

// A watch that is too far behind gets a 410. The reflector lists again. The informer compares the
// new list with the cache and calls the handlers, although it has seen no events of the changes.
func TestExpiredWatchListsAgainAndTellsTheDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lost := stream(event("ADDED", foo("gone", "1")), event("ADDED", foo("same", "2")),
			event("ADDED", foo("remade", "3", `"uid": "1"`)), endOfList("10"))
		w := newWire(lost, reply(http.StatusGone, expired), stream(event("ADDED", foo("same", "2")),
			event("ADDED", foo("remade", "90", `"uid": "2"`)), endOfList("95")))
		factory := newFactory(w, 0)
		seen := make(chan string, 100)
		foosOf(factory).TypedInformer().AddTypedEventHandler(notes(seen))
		defer start(factory)()
		synctest.Wait()
		drain(w.requests)
		drain(seen)

		lost.lines <- event("ERROR", expired)
		time.Sleep(2 * time.Second) // virtual: the reflector waits for 0.8s to 1.6s
		const question = "allowWatchBookmarks=true&%sresourceVersionMatch=NotOlderThan&" +
			"sendInitialEvents=true&watch=true"
		expect(t, drain(w.requests), // first from where it was, and after the 410 from now
			fmt.Sprintf(question, "resourceVersion=10&"), fmt.Sprintf(question, ""))
		expect(t, sorted(drain(seen)), "delete default/gone 1, final state unknown",
			"update remade 3 to 90, another object", "update same 2 to 2")
	})
}

// A reflector never gives up. It tries again after 0.8s to 1.6s, then after twice that, and so on,
// up to 30s to 60s. After two minutes, it begins with 0.8s again, even if all tries failed.
func TestFailingListIsTriedAgainForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := waitsOfAFailingReflector(t.Context(), time.Hour)
		for i, least := range []float64{0.8, 1.6, 3.2, 6.4, 12.8, 25.6} {
			if waits[i] < least || waits[i] > 2*least {
				t.Errorf("wait %d: got %vs, want %vs to %vs", i+1, waits[i], least, 2*least)
			}
		}
		if longest := slices.Max(waits); longest < 30 || longest > 60 {
			t.Errorf("longest wait: got %vs, want 30s to 60s", longest)
		}
		beginnings := 0
		for _, wait := range waits {
			if wait < 1.6 {
				beginnings++
			}
		}
		if beginnings < 19 || beginnings > 30 { // one every 2 to 3 minutes
			t.Errorf("the delays began again %d times in an hour, want 19 to 30 times", beginnings)
		}
	})
}

// waitsOfAFailingReflector returns the seconds between the tries of a reflector that always fails.
func waitsOfAFailingReflector(ctx context.Context, duration time.Duration) (waits []float64) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	last := time.Now()
	refuse := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			waits = append(waits, time.Since(last).Seconds())
			last = time.Now()
			return nil, errors.New("refused")
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return nil, errors.New("refused")
		},
	}
	informer := cache.NewSharedIndexInformer(refuse, &v1alpha1.Foo{}, 0, nil)
	informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}) // the default one logs
	informer.RunWithContext(ctx)
	return waits[1:] // the first try is at once
}

// drain returns what is in the channel now.
func drain(lines chan string) (all []string) {
	for len(lines) > 0 {
		all = append(all, <-lines)
	}
	return all
}

// sorted returns lines in alphabetical order: the handlers are called for a list in any order.
func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}
