# xdpmon: `make demo` shows it at work, `make test` tests it, `make help` lists the rest.
GO ?= go
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E env PATH=$$PATH)
# Longer runs write their results below docs/.
FUZZTIME ?= 5m
SOAKTIME ?= 30m

.PHONY: help build demo test check generate generate-check bench eval fuzz soak kernels clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## the xdpmon binary, in bin/
	@.ci/deps build
	$(GO) build -o bin/xdpmon ./cmd/xdpmon

demo: build ## real handshakes over an emulated link: truth and estimate side by side (root)
	$(SUDO) bin/xdpmon demo

test: ## everything that CI checks, in less than ten minutes
	@.ci/deps build test
	@$(MAKE) --no-print-directory check generate-check
	$(GO) test -p 2 -timeout 9m ./...

check: ## format and vet
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these files"; exit 1; }
	$(GO) vet ./...

generate: ## rebuild what is generated: BPF objects, import lists, parameters of the P4 twins
	@.ci/deps build test
	$(GO) generate ./...

generate-check: ## fail when a committed generated file differs from what `make generate` makes
	.ci/generated

bench: ## nanoseconds a packet over the mutator, per program
	@.ci/deps build
	$(SUDO) $(GO) run ./tests/bench/cmd

eval: ## the papers' figures through the real bytecode: tables and plots in docs/eval
	@.ci/deps build
	$(SUDO) $(GO) run ./tests/eval/cmd

fuzz: ## the parser through the real program, for FUZZTIME
	@.ci/deps build test
	$(SUDO) XDPMON_FUZZTIME=$(FUZZTIME) $(GO) test -timeout 0 -count 1 -run Long -v ./tests/parser

soak: ## live traffic, window flips and chain changes for SOAKTIME; fails on a leak
	@.ci/deps build test
	$(SUDO) XDPMON_SOAKTIME=$(SOAKTIME) $(GO) test -timeout 0 -count 1 -run Soak -v ./tests/soak

kernels: ## load every program on other kernels, in virtual machines
	@.ci/deps build test
	tests/kernels/run

clean: ## remove what was built
	rm -rf bin out
