# make help lists what can be made. Nothing here needs Docker, Java or a cloud account: Go and its module proxy do.

GO      ?= go
TOOLS   := bin/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := -s -w $(if $(VERSION),-X main.version=$(VERSION))

# -race needs cgo and a C compiler. `make test` says so where there is none; `make check` and CI insist.
HAVE_CC := $(shell [ "$$($(GO) env CGO_ENABLED)" = 1 ] && command -v "$$($(GO) env CC)" 2>/dev/null)
RACE    := $(if $(HAVE_CC),-race)

# What a release has binaries for. Windows is compiled and never run: CONTRIBUTING.md says what works there.
PLATFORMS  := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
# What replicator-bulk has binaries for: workers run on Linux, and launchers where people sit.
BULK_PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

FUZZTIME   ?= 20s
BENCH      ?= .
SEEDS      ?= 500
PICTURES_FOR ?= 1h
sim: SEEDS := $(if $(filter file,$(origin SEEDS)),3000,$(SEEDS))
UPDATE     ?=
# Ninety test programs are linked, in half the time without what only a debugger reads. Without paths in them, what was
# compiled in one checkout is not compiled again in another.
TEST_BUILD := -trimpath -ldflags=-w
# Tests mostly wait for servers in their own process, so more of them run side by side than there are cores: five of each
# package. (With eight, two cores had loads of 15 and more, and tests waited for them instead of for what they test.) The
# packages that take longest begin first; results come in that order, so nothing is printed for some minutes. The limit of
# time is for machines that are busy with other things.
TEST_FLAGS ?= -timeout 3h -parallel 5 -p $(shell getconf _NPROCESSORS_ONLN) $(TEST_BUILD)
PACKAGES   ?= ./test ./pipeline ./queue ./...
# All of test/ that reads files alone, but for TestCallsPointDownTheFileOrder: it type-checks every package.
STRUCTURE  := ^Test(ImportArrows|FilesStaySmall|DocsNameWhatExists|DocsNameWhatIsInTheCode|RulesHaveTheirMarks|MapOfPackagesIsComplete|LinksOfDocumentsLeadSomewhere|TextsAreNotRead|CommentsArePlain|EveryAlertHasItsEntry)$$
MODULES    ?= . bulk
# Without this, each program that has the race detector sleeps for a second before it exits: tests, and what they start.
export GORACE ?= atexit_sleep_ms=0

.DEFAULT_GOAL := help
.PHONY: help build bulk bulk-flink demo demo-ttl test short check fmt vet tidy structure cross lint vuln race bench sim mutants explore answers soak chaos fuzz acceptance incidents chart alerts dashboards page pictures terraform site man schema tools release release-files clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/replicator
	@test -e bin/replicator || echo 'make: Go compiles the program and its libraries; the first time takes minutes, later seconds'
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/replicator ./cmd/replicator

# A module of its own: Beam would move the versions of the daemon's libraries.
bulk: ## build bin/replicator-bulk, which copies large tables on Apache Beam (docs/bulk.md)
	@test -e bin/replicator-bulk || echo 'make: Go compiles the program and Apache Beam; the first time takes minutes'
	cd bulk && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o ../bin/replicator-bulk ./cmd/replicator-bulk

bulk-flink: ## copies and comparisons on a Flink cluster whose processes are killed and frozen; needs Maven, Java 17 and 15 minutes
	bulk/flink/run.sh

demo-ttl: build ## items expire and are archived, the replicator is killed twice; every event is counted by another reader
	test/demo-ttl.sh

demo: build ## the whole way on embedded parts: copies, writes, kills the replicator twice, compares every cell
	bin/replicator demo

# The race detector makes tests three to ten times as slow. `make test` has it in the packages that have goroutines of their
# own. It leaves it out of PROGRAMS, whose tests run the program, whole tables, whole commands, or much data; out of HISTORIES,
# each of which is one goroutine; and where nothing runs beside anything else (test/pure.sh). Of those in RACED the tests that
# CONCURRENT names have it all the same. `make race` leaves it out of nothing. The tests of PROGRAMS mostly wait, so those of
# the other packages run beside them, at first one package at a time: with more, tests of replicas and of limits starve.
PROGRAMS   := ./test ./pipeline ./queue ./cutover ./source ./cmd/replicator ./audit ./explain ./preflight ./demo
HISTORIES  := ./test/sim ./test/plants ./transform
RACED      := ./pipeline ./queue ./source ./transform
CONCURRENT := HandOver|HandedOver|Drain|Share|FailOver|Killed|Lane|Owner|Halt|Pause|Recovery|Leader|Claimers|Writer|Reader|Feed|Pool|UnderAllOfIt
WHOLE      := -parallel $(shell expr 4 \* $$(getconf _NPROCESSORS_ONLN))

