package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// patience is how long a test waits for an expected change.
const patience = 3 * time.Minute

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

func newFoo(name, deploymentName string) *v1alpha1.Foo {
	return &v1alpha1.Foo{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.FooSpec{DeploymentName: deploymentName},
	}
}

// startAPIServer starts an etcd and a kube-apiserver that serves Foos, and stops them when the test
// ends. It returns a client, and the path of a kubeconfig.
func startAPIServer(t *testing.T) (c client.Client, kubeconfig string) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Skip("set KUBEBUILDER_ASSETS to the absolute path of a folder with kube-apiserver, etcd and " +
			"kubectl: that of .local/bin, after 'hack/cluster build'")
	}
	environment := &envtest.Environment{
		UseExistingCluster:       new(false), // whatever the environment variables say
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
		CRDInstallOptions: envtest.CRDInstallOptions{
			Paths: []string{"../../artifacts/examples/crd.yaml"}, MaxTime: patience,
		},
		ErrorIfCRDPathMissing: true,
	}
	t.Cleanup(func() { // also if half of it has started
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config := must.Get(environment.Start())(t)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig.yaml")
	must.Do(t, os.WriteFile(kubeconfig, environment.KubeConfig, 0o600))
	o := &options{}
	must.Do(t, o.completeManagerOptions())
	return must.Get(client.New(config, client.Options{Scheme: o.manager.Scheme}))(t), kubeconfig
}

func TestEnvtestHasAnAPIServerAndNoGarbageCollector(t *testing.T) {
	c, kubeconfig := startAPIServer(t)
	err := c.Create(t.Context(), newFoo("bad", "Not_A_Name"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "a valid Deployment name") {
		t.Errorf("got %v, want that the CustomResourceDefinition refuses the name", err)
	}

	stop := start(t, "--kubeconfig="+kubeconfig)
	defer stop()
	foo, deployment := newFoo("example-foo", "web"), &appsv1.Deployment{}
	must.Do(t, c.Create(t.Context(), foo))
	getDeployment := func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, deployment)
	}
	eventually(t, "the Foo has its Deployment", getDeployment)

	must.Do(t, c.Delete(t.Context(), foo))
	err = c.Get(t.Context(), client.ObjectKeyFromObject(foo), &v1alpha1.Foo{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that the Foo is gone", err)
	}
	if err := getDeployment(); err != nil {
		t.Errorf("got %v, want that the Deployment stays: nobody collects garbage", err)
	}
}
