package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/internal/testing/must"
)

// TestDeploymentOfAFoo has all that the controller decides on. If you change it, change the policies
// that bound the controller, too, if you have any.
func TestDeploymentOfAFoo(t *testing.T) {
	foo := newFoo("example-foo", "web", new(int32(2)))
	foo.UID = "7d3f"
	got := must.Get(yaml.Marshal(newDeployment(foo)))(t)
	const want = `
metadata:
  labels:
    app.kubernetes.io/managed-by: sample-controller
  name: web
  namespace: default
  ownerReferences:
  - apiVersion: samplecontroller.k8s.io/v1alpha1
    blockOwnerDeletion: true
    controller: true
    kind: Foo
    name: example-foo
    uid: 7d3f
spec:
  replicas: 2
  selector:
    matchLabels:
      samplecontroller.k8s.io/foo-uid: 7d3f
  strategy: {}
  template:
    metadata:
      labels:
        samplecontroller.k8s.io/foo-uid: 7d3f
    spec:
      containers:
      - image: nginxinc/nginx-unprivileged:1.27-alpine
        name: web
        ports:
        - containerPort: 8080
          name: http
          protocol: TCP
        resources:
          requests:
            cpu: 10m
            memory: 16Mi
        securityContext:
          allowPrivilegeEscalation: false
          capabilities:
            drop:
            - ALL
          runAsNonRoot: true
          seccompProfile:
            type: RuntimeDefault
status: {}
`
	if string(got) != want[1:] {
		t.Error("- is missing, + is too much:\n" +
			diff.Diff(strings.Split(want[1:], "\n"), strings.Split(string(got), "\n")))
	}
}

