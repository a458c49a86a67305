package owned

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/consistency"
)

func TestObjectThatIsAlwaysReadySaysWhy(t *testing.T) {
	o := &Objects[*corev1.Pod, *corev1.ConfigMap]{}
	o.kind.Name = "ConfigMap"

	if got := o.ready(&corev1.ConfigMap{}); got.Status != "True" || got.Reason != "ConfigMapExists" {
		t.Errorf("got %v, want True, because the ConfigMap exists", got)
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
