"""What proves a ledger: the survey of the whole, and the history of a dataset, recomputed.

`survey_ledger` looks at what belongs to no dataset: a trigger, rule, view, policy or foreign table
in the way of ours, changed columns or functions, an index that does not fit its table, entries,
answers or parts of a dataset that is not there, and a dataset that was noted beside the file and is
gone are each a `BrokenHistory`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from whosin.errors import BrokenHistory, InvalidInput, invalid_value
from whosin.ledger import budget_state as states
from whosin.ledger import encoding, transaction
from whosin.ledger import entries as ledger_entries
from whosin.ledger.budget import (
    ZERO_COST,
    Accounts,
    Cost,
    PartLevel,
    Quota,
    Spend,
    describe_promise,
)
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.entries import ANSWERS_TABLE, ENTRIES_TABLE, PARTS_TABLE, TABLE_COLUMNS, Entry
from whosin.ledger.ledger_file import Heads
from whosin.ledger.registry import Registry

if TYPE_CHECKING:
    from whosin.ledger.ledger import Ledger

_POSTGRES_OBJECTS = {
    "a trigger": "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ({ours})",
    "a rule": "SELECT rulename FROM pg_rewrite WHERE ev_class IN ({ours})",
    "a policy": "SELECT polname FROM pg_policy WHERE polrelid IN ({ours})",
    "a table with row security": (
        "SELECT relname FROM pg_class WHERE oid IN ({ours}) AND relrowsecurity"
    ),
    "a child table": "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent IN ({ours})",
    "something that is no table": (
        "SELECT relname FROM pg_class WHERE oid IN ({ours}) AND relkind <> 'r'"
    ),
}
"""Queries of PostgreSQL's catalogs for what could change or hide a row unnoticed."""


def survey_ledger(connection: Any, name: str, heads: Heads | None) -> None:
    """Look at everything that no single dataset's history covers.

    Args:
        name: the ledger's name, for the message.
        heads: what was noted beside the file.
    """
    if isinstance(connection, sqlite3.Connection):
        _check_file(connection, name)
    else:
        _check_server(connection, name)
    for table, columns in TABLE_COLUMNS.items():
        found = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
        if sorted(column[0] for column in found) != sorted(columns):
            raise BrokenHistory(name, f"the columns of {table} are not those of a ledger")
    known = set(ledger_entries.dataset_names(connection))
    for kind, table in (
        ("entries", ENTRIES_TABLE),
        ("answers", ANSWERS_TABLE),
        ("parts", PARTS_TABLE),
    ):
        owners = {
            str(each) for (each,) in connection.execute(f"SELECT DISTINCT dataset FROM {table}")
        }
        for lost in sorted(owners - known):
            raise BrokenHistory(lost, f"it has {kind}, and the dataset itself is gone")
    if heads is not None:
        for lost in sorted(set(heads.read()) - known):
            raise BrokenHistory(lost, f"{heads.path.name} knows it, and the ledger does not")


def _check_file(connection: Any, name: str) -> None:
    query = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name"
    for kind, each, table in connection.execute(query):
        own = kind == "index" and each.startswith("sqlite_autoindex_")
        if table not in TABLE_COLUMNS or not (own or (kind == "table" and each in TABLE_COLUMNS)):
            raise BrokenHistory(name, f"it has the {kind} {each!r}, which no ledger makes")
    if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
        raise BrokenHistory(name, "its file is damaged")


def _check_server(connection: Any, name: str) -> None:
    ours = ", ".join(f"'{table}'::regclass" for table in TABLE_COLUMNS)
    for kind, query in _POSTGRES_OBJECTS.items():
        result = connection.execute(query.format(ours=ours)).fetchone()
        if result is not None:
            raise BrokenHistory(name, f"it has {kind}, {str(result[0])!r}, which no ledger makes")
    query = (
        "SELECT p.proname, p.prosrc, p.prosecdef, p.proowner = c.relowner "
        "FROM pg_proc p JOIN pg_class c ON c.oid = 'whosin_datasets'::regclass "
        "AND p.pronamespace = c.relnamespace"
    )
    result = [row for row in connection.execute(query) if row[0].startswith("whosin_")]
    wanted = sorted(
        (f"whosin_{each}", source, each in transaction.FUNCTION_ARGUMENTS, True)
        for each, source in transaction.FUNCTION_BODIES.items()
    )
    if sorted(map(tuple, result)) != wanted:
        raise BrokenHistory(name, "its functions are not those of a ledger")


