// Package recorder records Events as client-go's recorder does, but loses none: neither those of a
// burst, nor the last ones before the process ends.
package recorder

import (
	"context"
	"fmt"
	"sync"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// Recorder is client-go's recorder with two things added: a queue that takes a burst, and Flush.
// client-go's broadcaster drops what does not fit, and can only be shut down, which loses what is
// on its way, and that is the last thing that happened.
type Recorder struct {
	recorder    events.EventRecorder
	broadcaster events.EventBroadcaster
	queue       workqueue.TypedInterface[*eventsv1.Event]
	pending     sync.WaitGroup
}

var _ events.EventRecorder = &Recorder{}

// New returns a Recorder that writes Events through client, one after the other, in the name of a
// controller. They can be about objects of the types that addToScheme adds: AddToScheme of a
// clientset's scheme package.
func New(
	ctx context.Context, client kubernetes.Interface, controller string,
	addToScheme ...func(*runtime.Scheme) error,
) (*Recorder, error) {
	scheme := runtime.NewScheme() // its own, because client-go's is shared by the whole process
	for _, add := range addToScheme {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme of the event recorder: %w", err)
		}
	}
	// No sink: the watcher below writes. There is no series to count up, because a controller
	// should record changes only.
	broadcaster := events.NewBroadcaster(nil)
	r := &Recorder{
		recorder:    broadcaster.NewRecorder(scheme, controller),
		broadcaster: broadcaster,
		queue:       workqueue.NewTyped[*eventsv1.Event](),
	}
	// The broadcaster's own queue holds 1,000 Events and drops what comes then.
	_, err := broadcaster.StartEventWatcher(func(object runtime.Object) {
		r.queue.Add(object.(*eventsv1.Event))
	})
	if err != nil {
		return nil, fmt.Errorf("starting the event recorder: %w", err)
	}
	go r.write(context.WithoutCancel(ctx), client) // Flush decides when it ends
	return r, nil
}

// write writes one Event after the other, until the queue is shut down: the work of the controller
// comes first.
func (r *Recorder) write(ctx context.Context, client kubernetes.Interface) {
	for {
		event, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		_, err := client.EventsV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Writing an event failed", "err", err, "note", event.Note)
		}
		r.queue.Done(event)
		r.pending.Done()
	}
}

// Eventf records an Event about regarding. It does not wait for it to be written; what the API
// server refuses is logged.
func (r *Recorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	r.pending.Add(1)
	r.recorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

// Flush waits until the Events recorded so far are written, for timeout at most, and ends the
// Recorder.
func (r *Recorder) Flush(timeout time.Duration) {
	written := make(chan struct{})
	go func() {
		r.pending.Wait()
		close(written)
	}()
	select {
	case <-written:
	case <-time.After(timeout):
	}
	r.queue.ShutDown()
	r.broadcaster.Shutdown()
}
