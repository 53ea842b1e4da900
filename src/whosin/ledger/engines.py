"""Engines for the two databases: how a connection is made, waits and reports its loss."""

from __future__ import annotations

import math
import sqlite3
import time
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.pool import NullPool

from whosin.ledger.ledger_file import LedgerFile

CHECKPOINTS = 5


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


def checkpoint(connection: Any) -> None:
    """Bring what was committed from the log into the file: then the file alone is whole.

    Where a reader still needs the older state, a later commit does it; the log has it until then.
    """
    for attempt in range(CHECKPOINTS):
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
