# Every target that has a comment behind it is shown by `make help`.
.DEFAULT_GOAL := help

CONTROLLER := .local/bin/sample-controller
KUBECONFIG_DEV := .local/clusters/dev/kubeconfig.yaml
# component-base accepts no version that does not begin like v1.2.3.
VERSION ?= v0.1.0-dev
VERSION_VARS := k8s.io/component-base/version
LDFLAGS := -X $(VERSION_VARS).gitVersion=$(VERSION) -X $(VERSION_VARS).gitCommit=$(shell git rev-parse HEAD)

.PHONY: help demo test run build unit generate verify mutants cluster cluster-down kubeconfig clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "%-14s %s\n", $$1, $$2}'

demo: build cluster ## see it work: a control plane, the controller, a Foo that is scaled and broken
	@hack/demo

test: ## see it tested: build, vet, staticcheck, generated code, unit tests, tests on a control plane
	@hack/test

run: build cluster ## run the controller in the foreground against the local control plane
	.local/bin/kubectl --kubeconfig $(KUBECONFIG_DEV) apply -f artifacts/examples/crd.yaml
	$(CONTROLLER) --kubeconfig $(KUBECONFIG_DEV) -v 2

build: ## build the controller into .local/bin
	@go build -ldflags '$(LDFLAGS)' -o $(CONTROLLER) .

unit: ## run the unit tests only: in seconds, offline
	go test ./...

generate: ## generate code and CRD from pkg/apis
	hack/update-codegen.sh

verify: ## fail if anything generated is stale
	hack/verify-codegen.sh

mutants: ## break the controller in every listed way and see that a test notices
	go test -run TestMutants -count=1 -timeout 30m . -mutants

cluster: ## start the local control plane, building it if needed
	@hack/cluster up

cluster-down: ## stop the local control plane and delete its state
	@hack/cluster down

kubeconfig: ## print what to evaluate so that kubectl finds the local control plane
	@hack/cluster kubeconfig

clean: ## stop all local control planes and delete everything that was built
	@hack/cluster down dev && hack/cluster down test && rm -rf .local
