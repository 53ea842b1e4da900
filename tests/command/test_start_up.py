"""What a small release imports, which is most of the time that it takes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from whosin.app.cli.main import COMMANDS
from whosin.release import queries
from whosin.release.queries import QUERIES
from whosin.release.scenario import load_scenario

SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "t.csv"
privacy_unit = "id"
[ledger]
url = "ledger.db"
[[queries]]
kind = "count"
"""
RUN = """
import sys
from whosin.app.cli.main import main
assert main(["release", "s.toml"]) == 0
print("imported", *sorted(sys.modules))
"""
NEEDLESS = {
    "altair",
    "ibis.backends.sql.compilers.bigquery",
    "opendp",
    "pandas",
    "psutil",
    "pyarrow.compute",
    "pydantic",
    "scipy",
    "sqlalchemy.dialects.postgresql",
    "whosin.app.cli.audit",
    "whosin.app.cli.gwas",
    "whosin.audit",
    "whosin.curves",
    "whosin.distortion",
    "whosin.marginals",
    "whosin.mechanisms",
    "whosin.notions",
    "whosin.release.inspection",
    "whosin.release.queries.marginals",
    "whosin.release.queries.moments",
    "whosin.release.queries.quantile",
    "whosin.release.queries.synthetic",
    "whosin.release.sql",
    "jinja2",
    "whosin.report.charts",
    "whosin.report.html",
}
"""What a count from a CSV file has no use for."""
HELP = """
import sys
from whosin.app.cli.main import main
assert main(["--help"]) == 0
print("imported", *sorted(sys.modules))
"""
HEAVY = {"duckdb", "ibis", "sqlalchemy", "whosin.audit", "whosin.calibration", "whosin.release"}
HEAVY |= {"numpy", "pydantic"}
ENGINE_ALONE = "import duckdb, ibis.backends.duckdb; duckdb.connect()"
MOST_TIMES_ENGINE = 4.0
"""Processor time of a small release over that of the engine alone; it is about 2."""


def test_a_small_release_imports_what_it_needs(tmp_path):
    """It took 2.7 seconds of processor time for two rows."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "t.csv").write_text("id,age\na,30\nb,40\n")
    done = subprocess.run(
        [sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    imported = set(done.stdout.split("imported ")[-1].split())
    assert "ibis.backends.duckdb" in imported
    assert sorted(imported & NEEDLESS) == []


def test_help_imports_no_engine():
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split("imported ")[-1].split())
    assert "whosin.app.cli.audit" in imported
    assert sorted(imported & HEAVY) == []


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_imports_no_other(name):
    code = HELP.replace('"--help"', f'"{name}", "--help"')
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split("imported ")[-1].split())
    own = COMMANDS[name].partition(":")[0]
    others = {each.partition(":")[0] for each in COMMANDS.values()} - {own, "main"}
    assert sorted(imported & {*HEAVY, *(f"whosin.app.cli.{each}" for each in others)}) == []


def test_a_kind_of_query_has_the_name_that_it_is_found_by():
    assert {name: kind.kind for name, kind in QUERIES.items()} == {name: name for name in QUERIES}
    assert {kind.__name__ for kind in QUERIES.values()} < set(queries.__all__)


def test_a_batch_is_priced_once(tmp_path, monkeypatch):
    """A release was priced before its session and again within it."""
    (tmp_path / "s.toml").write_text(SCENARIO)
    (tmp_path / "t.csv").write_text("id,age\na,30\nb,40\n")
    priced = []
    estimate = QUERIES["count"].estimate_cost
    monkeypatch.setattr(
        QUERIES["count"],
        "estimate_cost",
        lambda *given: priced.append(given) or estimate(*given),
    )
    scenario = load_scenario(tmp_path / "s.toml")
    scenario.release(scenario.open_session())
    assert len(priced) == 1


def measure_seconds(code: str, folder: Path) -> float:
    """Processor time of a new process, the least of three."""
    result = []
    for number in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        scenario = SCENARIO.replace("ledger.db", f"ledger{number}.db")
        (folder / "s.toml").write_text(scenario)
        environment = {**os.environ}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the first compiles for the others
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=folder,
            env=environment,
            capture_output=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        result.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(result)


def test_a_small_release_takes_little_more_than_its_engine(tmp_path):
    """Against the engine alone on the same machine, which may be busy."""
    (tmp_path / "t.csv").write_text("id,age\na,30\nb,40\n")
    alone = measure_seconds(ENGINE_ALONE, tmp_path)
    assert measure_seconds(RUN, tmp_path) < MOST_TIMES_ENGINE * alone
