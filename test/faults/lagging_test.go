package faults

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/freeport"
	"example.com/sample-controller/internal/suite/kubeconfig"
	"example.com/sample-controller/internal/suite/process"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

// The keys in etcd of what the controller watches.
const (
	fooKeys        = "/registry/samplecontroller.k8s.io/foos/"
	deploymentKeys = "/registry/deployments/"
)

// laggingServer is a second API server of the cluster. It lags if the proxy between it and etcd
// holds what etcd's watches show.
type laggingServer struct {
	*etcdProxy

	using      sync.Mutex
	kubeconfig string
	auditLog   string
	kube       kubernetes.Interface
	foos       clientset.Interface
}

// startLaggingServer starts the second API server once. It ends with the cluster.
var startLaggingServer = sync.OnceValues(func() (*laggingServer, error) {
	_, args, err := controlPlane.Process("kube-apiserver")
	if err != nil {
		return nil, err
	}
	address, err := freeport.Find()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	s := &laggingServer{auditLog: filepath.Join(controlPlane.Dir, "logs", "audit-lagging.log"),
		kubeconfig: filepath.Join(controlPlane.Dir, "kubeconfig-lagging.yaml")}
	if s.etcdProxy, err = startEtcdProxy(controlPlane.EtcdSocket()); err != nil {
		return nil, err
	}
	changed := map[string]string{
		"--secure-port=": port, "--audit-log-path=": s.auditLog, "--etcd-servers=": s.url,
	}
	for i, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if value, ok := changed[flag+"="]; ok {
			args[i] = flag + "=" + value
		}
	}
	log := filepath.Join(controlPlane.Dir, "logs", "kube-apiserver-lagging.log")
	if _, err := startAPIServer(args, log); err != nil {
		return nil, err
	}
	if err := s.connect(address); err != nil {
		return nil, err
	}
	if err := waitUntil(s.catchUp); err != nil {
		return nil, fmt.Errorf("the second API server does not answer: %w; its log is %s", err, log)
	}
	return s, nil
})

// lagging returns the second API server. Until the end of t, no other test uses it.
func lagging(t *testing.T) *laggingServer {
	t.Helper()
	s, err := startLaggingServer()
	if err != nil {
		t.Fatal(err)
	}
	s.using.Lock()
	t.Cleanup(s.using.Unlock)
	t.Cleanup(s.release)
	return s
}

// connect creates the clients.
func (s *laggingServer) connect(address string) error {
	loaded, err := clientcmd.LoadFromFile(controlPlane.Kubeconfig())
	if err != nil {
		return err
	}
	for _, cluster := range loaded.Clusters {
		cluster.Server = "https://" + address
	}
	if err := clientcmd.WriteToFile(*loaded, s.kubeconfig); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	if s.kube, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if s.foos, err = clientset.NewForConfig(config); err != nil {
		return err
	}
	return nil
}

// catchUp returns nil if the caches show everything that has happened before.
func (s *laggingServer) catchUp() error {
	ctx := context.Background()
	foos := s.foos.SamplecontrollerV1alpha1().Foos(metav1.NamespaceAll)
	deployments := s.kube.AppsV1().Deployments(metav1.NamespaceAll)
	newest, cached := metav1.ListOptions{Limit: 1}, metav1.ListOptions{ResourceVersion: "0"}
	fooList, err := foos.List(ctx, newest)
	if err != nil {
		return err
	}
	cachedFoos, err := foos.List(ctx, cached)
	if err != nil {
		return err
	}
	deploymentList, err := deployments.List(ctx, newest)
	if err != nil {
		return err
	}
	cachedDeployments, err := deployments.List(ctx, cached)
	if err != nil {
		return err
	}
	return errors.Join(
		isBehind("Foos", cachedFoos.ResourceVersion, fooList.ResourceVersion),
		isBehind("Deployments", cachedDeployments.ResourceVersion, deploymentList.ResourceVersion))
}

// isBehind returns an error if a cache at one resourceVersion does not show another.
func isBehind(what, cached, newest string) error {
	order, err := resourceversion.CompareResourceVersion(cached, newest)
	if err == nil && order < 0 {
		err = fmt.Errorf("the cache of %s is at %s, want %s", what, cached, newest)
	}
	return err
}

// startDirectly starts the controller for one namespace, without a proxy. It acts as user, and its
// Lease is in that namespace. environment is of the form NAME=VALUE.
func startDirectly(
	kubeconfigPath, user, namespace, environment string, flags ...string,
) (*process.Process, error) {
	config, err := clientcmd.LoadFromFile(kubeconfigPath)
	if err != nil {
		return nil, err
	}
	for _, context := range config.Contexts {
		context.Namespace = namespace
	}
	path, err := kubeconfig.Write(controlPlane.Dir, config, user, nil)
	if err != nil {
		return nil, err
	}
	args := append([]string{environment, *controllerPath, "--namespace", namespace, "-v=4",
		"--cache-sync-timeout=1h", // that of an API server that lags may take as long as a batch
		"--metrics-bind-address=0", "--health-probe-bind-address=0"}, flags...)
	return process.Start(exec.Command("env", args...), path)
}
