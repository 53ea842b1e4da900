"""Columns that are the same in all rows of a person: what they save, and that a wrong declaration
breaks no promise."""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

import release_oracle as oracle
from whosin.ledger.budget import NEIGHBOUR_RELATIONS
from whosin.release import Count, Histogram, Keys, Marginals, Range, Rows, Sum, Values
from whosin.release.contribution_bounds import PEOPLE_PART, ContributionBounds

SEX = Values(("f", "m"), constant=True)
WARD = Values(("A", "B", "C"), outside="drop")
AGE = Range(0, 90, edges=(0, 30, 60, 90), constant=True)
DOMAINS: dict[str, Any] = {"sex": SEX, "ward": WARD, "age": AGE, "x": Range(0, 5, step=1)}
WRONG = {
    "who": ["one"] * 6,
    "sex": ["f", "m", None, "f", "m", "f"],
    "ward": ["A", "A", "B", "C", "C", "C"],
    "age": [10.0, 40.0, None, 70.0, 10.0, 95.0],
    "x": [1, 2, 3, 4, 5, 5],
}
QUERIES = [
    (Count(by="sex", max_groups=9), 1),
    (Histogram(column="age", max_groups=9), 1),
    (Histogram(column="ward", by="sex", max_groups=9), 3),
    (Count(by=("sex", "ward"), max_groups=2), 2),
    (Rows(by=("sex", "age"), max_rows_per_group=2, max_groups=9), 1),
    (Sum(column="x", by=("ward", "sex"), max_rows_per_group=2, max_groups=9), 3),
]


@pytest.mark.parametrize(("query", "groups"), QUERIES, ids=lambda each: str(each)[:40])
def test_a_wrong_declaration_breaks_no_bound(query, groups: int) -> None:
    """One person whose rows all differ: the engine adds what the bounds allow, and no more."""
    data = oracle.table(WRONG, DOMAINS)
    bounds, part = query.bounds(data), query.parts(data)[0]
    assert bounds.max_groups == groups
    rows = [dict(zip(WRONG, each, strict=True)) for each in zip(*WRONG.values(), strict=True)]
    cells = query.cells(data)
    pairs = [(oracle.cell(row, cells.columns, DOMAINS), row) for row in rows]
    valued = [
        (home, (row["x"] if query.kind == "sum" else 1,)) for home, row in pairs if home is not None
    ]
    allowed = {
        tuple(dict(choice).get(label, (0,))[0] for label in cells.labels())
        for choice in oracle.outcomes(valued, bounds.max_rows_per_group, bounds.max_groups)
    }
    for _ in range(3):
        [vector] = oracle.exact(query, data)
        assert tuple(vector) in allowed
        assert sum(vector) <= part.l1_sensitivity("add-remove", bounds, True)


def test_claims_are_the_largest_changes_over_all_that_someone_may_hold() -> None:
    """A person's rows are anything, whether or not the declaration is true."""
    kinds, bounds = list(product(range(2), range(2))), ContributionBounds(1, 2)
    data = oracle.table(WRONG, {"sex": SEX, "ward": Values(("A", "B"), outside="drop")})
    assert Count(by=("sex", "ward"), max_groups=9).bounds(data) == ContributionBounds(1, 2)
    found = {(0,) * 4}
    for count in range(1, 5):
        for rows in combinations_with_replacement(kinds, count):
            for choice in oracle.outcomes([(home, (1,)) for home in rows], 1, bounds.max_groups):
                held = {home: total for home, (total,) in choice}
                found.add(tuple(held.get(kind, 0) for kind in kinds))
    vectors = np.array(sorted(found))
    changes = vectors[:, None, :] - vectors[None, :, :]
    largest = {"add-remove": vectors.sum(1).max(), "replace": np.abs(changes).sum(2).max()}
    for relation in NEIGHBOUR_RELATIONS:
        assert largest[relation] == PEOPLE_PART.l1_sensitivity(relation, bounds, True)


def test_nobody_is_left_out_where_the_declaration_is_true() -> None:
    held = {
        "who": [f"p{i}" for i in range(40) for _ in range(3)],
        "sex": ["fm"[i % 2] for i in range(40) for _ in range(3)],
        "ward": ["ABC"[(i + j) % 3] for i in range(40) for j in range(3)],
    }
    data = oracle.table(
        held, {name: DOMAINS[name] for name in ("sex", "ward")}, max_groups=3, max_rows_per_group=3
    )
    assert oracle.exact(Count(by="sex"), data) == [[20, 20, 0]]
    assert oracle.exact(Count(by=("sex", "ward")), data) == [[20] * 6 + [0] * 3]
    assert Count(by="sex").contribution_policy(data).max_groups == 1
    assert Count(by=("ward", "sex")).contribution_policy(data).max_groups == 3


@pytest.mark.parametrize("relation", NEIGHBOUR_RELATIONS)
def test_a_constant_column_costs_one_cell(relation: str) -> None:
    """The noise is that of one cell, whatever the table's own bound."""
    share, plain = oracle.share(relation=relation), Values(("f", "m"))
    for query in (Count(by="sex"), Rows(by="sex", max_rows_per_group=1)):
        wide = oracle.table(WRONG, {"sex": SEX}, max_groups=2)
        narrow = oracle.table(WRONG, {"sex": plain}, max_groups=1)
        double = oracle.table(WRONG, {"sex": plain}, max_groups=2)
        noises = [
            query.estimate_cost(each, share).parts[0].noise.width for each in (wide, narrow, double)
        ]
        assert noises[0] == noises[1] == noises[2] / 2


def test_keys_and_tables_of_constant_columns() -> None:
    data = oracle.table(WRONG, DOMAINS, max_groups=4, max_rows_per_group=3)
    assert Keys(column="sex").contribution_policy(data).max_groups == 1
    assert Keys(column="ward").contribution_policy(data).max_groups == 4
    assert Marginals(columns=["sex", "age"]).contribution_policy(data).max_rows_per_group == 1
    assert (
        Marginals(columns=["sex", "age"], max_rows_per_group=2)
        .contribution_policy(data)
        .max_rows_per_group
        == 2
    )
    assert Marginals(columns=["sex", "ward"]).contribution_policy(data).max_rows_per_group == 3
    query = Marginals(columns=["sex", "age"])
    details = query.estimate_cost(data, oracle.share()).details
    assert details is not None
    scan = details["scan"]
    for counts in scan.count(data, scan.expression(data, None, 1), None):
        assert counts.sum() == 1
    found = data.engine.run(Keys(column="sex")._expression(data))
    assert sum(found.column("people").to_pylist()) == 1
