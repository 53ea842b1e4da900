"""One table with everything that rows can do, and what is asked of it on every engine."""

from __future__ import annotations

import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq

import whosin as wi
from whosin.release import (
    Count,
    Dates,
    Histogram,
    Keys,
    Marginals,
    Maximum,
    Mean,
    Quantile,
    Query,
    Range,
    Rows,
    Sum,
    Table,
    Top,
    Values,
    Variance,
)
from whosin.release.cost import Share
from whosin.release.inspection import Preflight, run_preflight
from whosin.release.queries.base import Linear
from whosin.release.queries.quantile import RankQuery

WARDS = [f"w{place}" for place in range(20)]
SITES = {"north": [*WARDS[::2], ""], "south": [*WARDS[1::2], "näive"]}
DOMAINS: dict[str, Any] = {
    "ward": Values((*WARDS, "näive", ""), parents={"site": SITES}),
    "age": Range(0, 120, edges=(0, 18, 40, 65.5, 90, 120)),
    "cost": Range(-50, "99.5", "0.25"),
    "written": Range(0, 100, edges=(0, 7, 50, 100), outside="clamp"),
    "ill": Values((True, False)),
    "level": Values(tuple(range(-3, 40)), outside="drop"),
    "day": Dates("2020-02-10", "2021-12-31", "isoweek"),
    "seen": Dates("2021-03-15", "2021-04-20", "day", outside="clamp"),
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
    Count(by=("ward", "ill"), where="age >= 18"),
    Sum(column="written", by="ill"),
    Mean(column="age", where="seen >= '2021-03-20'"),
    Variance(column="cost", by="ill"),
    Keys(column="ward"),
    Quantile(column="cost", points=20, by="ill"),
    Top(by="ward", k=3),
    Maximum(universe=[(person, person % 97) for person in range(0, 4000, 3)]),
    Marginals(columns=["ward", "ill", "level", "age"], order=2),
    Count(by="site", where="site <> 'south' or site is null"),
    Marginals(
        sets=[["site", "ranges(age)"], ["ranges(level)"], ["ranges(day)"]],
        ranges={"age": [[18, 90]], "level": [[0, 9], [5, 20]], "day": [["2020-W10", "2020-W40"]]},
    ),
]

ALL: list[Query] = [
    *QUERIES,
    Count(),
    Count(by="ward"),
    Rows(),
    Rows(by=("ill", "level")),
    Sum(column="age"),
    Sum(column="cost", by="ward"),
    Sum(column="level", by="ward", factor="-1/3", offset=2, where="coalesce(level, 1) % 3 <> 1"),
    Mean(column="cost", by="level"),
    Variance(column="age"),
    Histogram(column="age"),
    Histogram(column="ward", by="ill"),
    Keys(column="level", where="ward like 'w1%'"),
    Quantile(column="age", quantile="1/4", points=50),
    Quantile(column="cost", points=1001),
    Top(by=("ill", "level"), k=3),
]

SELECTS = (
    "SELECT COUNT(*) FROM rows WHERE CASE WHEN age > 40 THEN ward ELSE 'w1' END = 'w1'",
    "SELECT SUM(age) FROM rows WHERE CASE level WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE 0 END = 1",
    "SELECT AVG(age * 2) FROM rows WHERE COALESCE(level, 1) % 3 = 1",
    "SELECT STDDEV_POP(cost / -4) FROM rows WHERE hour(CAST(seen AS TIMESTAMP)) < 12",
    "SELECT VAR_POP(age) FROM rows WHERE EXTRACT(hour FROM CAST(seen AS TIMESTAMP)) > 5",
    "SELECT ill, COUNT(*) FROM rows WHERE -level % 4 = -1 GROUP BY ALL",
    "SELECT site, AVG(age) FROM rows WHERE cost % 0.5 = 0.25 GROUP BY ALL",
    "SELECT COUNT(*) FROM rows WHERE date_trunc('month', CAST(seen AS TIMESTAMP)) = '2021-04-01'",
    "SELECT COUNT(*) FROM rows WHERE date_trunc('week', CAST(day AS DATE)) >= '2021-01-04'",
    "SELECT COUNT(DISTINCT person) FROM rows "
    "WHERE date_trunc('hour', CAST(seen AS TIMESTAMP)) < '2021-03-20 05:00:00'",
    "SELECT COUNT(*) FROM rows WHERE substr(ward, 1, 2) = 'w1' OR substr(ward, 2, 1) = 'ä'",
    "SELECT COUNT(*) FROM rows WHERE CAST(CAST(seen AS TIMESTAMP) AS DATE) > CAST(day AS DATE)",
    "SELECT COUNT(*) FROM rows "
    "WHERE CAST(CAST(day AS DATE) AS TIMESTAMP) < CAST(seen AS TIMESTAMP)",
    "SELECT COUNT(*) FROM rows WHERE COALESCE(ward, written, 'none') <> 'none' AND NOT ill",
)
"""One SELECT for each form that conditions and SQL have. SQLite keeps moments as texts."""
REFUSED_SELECTS = (
    "SELECT STDDEV(age) FROM rows",
    "SELECT STDDEV_SAMP(age) FROM rows",
    "SELECT AVG(age * level) FROM rows",
    "SELECT COUNT(*) FROM rows WHERE date_trunc('century', CAST(seen AS TIMESTAMP)) = '2021-04-01'",
    "SELECT COUNT(*) FROM rows WHERE CAST(age AS VARCHAR) = '1'",
    "SELECT COUNT(*) FROM rows WHERE substr(ward, level, 1) = 'w'",
    "SELECT COUNT(*) FROM rows WHERE round(age) = 3",
)
"""What is refused, by the text and the schema alone."""


