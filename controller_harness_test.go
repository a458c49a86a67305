package main

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	foofake "example.com/sample-controller/pkg/generated/clientset/versioned/fake"
)

const namespace = "default"

// harness runs the controller as main does, with real informers, queue and workers, but with fake
// clients. A fake does not validate, default or collect garbage, and no Deployment controller
// runs: claims about those are tested on a real control plane, in test/.
type harness struct {
	t    *testing.T
	kube *kubefake.Clientset
	foo  *foofake.Clientset

	kubeTracker, fooTracker *fakes.Tracker
	fakes                   fakes.Clients // all of these

	client  kubernetes.Interface // the controller's; kube unless a test replaces it
	options options
	errors  *atomic.Int32 // reported so far
	stop    func()        // stops the controller that was started last, and waits for its end

	// answer makes the next n requests with that verb and resource fail with err.
	answer func(verb, resource string, n int, err error)
}

// bubble runs test in a synctest bubble, where time stands still while any goroutine can run.
func bubble(t *testing.T, test func(*testing.T, *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := fakes.New()
		h := &harness{
			t: t, kube: f.Kube, kubeTracker: f.KubeTracker, foo: f.Foo, fooTracker: f.FooTracker,
			fakes: f, client: f.Kube, errors: fakes.CountErrors(t), answer: f.Fail,
		}
		test(t, h)
	})
}

// start starts the controller with two workers, and waits until it has nothing left to do.
func (h *harness) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	clients := &clients{kube: h.kube, foo: h.foo}
	recorder, err := newRecorder(ctx, h.kube)
	if err != nil {
		h.t.Fatal(err)
	}
	kubeFactory, fooFactory := newInformerFactories(clients, &h.options, nil)
	controller, err := NewController(h.client, h.foo,
		fooFactory.Samplecontroller().V1alpha1().Foos(), kubeFactory.Apps().V1().Deployments(), recorder)
	if err != nil {
		h.t.Fatal(err)
	}
	kubeFactory.StartWithContext(ctx)
	fooFactory.StartWithContext(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		controller.Run(ctx, 2)
		recorder.Flush(flushTimeout)
	}()
	stop := func() { cancel(); <-stopped }
	h.stop = stop
	h.t.Cleanup(func() {
		stop()
		kubeFactory.Shutdown()
		fooFactory.Shutdown()
	})
	synctest.Wait()
}

// act runs action, which changes the cluster, and waits until the controller has nothing left to
// do.
func (h *harness) act(action func() error) {
	h.t.Helper()
	time.Sleep(time.Millisecond) // virtual: nobody does two things in the same instant
	if err := action(); err != nil {
		h.t.Fatal(err)
	}
	synctest.Wait()
}

func newFoo(name, deploymentName string, replicas *int32) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID("uid-of-" + name), Generation: 1,
		},
		Spec: v1alpha1.FooSpec{DeploymentName: deploymentName, Replicas: replicas},
	}
}

func (h *harness) createFoo(foo *v1alpha1.Foo) {
	h.t.Helper()
	h.act(func() error {
		_, err := h.foo.SamplecontrollerV1alpha1().Foos(namespace).Create(
			context.Background(), foo, metav1.CreateOptions{})
		return err
	})
}

// changeFoo changes a Foo and, as the API server does, increments its generation.
func (h *harness) changeFoo(name string, change func(*v1alpha1.Foo)) {
	h.t.Helper()
	foo := h.getFoo(name)
	change(foo)
	foo.Generation++
	h.act(func() error {
		_, err := h.foo.SamplecontrollerV1alpha1().Foos(namespace).Update(
			context.Background(), foo, metav1.UpdateOptions{})
		return err
	})
}

func (h *harness) deleteFoo(name string) {
	h.t.Helper()
	h.act(func() error {
		return h.foo.SamplecontrollerV1alpha1().Foos(namespace).Delete(
			context.Background(), name, metav1.DeleteOptions{})
	})
}

func (h *harness) getFoo(name string) *v1alpha1.Foo {
	h.t.Helper()
	foo, err := h.foo.SamplecontrollerV1alpha1().Foos(namespace).Get(
		context.Background(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return foo
}

// ready returns the status and the reason of the Ready condition of a Foo.
func ready(foo *v1alpha1.Foo) string {
	ready := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "absent"
	}
	return string(ready.Status) + " " + ready.Reason
}

// ready returns the status and the reason of the Ready condition, "True Available" for example.
func (h *harness) ready(name string) string {
	h.t.Helper()
	return ready(h.getFoo(name))
}

func (h *harness) createDeployment(deployment *appsv1.Deployment) {
	h.t.Helper()
	h.act(func() error {
		_, err := h.kube.AppsV1().Deployments(namespace).Create(
			context.Background(), deployment, metav1.CreateOptions{})
		return err
	})
}

func (h *harness) changeDeployment(name string, change func(*appsv1.Deployment)) {
	h.t.Helper()
	deployment := h.getDeployment(name)
	change(deployment)
	h.act(func() error {
		_, err := h.kube.AppsV1().Deployments(namespace).Update(
			context.Background(), deployment, metav1.UpdateOptions{})
		return err
	})
}

func (h *harness) deleteDeployment(name string) {
	h.t.Helper()
	h.act(func() error {
		return h.kube.AppsV1().Deployments(namespace).Delete(
			context.Background(), name, metav1.DeleteOptions{})
	})
}

// rollOut makes all replicas of a Deployment available, as the Deployment controller would.
func (h *harness) rollOut(name string) {
	h.t.Helper()
	h.changeDeployment(name, func(deployment *appsv1.Deployment) {
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation,
			Replicas:           replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
		}
	})
}

func (h *harness) getDeployment(name string) *appsv1.Deployment {
	h.t.Helper()
	deployment, err := h.kube.AppsV1().Deployments(namespace).Get(
		context.Background(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return deployment
}

func (h *harness) deploymentExists(name string) bool {
	h.t.Helper()
	_, err := h.kube.AppsV1().Deployments(namespace).Get(
		context.Background(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.t.Fatal(err)
	}
	return err == nil
}

// events returns how many Events there are so far for each reason.
func (h *harness) events() map[string]int {
	h.t.Helper()
	list, err := h.kube.EventsV1().Events(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	reasons := map[string]int{}
	for _, event := range list.Items {
		reasons[event.Reason]++
	}
	return reasons
}

// writes returns how many writes with that verb and resource were made; "*" stands for all.
func (h *harness) writes(verb, resource string) int {
	n := 0
	for _, action := range append(h.kube.Actions(), h.foo.Actions()...) {
		switch action.GetVerb() {
		case "get", "list", "watch":
			continue
		}
		if action.Matches(verb, resource) || verb == "*" {
			n++
		}
	}
	return n
}

// clearRequests forgets the requests made so far.
func (h *harness) clearRequests() {
	h.kube.ClearActions()
	h.foo.ClearActions()
}
