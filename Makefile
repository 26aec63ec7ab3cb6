# Two commands for a newcomer: `make demo` and `make test`. Everything built lands in a per-user cache outside the
# checkout, keyed by version, so a fresh clone is quick.

SHELL := /bin/bash
CACHE := $(or $(SLUICE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/sluice)
RUSTC_VERSION := $(shell rustc --version 2>/dev/null | cut -d' ' -f2)
export CARGO_TARGET_DIR := $(CACHE)/target-rust-$(RUSTC_VERSION)
CARGO ?= cargo

.PHONY: help demo test check unit integration testbed prerequisites bench mutants

help: ## Say what can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

prerequisites:
	@tools/prerequisites

testbed: prerequisites ## Build the control plane that tests and demo run on (about 10 min, once)
	@tests/testbed/tools/build >/dev/null

demo: testbed ## Play the main job on a real control plane and a simulated AWS
	@echo "demo: building sluice (the first time about 10 min for its dependencies)"
	@$(CARGO) test --quiet --locked --features testing --test demo

test: testbed check unit integration ## Everything that has to hold

check: prerequisites ## Formatting and lints
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets --features testing -- -D warnings
	$(CARGO) clippy --locked --lib --bins -- -D warnings

unit: prerequisites ## Unit, property and golden tests, and the checks of the tree itself
	$(CARGO) test --locked --lib --bins --test repository

integration: testbed ## Tests on the real control plane, then the tests of the simulated AWS
	$(CARGO) test --locked --features testing --test integration
	cd tests/testbed/aws && "$$(../tools/build | sed -n 's/^PYTHON=//p')" -m pytest -q

bench: testbed ## Measure what is promised about speed (about 5 min)
	@$(CARGO) test --quiet --locked --features testing --test bench

mutants: prerequisites ## Mutation tests of the plan (needs cargo-mutants)
	$(CARGO) mutants --file 'src/plan/**' --no-shuffle -- --lib
