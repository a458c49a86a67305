package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/internal/owned"
	"example.com/sample-controller/examples/website/meaning"
	"example.com/sample-controller/examples/website/outside"
	"example.com/sample-controller/examples/website/pkg/apis/website/v1alpha1"
	"example.com/sample-controller/internal/patch"
)

// registryFinalizer keeps a Website until it is deregistered.
const registryFinalizer = v1alpha1.GroupName + "/registry"

// jitter is by how much, at most, a wait for the next registration is longer than it should be. So
// the Websites that a start has registered at once are not registered at once ever after.
const jitter = 0.2

// busyRetryDelay is how long, at least, a Website waits if the registry is busy. If many wait, they
// come back at different times, up to twice as late.
const busyRetryDelay = 2 * time.Second

// refusedRetryDelay limits how often a finalizer is sent that the API server refuses.
const refusedRetryDelay = 15 * time.Second

// errRegistry is wrapped by what the registry is to blame for.
var errRegistry = errors.New("registering")

// finalizerRejected is the condition of a Website of which writeFinalizers returns a refusal.
var finalizerRejected = meaning.NotRegistered(meaning.ReasonFinalizerRejected, "The API server does not "+
	"let the controller add or remove its finalizer; the log of the controller says why")

// ensureFinalizer returns website with registryFinalizer, or as it was. Nothing is registered before
// that.
func (c *Controller) ensureFinalizer(
	ctx context.Context, website *v1alpha1.Website,
) (*v1alpha1.Website, error) {
	if slices.Contains(website.Finalizers, registryFinalizer) {
		return website, nil
	}
	return c.writeFinalizers(ctx, website, append(slices.Clone(website.Finalizers), registryFinalizer))
}

// writeFinalizers writes the finalizers of website, and nothing else. The patch names the UID and
// the resourceVersion of website: a list in a merge patch replaces what others have added since
// then, and a Website that was made again under the same name is another one. Admission may undo
// the change: that is a refusal, too. With an error, writeFinalizers returns website as it was.
func (c *Controller) writeFinalizers(
	ctx context.Context, website *v1alpha1.Website, finalizers []string,
) (*v1alpha1.Website, error) {
	client := c.websiteClient.WebsiteV1alpha1().Websites(website.Namespace)
	desired := website.DeepCopy()
	desired.Finalizers = finalizers
	written, err := patch.Try(c.finalizers, website, website.UID, refusedRetryDelay,
		func() (*v1alpha1.Website, error) {
			written, err := patch.Send(ctx, client, website, desired, controllerName)
			if err != nil {
				return nil, err
			}
			c.websiteWrites.WroteAt(cache.MetaObjectToName(website), written.ResourceVersion)
			if slices.Contains(written.Finalizers, registryFinalizer) ==
				slices.Contains(website.Finalizers, registryFinalizer) {
				err = apierrors.NewForbidden(v1alpha1.Resource("websites"), website.Name,
					errors.New("admission has undone the change"))
			}
			return written, err
		})
	if err != nil {
		return website, fmt.Errorf("writing the finalizers: %w", err)
	}
	return written, nil
}

// register makes the registry know the URL in status, and sets the result in status. If the registry
// has accepted that URL before, register sends it again only when a PUT is due: a registry that has
// lost a Website causes no event. Without a URL, the registry must not know one either: the Service
// of that name may be somebody else's now.
func (c *Controller) register(
	ctx context.Context, website *v1alpha1.Website, status *v1alpha1.WebsiteStatus,
) error {
	if status.URL == "" {
		if done, err := c.deregister(ctx, website, status); !done {
			return err
		}
		meaning.SetCondition(website, status, meaning.NotRegistered(meaning.ReasonNoService,
			"The Website has no Service that could be registered"))
		return nil
	}
	key := cache.MetaObjectToName(website)
	due, ok := c.due.Load(key)
	if !ok || status.RegisteredURL != status.URL || !time.Now().Before(due.(time.Time)) {
		err := c.put(ctx, website, status.URL)
		if errors.Is(err, outside.ErrBusy) {
			c.retryWhenLessBusy(ctx, key)
			return nil // nothing was sent, so the condition stays as it is
		}
		if errors.Is(err, errRegistry) {
			meaning.SetCondition(website, status, meaning.NotRegistered(meaning.ReasonRegistrationFailed,
				"The registry did not accept the Website; the log of the controller says why"))
		}
		if err != nil {
			return err
		}
	}
	status.RegisteredURL = status.URL
	meaning.SetCondition(website, status, meaning.Registered(status.URL))
	return nil
}

