package explore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"example.com/sample-controller/explore"
)

// A Gadget has a Deployment of its name.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Gadget, plural: gadgets, singular: gadget, listKind: GadgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}`

var gadgetsResource = schema.GroupVersionResource{
	Group: "example.com", Version: "v1", Resource: "gadgets"}

// small is a controller in as few lines as that takes. Its repair gets the Deployment that it may
// change, and returns what to write into the Gadget's status, unless that is nil.
type small struct {
	gadgets     dynamic.NamespaceableResourceInterface
	deployments kubernetes.Interface
	repair      func(*appsv1.Deployment) (status map[string]any)
}

func (s *small) run(ctx context.Context, config *rest.Config) error {
	s = &small{repair: s.repair} // another process may still be ending
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	s.gadgets, s.deployments = client.Resource(gadgetsResource), kubernetes.NewForConfigOrDie(config)
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	add := func(object any) {
		if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
			queue.Add(key)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: add, UpdateFunc: func(_, object any) { add(object) }, DeleteFunc: add}
	custom := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	kube := informers.NewSharedInformerFactory(s.deployments, 0)
	for _, informer := range []cache.SharedIndexInformer{
		custom.ForResource(gadgetsResource).Informer(), kube.Apps().V1().Deployments().Informer(),
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}
	custom.Start(ctx.Done())
	kube.Start(ctx.Done())
	defer custom.Shutdown()
	defer kube.Shutdown()
	context.AfterFunc(ctx, queue.ShutDown)
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return ctx.Err()
		}
		if s.sync(ctx, key) != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

func (s *small) sync(ctx context.Context, key cache.ObjectName) error {
	gadget, err := s.gadgets.Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return client(err)
	}
	deployments := s.deployments.AppsV1().Deployments(key.Namespace)
	observed, err := deployments.Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = deployments.Create(ctx, deploymentOf(gadget), metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	desired := observed.DeepCopy()
	status := s.repair(desired)
	if !equality.Semantic.DeepEqual(observed, desired) {
		if _, err := deployments.Update(ctx, desired, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	if status == nil || equality.Semantic.DeepEqual(gadget.Object["status"], status) {
		return nil
	}
	gadget.Object["status"] = status
	_, err = s.gadgets.Namespace(key.Namespace).UpdateStatus(ctx, gadget, metav1.UpdateOptions{})
	return client(err)
}

// client returns no error if the object is gone.
func client(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
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
	crd := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(crd, []byte(gadgets), 0o600); err != nil {
		t.Fatal(err)
	}
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
			"each sync changes spec.template.spec.containers[0].image of the Deployment a of Gadget a"},
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
			"each sync changes spec.template.spec.containers[0].image"},
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
				Run: (&small{repair: test.repair}).run, CRDs: []string{crd},
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
