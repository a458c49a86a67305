package conformance

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

// thief returns how somebody with the token of the deployed controller finds the cluster. The API
// server adds the groups of ServiceAccounts.
func thief(deployment *appsv1.Deployment) *rest.Config {
	return as("system:serviceaccount:" + deployment.Namespace + ":" +
		deployment.Spec.Template.Spec.ServiceAccountName)
}

func TestTokenOfTheDeployedControllerLivesForAnHour(t *testing.T) {
	template := suite.Deploy(t, deployDir, nil).Spec.Template.Spec
	mounted := template.Volumes[0].Projected.Sources[0].ServiceAccountToken
	if template.AutomountServiceAccountToken == nil || *template.AutomountServiceAccountToken ||
		mounted.Audience != "" || *mounted.ExpirationSeconds > 3600 {
		t.Errorf("the Pod mounts the token %+v; want only one for the API server, for an hour",
			template.Volumes)
	}
}

func TestDeployedPodsMeetTheRestrictedStandard(t *testing.T) {
	deployment := suite.Deploy(t, deployDir, nil)
	namespace := must.Get(suite.Kube.CoreV1().Namespaces().Get(
		t.Context(), deployment.Namespace, metav1.GetOptions{}))(t)
	if level := namespace.Labels["pod-security.kubernetes.io/enforce"]; level != "restricted" {
		t.Fatalf("the namespace enforces the Pod Security Standard %q, want restricted", level)
	}

	suite.Eventually(t, "all replicas are available", func() (bool, string) {
		deployment := must.Get(suite.Kube.AppsV1().Deployments(deployment.Namespace).Get(
			t.Context(), deployment.Name, metav1.GetOptions{}))(t)
		return *deployment.Spec.Replicas == 2 && deployment.Status.AvailableReplicas == 2,
			fmt.Sprintf("%+v", deployment.Status)
	})

	// Their admission proves something only if other Pods are refused.
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	pods, options := suite.Kube.CoreV1().Pods(deployment.Namespace), metav1.CreateOptions{DryRun: dryRun}
	if _, err := pods.Create(t.Context(), pod, options); err != nil {
		t.Errorf("creating a Pod of the Deployment: %v", err)
	}
	pod.Spec.SecurityContext.RunAsNonRoot = nil
	_, err := pods.Create(t.Context(), pod, options)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "runAsNonRoot") {
		t.Errorf("a Pod that may run as root: got error %v, want it forbidden", err)
	}
}

func TestRolesOfUsersIncludeFoos(t *testing.T) {
	n := newNamespace(t)
	suite.Deploy(t, deployDir, nil)
	tests := []struct{ verb, subresource, roles string }{
		{"list", "", "view edit admin"},
		{"get", "scale", "view edit admin"},
		{"create", "", "edit admin"},
		{"deletecollection", "", "edit admin"},
		{"patch", "scale", "edit admin"},
		{"patch", "status", "admin"},
		{"update", "finalizers", "admin"},
	}
	for _, role := range []string{"view", "edit", "admin"} {
		n.Kubectl("create", "rolebinding", role, "--clusterrole="+role, "--user="+role)
		for _, test := range tests {
			want := "no"
			if strings.Contains(test.roles, role) {
				want = "yes"
			}
			what := fmt.Sprintf("with role %s, may %s foos/%s: %s", role, test.verb, test.subresource, want)
			suite.Eventually(t, what, func() (bool, string) {
				answer, _ := n.TryKubectl("", "auth", "can-i", test.verb, "foos",
					"--subresource="+test.subresource, "--as="+role) // it fails if the answer is no
				return strings.HasPrefix(answer, want), answer
			})
		}
	}
	// Users can grant only permissions that they have. The admin of a namespace has all of these.
	n.Kubectl("create", "rolebinding", "of-the-controller", "--as=admin",
		"--clusterrole="+deployedName, "--serviceaccount="+deployedName+":"+deployedName)
}
