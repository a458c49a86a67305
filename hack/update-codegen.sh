#!/usr/bin/env bash
# Generates everything that is made from pkg/apis: deepcopy and register functions, clientset,
# informers, listers, apply configurations and the CustomResourceDefinition.
# The generators' versions are those in go.mod and hack/tools/go.mod. Runs from any directory.
#
#   hack/update-codegen.sh          generate what is made from pkg/apis of the root
#   hack/update-codegen.sh all      generate all that is generated in this repository
#   hack/update-codegen.sh verify   fail if generating all again would change a file
#
# It works on a copy. What is there is replaced when all of it has been generated.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env"
cd "$root"
what=${1:-root}
[[ $# -le 1 && $what =~ ^(root|all|verify)$ ]] ||
  die "there is nothing called '$*' to generate; write all, verify, or nothing"
top=$(mktemp -d "$root/.local/tmp/generate.XXXXXX")
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM

cp -R go.mod go.sum hack pkg artifacts "$top"
for module in explore lens docs; do # those that others require
  [[ ! -e $module ]] || { mkdir "$top/$module" && cp "$module"/go.{mod,sum} "$top/$module"; }
done
generated=(pkg/generated artifacts/examples/crd.yaml) apis=(pkg/apis) all=

cp -R examples "$top"
[[ $what == root ]] ||
  generated+=(examples/website/{pkg/generated,artifacts/crd.yaml}) \
    apis+=(examples/website/pkg/apis) all=-all

mkdir -p "$top/docs/tutorial"
cp -R docs/tutorial/14-versions "$top/docs/tutorial"
[[ $what == root ]] ||
  generated+=(docs/tutorial/14-versions/{pkg/generated,artifacts/crd/crd.yaml}) \
    apis+=(docs/tutorial/14-versions/pkg/apis)

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
  crds=$(mktemp -d "$top/crds.XXXXXX")
  "$root/.local/bin/controller-gen" crd "${versions[@]/#/paths=./pkg/apis/$2/}" \
    output:crd:dir="$crds"
  mkdir -p "$(dirname "$5")"
  cat "$crds"/*.yaml >"$5"
)

# replace puts what was generated in the place of what is there. What is written by hand stays.
replace() {
  local folder path
  trap '' INT TERM
  for folder in "${apis[@]}"; do
    for path in "$folder"/*/*/zz_generated.*.go; do [[ -e $top/$path ]] || rm -f "$path"; done
    for path in "$top/$folder"/*/*/zz_generated.*.go; do mv "$path" "${path#"$top/"}"; done
  done
  for path in "${generated[@]}"; do
    mkdir -p "$(dirname "$path")"
    [[ ! -e $path ]] || mv "$path" "$top/old"
    mv "$top/$path" "$path"
    rm -rf "$top/old"
  done
}

cd "$top"
go build -C "$root/hack/tools" -o "$root/.local/bin/" sigs.k8s.io/controller-tools/cmd/controller-gen
generate . samplecontroller v1alpha1 Foo:Foos artifacts/examples/crd.yaml

if [[ $what != root ]]; then
  echo examples/website
  generate examples/website website v1alpha1 Website:Websites artifacts/crd.yaml >/dev/null
fi

if [[ $what != root ]]; then
  echo docs/tutorial/14-versions
  generate docs/tutorial/14-versions samplecontroller 'v1alpha1 v1beta1' Foo:Foos \
    artifacts/crd/crd.yaml no >/dev/null
fi

cd "$root"
[[ $what == verify ]] || { replace && exit; }
for path in "${generated[@]}" "${apis[@]}"; do
  diff -ru "$path" "$top/$path" && continue
  die "generated files are stale: run 'make generate$all' and commit the result"
done
