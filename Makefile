# Every target sets up what it needs: `make demo` and `make test` work in a fresh clone.
# Requires git, make, and CPython 3.11 or newer with the venv module.

VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIPELINES := $(VENV)/.pipelines
# With bytecode, also where the environment wants none: each worker would compile 500 modules of tests again.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest

.PHONY: help setup setup-pipelines demo demo-pipelines check format lint types contracts fast test test-all test-cluster test-reference bench bench-pipelines oracle traces traces-on-kafka sim mutate durability docs wheel zipapp lock clean

help:  ## Show this help
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

setup: $(READY)  ## Create .venv from the lock file and install kgctl in it

$(READY): requirements.lock pyproject.toml
	@python=$$(sh tools/find-python) || exit 1; \
	echo "Setting up $(VENV) with $$python"; \
	$$python -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

setup-pipelines: $(PIPELINES)  ## Also install Spark and the other requirements of the pipelines

$(PIPELINES): $(READY) requirements-pipelines.lock
	@echo "Installing Spark and the other requirements of the pipelines (a download of about 750 MB, once)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation -r requirements-pipelines.lock
	@touch $@

compiled: $(READY)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m compileall -q broker kgctl

.PHONY: compiled

demo: compiled  ## Take the guided tour: a broker, a consumer group, a rebalance, moved offsets
	@$(BIN)/kgctl demo

demo-pipelines: compiled $(PIPELINES)  ## Take the tour, then build Spark's report about it (installs Spark first)
	@$(BIN)/kgctl demo --pipelines

check: static fast  ## Check format, lint, types and import contracts; run the fast tests

.PHONY: static
static: compiled format-check lint types contracts  ## Run the checks of `make check` without the tests

.PHONY: format-check
format-check: $(READY)
	$(BIN)/ruff format --check .

format: $(READY)  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports

# Four workers on two cores: many tests wait for a broker or a timeout. See tests/harness/scheduling.py.
BY_FILE := --dist loadfile --no-loadscope-reorder
PARALLEL := -n 4 $(BY_FILE)
# Each worker has a Kafka of its own, which keeps a core busy at times.
BESIDE_KAFKA := -n 2 $(BY_FILE)
ELSEWHERE := not reference and not cluster

fast: compiled $(PIPELINES)
	$(PYTEST) -q $(PARALLEL) -m "$(ELSEWHERE) and not spark and not slow and not soak" -x --ignore=tests/clients

test: compiled $(PIPELINES)  ## Run the tests that need only Python
	$(PYTEST) -q $(PARALLEL) -m "$(ELSEWHERE) and not soak"

test-all: compiled $(PIPELINES)  ## Run every test: long runs, a real Kafka and a Spark cluster included
	$(PYTEST) -q $(PARALLEL) -m "$(ELSEWHERE)"
	$(PYTEST) -q $(BESIDE_KAFKA) -m reference -rs
	$(MAKE) test-cluster

test-cluster: compiled $(PIPELINES)  ## Run the pipelines on a Spark cluster, with kills, and pages in a browser
	$(PYTEST) -q -m cluster -rs --timeout 900

test-reference: compiled $(PIPELINES)  ## Compare with a real Kafka (requires java and mvn, skips otherwise)
	$(PYTEST) -q $(BESIDE_KAFKA) -m "reference and not soak" -rs

bench: compiled  ## Measure this broker, and peers with PEERS="--peer NAME=COMMAND"
	$(BIN)/python -m bench $(PEERS)

bench-pipelines: compiled $(PIPELINES)  ## Measure how fast Spark reads a topic; with the connector's jars, beside it
	$(BIN)/kgctl pipeline bench --sources --records 5m --rounds 5

oracle: compiled  ## Compare with a real Kafka on new seeds or SEEDS=1-200 (requires java and mvn)
	$(BIN)/python -m tests.harness.oracle fresh $(if $(filter command,$(origin SEEDS)),--seeds $(SEEDS))
	$(BIN)/python -m tests.harness.oracle.transactions fresh $(if $(filter command,$(origin SEEDS)),--seeds $(SEEDS))
	$(BIN)/python -m tests.harness.oracle.consumer fresh $(if $(filter command,$(origin SEEDS)),--seeds $(SEEDS))

traces: $(READY)  ## Rewrite the golden scenarios of the coordinator; review the diff
	$(BIN)/python -m tests.broker.cores.groups.traces --write

LONGEST := 30

traces-on-kafka: $(READY)  ## Compare the golden scenarios with a real Kafka: LONGEST=30 seconds (requires java and mvn)
	$(BIN)/python -m tests.broker.cores.groups.traces_on_kafka --longest $(LONGEST)

SEEDS := 1-300
EVENTS := 3000

sim: $(READY)  ## Run seeded simulations of groups, transactions, members, consumer groups and share groups: SEEDS=1-300 EVENTS=3000
	$(BIN)/python -m tests.harness.simulation --seeds $(SEEDS) --events $(EVENTS)
	$(BIN)/python -m tests.harness.simulation.transactions --seeds $(SEEDS)
	$(BIN)/python -m tests.harness.simulation.members --seeds $(SEEDS)
	$(BIN)/python -m tests.harness.simulation.members.epochs --seeds $(SEEDS)
	$(BIN)/python -m tests.harness.simulation.members.migration --seeds $(SEEDS) --events 800
	$(BIN)/python -m tests.harness.simulation.shares --seeds $(SEEDS) --events 600
	$(BIN)/python -m tests.harness.simulation.consumer_groups --seeds $(SEEDS) --events 1000

mutate: $(READY)  ## Plant known faults one at a time; the tests must catch each
	$(BIN)/python -m tests.mutation

PART :=
ROUNDS :=
SEED :=

durability: compiled  ## Break a broker repeatedly: PART=kills ROUNDS=100 SEED=7 (default: all parts, a new seed)
	$(BIN)/python -m tests.durability $(PART) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))

docs: $(READY)  ## Regenerate the generated pages of docs/
	$(BIN)/python -m tools.generate_docs

PYTHONS := 3.11 3.12 3.13 3.14

wheel: $(READY)  ## Build dist/kgctl-VERSION-py3-none-any.whl
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

zipapp: $(READY)  ## Build dist/kgctl.pyz for this platform and PYTHONS="3.11 3.12 3.13 3.14"
	$(BIN)/python -m tools.zipapp $(PYTHONS:%=--python %)

lock:  ## Update the lock files (requires uv)
	uv pip compile -q pyproject.toml --extra aws --extra demo --extra keyring --extra schema-registry --extra security --extra web --group dev --universal --python-version 3.11 \
	    --generate-hashes --custom-compile-command "make lock" -o requirements.lock
	uv pip compile -q pyproject.toml --extra delta --extra iceberg --extra pipelines --extra sql --group pipelines-test --universal --python-version 3.11 \
	    --constraint requirements.lock --generate-hashes --custom-compile-command "make lock" -o requirements-pipelines.lock

clean:  ## Remove all generated files
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist *.egg-info
