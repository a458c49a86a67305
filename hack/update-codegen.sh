#!/usr/bin/env bash
# Generates everything that is made from pkg/apis: deepcopy and register functions, clientset,
# informers, listers, apply configurations and the CustomResourceDefinition.
# The generators' versions are those in go.mod and hack/tools/go.mod. Runs from any directory.
# With a directory as argument, it works on the copy of the repository there, for verify-codegen.sh.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${1:-$root}"

module=$(go list -m)
group=samplecontroller
version=v1alpha1
api=$module/pkg/apis/$group/$version
out=pkg/generated
header=hack/boilerplate.go.txt
# The plural of the resource. Without this, the generators would guess it from the kind.
plural=Foo:Foos

gen() { # gen TOOL FLAGS...: run a generator, with the flags that all generators take, too
  echo "$1"
  go tool "$1" --go-header-file "$header" "${@:2}"
}

# A file that a generator no longer writes must not stay behind.
rm -rf "$out" "pkg/apis/$group/$version"/zz_generated.*.go

gen deepcopy-gen --output-file zz_generated.deepcopy.go "$api"
gen register-gen --output-file zz_generated.register.go "$api"
gen applyconfiguration-gen --output-dir "$out/applyconfiguration" \
  --output-pkg "$module/$out/applyconfiguration" "$api"
gen client-gen --output-dir "$out/clientset" --output-pkg "$module/$out/clientset" \
  --plural-exceptions "$plural" --clientset-name versioned --input-base "$module/pkg/apis" --input "$group/$version" \
  --apply-configuration-package "$module/$out/applyconfiguration"
gen lister-gen --output-dir "$out/listers" --output-pkg "$module/$out/listers" \
  --plural-exceptions "$plural" "$api"
gen informer-gen --output-dir "$out/informers" --output-pkg "$module/$out/informers" \
  --versioned-clientset-package "$module/$out/clientset/versioned" \
  --listers-package "$module/$out/listers" --plural-exceptions "$plural" "$api"

echo controller-gen
go build -C "$root/hack/tools" -o "$root/.local/bin/" sigs.k8s.io/controller-tools/cmd/controller-gen
crds=$(mktemp -d)
trap 'rm -rf "$crds"' EXIT
"$root/.local/bin/controller-gen" crd paths="./pkg/apis/..." output:crd:dir="$crds"
mkdir -p artifacts/examples
cat "$crds"/*.yaml >artifacts/examples/crd.yaml
