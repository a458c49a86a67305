package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/explore"
)

// keep returns a program that gives each Gadget a Deployment. Its repair gets the Deployment that it
// may change, and returns what to write into the Gadget's status, unless that is nil.
func keep(repair func(*appsv1.Deployment) map[string]any) func(context.Context, *rest.Config) error {
	return program(func(p *process, gadget *unstructured.Unstructured) error {
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
		status := repair(desired)
		if !equality.Semantic.DeepEqual(observed, desired) {
			if _, err := deployments.Update(p.ctx, desired, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		return p.setStatus(gadget, status)
	})
}

func deploymentOf(gadget *unstructured.Unstructured) *appsv1.Deployment {
	labels := map[string]string{"gadget": gadget.GetName()}
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: gadget.GetName(), OwnerReferences: []metav1.
		OwnerReference{*metav1.NewControllerRef(gadget, gadget.GroupVersionKind())}}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web"}}
	return d
}

// setImage is what a right controller repairs.
func setImage(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web" }

// annotate writes something that differs from sync to sync, if value does.
func annotate(value func() string) func(*appsv1.Deployment) map[string]any {
	return func(d *appsv1.Deployment) map[string]any {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "tags", value())
		return nil
	}
}

// resolve is what admission does to images: a tag becomes a digest, of which no two are the same.
func resolve() explore.Step {
	digests := 0
	return explore.Mutate("deployments.apps", "tags become digests", func(u *unstructured.Unstructured) {
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		if image := containers[0].(map[string]any); image["image"] == "web" {
			digests++
			image["image"] = fmt.Sprintf("web@%d", digests)
		}
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
	})
}

// TestLoops shows all kinds of loops that users of operators report: with the bug, and without it.
func TestLoops(t *testing.T) {
	crd := gadgetsFile(t)
	create := explore.Create("{apiVersion: example.com/v1, kind: Gadget, metadata: {name: a}}")
	rest := explore.Pause
	evil := explore.Insist("deployments.apps/a",
		`spec: {template: {spec: {containers: [{name: web, image: evil}]}}}`)
	now := func(layout string) func(*appsv1.Deployment) map[string]any {
		return func(*appsv1.Deployment) map[string]any {
			return map[string]any{"last": time.Now().Format(layout)}
		}
	}
	var count atomic.Int64
	for name, test := range map[string]struct {
		before, after explore.Step
		repair        func(*appsv1.Deployment) map[string]any
		finds         string // "" is nothing
	}{
		"admission changes what the controller sets": {resolve(), rest,
			func(d *appsv1.Deployment) map[string]any { setImage(d); return nil },
			"each sync changes spec.template.spec.containers[web].image of the Deployment a of Gadget a"},
		"admission's image is accepted": {resolve(), rest, func(d *appsv1.Deployment) map[string]any {
			if !strings.HasPrefix(d.Spec.Template.Spec.Containers[0].Image, "web@") {
				setImage(d)
			}
			return nil
		}, ""},
		"what the server fills in is taken for a difference": {rest, rest,
			func(d *appsv1.Deployment) map[string]any {
				want := deploymentOf(&unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"name": "a"}}}).Spec
				if !equality.Semantic.DeepEqual(d.Spec, want) { // and so the Pods are started again
					metav1.SetMetaDataAnnotation(
						&d.Spec.Template.ObjectMeta, "restart", fmt.Sprint(count.Add(1)))
				}
				return nil
			}, "each sync changes spec.template.metadata.annotations.restart"},
		"only what the controller sets is compared": {rest, rest,
			func(d *appsv1.Deployment) map[string]any { setImage(d); return nil }, ""},
		"another writer": {rest, evil, func(d *appsv1.Deployment) map[string]any { setImage(d); return nil },
			"each sync changes spec.template.spec.containers[web].image"},
		"another writer is left alone": {rest, evil,
			func(*appsv1.Deployment) map[string]any { return nil }, ""},
		"a list in no order": {rest, rest, annotate(func() string { return fmt.Sprint(rand.Perm(20)) }),
			"each sync changes metadata.annotations.tags"},
		"a list that is sorted": {rest, rest, annotate(func() string {
			list := rand.Perm(20)
			slices.Sort(list)
			return fmt.Sprint(list)
		}), ""},
		"a counter": {rest, rest, annotate(func() string { return fmt.Sprint(count.Add(1)) }),
			"each sync changes metadata.annotations.tags"},
		"a status with nanoseconds": {rest, rest, now(time.RFC3339Nano),
			"each sync changes status.last of the Gadget a"},
		"a status with seconds": {rest, rest, now(time.RFC3339), "the Gadget a goes on changing (status.last)"},
		"a status with a count": {rest, rest, func(d *appsv1.Deployment) map[string]any {
			return map[string]any{"replicas": int64(*d.Spec.Replicas)}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			findings := explore.Find(t, explore.Controller{
				Run: keep(test.repair), CRDs: []string{crd},
				Scenarios: []explore.Scenario{{
					Name: "loop", Steps: []explore.Step{test.before, create, test.after}, AnyEnd: true}},
				Settle: 20 * time.Minute, // client-go waits up to 17 min before it tries again
			}, "")
			found := slices.IndexFunc(findings, func(f explore.Finding) bool {
				return test.finds != "" && strings.Contains(f.Problem, test.finds)
			})
			if test.finds == "" && len(findings) > 0 || test.finds != "" && found < 0 {
				t.Errorf("want %q, found %v", test.finds, findings)
			}
		})
	}
}
