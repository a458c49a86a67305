package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/suite"
)

const (
	deployDir = "../../artifacts/deploy"
	// deployed selects what the kustomizations install, except the CustomResourceDefinition: to
	// delete that would delete all Foos.
	deployed = "app.kubernetes.io/name=sample-controller"
	// deployedName is the name of these objects and of their namespace.
	deployedName = "sample-controller"
)

// deploy installs the controller as a user would, with kubectl, and returns its Deployment. No
// container runs, because the node is simulated. When t ends, everything is deleted, except the
// CustomResourceDefinition.
func deploy(t *testing.T, dir string, change func(manifest string) string) *appsv1.Deployment {
	t.Helper()
	manifest := suite.Kubectl(t, "", "kustomize", dir)
	if change != nil {
		manifest = change(manifest)
	}
	t.Cleanup(func() {
		suite.Kubectl(t, manifest, "delete", "--filename=-", "--selector="+deployed,
			"--ignore-not-found", "--timeout="+(4*suite.Patience).String())
	})
	suite.Kubectl(t, manifest, "apply", "--filename=-")
	deployment, err := suite.Kube.AppsV1().Deployments(deployedName).Get(
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
// ServiceAccount. But it serves metrics at metricsAddress, and no probes, unless flags say where.
func startDeployed(
	t *testing.T, deployment *appsv1.Deployment, metricsAddress string, flags ...string,
) *suite.Program {
	t.Helper()
	pod := deployment.Spec.Template.Spec
	args := append(pod.Containers[0].Args,
		"--metrics-bind-address="+metricsAddress, "--health-probe-bind-address=0")
	args = append(args, flags...)
	return suite.StartAs(t, deployment.Namespace, pod.ServiceAccountName, strings.Join(args, " "))
}

// oldNamespace matches where a manifest still names the namespace from before the change.
var oldNamespace = regexp.MustCompile(
	`(?m)^.*(namespace: |serviceaccount:)` + deployedName + `\b.*$`)

// TestAnotherNamespaceByKustomize changes the namespace as docs/production.md says. A binding that
// stays behind would give the permissions to whoever can create the old namespace.
func TestAnotherNamespaceByKustomize(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../artifacts")); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		if err := os.WriteFile(dir+path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	check := func(path, what string) {
		manifest := suite.Kubectl(t, "", "kustomize", dir+path)
		if left := oldNamespace.FindAllString(manifest, -1); len(left) > 0 {
			t.Errorf("%s: still in the old namespace: %q", what, left)
		}
		if !strings.Contains(manifest, "namespace: foo-system") {
			t.Errorf("%s: nothing is in the new namespace", what)
		}
	}
	for _, resource := range []string{"deploy", "deploy/namespaced", "deploy/policy", "monitoring"} {
		write("/kustomization.yaml", "namespace: foo-system\nresources: ["+resource+"]\n")
		check("", resource)
	}
	for _, name := range []string{"kustomization.yaml", "rbac.yaml"} {
		path := "/deploy/base/" + name
		text, err := os.ReadFile(dir + path)
		if err != nil {
			t.Fatal(err)
		}
		write(path, strings.ReplaceAll(
			string(text), "namespace: "+deployedName, "namespace: foo-system"))
	}
	check("/deploy/namespaced", "a changed base")
}
