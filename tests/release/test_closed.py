"""Closed domains: no cell "other", and values outside go where the schema's author says."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import BudgetRefused
from whosin.release import (
    Count,
    Histogram,
    Marginals,
    Range,
    Rows,
    Sum,
    Synthetic,
    Top,
    Values,
)
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.column_expressions import GroupGrid
from whosin.release.domains import read_domain
from whosin.release.inspection import check_table
from whosin.release.table import register_table

EDGES = (0, 18, 65.5, 120)
DOMAINS: dict[str, dict[str, Any]] = {
    "open": {"sex": Values(("f", "m")), "age": Range(0, 120, edges=EDGES), "n": Values((1, 0))},
    "drop": {
        "sex": Values(("f", "m"), outside="drop"),
        "age": Range(0, 120, edges=EDGES, outside="drop"),
        "n": Values((1, 0), outside="drop"),
    },
    "moved": {
        "sex": Values(("f", "m"), outside="m"),
        "age": Range(0, 120, edges=EDGES, outside="clamp"),
        "n": Values((1, 0), outside=0),
    },
}
SEXES = ["f", "m", "F", "m ", "", "other", "drop", None]
AGES: list[Any] = [0.0, -0.0, 17.99, 18.0, 65.5, 120.0, 120.5, -1.0, 1e300]
AGES += [float("inf"), float("-inf"), float("nan"), None]
NUMBERS = [1, 0, 2, -(2**63), 2**63 - 1, None]


def crowd() -> list[dict[str, Any]]:
    """Every combination of what may be held, each by someone of their own."""
    held = product(SEXES, AGES, NUMBERS)
    return [{"who": f"p{i}", "sex": s, "age": a, "n": n} for i, (s, a, n) in enumerate(held)]


def columns(rows: list[dict[str, Any]]) -> pa.Table:
    kinds = {"who": pa.string(), "sex": pa.string(), "age": pa.float64(), "n": pa.int64()}
    return pa.table({name: pa.array([r[name] for r in rows], kinds[name]) for name in kinds})


def dense(cells: GroupGrid, rows: list[dict[str, Any]], domains: dict[str, Any]) -> list[int]:
    """How many rows are in each cell, by the definition."""
    found = Counter(oracle.cell(row, cells.columns, domains) for row in rows)
    return [found[label] for label in cells.labels()]


@pytest.mark.parametrize("policy", DOMAINS)
@pytest.mark.parametrize("unit", ["who", "row"])
@pytest.mark.parametrize("by", some([("sex",), ("age",), ("sex", "age", "n"), ("n",)], 1))
def test_counts_are_those_of_the_definition(policy: str, unit: str, by: tuple[str, ...]) -> None:
    rows, domains = crowd(), DOMAINS[policy]
    data = oracle.table(columns(rows), domains, privacy_unit=unit)
    for query in (Count(by=by), Rows(by=by)):
        wanted = dense(query.cells(data), rows, domains)
        assert oracle.exact(query, data) == [wanted]
        assert sum(wanted) == len(rows) or policy != "open"


def test_the_labels_have_no_other() -> None:
    for policy, count in (("open", 3 * 4 * 3), ("drop", 2 * 3 * 2), ("moved", 2 * 3 * 2)):
        cells = GroupGrid.of(oracle.table(columns(crowd()), DOMAINS[policy]), ("sex", "age", "n"))
        assert cells.count == len(cells.labels()) == count
        assert any("other" in label for label in cells.labels()) == (policy == "open")


@pytest.mark.parametrize("policy", DOMAINS)
def test_tables_of_marginals_are_of_the_same_people(policy: str) -> None:
    rows, domains = crowd(), DOMAINS[policy]
    data = oracle.table(columns(rows), domains)
    query = Marginals(columns=["sex", "age", "n"], order=2)
    details = query.estimate_cost(data, oracle.share()).details
    assert details is not None
    scan = details["scan"]
    found = scan.count(data, scan.expression(data, None, 1), None)
    kept = [row for row in rows if oracle.cell(row, ("sex", "age", "n"), domains) is not None]
    for attributes, counts in zip(scan.sets, found, strict=True):
        own = tuple(scan.cells.columns[each] for each in attributes)
        wanted = dense(GroupGrid(own, tuple(domains[each] for each in own)), kept, domains)
        assert counts.ravel().tolist() == (wanted if own else [len(kept)])


@pytest.mark.parametrize("policy", DOMAINS)
@pytest.mark.parametrize("bounds", some([(1, 1), (2, 1), (2, 2), (3, 9)], 1))
def test_one_person_moves_the_engine_by_no_more_than_is_claimed(policy, bounds) -> None:
    """A person's rows outside do not make room for more, and the choices are those allowed."""
    rng = random.Random(7)
    rows = [
        {"who": "one", "sex": s, "age": a, "n": 1}
        for s, a in rng.sample(list(product(SEXES, AGES)), 14)
    ]
    domains = DOMAINS[policy]
    data = oracle.table(columns(rows), domains)
    by = ("sex", "age")
    most_rows, most_groups = bounds
    query = Rows(by=by, max_rows_per_group=most_rows, max_groups=most_groups)
    cells = query.cells(data)
    placed = [(oracle.cell(row, by, domains), (1,)) for row in rows]
    inside = [pair for pair in placed if pair[0] is not None]
    assert inside and (len(inside) < len(rows) or policy == "open" or policy == "moved")
    allowed = {
        tuple(dict(choice).get(label, (0,))[0] for label in cells.labels())
        for choice in oracle.outcomes(inside, most_rows, query.bounds(data).max_groups)
    }
    part = query.parts(data)[0]
    for _ in range(5):
        [vector] = oracle.exact(query, data)
        assert tuple(vector) in allowed
        assert sum(vector) <= part.l1_sensitivity("add-remove", query.bounds(data), True)


