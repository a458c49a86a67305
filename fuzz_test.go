package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/internal/fakes"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

// FuzzHandleObject gives handleObject Deployments with any owner: it must not panic, and must put
// a key on the queue for a Foo, of whatever version, and for nothing else.
func FuzzHandleObject(f *testing.F) {
	f.Add("default", "web", "samplecontroller.k8s.io/v1alpha1", "Foo", "example-foo", true)
	f.Add("default", "web", "samplecontroller.k8s.io/v9", "Foo", "example-foo", true)
	f.Add("default", "web", "samplecontroller.k8s.io/v1alpha1", "Foo", "example-foo", false)
	f.Add("default", "web", "apps/v1", "Deployment", "example-foo", true)
	f.Add("default", "web", "other.example.com/v1", "Foo", "example-foo", true)
	f.Add("", "", "a/b/c", "", "", true)
	clients := fakes.New()
	kube, foo := clients.Kube, clients.Foo
	f.Fuzz(func(t *testing.T, ns, name, apiVersion, kind, owner string, isController bool) {
		controller, err := NewController(kube, foo,
			fooinformers.NewSharedInformerFactory(foo, 0).Samplecontroller().V1alpha1().Foos(),
			kubeinformers.NewSharedInformerFactory(kube, 0).Apps().V1().Deployments(),
			events.NewFakeRecorder(1))
		if err != nil {
			t.Fatal(err)
		}
		defer controller.queue.ShutDown()
		controller.handleObject(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Namespace: ns, Name: name,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: apiVersion, Kind: kind, Name: owner, Controller: &isController},
			},
		}})
		want := 0
		group, version, _ := strings.Cut(apiVersion, "/")
		if group == "samplecontroller.k8s.io" && !strings.Contains(version, "/") &&
			strings.Contains(apiVersion, "/") && kind == "Foo" && isController {
			want = 1
		}
		if got := controller.queue.Len(); got != want {
			t.Errorf("keys on the queue: got %d, want %d", got, want)
		}
	})
}

// FuzzSetOwnedFields gives setOwnedFields any Foo, and a Deployment that others have written to:
// it must not panic, must be content with its own result, and must leave the rest as it is.
func FuzzSetOwnedFields(f *testing.F) {
	f.Add("web", int32(1), true, "9515be63-9f39-4707-8389-0be65389c9cd", "sidecar", "team", "a")
	f.Add("", int32(-1), false, "", "web", "app.kubernetes.io/managed-by", "Helm")
	f.Add(strings.Repeat("a", 253), int32(0), true, "x", "", "", "")
	f.Fuzz(func(t *testing.T, name string, replicas int32, counted bool, uid, other, key, value string) {
		foo := newFoo("example-foo", name, nil)
		foo.UID = types.UID(uid)
		if counted {
			foo.Spec.Replicas = &replicas
		}
		deployment := newDeployment(foo)
		deployment.Annotations = map[string]string{key: value}
		template := &deployment.Spec.Template
		template.Spec.Containers = append([]corev1.Container{{Name: other, Image: "other:1"}},
			template.Spec.Containers...)

		setOwnedFields(deployment, foo)
		once := deployment.DeepCopy()
		setOwnedFields(deployment, foo)

		if !equality.Semantic.DeepEqual(once, deployment) {
			t.Errorf("it changes its own result:\n%v\n%v", once, deployment)
		}
		if deployment.Annotations[key] != value {
			t.Errorf("annotation of others: got %q, want %q", deployment.Annotations[key], value)
		}
		if first := template.Spec.Containers[0]; other != "web" && first.Image != "other:1" {
			t.Errorf("container of others: got image %q", first.Image)
		}
		if readyCondition(deployment).Reason == "" {
			t.Error("the Ready condition has no reason")
		}
	})
}
