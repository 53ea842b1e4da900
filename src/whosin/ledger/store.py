"""The database behind a ledger: SQLite in one file, or PostgreSQL.

Contract: `writing` is one durable transaction that sees the latest state and excludes other writers
of the same dataset; it is committed to disk when the block ends, or nothing happened. Every failure
of the store is a `StoreFailed` with one clear line, which never shows a password.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, exc, func, inspect, select
from sqlalchemy.engine import URL, make_url

from whosin.errors import InvalidInput, StoreFailed
from whosin.ledger import schema
from whosin.ledger.clock import now

WAIT = 30.0
"""Seconds to wait for another writer before giving up."""


def read_url(url: object) -> URL:
    """A path, or a database URL."""
    if isinstance(url, Path):
        url = str(url)
    if not isinstance(url, str) or not url.strip() or "\0" in url:
        raise InvalidInput("ledger", "a file, or a URL such as postgresql://host/name", repr(url))
    if "://" not in url:
        return URL.create("sqlite", database=os.path.abspath(os.path.expanduser(url)))
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise InvalidInput("ledger", "a file or a database URL", "one that is neither") from None
    kind = parsed.get_backend_name()
    if kind in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if kind != "sqlite" or not parsed.database or parsed.database == ":memory:":
        raise InvalidInput("ledger", "a SQLite file or postgresql://…", f"{kind}://…")
    return parsed.set(database=os.path.abspath(parsed.database))


class Store:
    """Transactions on one ledger."""

    def __init__(self, url: object, wait: float = WAIT, create: bool = True) -> None:
        self.url = read_url(url)
        self.sqlite = self.url.get_backend_name() == "sqlite"
        self.wait = wait
        if self.sqlite:
            self._check_file(create)
        with self._reporting():
            self._engine = _engine(self.url, wait)
        self._open(create)

    @property
    def name(self) -> str:
        """Where the ledger is, for people, without a password."""
        return str(self.url.database) if self.sqlite else self.url.render_as_string()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view."""
        with self._reporting(), self._engine.connect() as connection:
            yield connection.execution_options(whosin_read=True)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One durable transaction."""
        with self._reporting(), self._engine.begin() as connection:
            if not self.sqlite:
                # A server set to answer before its disk does must not do so here.
                connection.exec_driver_sql("SET LOCAL synchronous_commit TO on")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout TO {int(self.wait * 1000)}")
            yield connection

    def now(self, connection: Connection) -> str:
        """The time: the server's where there is one, since machines' clocks differ."""
        if self.sqlite:
            return now()
        stamp = connection.execute(select(func.clock_timestamp())).scalar_one()
        return now(stamp)

    def dispose(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def _check_file(self, create: bool) -> None:
        path = Path(str(self.url.database))
        if path.is_dir():
            raise InvalidInput("ledger", "a file", "a folder")
        if path.exists():
            with self._reporting(), path.open("rb") as file:
                start = file.read(16)
            if start and start != b"SQLite format 3\0":
                raise InvalidInput("ledger", "a ledger file", f"{path.name}, which is not one")
        elif not create:
            raise InvalidInput("ledger", "an existing ledger", f"{path.name}, which does not exist")
        elif not path.parent.is_dir():
            raise InvalidInput("ledger", "a file in an existing folder", f"{path.name} elsewhere")

    def _open(self, create: bool) -> None:
        """Check what is there; make the tables in an empty database."""
        with self.reading() as connection:
            tables = set(inspect(connection).get_table_names())
            known = schema.about.name in tables
            version = connection.execute(select(schema.about)).first() if known else None
        if known and version is not None:
            if version.kind != schema.KIND:
                raise InvalidInput("ledger", "a ledger", "another kind of database")
            if version.version > schema.VERSION:
                raise StoreFailed(
                    f"the ledger has format {version.version}, written by a newer whosin; this one "
                    f"reads format {schema.VERSION}: upgrade whosin"
                )
            return
        if self.sqlite and tables - set(schema.metadata.tables):
            raise InvalidInput("ledger", "a ledger file", "another program's database")
        if not create:
            raise InvalidInput("ledger", "an existing ledger", "an empty database")
        self._create()

    def _create(self) -> None:
        from sqlalchemy import insert

        with self.writing() as connection:
            if not self.sqlite:  # two first users must not create the tables at once
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(8315161594742303)")
            schema.metadata.create_all(connection)
            if connection.execute(select(schema.about)).first() is None:
                row = {"kind": schema.KIND, "version": schema.VERSION, "created": now()}
                connection.execute(insert(schema.about).values(row))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except exc.IntegrityError:
            raise
        except (exc.SQLAlchemyError, OSError) as error:
            raise StoreFailed(_words(error, self.sqlite)) from None
        except ImportError:
            raise StoreFailed(
                "a ledger on PostgreSQL needs the package psycopg: pip install 'whosin[postgres]'"
            ) from None


def _engine(url: URL, wait: float) -> Engine:
    sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"timeout": wait, "check_same_thread": False} if sqlite else {}
    if not sqlite:
        options = {"connect_timeout": max(2, int(wait))}
    engine = create_engine(url, connect_args=options, pool_pre_ping=not sqlite)
    home = os.getpid()

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, record: Any) -> None:
        record.info["process"] = os.getpid()
        if sqlite:
            connection.isolation_level = None  # transactions are begun by hand, below
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")
            connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "checkout")
    def _checkout(connection: Any, record: Any, proxy: Any) -> None:
        if record.info["process"] != os.getpid():  # a forked child must not share a connection
            record.dbapi_connection = proxy.dbapi_connection = None
            raise exc.DisconnectionError(f"opened by process {home}")

    if sqlite:

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            # A writer takes the lock before it reads, or two could check the same balance.
            reading = connection.get_execution_options().get("whosin_read")
            connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")

    return engine


def _words(error: Exception, sqlite: bool) -> str:
    """One line for people; nothing of the statement or its values."""
    text = str(getattr(error, "orig", None) or error).strip().splitlines()
    reason = text[0] if text else type(error).__name__
    low = reason.lower()
    for sign, words in (
        ("disk is full", "the disk is full"),
        ("no space", "the disk is full"),
        ("locked", "it is locked by another program"),
        ("lock timeout", "it is locked by another session"),
        ("readonly", "the file or its folder cannot be written"),
        ("read-only", "the file or its folder cannot be written"),
        ("unable to open", "the file or its folder cannot be opened"),
        ("permission denied", "permission denied"),
        ("not a database", "the file is damaged, or not a ledger"),
        ("malformed", "the file is damaged"),
        ("disk i/o", "the disk failed"),
    ):
        if sign in low:
            return f"the ledger cannot be used: {words}; no answer was given"
    where = "" if sqlite else " (database server)"
    return f"the ledger cannot be used{where}: {reason[:200]}; no answer was given"
