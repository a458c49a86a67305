// Command website-controller serves a page for every Website, and tells a registry outside the
// cluster of it. It shows what the controller in the root of this repository does not need: several
// children, of which one is rolled when another changes, a finalizer, and something outside
// Kubernetes.
//
// To try it, start a cluster with 'make cluster', and then:
//
//	go -C examples run ./website/registry
//	kubectl apply -f examples/website/artifacts/crd.yaml
//	go -C examples run ./website -v 2
//	kubectl apply -f examples/website/artifacts/example-website.yaml
//	kubectl get websites
//	curl http://127.0.0.1:8090/sites
//
// Before you remove the controller or the CustomResourceDefinition, delete the Websites while the
// controller runs. Nobody else removes the finalizer, and without that they stay for ever.
//
// Read it in this order: main.go, flags.go and preflight.go, the process; controller.go, how an
// event leads to a sync; children.go, what a Website owns; registration.go, the finalizer and the
// registry; status.go; the package meaning, what a Website means; and the package sites, which is the
// registry. The packages below internal/ have what any controller needs. The package conformance
// tests the whole from the outside.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"

	"example.com/sample-controller/examples/website/meaning"
	clientset "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned"
	websitescheme "example.com/sample-controller/examples/website/pkg/generated/clientset/versioned/scheme"
	websiteinformers "example.com/sample-controller/examples/website/pkg/generated/informers/externalversions"
	"example.com/sample-controller/examples/website/sites"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/leader"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/probes"
	"example.com/sample-controller/internal/recorder"
)

const (
	// flushTimeout limits how long a shutdown, and so the next leader, waits for Events to be written.
	flushTimeout = time.Second

	installHint = "install the CustomResourceDefinition: " +
		"kubectl apply -f examples/website/artifacts/crd.yaml"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	o, err := parseFlags(os.Args[1:], os.Stdout)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		report(o, err)
		logs.FlushLogs()
		os.Exit(1)
	}
	logs.FlushLogs()
}

// report says why the process ends, in one line: for people, or in JSON as the rest of the log. If
// the flags are wrong, o is nil.
func report(o *options, err error) {
	if o != nil && o.logging.Format == logsapi.JSONLogFormat {
		klog.Background().Error(err, "Exiting")
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", controllerName, strings.ReplaceAll(err.Error(), "\n", " "))
}

// run runs the process until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, o *options) error {
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
	}
	config, err := clientconfig.Load(o.kubeconfig)
	if err != nil {
		return err
	}
	p, err := newProcess(ctx, config, o, nil)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// process holds the parts of this program, connected.
type process struct {
	options    *options
	clients    *clients
	elector    *leader.Elector
	recorder   *recorder.Recorder
	informers  *informers.Group
	controller *Controller
}

// newProcess creates the parts and connects them. It makes no request. If registry is nil, the
// registry is reached as any HTTP server.
func newProcess(
	ctx context.Context, config *rest.Config, o *options, registry http.RoundTripper,
) (*process, error) {
	clients, err := newClients(config, o, registry)
	if err != nil {
		return nil, err
	}
	elector, err := leader.NewElector(clients.leader)
	if err != nil {
		return nil, err
	}
	recorder, err := newRecorder(ctx, clients.kube)
	if err != nil {
		return nil, err
	}
	kubeFactory, websiteFactory := newInformerFactories(clients, o.namespace)
	websites := websiteFactory.Website().V1alpha1().Websites()
	controller, err := NewController(clients.kube, clients.website, clients.registry, o.resync,
		websites, kubeFactory, recorder)
	if err != nil {
		return nil, err
	}
	return &process{
		options: o, clients: clients, elector: elector, recorder: recorder, controller: controller,
		informers: &informers.Group{
			Factories: []informers.Factory{websiteFactory, kubeFactory},
			Informers: []cache.SharedIndexInformer{
				websites.Informer(), kubeFactory.Core().V1().ConfigMaps().Informer(),
				kubeFactory.Core().V1().Services().Informer(),
				kubeFactory.Apps().V1().Deployments().Informer(),
			},
			SyncTimeout: o.cacheSyncTimeout,
			InstallHint: installHint,
		},
	}, nil
}

