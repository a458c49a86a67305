package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/sample-controller/examples/internal/meaning"
	"example.com/sample-controller/internal/clientconfig"
	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

var onCluster = flag.Bool("cluster", false, "test the webhooks, on the cluster of KUBECONFIG")

// patience is how long a test waits for an expected change.
const patience = 3 * time.Minute

// eventually waits until check returns nil.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %v", patience, what, err)
		}
	}
}

// newTestClient returns a client that knows Foos.
func newTestClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	o := &options{}
	if _, err := o.completeManagerOptions(); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: o.manager.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// useCluster makes the cluster serve Foos, and returns a client for it and the name of a new
// namespace.
func useCluster(t *testing.T) (c client.Client, namespace string) {
	t.Helper()
	config, err := clientconfig.Load("")
	if err != nil {
		t.Fatal(err)
	}
	installCRD(t, config)
	c = newTestClient(t, config)
	created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "webhooks-"}}
	if err := c.Create(t.Context(), created); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Delete(context.Background(), created) })
	return c, created.Name
}

func installCRD(t *testing.T, config *rest.Config) {
	t.Helper()
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{"../../artifacts/examples/crd.yaml"}, ErrorIfPathMissing: true,
		MaxTime: patience,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// start runs the program with these flags, until stop is called.
func start(t *testing.T, args ...string) (stop func()) {
	t.Helper()
	args = append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx, args) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the program failed: %v", err)
		}
	}
}

// startWebhooks is start in a namespace, with the webhooks.
func startWebhooks(t *testing.T, namespace string) (stop func()) {
	t.Helper()
	_, port, err := net.SplitHostPort(freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, "--webhooks", "--namespace="+namespace, "--webhook-port="+port)
}

// newFoo returns a Foo, without a deploymentName if it is empty.
func newFoo(namespace, name, deploymentName string) client.Object {
	foo := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	foo.SetGroupVersionKind(meaning.FooKind)
	foo.SetNamespace(namespace)
	foo.SetName(name)
	if deploymentName != "" {
		_ = unstructured.SetNestedField(foo.Object, deploymentName, "spec", "deploymentName")
	}
	return foo
}

// seenFoo returns the Foo of that name once it has a status: then, the program's Cache shows it.
func seenFoo(t *testing.T, c client.Client, namespace, name string) *v1alpha1.Foo {
	t.Helper()
	foo := &v1alpha1.Foo{}
	eventually(t, "Foo "+name+" has a status", func() error {
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, foo)
		if err == nil && foo.Status.ObservedGeneration == 0 {
			err = errors.New("no status")
		}
		return err
	})
	return foo
}

// refusedFor fails the test unless err is from a webhook and says that the Foo of that name has the
// Deployment.
func refusedFor(t *testing.T, err error, name string) {
	t.Helper()
	message := fmt.Sprintf("is the Deployment of Foo %q", name)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "admission webhook") ||
		!strings.Contains(err.Error(), message) {
		t.Errorf("got %v, want an admission webhook's error with %q", err, message)
	}
}

func TestWebhooks(t *testing.T) {
	if !*onCluster {
		t.Skip("needs -cluster, and a cluster in KUBECONFIG")
	}
	c, namespace := useCluster(t)
	if err := c.Create(t.Context(), newFoo(namespace, "web", "")); !apierrors.IsInvalid(err) {
		t.Fatalf("without webhooks: got %v, want deploymentName to be required", err)
	}
	stop := startWebhooks(t, namespace)

	eventually(t, "a Foo without deploymentName is accepted", func() error {
		return c.Create(t.Context(), newFoo(namespace, "web", ""))
	})
	if got := seenFoo(t, c, namespace, "web").Spec.DeploymentName; got != "web" {
		t.Errorf("got deploymentName %q, want the Foo's name", got)
	}

	refusedFor(t, c.Create(t.Context(), newFoo(namespace, "second", "web")), "web")
	other := newFoo(namespace, "other", "")
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	rename := client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"deploymentName":"web"}}`))
	refusedFor(t, c.Patch(t.Context(), other, rename), "web")

	stop()
	left := &admissionv1.MutatingWebhookConfiguration{}
	err := c.Get(t.Context(), client.ObjectKey{Name: controllerName}, left)
	if !apierrors.IsNotFound(err) {
		t.Errorf("the program has ended: got %v, want its webhooks gone", err)
	}
}
