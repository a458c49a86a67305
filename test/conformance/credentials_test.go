package conformance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
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

// TestTokenOfTheDeployedControllerEndsWithItsPod checks the time that a token lives, and that it ends
// when somebody deletes the Pod. An API server may honour the token for a minute more: this test
// begins before the other serial ones, as the name of its file begins with a c, and ends after them.
func TestTokenOfTheDeployedControllerEndsWithItsPod(t *testing.T) {
	var template corev1.PodSpec
	t.Run("its manifest", func(t *testing.T) { // which is removed when this part ends
		template = suite.Deploy(t, deployDir, nil).Spec.Template.Spec
	})
	mounted := template.Volumes[0].Projected.Sources[0].ServiceAccountToken
	if template.AutomountServiceAccountToken == nil || *template.AutomountServiceAccountToken ||
		mounted.Audience != "" {
		t.Errorf("automount %v, audience %q; want the Pod to mount only a token for the API server",
			template.AutomountServiceAccountToken, mounted.Audience)
	}
	n := newNamespace(t)
	n.Kubectl("create", "serviceaccount", template.ServiceAccountName)
	pods := suite.Kube.CoreV1().Pods(n.Name)
	pod := must.Get(pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod"}, Spec: template,
	}, metav1.CreateOptions{}))(t)
	token := n.Kubectl("create", "token", template.ServiceAccountName, // as the kubelet does
		fmt.Sprintf("--duration=%ds", *mounted.ExpirationSeconds),
		"--bound-object-kind=Pod", "--bound-object-name=pod", "--bound-object-uid="+string(pod.UID))
	if lives := lifetime(t, token); lives > time.Hour {
		t.Errorf("the token lives for %v, want an hour", lives)
	}
	accepted := func() bool {
		t.Helper()
		review := must.Get(suite.Kube.AuthenticationV1().TokenReviews().Create(t.Context(),
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}},
			metav1.CreateOptions{}))(t)
		return review.Status.Authenticated
	}
	if !accepted() {
		t.Fatal("the API server refuses the token of a Pod that exists")
	}

	must.Do(t, pods.Delete(t.Context(), pod.Name, *metav1.NewDeleteOptions(0)))

	t.Parallel() // it goes on when all tests that are not parallel have ended
	suite.Eventually(t, "the token ends with its Pod", func() (bool, string) {
		return !accepted(), "it is accepted"
	})
}

// lifetime returns how long the API server accepts a token.
func lifetime(t *testing.T, token string) time.Duration {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts, want 3", len(parts))
	}
	claims := must.Get(base64.RawURLEncoding.DecodeString(parts[1]))(t)
	var times struct {
		Issued  int64 `json:"iat"`
		Expires int64 `json:"exp"`
	}
	if err := json.Unmarshal(claims, &times); err != nil || times.Expires == 0 {
		t.Fatalf("the token does not say when it ends: %s (%v)", claims, err)
	}
	return time.Duration(times.Expires-times.Issued) * time.Second
}

func TestDeployedControllerIsBoundedByThePolicy(t *testing.T) {
	isBoundedByThePolicy(t, suite.Deploy(t, deployDir, nil))
}

func TestDeployedPodsMeetTheRestrictedStandard(t *testing.T) {
	behaviour(t, 19)
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
	if err := createPod(t, deployment, func(*corev1.PodSpec) {}); err != nil {
		t.Errorf("creating a Pod of the Deployment: %v", err)
	}
	refused := map[string]func(*corev1.PodSpec){
		"runAsNonRoot": func(pod *corev1.PodSpec) { pod.SecurityContext.RunAsNonRoot = nil },
		"seccompProfile": func(pod *corev1.PodSpec) {
			pod.SecurityContext.SeccompProfile = nil
		},
		"allowPrivilegeEscalation": func(pod *corev1.PodSpec) {
			pod.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		},
		"capabilities": func(pod *corev1.PodSpec) {
			pod.Containers[0].SecurityContext.Capabilities = nil
		},
	}
	for field, remove := range refused {
		err := createPod(t, deployment, remove)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), field) {
			t.Errorf("a Pod without %s: got error %v, want it forbidden", field, err)
		}
	}
}

// createPod asks the API server whether it would create a changed Pod of deployment.
func createPod(t *testing.T, deployment *appsv1.Deployment, change func(*corev1.PodSpec)) error {
	template := deployment.Spec.Template.DeepCopy()
	change(&template.Spec)
	_, err := suite.Kube.CoreV1().Pods(deployment.Namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: template.Labels},
		Spec:       template.Spec,
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
