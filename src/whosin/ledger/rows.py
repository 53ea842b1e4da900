"""Rows of the tables as objects. A row that no ledger writes is a `BrokenHistory`."""

from __future__ import annotations

import json
import sys
from collections import namedtuple
from dataclasses import fields
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select

from whosin.calibration import Fallback, Noise, Plan, codec
from whosin.errors import BrokenHistory, WhosinError
from whosin.ledger import chain, states
from whosin.ledger.binding import Bound
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Cost
from whosin.ledger.entries import Entry
from whosin.ledger.schema import answers, datasets, entries
from whosin.ledger.standing import Standing

DatasetRow = namedtuple("DatasetRow", [column.name for column in datasets.columns])  # type: ignore[misc]
EntryRow = namedtuple("EntryRow", [column.name for column in entries.columns])  # type: ignore[misc]

COUNTS = ("alone", "epsilon", "rho", "delta", "debits", "entries")
TEXTS = ("name", "state", "relation", "head", "last", "plan")


def dataset_row(connection: Connection, name: str) -> Any:
    """The row of a dataset; None where there is none."""
    result = connection.execute(select(datasets).where(datasets.c.name == name)).first()
    return None if result is None else DatasetRow._make(result)


def halts(connection: Connection, dataset: str) -> int:
    """How often a dataset was halted; found through an index."""
    result = select(func.count()).where(
        entries.c.dataset == dataset, entries.c.request.is_(None), entries.c.kind == "halted"
    )
    return int(connection.execute(result).scalar_one())


def standing(row: Any, halts: int = 0) -> Standing:
    """Where a dataset stands, by its row."""
    numbers = all(type(getattr(row, name)) is int for name in COUNTS)
    texts = all(type(getattr(row, name)) is str for name in TEXTS)
    if not (numbers and texts and row.alone in (0, 1) and row.state in states.KNOWN):
        raise BrokenHistory(str(row.name), "its row in the table of datasets is not readable")
    try:
        return Standing(
            dataset=row.name,
            state=states.without_halt(row.state),
            halted=states.is_halted(row.state),
            halts=halts,
            plan=_plan(row.plan),
            budget=Budget(row.relation, row.epsilon, row.rho, row.delta, bool(row.alone)),
            spent=Cost(row.spent_epsilon, row.spent_rho, row.spent_delta),
            debits=row.debits,
            entries=row.entries,
            head=row.head,
            last=row.last,
            bound=None if row.binding is None else Bound.read(row.binding),
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
        if sound and chain.canonical(body) == row.body:
            return Entry(row.dataset, row.number, row.kind, row.request, body, row.head)
    except (WhosinError, ValueError, TypeError, RecursionError):
        pass
    raise BrokenHistory(str(row.dataset), f"entry {row.number} was changed")


def entry_values(entry: Entry) -> dict[str, object]:
    """An entry as a row."""
    return {**entry.linked(), "body": chain.canonical(entry.body), "head": entry.head}


def history(connection: Connection, dataset: str) -> list[Entry]:
    """All entries of a dataset, oldest first."""
    query = select(entries).where(entries.c.dataset == dataset).order_by(entries.c.number)
    return [read_entry(row) for row in connection.execute(query)]


def requests(connection: Connection, dataset: str, prefix: str, *, answered: bool) -> set[str]:
    """The requests of debits, or of answers, that begin with a text; found through an index."""
    kind = "answer" if answered else "debit"
    begun = select(entries.c.request).where(*_begins(dataset, prefix, kind))
    return {str(request) for request in connection.scalars(begun)}


def requests_of(connection: Connection, dataset: str, prefix: str, who: str) -> set[str]:
    """The requests that one person paid for and that begin with a text."""
    begun = select(entries).where(*_begins(dataset, prefix, "debit"))
    paid = (read_entry(row) for row in connection.execute(begun))
    return {str(entry.request) for entry in paid if entry.body.get("who") == who}


def _begins(dataset: str, prefix: str, kind: str) -> tuple[ColumnElement[bool], ...]:
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
def _plan(text: str) -> Plan:
    """The plan as it was registered.

    `Plan.from_dict` would plan again and refuse what a later version plans differently; here the
    promise that was made is the one that is kept.
    """
    data = json.loads(text)
    query, noise = data["query"], data["noise"]
    known = {each.name for each in fields(Plan)}
    values = {key: value for key, value in data.items() if key in known}
    values |= {
        "target": codec.decode_target(data["target"]),
        "family": codec.decode_family(data["family"]),
        "query": None if query is None else codec.decode_query(query),
        "noise": None if noise is None else Noise(**noise),
        "gamma": float(data["gamma"]),
        "theorems": tuple(data["theorems"]),
        "fallback": tuple(
            Fallback(**{**each, "gamma": float(each["gamma"])}) for each in data["fallback"]
        ),
    }
    plan = Plan(**values)
    if chain.canonical(plan.to_dict()) != text:
        raise ValueError("another plan")
    return plan
