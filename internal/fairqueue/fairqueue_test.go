package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // as in the program, it has metrics
)

type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

var limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
	time.Millisecond, time.Second)

// newQueue returns a queue in which the keys are urgent whose names begin with "!".
func newQueue(t *testing.T) queue {
	q := New("", limiter, func(key cache.ObjectName) bool { return key.Name[0] == '!' })
	t.Cleanup(q.ShutDown)
	return q
}

func add(q queue, keys string) {
	for key := range strings.FieldsSeq(keys) {
		namespace, name, _ := strings.Cut(key, "/")
		q.Add(cache.NewObjectName(namespace, name))
	}
}

// expect takes as many keys as want has, and checks that they are those, in this order.
func expect(t *testing.T, q queue, want string) {
	t.Helper()
	var got []string
	for range strings.FieldsSeq(want) {
		key, _ := q.Get()
		q.Done(key)
		got = append(got, key.String())
	}
	if got := strings.Join(got, " "); got != want {
		t.Fatalf("order: got %s, want %s", got, want)
	}
}

func TestNamespacesTakeTurns(t *testing.T) {
	q := newQueue(t)
	add(q, "a/1 a/2 a/3 a/4 a/1 b/1 b/2 c/1")
	expect(t, q, "a/1 b/1 c/1 a/2")
	add(q, "c/2 b/3")
	expect(t, q, "b/2 a/3 c/2 b/3 a/4")
}

// A key waits for one key of each other namespace, and once more for each key of its own namespace
// that was there before.
func TestNoNamespaceWaitsForMoreThanOneKeyOfEachOther(t *testing.T) {
	for _, name := range []string{"", "!"} {
		q, random := newQueue(t), rand.New(rand.NewPCG(1, 2))
		var taken []cache.ObjectName
		waiting, since := map[string]int{}, map[cache.ObjectName]int{}
		own := map[cache.ObjectName]int{} // how many keys of its own namespace each waits for
		for i := range 10_000 {
			if q.Len() == 0 || random.IntN(5) > 1 {
				namespace := fmt.Sprint(random.IntN(1 + random.IntN(20)))
				key := cache.NewObjectName(namespace, fmt.Sprint(name, i))
				own[key], since[key] = waiting[namespace], len(taken)
				waiting[namespace]++
				q.Add(key)
				continue
			}
			key, _ := q.Get()
			waiting[key.Namespace]--
			of := map[string]int{}
			for _, other := range taken[since[key]:] {
				of[other.Namespace]++
			}
			for namespace, count := range of {
				if count > own[key]+1 {
					t.Fatalf("%s waited for %d keys of namespace %s, and for %d of its own",
						key, count, namespace, own[key])
				}
			}
			taken = append(taken, key)
		}
	}
}

func TestUrgentKeysGoFirstAndLeaveAFourthToTheOthers(t *testing.T) {
	q := newQueue(t)
	add(q, "a/1 a/2 a/3 b/!1 b/!2 c/!1 b/!3 b/!4 b/!5")
	expect(t, q, "b/!1 c/!1 b/!2 a/1 b/!3 b/!4 b/!5 a/2 a/3")
}

func TestKeyThatBecomesUrgentGoesFirst(t *testing.T) {
	var urgent []string
	q := New("", limiter, func(key cache.ObjectName) bool { return slices.Contains(urgent, key.Name) })
	defer q.ShutDown()
	add(q, "a/1 a/2 a/3 a/4")
	urgent = []string{"2", "3"}
	add(q, "a/3 a/2 a/3 a/1")
	if q.Len() != 4 {
		t.Errorf("Len: got %d, want 4", q.Len())
	}
	expect(t, q, "a/3 a/2 a/1")

	urgent = nil
	add(q, "a/5 a/3") // a/3 gets its old place, before a/4
	expect(t, q, "a/3 a/4 a/5")
	add(q, "a/6") // no key has left a place before it
	expect(t, q, "a/6")
	if q.Len() != 0 {
		t.Errorf("Len: got %d, want 0", q.Len())
	}
}
