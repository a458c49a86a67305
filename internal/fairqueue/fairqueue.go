// Package fairqueue makes work queues in which no namespace holds up the others, and in which keys
// that somebody waits for go first. A plain work queue is first in, first out: if somebody creates
// 10,000 objects, everybody else waits for all of them.
package fairqueue

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// share says which keys are not urgent even if urgent ones wait: each fourth one.
const share = 4

// New returns a work queue. Keys for which urgent returns true go first, but leave a share to the
// others. Within both, namespaces take turns: before one gives its next key, each other namespace
// with waiting keys gives a key. urgent is called while the queue is locked: it must not use the queue.
func New(
	name string,
	limiter workqueue.TypedRateLimiter[cache.ObjectName],
	urgent func(cache.ObjectName) bool,
) workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[cache.ObjectName]{
		Name: name,
		Queue: &order{
			urgent: urgent, first: newLine(), rest: newLine(),
			promoted: sets.New[cache.ObjectName](), stale: sets.New[cache.ObjectName](),
		},
	})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(
		workqueue.TypedDelayingQueueConfig[cache.ObjectName]{Name: name, Queue: queue})
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{DelayingQueue: delaying})
}

// order is the order of the keys in a work queue, which calls one method at a time.
type order struct {
	urgent      func(cache.ObjectName) bool
	first, rest line
	// promoted has the keys that became urgent while they waited, and so wait in both lines. stale has
	// the keys that were taken from one line and are still in the other: they get that place if they
	// come back.
	promoted, stale sets.Set[cache.ObjectName]
	len, pops       int
}

// Push adds a key that is not waiting.
func (o *order) Push(key cache.ObjectName) {
	o.len++
	switch {
	case o.stale.Has(key):
		o.stale.Delete(key)
		o.Touch(key)
	case o.urgent(key):
		o.first.push(key)
	default:
		o.rest.push(key)
	}
}

// Touch is called if a key that is waiting is added again. It may have become urgent.
func (o *order) Touch(key cache.ObjectName) {
	if !o.promoted.Has(key) && o.urgent(key) {
		o.promoted.Insert(key)
		o.first.push(key)
	}
}

// Len returns the number of keys that are waiting.
func (o *order) Len() int { return o.len }

// Pop removes the next key. There must be one.
func (o *order) Pop() cache.ObjectName {
	o.len--
	o.pops++
	for {
		next := &o.first
		if o.first.last == nil || (o.pops%share == 0 && o.rest.last != nil) {
			next = &o.rest
		}
		key := next.pop()
		if o.stale.Has(key) {
			o.stale.Delete(key) // the place of a key that is gone
			continue
		}
		if o.promoted.Has(key) {
			o.promoted.Delete(key)
			o.stale.Insert(key)
		}
		return key
	}
}

// line holds keys whose namespaces take turns.
type line struct {
	namespaces map[string]*namespace
	last       *namespace // whose turn was last; it is nil if no key is waiting
}

// namespace holds the keys of one namespace, at least one, in the order in which they came.
type namespace struct {
	keys []cache.ObjectName
	next *namespace // whose turn is next, in a ring
}

func newLine() line { return line{namespaces: map[string]*namespace{}} }

func (l *line) push(key cache.ObjectName) {
	n := l.namespaces[key.Namespace]
	if n == nil {
		n = &namespace{}
		n.next = n
		if l.last != nil {
			n.next, l.last.next = l.last.next, n
		}
		l.namespaces[key.Namespace], l.last = n, n
	}
	n.keys = append(n.keys, key)
}

func (l *line) pop() cache.ObjectName {
	n := l.last.next
	key := n.keys[0]
	n.keys = n.keys[1:]
	switch {
	case len(n.keys) > 0:
		l.last = n
		return key
	case n == l.last:
		l.last = nil
	default:
		l.last.next = n.next
	}
	delete(l.namespaces, key.Namespace)
	return key
}
