"""A dataset's budget state and history in words and files."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from whosin.beliefs import format_percent, posterior
from whosin.exact import format_figures, format_typed
from whosin.ledger import BudgetState, Entry, HistoryCheck, encoding
from whosin.ledger.budget import Cost
from whosin.ledger.encoding import canonical_json
from whosin.report.card import Section, budget_words, describe_adversary, known_size
from whosin.report.terminal import format_short

STATE_SENTENCES = {
    "open": "open",
    "closed": "closed: no further answers",
    "complete": "complete: it had a release that allows no other",
}
NAMED_ENTRIES = ("registered", "amended", "suspended", "resumed", "closed")
"""Kinds of entries that say what they are."""


def budget_state_card(budget_state: BudgetState) -> list[Section]:
    """The sections of a dataset's page."""
    return [
        Section(budget_state.dataset, tuple(_budget_lines(budget_state))),
        Section("What all answers together allow", tuple(belief_lines(budget_state))),
        Section("History", (history_line(budget_state),)),
    ]


def _budget_lines(budget_state: BudgetState) -> list[str]:
    lines = [f"Budget: {budget_words(budget_state.plan)}.", *_unit_lines(budget_state)]
    if not budget_state.debits:
        lines.append("Nothing has been spent.")
    elif budget_state.epsilon == math.inf:
        lines.append("Spent: all of it, on a release of its own.")
    else:
        read = "" if budget_state.reading == "pure" else ", added up as ρ of zero-concentrated DP"
        count = "1 debit" if budget_state.debits == 1 else f"{budget_state.debits} debits"
        lines.append(f"Spent: ε = {_spent_text(budget_state)} in {count}{read}.")
    if budget_state.state == "open":
        alone = " It allows one answer only." if budget_state.budget.alone else ""
        gaussian = (
            f"; or ρ = {format_figures(budget_state.spendable_rho, 6, 'down')} of Gaussian noise"
        )
        rho = gaussian if budget_state.budget.rho else ""
        lines.append(f"Left: ε = {format_figures(budget_state.spendable, 6, 'down')}{rho}.{alone}")
    lines.append(f"State: {STATE_SENTENCES[budget_state.state]}.")
    return [*lines, *_suspension_lines(budget_state)]


def _spent_text(budget_state: BudgetState) -> str:
    """What was spent; never more than the budget, which is printed rounded down, if it is not."""
    text, whole = (
        format_short(budget_state.epsilon),
        format_figures(budget_state.plan.epsilon, 6, "down"),
    )
    return (
        whole
        if budget_state.epsilon <= budget_state.plan.epsilon and _is_above(text, whole)
        else text
    )


def _is_above(text: str, other: str) -> bool:
    return Fraction(text.rpartition("≈")[2].strip()) > Fraction(other)


def _suspension_lines(budget_state: BudgetState) -> list[str]:
    """That an engine failed, where one did, and what follows."""
    if not budget_state.suspensions and not budget_state.suspended:
        return []
    times = "once" if budget_state.suspensions == 1 else f"{budget_state.suspensions} times"
    now = (
        ": nothing is answered until its curator has looked, and lets it go on with whosin "
        "ledger resume."
        if budget_state.suspended
        else "; its curator let it go on."
    )
    word = "Suspended" if budget_state.suspended else "It was suspended"
    return [f"{word}{now} An engine failed after a debit {times}."]


def _unit_lines(budget_state: BudgetState) -> list[str]:
    """Whose rows the budget is for, where that was said."""
    if budget_state.registered is None:
        return []
    kept = budget_state.registered.registration
    rows = "1 row" if kept.max_rows_per_group == 1 else f"{kept.max_rows_per_group:,} rows"
    groups = "1 group" if kept.max_groups == 1 else f"{kept.max_groups:,} groups"
    verb = "counts" if kept.max_rows_per_group == 1 else "count"
    return [f"Privacy unit: {kept.privacy_unit!r}; at most {rows} in {groups} {verb}."]


