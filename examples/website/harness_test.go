package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	websiteset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	websiteclient "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned/typed/website/v1alpha1"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

const namespace = "default"

// harness runs the controller as main does, with real informers, queue, workers and registry, but
// with an API server in memory. Neither a Deployment controller nor a garbage collector runs: claims
// about those are tested on a real control plane.
type harness struct {
	*fakes.Server
	t        *testing.T
	Kube     kubernetes.Interface // of the test
	website  websiteset.Interface // of the test
	registry *fakeRegistry
	errors   *atomic.Int32 // reported so far
	workers  int
	stop     func() // stops the controller that was started last, and waits for its end
}

// url returns the URL that the registry knows for a Website.
func (h *harness) url(name string) string {
	h.t.Helper()
	return h.registry.known()[string(h.getWebsite(name).UID)].URL
}

// bubble runs test in a synctest bubble, where time stands still while any goroutine can run.
func bubble(t *testing.T, test func(*testing.T, *harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t, "artifacts/crd.yaml")
		test(t, &harness{
			Server: server, t: t, Kube: kubernetes.NewForConfigOrDie(server.Others),
			website:  websiteset.NewForConfigOrDie(server.Others),
			registry: newRegistry(), errors: fakes.CountErrors(t), workers: 2,
		})
	})
}

// oldURL is what the registry is to know of newWebsite, before moveWebsite.
const oldURL = "http://web.default.svc:80"

func moveWebsite(website *v1alpha1.Website) { website.Spec.Port = 8000 }

// editWebsite changes something else.
func editWebsite(website *v1alpha1.Website) { website.Spec.Content = "Bye" }

// expectEdited checks that a child shows what editWebsite has changed.
func (h *harness) expectEdited(name string) {
	h.t.Helper()
	if got := h.getConfigMap(name).Data["index.html"]; got != "Bye" {
		h.t.Errorf("content: got %q, want Bye", got)
	}
}

// start starts the controller, and waits until it has nothing left to do.
func (h *harness) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := runWithoutNetwork(ctx, h.Config, h.registry, h.workers); err != nil {
			h.t.Error(err)
		}
	}()
	h.stop = func() { cancel(); <-stopped }
	h.t.Cleanup(h.stop)
	synctest.Wait()
}

// runWithoutNetwork runs the program with that many workers until ctx is done.
func runWithoutNetwork(
	ctx context.Context, config *rest.Config, registry http.RoundTripper, workers int,
) error {
	o, err := parseFlags([]string{fmt.Sprint("--workers=", workers), "--metrics-bind-address=0",
		"--health-probe-bind-address=0"}, nil)
	if err != nil {
		return err
	}
	p, _, err := newProcess(ctx, config, o, nil, registry)
	if err != nil {
		return err
	}
	return p.Run(ctx)
}

// must fails the test if somebody's request has failed. Then it waits until the controller has
// nothing left to do.
func (h *harness) must(err error) {
	h.t.Helper()
	must.Do(h.t, err)
	h.wait(time.Millisecond) // nobody does two things in the same instant
}

// wait lets time pass, which is virtual.
func (h *harness) wait(duration time.Duration) {
	time.Sleep(duration)
	synctest.Wait()
}

func newWebsite(name string) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace,
		},
		Spec: v1alpha1.WebsiteSpec{
			Content: "Hello", Replicas: new(int32(2)), Image: "nginx:1", Port: 80,
		},
	}
}

func (h *harness) websites() websiteclient.WebsiteInterface {
	return h.website.WebsiteV1alpha1().Websites(namespace)
}

// createWebsite creates a Website.
func (h *harness) createWebsite(website *v1alpha1.Website) {
	h.t.Helper()
	_, err := h.websites().Create(h.t.Context(), website, metav1.CreateOptions{})
	h.must(err)
}

// createServed creates a Website whose Deployment is rolled out at once.
func (h *harness) createServed(name string) {
	h.t.Helper()
	h.createWebsite(newWebsite(name))
	h.rollOut(name)
}

