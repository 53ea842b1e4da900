"""The database behind a ledger: SQLite in one file or PostgreSQL, its connections and failures.

`writing` is one durable transaction that sees the latest state and excludes other writers of the
same dataset; it is committed to disk when the block ends, or nothing happened. `reading` is one
consistent view. Every failure of the store is a `StoreFailed` with one clear line, which never
shows a password. Threads may share a store, and a forked process opens connections of its own.
"""

from __future__ import annotations

import errno
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    create_engine,
    event,
    exc,
    func,
    insert,
    inspect,
    select,
    true,
)
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.engine import URL, make_url
from sqlalchemy.pool import NullPool

from whosin.errors import (
    BrokenHistory,
    EmptyLedger,
    InvalidInput,
    StoreFailed,
    WhosinError,
    invalid_value,
)
from whosin.extras import require_extras
from whosin.ledger import entries, transaction
from whosin.ledger.entries import Entry
from whosin.ledger.ledger_file import Heads, LedgerFile
from whosin.ledger.transaction import FUNCTION_ARGUMENTS, Transaction

CHECKPOINT_ATTEMPTS = 5


def sqlite_engine(url: URL, wait: float) -> Engine:
    """Connections that write ahead, wait for the disk, and lock before they read a balance."""
    options: dict[str, Any] = {"timeout": wait, "check_same_thread": False}
    engine = create_engine(url, connect_args=options, max_overflow=-1, pool_timeout=wait)

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are begun by hand, below
        _write_ahead(connection, wait)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        for pragma in ("fullfsync=ON", "checkpoint_fullfsync=ON"):  # macOS: past the disk's cache
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        # A writer takes the lock before it reads, or two could check the same balance.
        reading = connection.get_execution_options().get("whosin_read")
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def read_only_engine(file: LedgerFile) -> Engine:
    """Connections to a file that may not be written."""

    def connect() -> sqlite3.Connection:
        made = sqlite3.connect(file.read_only_uri(), uri=True, check_same_thread=False)
        made.isolation_level = None
        return made

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    return engine


def checkpoint_log(connection: Any) -> None:
    """Bring what was committed from the log into the file: then the file alone is whole.

    Where a reader still needs the older state, a later commit does it; the log has it until then.
    """
    for attempt in range(CHECKPOINT_ATTEMPTS):
        with suppress(sqlite3.Error):  # a full disk, say: the log is on disk already
            busy, logged, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and logged == moved:
                return
        time.sleep(0.001 * attempt)


def _write_ahead(connection: sqlite3.Connection, wait: float) -> None:
    """Two first users who both turn to the log are told "locked" at once: SQLite does not wait."""
    end = time.monotonic() + wait
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(0.01)


def postgres_engine(url: URL, wait: float) -> Engine:
    """Connections to a server that wait for locks and for the network, and not forever."""
    options = {
        "connect_timeout": max(2, math.ceil(wait)),
        # A server that vanishes without a word is noticed after about `wait` seconds.
        "keepalives_idle": max(1, math.ceil(wait / 3)),
        "keepalives_interval": max(1, math.ceil(wait / 9)),
        "keepalives_count": 6,
        "tcp_user_timeout": math.ceil(wait * 1000),
    }
    given = {key: value for key, value in options.items() if key not in url.query}
    engine = create_engine(
        url,
        connect_args=given,
        pool_timeout=wait,
        # A writer waits for the row's lock and then sees what the last one wrote.
        isolation_level="READ COMMITTED",
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        connection.execute(f"SET lock_timeout TO {math.ceil(wait * 1000)}")
        connection.commit()

    return engine


LOCKED_REASON = "it is locked by another program"
NO_LOCKS_REASON = "its file system offers no locks; keep it on a local disk, or use PostgreSQL"

SQLITE_REASONS = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": LOCKED_REASON,
    "SQLITE_LOCKED": LOCKED_REASON,
    "SQLITE_PROTOCOL": LOCKED_REASON,
    "SQLITE_READONLY": "the file or its folder cannot be written",
    "SQLITE_CANTOPEN": "the file or its folder cannot be opened",
    "SQLITE_PERM": "permission denied",
    "SQLITE_NOTADB": "the file is damaged, or not a ledger",
    "SQLITE_CORRUPT": "the file is damaged",
    "SQLITE_IOERR_LOCK": NO_LOCKS_REASON,
    "SQLITE_IOERR_RDLOCK": NO_LOCKS_REASON,
    "SQLITE_IOERR_SHMLOCK": NO_LOCKS_REASON,
    "SQLITE_IOERR": "the disk failed, or is full",
    "SQLITE_CONSTRAINT": "its tables contradict each other; see `whosin ledger verify`",
    "SQLITE_ERROR": "its tables are not those of a ledger",
}
"""Messages by the name of SQLite's error, or the longest beginning of it."""

