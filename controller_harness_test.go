package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

const namespace = "default"

// harness runs the controller as main does, with real informers, queue and workers, but with an API
// server in memory. Neither a Deployment controller nor a garbage collector runs: claims about those
// are tested on a real control plane, in test/.
type harness struct {
	*fakes.Server
	t    *testing.T
	kube kubernetes.Interface // of the test
	foo  clientset.Interface  // of the test

	options    *options
	errors     *atomic.Int32 // reported so far
	controller *Controller   // that was started last
	stop       func()        // stops it, and waits for its end
}

// bubble runs test in a synctest bubble, where time stands still while any goroutine can run.
func bubble(t *testing.T, test func(*testing.T, *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t, "artifacts/examples/crd.yaml")
		flags := []string{"--workers=2", "--health-probe-bind-address=0", "--metrics-bind-address=0"}
		test(t, &harness{Server: server, t: t, kube: kubernetes.NewForConfigOrDie(server.Others),
			foo:     clientset.NewForConfigOrDie(server.Others),
			options: must.Get(parseFlags(flags, nil))(t), errors: fakes.CountErrors(t)})
	})
}

// start starts the controller with two workers, and waits until it has nothing left to do.
func (h *harness) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p, controller, err := newProcess(ctx, h.Config, h.options, nil)
	must.Do(h.t, err)
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	h.controller = controller
	h.stop = sync.OnceFunc(func() { cancel(); must.Do(h.t, <-ended) })
	h.t.Cleanup(h.stop)
	synctest.Wait()
}

// act runs action, which changes the cluster, and waits until the controller has nothing left to
// do.
func (h *harness) act(action func() error) {
	h.t.Helper()
	time.Sleep(time.Millisecond) // virtual: nobody does two things in the same instant
	must.Do(h.t, action())
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

// objects are the Foos or the Deployments of a namespace, as a typed client shows them.
type objects[T any] interface {
	Create(context.Context, *T, metav1.CreateOptions) (*T, error)
	Update(context.Context, *T, metav1.UpdateOptions) (*T, error)
	UpdateStatus(context.Context, *T, metav1.UpdateOptions) (*T, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
	Get(context.Context, string, metav1.GetOptions) (*T, error)
}

func (h *harness) foos() objects[v1alpha1.Foo] {
	return h.foo.SamplecontrollerV1alpha1().Foos(namespace)
}

func (h *harness) deployments(namespace string) objects[appsv1.Deployment] {
	return h.kube.AppsV1().Deployments(namespace)
}

// write writes an object with a method of its client: Create, Update or UpdateStatus.
func write[T, O any](h *harness, with func(context.Context, *T, O) (*T, error), object *T) {
	h.t.Helper()
	var options O
	h.act(func() error { _, err := with(context.Background(), object, options); return err })
}

func getFrom[T any](h *harness, in objects[T], name string) *T {
	h.t.Helper()
	return must.Get(in.Get(context.Background(), name, metav1.GetOptions{}))(h.t)
}

func changeIn[T any](h *harness, in objects[T], name string, change func(*T)) {
	h.t.Helper()
	object := getFrom(h, in, name)
	change(object)
	write(h, in.Update, object)
}

func (h *harness) createFoo(foo *v1alpha1.Foo) {
	h.t.Helper()
	write(h, h.foos().Create, foo)
}

func (h *harness) changeFoo(name string, to func(*v1alpha1.Foo)) {
	h.t.Helper()
	changeIn(h, h.foos(), name, to)
}

func (h *harness) deleteFoo(name string) {
	h.t.Helper()
	h.act(func() error {
		return h.foos().Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

func (h *harness) getFoo(name string) *v1alpha1.Foo {
	h.t.Helper()
	return getFrom(h, h.foos(), name)
}

// ready returns the status and the reason of the Ready condition, "True Available" for example.
func ready(foo *v1alpha1.Foo) string {
	ready := meta.FindStatusCondition(foo.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return "absent"
	}
	return string(ready.Status) + " " + ready.Reason
}

// expectReady checks the status and the reason of the Ready condition of a Foo.
func (h *harness) expectReady(name, want string) {
	h.t.Helper()
	if got := ready(h.getFoo(name)); got != want {
		h.t.Errorf("Ready: got %q, want %q", got, want)
	}
}

// expectStatus checks the status, and that it describes the newest generation of the Foo.
func (h *harness) expectStatus(name, ready string, available int32) {
	h.t.Helper()
	h.expectReady(name, ready)
	foo := h.getFoo(name)
	got := foo.Status
	if got.Replicas != available || got.AvailableReplicas != available ||
		got.ObservedGeneration != foo.Generation {
		h.t.Errorf("status: got %+v, want %d replicas, all available, and generation %d",
			got, available, foo.Generation)
	}
}

func (h *harness) createDeployment(deployment *appsv1.Deployment) {
	h.t.Helper()
	write(h, h.deployments(deployment.Namespace).Create, deployment)
}

func (h *harness) changeDeployment(name string, to func(*appsv1.Deployment)) {
	h.t.Helper()
	changeIn(h, h.deployments(namespace), name, to)
}

func (h *harness) deleteDeployment(name string) {
	h.t.Helper()
	h.act(func() error {
		return h.deployments(namespace).Delete(context.Background(), name, metav1.DeleteOptions{})
	})
}

// rollOut makes all replicas of a Deployment available, as the Deployment controller would.
func (h *harness) rollOut(name string) {
	h.t.Helper()
	deployment := h.getDeployment(name)
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation,
		Replicas:           replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
	}
	write(h, h.deployments(namespace).UpdateStatus, deployment)
}

func (h *harness) getDeployment(name string) *appsv1.Deployment {
	h.t.Helper()
	return getFrom(h, h.deployments(namespace), name)
}

func (h *harness) deploymentExists(name string) bool {
	h.t.Helper()
	_, err := h.deployments(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		h.t.Fatal(err)
	}
	return err == nil
}

// expectReplicas checks how many replicas the spec of a Deployment asks for.
func (h *harness) expectReplicas(name string, want int32) {
	h.t.Helper()
	if got := *h.getDeployment(name).Spec.Replicas; got != want {
		h.t.Errorf("replicas of Deployment %q: got %d, want %d", name, got, want)
	}
}

// expectErrors checks how many errors were reported so far.
func (h *harness) expectErrors(want int32) {
	h.t.Helper()
	if got := h.errors.Load(); got != want {
		h.t.Errorf("errors reported: got %d, want %d", got, want)
	}
}

// wait lets virtual time pass, and then waits until the controller has nothing left to do.
func (h *harness) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// expectEvents checks how many Events there are so far for a reason.
func (h *harness) expectEvents(reason string, want int) {
	h.t.Helper()
	events := h.kube.EventsV1().Events(namespace)
	list := must.Get(events.List(context.Background(), metav1.ListOptions{}))(h.t)
	got := len(slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason != reason }))
	if got != want {
		h.t.Errorf("%s events: got %d, want %d", reason, got, want)
	}
}

// expectWrites checks how many requests with that verb and resource were made; "*" is all writes.
func (h *harness) expectWrites(verb, resource string, want int) {
	h.t.Helper()
	if got := len(h.Requests(verb, resource)); got != want {
		h.t.Errorf("requests (%s %s): got %d, want %d", verb, resource, got, want)
	}
}
