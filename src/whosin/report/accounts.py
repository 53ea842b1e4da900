"""Where a budget was and may be spent, in words: parts, periods and quotas."""

from __future__ import annotations

from fractions import Fraction

from whosin.ledger import BudgetState
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.report.document import format_epsilon


def accounts_lines(budget_state: BudgetState) -> list[str]:
    """Where the budget may be spent: in which parts, when, and by whom."""
    lines, registered = [], budget_state.registered
    if registered is not None and (part := registered.registration.part):
        everyone = format_epsilon(budget_state.accounts_data()["parts"]["everyone"])
        rule = (
            "two parts, since someone may move"
            if budget_state.budget.relation == "replace"
            else "the one part"
        )
        lines.append(
            f"Parts by {part['column']!r}, paid side by side: a question about one pays there "
            f"only, those about everyone everywhere (ε = {everyone} so far). The total above is of "
            f"{rule} that cost most."
        )
        for name, level in budget_state.parts.items():
            view = budget_state.seen_from(level)
            spent, left = format_epsilon(view.epsilon), format_epsilon(view.spendable)
            lines.append(f"Part {name}: spent ε = {spent}, left ε = {left}.")
    return [*lines, *schedule_lines(budget_state), *_quota_lines(budget_state)]


def schedule_lines(budget_state: BudgetState) -> list[str]:
    """What can still be asked in this period and this year."""
    schedule = budget_state.schedule
    if schedule is None:
        return []
    said = schedule.said
    named = f"every {said['every']} until {said['until']}" if "every" in said else "by periods"
    rest = "lapses" if schedule.lapses else "rolls on"
    spans = [
        f"from {first} to {last} ε = {format_epsilon(view.spendable)}"
        for first, last, view in budget_state.periods_left()
    ]
    left = f"Left {', '.join(spans)}." if spans else "It has ended: nothing more can be asked."
    return [
        f"Schedule: {named}; what a period leaves {rest}. {left}",
        "Whoever is in several periods is protected by the total: the sum over all periods is the "
        "promise.",
    ]


def _quota_lines(budget_state: BudgetState) -> list[str]:
    quotas = budget_state.accounts.quotas
    lines = []
    for name, view in budget_state.quota_states().items():
        each = quotas[name]
        until = f", until {each.until}" if each.until else ""
        whole = format_epsilon(Fraction(view.budget.epsilon, EPSILON_UNITS))
        left = format_epsilon(view.spendable if each.is_open(budget_state.today) else 0)
        lines.append(
            f"Quota {name} ({', '.join(each.members)}{until}): ε = {whole}, left ε = {left}."
        )
    if lines:
        free = format_epsilon(budget_state.unreserved.spendable)
        lines.append(
            f"Left for everyone else: ε = {free}. Together they never exceed the budget: whoever "
            "puts several people's answers together is one adversary."
        )
    return lines
