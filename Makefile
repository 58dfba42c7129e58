# xdpmon: `make demo` shows it at work, `make test` tests it, `make help` lists the rest.
# The programs are pure Go: one static file, and no C compiler anywhere but for the race detector.
export CGO_ENABLED = 0
GO ?= .ci/go
IN_LAB = cd lab && ../.ci/go
BIN ?= bin/xdpmon
COORDINATOR_BIN ?= $(dir $(BIN))xdpmon-coordinator
LDFLAGS = -X main.revision=$${REVISION-$$(.ci/revision)}
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E env PATH=$$PATH)
RACE = cmd/internal/... cmd/xdpmon cmd/xdpmon-coordinator userspace/agent userspace/agent/config userspace/api userspace/bus/... userspace/capture userspace/coordinator userspace/coordinator/config userspace/keys userspace/outlet userspace/prom \
	userspace/report userspace/session demo/emulator
# What of these is long, and has one goroutine: the race detector leaves it out.
SINGLE = FourHosts|SuspectLink|^TestRestarts$$
# Longer runs write their results below docs/.
FUZZTIME ?= 5m
PREFIX ?= /usr
VERSION ?= 0.1.0~dev
NEXT_VERSION ?= 0.1.1~dev
NFPM = github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.2
SOAKTIME ?= 30m

.PHONY: help deadcode build install packages dist agent-soak ahab-live conquest-live conquest-standing conquest-loop incidents demo test ci check race generate generate-check bench bench-live eval fuzz soak faults mutants kernels findings-quiet clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "%-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## both programs, in bin/: xdpmon, and xdpmon-coordinator
	@.ci/deps build
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/xdpmon
	$(GO) build -trimpath -ldflags "$(LDFLAGS)" -o $(COORDINATOR_BIN) ./cmd/xdpmon-coordinator

# PROGRAM, its unit, its user, its schemas and its page of docs; a configuration that is there stays.
define install_program
	install -D -m 0755 $(1) $(DESTDIR)$(PREFIX)/bin/$(2)
	sed 's|/usr/bin/$(2)|$(PREFIX)/bin/$(2)|' deploy/$(2).service | install -D -m 0644 /dev/stdin $(DESTDIR)$(PREFIX)/lib/systemd/system/$(2).service
	install -D -m 0644 deploy/package/$(2)/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/$(2).conf
	install -D -m 0644 deploy/$(3).schema.json $(DESTDIR)$(PREFIX)/share/doc/$(2)/$(3).schema.json
	install -D -m 0644 deploy/algorithms.schema.json $(DESTDIR)$(PREFIX)/share/doc/$(2)/algorithms.schema.json
	install -D -m 0644 docs/$(3).md $(DESTDIR)$(PREFIX)/share/doc/$(2)/$(3).md
	install -d -m 0700 $(DESTDIR)/etc/$(2)
	[ -e $(DESTDIR)/etc/$(2)/$(3).yaml ] || install -m 0600 deploy/$(3).yaml $(DESTDIR)/etc/$(2)/$(3).yaml
	@[ -n "$(DESTDIR)" ] || PATH=$$PATH:/usr/sbin deploy/package/$(2)/postinstall.sh
endef

install: build ## both programs with units and configurations, below DESTDIR and PREFIX (/usr)
	$(call install_program,$(BIN),xdpmon,agent)
	$(call install_program,$(COORDINATOR_BIN),xdpmon-coordinator,coordinator)

packages: ## .deb and .rpm of both programs for this machine, in out/
	@.ci/deps build
	VERSION='$(VERSION)' NFPM=$(NFPM) GO=$(GO) deploy/package/build deb rpm -- $$($(GO) env GOARCH)

dist: ## deb, rpm, tar.gz and OCI images of both programs for amd64 and arm64 with SHA256SUMS, in out/; two builds of a commit are equal
	@.ci/deps build
	VERSION='$(VERSION)' NFPM=$(NFPM) GO=$(GO) deploy/package/build -- amd64 arm64

