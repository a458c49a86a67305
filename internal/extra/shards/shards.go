// Package shards divides the namespaces of a cluster among the replicas of a controller. Each
// replica works on some shards, and no two work on the same shard.
//
// A replica has a Lease of its own, its heartbeat, and renews it every RetryPeriod. Each shard has
// a Lease, which says who holds the shard. Nobody renews that one: it is good as long as its
// holder's own Lease exists. Every RetryPeriod, each replica lists all of these Leases and takes
// the same decision, because assign depends on nothing else. A replica that holds a shard which
// another one should hold stops its work, waits for the end of syncs that have begun, and releases
// the shard. A replica that should hold a free shard takes it.
//
// # Why no two replicas work on one shard
//
// Only one of two Updates of the same version of a Lease succeeds, so only one replica takes a free
// shard. A shard is free if its holder has released it, which is after the work, or if its holder
// has no Lease any more. A replica deletes its own Lease after all work. Another replica deletes it
// if it has seen no renewal for LeaseDuration, and only that version, so that a renewal in between
// prevents it. By then the holder has stopped: it stops RenewDeadline after it began to send its
// last successful renewal, and RenewDeadline is shorter than LeaseDuration. A Lease that is deleted
// never comes back, because a renewal is a patch, which creates nothing. client-go's leader
// election would create it again; therefore it is not used here.
//
// This compares no clocks of two machines, but it needs them to run about equally fast. A replica
// that is frozen does nothing. If it wakes up after RenewDeadline, it stops, but requests that were
// on their way may arrive: a controller must bear that, as with one leader.
//
// If requests succeed at once, a shard is worked on again after at most 2 RetryPeriods and the end
// of the running syncs, when a replica joins or leaves. If one ends without a goodbye, that takes
// LeaseDuration and 2 RetryPeriods.
package shards

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/leader"
)

// Labels of all Leases. The first one selects them, the second one is the number of shards.
const (
	groupLabel = "shards-of"
	countLabel = "shard-count"
)

var (
	errNotRenewed = errors.New("this replica could not renew its Lease in time; " +
		"others may take its shards")
	errLost = errors.New("this replica has lost a Lease to another one")
)

// Config says which Leases there are, and how long the replicas wait. It must be the same for all
// replicas, except for Replica.
type Config struct {
	// Name begins the names of all Leases. LeaseDuration is how long the others wait for a replica
	// that is silent, and RenewDeadline how long a replica works after its last renewal. RetryPeriod
	// is the time between two renewals.
	leader.Config
	// Shards is the number of shards. It limits the number of replicas that have work.
	Shards int
	// Replica is a name for people who read the Leases. (default: the host name)
	Replica string
}

// Work works on a shard until ctx is done, and returns when the work has ended. If it returns an
// error, Run stops the work on all shards.
type Work func(ctx context.Context, shard Shard) error

// Replica is a process that takes its share of the shards.
type Replica struct {
	config    Config
	name      string // of this replica's Lease, and its identity in the Leases of shards
	leases    coordinationclient.LeaseInterface
	self      *coordinationv1.Lease
	sightings map[string]sighting // of the other replicas' Leases
	held      map[int]*holding    // by the index of the shard
	finished  chan result

	mu       sync.Mutex
	deadline time.Time // when this replica must stop if it cannot renew; zero before Run
}

// sighting is since when a Lease has this version, as far as this replica knows.
type sighting struct {
	resourceVersion string
	since           time.Time
}

// holding is a shard that this replica works on.
type holding struct {
	lease *coordinationv1.Lease
	stop  context.CancelFunc
}

// result is how the work on a shard ended.
type result struct {
	index int
	err   error
}

// NewReplica returns a Replica. It makes no request.
func NewReplica(config Config) (*Replica, error) {
	switch {
	case config.Shards < 1:
		return nil, fmt.Errorf("there must be at least 1 shard, not %d", config.Shards)
	case config.LeaseDuration < time.Second, config.RenewDeadline >= config.LeaseDuration,
		config.RetryPeriod <= 0, config.RetryPeriod >= config.RenewDeadline:
		return nil, fmt.Errorf("a Lease must last at least 1s, and longer than the renew deadline "+
			"(%v of %v), which must be longer than the retry period (%v)",
			config.RenewDeadline, config.LeaseDuration, config.RetryPeriod)
	}
	if config.Replica == "" {
		var err error
		if config.Replica, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("naming this replica: %w", err)
		}
	}
	return &Replica{
		config: config,
		// The random part is different for two processes on one host.
		name:     fmt.Sprintf("%s-replica-%s-%s", config.Name, config.Replica, utilrand.String(8)),
		leases:   config.Client.Leases(config.Namespace),
		held:     map[int]*holding{},
		finished: make(chan result, config.Shards),
	}, nil
}

