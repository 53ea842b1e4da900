"""One dataset's turn to be written, in two round trips: lock and look, then change and commit.

Contract: `begin` waits until no other writer has the dataset and only then looks, each statement at
the state of its own moment, so that what the last writer committed is seen. Nothing is written
before `commit`, which returns when the disk has everything, and otherwise nothing happened. The
statements are SQLAlchemy's, compiled once and run on the driver's own connection: on a server they
travel together (psycopg's pipeline mode), since waiting for each costs more than the work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    bindparam,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.elements import CompilerElement

from whosin.ledger import rows, running
from whosin.ledger.entries import Entry
from whosin.ledger.functions import CALLS
from whosin.ledger.schema import answers, datasets, entries

_DATASET: BindParameter[str] = bindparam("dataset")
_REQUEST: BindParameter[str] = bindparam("request")
_CHANGED = (*running.SUMS.values(), "entries", "head", "last", "binding")
_STATEMENTS: dict[str, CompilerElement] = {
    "lock": select(func.whosin_lock(_DATASET)),
    "dataset": select(datasets).where(datasets.c.name == _DATASET),
    "last": select(entries)
    .where(
        entries.c.dataset == _DATASET,
        entries.c.number
        >= select(datasets.c.entries - literal_column("1"))
        .where(datasets.c.name == _DATASET)
        .scalar_subquery(),
    )
    .order_by(entries.c.number.desc()),
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
    .values({name: bindparam(name) for name in _CHANGED}),
    # On a server the same is done by functions that check it (see `functions`).
    **{
        f"call {name}": select(getattr(func, f"whosin_{name}")(*map(bindparam, arguments)))
        for name, arguments in CALLS.items()
    },
}
_CALLED = {"debit": "debit", "answer": "answer", "closed": "close", "amended": "amend"}
_CALLED |= {"halted": "halt", "resumed": "resume"}

Statement = tuple[str, Mapping[str, object]]


class Transaction:
    """A transaction that holds a dataset.

    Attributes:
        row: the dataset's row; None where there is no such dataset.
        last: its last two entries, newest first.
        debits: the debits of the requests that were paid for before.
        answers: the stored answers of the requests.
        time: of this turn: the server's where there is one, since machines' clocks differ.
        after: the dataset's row after a commit.
        settles: whether a file has to be whole without its log before this turn ends: where answers
            were found or stored, and after entries that have no answer. A debit has one, later.
    """

    def __init__(self, driver: Any, *, server: bool) -> None:
        self._driver, self._server = driver, server
        self.row: Any = None
        self.last: list[Entry] = []
        self.debits: dict[str, Entry] = {}
        self.answers: dict[str, str] = {}
        self.time: Any = None
        self.after: Any = None
        self.settles = False

    def begin(self, dataset: str, requests: Sequence[str] = ()) -> None:
        """Lock the dataset and look at it and at the requests."""
        asked = {"dataset": dataset}
        statements: list[Statement] = [("BEGIN IMMEDIATE", {})]
        if self._server:
            durable = {"setting": "synchronous_commit", "value": "on"}
            statements = [
                ("BEGIN ISOLATION LEVEL READ COMMITTED", {}),
                (self._text("call lock"), asked),
                (self._text("time"), durable),
            ]
        first = len(statements)
        statements += [(self._text("dataset"), asked), (self._text("last"), asked)]
        for request in requests:
            each = {**asked, "request": request}
            statements.append((self._text("debit"), {**each, "kind": "debit"}))
            statements.append((self._text("answer"), each))
        results = self._run(statements)
        self.time = results[first - 1][0][0] if self._server else None
        result, last, *rest = results[first:]
        self.row = rows.DatasetRow._make(result[0]) if result else None
        self.last = [_entry(row) for row in last]
        for request, debit, answer in zip(requests, rest[::2], rest[1::2], strict=True):
            if debit:
                self.debits[request] = _entry(debit[0])
            if answer:
                self.answers[request] = answer[0][0]
                self.settles = True

    def commit(
        self, row: Any, *made: Entry, answer: str | None = None, settle: bool = True
    ) -> None:
        """Append entries, and the answer with the one; all of it is on disk then.

        Args:
            row: the dataset's row after them.
            settle: whether something may be shown after it: see `settles`.
        """
        statements: list[Statement] = []
        if self._server:
            for each in made:
                values = {**rows.entry_values(each), "answer": answer, "binding": row.binding}
                statements.append((self._text(f"call {_CALLED[each.kind]}"), values))
        else:
            if answer is not None:
                values = {"dataset": row.name, "request": made[0].request, "answer": answer}
                statements.append((self._text("add answer"), values))
            statements += [(self._text("add entry"), rows.entry_values(each)) for each in made]
            changed = {name: getattr(row, name) for name in _CHANGED}
            statements.append((self._text("change dataset"), {**changed, "dataset": row.name}))
        self._run([*statements, ("COMMIT", {})])
        self.after, self.settles = row, settle or self.settles

    def end(self) -> None:
        """Let go of the dataset, where nothing had to be written."""
        if self.after is None:
            self._run([("COMMIT", {})])

    def _text(self, name: str) -> str:
        return _compiled(name, self._server)

    def _run(self, statements: Iterable[Statement]) -> list[list[tuple[Any, ...]]]:
        failed: Exception | None = None
        cursors = []
        try:
            with self._driver.pipeline() if self._server and _pipelines() else nullcontext():
                try:
                    cursors = [self._driver.execute(text, values) for text, values in statements]
                except Exception as error:  # raised below: a pipeline that it leaves logs a warning
                    failed = error
        except Exception as error:  # the statements after the first that failed fail too
            failed = failed or error
        if failed is not None:
            raise failed
        return [cursor.fetchall() if cursor.description else [] for cursor in cursors]


def _entry(row: Sequence[Any]) -> Entry:
    return rows.read_entry(rows.EntryRow._make(row))


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
