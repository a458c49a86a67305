package recorder

import (
	"context"
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
// Event, and with that API server.
func bubble(t *testing.T, test func(*testing.T, *Recorder, *fakes.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t)
		server.Before("create", "events", math.MaxInt, func(context.Context) error {
			time.Sleep(500 * time.Millisecond)
			return nil
		})
		kube := kubernetes.NewForConfigOrDie(server.Config)
		test(t, must.Get(New(t.Context(), kube, "test-controller", scheme))(t), server)
	})
}

// scheme has Pods, but not Deployments.
var scheme = runtime.NewScheme()

func init() { utilruntime.Must(corev1.AddToScheme(scheme)) }

var pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}

func TestFlushWaitsForTheEventsUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		events               int
		pause, timeout, took time.Duration // after each Event; of Flush
		written              int
	}{
		"the last one":             {1, 0, time.Minute, 500 * time.Millisecond, 1},
		"four are written at once": {8, 0, time.Minute, time.Second, 8},
		"no longer than its limit": {10, time.Millisecond, time.Second, time.Second, 8},
		"a burst":                  {3000, time.Millisecond, time.Hour, 372003 * time.Millisecond, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, recorder *Recorder, server *fakes.Server) {
				for range test.events {
					recorder.Eventf(pod, nil, "Normal", "Burst", "Test", "one of many")
					time.Sleep(test.pause)
				}
				begin := time.Now()
				recorder.Flush(test.timeout)

				written := len(server.List(eventsv1.SchemeGroupVersion.WithResource("events")))
				if took := time.Since(begin); took != test.took || written != test.written {
					t.Errorf("Flush took %v, and %d Events are written; want %v and %d", took, written,
						test.took, test.written)
				}
				time.Sleep(time.Minute) // lets the writers finish before the bubble ends
			})
		})
	}
}

func TestEventsThatCannotBeWrittenTakeLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakes.New(t)
		recorder := must.Get(New(t.Context(), kubernetes.NewForConfigOrDie(server.Config), "", scheme))(t)
		server.Before("create", "events", math.MaxInt, func(ctx context.Context) error {
			<-ctx.Done() // the API server never answers
			return ctx.Err()
		})
		for range 2 * maxPending {
			recorder.Eventf(pod, nil, "Normal", "Burst", "Test", "one of many")
		}
		if got := recorder.queue.Len(); got > maxPending {
			t.Errorf("%d Events wait, want %d at most", got, maxPending)
		}
		time.Sleep((maxPending/writers + 1) * writeTimeout)
		if got := recorder.queue.Len(); got > 0 {
			t.Errorf("%d Events wait: the writers hang", got)
		}
		recorder.Flush(0)
	})
}

func TestEventThatCannotBeRecordedDoesNotHoldUpFlush(t *testing.T) {
	bubble(t, func(t *testing.T, recorder *Recorder, _ *fakes.Server) {
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
	other := pod.DeepCopy()
	other.Namespace = "other"
	for namespace, test := range map[string]struct {
		regarding, related runtime.Object
		about              string
	}{
		"other":   {other, node, "Pod web, Node worker"},
		"default": {node, nil, "Node worker"}, // a node is in no namespace
	} {
		kube := kubefake.NewClientset()
		recorder := must.Get(New(t.Context(), kube, "test-controller", scheme))(t)
		recorder.Eventf(test.regarding, test.related, "Warning", "Failed", "Create", "it is %d", 7)
		recorder.Flush(time.Minute)

		list, err := kube.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
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
	}
}
