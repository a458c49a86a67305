// Command bridge makes it possible to test a controller whose Foos are in NATS like one whose Foos
// are in the API server. It copies every Foo, and its deletion, from the API server to the bucket,
// and every status from the other bucket to the Foo. It knows the controller only by its buckets.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
	fooinformers "example.com/sample-controller/pkg/generated/informers/externalversions"
	listers "example.com/sample-controller/pkg/generated/listers/samplecontroller/v1alpha1"
)

const (
	maxRetryDelay = 500 * time.Millisecond
	workers       = 8
	// timeout limits one sync: while no controller runs, no NATS server answers.
	timeout = 2 * time.Second
)

type bridge struct {
	client   clientset.Interface
	foos     listers.FooLister
	js       jetstream.JetStream
	queue    workqueue.TypedRateLimitingInterface[string]
	informer cache.SharedIndexInformer
}

func main() {
	url := flag.String("nats-url", nats.DefaultURL, "`URL` of the NATS server of the controller")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *url); err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
		os.Exit(1)
	}
}

// run copies until ctx is done. The NATS server may come and go with the controller.
func run(ctx context.Context, url string) error {
	config, err := clientconfig.Load("")
	if err != nil {
		return err
	}
	client, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	connected := make(chan struct{}, 1)
	again := func(*nats.Conn) {
		select {
		case connected <- struct{}{}:
		default:
		}
	}
	conn, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(50*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ConnectHandler(again), nats.ReconnectHandler(again))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	factory := fooinformers.NewSharedInformerFactory(client, 0)
	foos := factory.Samplecontroller().V1alpha1().Foos()
	b := &bridge{
		client: client, foos: foos.Lister(), js: js, informer: foos.Informer(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](
				5*time.Millisecond, maxRetryDelay)),
	}
	if err := b.addHandler(); err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	if !cache.WaitFor(ctx, "", b.informer.HasSyncedChecker()) {
		return nil
	}
	for range workers {
		go b.work(ctx)
	}
	b.watchAgain(ctx, connected)
	b.queue.ShutDown()
	return nil
}

// key returns the key of a Foo in the buckets.
func key(foo metav1.Object) string { return foo.GetNamespace() + "." + foo.GetName() }

func (b *bridge) addHandler() error {
	_, err := b.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { b.queue.Add(key(object.(metav1.Object))) },
		UpdateFunc: func(_, object any) { b.queue.Add(key(object.(metav1.Object))) },
		DeleteFunc: func(object any) {
			if missed, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = missed.Obj
			}
			b.queue.Add(key(object.(metav1.Object)))
		},
	})
	return err
}

// watchAgain watches the buckets again after each new connection. There may be a new server behind
// it, and a new watch begins with everything that has changed meanwhile.
func (b *bridge) watchAgain(ctx context.Context, connected <-chan struct{}) {
	for ctx.Err() == nil {
		watchCtx, stop := context.WithCancel(ctx)
		for _, bucket := range []string{"foos", "foo-status"} {
			go b.watch(watchCtx, bucket)
		}
		select {
		case <-connected:
		case <-ctx.Done():
		}
		stop()
	}
}

// watch enqueues the key of every entry of the bucket, as soon as the bucket exists.
func (b *bridge) watch(ctx context.Context, bucket string) {
	for ; ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		kv, err := b.js.KeyValue(ctx, bucket)
		if err != nil {
			continue
		}
		watcher, err := kv.WatchAll(ctx)
		if err != nil {
			continue
		}
		for {
			select {
			case <-ctx.Done():
				_ = watcher.Stop()
				return
			case entry := <-watcher.Updates():
				if entry != nil {
					b.queue.Add(entry.Key())
				}
			}
		}
	}
}

func (b *bridge) work(ctx context.Context) {
	for {
		key, shutdown := b.queue.Get()
		if shutdown {
			return
		}
		syncCtx, cancel := context.WithTimeout(ctx, timeout)
		if err := b.sync(syncCtx, key); err != nil {
			b.queue.AddRateLimited(key)
		} else {
			b.queue.Forget(key)
		}
		cancel()
		b.queue.Done(key)
	}
}

// sync copies the Foo of that key from the API server to the bucket, and then the status of the Foo
// from the other bucket to the API server.
func (b *bridge) sync(ctx context.Context, key string) error {
	specs, err := b.js.KeyValue(ctx, "foos")
	if err != nil {
		return err
	}
	statuses, err := b.js.KeyValue(ctx, "foo-status")
	if err != nil {
		return err
	}
	entry, err := specs.Get(ctx, key)
	if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
		return err
	}
	namespace, name, _ := strings.Cut(key, ".")
	foo, err := b.foos.Foos(namespace).Get(name)
	if apierrors.IsNotFound(err) || err == nil && foo.DeletionTimestamp != nil {
		if entry == nil {
			return nil
		}
		return specs.Delete(ctx, key)
	}
	if err != nil {
		return err
	}
	if entry == nil || !isSame(entry.Value(), foo) {
		value, err := json.Marshal(foo)
		if err != nil {
			return err
		}
		_, err = specs.Put(ctx, key, value)
		return err // the event of this put brings the key back
	}
	status, err := statuses.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return b.writeStatus(ctx, foo, entry.Revision(), status.Value())
}

// isSame reports whether value is foo with the same spec.
func isSame(value []byte, foo *v1alpha1.Foo) bool {
	var known v1alpha1.Foo
	return json.Unmarshal(value, &known) == nil && known.UID == foo.UID &&
		known.Generation == foo.Generation
}

// writeStatus writes a status from the bucket into foo. In the bucket, observedGeneration is a
// revision of the Foo; in foo, it must be a generation. If the status is about an older revision,
// writeStatus does nothing, because a newer status will follow.
func (b *bridge) writeStatus(
	ctx context.Context, foo *v1alpha1.Foo, revision uint64, value []byte,
) error {
	var known v1alpha1.Foo
	if err := json.Unmarshal(value, &known); err != nil {
		return err
	}
	status := known.Status
	if status.ObservedGeneration != int64(revision) {
		return nil
	}
	status.ObservedGeneration = foo.Generation
	for i := range status.Conditions {
		status.Conditions[i].ObservedGeneration = foo.Generation
	}
	if equality.Semantic.DeepEqual(status, foo.Status) {
		return nil
	}
	// Because of the resourceVersion, the API server refuses it for another Foo of that name.
	updated := foo.DeepCopy()
	updated.Status = status
	_, err := b.client.SamplecontrollerV1alpha1().Foos(foo.Namespace).UpdateStatus(
		ctx, updated, metav1.UpdateOptions{FieldManager: "bridge"})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
