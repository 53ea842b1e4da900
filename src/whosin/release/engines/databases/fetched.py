"""Rows of databases in DuckDB, for as long as one expression runs.

Contract: outside a scan a table is there without rows, so that everything can be checked. For a
scan the needed columns are fetched once, in one state of the database, into a table of DuckDB's,
which spills as others do, and which is dropped afterwards.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from itertools import count
from typing import Any

from whosin.release.engines.databases.columns import empty
from whosin.release.engines.databases.needed import needed_columns, row_conditions
from whosin.release.engines.databases.systems import DatabaseTable, Fetch
from whosin.release.engines.lines import identifier

NAMES = count()


class FetchedTables:
    """The tables of databases that one DuckDB database shows.

    Args:
        connection: DuckDB's.
    """

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._tables: dict[str, DatabaseTable] = {}
        self._scanning, self._fetch = threading.Lock(), Fetch()

    def add(self, table: DatabaseTable) -> str:
        """Show a table, without rows; returns its name."""
        name = f"whosin_fetched_{next(NAMES)}"
        self._connection.execute(f"CREATE VIEW {name} AS {empty(table.columns)}")
        self._tables[name] = table
        return name

    @contextlib.contextmanager
    def filled(self, expression: Any) -> Iterator[None]:
        """The rows that an expression needs are there in this block.

        Raises:
            SourceUnreachable, SourceChanged: about a database, before any row was read.
        """
        if not self._tables:
            yield
            return
        with self._scanning:
            needed = needed_columns(expression)
            names = [name for name in self._tables if name in needed]
            try:
                for name in names:
                    self._fill(name, expression, needed[name])
                yield
            finally:
                for name in names:
                    self._empty(name)

    def cancel(self) -> None:
        """Stop a fetch that is under way."""
        self._fetch.cancel()

    def _fill(self, name: str, expression: Any, needed: set[str]) -> None:
        table = self._tables[name]
        conditions = row_conditions(expression, name)
        chosen = [column for column in table.columns if column.name in needed]
        self._fetch = Fetch()
        with self._fetch.rows(table, chosen, conditions) as reader:
            arrived = f"{name}_arriving"
            self._connection.register(arrived, reader)
            try:
                read = [column.reading(index) for index, column in enumerate(chosen)]
                sql = f"SELECT {', '.join(read) or '1 AS c'} FROM {arrived}"
                self._connection.execute(f"CREATE TABLE {name}_rows AS {sql}")
            finally:
                self._connection.unregister(arrived)
        listed = (
            identifier(column.name)
            if column in chosen
            else f"CAST(NULL AS {column.kind}) AS {identifier(column.name)}"
            for column in table.columns
        )
        self._connection.execute(
            f"CREATE OR REPLACE VIEW {name} AS SELECT {', '.join(listed)} FROM {name}_rows"
        )

    def _empty(self, name: str) -> None:
        with contextlib.suppress(Exception):  # the failure that led here is the one to tell
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS {empty(self._tables[name].columns)}"
            )
            self._connection.execute(f"DROP TABLE IF EXISTS {name}_rows")
