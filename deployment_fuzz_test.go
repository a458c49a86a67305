package main

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
)

// FuzzSetOwnedFields passes setOwnedFields any Foo, and a Deployment that others have changed. It
// must not panic, a second call must change nothing, and the fields of others must stay.
func FuzzSetOwnedFields(f *testing.F) {
	f.Add("web", int32(1), true, "9515be63-9f39-4707-8389-0be65389c9cd", "sidecar", "team", "a")
	f.Add("", int32(-1), false, "", "web", "app.kubernetes.io/managed-by", "Helm")
	f.Add(strings.Repeat("a", 253), int32(0), true, "x", "", "", "")
	f.Fuzz(func(t *testing.T, name string, replicas int32, counted bool,
		uid, other, key, value string) {
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
			t.Errorf("a second call changed the Deployment:\ngot  %v\nwant %v", deployment, once)
		}
		if deployment.Annotations[key] != value {
			t.Errorf("annotation of others: got %q, want %q", deployment.Annotations[key], value)
		}
		if first := template.Spec.Containers[0]; other != "web" && first.Image != "other:1" {
			t.Errorf(`image of the container of others: got %q, want "other:1"`, first.Image)
		}
		if readyCondition(deployment).Reason == "" {
			t.Error("the Ready condition has no reason")
		}
	})
}