test: ## all tests, with the race detector where a C compiler exists
ifeq ($(RACE),)
ifdef REQUIRE_RACE
	@echo 'make: the race detector needs cgo and a C compiler (looked for "$(shell $(GO) env CC)")' >&2; exit 1
else
	@echo 'make: no C compiler, so these tests run WITHOUT the race detector' >&2
endif
endif
ifeq ($(origin PACKAGES),file)
	@echo '$(GO) test $(RACE_PROGRAM) $(TEST_FLAGS) $(WHOLE) $(PROGRAMS), and beside it $(RACE) in the packages with goroutines'; \
	($(GO) test $(RACE_PROGRAM) $(TEST_FLAGS) $(WHOLE) $(PROGRAMS) || failed=1; \
		cd bulk && $(GO) test $(RACE_PROGRAM) $(TEST_FLAGS) ./... || failed=1; exit $${failed:-0}) & program=$$!; failed=0; \
	pure="$$(test/pure.sh)"; whole="$$($(GO) list $(PROGRAMS) $(HISTORIES))"; \
	$(GO) test $(RACE) $(TEST_FLAGS) -p 1 $$($(GO) list ./... | grep -vxF "$$whole" | grep -vxF "$$pure") || failed=1; \
	$(if $(and $(RACE),$(if $(RACE_PROGRAM),,1)),$(GO) test $(RACE) $(TEST_FLAGS) -run '$(CONCURRENT)' $(RACED) || failed=1;) \
	$(GO) test $(RACE_PROGRAM) $(TEST_FLAGS) $(HISTORIES) $$pure || failed=1; \
	wait $$program || failed=1; \
	exit $$failed
else
	$(GO) test $(RACE) $(TEST_FLAGS) $(PACKAGES)
endif

short: ## what a developer runs after each change: unit tests, and few histories of each kind
	$(GO) test -short $(TEST_FLAGS) $(PACKAGES)

race: ## all tests, with the race detector in the program under test too, or not at all
	@$(MAKE) test REQUIRE_RACE=1 RACE_PROGRAM=-race

check: export TAILRACE_BROWSER = 1 # the tests of the status page need a Chromium and do not skip themselves
# Not tools/release, which cannot be: a test of a module that it needs imports a package that its module has no more.
check: MODULES = . bulk tools tools/page
check: fmt tidy vet cross lint vuln race incidents chart alerts dashboards page terraform ## all that must hold before a release

fmt: ## is everything gofmt-ed?
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then echo "not gofmt-ed:" >&2; echo "$$bad" >&2; exit 1; fi

# Compiled as the tests are, so that nothing is compiled twice.
vet: ## go vet
	$(GO) vet $(RACE) -trimpath ./...
	cd bulk && $(GO) vet -trimpath ./...

tidy: ## do go.mod and go.sum hold what is imported, and no more? MODULES=". tools" for those of the tools too
	@for module in $(MODULES); do (cd $$module && GO=$(GO) $(CURDIR)/tools/tidy) || exit 1; done

structure: ## arrows between packages, sizes of files, marks of rules, and that documents name what exists, before the tests that take long
	$(GO) test $(RACE) $(TEST_BUILD) -run '$(STRUCTURE)' ./test

cross: ## compile the program for each system and processor of a release
	@for platform in $(PLATFORMS); do echo "$$platform"; \
	CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o /dev/null ./cmd/replicator || exit 1; \
	done
	@for platform in $(BULK_PLATFORMS); do echo "bulk $$platform"; \
	(cd bulk && CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/} \
		$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o /dev/null ./cmd/replicator-bulk) || exit 1; \
	done

lint: $(TOOLS)/golangci-lint ## golangci-lint
	$(TOOLS)/golangci-lint run ./...
	cd bulk && ../$(TOOLS)/golangci-lint run --config ../.golangci.yml ./...

vuln: $(TOOLS)/govulncheck ## known vulnerabilities in what is called (needs the network)
	@tools/vuln $(TOOLS)/govulncheck ./...
	@cd bulk && ../tools/vuln ../$(TOOLS)/govulncheck ./...

# Without BENCH and PACKAGES: 26 minutes on two cores. Medians of TAILRACE_BENCH_ROUNDS=3.
bench: ## speed at several latencies of Bigtable, beside programs written by hand; or BENCH=pattern PACKAGES=./transform/...
	$(GO) test -timeout 2h -run '^$$' \
		-bench $(if $(filter-out file,$(origin BENCH) $(origin PACKAGES)),'$(BENCH)' -benchmem $(PACKAGES),'^BenchmarkSummary$$' -benchtime 1x ./test/bench)