ENTRY_KINDS = ("debit", "answer", "amended", "quota", "suspended", "resumed", "closed")
"""What may follow a registration."""
_STATE_AFTER = {
    "closed": ledger_entries.state_after_closing,
    "suspended": ledger_entries.state_after_suspension,
    "resumed": ledger_entries.state_after_resuming,
}


@dataclass(frozen=True)
class HistoryCheck:
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


def verify(ledger: Ledger, dataset: str, head: str | None = None) -> HistoryCheck:
    """Recompute everything about a dataset.

    Args:
        head: a digest printed on an earlier report; the history must run through it.

    Raises:
        BrokenHistory: an entry was changed, removed or added outside the ledger.
    """
    if not isinstance(ledger, Registry):
        raise invalid_value("ledger", "a Ledger, opened with wi.Ledger(…)", repr(ledger))
    ledger.survey()
    noted = ledger.noted(dataset)
    row, entries, answers = ledger.evidence(dataset)
    if head is not None:
        sought = str(head).strip().lower()
        if len(sought) < 8 or any(letter not in "0123456789abcdef" for letter in sought):
            raise invalid_value(
                "head", "a digest as a report prints it, of 8 characters or more", head
            )
        if not any(entry.head.startswith(sought) for entry in entries):
            raise BrokenHistory(dataset, f"it does not run through {sought[:16]}…")
    unanswered = check_whole(row, entries, answers, ledger.part_levels(dataset))
    ledger_entries.check_row(row, entries[:-3:-1])
    if noted is not None and (noted[0] > len(entries) or entries[noted[0] - 1].head != noted[1]):
        words = f"entry {noted[0]} is not the one that was noted beside the file"
        raise BrokenHistory(dataset, f"{words}: entries were lost, or an older copy was put back")
    return HistoryCheck(dataset, len(entries), row.debits, unanswered, row.head, noted is not None)


def check_whole(
    row: Any,
    entries: Sequence[Entry],
    answers: Mapping[str, str],
    parts: Mapping[str, PartLevel],
) -> tuple[str, ...]:
    """See that a dataset's row, entries and answers fit; returns the requests without an answer."""
    budget_state = ledger_entries.read_budget_state(row)
    debits = [entry for entry in entries if entry.kind == "debit"]
    try:
        _check_chain(budget_state, entries)
        _check_sums(budget_state, entries, debits)
        _check_running(budget_state, entries, parts)
        answered = _check_answers(budget_state.dataset, entries, debits, answers)
    except (KeyError, TypeError, AttributeError, InvalidInput):
        raise BrokenHistory(
            budget_state.dataset, "an entry is not one that a ledger makes"
        ) from None
    return tuple(str(entry.request) for entry in debits if entry.request not in answered)


def _check_chain(budget_state: BudgetState, entries: Sequence[Entry]) -> None:
    previous, last = encoding.FIRST_HEAD, ""
    for expected, entry in enumerate(entries, 1):
        if entry.number != expected:
            raise BrokenHistory(budget_state.dataset, f"entry {expected} is missing")
        previous = encoding.link_digest(previous, entry.linked())
        if previous != entry.head:
            raise BrokenHistory(budget_state.dataset, f"entry {entry.number} was changed")
        last = entry.body["when"]
    if (len(entries), previous, last) != (
        budget_state.entries,
        budget_state.head,
        budget_state.last,
    ):
        raise BrokenHistory(budget_state.dataset, "its end does not fit the dataset's head")


