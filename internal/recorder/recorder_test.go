package recorder

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// bubble gives test a Recorder, and a function that counts the Events of a reason that are written.
// The API server takes half a second for one, in virtual time.
func bubble(t *testing.T, test func(*testing.T, *Recorder, func(reason string) int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kube := &kubefake.Clientset{}
		var mu sync.Mutex
		written := map[string]int{}
		kube.AddReactor("create", "events", func(action clienttesting.Action) (
			bool, runtime.Object, error,
		) {
			time.Sleep(500 * time.Millisecond)
			event := action.(clienttesting.CreateAction).GetObject().(*eventsv1.Event)
			mu.Lock()
			defer mu.Unlock()
			if event.Regarding.Kind == "Pod" && event.ReportingController == "test-controller" {
				written[event.Reason]++
			}
			return true, event, nil
		})
		recorder, err := New(t.Context(), kube, "test-controller", scheme.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		test(t, recorder, func(reason string) int {
			mu.Lock()
			defer mu.Unlock()
			return written[reason]
		})
	})
}

var pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}

func TestFlushWaitsForTheEventsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, written func(string) int) {
		recorder.Eventf(pod, nil, "Normal", "Last", "Test", "the last thing that happened")
		recorder.Flush(time.Second)

		if got := written("Last"); got != 1 {
			t.Errorf("events written: got %d, want 1", got)
		}
	})
}

// TestNoEventOfABurstIsLost records more Events than the broadcaster's own queue of 1,000 holds,
// while the API server takes one each half second.
func TestNoEventOfABurstIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, written func(string) int) {
		for range 3000 {
			recorder.Eventf(pod, nil, "Normal", "Burst", "Test", "one of many")
			time.Sleep(time.Millisecond)
		}
		recorder.Flush(time.Hour)

		if got := written("Burst"); got != 3000 {
			t.Errorf("events written: got %d, want 3000", got)
		}
	})
}

func TestFlushDoesNotWaitForEver(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, _ func(string) int) {
		for range 10 {
			recorder.Eventf(pod, nil, "Normal", "Late", "Test", "late")
			time.Sleep(time.Millisecond)
		}
		begin := time.Now()
		recorder.Flush(time.Second)

		if got := time.Since(begin); got != time.Second {
			t.Errorf("flush took %v, want 1s", got)
		}
		time.Sleep(time.Minute) // let the writer end before the bubble does
	})
}
