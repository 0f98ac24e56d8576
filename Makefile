# Every target works from a fresh clone: it makes the environment that it needs under .env/ first.
# REQUIRE_REAL=1 turns a missing part (an interpreter, a real DRM) from "not run" into a failure.

PYTHON ?= python3
export REQUIRE_REAL

IN_TEST_ENV = $(PYTHON) tools/environment.py test --
IN_LINT_ENV = $(PYTHON) tools/environment.py lint --
PYTEST = $(IN_TEST_ENV) -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-launchers test-real lint bench docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */\t/' | expand -t 16

demo:  ## a stock Pulsar server with queued_slurm: four jobs, and what Galaxy is told of each
	@$(IN_TEST_ENV) -m tests.demo

test: test-fast test-launchers test-real  ## all tests; as root on Debian it installs what the real ones need

test-fast:  ## tests without servers and DRMs, on the oldest and the newest Python found (< 60 s)
	@$(PYTHON) tools/test_fast.py

test-launchers:  ## tests that start Pulsar in each way that sites start it
	@echo "== launchers"
	@$(PYTEST) -q -n 2 -m launcher

test-real:  ## tests against real DRMs
	@echo "== real DRMs"
	@$(IN_TEST_ENV) -m tests.real.install slurm slurm24
	@$(PYTEST) -q -m "(real or slow) and not launcher"

lint:  ## flake8, mypy --strict, import layers, dead code
	@$(IN_LINT_ENV) -m flake8 --count
	@$(IN_LINT_ENV) -m mypy
	@$(IN_LINT_ENV) -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-logo
	@$(IN_LINT_ENV) -m vulture

bench:  ## measure start-up cost and passes over many jobs, against stock Pulsar
	@$(IN_TEST_ENV) -m benchmarks.startup_cost
	@$(IN_TEST_ENV) -m benchmarks

docs:  ## write the generated pages of docs/ anew, check the links of all pages
	@$(PYTHON) tools/generate_docs.py

clean:  ## remove everything that these targets made
	rm -rf .env build dist .pytest_cache .mypy_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
