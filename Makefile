# Every target works from a fresh clone: it makes the environment that it needs under .env/ first.
# REQUIRE_REAL=1 turns a missing part (an interpreter, a real DRM) from "not run" into a failure.

PYTHON ?= python3
export REQUIRE_REAL
# Set in many containers; but compiling the tests anew takes longer than the fast ones themselves.
unexport PYTHONDONTWRITEBYTECODE

IN_TEST_ENV = $(PYTHON) tools/environment.py test --
IN_LINT_ENV = $(PYTHON) tools/environment.py lint --
# By file: a module's set-up (a DRM, a server) must not run once in each worker.
PYTEST = $(IN_TEST_ENV) -m pytest -n 3 --dist loadfile
# The variable silences an advertisement.
MKDOCS = NO_MKDOCS_2_WARNING=1 $(IN_LINT_ENV) -m mkdocs build --strict
REAL_PARTS = slurm slurm24 htcondor gridengine sshd chromium postgresql

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-oldest test-simulated test-launchers test-real test-galaxy demo-galaxy lint bench docs clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## */\t/' | expand -t 16

demo:  ## what Galaxy is told of a stock Pulsar's jobs; DRM=slurm (default) or htcondor, SIMULATED=1
	@$(IN_TEST_ENV) -m tests.demo

test:  ## all tests; as root on Debian it installs what the real ones need (< 40 min)
	@$(MAKE) --no-print-directory --keep-going \
		test-fast test-oldest test-simulated test-launchers test-real test-galaxy

test-fast:  ## tests without processes, and the core of those on a simulated Slurm, on two Pythons (< 60 s)
	@$(PYTHON) tools/test_fast.py

test-oldest:  ## what test-fast leaves out of the tests on simulated DRMs, on the oldest Python
	@$(PYTHON) tools/test_fast.py --rest

test-simulated:  ## all tests that need no real DRM, with longer searches for odd texts, and crashes
	@echo "== simulated DRMs and crashes"
	@$(PYTEST) -m "not real and not launcher" --hypothesis-profile=full

test-launchers:  ## tests that start Pulsar in each way that sites start it
	@echo "== launchers"
	@$(PYTEST) -m launcher

# A part that cannot be installed is told, and its tests are skipped (REQUIRE_REAL=1: fail) by name.
test-real:  ## tests against real DRMs
	@echo "== real DRMs"
	@$(IN_TEST_ENV) -m tests.real.install $(REAL_PARTS) || true
	@$(PYTEST) -m "real and not launcher"

# Galaxies have environments of their own: a pulsar-app would break them. One worker less than usual:
# each module has a Galaxy or two, servers and jobs.
GALAXIES = galaxy-26.1 galaxy-25.1
GALAXY_PARTS = slurm rabbitmq postgresql

test-galaxy:  ## tests with real Galaxies, Pulsars and RabbitMQ
	@echo "== Galaxies"
	@$(IN_TEST_ENV) -m tests.real.install $(GALAXY_PARTS) || true
	@status=0; for galaxy in $(GALAXIES); do \
		echo "== runners in $$galaxy"; \
		$(PYTHON) tools/environment.py $$galaxy -- -m pytest -q tests/galaxy_unit || status=1; \
	done; \
	$(IN_TEST_ENV) -m pytest -n 2 --dist loadfile tests/galaxy || status=1; exit $$status

demo-galaxy:  ## a real Galaxy resubmits a job that was killed at its walltime; SIMULATED=1
	@$(IN_TEST_ENV) -m tests.demo_galaxy

lint:  ## flake8, mypy --strict, import layers, dead code, the docs site
	@$(IN_LINT_ENV) -m flake8 --count
	@$(IN_LINT_ENV) -m mypy
	@$(IN_LINT_ENV) -c 'from importlinter.cli import lint_imports_command as lint; lint()' --no-logo
	@$(IN_LINT_ENV) -m vulture
	@$(MKDOCS)

bench:  ## measure start-up cost and passes over many jobs, against stock Pulsar
	@$(IN_TEST_ENV) -m benchmarks.startup_cost
	@$(IN_TEST_ENV) -m benchmarks

docs:  ## write the generated pages of docs/ anew, check all links, build the site in build/site
	@$(IN_LINT_ENV) tools/generate_docs.py
	@$(MKDOCS)

clean:  ## remove what these targets made in this folder
	rm -rf .env build dist docs/_build .pytest_cache .mypy_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +
