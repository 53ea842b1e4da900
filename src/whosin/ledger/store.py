"""The database behind a ledger: SQLite in one file or PostgreSQL, its connections and failures.

`writing` is one durable transaction that sees the latest state and excludes other writers of the
same dataset; it is committed to disk when the block ends, or nothing happened. `reading` is one
consistent view. Every failure of the store is a `StoreFailed` with one clear line, which never
shows a password. Threads may share a store, and a forked process opens connections of its own.

Statements are text, and connections are the drivers' own: an object-relational library took a
quarter of the processor time of a small release, and its statements were text again by the end.
"""

from __future__ import annotations

import errno
import math
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

from whosin.errors import (
    BrokenHistory,
    EmptyLedger,
    InvalidInput,
    StoreFailed,
    WhosinError,
    invalid_value,
    require_extras,
)
from whosin.ledger import encoding, entries, transaction
from whosin.ledger.entries import (
    ABOUT_TABLE,
    DATASETS_TABLE,
    ENTRIES_TABLE,
    Entry,
    insert_sql,
    select_sql,
)
from whosin.ledger.ledger_file import Heads, LedgerFile
from whosin.ledger.transaction import FUNCTION_ARGUMENTS, Transaction

CHECKPOINT_ATTEMPTS = 12
TURN_SECONDS, MAX_TURN_STEPS = 0.0003, 8
"""How long a writer waits at first before it asks for its turn again, and how many times that at
most. SQLite's own waiting grows to a tenth of a second, in which many turns pass."""


def connect_file(path: str, wait: float) -> sqlite3.Connection:
    """A connection that writes ahead and waits for the disk; transactions are begun by hand."""
    connection = sqlite3.connect(path, timeout=wait, check_same_thread=False, isolation_level=None)
    try:
        _write_ahead(connection, wait)
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        for pragma in ("fullfsync=ON", "checkpoint_fullfsync=ON"):  # macOS: past the disk's cache
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def checkpoint_log(connection: Any) -> None:
    """Bring what was committed from the log into the file: then the file alone is whole.

    Where a reader still needs the older state, a later commit does it; the log has it until then.
    """
    for attempt in range(CHECKPOINT_ATTEMPTS):
        with suppress(sqlite3.Error):  # a full disk, say: the log is on disk already
            busy, logged, moved = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if not busy and logged == moved:
                return
        time.sleep(TURN_SECONDS * min(attempt, MAX_TURN_STEPS))


def begin_writing(connection: Any, wait: float) -> None:
    """Take the turn of a writer of a file, in no more than so many seconds."""
    end, steps = time.monotonic() + wait, 1
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                # Its low byte: someone may also be recovering the log of a writer that was killed.
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > end:
                    raise
            # At random, so that nobody waits long for being out of step with the others.
            time.sleep(TURN_SECONDS * random.uniform(0.5, steps))
            steps = min(steps + 1, MAX_TURN_STEPS)
    finally:
        connection.execute(f"PRAGMA busy_timeout={math.ceil(wait * 1000)}")


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


def connect_server(options: Mapping[str, Any], wait: float) -> Any:
    """A connection to a server that waits for locks and for the network, and not forever."""
    import psycopg

    patience = {
        "connect_timeout": max(2, math.ceil(wait)),
        # A server that vanishes without a word is noticed after about `wait` seconds.
        "keepalives_idle": max(1, math.ceil(wait / 3)),
        "keepalives_interval": max(1, math.ceil(wait / 9)),
        "keepalives_count": 6,
        "tcp_user_timeout": math.ceil(wait * 1000),
    }
    end = time.monotonic() + wait
    while True:
        try:  # transactions are begun by hand, each with its isolation level
            connection = psycopg.connect(**{**patience, **options}, autocommit=True)
            break
        except psycopg.OperationalError as error:
            full = find_connection_reason(str(error).lower()) == FULL_REASON
            if not full or time.monotonic() > end:
                raise
            time.sleep(random.uniform(0.05, 0.2))
    try:
        connection.execute(f"SET lock_timeout TO {math.ceil(wait * 1000)}")
    except BaseException:
        connection.close()
        raise
    return connection


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

FULL_REASON = "the server has no connection left"
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
    "53300": FULL_REASON,
    "55P03": "it is locked by another session",
    "42": "its tables or functions are not those of a ledger",
    "WH": "its rules refuse this entry; see `whosin ledger verify`",
    "57014": "the server stopped the statement",
    "57P": "the server shut the connection down",
}
"""Messages by SQLSTATE, or the beginning of one; see the PostgreSQL manual, appendix A."""

ROLES_BY_FUNCTION = {"close": "a closer", "debit": "an analyst", "answer": "an analyst"}
ROLES_BY_FUNCTION |= dict.fromkeys(("register", "amend", "quota", "resume"), "a curator")
"""Whom a function is for, as the guide to PostgreSQL grants it."""

CONNECTION_REASONS = {
    "too many clients": FULL_REASON,
    "too many connections": FULL_REASON,
    "connection slots are reserved": FULL_REASON,
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


def find_connection_reason(words: str) -> str | None:
    """Why a connection failed, by the driver's words in lower case; None if they are others."""
    return next((reason for sign, reason in CONNECTION_REASONS.items() if sign in words), None)


def describe_failure(error: BaseException) -> str:
    """The reason of a failure of a driver or the system."""
    name = getattr(error, "sqlite_errorname", None)
    state = getattr(error, "sqlstate", None)
    if state == "42501" and (named := re.search(r"whosin_\w+", str(error))):
        role = ROLES_BY_FUNCTION.get(named[0].partition("_")[2], "another role")
        return f"permission denied: only its owner and {role} who was granted {named[0]} may do it"
    for known, code in ((SQLITE_REASONS, name), (POSTGRES_REASONS, state)):
        for sign, reason in known.items():
            if code and code.startswith(sign):
                return reason
    if isinstance(error, UnicodeError):
        return "the file is damaged"
    if isinstance(error, OSError) and error.errno in SYSTEM_REASONS:
        return SYSTEM_REASONS[error.errno]
    if type(error).__name__ == "TimeoutError":
        return "too many threads are using it"
    lost = find_connection_reason(str(error).lower())
    if state is None and name is None and lost is not None:
        return lost
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "".join(letter if letter.isprintable() else " " for letter in lines[0])[:200]


T = TypeVar("T")

REGISTRATION_LOCK = 8315161594742304
"""The number of the lock that registering holds on a server."""
WAIT_SECONDS = 30.0
"""Seconds to wait for another writer before giving up."""

MAX_IDLE_CONNECTIONS = 5
MAX_SERVER_CONNECTIONS = 15
"""Of one store at a time; whoever comes later waits."""

_INHERITED_CONNECTIONS: list[list[Any]] = []
"""Connections of a parent process: closing them here could end them there."""


def format_moment(moment: datetime | None = None) -> str:
    """A moment as text, this one by default: UTC, to the microsecond. Numbers order entries."""
    return (moment or encoding.utc_now()).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(frozen=True)
class LedgerAddress:
    """Where a ledger is kept.

    Attributes:
        path: its file; None on a server.
        name: the same for people, without a password.
        options: what the driver of a server is told.
    """

    path: str | None
    name: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)


def read_url(url: object) -> LedgerAddress:
    """A path, or a database URL."""
    if isinstance(url, Path):
        url = str(url)
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise invalid_value("ledger", "a file, or a URL such as postgresql://host/name", repr(url))
    if "://" not in url:
        path = os.path.realpath(os.path.expanduser(url))
        return LedgerAddress(path, path)
    kind, _, rest = url.partition("://")
    kind = kind.partition("+")[0].lower()
    if kind in ("postgresql", "postgres"):
        return _read_server(f"postgresql://{rest}")
    path = rest.removeprefix("/")
    if kind != "sqlite" or "?" in rest or path == rest or path in ("", ":memory:"):
        message = f"a ledger cannot be kept in {kind[:20]}://…"
        if kind == "sqlite":
            message = "sqlite:// needs the name of a file"
        hint = "give a SQLite file, or postgresql://host/name"
        raise InvalidInput(message, field="ledger", value=f"{kind[:20]}://…", hint=hint)
    path = os.path.realpath(path)
    return LedgerAddress(path, path)


