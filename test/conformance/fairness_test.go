package conformance

import (
	"fmt"
	"regexp"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

// jail is a priority level without a seat: what its FlowSchema matches waits in a queue. It matches
// all requests of a ServiceAccount that no FlowSchema with a lower matchingPrecedence matches.
const jail = `
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: jail}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 0
    borrowingLimitPercent: 0
    limitResponse: {type: Queue, queuing: {queues: 1, handSize: 1, queueLengthLimit: 1000}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: jail}
spec:
  matchingPrecedence: 8999 # that of service-accounts is 9000
  priorityLevelConfiguration: {name: jail}
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: %q, name: %q}}]
    resourceRules:
    - {apiGroups: ["*"], resources: ["*"], verbs: ["*"], namespaces: ["*"], clusterScope: true}`

// waiting matches the metric that counts the requests in jail, unless it is 0.
var waiting = regexp.MustCompile(
	`(?m)^apiserver_flowcontrol_current_inqueue_requests\{.*priority_level="jail"\} [1-9]`)

func TestDeployedLeaderRenewsItsLeaseWhileItsRequestsWait(t *testing.T) {
	deployment := suite.Deploy(t, deployDir, nil)
	awaitInForce(t, "sample-controller-leader-election")
	n := newNamespace(t)
	leader := suite.StartDeployed(t, deployment, "0")
	n.CatchUp()
	account := deployment.Spec.Template.Spec.ServiceAccountName
	t.Cleanup(func() { // again, if the test ends too soon
		suite.Kubectl(t, fmt.Sprintf(jail, "", ""), "delete", "--filename=-", "--ignore-not-found")
	})
	suite.Kubectl(t, fmt.Sprintf(jail, deployment.Namespace, account), "create", "--filename=-")
	awaitInForce(t, "jail")

	n.foos.Create(newFoo("web", "web", 1))

	suite.Eventually(t, "a request of the controller waits", func() (bool, string) {
		metrics := must.Get(suite.Kube.Discovery().RESTClient().Get().AbsPath("/metrics").
			DoRaw(t.Context()))(t)
		return waiting.Match(metrics), "none"
	})
	leases := suite.Kube.CoordinationV1().Leases(deployment.Namespace)
	first := must.Get(leases.Get(t.Context(), deployedName, metav1.GetOptions{}))(t)
	last, renewals := first, 0
	suite.Eventually(t, "the Lease is renewed three times", func() (bool, string) {
		lease := must.Get(leases.Get(t.Context(), deployedName, metav1.GetOptions{}))(t)
		if !lease.Spec.RenewTime.Equal(last.Spec.RenewTime) {
			last, renewals = lease, renewals+1
		}
		return renewals >= 3, fmt.Sprint(renewals)
	})
	if got, want := *last.Spec.HolderIdentity, *first.Spec.HolderIdentity; got != want {
		t.Errorf("the holder of the Lease is %q, want %q", got, want)
	}
	_, err := suite.Kube.AppsV1().Deployments(n.Name).Get(t.Context(), "web", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the other requests did not wait: reading the Deployment: %v", err)
	}

	suite.Kubectl(t, fmt.Sprintf(jail, "", ""), "delete", "--filename=-")
	n.foos.When("web", "is Ready", isReady)
	suite.StopProgram(t, leader)
}

// awaitInForce waits until the API server classifies requests by a FlowSchema.
func awaitInForce(t *testing.T, name string) {
	t.Helper()
	await(t, "flowschema/"+name, "condition=Dangling=False")
}

// TestLeaseOfTheDeployedController shows that requests for the Lease, and no others, have the
// priority of leader election.
func TestLeaseOfTheDeployedController(t *testing.T) {
	deployment := suite.Deploy(t, deployDir, nil)
	hasPriority(t, thief(deployment), deployment.Namespace, "sample-controller-leader-election")
}

// hasPriority fails t unless that FlowSchema, and level leader-election, are for the requests for the
// Lease, and others for other requests.
func hasPriority(t *testing.T, config *rest.Config, namespace, schemaName string) {
	t.Helper()
	awaitInForce(t, schemaName)
	flowcontrol := suite.Kube.FlowcontrolV1()
	schema := must.Get(flowcontrol.FlowSchemas().Get(t.Context(), schemaName, metav1.GetOptions{}))(t)
	level := must.Get(flowcontrol.PriorityLevelConfigurations().Get(
		t.Context(), "leader-election", metav1.GetOptions{}))(t)
	client := must.Get(rest.HTTPClientFor(config))(t)
	for path, want := range map[string]bool{
		"coordination.k8s.io/v1/namespaces/" + namespace + "/leases/sample-controller": true,
		"apps/v1/namespaces/" + namespace + "/deployments/sample-controller":           false,
	} {
		response := must.Get(client.Get(config.Host + "/apis/" + path))(t)
		must.Do(t, response.Body.Close())
		got := response.Header
		bySchema := got.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID) == string(schema.UID)
		atLevel := got.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID) ==
			string(level.UID)
		if bySchema != want || atLevel != want {
			t.Errorf("%s: matched by the FlowSchema: %v, at level leader-election: %v; want %v",
				path, bySchema, atLevel, want)
		}
	}
}
