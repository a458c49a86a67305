package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/events"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/testing/fakes"
	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const (
	namespace = "default"
	// patience is how long to wait for an expected change. It normally takes milliseconds.
	patience = 2 * time.Minute
)

// world is a real NATS server, a fake API server, and a controller between them that a test may
// stop and start. No Deployment controller runs.
type world struct {
	t    *testing.T
	kube kubernetes.Interface
	fake fakes.Clients

	folder string // of the NATS server's data
	server *server.Server
	port   int // of the server that the controller knows

	foos, statuses jetstream.KeyValue // as other clients see them
	js             jetstream.JetStream
	disconnect     func()

	controller *Controller
	stopped    <-chan struct{}
	stop       func() error // stops the controller; if it had stopped by itself, returns why
}

// newWorld returns a world without Foos, in which the controller runs.
func newWorld(t *testing.T) *world {
	t.Helper()
	clients := fakes.New()
	w := &world{t: t, kube: clients.Kube, fake: clients, folder: t.TempDir()}
	_, port, err := net.SplitHostPort(freeport.Address(t))
	must.Do(t, err)
	w.port = must.Get(strconv.Atoi(port))(t)
	w.startServer(w.port)
	w.startController()
	w.connect()
	t.Cleanup(func() {
		_ = w.stop()
		w.stopServer()
	})
	return w
}

func (w *world) startServer(port int) {
	w.t.Helper()
	w.server = must.Get(startServer(port, w.folder))(w.t)
}

// connect opens the buckets for the test's own use.
func (w *world) connect() {
	w.t.Helper()
	conn := must.Get(nats.Connect(w.server.ClientURL()))(w.t)
	w.disconnect = conn.Close
	w.js = must.Get(jetstream.New(conn))(w.t)
	w.foos = must.Get(w.js.KeyValue(w.t.Context(), fooBucket))(w.t)
	w.statuses = must.Get(w.js.KeyValue(w.t.Context(), statusBucket))(w.t)
}

func (w *world) stopServer() {
	w.disconnect()
	w.server.Shutdown()
	w.server.WaitForShutdown()
}

// startController starts a controller with one worker, which takes keys in order.
func (w *world) startController() {
	w.t.Helper()
	ctx, fail := context.WithCancelCause(context.Background())
	url := fmt.Sprintf("nats://127.0.0.1:%d", w.port)
	conn := must.Get(connect(url))(w.t)
	recorder := &events.FakeRecorder{} // it drops all Events
	controller := must.Get(startInformers(ctx, w.kube, conn, recorder))(w.t)
	w.controller = controller
	stopped := make(chan struct{})
	w.stopped = stopped
	go func() {
		defer close(stopped)
		controller.Run(ctx, fail, 1, time.Hour)
		conn.Close()
	}()
	errStopped := errors.New("stopped by the test")
	w.stop = func() error {
		fail(errStopped)
		<-stopped
		if err := context.Cause(ctx); !errors.Is(err, errStopped) {
			return err
		}
		return nil
	}
}

func (w *world) eventually(what string, check func() bool) {
	w.t.Helper()
	for begin := time.Now(); !check(); time.Sleep(2 * time.Millisecond) {
		if time.Since(begin) > patience {
			w.t.Fatalf("waited %v, but this did not happen: %s", patience, what)
		}
	}
}

func (w *world) put(name, spec string) uint64 {
	w.t.Helper()
	return must.Get(w.foos.PutString(
		w.t.Context(), keyOf(namespace, name), `{"spec":`+spec+`}`))(w.t)
}

func (w *world) delete(name string) {
	w.t.Helper()
	must.Do(w.t, w.foos.Delete(w.t.Context(), keyOf(namespace, name)))
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.t.Helper()
	deployment, err := w.kube.AppsV1().Deployments(namespace).Get(
		w.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	must.Do(w.t, err)
	return deployment
}

func (w *world) deploymentWhen(
	name, expected string, check func(*appsv1.Deployment) bool,
) (deployment *appsv1.Deployment) {
	w.t.Helper()
	w.eventually("Deployment "+name+" "+expected, func() bool {
		deployment = w.deployment(name)
		return deployment != nil && check(deployment)
	})
	return deployment
}

func (w *world) deploymentGone(name string) {
	w.t.Helper()
	w.eventually("Deployment "+name+" is gone", func() bool { return w.deployment(name) == nil })
}

func exists(*appsv1.Deployment) bool { return true }

func hasReplicas(replicas int32) func(*appsv1.Deployment) bool {
	return func(deployment *appsv1.Deployment) bool {
		return deployment.Spec.Replicas != nil && *deployment.Spec.Replicas == replicas
	}
}

// rollOut gives a Deployment the status that the Deployment controller would give it.
func (w *world) rollOut(name string) {
	w.t.Helper()
	w.changeDeployment(name, func(deployment *appsv1.Deployment) {
		replicas := meaning.DesiredReplicas(deployment.Spec.Replicas)
		deployment.Status = appsv1.DeploymentStatus{
			Replicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
		}
	})
}

func (w *world) changeDeployment(name string, change func(*appsv1.Deployment)) {
	w.t.Helper()
	deployment := w.deployment(name)
	change(deployment)
	must.Do(w.t, w.fake.KubeTracker.Update(deploymentResource, deployment, namespace))
}

// status returns the status of a Foo with its revision, 0 if there is none.
func (w *world) status(name string) (status v1alpha1.FooStatus, revision uint64) {
	w.t.Helper()
	entry, err := w.statuses.Get(w.t.Context(), keyOf(namespace, name))
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return status, 0
	}
	must.Do(w.t, err)
	var foo v1alpha1.Foo
	must.Do(w.t, json.Unmarshal(entry.Value(), &foo))
	return foo.Status, entry.Revision()
}

// reasonIs waits until the Foo's Ready condition has that reason, about that revision.
func (w *world) reasonIs(name string, revision uint64, reason string) metav1.Condition {
	w.t.Helper()
	var ready metav1.Condition
	w.eventually("Foo "+name+" says "+reason, func() bool {
		status, _ := w.status(name)
		for _, ready = range status.Conditions {
			return ready.Reason == reason && ready.ObservedGeneration == int64(revision)
		}
		return false
	})
	return ready
}

// writes returns the write requests to the API server, except those for Events.
func (w *world) writes() (writes []string) {
	for _, action := range w.fake.Kube.Actions() {
		verb, resource := action.GetVerb(), action.GetResource().Resource
		if slices.Contains([]string{"create", "update", "delete", "patch"}, verb) &&
			resource != "events" {
			writes = append(writes, verb+" "+resource)
		}
	}
	return writes
}

// catchUp waits until the controller has created the Deployment of a new Foo. By then, its worker
// has done all that was in the queue before.
func (w *world) catchUp() {
	w.t.Helper()
	w.put("last", `{"deploymentName":"last"}`)
	w.deploymentWhen("last", "exists", exists)
}
