// Package fakes gives tests an API server in memory, and a controller's clients for it. It has
// neither controllers nor a garbage collector: claims about those are tested on a real control
// plane, in test/.
package fakes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	k8smetrics "k8s.io/component-base/metrics"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/testing/must"
)

// Server is an API server in memory. What the controller under test asks for goes through Config: it
// is counted, and can fail or be late. What a test asks for goes through Others.
type Server struct {
	*apiserver.Server
	Config, Others *rest.Config
	// Watched, if it is not nil, is called for each request for objects through Config.
	Watched func(*apiserver.Request)

	mu       sync.Mutex
	requests []*apiserver.Request
	failures []*failure
	lag      map[string]time.Duration // by resource
}

type failure struct {
	verb, resource string
	times          int
	answer         func(context.Context) error
}

// New returns a Server that also serves what is in the files of CustomResourceDefinitions.
func New(t testing.TB, crds ...string) *Server {
	t.Helper()
	kinds := must.Get(apiserver.ReadCRDs(crds...))(t)
	s := &Server{Server: apiserver.New(kinds...), lag: map[string]time.Duration{}}
	s.Config, s.Others = s.Server.Config(s), s.Server.Config(nil)
	return s
}

// Fail makes the next requests of that verb and resource, such as foos/status, fail with err.
func (s *Server) Fail(verb, resource string, times int, err error) {
	s.Before(verb, resource, times, func(context.Context) error { return err })
}

// Before calls do, with the request's context, before the next requests of that verb and resource are
// answered. If it returns an error, that is the answer.
func (s *Server) Before(verb, resource string, times int, do func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures = append(s.failures, &failure{verb, resource, times, do})
}

// Lag delays each event of the controller's watches of a resource from now on.
func (s *Server) Lag(resource string, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lag[resource] = delay
}

// Requests returns the requests so far of that verb and resource. The verb "*" stands for all
// writes, and the resource "*" for all resources.
func (s *Server) Requests(verb, resource string) (found []*apiserver.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		reads := slices.Contains([]string{"", "get", "list", "watch"}, r.Verb)
		if (verb == r.Verb || verb == "*" && !reads) && (resource == "*" || isAbout(r, resource)) {
			found = append(found, r)
		}
	}
	return found
}

// ClearRequests forgets the requests so far.
func (s *Server) ClearRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Serve implements apiserver.Interceptor.
func (s *Server) Serve(
	ctx context.Context, r *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	if answer := s.note(r); answer != nil {
		if err := answer(ctx); err != nil {
			return nil, err
		}
	}
	return do()
}

// note remembers a request, and returns what Before says about it.
func (s *Server) note(r *apiserver.Request) func(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	if s.Watched != nil && r.Verb != "" {
		s.Watched(r)
	}
	for _, f := range s.failures {
		if f.times > 0 && f.verb == r.Verb && isAbout(r, f.resource) {
			f.times--
			return f.answer
		}
	}
	return nil
}

// Event implements apiserver.Interceptor.
func (s *Server) Event(w *apiserver.Watch, e watch.Event) {
	s.mu.Lock()
	delay := s.lag[w.Request.Resource.Resource]
	s.mu.Unlock()
	if delay > 0 {
		time.AfterFunc(delay, func() { w.Send(e) })
		return
	}
	w.Send(e)
}

// isAbout reports whether a request is about a resource, such as foos, or about a subresource, such as
// foos/status. The requests of its subresources are about a resource, too.
func isAbout(r *apiserver.Request, resource string) bool {
	return resource == r.Resource.Resource || resource == r.Resource.Resource+"/"+r.Subresource
}

// CountErrors counts the errors that are reported until the test ends. It replaces the default
// handlers: one of them sleeps for the time between a bubble's clock and the real one.
func CountErrors(t *testing.T) *atomic.Int32 {
	handlers := utilruntime.ErrorHandlers
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
	var count atomic.Int32
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) { count.Add(1) },
	}
	return &count
}

// Gather returns what a registry serves, by name and labels: `name{label="value"}`.
func Gather(t *testing.T, registry k8smetrics.KubeRegistry) map[string]float64 {
	t.Helper()
	families := must.Get(registry.Gather())(t)
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			var labels []string
			for _, label := range metric.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			name := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			values[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return values
}
