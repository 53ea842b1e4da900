"""`Ledger`: debit, answer, show; the survey of a whole ledger; and the verified history.

A debit is durable before noise is drawn (`transaction.Transaction.commit`), and an answer is stored
before it is shown. `survey_ledger` looks at what belongs to no dataset: a trigger, rule, view,
policy or foreign table in the way of ours, changed columns or functions, an index that does not fit
its table, entries or answers of a dataset that is not there, and a dataset that was noted beside
the file and is gone are each a `BrokenHistory`.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, cast

from whosin.errors import (
    BrokenHistory,
    BudgetRefused,
    InvalidInput,
    SourceChanged,
    WhosinError,
    invalid_value,
)
from whosin.ledger import budget as ledger_budget
from whosin.ledger import encoding, registry, transaction
from whosin.ledger import entries as ledger_entries
from whosin.ledger.budget import JOINT_FAMILIES, BudgetState, Cost, Spend, describe_promise
from whosin.ledger.encoding import read_name
from whosin.ledger.entries import ANSWERS_TABLE, ENTRIES_TABLE, TABLE_COLUMNS, Debit, Entry
from whosin.ledger.ledger_file import Heads
from whosin.ledger.registry import Registry, suspend_dataset

MAX_UNSTORED_SECONDS = 1.0
"""How long answers that were drawn wait for others to be stored with them."""

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
    for kind, table in (("entries", ENTRIES_TABLE), ("answers", ANSWERS_TABLE)):
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


# `Ledger`: the durable budget of datasets, shared by sessions, processes, machines and users.
#
# What holds at every moment, also after a crash:
# * a debit is committed before noise is drawn, and refused when it would exceed the budget;
# * an answer is stored with its debit before it is shown; a retry with the same request returns the
#   stored answer, or draws under the debit that stands: it neither pays nor answers twice;
# * entries are only appended, and their digests form a chain.


class Ledger(Registry):
    """A ledger in a file (SQLite) or on a server (`postgresql://…`).

    Args:
        url: a file, or a database URL. It is made if it does not exist and `create` is true.
        who: in whose name entries are made; by default the user of this process.
        wait: how many seconds to wait for other writers.
        own: whether answers to requests that others paid for are refused.
    """

    def check(self, dataset: str, spends: Iterable[Spend]) -> BudgetState:
        """Whether these questions could all be paid now; nothing is spent.

        Raises:
            BudgetRefused: they could not.
        """
        asked = _read_spends(spends)
        budget_state = self.budget_state(dataset)
        registry.check_debits(budget_state, asked)
        return budget_state

    def debit(self, dataset: str, request: str, spend: Spend) -> Debit:
        """Pay for a question. When this returns, the debit is on disk.

        Raises:
            BudgetRefused: it would exceed the budget, or the request was used for another question.
        """
        if not isinstance(spend, Spend):
            raise invalid_value("spend", "a Spend", repr(spend))
        return self.debits(dataset, {request: spend})[0]

    def debits(self, dataset: str, spends: Mapping[str, Spend]) -> list[Debit]:
        """Pay for questions by request, all of them in one transaction or none.

        Raises:
            BudgetRefused: together they would exceed the budget, a request was used for another
                question, or they are about another table than the dataset's.
        """
        asked = {read_name(key, "request"): spend for key, spend in spends.items()}
        _read_spends(list(asked.values()))
        with self._turn(dataset, *asked) as turn:
            row, budget_state = turn.row, ledger_entries.read_budget_state(turn.row)
            for key, paid in turn.debits.items():
                registry.other_question(paid, asked[key], self._only)
                if key not in turn.answers:
                    registry.other_table(paid, asked[key], budget_state)
            if asked.keys() - turn.answers.keys():
                registry.refuse_suspended(budget_state)
            new = {key: spend for key, spend in asked.items() if key not in turn.debits}
            if new:
                registry.check_debits(budget_state, list(new.values()))
                self._check_joint(budget_state, list(new.values()))
                made, spent = [], budget_state.spent
                for key, spend in new.items():
                    spent += spend.cost(row.relation)
                    changes = {
                        "spent_epsilon": spent.epsilon,
                        "spent_rho": spent.rho,
                        "spent_delta": spent.delta,
                        "debits": row.debits + 1,
                        "state": "complete" if spend.alone or row.alone else row.state,
                    }
                    said = {**spend.to_dict(), **registry.check_registration(budget_state, spend)}
                    body = self._signed(said, turn.time)
                    entry, row = ledger_entries.next_entry(row, "debit", key, body, **changes)
                    made.append(entry)
                turn.commit(row, *made, settle=False)
                turn.debits.update({str(entry.request): entry for entry in made})
        return [
            Debit(row.name, key, key in new, turn.answers.get(key), turn.debits[key].body)
            for key in asked
        ]

    def _check_joint(self, budget_state: BudgetState, spends: Sequence[Spend]) -> None:
        """Levels that were measured jointly do not add with others: all debits or none are joint.
        Joint ones are made of datasets without a table, and where levels do not follow from ε."""
        if not budget_state.debits or budget_state.registered is not None:
            return
        family = budget_state.plan.family.name
        if budget_state.budget.relation != "replace" and family not in JOINT_FAMILIES:
            return
        joint = {spend.after is not None for spend in spends}
        joint |= {
            "after" in entry.body
            for entry in self.history(budget_state.dataset)
            if entry.kind == "debit"
        }
        if len(joint) > 1:
            message = "releases that are measured jointly do not add with other answers"
            hint = "register a dataset of its own for either"
            raise BudgetRefused(message, field="dataset", value=budget_state.dataset, hint=hint)

    def store(self, debit: Debit, answer: object) -> Any:
        """Store the answer of a debit and return what may be shown; as `store_answers`."""
        return self.store_answers([(debit, answer)])[0]

    def store_answers(self, drawn: Sequence[tuple[Debit, object]]) -> list[Any]:
        """Store the answers of debits of one dataset, all in one transaction or none, and return
        what may be shown.

        That is the answer stored first: if another process has answered the same request by
        now, its answer counts and this one must be thrown away.

        Raises:
            BudgetRefused: the dataset has been suspended since; these answers must be thrown away.
        """
        texts = {}
        for debit, answer in drawn:
            if not isinstance(debit, Debit) or debit.dataset != drawn[0][0].dataset:
                raise invalid_value("debit", "a Debit, as `Ledger.debit` returns it", repr(debit))
            texts[read_name(debit.request, "request")] = encoding.canonical_json(answer, "answer")
        with self._turn(drawn[0][0].dataset, *texts) as turn:
            for key in texts.keys() - turn.debits.keys():
                raise BudgetRefused(
                    f"request {key!r} has not been paid for", field="request", value=key
                )
            row, made = turn.row, dict[str, Entry]()
            new = {key: text for key, text in texts.items() if key not in turn.answers}
            if new:
                registry.refuse_suspended(ledger_entries.read_budget_state(row))
                for key, text in new.items():
                    body = self._signed({"digest": encoding.digest_text(text)}, turn.time)
                    made[key], row = ledger_entries.next_entry(row, "answer", key, body)
                turn.commit(row, *made.values(), answers=new)
        return [json.loads(turn.answers.get(key, text)) for key, text in texts.items()]

    def answer_debits(
        self, debits: Sequence[Debit], request: str, draw: Callable[[int], object]
    ) -> list[Any]:
        """The answer of each debit: the stored one, or what `draw` returns for its number, stored
        before any is returned. What took long to draw is stored at once, the rest in one
        transaction; also when the next one fails.

        Args:
            request: what people continue.

        Raises:
            ScanFailed: `draw` failed; the dataset is suspended.
        """
        found, drawn = dict[int, Any](), dict[int, object]()
        begun, stands = monotonic(), registry.describe_unanswered(request)

        def store() -> None:
            if drawn:
                kept = self.store_answers([(debits[each], drawn[each]) for each in drawn])
                found.update(zip(drawn, kept, strict=True))
                drawn.clear()

        for number, debit in enumerate(debits):
            failure: BaseException | None = None
            suspends = False
            try:
                if debit.answer is not None:
                    found[number] = json.loads(debit.answer)
                else:
                    drawn[number] = draw(number)
            except KeyboardInterrupt:
                failure = KeyboardInterrupt(f"interrupted: {stands}")
            except SourceChanged as error:
                failure = SourceChanged(f"{error}; {stands}")
            except Exception:  # without its words: see `registry`
                suspends = True
            if failure or suspends:
                try:
                    with suppress(WhosinError):
                        store()
                finally:  # whatever happens meanwhile, nothing more is drawn
                    if suspends:
                        failure = suspend_dataset(self, debit.dataset, debit.request, request)
                assert failure is not None
                raise failure
            if monotonic() - begun > MAX_UNSTORED_SECONDS or number + 1 == len(debits):
                try:
                    store()
                except BaseException as error:
                    raise registry.add_note(error, stands) from None
                begun = monotonic()
        return [found[number] for number in range(len(debits))]

    def answer(
        self, dataset: str, spend: Spend, draw: Callable[[], object], request: str | None = None
    ) -> Any:
        """Pay, draw, store, and only then return: the whole way of an answer. If `draw` raises, the
        dataset is suspended (see `suspend`), since that may depend on a row.

        Args:
            draw: draws the noise and returns the answer as JSON data. It runs after the debit is
                committed, and not at all when the answer is stored already.
            request: an id of this question, for a retry; by default a fresh one.
        """
        if not callable(draw):
            raise invalid_value(
                "draw", "a function without arguments that draws the answer", repr(draw)
            )
        debit = self.debit(dataset, uuid.uuid4().hex if request is None else request, spend)
        if debit.answer is not None:
            return json.loads(debit.answer)
        try:
            drawn = draw()
        except SourceChanged:
            raise
        except Exception:
            self.suspend(debit.dataset, debit.request)
            raise
        return self.store(debit, drawn)

    def history(self, dataset: str) -> list[Entry]:
        """All entries of a dataset, oldest first."""
        with self._store.reading() as connection:
            return ledger_entries.read_history(connection, self._find(connection, dataset).name)

    def find_debit(self, dataset: str, request: str) -> Entry | None:
        """The debit of a request; None where there is none."""
        with self._store.reading() as connection:
            return ledger_entries.find_debit(
                connection, read_name(dataset, "dataset"), read_name(request, "request")
            )

    def requests(self, dataset: str, prefix: str = "", *, answered: bool = False) -> set[str]:
        """The requests that were paid for and begin with a text; none for an unknown dataset.

        Args:
            answered: only those whose answer is stored.
        """
        with self._store.reading() as connection:
            return self._requests(connection, dataset, prefix, answered=answered)

    def unanswered(self, dataset: str, prefix: str = "") -> set[str]:
        """The requests that were paid for, begin with a text and have no stored answer."""
        with self._store.reading() as connection:
            paid = self._requests(connection, dataset, prefix, answered=False)
            return paid - self._requests(connection, dataset, prefix, answered=True)

    def _requests(self, connection: Any, dataset: str, prefix: str, *, answered: bool) -> set[str]:
        name = read_name(dataset, "dataset")
        if not isinstance(prefix, str):
            raise invalid_value("prefix", "the beginning of a request's name", repr(prefix))
        beginning = unicodedata.normalize("NFC", prefix)
        result = ledger_entries.find_requests(connection, name, beginning, answered=answered)
        if self._only is not None:
            result &= ledger_entries.find_own_requests(connection, name, beginning, self._only)
        return result

    def record(self, dataset: str) -> tuple[BudgetState, list[Entry], dict[str, str]]:
        """Everything about a dataset in one consistent view: budget state, entries, stored
        answers."""
        row, history, answers = self.evidence(dataset)
        suspensions = sum(entry.kind == "suspended" for entry in history)
        return ledger_entries.read_budget_state(row, suspensions), history, answers

    def evidence(self, dataset: str) -> tuple[Any, list[Entry], dict[str, str]]:
        """The row, the entries and the answers of a dataset, as they are, in one view."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            history = ledger_entries.read_history(connection, row.name)
            return row, history, ledger_entries.stored_answers(connection, row.name)

    def survey(self) -> None:
        """See that the ledger as a whole is one that a ledger makes (see `survey_ledger`)."""
        with self._store.reading() as connection:
            survey_ledger(connection, self.name, self._store.heads)

    def noted(self, dataset: str) -> tuple[int, str] | None:
        """The number and head of the last entry that was noted beside the file, if any was."""
        heads = self._store.heads
        return None if heads is None else heads.read().get(read_name(dataset, "dataset"))


