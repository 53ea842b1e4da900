"""Decimals of unlike scale: no row makes an engine fail, and every engine answers alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import postgres
from amounts import some
from engine_rows import exact
from whosin.release import (
    Count,
    Histogram,
    Keys,
    Marginals,
    Mean,
    Quantile,
    Query,
    Range,
    Sum,
    Table,
    Top,
    Variance,
)
from whosin.release.conditions import parse_condition

KINDS = {"whole": (38, 0), "fine": (38, 30), "short": (4, 1)}
VALUES: dict[str, list[Decimal | None]] = {
    "whole": [
        Decimal("9" * 38),
        Decimal("-" + "9" * 38),
        *map(Decimal, (0, 1, 2, 3, 10**30)),
        None,
    ],
    "fine": [
        Decimal("99999999." + "9" * 30),
        Decimal("-99999999." + "9" * 30),
        *map(Decimal, ("0", "1", "1.5", "0." + "0" * 29 + "1", "2")),
        None,
    ],
    "short": [*map(Decimal, ("999.9", "-999.9", "0", "0.1", "1", "1.5", "2")), None],
}
PLACES = range(len(VALUES["whole"]))
ROWS: list[dict[str, Any]] = [
    {"id": n, "whole": VALUES["whole"][a], "fine": VALUES["fine"][b], "short": VALUES["short"][c]}
    for n, (a, b, c) in enumerate((a, b, (a + 2 * b) % 8) for a in PLACES for b in PLACES)
]
DOMAINS: dict[str, Any] = {
    "whole": Range(0, 10, edges=(0, 1, 2, 10), outside="clamp"),
    "fine": Range(0, 2, "0.25", edges=("0", "1", "1.5", "2")),
    "short": Range(0, 1000, edges=("0", "0.1", "1.5", "999.9", "1000"), outside="drop"),
}
CONDITIONS = [
    "whole = fine",
    "fine < short",
    "whole >= short",
    "whole + fine + short > 1",
    "whole * fine * short < 5",
    "whole / fine > 1",
    "whole % short = 1",
    "whole in (1, 2, 3.5) or fine in (1.5, 0.000000000000000000000000000001)",
    "short between 0.1 and 1.5",
    "coalesce(whole, fine, short) > 1",
    "case when whole > 1 then fine else short end >= 1.5",
    "cast(fine as int) = 2 or cast(whole as int) = 1",
    "abs(whole) > 3 or -fine > 0",
    "fine = 99999999.999999999999999999999999999999",
    "whole > 9e37 or whole < -9e37",
]
QUERIES: list[Query] = [
    Sum(column="fine", by="short"),
    Mean(column="whole", by="short"),
    Variance(column="fine"),
    Histogram(column="whole"),
    Keys(column="short"),
    Quantile(column="fine", points=9),
    Top(by="short", k=2),
    Marginals(columns=["whole", "fine", "short"], order=2),
]


def parquet_file(folder: Path) -> str:
    kinds = {"id": pa.int64()} | {name: pa.decimal128(*kind) for name, kind in KINDS.items()}
    pq.write_table(pa.Table.from_pylist(ROWS, pa.schema(kinds)), folder / "rows.parquet")
    return str(folder / "rows.parquet")


def sqlite_database(folder: Path) -> str:
    with sqlite3.connect(folder / "rows.sqlite") as connection:
        columns = ", ".join(f"{name} DECIMAL{kind}" for name, kind in KINDS.items())
        connection.execute(f"CREATE TABLE rows (id INTEGER, {columns})")
        for row in ROWS:
            plain = [v if v is None or isinstance(v, int) else str(v) for v in row.values()]
            connection.execute("INSERT INTO rows VALUES (?, ?, ?, ?)", plain)
    connection.close()
    return f"{folder / 'rows.sqlite'}::rows"


def postgres_table(server: postgres.Server) -> str:
    with psycopg.connect(server.url, autocommit=True) as connection:
        columns = ", ".join(f"{name} numeric({p}, {s})" for name, (p, s) in KINDS.items())
        connection.execute(f"CREATE TABLE rows (id int8, {columns})")
        with connection.cursor().copy("COPY rows FROM STDIN") as copy:
            for row in ROWS:
                copy.write_row(list(row.values()))
    return f"postgresql://whosin@/postgres?host={server.folder}::rows"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    postgres.require()
    folder = tmp_path_factory.mktemp("decimals")
    with pytest.MonkeyPatch.context() as patch, postgres.server() as running:
        patch.setenv("PGPASSWORD", postgres.PASSWORD)
        yield {
            "file": parquet_file(folder),
            "sqlite": sqlite_database(folder),
            "postgresql": postgres_table(running),
        }


def test_every_source_answers_alike(sources):
    file, *others = (Table(source, "id", DOMAINS) for source in sources.values())
    for query in QUERIES:
        answer = comparable(exact(query, file))
        for table in others:
            assert comparable(exact(query, table)) == answer, query


@pytest.mark.parametrize("unit", some(KINDS, 1))
def test_decimals_may_be_privacy_units(sources, unit):
    domains = {column: domain for column, domain in DOMAINS.items() if column != unit}
    query = Count(where="id > 3")
    answers = [exact(query, Table(source, unit, domains)) for source in sources.values()]
    assert answers[0] == answers[1] == answers[2]


def test_every_source_decides_conditions_alike(sources):
    answers = []
    for source in sources.values():
        table = Table(source, "id", DOMAINS)
        marks = [parse_condition(text, table.data) for text in CONDITIONS]
        counts = {f"c{place}": mark.sum() for place, mark in enumerate(marks)}
        answers.append(table.engine.run(table.data.aggregate(**counts)).to_pylist())
    assert answers[0] == answers[1] == answers[2]
    assert all(0 < count < len(ROWS) for count in answers[0][0].values())


def comparable(answer: Any) -> Any:
    """SQLite has no decimals: there such keys are doubles."""
    if isinstance(answer, list | tuple):
        return [comparable(each) for each in answer]
    return float(answer) if isinstance(answer, Decimal) else answer
