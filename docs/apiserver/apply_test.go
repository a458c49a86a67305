package apiserver

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooapply "example.com/sample-controller/pkg/generated/applyconfiguration/samplecontroller/v1alpha1"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// These tests show on the real API server what docs/server-side-apply.md says. Their clients:
var (
	configMaps coreclient.ConfigMapInterface
	foos       fooclient.FooInterface
)

// force makes this manager win where somebody else owns a field that it names.
var force = metav1.ApplyOptions{FieldManager: "lesson", Force: true}

func ours(name string) *coreapply.ConfigMapApplyConfiguration {
	return coreapply.ConfigMap(name, metav1.NamespaceDefault).
		WithData(map[string]string{"color": "ours"})
}

// createTheirs creates a ConfigMap of the manager "somebody".
func createTheirs(t *testing.T, name string) *corev1.ConfigMap {
	t.Helper()
	return must.Get(configMaps.Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"color": "theirs"},
	}, metav1.CreateOptions{FieldManager: "somebody"}))(t)
}

func expectColor(t *testing.T, name, want string) {
	t.Helper()
	observed := must.Get(configMaps.Get(t.Context(), name, metav1.GetOptions{}))(t)
	if got := observed.Data["color"]; got != want {
		t.Errorf("%s: got color %q, want %q", name, got, want)
	}
}

func TestApplyTakesOverWhatSomebodyElseMade(t *testing.T) {
	theirs := createTheirs(t, "taken")
	polite := metav1.ApplyOptions{FieldManager: force.FieldManager}
	_, err := configMaps.Apply(t.Context(), ours("taken"), polite)
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		t.Errorf("without force: got %v, want a conflict of field managers", err)
	}
	expectColor(t, "taken", "theirs")

	owner := metaapply.OwnerReference().WithAPIVersion("v1").WithKind("ConfigMap").WithName("thief").
		WithUID(createTheirs(t, "thief").UID)
	must.Get(configMaps.Apply(t.Context(),
		coreapply.ConfigMap("taken", metav1.NamespaceDefault).WithOwnerReferences(owner), polite))(t)
	taken := must.Get(configMaps.Apply(t.Context(), ours("taken"), force))(t)
	if taken.UID != theirs.UID {
		t.Error("with force: got another ConfigMap")
	}
	expectColor(t, "taken", "ours")
}

const anotherUID = types.UID("00000000-0000-0000-0000-000000000000")

func TestUIDAndResourceVersionGuardAnApply(t *testing.T) {
	theirs := createTheirs(t, "guarded")
	for name, test := range map[string]struct {
		desired *coreapply.ConfigMapApplyConfiguration
		refused func(error) bool
	}{
		"another UID":             {ours("guarded").WithUID(anotherUID), apierrors.IsInvalid},
		"a UID, and no object":    {ours("nobodys").WithUID(theirs.UID), apierrors.IsConflict},
		"another resourceVersion": {ours("guarded").WithResourceVersion("1"), apierrors.IsConflict},
		"both":                    {ours("guarded").WithUID(anotherUID).WithResourceVersion("1"), apierrors.IsConflict},
		"both, and no object": {ours("nobodys").WithUID(theirs.UID).
			WithResourceVersion(theirs.ResourceVersion), apierrors.IsConflict},
	} {
		if _, err := configMaps.Apply(t.Context(), test.desired, force); !test.refused(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	expectColor(t, "guarded", "theirs")
	// A resourceVersion alone does not say that there must be an object.
	must.Get(configMaps.Apply(t.Context(), ours("nobodys").WithResourceVersion("1"), force))(t)
	expectColor(t, "nobodys", "ours")
}

func TestUIDGuardsAnUpdateOfAStatusAndNotAnApply(t *testing.T) {
	foo := must.Get(foos.Create(t.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: "replaced"},
		Spec:       v1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))},
	}, metav1.CreateOptions{}))(t)
	foo.UID, foo.ResourceVersion = anotherUID, ""
	if _, err := foos.UpdateStatus(t.Context(), foo, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("UpdateStatus with another UID: got %v, want a conflict", err)
	}
	// Each condition has another manager.
	for _, condition := range []string{"Ready", "BackedUp"} {
		desired := fooapply.Foo(foo.Name, foo.Namespace).WithUID(anotherUID).WithStatus(
			fooapply.FooStatus().WithConditions(metaapply.Condition().WithType(condition).
				WithStatus("True").WithReason("Tested").WithMessage("").
				WithLastTransitionTime(metav1.Now())))
		foo = must.Get(foos.ApplyStatus(t.Context(), desired,
			metav1.ApplyOptions{FieldManager: "manager of " + condition}))(t)
	}
	if got := foo.Status.Conditions; len(got) != 2 {
		t.Errorf("got conditions %+v, want those of both managers", got)
	}
}
