package fakes

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// failures are the errors that requests get instead of an answer.
type failures struct {
	mu  sync.Mutex
	all []*failure
}

type failure struct {
	verb, resource string
	times          int
	err            error
}

// Fail makes the next requests of that verb and resource fail with err.
func (c Clients) Fail(verb, resource string, times int, err error) {
	c.failures.mu.Lock()
	defer c.failures.mu.Unlock()
	c.failures.all = append(c.failures.all, &failure{verb, resource, times, err})
}

// react is a reactor of all clients. Add adds it, because to add a reactor while other goroutines
// use the client would be a data race.
func (f *failures) react(action clienttesting.Action) (bool, runtime.Object, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, failure := range f.all {
		if failure.times > 0 && action.Matches(failure.verb, failure.resource) {
			failure.times--
			return true, nil, failure.err
		}
	}
	return false, nil, nil
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
