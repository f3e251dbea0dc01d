# Everything happens in virtual environments that this file makes; nothing is installed outside them.
# torch is pinned in the constraints, so no install may go without them.

VENV    ?= .venv
OLDEST  ?= .venv-oldest
PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=

# One thread per test worker: more would only compete for the cores.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PIP     := -m pip install --quiet --disable-pip-version-check
PYTEST  := -m pytest -n $(WORKERS) $(ARGS)
CONFIG  := setup.cfg pyproject.toml

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-oldest lint bench-plain bench-transfer bench-archive bench-peers starter papers clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "%-12s %s\n", $$1, $$2 }'
	@echo "Variables: VENV=$(VENV) OLDEST=$(OLDEST) PYTHON=$(PYTHON) WORKERS=$(WORKERS) ARGS=(for pytest)"

demo: $(VENV)/.installed  ## run the quick start
	$(VENV)/bin/python examples/quickstart.py

test: $(VENV)/.installed-test  ## run the tests and doctests
	$(THREADS) $(VENV)/bin/python $(PYTEST)

test-oldest: $(OLDEST)/.installed-test  ## run the quick ones with the oldest supported dependencies
	$(THREADS) $(OLDEST)/bin/python $(PYTEST) -m 'not slow'

lint: $(VENV)/.installed-dev  ## ruff and mypy
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m mypy

bench-plain: $(VENV)/.installed-bench  ## the optimiser without an archive, beside others
	$(VENV)/bin/python -m benchmarks.plain_bo

bench-transfer: $(VENV)/.installed-bench  ## transfer: first trials, proteins, and the time a model takes (hours)
	$(THREADS) $(VENV)/bin/python -m benchmarks.evaluations
	$(THREADS) $(VENV)/bin/python -m benchmarks.first_trial
	$(THREADS) $(VENV)/bin/python -m benchmarks.papers distbo-protein
	$(VENV)/bin/python -m benchmarks.meta_model

papers: $(VENV)/.installed-bench  ## the papers' own experiments at reduced size
	$(THREADS) $(VENV)/bin/python -m benchmarks.papers all --quick

bench-archive: $(VENV)/.installed-bench  ## ten thousand records, and many writers
	$(THREADS) $(VENV)/bin/python -m benchmarks.archive --report docs/results/archive.md

bench-peers: $(VENV)/.installed-bench  ## the search beside random search, Optuna, skopt and others (hours)
	$(THREADS) $(VENV)/bin/python -m benchmarks.peers --report docs/results/peers.md

starter: $(VENV)/.installed-bench  ## the starter archive: evaluate what is not there yet (hours), and pack
	$(THREADS) $(VENV)/bin/python -m benchmarks.build_starter --jobs $(WORKERS)
	$(VENV)/bin/python -m benchmarks.build_starter --pack

clean:  ## remove the environments in this folder, caches and builds
	rm -rf .venv .venv-oldest build dist sktransfer.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched only after its install went through, and is out of date when the configuration is newer.
$(VENV)/.made $(OLDEST)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; try make PYTHON=python3.11")'
	$(PYTHON) -m venv $(@D)
	@touch $@

$(VENV)/.installed: $(VENV)/.made $(CONFIG) constraints.txt
	$(VENV)/bin/python $(PIP) -c constraints.txt -e .
	@touch $@

$(VENV)/.installed-%: $(VENV)/.made $(CONFIG) constraints.txt
	$(VENV)/bin/python $(PIP) -c constraints.txt -e '.[$*]'
	@touch $@

$(OLDEST)/.installed-test: $(OLDEST)/.made $(CONFIG) constraints-oldest.txt
	$(OLDEST)/bin/python $(PIP) -c constraints-oldest.txt -e '.[test]'
	@touch $@
