"""The price of a batch, before anything runs: no ledger is written, no row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, at
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Cost
from whosin.release.budget_split import Unspent, shares
from whosin.release.pricing import Offer
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
        split: "weights" or "relative-error" (see `splitting.shares`).
        noise: "laplace" or "gaussian".
    """
    asked = asked_of(queries)
    unspent = _unspent(plan, spent or Cost(0, 0), share)
    result = shares(asked, table, unspent, split, noise)
    offers = []
    for index, (query, each) in enumerate(zip(asked, result, strict=True)):
        with at(f"queries[{index}]"), query.at_own_key():
            offers.append(replace(query.offer(table, each), cautions=query.cautions(table)))
    if len(offers) > 1 and any(offer.charge.alone for offer in offers):
        raise InvalidInput("queries", "only one, where a promise does not add", len(offers))
    return offers


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
