"""Cells that are too noisy to read: marked from the answer alone, wherever it is shown."""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from rich.console import Console

import release_oracle as oracle
import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Ledger
from whosin.release import (
    Count,
    Keys,
    Marginals,
    Mean,
    Median,
    Quantile,
    Range,
    Rows,
    Sum,
    Top,
    Values,
)
from whosin.release.answer import Answer, read_releases, too_noisy
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.cost import NOISY_LEVEL
from whosin.release.inspection import look_before_debit, run_preflight
from whosin.report import html, releases, table_views
from whosin.report.terminal import print_document, print_table

ROWS = {
    "who": [f"p{each}" for each in range(400)],
    "ward": ["A"] * 380 + ["B"] * 20,
    "x": [5.0] * 400,
}
DOMAINS = {"ward": ["A", "B", "C"], "x": Range(0, 10)}


def made(*queries, ledger):
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], ledger, preflight=False)
    return session.release(list(queries), share=1)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("epsilon", ["1/10", "1/30"])
def test_a_count_is_marked_by_the_standard_deviation_of_its_noise(
    noise: str, epsilon: str, tmp_path
) -> None:
    """Counts of 49 and 50 with Laplace noise of scale 10 had a star: a half interval is 2.12
    standard deviations of it, and was taken for 1.96."""
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-6)
    (found,) = estimate_batch_cost(data, plan, Count(), share=epsilon, noise=noise)
    limit = math.sqrt(found.parts[0].noise.variance) / NOISY_LEVEL
    assert found.readable_from == pytest.approx(limit, rel=0.03)
    for value, marked in ((ceil(limit * 1.03), False), (int(limit * 0.97), True)):
        row = value, value - found.within, value + found.within
        columns = "value", "low", "high"
        answer = Answer("n", {"query": "count"}, columns, (row,), found.noise, Cost(0, 0))
        assert answer.noisy == (marked,)


def test_marks_are_those_of_the_definition() -> None:
    rows: list[list[Any]] = [
        ["a", 100, 100 - 196, 100 + 196],  # a relative standard error of 1
        ["b", 100, 100 - 58, 100 + 58],  # of 0.296
        ["c", 100, 100 - 60, 100 + 60],  # of 0.306
        ["d", -100, -158, -42],
        ["e", 0, -1, 1],
        ["f", 0, 0, 0],
        ["g", 10, 4, 40],  # one that is not symmetric
        ["h", 99, 0, 99],  # a mean of nobody, cut off at the ends of its range
        ["i", 99, 80, 100],  # a mean of many near the end
    ]
    columns = ("ward", "value", "low", "high")
    wanted = []
    for _, value, low, high in rows:
        error = Fraction(max(high - value, value - low)) / Fraction("1.96")
        wanted.append(error > Fraction("0.3") * abs(value))
    assert too_noisy(columns, rows, signed=True) == tuple(wanted)
    wanted[3] = True  # what cannot be below 0
    assert too_noisy(columns, rows) == tuple(wanted)
    assert (
        wanted == [True, False, True, True, True, False, True, True, False] and NOISY_LEVEL == 0.3
    )
    assert too_noisy(("rank", "ward"), [[1, "A"]]) == ()


def test_a_mean_whose_interval_is_the_whole_range_is_marked(tmp_path) -> None:
    """The cells of C and of other are empty: whatever the noise is, their means say nothing."""
    answer = made(Mean(column="x", by="ward"), ledger=tmp_path / "l.db")[0]
    for row, marked in zip(answer.rows, answer.noisy, strict=True):
        assert marked or row[-2:] != (0, 10)
    rows = (("A", 97, 60, 100), ("B", 97, 96, 100), ("C", 100, 60, 100), ("other", 80, 60, 100))
    counted = {**answer.question["counted"], "ranges": {"x": ("60", "100")}}
    changed = replace(answer, rows=rows, question={**answer.question, "counted": counted})
    assert changed.noisy == (True, False, True, True)


def test_every_showing_marks_them(tmp_path) -> None:
    release = made(Count(by="ward", name="people"), ledger=tmp_path / "l.db")
    # What was drawn, replaced by numbers that are known.
    rows = (("A", 380, 370, 390), ("B", 20, 5, 35), ("C", 3, -7, 13), ("other", 0, -10, 10))
    answer = replace(release[0], rows=rows)
    release = replace(release, answers=(answer,))
    assert answer.noisy == (False, True, True, True)
    note = "* Too noisy to read: a relative standard error above 30% (3 of 4 cells)."
    assert answer.noisy_note == note
    data = json.loads(json.dumps(release.to_dict()))["answers"][0]
    assert data["noisy"] == [False, True, True, True] and data["noisy_note"] == note
    assert data["rows"][1] == ["B", 20, 5, 35], "numbers stay numbers"
    shown = io.StringIO()
    print_table(Console(file=shown, width=120), table_views.answer_table(answer))
    text = shown.getvalue()
    assert " *20 " in text and " 380 " in text and "*380" not in text
    for page in (
        html.notebook_html(answer),
        html.release_report("t", oracle.PLANS["add-remove"], release),
    ):
        assert note in page and ">*20<" in page and ">380<" in page and ">*B<" not in page
    quiet = replace(answer, rows=rows[:1])
    assert quiet.noisy == (False,) and quiet.noisy_note == ""
    assert "Too noisy" not in html.notebook_html(quiet)


