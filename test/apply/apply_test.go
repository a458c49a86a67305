package apply

import (
	"context"
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/util/retry"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooapply "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
)

// force makes this manager win where somebody else owns a field that it names.
var force = metav1.ApplyOptions{FieldManager: fieldManager, Force: true}

// configuration says what this manager wants of a Deployment, and nothing else.
func configuration(name string, replicas int32) *appsapply.DeploymentApplyConfiguration {
	labels := map[string]string{"app": name}
	return appsapply.Deployment(name, namespace).
		WithSpec(appsapply.DeploymentSpec().
			WithReplicas(replicas).
			WithSelector(metaapply.LabelSelector().WithMatchLabels(labels)).
			WithTemplate(coreapply.PodTemplateSpec().
				WithLabels(labels).
				WithSpec(coreapply.PodSpec().WithContainers(
					coreapply.Container().WithName("web").WithImage("ours:1")))))
}

var errNotOurs = errors.New("the Deployment is somebody else's")

// applyToOwn applies desired to a Deployment that owner controls, and to no other. If it was
// written or replaced since it was read, the API server refuses, and the caller tries again.
func applyToOwn(
	ctx context.Context, owner metav1.Object, desired *appsapply.DeploymentApplyConfiguration,
) error {
	observed, err := deployments.Get(ctx, *desired.GetName(), metav1.GetOptions{})
	if err != nil {
		return err // NotFound, too: an Apply could take over what somebody creates now
	}
	if !metav1.IsControlledBy(observed, owner) {
		return errNotOurs
	}
	desired.WithUID(observed.UID).WithResourceVersion(observed.ResourceVersion)
	_, err = deployments.Apply(ctx, desired, force)
	return err
}

// createTheirs creates a Deployment of the user "somebody", with an owner if there is one.
func createTheirs(t *testing.T, name string, owners ...metav1.OwnerReference) *appsv1.Deployment {
	t.Helper()
	labels := map[string]string{"app": name}
	return must.Get(deployments.Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "web", Image: "theirs:1"}},
				},
			},
		},
	}, metav1.CreateOptions{FieldManager: "somebody"}))(t)
}

func mustApply(t *testing.T, desired *appsapply.DeploymentApplyConfiguration) *appsv1.Deployment {
	t.Helper()
	return must.Get(deployments.Apply(t.Context(), desired, force))(t)
}

// expect fails the test unless the Deployment has that many replicas of that image.
func expect(t *testing.T, name string, replicas int32, image string) *appsv1.Deployment {
	t.Helper()
	d := must.Get(deployments.Get(t.Context(), name, metav1.GetOptions{}))(t)
	if *d.Spec.Replicas != replicas || d.Spec.Template.Spec.Containers[0].Image != image {
		t.Errorf("got %d replicas of %s, want %d of %s", *d.Spec.Replicas,
			d.Spec.Template.Spec.Containers[0].Image, replicas, image)
	}
	return d
}

func TestApplyTakesOverWhatSomebodyElseMade(t *testing.T) {
	theirs := createTheirs(t, "taken")

	_, err := deployments.Apply(t.Context(), configuration("taken", 1),
		metav1.ApplyOptions{FieldManager: fieldManager})
	if !apierrors.IsConflict(err) ||
		!apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Errorf("without force: got %v, want a conflict of field managers", err)
	}
	expect(t, "taken", 3, "theirs:1")

	owner := metaapply.OwnerReference().WithAPIVersion(fooKind.GroupVersion().String()).
		WithKind(fooKind.Kind).WithName("thief").WithUID(createFoo(t, "thief").UID)
	_, err = deployments.Apply(t.Context(),
		appsapply.Deployment("taken", namespace).WithOwnerReferences(owner),
		metav1.ApplyOptions{FieldManager: fieldManager})
	if err != nil {
		t.Errorf("an owner reference, without force: got %v", err)
	}

	if applied := mustApply(t, configuration("taken", 1)); applied.UID != theirs.UID {
		t.Errorf("with force: got another Deployment")
	}
	expect(t, "taken", 1, "ours:1")
}

