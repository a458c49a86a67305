package main

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// FuzzWhatIsWritten takes any Foo that the CRD accepts, and a Deployment that others have changed.
// All that the controller writes for them must be valid. With -fuzz-kubeconfig, a real API server
// decides what is accepted and what is valid.
func FuzzWhatIsWritten(f *testing.F) {
	addSeeds(f)
	addRandom(f)
	judge := newJudge(f)
	recordFailure := eventsRecorded(f)
	f.Fuzz(func(t *testing.T, name, deploymentName string, tidy bool, replicas int32, counted bool,
		key, value, other, reason, message string, long bool) {
		if tidy { // random text is hardly ever a valid name
			name, deploymentName, other = tidied(name), tidied(deploymentName), tidied(other)
			key, value = tidied(key), tidied(value)
		}
		// Text in an API server is valid UTF-8.
		reason, message = strings.ToValidUTF8(reason, ""), strings.ToValidUTF8(message, "")
		foo := newFoo(name, deploymentName, nil)
		foo.Labels, foo.Annotations = map[string]string{key: value}, map[string]string{key: message}
		if counted {
			foo.Spec.Replicas = &replicas
		}
		if foo = judge.createFoo(t, foo); foo == nil {
			return // refused, so the controller never sees it
		}
		defer judge.deleteFoo(t, foo)
		deployment := judgeDeployments(t, judge, foo, key, value, other)

		if long && message != "" { // an input of this length would slow down the fuzzing
			message = strings.Repeat(message, 1+70000/len(message))
		}
		judgeReadyCondition(t, judge, foo, deployment, reason, message)
		rejected := desiredStatus(foo, nil, notReady(reasonRejected, message))
		judgeStatus(t, judge, foo, rejected)
		if err := judge.event(t, recordFailure(foo, rejected)); err != nil {
			t.Errorf("the Event is refused: %v", err)
		}
	})
}

// addSeeds adds inputs at the limits of what is valid, and inputs that fuzzing found.
func addSeeds(f *testing.F) {
	longest, longReason := strings.Repeat("a", 253), strings.Repeat("R", 1025)
	f.Add("example-foo", "web", true, int32(1), true,
		"team", "a", "sidecar", "FailedCreate", "exceeded quota", false)
	f.Add(longest, longest, false, int32(0), true,
		"team", "", "sidecar", "FailedCreate", "exceeded quota", true)
	f.Add("a.b-c", "1.2", false, int32(0), false, managedByLabel, "Helm", "x", "", "", false)
	f.Add("x", "Web", false, int32(-1), true, fooUIDLabel, "?", "web", "-", "", false)
	f.Add("x", "y", true, int32(1<<31-1), true, "a", "b", "istio-proxy", longReason, "é", true)
	f.Add("x", "y", true, int32(1), true, "a", "b", "sidecar", "No Quota", "delete: \x7f", false)
}

// addRandom adds as many random inputs as -fuzz-random says. Each is made from its number, so it is
// the same in every run.
func addRandom(f *testing.F) {
	f.Helper()
	for i := range *fuzzRandom {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		text := func() string {
			runes := make([]rune, random.IntN(20)*random.IntN(20))
			for i := range runes { // many are ASCII, the others have two or three bytes
				runes[i] = rune(random.IntN(1 << (5 + random.IntN(9))))
			}
			return string(runes)
		}
		f.Add(text(), text(), random.IntN(4) > 0, random.Int32N(10)-1, random.IntN(2) > 0,
			text(), text(), text(), text(), text(), random.IntN(2) > 0)
	}
}

// judgeDeployments checks that the Deployment of foo is valid when it is created and when it is
// repaired. It returns the created one.
func judgeDeployments(
	t *testing.T, judge judge, foo *v1alpha1.Foo, key, value, other string,
) *appsv1.Deployment {
	t.Helper()
	created, err := judge.deployment(t, newDeployment(foo))
	if err != nil {
		t.Fatalf("a new Deployment is refused: %v", err)
	}
	mangled := created.DeepCopy()
	mangle(mangled, key, value, other)
	mangled, err = judge.deployment(t, mangled)
	if err != nil {
		return created // refused, so the controller never meets such a Deployment
	}
	setOwnedFields(mangled, foo)
	repaired, err := judge.deployment(t, mangled)
	if err != nil {
		t.Fatalf("a repaired Deployment is refused: %v", err)
	}
	again := repaired.DeepCopy()
	setOwnedFields(again, foo)
	if !equality.Semantic.DeepEqual(again, repaired) {
		t.Errorf("a second repair changes the Deployment:\ngot  %v\nwant %v", again, repaired)
	}
	return created
}

// judgeReadyCondition checks that the status of foo is valid for any status of the Deployment: the
// API server accepts any reason and message in the conditions of a Deployment.
func judgeReadyCondition(t *testing.T, judge judge, foo *v1alpha1.Foo,
	deployment *appsv1.Deployment, reason, message string) {
	t.Helper()
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Reason: reason, Message: message,
	}}
	judgeStatus(t, judge, foo, desiredStatus(foo, deployment, readyCondition(deployment)))
}

// judgeStatus checks that status is valid, and that `kubectl get -o yaml` can print it.
func judgeStatus(t *testing.T, judge judge, foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	t.Helper()
	if err := judge.status(t, foo, status); err != nil {
		t.Errorf("the status is refused: %v", err)
	}
	if _, err := yaml.Marshal(status); err != nil {
		t.Errorf("the status cannot be printed: %v", err)
	}
}

// eventsRecorded returns a function that calls Controller.recordFailure and returns the Event.
func eventsRecorded(f *testing.F) func(*v1alpha1.Foo, v1alpha1.FooStatus) *eventsv1.Event {
	f.Helper()
	kube := fakes.New().Kube
	written := make(chan *eventsv1.Event)
	kube.PrependReactor("create", "events", func(action clienttesting.Action) (
		bool, runtime.Object, error) {
		event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
		written <- event
		return true, event, nil
	})
	recorder, err := newRecorder(context.Background(), kube)
	if err != nil {
		f.Fatal(err)
	}
	c := &Controller{recorder: recorder}
	return func(foo *v1alpha1.Foo, status v1alpha1.FooStatus) *eventsv1.Event {
		defer kube.ClearActions()
		c.recordFailure(foo, status)
		return <-written
	}
}

// tidied returns text with the characters replaced that a name cannot have.
func tidied(text string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-."
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(allowed, r) {
			return r
		}
		return rune(allowed[int(r)%len(allowed)])
	}, text), "-.")
}

// mangle changes deployment in ways that setOwnedFields must handle.
func mangle(deployment *appsv1.Deployment, key, value, other string) {
	deployment.Labels = map[string]string{key: value}
	deployment.Spec.Replicas, deployment.Spec.Paused = new(int32(7)), true
	template := &deployment.Spec.Template
	template.Labels[key] = value
	own := &template.Spec.Containers[0]
	own.Image, own.SecurityContext, own.Resources = "other:1", nil, corev1.ResourceRequirements{}
	own.Ports = []corev1.ContainerPort{{Name: "other", ContainerPort: 80}}
	sidecar := *own.DeepCopy()
	sidecar.Name = other
	template.Spec.Containers = append([]corev1.Container{sidecar}, template.Spec.Containers...)
}
