"""Hierarchies: a person's canton follows from the municipality, on every engine, at no price."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import BudgetRefused
from whosin.release import Count, Histogram, Rows, Synthetic, Top, Values
from whosin.release.column_expressions import GroupGrid
from whosin.release.domains import read_domain
from whosin.release.inspection import check_table
from whosin.release.table import register_question, register_table

TOWNS = ("Zürich", "Bern", "Winterthur", "Biel", "Genf")
PARENTS: dict[str, dict[str, list[str]]] = {
    "language": {"de": ["ZH", "BE"], "fr": ["GE"]},
    "canton": {"ZH": ["Zürich", "Winterthur"], "BE": ["Biel", "Bern"], "GE": ["Genf"]},
}
CANTON = {town: name for name, towns in PARENTS["canton"].items() for town in towns}
LANGUAGE = {town: "fr" if town == "Genf" else "de" for town in TOWNS}
OUTSIDE = {"open": None, "drop": "drop", "moved": "Biel"}
HELD = [*TOWNS, "ZH", "zürich", "other", "drop", "", None]


def domain(policy: str, **keys: Any) -> Values:
    return Values(TOWNS, outside=OUTSIDE[policy], parents=PARENTS, **keys)


def table(policy: str, rows: list[dict[str, Any]] | None = None, **keys: Any) -> wi.Table:
    found = rows or [{"who": f"p{at}", "town": town} for at, town in enumerate(HELD)]
    kinds = {"who": pa.string(), "town": pa.string()}
    data = pa.table({name: pa.array([row[name] for row in found], kinds[name]) for name in kinds})
    return oracle.table(data, {"town": domain(policy)}, **keys)


def parent(town: str | None, policy: str, of: dict[str, str]) -> str | None:
    """By the definition: None where the row does not count."""
    if town in of:
        return of[str(town)]
    if policy == "open":
        return "other"
    return None if policy == "drop" else of["Biel"]


@pytest.mark.parametrize(
    ("policy", "level", "unit"),
    some(product(OUTSIDE, ["canton", "language"], ["who", "row"]), 5, several=True),
)
def test_counts_by_a_level_are_those_of_the_definition(policy, level, unit) -> None:
    data = table(policy, privacy_unit=unit)
    of = CANTON if level == "canton" else LANGUAGE
    names = list(PARENTS[level]) + (["other"] if policy == "open" else [])
    wanted = [sum(parent(town, policy, of) == name for town in HELD) for name in names]
    for query in (Count(by=level), Rows(by=level), Histogram(column=level)):
        assert [label for (label,) in query.cells(data).labels()] == names
        assert oracle.exact(query, data) == [wanted]


@pytest.mark.parametrize(
    ("policy", "bounds"),
    some(product(OUTSIDE, [(1, 1), (2, 1), (2, 2), (3, 9)]), 3, several=True),
)
def test_one_person_moves_the_engine_by_no_more_than_is_claimed(policy, bounds) -> None:
    """Over what one person's rows can come to; added, removed, or in another's place."""
    rng = random.Random(3)
    most_rows, most_groups = bounds
    people: list[tuple[int, ...]] = []
    for _ in range(3):
        rows = [{"who": "one", "town": rng.choice(HELD)} for _ in range(rng.randint(1, 9))]
        data = table(policy, rows)
        query = Rows(by="canton", max_rows_per_group=most_rows, max_groups=most_groups)
        labels = [label for (label,) in query.cells(data).labels()]
        placed = [((parent(row["town"], policy, CANTON),), (1,)) for row in rows]
        inside = [pair for pair in placed if pair[0] != (None,)]
        allowed = {
            tuple(dict(choice).get((label,), (0,))[0] for label in labels)
            for choice in oracle.outcomes(inside, most_rows, query.bounds(data).max_groups)
        }
        for _ in range(2):
            [vector] = oracle.exact(query, data)
            assert tuple(vector) in allowed
        people += sorted(allowed)
    part, most = query.parts(data)[0], query.bounds(data)
    assert max(map(sum, people)) <= part.l1_sensitivity("add-remove", most, True)
    moves = (
        sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in product(people, people)
    )
    assert max(moves) <= part.l1_sensitivity("replace", most, True)


def test_conditions_name_a_level() -> None:
    """A value that was not declared has no parent there, whatever cells do with it."""
    wanted = {
        "canton = 'ZH'": 2,
        "canton in ('ZH', 'GE') and town <> 'Genf'": 2,
        "canton is null": len(HELD) - 5,
        "language = 'fr' or canton = 'BE'": 3,
        "town = 'canton'": 0,
    }
    for policy in OUTSIDE:
        found = {each.what: each.rows for each in check_table(table(policy), list(wanted))}
        assert {text: found[f"where {text}"] for text in wanted} == wanted
        assert oracle.exact(Count(where="canton is null"), table(policy)) == [[len(HELD) - 5]]


@pytest.mark.parametrize("kind", ["string", "int64", "uint64"])
def test_whole_numbers_have_parents(kind: str) -> None:
    codes = [8001, 3000, 8400, -1, 7]
    held = [code for code in codes if code >= 0 or kind != "uint64"]
    values = [str(each) for each in held] if kind == "string" else held
    kinds = {"string": pa.string(), "int64": pa.int64(), "uint64": pa.uint64()}
    source = pa.table({"who": list(range(len(held))), "code": pa.array(values, kinds[kind])})
    parents = {"canton": {"ZH": [8001, 8400], "none": [-1], "BE": [3000]}}
    data = oracle.table(source, {"code": {"parents": parents}})
    assert data.domains["code"] == Values((8001, 8400, -1, 3000), parents=parents)
    assert oracle.exact(Count(by="canton"), data) == [[2, int(-1 in held), 1, 1]]
    assert oracle.exact(Count(where="canton = 'ZH'"), data) == [[2]]


def test_values_may_be_declared_by_their_parents_alone() -> None:
    found = read_domain("town", {"parents": PARENTS, "outside": "Genf"})
    assert isinstance(found, Values)
    assert found.values == ("Zürich", "Winterthur", "Biel", "Bern", "Genf")
    assert {each.name: each.to_dict(found.values) for each in found.levels} == {
        "language": {"de": ["Zürich", "Winterthur", "Biel", "Bern"], "fr": ["Genf"]},
        "canton": PARENTS["canton"],
    }


def test_a_level_of_a_constant_column_is_constant() -> None:
    rows = [{"who": "a", "town": "Bern"}]
    for constant in (True, False):
        data = oracle.table(pa.Table.from_pylist(rows), {"town": domain("open", constant=constant)})
        assert Count(by="canton", max_groups=None).cautions(data) == () or not constant
        assert bool(Count(by="canton").cautions(data)) != constant
    assert Count(by="canton").cautions(data)[0].columns == ("town",)


def test_top_and_answers_name_parents(tmp_path) -> None:
    data = table("moved")
    session = wi.Session(data, oracle.PLANS["add-remove"], tmp_path / "l.db")
    assert {row[1] for row in session.ask(Top(by="canton", k=3), share="1/4").rows} == set(
        PARENTS["canton"]
    )
    answer = session.ask(Count(by="canton"), share="1/4")
    assert [row[0] for row in answer.rows] == ["ZH", "BE", "GE"]
    assert 'values of canton that were not declared count as "BE"' in answer.statement


def test_the_budget_is_bound_to_the_parents(tmp_path) -> None:
    plan, ledger = oracle.PLANS["add-remove"], tmp_path / "l.db"
    first = table("open")
    wi.Session(first, plan, ledger).ask(Count(by="canton"), share="1/4")
    bound = register_table(first).domains["town"]["parents"]
    assert bound["language"] == {"de": ["Zürich", "Bern", "Winterthur", "Biel"], "fr": ["Genf"]}
    for query in (Count(by="canton"), Count(where="canton = 'ZH'")):
        assert "town" in register_question(register_table(first), query, first).domains
    moved = {"canton": {"ZH": ["Zürich"], "BE": ["Biel", "Bern", "Winterthur"], "GE": ["Genf"]}}
    for parents in (moved, ()):
        other = oracle.table(first.source, {"town": Values(TOWNS, parents=parents)})
        query = Count(where="town = 'Bern'", by="town")
        with pytest.raises(BudgetRefused, match="registered with 'town' as"):
            wi.Session(other, plan, ledger).ask(query, share="1/4")
    again = {"canton": {name: towns[::-1] for name, towns in PARENTS["canton"].items()}}
    spelled = PARENTS | again  # children in another order are the same parents
    same = oracle.table(first.source, {"town": Values(TOWNS, parents=spelled)})
    wi.Session(same, plan, ledger).ask(Count(by="language"), share="1/4")
    assert register_table(oracle.table(first.source, {"town": TOWNS})).domains["town"] == {
        "values": list(TOWNS)
    }


def test_tables_by_two_levels_of_a_column_are_refused(tmp_path) -> None:
    data = table("open")
    for by in (("town", "canton"), ("canton", "town"), ("language", "canton")):
        with refused("by"):
            GroupGrid.of(data, by)
    query = Synthetic(columns=["town", "canton"], path=str(tmp_path / "s.parquet"))
    with refused("columns"):
        query.estimate_cost(data, oracle.share(relation="replace"))


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (["x"], "parents"),
        ({"canton": ["ZH"]}, "canton"),
        ({"canton": {}}, "canton"),
        ({"": {"a": ["Bern"]}}, "parents"),
        ({"f(x)": {"a": ["Bern"]}}, "parents"),
        ({1: {"a": ["Bern"]}}, "parents"),
        ({"canton": {1: ["Bern"]}}, "canton"),
        ({"canton": {"ZH": "Zürich"}}, "canton"),
        ({"canton": {"ZH": []}}, "canton"),
        ({"canton": {"ZH": list(TOWNS[:4])}}, "canton"),
        ({"canton": {"a": list(TOWNS), "b": ["Bern"]}}, "canton"),
        ({"canton": {"a": ["Bern", "Bern"]}}, "canton"),
        ({"canton": {"a": [["Bern"]]}}, "canton"),
        ({"canton": {"a": [*TOWNS, "Basel"]}}, "canton"),
        ({"canton": {"a": [*TOWNS, 1]}}, "canton"),
        ({"a": {"x": ["y"]}, "b": {"y": ["x"]}}, "a"),
        ({"a": {"x": ["x"]}}, "a"),
        (PARENTS | {"language": {"de": ["ZH", "BE", "VD"]}}, "language"),
        (PARENTS | {"language": {"de": ["ZH", "BE"]}}, "language"),
        ({"who": PARENTS["canton"]}, "domains.town.parents"),
        ({"town": PARENTS["canton"]}, "domains.town.parents"),
        ({f"l{at}": PARENTS["canton"] for at in range(21)}, "parents"),
    ],
)
def test_bad_parents_are_refused_in_one_sentence(given: Any, field: str) -> None:
    with refused(field) as caught:
        table_of(given)
    assert str(caught.value).startswith(("domains.town", "the level"))


def table_of(parents: Any, **more: Any) -> wi.Table:
    source = pa.table({"who": ["a"], "town": ["Bern"], "ward": ["Bern"]})
    return oracle.table(source, {"town": {"values": list(TOWNS), "parents": parents}, **more})


def test_other_bad_declarations() -> None:
    with refused("domains.ward.parents"):
        table_of(PARENTS, ward={"values": list(TOWNS), "parents": PARENTS})
    with refused("domain of x"):
        read_domain("x", {"lower": 1, "upper": 2, "parents": PARENTS})
    for wrong in (3, {}, {"canton": 3}):
        with refused("parents"):
            read_domain("x", {"parents": wrong})
    closed = Values(TOWNS, outside="drop", parents={"country": {"CH": list(TOWNS)}})
    alone = oracle.table(pa.table({"who": ["a"], "town": ["Bern"]}), {"town": closed})
    with refused("outside"):
        GroupGrid.of(alone, "country")
    with refused("column", "kanton"):
        GroupGrid.of(table("open"), "kanton")


@pytest.mark.parametrize(
    ("columns", "sets", "field"),
    [
        (["town", "canton"], None, "columns"),
        (["cumulative(town)"], None, "columns"),
        (["town"], [["town"], ["canton"]], "sets"),
        (["town"], [["town"], ["cumulative(canton)"]], "sets"),
    ],
)
def test_a_learned_table_has_columns_of_rows(tmp_path, columns, sets, field: str) -> None:
    pytest.importorskip("mbi")
    path = str(tmp_path / "s.parquet")
    query = Synthetic(columns=columns, sets=sets, path=path, method="marginals")
    with refused(field):
        query.estimate_cost(table("open"), oracle.share())
    fine = Synthetic(columns=["canton"], path=path, method="marginals")
    assert fine.estimate_cost(table("open"), oracle.share()).details.cells.columns == ("canton",)
