# The targets of the book, of the lens and of the examples.
PROGRAM := .
LENSFLAGS :=
export PROGRAM

#= The book, the lens and the examples

.PHONY: lens lens-build lens-record play learn conformance-examples bench docs generate-all

lens: up lens-build foos ## watch the controller, or PROGRAM, in a browser: docs/lens.md
	@. hack/env && only_controller "$$CLUSTER" && \
	  KUBECONFIG=$(KUBECONFIG_DEV) .local/bin/lens -program "$$PROGRAM" $(LENSFLAGS)

play: ## try the controller in a page of your browser, without a cluster
	@go -C docs run ./play -serve 127.0.0.1:0

learn: ## try yourself on it: exercises, judged each time that you save: docs/learn.md
	@. hack/env && alone learn && exec go -C docs run ./learn

lens-build:
	@cd lens && ../hack/compile 'the lens' ../.local/bin/lens -- .

lens-record: CLUSTER = lens
lens-record: lens-build cluster-foos # make the recordings in docs/lens/recordings anew
	@mkdir -p docs/lens/recordings
	@set -e; record() { KUBECONFIG=$(KUBECONFIG_DEV) .local/bin/lens -burst 20 \
	    -program "$$1" -scenario "$$2" -record "docs/lens/recordings/$$3.js"; }; \
	  for program in docs/tutorial/0[2-8]-*/; do \
	    chapter=$$(basename "$$program"); \
	    program=docs/$$(docs/tutorial/assemble "$$chapter"); \
	    record "$$program" "$${chapter#*-}" "$$chapter"; \
	  done; \
	  for scenario in create taken hold restart; do record . "$$scenario" "$$scenario"; done
	@hack/cluster down lens >/dev/null

conformance-examples: # the conformance suite on the same controller on other frameworks
	@$(call on,examples,examples/conformance)

bench: build # compare the controllers with frameworks, in an hour: docs/performance.md
	@hack/cluster build
	go -C examples build -o ../.local/bin/examples/ ./controller-runtime ./lasso
	go -C examples/bench run .

docs: # update the listings and the transcripts in all pages
	go -C docs test ./check -update
	go -C docs test ./check -run TestConsoles -count=1 -timeout 30m -console -update -patience 3m

generate-all: # the same, and for examples/website and docs/tutorial/14-versions
	hack/update-codegen.sh all
