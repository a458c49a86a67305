package clientgo_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	informers "example.com/sample-controller/pkg/generated/informers/externalversions/samplecontroller/v1alpha1"
)

// newIndexer returns a store like that inside an informer, with an index like that of this
// controller: it finds the Foos that name a Deployment.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.TypedIndexersToIndexers(
		informers.FooIndexers{
			"deploymentName": func(foo *v1alpha1.Foo) ([]string, error) {
				return []string{foo.Namespace + "/" + foo.Spec.DeploymentName}, nil
			},
		}))
}

func newFoo(name, deploymentName string) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName},
	}
}

// An index maps a value, which a function computes from an object, to the keys of the objects with
// that value. It follows each change of the store.
func Example_indexFollowsEachChange() {
	indexer := newIndexer()
	indexer.Add(newFoo("a", "web"))
	indexer.Add(newFoo("b", "web"))
	fmt.Println(indexer.IndexKeys("deploymentName", "default/web"))

	indexer.Update(newFoo("b", "db"))
	fmt.Println(indexer.IndexKeys("deploymentName", "default/web"))
	fmt.Println(indexer.IndexKeys("deploymentName", "default/db"))
	// Output:
	// [default/a default/b] <nil>
	// [default/a] <nil>
	// [default/b] <nil>
}

// The cache returns the object that it holds, not a copy. If you change it, you change it for
// everybody, and the index does not notice.
func Example_cacheReturnsTheObjectItself() {
	indexer := newIndexer()
	indexer.Add(newFoo("a", "web"))

	object, _, _ := indexer.GetByKey("default/a")
	object.(*v1alpha1.Foo).Spec.DeploymentName = "changed"

	again, _, _ := indexer.GetByKey("default/a")
	fmt.Println(again.(*v1alpha1.Foo).Spec.DeploymentName)
	fmt.Println(indexer.IndexKeys("deploymentName", "default/web"))
	// Output:
	// changed
	// [default/a] <nil>
}

// Two resourceVersions of one resource are compared as numbers.
func Example_resourceVersionsAreCompared() {
	for _, pair := range [][2]string{{"9", "10"}, {"10", "10"}, {"10", "9"}} {
		fmt.Println(resourceversion.CompareResourceVersion(pair[0], pair[1]))
	}
	// Output:
	// -1 <nil>
	// 0 <nil>
	// 1 <nil>
}

// changeAfter has, in a child of this test, for how long the Foo has been in the cache when it is
// changed.
const changeAfter = "CHANGE_AFTER"

// KUBE_CACHE_MUTATION_DETECTOR=true makes each informer compare, every second, the objects that
// came into its cache with copies that it made of them. If one differs, the process panics. An
// object is forgotten when it has been in the cache, unchanged, for two to four minutes.
//
// client-go reads the variable when the process starts, and nobody can catch the panic. So this
// test starts itself again, as a child.
func TestDetectorPanicsWhenACachedObjectWasChanged(t *testing.T) {
	if after := os.Getenv(changeAfter); after != "" {
		changeCachedFoo(t, after)
		return
	}
	for _, test := range []struct {
		name, detector, after string
		panics                bool
	}{
		{"changed at once", "true", "0s", true},
		{"changed after two minutes", "true", "2m", true},
		{"changed after more than four minutes", "true", "4m10s", false},
		{"no detector", "", "0s", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestDetectorPanicsWhenACachedObjectWasChanged$")
			child.Env = append(os.Environ(),
				"KUBE_CACHE_MUTATION_DETECTOR="+test.detector, changeAfter+"="+test.after)
			output, err := child.CombinedOutput()

			panicked := strings.Contains(string(output), "panic: cache *v1alpha1.Foo modified")
			if panicked != test.panics || (err != nil) != test.panics {
				t.Errorf("panics: got %v (%v), want %v\n%s", panicked, err, test.panics, output)
			}
			compared := strings.Contains(string(output), "CACHE *v1alpha1.Foo[0] ALTERED!")
			if compared != test.panics {
				t.Errorf("prints both versions: got %v, want %v\n%s", compared, test.panics, output)
			}
		})
	}
}

// changeCachedFoo changes a Foo in a cache, and gives the detector a little more than a second.
func changeCachedFoo(t *testing.T, after string) {
	age := must.Get(time.ParseDuration(after))(t)
	synctest.Test(t, func(t *testing.T) {
		factory := newFactory(newWire(stream(event("ADDED", foo("a", "7")), endOfList("10"))), 0)
		informer := foosOf(factory).Informer()
		defer start(factory)()
		<-informer.HasSyncedChecker().Done()

		time.Sleep(age) // virtual
		synctest.Wait() // for a comparison that has begun
		object, _, _ := informer.GetStore().GetByKey("default/a")
		object.(*v1alpha1.Foo).Spec.DeploymentName = "changed"
		time.Sleep(1100 * time.Millisecond)
	})
}
