# Two commands do all the set-up: `make demo` and `make test`. Nothing has to be installed by hand.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COVERED := $(BIN)/coverage run -m pytest -m 'not slow and not index and not agents and not servers and not browser'
# half of the tests by their time, of those that measure none: they run beside the others
APART := tests/core tests/files tests/report tests/demo tests/frameworks tests/agents tests/stack tests/dashboards \
	tests/cli tests/collect tests/test_framework_traces.py

.PHONY: demo test check lint types layers prose cover cover-apart cover-rest size slow test-index bench frameworks agents test-agents test-some-agents servers test-servers web browser test-browser test-all clean

demo: $(STAMP)  ## run the bundled agent and print where its turn went
	$(BIN)/turntrace demo

test: $(STAMP)  ## every check and test that needs no server binary, agent or browser
	$(MAKE) --jobs=2 check size
	$(MAKE) cover slow

check: lint types layers prose  ## what reads the code without running it

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

prose: $(STAMP)
	$(BIN)/codespell README.md CHANGELOG.md docs src tests
	$(BIN)/interrogate --quiet src

cover: $(STAMP)  ## tests with the branch coverage gate: core 100 %, all 95 %
	$(BIN)/coverage erase
	$(MAKE) --jobs=2 cover-apart cover-rest
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='src/turntrace/core/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

cover-apart: $(STAMP)
	$(COVERED) $(APART)

cover-rest: $(STAMP)
	$(COVERED) tests $(addprefix --ignore=,$(APART))

size: $(STAMP)  ## the tests of size: no time is measured, so something else may run beside them
	$(BIN)/python -m pytest -m slow tests/core tests/report

slow: $(STAMP)  ## the tests of kills, memory and time, which coverage would stretch past their time
	$(BIN)/python -m pytest -m slow --ignore=tests/core --ignore=tests/report

test-index: $(STAMP)  ## frameworks run anew and the SDKs' own tests, installed from the package index
	$(BIN)/python -m pytest -m index tests/test_frameworks_anew.py tests/test_sdk_suites.py

bench: $(STAMP)  ## measure the goals of tests/benchmarks; prints goal, figure and verdict
	$(BIN)/python tests/benchmarks/run_all.py

sdk-suites: $(STAMP)  ## run the model SDKs' own tests with and without our adapters
	$(BIN)/python tests/sdk_suites/run.py

frameworks: $(STAMP)  ## run real agent frameworks anew and write tests/frameworks/traces
	$(BIN)/python tests/frameworks/run.py

agents: $(STAMP)  ## install the real coding agents that test-agents runs, from npm, below .agents
	$(BIN)/python tests/agents/install.py

test-agents: agents  ## run real coding agents against a model server and compare what is read with its log
	TURNTRACE_REQUIRE=agents $(BIN)/python -m pytest -m agents tests/agents

test-some-agents: $(STAMP)  ## the same with those that CI plays: two coding agents, and two Python processes
	$(BIN)/python tests/agents/install.py codex gemini two_processes
	TURNTRACE_REQUIRE=agents $(BIN)/python -m pytest -m agents tests/agents -k 'codex or gemini or hands_off or both_processes'

servers: $(STAMP)  ## build Jaeger, the collector and Prometheus from their Go modules, below .servers
	$(BIN)/python tests/stack/install.py

test-servers: servers  ## what arrives in Jaeger and Prometheus, against the real programs
	TURNTRACE_REQUIRE=servers $(BIN)/python -m pytest -m servers tests/stack

web/node_modules: web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --silent
	touch web/node_modules

web: web/node_modules  ## build the page of `turntrace view` from web/ into the package; needs npm
	cd web && npm run --silent check && npm run --silent build

browser: $(STAMP) web/node_modules  ## what test-browser needs: playwright, and Debian's chromium where it is missing
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python tests/browser/install.py

test-browser: browser  ## the page of `turntrace view` in a real chromium
	TURNTRACE_REQUIRE=browser $(BIN)/python -m pytest -m browser tests/browser

test-all: $(STAMP)  ## what needs the package index, server binaries or agents: installs, builds and starts them
	$(BIN)/python tests/stages.py test-index servers test-servers test-some-agents

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "turntrace needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
