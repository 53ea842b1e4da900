"""Rows of databases on Spark: a worker fetches them, and DuckDB reads them there too.

Contract: what a column becomes is what it becomes in DuckDB, because it is DuckDB that reads it. A
table is fetched by one worker, in one state of its database; a worker needs this package, and the
password in its own environment or files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from whosin.release.engines.databases.columns import DatabaseColumn, empty
from whosin.release.engines.databases.needed import RowCondition
from whosin.release.engines.databases.systems import DatabaseTable, Fetch

BATCH = 1 << 16
"""Rows that a worker hands on at a time."""
NOTHING = DatabaseColumn("c", "INTEGER", ("1",))
"""What is fetched where rows are only counted."""


def database_frame(
    session: Any, table: DatabaseTable, needed: set[str], conditions: Sequence[RowCondition]
) -> Any:
    """A Spark frame of a table, with nothing in columns that are not needed."""
    from pyspark.sql import functions
    from pyspark.sql.pandas.types import from_arrow_schema

    chosen = [column for column in table.columns if column.name in needed and column.usable]
    schema = arrow_schema(chosen or [NOTHING])
    everything = from_arrow_schema(arrow_schema(table.columns))
    one = session.range(0, 1, 1, 1)
    fetched = one.mapInArrow(
        fetching(table, chosen or [NOTHING], conditions), from_arrow_schema(schema)
    )
    names = {column.name for column in chosen}
    listed = [
        functions.col(_quoted(field.name)).cast(field.dataType).alias(field.name)
        if field.name in names
        else functions.lit(None).cast(field.dataType).alias(field.name)
        for field in everything.fields
    ]
    return fetched.select(*listed)


def arrow_schema(columns: Sequence[DatabaseColumn]) -> Any:
    """The columns of DuckDB as Arrow's."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.sql(empty(columns)).to_arrow_table().schema


def fetching(
    table: DatabaseTable, columns: Sequence[DatabaseColumn], conditions: Sequence[RowCondition]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What the worker does that has a table's only part."""

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import duckdb

        for _ in batches:
            pass
        read = ", ".join(column.reading(index) for index, column in enumerate(columns))
        with (
            Fetch().rows(table, columns, conditions) as reader,
            duckdb.connect() as connection,
        ):
            connection.execute("SET threads = 1")
            connection.register("arriving", reader)
            yield from connection.sql(f"SELECT {read} FROM arriving").to_arrow_reader(BATCH)

    return work


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
