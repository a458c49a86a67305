package clientgo_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
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

// Forget only resets the count of failures. Without Done, the key stays with its worker for ever.
func Example_forgetIsNotDone() {
	queue := newQueue()
	defer queue.ShutDown()
	queue.Add(keyA)
	key, _ := queue.Get()
	queue.AddRateLimited(key)
	fmt.Println("failures:", queue.NumRequeues(key))
	queue.Forget(key)
	fmt.Println("failures:", queue.NumRequeues(key))

	queue.Add(key)
	fmt.Println("keys for other workers:", queue.Len())
	// Output:
	// failures: 1
	// failures: 0
	// keys for other workers: 0
}

// If a key has two delays, the shorter one counts, and the key comes once.
func TestShorterDelayCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue()
		defer queue.ShutDown()
		begin := time.Now()
		queue.AddAfter(keyA, 15*time.Second)
		queue.AddAfter(keyA, time.Second)

		queue.Get()
		queue.Done(keyA)
		if waited := time.Since(begin); waited != time.Second {
			t.Errorf("the key came after %v, want after 1s", waited)
		}
		time.Sleep(time.Minute) // virtual
		if queue.Len() != 0 {
			t.Error("the key came twice, want once")
		}
	})
}

// Neither an Add nor a success cancels a delay: the key comes now, and again later.
func TestAddDoesNotReplaceADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := newQueue()
		defer queue.ShutDown()
		begin := time.Now()
		queue.AddAfter(keyA, 15*time.Second)
		for i, want := range []time.Duration{0, 15 * time.Second} {
			if i == 0 {
				queue.Add(keyA)
			}
			queue.Get()
			queue.Forget(keyA)
			queue.Done(keyA)
			if waited := time.Since(begin); waited != want {
				t.Errorf("Get %d: the key came after %v, want after %v", i+1, waited, want)
			}
		}
	})
}

// After ShutDown, the queue takes no keys and drops the delayed ones. It still gives out the keys
// that wait.
func Example_shutDownGivesOutWhatWaits() {
	queue := newQueue()
	queue.Add(keyA)
	queue.AddAfter(keyB, time.Hour)
	queue.ShutDown()
	queue.Add(keyB)

	fmt.Println(queue.Get())
	fmt.Println(queue.Get())
	// Output:
	// default/a false
	//  true
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

// client-go's default limiter also limits all keys together, to ten failures a second after the
// first hundred. So the first failure of the thousandth key delays it by a minute and a half. A key
// that keeps failing waits up to 1000s.
func TestDefaultLimiterMakesKeysWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.DefaultTypedControllerRateLimiter[int]()
		delays := map[int]time.Duration{}
		for key := 1; key <= 1000; key++ {
			delays[key] = limiter.When(key)
		}
		for key, want := range map[int]time.Duration{
			1: 5 * time.Millisecond, 100: 5 * time.Millisecond, 101: 100 * time.Millisecond,
			200: 10 * time.Second, 1000: 90 * time.Second,
		} {
			if got := delays[key].Round(time.Microsecond); got != want {
				t.Errorf("delay of key %d: got %v, want %v", key, got, want)
			}
		}
		for range 20 {
			time.Sleep(time.Hour) // virtual: the bucket is full again
			delays[1] = limiter.When(1)
		}
		if delays[1] != 1000*time.Second {
			t.Errorf("delay after 21 failures: got %v, want 1000s", delays[1])
		}
	})
}

// A client has a limit of its own, which delays requests, not keys. The default is 5 requests a
// second. A negative QPS means no limit.
func Example_clientsHaveALimitOfTheirOwn() {
	for _, qps := range []float32{0, 50, -1} {
		client := clientset.NewForConfigOrDie(&rest.Config{QPS: qps, Burst: 100})
		limiter := client.SamplecontrollerV1alpha1().RESTClient().GetRateLimiter()
		if limiter == nil {
			fmt.Println("QPS", qps, "means no limit")
		} else {
			fmt.Println("QPS", qps, "means", limiter.QPS())
		}
	}
	// Output:
	// QPS 0 means 5
	// QPS 50 means 50
	// QPS -1 means no limit
}
