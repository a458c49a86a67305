package shards

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/testing/must"
)

const (
	shardCount    = 6
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// world is an API server, and the replicas that use it, in virtual time.
type world struct {
	t      *testing.T
	server *apiserver.Server
	client coordinationclient.LeasesGetter // that of the test, which nothing disturbs
	drain  time.Duration                   // how long the running syncs of a shard last at most

	mu       sync.Mutex
	random   *rand.Rand
	late     float64              // how many requests arrive after the client has given up
	working  [shardCount]*replica // who works on each shard
	starts   int                  // how often work on a shard began
	replicas []*replica           // that live
}

// replica is a process. It is gone when Run has returned, and when it was killed.
type replica struct {
	*Replica
	world     *world
	stop      context.CancelFunc // as SIGTERM does
	ended     chan error
	cut, dead bool // its requests get no answer
}

// bubble runs test with a new world, in virtual time. In the end, it stops all replicas.
func bubble(t *testing.T, seed uint64, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server := must.Get(apiserver.New())(t)
		w := &world{t: t, server: server, random: rand.New(rand.NewPCG(seed, 1)),
			client: coordinationclient.NewForConfigOrDie(server.Config(nil))}
		test(t, w)
		for _, r := range w.live() {
			r.stop()
		}
		time.Sleep(time.Minute) // what is late has arrived
	})
}

func config(client coordinationclient.LeasesGetter, shards int) Config {
	return Config{Shards: shards, Config: leader.Config{
		Client: client, Namespace: "default", Name: "test",
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
	}}
}

func (w *world) start(shards int) *replica {
	w.t.Helper()
	r := &replica{world: w, ended: make(chan error, 1)}
	client := coordinationclient.NewForConfigOrDie(w.server.Config(r))
	r.Replica = must.Get(NewReplica(config(client, shards)))(w.t)
	ctx, stop := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{})) // logs nothing
	r.stop = stop
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas = append(w.replicas, r)
	go func() {
		err := r.Run(ctx, r.work)
		r.end()
		r.ended <- err
	}()
	return r
}

// end is the end of the process: whatever it was doing, it does not do it any more.
func (r *replica) end() {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.dead = true
	for i, worker := range r.world.working {
		if worker == r {
			r.world.working[i] = nil
		}
	}
	r.world.replicas = slices.DeleteFunc(r.world.replicas, func(o *replica) bool { return o == r })
}

// kill ends the process without a warning. What it has sent may still arrive.
func (r *replica) kill() {
	r.end()
	r.stop()
}

// cutOff cuts the replica off from the API server, or connects it again.
func (r *replica) cutOff(cut bool) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.cut = cut
}

// work notes that r works on a shard, and fails the test if another replica does.
func (r *replica) work(ctx context.Context, shard Shard) error {
	w := r.world
	w.mu.Lock()
	var drain time.Duration
	if !r.dead {
		if other := w.working[shard.Index]; other != nil {
			w.t.Errorf("%s and %s work on shard %v at the same time", other.name, r.name, shard)
		}
		w.working[shard.Index] = r
		w.starts++
		drain = time.Duration(w.random.Int64N(int64(w.drain + 1)))
	}
	w.mu.Unlock()
	<-ctx.Done()
	time.Sleep(drain)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working[shard.Index] == r {
		w.working[shard.Index] = nil
	}
	return nil
}

func (w *world) live() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.replicas)
}

// expect fails the test unless the replicas work on so many shards each, in ascending order, or if
// nothing is wanted, unless a shard is idle. It returns how often work on a shard has begun.
func (w *world) expect(when string, want ...int) (starts int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	shards, counts := map[*replica]int{}, []int(nil)
	for _, worker := range w.working {
		shards[worker]++
	}
	for _, r := range w.replicas {
		counts = append(counts, shards[r])
	}
	slices.Sort(counts)
	if idle := shards[nil] > 0; idle != (want == nil) || !idle && !slices.Equal(counts, want) {
		w.t.Errorf("%s: the replicas work on %v shards, %d are idle, want %v", when, counts,
			shards[nil], want)
	}
	return w.starts
}

func (w *world) expectLeases(want int) {
	w.t.Helper()
	list := must.Get(w.client.Leases("default").List(w.t.Context(), metav1.ListOptions{}))(w.t)
	list.Items = slices.DeleteFunc(list.Items, func(lease coordinationv1.Lease) bool {
		return !(&Replica{config: config(nil, 0)}).isReplica(&lease)
	})
	if got := len(list.Items); got != want {
		w.t.Errorf("replicas with a Lease: got %d, want %d", got, want)
	}
}

// Serve lets the API server answer a request, unless that is lost or comes late.
func (r *replica) Serve(
	ctx context.Context, _ *apiserver.Request, do func() (*apiserver.Response, error),
) (*apiserver.Response, error) {
	w := r.world
	w.mu.Lock()
	lost := r.cut || r.dead
	late := w.late > w.random.Float64()
	delay := time.Duration(w.random.Int64N(int64(30 * time.Second)))
	w.mu.Unlock()
	if late {
		time.AfterFunc(delay, func() { _, _ = do() })
	}
	if lost || late {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return do()
}

// Event is for watches, of which there are none.
func (*replica) Event(*apiserver.Watch, watch.Event) {}
