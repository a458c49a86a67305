package shards

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// step takes the shards that this replica should hold, and begins to give back the others. If
// leaving, it gives back all. It returns an error only if a Lease is lost. Other errors are logged:
// the next step is soon.
func (r *Replica) step(ctx context.Context, work Work, leaving bool) error {
	logger := klog.FromContext(ctx)
	requestCtx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline)
	defer cancel()
	list, err := r.list(requestCtx)
	if err != nil {
		logger.Error(err, "Listing the Leases failed, will retry")
		return nil
	}
	replicas := r.liveReplicas(requestCtx, list.Items)
	takers := slices.DeleteFunc(slices.Sorted(maps.Keys(replicas)), func(name string) bool {
		return !replicas[name] || leaving && name == r.name
	})
	if leaving && replicas[r.name] {
		if err := r.takeNoMore(requestCtx); err != nil {
			logger.Error(err, "Announcing the end failed, will retry")
		}
	}
	leases := r.shardLeases(list.Items)
	holders := make([]string, len(leases))
	for i, lease := range leases {
		if _, alive := replicas[holderOf(lease)]; alive {
			holders[i] = holderOf(lease)
		}
	}
	for i, wanted := range assign(holders, takers) {
		holding, mine := r.held[i], holders[i] == r.name
		switch {
		case holding != nil && !mine:
			return errLost
		case holding != nil && wanted != r.name:
			holding.stop() // when the work has ended, Run releases the shard
		case holding == nil && wanted == r.name && (mine || holders[i] == ""):
			r.take(ctx, i, leases[i], work)
		case holding == nil && mine:
			r.release(ctx, leases[i]) // an earlier try seemed to fail
		}
	}
	return nil
}

// liveReplicas returns the names of the replicas that live, and whether each takes shards. It
// deletes the Lease of a replica that did not renew it in time.
func (r *Replica) liveReplicas(ctx context.Context, leases []coordinationv1.Lease) map[string]bool {
	replicas, sightings := map[string]bool{}, map[string]sighting{}
	for _, lease := range leases {
		if !r.isReplica(&lease) {
			continue
		}
		seen := r.sightings[lease.Name]
		if seen.resourceVersion != lease.ResourceVersion {
			seen = sighting{resourceVersion: lease.ResourceVersion, since: time.Now()}
		}
		// The duration is the promise of that replica.
		seconds := cmp.Or(lease.Spec.LeaseDurationSeconds, r.self.Spec.LeaseDurationSeconds)
		duration := time.Duration(*seconds) * time.Second
		if lease.Name != r.name && time.Since(seen.since) > duration && r.bury(ctx, &lease) {
			continue
		}
		sightings[lease.Name] = seen
		replicas[lease.Name] = holderOf(&lease) != ""
	}
	r.sightings = sightings
	return replicas
}

// bury deletes the Lease of a replica that was silent for too long, and returns whether it is gone.
func (r *Replica) bury(ctx context.Context, lease *coordinationv1.Lease) bool {
	err := r.leases.Delete(ctx, lease.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{
			UID: &lease.UID, ResourceVersion: &lease.ResourceVersion,
		},
	})
	gone := err == nil || apierrors.IsNotFound(err)
	if gone {
		klog.FromContext(ctx).Info("A replica was silent for too long", "replica", lease.Name)
	}
	return gone
}

// isReplica reports whether lease is that of a replica, not of a shard.
func (r *Replica) isReplica(lease *coordinationv1.Lease) bool {
	return strings.HasPrefix(lease.Name, r.config.Name+"-replica-")
}

// shardLeases returns the Lease of each shard, nil if there is none yet.
func (r *Replica) shardLeases(leases []coordinationv1.Lease) []*coordinationv1.Lease {
	byName := map[string]*coordinationv1.Lease{}
	for i := range leases {
		byName[leases[i].Name] = &leases[i]
	}
	found := make([]*coordinationv1.Lease, r.config.Shards)
	for i := range found {
		found[i] = byName[r.leaseName(i)]
	}
	return found
}

func (r *Replica) leaseName(index int) string {
	return fmt.Sprintf("%s-shard-%v", r.config.Name, r.shard(index))
}

func (r *Replica) shard(index int) Shard { return Shard{Index: index, Count: r.config.Shards} }

// holderOf returns the holder in lease, which may be nil.
func holderOf(lease *coordinationv1.Lease) string {
	if lease == nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// take makes this replica the holder of a shard, and starts the work on it. It writes the Lease
// even if this replica is the holder already: an earlier request to release it, which got no
// answer, may still be on its way, and fails after this one.
func (r *Replica) take(ctx context.Context, i int, lease *coordinationv1.Lease, work Work) {
	logger := klog.FromContext(ctx).WithValues("shard", r.shard(i))
	requestCtx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline)
	defer cancel()
	var err error
	if lease == nil {
		lease, err = r.leases.Create(requestCtx, r.newLease(r.leaseName(i)), metav1.CreateOptions{})
	} else {
		r.hold(lease)
		lease, err = r.leases.Update(requestCtx, lease, metav1.UpdateOptions{})
	}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return // another replica took it, with another view of who is there
	case err != nil:
		logger.Error(err, "Taking a shard failed, will retry")
		return
	case r.left() <= 0: // the answer came too late
		return
	}
	logger.Info("Took a shard")
	workCtx, stop := context.WithCancel(klog.NewContext(ctx, logger))
	r.held[i] = &holding{lease: lease, stop: stop}
	go func() {
		defer stop()
		err := work(workCtx, r.shard(i))
		if err == nil && workCtx.Err() == nil {
			err = errors.New("the work ended by itself")
		}
		r.finished <- result{index: i, err: err}
	}()
}

// release gives back a shard whose work has ended.
func (r *Replica) release(ctx context.Context, lease *coordinationv1.Lease) {
	logger := klog.FromContext(ctx).WithValues("lease", lease.Name)
	ctx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline)
	defer cancel()
	lease.Spec.HolderIdentity = nil
	if _, err := r.leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		logger.Error(err, "Releasing a shard failed, will retry")
		return
	}
	logger.Info("Released a shard")
}
