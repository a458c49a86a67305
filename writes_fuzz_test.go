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

// FuzzWhatIsWritten takes any Foo that the CRD accepts, and a Deployment that others have written
// to: what the controller writes for them must be valid. With -fuzz-kubeconfig, an API server says
// what the CRD accepts and what is valid.
func FuzzWhatIsWritten(f *testing.F) {
	addSeeds(f)
	addRandom(f)
	judge := newJudge(f)
	recordFailure := eventsRecorded(f)
	f.Fuzz(func(t *testing.T, name, deploymentName string, tidy bool, replicas int32, counted bool,
		key, value, other, reason, message string, long bool) {
		if tidy { // hardly any text is a name by chance
			name, deploymentName, other = tidied(name), tidied(deploymentName), tidied(other)
			key, value = tidied(key), tidied(value)
		}
		// An API server has no other text.
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

		if long && message != "" { // an input of that length would slow down all that come of it
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

// addSeeds adds what is at the limits of what is valid, and what the fuzzing found.
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

// addRandom adds -fuzz-random inputs. The number of each, which the name of its test has, is the seed
// that it is made from.
func addRandom(f *testing.F) {
	f.Helper()
	for i := range *fuzzRandom {
		random := rand.New(rand.NewPCG(uint64(i), 0))
		text := func() string {
			runes := make([]rune, random.IntN(20)*random.IntN(20))
			for i := range runes { // most of them ASCII, some of two bytes or more
				runes[i] = rune(random.IntN(1 << (5 + random.IntN(9))))
			}
			return string(runes)
		}
		f.Add(text(), text(), random.IntN(4) > 0, random.Int32N(10)-1, random.IntN(2) > 0,
			text(), text(), text(), text(), text(), random.IntN(2) > 0)
	}
}

// judgeDeployments expects that the Deployment of foo is valid, as it is created and as it is
// repaired, and returns the first.
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
		return created // refused, so it never becomes like this
	}
	setOwnedFields(mangled, foo)
	repaired, err := judge.deployment(t, mangled)
	if err != nil {
		t.Fatalf("a repaired Deployment is refused: %v", err)
	}
	again := repaired.DeepCopy()
	setOwnedFields(again, foo)
	if !equality.Semantic.DeepEqual(again, repaired) {
		t.Errorf("it would be repaired again for ever:\n%v\n%v", again, repaired)
	}
	return created
}

// judgeReadyCondition expects that the status is valid whatever that of the Deployment says: of
// its conditions, the API server accepts any reason and message.
func judgeReadyCondition(t *testing.T, judge judge, foo *v1alpha1.Foo,
	deployment *appsv1.Deployment, reason, message string) {
	t.Helper()
	deployment.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
		Reason: reason, Message: message,
	}}
	judgeStatus(t, judge, foo, desiredStatus(foo, deployment, readyCondition(deployment)))
}

// judgeStatus expects that status is valid, and that `kubectl get -o yaml` can print it.
func judgeStatus(t *testing.T, judge judge, foo *v1alpha1.Foo, status v1alpha1.FooStatus) {
	t.Helper()
	if err := judge.status(t, foo, status); err != nil {
		t.Errorf("the status is refused: %v", err)
	}
	if _, err := yaml.Marshal(status); err != nil {
		t.Errorf("the status cannot be printed: %v", err)
	}
}

// eventsRecorded returns Controller.recordFailure, with the Event that it writes as its result.
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

// tidied returns text with all those characters replaced that a name cannot have.
func tidied(text string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyz0123456789-."
	return strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(allowed, r) {
			return r
		}
		return rune(allowed[int(r)%len(allowed)])
	}, text), "-.")
}

// mangle changes deployment in ways that setOwnedFields has to cope with.
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
