package conformance

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

func TestAvailableReplicasFollowThePods(t *testing.T) {
	n := parallelNamespace(t)
	n.createQuotas("pods=1")
	n.foos.Create(newFoo("web", "web", 2))
	n.foos.When("web", "reports 1 of 2 Pods, and is not Ready", func(foo *v1alpha1.Foo) bool {
		return foo.Status.Replicas == 1 && foo.Status.AvailableReplicas == 1 &&
			readyCondition(foo).Status == metav1.ConditionFalse
	})

	n.Kubectl("scale", "foo/web", "--replicas=1")
	n.foos.When("web", "is Ready", isReady)
}

// TestQuotaIsUsedUpByCreatingWhatExists shows why a controller should look first.
func TestQuotaIsUsedUpByCreatingWhatExists(t *testing.T) {
	n := parallelNamespace(t)
	n.createBank()
	n.createQuotas("count/deployments.apps=5")
	suite.Eventually(t, "a quota of 5 is used up by one Deployment", func() (bool, string) {
		output, _ := n.TryKubectl("", "create", "deployment", "bank", "--image=web")
		return strings.Contains(output, "exceeded quota"), output
	})
}

// createQuotas limits resources, "pods=1,services=2" for example, and waits until all of the limits
// are in force.
func (n *namespace) createQuotas(limits string) {
	n.T.Helper()
	n.Kubectl("create", "quota", "limits", "--hard="+limits)
	quotas, changes := suite.Kube.CoreV1().ResourceQuotas(n.Name), int64(1000)
	suite.Eventually(n.T, "the quotas are in force", func() (bool, string) {
		quota := must.Get(quotas.Get(n.T.Context(), "limits", metav1.GetOptions{}))(n.T)
		counted := true
		for name := range quota.Spec.Hard {
			_, ok := quota.Status.Used[name]
			counted = counted && ok
		}
		if counted {
			return true, ""
		}
		// The quota controller learns of a new CustomResourceDefinition within 30s. It looks at a quota
		// again when that is changed.
		changes++
		quota.Spec.Hard["secrets"] = *resource.NewQuantity(changes, resource.DecimalSI)
		_, err := quotas.Update(n.T.Context(), quota, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) {
			n.T.Fatal(err)
		}
		return false, fmt.Sprintf("counted: %v", quota.Status.Used)
	})
}
