package monitoring

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	clientset "example.com/sample-controller/pkg/generated/clientset/versioned"
)

var onCluster = flag.Bool("cluster", false,
	"let a real Prometheus read the metrics of the real controller, on the cluster of KUBECONFIG")

const (
	name = "sample-controller" // of the Deployment, its namespace, and more
	// prometheusName and prometheusNamespace are who may read the metrics, says rbac.yaml.
	prometheusName, prometheusNamespace = "prometheus-k8s", "monitoring"
)

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Resource: "foos",
		CRD: root + "artifacts/examples/crd.yaml", Root: "../..", Controller: name,
		Flags: "--health-probe-bind-address=0", Command: "hack/test monitoring",
	})
	flag.Parse()
	if !*onCluster {
		os.Exit(m.Run())
	}
	os.Exit(suite.Run(m))
}

// world is a cluster with what artifacts/deploy and artifacts/monitoring/rbac.yaml install.
type world struct {
	t    *testing.T
	foos string // the namespace of the Foos
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, foos: suite.NewNamespace(t).Name}
	w.install(suite.Kubectl(t, "", "kustomize", root+"artifacts/deploy"))
	suite.Kubectl(t, "", "create", "namespace", prometheusNamespace)
	t.Cleanup(func() {
		suite.Kubectl(t, "", "delete", "namespace", prometheusNamespace, "--wait=false")
	})
	suite.Kubectl(t, "", "-n", prometheusNamespace, "create", "serviceaccount", prometheusName)
	w.install(readFile(t, folder+"rbac.yaml"))
	return w
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
	manifest = strings.Join(mine, "\n---\n")
	w.t.Cleanup(func() {
		suite.Kubectl(w.t, manifest, "delete", "--filename=-", "--ignore-not-found",
			"--timeout", suite.Patience.String())
	})
	suite.Kubectl(w.t, manifest, "apply", "--filename=-")
}

// startReplicas waits for the Pods of the Deployment. No container runs in them, because the node
// is simulated. So it starts the controller for each of them beside the cluster, with the arguments
// and the permissions of the Pod. It returns where each serves its metrics, by the name of the Pod.
func (w *world) startReplicas() (addresses map[string]string) {
	w.t.Helper()
	var deployment *appsv1.Deployment
	var pods *corev1.PodList
	suite.Eventually(w.t, "the Deployment has its Pods", func() (bool, string) {
		var err error
		deployment, err = suite.Kube.AppsV1().Deployments(name).Get(
			w.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			pods, err = suite.Kube.CoreV1().Pods(name).List(w.t.Context(), metav1.ListOptions{})
		}
		if err != nil {
			return false, err.Error()
		}
		return len(pods.Items) == int(*deployment.Spec.Replicas), fmt.Sprint(len(pods.Items))
	})
	spec := deployment.Spec.Template.Spec
	addresses = map[string]string{}
	for _, pod := range pods.Items {
		addresses[pod.Name] = freeport.Address(w.t)
		suite.StartAs(w.t, name, spec.ServiceAccountName, strings.Join(spec.Containers[0].Args, " ")+
			" --metrics-bind-address="+addresses[pod.Name])
	}
	return addresses
}

// prometheusConfig returns the configuration of a client that has the permissions of Prometheus.
func (w *world) prometheusConfig() *rest.Config {
	w.t.Helper()
	issued := must.Get(suite.Kube.CoreV1().ServiceAccounts(prometheusNamespace).CreateToken(
		w.t.Context(), prometheusName, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(w.t)
	config := rest.AnonymousClientConfig(suite.Cluster)
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
		suite.Kubectl(w.t, fmt.Sprintf("apiVersion: samplecontroller.k8s.io/v1alpha1\nkind: Foo\n"+
			"metadata: {name: %s, namespace: %s}\nspec: {deploymentName: %s, replicas: 0}\n",
			one, w.foos, one), "apply", "--filename=-")
	}
	foos := clientset.NewForConfigOrDie(suite.Cluster).SamplecontrollerV1alpha1().Foos(w.foos)
	replicas := 0
	return func() {
		replicas = 1 - replicas
		for _, one := range []string{"well", "refused"} {
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
			must.Get(foos.Patch(context.Background(), one, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{}))(w.t)
		}
	}
}
