"""What databases there are, and how a table of one is opened and its rows are fetched.

Contract: `open_table` reads what the database says of a table, and no row. Until rows are asked
for, a failure is the database's, and says so (`SourceUnreachable`); from then on it may be about
rows, and is repeated nowhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from whosin.errors import SourceChanged, SourceUnreachable, WhosinError
from whosin.extras import needs
from whosin.release.engines.databases.address import POSTGRESQL, SQLITE, Address
from whosin.release.engines.databases.columns import DatabaseColumn, asking
from whosin.release.engines.databases.needed import RowCondition


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


def system_of(address: Address) -> System:
    """The system that an address is of."""
    from whosin.release.engines.databases.any_driver import AnyDriver
    from whosin.release.engines.databases.postgresql import PostgreSQL
    from whosin.release.engines.databases.sqlite import SQLite

    needs("release", "databases")
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
    system = system_of(address)
    with _connected(system, address) as connection:
        return system.describe(connection, address, views)


def tables_of(address: Address, *, views: bool = False) -> list[str]:
    """The tables of an address's database that may be opened."""
    system = system_of(address)
    with _connected(system, address) as connection:
        return system.tables(connection, views)


def described(address: Address) -> DatabaseTable:
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
        system = system_of(table.address)
        with contextlib.ExitStack() as stack:
            connection = None
            with _connected_for_rows(table.address):
                connection = system.connect(table.address)
                stack.callback(_close, connection)
                now = system.describe(connection, table.address, table.views)
            if replace(now, identity=table.identity) != table:
                raise SourceChanged("the table has other columns than when it was opened")
            by_name = {column.name: column for column in table.columns}
            pushed = [system.condition(by_name[each.column], each) for each in conditions]
            query = asking(columns, table.relation, [each for each in pushed if each])
            self._cursor = connection.cursor()
            stack.callback(_close, self._cursor)
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


def _close(opened: Any) -> None:
    with contextlib.suppress(Exception):
        opened.close()
