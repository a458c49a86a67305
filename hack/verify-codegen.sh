#!/usr/bin/env bash
# Fails if generating everything again would change a file: code and CustomResourceDefinition.
# It works on a copy, so that the working tree stays as it is.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$root"
cp -R go.mod go.sum hack pkg artifacts "$copy"
generated=(pkg artifacts/examples/crd.yaml) all=

cp -R examples "$copy"
generated+=(examples/website/pkg examples/website/artifacts/crd.yaml) all=-all

mkdir -p "$copy/docs/tutorial"
cp -R docs/tutorial/14-versions "$copy/docs/tutorial"
generated+=(docs/tutorial/14-versions/pkg docs/tutorial/14-versions/artifacts/crd/crd.yaml)

hack/update-codegen.sh all "$copy" >/dev/null
for path in "${generated[@]}"; do
  diff -ru "$path" "$copy/$path" && continue
  echo "Generated files are stale: run 'make generate$all' and commit the result." >&2
  exit 1
done