def test_sums_still_clamp_numbers_that_are_in_no_bin() -> None:
    """Closed bins are about cells: a sum by sex takes every number there is."""
    rows = [{"who": str(i), "sex": "f", "age": age, "n": 1} for i, age in enumerate(AGES)]
    for domains in DOMAINS.values():
        data = oracle.table(columns(rows), domains)
        query = Sum(column="age", by="sex")
        taken = [oracle.steps(age, domains["age"]) for age in AGES]
        assert oracle.exact(query, data)[0][0] == sum(each for each in taken if each is not None)


def test_texts_and_truths_can_be_closed() -> None:
    held = {"who": ["a", "b", "c", "d"], "t": ["1", "x", None, "2"], "b": [True, None, False, True]}
    domains = {"t": Values((1, 2), outside=2), "b": Values((True, False), outside=False)}
    data = oracle.table(held, domains)
    assert oracle.exact(Count(by="t"), data) == [[1, 3]]
    assert oracle.exact(Count(by="b"), data) == [[2, 2]]


def test_top_names_every_cell_of_a_closed_domain() -> None:
    data = oracle.table(columns(crowd()), DOMAINS["moved"])
    assert len(Top(by=("sex", "n"), k=4)._named(GroupGrid.of(data, ("sex", "n")))) == 4
    estimate_batch_cost(data, oracle.PLANS["add-remove"], [Top(by="sex", k=2)])


@pytest.mark.parametrize("column", ["sex", "age"])
def test_a_synthetic_table_would_show_that_a_row_was_dropped(tmp_path, column: str) -> None:
    query = Synthetic(columns=[column], path=str(tmp_path / "s.parquet"))
    data = oracle.table(columns(crowd()), DOMAINS["drop"])
    with refused(f"domain of {column}"):
        query.estimate_cost(data, oracle.share(relation="replace"))
    moved = oracle.table(columns(crowd()), DOMAINS["moved"])
    if column == "sex":
        query.estimate_cost(moved, oracle.share(relation="replace"))
    else:  # rows without a number have no bin to be clamped to
        with refused("domain of age"):
            query.estimate_cost(moved, oracle.share(relation="replace"))


