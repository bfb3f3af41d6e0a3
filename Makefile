# Needs nothing but make and Python 3.11 or newer; everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin
EXTRAS_DEV := $(VENV)/.installed-dev
EXTRAS_BENCH := $(VENV)/.installed-bench
EXTRAS_HOOKS := $(VENV)/.installed-hooks
EXTRAS_EXPORT := $(VENV)/.installed-export
EXTRAS_BROWSER := $(VENV)/.installed-browser
EXTRAS_SERVE := $(VENV)/.installed-serve
EXTRAS_DOCS := $(VENV)/.installed-docs
EXTRAS_DOCS_TEST := $(VENV)/.installed-docs-test
EXTRAS_DASK := $(VENV)/.installed-dask
# Environments of the oldest consumers of exports, one for each list in requirements/.
OLDER := $(VENV)-older/older/.installed $(VENV)-older/older_trees/.installed
INSTALLED := $(VENV)/.installed

# The first Python on the path that is new enough; choose another with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
WORKERS ?= 2
# Of `make fuzz`: how long for each target, which targets (all when empty), and which inputs.
MINUTES ?= 10
TARGET ?=
SEED ?= 0
CODE := src tests benchmarks tools
# Tests that need more than the extra `dev`: a browser, the libraries whose models are imported, what builds the site, Dask, the service.
ELSEWHERE := --ignore tests/browser --ignore tests/imports --ignore tests/docs --ignore tests/cluster --ignore tests/serve
# What hangs on other libraries; trees are the same whatever their version (tests/boosting).
OLDEST_TESTS := $(addprefix tests/,cli data doctor experiments kernels losses metrics models report scorers serve tuning) tests/test_*.py
BENCHMARKS ?= train rankers predict scaling read evaluate
# Byte code is written for the modules that are used, when they are: compiling all of it takes longer than installing.
LOCK := requirements/lock.txt
INSTALL := $(BIN)/python -m pip --disable-pip-version-check --quiet install --no-compile --constraint $(LOCK) --editable
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test slow-test export-test serve-test browser-test scale-test oldest-test docs docs-test release fuzz mutants check format coverage bench hooks lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(INSTALLED) ## Train the rankers of the McRank paper on built-in data and show who wins (about two minutes)
	$(BIN)/mcrank demo

test: $(EXTRAS_DEV) ## Run the test suite, all but what is slow, and the examples in the docstrings
	@# Compiled once and in a good order, instead of by both workers at the same time.
	$(BIN)/mcrank --quiet warmup all
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not consumer" tests $(ELSEWHERE)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --doctest-modules src

slow-test: $(EXTRAS_DEV) ## Run the slow tests: whole processes, forks, kills, odd places, every kernel compiled, a second of fuzzing
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m "slow and not consumer" tests $(ELSEWHERE)

export-test: $(EXTRAS_EXPORT) $(OLDER) ## Compare exports and imports with lightgbm, onnxruntime, gcc, node and more (as root, installs gcc, node and sqlite3)
	@command -v gcc >/dev/null && command -v node >/dev/null && command -v sqlite3 >/dev/null || { \
		echo "installing gcc, nodejs and sqlite3"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
			gcc libc6-dev nodejs sqlite3 >/dev/null; }
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m consumer tests

serve-test: $(EXTRAS_SERVE) ## Test the service as a process, and against its OpenAPI document with schemathesis
	$(BIN)/python -m pytest tests/serve

browser-test: $(EXTRAS_BROWSER) ## Test the pages and the site in a real browser (as root, installs Debian's chromium if there is none)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || { \
		echo "installing chromium"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null; }
	$(BIN)/python -m pytest tests/browser

docs: $(EXTRAS_DOCS) ## Build the documentation as a site that needs no network (site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html"

docs-test: $(EXTRAS_DOCS_TEST) ## Run every block of code of every page, and build the site strictly
	$(BIN)/mcrank --quiet warmup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup tests/docs

