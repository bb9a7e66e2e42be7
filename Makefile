# One way to do each thing, for people, pre-commit and CI alike. `make help` lists the targets.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMPS := build/stamps
LOGS   := build/log

# The environment belongs to one lock file: another lock makes another stamp, and so another environment.
LOCK   := requirements/dev.txt
READY  := $(VENV)/.ready-$(firstword $(shell cksum < $(LOCK)))

RUST   := Cargo.toml Cargo.lock $(wildcard rustfmt.toml clippy.toml) $(shell find crates -name '*.rs' -o -name '*.toml' 2>/dev/null)
PACKAGE := $(shell find src -name '*.py' -o -name '*.pyi' -o -name '*.toml' 2>/dev/null)
CHECKED := $(PACKAGE) $(shell find scripts benchmarks tests -name '*.py' 2>/dev/null)

export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PATH := $(CURDIR)/$(BIN):$(PATH)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH

.DELETE_ON_ERROR:
.PHONY: help demo demo-samples test kills live setup build fmt lint type rust fuzz fuzz-long gate golden bench docs lock clean

# $(call step,name,what it does,command): says what runs, keeps the output for the case that it fails.
define step
@mkdir -p $(LOGS) $(STAMPS)
@printf '%-9s %s\n' '$(1)' '$(2)'
@{ $(3) ; } > $(LOGS)/$(1).log 2>&1 || { cat $(LOGS)/$(1).log >&2; echo 'make: $(1) failed; the output is above and in $(LOGS)/$(1).log' >&2; exit 1; }
endef

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 16

demo: build ## set up, capture two arms of a tiny model with the real vLLM on the CPU, compare them
	@$(BIN)/python -m scripts.demo

demo-samples: build ## the quick one: set up, then compare two sample arms and report on one
	@$(BIN)/python -m scripts.demo --samples

test: setup lint type rust fuzz build $(STAMPS)/stub gate ## set up, then run every check and test (but slow and live ones: make kills, make live)
	@echo 'pytest    all tests and the examples in docstrings, README and docs'
	@$(BIN)/python -m pytest -q -m 'not slow'

# Each of 20 moments of a block on a fake server that starts fast: moeprof killed or asked to end, its server or its client killed.
kills: build ## kill moeprof, its server and its client at 20 points of a block each (some minutes)
	@echo 'kills     20 points of a block for each way to end'
	@$(BIN)/python -m pytest -q -p no:randomly -m 'slow and not live' tests/integration/test_capture_kills.py tests/integration/test_capture_failures.py

# Exit code 3 is lack of network or disk, which a CI machine may have; whatever else is wrong fails.
live: build ## capture with the real vLLM on the CPU, check every count, kill its processes
	@python=$$($(BIN)/python scripts/cpu_environment.py) || { code=$$?; [ $$code -eq 3 ] || exit $$code; \
	    echo 'live      SKIPPED, NOTHING OF IT WAS TESTED: no environment with vLLM; the reason is above' >&2; exit 0; }; \
	  echo 'live      captures of a tiny model on the CPU (some minutes)'; \
	  MOEPROF_CPU_PYTHON=$$python $(BIN)/python -m pytest -q -s -m live -p no:randomly --durations=0 tests/integration

setup: $(READY) ## make .venv from the lock file