// put registers website, and sees to it that it is registered again after c.resync. It returns a
// conflict if the cache of a new process shows an old state: the Website may be gone, and nobody would
// deregister it again.
func (c *Controller) put(ctx context.Context, website *v1alpha1.Website, url string) error {
	key := cache.MetaObjectToName(website)
	if _, again := c.due.Load(key); !again {
		changed, err := c.children.owners.HasChanged(ctx, website)
		if err != nil {
			return err
		}
		if changed {
			return apierrors.NewConflict(v1alpha1.Resource("websites"), website.Name,
				errors.New("the cache shows an old state"))
		}
	}
	c.due.Delete(key) // a request that fails may have changed the registry all the same
	c.forgotten.Delete(key)
	err := c.registry.Put(ctx, string(website.UID), outside.Entry{Name: key.String(), URL: url})
	if errors.Is(err, outside.ErrBusy) {
		c.due.Store(key, time.Time{}) // nothing was sent: the next try need not read the Website again
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errRegistry, err)
	}
	delay := wait.Jitter(c.resync, jitter)
	at := time.Now().Add(delay)
	c.due.Store(key, at)
	klog.FromContext(ctx).V(5).Info("Queueing Website again", "after", delay,
		"because", "the registry may have lost it by then")
	// Not AddAfter: if a key waits already, the queue keeps only the earlier time.
	time.AfterFunc(delay, func() {
		if due, _ := c.due.Load(key); due == at { // and no later PUT has another timer
			c.queue.Add(key)
		}
	})
	return nil
}

// retryWhenLessBusy lets a Website come back to which the registry cannot attend now. No worker
// waits for that: other keys may need it.
func (c *Controller) retryWhenLessBusy(ctx context.Context, key cache.ObjectName) {
	c.enqueueWebsiteAfter(ctx, key, wait.Jitter(busyRetryDelay, 1), "the registry is busy")
}

// deregister makes the registry forget a Website, unless it has done so, and sets the result in status.
// If the registry is busy, it is not done, but returns no error either.
func (c *Controller) deregister(
	ctx context.Context, website *v1alpha1.Website, status *v1alpha1.WebsiteStatus,
) (done bool, err error) {
	key := cache.MetaObjectToName(website)
	c.due.Delete(key) // if there is a URL again, a PUT is due
	if _, forgotten := c.forgotten.Load(key); !forgotten {
		err = c.registry.Delete(ctx, string(website.UID))
	}
	if errors.Is(err, outside.ErrBusy) {
		c.retryWhenLessBusy(ctx, key)
		return false, nil
	}
	if err != nil {
		meaning.SetCondition(website, status, meaning.NotRegistered(meaning.ReasonDeregistrationFailed,
			"The registry did not forget the Website; the log of the controller says why"))
		return false, fmt.Errorf("deregistering: %w", err)
	}
	c.forgotten.Store(key, nil)
	status.RegisteredURL = ""
	return true, nil
}

// finalize deregisters a Website that is being deleted, and then lets it go. It creates and repairs
// no child: the children are deleted with the Website. If something holds the Website, such as the
// registry or the finalizer of somebody else, its status says so.
func (c *Controller) finalize(ctx context.Context, website *v1alpha1.Website) error {
	status := c.observedStatus(website, *owned.NotReady(meaning.ReasonWebsiteTerminating,
		"The Website is being deleted"))
	var done bool
	var registryErr error
	if slices.Contains(website.Finalizers, registryFinalizer) {
		if done, registryErr = c.deregister(ctx, website, &status); done {
			if registryErr = c.removeFinalizer(ctx, website); !patch.IsRefusal(registryErr) {
				return registryErr
			}
			meaning.SetCondition(website, &status, finalizerRejected)
		}
	} else {
		status.RegisteredURL = ""
		meaning.SetCondition(website, &status, meaning.NotRegistered(meaning.ReasonDeregistered,
			"The registry does not know the Website any more"))
	}
	if err := c.updateStatus(ctx, website, status); err != nil {
		return err
	}
	return registryErr
}

// removeFinalizer lets a Website go that the registry does not know any more.
func (c *Controller) removeFinalizer(ctx context.Context, website *v1alpha1.Website) error {
	left := slices.DeleteFunc(slices.Clone(website.Finalizers),
		func(name string) bool { return name == registryFinalizer })
	_, err := c.writeFinalizers(ctx, website, left)
	if patch.IsGone(err) {
		return nil // somebody else has let it go
	}
	return err
}