def people_table(source: Any, engine: Any, domains: Any = DOMAINS) -> Table:
    """The rows of `ROWS`, wherever they are; two rows of a person count in each of two groups."""
    bounds: Any = {"max_rows_per_group": 2, "max_groups": 2}
    return Table(source, "person", domains, **bounds, name="rows", engine=engine)


def exact(query: Any, table: Table) -> Any:
    """The answer before noise, in one form whatever the order of the engine's rows."""
    if isinstance(query, Linear):
        cells = query.cells(table)
        result = table.engine.run(query.exact(table, cells))
        names = [part.name for part in query.parts(table)]
        return [vector.tolist() for vector in cells.dense(result, names)]
    if isinstance(query, Marginals):
        plan = wi.calibrate(wi.Epsilon(1.0), wi.families.Independent())
        estimate = query.estimate_cost(table, Share(plan, Fraction(1)))
        assert estimate.details is not None
        counts = estimate.details["scan"].count(table, estimate.expression, None)
        return [each.tolist() for each in counts]
    if isinstance(query, Top):
        cells = query._cells(table)
        found = table.engine.run(query._expression(table, cells))
        return cells.dense(found, ["people"])[0].tolist()
    known = [query.cells(table)] if isinstance(query, RankQuery) else []
    result = table.engine.run(query._expression(table, *known))
    return sorted(tuple(row.items()) for row in result.to_pylist())


KINDS = {
    "postgresql": "person int8, ward text, age float8, cost numeric(12, 3), written varchar, "
    "ill bool, level int4, day date, seen timestamp, id int8",
    "sqlite": "person INTEGER, ward TEXT, age REAL, cost DECIMAL(12, 3), written VARCHAR, "
    "ill BOOLEAN, level INT, day DATE, seen TIMESTAMP, id BIGINT",
}


def fill_postgres(url: str, rows_file: str) -> None:
    """The rows of a Parquet file in a server's table `rows`."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE rows ({KINDS['postgresql']})")
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            for row in pq.read_table(rows_file).to_pylist():
                copy.write_row(list(row.values()))


def sqlite_file(rows_file: str) -> Path:
    """The rows of a Parquet file in the table `rows` of an SQLite file beside it."""
    path = Path(rows_file).with_name("rows.sqlite")
    plain = [
        [each if isinstance(each, int | float | str | None) else str(each) for each in row.values()]
        for row in pq.read_table(rows_file).to_pylist()
    ]
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE rows ({KINDS['sqlite']})")
    connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * 10)})", plain)
    connection.commit()
    connection.close()
    return path


def preflight_looks(source: Any, engine: Any) -> Preflight:
    """The curator's look at the rows of `ROWS`, with a ward that is misspelt."""
    domains = DOMAINS | {"ward": Values(("W0", *WARDS[1:]))}
    table = people_table(source, engine, domains)
    asked: list[Any] = [
        Count(by=["ward", "ill"], max_groups=1),
        Count(by=["level", "age"], where="cost > 3 and ward <> 'w3'"),
        Count(by="month(day)", where="ward = 'nowhere'"),
        Mean(column="cost", by="seen"),
        Sum(column="written"),
    ]
    policies = [query.contribution_policy(table) for query in asked]
    return run_preflight(table, policies, asked)
