package meaning

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

func TestReadyCondition(t *testing.T) {
	none := func(condition appsv1.DeploymentCondition) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas, d.Status.Conditions = 0, []appsv1.DeploymentCondition{condition}
		}
	}
	for _, test := range []struct {
		name   string
		change func(*appsv1.Deployment)
		want   string
	}{
		{"rolled out", func(*appsv1.Deployment) {}, "True Available: 3 of 3 replicas available"},
		{"scaled to zero", func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 2}
		}, "True Available: 0 of 0 replicas available"},
		{"the status is of an older spec", func(d *appsv1.Deployment) { d.Generation = 3 },
			"False Progressing: 3 of 3 replicas available"},
		{"not all replicas have the new content", func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 2 },
			"False Progressing: 3 of 3 replicas available"},
		{"old replicas still run", func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			"False Progressing: 3 of 3 replicas available"},
		{"not all replicas are available", func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
			"False Progressing: 1 of 3 replicas available"},
		{"Pods cannot be created", none(appsv1.DeploymentCondition{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "exceeded quota",
		}), "False RolloutFailed: 0 of 3 replicas available: exceeded quota"},
		{"no progress within the deadline", none(appsv1.DeploymentCondition{
			Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Message: "timed out",
		}), "False RolloutFailed: 0 of 3 replicas available: timed out"},
	} {
		deployment := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3))},
			Status: appsv1.DeploymentStatus{
				ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
			},
		}
		test.change(deployment)
		ready := ReadyCondition(deployment)
		got := fmt.Sprintf("%s %s: %s", ready.Status, ready.Reason, ready.Message)
		if got = strings.Replace(got, `Deployment "web" has `, "", 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestServiceWithoutPortsHasNoURL(t *testing.T) {
	if got := urlOf(&corev1.Service{}); got != "" {
		t.Errorf("got %q, want none", got)
	}
}

// The cache may hold a Website that was stored before the CustomResourceDefinition had defaults.
func TestWebsiteThatNamesNoDefaultsIsServed(t *testing.T) {
	website := &v1alpha1.Website{Spec: v1alpha1.WebsiteSpec{Content: "Hello"}}
	deployment, service := NewDeployment(website), NewService(website)
	SetDeploymentFields(deployment, website)
	SetServiceFields(service, website)
	if got := *deployment.Spec.Replicas; got != 1 {
		t.Errorf("replicas: got %d, want 1", got)
	}
	want := "nginxinc/nginx-unprivileged:1.27-alpine"
	if got := deployment.Spec.Template.Spec.Containers[0].Image; got != want {
		t.Errorf("image: got %q, want %q", got, want)
	}
	if got := service.Spec.Ports[0].Port; got != 80 {
		t.Errorf("port: got %d, want 80", got)
	}
}
