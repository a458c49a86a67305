# `make help` shows the targets that have a ## comment, and `make help-all` all that have a comment.
.DEFAULT_GOAL := help

# Each line of a recipe begins with the prologue, hack/env.
SHELL := hack/env
.SHELLFLAGS := -c
.NOTPARALLEL:

# Variables count on the command line of make, as in make cluster CLUSTER=two. In the environment,
# other programs use the same names: some distributions export VERSION. Recipes get them as shell
# variables, so nothing in a value is taken for shell.
CLUSTER := dev
export CLUSTER VERSION
unexport LDFLAGS COMMIT

CONTROLLER := .local/bin/sample-controller
KUBECONFIG_DEV = .local/clusters/"$$CLUSTER"/kubeconfig.yaml
KUBECTL_DEV = .local/bin/kubectl --kubeconfig $(KUBECONFIG_DEV)
HINT = [[ $$CLUSTER == dev ]] || of=" CLUSTER=$$CLUSTER"; \
  echo "to use it, type in any terminal: eval \"\$$(make -s kubeconfig$${of-})\""
# component-base accepts only versions that begin like v1.2.3.
VERSION := v0.1.0-dev
VERSION_VARS := k8s.io/component-base/version
# A source archive has no commit, and in another repository, HEAD is a commit of that one.
COMMIT = $(shell [[ ! -e .git ]] || git rev-parse HEAD)
LDFLAGS = -X $(VERSION_VARS).gitVersion=$(VERSION) -X $(VERSION_VARS).gitCommit=$(COMMIT)
ifneq ($(filter environment%,$(origin CLUSTER) $(origin VERSION)),)
$(if $(filter kubeconfig,$(MAKECMDGOALS)),$(info export KUBECONFIG=/dev/null/the-cluster-is-not-up))
$(error make -e is set: leave it out, or set MAKEFLAGS to nothing)
endif

.PHONY: help help-all demo run test test-all generate build version
.PHONY: cluster up foos cluster-empty cluster-foos cluster-down kubeconfig clean

help:
	@awk -F ':+.* ## ' '/^[a-z-]+:.* ## / {printf "%-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo 'help-all       list all other targets, too'

help-all:
	@awk -F ':+.* ##? ' '/^#= / {print "\n" substr($$0, 4)} \
	  /^[a-z-]+:.* ##? / {printf "  %-21s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nVariables of the environment, as in HACK_JOBS=2 make test\n'
	@cat hack/env hack/*.env 2>/dev/null | sed -nE 's/^setting (HACK_[A-Z_]+) .* # /  \1 @/p' | awk -F ' @' '{printf "%-23s %s\n", $$1, $$2}'

#= For everybody

demo: up build ## see it work: a control plane, the controller, a Foo that is scaled and broken
	@hack/demo "$$CLUSTER"

run: up build foos ## run the controller in the foreground against the local control plane
	@. hack/env && only_controller "$$CLUSTER" && set -x && $(CONTROLLER) --kubeconfig $(KUBECONFIG_DEV) -v 2

test: ## see it tested: unit tests, and the program on a real control plane
	@hack/test

test-all: ## everything that CI tests, for contributors
	@hack/test all

generate: ## generate code and CRD from pkg/apis
	hack/update-codegen.sh

cluster: up ## start the local control plane, building it if needed
	@$(HINT)

up:
	@hack/cluster up "$$CLUSTER"

cluster-down: ## stop the local control plane and delete its state
	@hack/cluster down "$$CLUSTER"

#= Build

build: version # build the controller into .local/bin
	@hack/compile 'the controller' $(CONTROLLER) -ldflags '$(LDFLAGS)' -- .

version:
	@[[ $$VERSION =~ ^v[0-9]+(\.[0-9]+){2}(-[0-9A-Za-z.-]+)?$$ ]] || { \
	  echo "VERSION is '$$VERSION'; write one like VERSION=v1.2.3" >&2; exit 1; }

#= The local control plane

cluster-empty: # start the local control plane with nothing in it, whatever it held before
	@hack/cluster empty "$$CLUSTER"
	@changed=$$(git status --short --untracked-files=no 2>/dev/null); [ ! "$$changed" ] || printf '%s\n' \
	  "These files differ from the last commit ('git checkout HEAD -- FILE' discards a change):" "$$changed"

cluster-foos: cluster-empty foos # the same, with the CustomResourceDefinition of Foos

# Without the first --for, kubectl fails if there are no conditions yet:
# https://github.com/kubernetes/kubernetes/issues/66439
foos:
	@$(KUBECTL_DEV) apply -f artifacts/examples/crd.yaml
	@$(KUBECTL_DEV) wait --for=jsonpath='{.status.conditions[0]}' --for=condition=Established \
	  --timeout 120s -f artifacts/examples/crd.yaml >/dev/null
	@$(HINT)

# Without hack/env, which can fail before hack/cluster has printed what keeps kubectl away.
kubeconfig: SHELL := bash
kubeconfig: # print the commands that make kubectl use the local control plane
	@hack/cluster kubeconfig "$$CLUSTER"

clean: # stop all local control planes and delete everything that was built
	@for dir in .local/clusters/*/; do [ ! -d "$$dir" ] || hack/cluster down "$$(basename "$$dir")"; done
	@for dir in .local/*/.local/clusters/*/; do \
	  [ ! -d "$$dir" ] || "$${dir%/.local/*}/hack/cluster" down "$$(basename "$$dir")"; done
	@find .local -mindepth 1 -maxdepth 1 ! -name learn -exec rm -rf {} + && rm -rf */.local

#= Some of the tests

.PHONY: unit verify conformance lint
unit: # the unit tests of the controller: offline, in a minute
	go test ./...
verify: # fail if generated files are stale
	@hack/update-codegen.sh verify
conformance: # the conformance suite on the controller
	go -C test test -count=1 -timeout 30m ./conformance
lint: # the linters
	@hack/lint

# What other folders add.
-include */*.mk
