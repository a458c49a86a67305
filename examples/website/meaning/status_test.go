package meaning

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
)

func newWebsite(name string) *v1alpha1.Website {
	return &v1alpha1.Website{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)},
	}
}

func TestReadyCondition(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*appsv1.Deployment)
		want    string
		message string
	}{
		"rolled out": {
			change:  func(*appsv1.Deployment) {},
			want:    "True Available",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"scaled to zero": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(0))
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			want:    "True Available",
			message: `Deployment "web" has 0 of 0 replicas available`,
		},
		"the status is of an older spec": {
			change:  func(d *appsv1.Deployment) { d.Generation = 3 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas have the new content": {
			change:  func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 2 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"old replicas still run": {
			change:  func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas are available": {
			change:  func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
			want:    "False Progressing",
			message: `Deployment "web" has 1 of 3 replicas available`,
		},
		"Pods cannot be created": {
			change: func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas = 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
					Message: "exceeded quota",
				}}
			},
			want:    "False RolloutFailed",
			message: `Deployment "web" has 0 of 3 replicas available: exceeded quota`,
		},
		"no progress within the deadline": {
			change: func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas = 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
					Message: "timed out",
				}}
			},
			want:    "False RolloutFailed",
			message: `Deployment "web" has 0 of 3 replicas available: timed out`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3))},
				Status: appsv1.DeploymentStatus{
					ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
				},
			}
			test.change(deployment)
			ready := ReadyCondition(deployment)
			if got := string(ready.Status) + " " + ready.Reason; got != test.want {
				t.Errorf("condition: got %q, want %q", got, test.want)
			}
			if ready.Message != test.message {
				t.Errorf("message: got %q, want %q", ready.Message, test.message)
			}
		})
	}
}

func TestURLIsThatOfTheService(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}}
	if got := urlOf(nil); got != "" {
		t.Errorf("without Service: got %q, want none", got)
	}
	if got := urlOf(service); got != "" {
		t.Errorf("without ports: got %q, want none", got)
	}
	service.Spec.Ports = []corev1.ServicePort{{Port: 8000}}
	if got, want := urlOf(service), "http://web.default.svc:8000"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSelectorsOfTwoWebsitesDiffer(t *testing.T) {
	first, second := podLabels(newWebsite("first")), podLabels(newWebsite("second"))
	for key, value := range first {
		if value == "" || second[key] == value {
			t.Errorf("both Websites select %s=%s", key, value)
		}
	}
}

func TestTransitionTimeChangesWithTheStatusOnly(t *testing.T) {
	website := newWebsite("web")
	long := metav1.Unix(1000, 0)
	website.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: "False", Reason: "Progressing", LastTransitionTime: long,
	}}
	still := DesiredStatus(website, nil, nil,
		metav1.Condition{Type: "Ready", Status: "False", Reason: "Other"})
	if got := still.Conditions[0]; !got.LastTransitionTime.Equal(&long) || got.Reason != "Other" {
		t.Errorf("still False: got the reason %q and the time %v, want the new reason and %v",
			got.Reason, got.LastTransitionTime, long)
	}
	now := DesiredStatus(website, nil, nil,
		metav1.Condition{Type: "Ready", Status: "True", Reason: "Available"})
	if got := now.Conditions[0]; got.LastTransitionTime.Equal(&long) {
		t.Errorf("now True: got %+v, want a new time", got)
	}
}
