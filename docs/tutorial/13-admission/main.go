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

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/sample-controller/docs/tutorial/webhook"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/informers"
	"example.com/sample-controller/internal/process"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
)

const (
	// programName is the user agent, and the name of the ValidatingWebhookConfiguration.
	programName = "foo-webhook"
	installHint = "install the CustomResourceDefinition: " +
		"kubectl apply -f artifacts/examples/crd.yaml"
	// cacheSyncTimeout is how long the first list of Foos may take.
	cacheSyncTimeout = 2 * time.Minute
)

// options are the values of the flags.
type options struct {
	address, certDir, healthAddress string
}

func main() {
	var o options
	flag.StringVar(&o.address, webhook.AddressFlag, "127.0.0.1:9444", "serve the webhook here")
	flag.StringVar(&o.certDir, webhook.CertDirFlag, ".local/webhook",
		"the folder with the certificate, tls.crt, and its key, tls.key; they are read again and again")
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

	workCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	group := &informers.Group{
		Factories:   []informers.Factory{factory},
		Informers:   []cache.SharedIndexInformer{foos.Informer()},
		SyncTimeout: cacheSyncTimeout, InstallHint: installHint,
	}
	if err := group.Start(workCtx, workCtx, fail); err != nil {
		return err
	}
	// Not earlier: while the cache is empty, every name seems to be free.
	answered, err := webhook.Serve(workCtx, o.address, o.certDir, webhook.Admission(validator.admit))
	if err != nil {
		return err
	}
	// A client that gets an answer here knows that the webhook is ready.
	ok := func(*http.Request) error { return nil }
	if err := process.ServeProbes(workCtx, o.healthAddress, ok, ok); err != nil {
		return err
	}
	<-workCtx.Done()
	<-answered
	if ctx.Err() == nil {
		return context.Cause(workCtx) // nobody asked it to stop: it has failed
	}
	return nil
}