@pytest.mark.parametrize(
    "query",
    [Count(), Mean(column="x", by="ward"), Marginals(columns=["ward"]), Keys(column="ward")],
    ids=lambda query: query.kind,
)
def test_answers_with_intervals_have_marks_for_each_row(tmp_path, query) -> None:
    [answer] = made(query, ledger=tmp_path / "l.db")
    assert len(answer.noisy) == len(answer.rows)
    for each in answer.tables:
        assert len(each.noisy) == len(each.rows)


def test_others_have_none(tmp_path) -> None:
    [answer] = made(Top(by="ward", k=1), ledger=tmp_path / "l.db")
    assert isinstance(answer, Answer) and answer.noisy == () and answer.noisy_note == ""
    assert "noisy" not in answer.to_dict()


def test_what_cannot_be_below_zero_and_is_has_a_mark(tmp_path) -> None:
    """A count of -3,043 that is surely below 0 is noise; a sum of what can be negative is not."""
    rows = (("A", -3043, -4679, -1407),)
    domains = {**DOMAINS, "x": Range(-10, 10)}
    data = oracle.table(ROWS, domains, max_groups=1, max_rows_per_group=1)
    asked = [Count(by="ward"), Sum(column="x", by="ward"), Sum(column="x", factor=2, offset=20)]
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], tmp_path / "l.db")
    answers = session.release(asked, share=1)
    marks = [replace(each, rows=[rows[0][-len(each.columns) :]]).noisy for each in answers]
    assert marks == [(True,), (False,), (True,)]


def test_a_rank_without_an_interval_says_how_many_rows_it_needs(tmp_path) -> None:
    """The cell of other has no row, and nothing public or paid for tells."""
    queries = [Median(column="x", by="ward"), Quantile(column="x", quantile="1/10")]
    queries += [Median(column="x", interval=True)]
    release = made(*queries, ledger=tmp_path / "l.db")
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], tmp_path / "m.db")
    estimates = session.dry_run(queries, share=1)
    for answer, each, least in zip(release, estimates, (0.5, 0.1, None), strict=True):
        if least is None:
            assert "star" not in answer.statement and answer.details is None
        else:
            needed = ceil(each.within / least)
            assert f"with fewer than about {needed:,} rows" in answer.statement
    ledger = Ledger(tmp_path / "l.db")
    [again] = read_releases(ledger, release.budget_state.dataset)
    assert [each.statement for each in again] == [each.statement for each in release]


def test_two_questions_of_one_kind_have_titles_of_their_own(tmp_path) -> None:
    """Beforehand, in the look and in the answers; a name that was given stays."""
    queries = [Count(by="ward"), Count(by="ward", where="x > 1"), Count(name="all"), Count()]
    titles = ["count by ward", "count by ward where x > 1", "all", "count"]
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], tmp_path / "l.db", preflight=False)
    [alone] = session.dry_run([Count(by="ward")], share=1)
    assert alone.title == "count"
    estimates = session.dry_run(queries, share=1)
    assert [each.title for each in estimates] == titles
    release = session.release(queries, share=1)
    assert [each.title for each in release] == titles
    assert all("name" not in each.question for each in (release[0], release[1], release[3]))
    [again] = read_releases(Ledger(tmp_path / "l.db"), release.budget_state.dataset)
    assert [each.title for each in again] == titles


def test_a_release_is_stopped_in_words_by_question(tmp_path) -> None:
    rows = {"who": [f"p{i % 9}" for i in range(90)], "ward": ["A", "B", "C"] * 30, "x": [5.0] * 90}
    data = oracle.table(rows, DOMAINS, max_groups=1, max_rows_per_group=2)
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], tmp_path / "l.db")
    queries = [Rows(by="ward"), Rows()]
    found = look_before_debit(data, queries, session.dry_run(queries, share=1))
    with pytest.raises(BudgetRefused) as refused:
        found.require_accepted("--yes")
    words = "max_rows_per_group = 2 leaves out more than a quarter of the rows"
    assert f"spent: rows by ward: {words}; rows: {words}; --yes" in str(refused.value)


