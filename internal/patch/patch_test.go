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

// TestPatchOfAListKeepsWhatNobodyRead applies patches as the API server does, to containers that
// have fields of a later version.
func TestPatchOfAListKeepsWhatNobodyRead(t *testing.T) {
	const stored = `{"spec": {"template": {"spec": {"containers": [
		{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1},
		{"name": "web", "image": "web:1", "ofTomorrow": 2, "ports": [
			{"containerPort": 22}, {"containerPort": 80, "ofTomorrow": 3}]}]}}}}`
	for name, test := range map[string]struct {
		change func(*corev1.PodSpec)
		want   string
	}{
		"another image": {
			func(spec *corev1.PodSpec) { spec.Containers[1].Image = "web:2" },
			`[{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1},
			{"name": "web", "image": "web:2", "ofTomorrow": 2, "ports": [
				{"containerPort": 22}, {"containerPort": 80, "ofTomorrow": 3}]}]`,
		},
		"a port less": {
			func(spec *corev1.PodSpec) { spec.Containers[1].Ports = spec.Containers[1].Ports[1:] },
			`[{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1},
			{"name": "web", "image": "web:1", "ofTomorrow": 2, "ports": [
				{"containerPort": 80, "ofTomorrow": 3}]}]`,
		},
		"another order, and one more": {
			func(spec *corev1.PodSpec) {
				spec.Containers = []corev1.Container{spec.Containers[1], {Name: "new"}, spec.Containers[0]}
			},
			`[{"name": "web", "image": "web:1", "ofTomorrow": 2, "ports": [
				{"containerPort": 22}, {"containerPort": 80, "ofTomorrow": 3}]},
			{"name": "new", "resources": {}},
			{"name": "proxy", "image": "proxy:1", "ofTomorrow": 1}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			observed := &appsv1.Deployment{}
			parse(t, stored, observed)
			desired := observed.DeepCopy()
			test.change(&desired.Spec.Template.Spec)
			_, patch, err := Between(observed, desired)
			must.Do(t, err)
			patched := must.Get(strategicpatch.StrategicMergePatch([]byte(stored), patch, desired))(t)
			var got struct {
				Spec struct {
					Template struct{ Spec struct{ Containers any } }
				}
			}
			var want any
			parse(t, string(patched), &got)
			parse(t, test.want, &want)
			if !reflect.DeepEqual(got.Spec.Template.Spec.Containers, want) {
				t.Errorf("%s makes\n%v, want\n%v", patch, got.Spec.Template.Spec.Containers, want)
			}
		})
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
