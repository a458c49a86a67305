package explore_test

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/explore"
)

// keep returns a program that gives each Gadget a Deployment. Its repair gets what it may change.
func keep(repair func(*appsv1.Deployment)) run {
	return program(func(p *process, gadget object) error {
		deployments := p.kube.AppsV1().Deployments(gadget.GetNamespace())
		observed, err := deployments.Get(p.ctx, gadget.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = deployments.Create(p.ctx, deploymentOf(gadget), metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		desired := observed.DeepCopy()
		if repair(desired); !equality.Semantic.DeepEqual(observed, desired) {
			_, err = deployments.Update(p.ctx, desired, metav1.UpdateOptions{})
		}
		return err
	})
}

func deploymentOf(gadget object) *appsv1.Deployment {
	labels := map[string]string{"gadget": gadget.GetName()}
	d := &appsv1.Deployment{ObjectMeta: childOf(gadget).ObjectMeta}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	return d
}

// resolve is what admission does to images: a tag becomes a digest, another one in each change.
func resolve() explore.Step {
	return explore.Mutate("deployments.apps", "tags become digests", func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		if image := containers[0].(map[string]any); image["image"] == "web" {
			image["image"] = "web@first"
			if u.GetResourceVersion() != "" {
				image["image"] = fmt.Sprint("web@", u.GetGeneration())
			}
		}
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	})
}

// status sets one that make returns, for the state that the last one was about.
func status(make func(gadget object) map[string]any) syncer {
	return func(p *process, gadget object) error { return p.setStatus(gadget, make(gadget)) }
}

func clock(layout string) syncer {
	return status(func(object) map[string]any {
		return map[string]any{"last": time.Now().Format(layout)}
	})
}

// condition returns a status whose time is a new one when isNew says so.
func condition(isNew func(gadget object, value string) bool) syncer {
	return status(func(gadget object) map[string]any {
		value := valueOf(gadget)
		if !isNew(gadget, value) {
			return nil
		}
		return map[string]any{"ran": value, "conditions": []any{map[string]any{"type": "Ready",
			"lastTransitionTime": time.Now().Format(time.RFC3339Nano)}}}
	})
}

// randomly returns a text that a map makes, in no order.
func randomly(object) map[string]any {
	text, values := "", map[int]bool{}
	for i := range 30 {
		values[i] = true
	}
	for i := range values {
		text += fmt.Sprint(i)
	}
	return map[string]any{"labels": text}
}

func sorted(object) map[string]any {
	return map[string]any{"labels": fmt.Sprint(map[string]int{"a": 1, "b": 2, "c": 3})}
}

func counted(gadget object) map[string]any {
	n, _, _ := unstructured.NestedInt64(gadget.Object, "status", "syncs")
	return map[string]any{"syncs": n + 1}
}

func observed(gadget object) map[string]any {
	return map[string]any{"observedGeneration": gadget.GetGeneration()}
}
