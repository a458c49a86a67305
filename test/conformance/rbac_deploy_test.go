package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	deployDir = "../../artifacts/deploy"
	// deployed selects what the kustomizations install, except the CustomResourceDefinition: to
	// delete that would delete all Foos.
	deployed = "app.kubernetes.io/name=sample-controller"
	// deployedName is the name of these objects and of their namespace.
	deployedName = "sample-controller"
)

// mustKubectl runs kubectl without a namespace. An error fails the test.
func mustKubectl(t *testing.T, stdin string, args ...string) string {
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

// deploy installs the controller as a user would, with kubectl, and returns its Deployment. No
// container runs, because the node is simulated. When t ends, everything is deleted, except the
// CustomResourceDefinition.
func deploy(t *testing.T, dir string, change func(manifest string) string) *appsv1.Deployment {
	t.Helper()
	manifest := mustKubectl(t, "", "kustomize", dir)
	if change != nil {
		manifest = change(manifest)
	}
	t.Cleanup(func() {
		mustKubectl(t, manifest, "delete", "--filename=-", "--selector="+deployed,
			"--ignore-not-found", "--timeout="+(4**patience).String())
	})
	mustKubectl(t, manifest, "apply", "--filename=-")
	deployment, err := kubeClient.AppsV1().Deployments(deployedName).Get(
		t.Context(), deployedName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return deployment
}

// watchedNamespace matches the places where the kustomization for one namespace names it.
var watchedNamespace = regexp.MustCompile(`(?m)(namespace: |--namespace=)default$`)

// watchOnly returns a function that puts the namespace into that kustomization.
func watchOnly(t *testing.T, namespace string) func(string) string {
	return func(manifest string) string {
		if n := len(watchedNamespace.FindAllString(manifest, -1)); n != 3 {
			t.Fatalf("%d places name the namespace, but the kustomization's comment says three", n)
		}
		return watchedNamespace.ReplaceAllString(manifest, "${1}"+namespace)
	}
}

// startDeployed runs the controller as its Deployment would, with the same arguments, namespace and
// ServiceAccount. But it serves metrics at metricsAddress, and no probes.
func startDeployed(t *testing.T, deployment *appsv1.Deployment, metricsAddress string) *program {
	t.Helper()
	pod := deployment.Spec.Template.Spec
	user := serviceAccountUser(deployment)
	args := append(pod.Containers[0].Args,
		"--metrics-bind-address="+metricsAddress, "--health-probe-bind-address=0")
	p := startProgram(t, strings.Join(args, " "), func(config *clientcmdapi.Config) {
		for _, info := range config.AuthInfos {
			// The API server adds the groups of all ServiceAccounts, and no others.
			info.Impersonate, info.ImpersonateGroups = user, nil
		}
		for _, context := range config.Contexts {
			context.Namespace = deployment.Namespace
		}
	})
	p.user = user // as in the audit log
	return p
}

// serviceAccountUser returns the user name of the Pods of deployment.
func serviceAccountUser(deployment *appsv1.Deployment) string {
	account := deployment.Spec.Template.Spec.ServiceAccountName
	return "system:serviceaccount:" + deployment.Namespace + ":" + account
}

// withoutWatchList makes the programs that t starts list objects, as they do if the API server
// cannot send the existing objects in a watch.
func withoutWatchList(t *testing.T) {
	t.Helper()
	const variable = "KUBE_FEATURE_WatchListClient"
	if _, set := os.LookupEnv(variable); set {
		t.Fatalf("unset %s: the test compares both settings", variable)
	}
	t.Setenv(variable, "false")
}