POSTGRES_REASONS = {
    "08": "the connection was lost",
    "23": "its tables contradict each other; see `whosin ledger verify`",
    "25006": "the database cannot be written",
    "28": "the server refused the user or password",
    "40": "another session was in the way; try again",
    "3D000": "the server has no such database",
    "42501": "permission denied",
    "42P01": "its tables are not those of a ledger",
    "53100": "the server's disk is full",
    "53300": "the server has no connection left",
    "55P03": "it is locked by another session",
    "42": "its tables or functions are not those of a ledger",
    "WH": "its rules refuse this entry; see `whosin ledger verify`",
    "57014": "the server stopped the statement",
    "57P": "the server shut the connection down",
}
"""Messages by SQLSTATE, or the beginning of one; see the PostgreSQL manual, appendix A."""

CONNECTION_REASONS = {
    "password authentication failed": "the server refused the user or password",
    "no password supplied": "the server wants a password",
    "does not exist": "the server has no such database or user",
    "connection refused": "the server cannot be reached",
    "no such file or directory": "the server cannot be reached",
    "could not translate host name": "the server's name is not known",
    "failed to resolve host": "the server's name is not known",
    "timeout": "the server does not answer",
    "the database system is": "the server is starting or stopping",
    "closed the connection": "the connection was lost",
    "the connection is closed": "the connection was lost",
    "the connection is lost": "the connection was lost",
}
"""Messages by PostgreSQL's own words, since a failed connection has no SQLSTATE."""

SYSTEM_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk is full",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOLCK: NO_LOCKS_REASON,
    errno.EROFS: "the file or its folder cannot be written",
}


def describe_failure(error: BaseException) -> str:
    """The reason of a failure of SQLAlchemy, a driver or the system."""
    cause = getattr(error, "orig", None) or error
    name = getattr(cause, "sqlite_errorname", None)
    state = getattr(cause, "sqlstate", None)
    for known, code in ((SQLITE_REASONS, name), (POSTGRES_REASONS, state)):
        for sign, reason in known.items():
            if code and code.startswith(sign):
                return reason
    if isinstance(cause, UnicodeError):
        return "the file is damaged"
    if isinstance(cause, OSError) and cause.errno in SYSTEM_REASONS:
        return SYSTEM_REASONS[cause.errno]
    if type(error).__name__ == "TimeoutError":
        return "too many threads are using it"
    low = str(cause).lower()
    for sign, reason in CONNECTION_REASONS.items():
        if state is None and name is None and sign in low:
            return reason
    lines = str(cause).strip().splitlines() or [type(cause).__name__]
    return "".join(letter if letter.isprintable() else " " for letter in lines[0])[:200]


T = TypeVar("T")

WAIT_SECONDS = 30.0
"""Seconds to wait for another writer before giving up."""

_INHERITED_ENGINES: list[Engine] = []
"""Engines of a parent process: closing their connections here could end them there."""


