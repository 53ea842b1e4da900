"""Entries of a history: their tables, rows and running sums.

The tables of a ledger. `entries` is only ever appended to; `datasets` repeats its last sums. Format
2: every entry holds the sums after it and the digest of the dataset's terms (see `running`).

Running sums in every entry, so that the chain of digests covers what a debit relies on. An entry's
body has the `running_sums` of its dataset after it (what was spent, how many debits, the state) and
`terms_digest`, the digest of what is fixed (the budget, the plan, the registration). A row of the
table of datasets that says anything else than the last entry is a `BrokenHistory`, and each writer
looks before it changes anything.
"""

from __future__ import annotations

import json
import sys
from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    select,
)

from whosin.calibration import Fallback, Plan, PlannedNoise
from whosin.calibration.plan import decode_object
from whosin.errors import BrokenHistory, WhosinError
from whosin.ledger import budget as ledger_budget
from whosin.ledger import encoding
from whosin.ledger.budget import Budget, BudgetState, Cost
from whosin.ledger.registration import RegisteredTable


@dataclass(frozen=True)
class Entry:
    """One line of a dataset's history.

    Attributes:
        kind: "registered", "amended", "debit", "answer", "suspended", "resumed" or "closed".
        request: the id of the question that a debit or an answer belongs to.
        body: who, when, and what the kind has to say: a plan, a question with its cost under each
            relation, the digest of an answer.
        head: the digest of this entry and all before it.
    """

    dataset: str
    number: int
    kind: str
    request: str | None
    body: dict[str, Any]
    head: str

    def linked(self) -> dict[str, Any]:
        """What the digest covers."""
        return {key: value for key, value in vars(self).items() if key != "head"}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class Debit:
    """A debit that stands.

    Attributes:
        new: whether this call made it; False for a retry of an earlier question.
        answer: the answer that is already stored, if there is one: show that, draw nothing.
        body: what was paid for, as its entry says: the question with its costs and its table.
    """

    dataset: str
    request: str
    new: bool
    answer: str | None
    body: Mapping[str, Any] = field(default_factory=dict)


FORMAT_VERSION = 2
FORMAT_KIND = "whosin ledger"

metadata = MetaData()

_BYTEWISE_STRING = String(200).with_variant(String(200, collation="C"), "postgresql")
"""Sorted by bytes whatever the database's language, so that an index finds a beginning."""

_UNIT_COLUMNS = ("epsilon", "rho", "delta", "spent_epsilon", "spent_rho", "spent_delta")

about = Table(
    "whosin_ledger",
    metadata,
    Column("kind", String(32), primary_key=True),
    Column("version", Integer, nullable=False),
)

datasets = Table(
    "whosin_datasets",
    metadata,
    Column("name", String(200), primary_key=True),
    Column("state", String(24), nullable=False),
    Column("relation", String(16), nullable=False),
    Column("alone", Integer, nullable=False),
    *(Column(name, BigInteger, nullable=False) for name in _UNIT_COLUMNS),
    Column("debits", Integer, nullable=False),
    Column("entries", Integer, nullable=False),
    Column("head", String(64), nullable=False),
    Column("last", String(32), nullable=False),
    Column("plan", Text, nullable=False),
    Column("registration", Text),
)

