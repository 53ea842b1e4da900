"""Spark beside DuckDB: the same expressions, the same answers before noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from spark_session import require_spark
from whosin.release import (
    Count,
    DuckDB,
    Histogram,
    Keys,
    Maximum,
    Mean,
    Quantile,
    Query,
    Range,
    Rows,
    Spark,
    Sum,
    Table,
    Top,
    Values,
    Variance,
)
from whosin.release.predicate import condition
from whosin.release.queries.linear import Linear

# All in one process: a second Spark would take as long again to start.
pytestmark = [
    pytest.mark.xdist_group("spark"),
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WARDS = [f"w{place}" for place in range(20)]
DOMAINS: dict[str, Any] = {
    "ward": Values((*WARDS, "näive", "")),
    "age": Range(0, 120, edges=(0, 18, 40, 65.5, 90, 120)),
    "cost": Range(-50, "99.5", "0.25"),
    "written": Range(0, 100),
    "ill": Values((True, False)),
    "level": Values(tuple(range(-3, 40))),
}
ROWS = """
    SELECT i // 2 AS person,
        CASE WHEN h % 31 = 0 THEN NULL WHEN h % 31 = 1 THEN 'näive' WHEN h % 31 = 2 THEN ''
             WHEN h % 31 = 3 THEN 'W1' ELSE 'w' || (h % 25) END AS ward,
        CASE WHEN h % 41 = 0 THEN NULL WHEN h % 41 = 1 THEN 'nan'::DOUBLE
             WHEN h % 41 = 2 THEN 'inf'::DOUBLE WHEN h % 41 = 3 THEN '-inf'::DOUBLE
             WHEN h % 41 = 4 THEN -0.0 WHEN h % 41 = 5 THEN 1e300 WHEN h % 41 = 6 THEN 65.5
             ELSE (h % 14000) / 100 - 10 END AS age,
        CASE WHEN h % 43 = 0 THEN NULL ELSE ((h % 30000)::DECIMAL(18, 3) / 100 - 90) END
            ::DECIMAL(12, 3) AS cost,
        CASE WHEN h % 37 = 0 THEN NULL WHEN h % 37 = 1 THEN 'many' WHEN h % 37 = 2 THEN ''
             WHEN h % 37 = 3 THEN '1e400' WHEN h % 37 = 4 THEN ' 12 ' WHEN h % 37 = 5 THEN 'NaN'
             WHEN h % 37 = 6 THEN '7.25' WHEN h % 37 = 7 THEN '+3' WHEN h % 37 = 8 THEN '.5'
             WHEN h % 37 = 9 THEN '1d' WHEN h % 37 = 10 THEN '2f' WHEN h % 37 = 11 THEN '1_000'
             WHEN h % 37 = 12 THEN 'Infinity' WHEN h % 37 = 13 THEN '0x10'
             WHEN h % 37 = 14 THEN '12abc' WHEN h % 37 = 15 THEN 'true'
             ELSE (h % 120)::VARCHAR END AS written,
        CASE WHEN h % 29 = 0 THEN NULL ELSE h % 2 = 0 END AS ill,
        CASE WHEN h % 23 = 0 THEN NULL ELSE (h % 50)::INTEGER - 5 END AS level,
        CASE WHEN h % 19 = 0 THEN NULL ELSE DATE '2020-01-01' + (h % 900)::INTEGER END AS day,
        CASE WHEN h % 17 = 0 THEN NULL
             ELSE TIMESTAMP '2021-03-01 12:30:00' + INTERVAL 1 MINUTE * (h % 90000)::INTEGER END
            AS seen,
        i AS id
    FROM (SELECT range AS i, (hash(range) % 1000003)::BIGINT AS h FROM range({rows}))
