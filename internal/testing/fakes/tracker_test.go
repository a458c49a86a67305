package fakes

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

const finalizer = "example.com/held"

func fooWithFinalizer(t *testing.T) (fooclient.FooInterface, *v1alpha1.Foo) {
	t.Helper()
	foos := New().Foo.SamplecontrollerV1alpha1().Foos("default")
	foo := must.Get(foos.Create(t.Context(), &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{
		Name: "web", UID: "1", Finalizers: []string{finalizer},
	}}, metav1.CreateOptions{}))(t)
	return foos, foo
}

func patch(ctx context.Context, foos fooclient.FooInterface, patch string) (*v1alpha1.Foo, error) {
	return foos.Patch(ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
}

func TestFinalizerHoldsAnObjectUntilItIsRemoved(t *testing.T) {
	for name, release := range map[string]func(fooclient.FooInterface, *v1alpha1.Foo) error{
		"by a patch": func(foos fooclient.FooInterface, foo *v1alpha1.Foo) error {
			_, err := patch(t.Context(), foos, `{"metadata": {"finalizers": null}}`)
			return err
		},
		"by an update": func(foos fooclient.FooInterface, foo *v1alpha1.Foo) error {
			foo.Finalizers = nil
			_, err := foos.Update(t.Context(), foo, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			foos, foo := fooWithFinalizer(t)
			must.Do(t, foos.Delete(t.Context(), "web", metav1.DeleteOptions{}))
			held, err := foos.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || held.DeletionTimestamp == nil ||
				held.ResourceVersion == foo.ResourceVersion {
				t.Fatalf("got %+v (error: %v), want it marked as being deleted", held, err)
			}

			if err := release(foos, held); err != nil {
				t.Error(err)
			}

			if _, err := foos.Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("got error %v, want NotFound", err)
			}
			if _, err := foos.Update(t.Context(), held, metav1.UpdateOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("a second update: got error %v, want NotFound", err)
			}
		})
	}
}

func TestWriteToAnotherVersionOrObjectIsAConflict(t *testing.T) {
	for name, write := range map[string]func(fooclient.FooInterface) error{
		"a patch of an old version": func(foos fooclient.FooInterface) error {
			_, err := patch(t.Context(), foos, `{"metadata": {"resourceVersion": "1"}}`)
			return err
		},
		"a patch of another object": func(foos fooclient.FooInterface) error {
			_, err := patch(t.Context(), foos, `{"metadata": {"uid": "2"}}`)
			return err
		},
		"an update of another object": func(foos fooclient.FooInterface) error {
			_, err := foos.Update(t.Context(),
				&v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "2"}}, metav1.UpdateOptions{})
			return err
		},
		"a deletion of another object": func(foos fooclient.FooInterface) error {
			return foos.Delete(t.Context(), "web", *metav1.NewPreconditionDeleteOptions("2"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			foos, foo := fooWithFinalizer(t)

			if err := write(foos); !apierrors.IsConflict(err) {
				t.Errorf("got error %v, want a conflict", err)
			}

			now, err := foos.Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || now.ResourceVersion != foo.ResourceVersion {
				t.Errorf("got version %q (error: %v), want %q", now.ResourceVersion, err, foo.ResourceVersion)
			}
		})
	}
}

func TestPatchGivesTheNextVersion(t *testing.T) {
	foos, foo := fooWithFinalizer(t)

	patched, err := patch(t.Context(), foos, `{"metadata": {"labels": {"team": "blue"}}}`)

	if err != nil || patched.ResourceVersion == foo.ResourceVersion ||
		patched.Labels["team"] != "blue" {
		t.Errorf("got %+v (error: %v), want a label and a new version", patched, err)
	}
	stored, err := foos.Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || stored.ResourceVersion != patched.ResourceVersion {
		t.Errorf("stored: version %q (error: %v), want %q", stored.ResourceVersion, err,
			patched.ResourceVersion)
	}
}

func TestOnlySoManyRequestsOfThatVerbFail(t *testing.T) {
	c := New()
	want := errors.New("made to fail")
	c.Fail("list", "deployments", 2, want)
	c.Fail("list", "foos", 1, want)

	deployments, foos := c.Kube.AppsV1().Deployments(""), c.Foo.SamplecontrollerV1alpha1().Foos("")
	for i, wantErr := range []error{want, want, nil} {
		if _, err := deployments.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, wantErr) {
			t.Errorf("list %d of Deployments: got %v, want %v", i, err, wantErr)
		}
	}
	if _, err := foos.Watch(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("watching Foos: got %v, want no error", err)
	}
	for i, wantErr := range []error{want, nil} {
		if _, err := foos.List(t.Context(), metav1.ListOptions{}); !errors.Is(err, wantErr) {
			t.Errorf("list %d of Foos: got %v, want %v", i, err, wantErr)
		}
	}
}

func TestReportedErrorsAreCounted(t *testing.T) {
	errs := CountErrors(t)
	utilruntime.HandleErrorWithContext(t.Context(), errors.New("one"), "Reported")

	if got := errs.Load(); got != 1 {
		t.Errorf("errors counted: got %d, want 1", got)
	}
}
