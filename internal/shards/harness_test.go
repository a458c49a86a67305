package shards

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/fakes"
	"example.com/sample-controller/internal/leader"
)

const (
	shardCount    = 6
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

var histories = flag.Int("histories", 50, "number of histories")

func TestMain(m *testing.M) {
	flag.Parse()
	m.Run()
}

// world is an API server, and the replicas that use it, in virtual time.
type world struct {
	t      *testing.T
	client coordinationclient.LeasesGetter

	mu       sync.Mutex
	random   *rand.Rand
	drain    time.Duration        // how long the running syncs of a shard last at most
	working  [shardCount]*replica // who works on each shard
	starts   int                  // how often work on a shard began
	replicas []*replica           // that live
}

// replica is a process. It is gone when Run has returned, and when it was killed.
type replica struct {
	*Replica
	world   *world
	stop    context.CancelFunc // as SIGTERM does
	ended   chan error
	network struct {
		cut  bool    // requests get no answer
		late float64 // how many requests arrive after the client has given up
	}
	dead bool
}

// bubble runs test with a new world, in virtual time. In the end, it stops all replicas.
func bubble(t *testing.T, seed uint64, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			t: t, client: fakes.New().Kube.CoordinationV1(), random: rand.New(rand.NewPCG(seed, 1)),
		}
		test(t, w)
		w.mu.Lock()
		replicas := slices.Clone(w.replicas)
		w.mu.Unlock()
		for _, r := range replicas {
			r.stop()
		}
		time.Sleep(time.Minute) // what is late has arrived
	})
}

// start starts a replica.
func (w *world) start(shards int) *replica {
	w.t.Helper()
	r := &replica{world: w, ended: make(chan error, 1)}
	var err error
	r.Replica, err = NewReplica(Config{
		Config: leader.Config{
			Client: client{w.client, r}, Namespace: "default", Name: "test",
			LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		},
		Shards: shards,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(klog.NewContext(w.t.Context(), klog.Logger{})) // logs nothing
	r.stop = stop
	w.mu.Lock()
	w.replicas = append(w.replicas, r)
	w.mu.Unlock()
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

// cut cuts the replica off from the API server, or connects it again.
func (r *replica) cut(cut bool) {
	r.world.mu.Lock()
	defer r.world.mu.Unlock()
	r.network.cut = cut
}

// work notes that r works on a shard, and fails the test if another replica does.
func (r *replica) work(ctx context.Context, shard Shard) error {
	w := r.world
	drain := w.begin(r, shard.Index)
	<-ctx.Done()
	if drain > 0 {
		time.Sleep(drain)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working[shard.Index] == r {
		w.working[shard.Index] = nil
	}
	return nil
}

// begin returns how long the work will take to end.
func (w *world) begin(r *replica, shard int) (drain time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.dead {
		return 0
	}
	if other := w.working[shard]; other != nil {
		w.t.Errorf("%s and %s work on shard %d at the same time", other.name, r.name, shard)
	}
	w.working[shard] = r
	w.starts++
	if w.drain > 0 {
		drain = time.Duration(w.random.Int64N(int64(w.drain)))
	}
	return drain
}

// countStarts returns how often work on a shard began.
func (w *world) countStarts() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts
}

// balance returns how many shards each replica works on, sorted, or nil if a shard is idle.
func (w *world) balance() (counts []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	shards := map[*replica]int{}
	for _, worker := range w.working {
		if worker == nil {
			return nil
		}
		shards[worker]++
	}
	for _, r := range w.replicas {
		counts = append(counts, shards[r])
	}
	slices.Sort(counts)
	return counts
}

// expect fails the test unless the shards are divided in this way.
func (w *world) expect(when string, want ...int) {
	w.t.Helper()
	if got := w.balance(); !slices.Equal(got, want) {
		w.t.Errorf("%s: the replicas work on %v shards, want %v", when, got, want)
	}
}

// client is a replica's client of Leases. It makes the replica's requests go through its network.
type client struct {
	coordinationclient.LeasesGetter
	replica *replica
}

func (c client) Leases(namespace string) coordinationclient.LeaseInterface {
	return leases{c.LeasesGetter.Leases(namespace), c.replica}
}

type leases struct {
	coordinationclient.LeaseInterface
	replica *replica
}

// send makes a request, unless it is lost or comes late.
func send[T any](ctx context.Context, r *replica, request func() (T, error)) (answer T, err error) {
	w := r.world
	w.mu.Lock()
	lost := r.network.cut || r.dead
	late := r.network.late > w.random.Float64()
	delay := time.Duration(w.random.Int64N(int64(30 * time.Second)))
	w.mu.Unlock()
	if late {
		time.AfterFunc(delay, func() { _, _ = request() })
	}
	if lost || late {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return answer, ctx.Err()
	}
	return request()
}

func (l leases) Create(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.CreateOptions,
) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return send(ctx, l.replica, func() (*coordinationv1.Lease, error) {
		return l.LeaseInterface.Create(context.Background(), lease, options)
	})
}

func (l leases) Update(
	ctx context.Context, lease *coordinationv1.Lease, options metav1.UpdateOptions,
) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	return send(ctx, l.replica, func() (*coordinationv1.Lease, error) {
		return l.LeaseInterface.Update(context.Background(), lease, options)
	})
}

func (l leases) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	_, err := send(ctx, l.replica, func() (struct{}, error) {
		return struct{}{}, l.LeaseInterface.Delete(context.Background(), name, options)
	})
	return err
}

func (l leases) List(
	ctx context.Context, options metav1.ListOptions,
) (*coordinationv1.LeaseList, error) {
	return send(ctx, l.replica, func() (*coordinationv1.LeaseList, error) {
		return l.LeaseInterface.List(context.Background(), options)
	})
}

func (l leases) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte,
	options metav1.PatchOptions, subresources ...string,
) (*coordinationv1.Lease, error) {
	return send(ctx, l.replica, func() (*coordinationv1.Lease, error) {
		return l.LeaseInterface.Patch(
			context.Background(), name, kind, data, options, subresources...)
	})
}

// leaseNames returns the names of the replicas' Leases.
func (w *world) replicaLeases() (names []string) {
	w.t.Helper()
	list, err := w.client.Leases("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, lease := range list.Items {
		if (&Replica{config: Config{Config: leader.Config{Name: "test"}}}).isReplica(&lease) {
			names = append(names, lease.Name)
		}
	}
	return names
}
