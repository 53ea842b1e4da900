"""Durable debits a second: each one is on disk before it returns.

The floor is the least that any program could do: one row and one balance in raw sqlite3, with the
same settings, on the same disk. A PostgreSQL of the bench's own is started where there is one.
"""

from __future__ import annotations

import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import whosin as wi
from measuring import Row
from whosin.ledger import Charge, Cost

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

DEBITS = 300
PRICE = Charge({"query": "count"}, {"add-remove": Cost.pure("0.001")})


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as home:
        floor = _floor(Path(home, "floor.db"))
        seconds, whole = _ledger(Path(home, "ledger.db"))
    goal = "hundreds a second"
    yield Row("one durable debit, SQLite", seconds, goal, seconds < 1 / 200, "raw sqlite3", floor)
    yield Row("one debit and its stored answer, SQLite", whole, goal, whole < 1 / 100)
    import postgres

    if reason := postgres.missing():
        print(f"bench: {reason}", file=sys.stderr)
        return
    with postgres.server() as server:
        floor = _postgres_floor(server.url)
        seconds, whole = _ledger(server.url)
    met = seconds < 1 / 200
    yield Row("one durable debit, PostgreSQL", seconds, goal, met, "raw psycopg", floor)
    yield Row("one debit and its stored answer, PostgreSQL", whole, goal, whole < 1 / 100)


def _ledger(url: object) -> tuple[float, float]:
    """Seconds for a debit, and for a debit with its answer."""
    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("d", wi.calibrate(wi.Epsilon(100)))
        ledger.answer("d", PRICE, lambda: 1, "first")
        start = time.perf_counter()
        for number in range(DEBITS):
            ledger.debit("d", f"{number}", PRICE)
        middle = time.perf_counter()
        for number in range(DEBITS):
            ledger.answer("d", PRICE, lambda: 41, f"answered {number}")
        return (middle - start) / DEBITS, (time.perf_counter() - middle) / DEBITS


def _floor(path: Path) -> float:
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("PRAGMA journal_mode=WAL")
    base.execute("PRAGMA synchronous=FULL")
    base.execute("CREATE TABLE entries (number INTEGER PRIMARY KEY, body TEXT)")
    base.execute("CREATE TABLE balance (spent INTEGER)")
    base.execute("INSERT INTO balance VALUES (0)")
    body = "x" * 500
    start = time.perf_counter()
    for number in range(DEBITS):
        base.execute("BEGIN IMMEDIATE")
        (spent,) = base.execute("SELECT spent FROM balance").fetchone()
        base.execute("INSERT INTO entries VALUES (?, ?)", (number, body))
        base.execute("UPDATE balance SET spent = ?", (spent + 1,))
        base.execute("COMMIT")
    seconds = (time.perf_counter() - start) / DEBITS
    base.close()
    return seconds


def _postgres_floor(url: str) -> float:
    import psycopg

    with psycopg.connect(url) as base:
        base.execute("CREATE TABLE floor_entries (number INTEGER PRIMARY KEY, body TEXT)")
        base.execute("CREATE TABLE floor_balance (spent INTEGER)")
        base.execute("INSERT INTO floor_balance VALUES (0)")
        base.commit()
        body = "x" * 500
        start = time.perf_counter()
        for number in range(DEBITS):
            found = base.execute("SELECT spent FROM floor_balance FOR UPDATE").fetchone()
            assert found is not None
            base.execute("INSERT INTO floor_entries VALUES (%s, %s)", (number, body))
            base.execute("UPDATE floor_balance SET spent = %s", (found[0] + 1,))
            base.commit()
        return (time.perf_counter() - start) / DEBITS
