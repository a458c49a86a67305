package suite

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
)

// hint says how to get a cluster.
func hint() string {
	return fmt.Sprintf("run '%s', or start a cluster with 'hack/cluster up test' and set KUBECONFIG "+
		"as it says", config.Command)
}

// connect creates the clients and checks that the API server answers.
func connect() error {
	kubeconfig := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	if kubeconfig == "" {
		return fmt.Errorf("KUBECONFIG is not set; %s", hint())
	}
	if auditLogPath == "" {
		auditLogPath = filepath.Join(filepath.Dir(kubeconfig), "logs", "audit.log")
	}
	var err error
	if Cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w; %s", err, hint())
	}
	Cluster.QPS = -1 // no limit in the client
	if Kube, err = kubernetes.NewForConfig(Cluster); err != nil {
		return err
	}
	return ping()
}

// ping checks that the API server answers. Its error says what to do.
func ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), preparation())
	defer cancel()
	_, err := Kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		err = fmt.Errorf("the API server at %s does not answer: %w; %s", Cluster.Host, err, hint())
	}
	return err
}

// objects returns a client for the custom resource that reads only metadata.
func objects() (metadata.Getter, error) {
	client, err := metadata.NewForConfig(Cluster)
	if err != nil {
		return nil, err
	}
	return client.Resource(groupVersion().WithResource(config.Resource)), nil
}

// installCRD installs the CustomResourceDefinition and waits until its objects are served.
func installCRD() error {
	if _, err := os.Stat(kubectlPath); err != nil {
		return fmt.Errorf("no kubectl: %w; build it with 'hack/cluster build' or set -kubectl", err)
	}
	apply := []string{"apply", "--server-side", "--force-conflicts", "-f", config.CRD}
	if output, err := kubectlCommand(apply...).CombinedOutput(); err != nil {
		return fmt.Errorf("installing the CRD: %w: %s", err, output)
	}
	all, err := objects()
	if err != nil {
		return err
	}
	for begin := time.Now(); time.Since(begin) < preparation(); time.Sleep(interval) {
		_, err = all.Namespace(metav1.NamespaceAll).List(context.Background(), metav1.ListOptions{})
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("the API server does not serve %s: %w", config.Resource, err)
}

// Kubectl runs kubectl without a namespace, with stdin as its input, and returns what it prints. An
// error fails t.
func Kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	command := kubectlCommand(args...)
	command.Stdin = strings.NewReader(stdin)
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, problems.String())
	}
	return string(output)
}

// kubectlCommand returns a kubectl that keeps its cache out of the user's home.
func kubectlCommand(args ...string) *exec.Cmd {
	command := exec.Command(kubectlPath, args...)
	command.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(tempDir, "cache"))
	return command
}
