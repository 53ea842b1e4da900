"""When a ledger says no. Each rule raises `BudgetRefused` with its reason; nothing was spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whosin.calibration import Plan
from whosin.errors import BudgetRefused
from whosin.ledger import chain, units
from whosin.ledger.budget import Budget
from whosin.ledger.charge import COUNTED, Charge, Cost, promise_of
from whosin.ledger.entries import Entry
from whosin.ledger.standing import Standing, without_dust


def open_for_debits(standing: Standing) -> None:
    """A closed dataset, or one about which a release of its own was made, answers nothing more; one
    that is halted, nothing for now."""
    halted(standing)
    if standing.state == "closed":
        raise BudgetRefused(f"dataset {standing.dataset!r} is closed")
    if standing.state == "complete":
        raise BudgetRefused(
            f"dataset {standing.dataset!r} has had a release whose promise does not add to others: "
            "nothing more can be asked of it"
        )


def halted(standing: Standing) -> None:
    """Nothing is drawn after an engine failed: whether it fails again could depend on one row. The
    words are the same whatever the reason was."""
    if standing.halted:
        raise BudgetRefused(
            f"dataset {standing.dataset!r} is halted, since an engine failed after a debit: its "
            "curator looks into it and lets it go on with whosin ledger resume"
        )


def session(standing: Standing, plan: Plan, budget: Budget, share: object = None) -> None:
    """A session's plan, or the share of it that will be spent, must fit what is left."""
    open_for_debits(standing)
    total = standing.budget
    if budget.relation != total.relation:
        raise BudgetRefused(
            f"dataset {standing.dataset!r} is accounted for under {total.relation}, and this plan "
            f"is for {budget.relation}"
        )
    if budget.alone and (standing.debits or not total.alone):
        raise BudgetRefused(
            "this plan's promise does not add to others: it needs a dataset of its own, "
            f"registered with it; {standing.dataset!r} is not"
        )
    if total.alone and promise_of(plan) != promise_of(standing.plan):
        raise BudgetRefused(
            f"dataset {standing.dataset!r} allows one release, under the plan that it was "
            "registered with; this is another plan"
        )
    if share is not None:
        budget = budget.part(share)
    rho = budget.rho or units.concentrated(budget.epsilon)
    whole = Cost(budget.epsilon, rho, budget.delta)
    if total.holds(standing.spent + whole):
        return
    if standing.spent.delta + budget.delta > total.delta:
        # A session counts on its whole δ; the ledger keeps a quarter of it for single answers.
        left = 4 * (total.delta - standing.spent.delta)
        needed, have = apart(4 * budget.delta, left, units.DELTA_UNITS)
        raise BudgetRefused(
            f"{_words(share)} needs δ = {needed}, and dataset {standing.dataset!r} has {have} left"
        )
    needed, have = apart(budget.epsilon, _left_for_people(standing, budget.epsilon))
    raise BudgetRefused(
        f"{_words(share)} needs ε = {needed}, and dataset {standing.dataset!r} has {have} left of "
        f"{budget_words(total)}{_smaller(standing, plan)}"
    )


def _words(share: object) -> str:
    return "the plan" if share is None or share == 1 else f"a share of {share} of the plan"


def _smaller(standing: Standing, plan: Plan) -> str:
    """Which share of the plan would fit, if any."""
    whole = units.allowed(plan.epsilon, "epsilon of the plan")
    fits = standing.spendable_units
    if not 0 < fits < whole:
        return ""
    return f"; a share of 1/{-(-whole // fits)} of the plan would fit"


def debits(standing: Standing, charges: Sequence[Charge]) -> None:
    """The whole history must stay within the budget.

    A release of its own that has no cost under the dataset's relation answers for its own promise.
    """
    open_for_debits(standing)
    spent, count = standing.spent, standing.debits
    relation = standing.budget.relation
    for charge in charges:
        if count and (charge.alone or standing.budget.alone):
            raise BudgetRefused(
                "a release whose promise does not add to others must be the only one; "
                f"dataset {standing.dataset!r} has answered before"
            )
        spent, count = spent + charge.cost(relation), count + 1
    if any(charge.alone for charge in charges) and len(charges) > 1:
        raise BudgetRefused("a release whose promise does not add to others must be the only one")
    for charge in charges:
        bound(standing, charge)
    by_itself = all(charge.alone and relation not in charge.costs for charge in charges)
    if by_itself:
        for charge in charges:
            _of_that_kind(standing, charge)
    if not by_itself and not standing.budget.holds(spent):
        raise BudgetRefused(_exceeded(standing, charges, spent))


