"""Is the history the one that was written? The chain, the sums and the answers, recomputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.errors import BrokenHistory, InvalidInput
from whosin.ledger import chain, rows, running, states, units
from whosin.ledger.charge import Cost, promise_of
from whosin.ledger.entries import Entry
from whosin.ledger.ledger import Ledger
from whosin.ledger.standing import Standing

KINDS = ("debit", "answer", "amended", "halted", "resumed", "closed", "upgraded")
"""What may follow a registration."""
_AFTER = {"closed": states.closed, "halted": states.halted, "resumed": states.without_halt}


@dataclass(frozen=True)
class Check:
    """A history that was found whole.

    Attributes:
        unanswered: requests that were paid for and have no stored answer; a retry may draw one.
        noted: whether it was compared with a head that was noted beside the ledger's file.
    """

    dataset: str
    entries: int
    debits: int
    unanswered: tuple[str, ...]
    head: str
    noted: bool = False


def verify(ledger: Ledger, dataset: str, head: str | None = None) -> Check:
    """Recompute everything about a dataset.

    Args:
        head: a digest printed on an earlier report; the history must run through it.

    Raises:
        BrokenHistory: an entry was changed, removed or added outside the ledger.
    """
    if not isinstance(ledger, Ledger):
        raise InvalidInput("ledger", "a Ledger, opened with wi.Ledger(…)", repr(ledger))
    ledger.survey()
    noted = ledger.noted(dataset)
    row, entries, answers = ledger.evidence(dataset)
    if head is not None:
        sought = str(head).strip().lower()
        if len(sought) < 8 or any(letter not in "0123456789abcdef" for letter in sought):
            raise InvalidInput("head", "the digest printed on a report, 8 letters or more", head)
        if not any(entry.head.startswith(sought) for entry in entries):
            raise BrokenHistory(dataset, f"it does not run through {sought[:16]}…")
    unanswered = check_whole(row, entries, answers)
    running.check(row, entries[:-3:-1])
    if noted is not None and (noted[0] > len(entries) or entries[noted[0] - 1].head != noted[1]):
        words = f"entry {noted[0]} is not the one that was noted beside the file"
        raise BrokenHistory(dataset, f"{words}: entries were lost, or an older copy was put back")
    return Check(dataset, len(entries), row.debits, unanswered, row.head, noted is not None)


def check_whole(row: Any, entries: Sequence[Entry], answers: Mapping[str, str]) -> tuple[str, ...]:
    """See that a dataset's row, entries and answers fit; returns the requests without an answer.

    Raises:
        BrokenHistory: they do not.
    """
    standing = rows.standing(row)
    debits = [entry for entry in entries if entry.kind == "debit"]
    try:
        _check_chain(standing, entries)
        _check_sums(standing, entries, debits)
        _check_running(standing, entries)
        answered = _check_answers(standing.dataset, entries, debits, answers)
    except (KeyError, TypeError, AttributeError, InvalidInput):
        raise BrokenHistory(standing.dataset, "an entry is not one that a ledger makes") from None
    return tuple(str(entry.request) for entry in debits if entry.request not in answered)


def _check_chain(standing: Standing, entries: Sequence[Entry]) -> None:
    previous, last = chain.START, ""
    for expected, entry in enumerate(entries, 1):
        if entry.number != expected:
            raise BrokenHistory(standing.dataset, f"entry {expected} is missing")
        previous = chain.link(previous, entry.linked())
        if previous != entry.head:
            raise BrokenHistory(standing.dataset, f"entry {entry.number} was changed")
        last = entry.body["when"]
    if (len(entries), previous, last) != (standing.entries, standing.head, standing.last):
        raise BrokenHistory(standing.dataset, "its end does not fit the dataset's head")


def _check_sums(standing: Standing, entries: Sequence[Entry], debits: Sequence[Entry]) -> None:
    name = standing.dataset
    if not entries or entries[0].kind != "registered":
        raise BrokenHistory(name, "it does not begin with a registration")
    if any(entry.kind not in KINDS for entry in entries[1:]):
        raise BrokenHistory(name, "it has an entry that no ledger makes")
    if entries[0].body["budget"] != vars(standing.budget):
        raise BrokenHistory(name, "the budget is not the registered one")
    if chain.canonical(standing.plan.to_dict()) != chain.canonical(entries[0].body["plan"]):
        raise BrokenHistory(name, "the plan is not the registered one")
    if not standing.budget.proved(standing.plan):
        raise BrokenHistory(name, "the budget is not that of the plan")
    _check_table(standing, entries, debits)
    relation = standing.budget.relation
    spent = sum((_cost(entry, relation) for entry in debits), Cost(0, 0))
    if spent != standing.spent or len(debits) != standing.debits:
        raise BrokenHistory(name, "the debits do not add up to what the dataset says was spent")
    by_itself = all(e.body["alone"] and relation not in e.body["costs"] for e in debits)
    if not by_itself and not standing.budget.holds(spent):
        raise BrokenHistory(name, "more was spent than the budget")
    alone = any(e.body["alone"] or standing.budget.alone for e in debits)
    if alone and len(debits) > 1:
        raise BrokenHistory(name, "a release of its own is not the only one")
    closings = [entry.number for entry in entries if entry.kind == "closed"]
    closed = bool(closings)
    if closed and (len(closings) > 1 or any(e.number > closings[0] for e in debits)):
        raise BrokenHistory(name, "something was debited or closed after it was closed")
    state = "closed" if closed else "complete" if alone else "open"
    if standing.state != state:
        raise BrokenHistory(name, f"it says {standing.state}, and its entries say {state}")
    if standing.halted != _check_halts(name, entries):
        raise BrokenHistory(name, "whether it is halted is not what its entries say")


def _cost(debit: Entry, relation: str) -> Cost:
    cost = debit.body["costs"].get(relation)
    return Cost(**cost) if cost else Cost(units.INFINITE, units.INFINITE)


def _check_halts(name: str, entries: Sequence[Entry]) -> bool:
    """Whether a history ends in a halt; while one lasts nothing is debited or answered."""
    halted = False
    for entry in entries:
        if halted and entry.kind in ("debit", "answer"):
            raise BrokenHistory(name, f"entry {entry.number} was made while it was halted")
        if entry.kind == "resumed" and not halted:
            raise BrokenHistory(name, f"entry {entry.number} resumes what was not halted")
        if entry.kind in ("halted", "resumed"):
            halted = entry.kind == "halted"
    return halted


def _check_table(standing: Standing, entries: Sequence[Entry], debits: Sequence[Entry]) -> None:
    """The table is the one of the last registration or amendment, and each debit keeps to its."""
    name, kept = standing.dataset, None
    for entry in entries:
        if entry.kind in ("registered", "amended"):
            after = entry.body.get("binding")
            if kept is not None and (after is None or after["entity"] != kept["entity"]):
                raise BrokenHistory(name, f"entry {entry.number} changes whom the budget protects")
            kept = after
        elif entry.kind == "debit" and kept is not None:
            asked = entry.body.get("binding")
            if asked is None or asked["entity"] != kept["entity"]:
                raise BrokenHistory(name, f"entry {entry.number} is about another entity")
    if kept != (None if standing.bound is None else chain.plain(standing.bound.entry(), "table")):
        raise BrokenHistory(name, "the table is not the registered one")
    promised = chain.plain(promise_of(standing.plan), "plan")
    if any(entry.body.get("promise", promised) != promised for entry in debits):
        raise BrokenHistory(name, "a release of its own does not promise what its plan does")


def _check_running(standing: Standing, entries: Sequence[Entry]) -> None:
    """Each entry says what all entries up to it add up to; those of format 1 said nothing."""
    name, relation = standing.dataset, standing.budget.relation
    spent, debits, state, terms = Cost(0, 0), 0, "open", None
    silent = "sums" not in entries[0].body
    for entry in entries:
        if entry.kind == "debit":
            spent += _cost(entry, relation)
            debits += 1
            state = "complete" if entry.body["alone"] or standing.budget.alone else state
        elif entry.kind in ("closed", "halted", "resumed"):
            state = _AFTER[entry.kind](state)
        elif entry.kind == "upgraded":
            if not silent:
                raise BrokenHistory(name, f"entry {entry.number} is one that no ledger makes")
            silent = False
        if silent:
            continue
        if entry.body["sums"] != {**vars(spent), "debits": debits, "state": state}:
            raise BrokenHistory(name, f"the sums of entry {entry.number} are not those up to it")
        if terms is not None and entry.kind != "amended" and entry.body["terms"] != terms:
            raise BrokenHistory(name, f"entry {entry.number} changes the budget, plan or table")
        terms = entry.body["terms"]


def _check_answers(
    name: str, entries: Sequence[Entry], debits: Sequence[Entry], answers: Mapping[str, str]
) -> set[str]:
    paid = {entry.request for entry in debits}
    answered = {e.request: e.body["digest"] for e in entries if e.kind == "answer"}
    for request, text in answers.items():
        if request not in paid:
            raise BrokenHistory(name, f"request {request!r} has an answer and no debit")
        if not isinstance(text, str) or answered.get(request) != chain.digest(text):
            raise BrokenHistory(name, f"the answer to request {request!r} was changed")
    if missing := answered.keys() - answers.keys():
        raise BrokenHistory(name, f"the answer to request {min(map(str, missing))!r} is missing")
    return set(answers)
