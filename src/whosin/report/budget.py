"""A dataset's standing in words: what was spent, what is left, what it lets anyone believe."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from whosin.beliefs import percent, posterior
from whosin.exact import as_typed, figures
from whosin.ledger import Check, Entry, Standing, units
from whosin.ledger.charge import Cost
from whosin.report.card import Section, budget_words, who
from whosin.report.numbers import short

STATES = {
    "open": "open",
    "closed": "closed: no further answers",
    "complete": "complete: it had a release that allows no other",
}
NAMED = ("registered", "amended", "halted", "resumed", "closed")
"""Kinds of entries that say what they are."""


def standing_card(standing: Standing) -> list[Section]:
    """The sections of a dataset's page."""
    return [
        Section(standing.dataset, tuple(_money(standing))),
        Section("What all answers together allow", tuple(allowed(standing))),
        Section("History", (history_line(standing),)),
    ]


def _money(standing: Standing) -> list[str]:
    lines = [f"Budget: {budget_words(standing.plan)}.", *_whose(standing)]
    if not standing.debits:
        lines.append("Nothing has been spent.")
    elif standing.epsilon == math.inf:
        lines.append("Spent: all of it, on a release of its own.")
    else:
        read = "" if standing.reading == "pure" else ", added up as ρ of zero-concentrated DP"
        count = "1 answer" if standing.debits == 1 else f"{standing.debits} answers"
        lines.append(f"Spent: ε = {_spent(standing)} for {count}{read}.")
    if standing.state == "open":
        alone = " It allows one answer only." if standing.budget.alone else ""
        gaussian = f"; or ρ = {figures(standing.spendable_rho, 6, 'down')} of Gaussian noise"
        rho = gaussian if standing.budget.rho else ""
        lines.append(f"Left: ε = {figures(standing.spendable, 6, 'down')}{rho}.{alone}")
    lines.append(f"State: {STATES[standing.state]}.")
    return [*lines, *_halts(standing)]


def _spent(standing: Standing) -> str:
    """What was spent; never more than the budget, which is printed rounded down, if it is not."""
    text, whole = short(standing.epsilon), figures(standing.plan.epsilon, 6, "down")
    return whole if standing.epsilon <= standing.plan.epsilon and _above(text, whole) else text


def _above(text: str, other: str) -> bool:
    return Fraction(text.rpartition("≈")[2].strip()) > Fraction(other)


def _halts(standing: Standing) -> list[str]:
    """That an engine failed, where one did, and what follows."""
    if not standing.halts and not standing.halted:
        return []
    times = "once" if standing.halts == 1 else f"{standing.halts} times"
    now = (
        ": nothing is answered until its curator has looked, and lets it go on with whosin "
        "ledger resume."
        if standing.halted
        else "; its curator let it go on."
    )
    word = "Halted" if standing.halted else "It was halted"
    return [f"{word}{now} An engine failed after a debit {times}."]


def _whose(standing: Standing) -> list[str]:
    """Whose rows the budget is for, where that was said."""
    if standing.bound is None:
        return []
    kept = standing.bound.binding
    rows = "1 row" if kept.rows == 1 else f"{kept.rows:,} rows"
    groups = "1 cell" if kept.groups == 1 else f"{kept.groups:,} cells"
    return [f"Protects each {kept.entity!r}: at most {rows} in {groups} count."]


def allowed(standing: Standing) -> list[str]:
    """How sure the plan's adversary can have become from all answers so far."""
    plan = standing.plan
    lines = [who(plan.family)]
    if not standing.debits:
        return [*lines, "So far they have learned nothing from here."]
    if standing.by_itself:
        return [*lines, f"Whoever that is {plan.target.words()}.", *_failing(standing)]
    if math.isinf(standing.ratio):
        return [*lines, "Nothing is promised."]
    low, high = plan.beliefs
    beliefs = [p for p in (low, (low + high) / 2, high) if 0 < p < 1]
    moves = [
        f"from {percent(p, 'down')} to at most {percent(posterior(standing.ratio, p), 'up')}"
        for p in beliefs
    ]
    lines.append(f"All answers so far can have moved them {', '.join(dict.fromkeys(moves))}.")
    return [*lines, *_failing(standing)]


def _failing(standing: Standing) -> list[str]:
    if not standing.plan.delta or standing.certain:
        return []
    failure = as_typed(standing.plan.failure, "up")
    return [f"That may fail with probability {failure}, given that a person is in."]


def history_line(standing: Standing) -> str:
    """The head of the history, for a report."""
    count = "1 entry" if standing.entries == 1 else f"{standing.entries} entries"
    return f"{count}, the last of {standing.last[:19]}Z; head {standing.head}"


def entry_row(entry: Entry, relation: str) -> tuple[str, str, str, str, str]:
    """(number, when, who, what, cost) of an entry."""
    what = entry.kind if entry.kind in NAMED else ""
    cost = ""
    if entry.kind == "debit":
        what = _question(entry)
        paid = entry.body["costs"].get(relation)
        cost = cost_words(Cost(**paid), 6) if paid else "∞"
    elif entry.kind == "answer":
        what = f"answered {entry.request}: {entry.body['digest'][:12]}…"
    elif entry.kind == "registered":
        plan = entry.body["plan"]
        cost = f"ε ≤ {figures(float(plan['epsilon']), 6, 'up')}"
    return (
        str(entry.number),
        entry.body["when"][:19].replace("T", " "),
        entry.body["who"],
        what,
        cost,
    )


def _question(entry: Entry) -> str:
    asked = entry.body["what"]
    what = {key: asked[key] for key in ("query",) if key in asked} | asked
    parts = [str(value) for value in what.values() if isinstance(value, str | int | float)]
    return " ".join(parts)[:80] or str(entry.request)


def cost_words(cost: Cost, digits: int = 4) -> str:
    """A cost in a few letters."""
    if cost.rho >= units.INFINITE:
        return "a promise of its own"
    pure = cost.epsilon < units.INFINITE
    symbol, amount = ("ε", cost.epsilon) if pure else ("ρ", cost.rho)
    text = f"{symbol} = {amount / units.EPSILON_UNITS:.{digits}g}"
    failing = f", δ = {cost.delta / units.DELTA_UNITS:.{digits // 2}g}" if cost.delta else ""
    return text + failing


def check_lines(checks: Sequence[Check]) -> list[str]:
    """What a verification found."""
    lines = []
    for check in checks:
        line = f"{check.dataset}: whole; entries: {check.entries}, debits: {check.debits}"
        if check.unanswered:
            line += f"; {len(check.unanswered)} paid for and not answered"
        lines += [line, f"  head {check.head}"]
    return lines
