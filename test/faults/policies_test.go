package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The labels of namespaces in which the API server refuses to create and change Deployments, or to
// create Pods, so that no Deployment rolls out. The policies have the same names.
const (
	refuseDeployments = "refuse-deployments"
	refusePods        = "refuse-pods"
)

// installPolicies installs the policies that refuse.
func installPolicies(t *testing.T) {
	t.Helper()
	for name, rule := range map[string]admissionv1.Rule{
		refuseDeployments: {APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
		refusePods:        {APIGroups: []string{""}, Resources: []string{"pods"}},
	} {
		rule.APIVersions = []string{"v1"}
		if err := installPolicy(t.Context(), name, rule); err != nil {
			t.Fatal(err)
		}
	}
}

// installPolicy installs a policy that refuses objects in the namespaces that have its name as a
// label.
func installPolicy(ctx context.Context, name string, rule admissionv1.Rule) error {
	client := kubeClient.AdmissionregistrationV1()
	reason := metav1.StatusReasonForbidden
	object := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{name: "true"}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{
					RuleWithOperations: admissionv1.RuleWithOperations{
						Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
						Rule:       rule,
					},
				}},
			},
			Validations: []admissionv1.Validation{{
				Expression: "false", Message: refusal, Reason: &reason,
			}},
		},
	}
	_, err := client.ValidatingAdmissionPolicies().Create(ctx, object, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	_, err = client.ValidatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// refusal is what the policies say.
const refusal = "refused by a policy of the test"

// setPolicy switches a policy on or off in the namespace, and returns when that has an effect.
func (s *space) setPolicy(name string, on bool) error {
	value := "null"
	if on {
		value = `"true"`
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, name, value)
	_, err := kubeClient.CoreV1().Namespaces().Patch(context.Background(), s.namespace,
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	return waitUntil(func() error {
		err := s.try(name)
		if refused := err != nil && strings.Contains(err.Error(), refusal); refused == on {
			return nil
		}
		return errors.Join(fmt.Errorf("policy %s does not take effect", name), err)
	})
}

// try tries to create what the policy of that name refuses, and changes nothing.
func (s *space) try(what string) error {
	dryRun := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	deployment := foreignDeployment("try")
	if what == refuseDeployments {
		_, err := s.deployments.Create(context.Background(), deployment, dryRun)
		return err
	}
	pod := &corev1.Pod{
		ObjectMeta: deployment.ObjectMeta, Spec: deployment.Spec.Template.Spec,
	}
	_, err := kubeClient.CoreV1().Pods(s.namespace).Create(context.Background(), pod, dryRun)
	return err
}

// foreignDeployment returns a Deployment that belongs to nobody, and has no Pods.
func foreignDeployment(name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "web", Image: "example.com/foreign:1"}},
				},
			},
		},
	}
}