entries = Table(
    "whosin_entries",
    metadata,
    Column("dataset", String(200), ForeignKey("whosin_datasets.name"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("request", _BYTEWISE_STRING),
    Column("body", Text, nullable=False),
    Column("head", String(64), nullable=False),
    # At most one debit and one answer for a request, whatever two processes do at once.
    UniqueConstraint("dataset", "request", "kind", name="whosin_once"),
)

answers = Table(
    "whosin_answers",
    metadata,
    Column("dataset", String(200), ForeignKey("whosin_datasets.name"), primary_key=True),
    Column("request", String(200), primary_key=True),
    Column("answer", Text, nullable=False),
)

DatasetRow = namedtuple("DatasetRow", [column.name for column in datasets.columns])  # type: ignore[misc]
EntryRow = namedtuple("EntryRow", [column.name for column in entries.columns])  # type: ignore[misc]

DATASET_COUNT_COLUMNS = ("alone", "epsilon", "rho", "delta", "debits", "entries")
DATASET_TEXT_COLUMNS = ("name", "state", "relation", "head", "last", "plan")


def dataset_row(connection: Connection, name: str) -> Any:
    """The row of a dataset; None where there is none."""
    result = connection.execute(select(datasets).where(datasets.c.name == name)).first()
    return None if result is None else DatasetRow._make(result)


def count_suspensions(connection: Connection, dataset: str) -> int:
    """How often a dataset was suspended; found through an index."""
    result = select(func.count()).where(
        entries.c.dataset == dataset, entries.c.request.is_(None), entries.c.kind == "suspended"
    )
    return int(connection.execute(result).scalar_one())


def read_budget_state(row: Any, suspensions: int = 0) -> BudgetState:
    """Where a dataset stands, by its row."""
    numbers = all(type(getattr(row, name)) is int for name in DATASET_COUNT_COLUMNS)
    texts = all(type(getattr(row, name)) is str for name in DATASET_TEXT_COLUMNS)
    if not (numbers and texts and row.alone in (0, 1) and row.state in ledger_budget.KNOWN_STATES):
        raise BrokenHistory(str(row.name), "its row in the table of datasets is not readable")
    try:
        return BudgetState(
            dataset=row.name,
            state=ledger_budget.state_after_resuming(row.state),
            suspended=ledger_budget.is_suspended(row.state),
            suspensions=suspensions,
            plan=_read_plan(row.plan),
            budget=Budget(row.relation, row.epsilon, row.rho, row.delta, bool(row.alone)),
            spent=Cost(row.spent_epsilon, row.spent_rho, row.spent_delta),
            debits=row.debits,
            entries=row.entries,
            head=row.head,
            last=row.last,
            registered=None if row.registration is None else RegisteredTable.read(row.registration),
        )
    except (WhosinError, ValueError, TypeError, KeyError, AttributeError):
        words = "its plan, its table or what was spent is not readable"
        raise BrokenHistory(row.name, words) from None


def read_entry(row: Any) -> Entry:
    """An entry, by its row."""
    try:
        body = json.loads(row.body)
        types = (type(row.number), type(row.kind), type(row.head), type(row.request or ""))
        sound = isinstance(body, dict) and types == (int, str, str, str)
        if sound and encoding.canonical_json(body) == row.body:
            return Entry(row.dataset, row.number, row.kind, row.request, body, row.head)
    except (WhosinError, ValueError, TypeError, RecursionError):
        pass
    raise BrokenHistory(str(row.dataset), f"entry {row.number} was changed")


def entry_values(entry: Entry) -> dict[str, object]:
    """An entry as a row."""
    return {**entry.linked(), "body": encoding.canonical_json(entry.body), "head": entry.head}


def read_history(connection: Connection, dataset: str) -> list[Entry]:
    """All entries of a dataset, oldest first."""
    query = select(entries).where(entries.c.dataset == dataset).order_by(entries.c.number)
    return [read_entry(row) for row in connection.execute(query)]


def find_requests(connection: Connection, dataset: str, prefix: str, *, answered: bool) -> set[str]:
    """The requests of debits, or of answers, that begin with a text; found through an index."""
    kind = "answer" if answered else "debit"
    begun = select(entries.c.request).where(*_prefix_condition(dataset, prefix, kind))
    return {str(request) for request in connection.scalars(begun)}


def find_requests_by(connection: Connection, dataset: str, prefix: str, who: str) -> set[str]:
    """The requests that one person paid for and that begin with a text."""
    begun = select(entries).where(*_prefix_condition(dataset, prefix, "debit"))
    paid = (read_entry(row) for row in connection.execute(begun))
    return {str(entry.request) for entry in paid if entry.body.get("who") == who}


def _prefix_condition(dataset: str, prefix: str, kind: str) -> tuple[ColumnElement[bool], ...]:
    """No request contains the last code point, which is not printable: what begins with a text is
    what sorts between it and it with that code point."""
    request, last = entries.c.request, prefix + chr(sys.maxunicode)
    mine = entries.c.dataset == dataset, entries.c.kind == kind
    return *mine, request >= prefix, request < last


def stored_answers(connection: Connection, dataset: str) -> dict[str, str]:
    """All stored answers by request."""
    query = select(answers).where(answers.c.dataset == dataset)
    return {row.request: row.answer for row in connection.execute(query)}


@lru_cache(maxsize=256)
def _read_plan(text: str) -> Plan:
    """The plan as it was registered.

    `Plan.from_dict` would plan again and refuse what a later version plans differently; here the
    promise that was made is the one that is kept.
    """
    data = json.loads(text)
    query, noise = data["query"], data["noise"]
    known = {each.name for each in fields(Plan)}
    values = {key: value for key, value in data.items() if key in known}
    values |= {
        "target": decode_object(data["target"], "target"),
        "family": decode_object(data["family"], "family"),
        "query": None if query is None else decode_object(query, "query"),
        "noise": None if noise is None else PlannedNoise(**noise),
        "gamma": float(data["gamma"]),
        "theorems": tuple(data["theorems"]),
        "fallback": tuple(
            Fallback(**{**each, "gamma": float(each["gamma"])}) for each in data["fallback"]
        ),
    }
    plan = Plan(**values)
    if encoding.canonical_json(plan.to_dict()) != text:
        raise ValueError("another plan")
    return plan


SUM_COLUMNS = {
    "debits": "debits",
    "epsilon": "spent_epsilon",
    "rho": "spent_rho",
    "delta": "spent_delta",
    "state": "state",
}
"""Keys of an entry's sums, and the columns that repeat them."""


def running_sums(row: Any) -> dict[str, object]:
    """The sums of a dataset, by its row."""
    return {key: getattr(row, column) for key, column in SUM_COLUMNS.items()}


def terms_digest(row: Any) -> str:
    """The digest of what is fixed about a dataset. PostgreSQL computes the same (`transaction`)."""
    numbers = f"{row.relation} {row.alone} {row.epsilon} {row.rho} {row.delta}"
    registration = "none" if row.registration is None else f"registered {row.registration}"
    return encoding.digest_text(f"{numbers}\n{row.plan}\n{registration}")


def next_entry(
    row: Any, kind: str, request: str | None, body: dict[str, Any], **changes: object
) -> tuple[Entry, Any]:
    """The entry that comes next, and the row after it.

    Args:
        row: the dataset before the entry, as a named tuple.
        changes: what the entry changes about it.
    """
    after = row._replace(**changes)
    full = {**body, "sums": running_sums(after), "terms": terms_digest(after)}
    entry = Entry(row.name, row.entries + 1, kind, request, full, "")
    entry = replace(entry, head=encoding.link_digest(row.head, entry.linked()))
    return entry, after._replace(entries=entry.number, head=entry.head, last=body["when"])


def check_row(row: Any, last: Sequence[Entry]) -> None:
    """See that a dataset's row is what its last entry says.

    Args:
        last: the last two entries, or the only one, newest first.
    """
    end = last[0] if last else None
    if end is None or (end.number, end.head) != (row.entries, row.head):
        raise BrokenHistory(row.name, "its end does not fit the dataset's head")
    before = last[1].head if len(last) > 1 else encoding.FIRST_HEAD
    if end.number != 1 + (last[1].number if len(last) > 1 else 0):
        raise BrokenHistory(row.name, f"entry {end.number - 1} is missing")
    if encoding.link_digest(before, end.linked()) != end.head:
        raise BrokenHistory(row.name, f"entry {end.number} was changed")
    if end.body.get("sums") != running_sums(row):
        raise BrokenHistory(row.name, "its sums are not those of its last entry")
    if end.body.get("terms") != terms_digest(row):
        raise BrokenHistory(row.name, "its budget, plan or table is not that of its last entry")
    if end.body.get("when") != row.last:
        raise BrokenHistory(row.name, "its time is not that of its last entry")
