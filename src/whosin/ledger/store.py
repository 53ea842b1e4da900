"""The database behind a ledger: SQLite in one file, or PostgreSQL.

Contract: `writing` is one durable transaction that sees the latest state and excludes other writers
of the same dataset; it is committed to disk when the block ends, or nothing happened. `reading` is
one consistent view. Every failure of the store is a `StoreFailed` with one clear line, which never
shows a password. Threads may share a store, and a forked process opens connections of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, exc, func, insert, inspect, select, true
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import URL, make_url

from whosin.errors import BrokenHistory, InvalidInput, StoreFailed, WhosinError
from whosin.extras import needs
from whosin.ledger import functions, rows, schema, store_errors
from whosin.ledger.engines import checkpoint, postgres_engine, read_only_engine, sqlite_engine
from whosin.ledger.entries import Entry
from whosin.ledger.functions import CALLS
from whosin.ledger.heads import Heads
from whosin.ledger.ledger_file import LedgerFile
from whosin.ledger.transaction import Transaction

T = TypeVar("T")

WAIT = 30.0
"""Seconds to wait for another writer before giving up."""


_INHERITED: list[Engine] = []
"""Engines of a parent process: closing their connections here could end them there."""


def now(moment: datetime | None = None) -> str:
    """A moment as text, this one by default: UTC, to the microsecond. Numbers order entries."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_url(url: object) -> URL:
    """A path, or a database URL."""
    if isinstance(url, Path):
        url = str(url)
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise InvalidInput("ledger", "a file, or a URL such as postgresql://host/name", repr(url))
    if "://" not in url:
        return URL.create("sqlite", database=os.path.realpath(os.path.expanduser(url)))
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except (exc.ArgumentError, ValueError):
        raise InvalidInput("ledger", "a file or a database URL", "one that is neither") from None
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or parsed.query or parsed.database in (None, "", ":memory:"):
        got = "sqlite:// without a file" if kind == "sqlite" else f"{kind}://…"
        raise InvalidInput("ledger", "a SQLite file or postgresql://…", got)
    return parsed.set(drivername="sqlite", database=os.path.realpath(str(parsed.database)))


