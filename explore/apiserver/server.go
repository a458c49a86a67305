package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Server is an API server. It has no goroutines.
type Server struct {
	mu        sync.Mutex
	kinds     map[schema.GroupVersionResource]*kind
	tables    map[schema.GroupVersionResource]*table // of what is stored
	revision  int64
	compacted int64
	noStreams bool
	uids      int64
	suffixes  int64

	encodedMu sync.Mutex
	encoded   map[*unstructured.Unstructured][]byte // JSON of what is stored
}

// An Interceptor stands between a client and the server.
type Interceptor interface {
	// Serve returns the answer to a request. do lets the server answer it; it may be called later,
	// from another goroutine, or never. If the error is an apierrors.APIStatus, the client gets that
	// status as the answer. Any other error is that of a connection that failed.
	Serve(ctx context.Context, r *Request, do func() (*Response, error)) (*Response, error)
	// Event is called for each event of a watch, in order, while the server is locked, so that it
	// must not make requests. w.Send shows an event to the client, now or later. The event's object
	// is the server's: it must not be changed.
	Event(w *Watch, e watch.Event)
}

// Response is the server's answer to a request. Its objects are the server's: change a copy.
type Response struct {
	Code   int
	Object *unstructured.Unstructured // an object, a list or a status; nil for a watch
	Watch  *Watch

	items []*unstructured.Unstructured // of a list
	body  any                          // of discovery
	text  string                       // of /healthz and the like
	media string                       // if it is not what the client asked for
}

// New returns a server with Kubernetes' own kinds, the kinds of the CustomResourceDefinitions, and
// the namespace default. The definitions must not be changed any more: servers share what is made
// of them.
func New(crds ...*apiextensionsv1.CustomResourceDefinition) (*Server, error) {
	s := &Server{
		kinds:   make(map[schema.GroupVersionResource]*kind, 100),
		tables:  map[schema.GroupVersionResource]*table{},
		encoded: map[*unstructured.Unstructured][]byte{},
	}
	for _, k := range builtin() {
		s.kinds[k.gvr] = k
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace",
		"apiVersion": "v1", "metadata": map[string]any{"name": metav1.NamespaceDefault}}}
	_, err := s.createNamed(&Request{Verb: "create", kind: s.kinds[namespaces]}, namespace)
	if err != nil {
		return nil, err
	}
	for _, crd := range crds {
		made, err := customKinds(crd)
		if err != nil {
			return nil, err
		}
		for _, k := range made.kinds {
			s.kinds[k.gvr] = k
		}
		object := maps.Clone(made.object)
		metadata := maps.Clone(object["metadata"].(map[string]any))
		metadata["generation"], object["metadata"] = int64(1), metadata
		s.setIdentity(metadata)
		s.commit(&Request{kind: s.kinds[crdResource]}, nil, &unstructured.Unstructured{Object: object},
			false)
	}
	return s, nil
}

// Config returns a configuration for client-go. Requests go through i, which may be nil.
func (s *Server) Config(i Interceptor) *rest.Config {
	return &rest.Config{Host: "http://apiserver.invalid", Transport: s.Client(i), QPS: -1}
}

// Client returns what answers requests. They go through i, which may be nil.
func (s *Server) Client(i Interceptor) http.RoundTripper { return client{s, i} }

type client struct {
	server      *Server
	interceptor Interceptor
}

// RoundTrip implements http.RoundTripper.
func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response, err := c.answer(r, body)
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
		return failure(r, status.Status()), nil
	case err != nil:
		return nil, err
	case response.Watch != nil:
		return reply(r, http.StatusOK, response.Watch), nil
	}
	answer := c.server.encodeResponse(response, r.Header.Get("Accept"))
	result := reply(r, response.Code, io.NopCloser(bytes.NewReader(answer)))
	switch {
	case response.media != "":
		result.Header.Set("Content-Type", response.media)
	case response.body != nil:
		result.Header.Set("Content-Type", runtime.ContentTypeJSON)
	}
	return result, nil
}

// answer returns the server's answer to a request.
func (c client) answer(r *http.Request, body []byte) (*Response, error) {
	request, err := c.server.parse(r, body)
	if err != nil {
		return nil, err
	}
	do := func() (*Response, error) { return c.server.serve(r.Context(), c.interceptor, request) }
	if c.interceptor == nil {
		return do()
	}
	return c.interceptor.Serve(r.Context(), request, do)
}

func reply(r *http.Request, code int, body io.ReadCloser) *http.Response {
	header := http.Header{"Content-Type": {mediaType(r.Header.Get("Accept"))}}
	return &http.Response{Status: strconv.Itoa(code) + " " + http.StatusText(code),
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: body, ContentLength: -1, Request: r}
}

// refusal returns an error with a status that no function of apierrors has.
func refusal(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message}}
}

// failure returns an answer that is an error.
func failure(r *http.Request, status metav1.Status) *http.Response {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	body, _ := json.Marshal(status)
	response := reply(r, int(status.Code), io.NopCloser(bytes.NewReader(body)))
	response.Header.Set("Content-Type", runtime.ContentTypeJSON)
	if d := status.Details; d != nil && d.RetryAfterSeconds > 0 {
		response.Header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
	}
	return response
}

// serve answers a request.
func (s *Server) serve(ctx context.Context, i Interceptor, r *Request) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	response, err := s.dispatch(ctx, i, r)
	if status := apierrors.APIStatus(nil); err != nil && !errors.As(err, &status) {
		err = refusal(http.StatusInternalServerError, "", err.Error())
	}
	return response, err
}

func (s *Server) dispatch(ctx context.Context, i Interceptor, r *Request) (*Response, error) {
	switch r.Verb {
	case "":
		return s.discover(r)
	case "get":
		return s.get(r)
	case "list":
		return s.list(r)
	case "watch":
		return s.watch(ctx, i, r)
	case "create":
		return s.create(r)
	case "update":
		return s.update(r)
	case "patch":
		return s.patch(r)
	case "delete":
		return s.delete(r)
	case "deletecollection":
		return s.deleteCollection(r)
	}
	return nil, apierrors.NewMethodNotSupported(r.Resource.GroupResource(), r.Verb)
}

// DisableStreams makes this an API server without the feature WatchList.
func (s *Server) DisableStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noStreams = true
}

// Compact drops what was before the last write: a watch or list of that gets status 410.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compacted = s.revision
}

// Revision returns the revision of the last write.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Resources returns the resources that have had objects, sorted.
func (s *Server) Resources() []schema.GroupVersionResource {
	s.mu.Lock()
	defer s.mu.Unlock()
	var resources []schema.GroupVersionResource
	for resource := range s.tables {
		resources = append(resources, resource)
	}
	slices.SortFunc(resources, func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
	return resources
}