// Check is a health check. It fails if this replica has not ended although it had to, some time
// ago, so that a kubelet restarts it.
func (r *Replica) Check(*http.Request) error {
	const tolerance = 20 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.deadline.IsZero() && time.Since(r.deadline) > tolerance {
		return errNotRenewed
	}
	return nil
}

// Run works on this replica's share of the shards until ctx is done. Then it ends the work,
// releases the shards, and returns nil. If it returns an error, the process must end at once: if a
// Lease is lost, work may be running that another replica does as well. Run may be called only
// once.
func (r *Replica) Run(ctx context.Context, work Work) error {
	// The Leases are kept after ctx is done, until the work has ended.
	leaseCtx, lose := context.WithCancelCause(context.WithoutCancel(ctx))
	defer lose(nil)
	if err := r.join(leaseCtx); err != nil {
		return fmt.Errorf("joining the other replicas: %w", err)
	}
	go r.heartbeat(leaseCtx, lose)

	leaving := ctx.Done()
	var failure error
	for leaseCtx.Err() == nil {
		done := ctx.Err() != nil || failure != nil
		if done && len(r.held) == 0 {
			r.leave(leaseCtx)
			return failure
		}
		if done { // even if no request succeeds
			for _, holding := range r.held {
				holding.stop()
			}
		}
		if err := r.step(leaseCtx, work, done); err != nil {
			return err
		}
		select {
		case <-leaseCtx.Done():
		case <-leaving:
			leaving = nil // once is enough
		case ended := <-r.finished:
			failure = errors.Join(failure, ended.err)
			r.release(leaseCtx, r.held[ended.index].lease)
			delete(r.held, ended.index)
		case <-time.After(r.config.RetryPeriod):
		}
	}
	return context.Cause(leaseCtx)
}

// join creates the Lease of this replica, and then looks for replicas with another number of
// shards. Of two that join at the same time, the one that looks later finds the other.
func (r *Replica) join(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline)
	defer cancel()
	began := time.Now()
	var err error
	if r.self, err = r.leases.Create(ctx, r.newLease(r.name), metav1.CreateOptions{}); err != nil {
		return err
	}
	r.renewed(began)
	if err := r.checkCount(ctx); err != nil {
		r.leave(ctx)
		return err
	}
	return nil
}

// checkCount returns an error if there is a replica with another number of shards.
func (r *Replica) checkCount(ctx context.Context) error {
	list, err := r.list(ctx)
	if err != nil {
		return err
	}
	for _, lease := range list.Items {
		count := lease.Labels[countLabel]
		if r.isReplica(&lease) && count != r.self.Labels[countLabel] {
			return fmt.Errorf("%s divides the namespaces into %s shards, not into %d; "+
				"end all such replicas first", lease.Name, count, r.config.Shards)
		}
	}
	return nil
}

// leave deletes the Lease of this replica, if it still has it.
func (r *Replica) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline)
	defer cancel()
	err := r.leases.Delete(ctx, r.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &r.self.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).Error(err, "Deleting the Lease failed, the others wait until it ends")
	}
}

// newLease returns a Lease that this replica holds.
func (r *Replica) newLease(name string) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.config.Namespace, Name: name,
		Labels: map[string]string{
			groupLabel: r.config.Name, countLabel: strconv.Itoa(r.config.Shards),
		},
	}}
	r.hold(lease)
	return lease
}

// hold makes this replica the holder of lease, which it has yet to write.
func (r *Replica) hold(lease *coordinationv1.Lease) {
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity = &r.name
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &now, &now
	seconds := (r.config.LeaseDuration + time.Second - 1) / time.Second
	lease.Spec.LeaseDurationSeconds = new(int32(seconds))
}

func (r *Replica) list(ctx context.Context) (*coordinationv1.LeaseList, error) {
	return r.leases.List(ctx, metav1.ListOptions{LabelSelector: groupLabel + "=" + r.config.Name})
}