@pytest.mark.parametrize("by", [(), "ward"])
@pytest.mark.parametrize("rows_each", [6, 200])
def test_bounds_that_leave_much_out_of_a_total_are_to_be_accepted(tmp_path, by, rows_each) -> None:
    """Few people have most of the rows: a number of rows and a sum miss these, a mean does not."""
    sizes = {f"p{i}": rows_each if i < 15 else 4 for i in range(100)}
    whose = [who for who, size in sizes.items() for _ in range(size)]
    rows = {
        "who": whose,
        "ward": [who[-1] for who in whose],
        "x": [i % 11 for i in range(len(whose))],
    }
    domains = {"ward": Values(tuple("0123456789")), "x": Range(0, 10)}
    data = oracle.table(rows, domains, max_groups=1, max_rows_per_group=4)
    session = wi.Session(data, oracle.WITH_DELTA["add-remove"], tmp_path / "l.db", preflight=True)
    queries = [Rows(by=by), Sum(column="x", by=by), Mean(column="x")]
    found = look_before_debit(data, queries, session.dry_run(queries, share=1))
    lost = sum(max(size - 4, 0) for size in sizes.values())
    assert [(each.rows, each.lost) for each in found.bounds] == [(len(whose), lost)] * 2 + [(0, 0)]
    assert sum("more than a quarter of the rows" in each for each in found.asks) == 2 * (
        lost > len(whose) / 4
    )
    said = [line for line in found.lines if f"leaves out {lost:,} of {len(whose):,} rows (" in line]
    assert len(said) == 2 and all("), of 15.0% of the people; with 5: " in line for line in said)
    with pytest.warns(UserWarning, match="for the curator alone") as warned:
        released = session.release(queries, share=1)
    assert any("max_rows_per_group = 4 leaves out" in str(each.message) for each in warned)
    outside = ["the true total may be far outside" in each.statement for each in released]
    assert outside == [True, True, False]


@pytest.mark.parametrize(
    ("query", "cut"),
    [
        (Median(column="age"), False),
        (Mean(column="age", by="sex"), False),
        (Mean(column="age", where="x > 2"), False),
        (Marginals(columns=["sex", "age"], max_rows_per_group=1), False),
        (Mean(column="age", by="ward"), True),
        (Mean(column="x"), True),
        (Rows(by="sex"), True),
    ],
    ids=str,
)
def test_further_rows_of_a_constant_column_are_nothing_left_out(query, cut) -> None:
    """Everyone has three rows: of what is the same in all of them one says everything."""
    domains = DOMAINS | {
        "sex": Values(("f", "m"), constant=True),
        "age": Range(0, 90, edges=(0, 40, 90), constant=True),
    }
    whose = [i // 3 for i in range(90)]
    rows = {
        "who": [f"p{i}" for i in whose],
        "ward": ["A", "A", "B"] * 30,
        "x": [5.0] * 90,
        "sex": ["fm"[i % 2] for i in whose],
        "age": [float(i) for i in whose],
    }
    data = oracle.table(rows, domains, max_groups=3, max_rows_per_group=1)
    policy = query.contribution_policy(query.restrict_table(data))
    found = run_preflight(data, [policy], [query])
    assert bool([each for each in found.bounds if each.bound == "max_rows_per_group"]) is cut


def test_a_dry_run_explains_the_star_and_says_a_rank_once(tmp_path) -> None:
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    plan = oracle.WITH_DELTA["add-remove"]
    session = wi.Session(data, plan, tmp_path / "l.db", preflight=False)
    for share, starred in (("1/50", True), (1, False)):
        estimates = session.dry_run([Median(column="x")], share=share)
        marked = any(each.noisy for each in estimates[0].expected)
        shown = io.StringIO()
        made = releases.describe_estimates("t", plan, estimates)
        print_document(made, Console(file=shown, width=200))
        text = shown.getvalue()
        assert ("* Too noisy to read." in text) == marked == ("*" in text) and marked >= starred
        assert "rank of the value" not in text and text.count("of the rank") == 1


def test_what_is_left_is_a_warning_where_most_of_it_is_taken(tmp_path) -> None:
    """A month's share of a year is none."""
    data = oracle.table(ROWS, DOMAINS, max_groups=1, max_rows_per_group=1)
    for month, share in enumerate(("1/12", "1/12", "3/4")):
        plan, ledger = oracle.PLANS["add-remove"], tmp_path / "l.db"
        session = wi.Session(data, plan, ledger, share=share, request=str(month), preflight=False)
        session.ask(Rows())
        said = [each for each in session.notes if "session takes" in each]
        assert len(said) == (month == 2)
