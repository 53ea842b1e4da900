"""What proves a ledger: the survey of the whole, and the history of a dataset, recomputed.

`survey_ledger` looks at what belongs to no dataset: a trigger, rule, view, policy or foreign table
in the way of ours, changed columns or functions, an index that does not fit its table, entries,
answers or parts of a dataset that is not there, and a dataset that was noted beside the file and is
gone are each a `BrokenHistory`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from whosin.errors import BrokenHistory, invalid_value
from whosin.ledger import budget_state as states
from whosin.ledger import encoding, transaction
from whosin.ledger import entries as ledger_entries
from whosin.ledger.budget import (
    ZERO_COST,
    Accounts,
    Cost,
    PartLevel,
    Quota,
    describe_promise,
)
from whosin.ledger.entries import (
    ANSWERS_TABLE,
    ENTRIES_TABLE,
    PARTS_TABLE,
    TABLE_COLUMNS,
    EntryRow,
)
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
    """Recompute everything about a dataset, entry by entry: in memory is one at a time, beside what
    parts have come to.

    Args:
        head: a digest printed on an earlier report; the history must run through it.

    Raises:
        BrokenHistory: an entry was changed, removed or added outside the ledger.
    """
    if not isinstance(ledger, Registry):
        raise invalid_value("ledger", "a Ledger, opened with wi.Ledger(…)", repr(ledger))
    ledger.survey()
    noted = ledger.noted(dataset)
    sought = None if head is None else str(head).strip().lower()
    if sought is not None and (len(sought) < 8 or any(each not in _HEX_DIGITS for each in sought)):
        raise invalid_value("head", "a digest as a report prints it, of 8 characters or more", head)
    with ledger.replaying(dataset) as (row, entries, connection):
        replay = _Replay(row, sought, noted)
        try:
            for entry in entries:
                replay.take(*entry)
        except (KeyError, TypeError, AttributeError, ValueError):
            words = "an entry is not one that a ledger makes"
            raise BrokenHistory(replay.name, words) from None
        replay.finish(ledger_entries.read_levels(connection, row.name))
        _check_answers(connection, row.name)
        unanswered = ledger_entries.unanswered_requests(connection, row.name)
    if sought is not None and not replay.found:
        raise BrokenHistory(dataset, f"it does not run through {sought[:16]}…")
    if noted is not None and not replay.kept_noted:
        words = f"entry {noted[0]} is not the one that was noted beside the file"
        raise BrokenHistory(dataset, f"{words}: entries were lost, or an older copy was put back")
    return HistoryCheck(
        dataset, row.entries, row.debits, tuple(unanswered), row.head, noted is not None
    )


_HEX_DIGITS = "0123456789abcdef"
_FIRST_LEVEL = PartLevel()


class _Replay:
    """What the entries of a history, taken one after another, add up to.

    Args:
        row: the dataset's, as it must come out.
        sought: how a head begins that the history must run through.
        noted: the number and head of an entry that it must run through.
    """

    def __init__(self, row: Any, sought: str | None, noted: tuple[int, str] | None) -> None:
        self.row, self.name = row, str(row.name)
        self.state = ledger_entries.read_budget_state(row)
        self.found = self.kept_noted = False
        self._sought, self._noted = sought, noted
        self._promise = encoding.plain_copy(describe_promise(self.state.plan), "plan")
        self._last: tuple[EntryRow, ...] = ()
        self._number, self._head, self._when = 0, encoding.FIRST_HEAD, ""
        self._accounts, self._total, self._limit = Accounts(), ZERO_COST, ZERO_COST
        self._levels: dict[str, PartLevel] = {}
        self._debits, self._alone, self._stands = 0, False, "open"
        self._bodies, self._sums = ledger_entries.BodyReader(), ""
        self._terms: object = None
        self._table: dict[str, Any] | None = None

    def take(self, entry: Any, answer: object) -> None:
        """Take the next entry.

        Args:
            answer: the stored one, where it is the entry of an answer.
        """
        body, sums = self._link(entry)
        self._check_order(entry, body)
        before = self._accounts
        match entry.kind:
            case "debit":
                self._pay(body)
            case "answer":
                _check_answer(self.name, entry, body, answer)
            case "registered":
                self._begin(body)
            case "amended":
                self._bind(entry, body)
                self._accounts = before.begin_parts()
            case "quota":
                self._change_quotas(body)
            case kind:
                self._stands = _STATE_AFTER[kind](self._stands)
        if entry.kind != "answer" or not self._sums:
            text = self._accounts.text()
            named = {**vars(self._total), "debits": self._debits, "state": self._stands}
            named["accounts"] = None if text is None else encoding.digest_text(text)
            self._sums = encoding.canonical_json(named)
        if sums != self._sums:
            message = f"the sums of entry {entry.number} are not those up to it"
            raise BrokenHistory(self.name, message)
        terms = body.get("terms")
        if self._terms is not None and entry.kind != "amended" and terms != self._terms:
            message = f"entry {entry.number} changes the budget, plan or table"
            raise BrokenHistory(self.name, message)
        self._terms = terms

    def _link(self, entry: Any) -> tuple[dict[str, Any], str]:
        """The body of an entry that continues the chain, and its sums."""
        self._number += 1
        if entry.number != self._number:
            raise BrokenHistory(self.name, f"entry {self._number} is missing")
        body = self._bodies.read(entry)
        self._head = encoding.link_text(self._head, entry)
        if self._head != entry.head:
            raise BrokenHistory(self.name, f"entry {entry.number} was changed")
        if self._sought is not None:
            self.found |= entry.head.startswith(self._sought)
        if self._noted is not None and entry.number == self._noted[0]:
            self.kept_noted = entry.head == self._noted[1]
        self._last = (entry, *self._last[:1])
        return body

    def _check_order(self, entry: Any, body: dict[str, Any]) -> None:
        """What may follow what, and when."""
        name, kind, moment = self.name, entry.kind, body["when"]
        if self._number == 1 and kind != "registered":
            raise BrokenHistory(name, "it does not begin with a registration")
        if self._number > 1 and kind not in ENTRY_KINDS:
            raise BrokenHistory(name, "it has an entry that no ledger makes")
        suspended = ledger_entries.is_suspended(self._stands)
        if suspended and kind in ("debit", "answer"):
            raise BrokenHistory(name, f"entry {entry.number} was made while it was suspended")
        if states.is_behind(moment, self._when):
            dated = self.state.schedule is not None or bool(self._accounts.quotas)
            if kind == "resumed":
                suspended = True
                self._accounts = self._accounts.leave_period() if dated else self._accounts
            elif dated:
                before = f"entry {entry.number} is dated before entry {entry.number - 1}"
                raise BrokenHistory(name, before)
        if kind == "resumed" and not suspended:
            raise BrokenHistory(name, f"entry {entry.number} resumes what was not suspended")
        if kind in ("debit", "closed") and self._stands.endswith("closed"):
            raise BrokenHistory(name, "something was debited or closed after it was closed")
        self._when = moment

    def _begin(self, body: dict[str, Any]) -> None:
        """The registration: the budget is that of the plan, and both are the dataset's."""
        budget, plan = self.state.budget, self.state.plan
        if body["budget"] != vars(budget):
            raise BrokenHistory(self.name, "the budget is not the registered one")
        if encoding.canonical_json(plan.to_dict()) != encoding.canonical_json(body["plan"]):
            raise BrokenHistory(self.name, "the plan is not the registered one")
        if not budget.proved(plan):
            raise BrokenHistory(self.name, "the budget is not that of the plan")
        self._limit = budget.limit
        self._table = body.get("registration")

    def _bind(self, entry: Any, body: dict[str, Any]) -> None:
        """An amendment, which protects the same people."""
        before, self._table = self._table, body.get("registration")
        if before is not None and (
            self._table is None or self._table["privacy_unit"] != before["privacy_unit"]
        ):
            message = f"entry {entry.number} changes whom the budget protects"
            raise BrokenHistory(self.name, message)

    def _pay(self, body: dict[str, Any]) -> None:
        """A debit, which was within the total, its period and its quota."""
        state, day, costs = self.state, body["when"][:10], body["costs"]
        relation = state.budget.relation
        self._debits += 1
        if self._table is not None:
            asked = body.get("registration")
            if asked is None or asked["privacy_unit"] != self._table["privacy_unit"]:
                raise BrokenHistory(
                    self.name, f"entry {self._number} is about another privacy unit"
                )
        if body.get("promise", self._promise) != self._promise:
            message = "a release of its own does not promise what its plan does"
            raise BrokenHistory(self.name, message)
        together = "after" in body and self._table is None
        if body["alone"] or (state.budget.alone and not together):
            self._alone, self._stands = True, "complete"
        if self._alone and self._debits > 1:
            raise BrokenHistory(self.name, "a release of its own is not the only one")
        cost, part, quota = _read_cost(costs, relation), body.get("part"), body.get("quota")
        before = self._accounts.enter_period(state.schedule, day)
        if quota != before.find_quota(body["who"], day):
            raise BrokenHistory(self.name, f"entry {self._number} is paid from a wrong quota")
        if part is None:
            after, _ = before.pay_costs(cost, cost, relation, None, quota)
        else:
            entering, level = _read_cost(costs, "add-remove"), self._levels.get(part, _FIRST_LEVEL)
            after, paid = before.pay_costs(cost, entering, relation, level, quota)
            self._levels[part] = paid or level
        self._accounts, total = after, after.total
        free, self._total = cost == ZERO_COST and total == self._total, total
        if not body["alone"] or relation in costs:
            self._check_limits(before, day, quota, free=free)

    def _check_limits(self, before: Accounts, day: str, quota: str | None, *, free: bool) -> None:
        """A debit was within every limit.

        Args:
            before: the accounts before it, in its period.
            free: whether it cost nothing, as steps of a stream do: no period bounds these.
        """
        after, schedule, number = self._accounts, self.state.schedule, self._number
        if not (self._total + after.kept(day)).within(self._limit):
            raise BrokenHistory(self.name, "more was spent than the budget")
        if schedule is not None and not free:
            period = schedule.find_period(day)
            if period is None or not self._total.within(schedule.ceiling(before, day)):
                raise BrokenHistory(self.name, f"entry {number} spends more than its period allows")
        if quota is not None:
            mine = after.quotas[quota]
            if not mine.spent.within(mine.limit):
                raise BrokenHistory(self.name, f"entry {number} spends more than its quota")

    def _change_quotas(self, body: dict[str, Any]) -> None:
        """Quotas changed, and what was spent of them stayed as it was."""
        known = self._accounts.quotas
        changed = {each: Quota.read(data) for each, data in body["quotas"].items()}
        for each, quota in changed.items():
            if quota.spent != known.get(each, Quota(ZERO_COST)).spent:
                message = f"entry {self._number} changes what was spent of a quota"
                raise BrokenHistory(self.name, message)
        self._accounts = replace(self._accounts, quotas={**known, **changed})
        kept = self._accounts.kept(body["when"][:10])
        if not (self._total + kept).within(self._limit):
            raise BrokenHistory(self.name, "quotas keep more than the budget has")

    def finish(self, parts: Iterable[tuple[str, PartLevel]]) -> None:
        """See that the dataset's row, its table and its parts are what the entries add up to."""
        row, name, registered = self.row, self.name, self.state.registered
        if not self._number:
            raise BrokenHistory(name, "it does not begin with a registration")
        if (self._number, self._head, self._when) != (row.entries, row.head, row.last):
            raise BrokenHistory(name, "its end does not fit the dataset's head")
        table = None if registered is None else encoding.plain_copy(registered.entry(), "table")
        if self._table != table:
            raise BrokenHistory(name, "the table is not the registered one")
        if self._stands != row.state:
            raise BrokenHistory(name, f"it says {row.state}, and its entries say {self._stands}")
        if (self._debits, self._accounts) != (self.state.debits, self.state.accounts):
            words = "the debits do not add up to what the dataset says was spent"
            raise BrokenHistory(name, words)
        left = self._levels
        if not all(left.pop(part, None) == level for part, level in parts) or left:
            raise BrokenHistory(name, "what its parts have come to is not what its debits say")
        ledger_entries.check_row(row, [ledger_entries.read_entry(each) for each in self._last])


def _read_cost(costs: dict[str, Any], relation: str) -> Cost:
    return _recall_cost(**costs[relation]) if relation in costs else encoding.INFINITE_COST


_recall_cost = lru_cache(maxsize=1000, typed=True)(Cost)


def _check_answer(name: str, entry: Any, body: dict[str, Any], answer: object) -> None:
    """The entry of an answer and the stored text."""
    if answer is None:
        raise BrokenHistory(name, f"the answer to request {entry.request!r} is missing")
    if not isinstance(answer, str) or body["digest"] != encoding.digest_text(answer):
        raise BrokenHistory(name, f"the answer to request {entry.request!r} was changed")


def _check_answers(connection: Any, name: str) -> None:
    """Each stored answer has a debit, and an entry that its digest is in."""
    for kind, words in (
        ("debit", "request {!r} has an answer and no debit"),
        ("answer", "the answer to request {!r} was changed"),
    ):
        stray = ledger_entries.find_stray_answer(connection, name, kind)
        if stray is not None:
            raise BrokenHistory(name, words.format(stray))
