package conformance

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// namesOwners creates Deployments that name a Foo as their owner, although it is not.
func namesOwners(t *testing.T, program *suite.Program) {
	n, elsewhere := newNamespace(t), newNamespace(t)
	foo := n.createReadyFoo(newFoo("web", "web", 1))
	before, bank := n.deployments.Get("web"), n.createBank()
	editor, neighbour := n.deploymentEditor(), elsewhere.deploymentEditor()
	begin := suite.Now(t)
	forged := func(name string, uid types.UID) *appsv1.Deployment {
		deployment := &appsv1.Deployment{Spec: *bank.Spec.DeepCopy()}
		deployment.Name, deployment.Labels = name, map[string]string{managedBy: deployedName}
		deployment.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "Foo", Name: foo.Name, UID: uid,
			Controller: new(true),
		}}
		return deployment
	}
	hidden := forged("hidden", foo.UID)
	hidden.Labels = nil
	blocking := forged("blocking", foo.UID)
	blocking.OwnerReferences[0].BlockOwnerDeletion = new(true)

	create(t, editor, forged("given", foo.UID))
	create(t, editor, forged("nobodys", "forged"))
	create(t, editor, hidden)
	create(t, neighbour, forged("bank", foo.UID))
	_, err := editor.Create(t.Context(), blocking, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "blockOwnerDeletion") {
		t.Errorf("an owner reference that blocks: got error %v, want it forbidden", err)
	}

	n.deployments.Gone("given")        // the controller deletes what is the Foo's, under another name
	n.deployments.Gone("nobodys")      // the garbage collector deletes what has no owner
	elsewhere.deployments.Gone("bank") // it does the same if the owner is in another namespace
	n.Kubectl("scale", "foo/web", "--replicas=2")
	n.foos.When("web", "is Ready with 2 Pods", func(foo *v1alpha1.Foo) bool {
		return isReady(foo) && foo.Status.AvailableReplicas == 2
	})
	n.deployments.When("hidden", "exists, because the controller does not see it", exists)
	for _, r := range program.Requests(t, begin, n.Has) {
		if r.Verb == "delete" && r.ObjectRef.Name != "given" {
			t.Errorf("the controller tried to delete something else: %v", r)
		}
	}
	if after := n.deployments.Get("web"); after.UID != before.UID {
		t.Errorf("the Foo's Deployment was made again: %s", suite.Describe(after))
	}
	if after := n.deployments.Get("bank"); suite.Untouched(after) != suite.Untouched(bank) {
		t.Errorf("a Deployment of somebody else was changed: %s", suite.Describe(after))
	}
	n.Kubectl("delete", "foo/web")
	n.deployments.Gone("hidden")
}
