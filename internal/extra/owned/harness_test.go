package owned

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/internal/recorder"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

const (
	namespace = "default"
	manager   = "test"
	label     = "managed-by" // the informers select by it
)

// harness runs a controller of Foos that own a Deployment, which the Foo names, and a ConfigMap,
// which has the Foo's name.
type harness struct {
	fakes.Clients
	t        *testing.T
	children Set[*v1alpha1.Foo]
	queue    workqueue.TypedRateLimitingInterface[cache.ObjectName]
	foos     cache.Store
	reported map[string]string // the reason that the last sync of each Foo would report
	reports  int               // how often that was
	failed   atomic.Int32      // syncs with an error

	mu  sync.Mutex
	log []string // why keys were queued, with the time that they wait
}

func bubble(t *testing.T, prepare, test func(*harness)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &harness{
			Clients: fakes.New(), t: t, reported: map[string]string{},
			queue: workqueue.NewTypedRateLimitingQueue(
				workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
					5*time.Millisecond, 30*time.Second)),
		}
		prepare(h)
		h.start()
		test(h)
	})
}

func nothing(*harness) {}

func (h *harness) start() {
	h.t.Helper()
	selected := func(options *metav1.ListOptions) { options.LabelSelector = label }
	kube := informers.NewSharedInformerFactoryWithOptions(h.Kube, 0,
		informers.WithTweakListOptions(selected))
	foo := fooinformers.NewSharedInformerFactory(h.Foo, 0)
	foos := foo.Samplecontroller().V1alpha1().Foos()
	h.foos = foos.Informer().GetStore()
	must.Get(foos.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { h.enqueue(object) },
		UpdateFunc: func(_, object any) { h.enqueue(object) },
		DeleteFunc: func(object any) { h.enqueue(object) },
	}))(h.t)
	ctx, cancel := context.WithCancel(context.Background())
	events := must.Get(recorder.New(ctx, h.Kube, manager, fooscheme.Scheme, kubescheme.Scheme))(h.t)
	owners := Owners[*v1alpha1.Foo]{
		GroupVersionKind: schema.GroupVersion(v1alpha1.GroupVersion).WithKind("Foo"),
		Manager:          manager,
		Informer:         foos.TypedInformer(),
		IsNew:            func(foo *v1alpha1.Foo) bool { return foo.Status.ObservedGeneration == 0 },
		Get: func(ctx context.Context, namespace, name string) (*v1alpha1.Foo, error) {
			return h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Enqueue: func(key cache.ObjectName, _ metav1.Object, _ string) { h.queue.Add(key) },
		EnqueueAfter: func(
			_ context.Context, key cache.ObjectName, delay time.Duration, because string,
		) {
			h.mu.Lock()
			h.log = append(h.log, delay.String()+" "+because)
			h.mu.Unlock()
			h.queue.AddAfter(key, delay)
		},
		Recorder: events,
	}
	configMaps := must.Get(New(owners, h.configMaps(kube)))(h.t)
	h.children = Set[*v1alpha1.Foo]{configMaps, must.Get(New(owners, h.deployments(kube)))(h.t)}
	kube.StartWithContext(ctx)
	foo.StartWithContext(ctx)
	cache.WaitFor(ctx, "", h.children.HandlersSynced()...)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for h.processNextWorkItem(ctx) {
		}
	}()
	h.t.Cleanup(func() {
		h.queue.ShutDown()
		<-stopped
		events.Flush(time.Second)
		cancel()
		kube.Shutdown()
		foo.Shutdown()
	})
	h.settle()
}

func (h *harness) configMaps(
	factory informers.SharedInformerFactory,
) Kind[*v1alpha1.Foo, *corev1.ConfigMap] {
	return Kind[*v1alpha1.Foo, *corev1.ConfigMap]{
		Name:     "ConfigMap",
		Informer: factory.Core().V1().ConfigMaps().TypedInformer(),
		Client: func(namespace string) Client[*corev1.ConfigMap] {
			return h.Kube.CoreV1().ConfigMaps(namespace)
		},
		NameOf: func(foo *v1alpha1.Foo) string { return foo.Name },
		New: func(foo *v1alpha1.Foo) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: foo.Name, Namespace: foo.Namespace}}
		},
		SetFields: func(configMap *corev1.ConfigMap, foo *v1alpha1.Foo) {
			metav1.SetMetaDataLabel(&configMap.ObjectMeta, label, manager)
			configMap.Data = map[string]string{"deployment": deploymentOf(foo)}
		},
	}
}

// deploymentAnnotation names the Deployment of a Foo. These tests know nothing of a Foo's spec,
// which a fork changes.
const deploymentAnnotation = "deployment"

func deploymentOf(foo *v1alpha1.Foo) string { return foo.Annotations[deploymentAnnotation] }

