"""Is the history the one that was written? The chain, the sums and the answers, recomputed."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whosin.errors import BrokenHistory, InvalidInput
from whosin.ledger import chain, units
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Cost
from whosin.ledger.entries import Entry
from whosin.ledger.ledger import Ledger
from whosin.ledger.standing import Standing


@dataclass(frozen=True)
class Check:
    """A history that was found whole.

    Attributes:
        unanswered: requests that were paid for and have no stored answer; a retry may draw one.
    """

    dataset: str
    entries: int
    debits: int
    unanswered: tuple[str, ...]
    head: str


def verify(ledger: Ledger, dataset: str, head: str | None = None) -> Check:
    """Recompute everything about a dataset.

    Args:
        head: a digest printed on an earlier report; the history must run through it.

    Raises:
        BrokenHistory: an entry was changed, removed or added outside the ledger.
    """
    standing, entries, answers = ledger.record(dataset)
    _check_chain(standing, entries)
    if head is not None:
        sought = head.strip().lower()
        if len(sought) < 8 or any(letter not in "0123456789abcdef" for letter in sought):
            raise InvalidInput("head", "the digest printed on a report, 8 letters or more", head)
        if not any(entry.head.startswith(sought) for entry in entries):
            raise BrokenHistory(dataset, f"it does not run through {sought[:16]}…")
    debits = [entry for entry in entries if entry.kind == "debit"]
    _check_sums(standing, entries, debits)
    answered = _check_answers(dataset, entries, debits, answers)
    missing = tuple(str(e.request) for e in debits if e.request not in answered)
    return Check(dataset, len(entries), len(debits), missing, standing.head)


def _check_chain(standing: Standing, entries: Sequence[Entry]) -> None:
    previous, last = chain.START, ""
    for expected, entry in enumerate(entries, 1):
        if entry.number != expected:
            raise BrokenHistory(standing.dataset, f"entry {expected} is missing")
        previous = chain.link(previous, entry.linked())
        if previous != entry.head:
            raise BrokenHistory(standing.dataset, f"entry {entry.number} was changed")
        if entry.body["when"] < last:
            raise BrokenHistory(standing.dataset, f"entry {entry.number} is before the last one")
        last = entry.body["when"]
    if len(entries) != standing.entries or previous != standing.head:
        raise BrokenHistory(standing.dataset, "its end does not fit the dataset's head")


def _check_sums(standing: Standing, entries: Sequence[Entry], debits: Sequence[Entry]) -> None:
    name = standing.dataset
    if not entries or entries[0].kind != "registered":
        raise BrokenHistory(name, "it does not begin with a registration")
    if entries[0].body["budget"] != vars(standing.budget):
        raise BrokenHistory(name, "the budget is not the registered one")
    if json.loads(chain.canonical(standing.plan.to_dict())) != entries[0].body["plan"]:
        raise BrokenHistory(name, "the plan is not the registered one")
    if Budget.of(standing.plan) != standing.budget:
        raise BrokenHistory(name, "the budget is not that of the plan")
    spent = Cost(0, 0)
    for entry in debits:
        cost = entry.body["costs"].get(standing.budget.relation)
        spent += Cost(**cost) if cost else Cost(units.INFINITE, units.INFINITE)
    if spent != standing.spent or len(debits) != standing.debits:
        raise BrokenHistory(name, "the debits do not add up to what the dataset says was spent")
    if debits and not standing.budget.holds(spent):
        raise BrokenHistory(name, "more was spent than the budget")
    alone = [e.number for e in debits if e.body["alone"] or standing.budget.alone]
    if alone and len(debits) > 1:
        raise BrokenHistory(name, "a release of its own is not the only one")
    closed = any(entry.kind == "closed" for entry in entries)
    state = "closed" if closed else "complete" if alone else "open"
    if standing.state != state:
        raise BrokenHistory(name, f"it says {standing.state}, and its entries say {state}")


def _check_answers(
    name: str, entries: Sequence[Entry], debits: Sequence[Entry], answers: Mapping[str, str]
) -> set[str]:
    paid = {entry.request for entry in debits}
    answered = {e.request: e.body["digest"] for e in entries if e.kind == "answer"}
    for request, text in answers.items():
        if request not in paid:
            raise BrokenHistory(name, f"request {request!r} has an answer and no debit")
        if answered.get(request) != chain.digest(text):
            raise BrokenHistory(name, f"the answer to request {request!r} was changed")
    if missing := answered.keys() - answers.keys():
        raise BrokenHistory(name, f"the answer to request {min(map(str, missing))!r} is missing")
    return set(answers)
