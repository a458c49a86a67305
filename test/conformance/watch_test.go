package conformance

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// deploymentWatch sees everything that happens to the Deployments of a namespace.
type deploymentWatch struct {
	n      *namespace
	events <-chan watch.Event
}

// watchDeployments begins to watch. It does not see what existed before.
func (n *namespace) watchDeployments() *deploymentWatch {
	n.t.Helper()
	list, err := n.deployments.List(n.t.Context(), metav1.ListOptions{})
	if err != nil {
		n.t.Fatal(err)
	}
	watcher, err := n.deployments.Watch(n.t.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion,
	})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(watcher.Stop)
	return &deploymentWatch{n: n, events: watcher.ResultChan()}
}

// until calls see for each event, in the order of the API server's writes, until see returns true.
func (w *deploymentWatch) until(
	what string, see func(watch.EventType, *appsv1.Deployment) (done bool),
) {
	w.n.t.Helper()
	timeout := time.After(*patience)
	for {
		select {
		case event := <-w.events:
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				w.n.t.Fatalf("the watch of Deployments ended early: %+v", event.Object)
			}
			if see(event.Type, deployment) {
				return
			}
		case <-timeout:
			w.n.t.Fatalf("waited %v, but this did not happen: %s\n%s", *patience, what, whoIsToBlame())
		}
	}
}

// nothingCreated lets the controller catch up, and fails the test if a Deployment was created since
// the watch began.
func (w *deploymentWatch) nothingCreated() {
	w.n.t.Helper()
	end := w.n.catchUp()
	created := "Deployment " + end + " is created"
	w.until(created, func(event watch.EventType, deployment *appsv1.Deployment) bool {
		if event == watch.Added && deployment.Name != end {
			w.n.t.Errorf("Deployment %q was created, want none: %s",
				deployment.Name, describeDeployment(deployment))
		}
		return deployment.Name == end
	})
}
