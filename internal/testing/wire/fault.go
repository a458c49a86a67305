package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
)

// Why a request or a watch has ended.
var (
	errCut     = errors.New("the connection was cut")
	errExpired = errors.New("the history has expired")
	errClosed  = errors.New("the proxy is closed")
)

// CutWatches closes the connections of all watches of a resource, or of all if it is empty.
func (p *Proxy) CutWatches(resource string) {
	p.forWatches(resource, func(x *exchange) { x.cancel(errCut) })
}

// ExpireWatches ends all watches of a resource, or all if it is empty, as if the API server had
// forgotten its history: with 410 Expired. The next watch of the resource gets the same answer if
// it begins at a resourceVersion, so that the program must list.
func (p *Proxy) ExpireWatches(resource string) {
	p.forWatches(resource, func(x *exchange) {
		p.expired[x.event.Resource] = true
		x.expire(errExpired)
	})
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
	e := &x.event
	switch {
	case e.isWrite():
		code, p.failNext = p.failNext, 0
	case p.expired[e.Resource] && (e.Verb == "watch" || e.Verb == "list"):
		delete(p.expired, e.Resource)
		if e.Verb == "watch" && x.since != "" && x.since != "0" {
			code = http.StatusGone
		}
	}
	return code
}

// failure returns the answer of an API server that fails with that HTTP status.
func failure(code int) *http.Response {
	body, _ := json.Marshal(status(code)) // never fails
	response := &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {runtime.ContentTypeJSON}},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response
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

// frameOf returns an event as a watch of that media type sends it.
func frameOf(mediaType string, typ apiwatch.EventType, object runtime.Object) ([]byte, error) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType)
	if !ok || info.StreamSerializer == nil {
		return nil, errCut // there is no better way
	}
	data, err := runtime.Encode(info.Serializer, object)
	if err != nil {
		return nil, err
	}
	var frame bytes.Buffer
	writer := info.StreamSerializer.NewFrameWriter(&frame)
	err = info.StreamSerializer.Encode(&metav1.WatchEvent{
		Type: string(typ), Object: runtime.RawExtension{Raw: data},
	}, writer)
	return frame.Bytes(), err
}
