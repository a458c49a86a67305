// Command 15-shards keeps a Deployment running for every Foo, as the root's program does, but
// several replicas of it work at the same time, each on some of the namespaces.
//
// The other files are those of the root, which ../assemble puts beside these: main.go, the process,
// and shard.go, the work on one shard.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	kubescheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/extra/shards"
	"example.com/sample-controller/internal/metrics"
	"example.com/sample-controller/internal/probes"
	"example.com/sample-controller/internal/recorder"
	fooscheme "example.com/sample-controller/pkg/generated/clientset/versioned/scheme"
)

// flushTimeout limits how long a shutdown waits for Events to be written.
const flushTimeout = time.Second

func main() {
	err := run(os.Args[1:])
	logs.FlushLogs()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %s\n", controllerName, strings.ReplaceAll(err.Error(), "\n", " "))
		os.Exit(1)
	}
}

// run runs the process until a signal asks it to stop, or until it cannot go on, which is an
// error.
func run(args []string) error {
	o, err := parseFlags(args, os.Stdout)
	if err != nil {
		return err
	}
	if o.version {
		fmt.Printf("%s %s, commit %s\n", controllerName, version.Get(), version.Get().GitCommit)
		return nil
	}
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once

	klog.FromContext(ctx).Info("Starting", "version", version.Get().GitVersion)
	config, err := clientconfig.Load(o.kubeconfig)
	if err != nil {
		return err
	}
	p, err := newProcess(ctx, config, o)
	if err != nil {
		return err
	}
	registerSyncErrors() // the numbers of Foos would need the caches of all shards
	return p.run(ctx)
}

// process holds the parts of this program that all shards share, connected.
type process struct {
	options  *options
	clients  *clients
	replica  *shards.Replica
	recorder *recorder.Recorder
}

// newProcess creates the parts and connects them. It makes no request.
func newProcess(ctx context.Context, config *rest.Config, o *options) (*process, error) {
	clients, err := newClients(config, o)
	if err != nil {
		return nil, err
	}
	replica, err := shards.NewReplica(shards.Config{
		Config: clients.leader, Shards: o.shards, Replica: o.replica,
	})
	if err != nil {
		return nil, err
	}
	recorder, err := newRecorder(ctx, clients.kube)
	if err != nil {
		return nil, err
	}
	return &process{options: o, clients: clients, replica: replica, recorder: recorder}, nil
}

// run works on this replica's shards until ctx is done, or until it cannot go on, which is an
// error.
func (p *process) run(ctx context.Context) error {
	// background is for the servers, which must outlive the work.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	o := p.options
	err := probes.Serve(background, o.healthAddress, p.replica.Check, p.replica.Check)
	if err != nil {
		return err
	}
	if err := metrics.Serve(background, p.clients.metrics); err != nil {
		return err
	}
	if err := p.clients.preflight(ctx, true); err != nil {
		return err
	}
	if err := p.askForShardSelectors(ctx); err != nil {
		return err
	}
	if err := p.replica.Run(ctx, p.work); err != nil {
		return err
	}
	p.recorder.Flush(flushTimeout)
	return nil
}

// askForShardSelectors says in the log whether the API server knows shard selectors. Without them,
// everything works, but each shard costs the API server and the network as much as all Foos.
func (p *process) askForShardSelectors(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, preflightTimeout)
	defer cancel()
	config := p.clients.leader
	known, err := shards.ServerFilters(ctx, config.Client.Leases(config.Namespace))
	switch {
	case err != nil:
		return fmt.Errorf("asking for shard selectors: %w", err)
	case known:
		klog.FromContext(ctx).Info("The API server knows shard selectors: it sends each shard separately")
	default:
		klog.FromContext(ctx).Info("The API server does not know shard selectors: it sends " +
			"everything for each shard, and this replica drops what is not in the shard; " +
			"switch on its feature gate ShardedListAndWatch")
	}
	return nil
}

// newRecorder returns a recorder of Events about Foos and Deployments.
func newRecorder(ctx context.Context, client kubernetes.Interface) (*recorder.Recorder, error) {
	return recorder.New(ctx, client, controllerName, kubescheme.Scheme, fooscheme.Scheme)
}