def _read_server(url: str) -> LedgerAddress:
    """A server's address, by the driver's own reader."""
    require_extras("postgres")
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        options = {key: str(value) for key, value in conninfo_to_dict(url).items()}
        [int(port) for port in options.get("port", "").split(",") if port]
    except (ProgrammingError, ValueError):
        message = "the ledger's address cannot be read"
        hint = "give a file, or a URL such as postgresql://host/name"
        raise InvalidInput(message, field="ledger", hint=hint) from None
    user, host, port, name = (options.get(key, "") for key in ("user", "host", "port", "dbname"))
    port, host = port.strip(","), f"[{host}]" if ":" in host else host
    owner = f"{user}{':***' if 'password' in options else ''}@" if user else ""
    shown = urlencode({"host": host}) if "/" in host else ""
    place = f"{'' if shown else host}{':' if port else ''}{port}/{name}"
    return LedgerAddress(None, f"postgresql://{owner}{place}{'?' if shown else ''}{shown}", options)


class Store:
    """Transactions on one ledger.

    Args:
        wait: how many seconds to wait for other writers, or for a server.
        create: whether to make a ledger where there is none.
        who: in whose name entries are made.
    """

    def __init__(
        self,
        url: object,
        wait: float = WAIT_SECONDS,
        create: bool = True,
        who: str | None = None,
    ) -> None:
        self.address = read_url(url)
        self.sqlite = self.address.path is not None
        if not isinstance(wait, int | float) or not 0 < wait <= 86400:
            raise invalid_value("wait", "above 0 and at most a day, in seconds", repr(wait))
        self.wait = float(wait)
        self._failures: tuple[type[Exception], ...] = (OSError, UnicodeError, sqlite3.Error)
        self.read_only = False
        if self.address.path is not None:
            self._file = LedgerFile(self.address.path)
            with self._reporting():
                self._file.prepare(create)
            self.heads: Heads | None = Heads(self._file.path)
            self.read_only = not self._file.writable
        else:
            require_extras("postgres")
            import psycopg

            self.heads = None
            self._failures += (psycopg.Error,)
        self._process, self._idle = os.getpid(), list[Any]()
        self._places = threading.BoundedSemaphore(MAX_SERVER_CONNECTIONS)
        self._registered: dict[int, Any] = {}
        try:
            self._open(create)
            self.who = self._find_asker(who)
        except BaseException:
            self.dispose()
            raise

    @property
    def name(self) -> str:
        """Where the ledger is, for people, without a password."""
        return self.address.name

    @contextmanager
    def reading(self) -> Iterator[Any]:
        """One consistent view, however many statements read it."""
        before = self._file.stamp() if self.read_only else None
        text = "BEGIN" if self.sqlite else "BEGIN ISOLATION LEVEL REPEATABLE READ"
        with self._reporting(), self._begun(lambda each: each.execute(text)) as (connection, _):
            yield connection
        if before is not None and self._file.stamp() != before:
            raise StoreFailed(
                "the ledger was written while it was being read", hint="read it again"
            )

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Open one durable transaction for writing."""
        self._check_writable()

        # A writer takes a file's lock before it reads, or two could check the same balance; on a
        # server it waits for the row's lock and then sees what the last one wrote.
        def begin(connection: Any) -> None:
            if self.sqlite:
                begin_writing(connection, self.wait)
            else:
                connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")

        with self._reporting(), self._begun(begin) as (connection, _):
            self._check_file()
            try:
                yield connection
            finally:
                new = self._registered.pop(id(connection), None)
            connection.execute("COMMIT")
            self._settle(connection, new)

    def lock_registrations(self, connection: Any) -> None:
        """On a server one registers at a time, or two could miss that they have the same rows; a
        file has one writer anyway."""
        if not self.sqlite:
            connection.execute(f"SELECT pg_advisory_xact_lock({REGISTRATION_LOCK})")

    @contextmanager
    def turn(
        self, dataset: str, requests: Sequence[str] = (), parts: Sequence[str] = ()
    ) -> Iterator[Transaction]:
        """One durable transaction on one dataset, in the fewest round trips; see `Transaction`."""

        def begin(connection: Any) -> Transaction:
            if self.sqlite:
                begin_writing(connection, self.wait)
            turn = Transaction(connection, server=not self.sqlite)
            turn.begin(dataset, requests, parts)
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
                self._settle(connection, turn.after)

    def register(self, connection: Any, entry: Entry, row: Any) -> bool:
        """Write a dataset with its first entry; False where there is one of this name."""
        values = {**entries.entry_values(entry), **row._asdict()}
        if not self.sqlite:
            values |= {"dataset": row.name, "head": entry.head}
            asked = {name: values[name] for name in FUNCTION_ARGUMENTS["register"]}
            made = connection.execute(transaction.statement_text("call register", True), asked)
            return bool(made.fetchone()[0])
        if self.heads is not None:
            number, _ = self.heads.read().get(row.name, (0, ""))
            if number:
                raise BrokenHistory(row.name, self.heads.words(number, 0))
        new = f"{insert_sql(DATASETS_TABLE)} ON CONFLICT DO NOTHING"
        if connection.execute(new, row._asdict()).rowcount != 1:
            return False
        connection.execute(insert_sql(ENTRIES_TABLE), entries.entry_values(entry))
        self._registered[id(connection)] = row
        return True

    def stamp(self, connection: Any) -> str:
        """The time of an entry: the server's where there is one, since machines' clocks differ.

        A server set to answer before its disk does is told not to, for this transaction.
        """
        if self.sqlite:
            return format_moment()
        text = transaction.statement_text("time", True)
        return format_moment(connection.execute(text).fetchone()[0])

    def dispose(self) -> None:
        """Close all connections that nobody uses."""
        if self._process == os.getpid():
            while self._idle:
                self._idle.pop().close()

    def _connect(self) -> Any:
        if self.address.path is None:
            return connect_server(self.address.options, self.wait)
        if self.read_only:
            uri = self._file.read_only_uri()
            return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)
        return connect_file(self.address.path, self.wait)

    def _take(self) -> Any:
        """A connection for this thread alone: one that nobody uses, or a new one."""
        if self._process != os.getpid():
            _INHERITED_CONNECTIONS.append(self._idle)
            self._process, self._idle = os.getpid(), []
            self._places = threading.BoundedSemaphore(MAX_SERVER_CONNECTIONS)
        if not self.sqlite and not self._places.acquire(timeout=self.wait):
            raise TimeoutError
        try:
            with suppress(IndexError):
                return self._idle.pop()
            return self._connect()
        except BaseException:
            if not self.sqlite:
                self._places.release()
            raise

    def _give_back(self, connection: Any, *, broken: bool = False) -> None:
        """Let others use a connection, whose transaction is over; or close it."""
        try:
            try:
                info = connection if self.sqlite else connection.info
                if not broken and (info.in_transaction if self.sqlite else info.transaction_status):
                    connection.execute("ROLLBACK")
            except self._failures:
                broken = True
            if broken or self.read_only or len(self._idle) >= MAX_IDLE_CONNECTIONS:
                with suppress(*self._failures):
                    connection.close()
            else:
                self._idle.append(connection)
        finally:
            if not self.sqlite:
                self._places.release()

    def _open(self, create: bool) -> None:
        """Check what is there; make the tables in an empty database."""
        with self.reading() as connection:
            listed = _FILE_TABLES if self.sqlite else _SERVER_TABLES
            tables = {str(name) for (name,) in connection.execute(listed)}
            known = ABOUT_TABLE in tables
            version = connection.execute(select_sql(ABOUT_TABLE)).fetchone() if known else None
        if known and version is not None:
            _check_version(*version)
            return
        if self.sqlite and tables - entries.TABLE_COLUMNS.keys():
            raise InvalidInput(
                "this is a database of another program, not a ledger", field="ledger"
            )
        if not create or self.read_only:
            message = "this database holds no ledger"
            raise EmptyLedger(message, field="ledger", hint="make one with whosin ledger create")
        with self.writing() as connection:
            if not self.sqlite:  # two first users must not create the tables at once
                connection.execute("SELECT pg_advisory_xact_lock(8315161594742303)")
            for statement in entries.table_statements(server=not self.sqlite):
                connection.execute(statement)
            if not self.sqlite:
                self.make_functions(connection)
            if connection.execute(select_sql(ABOUT_TABLE)).fetchone() is None:
                row = {"kind": entries.FORMAT_KIND, "version": entries.FORMAT_VERSION}
                entries.execute_sql(connection, insert_sql(ABOUT_TABLE), **row)

    def _find_asker(self, who: str | None) -> str:
        """In whose name entries are made. In a file whoever asks is taken at their word; a server
        knows who signed in, and lets only those who may keep quotas ask for others."""
        if self.sqlite:
            return who or encoding.read_name(encoding.current_user(), "who")
        with self.reading() as connection:
            user, may_name = connection.execute(_SIGNED_IN).fetchone()
        if who is not None and who != user and not may_name:
            message = f"the ledger's server knows you as {user!r}, who cannot ask for {who!r}"
            hint = "leave the name out, or sign in as someone who may keep quotas"
            raise InvalidInput(message, field="who", value=who, hint=hint)
        return who or str(user)

    def missing_roles(self, names: Iterable[str]) -> list[str]:
        """Which names nobody can sign in as; a file knows none."""
        if self.sqlite:
            return []
        with self.reading() as connection:
            known = {row[0] for row in connection.execute("SELECT rolname::text FROM pg_roles")}
        return [name for name in names if name not in known]

    def make_functions(self, connection: Any) -> None:
        """Make the functions of a server in the schema that holds the tables."""
        (schema,) = connection.execute("SELECT quote_ident(current_schema())").fetchone()
        for statement in transaction.function_statements(str(schema)):
            connection.execute(statement)

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

    @contextmanager
    def _begun(self, first: Callable[[Any], T]) -> Iterator[tuple[Any, T]]:
        """A connection, and what came of the first thing done with it, which must write nothing.

        A connection that was lost while it lay in the pool shows there: it is made anew, once.
        """
        for last in (self.sqlite, True):
            connection = self._take()
            try:
                result = first(connection)
                break
            except BaseException as error:
                gone = not self.sqlite and connection.closed
                self._give_back(connection, broken=True)
                if gone:  # and so may be the others that nobody uses
                    self.dispose()
                if last or not gone or not isinstance(error, Exception):
                    raise
        broken, process = True, os.getpid()
        try:
            yield connection, result
            broken = False
        except WhosinError:
            broken = False  # between statements: it is rolled back
            raise
        finally:
            if process == os.getpid():
                self._give_back(connection, broken=broken)
            else:  # a fork inside the block: it is the parent's
                _INHERITED_CONNECTIONS.append([connection])

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            reason = describe_failure(error)
            if reason == LOCKED_REASON and self.heads is not None and not self.heads.has_locks():
                reason = NO_LOCKS_REASON
            if reason in CONNECTION_REASONS.values():
                options = self.address.options
                place = f"{options.get('host', 'localhost')}:{options.get('port', 5432)}"
                reason = f"{reason} ({place})"
            raise StoreFailed(f"the ledger cannot be used: {reason}; no answer was given") from None


_FILE_TABLES = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_'"
)
_SIGNED_IN = (
    "SELECT session_user::text, has_function_privilege(session_user, "
    "to_regprocedure('whosin_quota(text, text, text, text)')::oid, 'EXECUTE')"
)
_SERVER_TABLES = (
    "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)"
)


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
