# make help lists what can be made. Nothing here needs Docker, Java or a cloud account: Go and its module proxy do.

GO      ?= go
TOOLS   := bin/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

# -race needs cgo and a C compiler. `make test` says so where there is none; `make check` and CI insist.
HAVE_CC := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC)" 2>/dev/null)
RACE    := $(if $(HAVE_CC),-race)

FUZZTIME   ?= 20s
BENCH      ?= .
SEEDS      ?= 500
# Ninety test programs are linked, in half the time without what only a debugger reads.
NO_DWARF   := -ldflags=-w
# Tests mostly wait for servers in their own process, so more of them run side by side than there are cores. The limit is
# for machines that are busy with other things.
TEST_FLAGS ?= -timeout 30m -parallel 8 $(NO_DWARF)
PACKAGES   ?= ./...
# Without this, each program that has the race detector sleeps for a second before it exits: tests, and what they start.
export GORACE ?= atexit_sleep_ms=0

.DEFAULT_GOAL := help
.PHONY: help build demo demo-ttl test short check fmt vet lint vuln race bench sim chaos fuzz acceptance chart alerts man schema tools clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/replicator
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/replicator ./cmd/replicator

demo-ttl: build ## items expire and are archived, the replicator is killed twice; every event is counted by another reader
	test/demo-ttl.sh

demo: build ## the whole way on embedded parts: copies, writes, kills the replicator twice, compares every cell
	bin/replicator demo

test: ## all tests, with the race detector where a C compiler exists
ifeq ($(RACE),)
ifdef REQUIRE_RACE
	@echo 'make: the race detector needs cgo and a C compiler (looked for "$(shell $(GO) env CC)")' >&2; exit 1
else
	@echo 'make: no C compiler, so these tests run WITHOUT the race detector' >&2
endif
endif
	$(GO) test $(RACE) $(TEST_FLAGS) $(PACKAGES)

short: ## what a developer runs after each change: unit tests, and few histories of each kind
	$(GO) test -short $(TEST_FLAGS) $(PACKAGES)

race: ## all tests, with the race detector or not at all
	@$(MAKE) test REQUIRE_RACE=1

check: fmt vet lint vuln race chart alerts ## all that must hold before a release

fmt: ## is everything gofmt-ed?
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "not gofmt-ed:" >&2; echo "$$bad" >&2; exit 1; fi

vet: ## go vet
	$(GO) vet ./...

lint: $(TOOLS)/golangci-lint ## golangci-lint
	$(TOOLS)/golangci-lint run ./...

vuln: $(TOOLS)/govulncheck ## known vulnerabilities in what is called (needs the network)
	@tools/vuln $(TOOLS)/govulncheck ./...

bench: ## benchmarks, per record; BENCH=pattern PACKAGES=./transform/...
	$(GO) test -timeout 2h -run '^$$' -bench '$(BENCH)' -benchmem $(PACKAGES)

sim: ## simulated histories of several owners of one log; SEEDS=500
	$(GO) test -run 'TestHistories|TestIndex' ./checkpoint -args -sim.seeds=$(SEEDS)

chaos: ## the whole program under kill -9 at SEEDS=500 moments; every cell is compared
	$(GO) test $(RACE) -timeout 8h -parallel 4 -run TestKilledAtAnyMomentLosesNothing ./test -args -chaos.seeds=$(SEEDS)
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestOldTableIsCopied ./pipeline -args -copy.items=50000
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestOldTablesAreCopiedUnderKills ./test -args -old.items=50000
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestArchiveIsExactUnderKills ./test -args -archive.seeds=50
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestGapOfEachKind ./pipeline -args -gaps.all

fuzz: ## every fuzz test for FUZZTIME (20s) each
	@GO=$(GO) tools/fuzz $(FUZZTIME)

acceptance: build ## the session of a user with the AWS CLI, cbt and jq
	REPLICATOR="$(CURDIR)/bin/replicator" test/acceptance.sh

chart: build $(TOOLS)/helm ## lint, render and strictly decode the Helm chart
	$(TOOLS)/helm lint --strict deploy/helm --values deploy/helm/ci/embedded.yaml
	cd tools && HELM=$(CURDIR)/$(TOOLS)/helm REPLICATOR=$(CURDIR)/bin/replicator $(GO) test -count=1 ./chart

alerts: $(TOOLS)/promtool ## check the alerts and run their unit tests
	$(TOOLS)/promtool check rules deploy/alerts.yaml
	$(TOOLS)/promtool test rules deploy/alerts_test.yaml deploy/alerts_outages_test.yaml

man: build ## man pages into man/
	mkdir -p man && bin/replicator man man

schema: ## write deploy/tailrace.schema.json anew
	$(GO) test ./config -run Schema -update

tools: $(addprefix $(TOOLS)/,golangci-lint govulncheck helm promtool) ## build the tools of make check once

clean: ## remove what make built
	rm -rf bin man

# The tools have a module of their own, so that go.mod stays small. They are built once, and again when that changes.
# promtool is built without service discovery: it only reads rules here, and the clients of a dozen clouds are most of it.
$(TOOLS)/golangci-lint: PKG = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/govulncheck:   PKG = golang.org/x/vuln/cmd/govulncheck
$(TOOLS)/helm:          PKG = helm.sh/helm/v4/cmd/helm
$(TOOLS)/promtool:      PKG = -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool
$(TOOLS)/%: tools/go.mod tools/go.sum
	cd tools && $(GO) build -trimpath -o $(CURDIR)/$@ $(PKG)
	@touch $@