def _check_sums(
    budget_state: BudgetState, entries: Sequence[Entry], debits: Sequence[Entry]
) -> None:
    name = budget_state.dataset
    if not entries or entries[0].kind != "registered":
        raise BrokenHistory(name, "it does not begin with a registration")
    if any(entry.kind not in ENTRY_KINDS for entry in entries[1:]):
        raise BrokenHistory(name, "it has an entry that no ledger makes")
    if entries[0].body["budget"] != vars(budget_state.budget):
        raise BrokenHistory(name, "the budget is not the registered one")
    if encoding.canonical_json(budget_state.plan.to_dict()) != encoding.canonical_json(
        entries[0].body["plan"]
    ):
        raise BrokenHistory(name, "the plan is not the registered one")
    if not budget_state.budget.proved(budget_state.plan):
        raise BrokenHistory(name, "the budget is not that of the plan")
    _check_table(budget_state, entries, debits)
    if len(debits) != budget_state.debits:
        raise BrokenHistory(name, "the debits do not add up to what the dataset says was spent")
    alone = any(e.body["alone"] or budget_state.budget.alone for e in debits)
    if alone and len(debits) > 1:
        raise BrokenHistory(name, "a release of its own is not the only one")
    closings = [entry.number for entry in entries if entry.kind == "closed"]
    closed = bool(closings)
    if closed and (len(closings) > 1 or any(e.number > closings[0] for e in debits)):
        raise BrokenHistory(name, "something was debited or closed after it was closed")
    state = "closed" if closed else "complete" if alone else "open"
    if budget_state.state != state:
        raise BrokenHistory(name, f"it says {budget_state.state}, and its entries say {state}")
    if budget_state.suspended != _check_suspensions(name, entries):
        raise BrokenHistory(name, "whether it is suspended is not what its entries say")


def _debit_cost(debit: Entry, relation: str) -> Cost:
    cost = debit.body["costs"].get(relation)
    return Cost(**cost) if cost else Cost(encoding.INFINITE_UNITS, encoding.INFINITE_UNITS)


def _check_suspensions(name: str, entries: Sequence[Entry]) -> bool:
    """Whether a history ends in a suspension; while one lasts nothing is debited or answered."""
    suspended, last = False, ""
    for entry in entries:
        if suspended and entry.kind in ("debit", "answer"):
            raise BrokenHistory(name, f"entry {entry.number} was made while it was suspended")
        goes_back = states.is_behind(entry.body["when"], last)
        last = entry.body["when"]
        if entry.kind == "resumed" and not (suspended or goes_back):
            raise BrokenHistory(name, f"entry {entry.number} resumes what was not suspended")
        if entry.kind in ("suspended", "resumed"):
            suspended = entry.kind == "suspended"
    return suspended


def _check_table(
    budget_state: BudgetState, entries: Sequence[Entry], debits: Sequence[Entry]
) -> None:
    """The table is the one of the last registration or amendment, and each debit keeps to its."""
    name, kept = budget_state.dataset, None
    for entry in entries:
        if entry.kind in ("registered", "amended"):
            after = entry.body.get("registration")
            if kept is not None and (
                after is None or after["privacy_unit"] != kept["privacy_unit"]
            ):
                raise BrokenHistory(name, f"entry {entry.number} changes whom the budget protects")
            kept = after
        elif entry.kind == "debit" and kept is not None:
            asked = entry.body.get("registration")
            if asked is None or asked["privacy_unit"] != kept["privacy_unit"]:
                raise BrokenHistory(name, f"entry {entry.number} is about another privacy unit")
    if kept != (
        None
        if budget_state.registered is None
        else encoding.plain_copy(budget_state.registered.entry(), "table")
    ):
        raise BrokenHistory(name, "the table is not the registered one")
    promised = encoding.plain_copy(describe_promise(budget_state.plan), "plan")
    if any(entry.body.get("promise", promised) != promised for entry in debits):
        raise BrokenHistory(name, "a release of its own does not promise what its plan does")


