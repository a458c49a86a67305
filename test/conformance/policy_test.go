package conformance

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	appsclient "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

const policyDir = "../../artifacts/deploy/policy"

var dryRun = []string{metav1.DryRunAll}

// The controller can work under the policy, and a thief cannot.
func TestDeployedControllerIsBoundedByThePolicy(t *testing.T) {
	deployment, n := suite.Deploy(t, deployDir, nil), newNamespace(t)
	t.Cleanup(func() { suite.Kubectl(t, "", "delete", "--kustomize="+policyDir) })
	suite.Kubectl(t, "", "apply", "--kustomize="+policyDir)
	suite.Eventually(t, "the types in the policy are checked", func() (bool, string) {
		object := must.Get(suite.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(
			t.Context(), "sample-controller-deployments", metav1.GetOptions{}))(t)
		checked := object.Status.TypeChecking
		return checked != nil && len(checked.ExpressionWarnings) == 0, fmt.Sprint(checked)
	})
	n.createBank()
	stolen := kubernetes.NewForConfigOrDie(thief(deployment)).AppsV1().Deployments(n.Name)
	suite.Eventually(t, "the policy is in force", func() (bool, string) {
		err := stolen.Delete(t.Context(), "bank", metav1.DeleteOptions{DryRun: dryRun})
		return refused(err, "only Deployments of Foos"), "deleting a Deployment of somebody else"
	})

	collector := as("system:serviceaccount:kube-system:generic-garbage-collector")
	must.Do(t, kubernetes.NewForConfigOrDie(collector).AppsV1().Deployments(n.Name).Delete(
		t.Context(), "bank", metav1.DeleteOptions{DryRun: dryRun}))

	fresh := worksUnderThePolicy(t, n, deployment)
	mayNotWrite(t, stolen, fresh)
	err := tryPatch(t, stolen, "bank", `{"metadata":{`+owner(`"blockOwnerDeletion":false`)+`}}`)
	if !refused(err, "metadata: ownerReferences") {
		t.Errorf("adopting a Deployment of somebody else: got error %v", err)
	}
	mayOnlyScaleDown(t, n, stolen, fresh)
}

// TestPolicyHoldsUnderOtherNames renames the installation as kustomize does it, and gives the
// permissions to another ServiceAccount, too. Both are bounded, and an administrator is not. The
// Lease keeps its priority.
func TestPolicyHoldsUnderOtherNames(t *testing.T) {
	manifest := kustomized(t, "namePrefix: team-\nnameSuffix: -two\nnamespace: renamed\n"+
		"resources: [deploy/base, deploy/policy]\n")
	t.Cleanup(func() { suite.Kubectl(t, manifest, "delete", "--filename=-", "--ignore-not-found", "--wait=false") })
	suite.Kubectl(t, manifest, "apply", "--filename=-")
	suite.Kubectl(t, "", "create", "clusterrolebinding", "team-another-two",
		"--clusterrole=team-sample-controller-two", "--serviceaccount=renamed:another")
	t.Cleanup(func() { suite.Kubectl(t, "", "delete", "clusterrolebinding", "team-another-two") })

	n := newNamespace(t)
	n.createBank()
	deleteBank := func(config *rest.Config) error {
		return kubernetes.NewForConfigOrDie(config).AppsV1().Deployments(n.Name).Delete(
			t.Context(), "bank", metav1.DeleteOptions{DryRun: dryRun})
	}
	for _, account := range []string{"team-sample-controller-two", "another"} {
		suite.Eventually(t, account+" is bounded by the policy", func() (bool, string) {
			err := deleteBank(as("system:serviceaccount:renamed:" + account))
			return refused(err, "only Deployments of Foos"), fmt.Sprint(err)
		})
	}
	if err := deleteBank(suite.Cluster); err != nil {
		t.Errorf("the policy bounds the administrator: %v", err)
	}
	hasPriority(t, as("system:serviceaccount:renamed:team-sample-controller-two"), "renamed",
		"team-sample-controller-leader-election-two")
}

// worksUnderThePolicy lets the controller do all that it does, also if somebody has changed the
// Deployment. It returns what the controller creates.
func worksUnderThePolicy(
	t *testing.T, n *namespace, deployment *appsv1.Deployment,
) *appsv1.Deployment {
	suite.StartDeployed(t, deployment, "0")
	n.createReadyFoo(newFoo("web", "old", 1))
	n.Kubectl("scale", "foo/web", "--replicas=2")
	n.foos.When("web", "is Ready", isReady)
	n.foos.Change("web", func(foo *v1alpha1.Foo) { foo.Spec.DeploymentName = "new" })
	n.deployments.Gone("old")
	n.foos.When("web", "is Ready", isReady)
	created := n.deployments.Get("new")

	n.deployments.Change("new", changeAsOthersDo)
	n.Kubectl("label", "deployment/new", managedBy+"-")
	n.Kubectl("rollout", "restart", "deployment/new")
	n.Kubectl("scale", "foo/web", "--replicas=1")
	n.deployments.When("new", "is repaired", func(deployment *appsv1.Deployment) bool {
		return deployment.Labels[managedBy] != "" && *deployment.Spec.Replicas == 1 &&
			deployment.Spec.Template.Spec.Containers[0].Image != "example.com/other"
	})
	if left := len(n.deployments.Get("new").Spec.Template.Spec.Containers); left != 101 {
		t.Errorf("%d containers are left, want 101", left)
	}
	n.foos.When("web", "is Ready", isReady)
	return &appsv1.Deployment{Spec: created.Spec, ObjectMeta: metav1.ObjectMeta{
		Name: "fresh", Labels: created.Labels, OwnerReferences: created.OwnerReferences,
	}}
}