sim: ## simulated histories of the whole protocol, and of the fold alone; SEEDS=3000
	$(GO) test $(TEST_BUILD) -timeout 8h -count=1 -run 'TestHistories|TestKept' -v ./test/sim -args -sim.seeds=$(SEEDS)
	$(GO) test $(TEST_BUILD) -timeout 8h -run 'TestHistories|TestIndex' ./checkpoint -args -sim.seeds=$$(($(SEEDS) / 30 + 1))

mutants: ## take each defence of the protocol away: the simulation must find it within 3,000 histories; UPDATE=1 keeps them
	$(GO) test $(TEST_BUILD) -timeout 2h -count=1 -run 'TestMutants|TestDefencesOfTheCode|TestEachDefence' -v ./test/sim -args -sim.mutants=3000 $(if $(UPDATE),-sim.update)

explore: ## all histories of a small world with one fault or two preemptions
	$(GO) test $(TEST_BUILD) -timeout 1h -count=1 -run TestAllHistories -v ./test/sim -args -sim.all

answers: ## each wrong answer of each server, at each call; prints what a user saw. ONLY=GetRecords; UPDATE=1 records the calls
	$(if $(UPDATE),$(GO) test $(TEST_BUILD) -count=1 -run TestEachCallHasARow ./test -args -answers.update)
	$(GO) test $(TEST_BUILD) -timeout 2h -count=1 -parallel 8 -v -run TestEachCallGetsEachWrongAnswer ./test -args -answers.all -answers.only='$(ONLY)'

soak: ## 100,000 planted differences in random mappings: every comparer must name each, and be equal after its repair
	$(GO) test $(TEST_BUILD) -timeout 2h -count=1 -v -run 'TestEveryComparer|TestPlantsOnAServer' ./test/plants -args -plants.worlds=2500

chaos: ## the whole program under kill -9 at SEEDS=500 moments; every cell is compared
	$(GO) test $(RACE) -timeout 8h -parallel 4 -v -run TestKilledAtAnyMomentLosesNothing ./test -args -chaos.seeds=$(SEEDS)
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestOldTableIsCopied ./pipeline -args -copy.items=50000
	$(GO) test $(RACE) -timeout 8h -parallel 2 -v -run TestOldTablesAreCopiedUnderKills ./test -args -old.items=50000
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestArchiveIsExactUnderKills ./test -args -archive.seeds=50
	$(GO) test $(RACE) -timeout 8h -parallel 1 -v -run 'TestReplicasUnderFaults|TestFaultOfNATSChangesNoOwner' ./test -args -replicas.seeds=$(SEEDS)
	$(GO) test $(RACE) -timeout 8h -parallel 2 -run TestGapOfEachKind ./pipeline -args -gaps.all

fuzz: ## every fuzz test for FUZZTIME (20s) each
	@GO=$(GO) tools/fuzz $(FUZZTIME)

acceptance: build ## the session of a user with the AWS CLI, cbt and jq
	REPLICATOR="$(CURDIR)/bin/replicator" test/acceptance.sh

incidents: build ## twelve incidents of a night on call: what status says, and that its next step ends each (curl and jq)
	REPLICATOR="$(CURDIR)/bin/replicator" test/incidents.sh

chart: build $(TOOLS)/helm ## lint, render and strictly decode the Helm chart; read docker-compose.yml and the Dockerfile
	cd tools && HELM=$(CURDIR)/$(TOOLS)/helm REPLICATOR=$(CURDIR)/bin/replicator $(GO) test -count=1 ./chart

alerts: $(TOOLS)/promtool ## check the alerts and run their unit tests
	$(TOOLS)/promtool check rules deploy/alerts.yaml
	$(TOOLS)/promtool check config deploy/prometheus.yaml
	$(TOOLS)/promtool test rules deploy/alerts_test.yaml deploy/alerts_outages_test.yaml

dashboards: build ## evaluate each query of the Grafana dashboards over the metrics of a replicator that runs
	cd tools && REPLICATOR=$(CURDIR)/bin/replicator $(GO) test -count=1 ./dashboard

page: build ## the status page in a Chromium: several tabs, a frozen and a killed replicator
	cd tools/page && REPLICATOR=$(CURDIR)/bin/replicator $(GO) test -count=1 .

