package apiserver

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Server is an API server. It has no goroutines.
type Server struct {
	// OnWrite, if it is set, is called for each write, while the server is locked: it must not make
	// requests.
	OnWrite func(*Request, Write)
	// Admit, if it is set, changes an object before it is stored, as a mutating admission does. It must
	// not make requests.
	Admit func(*Request, *unstructured.Unstructured)

	mu        sync.Mutex
	kinds     map[schema.GroupVersionResource]*kind  // nothing is added after New
	tables    map[schema.GroupVersionResource]*table // of what is stored
	revision  int64
	noStreams bool
	uids      int64
	suffixes  int
	encoded   sync.Map // JSON of what is stored: []byte by *unstructured.Unstructured
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
	Object *unstructured.Unstructured // an object, a list without its items, or a status
	Watch  *Watch

	items []*unstructured.Unstructured // of a list; otherwise nil
	raw   []byte                       // of what is not about objects
	media string                       // of raw, if it is not JSON
}

// New returns a server with Kubernetes' own kinds, the kinds of the CustomResourceDefinitions, and
// the namespaces that each cluster has.
func New(crds ...*CRD) *Server {
	s := &Server{kinds: maps.Clone(builtin()), tables: map[schema.GroupVersionResource]*table{}}
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem,
		metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		r := &Request{Verb: "create", Resource: namespaces, kind: s.kinds[namespaces]}
		namespace := r.kind.newObject()
		namespace.SetName(name)
		must(s.create(r, namespace))
	}
	for _, crd := range crds {
		s.kinds[crd.kind.gvr] = crd.kind
	}
	return s
}

// Config returns a configuration for client-go. Requests go through i, which may be nil.
func (s *Server) Config(i Interceptor) *rest.Config {
	return &rest.Config{Host: "http://apiserver.invalid", Transport: client{s, i}, QPS: -1}
}

type client struct {
	server      *Server
	interceptor Interceptor
}

// RoundTrip implements http.RoundTripper.
func (c client) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	response, err := c.answer(r, body)
	header := http.Header{}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		failure := status.Status()
		if d := failure.Details; d != nil && d.RetryAfterSeconds > 0 {
			header.Set("Retry-After", strconv.Itoa(int(d.RetryAfterSeconds)))
		}
		response = &Response{Code: int(failure.Code), Object: asObject(statusKind, &failure)}
	} else if err != nil {
		return nil, err
	}
	result := &http.Response{StatusCode: response.Code, Header: header, ContentLength: -1, Request: r}
	header.Set("Content-Type", cmp.Or(response.media, runtime.ContentTypeJSON))
	if result.Body = response.Watch; response.Watch == nil {
		text := c.server.encodeResponse(response, r.Header.Get("Accept"))
		result.Body = io.NopCloser(bytes.NewReader(text))
	}
	return result, nil
}

func (c client) answer(r *http.Request, body []byte) (*Response, error) {
	request, err := c.server.parse(r, body)
	if err != nil {
		return nil, badRequest(err)
	}
	request.context, request.interceptor = r.Context(), c.interceptor
	do := func() (*Response, error) { return c.server.serve(request) }
	if c.interceptor == nil {
		return do()
	}
	return c.interceptor.Serve(r.Context(), request, do)
}

var statusKind = metav1.Unversioned.WithKind("Status")

// refusal returns an error with a status that no function of apierrors has.
func refusal(code int, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message}}
}

// withStatus returns an error with a status, which is this one if it has none.
func withStatus(err error, code int, reason metav1.StatusReason) error {
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		return err
	}
	return refusal(code, reason, err.Error())
}

func badRequest(err error) error {
	return withStatus(err, http.StatusBadRequest, metav1.StatusReasonBadRequest)
}

// verbs has what answers the requests of a verb.
var verbs = map[string]func(*Server, *Request) (*Response, error){
	"": (*Server).discover, "get": (*Server).get, "list": (*Server).list, "watch": (*Server).watch,
	"create": (*Server).write, "update": (*Server).write, "patch": (*Server).write,
	"delete": (*Server).delete, "deletecollection": (*Server).deleteCollection,
}

func (s *Server) serve(r *Request) (*Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errs := validation.ValidateListOptions(&r.List, !s.noStreams); len(errs) > 0 {
		return nil, apierrors.NewInvalid(metav1.Kind("ListOptions"), "", errs)
	}
	response, err := verbs[r.Verb](s, r)
	return response, withStatus(err, http.StatusInternalServerError, "")
}

// DisableStreams makes this an API server without the feature WatchList.
func (s *Server) DisableStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noStreams = true
}

// encode returns an object as the client wants it.
func (s *Server) encode(object *unstructured.Unstructured, accept string) []byte {
	if strings.Contains(accept, "as=PartialObjectMetadata") && object.GetKind() != "Status" {
		return marshal(map[string]any{"kind": "PartialObjectMetadata",
			"apiVersion": "meta.k8s.io/v1", "metadata": object.Object["metadata"]})
	}
	if text, isStored := s.encoded.Load(object); isStored {
		return text.([]byte)
	}
	return marshal(object.Object)
}

func marshal(value any) []byte { return must(json.Marshal(value)) }

// must panics on what cannot be: what has come as JSON goes as JSON, for example.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (s *Server) encodeResponse(response *Response, accept string) []byte {
	switch {
	case response.raw != nil:
		return response.raw
	case response.items == nil:
		return s.encode(response.Object, accept)
	}
	items := make([]json.RawMessage, len(response.items))
	for i, item := range response.items {
		items[i] = s.encode(item, accept)
	}
	list := maps.Clone(response.Object.Object)
	if list["items"] = items; strings.Contains(accept, "as=PartialObjectMetadata") {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	return marshal(list)
}
