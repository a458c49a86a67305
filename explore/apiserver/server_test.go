package apiserver

import (
	"fmt"
	"regexp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

// start returns a server with Foos.
func start() *Server { return New(must(ReadCRDs("../../artifacts/examples/crd.yaml"))...) }

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}}}
}

func TestTypedClient(t *testing.T) {
	for _, media := range []string{"", runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		config := start().Config(nil)
		config.ContentType = media
		client := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("default")
		created, err := client.Create(t.Context(), deployment("a"), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if *created.Spec.Replicas != 1 || created.Generation != 1 || created.UID == "" {
			t.Errorf("%q: created: got %v", media, created)
		}
		created.Spec.Replicas = new(int32(3))
		updated, err := client.Update(t.Context(), created, metav1.UpdateOptions{})
		if err != nil || *updated.Spec.Replicas != 3 || updated.Generation != 2 {
			t.Errorf("%q: updated: got %v, %v", media, updated, err)
		}
		if _, err := client.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			t.Errorf("%q: an old version: got %v, want a conflict", media, err)
		}
		again, err := client.Update(t.Context(), updated, metav1.UpdateOptions{})
		if err != nil || again.ResourceVersion != updated.ResourceVersion {
			t.Errorf("%q: no change: got %v, %v", media, again, err)
		}
		list, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "app=a"})
		if err != nil || len(list.Items) != 1 || list.ResourceVersion != updated.ResourceVersion {
			t.Errorf("%q: list: got %v, %v", media, list, err)
		}
		events, err := client.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		if err != nil {
			t.Fatal(err)
		}
		event := <-events.ResultChan()
		if d, ok := event.Object.(*appsv1.Deployment); !ok || *d.Spec.Replicas != 3 {
			t.Errorf("%q: event: got %v", media, event)
		}
		events.Stop()
		if err := client.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Errorf("%q: delete: got %v", media, err)
		}
		if _, err := client.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%q: got %v, want NotFound", media, err)
		}
	}
}

func TestUnknownFieldSurvivesAPatch(t *testing.T) {
	s := start()
	client := dynamic.NewForConfigOrDie(s.Config(nil)).Resource(deployments).Namespace("default")
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(deployment("a"))
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	_ = unstructured.SetNestedField(content, "yes", "spec", "fieldOfTomorrow")
	if _, err := client.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for patchType, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"spec": {"replicas": 2}}`,
		types.StrategicMergePatchType: `{"spec": {"replicas": 3}}`,
		types.JSONPatchType:           `[{"op": "add", "path": "/spec/replicas", "value": 4}]`,
	} {
		patched, err := client.Patch(t.Context(), "a", patchType, []byte(patch),
			metav1.PatchOptions{FieldManager: "test"})
		if err != nil {
			t.Fatal(patchType, err)
		}
		value, _, _ := unstructured.NestedString(patched.Object, "spec", "fieldOfTomorrow")
		if value != "yes" {
			t.Errorf("%s: the field is gone", patchType)
		}
	}
}

// The tests of docs/apiserver and of explore/board/kinds compare more with a real API server.
func TestAnswers(t *testing.T) {
	client := kubernetes.NewForConfigOrDie(start().Config(nil)).RESTClient()
	const inDefault, partial = "/namespaces/default", "application/json;as=PartialObjectMetadata"
	for _, test := range []struct{ path, accept, method, spec, want string }{
		{"/api/v1/namespaces?fieldSelector=metadata.name%3Dkube-system", partial, "GET", "",
			`200 .*"kind":"PartialObjectMetadata".*"kube-system".*"PartialObjectMetadataList"`},
		{"/api/v1/namespaces/default", partial, "GET", "", `200 .*"kind":"PartialObjectMetadata"`},
		{"/api/v1" + inDefault + "/secrets", "", "POST", `"stringData": {"k": "v"}`, `201 {"apiVersion":"v1","data":{"k":"dg=="},"kind":"Secret","metadata":{[^}]*},"type"`},
		{"/api/v1" + inDefault + "/persistentvolumeclaims", "", "POST", `"spec": {}`, `201 .*pvc-protection.*"Filesystem"`},
		{"/api/v1" + inDefault + "/persistentvolumeclaims/a", "", "DELETE", "", "200 "},
		{"/api/v1" + inDefault + "/persistentvolumeclaims/a", "", "GET", "", "404 "},
		{"/apis/apps/v1" + inDefault + "/statefulsets", "", "POST", `"spec": {"updateStrategy": {"type": "OnDelete"}}`, `201 .*"updateStrategy":{"type":"OnDelete"}`},
		{"/apis/batch/v1" + inDefault + "/cronjobs", "", "POST", `"spec": {}`, `201 .*"jobTemplate":{"metadata":{},"spec":{"template"`},
	} {
		request := client.Verb(test.method).RequestURI(test.path).SetHeader("Accept", test.accept)
		if test.spec != "" {
			request.Body([]byte(`{"metadata": {"name": "a"}, ` + test.spec + "}"))
		}
		var code int
		text, _ := request.Do(t.Context()).StatusCode(&code).Raw()
		got := fmt.Sprintf("%d %s", code, text)
		if !regexp.MustCompile("^" + test.want).MatchString(got) {
			t.Errorf("%s %s, %s: got %s, want %s", test.method, test.path, test.accept, got, test.want)
		}
	}
}
