package conformance

import (
	"fmt"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const nameTaken = "DeploymentNameTaken"

// warnings returns the notes of the Warning events about the Foo.
func (n *namespace) warnings(foo string) (notes []string) {
	n.t.Helper()
	events, err := kubeClient.EventsV1().Events(n.name).List(n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, event := range events.Items {
		about := event.Regarding
		if event.Type == corev1.EventTypeWarning && about.Kind == "Foo" && about.Name == foo {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// onlyWarning waits for a Warning event about the Foo, and fails the test if there are several.
func (n *namespace) onlyWarning(foo string) {
	n.t.Helper()
	part(n.t, "one Warning event", func(t *testing.T) {
		var notes []string
		eventually(t, "Foo "+foo+" has a Warning event", func() (bool, string) {
			notes = n.warnings(foo)
			return len(notes) > 0, "no Warning event"
		})
		if len(notes) != 1 {
			t.Errorf("Foo %s has %d Warning events, want 1: %q", foo, len(notes), notes)
		}
	})
}

// untouched returns the parts of a Deployment that change if anybody except the Deployment
// controller writes to it.
func untouched(deployment *appsv1.Deployment) string {
	var writers []string
	for _, entry := range deployment.ManagedFields {
		if entry.Subresource == "" {
			writers = append(writers, fmt.Sprint(entry.Manager, entry.Time))
		}
	}
	return fmt.Sprint(deployment.UID, deployment.Generation, deployment.OwnerReferences,
		deployment.Labels, deployment.Annotations, writers)
}

func TestForeignDeploymentIsNeverTouched(t *testing.T) {
	behaviour(t, 9)
	n := parallelNamespace(t)
	n.kubectl("create", "deployment", "web", "--image=example.com/foreign")
	n.kubectl("rollout", "status", "deployment/web", "--timeout="+patience.String())
	before := n.deploymentWhen("web", "exists", exists)
	begin := now(t)

	n.createFoo(newFoo("web", "web", 3))
	n.fooWhen("web", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.kubectl("annotate", "foo/web", "example.com/look=again")
	n.catchUp()
	n.onlyWarning("web")

	after := n.deploymentWhen("web", "exists", exists)
	if !reflect.DeepEqual(before.Spec, after.Spec) || untouched(before) != untouched(after) {
		t.Errorf("the controller changed a Deployment that no Foo owns\nbefore: %s\nafter: %s",
			describeDeployment(before), describeDeployment(after))
	}

	n.kubectl("delete", "deployment/web")
	n.fooWhen("web", "is Ready, because the name is free", isReady)
	n.deploymentWhen("web", "has the 3 replicas of the Foo", hasReplicas(3))
	n.onlyWarning("web")
	n.fewRequests(begin)
}

func TestSecondFooWithADeploymentNameWaitsForTheFirst(t *testing.T) {
	behaviour(t, 10)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("first", "web", 1))
	kept := n.deploymentWhen("web", "exists", exists)

	second := n.createFoo(newFoo("second", "web", 2))
	n.fooWhen("second", "is not Ready: "+nameTaken, notReadyBecause(nameTaken))
	n.onlyWarning("second")
	n.fooWhen("first", "is still Ready", isReady)
	deployment := n.deploymentWhen("web", "has the 1 replica of the first Foo", hasReplicas(1))
	if deployment.UID != kept.UID {
		t.Errorf("the Deployment was deleted and created again: %s", describeDeployment(deployment))
	}

	n.kubectl("delete", "foo/first")
	n.fooWhen("second", "is Ready", isReady)
	deployment = n.deploymentWhen("web", "has the 2 replicas of the second Foo", hasReplicas(2))
	part(t, "controller owner reference", func(t *testing.T) {
		if !metav1.IsControlledBy(deployment, second) {
			t.Errorf("the Deployment has the owners %+v, want Foo second", deployment.OwnerReferences)
		}
	})
}