// run starts the parts and works until ctx is done, or until it cannot go on, which is an error.
// What started last stops first: no new sync begins, the running syncs finish, their Events are
// written, the Lease is released, the informers and servers stop.
func (p *process) run(ctx context.Context) error {
	// fail stops the work as ctx does: syncs that have begun are finished. But run returns an error.
	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	// background is for the servers and informers, which must outlive the work.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	o := p.options
	err := probes.Serve(background, o.healthAddress, p.elector.Check, p.informers.Check)
	if err != nil {
		return err
	}
	err = metrics.Serve(background, metrics.Config{
		Address: o.metricsAddress, Reviews: p.clients.reviews,
	})
	if err != nil {
		return err
	}
	if err := p.clients.preflight(workCtx, o.leaderElect); err != nil {
		return err
	}
	if err := p.informers.Start(workCtx, background, fail); err != nil {
		return err
	}
	work := func(ctx context.Context) {
		p.controller.Run(ctx, o.workers)
		p.recorder.Flush(flushTimeout)
	}
	if !o.leaderElect {
		work(workCtx)
	} else if err := p.elector.Run(workCtx, work); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return context.Cause(workCtx) // nobody asked it to stop: it has failed
	}
	return nil
}

// clients holds the clients for the API server, and that for the registry.
type clients struct {
	host     string
	kube     kubernetes.Interface
	website  clientset.Interface
	registry *sites.Client
	// leader has a client without --kube-api-qps: a busy controller must not lose its Lease.
	leader leader.Config
	// reviews asks who may get the metrics. It has no --kube-api-qps either: a scrape must not wait.
	reviews kubernetes.Interface
}

// newClients returns clients for a cluster, and for the registry. It makes no request.
func newClients(config *rest.Config, o *options, registry http.RoundTripper) (_ *clients, err error) {
	config = rest.CopyConfig(config)
	c := &clients{host: config.Host, leader: o.leader}
	if c.leader.Namespace == "" {
		if c.leader.Namespace, err = clientconfig.Namespace(o.kubeconfig); err != nil {
			return nil, err
		}
	}
	rest.AddUserAgent(config, controllerName)
	if c.leader.Client, err = coordinationclient.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for Leases: %w", err)
	}
	if c.reviews, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for reviews: %w", err)
	}
	config.QPS, config.Burst = float32(o.qps), o.burst
	if c.website, err = clientset.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the client for Websites: %w", err)
	}
	// Protobuf is cheaper than JSON on both sides, but custom resources do not support it.
	config.ContentType = runtime.ContentTypeProtobuf
	if c.kube, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("creating the Kubernetes client: %w", err)
	}
	if c.registry, err = sites.NewClient(o.registry, registry); err != nil {
		return nil, fmt.Errorf("reading --registry: %w", err)
	}
	return c, nil
}

// newRecorder returns a recorder of Events about Websites and their children.
func newRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.Scheme, websitescheme.Scheme)
}

// newInformerFactories returns the factories of the informers. Their memory grows with the
// Websites, not with the cluster: of other kinds, they list and watch only objects with
// meaning.ManagedByLabel.
func newInformerFactories(c *clients, namespace string) (
	kubeinformers.SharedInformerFactory, websiteinformers.SharedInformerFactory,
) {
	selectManaged := func(list *metav1.ListOptions) {
		list.LabelSelector = meaning.ManagedByLabel + "=" + controllerName
	}
	// No informer has a resync: register says when a Website is to be looked at again.
	return kubeinformers.NewSharedInformerFactoryWithOptions(c.kube, 0,
			kubeinformers.WithNamespace(namespace),
			kubeinformers.WithTweakListOptions(selectManaged),
			kubeinformers.WithTransform(informers.StripManagedFields)),
		websiteinformers.NewSharedInformerFactoryWithOptions(c.website, 0,
			websiteinformers.WithNamespace(namespace),
			websiteinformers.WithTransform(informers.StripManagedFields))
}
