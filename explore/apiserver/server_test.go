package apiserver

import (
	"fmt"
	"reflect"
	"regexp"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

var deployments = appsv1.SchemeGroupVersion.WithResource("deployments")

func start() *Server { return New(must(ReadCRDs("../../artifacts/examples/crd.yaml"))...) }

func deployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}}}
}

// The tests of docs/apiserver compare with a real API server what is sent in JSON.
func TestProtocolBuffers(t *testing.T) {
	config := start().Config(nil)
	config.ContentType = runtime.ContentTypeProtobuf
	client := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("default")
	created, err := client.Create(t.Context(), deployment("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *created.Spec.Replicas != 1 || created.Generation != 1 || created.UID == "" {
		t.Errorf("created: got %v", created)
	}
	got, err := client.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || !reflect.DeepEqual(got, created) {
		t.Errorf("got %v, %v, want %v", got, err, created)
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
