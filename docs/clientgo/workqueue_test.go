package clientgo_test

import (
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// keyA and keyB are keys of two Foos.
var keyA, keyB = cache.NewObjectName("default", "a"), cache.NewObjectName("default", "b")

// newQueue returns a queue like that of this controller.
func newQueue() workqueue.TypedRateLimitingInterface[cache.ObjectName] {
	return workqueue.NewTypedRateLimitingQueue(newLimiter())
}

// newLimiter returns the rate limiter of this controller.
func newLimiter() workqueue.TypedRateLimiter[cache.ObjectName] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
		5*time.Millisecond, 30*time.Second)
}

// However often a key is added while it waits, it waits once, in its old place.
func Example_oneKeyWaitsOnce() {
	queue := newQueue()
	defer queue.ShutDown()
	queue.Add(keyA)
	queue.Add(keyB)
	queue.Add(keyA)

	fmt.Println("waiting:", queue.Len())
	key, _ := queue.Get()
	fmt.Println("first:", key)
	// Output:
	// waiting: 2
	// first: default/a
}

// The queue never gives two workers the same key. If a key is added while a worker has it, it is
// not lost: it waits, out of sight, until Done.
func Example_oneKeyIsNeverWithTwoWorkers() {
	queue := newQueue()
	defer queue.ShutDown()
	queue.Add(keyA)
	key, _ := queue.Get()

	queue.Add(keyA) // an event comes while a is synced
	fmt.Println("keys for other workers:", queue.Len())
	queue.Done(key)
	fmt.Println("after Done:", queue.Len())
	// Output:
	// keys for other workers: 0
	// after Done: 1
}

// Each failure of a key doubles its delay, up to a maximum. Other keys have delays of their own.
// Forget resets the delay.
func Example_delaysDouble() {
	limiter := newLimiter()
	var delays []time.Duration
	for range 15 {
		delays = append(delays, limiter.When(keyA))
	}
	fmt.Println(delays)
	fmt.Println("another key:", limiter.When(keyB))
	limiter.Forget(keyA)
	fmt.Println("after Forget:", limiter.When(keyA))
	// Output:
	// [5ms 10ms 20ms 40ms 80ms 160ms 320ms 640ms 1.28s 2.56s 5.12s 10.24s 20.48s 30s 30s]
	// another key: 5ms
	// after Forget: 5ms
}