def _read_spends(spends: object) -> tuple[Spend, ...]:
    """A batch as it may be read more than once."""
    listed = isinstance(spends, Iterable) and not isinstance(spends, str | bytes | Mapping)
    result = tuple(cast(Iterable[object], spends)) if listed else (None,)
    if not all(isinstance(each, Spend) for each in result):
        raise invalid_value("spends", "a list of one Spend or more", repr(spends))
    return cast(tuple[Spend, ...], result)


ENTRY_KINDS = ("debit", "answer", "amended", "suspended", "resumed", "closed")
"""What may follow a registration."""
_STATE_AFTER = {
    "closed": ledger_budget.state_after_closing,
    "suspended": ledger_budget.state_after_suspension,
    "resumed": ledger_budget.state_after_resuming,
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
    if not isinstance(ledger, Ledger):
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
    unanswered = check_whole(row, entries, answers)
    ledger_entries.check_row(row, entries[:-3:-1])
    if noted is not None and (noted[0] > len(entries) or entries[noted[0] - 1].head != noted[1]):
        words = f"entry {noted[0]} is not the one that was noted beside the file"
        raise BrokenHistory(dataset, f"{words}: entries were lost, or an older copy was put back")
    return HistoryCheck(dataset, len(entries), row.debits, unanswered, row.head, noted is not None)


def check_whole(row: Any, entries: Sequence[Entry], answers: Mapping[str, str]) -> tuple[str, ...]:
    """See that a dataset's row, entries and answers fit; returns the requests without an answer."""
    budget_state = ledger_entries.read_budget_state(row)
    debits = [entry for entry in entries if entry.kind == "debit"]
    try:
        _check_chain(budget_state, entries)
        _check_sums(budget_state, entries, debits)
        _check_running(budget_state, entries)
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
    relation = budget_state.budget.relation
    spent = sum((_debit_cost(entry, relation) for entry in debits), Cost(0, 0))
    if spent != budget_state.spent or len(debits) != budget_state.debits:
        raise BrokenHistory(name, "the debits do not add up to what the dataset says was spent")
    by_itself = all(e.body["alone"] and relation not in e.body["costs"] for e in debits)
    if not by_itself and not budget_state.budget.holds(spent):
        raise BrokenHistory(name, "more was spent than the budget")
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
    suspended = False
    for entry in entries:
        if suspended and entry.kind in ("debit", "answer"):
            raise BrokenHistory(name, f"entry {entry.number} was made while it was suspended")
        if entry.kind == "resumed" and not suspended:
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


def _check_running(budget_state: BudgetState, entries: Sequence[Entry]) -> None:
    """Each entry says what all entries up to it add up to."""
    name, relation = budget_state.dataset, budget_state.budget.relation
    spent, debits, state, terms = Cost(0, 0), 0, "open", None
    for entry in entries:
        if entry.kind == "debit":
            spent += _debit_cost(entry, relation)
            debits += 1
            state = "complete" if entry.body["alone"] or budget_state.budget.alone else state
        elif entry.kind in ("closed", "suspended", "resumed"):
            state = _STATE_AFTER[entry.kind](state)
        if entry.body.get("sums") != {**vars(spent), "debits": debits, "state": state}:
            raise BrokenHistory(name, f"the sums of entry {entry.number} are not those up to it")
        if terms is not None and entry.kind != "amended" and entry.body.get("terms") != terms:
            raise BrokenHistory(name, f"entry {entry.number} changes the budget, plan or table")
        terms = entry.body.get("terms")


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
