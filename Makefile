# All targets use virtual environments that this file creates. Nothing is installed outside them.
# The constraints pin torch, so every install must use them.

VENV    ?= .venv
OLDEST  ?= .venv-oldest
DIST    ?= .venv-dist
PYTHON  ?= python3
WORKERS ?= 2
ARGS    ?=

# One thread per test worker, because more would compete for the cores.
THREADS := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PIP     := -m pip install --quiet --disable-pip-version-check
PYTEST  := -m pytest -n $(WORKERS) --dist worksteal $(ARGS)
CONFIG  := setup.cfg pyproject.toml

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-oldest coverage lint docs examples dist bench-plain bench-transfer bench-archive bench-peers \
        bench-speed starter papers clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'
	@echo "Variables: VENV=$(VENV) OLDEST=$(OLDEST) DIST=$(DIST) PYTHON=$(PYTHON) WORKERS=$(WORKERS) ARGS=(for pytest)"

demo: $(VENV)/.installed  ## run the quick start
	$(VENV)/bin/python examples/quickstart.py

test: $(VENV)/.installed-test  ## run the tests and doctests
	$(THREADS) $(VENV)/bin/python $(PYTEST)

# The files of an archive do not depend on the versions of other packages.
test-oldest: $(OLDEST)/.installed-test  ## run the fast tests of the package with the oldest supported dependencies
	$(THREADS) $(OLDEST)/bin/python $(PYTEST) -m 'not slow' --ignore=tests/archive \
	    --ignore=tests/benchmarks --ignore=tests/test_docs.py --ignore=tests/test_testing.py

coverage: $(VENV)/.installed-dev  ## run the tests and report the coverage of the package
	$(THREADS) $(VENV)/bin/python $(PYTEST) --cov=sktransfer --cov-branch --cov-report=term-missing:skip-covered

lint: $(VENV)/.installed-dev  ## run ruff and mypy
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m ruff format --check .
	$(VENV)/bin/python -m mypy

docs: $(VENV)/.installed-docs  ## build the documentation site in docs/_build/html and check its links
	$(THREADS) $(VENV)/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(VENV)/bin/python docs/check_links.py docs/_build/html

examples: $(VENV)/.installed-docs  ## run all examples of the gallery
	for example in examples/gallery/plot_*.py; do \
	    echo "$$example"; \
	    SKTRANSFER_ARCHIVE=$$(mktemp -d) MPLBACKEND=Agg $(THREADS) $(VENV)/bin/python $$example || exit 1; \
	done

dist: $(VENV)/.installed-dev  ## build sdist and wheel, install the wheel in a new environment and use it
	rm -rf build dist $(DIST)
	$(VENV)/bin/python -m build --outdir dist .
	$(VENV)/bin/python -m zipfile --list dist/*.whl
	$(PYTHON) -m venv $(DIST)
	$(DIST)/bin/python $(PIP) -c constraints.txt "$$(ls dist/*.whl)[plot]"
	cd dist && SKTRANSFER_ARCHIVE=$(abspath $(DIST))/archive MPLBACKEND=Agg $(abspath $(DIST))/bin/python ../examples/check_install.py
	$(DIST)/bin/sktransfer report --archive $(DIST)/archive --out $(DIST)/report.html

bench-plain: $(VENV)/.installed-bench  ## compare the optimizer without an archive to others
	$(VENV)/bin/python -m benchmarks.plain_bo

bench-transfer: $(VENV)/.installed-bench  ## measure transfer: first trials, proteins, training time (hours)
	$(THREADS) $(VENV)/bin/python -m benchmarks.evaluations
	$(THREADS) $(VENV)/bin/python -m benchmarks.first_trial
	$(THREADS) $(VENV)/bin/python -m benchmarks.papers distbo-protein
	$(VENV)/bin/python -m benchmarks.meta_model

papers: $(VENV)/.installed-bench  ## run the experiments of the papers at reduced size
	$(THREADS) $(VENV)/bin/python -m benchmarks.papers all --quick

bench-archive: $(VENV)/.installed-bench  ## measure the archive with ten thousand records and many writers
	$(THREADS) $(VENV)/bin/python -m benchmarks.archive --report docs/results/archive.md

bench-peers: $(VENV)/.installed-bench  ## compare the search to random search, Optuna, skopt and others (hours)
	$(THREADS) $(VENV)/bin/python -m benchmarks.peers --report docs/results/peers.md

bench-speed: $(VENV)/.installed-bench  ## check the limits on run time
	$(THREADS) $(VENV)/bin/python -m benchmarks.speed

starter: $(VENV)/.installed-bench  ## build the starter archive: evaluate missing cells (hours) and pack
	$(THREADS) $(VENV)/bin/python -m benchmarks.build_starter --jobs $(WORKERS)
	$(VENV)/bin/python -m benchmarks.build_starter --pack

clean:  ## remove environments, caches and builds
	rm -rf .venv .venv-oldest .venv-dist build dist docs/_build docs/generated docs/gallery sktransfer.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched only after a successful install, and is out of date if the configuration is newer.
$(VENV)/.made $(OLDEST)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is required. Try make PYTHON=python3.11")'
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
