package fakes

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"

	"example.com/sample-controller/internal/testing/must"
)

// plainDeployments returns a client of client-go's own fake clientset, which has one Deployment.
func plainDeployments(
	t *testing.T, meta metav1.ObjectMeta,
) (appsclient.DeploymentInterface, *appsv1.Deployment) {
	t.Helper()
	deployments := kubefake.NewClientset().AppsV1().Deployments("default")
	// An API server would refuse it: it has neither a selector nor containers.
	made := must.Get(deployments.Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta},
		metav1.CreateOptions{}))(t)
	return deployments, made
}

func TestPlainFakeAddsNothingToAnObject(t *testing.T) {
	_, made := plainDeployments(t, metav1.ObjectMeta{GenerateName: "web-"})

	got := fmt.Sprintf("name %q, UID %q, generation %d, resourceVersion %q, replicas %v",
		made.Name, made.UID, made.Generation, made.ResourceVersion, made.Spec.Replicas)
	want := `name "", UID "", generation 0, resourceVersion "", replicas <nil>`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestPlainFakeTakesAnOldUpdateAndASpecWithTheStatus(t *testing.T) {
	deployments, made := plainDeployments(t, metav1.ObjectMeta{Name: "web"})
	made.ResourceVersion = "of long ago"
	made.Spec.Paused = true

	updated, err := deployments.UpdateStatus(t.Context(), made, metav1.UpdateOptions{})

	if err != nil || !updated.Spec.Paused {
		t.Errorf("got error %v, paused %v, want none, true", err, updated.Spec.Paused)
	}
}

func TestPlainFakeDeletesWhateverHoldsAnObject(t *testing.T) {
	deployments, made := plainDeployments(t,
		metav1.ObjectMeta{Name: "web", Finalizers: []string{"example.com/held"}})

	err := deployments.Delete(t.Context(), made.Name, *metav1.NewPreconditionDeleteOptions("another"))

	left, listErr := deployments.List(t.Context(), metav1.ListOptions{})
	if err != nil || listErr != nil || len(left.Items) != 0 {
		t.Errorf("got errors %v and %v, %d left, want none", err, listErr, len(left.Items))
	}
}

func TestPlainFakeShowsAWatchWhatItDidNotSelect(t *testing.T) {
	deployments, made := plainDeployments(t, metav1.ObjectMeta{Name: "web"})

	watch := must.Get(deployments.Watch(
		t.Context(), metav1.ListOptions{LabelSelector: "team=blue"}))(t)
	defer watch.Stop()
	shown := (<-watch.ResultChan()).Object.(*appsv1.Deployment)
	if shown.Name != made.Name {
		t.Errorf("got %q, want %q", shown.Name, made.Name)
	}
}
