// Package conformance tests, from the outside and on a real API server, what a controller of Foos
// has to do. The controller is a program that the tests start:
//
//	go test ./conformance                                 # on clusters that it starts
//	KUBECONFIG=... go test ./conformance                  # on a cluster that you have
//	go test ./conformance -controller 'path/to/program'   # any other program
//
// What is not about Foos is in the package suite, below internal/. Its doc comment says what a
// program has to do, and in which order the tests run.
package conformance

import (
	"flag"
	"os"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Resource: "foos",
		Name:       deployedName,
		CRD:        "../../artifacts/examples/crd.yaml",
		Root:       "../..",
		Build:      "make -s build",
		Controller: "sample-controller --metrics-bind-address=0 --health-probe-bind-address=0",
		Serial:     "Deployed|Foos|Metrics|ByKustomize|OtherNames|Program|Nothing",
		Create: func(n *suite.Namespace, name string) {
			with(n).foos.Create(newFoo(name, name, 0)) // without Pods, which a quota may forbid
		},
		Await: func(n *suite.Namespace, name string) { with(n).foos.When(name, "is Ready", isReady) },
	})
	flag.Parse()
	os.Exit(suite.Run(m))
}