def belief_lines(budget_state: BudgetState) -> list[str]:
    """How sure the plan's adversary can have become from all answers so far."""
    plan = budget_state.plan
    lines = [describe_adversary(plan.family)]
    if not budget_state.debits:
        return [*lines, "So far they have learned nothing from here."]
    if budget_state.by_itself:
        return [*lines, f"Whoever that is {plan.target.words()}.", *_failure_lines(budget_state)]
    if math.isinf(budget_state.ratio):
        return [*lines, "Nothing is promised."]
    low, high = plan.beliefs
    beliefs = [p for p in (low, (low + high) / 2, high) if 0 < p < 1]
    moves = [
        f"from {format_percent(p, 'down')} to at most "
        f"{format_percent(posterior(budget_state.ratio, p), 'up')}"
        for p in beliefs
    ]
    lines.append(f"All answers so far can have moved them {', '.join(dict.fromkeys(moves))}.")
    return [*lines, *_failure_lines(budget_state)]


def _failure_lines(budget_state: BudgetState) -> list[str]:
    if not budget_state.plan.delta or budget_state.certain:
        return []
    failure = format_typed(budget_state.plan.failure, "up")
    may = f"That may fail with probability {failure}, given that a person is in."
    return [may, *known_size(budget_state.plan)]


def history_line(budget_state: BudgetState) -> str:
    """The head of the history, for a report."""
    count = "1 entry" if budget_state.entries == 1 else f"{budget_state.entries} entries"
    return f"{count}, the last of {budget_state.last[:19]}Z; head {budget_state.head}"


def entry_row(entry: Entry, relation: str) -> tuple[str, str, str, str, str]:
    """(number, when, who, what, cost) of an entry."""
    what = entry.kind if entry.kind in NAMED_ENTRIES else ""
    cost = ""
    if entry.kind == "debit":
        what = _question_text(entry)
        paid = entry.body["costs"].get(relation)
        cost = cost_words(Cost(**paid), 6) if paid else "∞"
    elif entry.kind == "answer":
        what = f"answered {entry.request}: {entry.body['digest'][:12]}…"
    elif entry.kind == "registered":
        plan = entry.body["plan"]
        cost = f"ε ≤ {format_figures(float(plan['epsilon']), 6, 'up')}"
    return (
        str(entry.number),
        entry.body["when"][:19].replace("T", " "),
        entry.body["who"],
        what,
        cost,
    )


def _question_text(entry: Entry) -> str:
    asked = entry.body["what"]
    what = {key: asked[key] for key in ("query",) if key in asked} | asked
    parts = [str(value) for value in what.values() if isinstance(value, str | int | float)]
    return " ".join(parts)[:80] or str(entry.request)


def cost_words(cost: Cost, digits: int = 4) -> str:
    """A cost in a few letters."""
    if cost.rho >= encoding.INFINITE_UNITS:
        return "a promise of its own"
    pure = cost.epsilon < encoding.INFINITE_UNITS
    symbol, amount = ("ε", cost.epsilon) if pure else ("ρ", cost.rho)
    text = f"{symbol} = {amount / encoding.EPSILON_UNITS:.{digits}g}"
    failing = f", δ = {cost.delta / encoding.DELTA_UNITS:.{digits // 2}g}" if cost.delta else ""
    return text + failing


def check_lines(checks: Sequence[HistoryCheck]) -> list[str]:
    """What a verification of a ledger found, a line for each dataset."""
    lines = []
    for check in checks:
        line = f"{check.dataset}: whole; entries: {check.entries}, debits: {check.debits}"
        if check.unanswered:
            line += f"; {len(check.unanswered)} paid for and not answered"
        lines += [line, f"  head {check.head}"]
    return lines


Records = Sequence[tuple[BudgetState, Sequence[Entry]]]
HISTORY_COLUMNS = ("dataset", "number", "kind", "request", "who", "when", "body", "head")


def datasets_data(records: Records, *, entries: bool = True) -> dict[str, list[dict[str, Any]]]:
    """All datasets as plain data, with all their entries if asked for."""
    datasets = []
    for budget_state, history in records:
        past = {"history": [entry.to_dict() for entry in history]} if entries else {}
        datasets.append(budget_state.to_dict() | past)
    return {"datasets": datasets}


def json_text(records: Records) -> str:
    """The same as a file."""
    return json.dumps(datasets_data(records), ensure_ascii=False, indent=2) + "\n"


def csv_text(records: Records) -> str:
    """One line per entry; `body` is JSON, from which the digests can be recomputed."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(HISTORY_COLUMNS)
    for _, entries in records:
        for entry in entries:
            named = [entry.dataset, entry.number, entry.kind, entry.request]
            said = [entry.body["who"], entry.body["when"], canonical_json(entry.body), entry.head]
            writer.writerow([*named, *said])
    return out.getvalue()
