package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"example.com/sample-controller/docs/foos"
	"example.com/sample-controller/explore/apiserver"
	"example.com/sample-controller/internal/patch"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// lagging is a client whose Cache never shows the last write. It has only Get, which names the
// object, and waits unless it may return an old state.
type lagging struct{ client.Client }

func (lagging) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if !(&client.GetOptions{}).ApplyOptions(options).DisableReadYourWritesConsistency {
		<-ctx.Done()
		return fmt.Errorf("waiting for the cache: %w", ctx.Err())
	}
	object.SetName(key.Name)
	return ctx.Err()
}

func TestReadDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reconciler{Client: lagging{}}
		foo := &v1alpha1.Foo{}
		begin := time.Now()

		err := r.get(t.Context(), client.ObjectKey{Name: "web"}, foo)

		if err != nil || foo.Name != "web" {
			t.Errorf("got Foo %q and error %v, want Foo \"web\" and no error", foo.Name, err)
		}
		if waited := time.Since(begin); waited != maxStaleness {
			t.Errorf("waited %v, want %v", waited, maxStaleness)
		}
	})
}

// TestExplore finds what docs/explore.md says, and nothing else.
func TestExplore(t *testing.T) {
	ctrl.SetLogger(klog.Logger{})
	foos.Expect(t, "../..", "../examples/controller-runtime",
		func(ctx context.Context, config *rest.Config) error {
			o, err := parseFlags([]string{"--workers=2", "--metrics-bind-address=0",
				"--health-probe-bind-address=0"})
			if err != nil {
				return err
			}
			o.manager.Controller.SkipNameValidation = new(true) // there is one after the other
			return runManager(ctx, config, o)
		})
}

// The watch of Foos may be behind when the Foo and its Deployment are gone.
func TestDeletedFooGetsNoSecondDeployment(t *testing.T) {
	o := must.Get(parseFlags(nil))(t)
	must.Do(t, o.completeManagerOptions())
	crds := must.Get(apiserver.ReadCRDs("../../artifacts/examples/crd.yaml"))(t)
	live := must.Get(client.New(apiserver.New(crds...).Config(nil),
		client.Options{Scheme: o.manager.Scheme}))(t)
	r := &Reconciler{Client: live, live: live,
		recorder: events.NewFakeRecorder(2), repairs: patch.NewRepairs()}
	deleted := &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"},
		Spec: v1alpha1.FooSpec{DeploymentName: "web", Replicas: new(int32(1))}}
	for _, want := range []int{1, 0} {
		must.Get(r.createDeployment(t.Context(), deleted))(t)
		var found appsv1.DeploymentList
		must.Do(t, r.live.List(t.Context(), &found))
		if len(found.Items) != want {
			t.Errorf("got %d Deployments, want %d", len(found.Items), want)
		}
		must.Do(t, r.DeleteAllOf(t.Context(), &appsv1.Deployment{}, client.InNamespace("default")))
	}
}

// newManager returns the program's Manager, without its Controller.
func newManager(t *testing.T) ctrl.Manager {
	o := must.Get(parseFlags([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}))(t)
	o.manager.Controller.SkipNameValidation = new(true) // -count makes it again
	must.Do(t, o.completeManagerOptions())
	return must.Get(ctrl.NewManager(apiserver.New().Config(nil), o.manager))(t)
}

// A source.Channel enqueues what does not come from a watch. An error is retried with backoff, and a
// reconcile.TerminalError is not.
func TestTerminalErrorIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mgr, calls := newManager(t), map[string]int{}
		events := make(chan event.GenericEvent, 2)
		must.Do(t, ctrl.NewControllerManagedBy(mgr).Named("channel").
			WatchesRawSource(source.Channel(events, &handler.EnqueueRequestForObject{})).
			Complete(reconcile.Func(func(_ context.Context, r ctrl.Request) (ctrl.Result, error) {
				calls[r.Name]++
				if r.Name == "hopeless" {
					return ctrl.Result{}, reconcile.TerminalError(errors.New("injected"))
				}
				return ctrl.Result{}, errors.New("injected")
			})))
		go func() { _ = mgr.Start(t.Context()) }()
		for _, name := range []string{"hopeless", "web"} {
			events <- event.GenericEvent{Object: &v1alpha1.Foo{ObjectMeta: metav1.ObjectMeta{Name: name}}}
		}
		time.Sleep(time.Hour) // of the bubble's clock
		synctest.Wait()
		if calls["hopeless"] != 1 || calls["web"] < 2 {
			t.Errorf("got the calls %v, want 1 for hopeless, and more for web", calls)
		}
	})
}

type defaulter struct{}

// Default gives a Foo the name of its Deployment, as the policy of chapter 13 does.
func (defaulter) Default(_ context.Context, foo *v1alpha1.Foo) error {
	if foo.Spec.DeploymentName == "" {
		foo.Spec.DeploymentName = foo.Name
	}
	return nil
}

// NewWebhookManagedBy makes a webhook of a function on a Go type. The test asks it what an API server
// asks, and the answer is a patch.
func TestWebhookFillsInAName(t *testing.T) {
	mgr := newManager(t)
	must.Do(t, ctrl.NewWebhookManagedBy(mgr, &v1alpha1.Foo{}).WithDefaulter(defaulter{}).Complete())
	r := httptest.NewRequest(http.MethodPost, "/mutate-samplecontroller-k8s-io-v1alpha1-foo",
		strings.NewReader(`{"request": {"object": {"metadata": {"name": "web"}, "spec": {}}}}`))
	r.Header.Set("Content-Type", "application/json")
	answer, review := httptest.NewRecorder(), admissionv1.AdmissionReview{}
	mgr.GetWebhookServer().WebhookMux().ServeHTTP(answer, r)
	must.Do(t, json.Unmarshal(answer.Body.Bytes(), &review))
	patch := string(review.Response.Patch)
	if !strings.Contains(patch, `{"op":"add","path":"/spec/deploymentName","value":"web"}`) {
		t.Errorf("got the patch %s, want one of the deploymentName", patch)
	}
}
