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

// onlyWarning waits until there is a Warning event about the Foo, and fails if there are more.
func (n *namespace) onlyWarning(foo string) {
	n.t.Helper()
	part(n.t, "one Warning event", func(t *testing.T) {
		var notes []string
		eventually(t, "a Warning event about Foo "+foo, func() (bool, string) {
			notes = n.warnings(foo)
			return len(notes) > 0, "none"
		})
		if len(notes) != 1 {
			t.Errorf("got %d Warning events, want 1: %q", len(notes), notes)
		}
	})
}

// untouched returns what of a Deployment changes when somebody other than the Deployment
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
	n.fooWhen("web", "reports the taken name", notReadyBecause(nameTaken))
	n.kubectl("annotate", "foo/web", "example.com/look=again")
	n.catchUp()
	n.onlyWarning("web")

	after := n.deploymentWhen("web", "exists", exists)
	if !reflect.DeepEqual(before.Spec, after.Spec) || untouched(before) != untouched(after) {
		t.Errorf("expected no change of the foreign Deployment\nbefore: %s\nafter: %s",
			describeDeployment(before), describeDeployment(after))
	}

	n.kubectl("delete", "deployment/web")
	n.fooWhen("web", "is Ready, by itself", isReady)
	n.deploymentWhen("web", "has the Foo's 3 replicas", hasReplicas(3))
	n.onlyWarning("web")
	n.fewRequests(begin)
}

func TestSecondFooWithADeploymentNameWaitsForTheFirst(t *testing.T) {
	behaviour(t, 10)
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("first", "web", 1))
	kept := n.deploymentWhen("web", "exists", exists)

	second := n.createFoo(newFoo("second", "web", 2))
	n.fooWhen("second", "reports the taken name", notReadyBecause(nameTaken))
	n.onlyWarning("second")
	n.fooWhen("first", "is Ready still", isReady)
	deployment := n.deploymentWhen("web", "has the first Foo's 1 replica", hasReplicas(1))
	if deployment.UID != kept.UID {
		t.Errorf("the Deployment was replaced: %s", describeDeployment(deployment))
	}

	n.kubectl("delete", "foo/first")
	n.fooWhen("second", "is Ready", isReady)
	deployment = n.deploymentWhen("web", "has the second Foo's 2 replicas", hasReplicas(2))
	part(t, "controller owner reference", func(t *testing.T) {
		if !metav1.IsControlledBy(deployment, second) {
			t.Errorf("got owners %+v, want Foo second", deployment.OwnerReferences)
		}
	})
}
