"""What counts in an answer is said wherever it is shown, and what was not decided is warned of."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import release_oracle as oracle
import whosin as wi
from refusals import refused
from whosin import release
from whosin.exact import format_figures
from whosin.ledger import Cost
from whosin.release import Range, Values
from whosin.release.answer import CUT_OFF
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.contribution_bounds import bounds_statement
from whosin.release.cost import Share
from whosin.release.inspection import check_table
from whosin.report import html, table_views
from whosin.report.releases import describe_estimates
from whosin.report.terminal import print_document

ROWS = {
    "who": ["a", "a", "a", "b", "b", "c", None],
    "ward": ["A", "B", "A", "B", "C", "A", "A"],
    "sex": ["f", "f", "f", "m", "m", "f", "f"],
    "x": [1, 2, 3, 4, 50, 6, 7],
}
DOMAINS = {
    "ward": ["A", "B"],
    "sex": Values(("f", "m"), constant=True),
    "x": Range(0, 10, edges=(0, 5, 10)),
}
NOT_COVERED = "it does not cover what this leaves out"


@cache
def told(**options: Any) -> wi.Table:
    """The rows in a table, which compiles once what several tests ask."""
    return oracle.table(ROWS, DOMAINS, **options)


def test_a_mean_that_was_cut_off_says_so(tmp_path) -> None:
    """Of many means near an end, those beyond it are moved to it: their average is off."""
    held = {"who": list(range(400)), "x": [0] * 200 + [5] * 200, "ward": ["A"] * 200 + ["B"] * 200}
    data = oracle.table(held, {name: DOMAINS[name] for name in ("ward", "x")})
    query = release.Mean(column="x", by="ward")
    estimate = query.estimate_cost(data, oracle.share(1))
    drawn = [query.answer(data, estimate)["rows"] for _ in range(60)]
    assert sum(rows[0][1] for rows in drawn) / 60 > 0.002, "biased"
    for where, said in (("ward = 'A'", True), ("ward = 'B'", False)):
        session = wi.Session(data, oracle.PLANS["add-remove"], tmp_path / f"{said}.db", share=1)
        answer = session.ask(release.Mean(column="x", where=where))
        low, high = answer.interval
        assert (CUT_OFF in answer.statement) == (low <= 0 or high >= 10) == said
        assert (CUT_OFF in answer.to_dict()["statement"]) == said
        middle = release.Median(column="x", where=where, interval=True)
        answer = replace(answer, question=answer.question | middle.question())
        assert answer.question["query"] == "median" and CUT_OFF not in answer.statement


def test_every_showing_of_an_answer_says_what_counts(tmp_path) -> None:
    """A count by group came with a narrow interval, and 40% of the people were not in it."""
    data = oracle.table(ROWS, DOMAINS, max_rows_per_group=3, max_groups=2)
    made = wi.Session(data, oracle.PLANS["add-remove"], tmp_path / "l.db").release(
        release.Mean(column="x", by="ward", name="days"), share=1
    )
    answer = made[0]
    wanted = (
        "Privacy unit: column who; at most 3 rows per person and group count; at most 2 groups "
        "per person count; x is clamped to 0..10; values of ward that were not declared are in "
        '"other". '
        "The interval is for the noise: it does not cover what this leaves out."
    )
    assert answer.statement.startswith(wanted)
    wanted = answer.statement
    counted = answer.question["counted"]
    assert counted["privacy_unit"] == "who" and counted["ranges"] == {"x": ["0", "10"]}
    assert (counted["max_rows_per_group"], counted["max_groups"]) == (3, 2)
    assert json.loads(json.dumps(made.to_dict()))["answers"][0]["statement"] == wanted
    assert wanted.replace('"', "&#34;") in html.notebook_html(answer)
    report = html.release_report("Days", oracle.PLANS["add-remove"], made)
    assert wanted.replace('"', "&#34;") in report
    assert answer.to_pandas().attrs["whosin"]["statement"] == wanted
    for path in table_views.save_answers(made, tmp_path / "x.parquet"):
        kept = json.loads(parquet.read_schema(path).metadata[b"whosin"])
        assert kept["statement"] == wanted and kept["counted"] == counted
    assert list(answer.to_polars().columns) == list(answer.columns)


@pytest.mark.parametrize(
    ("query", "said", "left_out"),
    [
        (release.Count(), "Privacy unit: column who.", False),
        (release.Count(by="sex"), "at most 1 group per person counts;", True),
        (release.Rows(), "at most 1 row per person counts.", True),
        (release.Median(column="x"), "x is clamped to 0..10.", False),
        (release.Median(column="x", interval=True), "x is clamped to 0..10.", True),
        (release.Top(by="ward", k=1), "of ward that were not declared are never named.", False),
        (release.Histogram(column="x"), "at most 1 group per person counts;", True),
    ],
    ids=lambda x: getattr(x, "kind", ""),
)
def test_statements_follow_the_question(query, said, left_out) -> None:
    data = told()
    estimate = query.estimate_cost(data, oracle.share(1))
    shown = query.answer(data, estimate)
    made = release.Answer("x", estimate.spend.what, tuple(shown["columns"]), (), "", Cost(0, 0))
    assert said in made.statement and (NOT_COVERED in made.statement) == left_out


def cautions(query, **options) -> list[tuple[str, tuple[str, ...]]]:
    data = told(**options)
    (estimate,) = estimate_batch_cost(data, oracle.WITH_DELTA["add-remove"], query)
    return [(caution.about, caution.columns) for caution in estimate.cautions]


def test_what_nobody_decided_is_warned_of() -> None:
    by_ward = release.Count(by="ward")
    assert cautions(by_ward) == [("max_groups", ("ward",))]
    assert cautions(by_ward, max_groups=1) == [], "1, because somebody said so"
    assert cautions(release.Count(by="ward", max_groups=1)) == []
    assert cautions(release.Count(by="sex")) == [], "constant for each person"
    assert cautions(release.Count(by=("sex", "ward"))) == [("max_groups", ("ward",))]
    assert cautions(release.Count()) == []
    assert cautions(release.Histogram(column="x")) == [("max_groups", ("x",))]
    assert cautions(release.Keys(column="ward")) == [("max_groups", ("ward",))]
    assert cautions(release.Top(by="ward", k=1)) == [], "everyone is in all their cells"
    assert cautions(release.Rows()) == [("max_rows_per_group", ())]
    both = [("max_rows_per_group", ("x",)), ("max_groups", ("ward",))]
    assert cautions(release.Sum(column="x", by="ward")) == both
    assert cautions(release.Sum(column="x", by="ward"), max_rows_per_group=2) == both[1:]
    assert cautions(release.Median(column="x")) == both[:1]
    assert cautions(release.Median(column="x", by="ward")) == both
    assert cautions(release.Sum(column="x", by="ward"), privacy_unit="row") == []


SCENARIO = """
[target]
epsilon = 1
[table]
source = "people.parquet"
privacy_unit = "who"
[domains]
ward = {{ values = ["A", "B"]{constant} }}
[[queries]]
kind = "count"
name = "people by ward"
by = ["ward"]
"""


def write(folder: Path, **words: str) -> Path:
    parquet.write_table(pa.table(ROWS), folder / "people.parquet")
    path = folder / "people.toml"
    path.write_text(SCENARIO.format(**{"constant": ""} | words), encoding="utf-8")
    return path


def test_the_dry_run_warns_and_a_constant_column_needs_none(run, tmp_path) -> None:
    path = write(tmp_path)
    code, out, _ = run("release", path, "--dry-run")
    assert code == 0 and "Warning, people by ward: ward may differ" in " ".join(out.split())
    data = json.loads(run("release", path, "--dry-run", "--json")[1])
    assert data["estimates"][0]["cautions"][0]["about"] == "max_groups"
    path = write(tmp_path, constant=", constant = true")
    assert "Warning" not in run("release", path, "--dry-run")[1]
    code, out, _ = run("release", path, "--yes")
    assert code == 0 and "at most 1 group per person counts" in " ".join(out.split())


def test_a_column_that_is_called_person(tmp_path) -> None:
    counted = release.Count().contribution_policy(
        oracle.table({"Person": ["a"]}, privacy_unit="Person")
    )
    assert bounds_statement(counted.to_dict(), False) == "Privacy unit: column Person."


def test_warnings_of_one_kind_are_one(capsys) -> None:
    """Four of them stood before the total."""
    data = oracle.table(ROWS, {"ward": ["A", "B"], "sex": ["f", "m"], "x": Range(0, 10)})
    asked: list[Any] = [release.Count(by=name, name=name) for name in ("ward", "sex")]
    asked += [release.Sum(column="x", by="ward", name="x"), release.Rows(name="all")]
    plan = oracle.PLANS["add-remove"]
    print_document(describe_estimates("t", plan, estimate_batch_cost(data, plan, asked)))
    said = " ".join(capsys.readouterr().out.split()).split("Warning, ")[1:]
    assert said[0].startswith(
        "ward, sex, x: ward and sex may differ between the rows of one person"
    )
    assert said[0].endswith("constant = true in the domains of ward and sex if they never differ. ")
    assert [each.partition(":")[0] for each in said[1:]] == ["x", "all"]


def test_the_dry_run_says_what_top_is_within(capsys) -> None:
    """It said: 95% within ±7, of no number at all."""
    data, plan = told(), oracle.PLANS["add-remove"]
    estimates = estimate_batch_cost(data, plan, release.Top(by="ward", k=1))
    print_document(describe_estimates("t", plan, estimates))
    out = " ".join(capsys.readouterr().out.split())
    assert estimates[0].within is not None
    more = format_figures(estimates[0].within, 3, "up")
    assert f"no value that is left out has more than {more} people more than one" in out
    assert "±" not in out


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_delta_that_nothing_uses_is_said(noise, capsys) -> None:
    """A promise that may fail allowed a smaller ε, without a word."""
    data, wanted = (
        told(),
        (wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5")),
    )
    pure, failing = (wi.calibrate(*wanted, delta=delta) for delta in (0, 1e-6))
    for plan, asked, unused in (
        (failing, [release.Count(), release.Top(by="ward", k=1)], noise == "laplace"),
        (failing, [release.Count(), release.Keys(column="ward")], False),
        (pure, [release.Count()], False),
        (wi.calibrate(wi.Epsilon(1), delta=1e-6), [release.Count()], False),
    ):
        asked = asked[:1] if noise == "gaussian" else asked
        estimates = estimate_batch_cost(
            data, plan, asked, noise="laplace" if plan is pure else noise
        )
        about = [[each.about for each in estimate.cautions] for estimate in estimates]
        assert all(("delta" in each) == unused for each in about)
        print_document(describe_estimates("t", plan, estimates))
        out = " ".join(capsys.readouterr().out.split())
        words = (
            "Warning: no answer uses delta: without it the plan would allow ε = 0.405465 instead of"
        )
        assert (f"{words} 0.3898" in out and "so less noise. In all" in out) == unused


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_constant_is_true_or_false(given) -> None:
    with refused("constant"):
        oracle.table(ROWS, {"ward": {"values": ["A"], "constant": given}})
    with refused("constant"):
        Range(0, 1, constant=given)


# One row is one person.


def test_each_row_can_be_one_person() -> None:
    """Against plain counting in Python; nothing is chosen, so nothing is random."""
    data = told(privacy_unit="row")
    assert data.by_row and data.privacy_unit == "row"
    assert oracle.exact(release.Count(), data) == [[7]]
    assert oracle.exact(release.Rows(), data) == [[7]]
    assert oracle.exact(release.Count(where="x > 3"), data) == [[4]]
    for query in (release.Count(by="ward"), release.Rows(by="ward")):
        assert oracle.exact(query, data) == [[4, 2, 1]]
    assert oracle.exact(release.Sum(column="x"), data) == [[33 * 10**5]]
    mean = release.Mean(column="x", by="sex")
    assert oracle.rows_in(mean, data) == [5, 2, 0]
    assert oracle.exact(mean, data)[0] == [19 * 10**5, 14 * 10**5, 0]
    assert oracle.exact(release.Histogram(column="x"), data) == [[4, 2, 1]]
    sharp = oracle.share(5000, delta="1/1000")
    ask = lambda query: query.answer(data, query.estimate_cost(data, sharp))["rows"]  # noqa: E731
    ((value, low, high),) = ask(release.Median(column="x", interval=True))
    assert value == 4 and 2 <= low <= 4 <= high <= 6, "it ends where both sides hold a row more"
    assert ask(release.Top(by="ward", k=2)) == [[1, "A"], [2, "B"]]
    assert ask(release.Keys(column="sex")) == [["f", 5, 5, 5], ["m", 2, 2, 2]]


def test_a_row_moves_an_answer_by_one_row() -> None:
    data = told(privacy_unit="row")
    for field in ("max_rows_per_group", "max_groups"):
        with refused(field):
            oracle.table(ROWS, DOMAINS, privacy_unit="row", **{field: 2})
        with refused(field):
            release.Rows(by="ward", **{field: 2}).estimate_cost(data, oracle.share(1))  # type: ignore[arg-type]
    assert release.Rows(by="ward").estimate_cost(data, oracle.share(1)).parts[0].noise.width == 1


def test_a_synthetic_table_of_rows(tmp_path) -> None:
    data = told(privacy_unit="row")
    query = release.Synthetic(columns=["ward"], path=str(tmp_path / "s.parquet"))
    answer = query.answer(data, query.estimate_cost(data, oracle.share(50, relation="replace")))
    assert answer["rows"][0][1] == 7
    query.publish(data, answer, None)  # what nobody stores is discarded
    assert not list(tmp_path.iterdir())


def test_a_maximum_needs_names() -> None:
    data = told(privacy_unit="row")
    plan = wi.calibrate(wi.Gamma(1.5), wi.families.Uninformed())
    query = release.Maximum(universe=[(name, place) for place, name in enumerate("abcdefgh")])
    with refused("maximum"):
        query.estimate_cost(data, Share(plan, oracle.share().epsilon))


def test_a_column_called_row_makes_it_ambiguous() -> None:
    named = {"row": [1, 1, 2], "x": [1, 2, 3]}
    with refused("privacy_unit", "row", hint=True):
        oracle.table(named, privacy_unit="row")
    assert oracle.exact(release.Count(), oracle.table(named, privacy_unit="column:row")) == [[2]]
    each = oracle.table(named, privacy_unit="each row")
    assert each.by_row and each.privacy_unit == "each row", "never the name of a column"
    assert oracle.exact(release.Count(), each) == [[3]]
    assert oracle.table(ROWS, privacy_unit="each row").privacy_unit == "row"
    assert oracle.table(ROWS, privacy_unit="column:who").privacy_unit == "who"
    both = named | {"each row": [1, 2, 3]}
    for given in ("row", "each row"):
        with refused("privacy_unit"):
            oracle.table(both, privacy_unit=given)
    literal = oracle.table({"column:x": [1, 1], "x": [1, 2]}, privacy_unit="column:x")
    assert literal.privacy_unit == "column:x", "a column's whole name comes first"


def test_the_curator_sees_how_many_rows_a_privacy_unit_has() -> None:
    found = {f.what: f.rows for f in check_table(told())}
    assert found["privacy units"] == 3 and found["the most rows of one privacy unit"] == 3
    assert found["privacy units with 1 row"] == 1 and found["privacy units with 2 rows"] == 1
    assert found["privacy units with 3 to 5 rows"] == 1
    assert found["privacy units with more rows than count, 1"] == 2
    assert found["ward: privacy units in more than one cell"] == 2
    assert found["ward: the most cells of one privacy unit"] == 2
    assert found["sex: privacy units in more than one cell, declared constant"] == 0
    assert found["rows without a privacy unit, which are dropped"] == 1
    several = told(max_groups=2)
    several.domains["sex"] = replace(several.domains["sex"], constant=False)
    named = next(f.what for f in check_table(several) if f.what.startswith("sex: privacy units"))
    assert "constant = true" in named and not any("constant = true" in what for what in found)
    alone = {f.what: f.rows for f in check_table(told(privacy_unit="row"))}
    assert alone["rows"] == alone["privacy units: each row is one"] == 7


def test_the_curator_sees_what_becomes_of_numbers_outside() -> None:
    """A histogram has them in "other", and nothing clamps them there."""
    elsewhere, numbers = "outside 0..10, ", "clamped in sums, means and medians"
    both = f'{elsewhere}in "other" in cells, {numbers}'
    said: dict[str, tuple[str, list[Any]]] = {
        "": (both, []),
        "cells": ('outside the bins 0..10, in "other"', [release.Histogram(column="x")]),
        "top": ("outside the bins 0..10, never named", [release.Top(by="x", k=1)]),
        "numbers": (f"{elsewhere}clamped", [release.Sum(column="x"), release.Count(by="ward")]),
        "both": (both, [release.Median(column="x"), release.Count(by="x")]),
    }
    for words, queries in said.values():
        data = told()
        found = check_table(data, counted=[query.contribution_policy(data) for query in queries])
        assert [(f.what, f.rows) for f in found if "outside" in f.what] == [(f"x: {words}", 1)]
    data = told()
    top, count = (
        query.contribution_policy(data)
        for query in (release.Top(by="ward"), release.Count(by="ward"))
    )
    for counted, words in (([top], "never named"), ([top, count], 'in "other"')):
        rows = {each.what: each.rows for each in check_table(data, counted=counted)}
        assert rows[f"ward: not a declared value, {words}"] == 1
    apart = oracle.table(ROWS, {"x": Range(0, 10, edges=(2, 5))})
    assert [(f.what, f.rows) for f in check_table(apart) if "outside" in f.what] == [
        (f"x: {elsewhere}{numbers}", 1),
        ('x: outside the bins 2..5, in "other" in cells', 4),
    ]


def test_the_curator_sees_how_people_are_spread_over_derived_groups() -> None:
    """By month or by canton somebody may be in fewer groups than by what they are made of."""
    rows = {
        "who": ["a", "a", "a", "b", "b", "c"],
        "day": ["2024-01-03", "2024-01-30", "2024-03-01", "2024-02-02", "1999-01-01", None],
        "town": ["Z", "W", "B", "Z", "W", "none"],
        "age": [31, 39, 40, 5, 5, None],
    }
    towns = {"values": ["Z", "W", "B"], "parents": {"canton": {"ZH": ["Z", "W"], "BE": ["B"]}}}
    days = {"lower": "2024-01-01", "upper": "2024-12-31", "outside": "drop"}
    domains = {"day": days, "town": towns, "age": (0, 100)}
    data = oracle.table(rows, domains)
    asked = [
        release.Count(by=["month(day)", "canton"]),
        release.Rows(by="decade(age)"),
        release.Marginals(columns=["cumulative(decade(age))", "town"]),
    ]
    policies = [each.contribution_policy(data) for each in asked]
    found = {each.what: each.rows for each in check_table(data, counted=policies)}
    several, most = "privacy units in more than one cell", "the most cells of one privacy unit"
    assert (found[f"month(day): {several}"], found[f"month(day): {most}"]) == (1, 2)
    assert (found[f"canton: {several}"], found[f"canton: {most}"]) == (1, 2)
    assert (found[f"decade(age): {several}"], found[f"decade(age): {most}"]) == (1, 2)
    assert (found[f"town: {several}"], found[f"town: {most}"]) == (2, 3)
    plain = {each.what for each in check_table(data)}
    assert not any(what.startswith(("month", "canton", "decade")) for what in plain)


def test_columns_that_are_alike_are_said_once() -> None:
    data = oracle.table(
        {"who": ["a"], "a": ["x"], "b": ["x"], "c": [1], "d": [1], "e": ["x"], "f": ["x"]},
        {
            **dict.fromkeys("ab", Values(("x", "y"))),
            **dict.fromkeys("cd", Range(0, 2, edges=(0, 1, 2), outside="clamp")),
            **dict.fromkeys("ef", Values(("x", "y"), outside="drop")),
        },
    )
    said = bounds_statement(
        release.Marginals(columns=list("abcdef")).contribution_policy(data).to_dict(), False
    )
    assert 'values of a and b that were not declared are in "other"' in said
    assert "c and d beyond the bins are in the first or the last one" in said
    assert "rows whose e or f was not declared do not count" in said


def test_a_report_says_what_was_asked_in_words(tmp_path) -> None:
    query = release.Marginals(
        sets=[["sex", "ward"], ["ranges(x)"]], ranges={"x": [[0, 5], [5, 10]]}, weights=[1, 2]
    )
    data = told()
    made = wi.Session(data, oracle.PLANS["add-remove"], tmp_path / "l.db").release(query, share=1)
    report = html.release_report("Tables", oracle.PLANS["add-remove"], made)
    assert "weights 1 and 2 — ε" in report and "0..5" in report


def test_the_curator_sees_which_values_are_misspelt() -> None:
    rows = {"who": [1, 2, 3, 4], "sex": ["Male", "Male", "female", None]}
    found = check_table(oracle.table(rows, {"sex": ["male", "female"]}))
    named = [(each.what, each.rows) for each in found if each.what.startswith("sex: '")]
    assert named == [
        ("sex: 'Male', which is not declared", 2),
        ("sex: 'male', which is declared", 0),
    ]
