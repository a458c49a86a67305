package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// A predicate says whether an event is enqueued. And, Or and Not combine predicates. The program has
// none: this shows what docs/frameworks.md says.
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
