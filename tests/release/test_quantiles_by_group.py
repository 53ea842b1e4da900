"""Medians and quantiles by group: what one person can move, what is chosen, what is charged."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from statistics import median
from typing import Any

import numpy as np
import pytest

import release_oracle as oracle
from amounts import some
from refusals import refused
from whosin.ledger import encoding
from whosin.ledger.budget import NEIGHBOUR_RELATIONS
from whosin.release import Dates, Median, Quantile, Range, Values
from whosin.release.queries.quantile import interval_scores, score_points

WARD = Values(("A", "B"), outside="drop")


def data(rows: int, groups: int, wards: int = 2):
    domain = Values(tuple("ABCDE"[:wards]), outside="drop")
    held = {"who": ["a"], "x": [1.0], "ward": ["A"]}
    return oracle.table(
        held, {"x": Range(0, 2), "ward": domain}, max_rows_per_group=rows, max_groups=groups
    )


def held_by_one(rows: int, groups: int, wards: int, points: int) -> list[np.ndarray]:
    """All that one person may come to: for some cells, up to so many rows on points."""
    inside = [
        c for n in range(1, rows + 1) for c in combinations_with_replacement(range(points), n)
    ]
    found = [np.zeros((wards, points), np.int64)]
    for used in range(1, groups + 1):
        for homes in combinations(range(wards), used):
            for each in product(inside, repeat=used):
                counts = np.zeros((wards, points), np.int64)
                for home, places in zip(homes, each, strict=True):
                    np.add.at(counts[home], list(places), 1)
                found.append(counts)
    return found


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
@pytest.mark.parametrize(("rows", "groups", "wards"), [(1, 1, 2), (2, 1, 2), (1, 2, 2), (1, 1, 3)])
def test_all_cells_together_move_by_no_more_than_is_claimed(share, rows, groups, wards) -> None:
    """Each cell's selections cost ε in proportion to how far its scores move, ρ in proportion to
    its square, and these costs add: so the sums over cells are what must be bounded."""
    points = 3
    query = Quantile(column="x", quantile=str(share), points=points, by="ward")
    found = held_by_one(rows, groups, wards, points)
    kinds = [
        lambda counts: score_points(counts, share),
        lambda counts: interval_scores(counts, counts, share, 0, 3),
        lambda counts: interval_scores(counts, counts, share, 1, 3),
    ]
    others = list(combinations_with_replacement(range(points), 2))
    largest = {(relation, power): 0 for relation in NEIGHBOUR_RELATIONS for power in (1, 2)}
    for scores in kinds:
        moves = {}  # (what someone holds in a cell before, after) → how far its scores can move
        kept = {tuple(cell) for counts in found for cell in counts.tolist()}
        for before, after in product(kept, repeat=2):
            moves[before, after] = max(
                int(np.abs(scores(world + before) - scores(world + after)).max())
                for world in (np.bincount(each, minlength=points) for each in others)
            )
        for old, new in product(found, repeat=2):
            pairs = list(zip(map(tuple, old.tolist()), map(tuple, new.tolist()), strict=True))
            for power in (1, 2):
                change = sum(moves[pair] ** power for pair in pairs)
                for relation in NEIGHBOUR_RELATIONS if not new.any() else ("replace",):
                    largest[relation, power] = max(largest[relation, power], change)
    for (relation, power), found_change in largest.items():
        claimed = max(
            times * sensitivity**power
            for times, sensitivity in query.score_sensitivities(data(rows, groups, wards), relation)
        )
        assert found_change <= claimed
        if relation == "add-remove" or wards >= 2 * groups:
            assert found_change == claimed, "the claim is no larger than it must be"


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
@pytest.mark.parametrize("groups", [1, 3])
def test_the_price_is_the_share(relation: str, groups: int) -> None:
    wide, narrow = data(2, groups, 5), data(2, 1, 5)
    for interval, rho in product((False, True), (Fraction(0), Fraction(1, 50))):
        query = Median(column="x", by="ward", interval=interval)
        share = oracle.share(1, rho=rho, relation=relation)
        estimate = query.estimate_cost(wide, share)
        paid = estimate.spend.costs[relation]
        noise: Any = estimate.details
        cases = [
            (times * (1 + interval), sensitivity)
            for times, sensitivity in query.score_sensitivities(wide, relation)
        ]
        owed = max(times * 2 * sensitivity / noise.scale for times, sensitivity in cases)
        squares = max(times * (2 * sensitivity / noise.scale) ** 2 for times, sensitivity in cases)
        assert noise.gumbel == bool(rho)
        assert owed <= Fraction(paid.epsilon, encoding.EPSILON_UNITS)
        assert squares / (8 if rho else 2) <= Fraction(paid.rho, encoding.EPSILON_UNITS)
        if rho:
            assert float(squares / 8) == pytest.approx(1 / 50, rel=1e-6)
            assert paid.rho <= rho * encoding.EPSILON_UNITS
        else:
            assert paid.epsilon <= encoding.EPSILON_UNITS and float(owed) == pytest.approx(1)
        small: Any = query.estimate_cost(narrow, share).details
        grown = groups**0.5 if rho else groups
        assert float(noise.scale / small.scale) == pytest.approx(grown)


def test_every_cell_has_its_own_median() -> None:
    held = {
        "who": [f"p{each}" for each in range(300)],
        "x": [float(each % 100) if each < 200 else 7.0 for each in range(300)],
        "ward": ["A"] * 200 + ["B"] * 50 + ["Z"] * 50,
    }
    domains = {"x": Range(0, 100, step=1), "ward": Values(("A", "B", "C"))}
    told = oracle.table(held, domains)
    query = Median(column="x", by="ward")
    answer = query.answer(told, query.estimate_cost(told, oracle.share(200)))
    assert answer["columns"] == ["ward", "value"]
    query = Median(column="x", by="ward", interval=True)
    answer = query.answer(told, query.estimate_cost(told, oracle.share(200)))
    assert answer["columns"] == ["ward", "value", "low", "high"]
    values = {row[0]: row[1:] for row in answer["rows"]}
    assert list(values) == ["A", "B", "C", "other"]
    assert abs(values["A"][0] - median(each % 100 for each in range(200))) <= 2
    assert values["B"][0] == values["other"][0] == 7
    for value, low, high in values.values():
        assert 0 <= low <= value <= high <= 100


def test_rows_before_noise_are_those_of_the_definition() -> None:
    """Everyone has one row: nothing is chosen."""
    wards, numbers = ["A", "B", "C", None], [0.0, 1.0, 2.0, 9.0, -1.0, float("nan"), None]
    rows = list(product(wards, numbers, range(3)))
    held = {
        "who": [f"p{each}" for each in range(len(rows))],
        "ward": [ward for ward, _, _ in rows],
        "x": [number for _, number, _ in rows],
    }
    for unit in ("who", "row"):
        told = oracle.table(held, {"x": Range(0, 2), "ward": WARD}, privacy_unit=unit)
        query = Quantile(column="x", points=3, by="ward")
        result = told.engine.run(query._expression(told, query.cells(told))).to_pylist()
        found = {(row["key_0"], row["position"]): row["rows"] for row in result}
        wanted: Counter = Counter()
        for ward, number, _ in rows:
            if ward in ("A", "B") and number is not None and oracle.number(number) is not None:
                wanted["AB".index(ward), 3 * int(min(max(number, 0), 2))] += 1
        assert found == dict(wanted)


@pytest.mark.parametrize(
    ("rows", "groups"), some([(2, 1), (1, 1), (1, 2), (2, 2), (5, 5)], 3, several=True)
)
def test_one_person_has_a_few_rows_in_a_few_cells(rows: int, groups: int) -> None:
    held: dict[str, list[Any]] = {
        "who": ["one"] * 24 + ["two"],
        "ward": ["A", "B", "C", "D", "Z", None] * 4 + ["A"],
        "x": [float(each % 5) for each in range(24)] + [1.0],
    }
    domains = {"x": Range(0, 4, step=1), "ward": Values(tuple("ABCD"), outside="drop")}
    told = oracle.table(held, domains, max_rows_per_group=rows, max_groups=groups)
    query = Median(column="x", by="ward", where="who = 'one'")
    for _ in range(4):
        result = told.engine.run(query._expression(told, query.cells(told))).to_pylist()
        sizes: Counter = Counter()
        for row in result:
            sizes[row["key_0"]] += row["rows"]
            estimate = Counter(
                3 * int(x)
                for ward, x in zip(held["ward"][:24], held["x"], strict=False)
                if ward == "ABCD"[row["key_0"]]
            )
            assert row["rows"] <= estimate[row["position"]]
        assert len(sizes) == min(groups, 4)
        assert set(sizes.values()) == {min(rows, 4)}


def test_functions_of_columns_and_constants() -> None:
    held = {"who": ["a", "b"], "x": [1.0, 2.0], "visit": ["2024-01-05", "2025-01-01"]}
    domains = {
        "x": Range(0, 9, step=1),
        "visit": Dates("2024-01-01", "2025-12-31", constant=True),
    }
    told = oracle.table(held, domains, max_groups=5)
    query = Median(column="x", by="year(visit)")
    assert query.bounds(told).max_groups == 1 and query.contribution_policy(told).max_groups == 1
    rows = query.answer(told, query.estimate_cost(told, oracle.share(500)))["rows"]
    assert [row[:2] for row in rows][:2] == [[2024, 1], [2025, 2]]


def test_refusals() -> None:
    held = {"who": ["a"], "x": [1.0], "ward": ["A"]}
    many = oracle.table(held, {"x": Range(0, 9), "ward": [str(each) for each in range(9_999)]})
    with refused("by"):
        Median(column="x", by="ward", points=2_000).estimate_cost(many, oracle.share())
