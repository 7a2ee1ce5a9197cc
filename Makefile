# Every target sets itself up: `make demo` and `make test` work on a fresh clone.
# Needs only git, make and a CPython 3.11 or newer with the venv module.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIPELINES := $(VENV)/.pipelines
PYTEST := $(BIN)/python -m pytest

.PHONY: help setup demo demo-pipelines check format lint types contracts fast test test-cluster test-reference bench oracle traces traces-on-kafka sim mutate durability docs lock clean

help:  ## Show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY)  ## Make .venv from the lock file, with kgctl in it

$(READY): requirements.lock pyproject.toml
	@python=$$(sh tools/find-python) || exit 1; \
	echo "Setting up $(VENV) with $$python"; \
	$$python -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(PIPELINES): $(READY) requirements-pipelines.lock
	@echo "Adding Spark and what the pipelines need (about 750 MB to fetch, once)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation -r requirements-pipelines.lock
	@touch $@

compiled: $(READY)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q broker kgctl

.PHONY: compiled

demo: compiled  ## Run the main job: a broker, a consumer group, a rebalance, moved offsets
	@$(BIN)/kgctl demo

demo-pipelines: compiled $(PIPELINES)  ## The demo, then Spark's report about what it did (sets up Spark first)
	@$(BIN)/kgctl demo --pipelines

check: static fast  ## Format, lint, types, import contracts, fast tests

.PHONY: static
static: compiled format-check lint types contracts  ## The part of check that runs no test

.PHONY: format-check
format-check: $(READY)
	$(BIN)/ruff format --check .

format: $(READY)  ## Rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

fast: compiled $(PIPELINES)
	$(PYTEST) -q -n 3 -m "not reference and not slow and not spark and not cluster and not alone" -x --ignore=tests/clients

test: compiled $(PIPELINES)  ## Run every test that needs nothing but Python
	$(PYTEST) -q -n 3 -m "not reference and not cluster and not spark and not alone"
	$(PYTEST) -q -m "(spark or alone) and not reference and not cluster"

test-cluster: compiled $(PIPELINES)  ## The pipelines on a Spark cluster, killed at bad moments; the report in a browser
	$(PYTEST) -q -m cluster -rs --timeout 900

test-reference: compiled $(PIPELINES)  ## Compare with a real Kafka (needs java and mvn; skips without)
	$(PYTEST) -q -m reference -rs

bench: compiled  ## Measure this broker, and peers given as PEERS="--peer name=command"
	$(BIN)/python -m bench $(PEERS)

oracle: compiled  ## Compare with a real Kafka on fresh seeds, or on SEEDS=1-200 (needs java and mvn; skips without)
	$(BIN)/python -m tests.harness.oracle fresh $(if $(filter command,$(origin SEEDS)),--seeds $(SEEDS))

traces: $(READY)  ## Rewrite the golden scenarios of the coordinator; review the diff
	$(BIN)/python -m tests.broker.cores.groups.traces --write

LONGEST := 30

traces-on-kafka: $(READY)  ## Play the golden scenarios beside a real Kafka: LONGEST=30 s (needs java and mvn; skips without)
	$(BIN)/python -m tests.broker.cores.groups.traces_on_kafka --longest $(LONGEST)

SEEDS := 1-300
EVENTS := 3000

sim: $(READY)  ## Run seeded worlds of the coordinator: SEEDS=1-300 EVENTS=3000
	$(BIN)/python -m tests.harness.simulation --seeds $(SEEDS) --events $(EVENTS)

mutate: $(READY)  ## Plant known faults one at a time; the tests must catch each
	$(BIN)/python -m tests.mutation

CYCLES := 100
SEED :=

durability: compiled  ## Kill a broker under real clients: CYCLES=100 SEED=7; without SEED a fresh one
	$(BIN)/python -m tests.durability --cycles $(CYCLES) $(if $(SEED),--seed $(SEED))

docs: $(READY)  ## Regenerate the generated pages of docs/
	$(BIN)/python -m tools.generate_docs

lock:  ## Choose versions anew (needs uv)
	uv pip compile -q pyproject.toml --extra demo --group dev --universal --python-version 3.11 \
	    --generate-hashes --custom-compile-command "make lock" -o requirements.lock
	uv pip compile -q pyproject.toml --extra pipelines --group pipelines-test --universal --python-version 3.11 \
	    --constraint requirements.lock --generate-hashes --custom-compile-command "make lock" -o requirements-pipelines.lock

clean:  ## Remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build *.egg-info
