"""Places of values in their domains: the join beside a CASE with a branch a value."""

from __future__ import annotations

import math
import re
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from amounts import some
from release_oracle import ENGINE
from spark_session import shared_spark
from whosin.errors import InvalidInput
from whosin.release import Count, DuckDB, Spark, Table, Values
from whosin.release.column_expressions import GroupGrid

# What engines might take for the same: case, spaces, padding, forms of one letter, signs, nothing.
TEXTS = st.sampled_from(
    [
        *("a", "A", "a ", " a", "a\t", "", " ", "é", "e\u0301", "ß", "SS", "0", "00", "-0", "1"),
        *("1.0", "NULL", "nan", "other", "true", "a'b", 'a"b', "\\", "%", "😀", "long " * 9),
    ]
)
ENDS = [0, 1, -1, 2**31, -(2**31), 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
NUMBERS = st.one_of(st.sampled_from(ENDS), st.integers(-3, 3))
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "texts": (TEXTS, TEXTS, pa.string()),
    "whole numbers": (NUMBERS, NUMBERS, pa.int64()),
    "small numbers": (st.integers(-128, 127), NUMBERS, pa.int8()),
    "unsigned numbers": (st.integers(0, 2**64 - 1) | st.integers(0, 3), NUMBERS, pa.uint64()),
    "truths": (st.booleans(), st.booleans(), pa.bool_()),
}


def by_case(data: Any, column: str, domain: Values) -> Any:
    """The definition: the place of the first value that is equal, else the last place."""
    value, last = data[column], len(domain.values)
    listed: list[Any] = [str(v) if value.type().is_string() else v for v in domain.values]
    unsigned = value.type().is_unsigned_integer()  # is never below 0, and Ibis will not compare
    branches = [
        (value == each, place) for place, each in enumerate(listed) if not (unsigned and each < 0)
    ]
    if not branches:
        return ibis.literal(last, "int64")
    return ibis.cases(*branches, else_=last).fill_null(last).cast("int64")


def places(engine: Any, rows: dict[str, pa.Array], domains: dict[str, Values]) -> list[Any]:
    """(row, places by the join, places by CASE), sorted by row."""
    numbered = pa.table({"row": list(range(len(next(iter(rows.values()))))), **rows})
    table = Table(numbered, "column:row", domains, name="t", engine=engine)
    cells = GroupGrid.of(table, list(domains))
    cases = {f"case_{c}": by_case(table.data, c, domain) for c, domain in domains.items()}
    found = engine.run(cells.coded(table.data, row=table.data["row"], **cases))
    assert found.column_names == ["row", *cases, *cells.names]
    return sorted(tuple(row.values()) for row in found.to_pylist())


def compare(kind: str, data: st.DataObject) -> None:
    held, declared, arrow = KINDS[kind]
    domain = Values(tuple(data.draw(st.lists(declared, min_size=1, max_size=8, unique=True))))
    column = pa.array(data.draw(st.lists(st.none() | held, min_size=1, max_size=12)), arrow)
    # Two columns with one list, and no row lost or doubled.
    found = places(ENGINE, {"x": column, "y": column[::-1]}, {"x": domain, "y": domain})
    assert [row for row, *_ in found] == list(range(len(column)))
    for _, *both in found:
        assert both[:2] == both[2:]


@pytest.mark.parametrize("kind", some(KINDS, 3))
@settings(max_examples=12)
@given(data=st.data())
def test_the_join_says_what_a_case_says(kind: str, data: st.DataObject) -> None:
    compare(kind, data)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=200)
@given(data=st.data())
def test_it_says_so_often(kind: str, data: st.DataObject) -> None:
    compare(kind, data)


SPELLED = st.one_of(
    TEXTS,
    st.sampled_from(
        [
            *("3.0", "3.", "+3", "03", " 3 ", "3e0", "30e-1", "3.5", "2.9999999999999999", "-1.0"),
            *("3,0", "0x3", "1_0", "٣", "3\n", "1e99", "9007199254740993", "9007199254740993.0"),
            *("999999999999999999", "1000000000000000000", "Infinity", "1e-99", ".0", "-.0"),
        ]
    ),
)
SPELLED_PATTERN = re.compile(
    r" {0,20}[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})([eE][+-]?[0-9]{1,2})? {0,20}"
)
LISTED = st.one_of(
    st.integers(-3, 3), st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, 10**18 - 1, 9 * 10**17])
)


def number_of(held: object) -> Fraction | None:
    """The number that a text spells or a double is, as the definition says: beyond 2^53 texts have
    to be whole ones, since doubles are rounded there."""
    if isinstance(held, str):
        if not SPELLED_PATTERN.fullmatch(held):
            return None
        whole = re.fullmatch(r"[+-]?[0-9]{1,18}", held.strip(" "))
        exact = Fraction(int(held)) if whole else Fraction(float(held))
        return exact if whole or abs(exact) < 2**53 else None
    if held is None or not math.isfinite(float(held)):  # type: ignore[arg-type]
        return None
    return Fraction(float(held))  # type: ignore[arg-type]


