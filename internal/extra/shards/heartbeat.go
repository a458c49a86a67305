package shards

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// heartbeat renews the Lease of this replica until ctx is done. If it cannot, it calls lose, which
// stops the work. After a freeze, the timer fires at once.
func (r *Replica) heartbeat(ctx context.Context, lose context.CancelCauseFunc) {
	stop := time.AfterFunc(r.left(), func() { lose(errNotRenewed) })
	defer stop.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.config.RetryPeriod):
		}
		began := time.Now()
		err := r.renew(ctx)
		switch {
		case err == nil:
			r.renewed(began)
			stop.Reset(r.left())
		case apierrors.IsNotFound(err):
			lose(errLost)
			return
		default:
			klog.FromContext(ctx).Error(err, "Renewing the Lease failed, will retry", "left", r.left())
		}
	}
}

// renew renews the Lease of this replica. A patch never creates it.
func (r *Replica) renew(ctx context.Context) error {
	return r.patchSelf(ctx, fmt.Sprintf(`"renewTime": %q`,
		time.Now().UTC().Format(metav1.RFC3339Micro)))
}

// takeNoMore says in the Lease of this replica that it takes no more shards. It has no holder then.
func (r *Replica) takeNoMore(ctx context.Context) error {
	return r.patchSelf(ctx, `"holderIdentity": null`)
}

func (r *Replica) patchSelf(ctx context.Context, spec string) error {
	// A request that hangs must leave time for another one.
	ctx, cancel := context.WithTimeout(ctx, r.config.RenewDeadline/2)
	defer cancel()
	patch := fmt.Sprintf(`{"metadata": {"uid": %q}, "spec": {%s}}`, r.self.UID, spec)
	_, err := r.leases.Patch(ctx, r.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// renewed notes a successful renewal that began at that time.
func (r *Replica) renewed(began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = began.Add(r.config.RenewDeadline)
}

// left returns how long this replica may work if no other renewal succeeds.
func (r *Replica) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Until(r.deadline)
}
