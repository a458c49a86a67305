package main

import (
	"context"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// templates are the objects that this repository's controller wrote for one Foo, with the API
// server's defaults. The references write the same for other Foos.
type templates struct {
	foo        *v1alpha1.Foo
	deployment *appsv1.Deployment
	event      *eventsv1.Event
}

// writer writes as the controller does, with the same encodings, but without caches and a queue.
type writer struct {
	templates
	kube kubernetes.Interface
	foos clientset.Interface
}

// write writes one thing for foo.
type write func(ctx context.Context, w *writer, foo *v1alpha1.Foo) error

func newWriter(config *rest.Config, t templates) (*writer, error) {
	foos, err := clientset.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	kube, err := kubernetes.NewForConfig(config)
	return &writer{templates: t, kube: kube, foos: foos}, err
}

// startReference starts as many workers as the controllers have. They do the writes of c for each
// Foo that comes. After the last Foo, stop waits for them.
func startReference(
	ctx context.Context, w *writer, c contender, foos <-chan *v1alpha1.Foo, fail func(error),
) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	if c.watched {
		if err := w.watch(ctx); err != nil {
			cancel()
			return nil, err
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for foo := range foos {
				for _, write := range c.writes {
					if err := write(ctx, w, foo); err != nil {
						fail(err)
					}
				}
			}
		})
	}
	return func() {
		wg.Wait()
		cancel()
	}, nil
}

// watch reads the events of all Deployments until ctx is done, and does nothing with them.
func (w *writer) watch(ctx context.Context) error {
	watch, err := w.kube.AppsV1().Deployments(namespace).Watch(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(w.deployment.Labels).String(),
	})
	if err != nil {
		return err
	}
	go func() {
		defer watch.Stop()
		for range watch.ResultChan() {
		}
	}()
	return nil
}

func createDeployment(ctx context.Context, w *writer, foo *v1alpha1.Foo) error {
	d := &appsv1.Deployment{Spec: *w.deployment.Spec.DeepCopy()}
	d.Name, d.Namespace = foo.Name, foo.Namespace
	d.Labels = w.deployment.Labels
	owner := w.deployment.OwnerReferences[0]
	owner.Name, owner.UID = foo.Name, foo.UID
	d.OwnerReferences = []metav1.OwnerReference{owner}
	for _, set := range []labels.Set{d.Spec.Selector.MatchLabels, d.Spec.Template.Labels} {
		for key, value := range set {
			if value == string(w.foo.UID) {
				set[key] = string(foo.UID)
			}
		}
	}
	_, err := w.kube.AppsV1().Deployments(foo.Namespace).Create(ctx, d, metav1.CreateOptions{})
	return err
}

func createEvent(ctx context.Context, w *writer, foo *v1alpha1.Foo) error {
	e := w.event.DeepCopy()
	e.ObjectMeta = metav1.ObjectMeta{Name: foo.Name + ".created", Namespace: foo.Namespace}
	e.Regarding.Name, e.Regarding.UID = foo.Name, foo.UID
	_, err := w.kube.EventsV1().Events(foo.Namespace).Create(ctx, e, metav1.CreateOptions{})
	return err
}

func updateStatus(ctx context.Context, w *writer, foo *v1alpha1.Foo) error {
	updated := foo.DeepCopy()
	updated.ManagedFields = nil // no controller keeps them in its cache
	updated.Status = w.foo.Status
	_, err := w.foos.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{})
	return err
}
