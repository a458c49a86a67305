package conformance

import (
	"fmt"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/pkg/apis/samplecontroller/v1alpha1"
)

// uncounted is a Foo without replicas, which `kubectl scale` or an autoscaler sets.
var uncounted = fooYAML("spec: {deploymentName: web}")

// keepsReplicas applies uncounted again, with another label, and expects the Foo and its Deployment
// to keep their replicas.
func (n *namespace) keepsReplicas(replicas int32, flags ...string) {
	n.T.Helper()
	n.deployments.When("web", fmt.Sprintf("has %d replicas", replicas), hasReplicas(replicas))
	n.Apply(strings.Replace(uncounted, "{name:", "{labels: {team: blue}, name:", 1), flags...)
	foo := n.foos.When("example-foo", "has the label", func(foo *v1alpha1.Foo) bool {
		return foo.Labels["team"] == "blue"
	})
	if got := *foo.Spec.Replicas; got != replicas {
		n.T.Errorf("kubectl apply without replicas changed them to %d, want still %d", got, replicas)
	}
	n.CatchUp()
	n.deployments.When("web", fmt.Sprintf("still has %d replicas", replicas), hasReplicas(replicas))
}

func TestAbsentReplicasAreOne(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"absent": "spec: {deploymentName: web}",
		"null":   "spec: {deploymentName: web, replicas: null}",
	} {
		t.Run(name, func(t *testing.T) {
			n := parallelNamespace(t)
			n.Apply(fooYAML(spec))

			n.deployments.When("web", "has 1 replica", hasReplicas(1))
			scale := n.Kubectl("get", "foo/example-foo", "--subresource=scale",
				"--output=jsonpath={.kind} {.spec.replicas}")
			if scale != "Scale 1" {
				t.Errorf("scale subresource: got %q, want a Scale with 1 replica", scale)
			}
		})
	}
}

func TestTakenOffReplicasAreOne(t *testing.T) {
	n := parallelNamespace(t)
	n.createReadyFoo(newFoo("web", "web", 3))

	n.Kubectl("patch", "foo/web", "--type=merge", `--patch={"spec":{"replicas":null}}`)

	n.deployments.When("web", "has 1 replica", hasReplicas(1))
}

func TestScaleSurvivesAManifestWithoutReplicas(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{
		"client-side": nil, "server-side": {"--server-side"},
	} {
		t.Run(name, func(t *testing.T) {
			n := parallelNamespace(t)
			n.Apply(uncounted, flags...)

			n.Kubectl("scale", "foo/example-foo", "--replicas=4")

			n.keepsReplicas(4, flags...)
		})
	}
}

func TestAutoscalerSetsTheCount(t *testing.T) {
	n := parallelNamespace(t)
	n.Apply(uncounted)
	n.foos.When("example-foo", "is Ready", isReady)

	// Nothing measures Pods here. Below its minimum, an autoscaler needs no measurement.
	n.Kubectl("autoscale", "foo/example-foo", "--name=web", "--min=3", "--max=5", "--cpu=50%")

	// An autoscaler acts every 15 s. If Foos are new to the cluster, the first time may be too early.
	suite.Await(t, "hpa/web", "condition=AbleToScale", "--namespace="+n.Name)
	n.keepsReplicas(3)
}
