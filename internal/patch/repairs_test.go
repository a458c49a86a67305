package patch

import (
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

var key = cache.NewObjectName("default", "a")

// deployment returns one with that image, as the API server stores it.
func deployment(image, resourceVersion string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ResourceVersion: resourceVersion}}
	d.Spec.Template.Spec.Containers = []corev1.Container{
		{Name: "proxy", Image: "proxy"}, {Name: "web", Image: image},
	}
	return d
}

// owner is what asks for the Deployment.
func owner(generation int64) *metav1.ObjectMeta { return &metav1.ObjectMeta{Generation: generation} }

// fight repairs for some time what another writer sets back after a moment. It returns how often.
func fight(r *Repairs, total time.Duration) (repairs int) {
	for end := time.Now().Add(total); time.Now().Before(end); {
		if delay, _ := r.Delay(key, owner(1), deployment("evil", "1"), deployment("web", "1")); delay > 0 {
			time.Sleep(delay)
			continue
		}
		r.Sent(key, owner(1), deployment("evil", "1"), deployment("web", "2"), deployment("web", "2"))
		repairs++
		time.Sleep(10 * time.Millisecond)
	}
	return repairs
}

func TestRepairsThatDoNotLastWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		if got := fight(r, 10*time.Minute); got != 23 {
			t.Errorf("repairs in ten minutes: got %d, want 23", got)
		}
		r.Sent(key, owner(1), deployment("evil", "1"), deployment("web", "2"), deployment("web", "2"))
		delay, outcome := r.Delay(key, owner(1), deployment("evil", "1"), deployment("web", "1"))
		if delay != time.Minute || outcome != Contested {
			t.Errorf("got %v, outcome %v, want to wait for a minute, contested", delay, outcome)
		}

		time.Sleep(delay)
		r.Sent(key, owner(1), deployment("evil", "1"), deployment("web", "2"), deployment("web", "2"))
		time.Sleep(maxRepairDelay) // the other writer has stopped
		if got := fight(r, time.Second); got < 6 {
			t.Errorf("repairs in a second, after one that lasted: got %d, want 6 at least", got)
		}
	})
}

func TestContestIsOverWhenARepairHasLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		fight(r, 10*time.Second)
		asked := 0
		find := func() (string, error) { asked++; return "somebody", nil }
		for range 2 {
			if got, err := r.Report(key, find); got != "somebody" || err != nil || asked != 1 {
				t.Errorf("report: got %q, %v, asked %d times; want somebody, asked once", got, err, asked)
			}
		}
		if rest, report := r.Held(key, owner(1)); rest <= 0 || report != "somebody" {
			t.Errorf("right after a repair: got %v, %q; want to wait, and what was told", rest, report)
		}
		time.Sleep(maxRepairDelay)
		if rest, report := r.Held(key, owner(1)); rest != 0 || report != "" {
			t.Errorf("after a minute: got %v, %q; want nothing", rest, report)
		}
	})
}

func TestWhatIsNotKeptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		if r.Sent(key, owner(1), deployment("mirror", "1"), deployment("mirror", "1"),
			deployment("web", "1")) {
			t.Error("a patch that has left the resourceVersion as it was is said to have changed something")
		}
		// The status has changed since then.
		delay, outcome := r.Delay(key, owner(1), deployment("mirror", "2"), deployment("web", "2"))
		if delay != notKeptDelay || outcome != NotKept {
			t.Errorf("got %v, outcome %v; want %v, not kept", delay, outcome, notKeptDelay)
		}
		if delay, _ := r.Delay(key, owner(1), deployment("evil", "2"), deployment("web", "2")); delay > 0 {
			t.Errorf("another difference waits for %v, want none", delay)
		}
	})
}

func TestNewSpecBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		fight(r, time.Minute)
		delay, outcome := r.Delay(key, owner(2), deployment("evil", "1"), deployment("web", "1"))
		if delay > 0 || outcome != Repaired {
			t.Errorf("got %v, outcome %v; want no delay", delay, outcome)
		}
	})
}

func TestFieldsAreNamed(t *testing.T) {
	observed, desired := deployment("evil", "1"), deployment("web", "1")
	desired.Spec.Replicas = new(int32(1))
	const want = `spec.replicas, spec.template.spec.containers[name="web"].image`
	if got := Names(Fields(observed, desired)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	desired.Labels = map[string]string{"a": "", "b": "", "c": "", "d": "", "e": ""}
	if got := Names(Fields(observed, desired)); got != "metadata.labels.a, metadata.labels.b, "+
		"metadata.labels.c, metadata.labels.d, metadata.labels.e, 2 more" {
		t.Errorf("of many fields, got %s", got)
	}
}

func TestWritersAreNamed(t *testing.T) {
	observed, desired := deployment("evil", "1"), deployment("web", "1")
	fields := Fields(observed, desired)
	if got := Writers(observed, fields); got != "somebody" {
		t.Errorf("without managedFields: got %s, want somebody", got)
	}
	wrote := func(manager, json string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{
			Manager: manager, FieldsV1: metav1.NewFieldsV1(json)}
	}
	observed.ManagedFields = []metav1.ManagedFieldsEntry{
		wrote("scaler", `{"f:spec":{"f:replicas":{}}}`),
		wrote("kubectl-set", `{"f:spec":{"f:template":{"f:spec":{"f:containers":`+
			`{"k:{\"name\":\"web\"}":{"f:image":{}}}}}}}`),
	}
	if got := Writers(observed, fields); got != `"kubectl-set"` {
		t.Errorf(`got %s, want "kubectl-set"`, got)
	}
}