class Store:
    """Transactions on one ledger.

    Args:
        wait: how many seconds to wait for other writers, or for a server.
        create: whether to make a ledger where there is none.
        oldest: the oldest format that will do.
    """

    def __init__(
        self,
        url: object,
        wait: float = WAIT,
        create: bool = True,
        oldest: int = schema.VERSION,
    ) -> None:
        self.url = read_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if not isinstance(wait, int | float) or not 0 < wait <= 86400:
            raise InvalidInput("wait", "seconds, above 0 and at most a day", repr(wait))
        self.wait = float(wait)
        self._failures: tuple[type[Exception], ...] = (exc.SQLAlchemyError, OSError, UnicodeError)
        self.read_only = False
        if self.sqlite:
            self._file = LedgerFile(str(self.url.database))
            with self._reporting():
                self._file.prepare(create)
            self.heads: Heads | None = Heads(self._file.path)
            self.read_only = not self._file.writable
        else:
            self.heads = None
        self._process, self._made = os.getpid(), self._make()
        self._failures += (self._made.dialect.loaded_dbapi.Error,)
        try:
            self._open(create, oldest)
        except BaseException:
            self.dispose()
            raise

    @property
    def name(self) -> str:
        """Where the ledger is, for people, without a password."""
        if self.sqlite:
            return str(self.url.database)
        server = {key: value for key, value in self.url.query.items() if key in ("host", "port")}
        return self.url.set(drivername="postgresql", query=server).render_as_string()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view, however many statements read it."""
        before = self._file.stamp() if self.read_only else None
        with self._reporting(), self._begun(self._look) as (connection, _):
            yield connection
        if before is not None and self._file.stamp() != before:
            raise StoreFailed("the ledger was written while it was read: read it again")

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction."""
        self._check_writable()
        with self._reporting(), self._begun(self._greet) as (connection, _):
            self._check_file()
            yield connection
            new = connection.info.pop("whosin_new", None)
            connection.commit()
            self._settle(connection.connection.driver_connection, new)

    @contextmanager
    def turn(self, dataset: str, requests: Sequence[str] = ()) -> Iterator[Transaction]:
        """One durable transaction on one dataset, in the fewest round trips; see `Transaction`."""

        def begin(connection: Connection) -> Transaction:
            if not self.sqlite:  # the turn begins and commits by itself
                connection.execution_options(isolation_level="AUTOCOMMIT")
            turn = Transaction(connection.connection.driver_connection, server=not self.sqlite)
            turn.begin(dataset, requests)
            return turn

        self._check_writable()
        with self._reporting(), self._begun(begin) as (connection, turn):
            turn.time = now() if self.sqlite else now(turn.time)
            self._check_file()
            if self.heads is not None and turn.row is not None:
                self.heads.check(turn.row)
            yield turn
            if turn.settles and self.sqlite:
                turn.end()
                self._settle(connection.connection.driver_connection, turn.after)

    def register(self, connection: Connection, entry: Entry, row: Any) -> bool:
        """Write a dataset with its first entry; False where there is one of this name."""
        values = {**rows.entry_values(entry), **row._asdict()}
        if not self.sqlite:
            values |= {"dataset": row.name, "head": entry.head}
            call = func.whosin_register(*(values[name] for name in CALLS["register"]))
            return bool(connection.execute(select(call)).scalar_one())
        if self.heads is not None:
            number, _ = self.heads.read().get(row.name, (0, ""))
            if number:
                raise BrokenHistory(row.name, self.heads.words(number, 0))
        made = connection.execute(
            sqlite_insert(schema.datasets).values(row._asdict()).on_conflict_do_nothing(),
            execution_options={"preserve_rowcount": True},
        )
        if made.rowcount == 1:
            connection.execute(insert(schema.entries).values(rows.entry_values(entry)))
            connection.info["whosin_new"] = row
        return made.rowcount == 1

    def stamp(self, connection: Connection) -> str:
        """The time of an entry: the server's where there is one, since machines' clocks differ.

        A server set to answer before its disk does is told not to, for this transaction.
        """
        if self.sqlite:
            return now()
        durable = func.set_config("synchronous_commit", "on", true())
        return now(connection.execute(select(func.clock_timestamp(), durable)).scalar_one())

    def dispose(self) -> None:
        """Close all connections."""
        if self._process == os.getpid():
            self._made.dispose()

    def _engine(self) -> Engine:
        if self._process != os.getpid():
            _INHERITED.append(self._made)
            self._process, self._made = os.getpid(), self._make()
        return self._made

    def _make(self) -> Engine:
        if self.read_only:
            return read_only_engine(self._file)
        if self.sqlite:
            return sqlite_engine(self.url, self.wait)
        needs("postgres")
        return postgres_engine(self.url, self.wait)

    def version(self, connection: Connection) -> int:
        """The format of the ledger."""
        return int(connection.execute(select(schema.about.c.version)).scalar_one())

    def exclude(self, connection: Connection) -> None:
        """Let nobody else read or write until the transaction ends."""
        if not self.sqlite:
            tables = ", ".join(sorted(schema.metadata.tables))
            connection.exec_driver_sql(f"LOCK TABLE {tables} IN ACCESS EXCLUSIVE MODE")

    def _open(self, create: bool, oldest: int) -> None:
        """Check what is there; make the tables in an empty database."""
        with self.reading() as connection:
            tables = set(inspect(connection).get_table_names())
            known = schema.about.name in tables
            version = connection.execute(select(schema.about)).first() if known else None
        if known and version is not None:
            _check_version(version.kind, version.version, oldest)
            return
        if self.sqlite and tables - set(schema.metadata.tables):
            raise InvalidInput("ledger", "a ledger file", "another program's database")
        if not create or self.read_only:
            raise InvalidInput("ledger", "an existing ledger", "an empty database")
        with self.writing() as connection:
            if not self.sqlite:  # two first users must not create the tables at once
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8315161594742303)")
            schema.metadata.create_all(connection)
            if not self.sqlite:
                self.make_functions(connection)
            if connection.execute(select(schema.about)).first() is None:
                row = {"kind": schema.KIND, "version": schema.VERSION}
                connection.execute(insert(schema.about).values(row))

    def make_functions(self, connection: Connection) -> None:
        """Make the functions of a server in the schema that holds the tables."""
        schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        for statement in functions.statements(str(schema)):
            connection.exec_driver_sql(statement)

    def _check_writable(self) -> None:
        if self.read_only:
            raise StoreFailed(
                "the ledger cannot be used: the file or its folder cannot be written; "
                "no answer was given"
            )

    def _check_file(self) -> None:
        if self.sqlite:
            self._file.check()

    def _settle(self, driver: Any, row: Any) -> None:
        """After a commit to a file: out of the log, and noted beside it; nothing shows before."""
        if self.heads is not None:
            checkpoint(driver)
            if row is not None:
                self.heads.note(row)
            self._check_file()

    def _look(self, connection: Connection) -> None:
        if self.sqlite:
            connection.execution_options(whosin_read=True)
        else:
            connection.execution_options(isolation_level="REPEATABLE READ")
        self._greet(connection)

    def _greet(self, connection: Connection) -> None:
        """Begin, which tells whether the connection still stands."""
        connection.begin()
        if not self.sqlite:
            connection.exec_driver_sql("SELECT 1")

    @contextmanager
    def _begun(self, first: Callable[[Connection], T]) -> Iterator[tuple[Connection, T]]:
        """A connection, and what came of the first thing done with it, which must write nothing.

        A connection that was lost while it lay in the pool shows there: it is made anew, once.
        """
        for last in (self.sqlite, True):
            connection = self._engine().connect()
            driver: Any = connection.connection.driver_connection
            try:
                result = first(connection)
                break
            except BaseException as error:
                gone = not self.sqlite and driver.closed
                if gone:  # said through SQLAlchemy, it makes the pool doubt the others too
                    with suppress(exc.SQLAlchemyError):
                        connection.exec_driver_sql("SELECT 1")
                connection.invalidate()
                connection.close()
                if last or not gone or not isinstance(error, Exception):
                    raise
        try:
            yield connection, result
        except WhosinError:
            raise  # between statements: the pool rolls back
        except BaseException:
            connection.invalidate()
            raise
        finally:
            connection.close()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            reason = store_errors.words(error)
            if (
                reason == store_errors.LOCKED
                and self.heads is not None
                and not self.heads.has_locks()
            ):
                reason = store_errors.NO_LOCKS
            raise StoreFailed(f"the ledger cannot be used: {reason}; no answer was given") from None


def _check_version(kind: object, version: object, oldest: int) -> None:
    if kind != schema.KIND or not isinstance(version, int) or version < 1:
        raise InvalidInput("ledger", "a ledger", "another kind of database")
    if version > schema.VERSION:
        raise StoreFailed(
            f"the ledger has format {version}, written by a newer whosin; this one reads format "
            f"{schema.VERSION}: upgrade whosin"
        )
    if version < oldest:
        raise StoreFailed(
            f"the ledger has format {version}, written by an older whosin: whosin ledger upgrade "
            f"brings it to format {schema.VERSION}, once"
        )
