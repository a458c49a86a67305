// Package tutorial has only tests: of programs that are put together first.
package tutorial

import (
	"os/exec"
	"testing"

	"example.com/sample-controller/internal/testing/cluster"
	"example.com/sample-controller/internal/testing/must"
	"example.com/sample-controller/internal/testing/setting"
)

// The programs of chapters 6 to 8 pass their tests.
func TestChapters(t *testing.T) {
	test(t, `for c in 06-renaming 07-status 08-errors; do tutorial/assemble $c || exit; done | xargs go test`)
}

// The program of chapter 14 passes its tests. It has a cluster of its own, because Foos are stored in the
// new version there.
func TestVersions(t *testing.T) {
	setting.Long(t)
	c := must.Get(cluster.Start("../..", cluster.NewName()))(t)
	t.Cleanup(c.Stop)
	t.Setenv("KUBECONFIG", c.Kubeconfig())
	test(t, `go test -count=1 -timeout 30m "$(tutorial/assemble 14-versions)" -cluster`)
}

// test fails the test if a command fails in the folder docs.
func test(t *testing.T, line string) {
	t.Helper()
	command := exec.Command("bash", "-o", "pipefail", "-c", line)
	command.Dir = ".."
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, output)
	}
}

// The CustomResourceDefinition of chapter 14 is a patch of that of the root. It says what the Go types say.
func TestDefinitionOfBothVersionsIsThatOfTheTypes(t *testing.T) {
	setting.Long(t)
	command := exec.Command("bash", "-ec", `bin=$PWD/.local/bin crd=docs/tutorial/14-versions/artifacts/crd
		go -C hack/tools build -o "$bin/" sigs.k8s.io/controller-tools/cmd/controller-gen
		go=example.com/sample-controller pkg=pkg/apis/samplecontroller
		(cd docs && "$bin/controller-gen" crd paths=$go/$pkg/v1alpha1 \
			paths=$go/docs/tutorial/14-versions/$pkg/v1beta1 output:crd:stdout >"$0/crd.yaml")
		cp $crd/conversion.yaml "$0"
		echo '{resources: [crd.yaml], patches: [{path: conversion.yaml}]}' >"$0/kustomization.yaml"
		diff <("$bin/kubectl" kustomize "$0") <("$bin/kubectl" kustomize $crd)`, t.TempDir())
	command.Dir = "../.."
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
