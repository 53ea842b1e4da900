"""Neighbouring databases attacked through `whosin release`: one person's rows in all tables.

Someone who may be in many cells moves each of them, and each has noise of its own: so one answer is
many samples of what the noise hides, at a price for each. Nothing but the command's output is used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import whosin as wi
from amounts import cases
from whosin.exact import Array
from whosin.release.scans import bounding

PRICE = 0.5
"""ε of each sample."""
PERSON, CELLS = "p9", 400
ASKED = ("total", "days")
SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
epsilon = {plan}
[table]
source = "people.csv"
entity = "who"
groups = {cells}
[domains]
slot = {{ values = {slots}, outside = "drop" }}
total = {{ lower = 0, upper = 60, step = 1 }}
days = {{ lower = 0, upper = 30, step = 1 }}
[[tables]]
name = "visits"
source = "visits.csv"
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


def write(folder: Path, present: bool) -> Path:
    """A database, in which one person has very many rows in every cell, or none in any table."""
    folder.mkdir(parents=True)
    people = [f"p{number},{slot}" for number in range(3) for slot in range(CELLS)]
    visits = [f"p{number % 3},{number}" for number in range(7)]
    if present:
        people += [f"{PERSON},{slot}" for slot in range(CELLS)] * 8
        visits += [f"{PERSON},30"] * 8
    for name, header, rows in (("people", "who,slot", people), ("visits", "who,days", visits)):
        (folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    path = folder / "scenario.toml"
    plan, slots = len(ASKED) * CELLS * PRICE, list(range(CELLS))
    path.write_text(SCENARIO.format(plan=plan, cells=CELLS, slots=slots), encoding="utf-8")
    return path


def samples(run: Callable[..., Any], path: Path) -> list[Array]:
    """The values of each answer."""
    code, out, err = run("release", path, "--json")
    assert code == 0, err
    return [
        np.array([row[each["columns"].index("value")] for row in each["rows"]])
        for each in json.loads(out)["answers"]
    ]


def leaked(run: Callable[..., Any], folder: Path, releases: int = 1) -> dict[str, float]:
    """For each answer, how far one of its numbers tells the two databases apart at least."""
    pair = []
    for present in (True, False):
        found = [
            samples(run, write(folder / f"{present} {number}", present))
            for number in range(releases)
        ]
        pair.append([np.concatenate(each) for each in zip(*found, strict=True)])
    return {
        name: float(wi.audit.two_samples(one, other, seed=1, repeats=True).epsilon)
        for name, one, other in zip(ASKED, *pair, strict=True)
    }


@cases(1, 12)
def test_one_person_in_all_tables_stays_below_the_price(
    run: Callable[..., Any], tmp_path: Path, count: int
) -> None:
    for name, found in leaked(run, tmp_path, count).items():
        assert found <= PRICE, name
        assert count == 1 or found > PRICE / 2, name  # the attack sees what there is


def test_a_release_with_too_little_noise_is_caught(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noise for four times the price."""
    priced = bounding.Part.sensitivity
    monkeypatch.setattr(bounding.Part, "sensitivity", lambda *given: max(1, priced(*given) // 4))
    assert min(leaked(run, tmp_path).values()) > PRICE


def test_rows_that_are_not_bounded_are_caught(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounding, "first", lambda base, home, most, **others: base)
    assert min(leaked(run, tmp_path).values()) > PRICE
