package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	fooclient "example.com/sample-controller/pkg/generated/clientset/versioned/typed/samplecontroller/v1alpha1"
	"example.com/sample-controller/test/internal/cluster"
)

const namespace = "bench"

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
	foos     fooclient.FooInterface
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
	if err := c.InstallCRD(); err != nil {
		return nil, err
	}
	config, err := b.loadConfig()
	if err != nil {
		return nil, err
	}
	foos, err := fooclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	b.foos = foos.Foos(namespace)
	if b.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	return b, b.createNamespace(ctx)
}

// loadConfig returns the configuration of those who create what is measured. Like the contenders,
// they are in system:masters: API Priority and Fairness exempts them.
func (b *bench) loadConfig() (*rest.Config, error) {
	config, err := b.cluster.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = 0 // deleting a collection takes long
	config.Impersonate = rest.ImpersonationConfig{
		UserName: loadUser, Groups: []string{"system:masters"},
	}
	return config, nil
}

// createNamespace creates the namespace, and waits until Pods can be created in it.
func (b *bench) createNamespace(ctx context.Context) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := b.cluster.Kube.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return cluster.WaitUntil(time.Minute, 100*time.Millisecond, func() error {
		_, err := b.cluster.Kube.CoreV1().ServiceAccounts(namespace).Get(
			ctx, "default", metav1.GetOptions{})
		return err
	})
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
