"""Opening and fetching tables of databases into DuckDB.

What databases there are, and how a table of one is opened and its rows are fetched. `open_table`
reads what the database says of a table, and no row. Until rows are asked for, a failure is the
database's, and says so (`SourceUnreachable`); from then on it may be about rows, and is repeated
nowhere.

Rows of databases in DuckDB, for as long as one expression runs. Outside a scan a table is there
without rows, so that everything can be checked. For a scan the needed columns are fetched once, in
one state of the database, into a table of DuckDB's, which spills as others do, and which is dropped
afterwards.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Protocol

from whosin.errors import SourceChanged, SourceUnreachable, WhosinError
from whosin.extras import require_extras
from whosin.release.engines.base import require_unchanged, sql_identifier
from whosin.release.engines.database_tables import (
    POSTGRESQL,
    SQLITE,
    Address,
    DatabaseColumn,
    RowCondition,
    empty_table_sql,
    needed_columns,
    read_address,
    row_conditions,
    select_sql,
)

__all__ = [
    "Address",
    "DatabaseTable",
    "describe_table",
    "list_tables",
    "open_table",
    "read_address",
]


@dataclass(frozen=True)
class DatabaseTable:
    """A table of a database, as it was when it was opened.

    Attributes:
        relation: what its database calls it in a query.
        identity: which table it is, however its address is spelled; not secret.
        number: which table it is, whatever it is called now, if its database says so; not secret.
        size: bytes that it takes, if its database says so.
        views: whether views may be opened.
    """

    address: Address
    columns: tuple[DatabaseColumn, ...]
    relation: str
    identity: str
    size: int | None = field(default=None, compare=False)
    views: bool = False
    number: str | None = field(default=None, compare=False)


class System(Protocol):
    """A kind of database."""

    def connect(self, address: Address) -> Any:
        """A connection of Python's DB API that reads, and cannot write where that can be had."""

    def describe(self, connection: Any, address: Address, views: bool) -> DatabaseTable:
        """A table by its catalogue; no row is read."""

    def tables(self, connection: Any, views: bool) -> list[str]:
        """The names of tables that may be opened."""

    def condition(self, column: DatabaseColumn, wanted: RowCondition) -> str | None:
        """A condition of the database that holds for every row for which DuckDB's does, and never
        fails; None where there is none."""


def find_system(address: Address) -> System:
    """The system that an address is of."""
    from whosin.release.engines.database_drivers import AnyDriver, PostgreSQL, SQLite

    require_extras("release", "databases")
    if not address.known:
        return AnyDriver()
    systems: dict[str, type[System]] = {POSTGRESQL: PostgreSQL, SQLITE: SQLite}
    return systems[address.system]()


def open_table(address: Address, *, views: bool = False) -> DatabaseTable:
    """A table, from what its database says of it.

    Raises:
        SourceUnreachable: the database does not answer, or does not let us in.
        InvalidInput: there is no such table, or none that may be opened.
    """
    system = find_system(address)
    with _connected(system, address) as connection:
        return system.describe(connection, address, views)


def list_tables(address: Address, *, views: bool = False) -> list[str]:
    """The tables of an address's database that may be opened."""
    system = find_system(address)
    with _connected(system, address) as connection:
        return system.tables(connection, views)


def describe_table(address: Address) -> DatabaseTable:
    """Which table it is, however its address is spelled, and how large."""
    return open_table(address, views=True)


@contextlib.contextmanager
def _connected(system: System, address: Address) -> Iterator[Any]:
    """A connection, for everything but rows."""
    failed = False
    connection = None
    try:
        connection = system.connect(address)
        yield connection
    except WhosinError:
        raise
    except Exception:  # the driver's words name the host, and whatever else it likes
        failed = True
    finally:
        if connection is not None:
            with contextlib.suppress(Exception):
                connection.close()
    if failed:
        raise SourceUnreachable(address.system)


class Fetch:
    """One fetch of rows, which can be stopped."""

    def __init__(self) -> None:
        self._cursor: Any = None

    @contextlib.contextmanager
    def rows(
        self,
        table: DatabaseTable,
        columns: Sequence[DatabaseColumn],
        conditions: Sequence[RowCondition] = (),
    ) -> Iterator[Any]:
        """A RecordBatchReader of what some columns arrive as.

        Raises:
            SourceUnreachable, SourceChanged: before any row was asked for.
        """
        system = find_system(table.address)
        with contextlib.ExitStack() as stack:
            connection = None
            with _connected_for_rows(table.address):
                connection = system.connect(table.address)
                stack.callback(_close_connection, connection)
                now = system.describe(connection, table.address, table.views)
            require_unchanged(table, replace(now, identity=table.identity))
            by_name = {column.name: column for column in table.columns}
            pushed = [system.condition(by_name[each.column], each) for each in conditions]
            query = select_sql(columns, table.relation, [each for each in pushed if each])
            self._cursor = connection.cursor()
            stack.callback(_close_connection, self._cursor)
            self._cursor.execute(query)
            yield self._cursor.fetch_record_batch()

    def cancel(self) -> None:
        if self._cursor is not None:
            with contextlib.suppress(Exception):
                self._cursor.adbc_cancel()


@contextlib.contextmanager
def _connected_for_rows(address: Address) -> Iterator[None]:
    failed = False
    try:
        yield
    except SourceUnreachable:
        raise
    except WhosinError:
        raise SourceChanged("the table is gone, or no longer one that may be opened") from None
    except Exception:
        failed = True
    if failed:
        raise SourceUnreachable(address.system)


def _close_connection(opened: Any) -> None:
    with contextlib.suppress(Exception):
        opened.close()


TABLE_NUMBERS = count()


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
        name = f"whosin_fetched_{next(TABLE_NUMBERS)}"
        self._connection.execute(f"CREATE VIEW {name} AS {empty_table_sql(table.columns)}")
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
            sql_identifier(column.name)
            if column in chosen
            else f"CAST(NULL AS {column.kind}) AS {sql_identifier(column.name)}"
            for column in table.columns
        )
        self._connection.execute(
            f"CREATE OR REPLACE VIEW {name} AS SELECT {', '.join(listed)} FROM {name}_rows"
        )

    def _empty(self, name: str) -> None:
        with contextlib.suppress(Exception):  # the failure that led here is the one to tell
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS {empty_table_sql(self._tables[name].columns)}"
            )
            self._connection.execute(f"DROP TABLE IF EXISTS {name}_rows")
