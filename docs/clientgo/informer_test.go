package clientgo_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// The first request of a reflector is a watch that begins with the list: every object as ADDED,
// then a bookmark that ends the list. The same connection goes on with the changes.
func Example_listIsStreamed() {
	connection := stream(event("ADDED", foo("a", "7")), event("ADDED", foo("b", "3")), endOfList("10"))
	w := newWire(connection)
	factory := newFactory(w)
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

// A server ends each watch after some minutes. The next watch begins where the last one ended. If
// nothing that this informer selects has changed, that is the resourceVersion of a bookmark.
func TestBookmarkMovesTheWatchOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		connection := stream(event("ADDED", foo("a", "7")), endOfList("10"), bookmark("20"))
		w := newWire(connection)
		factory := newFactory(w)
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
		factory := newFactory(w)
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
		expect(t, slices.Sorted(slices.Values(drain(seen))), "delete default/gone 1, final state unknown",
			"update remade 3 to 90, another object", "update same 2 to 2")
	})
}

// The cache changes before a handler is called, and it takes in the first list as a whole: called
// for the first of three Foos, the handler finds all of them.
func Example_handlerFindsItsEventInTheCache() {
	factory := newFactory(newWire(stream(event("ADDED", foo("a", "1")),
		event("ADDED", foo("b", "2")), event("ADDED", foo("c", "3")), endOfList("10"))))
	foos := foosOf(factory)
	found := make(chan int)
	foos.TypedInformer().AddTypedEventHandler(informers.FooHandlerFuncs{
		AddFunc: func(*v1alpha1.Foo) {
			cached, _ := foos.Lister().List(labels.Everything())
			found <- len(cached)
		},
	})
	defer start(factory)()

	fmt.Println(<-found, <-found, <-found)
	// Output:
	// 3 3 3
}

// Each handler has an unbounded queue of its own. A handler that hangs delays only itself, and
// neither the cache nor the other handlers.
func Example_slowHandlerDelaysOnlyItself() {
	connection := stream(endOfList("10"))
	factory := newFactory(newWire(connection))
	informer := foosOf(factory).TypedInformer()
	slow, fast := make(chan string), make(chan string)
	informer.AddTypedEventHandler(notes(slow)) // hangs until slow is read
	informer.AddTypedEventHandler(notes(fast))
	defer start(factory)()

	connection.lines <- event("ADDED", foo("a", "11"))
	connection.lines <- event("MODIFIED", foo("a", "12"))
	connection.lines <- event("DELETED", foo("a", "13"))
	fmt.Println("fast:", <-fast, "|", <-fast, "|", <-fast)
	fmt.Println("cache:", informer.GetStore().ListKeys())
	fmt.Println("slow:", <-slow, "|", <-slow, "|", <-slow)
	// Output:
	// fast: add a 11 | update a 11 to 12 | delete default/a 13
	// cache: []
	// slow: add a 11 | update a 11 to 12 | delete default/a 13
}

// drain returns what is in the channel now.
func drain(lines chan string) (all []string) {
	for len(lines) > 0 {
		all = append(all, <-lines)
	}
	return all
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
}
