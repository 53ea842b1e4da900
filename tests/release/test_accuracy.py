"""How good answers will be, said beforehand: against simulation, brute force and the answers."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import whosin as wi
from amounts import some
from release_oracle import ENGINE
from whosin import marginals, release
from whosin.errors import BudgetRefused, InvalidInput
from whosin.exact import format_figures, format_percent
from whosin.ledger import encoding
from whosin.marginals.estimation import estimate_table
from whosin.release.accuracy import list_contained, plan_widths, suggest_changes
from whosin.release.answer import read_releases
from whosin.release.budget_allocation import estimate_batch_cost, needed_share
from whosin.release.cost import (
    NOISY_LEVEL,
    CostEstimate,
    SelectionNoise,
    Share,
    interval_deviations,
    is_too_noisy,
)
from whosin.release.queries.base import Query
from whosin.release.queries.quantile import RankQuery
from whosin.release.scenario import load_scenario
from whosin.report.releases import suggestion_words

LAPLACE = wi.calibrate(wi.Epsilon("1/2"))
GAUSSIAN = wi.calibrate(wi.Epsilon("1/2"), delta=1e-6)
DOMAINS = {
    "age": {"lower": 0, "upper": 100},
    "sex": ["f", "m"],
    "ward": ["A", "B", "C", "D"],
    "bill": {"lower": 0, "upper": 50, "step": "0.5"},
}
QUESTIONS: list[Query] = [
    release.Count(),
    release.Count(by=["sex", "ward"]),
    release.Rows(),
    release.Histogram(column="ward"),
    release.Sum(column="bill"),
    release.Mean(column="age"),
    release.Mean(column="age", by="sex", factor=-2, offset=7),
    release.Variance(column="age"),
    release.Deviation(column="age"),
    release.Median(column="age"),
    release.Median(column="age", interval=True),
    release.Quantile(column="bill", quantile="1/4"),
    release.Top(by="ward", k=2),
    release.Marginals(columns=["sex", "ward"], order=2),
]


@cache
def evenly(rows: int, people: int | None = None, max_rows: int = 1) -> release.Table:
    """Values that are spread evenly over their declared ranges; a table compiles what it is asked
    once."""
    data = {
        "who": [f"p{index}" for index in range(rows)],
        "age": np.linspace(0, 100, rows).tolist(),
        "bill": np.linspace(0, 50, rows).tolist(),
        "sex": ["fm"[index % 2] for index in range(rows)],
        "ward": ["ABCD"[index % 4] for index in range(rows)],
        "key": [f"k{index % 5}" for index in range(rows)],
    }
    known: Any = {"people": people, "max_rows_per_group": max_rows, "engine": ENGINE}
    return release.Table(pa.table(data), "who", DOMAINS, name="evenly", **known)


def estimate(query: Query, table: release.Table, plan: wi.Plan = LAPLACE) -> CostEstimate:
    noise = "gaussian" if plan.delta and (query.sums or query.selects) else "laplace"
    return estimate_batch_cost(table, plan, [query], noise=noise)[0]


def repeated_answers(found: CostEstimate, table: release.Table, times: int) -> Any:
    """(exact answer, values, low and high ends) of many draws of noise on one scan."""
    query: Any = found.query
    cells = query.cells(table)
    result = table.engine.run(found.expression, None)
    exact = cells.dense(result, [each.part.name for each in found.parts])
    truth = query.finish(table, [each[:1] for each in exact], found.parts)[0][0]
    noisy = [one[0] + each.noise.draw(times) for one, each in zip(exact, found.parts, strict=True)]
    return truth, *query.finish(table, noisy, found.parts)


@pytest.mark.parametrize("plan", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    "query",
    some(
        [
            release.Mean(column="age"),
            release.Mean(column="bill", factor=3),
            release.Deviation(column="bill"),
            release.Variance(column="age"),
        ],
        2,
    ),
    ids=lambda query: f"{query.kind} {query.column}",
)
def test_expected_errors_of_quotients_are_those_of_many_answers(query: Any, plan: wi.Plan) -> None:
    rows = 4_000
    table = evenly(rows, people=rows)
    found = estimate(query, table, plan)
    (said,) = found.expected
    assert said.rows == rows and said.error is not None and said.within is not None
    truth, values, low, high = repeated_answers(found, table, 8_000)
    error, within = float(np.mean(np.abs(values - truth))), float(np.mean(high - low)) / 2
    assert error == pytest.approx(said.error, rel=0.04)
    assert within == pytest.approx(said.within, rel=0.04)
    assert np.mean((low <= truth) & (truth <= high)) >= 0.945
    for wrong in (0.9, 1.1):  # a claim that is off by a tenth is refuted
        assert error != pytest.approx(said.error * wrong, rel=0.04)
        assert within != pytest.approx(said.within * wrong, rel=0.04)


def flipped(weights: list[Fraction]) -> list[Fraction]:
    """Permute and flip, order by order: what exponential noise on scores selects by."""
    chances = [Fraction(0)] * len(weights)
    orders = list(itertools.permutations(range(len(weights))))
    for order in orders:
        left = Fraction(1, len(orders))
        for position in order:
            chances[position] += left * weights[position]
            left *= 1 - weights[position]
    return chances


def test_the_law_of_a_selection_is_that_of_permute_and_flip() -> None:
    scores = np.array([0.0, -1.0, -0.5, -3.0, 0.0, -8.0])
    for scale in (Fraction(1, 3), Fraction(1), Fraction(7)):
        weights = [Fraction(math.exp(each / scale)) for each in scores]
        law = SelectionNoise(scale, gumbel=False).probabilities(scores)
        assert law == pytest.approx([float(each) for each in flipped(weights)], abs=1e-12)
        whole = math.fsum(map(float, weights))
        gumbel = SelectionNoise(scale, gumbel=True).probabilities(scores)
        assert gumbel == pytest.approx([float(each) / whole for each in weights], abs=1e-12)
        assert law != pytest.approx(gumbel.tolist(), abs=1e-3)


@pytest.mark.parametrize("plan", [LAPLACE, GAUSSIAN], ids=["exponential", "gumbel"])
def test_expected_errors_of_quantiles_are_those_of_many_answers(plan: wi.Plan) -> None:
    rows = 300
    table = evenly(rows, people=rows)
    query = release.Quantile(column="age", quantile="1/4")
    found = estimate(query, table, plan)
    (said,) = found.expected
    assert said.error is not None and said.within is not None
    result = table.engine.run(found.expression, None)
    positions, counts = (result.column(name).to_numpy() for name in ("position", "rows"))
    points = query.grid(table)
    rounded = points.rounded(positions, counts)
    draws = [float(query._select(points, rounded, found.details)[0]) for _ in range(6000)]
    far = np.abs(np.array(draws) - 25)
    assert float(far.mean()) == pytest.approx(said.error, rel=0.1)
    assert float(np.mean(far <= said.within + 0.5)) >= 0.94
    assert float(far.mean()) != pytest.approx(said.error * 1.25, rel=0.1)
    assert float(np.mean(far <= said.within * 0.7)) < 0.93


def test_keys_say_how_likely_they_show() -> None:
    table = evenly(50)
    plan = wi.calibrate(wi.Epsilon("1/20"), delta=1e-6)
    found = estimate_batch_cost(table, plan, [release.Keys(column="key")])[0]
    noise, threshold = found.parts[0].noise, found.details
    for said in found.expected:
        assert said.rows is not None and said.shown is not None
        shown = float(np.mean(said.rows + noise.draw(20_000) >= threshold))
        assert shown == pytest.approx(said.shown, abs=0.015)
    chances = [said.shown or 0.0 for said in found.expected]
    assert chances == sorted(chances) and chances[0] < 0.5 < chances[-1]


def test_randomised_rows_say_how_many_change() -> None:
    plan = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())
    query = release.Synthetic(columns=["ward"], path="rows.parquet")
    found = estimate_batch_cost(evenly(10), plan, [query])[0]
    (said,) = found.expected
    codes = np.arange(20_000) % 5
    changed = float(np.mean(found.details.draw(codes) != codes))
    assert said.of_rows and said.error is not None
    assert changed == pytest.approx(said.error, abs=0.015)
    assert changed != pytest.approx(said.error * 1.1, abs=0.015)


def test_a_learned_table_says_how_much_its_noise_moves() -> None:
    pytest.importorskip("mbi")
    from whosin.release.marginal_workloads import estimate_workload, measure_counts

    query = release.Synthetic(
        columns=["sex", "ward"], path="m.parquet", method="marginals", sets=[["sex", "ward"]]
    )
    table, rows = evenly(10, people=5_000), 5_000
    found = estimate_batch_cost(table, LAPLACE, [query])[0]
    (said,) = found.expected
    learned = found.details
    zeros = [
        np.zeros(learned.workload.shape(each.measurement.attributes), np.int64)
        for each in learned.tables
    ]
    moved = []
    for _ in range(80):
        measured = measure_counts(learned.tables, zeros)
        tables = estimate_workload(learned.workload, learned.tables, measured)[1]
        moved.append(float(np.abs(tables[-1]).sum()) / (2 * rows))
    assert said.of_rows and said.error is not None
    assert float(np.mean(moved)) == pytest.approx(said.error, rel=0.2)  # normal, not Laplace noise
    assert float(np.mean(moved)) != pytest.approx(said.error * 1.5, rel=0.2)


@pytest.mark.parametrize("plan", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("query", QUESTIONS, ids=lambda query: query.kind)
def test_every_kind_says_what_to_expect_and_no_row_plays_a_part(
    query: Query, plan: wi.Plan
) -> None:
    found = [estimate(query, evenly(rows), plan) for rows in (1, 500)]
    assert found[0].expected and found[0].expected == found[1].expected
    assert found[0].readable_from == found[1].readable_from
    for said in found[0].expected:
        assert said.within is not None and said.within > 0
    sizes = [said.rows for said in found[0].expected]
    assert sizes in ([None], [100, 1_000, 10_000])
    errors = [said.within for said in found[0].expected if said.within is not None]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("query", QUESTIONS[:-2], ids=lambda query: query.kind)
def test_the_mark_and_the_readable_size_follow_one_rule(query: Query) -> None:
    """What is said to be readable is not marked where the answer is as expected, and less is."""
    table = evenly(10)
    found = estimate(query, table)
    assert found.readable_from is not None
    if found.readable_unit in ("people", "rows") and found.expected[0].rows is not None:
        noise: Any = found.parts or found.details
        for rows, marked in ((found.readable_from, False), (found.readable_from * 0.9, True)):
            said = query.expected_error(table, noise, round(rows))
            assert said is not None and said.noisy is marked
    else:
        assert found.within is not None
        for value, marked in ((found.readable_from, False), (found.readable_from - 1, True)):
            ends = value - found.within, value + found.within
            spread = interval_deviations(found.noise)
            assert is_too_noisy(value, *ends, deviations=spread) is marked


def test_groups_that_cannot_all_be_readable_are_counted() -> None:
    many = release.Count(by=["sex", "ward"])
    found = estimate(many, evenly(10, people=40))
    assert found.groups == 8 and found.readable_from is not None
    assert found.noisy_groups == 8 - 40 // found.readable_from > 0
    assert estimate(many, evenly(10, people=10**6)).noisy_groups == 0
    assert estimate(many, evenly(10)).noisy_groups is None


def test_people_with_several_rows_make_larger_groups() -> None:
    """With a public number of people a group has one row of each at the least, and at most all that
    count: what says nothing at both ends is stopped, and nothing else."""
    found = estimate(release.Mean(column="age"), evenly(10, people=60, max_rows=8))
    assert [each.rows for each in found.expected] == [60, 480]
    assert [each.fills for each in found.expected] == [True, False]
    assert not found.says_nothing
    one = estimate(release.Mean(column="age"), evenly(10, people=60))
    assert [each.rows for each in one.expected] == [60]


def test_a_synthetic_table_is_readable_by_the_same_rule() -> None:
    table = evenly(10)
    query = release.Synthetic(columns=["sex", "ward"], path="x.parquet", method="marginals")
    found = estimate(query, table)
    assert found.readable_from is not None
    for part, marked in ((1, False), (0.9, True)):
        said = query.expected_error(table, found.details, round(found.readable_from * part))
        assert said is not None and said.error is not None
        assert said.noisy is marked is (said.error > NOISY_LEVEL)


def test_answers_that_would_fill_the_range_are_named() -> None:
    small, large = (
        estimate_batch_cost(evenly(10, people=people), LAPLACE, QUESTIONS[5:9])
        for people in (10, 10**6)
    )
    named = [each.query.title for each in small if each.says_nothing]
    assert "mean" in named and not any(each.says_nothing for each in large)


@pytest.mark.parametrize("query", QUESTIONS, ids=lambda each: each.kind)
def test_below_a_number_of_rows_the_interval_is_the_whole_range(query: Query) -> None:
    table = evenly(10)
    found = estimate(query, table)
    if query.kind in ("mean", "variance", "deviation"):
        assert found.told_from is not None and found.readable_from is not None
        assert found.told_from < found.readable_from
    if found.told_from is not None:
        for rows, fills in ((found.told_from, False), (round(found.told_from * 0.95) - 1, True)):
            said = query.expected_error(table, found.parts or found.details, rows)
            assert said is not None and said.fills is fills


@pytest.mark.parametrize(("weight", "asks"), [(4, False), (6, True)])
def test_the_look_says_which_answers_need_more_rows_than_there_are(weight: int, asks: bool) -> None:
    """A mean and a median were paid for that no number of rows of the table could make readable."""
    from whosin.release.inspection import look_before_debit

    table = evenly(400)
    batch = [release.Count(), release.Median(column="age", where="age > 1", weight=weight)]
    batch[0] = replace(batch[0], weight=10 - weight)
    estimates = estimate_batch_cost(table, wi.calibrate(wi.Epsilon("1/16")), batch)
    rows = 400
    found = look_before_debit(table, batch, estimates)
    assert estimates[0].readable_from < rows < estimates[1].readable_from
    assert [title for title, _, _ in found.unreadable] == [estimates[1].title]
    assert found.unreadable_part == pytest.approx(weight / 10, rel=1e-6)
    assert [line for line in found.lines if "more weight" in line]
    assert bool([each for each in found.asks if "too noisy to read" in each]) is asks


def test_the_look_counts_the_groups_that_are_too_small() -> None:
    """Rows that count, of people: three of p, of whom two rows count, are two; "other" is none."""
    from whosin.release.inspection import run_preflight

    held = {"A": 9, "B": 3, "C": 1, "Z": 40}
    rows = [(f"{ward}{n % 6}", ward) for ward, count in held.items() for n in range(count)]
    rows += [("p", "D")] * 3 + [("q", "D"), ("r", "A")]
    data: dict[str, list[Any]] = {"who": [who for who, _ in rows], "ward": [w for _, w in rows]}
    data |= {"age": [5.0] * len(rows)}
    for unit, sizes in (
        ("who", {"A": 10, "B": 3, "C": 1, "D": 3}),
        ("row", held | {"A": 10, "D": 4}),
    ):
        known = {"max_rows_per_group": 2} if unit == "who" else {}
        domains = {key: DOMAINS[key] for key in ("age", "ward")}
        table = release.Table(pa.table(data), unit, domains, name="look", **known)  # type: ignore[arg-type]
        query = release.Mean(column="age", by="ward")
        for least in (1, 2, 3, 4, 5, 11):
            policy = query.contribution_policy(table)
            found = run_preflight(table, [policy], [query], [least])
            small = sum(size < least for ward, size in sizes.items() if ward in "ABCD")
            assert [(each.groups, each.small) for each in found.groups] == [(4, small)] * bool(
                small
            )


WIDTHS: list[Query] = [
    release.Count(within=50),
    release.Count(by=["sex", "ward"], within=20),
    release.Rows(within=7),
    release.Histogram(column="ward", within="12.5"),
    release.Sum(column="bill", within=300),
    release.Mean(column="age", within=3),
    release.Mean(column="age", by="sex", within=3),
    release.Deviation(column="age", within=5),
    release.Median(column="age", within=4),
]


@pytest.mark.parametrize("plan", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("query", WIDTHS, ids=lambda query: f"{query.kind} {query.within}")
def test_a_width_gets_just_what_it_needs(query: Query, plan: wi.Plan) -> None:
    table, gaussian = evenly(10, people=2_000), bool(plan.delta)
    share = needed_share(query, table, plan, gaussian)
    for factor, kept in ((1, True), (Fraction(97, 100) ** (1 + gaussian), False)):
        given = Share(plan, share.epsilon * factor, share.rho * factor)
        noise, rows = query.plan_noise(table, given), 2_000 // query.group_count(table)
        if isinstance(query, RankQuery) or len(noise) > 1:
            said = query.expected_error(table, noise, rows)
            assert said is not None and said.within is not None
            within = said.within
            if not kept and isinstance(query, RankQuery):
                continue  # on a grid of points
        else:
            within = noise[0].interval_radius()
        assert (within <= Fraction(str(query.within))) is kept


def test_a_batch_of_widths_spends_their_sum_and_no_more(tmp_path: Path) -> None:
    table = evenly(400, people=400)
    asked = [
        release.Count(within=60),
        release.Count(by="sex", within=80),
        release.Sum(column="bill", within=4_000),
    ]
    plan = wi.calibrate(wi.Epsilon(1))
    needed = [needed_share(query, table, plan).epsilon for query in asked]
    with release.Session(table, plan, tmp_path / "l.db", share=1) as session:
        session.release(asked)
        spent = 1 - Fraction(session.budget_state.spendable)
        assert spent == pytest.approx(float(sum(needed)), abs=1e-6)
        assert spent < Fraction(1, 2)
    with_rest = estimate_batch_cost(table, plan, [asked[0], release.Count(by="ward")])
    total = sum(each.spend.cost("add-remove").epsilon for each in with_rest)
    assert total == pytest.approx(encoding.EPSILON_UNITS, rel=1e-6)
    assert with_rest[0].within == 60 and (with_rest[1].within or 99) < 6


@pytest.mark.parametrize(
    ("query", "settings", "field"),
    [
        (release.Mean(column="age", within=3), {}, "within"),
        (release.Top(by="ward", k=1, within=3), {}, "within"),
        (release.Synthetic(columns=["sex"], path="s.parquet", within=3), {}, "within"),
        (release.Marginals(columns=["sex"], order=1, within="1/2"), {}, "within"),
        (release.Count(within=50), {"split": "relative-error"}, "split"),
    ],
)
def test_widths_that_cannot_be_had_are_refused(
    query: Query, settings: dict[str, Any], field: str, tmp_path: Path
) -> None:
    with (
        release.Session(evenly(10), LAPLACE, tmp_path / "l.db", share=1) as session,
        pytest.raises(InvalidInput) as error,
    ):
        session.release([query], **settings)
    assert error.value.field == field and error.value.hint
    assert session.budget_state.debits == 0


WIDE = ("0.6", 1, "1.49", 2, "2.99", 5, "5.01", "7.99", 30)


def draw_noise(noise: Any, shape: tuple[int, ...], source: np.random.Generator) -> Any:
    """Noise by its law, from a generator whose draws can be had again."""
    if noise.kind == "gaussian":
        far = 12 * math.ceil(math.sqrt(noise.variance)) + 12
        near = np.arange(-far, far + 1)
        weights = np.exp(-(near**2) / (2 * float(noise.sigma_squared)))
        return source.choice(near, shape, p=weights / weights.sum())
    chance = 1 - math.exp(-1 / float(noise.scale))
    return source.geometric(chance, shape) - source.geometric(chance, shape)


def share_inside(query: Any, table: release.Table, noisy: Any, seed: int) -> list[float]:
    """For the worst cell of each table how often the noise alone keeps its width."""
    asked, source = query.tables(table), np.random.default_rng(seed)
    times, measurements = 40_000, [each.measurement for each in noisy]
    drawn = [
        draw_noise(each.noise, (times, *each.measurement.shape(asked.workload.sizes)), source)
        for each in noisy
    ]
    variances = [each.noise.variance for each in noisy]
    residuals = marginals.estimate_residuals(asked.workload, measurements, variances, drawn)
    found = []
    for number, attributes in enumerate(asked.workload.sets):
        cells = estimate_table(asked.workload, residuals, attributes)
        cells = np.abs(marginals.sum_cells(cells, asked.workload.sums[number]))
        inside = (cells <= float(Fraction(str(query.within)))).reshape(times, -1)
        found.append(float(inside.mean(axis=0).min()))
    return found


@pytest.mark.parametrize("plan", [LAPLACE, GAUSSIAN], ids=["laplace", "gaussian"])
@pytest.mark.parametrize(
    ("asked", "widths"),
    [
        ({"columns": ["sex", "ward"], "order": 2}, ("0.6", "1.49", 5, 30)),
        ({"columns": ["cumulative(ward)", "sex"], "order": 2}, (1, "2.99", 30)),
        pytest.param({"columns": ["sex"], "order": 1}, WIDE, marks=pytest.mark.soak),
        pytest.param({"columns": ["sex", "ward"], "order": 2}, WIDE, marks=pytest.mark.soak),
        pytest.param(
            {"sets": [[], ["ward"], ["sex", "ward"]], "weights": [1, 1, 3]},
            WIDE,
            marks=pytest.mark.soak,
        ),
        pytest.param(
            {"columns": ["cumulative(ward)", "sex"], "order": 2}, WIDE, marks=pytest.mark.soak
        ),
    ],
    ids=["both", "cumulative", "all one", "all both", "all sets", "all cumulative"],
)
def test_every_table_of_marginals_keeps_its_width(
    asked: dict[str, Any], widths: tuple[Any, ...], plan: wi.Plan
) -> None:
    """Also where the noise has few whole steps, and where the width is just below one."""
    table, gaussian = evenly(10), bool(plan.delta)
    for within in widths:
        query = release.Marginals(within=within, **asked)
        share = needed_share(query, table, plan, gaussian)
        assert min(share_inside(query, table, query.plan_noise(table, share), 1)) >= 0.946
        if within == 30:
            less = Fraction(9, 10) ** (1 + gaussian)
            fewer = Share(plan, share.epsilon * less, share.rho * less)
            assert not query.keeps_width(table, query.plan_noise(table, fewer))
            worse = Share(plan, share.epsilon * less**2, share.rho * less**2)
            assert min(share_inside(query, table, query.plan_noise(table, worse), 2)) < 0.94


@pytest.mark.parametrize(
    ("split", "plan"),
    some(
        [("weights", GAUSSIAN), ("weights", LAPLACE), ("optimal", LAPLACE), ("optimal", GAUSSIAN)],
        2,
        several=True,
    ),
    ids=["weights-gaussian", "weights-laplace", "optimal-laplace", "optimal-gaussian"],
)
def test_a_release_spends_what_the_plan_of_its_widths_says(
    split: str, plan: wi.Plan, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"split": split, "noise": "gaussian" if plan.delta else "laplace"}
    table, asked = (
        evenly(200),
        [
            release.Count(name="sex", by="sex", within=90),
            release.Count(name="both", by=["sex", "ward"], within=90),
            release.Sum(name="bill", column="bill", within=9_000),
            release.Marginals(name="tables", columns=["sex", "ward"], order=2, within=200),
        ],
    )
    planned = plan_widths(table, plan, asked, settings)
    assert all(planned.fits) and planned.total <= planned.allowed
    with release.Session(table, plan, tmp_path / "l.db", share=1) as session:
        estimates = session.dry_run(asked, **settings)
        costs = [each.spend.cost("add-remove") for each in estimates]
        spent = sum(each.rho if plan.delta else each.epsilon for each in costs)
        assert spent / encoding.EPSILON_UNITS == pytest.approx(float(planned.total), rel=1e-6)
        for query, each in zip(asked, estimates, strict=True):
            assert (each.expected[-1].within or 0) <= float(Fraction(str(query.within)))
        released = session.release(asked, **settings)
        assert session.budget_state.debits >= 3
        assert ("sex and both" in released.independence_note) is (split == "weights")
    rest = estimate_batch_cost(table, plan, [*asked, release.Count(by="ward")], **settings)
    assert rest[0].expected == estimates[0].expected and (rest[-1].within or 99) < 90


def test_widths_that_are_measured_at_once_cost_less() -> None:
    table = evenly(10)
    asked = [
        release.Count(name="sex", by="sex", within=40),
        release.Count(name="both", by=["sex", "ward"], within=20),
        release.Count(name="all", within=60),
    ]
    once, apart = (
        plan_widths(table, LAPLACE, asked, {"split": split}) for split in ("optimal", "weights")
    )
    assert float(once.total) < 0.8 * float(apart.total)
    # Widths that would cost more at once stay apart: the total says all of what nothing else does.
    lone = [release.Count(name="sex", by="sex", within=40), release.Rows(where="age > 3", within=9)]
    both = [plan_widths(table, LAPLACE, lone, {"split": split}) for split in ("optimal", "weights")]
    assert both[0].total == both[1].total
    tight = [replace(each, within=2) for each in asked]
    best = plan_widths(table, LAPLACE, tight, {"split": "optimal"})
    assert not all(best.fits) and len(best.fits) == 3


def test_a_width_that_the_plan_cannot_pay_is_refused(tmp_path: Path) -> None:
    with release.Session(evenly(10), LAPLACE, tmp_path / "l.db", share=1) as session:
        with pytest.raises(BudgetRefused) as error:
            session.release([release.Count(within=1)])
        assert error.value.field == "within" and session.budget_state.debits == 0
    for wrong in (-1, "wide", True):
        with pytest.raises(InvalidInput):
            release.Count(within=wrong)


def test_the_widths_that_fit_are_the_most_that_can_be_had() -> None:
    asked = [release.Count(name=f"q{width}", within=width) for width in (2, 20, 30, 100)]
    planned = plan_widths(evenly(10), LAPLACE, asked, {})
    best = max(
        len(chosen)
        for size in range(5)
        for chosen in itertools.combinations(planned.costs, size)
        if sum(chosen) <= planned.allowed
    )
    assert sum(planned.fits) == best == 3 and not planned.fits[0]
    assert planned.total == sum(planned.costs)
    assert planned.alone == (6.0,) * 4  # with all of ε = 1/2
    with pytest.raises(InvalidInput):
        plan_widths(evenly(10), LAPLACE, [release.Count()], {})


def test_suggestions_are_what_the_changed_batch_says() -> None:
    table = evenly(10)
    asked = [
        release.Count(name="sex", by="sex"),
        release.Count(name="both", by=["sex", "ward"]),
    ]
    found = suggest_changes(table, LAPLACE, asked, estimate_batch_cost(table, LAPLACE, asked), {})
    once = next(each for each in found if each.change == "ask-once")
    assert once.about == ("sex", "both") and once.query == "both"
    assert once.before == estimate_batch_cost(table, LAPLACE, asked)[1].within
    assert once.after == estimate_batch_cost(table, LAPLACE, asked[1:])[0].within
    assert all(each.after < each.before for each in found)
    noise = estimate_batch_cost(table, LAPLACE, asked[1:])[0].parts[0].noise
    sums = np.abs(noise.draw((20_000, 5)).sum(axis=1))  # the wards, with "other"
    assert once.added_up is not None
    assert once.alone == estimate_batch_cost(table, LAPLACE, asked)[0].within
    assert 0.95 <= float(np.mean(sums <= once.added_up)) <= 0.98
    optimal = {"split": "optimal"}
    made = estimate_batch_cost(table, LAPLACE, asked, split="optimal")
    changes = {each.change for each in suggest_changes(table, LAPLACE, asked, made, optimal)}
    assert changes <= {"gaussian", "closed"}
    many = [release.Count(name=f"q{number}", where=f"age > {number}") for number in range(40)]
    plain = estimate_batch_cost(table, LAPLACE, many)
    gaussian = suggest_changes(table, LAPLACE, many, plain, {})[0]
    assert (gaussian.change, gaussian.delta) == ("gaussian", 1e-6)
    under = wi.calibrate(wi.Epsilon("1/2"), delta=1e-6)
    tried = estimate_batch_cost(table, under, many, noise="gaussian")
    assert gaussian.after == tried[0].within
    alone = [release.Count()]
    assert (
        suggest_changes(table, LAPLACE, alone, estimate_batch_cost(table, LAPLACE, alone), {}) == []
    )


def test_no_suggestion_needs_what_the_dataset_refuses(tmp_path: Path, run) -> None:
    """Of a dataset without a δ it was suggested to plan with one."""
    path = Path(write_scenario(tmp_path))
    more = "".join(
        f'[[queries]]\nkind = "count"\nname = "q{number}"\nwhere = "age > {number}"\n'
        for number in range(40)
    )
    text = path.read_text()
    path.write_text(text.partition("[[queries]]")[0] + more)
    for expected in (True, False):
        found = json.loads(run("release", path, "--dry-run", "--json")[1])["suggestions"]
        assert ("gaussian" in [each["change"] for each in found]) is expected
        few = '[budget]\nshare = "1/4"\n[[queries]]\nkind = "count"\n'
        first = tmp_path / "first.toml"
        first.write_text(text.partition("[[queries]]")[0] + few)
        code, _, err = run("release", first, "--yes")
        assert code == 0, err


def test_suggestions_are_made_beside_a_question_with_a_width() -> None:
    """What has a width has what it asks for: no suggestion is about it, and none takes it away."""
    table, width = evenly(10), 40
    wide = release.Count(name="wards", by="ward", within=width)
    asked = [
        wide,
        release.Count(name="sex", by="sex"),
        release.Count(name="both", by=["sex", "ward"]),
    ]
    more = [release.Count(name=f"q{number}", where=f"age > {number}") for number in range(30)]
    for batch, wanted in ((asked, "ask-once"), ([wide, *more], "gaussian")):
        plain = estimate_batch_cost(table, LAPLACE, batch)
        found = suggest_changes(table, LAPLACE, batch, plain, {})
        assert wanted in {each.change for each in found}
        assert all("wards" not in (each.query, *each.about) for each in found)
    only = [wide, replace(wide, name="again", by=["sex", "ward"])]
    plain = estimate_batch_cost(table, LAPLACE, only)
    assert suggest_changes(table, LAPLACE, only, plain, {}) == []
    for split in ("weights", "optimal"):
        for under, noise in ((LAPLACE, "laplace"), (GAUSSIAN, "gaussian")):
            tried = estimate_batch_cost(table, under, asked, split=split, noise=noise)
            assert 0 < tried[0].within <= width


def test_closing_a_domain_is_suggested_where_it_helps() -> None:
    asked = [release.Marginals(name="tables", columns=["sex", "ward"], order=2)]
    table, closed = evenly(10), evenly.__wrapped__(10)
    closed.domains["ward"] = release.Values(("A", "B", "C", "D"), outside="drop")
    before = estimate_batch_cost(table, LAPLACE, asked)
    found = suggest_changes(table, LAPLACE, asked, before, {})
    made = next(each for each in found if each.about == ("ward",))
    assert (made.change, made.query) == ("closed", "tables")
    assert made.before == before[0].expected[0].within
    assert made.after == estimate_batch_cost(closed, LAPLACE, asked)[0].expected[0].within
    assert made.after < made.before / 1.05
    assert "ward" in suggestion_words(made) and 'outside = "drop"' in suggestion_words(made)
    assert table.domains["ward"].outside is None
    again = suggest_changes(closed, LAPLACE, asked, estimate_batch_cost(closed, LAPLACE, asked), {})
    assert ("ward",) not in [each.about for each in again]
    counts = [release.Count(by="sex"), release.Count(by="ward")]  # "other" costs them nothing
    plain = suggest_changes(table, LAPLACE, counts, estimate_batch_cost(table, LAPLACE, counts), {})
    assert "closed" not in {each.change for each in plain}


def test_only_questions_about_the_same_rows_contain_each_other() -> None:
    table = evenly(10)
    both = release.Count(by=["sex", "ward"])
    assert list_contained([release.Count(by="sex"), both], table) == [(0, 1)]
    assert list_contained([release.Histogram(column="sex"), both], table) == [(0, 1)]
    for other in (
        release.Count(by="sex", where="age > 3"),
        release.Rows(by="sex"),
        release.Mean(column="age", by="sex"),
        release.Count(by=["ward", "sex"]),
    ):
        assert list_contained([other, both], table) == []


def test_answers_that_contain_each_other_agree_or_say_that_they_do_not(tmp_path: Path) -> None:
    asked = [release.Count(name="sex", by="sex"), release.Count(name="both", by=["sex", "ward"])]
    for split, apart in (("weights", True), ("optimal", False)):
        with release.Session(evenly(200), LAPLACE, tmp_path / f"{split}.db", share=1) as session:
            released = session.release(asked, split=split)
        assert bool(released.independence_note) is apart
        assert released.to_dict()["independent"] == released.independence_note
        if not apart:
            sums = [
                sum(row[2] for row in released["both"].rows if row[0] == sex)
                for sex in ("f", "m", "other")
            ]
            assert sums == pytest.approx([row[1] for row in released["sex"].rows], abs=1e-4)
    with release.Session(evenly(200), LAPLACE, tmp_path / "one.db", share=1) as session:
        assert session.release([asked[0], release.Count(where="age > 3")]).independence_note == ""


@pytest.mark.parametrize(
    ("asked", "split", "hint"),
    [
        ([release.Sum(column="bill"), release.Sum(name="s", column="bill", by="sex")], None, "add"),
        (
            [
                release.Count(name="sex", by="sex"),
                release.Marginals(name="m", columns=["ward", "sex"], order=2),
            ],
            "optimal",
            "add",
        ),
        ([release.Marginals(name=name, columns=["sex"], order=1) for name in "ab"], None, "add"),
        (
            [
                release.Count(name="sex", by="sex", within=60),
                release.Count(name="both", by=["sex", "ward"]),
            ],
            "optimal",
            "add",
        ),
        ([release.Count(name=name, by="sex") for name in "ab"], None, "optimal"),
        ([release.Count(name=name, by="sex") for name in "ab"], "optimal", ""),
        ([release.Count(by="ward"), release.Sum(column="bill", by="sex")], None, ""),
    ],
)
def test_whatever_was_not_measured_at_once_is_said_to_be_independent(
    asked: list[Query], split: str | None, hint: str, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {} if split is None else {"split": split}
    with release.Session(evenly(200), LAPLACE, tmp_path / "l.db", share=1) as session:
        released = session.release(asked, **settings)
    said = released.independence_note
    assert bool(said) is bool(hint) and hint in said
    if said:
        assert all(query.title in said for query in asked)


def test_every_form_of_a_release_says_what_is_independent(tmp_path: Path, run) -> None:
    (tmp_path / "visits.csv").write_text(
        "who,sex\n" + "".join(f"{n},f\n{n}x,m\n" for n in range(40))
    )
    path, ledger = tmp_path / "s.toml", tmp_path / "ledger.db"
    path.write_text(
        SCENARIO.format(people="", width="").partition("[domains]")[0]
        + f"""[domains]
