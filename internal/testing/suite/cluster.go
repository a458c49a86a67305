package suite

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"example.com/sample-controller/internal/testing/cluster"
)

// hint says how to get a cluster.
const hint = "unset KUBECONFIG: then the tests start a cluster of their own"

// connect creates the clients.
func connect() (err error) {
	kubeconfig := os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	auditLogPath = filepath.Join(filepath.Dir(kubeconfig), "logs", "audit.log")
	if Cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return fmt.Errorf("reading the kubeconfig: %w; %s", err, hint)
	}
	if _, err := os.Stat(auditLogPath); err != nil { // before anything is written
		return fmt.Errorf("without an audit log, this is no cluster for tests: %w; %s", err, hint)
	}
	Cluster.QPS = -1 // no limit in the client
	Kube, err = kubernetes.NewForConfig(Cluster)
	return err
}

// installCRD installs the CustomResourceDefinition and waits until its objects are served.
func installCRD() error {
	if _, err := os.Stat(kubectlPath); err != nil {
		return fmt.Errorf("no kubectl: %w; build it with 'hack/cluster build'", err)
	}
	if err := cluster.Install(kubectlCommand, config.CRD); err != nil {
		return fmt.Errorf("installing the CRD: %w; %s", err, hint)
	}
	return nil
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

// kubectlCommand returns a kubectl that neither reads nor writes files in the user's home.
func kubectlCommand(args ...string) *exec.Cmd {
	command := exec.Command(kubectlPath, args...)
	command.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(tempDir, "cache"), "KUBERC=off")
	return command
}

// orphan is an object that the garbage collector deletes as soon as it knows the custom resource.
// It looks for new kinds every 30 s. Until then, a deleted owner leaves its objects behind.
var orphan *corev1.ConfigMap

// makeOrphan creates orphan, whose owner never existed.
func makeOrphan() (err error) {
	orphan, err = Kube.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(context.Background(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			GenerateName: "conformance-orphan-",
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: config.APIVersion, Kind: config.Kind, Name: "never-was",
				UID: "00000000-0000-0000-0000-000000000000",
			}},
		}}, metav1.CreateOptions{})
	return err
}

// awaitCollector waits until orphan is gone.
var awaitCollector = sync.OnceValue(func() error {
	limit := 60*time.Second + Patience // its first look may come too early
	for begin := time.Now(); time.Since(begin) < limit; time.Sleep(interval) {
		_, err := Kube.CoreV1().ConfigMaps(orphan.Namespace).Get(
			context.Background(), orphan.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
	}
	return fmt.Errorf("the control plane is broken: its garbage collector did not delete ConfigMap %s "+
		"within %v, although its owner does not exist", orphan.Name, limit)
})

// preparation is how long the control plane may take for work in which the controller has no part.
func preparation() time.Duration { return max(2*Patience, time.Minute) }

// checkControlPlane returns an error unless a Deployment of nobody becomes available. For that,
// the API server, kube-controller-manager, kube-scheduler and a node have to be alive.
func checkControlPlane() error {
	ctx, cancel := context.WithTimeout(context.Background(), preparation())
	defer cancel()
	namespaces := Kube.CoreV1().Namespaces()
	namespace, err := namespaces.Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-control-plane-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("the control plane is broken: %w", err)
	}
	defer func() {
		_ = namespaces.Delete(context.Background(), namespace.Name, metav1.DeleteOptions{})
	}()
	timeout := "=" + preparation().String()
	for _, args := range [][]string{
		{"create", "deployment", "nobody", "--image=registry.k8s.io/pause:3.10", "--request-timeout" + timeout},
		{"rollout", "status", "deployment/nobody", "--timeout" + timeout},
	} {
		output, err := kubectlCommand(append(args, "--namespace="+namespace.Name)...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("the control plane is broken: a Deployment that no %s owns is not "+
				"available after %v: %s; if hack/cluster started this cluster, 'hack/cluster check NAME' "+
				"says what is dead", config.Kind, preparation(), bytes.TrimSpace(output))
		}
	}
	return nil
}

// verdict says why the control plane is broken, once that is known: what is dead stays dead.
var verdict atomic.Pointer[string]

// whoIsToBlame says whether the control plane or the controller is the likelier cause of a timeout.
func whoIsToBlame() string {
	begin := time.Now()
	if err := checkControlPlane(); err != nil {
		verdict.Store(new(err.Error()))
		return err.Error()
	}
	return fmt.Sprintf("the control plane works: a Deployment that no %s owns was available after %v\n"+
		"look at the controller; if this machine is slow or busy, try again with "+
		"-patience %v -timeout 60m (make test: HACK_PATIENCE=%v)",
		config.Kind, time.Since(begin).Round(10*time.Millisecond), 4*Patience, 4*Patience)
}
