"""One dataset's turn to be written, in two round trips: lock and look, then change and commit.

Contract: `begin` waits until no other writer has the dataset and only then looks, each statement at
the state of its own moment, so that what the last writer committed is seen. Nothing is written
before `commit`, which returns when the disk has everything, and otherwise nothing happened. The
statements are SQLAlchemy's, compiled once and run on the driver's own connection: on a server they
travel together (psycopg's pipeline mode), since waiting for each costs more than the work.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from sqlalchemy import BindParameter, bindparam, func, insert, select, true, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import CompilerElement

from whosin.ledger import rows
from whosin.ledger.entries import Entry
from whosin.ledger.schema import answers, datasets, entries

SUMS = (
    "state",
    "spent_epsilon",
    "spent_rho",
    "spent_delta",
    "debits",
    "entries",
    "head",
    "last",
    "binding",
)
"""What a turn may change about a dataset; its budget is not among it."""

_DATASET: BindParameter[str] = bindparam("dataset")
_REQUEST: BindParameter[str] = bindparam("request")
_STATEMENTS: dict[str, CompilerElement] = {
    # SQLite knows no row locks and drops the clause: there the whole transaction has the lock.
    "dataset": select(datasets).where(datasets.c.name == _DATASET).with_for_update(),
    "debit": select(entries).where(
        entries.c.dataset == _DATASET,
        entries.c.request == _REQUEST,
        entries.c.kind == bindparam("kind"),
    ),
    "answer": select(answers.c.answer).where(
        answers.c.dataset == _DATASET, answers.c.request == _REQUEST
    ),
    # A server set to answer before its disk does is told not to, for this transaction.
    "time": select(
        func.clock_timestamp(),
        func.set_config(bindparam("setting"), bindparam("value"), true()),
    ),
    "add entry": insert(entries),
    "add answer": insert(answers),
    "change dataset": update(datasets)
    .where(datasets.c.name == _DATASET)
    .values({name: bindparam(name) for name in SUMS}),
}
_Row = namedtuple("_Row", [column.name for column in datasets.columns])  # type: ignore[misc]
_EntryRow = namedtuple("_EntryRow", [column.name for column in entries.columns])  # type: ignore[misc]

Statement = tuple[str, Mapping[str, object]]


class Turn:
    """A transaction that holds a dataset.

    Attributes:
        row: the dataset's row; None where there is no such dataset.
        debits: the debits of the requests that were paid for before.
        answers: the stored answers of the requests.
        time: of this turn: the server's where there is one, since machines' clocks differ.
    """

    def __init__(self, driver: Any, *, server: bool) -> None:
        self._driver, self._server = driver, server
        self.row: Any = None
        self.debits: dict[str, Entry] = {}
        self.answers: dict[str, str] = {}
        self.time: Any = None

    def begin(self, dataset: str, requests: Sequence[str] = ()) -> None:
        """Lock the dataset and look at it and at the requests."""
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED" if self._server else "BEGIN IMMEDIATE"
        statements: list[Statement] = [
            (begin, {}),
            (self._text("dataset"), {"dataset": dataset}),
        ]
        for request in requests:
            asked = {"dataset": dataset, "request": request}
            statements.append((self._text("debit"), {**asked, "kind": "debit"}))
            statements.append((self._text("answer"), asked))
        if self._server:
            durable = {"setting": "synchronous_commit", "value": "on"}
            statements.append((self._text("time"), durable))
        _, found, *rest = self._run(statements)
        self.row = _Row._make(found[0]) if found else None
        self.time = rest.pop()[0][0] if self._server else None
        for request, debit, answer in zip(requests, rest[::2], rest[1::2], strict=True):
            if debit:
                self.debits[request] = rows.read_entry(_EntryRow._make(debit[0]))
            if answer:
                self.answers[request] = answer[0][0]

    def commit(self, *made: Entry, answer: str | None = None, **changes: object) -> None:
        """Append entries, store the answer with the one, change the sums; all of it is on disk
        then."""
        sums = {name: getattr(self.row, name) for name in SUMS}
        entry = made[-1]
        sums |= changes | {
            "entries": entry.number,
            "head": entry.head,
            "last": entry.body["when"],
            "dataset": entry.dataset,
        }
        statements: list[Statement] = [
            *((self._text("add entry"), rows.entry_values(each)) for each in made),
            (self._text("change dataset"), sums),
            ("COMMIT", {}),
        ]
        if answer is not None:
            values = {"dataset": entry.dataset, "request": entry.request, "answer": answer}
            statements.insert(0, (self._text("add answer"), values))
        self._run(statements)

    def _text(self, name: str) -> str:
        return _compiled(name, self._server)

    def _run(self, statements: Iterable[Statement]) -> list[list[tuple[Any, ...]]]:
        failed, cursors = None, []
        with self._driver.pipeline() if self._server and _pipelines() else nullcontext():
            try:
                cursors = [self._driver.execute(text, values) for text, values in statements]
            except Exception as error:  # raised below: a pipeline that it leaves logs a warning
                failed = error
        if failed is not None:
            raise failed
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


@cache
def _compiled(name: str, server: bool) -> str:
    made: Any = postgresql.psycopg.dialect if server else sqlite.pysqlite.dialect
    dialect = made() if server else made(paramstyle="named")
    return str(_STATEMENTS[name].compile(dialect=dialect))


@cache
def _pipelines() -> bool:
    """Whether the driver's library has them (libpq 14); if not, each statement waits."""
    import psycopg

    return psycopg.Pipeline.is_supported()
