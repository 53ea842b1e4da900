"""How far one privacy unit can move an answer: every claim against enumeration of what it can
hold."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import release_oracle as oracle
from amounts import some
from whosin.ledger.budget import NEIGHBOUR_RELATIONS
from whosin.release import Count, Histogram, Mean, Range, Rows, Sum, Top, Variance
from whosin.release.column_expressions import GroupGrid
from whosin.release.contribution_bounds import Aggregate, ContributionBounds

PARTS = [(1, 1), (0, 3), (-2, 0), (-2, 3), (1, 3), (-3, -1), (-2, 2)]


def contributions(part: Aggregate, bounds: ContributionBounds, cells: int) -> set[tuple[int, ...]]:
    """All vectors that one privacy unit can add, over its rows and the random choices; nothing
    too."""
    values = sorted({part.low, part.high, 0 if part.low <= 0 <= part.high else part.low})
    kinds = list(product(range(cells), values))
    found = {(0,) * cells}
    for count in range(1, 5):
        for rows in combinations_with_replacement(kinds, count):
            pairs = [((home,), (value,)) for home, value in rows]
            for choice in oracle.outcomes(pairs, bounds.max_rows_per_group, bounds.max_groups):
                vector = [0] * cells
                for (home,), (total,) in choice:
                    vector[home] = total
                found.add(tuple(vector))
    return found


@pytest.mark.parametrize("ends", PARTS)
@pytest.mark.parametrize(("rows", "groups", "cells"), [(1, 1, 1), (3, 1, 1), (2, 1, 2), (1, 2, 4)])
def test_claimed_sensitivities_are_the_largest_changes(ends, rows, groups, cells) -> None:
    part, bounds, grouped = (
        Aggregate("x", Fraction(1), *ends),
        ContributionBounds(rows, groups),
        cells > 1,
    )
    found = np.array(sorted(contributions(part, bounds, cells)))
    pairs = found[:, None, :] - found[None, :, :]
    largest = {
        "add-remove": (np.abs(found).sum(1).max(), (found**2).sum(1).max()),
        "replace": (np.abs(pairs).sum(2).max(), (pairs**2).sum(2).max()),
    }
    for relation in NEIGHBOUR_RELATIONS:
        one, two = largest[relation]
        assert one == part.l1_sensitivity(relation, bounds, grouped)
        assert two == part.squared_l2_sensitivity(relation, bounds, grouped)


@pytest.mark.parametrize(("rows", "groups", "cells"), [(1, 1, 1), (3, 1, 1), (2, 1, 2), (1, 2, 4)])
def test_paired_parts_move_together_by_no_more_than_one(rows, groups, cells) -> None:
    """Every row adds v to one part and 3 − v to the other: all that one person may come to."""
    part, bounds = Aggregate("x", Fraction(1), 0, 3, paired=True), ContributionBounds(rows, groups)
    kept = {(sum(held), 3 * n - sum(held)) for n in range(rows + 1)
            for held in product(range(4), repeat=n)}  # fmt: skip
    homes = [home for n in range(groups + 1) for home in combinations(range(cells), n)]
    vectors = {
        tuple(each[home.index(cell)] if cell in home else (0, 0) for cell in range(cells))
        for home in homes
        for each in product(kept, repeat=len(home))
    }
    found = np.array(sorted(vectors)).reshape(len(vectors), -1)
    pairs = found[:, None, :] - found[None, :, :]
    largest = {
        "add-remove": (np.abs(found).sum(1).max(), (found**2).sum(1).max()),
        "replace": (np.abs(pairs).sum(2).max(), (pairs**2).sum(2).max()),
    }
    for relation in NEIGHBOUR_RELATIONS:
        at = relation, bounds, cells > 1
        assert largest[relation] == (part.l1_sensitivity(*at), part.squared_l2_sensitivity(*at))


def test_the_claims_can_fail() -> None:
    part, bounds = Aggregate("x", Fraction(1), -2, 3), ContributionBounds(2, 1)
    most = max(sum(map(abs, vector)) for vector in contributions(part, ContributionBounds(3, 1), 2))
    assert most > part.l1_sensitivity("add-remove", bounds, True)


DOMAINS = {"ward": ["A", "B", "C"], "x": Range(-2, 3, step=1, edges=(-2, 0, 3))}
QUERIES = [
    Count(),
    Count(by="ward", max_groups=2),
    Histogram(column="x"),
    Rows(max_rows_per_group=2),
    Rows(by=("ward",), max_rows_per_group=2, max_groups=2),
    Sum(column="x", max_rows_per_group=2),
    Sum(column="x", by="ward", max_rows_per_group=1, max_groups=2),
    Sum(column="x", by="ward", max_rows_per_group=1, max_groups=2, factor=-2, offset="1/3"),
    Mean(column="x", max_rows_per_group=2),
    Variance(column="x", by="ward", max_rows_per_group=2, max_groups=1),
]


def crowd(seed: int, entities: list[str]) -> list[dict]:
    rng = random.Random(seed)
    return [
        {
            "who": who,
            "ward": rng.choice(["A", "B", "C", "D", None]),
            "x": rng.choice([-9.0, -2.0, 0.0, 0.4, 3.0, 9.0, None, float("nan")]),
        }
        for who in entities
        for _ in range(random.Random(f"{seed}{who}").randint(0, 6))
    ]


@pytest.mark.parametrize("query", some(QUERIES, 4), ids=lambda query: f"{query.kind}-{query.by}")
def test_one_entity_moves_the_engine_by_no_more_than_is_claimed(query) -> None:
    """The rows are drawn anew in each run, so the other privacy unit is alone: what it adds is
    all."""
    worst = dict.fromkeys(NEIGHBOUR_RELATIONS, 0)
    seen = []
    for seed in range(6):
        rows = crowd(seed, ["one"]) or [{"who": None, "ward": None, "x": None}]
        data = oracle.table(_columns(rows), DOMAINS)
        found = oracle.exact(query, data)
        seen.append(found)
        for vector, part in zip(found, query.parts(data), strict=True):
            grouped = bool(query.cells(data).columns)
            claimed = part.l1_sensitivity("add-remove", query.bounds(data), grouped)
            assert sum(map(abs, vector)) <= claimed
            claimed = part.squared_l2_sensitivity("add-remove", query.bounds(data), grouped)
            assert sum(x * x for x in vector) <= claimed
            worst["add-remove"] = max(worst["add-remove"], sum(map(abs, vector)))
    assert worst["add-remove"] > 0
    if query.kind == "mean":  # two parts that are one to pay for
        claimed = query.parts(data)[0].l1_sensitivity("add-remove", query.bounds(data), False)
        assert max(sum(map(sum, found)) for found in seen) <= claimed
    for first, second in product(seen, seen):
        for one, other, part in zip(first, second, query.parts(data), strict=True):
            change = sum(abs(a - b) for a, b in zip(one, other, strict=True))
            grouped = bool(query.cells(data).columns)
            assert change <= part.l1_sensitivity("replace", query.bounds(data), grouped)


def _columns(rows: list[dict]) -> dict:
    import pyarrow as pa

    return pa.table(
        {
            "who": pa.array([row["who"] for row in rows], pa.string()),
            "ward": pa.array([row["ward"] for row in rows], pa.string()),
            "x": pa.array([row["x"] for row in rows], pa.float64()),
        }
    )


def test_every_random_choice_is_one_that_the_bounds_allow() -> None:
    rows: list[dict[str, Any]] = [
        {"who": "one", "ward": ward, "x": float(x)}
        for ward, x in [("A", 1), ("A", 2), ("A", 3), ("B", 0), ("B", -2), ("C", 3), ("D", 1)]
    ]
    data, query = (
        oracle.table(_columns(rows), DOMAINS),
        Sum(column="x", by="ward", max_rows_per_group=2, max_groups=2),
    )
    labels = [label[0] for label in query.cells(data).labels()]
    domain = data.range("x")
    pairs = [
        (row["ward"] if row["ward"] in "ABC" else "other", (oracle.steps(row["x"], domain),))
        for row in rows
    ]
    possible = {
        tuple(dict(choice).get(label, (0,))[0] for label in labels)
        for choice in oracle.outcomes(pairs, 2, 2)
    }
    seen = {tuple(oracle.exact(query, data)[0]) for _ in range(20)}
    assert seen <= possible
    assert len(seen) > 3, "the rows are not chosen at random"


def test_top_counts_move_by_one_each_and_one_way() -> None:
    """A privacy unit that is in every cell moves every count, each by 1."""
    everywhere = {"who": ["a"] * 12, "ward": ["A", "B", "C"] * 4}
    data = oracle.table(everywhere, {"ward": ["A", "B", "C"]}, max_groups=1)
    query = Top(by="ward", k=2)
    cells: GroupGrid = query._cells(data)
    result = data.engine.run(query._expression(data, cells))
    assert cells.dense(result, ["people"])[0].tolist() == [1, 1, 1, 0]
    assert len(query._named(cells)) == 3
