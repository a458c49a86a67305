package recorder

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/must"
)

// bubble runs test in virtual time, with a Recorder whose API server takes half a second to write an
// Event, and with a function that counts the Events of a reason that were written.
func bubble(t *testing.T, test func(*testing.T, *Recorder, func(reason string) int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t)
		server.Before("create", "events", math.MaxInt, func() error {
			time.Sleep(500 * time.Millisecond)
			return nil
		})
		kube := kubernetes.NewForConfigOrDie(server.Config)
		recorder := must.Get(New(t.Context(), kube, "test-controller", scheme))(t)
		test(t, recorder, func(reason string) (written int) {
			for _, event := range server.List(eventsv1.SchemeGroupVersion.WithResource("events")) {
				if event.Object["reason"] == reason {
					written++
				}
			}
			return written
		})
	})
}

// scheme has Pods, but not Deployments.
var scheme = runtime.NewScheme()

func init() { utilruntime.Must(corev1.AddToScheme(scheme)) }

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

// TestNoEventOfABurstIsLost records more than the 1,000 Events that client-go's recorder queues,
// while the API server takes half a second for each.
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

func TestEventsOfOneInstantAreAllWritten(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, written func(string) int) {
		for range 3 { // time stands still meanwhile
			recorder.Eventf(pod, nil, "Normal", "Created", "Test", "one of three objects is created")
		}
		recorder.Flush(time.Minute)

		if got := written("Created"); got != 3 {
			t.Errorf("written: got %d, want 3", got)
		}
	})
}

func TestFourEventsAreWrittenAtATime(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, _ func(string) int) {
		for range 8 {
			recorder.Eventf(pod, nil, "Normal", "Burst", "Test", "one of many")
		}
		begin := time.Now()
		recorder.Flush(time.Minute)

		if got := time.Since(begin); got != time.Second {
			t.Errorf("writing eight Events took %v, want 1s", got)
		}
	})
}

func TestEventThatCannotBeRecordedDoesNotHoldUpFlush(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, _ func(string) int) {
		recorder.Eventf(&appsv1.Deployment{}, nil, "Normal", "Odd", "Test", "about an unknown type")
		begin := time.Now()
		recorder.Flush(time.Minute)

		if got := time.Since(begin); got != 0 {
			t.Errorf("Flush took %v, want 0s", got)
		}
	})
}

func TestEventTellsWhatHappenedToWhom(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
	for _, test := range []struct {
		name               string
		regarding, related runtime.Object
		namespace, about   string
	}{
		{"about a Pod and its node", pod, node, "default", "Pod web, Node worker"},
		{"about a Pod of another namespace", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "other", Name: "web"}}, nil, "other", "Pod web"},
		{"about a node, which is in no namespace", node, nil, "default", "Node worker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			kube := kubefake.NewClientset()
			recorder := must.Get(New(t.Context(), kube, "test-controller", scheme))(t)
			recorder.Eventf(test.regarding, test.related, "Warning", "Failed", "Create", "it is %d", 7)
			recorder.Flush(time.Minute)

			list, err := kube.EventsV1().Events(test.namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Fatalf("Events: got %d (error %v), want 1", len(list.Items), err)
			}
			event := list.Items[0]
			if event.Type != "Warning" || event.Reason != "Failed" || event.Action != "Create" ||
				event.Note != "it is 7" || event.ReportingController != "test-controller" ||
				event.ReportingInstance == "" || event.EventTime.IsZero() {
				t.Errorf("got %+v, want the values passed to Eventf", event)
			}
			about := event.Regarding.Kind + " " + event.Regarding.Name
			if event.Related != nil {
				about += ", " + event.Related.Kind + " " + event.Related.Name
			}
			if about != test.about {
				t.Errorf("objects: got %q, want %q", about, test.about)
			}
		})
	}
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
			t.Errorf("Flush took %v, want 1s", got)
		}
		time.Sleep(time.Minute) // lets the writers finish before the bubble ends
	})
}
