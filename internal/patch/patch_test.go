package patch

import (
	"encoding/json"
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// TestPatchOfAListKeepsWhatNobodyRead applies a patch as the API server does, to containers that have
// fields of a later version: another order and image, a container more, and a port less.
func TestPatchOfAListKeepsWhatNobodyRead(t *testing.T) {
	const stored = `{"spec": {"template": {"spec": {"containers": [
		{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1},
		{"name": "web", "image": "web:1", "ofTomorrow": 2, "ports": [
			{"containerPort": 22}, {"containerPort": 80, "ofTomorrow": 3}]}]}}}}`
	const want = `[
		{"name": "web", "image": "web:2", "ofTomorrow": 2, "ports": [
			{"containerPort": 80, "ofTomorrow": 3}]},
		{"name": "new", "resources": {}},
		{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1}]`
	observed := &appsv1.Deployment{}
	parse(t, stored, observed)
	desired := observed.DeepCopy()
	proxy, web := desired.Spec.Template.Spec.Containers[0], desired.Spec.Template.Spec.Containers[1]
	web.Image, web.Ports = "web:2", web.Ports[1:]
	desired.Spec.Template.Spec.Containers = []corev1.Container{web, {Name: "new"}, proxy}

	_, patch, err := Between(observed, desired)

	must.Do(t, err)
	patched := must.Get(strategicpatch.StrategicMergePatch([]byte(stored), patch, desired))(t)
	var got struct {
		Spec struct {
			Template struct{ Spec struct{ Containers any } }
		}
	}
	var wanted any
	parse(t, string(patched), &got)
	parse(t, want, &wanted)
	if !reflect.DeepEqual(got.Spec.Template.Spec.Containers, wanted) {
		t.Errorf("%s makes\n%v, want\n%v", patch, got.Spec.Template.Spec.Containers, wanted)
	}
}

func parse(t *testing.T, text string, into any) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(text), into))
}

func TestPatchOfACustomResourceIsAMergePatch(t *testing.T) {
	foo := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{UID: "1", ResourceVersion: "5"}}
	scaled := foo.DeepCopy()
	scaled.Spec.Replicas = new(int32(3))

	kind, patch, err := Between(foo, scaled)

	const want = `{"metadata":{"resourceVersion":"5","uid":"1"},"spec":{"replicas":3}}`
	if err != nil || kind != types.MergePatchType || string(patch) != want {
		t.Errorf("got %s %s (error: %v), want a merge patch %s", kind, patch, err, want)
	}
}

// Ports are merged by their number. A strategic merge patch that deletes port 80 of UDP deletes that
// of TCP, too.
func TestPatchKeepsTheOtherElementOfTheSameKey(t *testing.T) {
	tcp := corev1.ServicePort{Port: 80, Protocol: "TCP"}
	udp := corev1.ServicePort{Port: 80, Protocol: "UDP"}
	observed := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{tcp, udp}}}
	desired := observed.DeepCopy()
	desired.Spec.Ports = []corev1.ServicePort{tcp}

	kind, patch, err := Between(observed, desired)

	const want = `{"spec":{"ports":[{"port":80,"protocol":"TCP","targetPort":0}]}}`
	if err != nil || kind != types.MergePatchType || string(patch) != want {
		t.Errorf("got %s %s (error: %v), want a merge patch %s", kind, patch, err, want)
	}
}
