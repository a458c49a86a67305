package owned

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/internal/testing/must"
)

func TestObjectThatIsAlwaysReadySaysWhy(t *testing.T) {
	o := &Objects[*corev1.Pod, *corev1.ConfigMap]{}
	o.kind.Name = "ConfigMap"

	if got := o.ready(&corev1.ConfigMap{}); got.Status != "True" || got.Reason != "ConfigMapExists" {
		t.Errorf("got %v, want True, because the ConfigMap exists", got)
	}
}

// The API server has stored one replica in place of two. Or it has taken off the label by which the
// informer selects: then nobody knows how the object is.
func TestObjectThatIsNotKeptIsNotReady(t *testing.T) {
	owner, one := &corev1.Pod{}, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
	owner.UID = "1"
	one.OwnerReferences = []metav1.OwnerReference{{UID: "1", Controller: new(true)}}
	o := &Objects[*corev1.Pod, *appsv1.Deployment]{repairs: patch.NewRepairs()}
	o.owners.EnqueueAfter = func(context.Context, cache.ObjectName, time.Duration, string) {}
	o.kind.SetFields = func(d *appsv1.Deployment, _ *corev1.Pod) { d.Spec.Replicas = new(int32(2)) }
	o.kind.Ready = func(d *appsv1.Deployment) metav1.Condition {
		status := metav1.ConditionTrue
		if d.Status.Replicas < *d.Spec.Replicas {
			status = metav1.ConditionFalse
		}
		return metav1.Condition{Status: status, Message: fmt.Sprint(d.Status.Replicas, " of ", *d.Spec.Replicas)}
	}
	o.kind.NameOf = func(*corev1.Pod) string { return one.Name }
	o.kind.Informer = cache.NewTypedSharedIndexInformer[*appsv1.Deployment](cache.NewSharedIndexInformer(nil, one, 0, nil))
	must.Do(t, o.kind.Informer.GetStore().Add(one))
	o.repairs.Created(cache.MetaObjectToName(owner), owner, one, o.desired(one, owner))

	got, err := o.repair(t.Context(), owner, one)

	const want = "0 of 2; the API server does not keep what the controller sends as spec.replicas"
	if err != nil || got.Status != metav1.ConditionFalse || got.Message != want {
		t.Errorf("got %v (error: %v), want False with the message %q", got, err, want)
	}

	two := one.DeepCopy()
	two.Spec.Replicas, two.Status.Replicas, two.Annotations = new(int32(2)), 2, map[string]string{"a": "b"}
	o.kind.SetFields = func(d *appsv1.Deployment, _ *corev1.Pod) { d.Labels = map[string]string{"a": "b"} }
	for _, want := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse} {
		o.repairs = patch.NewRepairs()
		o.repairs.Created(cache.MetaObjectToName(owner), owner, two, o.desired(two, owner))
		got, err := o.repair(t.Context(), owner, two)
		if err != nil || got.Status != want || Failed(*got) != (want == metav1.ConditionFalse) {
			t.Errorf("got %v (error: %v), want %s, and False to be a failure", got, err, want)
		}
		must.Do(t, o.kind.Informer.GetStore().Delete(one))
	}
}

func TestWriteWithoutAnEventIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := cache.NewStore(cache.MetaNamespaceKeyFunc)
		enqueued := 0
		o := &Objects[*corev1.Pod, *corev1.ConfigMap]{writes: consistency.NewWrites(none)}
		o.owners.EnqueueAfter = func(context.Context, cache.ObjectName, time.Duration, string) { enqueued++ }

		o.recordWrite(t.Context(), &corev1.Pod{}, &corev1.ConfigMap{})
		time.Sleep(time.Minute)

		if enqueued != 1 {
			t.Errorf("the owner was enqueued %d times, want once", enqueued)
		}
	})
}

func TestMessageIsWhatTheAPIServerTakes(t *testing.T) {
	got := NotReady("Rejected", "\x1b[31m"+strings.Repeat("é", 1000)).Message

	if len(got) > 1024 || !utf8.ValidString(got) || strings.Contains(got, "\x1b") ||
		!strings.HasPrefix(got, "\ufffd[31mé") || !strings.HasSuffix(got, "é...") {
		t.Errorf("got %d bytes, %q", len(got), got)
	}
}
