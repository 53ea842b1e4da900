"""Places of values in their domains: the join beside a CASE with a branch a value."""

from __future__ import annotations

import time
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
    "numbers in texts": (TEXTS, st.integers(-1, 1), pa.string()),
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
    # A join with a list must not send the rows around; few texts need none.
    many = domains | {"t": Values((*domains["t"].values, *"bcdefgh"))}
    assert places(spark, rows, many) == places(ENGINE, rows, many)
    table = Table(pa.table(rows), "n", many, name="t", engine=spark)
    cells = GroupGrid.of(table, ["t", "b"])
    plan = spark._sql(cells.coded(table.data))._jdf.queryExecution().toString()
    assert plan.count("BroadcastHashJoin") >= 2 and "SortMergeJoin" not in plan
