// Package conformance tests, from the outside and on a real API server, what a controller of
// Websites has to do. The controller is a program that the tests start:
//
//	go test ./website/conformance            # on a cluster that it starts
//	go test ./website/conformance -cluster   # on that of KUBECONFIG
//
// What is not about Websites is in the package suite, below internal/. There is one registry for
// all tests, in their own process. It can fail for one namespace alone.
package conformance

import (
	"flag"
	"os"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

var onCluster = flag.Bool("cluster", false, "test on the cluster of KUBECONFIG, and not on one that is started")

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "website.example.com/v1alpha1", Kind: "Website", Resource: "websites",
		Name: "website-controller",
		CRD:  "../artifacts/crd.yaml",
		Root: "../../..",
		Controller: "website-controller --metrics-bind-address=0 " +
			"--health-probe-bind-address=0",
		Build: "go -C examples build -o ../.local/bin/website-controller ./website",
		Flags: "--registry=" + theRegistry.URL + " --resync=2s",
		Create: func(n *suite.Namespace, name string) {
			with(n).websites.Create(newWebsite(name, 0))
		},
		Await: func(n *suite.Namespace, name string) { with(n).websites.When(name, "is up", isUp) },
	})
	flag.Parse()
	if !*onCluster {
		os.Unsetenv("KUBECONFIG")
	}
	os.Exit(suite.Run(m))
}
