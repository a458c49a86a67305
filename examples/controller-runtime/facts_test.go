package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// These examples show what docs/frameworks.md says about controller-runtime's concepts. They test no
// code of this program.

// A predicate says whether an event is enqueued. And, Or and Not combine predicates.
func Example_predicates() {
	wanted := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	for _, change := range []struct {
		what string
		do   func(*v1alpha1.Foo)
	}{
		{"status", func(foo *v1alpha1.Foo) { foo.Status.Replicas = 1 }},
		{"spec", func(foo *v1alpha1.Foo) { foo.Generation++ }},
		{"label", func(foo *v1alpha1.Foo) { foo.Labels = map[string]string{"tier": "web"} }},
		{"nothing: a resync", func(*v1alpha1.Foo) {}},
	} {
		before := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
		after := before.DeepCopy()
		change.do(after)
		update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
		fmt.Println(change.what, wanted.Update(update), predicate.Not(wanted).Update(update))
	}
	// Output:
	// status false true
	// spec true false
	// label true false
	// nothing: a resync false true
}

// The events of all Pods of a ReplicaSet become one request, which names the ReplicaSet.
func Example_eventMultiplexing() {
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())
	defer queue.ShutDown()
	kinds := meta.NewDefaultRESTMapper(nil)
	kinds.Add(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), meta.RESTScopeNamespace)
	enqueue := handler.EnqueueRequestForOwner(scheme.Scheme, kinds, &appsv1.ReplicaSet{})
	for _, pod := range []string{"web-1", "web-2", "web-3"} {
		enqueue.Create(context.Background(), event.CreateEvent{Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: pod, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web"}},
		}}}, queue)
	}
	request, _ := queue.Get()
	fmt.Println(request, "and", queue.Len(), "more")
	// Output:
	// default/web and 0 more
}