sex = ["f", "m"]
[ledger]
url = "{ledger}"
[[queries]]
kind = "count"
name = "all"
[[queries]]
kind = "count"
name = "sexes"
by = ["sex"]
"""
    )
    words = "all and sexes have noise of their own"
    report = tmp_path / "r.html"
    code, out, _ = run("release", path, "--yes", "--report", report)
    assert code == 0 and words in " ".join(out.split()) and words in report.read_text()
    code, out, _ = run("release", path, "--json")
    assert words in json.loads(out)["independent"]
    assert words in " ".join(run("ledger", "answers", ledger, "visits")[1].split())
    opened = json.loads(run("ledger", "answers", ledger, "visits", "--json")[1])
    assert words in opened["releases"][0]["independent"]
    scenario = load_scenario(path)
    with wi.Ledger(ledger, create=False) as found:
        (stored,) = read_releases(found, scenario.open_table().name)
    assert words in stored._repr_html_()


SCENARIO = """
[table]
source = "visits.csv"
privacy_unit = "who"
{people}
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[domains]
age = {{ lower = 0, upper = 100 }}
[[queries]]
kind = "count"
name = "all"
{width}
[[queries]]
kind = "mean"
name = "age"
column = "age"
"""


def write_scenario(folder: Path, people: str = "", width: str = "") -> str:
    rows = "\n".join(f"p{index},{index % 90}" for index in range(30))
    (folder / "visits.csv").write_text(f"who,age\n{rows}\n")
    path = folder / "s.toml"
    path.write_text(SCENARIO.format(people=people, width=width))
    return str(path)


def test_a_release_that_would_say_nothing_is_stopped(tmp_path: Path, run) -> None:
    path = write_scenario(tmp_path, people="people = 3")
    code, out, err = run("release", path, "--json")
    assert (code, out) == (1, "") and "Traceback" not in err
    assert not (tmp_path / "ledger.db").exists()
    assert run("release", path, "--json", "--yes")[0] == 0
    path = write_scenario(tmp_path, people="people = 0")
    assert run("release", path, "--dry-run", "--json")[0] == 2


def test_a_dry_run_shows_expected_errors_and_suggestions(tmp_path: Path, run) -> None:
    path = write_scenario(tmp_path)
    code, out, _ = run("release", path, "--dry-run", "--json")
    data = json.loads(out)
    assert code == 0 and isinstance(data["suggestions"], list)
    count, mean = data["estimates"]
    assert [each["rows"] for each in count["expected"]] == [None]
    assert [each["rows"] for each in mean["expected"]] == [100, 1_000, 10_000]
    assert run("release", path, "--dry-run")[0] == 0


def test_the_widths_of_a_scenario_are_planned(tmp_path: Path, run) -> None:
    path = write_scenario(tmp_path, width="within = 50")
    code, out, _ = run("plan", path, "--accuracy", "--json")
    data = json.loads(out)
    assert code == 0 and data["within"] == {"all": 50.0}
    one = json.loads(run("plan", "--within", "50", "--query", "count", "--json")[1])
    assert data["epsilon"] == pytest.approx(one["epsilon"], rel=1e-9)
    assert data["fits"] and data["target"]["enough"]
    assert len({each["family"] for each in data["adversaries"]}) >= 3
    assert run("plan", path, "--accuracy")[0] == 0
    assert load_scenario(path).estimate_cost()[0].within == 50
    assert run("plan", write_scenario(tmp_path), "--accuracy")[0] == 2
    assert run("plan", path)[0] == 2
    assert run("plan", "--accuracy")[0] == 2
    assert run("plan", path, "--accuracy", "--posterior", "0.6")[0] == 2


def test_a_release_by_the_command_spends_what_its_plan_says(tmp_path: Path, run) -> None:
    path = Path(write_scenario(tmp_path))
    beginning = path.read_text().partition("[[queries]]")[0].replace("upper = 100", "upper = 90")
    path.write_text(
        beginning.replace(" }", ", edges = [0, 30, 60, 90] }")
        + f"""[ledger]
