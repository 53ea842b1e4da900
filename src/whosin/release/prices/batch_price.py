"""The price of a batch, before anything runs: no ledger is written, no row is read."""

from __future__ import annotations

from collections.abc import Sequence

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Cost
from whosin.release.prices.budget_split import OPTIMAL, Unspent, shares
from whosin.release.prices.least_error import least_error, offered
from whosin.release.prices.pricing import Offer
from whosin.release.prices.unused_delta import with_unused_delta
from whosin.release.queries import Query
from whosin.release.table import Table


def price(
    table: Table,
    plan: Plan,
    queries: Query | Sequence[Query],
    spent: Cost | None = None,
    *,
    share: object = None,
    split: str = "weights",
    noise: str = "laplace",
) -> list[Offer]:
    """What a batch costs under a plan and how good its answers will be.

    Args:
        spent: what was spent of the plan before.
        share: the part of the plan's budget for this batch; by default all that is left.
        split: "weights" or "relative-error" (see `budget_split.shares`), or "optimal" (see
            `least_error`).
        noise: "laplace" or "gaussian".
    """
    asked = asked_of(queries)
    unspent = _unspent(plan, spent or Cost(0, 0), share)
    if split == OPTIMAL:
        offers = least_error(asked, table, unspent, noise)
    else:
        offers = offered(asked, table, shares(asked, table, unspent, split, noise))
    return with_unused_delta(plan, offers)


def asked_of(queries: object) -> list[Query]:
    """One query or several, as a list."""
    asked = queries if isinstance(queries, list | tuple) else [queries]
    result = [query for query in asked if isinstance(query, Query)]
    if not result or len(result) != len(asked):
        raise InvalidInput("queries", "one query or more, such as Count()", repr(queries)[:80])
    return result


def _unspent(plan: Plan, spent: Cost, share: object) -> Unspent:
    budget = Budget.of(plan)
    left = [
        max(0, budget.epsilon - spent.epsilon),
        max(0, budget.rho - spent.rho),
        max(0, budget.delta - spent.delta),
    ]
    if share is not None:
        part = budget.part(share)
        wanted = (part.epsilon, part.rho, part.delta)
        left = [min(each, most) for each, most in zip(wanted, left, strict=True)]
    if not left[0] and not left[1]:
        raise BudgetRefused("this session has spent all of its plan's budget")
    return Unspent(plan, *left)
