package conformance

import (
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

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
