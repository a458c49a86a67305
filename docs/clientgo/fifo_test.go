package clientgo_test

import (
	"fmt"

	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
