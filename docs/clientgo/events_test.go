package clientgo_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"

	"example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

// An Event names the object that it is about, perhaps a related one, what was done (action), why
// (reason), and what a person should know (note).
func Example_eventTellsWhatHappenedToWhom() {
	broadcaster := events.NewBroadcaster(nil)
	defer broadcaster.Shutdown()
	written := make(chan *eventsv1.Event)
	broadcaster.StartEventWatcher(func(event runtime.Object) { written <- event.(*eventsv1.Event) })
	recorder := broadcaster.NewRecorder(scheme.Scheme, "sample-controller")

	recorder.Eventf(newFoo("a", "web"), nil, corev1.EventTypeNormal, "DeploymentCreated",
		"CreateDeployment", "Created Deployment %q", "web")
	event := <-written
	fmt.Println(event.Type, event.Regarding.Kind, event.Regarding.Name)
	fmt.Println(event.Action, event.Reason, event.Note)
	fmt.Println(event.ReportingController)
	// Output:
	// Normal Foo a
	// CreateDeployment DeploymentCreated Created Deployment "web"
	// sample-controller
}

// Eventf does not wait. While one Event is being written, up to a thousand wait. client-go drops
// the rest silently.
func TestEventsThatDoNotFitAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broadcaster := events.NewBroadcaster(nil)
		defer broadcaster.Shutdown()
		written, hang := 0, make(chan struct{})
		broadcaster.StartEventWatcher(func(runtime.Object) {
			<-hang
			written++
		})
		recorder := broadcaster.NewRecorder(scheme.Scheme, "sample-controller")
		for range 1500 {
			recorder.Eventf(newFoo("a", "web"), nil, corev1.EventTypeNormal, "Reason", "Action", "")
		}
		synctest.Wait()
		close(hang)
		synctest.Wait()
		if written != 1001 {
			t.Errorf("Events written: got %d, want 1001", written)
		}
	})
}

// If client-go writes the Events itself, it counts a second Event that differs only in the note as
// a repetition of the first. The second note is lost.
func TestRepeatedEventIsCountedAndItsNoteIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
		defer broadcaster.Shutdown()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		broadcaster.StartRecordingToSinkWithContext(ctx)
		recorder := broadcaster.NewRecorder(scheme.Scheme, "sample-controller")
		for _, note := range []string{"first", "second"} {
			recorder.Eventf(newFoo("a", "web"), nil, corev1.EventTypeNormal, "Reason", "Action", note)
			time.Sleep(time.Second) // virtual
		}

		list, err := client.EventsV1().Events("default").List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatalf("Events: got %d (error %v), want 1", len(list.Items), err)
		}
		if event := list.Items[0]; event.Series.Count != 2 || event.Note != "first" {
			t.Errorf("Event: got count %d and note %q, want 2 and %q",
				event.Series.Count, event.Note, "first")
		}
	})
}
