package conformance

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

var onCluster = flag.Bool("cluster", false, "run the suite, on the cluster of KUBECONFIG")

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "website.example.com/v1alpha1", Kind: "Website", Resource: "websites",
		Name: "website-controller",
		CRD:  "../artifacts/crd.yaml",
		Root: "../../..",
		Controller: "website-controller --metrics-bind-address=0 " +
			"--health-probe-bind-address=0",
		Flags:   "--registry=" + theRegistry.URL + " --resync=2s",
		Command: "hack/test website",
		Create: func(n *suite.Namespace, name string) {
			with(n).websites.Create(newWebsite(name, 0))
		},
		Await: func(n *suite.Namespace, name string) { with(n).websites.When(name, "is up", isUp) },
	})
	flag.Parse()
	if !*onCluster {
		fmt.Println("skipped: needs -cluster, and the KUBECONFIG of a cluster")
		return
	}
	os.Exit(suite.Run(m))
}