release: $(EXTRAS_HOOKS) ## Build wheel and sdist, install the wheel in a clean environment, and run the README on it
	rm -rf dist build/release
	$(BIN)/uv build --quiet --out-dir dist
	$(PYTHON) tools/packed.py dist
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip --disable-pip-version-check --quiet install --constraint $(LOCK) dist/*.whl
	@# With nothing but what mcrank itself needs; the second page has a report made, the third the service asked.
	build/release/bin/python -m tests.docs --check README.md docs/howto/compare.md
	build/release/bin/python -m pip --disable-pip-version-check --quiet install --constraint $(LOCK) "$$(echo dist/*.whl)[serve]"
	build/release/bin/python -m tests.docs --check docs/howto/serve.md
	@ls dist

scale-test: $(EXTRAS_DASK) ## Train on a cluster of processes here, kill and stop some of them, and compare model files
	$(BIN)/python -m pytest tests/cluster

oldest-test: $(VENV)-older/oldest/.installed ## Run the tests with the lowest version of everything that mcrank says it works with
	@test ! -e $< || { $(VENV)-older/oldest/bin/python -m mcrank --quiet warmup && \
		$(VENV)-older/oldest/bin/python -m pytest -n $(WORKERS) --dist loadfile -m "not slow and not consumer" \
			-W "ignore::DeprecationWarning" -W "ignore::PendingDeprecationWarning" $(OLDEST_TESTS); }

fuzz: $(EXTRAS_DEV) ## Feed damaged and odd files to every reader: MINUTES=10 each, TARGET="model cache" for some
	$(BIN)/python -m tests.fuzz $(TARGET) --minutes $(MINUTES) --seed $(SEED) --jobs $(WORKERS)

mutants: $(EXTRAS_DEV) ## Break chosen lines one at a time and see whether the tests notice
	$(BIN)/python benchmarks/mutants.py --jobs $(WORKERS)

check: $(EXTRAS_DEV) ## Lint, format, types and import directions
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(EXTRAS_DEV) ## Bring the code into the project's format
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

coverage: $(EXTRAS_DEV) ## Run the test suite and say which lines of Python it reaches (htmlcov/)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --cov --cov-report term --cov-report html -m "not consumer" tests $(ELSEWHERE)

hooks: $(EXTRAS_HOOKS) ## Check every commit before it is made
	$(BIN)/pre-commit install

lock: $(EXTRAS_HOOKS) ## Pin everything that development and CI install, anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --all-extras --upgrade --no-emit-index-url \
		--no-annotate --no-header pyproject.toml --output-file $(LOCK)
	$(BIN)/uv pip compile --quiet --python-version 3.11 --resolution lowest-direct --no-emit-index-url \
		--no-annotate --no-header --extra tables --extra zstd --extra plots --extra onnx --extra tune --extra serve \
		pyproject.toml requirements/oldest.in --output-file requirements/oldest.txt

bench: $(EXTRAS_BENCH) ## Measure mcrank beside its peers (long; wants an idle machine)
	@for name in $(BENCHMARKS); do echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

clean: ## Remove .venv, caches and what the demo wrote
	rm -rf $(VENV) $(VENV)-older demo build dist site fuzz-findings .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov
	find src tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "mcrank needs Python 3.11 or newer; found none (set PYTHON=...)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) .
	@touch $@

$(EXTRAS_DEV): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev]"
	@touch $@ $(INSTALLED)

$(EXTRAS_DOCS): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[docs]"
	@touch $@ $(INSTALLED)

# With the libraries that pages show beside mcrank.
$(EXTRAS_DOCS_TEST): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,docs,export-test,serve,tune,dask]"
	@touch $@ $(EXTRAS_DOCS) $(EXTRAS_EXPORT) $(EXTRAS_DEV) $(INSTALLED)

$(EXTRAS_BROWSER): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,browser,docs]"
	@touch $@ $(EXTRAS_DEV) $(INSTALLED)

$(EXTRAS_SERVE): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,serve-test]"
	@touch $@ $(EXTRAS_DEV) $(INSTALLED)

$(EXTRAS_DASK): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,dask,tune]"
	@touch $@ $(EXTRAS_DEV) $(INSTALLED)

$(EXTRAS_EXPORT): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,export-test]"
	@touch $@ $(EXTRAS_DEV) $(INSTALLED)

# onnxruntime 1.16 has no wheels for newer Pythons; without 3.11 its tests are skipped.
$(VENV)-older/%/.installed: requirements/%.txt
	@command -v python3.11 >/dev/null || { echo "no python3.11: the oldest consumers are not tried"; exit 0; }; \
	python3.11 -m venv $(@D) && $(@D)/bin/python -m pip --disable-pip-version-check --quiet install --requirement $< && touch $@

$(VENV)-older/oldest/.installed: requirements/oldest.txt pyproject.toml
	@command -v python3.11 >/dev/null || { echo "no python3.11: the lowest versions are not tried"; exit 0; }; \
	python3.11 -m venv $(@D) && $(@D)/bin/python -m pip --disable-pip-version-check --quiet install \
		--requirement $< && $(@D)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --editable . && touch $@

$(EXTRAS_BENCH): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[bench]"
	@touch $@ $(INSTALLED)

$(EXTRAS_HOOKS): pyproject.toml $(LOCK) | $(BIN)/python
	$(INSTALL) ".[dev,hooks]"
	@touch $@ $(EXTRAS_DEV) $(INSTALLED)
