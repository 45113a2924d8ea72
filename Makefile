# `make` without a target lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check --no-input
LOCKS := requirements/build.lock requirements/dev.lock

# The tests start Python hundreds of times: without cached byte code each start compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test test-deep lint types verify fix lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## create .venv with the locked dependencies (other targets do this when needed)

run: $(READY) ## sweep all protocols on Spark, judge and measure them, and write a report
	@rm -rf build/every-protocol
	@$(BIN)/ordercast sweep examples/every-protocol.toml --out build/every-protocol

test: $(READY) ## run the tests but the deep ones, in about ten minutes (ARGS=... goes to pytest)
	@$(BIN)/python -m pytest -m "not deep" $(ARGS)

test-deep: $(READY) ## run the deep tests: more seeds, more states, more kills (ARGS=... goes to pytest)
	@echo "The deep tests take more than an hour on two cores, and twice as long if other work runs beside them."
	@$(BIN)/python -m pytest -m deep $(ARGS)

lint: $(READY) ## check style and format
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(READY) ## check the types
	@$(BIN)/mypy

verify: lint types test ## run all checks that a change must pass; changes no file

fix: $(READY) ## fix style and format
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

# The stamp is removed first and written last, so that a failed or killed set-up is repeated.
# pip runs without build isolation because build.lock has already pinned the build tools, and without
# compiling: Python compiles only the modules that are imported, which are far fewer.
$(READY): $(LOCKS) pyproject.toml
	@$(PYTHON) -c 'import sys; v = "%d.%d" % sys.version_info[:2]; \
	  sys.exit(0 if sys.version_info >= (3, 11) else "ordercast needs Python 3.11 or newer, but " \
	  + sys.executable + " is " + v + ". Name another: make PYTHON=python3.12 ...")' \
	  || { echo "make: no usable Python at '$(PYTHON)'" >&2; exit 1; }
	@rm -f $@
	@echo "set-up 1/4: virtual environment in $(VENV)"
	@$(PYTHON) -m venv --clear $(VENV) \
	  || { echo "make: '$(PYTHON) -m venv' failed (Debian: install python3-venv)" >&2; exit 1; }
	@echo "set-up 2/4: build tools"
	@$(PIP) install --no-compile --require-hashes -r requirements/build.lock
	@echo "set-up 3/4: dependencies (the longest step: PySpark is a 456 MB download)"
	@DIST_EXTRA_CONFIG='$(CURDIR)/requirements/build.cfg' \
	  $(PIP) install --no-compile --require-hashes --no-build-isolation -r requirements/dev.lock
	@echo "set-up 4/4: ordercast itself, editable"
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

# Only this target needs a tool that is not in the lock: `pip install uv`.
lock: ## resolve the locked versions again (needs uv; ARGS=--upgrade for newer versions)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 1; }
	@$(COMPILE) requirements/build.in --output-file requirements/build.lock
	@$(COMPILE) pyproject.toml --all-extras --constraint requirements/build.lock \
	  --output-file requirements/dev.lock

COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock' $(ARGS)

clean: ## remove .venv and all caches
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis spark-warehouse
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
