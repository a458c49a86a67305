package shards

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/leader"
)

// within is how long a request may take here, besides the durations that the package promises.
const within = time.Second

func TestOneReplicaHoldsAllShards(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		w.start(shardCount)
		time.Sleep(within)
		w.expect("at once", 6)
	})
}

func TestReplicaThatJoinsGetsItsShare(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		w.drain = 5 * time.Second
		for i, want := range [][]int{{6}, {3, 3}, {2, 2, 2}, {1, 1, 2, 2}, {1, 1, 1, 1, 2}} {
			before := w.countStarts()
			w.start(shardCount)
			time.Sleep(w.drain + 2*retryPeriod + within)
			w.expect("after another one has joined", want...)
			if moved := w.countStarts() - before; i > 0 && moved != want[0] {
				t.Errorf("with replica %d, %d shards moved, want %d", i+1, moved, want[0])
			}
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
		w.expect("after the first one has left", 6)
		if got := len(w.replicaLeases()); got != 1 {
			t.Errorf("replicas with a Lease: got %d, want 1", got)
		}
	})
}

func TestReplicaThatLeavesHandsOverQuickly(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		first := w.start(shardCount)
		time.Sleep(within)
		w.start(shardCount)
		time.Sleep(time.Minute)
		before := w.countStarts()
		first.stop()
		time.Sleep(2*retryPeriod + within)
		w.expect("after the first one has left", 6)
		if moved := w.countStarts() - before; moved != 3 {
			t.Errorf("%d shards moved, want 3", moved)
		}
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
		first.cut(true)
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

func TestShortInterruptionMovesNothing(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		first := w.start(shardCount)
		w.start(shardCount)
		time.Sleep(time.Minute)
		before := w.countStarts()
		first.cut(true)
		time.Sleep(renewDeadline / 3)
		first.cut(false)
		time.Sleep(time.Minute)
		w.expect("afterwards", 3, 3)
		if moved := w.countStarts() - before; moved != 0 {
			t.Errorf("%d shards moved, want none", moved)
		}
	})
}

func TestLeaseThatSomebodyDeletesEndsTheReplica(t *testing.T) {
	for name, lease := range map[string]func(*replica) string{
		"its own":      func(r *replica) string { return r.name },
		"of its shard": func(r *replica) string { return r.leaseName(3) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, 1, func(t *testing.T, w *world) {
				r := w.start(shardCount)
				time.Sleep(within)
				err := w.client.Leases("default").Delete(
					t.Context(), lease(r), metav1.DeleteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-r.ended:
					if !errors.Is(err, errLost) {
						t.Errorf("Run: got %v, want %v", err, errLost)
					}
				case <-time.After(retryPeriod + within):
					t.Error("the replica goes on")
				}
			})
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
		if got := len(w.replicaLeases()); got != 1 {
			t.Errorf("replicas with a Lease: got %d, want 1", got)
		}
	})
}

func TestWorkThatFailsEndsTheReplica(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		r, err := NewReplica(Config{
			Config: leader.Config{
				Client: w.client, Namespace: "default", Name: "test",
				LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
			},
			Shards: 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		injected := errors.New("injected")
		stopped := false
		err = r.Run(t.Context(), func(ctx context.Context, shard Shard) error {
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
		if got := w.replicaLeases(); len(got) != 0 {
			t.Errorf("Leases of replicas: got %v, want none", got)
		}
	})
}

func TestCheckFailsForAReplicaThatDidNotEnd(t *testing.T) {
	bubble(t, 1, func(t *testing.T, w *world) {
		r, err := NewReplica(Config{Config: leader.Config{
			Client: w.client, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
			RetryPeriod: retryPeriod,
		}, Shards: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(nil); err != nil {
			t.Errorf("before Run: got %v, want no error", err)
		}
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
	good := Config{Config: leader.Config{
		Client: client{}, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
		RetryPeriod: retryPeriod,
	}, Shards: 6}
	for name, change := range map[string]func(*Config){
		"no shards":                     func(c *Config) { c.Shards = 0 },
		"deadline as long as the Lease": func(c *Config) { c.RenewDeadline = c.LeaseDuration },
		"no time for a second renewal":  func(c *Config) { c.RetryPeriod = c.RenewDeadline },
	} {
		config := good
		change(&config)
		if _, err := NewReplica(config); err == nil {
			t.Errorf("%s: got no error, want one", name)
		}
	}
}

// TestRandomHistories starts, stops, kills and cuts off replicas, whose requests may arrive late.
// work fails the test when two replicas work on one shard.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(*histories) {
		bubble(t, seed, func(t *testing.T, w *world) {
			w.drain = 10 * time.Second
			late := float64(seed%3) * 0.05
			for range 25 {
				w.mu.Lock()
				replicas, pick := slices.Clone(w.replicas), w.random.IntN(5)
				choice, pause := w.random.IntN(10), time.Duration(w.random.Int64N(int64(20*time.Second)))
				w.mu.Unlock()
				var some *replica
				if len(replicas) > 0 {
					some = replicas[pick%len(replicas)]
				}
				switch {
				case len(replicas) < 5 && (some == nil || choice < 4):
					r := w.start(shardCount)
					w.mu.Lock()
					r.network.late = late
					w.mu.Unlock()
				case choice < 6:
					some.stop()
				case choice < 8:
					some.kill()
				default:
					some.cut(true)
					time.AfterFunc(pause, func() { some.cut(false) })
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
	for _, r := range w.replicas {
		r.network.late = 0
	}
	w.mu.Unlock()
	time.Sleep(2 * time.Minute) // what is late has arrived, and those that are to end have ended
	w.mu.Lock()
	n := len(w.replicas)
	w.mu.Unlock()
	want := make([]int, n)
	for i := range want {
		want[i] = shardCount / n
		if i >= n-shardCount%n {
			want[i]++
		}
	}
	w.expect("in the end", want...)
	if got := len(w.replicaLeases()); got != n {
		w.t.Errorf("replicas with a Lease: got %d, want %d", got, n)
	}
}
