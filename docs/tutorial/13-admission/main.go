// Command 13-admission is an admission webhook. It refuses a Foo that names the Deployment of
// another Foo in its namespace.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/extra/webhook"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/probes"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

const (
	// programName is the name of the ValidatingWebhookConfiguration, of the Secret with the CA, and
	// of this program as a field manager and user agent.
	programName = "foo-webhook"
	installHint = "install the CustomResourceDefinition: " +
		"kubectl apply -f artifacts/examples/crd.yaml"
	// cacheSyncTimeout is how long the first list of Foos may take.
	cacheSyncTimeout = 2 * time.Minute
)

// options are the values of the flags.
type options struct {
	address, host, healthAddress string
}

func main() {
	var o options
	flag.StringVar(&o.address, "webhook-bind-address", "127.0.0.1:9444", "serve the webhook here")
	flag.StringVar(&o.host, "webhook-host", "127.0.0.1", "the name or IP address by which the API "+
		"server calls the webhook; for a Service, NAME.NAMESPACE.svc")
	flag.StringVar(&o.healthAddress, "health-probe-bind-address", "127.0.0.1:8092",
		"serve /healthz and /readyz here, or nowhere if it is 0")
	klog.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves the webhook until ctx is done, or until it cannot go on, which is an error.
func run(ctx context.Context, o options) error {
	config, err := clientconfig.Load("")
	if err != nil {
		return err
	}
	rest.AddUserAgent(config, programName)
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := fooinformers.NewSharedInformerFactoryWithOptions(client, 0,
		fooinformers.WithTransform(informers.StripManagedFields))
	foos := factory.Samplecontroller().V1alpha1().Foos()
	validator, err := newValidator(foos)
	if err != nil {
		return fmt.Errorf("adding an indexer: %w", err)
	}
	server, err := newServer(config, o, validator.admit)
	if err != nil {
		return err
	}

	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if err := probes.Serve(workCtx, o.healthAddress, alive, server.Check); err != nil {
		return err
	}
	group := &informers.Group{
		Factories:   []informers.Factory{factory},
		Informers:   []cache.SharedIndexInformer{foos.Informer()},
		SyncTimeout: cacheSyncTimeout, InstallHint: installHint,
	}
	if err := group.Start(workCtx, workCtx, fail); err != nil {
		return err
	}
	// Not earlier: while the cache is empty, every name seems to be free.
	if err := server.Start(workCtx); err != nil {
		return err
	}
	<-workCtx.Done()
	<-server.Done()
	if ctx.Err() == nil {
		return context.Cause(workCtx) // nobody asked it to stop: it has failed
	}
	return nil
}

// alive is the liveness check: if the process runs, a restart would not make anything better.
func alive(*http.Request) error { return nil }

// newServer returns a server of the webhook. It keeps the CA in a Secret of the namespace in which
// this program runs, and writes it into the ValidatingWebhookConfiguration.
func newServer(config *rest.Config, o options, admit webhook.Admit) (*webhook.Server, error) {
	namespace, err := clientconfig.Namespace("")
	if err != nil {
		return nil, err
	}
	kubeClient, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return webhook.New(webhook.Config{
		Kube: kubeClient, Dynamic: dynamicClient, Manager: programName,
		FlagName: "webhook-bind-address", Address: o.address,
		Handler: webhook.Admission(admit), Hosts: []string{o.host},
		Namespace: namespace, Secret: programName,
		Targets: []webhook.Target{webhook.ValidatingWebhookConfiguration(programName)},
	}), nil
}
