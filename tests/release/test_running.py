"""Running totals: integer factorisations, participations, steps that are drawn and paid once."""

from __future__ import annotations

import ast
import itertools
import json
import math
import os
import random
import re
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import ExitStack, suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import command
import postgres
import release_oracle as oracle
import whosin as wi
from amounts import cases
from whosin import release
from whosin.errors import BudgetRefused, InvalidInput, ScanFailed
from whosin.ledger import Ledger, encoding
from whosin.noise.cumulative import CumulativeNoise, fresh_factor
from whosin.release import Count, Running, Session, Values
from whosin.release.answer import read_releases
from whosin.release.queries.running import TOTAL_COLUMNS, read_totals
from whosin.release.scenario import load_scenario
from whosin.report.releases import describe_answer

PERIODS = 6
DOMAINS = {
    "month": Values(list(range(1, PERIODS + 1)), outside="drop"),
    "ward": Values(["A", "B", "C"], outside="drop"),
}
PLANS = oracle.WITH_DELTA


SCHEMA = pa.schema({"who": pa.string(), "month": pa.int64(), "ward": pa.string()})


def table_of(rows: list[tuple[str, int, str]], **options) -> wi.Table:
    data = [dict(zip(SCHEMA.names, row, strict=True)) for row in rows]
    return oracle.table(pa.Table.from_pylist(data, SCHEMA), DOMAINS, **options)


def matrix(noise: CumulativeNoise) -> np.ndarray:
    size = noise.periods
    found = np.zeros((size, size), dtype=object)
    for row, column in itertools.product(range(size), repeat=2):
        if row >= column:
            found[row, column] = noise.coefficients[row - column]
    return found


def participations(size: int, times: int, apart: int):
    for number in range(times + 1):
        for chosen in itertools.combinations(range(size), number):
            if all(b - a >= apart for a, b in itertools.pairwise(chosen)):
                yield chosen


def random_noise(draw: random.Random, size: int) -> CumulativeNoise:
    rest = sorted((draw.randint(0, 5) for _ in range(size - 1)), reverse=True)
    return CumulativeNoise((draw.randint(5, 9), *rest))


# The mathematics.


@pytest.mark.parametrize("size", range(1, 9))
def test_worst_participation_is_that_of_enumeration(size: int) -> None:
    draw = random.Random(size)
    for times, apart in itertools.product(range(1, size + 2), range(1, size + 1)):
        for noise in (CumulativeNoise.choose(size, times, apart), random_noise(draw, size)):
            full = matrix(noise)
            worst = max(
                sum(int(each) ** 2 for each in full[:, list(chosen)].sum(axis=1))
                for chosen in participations(size, times, apart)
                if chosen
            )
            assert noise.squared_sensitivity(times, apart) == worst


def test_replaced_people_move_squares_by_no_more_than_twice_as_much() -> None:
    for size, times, apart in ((5, 1, 1), (5, 3, 1), (6, 2, 3)):
        noise = CumulativeNoise.choose(size, times, apart)
        full, most = matrix(noise), 2 * noise.squared_sensitivity(times, apart)
        patterns = list(participations(size, times, apart))
        for one, other in itertools.product(patterns, repeat=2):
            moved = full[:, list(one)].sum(axis=1) - full[:, list(other)].sum(axis=1)
            assert sum(int(each) ** 2 for each in moved) <= most


def test_error_at_a_year_of_days() -> None:
    noise = CumulativeNoise.choose(365)
    full = matrix(noise).astype(float)
    totals = np.tril(np.ones((365, 365))) @ np.linalg.inv(full)
    factor = np.linalg.norm(totals, axis=1).max() * np.linalg.norm(full, axis=0).max()
    assert 2.642 < factor <= 2.95
    assert noise.error_factor() == pytest.approx(factor, rel=1e-9)
    assert fresh_factor(365) == pytest.approx(19.105, abs=1e-3)
    assert noise.total_spreads == pytest.approx(np.linalg.norm(totals, axis=1), rel=1e-6)
    inverse = np.linalg.norm(np.linalg.inv(full), axis=1)
    assert noise.count_spreads == pytest.approx(inverse, rel=1e-6)


def test_a_choice_is_never_worse_than_fresh_noise() -> None:
    for periods, times, apart in itertools.product((1, 2, 12, 40), (1, 3, 40), (1, 5)):
        noise = CumulativeNoise.choose(periods, times, apart)
        fresh = fresh_factor(periods, times, apart)
        assert noise.error_factor(times, apart) <= fresh * (1 + 1e-9)
    monthly = CumulativeNoise.choose(365, 12, 30).error_factor(12, 30)
    assert monthly < fresh_factor(365, 12, 30) / 4


