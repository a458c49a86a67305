package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
)

// Why a request or a watch has ended.
var (
	errCut     = errors.New("the connection was cut")
	errExpired = errors.New("the history has expired")
)

// CutWatches closes the connections of all watches of a resource, or of all if it is empty.
func (p *Proxy) CutWatches(resource string) {
	p.forWatches(resource, func(x *exchange) { x.cancel(errCut) })
}

// ExpireWatches ends all watches of a resource, or all if it is empty, as if the API server had
// forgotten its history: with 410 Expired. An informer lists then.
func (p *Proxy) ExpireWatches(resource string) {
	p.forWatches(resource, func(x *exchange) { x.expire(errExpired) })
}

func (p *Proxy) forWatches(resource string, do func(*exchange)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for x := range p.exchanges {
		if x.event.Verb == "watch" && (resource == "" || resource == x.event.Resource) {
			do(x)
		}
	}
}

// FailNextWrite answers the next write with that HTTP status. The API server does not get it. What
// is written to Leases and Events does not count.
func (p *Proxy) FailNextWrite(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failNext = code
}

// fault returns the HTTP status that x gets from the Proxy, or 0.
func (p *Proxy) fault(x *exchange) (code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x.event.isWrite() {
		code, p.failNext = p.failNext, 0
	}
	return code
}

// failure returns the answer of an API server that fails with that HTTP status.
func failure(code int) *http.Response {
	body, _ := json.Marshal(status(code)) // never fails
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

// status returns the Status of a failure.
func status(code int) *metav1.Status {
	status := apierrors.NewGenericServerResponse(
		code, "", schema.GroupResource{}, "", "", 1, false).ErrStatus
	if code == http.StatusGone { // NewGenericServerResponse does not know it
		status.Reason, status.Message = metav1.StatusReasonExpired, errExpired.Error()
	}
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Message = "injected: " + status.Message
	return &status
}

// encodeEvent returns an event as a watch sends it.
func encodeEvent(typ apiwatch.EventType, object runtime.Object) []byte {
	event := metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Object: object}}
	data, _ := json.Marshal(event) // never fails
	return append(data, '\n')
}

const forever = time.Duration(math.MaxInt64)

// gate holds back requests and watch events.
type gate struct {
	mu      sync.Mutex
	delay   time.Duration        // of each thing
	since   time.Time            // when delay was set
	holds   map[string]time.Time // until when the watches of a resource are held
	waiting []*held              // in the order of their arrival
	changed chan struct{}        // closed when delay, holds or held.free has changed
}

// held is a request or a watch event that may wait at the gate.
type held struct {
	owner   *exchange
	watch   string // the resource, if it is a watch event
	arrived time.Time
	free    bool // whatever the gate says
}

// Open lets everything pass at once, except what HoldWatch holds. So it is from the beginning.
func (g *gate) Open() { g.Slow(0) }

// Slow holds each request and each watch event for that long, counted from now if it waits already.
// Leases are never held, and neither are bookmarks and requests without a resource.
func (g *gate) Slow(delay time.Duration) {
	g.change(func() { g.delay, g.since = delay, time.Now() })
}

// Pause holds what Slow would hold, but without an end.
func (g *gate) Pause() { g.Slow(forever) }

// Step lets what has waited longest pass.
func (g *gate) Step() {
	g.change(func() {
		i := slices.IndexFunc(g.waiting, func(h *held) bool { return !h.free })
		if i >= 0 {
			g.waiting[i].free = true
		}
	})
}

// HoldWatch holds all events of the watches of a resource, such as deployments.apps, until that
// time has passed.
func (g *gate) HoldWatch(resource string, duration time.Duration) {
	g.change(func() { g.holds[resource] = time.Now().Add(duration) })
}

// Waiting returns how many requests and watch events wait.
func (g *gate) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// change makes all that waits look at the gate again.
func (g *gate) change(change func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change()
	close(g.changed)
	g.changed = make(chan struct{})
}

// enter makes h wait.
func (g *gate) enter(h *held) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.arrived = time.Now()
	g.waiting = append(g.waiting, h)
}

// wait returns when h may pass or, with the cause, when ctx is done.
func (g *gate) wait(ctx context.Context, h *held) error {
	for {
		left, changed := g.left(h)
		if left <= 0 {
			g.leave(func(other *held) bool { return other == h })
			return nil
		}
		select {
		case <-changed:
		case <-time.After(left):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave makes what is selected wait no more.
func (g *gate) leave(selected func(*held) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, selected)
}

// left returns how long h still has to wait, unless changed is closed before.
func (g *gate) left(h *held) (left time.Duration, changed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	begin := h.arrived
	if begin.Before(g.since) {
		begin = g.since
	}
	switch {
	case h.free:
		return 0, nil
	case g.delay == forever:
		return forever, g.changed
	}
	left = time.Until(begin.Add(g.delay))
	if h.watch != "" {
		left = max(left, time.Until(g.holds[h.watch]))
	}
	return left, g.changed
}
