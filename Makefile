# The few things one does with this repository. `make test` installs what it needs, then checks everything.

CARGO ?= cargo
TOOLS := .cache/tools
DENY_VERSION := 0.20.2
TYPESCRIPT := sdk/typescript/node_modules/.package-lock.json
DENY := $(TOOLS)/cargo-deny-$(DENY_VERSION)/bin/cargo-deny

.PHONY: build dist test test-agents test-machines test-containers containers agents agents-latest fmt lint builds kits unit speed browser packed docs packages deny snapshots advisories bench study chaos fuzz clean

build:
	$(CARGO) build --workspace --all-targets

# The program as it is shipped: optimized as a whole and for size but where trials spend their time, linked statically at a fixed address, equal functions folded into one.
dist:
	ls -l $$(dist/build.sh)

# Archive, npm packages and wheel of the shipped program for this machine, in target/packages; then each of them installed and tried.
packages:
	tests/packages/check.sh shipped

test: fmt lint builds kits unit speed browser packed docs deny

fmt:
	$(CARGO) fmt --all --check

lint:
	$(CARGO) clippy --workspace --all-targets --all-features --locked -- -D warnings

# A second build does nothing, and other sets of features compile, too.
builds:
	tests/build/check.sh

unit: agents containers
	$(CARGO) test --workspace --all-features --locked

# What people see, written anew under crates/assize/tests/snapshots after a wanted change; look at the difference before you commit it.
snapshots:
	INSTA_UPDATE=always $(CARGO) test --workspace --all-features --locked --test it -- snapshots

# The cheap lines of docs/performance.md that hold for every build and machine, at twice their budgets.
speed:
	$(CARGO) test -p assize --all-features --locked --bench performance -- --check

# report.html in headless Chromium; skipped, with the reason, where no browser can be installed.
browser:
	tests/browser/install.sh
	$(CARGO) build -p assize --all-features --locked
	node --test --test-reporter=spec tests/browser/report.test.mjs

# The packages people install, made of the program that `browser` has built.
packed:
	tests/packages/check.sh debug

# The agents that the tests put on trial, and an MCP server for them, once per version.
agents:
	tests/agents/install.sh main
	tests/mcp/install.sh

# Podman and a small image, for tests of containers. Says so where they cannot be had.
containers:
	tests/containers/install.sh

# Containers and Harbor tasks in full, by the program as it is shipped: statically linked. Only its last step is built anew.
test-containers: containers
	mkdir -p .cache/containers
	$(CARGO) rustc -p assize --bin assize --all-features --locked -- -C target-feature=+crt-static
	cp $${CARGO_TARGET_DIR:-target}/debug/assize .cache/containers/assize.new
	mv .cache/containers/assize.new .cache/containers/assize
	ASSIZE_TEST_LONG=1 ASSIZE_TEST_STATIC=$(CURDIR)/.cache/containers/assize $(CARGO) test -p assize --all-features --locked --test containers -- --test-threads 1

# Everything that can go wrong with real agents, and the agents behind recipes; takes a while.
test-agents: agents
	tests/agents/install.sh recipes
	$(CARGO) test -p assize --all-features --locked --test agents -- --all

# Shards on real schedulers on this machine: Slurm, Ray, an S3 server, manifests for Kubernetes; and the largest merge. Exports to Phoenix, Harbor's
# validator and DuckDB; tasks from this repository's history. Takes a while.
test-machines: test-containers
	tests/machines/install.sh
	$(CARGO) build -p assize --all-features --locked
	cd tests/machines && python3 -m unittest -v

# The same with whatever is newest, to see what a new version changes. Says which versions differ from the pinned ones.
agents-latest: agents
	tests/agents/install.sh main newest
	tests/agents/install.sh recipes newest
	cp -P .cache/agents/bin/mcp-server-filesystem .cache/agents-newest/bin/
	ASSIZE_TEST_AGENTS=$(CURDIR)/.cache/agents-newest/bin $(CARGO) test -p assize --all-features --locked --test agents -- --all

# The kits for plugins in other languages: types from the contracts, compiled form, tests.
kits: $(TYPESCRIPT)
	cd sdk/typescript && npm run check && npm test
	cd sdk/python && python3 -m unittest discover -s tests

$(TYPESCRIPT): sdk/typescript/package-lock.json
	cd sdk/typescript && npm ci --no-audit --no-fund
	touch $@

docs:
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --all-features --locked

deny: $(DENY)
	$(DENY) --log-level error check licenses bans sources

# Built from source once and kept in .cache; the debug profile builds faster, and its speed does not matter.
$(DENY):
	$(CARGO) install cargo-deny --version $(DENY_VERSION) --locked --debug --no-default-features --root $(TOOLS)/cargo-deny-$(DENY_VERSION)

# Everything on a quiet machine; the table of what people wait for goes into docs/performance.md.
bench:
	$(CARGO) bench -p assize --locked --bench performance -- --write
	$(CARGO) build --release --workspace --examples
	$(CARGO) bench --workspace --exclude assize
	$(CARGO) bench -p assize --bench backbone

# Simulated experiments: intervals and verdicts of the library, then whole reports through the command. The tables stand in docs/statistics.md.
# Smaller or larger: `make study STUDY_SIMULATIONS=500 STUDY_REPORTS=100 STUDY_SEED=7`.
STUDY_SIMULATIONS ?= 3000
STUDY_REPORTS ?= 700
STUDY_RUNS ?= 1000
STUDY_SEED ?= 1

study:
	$(CARGO) build --release -p assize --locked
	$(CARGO) run --release -p assize-stats --locked --example study -- --simulations $(STUDY_SIMULATIONS) --seed $(STUDY_SEED)
	$(CARGO) run --release -p assize-report --locked --example reports -- --reports $(STUDY_REPORTS) --seed $(STUDY_SEED) \
		--binary $${CARGO_TARGET_DIR:-target}/release/assize --commit $$(git rev-parse --short HEAD)
	$(CARGO) run --release -p assize-stats --locked --example stopping -- $(STUDY_SIMULATIONS) $(STUDY_SEED)
	tests/study/design.py $${CARGO_TARGET_DIR:-target}/release/assize --experiments $(STUDY_RUNS) --runs $(STUDY_RUNS) --seed $(STUDY_SEED) \
		--commit $$(git rev-parse --short HEAD)

# Kills runs, scorings, reports and removals at random moments and says what was lost.
ROUNDS ?= 1000
SEED ?= 1
chaos:
	$(CARGO) build -p assize --all-features --locked
	tests/chaos/chaos.py $${CARGO_TARGET_DIR:-target}/debug/assize --rounds $(ROUNDS) --seed $(SEED)

# Every parser with libFuzzer: for so many minutes each, or without MINUTES until coverage has not grown for ten. A nightly compiler is used where there is one.
MINUTES ?=
TARGETS ?= $(sort $(patsubst fuzz/fuzz_targets/%.rs,%,$(wildcard fuzz/fuzz_targets/*.rs)))
fuzz:
	tests/fuzz/campaign.py $(if $(MINUTES),--minutes $(MINUTES)) $(TARGETS)

# Known holes in dependencies. Needs the advisory database; where it cannot be had, says so and ends well.
advisories: $(DENY)
	$(DENY) --log-level error check advisories || tests/build/advisories.sh

clean:
	$(CARGO) clean
	rm -rf .cache