def test_measurements_are_integers_and_come_back_as_counts() -> None:
    draw = np.random.default_rng(0)
    for periods, times in ((1, 1), (7, 1), (40, 3)):
        noise = CumulativeNoise.choose(periods, times)
        counts = draw.integers(0, 1000, (periods, 3))
        measured = noise.measure(counts)
        assert measured.dtype == np.int64
        assert (measured == matrix(noise) @ counts.astype(object)).all()
        assert noise.estimate_counts(measured) == pytest.approx(counts, abs=1e-6)
        early = noise.estimate_totals(measured[: periods // 2 + 1])
        assert early == pytest.approx(np.cumsum(counts, axis=0)[: periods // 2 + 1], abs=1e-6)


def test_integer_noise_on_fractions_would_show_a_parity() -> None:
    """The counter-example: Cx + z for C = [[1, 0], [1/2, 1]] has the parity of x₁ in its second
    number, so that neighbours have no answer in common, whatever the noise; C̃ has integers."""
    half = Fraction(1, 2)
    noisy = [{(half * count + other) % 1 for other in range(-50, 50)} for count in (3, 4)]
    assert not noisy[0] & noisy[1]
    with pytest.raises(ValueError, match="integers"):
        CumulativeNoise((1, half))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="rise"):
        CumulativeNoise((1, 2))
    with pytest.raises(ValueError, match="integers"):
        CumulativeNoise((2.0, 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("coefficients", [(2, 1), (3, 2, 1)])
def test_joint_divergence_of_all_steps_is_within_rho(coefficients: tuple[int, ...]) -> None:
    """Rényi divergences of the joint channel, by summing over all of its outputs; the later steps'
    own shift depends on the outputs before, as with adaptive people who come later."""
    noise, variance = CumulativeNoise(coefficients), 12.0
    rho = noise.squared_sensitivity() / (2 * variance)
    reach = np.arange(-45, 46)
    weights = np.exp(-(reach**2) / (2 * variance))
    law = dict(zip(reach.tolist(), (weights / weights.sum()).tolist(), strict=True))
    shift = coefficients  # of someone who counts in the first period
    for alpha in (1.5, 2.0, 4.0):
        total = 1.0
        for step in shift:  # independent given the past: factors of the joint sum
            total *= sum(
                law[z] ** alpha * law.get(z - step, 0) ** (1 - alpha)
                for z in law
                if abs(z - step) <= 40 and abs(z) <= 40
            )
        found = math.log(total) / (alpha - 1)
        assert found <= alpha * rho * (1 + 1e-6)
        assert found >= alpha * rho * 0.98  # tight: less would not do


def test_neighbouring_tables_are_told_apart_as_well_as_rho_says() -> None:
    """The best attack on all steps of a stream, on the person who moves them most."""
    from whosin.noise import GaussianNoise

    matrix_noise = CumulativeNoise.choose(12, 2, 3)
    rho = Fraction(1, 2)
    square = matrix_noise.squared_sensitivity(2, 3)
    noise = GaussianNoise.at_rho(square, rho)
    person = np.zeros(12, np.int64)
    person[[0, 3]] = 1
    others = np.arange(12)
    moved = matrix_noise.measure((person + others)[:, None])[:, 0]
    moved -= matrix_noise.measure(others[:, None])[:, 0]
    draws = 4000
    scores = noise.draw((draws, 12)) @ moved / (noise.spread * np.linalg.norm(moved))
    distance = np.linalg.norm(moved) / noise.spread
    assert distance**2 == pytest.approx(2 * float(rho), rel=1e-9)  # just what was paid
    assert abs(scores.mean()) < 4 / math.sqrt(draws)
    assert abs(scores.std() - 1) < 4 / math.sqrt(2 * draws)


# The query.


def counted(rows, times: int, gap: int, groups: int | None) -> dict[tuple[int, str], int]:
    """How many people each period and ward has, from the definition."""
    mine = defaultdict(set)
    for who, month, ward in rows:
        if who is not None and month in range(1, PERIODS + 1) and ward in "ABC":
            mine[who].add((month, ward))
    found: dict[tuple[int, str], int] = defaultdict(int)
    for pairs in mine.values():
        kept: list[int] = []
        for month in sorted({month for month, _ in pairs}):
            if len(kept) < times and (not kept or month >= kept[-1] + gap):
                kept.append(month)
        for month in kept:
            wards = sorted(ward for each, ward in pairs if each == month)
            for ward in wards if groups is None else wards[:groups]:
                found[month, ward if groups is not None else ""] += 1
            if groups is None:
                found[month, ""] = found[month, ""] - len(wards) + 1
    return found


def random_rows(draw: random.Random) -> list[tuple[str, int, str]]:
    size = draw.randint(0, 25)
    people = [None, *"abcdef"]
    return [
        (draw.choice(people), draw.randint(0, PERIODS + 1), draw.choice("ABCD"))
        for _ in range(size)
    ]


def scan(query: Running, table: wi.Table) -> np.ndarray:
    cells = query.cells(table)
    result = table.engine.run(query.exact(table, cells))
    (counts,) = cells.dense(result, ["people"])
    return counts.reshape(PERIODS, -1)


@cases(20, 200)
def test_counts_are_those_of_the_definition(count: int) -> None:
    draw = random.Random(5)
    for _ in range(count):
        rows = random_rows(draw)
        times, gap, groups = draw.randint(1, 6), draw.randint(1, 3), draw.choice([None, 1, 2])
        by = {} if groups is None else {"by": "ward", "max_groups": groups}
        query = Running(column="month", max_periods=times, min_gap=gap, upto="1", **by)
        if groups is None:
            rows = [(who, month, min(ward, "C")) for who, month, ward in rows]
        expected = counted(rows, times, gap, groups)
        found = scan(query, table_of(rows))
        wards = [""] if groups is None else list("ABC")
        for month, place in itertools.product(range(PERIODS), range(len(wards))):
            assert found[month, place] == expected[month + 1, wards[place]]


@cases(15, 200)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_neighbour_moves_the_measurements_by_more_than_what_is_paid(
    relation: str, count: int
) -> None:
    draw = random.Random(len(relation))
    for _ in range(count):
        times, gap, groups = draw.randint(1, 4), draw.randint(1, 3), draw.choice([0, 1, 2])
        by = {"by": "ward", "max_groups": groups} if groups else {}
        query = Running(column="month", max_periods=times, min_gap=gap, upto="1", **by)
        rows = random_rows(draw)
        rest = [row for row in rows if row[0] != "a"]
        other = [("a", month, ward) for _, month, ward in random_rows(draw)]
        tables = [rest, rest + other] if relation == "add-remove" else [rows, rest + other]
        one, two = (scan(query, table_of(each)) for each in tables)
        data = table_of(rows)
        noise = query._matrix(data)
        moved = noise.measure(one) - noise.measure(two)
        assert int((moved**2).sum()) <= query._square(data, noise, relation)


@cases(6, 60)
def test_earlier_periods_count_alike_in_later_files(count: int) -> None:
    draw = random.Random(9)
    query = Running(column="month", max_periods=2, min_gap=2, upto="1")
    for _ in range(count):
        rows = random_rows(draw)
        whole = scan(query, table_of(rows))
        for month in range(1, PERIODS + 1):
            early = scan(query, table_of([row for row in rows if row[1] <= month]))
            assert (early[:month] == whole[:month]).all()


# Sessions.

ROWS = [(f"p{number}", 1 + number % PERIODS, "ABC"[number % 3]) for number in range(60)]


def ask(ledger, upto: int, *, rows=ROWS, **options) -> release.Release:
    known = {"share": "1/2", "amend": True} | options.pop("session", {})
    query = Running(column="month", upto=str(upto), **options)
    early = [row for row in rows if row[1] <= upto]
    plan = PLANS["add-remove"]
    data = table_of(early, engine=release.DuckDB(threads=1))
    with Session(data, plan, ledger, queries=(query,), **known) as session:
        return session.release(query, noise="gaussian")


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as found:
        yield found


def test_each_month_is_drawn_once_and_all_are_paid_at_the_beginning(ledger) -> None:
    first = ask(ledger, 2)
    spent = ledger.budget_state("people").spent
    assert [row[0] for row in first[0].rows] == ["1", "2"]
    again = ask(ledger, 2)
    later = ask(ledger, 4)
    assert first[0].rows == again[0].rows == later[0].rows[:2]
    assert len(later[0].rows) == 4
    assert ledger.budget_state("people").spent == spent
    debits = [entry for entry in ledger.history("people") if entry.kind == "debit"]
    assert len(debits) == 4
    assert [entry.body["costs"]["add-remove"]["rho"] > 0 for entry in debits] == [True] + [
        False
    ] * 3
    wi.ledger.verify(ledger, "people")
    assert read_rows(ledger)[0].rows == later[0].rows


def read_rows(ledger) -> release.Release:
    from whosin.release.answer import read_releases

    (found,) = read_releases(ledger, "people")
    return found


def test_a_stream_goes_on_when_nothing_is_left(ledger) -> None:
    first = ask(ledger, 1, session={"share": 1})
    assert not ledger.budget_state("people").spendable_units
    later = ask(ledger, 3, session={"share": 1})
    assert later[0].rows[:1] == first[0].rows
    with pytest.raises(BudgetRefused):  # another stream is another question
        ask(ledger, 3, session={"share": 1}, max_periods=2)


@pytest.mark.parametrize("periods", [1, 2])
def test_totals_of_several_periods_are_said_to_be_no_people(ledger, periods) -> None:
    """A total above the number of people was read as one of them."""
    made = ask(ledger, 3, max_periods=periods)
    above, _, _ = repr(describe_answer(made[0])).partition("Privacy unit")
    assert ("A person counts in up to 2 periods of a total." in above) == (periods == 2)


def test_two_at_once_draw_each_step_once(ledger) -> None:
    found, errors = [], []

    def run(upto: int) -> None:
        try:
            with wi.Ledger(ledger.name, who="tests") as own:
                found.append(ask(own, upto, session={"amend": False}, rows=ROWS[:1]))
        except Exception as error:
            errors.append(error)

    ask(ledger, 1, rows=ROWS[:1])
    threads = [threading.Thread(target=run, args=(upto,)) for upto in (3, 3, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    longest = max(found, key=lambda each: len(each[0].rows))[0].rows
    for each in found:
        assert each[0].rows == longest[: len(each[0].rows)]
    answers = [entry for entry in ledger.history("people") if entry.kind == "answer"]
    assert len(answers) == len({entry.request for entry in answers}) == 5


def test_a_step_that_failed_is_drawn_later_from_the_next_file(ledger, monkeypatch) -> None:
    first = ask(ledger, 2)
    original, failing = Running.answer, [True]

    def answer(self, table, estimate, progress=None):
        if estimate.details.step == 4 and failing[0]:
            raise RuntimeError("row of p3")
        return original(self, table, estimate, progress)

    monkeypatch.setattr(Running, "answer", answer)
    with pytest.raises(ScanFailed):
        ask(ledger, 4)
    ledger.resume("people")
    failing[0] = False
    third = ask(ledger, 5)
    assert third[0].rows[:2] == first[0].rows
    assert len(third[0].rows) == 5
    wi.ledger.verify(ledger, "people")


def test_other_declarations_are_another_stream(ledger, monkeypatch) -> None:
    """What a person moves all measurements by is paid for, also where an amendment moves that
    person's rows into another period, when earlier steps have counted them already."""
    from whosin.noise import GaussianNoise

    monkeypatch.setattr(GaussianNoise, "draw", lambda _, size: np.zeros(size, np.int64))

    def measure(rows, name: str) -> tuple[list[tuple[int, Fraction]], Fraction]:
        steps = []
        for upto in range(1, PERIODS + 1):
            outside = 1 if upto < PERIODS else PERIODS
            month = Values(list(range(1, PERIODS + 1)), outside=outside)
            data = oracle.table(table_of(rows).data.to_pyarrow(), DOMAINS | {"month": month})
            query = Running(column="month", upto=str(upto))
            options = {"dataset": name, "share": "1/4", "amend": True, "preflight": False}
            options["new_people"] = True
            with Session(data, PLANS["add-remove"], ledger, queries=(query,), **options) as asked:
                asked.release(query, noise="gaussian")
        variance, paid = {}, Fraction(0)
        _, entries, answers = ledger.record(name)
        for entry in entries:
            if entry.kind == "debit":
                home, what = entry.request.partition("/")[0], entry.body["what"]
                variance.setdefault(home, Fraction(what.get("variance", 0)))
                paid += Fraction(entry.body["costs"]["add-remove"]["rho"], encoding.EPSILON_UNITS)
                (row,) = json.loads(answers[entry.request])["rows"]
                steps.append((row[-1], variance[home]))
        return steps, paid

    one, paid = measure(ROWS, "with")
    two, _ = measure([*ROWS, ("a", 0, "A")], "without")
    assert len(one) == len(two) >= PERIODS
    pairs = zip(one, two, strict=True)
    moved = sum(Fraction(a - b) ** 2 / (2 * width) for (a, width), (b, _) in pairs)
    assert 0 < moved <= paid


def test_a_period_that_is_not_over_is_never_drawn() -> None:
    months = [f"{year}-{month:02d}" for year in (2020, 2999) for month in range(1, 13)]
    data = oracle.table(
        pa.table({"who": ["a"], "month": ["2020-01"]}), {"month": Values(months, outside="drop")}
    )
    assert Running(column="month", upto="2020-12").last_step(data) == 12
    with pytest.raises(InvalidInput, match="not over") as caught:
        Running(column="month", upto="2999-01").last_step(data)
    assert caught.value.field == "upto"


def test_a_request_that_is_called_like_a_step_is_none(ledger) -> None:
    query, data = Running(column="month", upto="1"), table_of(ROWS)
    named = {"request": query.stream_request(data), "share": "1/4", "preflight": False}
    with Session(data, PLANS["add-remove"], ledger, **named) as session:
        session.release([Count(), Count(where="month = 1")])
    debits = ledger.budget_state("people").debits
    with pytest.raises(BudgetRefused), Session(data, PLANS["add-remove"], ledger) as session:
        session.release(query, share="1/4", noise="gaussian")
    assert ledger.budget_state("people").debits == debits


def test_others_in_a_batch_are_paid_as_before(ledger) -> None:
    batch = [Count(), Running(column="month", upto="2")]
    with Session(table_of(ROWS), PLANS["add-remove"], ledger) as session:
        estimates = session.dry_run(batch, share="1/2", noise="gaussian")
        answers = session.release(batch, share="1/2", noise="gaussian")
    assert [answer.title for answer in answers] == ["count", "running"]
    spent = ledger.budget_state("people").spent.rho
    assert spent == sum(each.spend.cost("add-remove").rho for each in estimates)
    with Session(table_of(ROWS), PLANS["add-remove"], ledger) as session:
        estimates = session.dry_run(batch, share="1/4", noise="gaussian")
        assert [each.spend.cost("add-remove").rho > 0 for each in estimates] == [True, False]
        again = session.release(batch, share="1/4", noise="gaussian")
    assert again[1].rows == answers[1].rows


def ask_batch(ledger, **options) -> release.Release:
    """A running total between two counts, in a session of its own."""
    batch = [Count(), Running(column="month", upto="2"), Count(by="month")]
    budget = {"share": "1/2", "noise": "gaussian"} | options.pop("budget", {})
    with Session(table_of(ROWS), PLANS["add-remove"], ledger, **options) as session:
        return session.release(batch, **budget)


@pytest.mark.parametrize("request_name", ["january", None])
@pytest.mark.parametrize("split", ["weights", "optimal"])
def test_a_batch_with_a_stream_repeats_for_nothing(ledger, request_name, split) -> None:
    """Its other questions have the noise that the stream beside them left, also when it is paid."""
    asked = {"request": request_name, "budget": {"split": split}}
    first = ask_batch(ledger, **asked)
    before = ledger.budget_state("people")
    again = ask_batch(ledger, **asked)
    assert [each.rows for each in again] == [each.rows for each in first]
    assert [each.noise for each in again] == [each.noise for each in first]
    assert ledger.budget_state("people") == before
    if request_name:  # the name is that of this batch, and of no other
        with pytest.raises(BudgetRefused) as caught:
            ask_batch(ledger, request=request_name, budget={"split": split, "share": "1/4"})
        assert caught.value.field == "request"
    assert ledger.budget_state("people") == before


@pytest.mark.parametrize("request_name", ["january", None])
def test_a_batch_with_a_stream_goes_on_after_a_failure(ledger, monkeypatch, request_name) -> None:
    original = Count.answer

    def answer(self, table, estimate, progress=None):
        if self.by:
            raise RuntimeError("row of p3")
        return original(self, table, estimate, progress)

    with monkeypatch.context() as broken:
        broken.setattr(Count, "answer", answer)
        with pytest.raises(ScanFailed):
            ask_batch(ledger, request=request_name)
    spent = ledger.budget_state("people").spent
    ledger.resume("people")
    assert len(ask_batch(ledger, request=request_name)) == 3
    assert ledger.budget_state("people").spent == spent


def test_a_named_batch_beside_a_stream_of_another_keeps_its_price(ledger) -> None:
    """A stream that was paid for before a batch leaves all of its share to the others, each time;
    one that was paid with it does not."""
    ask(ledger, 2, session={"share": "1/4"})
    other = Running(column="month", upto="2", max_periods=2)
    batch = [Running(column="month", upto="2"), Count(), other]
    with Session(table_of(ROWS), PLANS["add-remove"], ledger, request="r", amend=True) as session:
        estimates = session.dry_run(batch, share="1/4", noise="gaussian")
        first = session.release(batch, share="1/4", noise="gaussian")
    before = ledger.budget_state("people")
    with Session(table_of(ROWS), PLANS["add-remove"], ledger, request="r") as session:
        assert [each.within for each in session.dry_run(batch, share="1/4", noise="gaussian")] == [
            each.within for each in estimates
        ]
        again = session.release(batch, share="1/4", noise="gaussian")
    assert [each.rows for each in again] == [each.rows for each in first]
    assert ledger.budget_state("people") == before


@pytest.mark.parametrize("other", [{}, {"upto": "3"}, {"name": "again", "weight": 2}])
@pytest.mark.parametrize("paid", [False, True])
def test_one_running_total_twice_in_a_batch_is_refused(ledger, other, paid) -> None:
    """They would be one stream, with one payment, and two shares of the batch."""
    known = {"column": "month", "upto": "2"}
    if paid:
        ask(ledger, 2)
    before = ledger.budget_state("people").debits if paid else 0
    batch = [Running(**known), Count(), Running(**known | other)]
    named = {"preflight": False, "amend": paid}
    with Session(table_of(ROWS), PLANS["add-remove"], ledger, queries=batch, **named) as session:
        for way in (session.dry_run, session.release):
            with pytest.raises(InvalidInput) as caught:
                way(batch, share="1/4", noise="gaussian")
            assert caught.value.path == "queries[2]"
    assert ledger.budget_state("people").debits == before


def test_streams_about_parts_are_paid_by_everyone(ledger) -> None:
    """Whoever moves to another part between two files is in both streams: side by side they would
    be paid for once."""
    data = oracle.table(
        pa.Table.from_pylist([{"who": f"p{n}", "month": 1, "ward": "AB"[n % 2]} for n in range(9)]),
        DOMAINS | {"ward": Values(["A", "B"], constant=True)},
        part="ward",
        engine=release.DuckDB(threads=1),
    )
    batch = [Running(column="month", upto="1", part=each) for each in "AB"]
    with Session(data, PLANS["add-remove"], ledger, queries=batch) as session:
        session.release(batch, share="1/2", noise="gaussian")
    state = ledger.budget_state("people")
    assert state.debits == 2 and state.spent.rho <= state.budget.rho / 2
    assert state.spent == state.accounts.everyone


def test_intervals_cover_and_narrower_ones_do_not() -> None:
    noise = CumulativeNoise.choose(12)
    from whosin.noise import GaussianNoise

    spread = GaussianNoise.at_rho(noise.squared_sensitivity(), Fraction(1, 100))
    what = {
        "column": "month",
        "coefficients": noise.coefficients,
        "variance": str(spread.width),
        "periods": list(range(12)),
    }
    counts = np.arange(12)[:, None] * 7
    exact, totals = noise.measure(counts)[:, 0], np.cumsum(counts)
    inside, narrow, runs = np.zeros(2), 0, 600
    for _ in range(runs):
        drawn = (exact + spread.draw(12)).tolist()
        steps = [({"what": what}, {"columns": ["m"], "rows": [[each]]}) for each in drawn]
        rows = np.array([row[1:] for row in read_totals(steps)["rows"]])
        value, low, high, _, own_low, own_high = rows.T
        inside += (
            (low <= totals).__and__(totals <= high).mean(),
            ((own_low <= counts[:, 0]) & (counts[:, 0] <= own_high)).mean(),
        )
        narrow += (abs(value - totals) <= 0.7 * (high - value)).mean()
    assert (inside / runs > 0.93).all()
    assert narrow / runs < 0.9


def test_what_is_wrong_is_refused_and_costs_nothing(ledger) -> None:
    data, plan = table_of(ROWS), PLANS["add-remove"]
    wrong = [
        (Running(column="month", upto="9"), "gaussian", "upto"),
        (Running(column="month", upto="2"), "laplace", "noise"),
        (Running(column="month"), "gaussian", "upto"),
        (Running(column="nothing", upto="2"), "gaussian", None),
        (Running(column="month", upto="2", by="month"), "gaussian", None),
    ]
    with Session(data, plan, ledger) as session:
        for query, noise, field in wrong:
            with pytest.raises(InvalidInput) as caught:
                session.release(query, share="1/2", noise=noise)
            assert field is None or caught.value.field.endswith(field)
        for bad in ({"max_periods": 0}, {"min_gap": 0}, {"max_periods": "2"}):
            with pytest.raises(InvalidInput):
                Running(column="month", **bad)
        assert not ledger.budget_state("people").debits
    pure = oracle.PLANS["add-remove"]
    with wi.Ledger(ledger.name + ".pure") as other, Session(data, pure, other) as session:
        with pytest.raises(InvalidInput) as caught:
            session.release(Running(column="month", upto="2"), share=1)
        assert caught.value.field.endswith("noise")
        assert not other.budget_state("people").debits


SCENARIO = """
[target]
posterior = 0.75
delta = 1e-6
[adversary]
prior = 0.5
[table]
source = "visits.csv"
privacy_unit = "who"
[domains]
visit = { lower = "2026-01-01", upper = "2026-12-31", edges = "month" }
[budget]
noise = "gaussian"
[[queries]]
kind = "running"
column = "visit"
max_periods = 2
"""


def test_the_command_publishes_month_after_month(tmp_path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "month.toml").write_text(SCENARIO)
    lines = ["who,visit"]
    tables = []
    for month in (1, 2, 3):
        lines += [f"p{number},2026-0{month}-11" for number in range(100)]
        (tmp_path / "visits.csv").write_text("\n".join(lines))
        scenario = SCENARIO + f'upto = "2026-0{month}"\n'
        (tmp_path / "month.toml").write_text(scenario)
        done = run("release", "month.toml", "--ledger", "l.db", "--amend", "--json")
        tables.append(command.answer(done)["answers"][0])
    assert tables[0]["columns"] == ["visit", *TOTAL_COLUMNS]
    assert tables[1]["rows"] == tables[2]["rows"][:2]
    with wi.Ledger(tmp_path / "l.db") as opened:
        assert opened.budget_state("visits").spent.rho < encoding.INFINITE_UNITS
    shown = run("release", "month.toml", "--ledger", "l.db", "--dry-run", "--json")
    assert command.answer(shown)["estimates"][0]["costs"]["add-remove"]["rho"] == 0
    (tmp_path / "month.toml").write_text(SCENARIO + 'upto = "2027-01"\n')
    command.refused(run("release", "month.toml", "--ledger", "l.db"), "upto", "2026-12")


@pytest.mark.parametrize("named", [(), ("--request", "january")])
def test_the_command_repeats_a_batch_with_a_stream_for_nothing(
    tmp_path, monkeypatch, run, named
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [f"p{number},2026-01-11" for number in range(100)]
    (tmp_path / "visits.csv").write_text("\n".join(["who,visit", *lines]))
    asked = SCENARIO.replace("[budget]", '[budget]\nshare = "1/2"') + 'upto = "2026-01"\n'
    asked += '[[queries]]\nkind = "count"\n'
    (tmp_path / "batch.toml").write_text(asked)
    command_line = ("release", "batch.toml", "--ledger", "l.db", "--json", *named)
    priced = command.answer(run(*command_line, "--dry-run"))
    first, again = (json.loads(run(*command_line, *more)[1]) for more in (("--yes",), ()))
    assert again["answers"] == first["answers"]
    assert command.answer(run(*command_line, "--dry-run"))["estimates"] == priced["estimates"]
    with wi.Ledger(tmp_path / "l.db") as opened:
        assert opened.budget_state("visits").debits == 2
    stream = asked[asked.index("[[queries]]") :].partition('[[queries]]\nkind = "count"')[0]
    (tmp_path / "batch.toml").write_text(asked + stream)
    command.refused(run(*command_line), "question 3", "the same running total")


def test_a_file_that_lost_periods_is_refused_before_it_is_drawn(tmp_path, monkeypatch, run) -> None:
    monkeypatch.chdir(tmp_path)

    def ask_month(months: list[int], upto: int, *more: str):
        lines = [f"p{number},2026-0{month}-11" for month in months for number in range(2000)]
        (tmp_path / "visits.csv").write_text("\n".join(["who,visit", *lines]))
        (tmp_path / "month.toml").write_text(SCENARIO + f'upto = "2026-0{upto}"\n')
        return run("release", "month.toml", "--ledger", "l.db", "--amend", "--yes", *more)

    assert ask_month([1], 1)[0] == ask_month([1, 2], 2)[0] == 0
    for months, gone in (([3], "2026-01, 2026-02"), ([1, 2], "2026-03"), ([1, 3], "2026-02")):
        code, out, err = ask_month(months, 3)
        assert (code, out) == (1, "") and f"running: no row in {gone}" in " ".join(err.split())
        assert "keep the rows of all periods" in " ".join(err.split())
        with wi.Ledger(tmp_path / "l.db") as opened:
            assert opened.budget_state("visits").debits == 2
    code, out, _ = ask_month([1, 2], 3, "--no-preflight")
    assert code == 0 and "a person may count in up to 2 periods of the total" in " ".join(
        out.split()
    )
    heads, *rows = [
        line.split() for line in out.splitlines() if "2026-0" in line or "visit " in line
    ]
    assert " ".join(heads) == "visit value 95% interval in_period 95% interval"
    assert all(re.fullmatch(r"-?\d,\d{3}|-?\d{1,3}", row[5]) for row in rows), rows
    assert "," in rows[0][5]


def write_stream(folder: Path, rows: str, upto: str, privacy_unit: str = "who") -> None:
    (folder / "visits.csv").write_text(f"who,visit\n{rows}\n")
    text = SCENARIO.replace('"who"', f'"{privacy_unit}"')
    (folder / "month.toml").write_text(f'{text}upto = "2026-{upto}"\n')


JANUARY = "\n".join(f"p{number},2026-01-11" for number in range(2000))
FEBRUARY = "\n".join(f"q{number},2026-02-11" for number in range(2000))
MOVED = JANUARY.replace("p7,2026-01-11", "p7,2026-03-11")


@pytest.mark.parametrize("unit", ["who", "row"])
def test_rows_of_earlier_periods_that_changed_are_seen_and_accepted_once(
    tmp_path, monkeypatch, run, unit
) -> None:
    """A file that keeps the last visit of each person alone was published without a word, and can
    say 6.5 times as much of someone as was paid for in a year."""
    monkeypatch.chdir(tmp_path)
    release_month = ["release", "month.toml", "--ledger", "l.db", "--amend"]

    def ask_month(rows: str, upto: str, *more: str) -> tuple[int, str]:
        write_stream(tmp_path, rows, upto, unit)
        code, _, err = run("", *release_month, *more)
        return code, " ".join(err.split())

    assert ask_month(JANUARY, "01") == (0, "")
    changed = f"{MOVED}\n{FEBRUARY}"
    code, err = ask_month(changed, "02")
    assert code == 1 and "running: the rows of 2026-01 have changed since they were counted" in err
    assert "--yes releases it as it is" in err
    assert err.count("have changed") == 2  # what was found, and what stopped it
    with Ledger("l.db") as ledger:
        assert ledger.budget_state("visits").debits == 1
    # Another order, or a person twice in a month, changes nothing that is counted.
    same = "\n".join(reversed(f"{JANUARY}\n{FEBRUARY}".split()))
    same += "\np7,2026-01-11" if unit == "who" else ""
    assert ask_month(same, "02") == (0, "")
    # What was accepted once is not asked again: the newest step was drawn from these rows.
    further = f"{changed}\nr,2026-03-04"
    code, err = ask_month(further, "03")
    assert code == 1 and "the rows of 2026-01 have changed" in err
    assert ask_month(further, "03", "--yes")[0] == 0
    assert ask_month(f"{further}\ns,2026-04-04", "04") == (0, "")
    code, err = ask_month(f"{same}\ns,2026-04-04\nt,2026-05-04", "05")
    assert code == 1 and "the rows of 2026-03 have changed" in err


def test_an_amendment_and_a_session_say_that_earlier_rows_changed(
    tmp_path, monkeypatch, run
) -> None:
    monkeypatch.chdir(tmp_path)
    write_stream(tmp_path, JANUARY, "01")
    assert run("release month.toml --ledger l.db")[0] == 0
    write_stream(tmp_path, MOVED, "03")
    _, _, err = run("ledger amend l.db visits --scenario month.toml")
    assert "the rows of 2026-01 have changed" in " ".join(err.split())
    loaded = load_scenario("month.toml", ledger="l.db")
    for options in ({"preflight": True}, {}):
        with loaded.open_session(**options) as session:
            if options:
                with pytest.raises(BudgetRefused, match="the rows of 2026-01 have changed"):
                    loaded.release(session)
            else:
                assert loaded.release(session)[0].rows


def test_what_is_kept_of_earlier_rows_tells_nothing_without_the_key(
    tmp_path, monkeypatch, run
) -> None:
    """Two streams about the same rows, and two steps of one, keep unlike digests; neither a debit
    nor an answer that is shown has any, and no digest is that of a guess without the key."""
    monkeypatch.chdir(tmp_path)
    write_stream(tmp_path, f"{JANUARY}\n{FEBRUARY}", "02")
    text = (tmp_path / "month.toml").read_text()
    (tmp_path / "month.toml").write_text(text.replace("[budget]", '[budget]\nshare = "1/2"'))
    assert run("release month.toml --ledger l.db --json")[0] == 0
    (tmp_path / "other.toml").write_text(
        (tmp_path / "month.toml").read_text().replace("max_periods = 2", "max_periods = 1")
    )
    assert run("release other.toml --ledger l.db --json")[0] == 0
    with Ledger("l.db") as ledger:
        answers = ledger.answers("visits", "running-")
        sealed = [digest for each in answers.values() for digest in each["sealed"]]
        assert len(answers) == 4 and len(set(sealed)) == len(sealed) == 8
        shown = str([entry.to_dict() for entry in ledger.history("visits")])
        shown += str([each.to_dict() for each in read_releases(ledger, "visits")])
        assert not any(digest in shown for digest in sealed)
        loaded = load_scenario("month.toml", ledger="l.db")
        table, (query,) = loaded.open_table(), loaded.queries
        prints = query.period_prints(table)
        texts = [encoding.canonical_json([home, each]) for home in answers for each in prints]
        registered = ledger.budget_state("visits").registered
        assert {registered.seal("rows", text) for text in texts} & set(sealed)
        other = type(registered).of(registered.registration)
        assert not {other.seal("rows", text) for text in texts} & set(sealed)
        assert not {encoding.digest_text(text) for text in texts} & set(sealed)


def test_a_draft_proposes_running_totals_as_the_guide_has_them(tmp_path, run) -> None:
    (tmp_path / "v.csv").write_text(
        "who,visit\n" + "\n".join(f"p{n},2026-01-1{n}" for n in range(9))
    )
    code, out, _ = run("draft", str(tmp_path / "v.csv"), "--privacy-unit", "who")
    begins = out.index('# kind = "running"')
    asked = out[begins:].split("#\n")[0]
    assert code == 0 and '# column = "visit"' in asked and '# upto = "2024-01"' in asked
    assert 'edges = "month" in its domain\n# kind = "running"' in out


ASKING = """
import sys
from test_running import PLANS, ROWS, Running, Session, release, table_of
data = table_of(ROWS, engine=release.DuckDB(threads=1))
query = Running(column="month", upto=sys.argv[2])
with Session(data, PLANS["add-remove"], sys.argv[1], who="tests", queries=(query,)) as session:
    print("ready", flush=True)
    print(session.release(query, share="1/2", noise="gaussian")[0].rows, flush=True)
"""


@pytest.mark.parametrize("store", ["file", "server"])
@cases(2, 200)
def test_killed_askers_leave_one_payment_and_one_draw_of_each_step(tmp_path, store, count) -> None:
    draw, shown = random.Random(count), {}
    with ExitStack() as stack:
        url = str(tmp_path / "ledger.db")
        if store == "server":
            postgres.require()
            url = stack.enter_context(postgres.server()).url
        paths = [*sys.path, str(Path(__file__).parent)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        for number in range(count):
            upto = str(1 + PERIODS * number // count)
            words = [sys.executable, "-c", ASKING, url, upto]
            pipe, null = subprocess.PIPE, subprocess.DEVNULL
            with subprocess.Popen(
                words, stdout=pipe, stderr=null, text=True, env=environment
            ) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                with suppress(subprocess.TimeoutExpired):
                    process.wait(draw.choice([0, 0.01, 0.03, 0.1, 20]))
                process.kill()
                for line in process.stdout.read().splitlines()[:1]:
                    for row in ast.literal_eval(line):
                        assert shown.setdefault(row[0], row) == row
        with wi.Ledger(url, who="tests") as opened:
            last = ask(opened, PERIODS, session={"amend": False})
            assert all(row == shown.get(row[0], row) for row in last[0].rows)
            history = opened.history("people")
            paid = [e.body["costs"]["add-remove"]["rho"] for e in history if e.kind == "debit"]
            assert paid[0] > 0 and not any(paid[1:]) and len(paid) == PERIODS
            assert opened.budget_state("people").spent.rho == paid[0]
            assert not wi.ledger.verify(opened, "people").unanswered
