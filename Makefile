# Everything lives in .venv; its stamps are renewed only when the dependencies change.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
SHOWN := .venv/.package
STAMP := .venv/.installed
# Of tests: one more than a small machine has cores, since some wait for servers; each takes ten
# seconds of its own to collect and to import the engines.
PROCESSES ?= 3
# Hundreds of tests start the command: each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
# mkdocs-material announces its successor on each run.
export NO_MKDOCS_2_WARNING := 1

.PHONY: demo test coverage mutate soak system bench scoreboard bridges docs schema format clean

demo: $(SHOWN)
	@$(BIN)/whosin demo

# Types and pages are checked beside the tests.
test: $(STAMP)
	@sh tests/system.sh
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@{ $(BIN)/mypy >.venv/types 2>&1 || { cat .venv/types >&2; false; }; } & types=$$!; \
	$(BIN)/mkdocs build --quiet --strict --site-dir .venv/site & pages=$$!; \
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) $(PYTEST); tests=$$?; \
	wait $$types && wait $$pages && exit $$tests

# How much of the code the quick tests run, in their own processes: MISSING=1 lists the lines.
coverage: $(STAMP)
	@$(BIN)/python -m pytest --numprocesses $(PROCESSES) --cov=whosin --cov-report=term$(if $(MISSING),-missing) $(PYTEST)

# Change modules in one place each and see that tests fail: make mutate MUTATE='beliefs --sample 50'
mutate: $(STAMP)
	@$(BIN)/python tests/mutate.py $(MUTATE)

soak: $(STAMP)
	@sh tests/system.sh
	@$(BIN)/python -m pytest -m soak $(PYTEST)

# Chromium, PostgreSQL, plink1.9, plink2 and Java from Debian's packages, for the tests that use them.
system:
	@sh tests/system.sh asked

bench: $(STAMP)
	@$(BIN)/python benchmarks/run.py $(BENCH)

# Audit known mechanisms, known bugs and libraries, and write docs/scoreboard.md from what is measured.
scoreboard: $(STAMP)
	@$(BIN)/python benchmarks/scoreboard/board.py $(BOARD)

# Read budgets and accountants of other tools, each in an environment of its own under .bench:
# make bridges BRIDGES='opacus riskcal'
bridges: $(STAMP)
	@$(BIN)/python tests/bridges/try_tools.py $(BRIDGES)

docs: $(STAMP)
	@$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

schema: $(STAMP)
	@$(BIN)/python -m whosin.app.scenario_schema > schema/scenario.json

format: $(STAMP)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:
	rm -rf .venv .bench site build dist

# The demonstration needs two extras; everything else needs all of them, and the tools of the tests.
$(SHOWN): EXTRAS := release,charts
$(STAMP): EXTRAS := test,docs
$(SHOWN) $(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "whosin needs Python 3.11 or newer: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "Setting up .venv, which takes some minutes the first time …" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --constraint constraints.txt --editable '.[$(EXTRAS)]'
	@touch $@
