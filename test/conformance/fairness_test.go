package conformance

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/suite"
)

// TestLeaseOfTheDeployedController shows that requests for the Lease, and no others, have the
// priority of leader election.
func TestLeaseOfTheDeployedController(t *testing.T) {
	deployment := suite.Deploy(t, deployDir, nil)
	hasPriority(t, thief(deployment), deployment.Namespace, "sample-controller-leader-election")
}

// The Lease keeps its priority if kustomize renames the installation.
func TestLeaseOfADeployedControllerOfAnotherName(t *testing.T) {
	manifest := kustomized(t, "namePrefix: team-\nnameSuffix: -two\nnamespace: renamed\n"+
		"resources: [deploy/base]\n")
	t.Cleanup(func() { suite.Kubectl(t, manifest, "delete", "--filename=-", "--ignore-not-found", "--wait=false") })
	suite.Kubectl(t, manifest, "apply", "--filename=-")
	hasPriority(t, as("system:serviceaccount:renamed:team-sample-controller-two"), "renamed",
		"team-sample-controller-leader-election-two")
}

// hasPriority fails t unless that FlowSchema, and level leader-election, are for the requests for the
// Lease, and others for other requests.
func hasPriority(t *testing.T, config *rest.Config, namespace, schemaName string) {
	t.Helper()
	await(t, "flowschema/"+schemaName, "condition=Dangling=False")
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
