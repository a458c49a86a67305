// Command nats keeps a Deployment running for every Foo, like the program in the repository's
// root. Its Foos are not in the API server but in a key-value bucket of NATS JetStream. To put one:
//
//	nats kv put foos default.web '{"spec":{"deploymentName":"web","replicas":2}}'
//
// Read it in this order: main.go, the process; mirror.go, the copy of a bucket in memory, which
// replaces an informer; controller.go, how an event leads to a sync; owner.go, what the API server
// does for its own objects; writes.go, what a sync writes. What a Foo means is in
// examples/internal/meaning, which all implementations share.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/recorder"
)

const (
	// startTimeout limits how long the program waits for each of the two servers when it starts.
	startTimeout = 10 * time.Second
	// reconnectWait is the time between two tries if the NATS server cannot be reached.
	reconnectWait = 200 * time.Millisecond
)

// options holds what the command line sets.
type options struct {
	natsURL, store string
	port, workers  int
	resync         time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.natsURL, "nats-url", "", "`URL` of a NATS server with JetStream. "+
		"(default: a server in this process)")
	flag.IntVar(&o.port, "nats-port", 4222,
		"Port on this computer at which the server in this process listens.")
	flag.StringVar(&o.store, "nats-store", "../.local/nats",
		"`Folder` in which the server in this process keeps its data.")
	flag.IntVar(&o.workers, "workers", 16, "Foos to sync at a time.")
	flag.DurationVar(&o.resync, "resync", 10*time.Minute, "How often to list the buckets anew, "+
		"sync every Foo, and collect the Deployments whose Foo is gone.")
	klog.InitFlags(nil)
	flag.Parse()
	if err := run(o); err != nil {
		klog.Flush()
		fmt.Fprintf(os.Stderr, "%s: %v\n", controllerName, err)
		os.Exit(1)
	}
}

// run works until a signal asks it to stop, or until it cannot go on, which is an error.
func run(o options) error {
	signaled, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	kubeClient, err := newKubeClient(signaled)
	if err != nil {
		return err
	}
	url := o.natsURL
	if url == "" {
		embedded, err := startServer(o.port, o.store)
		if err != nil {
			return err
		}
		defer embedded.WaitForShutdown()
		defer embedded.Shutdown()
		url = embedded.ClientURL()
	}
	// background is for the informers and the Events, which outlive the last sync.
	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	conn, err := connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	recorder, err := recorder.New(background, kubeClient, controllerName, kubescheme.Scheme)
	if err != nil {
		return err
	}
	defer recorder.Flush(time.Second)
	controller, err := startInformers(background, kubeClient, conn, recorder)
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(signaled)
	defer fail(nil)
	controller.Run(ctx, fail, o.workers, o.resync)
	if signaled.Err() == nil {
		return context.Cause(ctx)
	}
	return nil
}

// newKubeClient returns a client for the cluster that kubectl would talk to. It returns an error if
// this program cannot list Deployments there. (An informer would retry for ever.)
func newKubeClient(ctx context.Context) (kubernetes.Interface, error) {
	config, err := clientconfig.Load("")
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating the Kubernetes client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err = client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("asking the API server at %s: %w; %s", config.Host, err,
			clientconfig.Hint())
	}
	return client, nil
}

// startServer starts a NATS server in this process. Other programs can connect to it, too.
func startServer(port int, store string) (*server.Server, error) {
	embedded, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: store, NoSigs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the NATS server: %w", err)
	}
	embedded.Start()
	if !embedded.ReadyForConnections(startTimeout) {
		embedded.Shutdown()
		return nil, fmt.Errorf("the NATS server does not listen at port %d; choose another --nats-port, "+
			"or give the --nats-url of a server that is running", port)
	}
	return embedded, nil
}

// connect connects to a NATS server. A broken connection is restored, however long that takes.
func connect(url string) (*nats.Conn, error) {
	conn, err := nats.Connect(url, nats.Name(controllerName), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait))
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %s: %w", url, err)
	}
	return conn, nil
}

// startInformers returns a Controller with what it reads from: the two buckets, which it creates if
// there are none, and two informers, which it starts and which run until ctx is done.
func startInformers(
	ctx context.Context, client kubernetes.Interface, conn *nats.Conn, recorder events.EventRecorder,
) (*Controller, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	foos, err := newMirror(ctx, js, fooBucket)
	if err != nil {
		return nil, err
	}
	statuses, err := newMirror(ctx, js, statusBucket)
	if err != nil {
		return nil, err
	}
	// The Deployments that this controller created, and the one ConfigMap that it reads in each
	// namespace.
	managed := kubeinformers.NewSharedInformerFactoryWithOptions(client, 0,
		kubeinformers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.LabelSelector = meaning.ManagedByLabel + "=" + controllerName
		}))
	defaults := kubeinformers.NewSharedInformerFactoryWithOptions(client, 0,
		kubeinformers.WithTweakListOptions(func(list *metav1.ListOptions) {
			list.FieldSelector = metav1.ObjectNameField + "=" + defaultsName
		}))
	c, err := NewController(client, foos, statuses,
		managed.Apps().V1().Deployments(), defaults.Core().V1().ConfigMaps(), recorder)
	if err != nil {
		return nil, err
	}
	// The watches may have missed what happened while the connection was interrupted.
	conn.SetReconnectHandler(func(*nats.Conn) { c.Relist() })
	managed.StartWithContext(ctx)
	defaults.StartWithContext(ctx)
	return c, nil
}
