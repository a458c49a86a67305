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

for file in go.* */go.*; do
  mkdir -p "$top/$(dirname "$file")"
  cp "$file" "$top/$file"
done
cp -R hack pkg artifacts "$top"
generated=(pkg/generated artifacts/examples/crd.yaml) apis=(pkg/apis) others=
# Each line of these files has the arguments of generate, for another folder.
[[ $what == root ]] || others=$(cat hack/*.codegen 2>/dev/null || :)
while read -r folder _ _ _ crd; do
  [[ $folder ]] || continue
  mkdir -p "$top/$(dirname "$folder")"
  cp -R "$folder" "$top/$folder"
  generated+=("$folder/pkg/generated") apis+=("$folder/pkg/apis")
  [[ $crd == - ]] || generated+=("$folder/$crd")
done <<<"$others"

gen() { # gen TOOL FLAGS...: run a generator, with the flags that all generators take, too
  echo "$1"
  "$(go -C "$top" tool -n "$1")" --go-header-file "$top/hack/boilerplate.go.txt" "${@:2}"
}

# generate FOLDER GROUP VERSIONS PLURAL CRD: generate what is made from FOLDER/pkg/apis/GROUP, for
# each of VERSIONS, with commas between them. One that is not the first may be a package elsewhere.
# PLURAL is that of the resource. Without it, the generators would guess it from the kind. If CRD is
# -, none is generated, and no apply configurations.
generate() (
  cd "$1"
  IFS=, read -ra versions <<<"$3"
  package=$(go list -find "./pkg/apis/$2/${versions[0]}")
  package=${package%"/pkg/apis/$2/${versions[0]}"}
  apis=() own=()
  for version in "${versions[@]}"; do
    [[ $version == */* ]] || { version=$package/pkg/apis/$2/$version && own+=("$version"); }
    apis+=("$version")
  done
  out=pkg/generated

  # A file that a generator no longer writes must not stay behind.
  rm -rf "$out" "pkg/apis/$2"/*/zz_generated.*.go

  gen deepcopy-gen --output-file zz_generated.deepcopy.go "${own[@]}"
  gen register-gen --output-file zz_generated.register.go "${own[@]}"
  local apply=''
  if [[ $5 != - ]]; then
    apply=$package/$out/applyconfiguration
    gen applyconfiguration-gen --output-dir "$out/applyconfiguration" --output-pkg "$apply" \
      "${apis[@]}"
  fi
  gen client-gen --output-dir "$out/clientset" --output-pkg "$package/$out/clientset" \
    --plural-exceptions "$4" --clientset-name versioned --input-base '' "${apis[@]/#/--input=}" \
    --apply-configuration-package "$apply"
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

  [[ $5 != - ]] || return 0
  echo controller-gen
  crds=$(mktemp -d "$top/crds.XXXXXX")
  "$root/.local/bin/controller-gen" crd "${apis[@]/#/paths=}" output:crd:dir="$crds"
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

while read -ra how; do
  [[ ${how[*]} ]] || continue
  echo "${how[0]}"
  generate "${how[@]}" >/dev/null </dev/null
done <<<"$others"

cd "$root"
[[ $what == verify ]] || { replace; exit; }
for path in "${generated[@]}" "${apis[@]}"; do
  diff -ru "$path" "$top/$path" && continue
  die "generated files are stale: run 'hack/update-codegen.sh all' and commit the result"
done
