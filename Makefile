# make run: start Allgone on this machine.  make test: the whole suite.  make check: format, lint, types, imports, tests.
# make screenshots: the pictures of docs/screens.  make examples: the example integrations, with packages of their own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN_READY := $(VENV)/.installed-run
DEV_READY := $(VENV)/.installed-dev
EXAMPLES := .venv-examples
EXAMPLES_READY := $(EXAMPLES)/.installed

.PHONY: run test check examples format lint lock benchmark screenshots clean

run: $(RUN_READY)
	@exec $(BIN)/flask --app app start

# Each of the two processes has engines and a browser of its own. `TESTS="tests/models -n 0"` narrows them down.
TESTS ?= -n 2 --dist loadfile
test: $(DEV_READY)
	$(BIN)/python -m pytest $(TESTS)

check: $(DEV_READY) lint
	$(BIN)/python -m pytest $(TESTS)

# The examples' types are checked and their tests run against the product; plain `make test` skips them unless this ran.
examples: $(DEV_READY) $(EXAMPLES_READY)
	MYPYPATH=examples $(BIN)/mypy --python-executable $(EXAMPLES)/bin/python examples
	EXAMPLES_PYTHON=$(EXAMPLES)/bin/python $(BIN)/python -m pytest tests/examples

lint: $(DEV_READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV_READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

benchmark: $(DEV_READY)
	$(BIN)/python -m benchmarks

# The pictures of docs/screens, made anew in Chromium from a demo history.
screenshots: $(DEV_READY)
	$(BIN)/python -m screens

# Pins every package that requirements-dev.txt brings along, from a fresh environment.
lock:
	rm -rf build/lock && $(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet -r requirements-dev.txt
	{ echo "# Every package that requirements.txt and requirements-dev.txt bring along; made by: make lock"; \
	  build/lock/bin/python -m pip freeze --exclude-editable; } > requirements.lock
	rm -rf build/lock

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Allgone needs Python 3.11 or newer; this is " + sys.version.split()[0])'
	@echo "Making $(VENV) ..." >&2
	@$(PYTHON) -m venv $(VENV)

$(RUN_READY): requirements.txt requirements.lock | $(VENV)/bin/python
	@echo "Installing what Allgone runs on (the first time takes a minute) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -c requirements.lock
	@touch $@

$(DEV_READY): requirements.txt requirements-dev.txt requirements.lock | $(VENV)/bin/python
	@echo "Installing what the tests need ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt -c requirements.lock
	@touch $@ $(RUN_READY)

$(EXAMPLES_READY): examples/requirements.txt examples/requirements.lock | $(VENV)/bin/python
	@echo "Installing what the examples need (180 MB, a minute or two) ..." >&2
	@$(PYTHON) -m venv $(EXAMPLES)
	@$(EXAMPLES)/bin/python -m pip install --quiet --disable-pip-version-check -r examples/requirements.txt -c examples/requirements.lock
	@touch $@
