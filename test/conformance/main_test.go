package conformance

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"example.com/sample-controller/internal/testing/suite"
)

const crd = "../../artifacts/examples/crd.yaml"

func TestMain(m *testing.M) {
	suite.Define(suite.Config{
		APIVersion: "samplecontroller.k8s.io/v1alpha1", Kind: "Foo", Resource: "foos",
		CRD:        crd,
		Root:       "../..",
		Controller: "sample-controller --metrics-bind-address=0 --health-probe-bind-address=0",
		Command:    "make conformance",
		Create: func(n *suite.Namespace, name string) {
			with(n).foos.Create(newFoo(name, name, 0)) // without Pods, which a quota may forbid
		},
		Await: func(n *suite.Namespace, name string) { with(n).foos.When(name, "is Ready", isReady) },
	})
	flag.Parse()
	code := suite.Run(m)
	if *tableFile != "" && len(outcomes.passed) > 0 {
		if err := writeTable(*tableFile, *programID); err != nil {
			fmt.Fprintln(os.Stderr, "conformance: writing the table:", err)
			code = 1
		}
	}
	os.Exit(code)
}
