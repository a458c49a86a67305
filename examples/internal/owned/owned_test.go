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
)

func TestObjectThatIsAlwaysReadySaysWhy(t *testing.T) {
	o := &Objects[*corev1.Pod, *corev1.ConfigMap]{}
	o.kind.Name = "ConfigMap"

	if got := o.ready(&corev1.ConfigMap{}); got.Status != "True" || got.Reason != "ConfigMapExists" {
		t.Errorf("got %v, want True, because the ConfigMap exists", got)
	}
}

// The API server has stored one replica in place of two.
func TestObjectWithAnotherCountIsNotReady(t *testing.T) {
	owner, one := &corev1.Pod{}, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))}}
	o := &Objects[*corev1.Pod, *appsv1.Deployment]{repairs: patch.NewRepairs()}
	o.owners.EnqueueAfter = func(context.Context, cache.ObjectName, time.Duration, string) {}
	o.kind.SetFields = func(d *appsv1.Deployment, _ *corev1.Pod) { d.Spec.Replicas = new(int32(2)) }
	o.kind.Ready = func(d *appsv1.Deployment) metav1.Condition {
		return *NotReady("Progressing", fmt.Sprint("0 of ", *d.Spec.Replicas))
	}
	o.repairs.Created(cache.MetaObjectToName(owner), owner, one, o.desired(one, owner))

	got, err := o.repair(t.Context(), owner, one)

	const want = "0 of 2; the API server does not keep what the controller sends as spec.replicas"
	if err != nil || got.Message != want {
		t.Errorf("got %v (error: %v), want the message %q", got, err, want)
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
