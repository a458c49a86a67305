package conformance

import (
	"fmt"
	"net"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/suite"
	"example.com/sample-controller/internal/testing/suite/audit"
)

const (
	rbac    = "../artifacts/rbac.yaml"
	account = "website-controller" // in the namespace of that name
)

// neverRequested are permissions that are needed although no request uses them: an admission plugin
// checks them.
var neverRequested = []string{"update websites/finalizers.website.example.com"}

func TestPermissionsAreExactlyThoseThatAreUsed(t *testing.T) {
	n := with(suite.NewNamespace(t))
	t.Cleanup(func() {
		suite.Kubectl(t, "", "delete", "-f", rbac, "--timeout="+(4*suite.Patience).String())
	})
	suite.Kubectl(t, "", "apply", "-f", rbac)
	begin := suite.Now(t)
	address := freeport.Address(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	first := suite.StartAs(t, account, account, "--leader-elect --metrics-bind-address=:"+port)
	n.createUp(newWebsite("web", 1))
	somebody := n.Token("somebody")
	suite.Eventually(t, "a user without the permission gets no metrics", func() (bool, string) {
		code, _ := suite.GetMetrics(t, address, somebody)
		return code == http.StatusForbidden, fmt.Sprint(code)
	})
	for _, c := range children {
		n.Kubectl("label", c.resource.Resource, "web", managedBy+"-")
		c.of(n).When("web", "has the label again", func(object *unstructured.Unstructured) bool {
			return object.GetLabels()[managedBy] != ""
		})
	}
	n.Kubectl("delete", "website/web")
	suite.StopProgram(t, first)
	suite.WithoutWatchList(t)
	second := suite.StartAs(t, account, account, "")
	n.CatchUp()
	suite.StopProgram(t, second)

	requests := first.Requests(t, begin, func(audit.Request) bool { return true }) // of both programs
	suite.UsesExactly(t, requests, suite.Granted(t, account, account), neverRequested, rbac)
}