"""
QUERIES: list[Query] = [
    Count(),
    Count(by="ward"),
    Count(by=("ward", "ill"), where="age >= 18"),
    Rows(),
    Rows(by=("ill", "level")),
    Sum(column="age"),
    Sum(column="cost", by="ward"),
    Sum(column="written", by="ill"),
    Mean(column="cost"),
    Mean(column="age", by="level", where="seen >= '2021-03-20'"),
    Variance(column="cost", by="ill"),
    Variance(column="age"),
    Histogram(column="age"),
    Histogram(column="ward", by="ill"),
    Keys(column="ward"),
    Keys(column="level", where="ward like 'w1%'"),
    Quantile(column="age", quantile="1/4", points=50),
    Quantile(column="cost", points=1001),
    Top(by="ward", k=3),
    Top(by=("ill", "level"), k=3),
    Maximum(universe=[(person, person % 97) for person in range(0, 4000, 3)]),
]
CONDITIONS = [
    "age >= 65",
    "age < 65 or ward = 'w1'",
    "not (age < 65)",
    "age = 65.5",
    "age <> 65.5",
    "age is null",
    "age is not null and not (age > 1e200)",
    "100 / age > 2",
    "100 / (level - 3) >= 5",
    "age / 0 > 1 or level = 3",
    "age * 1e300 > 1e305",
    "age - age = 0",
    "-age > 3",
    "abs(cost) > 50",
    "cost = 10.01",
    "cost > 10.01",
    "cost + 0.1 > 10.11",
    "cost between -3 and 25.5",
    "written > 50",
    "written = 12",
    "written = '12'",
    "written + 1 > 5",
    "cast(written as int) > 40",
    "cast(written as double) >= 7",
    "cast(age as int) = 40",
    "cast(age as bigint) > 0",
    "cast(cost as int) = 7",
    "cast(written as boolean)",
    "cast(ill as int) = 1",
    "cast(level as varchar) = '3'",
    "cast(written as date) is null",
    "ward in ('w1', 'w2', '')",
    "ward not in ('w1', 'w2')",
    "ward = ''",
    "ward is null",
    "ward > 'w2'",
    "ward >= 'n' and ward < 'w10'",
    "ward like 'w1%'",
    "ward like '_1'",
    "ward like 'N%'",
    "ward ilike 'N%'",
    "ward like '%ï%'",
    "lower(ward) = 'w1'",
    "upper(ward) = 'NÄIVE'",
    "length(ward) = 5",
    "trim(written) = '12'",
    "ill",
    "not ill",
    "ill is true",
    "ill is not true",
    "ill = false",
    "ill = 1",
    "level in (1, 2, 3)",
    "level = 3.0",
    "level / 2 = 1.5",
    "day > '2020-06-01'",
    "day = '2020-02-29'",
    "day between '2020-03-01' and '2020-03-31'",
    "year(day) = 2021",
    "month(seen) = 4 and day(seen) <= 3",
    "extract(year from seen) = 2021",
    "seen >= '2021-03-02 00:00:00'",
    "seen < '2021-03-02T06:15'",
    "seen > day",
    "ward = 'w1' and (age > 30 or cost < 0) and level is not null",
]


@pytest.fixture(scope="module")
def spark() -> Iterator[Spark]:
    require_spark()
    settings = {  # for many small queries
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.memory": "2g",
    }
    with Spark("local[2]", settings=settings) as engine:
        yield engine


@pytest.fixture(scope="module")
def embedded() -> Iterator[DuckDB]:
    with DuckDB() as engine:
        yield engine


@pytest.fixture(scope="module", params=[50_000, pytest.param(4_000_000, marks=pytest.mark.soak)])
def rows_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS.format(rows=request.param)}) TO '{path}'")
    return path


def exact(query: Query, table: Table) -> Any:
    """The answer before noise, in one form whatever the order of the engine's rows."""
    if isinstance(query, Linear):
        cells = query.cells(table)
        result = table.engine.run(query.exact(table, cells))
        names = [part.name for part in query.parts(table)]
        return [vector.tolist() for vector in cells.dense(result, names)]
    if isinstance(query, Top):
        cells = query._cells(table)
        return cells.dense(table.engine.run(query._expression(table, cells)), ["people"])[
            0
        ].tolist()
    result = table.engine.run(query._expression(table))
    return sorted(tuple(row.items()) for row in result.to_pylist())


def test_answers_before_noise_are_identical(spark: Spark, embedded: DuckDB, rows_file: str) -> None:
    ours, theirs = (
        Table(rows_file, "person", DOMAINS, rows=2, groups=2, engine=engine)
        for engine in (embedded, spark)
    )
    answers = [(query, exact(query, ours), exact(query, theirs)) for query in QUERIES]
    assert not [query for query, one, other in answers if one != other]
    assert not [query for query, one, _ in answers if one in ([], [[0]])]


def test_conditions_choose_the_same_rows(spark: Spark, embedded: DuckDB, rows_file: str) -> None:
    found = []
    for engine in (embedded, spark):
        data = engine.open(rows_file)
        tests = {f"c{place}": condition(text, data) for place, text in enumerate(CONDITIONS)}
        chosen = data.filter(data["id"] < 20_000).select("id", **tests)
        result = engine.run(chosen).sort_by("id")
        found.append([result.column(name).to_numpy(zero_copy_only=False) for name in tests])
    different = [
        (text, int(ours.sum()), int(theirs.sum()))
        for text, ours, theirs in zip(CONDITIONS, *found, strict=True)
        if (ours != theirs).any()
    ]
    assert not different
