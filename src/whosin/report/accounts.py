"""Where a budget was and may be spent: parts, periods, quotas, and people in several datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin.exact import format_figures, format_percent
from whosin.ledger import BudgetState, Entry
from whosin.ledger.budget import Cost, PartLevel, Quota
from whosin.ledger.budget_state import MAX_SHOWN_PARTS
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.ledger.registry import PeopleBudget
from whosin.report.document import (
    TextSection,
    format_count,
    format_epsilon,
    format_plural,
    make_section,
)

if TYPE_CHECKING:
    from whosin.release.inspection import Preflight

MAX_DRAWN_STEPS = 200
"""How many debits a picture shows; of more every second one, or every third."""


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
        if len(budget_state.parts) < MAX_SHOWN_PARTS:
            left = format_epsilon(budget_state.seen_from(PartLevel()).spendable)
            lines.append(f"A part that nobody has asked about: left ε = {left}.")
        else:
            lines.append(f"These are the {MAX_SHOWN_PARTS} that cost most.")
    return [*lines, *schedule_lines(budget_state), *_quota_lines(budget_state)]


def schedule_lines(budget_state: BudgetState) -> list[str]:
    """What can still be asked in this period and this year."""
    schedule = budget_state.schedule
    if schedule is None:
        return []
    said = schedule.said
    named = f"every {said['every']} until {said['until']}" if "every" in said else "by periods"
    rest = "lapses" if schedule.lapses else "rolls on"
    every = said.get("every", "period").replace("year", "period")
    periods = budget_state.periods_left()
    names = [*(f"this {every} ({first} to {last})" for first, last, _ in periods[:-1])]
    names += [f"this year (to {last})" for _, last, _ in periods[-1:]]
    spans = [
        f"{name}: ε = {format_epsilon(view.spendable)}"
        for name, (_, _, view) in zip(names, periods, strict=True)
    ]
    ended = "It has ended: nothing new is answered; running totals that were paid for go on."
    left = f"Left {'; '.join(spans)}." if spans else ended
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
        if name and not each.members:
            spent = format_epsilon(view.epsilon)
            lines.append(f"Quota {name} was revoked; ε = {spent} of it was spent.")
            continue
        whole = format_epsilon(Fraction(view.budget.epsilon, EPSILON_UNITS))
        left = format_epsilon(view.spendable if each.is_open(budget_state.today) else 0)
        lines.append(f"Quota {_quota_name(name, each)}: ε = {whole}, left ε = {left}.")
    if lines:
        free = format_epsilon(budget_state.unreserved.spendable)
        lines.append(
            f"Left for everyone else: ε = {free}. Together they never exceed the budget: whoever "
            "puts several people's answers together is one adversary."
        )
    return lines


def _quota_name(name: str, quota: Quota) -> str:
    until = f", until {quota.until}" if quota.until else ""
    members = ", ".join(quota.members) + until if quota.members else "revoked"
    return f"{name} ({members})" if name else "of others"


def budget_picture(budget_state: BudgetState, entries: Sequence[Entry]) -> dict[str, Any]:
    """What draws a budget: the total after each debit, and bars for parts, periods and quotas.

    Args:
        entries: those that may show; what others spent shows in the sums alone.
    """
    total = budget_state.budget.epsilon
    debits = [entry for entry in entries if entry.kind == "debit"]
    steps = []
    for entry in debits[:: max(1, -(-len(debits) // MAX_DRAWN_STEPS))]:
        sums = {key: entry.body["sums"][key] for key in ("epsilon", "rho", "delta")}
        steps.append((str(entry.body["when"]), replace(budget_state, spent=Cost(**sums))))
    steps.append((budget_state.last, budget_state))
    return {
        "total": f"ε = {format_epsilon(Fraction(total, EPSILON_UNITS))}",
        "steps": [
            {
                "day": when[:10],
                "share": _share(state.epsilon, total),
                "words": f"ε = {format_epsilon(state.epsilon, 'up')}",
            }
            for when, state in steps
        ],
        "bars": [bars for bars in _picture_bars(budget_state) if bars["rows"]],
    }


def _share(epsilon: float, units: int) -> float:
    """A share of so many units, from 0 to 1."""
    return 1.0 if math.isinf(epsilon) or not units else min(1.0, epsilon * EPSILON_UNITS / units)


def _picture_bars(budget_state: BudgetState) -> list[dict[str, Any]]:
    """Bars by part, by period and by quota."""
    registered, total = budget_state.registered, budget_state.budget.epsilon
    part = registered.registration.part if registered is not None else None
    views = {name: budget_state.seen_from(level) for name, level in budget_state.parts.items()}
    quotas = budget_state.quota_states()
    periods = budget_state.periods_left()
    own = {name: _spent_row(name, view, view.budget.epsilon) for name, view in quotas.items()}
    for name, row in own.items():
        row["name"] = _quota_name(name, budget_state.accounts.quotas[name])
    most = f", the {len(views)} that cost most" if len(views) >= MAX_SHOWN_PARTS else ""
    free = [_left_row("everyone else", budget_state.unreserved, total)] if quotas else []
    return [
        {
            "title": f"Spent by {part['column']}{most}" if part else "",
            "rows": [_spent_row(name, view, total) for name, view in views.items()],
        },
        {
            "title": "What can still be asked",
            "rows": [_left_row(f"{day} to {last}", view, total) for day, last, view in periods],
        },
        {"title": "Spent of each quota", "rows": list(own.values())},
        {"title": "Left beside the quotas", "rows": free},
    ]


def _spent_row(name: str, view: BudgetState, units: int) -> dict[str, Any]:
    spent, left = format_epsilon(view.epsilon, "up"), format_epsilon(view.spendable)
    words = f"ε = {spent} spent, ε = {left} left"
    return {"name": name, "share": _share(view.epsilon, units), "words": words}


def _left_row(name: str, view: BudgetState, units: int) -> dict[str, Any]:
    words = f"ε = {format_epsilon(view.spendable)}"
    return {"name": name, "share": _share(view.spendable, units), "words": words}


def describe_people(people: PeopleBudget, answers: str = "the answers so far") -> TextSection:
    """What datasets that may be about the same people allow together.

    Args:
        answers: which answers are counted as spent.
    """
    names = [each.dataset for each in people.states]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    same = f"{listed} have the same privacy unit and columns."
    lines = people_lines(people, answers)
    return make_section("What these datasets allow together", same, *lines, level=2)


def people_lines(people: PeopleBudget, answers: str = "the answers so far") -> list[str]:
    """What the answers and the budgets of several datasets allow of someone who is in all."""
    prior = format_percent(people.prior, "down")
    lines = []
    for what, total, certain in (
        (answers, people.epsilon, people.certain),
        ("the whole budgets", people.budget_epsilon, not people.failure),
    ):
        if not math.isfinite(total):
            continue
        sure = format_percent(people.posterior(total, certain=certain), "up")
        but = "" if certain else f", but for {format_figures(people.failure, 3, 'up')} of cases"
        lines.append(
            f"About someone who is in all of them, {what} allow ε = "
            f"{format_epsilon(total)}: whoever was {prior} sure can become {sure} "
            f"sure{but}."
        )
    if len(lines) < 2:
        lines.append("Not all that they may spend adds up, so that no total of it is stated.")
    if people.apart:
        lines.append(
            f"That the people of {', '.join(people.apart)} are in none of the others is the "
            "curator's word; only copies of their rows are recognised."
        )
    return lines


def describe_changed_periods(title: str, periods: str) -> str:
    """That rows which running totals were drawn from are others now."""
    return (
        f"{title}: the rows of {periods} have changed since they were counted; what was paid for "
        "covers files that keep them, and these totals can say more of whoever was moved"
    )


def describe_unreadable(found: Preflight) -> list[str]:
    """Which answers no rows could make readable, and what would."""
    better = "leave it out, or give it more weight"
    if found.unreadable_part == 1:
        better = "ask less, or spend a larger share: fewer periods have larger ones"
    return [
        f"{title}: too noisy to read: it needs {format_count(math.ceil(size))} {unit}, and the "
        f"table has {format_plural(found.rows, 'row')}; {better}"
        for title, size, unit in found.unreadable
    ]