$(READY): $(LOCK)
	@command -v $(PYTHON) > /dev/null || { echo 'make: no $(PYTHON) found; set PYTHON to a Python 3.11 or later: make PYTHON=/path/to/python3.11' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is $$($(PYTHON) -V 2>&1); Python 3.11 or later is needed: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { echo 'make: $(PYTHON) has no venv module; install it (Debian: python3-venv) or set PYTHON' >&2; exit 1; }
	$(call step,venv,.venv from $(LOCK),$(PYTHON) -m venv --clear $(VENV) && $(BIN)/python -m pip install -q --no-deps -r $(LOCK))
	@touch $@

# Nothing here names a Rust channel: the toolchain that is there builds the project, and none is fetched.
$(STAMPS)/cargo:
	@command -v cargo > /dev/null || { echo 'make: no cargo found; install stable Rust (rustup or your distribution) and put it on PATH' >&2; exit 1; }
	@cargo --version > /dev/null || { echo 'make: cargo is there but does not run; see the message above' >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

build: $(STAMPS)/build ## compile the native module into .venv
$(STAMPS)/build: $(READY) $(STAMPS)/cargo $(RUST) pyproject.toml
	$(call step,build,native module (release),maturin develop --release --locked && $(BIN)/python -c "import moeprof._native")
	@touch $@

fmt: $(READY) $(STAMPS)/cargo ## format Python and Rust
	@$(BIN)/ruff check -q --fix --select I,F401 src tests scripts benchmarks
	@$(BIN)/ruff format -q src tests scripts benchmarks
	@cargo fmt --all

lint: $(STAMPS)/lint $(STAMPS)/clippy ## ruff, import-linter, rustfmt and clippy; changes nothing
$(STAMPS)/lint: $(READY) $(CHECKED) pyproject.toml
	$(call step,lint,ruff and the layers,$(BIN)/ruff format --check . && $(BIN)/ruff check . && PYTHONPATH=src $(BIN)/lint-imports)
	@touch $@
# Tests may unwrap: a panic is how they fail. Nothing else may.
IN_TESTS := -A clippy::expect_used -A clippy::unwrap_used -A clippy::panic -A clippy::missing_panics_doc -A clippy::must_use_candidate
$(STAMPS)/clippy: $(READY) $(STAMPS)/cargo $(RUST)
	$(call step,clippy,rustfmt and clippy,cargo fmt --all --check && cargo clippy -q --locked --workspace -- -D warnings && cargo clippy -q --locked --workspace --all-targets -- -D warnings $(IN_TESTS))
	@touch $@

type: $(STAMPS)/type ## mypy --strict
$(STAMPS)/type: $(READY) $(CHECKED) pyproject.toml
	$(call step,type,mypy --strict,$(BIN)/mypy)
	@touch $@

# stubtest imports the compiled module, so it comes after the build.
$(STAMPS)/stub: $(STAMPS)/build src/moeprof/_native.pyi
	$(call step,stubtest,the stub against the native module,$(BIN)/python -m mypy.stubtest moeprof._native)
	@touch $@

rust: $(STAMPS)/rust ## cargo test (nextest where it is installed)
$(STAMPS)/rust: $(READY) $(STAMPS)/cargo $(RUST)
	$(call step,rust,cargo test,if cargo nextest --version; then cargo nextest run --locked --workspace --no-tests=pass && cargo test -q --locked --workspace --doc; else cargo test -q --locked --workspace; fi)
	@touch $@

# What is found is kept in build/fuzz; with the fault mended it goes to the corpus as a text to begin with, and to the tests.
fuzz: $(STAMPS)/fuzz ## read changed traces in several ways that must agree, half a minute
$(STAMPS)/fuzz: $(STAMPS)/cargo $(RUST) $(wildcard crates/moeprof-trace/corpus/*)
	$(call step,fuzz,changed traces for half a minute,cargo run -q --locked --profile fuzz -p moeprof-trace --example fuzz -- --seconds 30)
	@touch $@

fuzz-long: $(STAMPS)/cargo ## the same for an hour, from another seed each time
	@cargo run -q --locked --profile fuzz -p moeprof-trace --example fuzz -- --seconds 3600 --seed $$(date +%s)000

gate: build ## gate the samples against their baseline, and see the gate fail on a derived regression
	@$(BIN)/python -m scripts.gate_samples

golden: build ## rewrite stored outputs of tests and docs; review the diff
	@MOEPROF_GOLDEN=write $(BIN)/python -m pytest -q -p no:randomly tests/golden tests/docs
	@git --no-pager diff --stat -- tests README.md docs

bench: build ## measure; see benchmarks/README.md
	@$(BIN)/python -m benchmarks.reader
	@$(BIN)/python -m benchmarks.diff_h200
	@$(BIN)/python -m benchmarks.hta

docs: build ## run the examples of README and docs, check their links
	@$(BIN)/python -m pytest -q tests/docs

lock: ## renew requirements/dev.txt from pyproject.toml
	@$(PYTHON) scripts/lock.py

clean: ## remove everything that make made
	rm -rf $(VENV) build target src/moeprof/*.so .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
