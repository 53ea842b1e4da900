"""New datasets in a ledger: their first row, and other names for the same rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from whosin.calibration import Plan
from whosin.ledger import chain, rows
from whosin.ledger.binding import Binding, Bound
from whosin.ledger.budget import Budget
from whosin.ledger.schema import datasets

COPIES = ("warn", "refuse")
"""What to do about rows that have a budget under another name."""


def first_row(name: str, plan: Plan, budget: Budget, bound: Bound | None) -> Any:
    """A dataset's row before its first entry."""
    text = chain.canonical(plan.to_dict())
    binding = None if bound is None else bound.text()
    fixed = {**vars(budget), "alone": int(budget.alone), "plan": text, "binding": binding}
    zero = dict.fromkeys(("spent_epsilon", "spent_rho", "spent_delta", "debits", "entries"), 0)
    start = {"name": name, "state": "open", "head": chain.START, "last": "", **zero, **fixed}
    return rows.DatasetRow(**start)


def first_entry(plan: Plan, budget: Budget, bound: Bound | None) -> dict[str, Any]:
    """What the entry of a registration says."""
    body = {"plan": plan.to_dict(), "budget": vars(budget)}
    return body if bound is None else body | {"binding": bound.entry()}


def copies(connection: Connection, name: str, binding: Binding | None) -> list[str]:
    """Other datasets with the same rows, as far as fingerprints tell."""
    if binding is None:
        return []
    kept = select(datasets.c.name, datasets.c.binding).where(datasets.c.binding.is_not(None))
    result = []
    for row in connection.execute(kept):
        if row.name != name and Bound.read(row.binding).holds_rows_of(binding):
            result.append(str(row.name))
    return sorted(result)


def copied(name: str, other: str) -> str:
    """That rows have two budgets, in words."""
    return (
        f"the rows of {name!r} are those of dataset {other!r}, which has a budget of its own: two "
        "budgets for the same people promise less than either says"
    )
