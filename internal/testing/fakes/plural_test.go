package fakes

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

func TestResourceMayHaveAPluralThatNobodyGuesses(t *testing.T) {
	irregular := v1alpha1.Resource("irregular").WithVersion(v1alpha1.GroupVersion.Version)
	tracker := New().Add(&clienttesting.Fake{}, fooscheme.Scheme,
		map[schema.GroupVersionResource]string{irregular: "Foo"})
	foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}

	if err := tracker.Create(irregular, foo, "default"); err != nil {
		t.Fatal(err)
	}
	foo.Labels = map[string]string{"a": "b"}
	if err := tracker.Update(irregular, foo, "default"); err != nil {
		t.Fatal(err)
	}

	object, err := tracker.Get(irregular, "default", "web")
	if err != nil {
		t.Fatal(err)
	}
	if got := object.(*v1alpha1.Foo).Labels["a"]; got != "b" {
		t.Errorf("got the label %q, want b", got)
	}
	if err := tracker.Delete(irregular, "default", "web"); err != nil {
		t.Error(err)
	}
}