def check_numbers(engine: Any, column: pa.Array, values: tuple[int, ...]) -> None:
    domain = Values(values)
    found = places(engine, {"x": column, "y": column}, {"x": domain, "y": domain})
    assert [row for row, *_ in found] == list(range(len(column)))
    for (row, *both), held in zip(found, column.to_pylist(), strict=True):
        number = number_of(held)
        wanted = values.index(int(number)) if number in values else len(values)  # type: ignore[arg-type]
        assert both[2:] == [wanted, wanted], (row, held)


DOUBLES = [None, 3.0, 3.5, -0.0, 0.0, float("nan"), float("inf"), 2.0**53 - 1, -1.0, 1e300, 2.0]


@settings(max_examples=40)
@given(data=st.data())
def test_whole_numbers_are_the_same_however_they_are_spelled(data: st.DataObject) -> None:
    """3.0 is 3: in a text file, in a column of doubles, and in one of decimals."""
    values = tuple(data.draw(st.lists(LISTED, min_size=1, max_size=6, unique=True)))
    if data.draw(st.booleans()):  # more than are found without a join
        values = (*values, *range(100, 120))
    texts = data.draw(st.lists(st.none() | SPELLED, min_size=1, max_size=12))
    check_numbers(ENGINE, pa.array(texts, pa.string()), values)
    small = tuple(each for each in values if abs(each) < 2**53) or (0,)
    check_numbers(ENGINE, pa.array(DOUBLES), small)
    decimals = [None, *map(Decimal, ("3.00", "3.01", "-1", "0", "119.00"))]
    check_numbers(ENGINE, pa.array(decimals, pa.decimal128(20, 2)), small)


def test_one_and_true_are_two_lists() -> None:
    rows = {"n": pa.array([1, 0, 2]), "b": pa.array([True, None, False])}
    found = places(ENGINE, rows, {"n": Values((1, 0)), "b": Values((True, False))})
    assert [each[1:] for each in found] == [(0, 0, 0, 0), (1, 2, 1, 2), (2, 1, 2, 1)]


def test_half_letters_are_refused() -> None:
    with pytest.raises(InvalidInput, match="UTF-8"):
        Values(("a", "\ud800"))


def test_ten_thousand_values_and_a_million_rows(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    duckdb.sql(
        "COPY (SELECT range % 100000 AS person, 'w' || (hash(range) % 10001) AS ward "
        f"FROM range(1000000)) TO '{path}'"
    )
    with DuckDB() as engine:
        table = Table(path, "person", {"ward": [f"w{n}" for n in range(10_000)]}, engine=engine)
        query = Count(by="ward", max_groups=10)
        start = time.process_time()
        [counts] = query.cells(table).dense(
            engine.run(table.check(query.exact(table, query.cells(table)))), ["people"]
        )
        assert time.process_time() - start < 10  # 0.5 s alone; a CASE took minutes
    assert len(counts) == 10_001 and 9 * 10**5 < counts.sum() <= 10**6 and counts.min() > 0


@pytest.fixture(scope="module")
def spark() -> Spark:
    return shared_spark()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_and_on_spark(spark: Spark) -> None:
    texts = [None, "a", "A", "a ", " a", "", "é", "e\u0301", "0", "00", "a\x00b", "a'b", "\\", "z"]
    numbers = [None, *ENDS, 2, 3, 4, 5][: len(texts)]
    rows = {
        "t": pa.array(texts),
        "n": pa.array(numbers, pa.int64()),
        "b": pa.array([None, True, False] * 5, pa.bool_())[: len(texts)],
    }
    domains = {
        "t": Values(("a", "é", "", "00", "\\", "a'b", "other")),
        "n": Values((2**53, 1, -(2**63), 4)),
        "b": Values((False, True)),
    }
    found = places(spark, rows, domains)
    assert found == places(ENGINE, rows, domains) and len(found) == len(texts)
    for _, *both in found:
        assert both[:3] == both[3:]
    spelled = ["3.0", " 3", "03", "3.5", "-0", "", "a", None, "1e0", "9007199254740993.0"]
    for values in ((0, 1, 3), (0, 1, 3, *range(100, 120))):
        check_numbers(spark, pa.array(spelled), values)
        check_numbers(spark, pa.array(DOUBLES), values)
    # A join with a list must not send the rows around; few texts need none.
    many = domains | {"t": Values((*domains["t"].values, *"bcdefgh"))}
    assert places(spark, rows, many) == places(ENGINE, rows, many)
    table = Table(pa.table(rows), "n", many, name="t", engine=spark)
    cells = GroupGrid.of(table, ["t", "b"])
    plan = spark._sql(cells.coded(table.data))._jdf.queryExecution().toString()
    assert plan.count("BroadcastHashJoin") >= 2 and "SortMergeJoin" not in plan
