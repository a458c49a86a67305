package conformance

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
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

func TestTokenOfTheDeployedController(t *testing.T) {
	deployment := suite.Deploy(t, deployDir, nil)
	t.Run("ends with its Pod", func(t *testing.T) { endsWithItsPod(t, deployment) })
	t.Run("is bounded by the policy", func(t *testing.T) { isBoundedByThePolicy(t, deployment) })
}

// endsWithItsPod checks the time that a token lives, and that it ends when somebody deletes the
// Pod.
func endsWithItsPod(t *testing.T, deployment *appsv1.Deployment) {
	template := deployment.Spec.Template.Spec
	mounted := template.Volumes[0].Projected.Sources[0].ServiceAccountToken
	if template.AutomountServiceAccountToken == nil || *template.AutomountServiceAccountToken ||
		mounted.Audience != "" {
		t.Errorf("automount %v, audience %q; want the Pod to mount only a token for the API server",
			template.AutomountServiceAccountToken, mounted.Audience)
	}
	pods := suite.Kube.CoreV1().Pods(deployment.Namespace)
	var pod *corev1.Pod
	suite.Eventually(t, "there is a Pod", func() (bool, string) {
		list := must.Get(pods.List(t.Context(), metav1.ListOptions{}))(t)
		if len(list.Items) > 0 {
			pod = &list.Items[0]
		}
		return pod != nil, "none"
	})
	// As the kubelet does.
	issued := must.Get(suite.Kube.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(t.Context(),
		pod.Spec.ServiceAccountName, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{
				ExpirationSeconds: mounted.ExpirationSeconds,
				BoundObjectRef: &authenticationv1.BoundObjectReference{
					APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
				},
			},
		}, metav1.CreateOptions{}))(t)
	token := issued.Status.Token
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
