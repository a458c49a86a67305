#!/usr/bin/env bash
# Fails if generating everything again would change a file: code and CustomResourceDefinition.
# It works on a copy, so that the working tree stays as it is.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$root"
cp -R go.mod go.sum hack pkg artifacts "$copy"
hack/update-codegen.sh "$copy" >/dev/null
if ! diff -ru pkg "$copy/pkg" || ! diff -u artifacts/examples/crd.yaml "$copy/artifacts/examples/crd.yaml"; then
  echo "Generated files are stale: run 'make generate' and commit the result." >&2
  exit 1
fi