def _of_that_kind(standing: Standing, charge: Charge) -> None:
    """A promise of its own says nothing about other adversaries: it must be the registered one."""
    if charge.promise is None or charge.promise != chain.plain(promise_of(standing.plan), "plan"):
        raise BudgetRefused(
            f"this answer promises something of its own ({charge.guarantee}), from which what "
            f"dataset {standing.dataset!r} was registered with does not follow: it needs a dataset "
            "that is registered with that very plan"
        )


def bound(standing: Standing, charge: Charge) -> dict[str, Any]:
    """What a debit records of its table; it must be the dataset's."""
    if standing.bound is None:
        return {}
    standing.bound.check(standing.dataset, charge.binding)
    assert charge.binding is not None
    return {"binding": standing.bound.asked(charge.binding)}


def other_question(before: Entry, charge: Charge, only: str | None = None) -> None:
    """A request id belongs to one question, and to one person where only a person's own requests
    count.

    What of a table's rows counts follows from the table: an answer that is stored is shown with
    what was true of it, and `other_table` sees to one that is not.
    """
    asked = charge.to_dict()
    paid = {key: before.body.get(key) for key in asked}
    others = only is not None and before.body.get("who") != only
    if others or _question(paid) != _question(asked):
        raise BudgetRefused(f"request {before.request!r} was made for another question")


def _question(data: dict[str, Any]) -> str:
    what = {key: value for key, value in data["what"].items() if key != COUNTED}
    return chain.canonical({**data, "what": what})


def other_table(before: Entry, charge: Charge, standing: Standing) -> None:
    """What was paid for and not answered yet is drawn from the table that it was paid for."""
    recorded = before.body.get("binding")
    if recorded is None or standing.bound is None or charge.binding is None:
        return
    standing.bound.check(standing.dataset, charge.binding)
    if chain.canonical(recorded) != chain.canonical(standing.bound.asked(charge.binding)):
        raise BudgetRefused(
            f"request {before.request!r} was made for this question to another table, or with "
            "other domains or bounds"
        )


def budget_words(budget: Budget) -> str:
    """A total in a few words."""
    return f"ε = {budget.epsilon / units.EPSILON_UNITS:.6g} ({budget.relation})"


def apart(needed: int, left: int, scale: int = units.EPSILON_UNITS) -> tuple[str, str]:
    """Two numbers of units with as many digits as it takes to tell them apart."""
    first, second, digits = "", "", 6
    while first == second and digits < 18:
        first, second = (f"{max(0, value) / scale:.{digits}g}" for value in (needed, left))
        digits += 1
    return first, second


def _left_for_people(standing: Standing, needed: int) -> int:
    """What is left, as people are told: dust is nothing, except next to a price like it."""
    return standing.spendable_units or (standing.left if needed <= 2 * standing.left else 0)


def _exceeded(standing: Standing, charges: Sequence[Charge], spent: Cost) -> str:
    budget, name, before = standing.budget, standing.dataset, standing.spent
    if spent.delta > budget.delta:
        needed, have = apart(
            spent.delta - before.delta, budget.delta - before.delta, units.DELTA_UNITS
        )
        return (
            f"this needs δ = {needed}, and dataset {name!r} has {have} left for single answers; "
            "nothing was spent"
        )
    asked = sum((charge.cost(budget.relation) for charge in charges), Cost(0, 0))
    if asked.epsilon < units.INFINITE:
        needed, have = apart(asked.epsilon, _left_for_people(standing, asked.epsilon))
        return (
            f"this needs ε = {needed}, and dataset {name!r} has {have} left of "
            f"{budget_words(budget)}; nothing was spent"
        )
    what = "these answers have" if len(charges) > 1 else "this answer has"
    reason = "its plan has no δ, and Gaussian noise needs one"
    if asked.rho >= units.INFINITE:
        reason = "no ρ either"
    elif budget.rho:
        left = budget.rho - before.rho
        clear = without_dust(left, budget.rho, standing.debits)
        needed, have = apart(asked.rho, clear or (left if asked.rho <= 2 * left else 0))
        reason = f"ρ = {needed} is more than the {have} left"
    return (
        f"dataset {name!r}: {what} no pure ε between {budget.relation} neighbours, and {reason}; "
        "nothing was spent"
    )
