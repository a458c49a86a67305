package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"example.com/sample-controller/internal/testing/freeport"
	"example.com/sample-controller/internal/testing/suite"
)

// metricsReader returns a token of somebody who may get the metrics.
func (n *namespace) metricsReader() (token string) {
	n.T.Helper()
	n.T.Cleanup(func() { suite.Kubectl(n.T, "", "delete", "clusterrolebinding", n.Name) })
	n.Kubectl("create", "clusterrolebinding", n.Name,
		"--clusterrole="+deployedName+"-metrics-reader", "--serviceaccount="+n.Name+":prometheus")
	return n.Token("prometheus")
}

func TestDeployedMetricsAreForThoseWhoMayGetThem(t *testing.T) {
	n := newNamespace(t)
	deployment := deploy(t, deployDir, nil)
	reader := n.metricsReader()
	address := freeport.Address(t)
	startDeployed(t, deployment, address)
	n.CatchUp()

	for name, test := range map[string]struct {
		token string
		want  int
	}{
		"no token":                       {"", http.StatusUnauthorized},
		"an invalid token":               {"nobody", http.StatusUnauthorized},
		"a token for another audience":   {n.Token("a", "elsewhere"), http.StatusUnauthorized},
		"a token without the permission": {n.Token("b"), http.StatusForbidden},
		"a token with the permission":    {reader, http.StatusOK},
	} {
		// The API server may need a moment to know a new token or binding.
		what := fmt.Sprintf("with %s, the answer is %d", name, test.want)
		suite.Eventually(t, what, func() (bool, string) {
			code, body := suite.GetMetrics(t, address, test.token)
			if shown := strings.Contains(body, "workqueue_depth"); shown != (code == http.StatusOK) {
				t.Fatalf("with %s: the answer is %d, and has metrics: %v", name, code, shown)
			}
			return code == test.want, fmt.Sprint(code)
		})
	}
}
