package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	websiteclient "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned/typed/website/v1alpha1"
	"example.com/sample-controller/internal/suite/kubeconfig"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	"example.com/sample-controller/test/internal/cluster"
)

const (
	namespace = "bench"
	// warmUp is how many Foos are created before anything is measured.
	warmUp = 500
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
	cluster    *cluster.Cluster
	pids       map[string]int
	kubeClient kubernetes.Interface
	fooClient  clientset.Interface
	websites   websiteclient.WebsiteInterface
	metadata   metadata.Interface
	templates
}

// newBench prepares a running control plane.
func newBench(ctx context.Context, c *cluster.Cluster, o options) (*bench, error) {
	b := &bench{options: o, cluster: c, pids: map[string]int{}}
	for _, component := range append(others, servers...) {
		pid, _, err := c.Process(component)
		if err != nil {
			return nil, err
		}
		b.pids[component] = pid
	}
	config, err := b.configFor(userPrefix + "load")
	if err != nil {
		return nil, err
	}
	if b.kubeClient, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	if b.fooClient, err = clientset.NewForConfig(config); err != nil {
		return nil, err
	}
	websites, err := websiteclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	b.websites = websites.Websites(namespace)
	if b.metadata, err = metadata.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := c.InstallCRD(); err != nil {
		return nil, err
	}
	if err := b.installWebsites(ctx); err != nil {
		return nil, err
	}
	if err := b.createNamespace(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

// configFor returns the configuration of a user in system:masters, who may do everything, and whom
// API Priority and Fairness exempts.
func (b *bench) configFor(user string) (*rest.Config, error) {
	config, err := b.cluster.Config()
	if err != nil {
		return nil, err
	}
	config.Timeout = 0                        // deleting a collection takes long
	config.Dial = new(net.Dialer).DialContext // client-go would share a connection with other users
	config.Impersonate = rest.ImpersonationConfig{
		UserName: user, Groups: []string{"system:masters"},
	}
	return config, nil
}

// kubeconfigFor writes the same configuration to a file, for a program.
func (b *bench) kubeconfigFor(user string) (path string, err error) {
	config, err := clientcmd.LoadFromFile(b.cluster.Kubeconfig())
	if err != nil {
		return "", err
	}
	return kubeconfig.Write(b.cluster.Dir, config, user, nil)
}

// createNamespace creates the namespace, and waits until Pods can be created in it.
func (b *bench) createNamespace(ctx context.Context) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := b.kubeClient.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ; ; time.Sleep(100 * time.Millisecond) {
		_, err := b.kubeClient.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil || ctx.Err() != nil {
			return err
		}
	}
}

// prepare puts the control plane into a mode. It cannot be undone.
func (b *bench) prepare(mode string) error {
	if mode == modeWorking {
		return nil
	}
	if err := b.pause(); err != nil || mode == modePaused {
		return err
	}
	return b.separate()
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

// The processors in mode apart.
const (
	serverCPU    = "0"
	contenderCPU = "1"
)

// canSeparate reports whether this machine can do mode apart.
func canSeparate() bool {
	_, err := exec.LookPath("taskset") // of util-linux
	return err == nil && runtime.NumCPU() > 1
}

// separate gives the API server and etcd one processor. This process, which runs the references,
// gets the one that a controller gets.
func (b *bench) separate() error {
	cpus := map[int]string{os.Getpid(): contenderCPU}
	for _, component := range servers {
		cpus[b.pids[component]] = serverCPU
	}
	for pid, cpu := range cpus {
		output, err := exec.Command("taskset", "-a", "-c", "-p", cpu, strconv.Itoa(pid)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("giving process %d a processor: %w\n%s", pid, err, output)
		}
	}
	return nil
}

// readTemplates lets this repository's controller work for some Foos, and keeps what it wrote for
// one. This also warms up the API server.
func (b *bench) readTemplates(ctx context.Context) error {
	n := min(b.sizes[0], warmUp)
	r, err := b.newRun(*find(this), modeWorking, n, 0)
	if err != nil {
		return err
	}
	defer r.end()
	if err := r.start(ctx); err != nil {
		return err
	}
	if _, err := r.phase(ctx, "template", n, func() error {
		return r.makeFoos(ctx, "template", n, makers, 0)
	}); err != nil {
		return err
	}
	const name = "template-00000"
	b.foo, err = b.fooClient.SamplecontrollerV1alpha1().Foos(namespace).Get(
		ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	b.deployment, err = b.kubeClient.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	events, err := b.kubeClient.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, event := range events.Items {
		if event.Regarding.UID == b.foo.UID {
			b.event = &event
		}
	}
	if b.event == nil {
		return errors.New("this controller wrote no Event about its first Foo")
	}
	if err := r.stop(); err != nil {
		return err
	}
	return b.clean(ctx)
}