func (h *harness) deployments(
	factory informers.SharedInformerFactory,
) Kind[*v1alpha1.Foo, *appsv1.Deployment] {
	return Kind[*v1alpha1.Foo, *appsv1.Deployment]{
		Name:     "Deployment",
		Informer: factory.Apps().V1().Deployments().TypedInformer(),
		Client: func(namespace string) Client[*appsv1.Deployment] {
			return h.Kube.AppsV1().Deployments(namespace)
		},
		NameOf: deploymentOf,
		New: func(foo *v1alpha1.Foo) *appsv1.Deployment {
			return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
				Name: deploymentOf(foo), Namespace: foo.Namespace,
			}}
		},
		SetFields: func(deployment *appsv1.Deployment, foo *v1alpha1.Foo) {
			metav1.SetMetaDataLabel(&deployment.ObjectMeta, label, manager)
			deployment.Spec.Replicas = new(int32(1))
		},
		Ready: func(deployment *appsv1.Deployment) metav1.Condition {
			if deployment.Status.AvailableReplicas < *deployment.Spec.Replicas {
				return *NotReady("Progressing", "too few replicas")
			}
			return metav1.Condition{Type: typeReady, Status: metav1.ConditionTrue, Reason: "Available"}
		},
	}
}

func (h *harness) enqueue(object any) {
	key, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		h.t.Error(err)
	}
	h.queue.Add(key)
}

func (h *harness) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := h.queue.Get()
	if shutdown {
		return false
	}
	defer h.queue.Done(key)
	if err := h.sync(ctx, key); err != nil {
		h.failed.Add(1)
		h.queue.AddRateLimited(key)
		return true
	}
	h.queue.Forget(key)
	return true
}

// sync is the sync of the package's doc comment. In place of a status, it writes to h.reported.
func (h *harness) sync(ctx context.Context, key cache.ObjectName) error {
	if !h.children.Seen(key) {
		h.queue.AddAfter(key, time.Second)
		return nil
	}
	item, exists, err := h.foos.GetByKey(key.String())
	if err != nil || !exists {
		h.children.Forget(key)
		return err
	}
	foo := item.(*v1alpha1.Foo)
	ready, err := h.children.Sync(ctx, foo)
	if err != nil || ready == nil {
		return err
	}
	h.reported[foo.Name] = ready.Reason
	h.reports++
	if ready.Status != metav1.ConditionTrue {
		return nil
	}
	return h.children.DeleteOthers(ctx, foo)
}

func (h *harness) settle() {
	time.Sleep(time.Millisecond) // virtual: nobody does two things in the same instant
	synctest.Wait()
}

func (h *harness) create(name, deployment string) *v1alpha1.Foo {
	h.t.Helper()
	foo := must.Get(h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Create(h.t.Context(), &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: namespace, UID: types.UID("uid-of-" + name),
			Annotations: map[string]string{deploymentAnnotation: deployment},
		},
	}, metav1.CreateOptions{}))(h.t)
	h.settle()
	return foo
}

func (h *harness) rename(foo *v1alpha1.Foo, deployment string) {
	h.t.Helper()
	foo = foo.DeepCopy()
	foo.Annotations[deploymentAnnotation] = deployment
	foo.Generation++ // in place of a field of the spec
	must.Get(h.Foo.SamplecontrollerV1alpha1().Foos(namespace).Update(h.t.Context(), foo,
		metav1.UpdateOptions{}))(h.t)
	h.settle()
}

func (h *harness) deployment(name string) *appsv1.Deployment {
	h.t.Helper()
	deployment, err := h.Kube.AppsV1().Deployments(namespace).Get(h.t.Context(), name,
		metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must.Do(h.t, err)
	return deployment
}

// change changes a Deployment as somebody else.
func (h *harness) change(name string, change func(*appsv1.Deployment)) {
	h.t.Helper()
	deployment := h.deployment(name)
	change(deployment)
	must.Get(h.Kube.AppsV1().Deployments(namespace).Update(h.t.Context(), deployment,
		metav1.UpdateOptions{}))(h.t)
	h.settle()
}

func (h *harness) rollOut(name string) {
	h.t.Helper()
	h.change(name, func(d *appsv1.Deployment) { d.Status.AvailableReplicas = *d.Spec.Replicas })
}

// foreign creates a Deployment as somebody else. The informer shows it if it has the label.
func (h *harness) foreign(name string, labels map[string]string) {
	h.t.Helper()
	must.Get(h.Kube.AppsV1().Deployments(namespace).Create(h.t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels},
	}, metav1.CreateOptions{}))(h.t)
	h.settle()
}

func (h *harness) delete(name string) {
	h.t.Helper()
	must.Do(h.t, h.Kube.AppsV1().Deployments(namespace).Delete(
		h.t.Context(), name, metav1.DeleteOptions{}))
	h.settle()
}

func (h *harness) count(verb, resource string) int {
	return fakes.CountWrites(h.Kube.Actions(), verb, resource)
}

func (h *harness) events(reason string) []string {
	h.t.Helper()
	list := must.Get(h.Kube.EventsV1().Events(namespace).List(
		h.t.Context(), metav1.ListOptions{}))(h.t)
	var notes []string
	for _, event := range list.Items {
		if event.Reason == reason {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// logged reports whether a key was queued for that reason.
func (h *harness) logged(because string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.log, "\n"), because)
}