func (h *harness) getWebsite(name string) *v1alpha1.Website {
	h.t.Helper()
	return must.Get(h.websites().Get(h.t.Context(), name, metav1.GetOptions{}))(h.t)
}

func (h *harness) websiteExists(name string) bool { return get(h, h.websites(), name) != nil }

// changeWebsite changes a Website.
func (h *harness) changeWebsite(name string, change func(*v1alpha1.Website)) {
	h.t.Helper()
	website := h.getWebsite(name)
	change(website)
	_, err := h.websites().Update(h.t.Context(), website, metav1.UpdateOptions{})
	h.must(err)
}

func (h *harness) deleteWebsite(name string) {
	h.t.Helper()
	h.must(h.websites().Delete(h.t.Context(), name, metav1.DeleteOptions{}))
}

func (h *harness) getConfigMap(name string) *corev1.ConfigMap {
	return get(h, h.Kube.CoreV1().ConfigMaps(namespace), name)
}

func (h *harness) getService(name string) *corev1.Service {
	return get(h, h.Kube.CoreV1().Services(namespace), name)
}

func (h *harness) getDeployment(name string) *appsv1.Deployment {
	return get(h, h.Kube.AppsV1().Deployments(namespace), name)
}

// getter is what typed clients of all kinds have.
type getter[T any] interface {
	Get(context.Context, string, metav1.GetOptions) (*T, error)
}

// get returns the object of that name, or nil if there is none.
func get[T any](h *harness, from getter[T], name string) *T {
	h.t.Helper()
	object, err := from.Get(h.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must.Do(h.t, err)
	return object
}

func (h *harness) updateDeployment(deployment *appsv1.Deployment) {
	h.t.Helper()
	_, err := h.Kube.AppsV1().Deployments(namespace).Update(h.t.Context(), deployment,
		metav1.UpdateOptions{})
	h.must(err)
}

// rollOut makes all replicas of a Deployment available, as the Deployment controller would.
func (h *harness) rollOut(name string) {
	h.t.Helper()
	deployment := h.getDeployment(name)
	replicas := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas,
		ReadyReplicas: replicas, AvailableReplicas: replicas,
	}
	_, err := h.Kube.AppsV1().Deployments(namespace).UpdateStatus(
		h.t.Context(), deployment, metav1.UpdateOptions{})
	h.must(err)
}

// expectCondition checks a condition, "True Available" for example.
func (h *harness) expectCondition(name, condition, want string) {
	h.t.Helper()
	got := "absent"
	found := meta.FindStatusCondition(h.getWebsite(name).Status.Conditions, condition)
	if found != nil {
		got = string(found.Status) + " " + found.Reason
	}
	if got != want {
		h.t.Errorf("%s: got %q, want %q", condition, got, want)
	}
}

// expectEvents checks how many Events there are so far for a reason.
func (h *harness) expectEvents(reason string, want int) {
	h.t.Helper()
	list := must.Get(h.Kube.EventsV1().Events(namespace).List(h.t.Context(), metav1.ListOptions{}))(h.t)
	got := len(slices.DeleteFunc(list.Items, func(e eventsv1.Event) bool { return e.Reason != reason }))
	if got != want {
		h.t.Errorf("%s events: got %d, want %d", reason, got, want)
	}
}

// expectErrors checks how many errors were reported so far.
func (h *harness) expectErrors(want int32) {
	h.t.Helper()
	if got := h.errors.Load(); got != want {
		h.t.Errorf("errors reported: got %d, want %d", got, want)
	}
}

// expectWrites checks how many writes with that verb and resource were made; "*" stands for all.
func (h *harness) expectWrites(verb, resource string, want int) {
	h.t.Helper()
	if got := len(h.Requests(verb, resource)); got != want {
		h.t.Errorf("writes (%s %s): got %d, want %d", verb, resource, got, want)
	}
}