.PHONY: systemd
systemd: ## the packages on a fresh Debian 12 under systemd and by rpm: install, start, upgrade under load, rotate, remove, purge, into docs/packages.md; four minutes, the first time ten
	@.ci/deps build
	for version in $(VERSION) $(NEXT_VERSION); do VERSION=$$version NFPM=$(NFPM) GO=$(GO) deploy/package/build deb rpm -- amd64 || exit 1; done
	$(SUDO) lab/run systemd -packages out -old '$(VERSION)' -new '$(NEXT_VERSION)' -out docs/packages.md

demo: build ## real handshakes over an emulated link: truth and estimate side by side (root)
	$(SUDO) $(BIN) demo

# Two lanes: tests, of which many wait for traffic, and what only reads sources, at the lowest priority, in the time that they leave.
# Go's collector runs less often than by default: it took a quarter of the processor time of the prover's tests.
test check race analyze ci: export GOGC := $(or $(GOGC),400)

test: ## what ships, tested: what CI checks first
	@.ci/deps build test
	@$(MAKE) --no-print-directory -j 2 lint tests

.PHONY: lint tests analyze
lint:
	@nice -n 19 $(MAKE) --no-print-directory check
	@nice -n 19 $(MAKE) --no-print-directory generate-check

tests:
	$(GO) test -p 3 -vet off -shuffle on -timeout 9m ./... # `check` vets

deadcode: ## functions that no program reaches, against docs/unreachable.md
	.ci/deadcode

ci: deadcode analyze race ## what `make test` leaves out: the race detector, staticcheck, arm64, and every study, campaign and benchmark of lab/ once, at its smallest size
	@.ci/deps build test
	$(IN_LAB) vet ./...
	$(IN_LAB) tool staticcheck $$(../.ci/go list ./... | grep -v -E '/lab/(boards|chart|metrics)') # without the packages that import Grafana's, Helm's and Prometheus' modules, which it would read for minutes
	$(IN_LAB) mod tidy -diff
	$(IN_LAB) test -p 2 -vet off -shuffle on -timeout 12m ./...

check: ## format, vet and go.mod
	@files=$$($$($(GO) env GOROOT)/bin/gofmt -l .) && test -z "$$files" || { echo "run gofmt -w on these files:"; echo "$$files"; exit 1; }
	$(GO) vet ./...
	$(GO) mod tidy -diff

analyze: ## staticcheck, and the build for arm64
	$(GO) tool staticcheck ./...
	for program in xdpmon xdpmon-coordinator; do GOARCH=arm64 $(GO) build -o /dev/null ./cmd/$$program || exit 1; done

# What has goroutines and needs no root; clang is here for the BPF programs anyway.
race: ## the race detector on what runs concurrently and needs no root
	CGO_ENABLED=1 CC=clang-19 $(GO) test -race -vet off -shuffle on -parallel 8 -skip '$(SINGLE)' $(addprefix ./,$(RACE))

generate: ## rebuild what is generated: BPF objects, import lists, parameters of the P4 twins
	@.ci/deps build test
	$(GO) generate ./...
	$(IN_LAB) generate ./...

.PHONY: answers
answers: ## register names, answers and optional interfaces of all algorithms, which tests compare with (a change that means to give others; a new algorithm)
	$(GO) test ./tests/names -count 1 -update
	$(SUDO) $(GO) test ./tests/sweep -count 1 -run 'Answers|OptionalInterfaces' -update

generate-check: ## fail when a committed generated file differs from what `make generate` makes
	.ci/generated

bench: ## nanoseconds a packet over the mutator, per program
	@.ci/deps build
	$(SUDO) lab/run bench/cmd

bench-live: ## packets a second that arrive at an interface, with nothing, 1, six and all algorithms on one core and on all; five minutes, alone
	@.ci/deps build
	$(SUDO) nice -n -15 lab/run bench/cmd -live 64 -rounds 9
	$(SUDO) nice -n -15 lab/run bench/cmd -live 1514 -rounds 9

findings-quiet: ## what is found in quiet traffic: 30 virtual days of ten seeds, each finding of which is false (20 minutes of two cores)
	lab/run findings -show

