package shards

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
)

// within is how long a request may take here, besides the durations that the package promises.
const within = time.Second

func TestAssign(t *testing.T) {
	tests := []struct{ name, holders, replicas, want string }{
		{"nobody is there", "- - -", "", "- - -"},
		{"one takes all", "- - -", "a", "a a a"},
		{"the last shards move to the second", "a a a a", "a b", "a a b b"},
		{"nothing moves", "b a b a", "a b", "b a b a"},
		{"those that hold more keep one more", "a b b b c c", "a b c d", "a b b d c c"},
		{"shards of the dead are divided", "a - b - a -", "a b", "a a b b a b"},
		{"one that leaves does not count", "c a c b", "a b", "a a b b"},
		{"more replicas than shards", "a b", "a b c", "a b"},
	}
	for _, test := range tests {
		holders := strings.Fields(test.holders)
		for i := range holders {
			holders[i] = strings.Trim(holders[i], "-")
		}
		got := assign(holders, strings.Fields(test.replicas))
		for i := range got {
			got[i] = (got[i] + "-")[:1]
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
}

func TestReplicaThatJoinsGetsItsShare(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		w.drain = 5 * time.Second
		before := 0
		for i, want := range [][]int{{6}, {3, 3}, {2, 2, 2}, {1, 1, 2, 2}, {1, 1, 1, 1, 2}} {
			w.start(shardCount)
			time.Sleep(w.drain + 2*retryPeriod + within)
			starts := w.expect("after another one has joined", want...)
			if moved := starts - before; moved != want[0] {
				t.Errorf("with replica %d, %d shards moved, want %d", i+1, moved, want[0])
			}
			before = starts
		}
	})
}

func TestShardsAreReleasedAfterTheWork(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		w.drain = 40 * time.Second // longer than a Lease lasts
		first := w.start(shardCount)
		time.Sleep(within)
		w.start(shardCount)
		time.Sleep(within)
		first.stop()
		time.Sleep(w.drain + 2*retryPeriod + within)
		if err := <-first.ended; err != nil {
			t.Errorf("Run: got %v, want no error", err)
		}
		if starts := w.expect("after the first one has left", 6); starts != 12 {
			t.Errorf("work on a shard began %d times, want 12 times", starts)
		}
		w.expectLeases(1)
	})
}

func TestShardsOfAKilledReplicaAreTaken(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		first := w.start(shardCount)
		w.start(shardCount)
		time.Sleep(time.Minute)
		w.expect("before", 3, 3)
		first.kill()
		time.Sleep(renewDeadline)
		w.expect("while it may still live")
		time.Sleep(leaseDuration - renewDeadline + 2*retryPeriod + within)
		w.expect("after its Lease is over", 6)
	})
}

func TestReplicaThatIsCutOffEndsBeforeItsShardsAreTaken(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		first := w.start(shardCount)
		w.start(shardCount)
		time.Sleep(time.Minute)
		before := w.expect("before", 3, 3)
		first.cutOff(true)
		time.Sleep(renewDeadline / 3)
		first.cutOff(false)
		time.Sleep(time.Minute)
		if after := w.expect("after a short interruption", 3, 3); after != before {
			t.Errorf("after a short interruption, %d shards moved, want none", after-before)
		}
		first.cutOff(true)
		begin := time.Now()
		if err := <-first.ended; !errors.Is(err, errNotRenewed) {
			t.Errorf("Run: got %v, want %v", err, errNotRenewed)
		}
		if took := time.Since(begin); took > renewDeadline {
			t.Errorf("the replica ended after %v, want at most %v", took, renewDeadline)
		}
		time.Sleep(leaseDuration)
		w.expect("later", 6)
	})
}

