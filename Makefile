# Everything lives in .venv; the stamp is renewed only when the dependencies change.
PYTHON ?= $(shell command -v python3.13 || command -v python3.12 || command -v python3.11 || command -v python3)
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test bench docs format clean

demo: $(STAMP)
	@$(BIN)/whosin demo

test: $(STAMP)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/mkdocs build --quiet --strict --site-dir .venv/site
	@$(BIN)/python -m pytest --numprocesses 2 $(PYTEST)

bench: $(STAMP)
	@$(BIN)/python benchmarks/run.py $(BENCH)

docs: $(STAMP)
	@$(BIN)/mkdocs serve --dev-addr 127.0.0.1:8001

format: $(STAMP)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:
	rm -rf .venv .bench site build dist

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "whosin needs Python 3.11 or newer; set PYTHON=")'
	@echo "Setting up .venv (first run only) …" >&2
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test,docs]'
	@touch $@
