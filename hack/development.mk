# The targets of this repository that a copy of the controller does without.
IMAGE := example.com/sample-controller:$(VERSION)
IMAGEFLAGS := -o .local/image.tar
ARCHS :=
ifneq ($(filter environment%,$(origin IMAGE)),)
$(error make -e is set: leave it out, or set MAKEFLAGS to nothing)
endif

# on runs a command with KUBECONFIG set to a cluster that it starts, and stops in the end.
on = trap 'hack/cluster down $(1) >/dev/null' EXIT; hack/cluster up $(1) >/dev/null && \
  KUBECONFIG=$(CURDIR)/.local/clusters/$(1)/kubeconfig.yaml $(2)

#= Images, and more tests than make test-all has

.PHONY: image faults mutants conformance-broken faults-long soak faults-all fuzz vulnerabilities

image: version # build the container image without docker, into .local/image.tar
	@go -C hack run ./image -name $(IMAGE) -version $(VERSION) -commit $(COMMIT) -ldflags '$(LDFLAGS)' $(IMAGEFLAGS) $(ARCHS)

faults: build # everything around the controller fails, for a minute: test/faults
	go -C test test -count=1 -timeout 30m ./faults

mutants: # break the code in every listed way; each time, a test must fail
	go -C hack test -skip /conformance -timeout 60m ./mutants -mutants

conformance-broken: # break the controller; each time, tests of the conformance suite must fail
	@$(call on,broken,go -C hack test -run /conformance -timeout 90m ./mutants -mutants)

faults-long: build # make everything around the controller fail, for about five minutes
	go -C test/faults test -count=1 -v -timeout 30m -rounds 2 -foos 100 -steps 200 -kill-every 5s -quiet 20s -patience 2m

SOAK := 1h
soak: build # the same for an hour, or SOAK=4h: memory and connections must not grow
	@hack/cluster build
	go -C test/faults test -count=1 -v -timeout 0 -run TestSoak -soak $(SOAK) \
	  -quiet 10s -patience 5m

DEPTH := 3
faults-all: # every crash, event and error in every scenario, in histories of DEPTH steps
	for family in Crash Error Event Schedule Lag Slow Twin History; do \
	  go test . -run TestExplore/$$family -timeout 0 -explore.every -explore.depth $(DEPTH) || exit; done

# By default, shortening each input that reaches new code takes up to a minute.
fuzz: CLUSTER = fuzz
fuzz: up foos # fuzz for five minutes; a real API server judges what is written
	@echo "compiling everything once more, with the fuzzer's counters: this takes minutes"
	@trap 'hack/cluster down "$$CLUSTER" >/dev/null' EXIT; \
	  go test -run '^$$' -fuzz FuzzWhatIsWritten -fuzztime 5m -fuzzminimizetime 10x . \
	    -fuzz-kubeconfig $(CURDIR)/$(KUBECONFIG_DEV)

# make test does not do this: what is known changes without a change of this repository.
vulnerabilities: # fail if the controller calls what govulncheck knows to be vulnerable
	@go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 .
