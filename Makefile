# kvtrail: `make demo` and `make test` do all the set-up that they need. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
ARGS ?=
WORKERS ?= 2
SOURCES := schema agent engine collector dashboards cli migrations tools bench tests

.DEFAULT_GOAL := help
.PHONY: help install parts demo test test-long test-engines chaos check sanitize format generate constraints docs-pictures clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(VENV)/.installed ## make .venv with everything

demo: install ## run engine, recorder and collector, explain the spike; ARGS="--headless --json --fault nvme-queue"
	@$(BIN)/kvtrail demo $(ARGS)

test: install parts ## run all tests, side by side where they do not need the machine to themselves; ARGS="tests/schema -x" for some
ifeq ($(strip $(ARGS)),)
	$(BIN)/python -m pytest -q -m "not alone" -n $(WORKERS) --dist loadfile
	$(BIN)/python -m pytest -q -m alone
else
	$(BIN)/python -m pytest $(ARGS)
endif

test-long: install parts ## run the long suites too (minutes each)
	KVTRAIL_LONG=1 $(BIN)/python -m pytest $(ARGS)

test-engines: install .venv-engines/.installed ## run real vLLM with our connector and relay (6 GB, ten minutes); ARGS for some
	KVTRAIL_ENGINES_PYTHON=$(CURDIR)/.venv-engines/bin/python $(BIN)/python -m pytest -q -o timeout=1800 tests/engines $(ARGS)

chaos: install ## real parts killed, paused, cut off, without room: 200 seeded rounds (a quarter of an hour)
	KVTRAIL_LONG=1 $(BIN)/python -m pytest -q tests/chaos $(ARGS)

check: install ## lint, types, docstrings, sizes, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tests tools bench
	$(BIN)/interrogate -q schema agent engine collector dashboards cli migrations tools bench tests
	$(BIN)/python tools/generate.py --check
	$(BIN)/python tools/reference.py --check
	$(BIN)/python -m pytest -q tests/test_sizes.py tests/test_layout.py

sanitize: install ## fuzz the C writer under sanitizers; ARGS="SEEDS CALLS"
	$(BIN)/python tools/sanitize.py $(ARGS)

format: install ## format the code
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

generate: install ## write the files that follow from the code
	$(BIN)/python tools/generate.py
	$(BIN)/python tools/reference.py

docs-pictures: install parts ## make the pictures of the documentation from a real run (three minutes)
	$(BIN)/python tools/pictures.py

constraints: $(UV) ## pin the versions again
	$(UV) pip compile pyproject.toml --upgrade --all-extras --group dev --no-emit-index-url --no-header -o constraints.txt

parts: ## install the real parts that tests need and that are no Python packages
	@tools/parts.sh

clean: ## remove what was made here
	rm -rf $(VENV) .venv-engines .uv .parts build dist *.egg-info kvtrail-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

.uv/bin/uv:
	@echo "fetching uv" >&2
	@$(PYTHON) -m venv .uv
	@.uv/bin/pip install --quiet --disable-pip-version-check uv

.venv-engines/.installed: pyproject.toml setup.py tools/engines.sh | $(UV)
	@echo "installing engines into .venv-engines (6 GB)" >&2
	@tools/engines.sh $(CURDIR)/.venv-engines $(UV) $(PYTHON)
	@touch $@

$(VENV)/.installed: pyproject.toml setup.py constraints.txt $(wildcard agent/kvtrail_agent/_ring*.[ch]) | $(UV)
	@echo "installing into $(VENV)" >&2
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) $(UV) pip install --quiet --constraint constraints.txt --editable '.[all]' --group dev
	@touch $@
