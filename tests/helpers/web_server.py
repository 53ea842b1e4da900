"""A served folder for the tests of the page, and programs that talk to it."""

from __future__ import annotations

import io
import runpy
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx

from whosin.app.example_data import write_hospital
from whosin.app.web.access import Settings
from whosin.gwas import Simulation

PLAN = {"adversary": {"prior": "0.05..0.5"}, "target": {"posterior": "0.6"}}
SCENARIO: dict[str, Any] = {
    "title": "Visits",
    **PLAN,
    "table": {
        "source": "hospital.parquet",
        "privacy_unit": "patient",
        "max_rows_per_group": 3,
        "max_groups": 2,
    },
    "domains": {
        "ward": ["surgery", "medicine", "maternity", "children"],
        "age": {"lower": 0, "upper": 120, "edges": [0, 18, 65, 120]},
        "days": {"lower": 0, "upper": 30},
    },
    "queries": [
        {"kind": "count", "name": "patients"},
        {"kind": "rows", "name": "visits by ward", "by": ["ward"], "weight": 2},
        {"kind": "mean", "name": "days", "column": "days", "where": "age >= 18"},
    ],
}
ONE = SCENARIO | {"queries": [{"kind": "count"}]}


def served(folder: Path, patients: int = 400, **options: object) -> Settings:
    """A folder with a small hospital in it."""
    write_hospital(folder, patients)
    ledger, users = str(folder / "ledger.db"), folder / "users.json"
    return Settings(folder, ledger, users, **options)  # type: ignore[arg-type]


STUDY: dict[str, Any] = {
    "adversary": {"prior": "5%..50%"},
    "target": {"posterior": "75%"},
    "study": "toy",
    "relation": "genotype",
}


def write_study(folder: Path, name: str = "toy", seed: int = 1) -> None:
    """A small study in a folder, one of whose SNPs has an odds ratio of 4."""
    Simulation(300, 300, 200, causal=1, odds_ratio=4.0, lowest=0.3, seed=seed).write(folder / name)


def program(url: str, **headers: str) -> httpx.Client:
    """A program that knows the rules. It reads no certificates, for which each would take as long
    as for a request: tests are served by plain HTTP."""
    known = {"X-Whosin": "test", **headers}
    return httpx.Client(base_url=url, headers=known, timeout=300, verify=False)


def problem(answer: httpx.Response, status: int, field: str | None = None) -> str:
    """The message of a refusal of this status about this field."""
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (status, field), answer.text
    return str(error["message"])


def run_script(path: Path, *words: object) -> str:
    """What a saved script prints, in this process: a new one takes seconds to begin."""
    printed = io.StringIO()
    with redirect_stdout(printed), patch.object(sys, "argv", [str(path), *map(str, words)]):
        runpy.run_path(str(path), run_name="__main__")
    return printed.getvalue()