@pytest.mark.parametrize(
    ("domain", "field"),
    [
        ({"values": ["f", "m"], "outside": "x"}, "outside"),
        ({"values": ["f", "m"], "outside": ["f"]}, "outside"),
        ({"values": [0, 1], "outside": True}, "outside"),
        ({"values": [0, 1], "outside": "1"}, "outside"),
        ({"values": ["f", "m"], "outside": "clamp"}, "outside"),
        ({"values": ["drop", "m"], "outside": "drop"}, "outside"),
        ({"values": ["f"], "outside": "drop"}, "outside"),
        ({"edges": [0, 9], "outside": "drop"}, "outside"),
        ({"edges": [0, 5, 9], "outside": "0..5"}, "outside"),
        ({"edges": [0, 5, 9], "outside": 0}, "outside"),
        ({"edges": [0, 5, 9], "outsid": "drop"}, "key of the domain of x"),
    ],
)
def test_refusals(domain: dict[str, Any], field: str) -> None:
    with refused(field):
        read_domain("x", domain)


def test_answers_say_what_became_of_values_outside(tmp_path) -> None:
    data = oracle.table(columns(crowd()), DOMAINS["moved"])
    session = wi.Session(data, oracle.PLANS["add-remove"], tmp_path / "l.db")
    answer = session.ask(Count(by=("sex", "age"), max_groups=1), share="1/4")
    assert answer.statement == (
        "Privacy unit: column who; at most 1 group per person counts; age beyond the bins is in "
        "the first or the last one, and rows without a value there do not count; values of sex "
        'that were not declared count as "m". The interval is for the noise: it does not cover '
        "what this leaves out."
    )
    assert answer.question["counted"]["outside"] == {"sex": '"m"', "age": "clamp"}
    assert len(answer.rows) == 6
    dropped = oracle.table(columns(crowd()), DOMAINS["drop"], privacy_unit="row")
    said = wi.release.contribution_bounds.bounds_statement(
        Histogram(column="n").contribution_policy(dropped).to_dict(), True
    )
    assert "rows whose n was not declared do not count. The interval is for the noise" in said


def test_a_budget_is_bound_to_where_values_outside_go(tmp_path) -> None:
    plan, ledger = oracle.PLANS["add-remove"], tmp_path / "l.db"
    first = oracle.table(columns(crowd()), DOMAINS["moved"])
    wi.Session(first, plan, ledger).ask(Count(by="n"), share="1/4")
    for other in ("open", "drop"):
        with pytest.raises(BudgetRefused, match=r"'age' as .*, outside clamp, and this has"):
            wi.Session(oracle.table(columns(crowd()), DOMAINS[other]), plan, ledger)
    assert register_table(first).domains["n"] == {"values": [1, 0], "outside": 0}


def test_the_curator_sees_what_lies_outside() -> None:
    for policy, words in (("drop", "dropped"), ("moved", 'counted as "m"')):
        data = oracle.table(columns(crowd()), DOMAINS[policy])
        found = {each.what: each.rows for each in check_table(data)}
        outside = [row for row in crowd() if row["sex"] not in ("f", "m")]
        assert found[f"sex: not a declared value, {words}"] == len(outside)
        assert found["rows"] == found["privacy units"] == len(crowd())
        assert found["sex: privacy units in more than one cell"] == 0
        beyond = sum(1 for row in crowd() if row["age"] is not None and abs(row["age"]) > 120)
        beyond += sum(1 for row in crowd() if row["age"] == -1)
        if policy == "drop":
            fates = "dropped in cells, clamped in sums, means and medians"
            assert found[f"age: outside 0..120, {fates}"] == beyond
