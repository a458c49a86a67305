// Package recorder records Events as client-go's recorder does, but writes only a few at a time, even
// in a burst, and does not lose the last ones before the process ends. client-go's recorder starts a
// goroutine for each Event, and it has no way to wait until they are written.
package recorder

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"
	eventutil "k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/tools/reference"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// writers is how many Events are written at a time. More would compete with the requests of the
// controller's workers, and fewer would fall far behind them.
const writers = 4

// Events must not fill the memory, so what comes after maxPending is dropped. A request takes no longer
// than writeTimeout, with its retries and its wait for --kube-api-qps.
const maxPending, writeTimeout = 10_000, 10 * time.Second

// Recorder writes Events in the background, several at a time.
type Recorder struct {
	client     kubernetes.Interface
	schemes    []*runtime.Scheme
	controller string
	instance   string
	queue      workqueue.TypedInterface[*eventsv1.Event]
	pending    sync.WaitGroup
	lastName   atomic.Int64 // the nanoseconds in the name of the last Event
}

var _ events.EventRecorder = &Recorder{}

// New returns a Recorder that writes Events through client in the name of a controller. They can be
// about the types that the schemes have, such as Scheme of a clientset's scheme package.
func New(
	ctx context.Context, client kubernetes.Interface, controller string, schemes ...*runtime.Scheme,
) (*Recorder, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("naming this process in Events: %w", err)
	}
	r := &Recorder{
		client:     client,
		schemes:    schemes,
		controller: controller,
		instance:   controller + "-" + hostname,
		queue:      workqueue.NewTyped[*eventsv1.Event](),
	}
	for range writers {
		go r.write(context.WithoutCancel(ctx)) // Flush decides when it ends
	}
	return r, nil
}

// Eventf records an Event about regarding, and does not wait until it is written. If an Event
// cannot be recorded or written, that is only logged: nothing depends on it. Equal Events are not
// counted in a series, because a controller should record only changes.
func (r *Recorder) Eventf(
	regarding, related runtime.Object, eventType, reason, action, note string, args ...any,
) {
	event, err := r.newEvent(regarding, related)
	if err != nil {
		klog.Background().Error(err, "Recording an event failed", "reason", reason)
		return
	}
	event.Type, event.Reason, event.Action = eventType, reason, action
	event.Note = fmt.Sprintf(note, args...)
	if r.queue.Len() >= maxPending {
		klog.Background().V(2).Info("Dropping an event", "note", event.Note)
		return
	}
	r.pending.Add(1)
	r.queue.Add(event)
}

// newEvent returns an Event that says when, by whom and about which object, but not what happened.
func (r *Recorder) newEvent(regarding, related runtime.Object) (*eventsv1.Event, error) {
	now := metav1.NowMicro()
	about, err := r.referTo(regarding)
	if err != nil {
		return nil, fmt.Errorf("referring to the object of an event: %w", err)
	}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      eventutil.GenerateEventName(about.Name, r.nextName(now.UnixNano())),
			Namespace: about.Namespace,
		},
		EventTime:           now,
		ReportingController: r.controller,
		ReportingInstance:   r.instance,
		Regarding:           *about,
	}
	if event.Namespace == "" { // the object is in no namespace
		event.Namespace = metav1.NamespaceDefault
	}
	if related == nil {
		return event, nil
	}
	if event.Related, err = r.referTo(related); err != nil {
		return nil, fmt.Errorf("referring to the related object of an event: %w", err)
	}
	return event, nil
}

// referTo returns a reference to an object, from the first scheme that knows its kind.
func (r *Recorder) referTo(object runtime.Object) (to *corev1.ObjectReference, err error) {
	for _, scheme := range r.schemes {
		if to, err = reference.GetReference(scheme, object); err == nil {
			break
		}
	}
	return to, err
}

// nextName returns now or, if another Event has that name already, the first time after that. Some
// clocks show the same time more than once, and so does that of a synctest bubble.
func (r *Recorder) nextName(now int64) int64 {
	for {
		last := r.lastName.Load()
		next := max(now, last+1)
		if r.lastName.CompareAndSwap(last, next) {
			return next
		}
	}
}

// write writes one Event after the other until the queue is shut down.
func (r *Recorder) write(ctx context.Context) {
	for {
		event, shutdown := r.queue.Get()
		if shutdown {
			return
		}
		timeout, cancel := context.WithTimeout(ctx, writeTimeout)
		_, err := r.client.EventsV1().Events(event.Namespace).Create(timeout, event, metav1.CreateOptions{})
		cancel()
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Writing an event failed", "err", err, "note", event.Note)
		}
		r.queue.Done(event)
		r.pending.Done()
	}
}

// Flush waits until the Events recorded so far are written, but no longer than timeout. Then it
// ends the Recorder.
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
}
