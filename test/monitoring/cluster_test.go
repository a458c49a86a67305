package monitoring

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/suite/kubeconfig"
	"example.com/sample-controller/internal/testing/suite/process"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

var (
	onCluster = flag.Bool("cluster", false,
		"let a real Prometheus read the metrics of the real controller, on the cluster of KUBECONFIG")
	patience = flag.Duration("patience", time.Minute, "how long to wait for an expected change")
)

const (
	name = "sample-controller" // of the Deployment, its namespace, and more
	// prometheusName and prometheusNamespace are who may read the metrics, says rbac.yaml.
	prometheusName, prometheusNamespace = "prometheus-k8s", "monitoring"
)

// eventually waits until check returns true. A failure says what was seen last.
func eventually(t *testing.T, what string, check func() (ok bool, seen string)) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		ok, seen := check()
		if ok {
			return
		}
		if time.Since(begin) > *patience {
			t.Fatalf("waited %v, but this did not happen: %s\nlast seen: %s", *patience, what, seen)
		}
	}
}

// world is a cluster with what artifacts/deploy and artifacts/monitoring/rbac.yaml install.
type world struct {
	t      *testing.T
	config *rest.Config
	kube   kubernetes.Interface
	foos   string // the namespace of the Foos
	cache  string // of kubectl
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, foos: fmt.Sprintf("monitored-%d", time.Now().UnixNano()),
		cache: t.TempDir()}
	var err error
	w.config, err = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	w.kube = kubernetes.NewForConfigOrDie(w.config)
	w.kubectl("", "create", "namespace", w.foos)
	t.Cleanup(func() { w.kubectl("", "delete", "namespace", w.foos, "--wait=false") })
	w.kubectl("", "apply", "--server-side", "-f", root+"artifacts/examples/crd.yaml")
	foos := clientset.NewForConfigOrDie(w.config).SamplecontrollerV1alpha1().Foos(w.foos)
	eventually(t, "the API server serves Foos", func() (bool, string) {
		_, err := foos.List(t.Context(), metav1.ListOptions{})
		return err == nil, fmt.Sprint(err)
	})
	w.install(w.kubectl("", "kustomize", root+"artifacts/deploy"))
	w.kubectl("", "create", "namespace", prometheusNamespace)
	t.Cleanup(func() { w.kubectl("", "delete", "namespace", prometheusNamespace, "--wait=false") })
	w.kubectl("", "-n", prometheusNamespace, "create", "serviceaccount", prometheusName)
	w.install(readFile(t, folder+"rbac.yaml"))
	return w
}

// kubectl runs kubectl with that input, and returns what it prints. An error fails the test.
func (w *world) kubectl(input string, args ...string) string {
	w.t.Helper()
	command := exec.Command(root+".local/bin/kubectl", args...)
	command.Env = append(os.Environ(), "KUBECACHEDIR="+w.cache)
	command.Stdin = strings.NewReader(input)
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		w.t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, problems.String())
	}
	return string(output)
}

// install applies a manifest. When the test ends, everything of it is deleted again, except for the
// CustomResourceDefinition.
func (w *world) install(manifest string) {
	w.t.Helper()
	var mine []string
	for object := range strings.SplitSeq(manifest, "\n---\n") {
		if !strings.Contains(object, "\nkind: CustomResourceDefinition\n") {
			mine = append(mine, object)
		}
	}
	w.t.Cleanup(func() {
		w.kubectl(strings.Join(mine, "\n---\n"), "delete", "--filename=-", "--ignore-not-found",
			"--timeout", patience.String())
	})
	w.kubectl(strings.Join(mine, "\n---\n"), "apply", "--filename=-")
}

// startReplicas waits for the Pods of the Deployment. No container runs in them, because the node
// is simulated. So it starts the controller for each of them beside the cluster, with the arguments
// and the permissions of the Pod. It returns where each serves its metrics, by the name of the Pod.
func (w *world) startReplicas() (addresses map[string]string) {
	w.t.Helper()
	deployment, err := w.kube.AppsV1().Deployments(name).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var pods *corev1.PodList
	eventually(w.t, "the Deployment has its Pods", func() (bool, string) {
		pods, err = w.kube.CoreV1().Pods(name).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == int(*deployment.Spec.Replicas), fmt.Sprint(len(pods.Items))
	})
	addresses = map[string]string{}
	for _, pod := range pods.Items {
		addresses[pod.Name] = w.startController(deployment, pod.Name)
	}
	return addresses
}

// startController starts the controller as a Pod of deployment, and returns where the metrics are.
func (w *world) startController(deployment *appsv1.Deployment, pod string) (address string) {
	w.t.Helper()
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		w.t.Fatal(err)
	}
	spec := deployment.Spec.Template.Spec
	path, err := kubeconfig.Write(w.t.TempDir(), config, pod, func(config *clientcmdapi.Config) {
		for _, info := range config.AuthInfos {
			info.Impersonate = strings.Join(
				[]string{"system:serviceaccount", deployment.Namespace, spec.ServiceAccountName}, ":")
			info.ImpersonateGroups = nil // the API server adds those of ServiceAccounts
		}
		for _, context := range config.Contexts {
			context.Namespace = deployment.Namespace
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	address = freeport.Address(w.t)
	args := append(spec.Containers[0].Args, "--metrics-bind-address="+address,
		"--health-probe-bind-address=0")
	started, err := process.Start(exec.Command(filepath.Join(root, ".local/bin", name), args...), path)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			w.t.Error(err)
		}
		if w.t.Failed() {
			w.t.Logf("output of the controller as %s:\n%s", pod, started.Output())
		}
	})
	return address
}

// prometheusConfig returns the configuration of a client that has the permissions of Prometheus.
func (w *world) prometheusConfig() *rest.Config {
	w.t.Helper()
	issued, err := w.kube.CoreV1().ServiceAccounts(prometheusNamespace).CreateToken(w.t.Context(),
		prometheusName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(w.config)
	config.BearerToken = issued.Status.Token
	return config
}

// refusal makes the API server refuse the statuses of Foos that are called "refused".
const refusal = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: monitored}
spec:
  matchConstraints:
    resourceRules:
    - apiGroups: [samplecontroller.k8s.io]
      apiVersions: ["*"]
      operations: [UPDATE]
      resources: [foos/status]
  validations:
  - {expression: object.metadata.name != "refused", reason: Forbidden, message: injected}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: monitored}
spec: {policyName: monitored, validationActions: [Deny]}
`

// createFoos creates two Foos, and returns a function that changes both. The controller can never
// write the status of the second one.
func (w *world) createFoos() (change func()) {
	w.t.Helper()
	w.install(refusal)
	for _, one := range []string{"well", "refused"} {
		w.kubectl(fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\n"+
			"metadata: {name: %s, namespace: %s}\nspec: {deploymentName: %s, replicas: 0}\n",
			one, w.foos, one), "apply", "--filename=-")
	}
	foos := clientset.NewForConfigOrDie(w.config).SamplecontrollerV1alpha1().Foos(w.foos)
	replicas := 0
	return func() {
		replicas = 1 - replicas
		for _, one := range []string{"well", "refused"} {
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			_, err := foos.Patch(context.Background(), one, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
		}
	}
}
