package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/must"
)

func TestRestartedControllerWritesNothing(t *testing.T) {
	w := newWorld(t)
	foo := w.put("web", `{"deploymentName":"web","replicas":2}`)
	w.deploymentWhen("web", "exists", exists)
	w.rollOut("web")
	w.reasonIs("web", foo, meaning.ReasonAvailable)
	_, before := w.status("web")

	must.Do(t, w.stop())
	w.fake.Kube.ClearActions()
	w.startController()
	w.catchUp()

	if writes := w.writes(); len(writes) != 1 {
		t.Errorf("got the writes %v, want only that of catchUp", writes)
	}
	if _, after := w.status("web"); after != before {
		t.Errorf("the status was written: got revision %d, want %d", after, before)
	}
}

func TestFooDeletedWhileNobodyLookedIsCollectedAtStart(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.put("changed", `{"deploymentName":"changed","replicas":1}`)
	w.deploymentWhen("web", "exists", exists)
	w.deploymentWhen("changed", "exists", exists)

	must.Do(t, w.stop())
	w.delete("web")
	w.put("changed", `{"deploymentName":"changed","replicas":2}`)
	w.startController()

	w.deploymentGone("web")
	w.deploymentWhen("changed", "has 2 replicas", hasReplicas(2))
}

// removeWithoutATrace removes a Foo from the bucket in a way that no watch shows, as if its entry
// had expired.
func (w *world) removeWithoutATrace(name string) {
	w.t.Helper()
	stream := must.Get(w.js.Stream(w.t.Context(), "KV_"+fooBucket))(w.t)
	subject := "$KV." + fooBucket + "." + keyOf(namespace, name)
	must.Do(w.t, stream.Purge(w.t.Context(), jetstream.WithPurgeSubject(subject)))
}

func TestOrphanIsCollectedOnResync(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)
	w.removeWithoutATrace("web")
	w.catchUp()
	w.deploymentWhen("web", "is still there", exists)

	w.controller.Relist()

	w.deploymentGone("web")
}

func TestResyncNeedsNoEventToFindOrphans(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web"}`)
	w.reasonIs("web", revision, meaning.ReasonProgressing)
	// Only the Deployment is left, and no event has said so.
	c := w.controller
	must.Do(t, w.statuses.Delete(t.Context(), "default.web"))
	w.eventually("the status is forgotten", func() bool {
		return c.statuses.get("default.web") == nil
	})
	w.removeWithoutATrace("web")
	must.Do(t, c.foos.records.Delete(c.foos.get("default.web")))

	c.Relist()

	w.deploymentGone("web")
}

func TestNothingIsMissedWhileTheServerIsAway(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"deleted", "expired", "changed"} {
		revision := w.put(name, `{"deploymentName":"`+name+`","replicas":1}`)
		// Wait for the last request: one under way when the server stops would wait for syncTimeout.
		w.reasonIs(name, revision, meaning.ReasonProgressing)
	}

	w.stopServer()
	w.startServer(server.RANDOM_PORT) // the controller does not know this port
	w.connect()
	w.delete("deleted")
	w.removeWithoutATrace("expired")
	w.put("changed", `{"deploymentName":"changed","replicas":2}`)
	w.put("new", `{"deploymentName":"new"}`)
	w.stopServer()
	w.startServer(w.port)
	w.connect()

	w.deploymentGone("deleted")
	w.deploymentGone("expired")
	w.deploymentWhen("changed", "has 2 replicas", hasReplicas(2))
	w.deploymentWhen("new", "exists", exists)
	revision := w.put("changed", `{"deploymentName":"changed","replicas":3}`)
	w.deploymentWhen("changed", "has 3 replicas", hasReplicas(3))
	w.reasonIs("changed", revision, meaning.ReasonProgressing)
}

func TestOlderRevisionDoesNotReplaceANewerOne(t *testing.T) {
	statuses := newWorld(t).controller.statuses
	const newer = 1000

	statuses.put("default.web", newer, []byte("{}"))
	statuses.put("default.web", newer-1, []byte("{}"))
	statuses.replace("default.web", newer-1, nil)

	if r := statuses.get("default.web"); r == nil || r.revision != newer {
		t.Errorf("got %+v, want revision %d", r, newer)
	}
}

func TestStaleCopyOfTheBucketDeletesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)

	// What a sync does if the Foo is not in the copy yet.
	must.Do(t, w.controller.finalize(t.Context(), "default.web"))

	if writes := w.writes(); slices.Contains(writes, "delete deployments") {
		t.Errorf("got the writes %v, want no deletion", writes)
	}
}

func (w *world) remakeBucket() {
	w.t.Helper()
	must.Do(w.t, w.js.DeleteKeyValue(w.t.Context(), fooBucket))
	config := jetstream.KeyValueConfig{Bucket: fooBucket}
	must.Get(w.js.CreateKeyValue(w.t.Context(), config))(w.t)
}

func TestEmptyBucketInPlaceOfTheOldOneDeletesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)

	w.remakeBucket()
	w.controller.Relist()
	select {
	case <-w.stopped:
	case <-time.After(patience):
		t.Error("the controller still runs, want it stopped")
	}
	if err := w.stop(); !errors.Is(err, errReplaced) {
		t.Errorf("got %v, want %v", err, errReplaced)
	}
	w.startController()
	w.catchUp()

	w.deploymentWhen("web", "is still there", exists)
}

func TestInterruptedFinalizationIsTakenUpAgain(t *testing.T) {
	w := newWorld(t)
	revision := w.put("web", `{"deploymentName":"web"}`)
	w.deploymentWhen("web", "exists", exists)
	w.reasonIs("web", revision, meaning.ReasonProgressing)

	must.Do(t, w.stop()) // as if it had just deleted the Deployment
	w.delete("web")
	must.Do(t, w.kube.AppsV1().Deployments(namespace).Delete(
		t.Context(), "web", metav1.DeleteOptions{}))
	w.startController()

	w.eventually("the status is gone", func() bool {
		_, revision := w.status("web")
		return revision == 0
	})
}