func TestLeaseThatSomebodyDeletesEndsTheReplica(t *testing.T) {
	for name, lease := range map[string]func(*replica) string{
		"its own":      func(r *replica) string { return r.name },
		"of its shard": func(r *replica) string { return r.leaseName(3) },
	} {
		bubble(t, 1, func(t *testing.T, w *world) {
			r := w.start(shardCount)
			time.Sleep(within)
			must.Do(t, w.client.Leases("default").Delete(t.Context(), lease(r), metav1.DeleteOptions{}))
			select {
			case err := <-r.ended:
				if !errors.Is(err, errLost) {
					t.Errorf("%s: Run: got %v, want %v", name, err, errLost)
				}
			case <-time.After(retryPeriod + within):
				t.Errorf("%s: the replica goes on", name)
			}
		})
	}
}

func TestAnotherNumberOfShardsIsRefused(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		w.start(shardCount)
		time.Sleep(within)
		err := <-w.start(4).ended
		if err == nil || !strings.Contains(err.Error(), "into 6 shards, not into 4") {
			t.Errorf("got error %v, want one about the number of shards", err)
		}
		w.expectLeases(1)
	})
}

func TestWorkThatFailsEndsTheReplica(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		r := must.Get(NewReplica(config(w.client, 2)))(t)
		injected, stopped := errors.New("injected"), false
		err := r.Run(t.Context(), func(ctx context.Context, shard Shard) error {
			if shard.Index == 0 {
				return injected
			}
			<-ctx.Done()
			stopped = true
			return nil
		})
		if !errors.Is(err, injected) || !stopped {
			t.Errorf("Run: got %v, other work stopped: %v, want %v, true", err, stopped, injected)
		}
		w.expectLeases(0)
	})
}

func TestCheckFailsForAReplicaThatDidNotEnd(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		r := must.Get(NewReplica(config(w.client, 1)))(t)
		r.renewed(time.Now())
		time.Sleep(renewDeadline + 15*time.Second)
		if err := r.Check(nil); err != nil {
			t.Errorf("15s after the deadline: got %v, want no error", err)
		}
		time.Sleep(10 * time.Second)
		if err := r.Check(nil); err == nil {
			t.Error("25s after the deadline: got no error, want one")
		}
	})
}

func TestConfigThatIsNotSafeIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no shards":                     func(c *Config) { c.Shards = 0 },
		"deadline as long as the Lease": func(c *Config) { c.RenewDeadline = c.LeaseDuration },
		"no time for a second renewal":  func(c *Config) { c.RetryPeriod = c.RenewDeadline },
	} {
		changed := config(nil, shardCount)
		change(&changed)
		if _, err := NewReplica(changed); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

// TestRandomHistories starts, stops, kills and cuts off replicas, whose requests may arrive late.
// work fails the test when two replicas work on one shard.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(50) {
		bubble(t, seed, func(t *testing.T, w *world) {
			w.drain = 10 * time.Second
			w.late = float64(seed%3) * 0.05
			for range 25 {
				replicas := w.live()
				w.mu.Lock()
				choice, pick := w.random.IntN(10), w.random.IntN(5)
				pause := time.Duration(w.random.Int64N(int64(20 * time.Second)))
				w.mu.Unlock()
				if len(replicas) == 0 || choice < 4 && len(replicas) < 5 {
					w.start(shardCount)
					time.Sleep(pause)
					continue
				}
				some := replicas[pick%len(replicas)]
				switch {
				case choice < 6:
					some.stop()
				case choice < 8:
					some.kill()
				default:
					some.cutOff(true)
					time.AfterFunc(pause, func() { some.cutOff(false) })
				}
				time.Sleep(pause)
			}
			w.settle()
			if t.Failed() {
				t.Fatalf("in the history of seed %d", seed)
			}
		})
	}
}

// settle lets no more happen, and checks that all shards are worked on.
func (w *world) settle() {
	w.t.Helper()
	w.start(shardCount) // there is at least one
	w.mu.Lock()
	w.late = 0
	w.mu.Unlock()
	time.Sleep(2 * time.Minute) // what is late has arrived, and those that are to end have ended
	want := make([]int, len(w.live()))
	for i := range shardCount {
		want[i%len(want)]++
	}
	slices.Sort(want)
	w.expect("in the end", want...)
	w.expectLeases(len(want))
}
