package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
)

// The components of the control plane whose CPU time is measured: those that every controller
// needs, and those that can be paused.
var (
	servers = []string{"kube-apiserver", "etcd"}
	others  = []string{"kube-controller-manager", "kube-scheduler", "kwok-controller"}
)

// bench is what all runs share: a control plane, and the clients that create the Foos.
type bench struct {
	options
	cluster  *cluster.Cluster
	pids     map[string]int
	foos     fooclient.FoosGetter
	metadata metadata.Interface
}

// newBench prepares a running control plane.
func newBench(ctx context.Context, c *cluster.Cluster, o options) (*bench, error) {
	b := &bench{options: o, cluster: c, pids: map[string]int{}}
	for _, component := range append(others, servers...) {
		pid, err := c.PID(component)
		if err != nil {
			return nil, err
		}
		b.pids[component] = pid
	}
	if err := c.Install(root + "/artifacts/examples/crd.yaml"); err != nil {
		return nil, err
	}
	// Those who create what is measured are in system:masters, as the contenders are: API Priority and
	// Fairness exempts them.
	config := rest.CopyConfig(c.Config)
	config.Timeout = 0 // deleting a collection takes long
	config.Impersonate = rest.ImpersonationConfig{UserName: loadUser, Groups: []string{"system:masters"}}
	b.foos, b.metadata = fooclient.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	for _, contender := range contenders {
		if err := b.createNamespace(ctx, contender.namespace()); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// createNamespace creates a namespace, and waits until Pods can be created in it.
func (b *bench) createNamespace(ctx context.Context, namespace string) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := b.cluster.Kube.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	accounts := b.cluster.Kube.CoreV1().ServiceAccounts(namespace)
	err = cluster.WaitUntil(time.Minute, 100*time.Millisecond, func() error {
		_, err := accounts.Get(ctx, "default", metav1.GetOptions{})
		if ctx.Err() != nil {
			return nil // there is nothing to wait for any more
		}
		return err
	})
	return cmp.Or(ctx.Err(), err)
}

// pause stops the other controllers of the control plane, for good: if they went on, they would
// catch up with all that was measured.
func (b *bench) pause() error {
	for _, component := range others {
		if err := syscall.Kill(b.pids[component], syscall.SIGSTOP); err != nil {
			return fmt.Errorf("pausing %s: %w", component, err)
		}
	}
	return nil
}

const (
	// makers is how many Foos are created at a time in a burst.
	makers = 16
	// cleanTimeout limits how long it takes to delete everything that one run created.
	cleanTimeout = 10 * time.Minute
)

// resources are created in a run, and deleted in this order.
var resources = []schema.GroupVersionResource{
	{Group: v1alpha1.GroupName, Version: v1alpha1.GroupVersion.Version, Resource: "foos"},
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Version: "v1", Resource: "pods"},
	{Group: "events.k8s.io", Version: "v1", Resource: "events"},
}

// makeAll creates all Foos of a burst.
func (r *run) makeAll(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(makers)
	for i := range r.n {
		group.Go(func() error { return r.makeFoo(ctx, fmt.Sprintf("burst-%05d", i)) })
	}
	return group.Wait()
}

// makeFoo creates one Foo.
func (r *run) makeFoo(ctx context.Context, name string) error {
	_, err := r.foos.Foos(r.contender.namespace()).Create(ctx, &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: name, Replicas: new(int32(1))},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating Foo: %w", err)
	}
	return nil
}

// clean deletes everything that a run created, and waits until it is gone.
func (r *run) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cleanTimeout)
	defer cancel()
	var refused error // the last one: a server may end a request that deletes very much
	for {
		left := false
		for _, resource := range resources {
			client := r.metadata.Resource(resource).Namespace(r.contender.namespace())
			list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return fmt.Errorf("cleaning up: %w", errors.Join(err, refused))
			}
			if len(list.Items) == 0 {
				continue
			}
			left = true
			refused = client.DeleteCollection(ctx, metav1.DeleteOptions{
				GracePeriodSeconds: new(int64(0)),
				PropagationPolicy:  new(metav1.DeletePropagationBackground),
			}, metav1.ListOptions{})
		}
		if !left {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
}
