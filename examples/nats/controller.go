package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/internal/outside"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

// Controller makes Deployments, the secondary resource, match the specs of Foos, the primary one.
// Defaults are the tertiary one: it only reads them. The workers of the Process call SyncHandler.
type Controller struct {
	*outside.Process
	server
	foos, values  *source
	defaults      listers.FooLister // of values
	deleteMissing bool
}

// server is the part of a NATS server that the controller uses.
type server interface {
	Bucket(ctx context.Context, name string) (bucket, error)
	Check(*http.Request) error
}

// NewController returns a Controller of the Foos on a server. It makes no request.
func NewController(
	ctx context.Context, config *rest.Config, o *options, s server,
) (_ *Controller, err error) {
	buckets := source{keys: "*." + cmp.Or(o.Namespace, "*") + ".>", resync: o.Resync}
	c := &Controller{server: s, deleteMissing: o.deleteMissing}
	c.foos, c.values = new(buckets), new(buckets)
	if c.Process, err = outside.New(ctx, config, &o.Options, c, c.foos.informer()); err != nil {
		return nil, err
	}
	values := c.values.informer()
	c.defaults = listers.NewFooLister(values.GetIndexer())
	return c, c.Watch(values, c.EnqueueNamespace)
}

// Connect opens the buckets. It does not make them: a bucket that is not there is not an empty one.
func (c *Controller) Connect(ctx context.Context) (err error) {
	if c.foos.bucket, err = c.Bucket(ctx, fooBucket); err == nil {
		c.values.bucket, err = c.Bucket(ctx, defaultBucket)
	}
	return err
}

// Get reads a Foo from the bucket: not its status, nor the default.
func (c *Controller) Get(ctx context.Context, namespace, name string) (*v1alpha1.Foo, error) {
	foo := outside.NewFoo(cache.NewObjectName(namespace, name))
	entry, err := c.foos.bucket.Get(ctx, keyOf("spec", foo))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("foos"), name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Foo: %w", err)
	}
	foo.Generation = int64(entry.Revision())
	return foo, nil
}

// SyncHandler syncs the Foo of key, and writes its status if there is something new to report.
func (c *Controller) SyncHandler(ctx context.Context, key cache.ObjectName) error {
	foo, err := c.Foos.Foos(key.Namespace).Get(key.Name)
	if err != nil { // a lister has no other error than NotFound
		foo = outside.NewFoo(key)
	}
	if isGone(foo) {
		return c.finalize(ctx, foo)
	}
	value, err := c.defaults.Foos(key.Namespace).Get(defaultName)
	if err == nil && foo.Spec.Replicas == nil {
		foo = foo.DeepCopy()
		foo.Spec.Replicas = value.Spec.Replicas
	}
	status, err := c.SyncDeployment(ctx, foo)
	if err != nil || status == nil {
		return err
	}
	return c.updateStatus(ctx, foo, status)
}

// updateStatus writes the status of foo. The bucket refuses that if another replica has written it
// since. The revision of a status that is not there is 0.
func (c *Controller) updateStatus(
	ctx context.Context, foo *v1alpha1.Foo, status *v1alpha1.FooStatus,
) error {
	value, _ := json.Marshal(map[string]any{"status": status}) // no error: it is plain data
	revision, _ := strconv.ParseUint(foo.Annotations[statusRevision], 10, 64)
	revision, err := c.foos.bucket.Update(ctx, keyOf("status", foo), value, revision)
	if errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return apierrors.NewConflict(v1alpha1.Resource("foos"), foo.Name, err)
	} else if err != nil {
		return fmt.Errorf("writing the status: %w", err)
	}
	c.FooWrites.WroteAt(cache.MetaObjectToName(foo), strconv.FormatUint(revision, 10))
	return nil
}

// finalize deletes the Deployments of a Foo that is not in the bucket, and its status last: if the
// process dies in between, the status is left to say that there is more to do.
//
// Without a delete marker, nobody has deleted the Foo: the bucket was emptied or replaced, or the
// marker was purged. Then the Deployments stay, unless --delete-missing is set.
func (c *Controller) finalize(ctx context.Context, foo *v1alpha1.Foo) error {
	left, err := c.Left(foo)
	if err != nil {
		return err
	}
	if len(left) > 0 && foo.DeletionTimestamp == nil && !c.deleteMissing {
		klog.FromContext(ctx).Error(nil, "Kept the Deployment of a Foo that is missing")
		c.Recorder.Eventf(foo, left[0], corev1.EventTypeWarning, "FooMissing", "KeepDeployment",
			"The bucket has neither the Foo nor a delete marker: kept Deployment %q", left[0].Name)
		return nil
	}
	if _, err := c.Get(ctx, foo.Namespace, foo.Name); !apierrors.IsNotFound(err) {
		return err // nil if the Foo is there again: the event of that is on the way
	}
	if err := c.Delete(ctx, foo, left); err != nil {
		return err
	}
	c.Forget(foo)
	if foo.Status.ObservedGeneration == 0 {
		return nil
	}
	return c.foos.bucket.Delete(ctx, keyOf("status", foo))
}
