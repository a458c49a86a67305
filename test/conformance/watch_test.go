package conformance

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

// deploymentWatch sees everything that happens to the Deployments of a namespace.
type deploymentWatch struct {
	n      *namespace
	events <-chan watch.Event
}

// watchDeployments begins to watch. It does not see what existed before.
func (n *namespace) watchDeployments() *deploymentWatch {
	n.T.Helper()
	deployments := suite.Kube.AppsV1().Deployments(n.Name)
	list := must.Get(deployments.List(n.T.Context(), metav1.ListOptions{}))(n.T)
	watcher := must.Get(deployments.Watch(n.T.Context(), metav1.ListOptions{
		ResourceVersion: list.ResourceVersion,
	}))(n.T)
	n.T.Cleanup(watcher.Stop)
	return &deploymentWatch{n: n, events: watcher.ResultChan()}
}

// until calls see for each event, in the order of the API server's writes, until see returns true.
func (w *deploymentWatch) until(
	what string, see func(watch.EventType, *appsv1.Deployment) (done bool),
) {
	w.n.T.Helper()
	timeout := time.After(suite.Patience)
	for {
		select {
		case event := <-w.events:
			deployment, ok := event.Object.(*appsv1.Deployment)
			if !ok {
				w.n.T.Fatalf("the watch of Deployments ended early: %+v", event.Object)
			}
			if see(event.Type, deployment) {
				return
			}
		case <-timeout:
			suite.GiveUp(w.n.T, what)
		}
	}
}

// nothingCreated lets the controller catch up, and fails the test if a Deployment was created since
// the watch began.
func (w *deploymentWatch) nothingCreated() {
	w.n.T.Helper()
	end := w.n.CatchUp()
	w.until("Deployment "+end+" is created", func(event watch.EventType, deployment *appsv1.Deployment) bool {
		if event == watch.Added && deployment.Name != end {
			w.n.T.Errorf("Deployment %q was created, want none: %s",
				deployment.Name, suite.Describe(deployment))
		}
		return deployment.Name == end
	})
}

// fewRequests fails the test if the controller is in a loop.
func (n *namespace) fewRequests(begin audit.Mark) {
	n.T.Helper()
	n.FewRequests(begin, 30) // a Foo has one Deployment
}