func TestApplyToOwnLeavesOthersAlone(t *testing.T) {
	foo := createFoo(t, "owner")
	own := metav1.NewControllerRef(foo, fooKind)
	createTheirs(t, "not-ours")
	createTheirs(t, "ours", *own)

	err := applyToOwn(t.Context(), foo, configuration("not-ours", 1))
	if !errors.Is(err, errNotOurs) {
		t.Errorf("somebody else's: got %v, want %v", err, errNotOurs)
	}
	expect(t, "not-ours", 3, "theirs:1")

	// The Deployment controller writes meanwhile.
	often := wait.Backoff{Duration: 100 * time.Millisecond, Steps: 600}
	err = retry.RetryOnConflict(often, func() error {
		return applyToOwn(t.Context(), foo, configuration("ours", 1))
	})
	if err != nil {
		t.Errorf("our own: got %v", err)
	}
	expect(t, "ours", 1, "ours:1")

	if err := applyToOwn(t.Context(), foo, configuration("none", 1)); !apierrors.IsNotFound(err) {
		t.Errorf("none: got %v, want NotFound", err)
	}
}

func TestUIDAndResourceVersionGuardAnApply(t *testing.T) {
	theirs := createTheirs(t, "guarded")
	const otherUID = types.UID("00000000-0000-0000-0000-000000000000")
	for _, test := range []struct {
		name    string
		desired *appsapply.DeploymentApplyConfiguration
		refused func(error) bool
	}{
		{"another UID", configuration("guarded", 1).WithUID(otherUID), apierrors.IsInvalid},
		{"a UID, and no object", configuration("nobodys", 1).WithUID(theirs.UID), apierrors.IsConflict},
		{"another resourceVersion", configuration("guarded", 1).WithResourceVersion("1"),
			apierrors.IsConflict},
		{"both", configuration("guarded", 1).WithUID(otherUID).WithResourceVersion("1"),
			apierrors.IsConflict},
		{"both, and no object", configuration("nobodys", 1).WithUID(theirs.UID).
			WithResourceVersion(theirs.ResourceVersion), apierrors.IsConflict},
	} {
		if _, err := deployments.Apply(t.Context(), test.desired, force); !test.refused(err) {
			t.Errorf("%s: got %v", test.name, err)
		}
	}
	expect(t, "guarded", 3, "theirs:1")

	// A resourceVersion alone does not say that there must be an object.
	mustApply(t, configuration("nobodys", 1).WithResourceVersion("1"))
	expect(t, "nobodys", 1, "ours:1")
}

func TestApplyThatChangesNothingIsNotStored(t *testing.T) {
	var versions []string
	for range 2 {
		applied := must.Get(kubeClient.CoreV1().ConfigMaps(namespace).Apply(t.Context(),
			coreapply.ConfigMap("same", namespace).WithData(map[string]string{"key": "value"}), force))(t)
		versions = append(versions, applied.ResourceVersion)
	}
	if versions[0] != versions[1] {
		t.Errorf("got resourceVersions %q", versions)
	}
}

func TestTwoWritersOfOneNameRemoveEachOthersFields(t *testing.T) {
	name := func(key string) *appsapply.DeploymentApplyConfiguration {
		return configuration("shared", 1).WithAnnotations(map[string]string{key: "yes"})
	}
	mustApply(t, name("first"))
	if d := mustApply(t, name("second")); d.Annotations["first"] != "" {
		t.Errorf("got annotations %v", d.Annotations)
	}
}

func TestApplyDoesNotRemoveWhatTheSameManagerCreated(t *testing.T) {
	must.Get(kubeClient.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "mixed"}, Data: map[string]string{"old": "yes"},
	}, metav1.CreateOptions{FieldManager: fieldManager}))(t)
	for _, key := range []string{"old", "new"} {
		desired := coreapply.ConfigMap("mixed", namespace).WithData(map[string]string{key: "yes"})
		applied := must.Get(kubeClient.CoreV1().ConfigMaps(namespace).Apply(
			t.Context(), desired, force))(t)
		if applied.Data["old"] != "yes" {
			t.Errorf("after an apply of %q: got %v", key, applied.Data)
		}
	}
}

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
