// Package tutorial has only tests: of programs that are put together first.
package tutorial

import (
	"os/exec"
	"testing"

	"example.com/sample-controller/internal/testing/setting"
)

// The programs pass their tests.
func TestChapters(t *testing.T) {
	command := exec.Command("bash", "-ec", `programs=()
		for chapter in 06-renaming 07-status 08-errors 14-versions; do
			programs+=("$(tutorial/assemble $chapter)")
		done
		go test "${programs[@]}"`)
	command.Dir = ".."
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// The CustomResourceDefinition of chapter 14 is a patch of that of the root. It says what the Go types say.
// The manifests for a cluster are patches, too, and these fit.
func TestDefinitionOfBothVersionsIsThatOfTheTypes(t *testing.T) {
	setting.Long(t)
	command := exec.Command("bash", "-ec", `bin=$PWD/.local/bin crd=docs/tutorial/14-versions/artifacts/crd
		go -C hack/tools build -o "$bin/" sigs.k8s.io/controller-tools/cmd/controller-gen
		go=example.com/sample-controller pkg=pkg/apis/samplecontroller
		(cd docs && "$bin/controller-gen" crd paths=$go/$pkg/v1alpha1 \
			paths=$go/docs/tutorial/14-versions/$pkg/v1beta1 output:crd:stdout >"$0/crd.yaml")
		cp $crd/conversion.yaml "$0"
		echo '{resources: [crd.yaml], patches: [{path: conversion.yaml}]}' >"$0/kustomization.yaml"
		diff <("$bin/kubectl" kustomize "$0") <("$bin/kubectl" kustomize $crd)
		"$bin/kubectl" kustomize $crd/../deploy >/dev/null`, t.TempDir())
	command.Dir = "../.."
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}