func TestReadyCondition(t *testing.T) {
	rolledOut := appsv1.DeploymentStatus{
		ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3,
	}
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
		"the spec has no replicas": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Replicas = nil
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			want:    "False Progressing",
			message: `Deployment "web" has 0 of 1 replicas available`,
		},
		"the status is of an older spec": {
			change:  func(d *appsv1.Deployment) { d.Generation = 3 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"scaled down, and more replicas still run": {
			change:  func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 1 replicas available`,
		},
		"old replicas still run": {
			change:  func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas are updated": {
			change:  func(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Status.Replicas = 2, 2 },
			want:    "False Progressing",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas are available": {
			change:  func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
			want:    "False Progressing",
			message: `Deployment "web" has 1 of 3 replicas available`,
		},
		"paused during the rollout": {
			change: func(d *appsv1.Deployment) {
				d.Spec.Paused = true
				d.Status.UpdatedReplicas = 1
			},
			want:    "False DeploymentPaused",
			message: `Deployment "web" has 3 of 3 replicas available; its rollout is paused`,
		},
		"paused after the rollout": {
			change:  func(d *appsv1.Deployment) { d.Spec.Paused = true },
			want:    "True Available",
			message: `Deployment "web" has 3 of 3 replicas available`,
		},
		"being deleted": {
			change:  func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} },
			want:    "False DeploymentTerminating",
			message: `Deployment "web" is being deleted`,
		},
		"Pods cannot be created": {
			change: func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas = 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
					Reason: "FailedCreate", Message: "exceeded quota",
				}}
			},
			want:    "False FailedCreate",
			message: `Deployment "web" has 0 of 3 replicas available: exceeded quota`,
		},
		"no progress within the deadline": {
			change: func(d *appsv1.Deployment) {
				d.Status.AvailableReplicas = 0
				d.Status.Conditions = []appsv1.DeploymentCondition{{
					Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse,
					Reason: "ProgressDeadlineExceeded", Message: "timed out",
				}}
			},
			want:    "False ProgressDeadlineExceeded",
			message: `Deployment "web" has 0 of 3 replicas available: timed out`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := &appsv1.Deployment{
				ObjectMeta: metav1.ObjectMeta{Name: "web", Generation: 2},
				Spec:       appsv1.DeploymentSpec{Replicas: new(int32(3))},
				Status:     rolledOut,
			}
			test.change(deployment)
			ready := readyCondition(deployment)
			if got := string(ready.Status) + " " + ready.Reason; got != test.want {
				t.Errorf("condition: got %q, want %q", got, test.want)
			}
			if ready.Message != test.message {
				t.Errorf("message: got %q, want %q", ready.Message, test.message)
			}
		})
	}
}

func TestSelectorIsValidForTheLongestFooName(t *testing.T) {
	foo := newFoo(strings.Repeat("a", 253), "web", nil)
	foo.UID = "9515be63-9f39-4707-8389-0be65389c9cd"
	if problems := problemsOf(newDeployment(foo)); len(problems) > 0 {
		t.Errorf("the API server would refuse the Deployment: %q", problems)
	}
}

// problemsOf checks some rules for Deployments, which no fake knows.
func problemsOf(deployment *appsv1.Deployment) (problems []string) {
	template := deployment.Spec.Template
	for key, value := range template.Labels {
		problems = append(problems, validation.IsQualifiedName(key)...)
		problems = append(problems, validation.IsValidLabelValue(value)...)
	}
	selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(template.Labels)) {
		problems = append(problems, "the selector does not select the Pods")
	}
	names := map[string]bool{}
	for _, container := range template.Spec.Containers {
		problems = append(problems, validation.IsDNS1123Label(container.Name)...)
		for _, port := range container.Ports {
			problems = append(problems, validation.IsValidPortName(port.Name)...)
		}
		if names[container.Name] {
			problems = append(problems, "two containers have the same name")
		}
		names[container.Name] = true
	}
	return problems
}

func TestSelectorsOfTwoFoosDiffer(t *testing.T) {
	first := newDeployment(newFoo("first", "web", nil)).Spec.Selector.MatchLabels
	second := newDeployment(newFoo("second", "web", nil)).Spec.Selector.MatchLabels
	for key, value := range first {
		if second[key] == value {
			t.Errorf("both Foos select %s=%s", key, value)
		}
	}
}

func TestTransitionTimeChangesWithTheStatusOnly(t *testing.T) {
	foo := newFoo("example-foo", "web", nil)
	long := metav1.Unix(1000, 0)
	foo.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", LastTransitionTime: long,
	}}
	still := desiredStatus(foo, nil, metav1.Condition{Type: "Ready", Status: "False", Reason: "Other"})
	if got := still.Conditions[0]; !got.LastTransitionTime.Equal(&long) || got.Reason != "Other" {
		t.Errorf("still False: got the reason %q and the time %v, want the new reason and %v",
			got.Reason, got.LastTransitionTime, long)
	}
	now := desiredStatus(foo, nil, metav1.Condition{Type: "Ready", Status: "True", Reason: "Available"})
	if got := now.Conditions[0]; got.LastTransitionTime.Equal(&long) {
		t.Errorf("now True: got the time %v, want a new one", got.LastTransitionTime)
	}
}

func TestFooOfAnyVersionIsAnOwner(t *testing.T) {
	for owner, want := range map[metav1.OwnerReference]bool{
		{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo"}: true,
		{APIVersion: "samplecontroller.k8s.io/v9", Kind: "Foo"}:       true,
		{APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Bar"}: false,
		{APIVersion: "other.example.com/v1", Kind: "Foo"}:             false,
		{APIVersion: "a/b/c", Kind: "Foo"}:                            false,
		{}:                                                            false,
	} {
		if got := isFoo(&owner); got != want {
			t.Errorf("%s %s: got %t, want %t", owner.APIVersion, owner.Kind, got, want)
		}
	}
}

func TestReadyWhenTheDeploymentIsOverridden(t *testing.T) {
	foo := newFoo("example-foo", "web", new(int32(1)))
	messages := map[patch.Outcome]string{
		patch.NotKept: `Deployment "web": the API server does not keep what the controller sends as ` +
			`spec.x`,
		patch.Contested: `Deployment "web": somebody sets back each repair of spec.x`,
	}
	for name, test := range map[string]struct {
		change  func(*appsv1.Deployment)
		outcome patch.Outcome
		want    string
	}{
		"admission has set the image": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "mirror/web" },
			patch.NotKept, "True Available",
		},
		"admission has set the count": {
			func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(2)) },
			patch.NotKept, "False DeploymentNotKept",
		},
		"admission has taken the label off": {
			func(d *appsv1.Deployment) { d.Labels = nil }, patch.NotKept, "False DeploymentNotKept",
		},
		"somebody sets the image back": {
			func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" },
			patch.Contested, "False DeploymentContested",
		},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := newDeployment(foo)
			test.change(deployment)
			replicas := *deployment.Spec.Replicas
			deployment.Status = appsv1.DeploymentStatus{
				Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
			}

			got := newFoo("example-foo", "web", nil)
			got.Status = desiredStatus(foo, deployment, judgedConditions(foo, deployment, patch.Judgment{
				Outcome: test.outcome, Fields: "spec.x", Writers: "somebody",
			})...)

			if ready(got) != test.want {
				t.Errorf("Ready: got %s, want %s", ready(got), test.want)
			}
			message := messages[test.outcome]
			condition := meta.FindStatusCondition(got.Status.Conditions, "Overridden")
			if condition == nil || condition.Status != "True" || condition.Message != message {
				t.Errorf("Overridden: got %v, want the message %s", condition, message)
			}
		})
	}
}
