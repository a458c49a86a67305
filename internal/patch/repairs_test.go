package patch

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"example.com/sample-controller/internal/testing/must"
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
func owner(generation int64) *metav1.ObjectMeta {
	return &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: generation}
}

// judge judges one with that image, which should have the image web. live says who has written it.
func judge(
	t *testing.T, r *Repairs, generation int64, image string, live func() (Object, error),
) Judgment {
	t.Helper()
	observed, desired := deployment(image, "1"), deployment("web", "1")
	return must.Get(r.Judge(key, owner(generation), observed, desired, live))(t)
}

// nobody is a writer of whom the API server knows nothing.
func nobody() (Object, error) { return deployment("evil", "1"), nil }

// fight repairs for some time what another writer sets back after a moment. It returns how often.
func fight(t *testing.T, r *Repairs, total time.Duration) (repairs int) {
	t.Helper()
	for end := time.Now().Add(total); time.Now().Before(end); {
		if judgment := judge(t, r, 1, "evil", nobody); judgment.Outcome != Repair {
			time.Sleep(judgment.After)
			continue
		}
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		repairs++
		time.Sleep(10 * time.Millisecond)
	}
	return repairs
}

const image = `spec.template.spec.containers[name="web"].image`

func TestRepairsThatDoNotLastWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		if got := fight(t, r, 10*time.Minute); got != 23 {
			t.Errorf("repairs in ten minutes: got %d, want 23", got)
		}
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		want := Judgment{Outcome: Contested, After: time.Minute, Fields: image, Writers: "somebody"}
		if got := judge(t, r, 1, "evil", nobody); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}

		time.Sleep(time.Minute)
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		time.Sleep(maxRepairDelay) // the other writer has stopped
		if got := fight(t, r, time.Second); got < 6 {
			t.Errorf("repairs in a second, after one that lasted: got %d, want 6 at least", got)
		}
	})
}

func TestRepairsWithoutAnAnswerWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, repairs := NewRepairs(), 0
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			time.Sleep(judge(t, r, 1, "evil", nobody).After)
			if repairs++; repairs > 100 {
				t.Fatal("it repairs without end")
			}
			_, _ = Try(r, owner(1), "1", time.Hour, func() (Object, error) { return nil, errors.New("cut") })
			judge(t, r, 1, "web", nobody) // the request had arrived
		}
	})
}

func TestContestIsOverWhenARepairHasLasted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		fight(t, r, 10*time.Second)
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		asked := 0
		live := func() (Object, error) {
			asked++
			return nil, apierrors.NewNotFound(appsv1.Resource("deployments"), "web")
		}
		want := Judgment{Contested, 10240 * time.Millisecond, image, "somebody"}
		for range 2 {
			if got := judge(t, r, 1, "evil", live); got != want || asked != 1 {
				t.Errorf("got %+v, asked %d times; want %+v, asked once", got, asked, want)
			}
		}
		want.After = time.Minute
		if got := judge(t, r, 1, "web", live); got != want {
			t.Errorf("right after a repair: got %+v, want %+v", got, want)
		}
		time.Sleep(maxRepairDelay)
		if got := judge(t, r, 1, "web", live); got != (Judgment{}) {
			t.Errorf("after a minute: got %+v, want nothing", got)
		}
	})
}

func TestWriterThatCannotBeReadIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		fight(t, r, 10*time.Second)
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		_, err := r.Judge(key, owner(1), deployment("evil", "1"), deployment("web", "1"),
			func() (Object, error) { return nil, errors.New("no connection") })
		if err == nil {
			t.Error("got no error, want one")
		}
		if got := judge(t, r, 1, "evil", nobody); got.Writers != "somebody" {
			t.Errorf("after the error: got %+v, want that somebody is the writer", got)
		}
	})
}

func TestWhatIsNotKeptWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		if got := judge(t, r, 1, "mirror", nil); got.Outcome != Repair {
			t.Errorf("the first time: got %+v, want a repair", got)
		}
		if r.Sent(key, owner(1), deployment("mirror", "2"), deployment("web", "2")) {
			t.Error("a patch after which the same differs is said to have changed something")
		}
		// The status has changed since then.
		got, err := r.Judge(key, owner(1), deployment("mirror", "3"), deployment("web", "3"), nil)
		want := Judgment{Outcome: NotKept, After: 10 * time.Minute, Fields: image}
		if err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
		if got := judge(t, r, 1, "evil", nil); got.Outcome != Repair {
			t.Errorf("another difference: got %+v, want a repair", got)
		}
	})
}

func TestNewSpecBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		fight(t, r, 10*time.Second)
		r.Sent(key, owner(1), deployment("web", "2"), deployment("web", "2"))
		if got := judge(t, r, 2, "evil", nobody); got.Outcome != Repair {
			t.Errorf("got %+v, want a repair", got)
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

func TestRefusedWriteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		refusal := apierrors.NewBadRequest("injected")
		tries := 0
		try := func(owner metav1.Object, uid types.UID, want int) {
			t.Helper()
			_, err := Try(r, owner, uid, time.Minute, func() (Object, error) {
				tries++
				return nil, refusal
			})
			if !errors.Is(err, refusal) || tries != want {
				t.Errorf("got error %v and %d tries so far, want %v and %d", err, tries, refusal, want)
			}
		}
		try(owner(1), "", 1)
		try(owner(1), "", 1)
		try(owner(1), "b", 2) // another object
		try(owner(2), "b", 3) // the owner asks for something else
		another := owner(2)
		another.UID = "another"
		try(another, "b", 4)
		time.Sleep(time.Minute)
		try(another, "b", 5)
	})
}

func TestRefusalOfAWebhookWith404SaysOfNoObjectThatItIsGone(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "foos"}, "example-foo")
	refused := apierrors.NewNotFound(schema.GroupResource{Resource: "foos"}, "example-foo")
	refused.ErrStatus.Message = `admission webhook "a.example.com" denied the request: not found`
	if !IsGone(gone) || IsGone(refused) {
		t.Errorf("got %v and %v, want only the first one to be gone", IsGone(gone), IsGone(refused))
	}
}

func TestWhatIsNotKeptIsNotSentAgainAtOnceIfItFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRepairs()
		r.Sent(key, owner(1), deployment("mirror", "2"), deployment("web", "2"))
		judge(t, r, 1, "mirror", nobody)
		time.Sleep(notKeptDelay)
		if got := judge(t, r, 1, "mirror", nobody); got.Outcome != Repair {
			t.Fatalf("after %v: got %+v, want a repair", notKeptDelay, got)
		}

		of := &metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Generation: 1}
		_, _ = Try(r, of, "", time.Minute, func() (Object, error) {
			return nil, apierrors.NewInternalError(errors.New("the webhook is down"))
		})

		if got := judge(t, r, 1, "mirror", nobody); got.Outcome != NotKept || got.After != notKeptDelay {
			t.Errorf("after the failure: got %+v, want the judgment of before", got)
		}
	})
}
