package clientgo_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	factories "example.com/sample-controller/pkg/generated/informers/externalversions"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// The cache changes before a handler is called, and it takes in the first list as a whole: called
// for the first of three Foos, the handler finds all of them.
func Example_handlerFindsItsEventInTheCache() {
	factory := newFactory(newWire(stream(event("ADDED", foo("a", "1")),
		event("ADDED", foo("b", "2")), event("ADDED", foo("c", "3")), endOfList("10"))), 0)
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
	factory := newFactory(newWire(connection), 0)
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

// A handler that is added to a running informer is first called for each object in the cache,
// without a request.
func Example_lateHandlerIsToldWhatTheCacheHas() {
	w := newWire(stream(event("ADDED", foo("a", "7")), endOfList("10")))
	factory := newFactory(w, 0)
	informer := foosOf(factory).TypedInformer()
	defer start(factory)()
	<-informer.HasSyncedChecker().Done()

	seen := make(chan string)
	informer.AddTypedEventHandler(notes(seen))
	fmt.Println(<-seen)
	fmt.Println("requests:", len(w.requests))
	// Output:
	// add a 7, in the initial list
	// requests: 1
}

// A lister reads only the cache. If an object is not there, the lister reports it as not found and
// does not ask the server.
func Example_listerAsksNobody() {
	w := newWire(stream(event("ADDED", foo("a", "7")), endOfList("10")))
	factory := newFactory(w, 0)
	foos := foosOf(factory)
	foos.Informer()
	defer start(factory)()
	<-foos.Informer().HasSyncedChecker().Done()

	_, err := foos.Lister().Foos("default").Get("b")
	fmt.Println(apierrors.IsNotFound(err), err)
	fmt.Println("requests:", len(w.requests))
	// Output:
	// true foo.samplecontroller.k8s.io "b" not found
	// requests: 1
}

// A factory has one informer for a resource, however often you ask for it.
func Example_factorySharesItsInformers() {
	factory := newFactory(newWire(), 0)
	fmt.Println(foosOf(factory).Informer().GetStore() == foosOf(factory).Informer().GetStore())
	// Output:
	// true
}

// An informer has synced when the cache has the first list. A registration has synced when its
// handler has returned for every object of that list.
func TestInformerSyncsBeforeItsHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory := newFactory(newWire(stream(event("ADDED", foo("a", "7")), endOfList("10"))), 0)
		informer := foosOf(factory).TypedInformer()
		seen := make(chan string)
		registration, _ := informer.AddTypedEventHandler(notes(seen))
		defer start(factory)()

		synctest.Wait()
		if !informer.HasSynced() || registration.HasSynced() {
			t.Error("want the informer synced, and the handler, which waits for a reader, not synced")
		}
		<-seen
		synctest.Wait()
		if !registration.HasSynced() {
			t.Error("want the handler synced after it has returned")
		}
	})
}

// A resync calls the handlers for each object in the cache, as an update to the same state. It
// makes no request.
func TestResyncReadsTheCacheAndNotTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(stream(event("ADDED", foo("a", "7")), endOfList("10")))
		factory := newFactory(w, 10*time.Minute)
		seen := make(chan string, 100)
		foosOf(factory).TypedInformer().AddTypedEventHandler(notes(seen))
		defer start(factory)()

		time.Sleep(25 * time.Minute) // virtual
		expect(t, drain(seen), "add a 7, in the initial list", "update a 7 to 7", "update a 7 to 7")
		expect(t, drain(w.requests),
			"allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&watch=true")
	})
}

// The transform sees each object before the cache does. It sees the objects of a streamed list
// twice, so a second transformation must do no harm.
func TestTransformComesBeforeTheCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const managed = `"managedFields": [{"manager": "kubectl"}]`
		w := newWire(stream(event("ADDED", foo("listed", "7", managed)), endOfList("10"),
			event("ADDED", foo("watched", "11", managed))))
		transformed := make(chan string, 100)
		factory := factories.NewSharedInformerFactoryWithOptions(newClient(w), 0,
			factories.WithTransform(func(object any) (any, error) {
				foo := object.(*v1alpha1.Foo)
				transformed <- foo.Name
				foo.ManagedFields = nil
				return foo, nil
			}))
		lister := foosOf(factory).Lister()
		defer start(factory)()

		synctest.Wait()
		expect(t, drain(transformed), "listed", "listed", "watched")
		foos, _ := lister.List(labels.Everything())
		if len(foos) != 2 || foos[0].ManagedFields != nil || foos[1].ManagedFields != nil {
			t.Errorf("got %v, want two Foos without managedFields", foos)
		}
	})
}

// These gates decide how the parts of an informer work together. An environment variable can set
// each gate except the locked one: KUBE_FEATURE_WatchListClient=false, for example.
func Example_gatesOfTheInformer() {
	gates := features.FeatureGates()
	for _, gate := range []features.Feature{
		features.WatchListClient, features.InOrderInformers, features.AtomicFIFO,
		features.InOrderInformersBatchProcess,
	} {
		fmt.Println(gate, gates.Enabled(gate))
	}
	setter := gates.(interface {
		Set(features.Feature, bool) error
	})
	fmt.Println(setter.Set("InOrderInformers", false))
	// Output:
	// WatchListClient true
	// InOrderInformers true
	// AtomicFIFO true
	// InOrderInformersBatchProcess true
	// cannot set feature gate "InOrderInformers" to false, feature is locked to true
}

// The queue between reflector and indexer hands out every event, in the order of the watch. A list
// is one event.
func Example_queueKeepsTheOrderOfTheWatch() {
	queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true})
	a, b := &v1alpha1.Foo{}, &v1alpha1.Foo{}
	a.Name, b.Name = "a", "b"
	queue.Replace([]any{a, b}, "10")
	queue.Update(a)
	queue.Update(b)
	queue.Update(a)
	queue.Delete(a)

	for range 5 {
		queue.Pop(func(deltas any, _ bool) error {
			switch delta := deltas.(cache.Deltas)[0]; object := delta.Object.(type) {
			case cache.ReplacedAllInfo:
				fmt.Println(delta.Type, len(object.Objects))
			case *v1alpha1.Foo:
				fmt.Println(delta.Type, object.Name)
			}
			return nil
		})
	}
	// Output:
	// ReplacedAll 2
	// Updated a
	// Updated b
	// Updated a
	// Deleted a
}

// Waiting events of different objects are taken together, in a batch. A second event of the same
// object begins another batch.
func Example_eventsAreTakenInBatches() {
	queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true})
	a, b := &v1alpha1.Foo{}, &v1alpha1.Foo{}
	a.Name, b.Name = "a", "b"
	queue.Add(a)
	queue.Add(b)
	queue.Update(a)

	for range 2 {
		queue.PopBatch(
			func(deltas []cache.Delta, _ bool) error {
				fmt.Println("a batch of", len(deltas))
				return nil
			},
			func(deltas any, _ bool) error {
				delta := deltas.(cache.Deltas)[0]
				fmt.Println("one:", delta.Type, delta.Object.(*v1alpha1.Foo).Name)
				return nil
			})
	}
	// Output:
	// a batch of 2
	// one: Updated a
}
