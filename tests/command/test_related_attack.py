"""Neighbouring databases attacked through `whosin release`: one person's rows in all tables.

Someone who may be in many cells moves each of them, and each has noise of its own: so one answer is
many samples of what the noise hides, at a price for each. Nothing but the command's output is used.
The tables lie in files, in an SQLite database, or on a PostgreSQL server beside a file.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import postgres
import whosin as wi
from amounts import cases, some
from whosin.exact import Array
from whosin.release import contribution_bounds

PRICE = 0.5
"""ε of each sample."""
CONFIDENCE = 0.9999
"""Of each lower bound: six of them are looked at whenever the tests are run."""
PERSON, CELLS = "p9", 400
ASKED = ("total", "days")
SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
epsilon = {plan}
[table]
source = "{people}"
name = "people"
privacy_unit = "who"
max_groups = {cells}
[domains]
slot = {{ values = {slots}, outside = "drop" }}
total = {{ lower = 0, upper = 60, step = 1 }}
days = {{ lower = 0, upper = 30, step = 1 }}
[[tables]]
name = "visits"
source = "{visits}"
[[features]]
name = "total"
kind = "sum"
column = "days"
table = "visits"
[[queries]]
kind = "sum"
column = "total"
by = ["slot"]
[[queries]]
kind = "sum"
column = "days"
by = ["slot"]
"""
"""A person's feature, and a column of a table that is joined, in all rows of a person."""


Place = Callable[[Path, str, str, list[str]], str]
"""Puts the rows of a table somewhere, given as lines; returns its source."""


def in_files(folder: Path, name: str, header: str, rows: list[str]) -> str:
    (folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return f"{name}.csv"


def in_sqlite(folder: Path, name: str, header: str, rows: list[str]) -> str:
    with contextlib.closing(sqlite3.connect(folder / "people.sqlite")) as database:
        first, second = header.split(",")
        database.execute(f"CREATE TABLE {name} ({first} TEXT, {second} INTEGER)")
        database.executemany(
            f"INSERT INTO {name} VALUES (?, ?)", [each.split(",") for each in rows]
        )
        database.commit()
    return f"people.sqlite::{name}"


@pytest.fixture(scope="module")
def on_server() -> Iterator[Place]:
    """The table itself on a server, in a schema for each database; visits in a file."""
    postgres.require()
    with postgres.server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", postgres.PASSWORD)
        url = f"postgresql://whosin@/postgres?host={server.folder}"

        def put(folder: Path, name: str, header: str, rows: list[str]) -> str:
            if name == "visits":
                return in_files(folder, name, header, rows)
            schema = "s" + sha256(str(folder).encode()).hexdigest()[:16]
            first, second = header.split(",")
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(f"CREATE SCHEMA {schema}")
                connection.execute(f"CREATE TABLE {schema}.{name} ({first} text, {second} int)")
                with connection.cursor().copy(
                    f"COPY {schema}.{name} FROM STDIN (FORMAT csv)"
                ) as to:
                    to.write("\n".join(rows))
            return f"{url}::{schema}.{name}"

        yield put


def write(folder: Path, present: bool, put: Place) -> Path:
    """A database, in which one person has very many rows in every cell, or none in any table. The
    others have one visit each: one of several would be chosen once for all cells, whose values were
    then no independent samples (a shift of 10 at a sensitivity of 30 looks like 0.67 for 0.5)."""
    folder.mkdir(parents=True)
    people = [f"p{number},{slot}" for number in range(3) for slot in range(CELLS)]
    visits = [f"p{number},{number}" for number in range(3)]
    if present:
        people += [f"{PERSON},{slot}" for slot in range(CELLS)] * 8
        visits += [f"{PERSON},30"] * 8
    path = folder / "scenario.toml"
    filled = {
        "people": put(folder, "people", "who,slot", people),
        "visits": put(folder, "visits", "who,days", visits),
        "plan": len(ASKED) * CELLS * PRICE,
        "slots": list(range(CELLS)),
    }
    path.write_text(SCENARIO.format(cells=CELLS, **filled), encoding="utf-8")
    return path


def samples(run: Callable[..., Any], path: Path) -> list[Array]:
    """The values of each answer."""
    code, out, err = run("release", path, "--json", "--no-preflight")
    assert code == 0, err
    return [
        np.array([row[each["columns"].index("value")] for row in each["rows"]])
        for each in json.loads(out)["answers"]
    ]


def leaked(
    run: Callable[..., Any], folder: Path, releases: int = 1, put: Place = in_files
) -> dict[str, float]:
    """For each answer, how far one of its numbers tells the two databases apart at least."""
    pair = []
    for present in (True, False):
        found = [
            samples(run, write(folder / f"{present} {number}", present, put))
            for number in range(releases)
        ]
        pair.append([np.concatenate(each) for each in zip(*found, strict=True)])
    return {
        name: float(wi.audit.samples(one, other, CONFIDENCE, seed=1, repeats=True).epsilon)
        for name, one, other in zip(ASKED, *pair, strict=True)
    }


@pytest.mark.parametrize("place", some(["files", "server", "sqlite"], 1))
@cases(1, 12)
def test_one_person_in_all_tables_stays_below_the_price(
    run: Callable[..., Any],
    tmp_path: Path,
    count: int,
    place: str,
    request: pytest.FixtureRequest,
) -> None:
    puts: dict[str, Place] = {"files": in_files, "sqlite": in_sqlite}
    put = puts[place] if place in puts else request.getfixturevalue("on_server")
    for name, found in leaked(run, tmp_path, count, put).items():
        assert found <= PRICE, name
        assert count == 1 or found > PRICE / 2, name  # the attack sees what there is


def test_a_release_with_too_little_noise_is_caught(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise for a quarter of the sensitivity."""
    claimed = contribution_bounds.Aggregate.l1_sensitivity
    monkeypatch.setattr(
        contribution_bounds.Aggregate,
        "l1_sensitivity",
        lambda *given: max(1, claimed(*given) // 4),
    )
    assert min(leaked(run, tmp_path).values()) > PRICE


def test_rows_that_are_not_bounded_are_caught(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contribution_bounds, "sample_rows", lambda base, home, most, **others: base)
    assert min(leaked(run, tmp_path).values()) > PRICE