def _check_running(
    budget_state: BudgetState, entries: Sequence[Entry], parts: Mapping[str, PartLevel]
) -> None:
    """Each entry says what all entries up to it add up to."""
    name, budget = budget_state.dataset, budget_state.budget
    accounts, debits, state, terms = Accounts(), 0, "open", None
    levels: dict[str, PartLevel] = {}
    last = ""
    for entry in entries:
        dated = budget_state.schedule is not None or bool(accounts.quotas)
        behind = dated and states.is_behind(entry.body["when"], last)
        if behind and entry.kind != "resumed":
            before = f"entry {entry.number} is dated before entry {entry.number - 1}"
            raise BrokenHistory(name, before)
        last = entry.body["when"]
        if entry.kind == "debit":
            accounts = _replay_debit(budget_state, accounts, levels, entry)
            debits += 1
            state = "complete" if entry.body["alone"] or budget.alone else state
        elif entry.kind == "amended":
            accounts = accounts.begin_parts()
        elif entry.kind == "quota":
            accounts = _replay_quota(budget_state, accounts, entry)
        elif entry.kind == "resumed" and behind:
            accounts, state = accounts.leave_period(), _STATE_AFTER[entry.kind](state)
        elif entry.kind in ("closed", "suspended", "resumed"):
            state = _STATE_AFTER[entry.kind](state)
        text = accounts.text()
        sums = {**vars(accounts.total), "debits": debits, "state": state}
        sums["accounts"] = None if text is None else encoding.digest_text(text)
        if entry.body.get("sums") != sums:
            raise BrokenHistory(name, f"the sums of entry {entry.number} are not those up to it")
        if terms is not None and entry.kind != "amended" and entry.body.get("terms") != terms:
            raise BrokenHistory(name, f"entry {entry.number} changes the budget, plan or table")
        terms = entry.body.get("terms")
    if accounts != budget_state.accounts:
        raise BrokenHistory(name, "the debits do not add up to what the dataset says was spent")
    if levels != parts:
        raise BrokenHistory(name, "what its parts have come to is not what its debits say")


def _replay_debit(
    budget_state: BudgetState, accounts: Accounts, levels: dict[str, PartLevel], entry: Entry
) -> Accounts:
    """The accounts after a debit, which was within the total, its period and its quota."""
    body, day, schedule = entry.body, entry.body["when"][:10], budget_state.schedule
    costs = {relation: Cost(**cost) for relation, cost in body["costs"].items()}
    spend = Spend({}, costs, part=body.get("part"))
    quota, before = body.get("quota"), levels.get(spend.part or "", PartLevel())
    accounts = accounts.enter_period(schedule, day)
    after, level = accounts.pay(spend, budget_state.budget.relation, before, quota)
    if spend.part is not None:
        levels[spend.part] = level
    if body["alone"] and budget_state.budget.relation not in costs:
        return after
    kept, name = after.kept(day), budget_state.dataset
    if not (after.total + kept).within(budget_state.budget.limit):
        raise BrokenHistory(name, "more was spent than the budget")
    paid = spend.cost(budget_state.budget.relation) != ZERO_COST or after.total != accounts.total
    if schedule is not None and paid:
        period = schedule.find_period(day)
        if period is None or not after.total.within(schedule.ceiling(accounts, day)):
            raise BrokenHistory(name, f"entry {entry.number} spends more than its period allows")
    if quota is not None:
        mine = after.quotas[quota]
        if not mine.spent.within(mine.limit) or not mine.is_open(day):
            raise BrokenHistory(name, f"entry {entry.number} spends more than its quota")
    return after


def _replay_quota(budget_state: BudgetState, accounts: Accounts, entry: Entry) -> Accounts:
    """The accounts after quotas changed, which left what was spent as it was."""
    changed = {each: Quota.read(data) for each, data in entry.body["quotas"].items()}
    for each, quota in changed.items():
        if quota.spent != accounts.quotas.get(each, Quota(ZERO_COST)).spent:
            message = f"entry {entry.number} changes what was spent of a quota"
            raise BrokenHistory(budget_state.dataset, message)
    after = replace(accounts, quotas={**accounts.quotas, **changed})
    kept = after.kept(entry.body["when"][:10])
    if not (after.total + kept).within(budget_state.budget.limit):
        raise BrokenHistory(budget_state.dataset, "quotas keep more than the budget has")
    return after


def _check_answers(
    name: str, entries: Sequence[Entry], debits: Sequence[Entry], answers: Mapping[str, str]
) -> set[str]:
    paid = {entry.request for entry in debits}
    answered = {e.request: e.body["digest"] for e in entries if e.kind == "answer"}
    for request, text in answers.items():
        if request not in paid:
            raise BrokenHistory(name, f"request {request!r} has an answer and no debit")
        if not isinstance(text, str) or answered.get(request) != encoding.digest_text(text):
            raise BrokenHistory(name, f"the answer to request {request!r} was changed")
    if missing := answered.keys() - answers.keys():
        raise BrokenHistory(name, f"the answer to request {min(map(str, missing))!r} is missing")
    return set(answers)
