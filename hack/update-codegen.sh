#!/usr/bin/env bash
# Generates everything that is made from pkg/apis: deepcopy and register functions, clientset,
# informers, listers, apply configurations and the CustomResourceDefinition.
# The generators' versions are those in go.mod and hack/tools/go.mod. Runs from any directory.
#
#   hack/update-codegen.sh               generate what is made from pkg/apis of the root
#   hack/update-codegen.sh all           generate all that is generated in this repository
#   hack/update-codegen.sh all FOLDER    the same in a copy of the repository
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "${2:-$root}"
top=$PWD

gen() { # gen TOOL FLAGS...: run a generator, with the flags that all generators take, too
  echo "$1"
  "$(go -C "$top" tool -n "$1")" --go-header-file "$top/hack/boilerplate.go.txt" "${@:2}"
}

# generate FOLDER GROUP VERSIONS PLURAL CRD [APPLY]: generate what is made from
# FOLDER/pkg/apis/GROUP, for each of VERSIONS, with spaces between them. PLURAL is that of the
# resource. Without it, the generators would guess it from the kind. If APPLY is no, there are no
# apply configurations.
generate() (
  cd "$1"
  read -ra versions <<<"$3"
  package=$(go list -find "./pkg/apis/$2/${versions[0]}")
  package=${package%"/pkg/apis/$2/${versions[0]}"}
  apis=("${versions[@]/#/"$package/pkg/apis/$2/"}")
  out=pkg/generated

  # A file that a generator no longer writes must not stay behind.
  rm -rf "$out" "pkg/apis/$2"/*/zz_generated.*.go

  gen deepcopy-gen --output-file zz_generated.deepcopy.go "${apis[@]}"
  gen register-gen --output-file zz_generated.register.go "${apis[@]}"
  local apply=''
  if [[ ${6:-} != no ]]; then
    apply=$package/$out/applyconfiguration
    gen applyconfiguration-gen --output-dir "$out/applyconfiguration" --output-pkg "$apply" \
      "${apis[@]}"
  fi
  gen client-gen --output-dir "$out/clientset" --output-pkg "$package/$out/clientset" \
    --plural-exceptions "$4" --clientset-name versioned --input-base "$package/pkg/apis" \
    "${versions[@]/#/--input=$2/}" --apply-configuration-package "$apply"
  gen lister-gen --output-dir "$out/listers" --output-pkg "$package/$out/listers" \
    --plural-exceptions "$4" "${apis[@]}"
  gen informer-gen --output-dir "$out/informers" --output-pkg "$package/$out/informers" \
    --versioned-clientset-package "$package/$out/clientset/versioned" \
    --listers-package "$package/$out/listers" --plural-exceptions "$4" "${apis[@]}"

  # informer-gen takes the kind with an s for the resource in a metric, whatever its plural is.
  local file guess resource
  guess=$(tr '[:upper:]' '[:lower:]' <<<"${4%:*}s")
  resource=$(tr '[:upper:]' '[:lower:]' <<<"${4#*:}")
  for file in "$out/informers/externalversions/$2"/*/*.go; do
    sed "s/Resource: \"$guess\"/Resource: \"$resource\"/" "$file" >"$file.new"
    mv "$file.new" "$file"
  done

  echo controller-gen
  crds=$(mktemp -d)
  trap 'rm -rf "$crds"' EXIT
  "$root/.local/bin/controller-gen" crd "${versions[@]/#/paths=./pkg/apis/$2/}" \
    output:crd:dir="$crds"
  mkdir -p "$(dirname "$5")"
  cat "$crds"/*.yaml >"$5"
)

go build -C "$root/hack/tools" -o "$root/.local/bin/" sigs.k8s.io/controller-tools/cmd/controller-gen
generate . samplecontroller v1alpha1 Foo:Foos artifacts/examples/crd.yaml

[[ ${1:-} == all ]] || exit 0
echo examples/website
generate examples/website website v1alpha1 Website:Websites artifacts/crd.yaml >/dev/null

echo docs/tutorial/14-versions
generate docs/tutorial/14-versions samplecontroller 'v1alpha1 v1beta1' Foo:Foos \
  artifacts/crd/crd.yaml no >/dev/null
