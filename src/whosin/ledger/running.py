"""Running sums in every entry, so that the chain of digests covers what a debit relies on.

Contract: an entry's body has the `sums` of its dataset after it (what was spent, how many debits,
the state) and `terms`, the digest of what is fixed (the budget, the plan, the binding). A row of
the table of datasets that says anything else than the last entry is a `BrokenHistory`, and each
writer looks before it changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from whosin.errors import BrokenHistory
from whosin.ledger import chain
from whosin.ledger.entries import Entry

SUMS = {
    "debits": "debits",
    "epsilon": "spent_epsilon",
    "rho": "spent_rho",
    "delta": "spent_delta",
    "state": "state",
}
"""Keys of an entry's sums, and the columns that repeat them."""


def sums(row: Any) -> dict[str, object]:
    """The sums of a dataset, by its row."""
    return {key: getattr(row, column) for key, column in SUMS.items()}


def terms(row: Any) -> str:
    """The digest of what is fixed about a dataset. PostgreSQL computes the same (`functions`)."""
    numbers = f"{row.relation} {row.alone} {row.epsilon} {row.rho} {row.delta}"
    binding = "none" if row.binding is None else f"bound {row.binding}"
    return chain.digest(f"{numbers}\n{row.plan}\n{binding}")


def following(
    row: Any, kind: str, request: str | None, body: dict[str, Any], **changes: object
) -> tuple[Entry, Any]:
    """The entry that comes next, and the row after it.

    Args:
        row: the dataset before the entry, as a named tuple.
        changes: what the entry changes about it.
    """
    after = row._replace(**changes)
    full = {**body, "sums": sums(after), "terms": terms(after)}
    entry = Entry(row.name, row.entries + 1, kind, request, full, "")
    entry = replace(entry, head=chain.link(row.head, entry.linked()))
    return entry, after._replace(entries=entry.number, head=entry.head, last=body["when"])


def check(row: Any, last: Sequence[Entry]) -> None:
    """See that a dataset's row is what its last entry says.

    Args:
        last: the last two entries, or the only one, newest first.

    Raises:
        BrokenHistory: it is not; nothing may be debited.
    """
    end = last[0] if last else None
    if end is None or (end.number, end.head) != (row.entries, row.head):
        raise BrokenHistory(row.name, "its end does not fit the dataset's head")
    before = last[1].head if len(last) > 1 else chain.START
    if end.number != 1 + (last[1].number if len(last) > 1 else 0):
        raise BrokenHistory(row.name, f"entry {end.number - 1} is missing")
    if chain.link(before, end.linked()) != end.head:
        raise BrokenHistory(row.name, f"entry {end.number} was changed")
    if end.body.get("sums") != sums(row):
        raise BrokenHistory(row.name, "its sums are not those of its last entry")
    if end.body.get("terms") != terms(row):
        raise BrokenHistory(row.name, "its budget, plan or table is not that of its last entry")
    if end.body.get("when") != row.last:
        raise BrokenHistory(row.name, "its time is not that of its last entry")