pictures: build ## make docs/pictures anew: states of the status page after PICTURES_FOR=1h of traffic (Linux, a Chromium)
	cd tools/page && REPLICATOR=$(CURDIR)/bin/replicator PICTURES=$(CURDIR)/docs/pictures PICTURES_FOR=$(PICTURES_FOR) \
		$(GO) test -count=1 -timeout 3h -v -run TestPictures .

terraform: build ## read deploy/terraform with HashiCorp's parser; compare it with what check and schema print
	cd tools && REPLICATOR=$(CURDIR)/bin/replicator $(GO) test -count=1 ./terraform

site: $(TOOLS)/hugo ## the documentation as a site, into bin/site; its links are followed
	cd tools/site && $(CURDIR)/$(TOOLS)/hugo --destination $(CURDIR)/bin/site --cleanDestinationDir --noBuildLock --quiet
	cd tools/site && HUGO=$(CURDIR)/$(TOOLS)/hugo $(GO) test -count=1 .

man: build ## man pages into man/
	mkdir -p man && bin/replicator man man

schema: ## write deploy/tailrace.schema.json anew, and the schema of the chart's values, which has it inside
	$(GO) test ./config -run Schema -update
	$(GO) test ./test -run TestChart -update

tools: $(addprefix $(TOOLS)/,golangci-lint govulncheck helm promtool) ## build the tools of make check once

# A release is real where HEAD has a version tag and GITHUB_TOKEN is set; else it is a snapshot, which stays here.
# IMAGE=host/name pushes a real release's image too, and the image of replicator-bulk to host/name-bulk. COSIGN names the
# program that signs; without one nothing is signed.
SNAPSHOT    := $(if $(and $(GITHUB_TOKEN),$(shell git describe --exact-match --tags --match 'v*' 2>/dev/null)),,--snapshot)
COSIGN      ?= $(shell command -v cosign 2>/dev/null)
IMAGE       ?=
RELEASE     := bin/release
REVISION    ?= $(shell git rev-parse HEAD 2>/dev/null)
export COSIGN_KEY ?=

release: $(TOOLS)/goreleaser $(TOOLS)/syft $(TOOLS)/helm ## every artefact of a release into dist/, then the tests of what is there
	PATH="$(CURDIR)/$(TOOLS):$(if $(COSIGN),$(dir $(COSIGN)):)$$PATH" $(TOOLS)/goreleaser release --clean $(SNAPSHOT) $(if $(COSIGN),,--skip=sign)
	cp -R $(RELEASE)/image $(RELEASE)/bulk-image dist/
	cp $(RELEASE)/tailrace*_image.tar $(RELEASE)/tailrace*_image.spdx.json $(RELEASE)/docker-compose.yml $(RELEASE)/tailrace-*.tgz dist/
	cd tools/release && DIST=$(CURDIR)/dist IMAGE=$(IMAGE) HELM=$(CURDIR)/$(TOOLS)/helm SIGNED=$(if $(COSIGN),$(COSIGN)) $(GO) test -count=1 ./dist
	$(if $(and $(IMAGE),$(if $(SNAPSHOT),,real)),cd tools/release && $(GO) run ./image push $(CURDIR)/dist/image $(IMAGE) && \
		$(GO) run ./image push $(CURDIR)/dist/bulk-image $(IMAGE)-bulk)
	@$(if $(COSIGN),,echo 'make: NOT SIGNED: there is no cosign here' >&2)