url = "{tmp_path / "l.db"}"
[budget]
split = "optimal"
[[queries]]
kind = "count"
within = 50
[[queries]]
kind = "count"
name = "ages"
by = ["age"]
within = 50
[[queries]]
kind = "marginals"
sets = [[], ["age"]]
within = 90
"""
    )
    planned = json.loads(run("plan", path, "--accuracy", "--json")[1])
    code, out, err = run("release", path, "--json", "--yes")
    assert code == 0, err
    assert json.loads(out)["spent"] == pytest.approx(planned["total"], rel=1e-6)


@pytest.mark.parametrize(
    ("noise", "quarters", "width"),
    [("laplace", 0, 4), ("laplace", 2, 7), ("gaussian", 0, 11), ("gaussian", 2, 14)],
)
def test_widths_that_fit_what_is_left_are_answered(
    noise: str, quarters: int, width: int, tmp_path: Path, run, clock
) -> None:
    """The whole share was once compared with what was left, and not what the widths need."""
    clock("2026-11-19")
    path = Path(write_scenario(tmp_path, width=f"within = {width}"))
    text = path.read_text().rpartition("[[queries]]")[0] + f'[budget]\nnoise = "{noise}"\n'
    promise = "posterior = 0.75\n" + "delta = 1e-6\n" * (noise == "gaussian")
    text = text.replace("posterior = 0.6\n", promise)
    if quarters:
        text += '[schedule]\nevery = "quarter"\nstart = "2026-10"\nuntil = "2027-03"\n'
    path.write_text(text)
    code, _, err = run("release", path, "--json", "--yes")
    assert code == 0, err
    path.write_text(text.replace(f"within = {width}", "within = 200"))
    foreseen = json.loads(run("release", path, "--dry-run", "--json")[1])["asker"]
    code, out, err = run("release", path, "--json", "--yes")
    assert code == 0, err
    assert foreseen["refusal"] is None and json.loads(out)["budget_state"]["debits"] == 2
    # What does not fit is refused by what it needs, and leaves no trace.
    path.write_text(text.replace(f"within = {width}", f"within = {width + 1}"))
    kept = run("ledger", "export", tmp_path / "ledger.db", "--json")[1]
    foreseen = json.loads(run("release", path, "--dry-run", "--json")[1])["asker"]
    code, out, err = run("release", path, "--json", "--yes")
    assert (code, out) == (1, "") and foreseen["refusal"] in err
    assert run("ledger", "export", tmp_path / "ledger.db", "--json")[1] == kept


@pytest.mark.parametrize(
    "section", ['[schedule]\nevery = "quarter"\nuntil = "2027-03"', '[budget]\nshare = "1/2"']
)
def test_widths_are_planned_within_the_share_of_the_period(
    section: str, tmp_path: Path, run, clock
) -> None:
    """The schedule was left out: the plan said that a width fits which the dry run refused."""
    clock("2026-11-19")
    path = Path(write_scenario(tmp_path, width="within = 12"))
    text = path.read_text().rpartition("[[queries]]")[0] + section
    for width, fits in ((12, False), (16, True)):
        path.write_text(text.replace("within = 12", f"within = {width}"))
        planned = json.loads(run("plan", path, "--accuracy", "--json")[1])
        whole = load_scenario(path).plan.epsilon
        assert planned["allowed"] == pytest.approx(whole / 2)
        assert planned["allowed_by_target"] == pytest.approx(whole)  # the half was said to be all
        said = " ".join(run("plan", path, "--accuracy")[1].split())
        allowed, most = (format_figures(each, 4, "down") for each in (whole / 2, whole))
        assert f"allows ε = {most}, of which this release may spend ε = {allowed}" in said
        assert "all of the budget" not in said
        # What these widths need they need of a half: the whole promise has to allow twice that.
        twice = planned["total"] * 2
        assert planned["epsilon"] == planned["needed_of_target"] == pytest.approx(twice, rel=1e-6)
        needs = format_figures(twice, 4, "up")
        sure = [format_percent(1 / (1 + math.exp(-e)), "up") for e in (twice, planned["total"])]
        assert f"share = 1/2 the whole promise has to allow ε = {needs}" in said
        assert f"is 50.0% sure may become {sure[0]} sure; with share = 1, {sure[1]}." in said
        assert "Without within" not in said and planned["others"] == []
        assert planned["fits"] is planned["target"]["enough"] is fits
        code, _, err = run("release", path, "--dry-run")
        assert code == (0 if fits else 1), err


def test_widths_are_told_apart() -> None:
    """Two questions without names were both called "count"."""
    asked = [release.Count(by="sex", within=9), release.Count(by="ward", within=8)]
    planned = plan_widths(evenly(10), LAPLACE, asked, {})
    assert planned.titles == ("count by sex", "count by ward")
    assert planned.to_dict()["within"] == {"count by sex": 9.0, "count by ward": 8.0}


def test_widths_of_means_say_for_how_many_rows(tmp_path: Path, run) -> None:
    """With ten rows a person they were planned for one each, without a word."""
    table = evenly(10, people=3_000, max_rows=10)
    asked = [release.Mean(column="age", by="sex", within=3), release.Count(within=9)]
    assert plan_widths(table, LAPLACE, asked, {}).rows == (1_500, None)
    path = Path(write_scenario(tmp_path, people="people = 3000"))
    path.write_text(path.read_text() + "within = 2\n")
    assert "of 3,000 rows" in " ".join(run("plan", path, "--accuracy")[1].split())
    path.write_text(path.read_text() + '[[queries]]\nkind = "rows"\nname = "stays"\n')
    said = " ".join(run("plan", path, "--accuracy")[1].split())
    assert "Without within, all, stays: what is left of ε = " in said
    with pytest.raises(BudgetRefused) as error:
        estimate_batch_cost(table, LAPLACE, [replace(asked[0], within="1/100"), asked[1]])
    assert "for 1,500 rows a group" in str(error.value)


def test_a_session_of_widths_needs_no_share(tmp_path: Path) -> None:
    table, plan = evenly(400, people=400), wi.calibrate(wi.Epsilon(1))
    for width in (6, 60, 600):
        with release.Session(table, plan, tmp_path / "l.db") as session:
            needed = needed_share(release.Count(within=width), table, plan).epsilon
            before = session.budget_state.spent.epsilon
            session.ask(release.Count(within=width))
            spent = session.budget_state.spent.epsilon - before
            assert spent / encoding.EPSILON_UNITS == pytest.approx(float(needed), rel=1e-6)
            with pytest.raises(InvalidInput) as error:
                session.ask(release.Count())
            assert error.value.field == "share"


def test_a_constant_column_is_suggested_where_a_bound_of_groups_costs() -> None:
    """max_groups = 3, which months needed, tripled the noise of counts by sex without a word."""
    table, constant = (evenly.__wrapped__(10) for _ in range(2))
    table.max_groups = constant.max_groups = 3
    constant.domains["sex"] = replace(table.domains["sex"], constant=True)
    asked = [release.Count(name="sexes", by="sex"), release.Rows(name="wards", by="ward")]
    before = estimate_batch_cost(table, LAPLACE, asked)
    found = suggest_changes(table, LAPLACE, asked, before, {})
    made = next(each for each in found if each.about == ("sex",))
    assert (made.change, made.query, made.before) == ("constant", "sexes", before[0].within)
    assert made.after == estimate_batch_cost(constant, LAPLACE, asked)[0].within < made.before / 2
    one = estimate_batch_cost(table, LAPLACE, [replace(asked[0], max_groups=1), asked[1]])
    assert one[0].within == made.after
    said = suggestion_words(made)
    assert "only if it is publicly known" in said and "constant = true" in said
    again = suggest_changes(
        constant, LAPLACE, asked, estimate_batch_cost(constant, LAPLACE, asked), {}
    )
    assert ("constant", ("sex",)) not in [(each.change, each.about) for each in again]
    assert "constant" not in {
        each.change for each in suggest_changes(evenly(10), LAPLACE, asked, before, {})
    }


@pytest.mark.parametrize("reach", [10, 1000])
@pytest.mark.parametrize("people", [None, 100])
def test_no_suggestion_makes_another_answer_worse(people: int | None, reach: int) -> None:
    """Gaussian noise was suggested where it made one of the answers 5% worse, without a word."""
    plan = wi.calibrate(posterior=0.6, prior=(0.05, 0.5))
    data = {"who": ["a"], "w": ["x"], "v": ["p"], "x": [1]}
    domains = {"w": list("xyzabc"), "v": list("pqr"), "x": (0, reach)}
    for rows, groups in ((2, 8), (5, 8), (5, 3)):
        table = wi.Table(
            pa.table(data), "who", domains, name="t",
            max_rows_per_group=rows, max_groups=groups, people=people,
        )  # fmt: skip
        several = wi.queries.Count(by=["w"]), wi.queries.Count(by=["w", "v"])
        batch = [*several, wi.queries.Sum(column="x", by="v")]
        before = estimate_batch_cost(table, plan, batch, share=1)
        for made in suggest_changes(table, plan, batch, before, {"share": 1}):
            if made.change != "gaussian":
                continue
            under = wi.calibrate(plan.target, plan.family, made.delta)
            after = estimate_batch_cost(table, under, batch, share=1, noise="gaussian")
            for was, now in zip(before, after, strict=True):
                assert now.expected[-1].within <= 1.005 * was.expected[-1].within


def test_no_suggestion_makes_small_groups_worse() -> None:
    """Gaussian noise made medians of 100 rows half as exact, beside better ones of 10,000."""
    plan, half = wi.calibrate(posterior=0.6, prior=(0.05, 0.5)), {"share": "0.5"}
    data = {"p": ["a"], "ward": ["x"], "sex": ["m"], "age": [1], "days": [1]}
    domains = {"ward": list("abc"), "sex": ["m", "f"], "age": (0, 100), "days": (0, 10)}
    table = wi.Table(pa.table(data), "p", domains, name="x")
    batch = [
        release.Mean(column="days"),
        release.Median(column="age", weight=5),
        release.Rows(by=["sex"]),
        release.Marginals(columns=["ward", "sex"], order=1),
    ]
    before = estimate_batch_cost(table, plan, batch, **half)
    for made in suggest_changes(table, plan, batch, before, half):
        if made.change != "gaussian":
            continue
        under = wi.calibrate(plan.target, plan.family, made.delta)
        after = estimate_batch_cost(table, under, batch, noise="gaussian", **half)
        for was, now in zip(before, after, strict=True):
            for one, other in zip(was.expected, now.expected, strict=True):
                assert (other.within or other.error) <= 1.005 * (one.within or one.error)
