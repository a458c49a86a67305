package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

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
	}
	t.Cleanup(func() { // also if half of it has started
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	installCRD(t, config)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig.yaml")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return newTestClient(t, config), kubeconfig
}

func TestEnvtestHasAnAPIServerAndNoGarbageCollector(t *testing.T) {
	c, kubeconfig := startAPIServer(t)
	err := c.Create(t.Context(), newFoo("default", "bad", "Not_A_Name"))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "a valid Deployment name") {
		t.Errorf("got %v, want that the CustomResourceDefinition refuses the name", err)
	}

	stop := start(t, "--kubeconfig="+kubeconfig)
	defer stop()
	foo, deployment := newFoo("default", "example-foo", "web"), &appsv1.Deployment{}
	if err := c.Create(t.Context(), foo); err != nil {
		t.Fatal(err)
	}
	getDeployment := func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, deployment)
	}
	eventually(t, "the Foo has its Deployment", getDeployment)

	if err := c.Delete(t.Context(), foo); err != nil {
		t.Fatal(err)
	}
	err = c.Get(t.Context(), client.ObjectKeyFromObject(foo), &v1alpha1.Foo{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v, want that the Foo is gone", err)
	}
	if err := getDeployment(); err != nil {
		t.Errorf("got %v, want that the Deployment stays: nobody collects garbage", err)
	}
}
