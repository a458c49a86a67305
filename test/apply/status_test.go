package apply

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooapply "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
)

var fooKind = schema.GroupVersionKind{
	Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Kind: "Foo",
}

// updateStatus writes the status of foo as this repository's controller does.
func updateStatus(ctx context.Context, foo *v1alpha1.Foo) (*v1alpha1.Foo, error) {
	return foos.UpdateStatus(ctx, foo, metav1.UpdateOptions{FieldManager: fieldManager})
}

// applyStatus writes the same status with server-side apply.
func applyStatus(ctx context.Context, foo *v1alpha1.Foo) (*v1alpha1.Foo, error) {
	status := fooapply.FooStatus().
		WithObservedGeneration(foo.Status.ObservedGeneration).
		WithReplicas(foo.Status.Replicas).
		WithAvailableReplicas(foo.Status.AvailableReplicas).
		WithSelector(foo.Status.Selector)
	for _, condition := range foo.Status.Conditions {
		status.WithConditions(metaapply.Condition().
			WithType(condition.Type).
			WithStatus(condition.Status).
			WithReason(condition.Reason).
			WithMessage(condition.Message).
			WithObservedGeneration(condition.ObservedGeneration).
			WithLastTransitionTime(condition.LastTransitionTime))
	}
	desired := fooapply.Foo(foo.Name, foo.Namespace).
		WithUID(foo.UID).WithResourceVersion(foo.ResourceVersion).WithStatus(status)
	return foos.ApplyStatus(ctx, desired, force)
}

// createFoo creates a Foo. No controller works for it.
func createFoo(t testing.TB, name string) *v1alpha1.Foo {
	t.Helper()
	return must.Get(foos.Create(t.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
	}, metav1.CreateOptions{FieldManager: "somebody"}))(t)
}

func TestUIDGuardsAnUpdateOfAStatusAndNotAnApply(t *testing.T) {
	foo := createFoo(t, "replaced")
	foo.UID = "00000000-0000-0000-0000-000000000000"
	foo.ResourceVersion = ""
	foo.Status.Replicas = 7

	if _, err := updateStatus(t.Context(), foo); !apierrors.IsConflict(err) {
		t.Errorf("UpdateStatus with another UID: got %v, want a conflict", err)
	}
	desired := fooapply.Foo(foo.Name, foo.Namespace).WithUID(foo.UID).
		WithStatus(fooapply.FooStatus().WithReplicas(7))
	if _, err := foos.ApplyStatus(t.Context(), desired, force); err != nil {
		t.Errorf("ApplyStatus with another UID: got %v", err)
	}
	foo.ResourceVersion = "1"
	if _, err := applyStatus(t.Context(), foo); !apierrors.IsConflict(err) {
		t.Errorf("ApplyStatus with another resourceVersion: got %v, want a conflict", err)
	}
}

func TestManyManagersCanWriteToAListWithKeys(t *testing.T) {
	foo := createFoo(t, "conditions")
	for _, condition := range []string{"Ready", "BackedUp"} {
		desired := fooapply.Foo(foo.Name, foo.Namespace).WithStatus(fooapply.FooStatus().
			WithConditions(metaapply.Condition().WithType(condition).WithStatus("True").
				WithReason("Tested").WithMessage("").WithLastTransitionTime(metav1.Now())))
		must.Get(foos.ApplyStatus(t.Context(), desired,
			metav1.ApplyOptions{FieldManager: "manager of " + condition}))(t)
	}

	got := must.Get(foos.Get(t.Context(), foo.Name, metav1.GetOptions{}))(t)
	if !meta.IsStatusConditionTrue(got.Status.Conditions, "Ready") ||
		!meta.IsStatusConditionTrue(got.Status.Conditions, "BackedUp") {
		t.Errorf("got conditions %+v, want both", got.Status.Conditions)
	}
}
