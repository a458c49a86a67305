package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/extra/owned"
)

// jitter is by how much, at most, a wait for the next registration is longer than it should be. So
// the Websites that a start has registered at once are not registered at once ever after.
const jitter = 0.2

// ensureFinalizer adds the finalizer to website. Nothing is registered before that.
func (r *Reconciler) ensureFinalizer(ctx context.Context, website *v1alpha1.Website) error {
	before := website.DeepCopy()
	if !controllerutil.AddFinalizer(website, meaning.RegistryFinalizer) {
		return nil
	}
	return r.patchFinalizers(ctx, before, website)
}

// patchFinalizers writes the finalizers of website, and nothing else. A list in a merge patch
// replaces what others have added since then, so the API server has to compare resourceVersions.
func (r *Reconciler) patchFinalizers(ctx context.Context, before, website *v1alpha1.Website) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, website, patch); err != nil {
		return fmt.Errorf("writing the finalizers: %w", err)
	}
	return nil
}

// register makes the registry know the URL in status, and sets in status what has come of that. If
// the registry has accepted that URL before, register asks it again only when that is due: a
// registry that has lost a Website causes no event. It returns how long it is until then.
func (r *Reconciler) register(
	ctx context.Context, website *v1alpha1.Website, status *v1alpha1.WebsiteStatus,
) (again time.Duration, err error) {
	if status.URL == "" {
		meaning.SetCondition(website, status, meaning.NotRegistered(meaning.ReasonNoService,
			"The Website has no Service that could be registered"))
		return 0, nil
	}
	key := client.ObjectKeyFromObject(website)
	due, ok := r.due.Load(key)
	if !ok || status.RegisteredURL != status.URL || !time.Now().Before(due.(time.Time)) {
		r.due.Delete(key) // a request that fails may have changed the registry all the same
		entry := outside.Entry{Name: key.String(), URL: status.URL}
		err := r.registry.Put(ctx, string(website.UID), entry)
		if errors.Is(err, outside.ErrBusy) {
			return 0, err // nothing was sent, so the condition stays as it is
		}
		if err != nil {
			meaning.SetCondition(website, status, meaning.NotRegistered(meaning.ReasonRegistrationFailed,
				"The registry did not accept the Website; the log of the controller says why"))
			return 0, fmt.Errorf("registering: %w", err)
		}
		due = time.Now().Add(wait.Jitter(r.resync, jitter))
		r.due.Store(key, due)
	}
	status.RegisteredURL = status.URL
	meaning.SetCondition(website, status, meaning.Registered(status.URL))
	// An event that comes earlier takes the place of this wait, so each sync has to return it. And it
	// must be more than 0, which would mean never.
	return max(time.Until(due.(time.Time)), time.Millisecond), nil
}

// finalize deregisters a Website that is being deleted, and then lets it go. It creates and repairs
// no child: the children are deleted with the Website. If the registry or the finalizer of somebody
// else holds the Website, its status says so.
func (r *Reconciler) finalize(ctx context.Context, website *v1alpha1.Website) error {
	status, err := r.observedStatus(ctx, website, *owned.NotReady(meaning.ReasonWebsiteTerminating,
		"The Website is being deleted"))
	if err != nil {
		return err
	}
	var registryErr error
	if controllerutil.ContainsFinalizer(website, meaning.RegistryFinalizer) {
		err := r.registry.Delete(ctx, string(website.UID))
		if err == nil {
			before := website.DeepCopy()
			controllerutil.RemoveFinalizer(website, meaning.RegistryFinalizer)
			return client.IgnoreNotFound(r.patchFinalizers(ctx, before, website))
		}
		registryErr = fmt.Errorf("deregistering: %w", err)
		if !errors.Is(err, outside.ErrBusy) {
			meaning.SetCondition(website, &status, meaning.NotRegistered(meaning.ReasonDeregistrationFailed,
				"The registry did not forget the Website, which stays until then; "+
					"the log of the controller says why"))
		}
	} else {
		status.RegisteredURL = ""
		meaning.SetCondition(website, &status, meaning.NotRegistered(meaning.ReasonDeregistered,
			"The registry does not know the Website any more"))
	}
	if err := r.updateStatus(ctx, website, status); err != nil {
		return err
	}
	return registryErr
}
