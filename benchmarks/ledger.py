"""Durable debits a second: each one is on disk before it returns.

The floor is the least that any program could do: one row and one balance in raw sqlite3, with the
same settings, on the same disk; twice that for an answer, which is two commits. Floor and ledger
take turns, since a shared disk's speed changes by the minute. A PostgreSQL of the bench's own is
started where there is one, also for eight processes on one dataset at once.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import whosin as wi
from measuring import Row
from whosin.ledger import Cost, Spend, verify
from whosin.ledger.encoding import canonical_json
from whosin.ledger.registration import Registration

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

DEBITS, ENTRIES = 300, 100_001
PROCESSES, EACH = 8, 50
PRICE = Spend({"query": "count"}, {"add-remove": Cost.pure("0.001")})
GOAL = "hundreds a second"
TABLE = Registration("who", part={"column": "region", "rule": "constant"})
PARTS = 1_000_000


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as home:
        base = sqlite3.connect(Path(home, "floor.db"), isolation_level=None)
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA synchronous=FULL")
        yield from _lines("SQLite", "raw sqlite3", Path(home, "ledger.db"), _floor(base, "?"))
        base.close()
    import postgres

    if reason := postgres.missing():
        print(f"bench: {reason}", file=sys.stderr)
        return
    import psycopg

    with postgres.server() as server, psycopg.connect(server.url, autocommit=True) as base:
        yield from _lines("PostgreSQL", "raw psycopg", server.url, _floor(base, "%s"))


def _lines(kind: str, peer: str, url: object, floor: Callable[[int], None]) -> Iterator[Row]:
    seconds = _ledger(url, floor)
    least, debit, answer = (seconds[name] for name in ("floor", "debit", "answer"))
    met = answer < 1 / 100
    yield Row(f"one durable debit, {kind}", debit, GOAL, debit < 1 / 200, peer, least)
    yield Row(f"one debit and its stored answer, {kind}", answer, GOAL, met, peer, 2 * least)
    shared = _together(url)
    work = f"the same, {PROCESSES} processes on one dataset, {kind}"
    raw = 2 * seconds["floor"]  # two commits, measured before and by one process alone
    yield Row(work, shared, "half of raw commits", shared <= 2 * raw, f"{peer}, one process", raw)
    checked, hashed = _verify(url)
    work = f"verify {ENTRIES:,} entries (CPU), {kind}"
    yield Row(work, checked, "1 s", checked < 1, "digests alone", hashed)
    many = _many(url)
    yield Row(f"1,000 debits at once, {kind}", many, "1 s", many < 1, f"{peer}, one", least)
    parts, few, beside = _parts(url)
    yield Row(f"1,000 parts at once, {kind}", parts, "1 s", parts < 1, f"{peer}, one", least)
    work = f"one durable debit beside {PARTS:,} parts, {kind}"
    yield Row(work, beside, "as beside 1,000", beside < 2 * few, "whosin, 1,000 parts", few)


def _ledger(url: object, floor: Callable[[int], None]) -> dict[str, float]:
    """Seconds for a raw commit, a debit, and a debit with its answer."""
    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("d", wi.calibrate(wi.Epsilon(100)))
        for number in range(10):
            ledger.answer("d", PRICE, lambda: 1, f"first {number}")
        work: dict[str, Callable[[int], object]] = {
            "floor": floor,
            "debit": lambda number: ledger.debit("d", f"{number}", PRICE),
            "answer": lambda number: ledger.answer("d", PRICE, lambda: 41, f"answered {number}"),
        }
        seconds = dict.fromkeys(work, 0.0)
        for number in range(DEBITS):
            for name, do in work.items():
                start = time.perf_counter()
                do(number)
                seconds[name] += time.perf_counter() - start
    return {name: total / DEBITS for name, total in seconds.items()}


def _together(url: object) -> float:
    """Seconds for an answer when several processes ask about one dataset."""
    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("shared", wi.calibrate(wi.Epsilon(100)))
    fresh = multiprocessing.get_context("spawn")
    ready = fresh.Barrier(PROCESSES + 1)
    asking = [fresh.Process(target=_ask, args=(url, n, ready)) for n in range(PROCESSES)]
    for process in asking:
        process.start()
    ready.wait()
    start = time.perf_counter()
    for process in asking:
        process.join()
        assert process.exitcode == 0
    return (time.perf_counter() - start) / (PROCESSES * EACH)


def _verify(url: object) -> tuple[float, float]:
    """Processor seconds for verifying a long history, and for its digests alone."""
    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("long", wi.calibrate(wi.Epsilon(100)))
        for start in range(0, ENTRIES // 2, 1000):
            asked = {f"{number}": PRICE for number in range(start, start + 1000)}
            ledger.store_answers([(debit, 41) for debit in ledger.debits("long", asked)])
        start_seconds = time.process_time()
        assert verify(ledger, "long").entries == ENTRIES
        checked = time.process_time() - start_seconds
        texts = [canonical_json(entry.body).encode() for entry in ledger.history("long")]
        start_seconds = time.process_time()
        for text in texts:
            hashlib.sha256(text).hexdigest()
        return checked, time.process_time() - start_seconds


def _many(url: object) -> float:
    """Seconds for a batch of a thousand."""
    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("many", wi.calibrate(wi.Epsilon(100)))
        start = time.perf_counter()
        ledger.debits("many", {f"{number}": PRICE for number in range(1000)})
        return time.perf_counter() - start


def _parts(url: object) -> tuple[float, float, float]:
    """Seconds for a batch over a thousand parts, for a debit beside these, and beside a million."""

    def ask(part: str) -> Spend:
        return replace(PRICE, registration=TABLE, part=part)

    with wi.Ledger(url, who="bench") as ledger:
        ledger.register("parts", wi.calibrate(wi.Epsilon(100)), TABLE)
        start = time.perf_counter()
        ledger.debits("parts", {f"{number}": ask(f"p{number}") for number in range(1000)})
        together = time.perf_counter() - start
        seconds = []
        for kind in "pq":
            start = time.perf_counter()
            for number in range(DEBITS):
                ledger.debit("parts", f"{kind}/{number}", ask(f"{kind}{997 * number % 1000}"))
            seconds.append((time.perf_counter() - start) / DEBITS)
            if kind == "p":
                _fill_parts(url)
        return together, seconds[0], seconds[1]


def _fill_parts(url: object) -> None:
    """A million parts that were asked about, written as another program could."""
    numbers = f"n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {PARTS})"
    filled = "SELECT 'parts', 'q' || i, 0, 1, 1, 0, 1, 1, 0 FROM n"
    text = f"WITH RECURSIVE {numbers} INSERT INTO whosin_parts {filled}"
    if isinstance(url, Path):
        with closing(sqlite3.connect(url)) as base, base:
            base.execute(text)
        return
    import psycopg

    with psycopg.connect(str(url)) as base:  # a server looks at a table that grows by itself
        base.execute(text)
        base.execute("ANALYZE whosin_parts")


def _ask(url: object, worker: int, ready: Any) -> None:
    with wi.Ledger(url, who="bench") as ledger:
        ledger.answer("shared", PRICE, lambda: 1, f"{worker} first")
        ready.wait()
        for number in range(EACH):
            ledger.answer("shared", PRICE, lambda: 1, f"{worker}/{number}")


def _floor(base: Any, mark: str) -> Callable[[int], None]:
    """One row and one balance in one commit, by the driver alone."""
    base.execute("CREATE TABLE floor_entries (number INTEGER PRIMARY KEY, body TEXT)")
    base.execute("CREATE TABLE floor_balance (spent INTEGER)")
    base.execute("INSERT INTO floor_balance VALUES (0)")
    begin, lock = ("BEGIN IMMEDIATE", "") if mark == "?" else ("BEGIN", " FOR UPDATE")

    def commit(number: int) -> None:
        base.execute(begin)
        (spent,) = base.execute(f"SELECT spent FROM floor_balance{lock}").fetchone()
        base.execute(f"INSERT INTO floor_entries VALUES ({mark}, {mark})", (number, "x" * 500))
        base.execute(f"UPDATE floor_balance SET spent = {mark}", (spent + 1,))
        base.execute("COMMIT")

    return commit
