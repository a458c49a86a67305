package clientgo_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

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
