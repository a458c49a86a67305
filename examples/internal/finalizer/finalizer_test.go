package finalizer

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

const (
	mine   = "example.com/mine"
	others = "example.com/others"
)

func create(t *testing.T, finalizers ...string) (fooclient.FooInterface, *v1alpha1.Foo) {
	t.Helper()
	server := fakes.New(t, "../../../artifacts/examples/crd.yaml")
	foos := clientset.NewForConfigOrDie(server.Config).SamplecontrollerV1alpha1().Foos("default")
	foo := must.Get(foos.Create(t.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Finalizers: finalizers},
		Spec:       v1alpha1.FooSpec{DeploymentName: "web"},
	}, metav1.CreateOptions{}))(t)
	return foos, foo
}

func TestFinalizerIsAddedToThoseOfOthers(t *testing.T) {
	foos, foo := create(t, others)

	added, err := Add(t.Context(), foos, foo, mine, "test")

	if err != nil || !slices.Equal(added.Finalizers, []string{others, mine}) {
		t.Errorf("got %q (error: %v), want that of the others, too", added.Finalizers, err)
	}
	if Has(foo, mine) || !Has(added, mine) {
		t.Errorf("Has before: %t, after: %t; want false, true", Has(foo, mine), Has(added, mine))
	}
}

func TestOnlyOneFinalizerIsRemoved(t *testing.T) {
	foos, foo := create(t, others, mine)

	left, err := Remove(t.Context(), foos, foo, mine, "test")

	if err != nil || !slices.Equal(left.Finalizers, []string{others}) {
		t.Errorf("got %q (error: %v), want that of the others", left.Finalizers, err)
	}
	if !Has(foo, mine) {
		t.Error("the object that was passed was changed; it may be that of a cache")
	}
}

func TestLastFinalizerLetsTheObjectGo(t *testing.T) {
	foos, _ := create(t, mine)
	must.Do(t, foos.Delete(t.Context(), "web", metav1.DeleteOptions{}))
	foo := must.Get(foos.Get(t.Context(), "web", metav1.GetOptions{}))(t)

	for range 2 { // the second time, it is gone already
		if _, err := Remove(t.Context(), foos, foo, mine, "test"); err != nil {
			t.Error(err)
		}
	}

	if _, err := foos.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want NotFound", err)
	}
}

func TestOldStateIsAConflict(t *testing.T) {
	foos, foo := create(t)
	newer := foo.DeepCopy()
	newer.Finalizers = []string{others}
	must.Get(foos.Update(t.Context(), newer, metav1.UpdateOptions{}))(t)

	if _, err := Add(t.Context(), foos, foo, mine, "test"); !apierrors.IsConflict(err) {
		t.Errorf("got error %v, want a conflict", err)
	}
}
