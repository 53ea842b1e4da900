"""What a small release imports, which is most of the time that it takes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from whosin.app.cli.main import COMMAND_PLACES
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
    "sqlalchemy",
    "whosin.app.cli.audit",
    "whosin.app.cli.gwas",
    "whosin.audit",
    "whosin.curves",
    "whosin.distortion",
    "whosin.marginals",
    "whosin.mechanisms",
    "whosin.notions",
    "whosin.release.queries.keys",
    "whosin.release.queries.marginals",
    "whosin.release.queries.quantile",
    "whosin.release.queries.synthetic",
    "whosin.release.sql",
    "jinja2",
    "whosin.report.charts",
    "whosin.report.html",
}
"""What a count from a CSV file has no use for."""
HELP = """
import os, sys
from whosin.app.cli.main import main
for line in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork() == 0:
        assert main(line.split()) == 0
        print("\\nimported", line, *sorted(sys.modules), flush=True)
        os._exit(0)
    assert os.wait()[1] == 0
"""
HEAVY = {"duckdb", "ibis", "whosin.audit", "whosin.calibration", "whosin.release"}
HEAVY |= {"numpy", "pydantic"}
ENGINE_ALONE = "import duckdb, ibis.backends.duckdb; duckdb.connect()"
MOST_TIMES_ENGINE = 4.0
"""Processor time of a small release over that of the engine alone; it is about 2."""


def measure_release(code: str, folder: Path) -> tuple[float, set[str]]:
    """Processor time of a new process, and what it says that it imported."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    folder.mkdir()
    (folder / "t.csv").write_text("id,age\na,30\nb,40\n")
    (folder / "s.toml").write_text(SCENARIO)
    environment = {**os.environ}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the first compiles for the others
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, set(done.stdout.split("imported ")[-1].split())


def test_a_small_release_imports_and_takes_what_it_needs(tmp_path):
    """It took 2.7 seconds of processor time for two rows: now little more than its engine alone
    on the same machine, which may be busy."""
    for number in range(3):  # the first compiles, where nothing did yet
        alone, _ = measure_release(ENGINE_ALONE, tmp_path / f"engine {number}")
        taken, imported = measure_release(RUN, tmp_path / f"release {number}")
        if taken < MOST_TIMES_ENGINE * alone:
            break
    assert "ibis.backends.duckdb" in imported
    assert sorted(imported & NEEDLESS) == []
    assert taken < MOST_TIMES_ENGINE * alone


def test_help_imports_no_engine_and_no_other_command():
    lines = ["--help", *(f"{name} --help" for name in COMMAND_PLACES)]
    command = [sys.executable, "-c", HELP, *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = [set(each.split()) for each in done.stdout.split("\nimported ")[1:]]
    assert "whosin.app.cli.audit" in imported[0] and not imported[0] & HEAVY
    homes = {f"whosin.app.cli.{each.partition(':')[0]}" for each in COMMAND_PLACES.values()}
    for name, found in zip(COMMAND_PLACES, imported[1:], strict=True):
        own = f"whosin.app.cli.{COMMAND_PLACES[name].partition(':')[0]}"
        others = homes - {own, "whosin.app.cli.main"}
        assert sorted(found & {*HEAVY, *others}) == [], name


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