# What goreleaser packs and does not make: man pages, completions, notices, the image. It is run by .goreleaser.yaml.
release-files: build $(TOOLS)/helm
	rm -rf $(RELEASE) && mkdir -p $(RELEASE)/man $(RELEASE)/completions $(RELEASE)/programs $(RELEASE)/bulk
	bin/replicator man $(RELEASE)/man && gzip -9n $(RELEASE)/man/*.1
	bin/replicator completion bash > $(RELEASE)/completions/replicator.bash
	bin/replicator completion zsh > $(RELEASE)/completions/_replicator
	bin/replicator completion fish > $(RELEASE)/completions/replicator.fish
	sed 's|\./tailrace-data|/var/lib/tailrace|; s|\./tailrace-archive|/var/lib/tailrace/archive|' tailrace.example.yaml > $(RELEASE)/tailrace.yaml
	cp LICENSE $(RELEASE)/ && cp LICENSE $(RELEASE)/bulk/
	HELM=$(TOOLS)/helm tools/release/chart $(RELEASE) '$(VERSION)' $(IMAGE)
	cd tools/release && $(GO) run ./notices -C $(CURDIR) -platforms '$(PLATFORMS)' -out $(CURDIR)/$(RELEASE)/THIRD-PARTY-NOTICES.txt
	cd tools/release && $(GO) run ./notices -C $(CURDIR)/bulk -package ./cmd/replicator-bulk -platforms '$(BULK_PLATFORMS)' \
		-out $(CURDIR)/$(RELEASE)/bulk/THIRD-PARTY-NOTICES.txt
	for arch in amd64 arm64; do \
	CGO_ENABLED=0 GOOS=linux GOARCH=$$arch $(GO) build -trimpath -buildvcs=true -ldflags '$(LDFLAGS)' \
		-o $(RELEASE)/programs/linux-$$arch ./cmd/replicator || exit 1; \
	(cd bulk && export CGO_ENABLED=0 GOOS=linux GOARCH=$$arch && $(GO) build -trimpath -buildvcs=true -ldflags '$(LDFLAGS)' \
		-o ../$(RELEASE)/bulk/programs/linux-$$arch ./cmd/replicator-bulk && $(GO) build -trimpath -buildvcs=false -ldflags '-s -w' \
		-o ../$(RELEASE)/bulk/boot/linux-$$arch github.com/apache/beam/sdks/v2/go/container) || exit 1; \
	done
	cd tools/release && $(GO) run ./image -programs $(CURDIR)/$(RELEASE)/programs -licenses $(CURDIR)/$(RELEASE) \
		-zones "$$($(GO) env GOROOT)/lib/time/zoneinfo.zip" -version '$(VERSION)' -revision '$(REVISION)' \
		-time "$$SOURCE_DATE_EPOCH" -out $(CURDIR)/$(RELEASE)/image
	cd tools/release && $(GO) run ./image -programs $(CURDIR)/$(RELEASE)/bulk/programs -boot $(CURDIR)/$(RELEASE)/bulk/boot \
		-licenses $(CURDIR)/$(RELEASE)/bulk -version '$(VERSION)' -revision '$(REVISION)' \
		-time "$$SOURCE_DATE_EPOCH" -out $(CURDIR)/$(RELEASE)/bulk-image
	mv $(RELEASE)/image.tar $(RELEASE)/tailrace_$(VERSION)_image.tar
	mv $(RELEASE)/bulk-image.tar $(RELEASE)/tailrace-bulk_$(VERSION)_image.tar
	SYFT_CHECK_FOR_APP_UPDATE=false $(TOOLS)/syft scan -q oci-dir:$(RELEASE)/image --source-name tailrace --source-version '$(VERSION)' \
		--output spdx-json=$(RELEASE)/tailrace_$(VERSION)_image.spdx.json
	SYFT_CHECK_FOR_APP_UPDATE=false $(TOOLS)/syft scan -q oci-dir:$(RELEASE)/bulk-image --source-name tailrace-bulk \
		--source-version '$(VERSION)' --output spdx-json=$(RELEASE)/tailrace-bulk_$(VERSION)_image.spdx.json
	cd tools/release && $(GO) run ./digests -in $(CURDIR)/docker-compose.yml -out $(CURDIR)/$(RELEASE)/docker-compose.yml

clean: ## remove what make built
	rm -rf bin man dist

# The tools have a module of their own, so that go.mod stays small. They are built once, and again when that changes.
# promtool is built without service discovery: it only reads rules here, and the clients of a dozen clouds are most of it.
$(TOOLS)/golangci-lint: PKG = github.com/golangci/golangci-lint/v2/cmd/golangci-lint
$(TOOLS)/govulncheck:   PKG = golang.org/x/vuln/cmd/govulncheck
$(TOOLS)/helm:          PKG = helm.sh/helm/v4/cmd/helm
$(TOOLS)/promtool:      PKG = -tags remove_all_sd github.com/prometheus/prometheus/cmd/promtool
# The tools of a release have another one: goreleaser and syft bring a thousand modules.
$(TOOLS)/goreleaser: PKG = github.com/goreleaser/goreleaser/v2
$(TOOLS)/syft:       PKG = github.com/anchore/syft/cmd/syft
$(TOOLS)/goreleaser $(TOOLS)/syft: tools/release/go.mod tools/release/go.sum
	cd tools/release && $(GO) build -trimpath -o $(CURDIR)/$@ $(PKG)
	@touch $@
# So has the generator of the site.
$(TOOLS)/hugo: tools/site/go.mod tools/site/go.sum
	cd tools/site && CGO_ENABLED=0 $(GO) build -trimpath -o $(CURDIR)/$@ github.com/gohugoio/hugo
	@touch $@
$(TOOLS)/%: tools/go.mod tools/go.sum
	cd tools && $(GO) build -trimpath -o $(CURDIR)/$@ $(PKG)
	@touch $@