eval: ## the papers' figures through the real bytecode: tables and plots in docs/eval; CHECK=1 runs a drawn tenth of them again and compares
	@.ci/deps build
	$(SUDO) lab/run eval/cmd $(if $(CHECK),-check)

ahab-live: ## real TCP flows sharing a slice, in namespaces, into docs/eval/ahab-live.md; three hours
	@.ci/deps build
	$(MAKE) build
	$(SUDO) lab/run ahab/live -out docs/eval/ahab-live.md
	$(SUDO) lab/run ahab/live -figures docs/eval

.PHONY: ahab-matrix
ahab-matrix: build ## what ceilings hold with real TCP in 60 drawn cells, into docs/eval/ahab-matrix.md; twenty minutes, alone
	$(SUDO) lab/run ahab/matrix -out docs/eval/ahab-matrix.md

conquest-standing: build ## who is named in 40 drawn standing queues, into docs/eval/conquest-standing.md, and what drops do in them and marks in 16; eleven minutes, alone
	$(SUDO) lab/run queue/standing -out docs/eval/conquest-standing.md
	$(SUDO) lab/run queue/standing -action drop -out docs/eval/conquest-standing-drop.md
	$(SUDO) lab/run queue/standing -cells 16 -action ecn -out docs/eval/conquest-standing-ecn.md

conquest-live: build ## delays, bursts, culprits and figures 5.14 and 5.15 of a real queue, watched and tapped, into docs/eval/conquest-live.md; three minutes, alone
	$(SUDO) lab/run queue/live -out docs/eval/conquest-live.md

conquest-loop: build ## ECN on culprits against ECN on everybody, with real TCP, into docs/eval/conquest-loop.md; an hour and a half
	$(SUDO) nice -n -15 lab/run queue/loop -out docs/eval/conquest-loop.md

incidents: build ## stage 36 incidents in namespaces, five seeds each, and judge what `xdpmon check` finds, into docs/eval/findings.md; 50 minutes
	@.ci/deps build test
	$(SUDO) lab/run incidents -xdpmon $(BIN) -out docs/eval/findings.md

fuzz: ## the parser through the real program, the prover's programs in two histories, and random P4, for FUZZTIME
	@.ci/deps build test
	$(SUDO) XDPMON_FUZZTIME=$(FUZZTIME) $(GO) test -timeout 0 -count 1 -run Long -v ./tests/parser ./loader/pisa/machine ./p4/tna/run

soak: ## live traffic, window flips and chain changes for SOAKTIME; fails on a leak
	@.ci/deps build test
	$(SUDO) XDPMON_SOAKTIME=$(SOAKTIME) $(GO) -C lab test -timeout 0 -count 1 -run Soak -v ./soak

agent-soak: ## the agent: many interfaces, a storm of configurations, upgrades, kills, at rest; results in docs/agent-runs.md
	@.ci/deps build test
	$(SUDO) XDPMON_AGENT_SOAK=1 $(GO) test -timeout 0 -count 1 -run Soak -v ./tests/agent ./tests/session

.PHONY: fleet
fleet: ## hosts together: 100 runs against one exact answer, disturbances, 1,000 agents for ten minutes; docs/coordinator.md, docs/carpe.md
	@.ci/deps build test
	$(SUDO) XDPMON_FLEET_RUNS=100 XDPMON_LOAD=1000x20x10m $(GO) test -timeout 0 -count 1 -v -run 'FourHosts|SuspectLink|Load' ./userspace/coordinator
	$(SUDO) XDPMON_FLEET_RUNS=100 $(GO) test -timeout 0 -count 1 -v -run 'Fleet|Flood' ./tests/agent ./tests/carpe

mutants: ## small changes to the sources: which does no test notice (an hour); docs/mutants.md
	@.ci/deps build test
	$(SUDO) lab/run mutants

faults: ## let system calls of an attach fail, one a run: how it ends, in docs/faults.md
	@.ci/deps build
	$(SUDO) lab/run faults/cmd

kernels: ## load every program on other kernels, in virtual machines
	@.ci/deps build test
	lab/kernels/run

clean: ## remove what was built
	rm -rf bin out
