"""New datasets in a ledger: their first row, and other names for the same rows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from whosin.calibration import Plan
from whosin.errors import BudgetRefused
from whosin.ledger import chain
from whosin.ledger.binding import Binding, Bound
from whosin.ledger.budget import Budget
from whosin.ledger.schema import datasets

COPIES = ("warn", "refuse")
"""What to do about rows that have a budget under another name."""


def add(
    connection: Connection, name: str, plan: Plan, budget: Budget, bound: Bound | None, sqlite: bool
) -> bool:
    """Add a dataset's row unless there is one of this name; its first entry is the caller's."""
    from sqlalchemy.dialects.postgresql import insert as postgres_insert
    from sqlalchemy.dialects.sqlite import insert as sqlite_insert

    adding = sqlite_insert if sqlite else postgres_insert
    start: dict[str, Any] = {
        "name": name,
        "state": "open",
        "relation": budget.relation,
        "alone": int(budget.alone),
        "epsilon": budget.epsilon,
        "rho": budget.rho,
        "delta": budget.delta,
        "spent_epsilon": 0,
        "spent_rho": 0,
        "spent_delta": 0,
        "debits": 0,
        "entries": 0,
        "head": chain.START,
        "last": "",
        "plan": chain.canonical(plan.to_dict()),
        "binding": None if bound is None else bound.text(),
    }
    made = connection.execute(
        adding(datasets).values(start).on_conflict_do_nothing(),
        execution_options={"preserve_rowcount": True},
    )
    return made.rowcount == 1


def first_entry(plan: Plan, budget: Budget, bound: Bound | None) -> dict[str, Any]:
    """What the entry of a registration says."""
    body = {"plan": plan.to_dict(), "budget": vars(budget)}
    return body if bound is None else body | {"binding": bound.entry()}


def copies(connection: Connection, name: str, binding: Binding | None) -> list[str]:
    """Other datasets with the same rows, as far as fingerprints tell."""
    if binding is None:
        return []
    kept = select(datasets.c.name, datasets.c.binding).where(datasets.c.binding.is_not(None))
    found = []
    for row in connection.execute(kept):
        if row.name != name and Bound.read(row.binding).holds_rows_of(binding):
            found.append(str(row.name))
    return sorted(found)


def same_rows(name: str, others: list[str]) -> BudgetRefused:
    """The refusal of a second budget for the same rows."""
    return BudgetRefused(copied(name, others[0]))


def copied(name: str, other: str) -> str:
    """That rows have two budgets, in words."""
    return (
        f"the rows of {name!r} are those of dataset {other!r}, which has a budget of its own: two "
        "budgets for the same people promise less than either says"
    )
