package main

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
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
	fails := func(
		is appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string,
	) func(*appsv1.Deployment) {
		return func(d *appsv1.Deployment) {
			d.Status.AvailableReplicas = 0
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: is, Status: status, Reason: reason, Message: message}}
		}
	}
	for name, test := range map[string]struct {
		change        func(*appsv1.Deployment)
		want, message string
	}{
		"rolled out": {
			func(*appsv1.Deployment) {},
			"True Available", `Deployment "web" has 3 of 3 replicas available`,
		},
		"scaled to zero": {
			func(d *appsv1.Deployment) {
				d.Spec.Replicas = new(int32(0))
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			"True Available", `Deployment "web" has 0 of 0 replicas available`,
		},
		"the spec has no replicas": {
			func(d *appsv1.Deployment) {
				d.Spec.Replicas = nil
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: 2}
			},
			"False Progressing", `Deployment "web" has 0 of 1 replicas available`,
		},
		"the status is of an older spec": {
			func(d *appsv1.Deployment) { d.Generation = 3 },
			"False Progressing", `Deployment "web" has 3 of 3 replicas available`,
		},
		"scaled down, and more replicas still run": {
			func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(1)) },
			"False Progressing", `Deployment "web" has 3 of 1 replicas available`,
		},
		"old replicas still run": {
			func(d *appsv1.Deployment) { d.Status.Replicas = 4 },
			"False Progressing", `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas are updated": {
			func(d *appsv1.Deployment) { d.Status.UpdatedReplicas, d.Status.Replicas = 2, 2 },
			"False Progressing", `Deployment "web" has 3 of 3 replicas available`,
		},
		"not all replicas are available": {
			func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 1 },
			"False Progressing", `Deployment "web" has 1 of 3 replicas available`,
		},
		"paused during the rollout": {
			func(d *appsv1.Deployment) { d.Spec.Paused, d.Status.UpdatedReplicas = true, 1 },
			"False DeploymentPaused",
			`Deployment "web" has 3 of 3 replicas available; its rollout is paused`,
		},
		"paused after the rollout": {
			func(d *appsv1.Deployment) { d.Spec.Paused = true },
			"True Available", `Deployment "web" has 3 of 3 replicas available`,
		},
		"being deleted": {
			func(d *appsv1.Deployment) { d.DeletionTimestamp = &metav1.Time{} },
			"False DeploymentTerminating", `Deployment "web" is being deleted`,
		},
		"Pods cannot be created": {
			fails(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "exceeded quota"),
			"False FailedCreate", `Deployment "web" has 0 of 3 replicas available: exceeded quota`,
		},
		"no progress within the deadline": {
			fails(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "timed out"),
			"False ProgressDeadlineExceeded", `Deployment "web" has 0 of 3 replicas available: timed out`,
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

func TestCountIsSetIfTheFooHasNone(t *testing.T) {
	foo := newFoo("example-foo", "web", nil) // as with a CustomResourceDefinition without defaults
	seven := newDeployment(newFoo("example-foo", "web", new(int32(7))))
	for _, deployment := range []*appsv1.Deployment{newDeployment(foo), withOwnedFields(seven, foo)} {
		if got := deployment.Spec.Replicas; got == nil || *got != 1 {
			t.Errorf("got %v, want 1 replica", deployment.Spec)
		}
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
		patch.NotKept:   `Deployment "web": the API server does not keep what the controller sends as `,
		patch.Contested: `Deployment "web": somebody sets back each repair of `,
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

			fields := patch.Names(patch.Fields(deployment, withOwnedFields(deployment, foo)))
			got := newFoo("example-foo", "web", new(int32(1)))
			got.Status = desiredStatus(foo, deployment, judgedConditions(foo, deployment, patch.Judgment{
				Outcome: test.outcome, Fields: fields, Writers: "somebody",
			})...)
			if test.outcome == patch.NotKept { // while the Foo is being deleted, the same is true
				got.Status = terminatingStatus(got, deployment)
			}

			if ready(got) != test.want {
				t.Errorf("Ready: got %s, want %s", ready(got), test.want)
			}
			message := messages[test.outcome] + fields
			condition := meta.FindStatusCondition(got.Status.Conditions, "Overridden")
			if condition == nil || condition.Status != "True" || condition.Message != message {
				t.Errorf("Overridden: got %v, want the message %s", condition, message)
			}
		})
	}
}
