"""When a ledger says no. Each rule raises `BudgetRefused` with its reason; nothing was spent."""

from __future__ import annotations

from collections.abc import Sequence

from whosin.calibration import Plan
from whosin.errors import BudgetRefused
from whosin.ledger import chain, units
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Charge, Cost
from whosin.ledger.entries import Entry
from whosin.ledger.standing import Standing


def open_for_debits(standing: Standing) -> None:
    """A closed dataset, or one about which a release of its own was made, answers nothing more."""
    if standing.state == "closed":
        raise BudgetRefused(f"dataset {standing.dataset!r} is closed")
    if standing.state == "complete":
        raise BudgetRefused(
            f"dataset {standing.dataset!r} has had a release whose promise does not add to others: "
            "nothing more can be asked of it"
        )


def session(standing: Standing, plan: Plan, budget: Budget) -> None:
    """A session's plan must fit what is left of the dataset's."""
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
    rho = budget.rho or units.concentrated(budget.epsilon)
    whole = Cost(budget.epsilon, rho, budget.delta)
    if not total.holds(standing.spent + whole):
        raise BudgetRefused(
            f"the plan needs ε = {plan.epsilon:.6g}, and dataset {standing.dataset!r} has "
            f"{standing.remaining:.6g} left of {budget_words(total)}"
        )


def debits(standing: Standing, charges: Sequence[Charge]) -> None:
    """The whole history must stay within the budget."""
    open_for_debits(standing)
    spent, count = standing.spent, standing.debits
    for charge in charges:
        if (charge.alone or standing.budget.alone) and count:
            raise BudgetRefused(
                "a release whose promise does not add to others must be the only one; "
                f"dataset {standing.dataset!r} has answered before"
            )
        spent, count = spent + charge.cost(standing.budget.relation), count + 1
    if not standing.budget.holds(spent):
        raise BudgetRefused(_exceeded(standing, charges, spent))


def other_question(before: Entry, charge: Charge) -> None:
    """A request id stands for one question."""
    costs = {relation: vars(cost) for relation, cost in charge.costs.items()}
    asked = [before.body["what"], before.body["costs"]]
    if chain.canonical(asked) != chain.canonical([dict(charge.what), costs]):
        raise BudgetRefused(f"request {before.request!r} was made for another question")


def budget_words(budget: Budget) -> str:
    """A total in a few words."""
    return f"ε = {budget.epsilon / units.EPSILON_UNITS:.6g} ({budget.relation})"


def _exceeded(standing: Standing, charges: Sequence[Charge], spent: Cost) -> str:
    budget, name = standing.budget, standing.dataset
    if spent.delta > budget.delta:
        have = (budget.delta - standing.spent.delta) / units.DELTA_UNITS
        return (
            f"this needs δ = {(spent.delta - standing.spent.delta) / units.DELTA_UNITS:.3g}, and "
            f"dataset {name!r} has {have:.3g} left for single answers; nothing was spent"
        )
    needed = spent.epsilon - standing.spent.epsilon
    if spent.epsilon >= units.INFINITE:
        reason = (
            "its plan has no δ, and Gaussian noise needs one"
            if not budget.rho
            else f"ρ = {(spent.rho - standing.spent.rho) / units.EPSILON_UNITS:.6g} is more than "
            f"the {max(0, budget.rho - standing.spent.rho) / units.EPSILON_UNITS:.6g} left"
        )
        what = "these answers have" if len(charges) > 1 else "this answer has"
        return (
            f"dataset {name!r}: {what} no pure ε between {budget.relation} neighbours, and {reason}"
            "; nothing was spent"
        )
    return (
        f"this needs ε = {needed / units.EPSILON_UNITS:.6g}, and dataset {name!r} has "
        f"{standing.remaining:.6g} left of {budget_words(budget)}; nothing was spent"
    )