// changeAsOthersDo changes what the controller repairs, and adds what it keeps: a lot, because the
// API server limits what the expressions of a policy may cost.
func changeAsOthersDo(deployment *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&deployment.ObjectMeta, "team", "bank")
	metav1.SetMetaDataLabel(&deployment.ObjectMeta, "team", "bank")
	template := &deployment.Spec.Template
	metav1.SetMetaDataLabel(&template.ObjectMeta, "team", "bank")
	deployment.Spec.MinReadySeconds = 1
	pod := &template.Spec
	pod.ServiceAccountName = "default"
	pod.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
	ours := &pod.Containers[0]
	ours.Image = "example.com/other"
	ours.Command = []string{"sleep"}
	ours.Ports = nil
	ours.SecurityContext = nil
	ours.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	sidecar := corev1.Container{Image: "example.com/s"}
	for i := range 20 {
		sidecar.Env = append(sidecar.Env, corev1.EnvVar{Name: fmt.Sprint("NAME_", i), Value: "a"})
	}
	for i := range 100 {
		sidecar.Name = fmt.Sprint("s", i)
		pod.Containers = append(pod.Containers, sidecar)
	}
}

func tryPatch(t *testing.T, stolen appsclient.DeploymentInterface, name, patch string) error {
	_, err := stolen.Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch),
		metav1.PatchOptions{DryRun: dryRun})
	return err
}

// mayNotWrite tries to change a Deployment that exists, and to create one like fresh.
func mayNotWrite(t *testing.T, stolen appsclient.DeploymentInterface, fresh *appsv1.Deployment) {
	create := func(deployment *appsv1.Deployment) error {
		_, err := stolen.Create(t.Context(), deployment, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
	// The table proves something only if the rest of these objects is permitted.
	if err := create(fresh); err != nil {
		t.Errorf("creating what the controller creates: %v", err)
	}
	if err := tryPatch(t, stolen, "new", "{}"); err != nil {
		t.Errorf("updating a Deployment without a change: %v", err)
	}
	for _, row := range append(notOfAFoo, notWritten...) {
		if err := create(patched(t, fresh, row.patch)); !refused(err, row.message) {
			t.Errorf("creating with %s: got error %v, want %q", row.patch, err, row.message)
		}
	}
	for _, row := range append(notRemoved, notWritten...) {
		if err := tryPatch(t, stolen, "new", row.patch); !refused(err, row.message) {
			t.Errorf("updating with %s: got error %v, want %q", row.patch, err, row.message)
		}
	}
}

// mayOnlyScaleDown checks what the policy says of a Deployment that already has more replicas than
// it permits. The controller does not see this Deployment: it has not the label.
func mayOnlyScaleDown(
	t *testing.T, n *namespace, stolen appsclient.DeploymentInterface, fresh *appsv1.Deployment,
) {
	large := patched(t, fresh, `{"metadata":{"name":"large","labels":null},
		"spec":{"replicas":500,"paused":true}}`)
	n.deployments.Create(large)
	err := stolen.Delete(t.Context(), "large", metav1.DeleteOptions{DryRun: dryRun})
	if err != nil {
		t.Errorf("deleting a Deployment that somebody has changed: %v", err)
	}
	for replicas, permitted := range map[int32]bool{101: true, 500: true, 501: false} {
		err := tryPatch(t, stolen, "large", fmt.Sprintf(
			`{"metadata":{"labels":{%q:%q}},"spec":{"replicas":%d}}`, managedBy, deployedName, replicas))
		if permitted && err != nil || !permitted && !refused(err, "at most 100 replicas") {
			t.Errorf("from 500 to %d replicas: got error %v", replicas, err)
		}
	}
}

func patched(t *testing.T, deployment *appsv1.Deployment, patch string) *appsv1.Deployment {
	t.Helper()
	result := &appsv1.Deployment{}
	original := must.Get(json.Marshal(deployment))(t)
	changed, err := strategicpatch.StrategicMergePatch(original, []byte(patch), result)
	if err == nil {
		err = json.Unmarshal(changed, result)
	}
	if err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
	return result
}

func refused(err error, message string) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), message)
}
