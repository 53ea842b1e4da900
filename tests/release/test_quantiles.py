"""Quantiles: scores with ties, how far one privacy unit moves them, intervals in the column's
unit."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy import stats

import release_oracle as oracle
from amounts import cases, some
from refusals import refused
from whosin import release
from whosin.errors import UnknownName
from whosin.ledger.budget import NEIGHBOUR_RELATIONS
from whosin.release import Median, Quantile, Range
from whosin.release.cost import SelectionNoise, Share
from whosin.release.queries import QUERIES, read_query
from whosin.release.queries.quantile import Points, interval_scores, score_points

SHARES = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(2, 3)]
SURE, HALF = 1e-6, Fraction(1, 2)
HEAPED = [20] * 30 + [25] * 17 + [30] * 200 + [31] * 350 + [32] * 40 + [60] * 280 + [61] * 3


def defined(values: list, points: list, share: Fraction) -> list[Fraction]:
    """min(qn − #{v<c}, #{v≤c} − qn) for each c: at least 0 where c is the quantile."""
    rank = share * len(values)
    return [
        min(rank - sum(v < c for v in values), sum(v <= c for v in values) - rank) for c in points
    ]


def depth(values: list, points: int, share: Fraction, centre: int, width: int) -> Fraction | float:
    """How many rows an interval around a point has to spare on its worse side; a side at the end of
    the grid has no limit."""
    if width < 0:
        return -math.inf
    rank, low, high = share * len(values), centre - width, centre + width
    spare = rank - sum(v < low for v in values) if low > 0 else math.inf
    more = sum(v <= high for v in values) - rank if high < points - 1 else math.inf
    return min(spare, more)


def counts_of(values: list, points: int) -> np.ndarray:
    return np.bincount(np.array(values, dtype=int), minlength=points)


def quantiles(values: list, share: Fraction) -> list[float]:
    """The ends of {Q : #{v<Q} ≤ qn ≤ #{v≤Q}}."""
    found = [
        v
        for v in sorted(set(values))
        if sum(x < v for x in values) <= share * len(values) <= sum(x <= v for x in values)
    ]
    return [found[0], found[-1]]


@pytest.mark.parametrize("share", SHARES)
def test_scores_are_those_of_the_definition(share) -> None:
    rng = random.Random(5)
    for _ in range(60):
        values = [rng.randrange(6) for _ in range(rng.randrange(12))]
        counts, b = counts_of(values, 6), share.denominator
        wanted = defined(values, list(range(6)), share)
        found = score_points(counts, share)
        assert found.tolist() == [b * each for each in wanted]
        true = quantiles(values, share) if values else []
        assert all(found[int(point)] >= 0 for point in true)
        centre, shift = rng.randrange(6), rng.randrange(9)
        found = interval_scores(counts, counts, share, centre, shift * b)
        for width, each in enumerate(found.tolist()):
            own, before = (depth(values, 6, share, centre, w) for w in (width, width - 1))
            assert each == b * min(own - shift, shift - before)
        assert len(found) == max(centre, 5 - centre) + 1 and found.max() >= 0


@pytest.mark.parametrize("share", SHARES[:3])
@pytest.mark.parametrize("rows", [1, 2])
def test_scores_move_by_no_more_than_is_claimed(share, rows) -> None:
    """Every world of three other rows on four points, every contribution of one privacy unit."""
    data = oracle.table({"who": ["a"], "x": [1.0]}, {"x": Range(0, 3)}, max_rows_per_group=rows)
    query = Quantile(column="x", quantile=str(share), points=4)
    kept = [c for n in range(rows + 1) for c in combinations_with_replacement(range(4), n)]
    kinds = [
        lambda counts: score_points(counts, share),
        *(
            lambda counts, centre=centre: interval_scores(counts, counts, share, centre, 3)
            for centre in range(4)
        ),
    ]
    largest = {kind: dict.fromkeys(NEIGHBOUR_RELATIONS, 0) for kind in range(5)}
    for others in combinations_with_replacement(range(4), 3):
        for kind, scores in enumerate(kinds):
            found = np.array([scores(counts_of([*others, *each], 4)) for each in kept])
            changes = {
                "add-remove": np.abs(found - found[0]).max(),
                "replace": np.abs(found[:, None] - found[None]).max(),
            }
            for relation, change in changes.items():
                largest[kind][relation] = max(largest[kind][relation], change)
    for relation in NEIGHBOUR_RELATIONS:
        claimed = query.score_sensitivity(data, relation)
        unit = 1 if relation == "replace" else max(share, 1 - share)
        assert claimed == rows * share.denominator * unit == largest[0][relation]
        assert all(largest[kind][relation] <= claimed for kind in range(1, 5))


def ask(query, data, epsilon: object) -> list:
    return query.answer(data, query.estimate_cost(data, oracle.share(epsilon)))["rows"][0]


@pytest.mark.parametrize(
    ("kind", "share", "truth", "grids"),
    some(
        [
            ("float64", "1/2", 31, (None, 79, 157, 7801)),
            ("int64", "1/2", 31, (None, 157)),
            ("text", "1/2", 31, (None,)),
            ("int64", "1/20", 25, (None,)),
            ("int64", "1/10", 30, (None,)),
            ("float64", "9/10", 60, (None, 79)),
            ("int64", "999/1000", 61, (None,)),
        ],
        4,
        several=True,
    ),
)
def test_heaped_numbers_have_their_true_quantile(kind, share, truth, grids) -> None:
    """Counting only the rows below a point misses the heap: 32 for 31 at any ε."""
    assert quantiles(HEAPED, Fraction(share)) == [truth, truth]
    values = {"float64": list(map(float, HEAPED)), "int64": HEAPED, "text": list(map(str, HEAPED))}
    data = oracle.table({"who": list(range(len(HEAPED))), "x": values[kind]}, {"x": (18, 96)})
    for points in grids:
        query = Quantile(column="x", quantile=share, points=points)
        assert ask(query, data, 5000) == [truth], points
        assert ask(replace(query, interval=True), data, 5000) == [truth] * 3, points


def test_a_coarse_grid_gives_the_nearest_point_and_an_interval_around() -> None:
    data = oracle.table({"who": list(range(len(HEAPED))), "x": HEAPED}, {"x": (0, 100)})
    assert ask(Median(column="x", points=11, interval=True), data, 5000) == [30, 20, 40]
    assert ask(Median(column="x", points=3, interval=True), data, 5000) == [50, 0, 100]
    assert ask(Median(column="x", points=2, interval=True), data, 5000) == [0, 0, 100]
    assert ask(Median(column="x", points=11), data, 5000) == [30]


def test_the_grid_is_round_by_default() -> None:
    cases = [
        (Range(18, 96), True, 1, 79),
        (Range(18, 96), False, Fraction(1, 10), 781),
        (Range(0, 120), False, Fraction(1, 5), 601),
        (Range(0, 30_000), True, 50, 601),
        (Range(0, 5, step="1/4"), False, Fraction(1, 4), 21),
        (Range("-0.35", "2.6"), False, Fraction(1, 200), 591),
    ]
    for domain, whole, step, count in cases:
        found = Points.of(domain, whole, None)
        assert (found.step, found.count) == (step, count)
        assert [found.value(0), found.value(count - 1)] == list(domain.bounds)
    for wrong in (1, 10_001, True, 2.0, "9"):
        with refused("points"):
            Points.of(Range(0, 1), False, wrong)  # type: ignore[arg-type]


def test_places_are_those_of_the_definition() -> None:
    """Also where doubles do not hold the points, at both ends, and outside the range."""
    domain = Range("-0.35", "2.6")
    points = Points.of(domain, False, 60)
    exact = [points.origin + n * points.step for n in range(60)]
    values = [float(c) for c in exact]
    values += [float(c + points.step * part) for c in exact for part in (Fraction(1, 3), -0.2)]
    values += [-9.0, 9.0, math.inf, -math.inf, 1e300]
    data = oracle.table({"who": list(range(len(values))), "x": values}, {"x": domain})
    found = data.engine.run(
        data.data.select(x=data.data["x"], position=points.position(data.data["x"]))
    )
    for row in found.to_pylist():
        value = min(max(row["x"], -0.35), 2.6)
        steps = (Fraction(value) - points.origin) / points.step
        near = math.floor(steps + Fraction(1, 2))
        on = abs(steps - near) < Fraction(1, 10**6)
        below = near if on else math.floor(steps)
        assert row["position"] == 3 * below + (0 if on else 1 if near == below else 2), row


def test_rounding_keeps_every_row() -> None:
    rng = np.random.default_rng(2)
    points = Points.of(Range(0, 4), True, None)
    for _ in range(20):
        rows = rng.integers(0, 9, 13)
        down, near, up = points.rounded(np.arange(13), rows)
        assert down.sum() == near.sum() == up.sum() == rows.sum()
        assert (np.cumsum(down) >= np.cumsum(near)).all()
        assert (np.cumsum(near) >= np.cumsum(up)).all()


def scattered(seed: int, people: int, digits: int | None) -> list[float]:
    rng = random.Random(seed)
    drawn = [rng.lognormvariate(3, 0.6) for _ in range(people)]
    return drawn if digits is None else [round(value, digits) for value in drawn]


COVERED = [
    ("heaped", HEAPED, 81, "1/2"),
    ("heaped, coarse", HEAPED, 9, "1/2"),
    ("heaped, fine", HEAPED, 641, "3/4"),
    ("continuous", scattered(1, 900, None), 161, "1/2"),
    ("continuous, coarse", scattered(2, 900, None), 12, "1/10"),
    ("decimals", scattered(3, 900, 2), 401, "9/10"),
    ("few", [7.0, 9.0, 9.5, 30.0], 81, "1/2"),
]


@cases(120, 1000)
@pytest.mark.parametrize("price", [(HALF,), (Fraction(0), HALF**6)], ids=["ε", "ρ"])
@pytest.mark.parametrize(
    ("name", "values", "points", "share"), some(COVERED, 2, several=True), ids=lambda x: str(x)[:20]
)
def test_intervals_cover_the_quantile(name, values, points, share, price, count) -> None:
    data = oracle.table(
        {"who": list(range(len(values))), "x": list(map(float, values))}, {"x": Range(0, 80)}
    )
    query = Quantile(column="x", quantile=share, points=points, interval=True)
    estimate = query.estimate_cost(data, Share(oracle.PLANS["add-remove"], *price))
    kept = data.engine.run(estimate.expression)
    clamped = [min(max(value, 0), 80) for value in values]
    ends = quantiles(clamped, Fraction(share))
    data.engine = _Kept(kept)  # type: ignore[assignment]
    hits = 0
    for _ in range(count):
        value, low, high = query.answer(data, estimate)["rows"][0]
        assert 0 <= low <= value <= high <= 80
        hits += low - 1e-6 <= ends[0] and ends[1] <= high + 1e-6
    assert stats.binom.cdf(hits, count, 0.95) > SURE
    if name == "continuous":
        assert high - low < 15, "an interval says something"


class _Kept:
    """An engine that has scanned already."""

    def __init__(self, result: object) -> None:
        self.result = result

    def run(self, expression: object, progress: object = None) -> object:
        return self.result


def test_an_interval_that_is_too_narrow_is_noticed(monkeypatch) -> None:
    values = scattered(1, 900, None)
    data = oracle.table({"who": list(range(900)), "x": values}, {"x": Range(0, 80)})
    query = Median(column="x", points=161, interval=True)
    estimate = query.estimate_cost(data, oracle.share("1/20"))
    monkeypatch.setattr(SelectionNoise, "margin", lambda *_: 0.0)
    data.engine = _Kept(data.engine.run(estimate.expression))  # type: ignore[assignment]
    ends = quantiles(values, Fraction(1, 2))
    found = [query.answer(data, estimate)["rows"][0] for _ in range(100)]
    hits = sum(low <= ends[0] and ends[1] <= high for _, low, high in found)
    assert stats.binom.cdf(hits, 100, 0.95) < SURE  # about half cover it


def test_nobody_there_still_answers_within_the_range() -> None:
    data = oracle.table({"who": ["a"], "x": ["-"]}, {"x": (0, 9)})
    assert 0 <= ask(Median(column="x"), data, 1)[0] <= 9
    value, low, high = ask(Median(column="x", interval=True), data, 1)
    assert 0 <= low <= value <= high <= 9


def test_a_median_is_a_kind_of_question() -> None:
    data = oracle.table({"who": list(range(5)), "x": [1, 2, 3, 4, 5]}, {"x": (0, 9)})
    asked = read_query({"kind": "median", "column": "x", "max_rows_per_group": 2}, QUERIES)
    half = Quantile(column="x", max_rows_per_group=2)
    assert asked.title == "median" and asked.question() == {
        "query": "median",
        "column": "x",
        "max_rows_per_group": 2,
    }
    for relation in NEIGHBOUR_RELATIONS:
        estimates = [
            q.estimate_cost(data, oracle.share(1, relation=relation)) for q in (asked, half)
        ]
        assert estimates[0].spend.costs == estimates[1].spend.costs
        assert estimates[0].details == estimates[1].details
    assert release.Median is Median


@pytest.mark.parametrize(
    ("kind", "nearest"),
    [("medain", "median"), ("meen", "mean"), ("quartile", None), ("mode", None), ("max", None),
     ("counts", "count"), ("average", None), ("quantiles", "quantile"), ("Sum", "sum")],
)  # fmt: skip
def test_another_statistic_is_never_suggested(kind, nearest) -> None:
    with pytest.raises(UnknownName) as caught:
        read_query({"kind": kind}, QUERIES)
    assert caught.value.nearest == nearest


@pytest.mark.parametrize(
    ("got", "known", "nearest"),
    [
        ("month", ["age", "juv_misd_count", "sex"], None),
        ("median", ["count", "mean", "sum"], None),
        ("coutn", ["count", "sum"], "count"),
        ("independant", ["independent", "any"], "independent"),
        ("hospital", ["hospitals", "hospices"], "hospitals"),
        ("x" * 10_000, ["x" * 9_999], None),
        ("duck", ["duckdb", "spark"], "duckdb"),
        ("age", ["age_group", "sex"], None),
        ("juv_", ["juv_a_x", "juv_b_x"], None),
        ("", ["a"], None),
        ("b", ["a"], None),
    ],
)
def test_only_near_names_are_suggested(got, known, nearest) -> None:
    assert UnknownName("column", got, known).nearest == nearest