def format_moment(moment: datetime | None = None) -> str:
    """A moment as text, this one by default: UTC, to the microsecond. Numbers order entries."""
    return (moment or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_url(url: object) -> URL:
    """A path, or a database URL."""
    if isinstance(url, Path):
        url = str(url)
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise invalid_value("ledger", "a file, or a URL such as postgresql://host/name", repr(url))
    if "://" not in url:
        return URL.create("sqlite", database=os.path.realpath(os.path.expanduser(url)))
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except (exc.ArgumentError, ValueError):
        message = "the ledger's address cannot be read"
        hint = "give a file, or a URL such as postgresql://host/name"
        raise InvalidInput(message, field="ledger", hint=hint) from None
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or parsed.query or parsed.database in (None, "", ":memory:"):
        message = f"a ledger cannot be kept in {kind}://…"
        if kind == "sqlite":
            message = "sqlite:// needs the name of a file"
        hint = "give a SQLite file, or postgresql://host/name"
        raise InvalidInput(message, field="ledger", value=f"{kind}://…", hint=hint)
    return parsed.set(drivername="sqlite", database=os.path.realpath(str(parsed.database)))


class Store:
    """Transactions on one ledger.

    Args:
        wait: how many seconds to wait for other writers, or for a server.
        create: whether to make a ledger where there is none.
    """

    def __init__(self, url: object, wait: float = WAIT_SECONDS, create: bool = True) -> None:
        self.url = read_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        if not isinstance(wait, int | float) or not 0 < wait <= 86400:
            raise invalid_value("wait", "above 0 and at most a day, in seconds", repr(wait))
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
            self._open(create)
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
            raise StoreFailed(
                "the ledger was written while it was being read", hint="read it again"
            )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Open one durable transaction for writing."""
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
            turn.time = format_moment() if self.sqlite else format_moment(turn.time)
            self._check_file()
            if self.heads is not None and turn.row is not None:
                self.heads.check(turn.row)
            yield turn
            if turn.settles and self.sqlite:
                turn.end()
                self._settle(connection.connection.driver_connection, turn.after)

    def register(self, connection: Connection, entry: Entry, row: Any) -> bool:
        """Write a dataset with its first entry; False where there is one of this name."""
        values = {**entries.entry_values(entry), **row._asdict()}
        if not self.sqlite:
            values |= {"dataset": row.name, "head": entry.head}
            call = func.whosin_register(*(values[name] for name in FUNCTION_ARGUMENTS["register"]))
            return bool(connection.execute(select(call)).scalar_one())
        if self.heads is not None:
            number, _ = self.heads.read().get(row.name, (0, ""))
            if number:
                raise BrokenHistory(row.name, self.heads.words(number, 0))
        made = connection.execute(
            sqlite_insert(entries.datasets).values(row._asdict()).on_conflict_do_nothing(),
            execution_options={"preserve_rowcount": True},
        )
        if made.rowcount == 1:
            connection.execute(insert(entries.entries).values(entries.entry_values(entry)))
            connection.info["whosin_new"] = row
        return made.rowcount == 1

    def stamp(self, connection: Connection) -> str:
        """The time of an entry: the server's where there is one, since machines' clocks differ.

        A server set to answer before its disk does is told not to, for this transaction.
        """
        if self.sqlite:
            return format_moment()
        durable = func.set_config("synchronous_commit", "on", true())
        return format_moment(
            connection.execute(select(func.clock_timestamp(), durable)).scalar_one()
        )

    def dispose(self) -> None:
        """Close all connections of the engine."""
        if self._process == os.getpid():
            self._made.dispose()

    def _engine(self) -> Engine:
        if self._process != os.getpid():
            _INHERITED_ENGINES.append(self._made)
            self._process, self._made = os.getpid(), self._make()
        return self._made

    def _make(self) -> Engine:
        if self.read_only:
            return read_only_engine(self._file)
        if self.sqlite:
            return sqlite_engine(self.url, self.wait)
        require_extras("postgres")
        return postgres_engine(self.url, self.wait)

    def _open(self, create: bool) -> None:
        """Check what is there; make the tables in an empty database."""
        with self.reading() as connection:
            tables = set(inspect(connection).get_table_names())
            known = entries.about.name in tables
            version = connection.execute(select(entries.about)).first() if known else None
        if known and version is not None:
            _check_version(version.kind, version.version)
            return
        if self.sqlite and tables - set(entries.metadata.tables):
            raise InvalidInput(
                "this is a database of another program, not a ledger", field="ledger"
            )
        if not create or self.read_only:
            message = "this database is empty and holds no ledger"
            raise EmptyLedger(message, field="ledger", hint="make one with whosin ledger create")
        with self.writing() as connection:
            if not self.sqlite:  # two first users must not create the tables at once
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8315161594742303)")
            entries.metadata.create_all(connection)
            if not self.sqlite:
                self.make_functions(connection)
            if connection.execute(select(entries.about)).first() is None:
                row = {"kind": entries.FORMAT_KIND, "version": entries.FORMAT_VERSION}
                connection.execute(insert(entries.about).values(row))

    def make_functions(self, connection: Connection) -> None:
        """Make the functions of a server in the schema that holds the tables."""
        schema = connection.exec_driver_sql("SELECT quote_ident(current_schema())").scalar_one()
        for statement in transaction.function_statements(str(schema)):
            connection.exec_driver_sql(statement)

    def _check_writable(self) -> None:
        if self.read_only:
            reason = "its file or folder cannot be written"
            raise StoreFailed(f"the ledger cannot be used: {reason}; no answer was given")

    def _check_file(self) -> None:
        if self.sqlite:
            self._file.check()

    def _settle(self, driver: Any, row: Any) -> None:
        """After a commit to a file: out of the log, and noted beside it; nothing shows before."""
        if self.heads is not None:
            checkpoint_log(driver)
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
            reason = describe_failure(error)
            if reason == LOCKED_REASON and self.heads is not None and not self.heads.has_locks():
                reason = NO_LOCKS_REASON
            raise StoreFailed(f"the ledger cannot be used: {reason}; no answer was given") from None


def _check_version(kind: object, version: object) -> None:
    if (
        kind != entries.FORMAT_KIND
        or not isinstance(version, int)
        or version < entries.FORMAT_VERSION
    ):
        raise InvalidInput("this database is not a ledger", field="ledger")
    if version > entries.FORMAT_VERSION:
        newer = f"the ledger has format {version}, written by a newer whosin"
        message = f"{newer}; this one reads format {entries.FORMAT_VERSION}"
        raise StoreFailed(message, hint="upgrade whosin")
