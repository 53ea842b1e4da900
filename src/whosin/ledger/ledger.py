"""`Ledger`: debit, answer, show, keep quotas.

A debit is durable before noise is drawn (`transaction.Transaction.commit`), and an answer is stored
before it is shown.
"""

from __future__ import annotations

import json
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import date
from fractions import Fraction
from time import monotonic
from typing import Any, cast

from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    SourceChanged,
    UnknownName,
    WhosinError,
    invalid_value,
    warn_caller,
)
from whosin.exact import format_figures, rational
from whosin.ledger import budget_state as states
from whosin.ledger import encoding, registry
from whosin.ledger import entries as ledger_entries
from whosin.ledger.budget import (
    JOINT_FAMILIES,
    ZERO_COST,
    Cost,
    PartLevel,
    Quota,
    Spend,
    price_spend,
)
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.encoding import read_name
from whosin.ledger.entries import Debit, Entry, ReleaseRecord
from whosin.ledger.registration import Registration
from whosin.ledger.registry import Registry, suspend_dataset
from whosin.ledger.transaction import Transaction
from whosin.ledger.verification import survey_ledger

MAX_UNSTORED_SECONDS = 1.0
"""How long answers that were drawn wait for others to be stored with them."""

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

    def __repr__(self) -> str:
        """Where it is, and in whose name it is asked."""
        return f"Ledger({self.name!r}, who={self.who!r})"

    def check(
        self, dataset: str, spends: Iterable[Spend], *, amended: Registration | None = None
    ) -> BudgetState:
        """Whether these questions could all be paid now; nothing is spent.

        Args:
            amended: the table that the dataset would go on with.

        Raises:
            BudgetRefused: they could not.
        """
        asked = _read_spends(spends)
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            budget_state = ledger_entries.read_budget_state(row)
            parts = {spend.part for spend in asked if spend.part is not None}
            levels = {each: ledger_entries.part_level(connection, row.name, each) for each in parts}
            moment = self._store.stamp(connection)
        asked = tuple(price_spend(each, budget_state.plan) for each in asked)
        if amended is not None and (known := budget_state.registered) is not None:
            after, accounts = known.amended(row.name, amended), budget_state.accounts.begin_parts()
            budget_state = replace(budget_state, registered=after, accounts=accounts)
        states.pay_debits(budget_state, asked, levels, self.who, moment)
        return budget_state

    def debit(self, dataset: str, request: str, spend: Spend) -> Debit:
        """Pay for a question. When this returns, the debit is on disk.

        Raises:
            BudgetRefused: it would exceed the budget, or the request was used for another question.
        """
        if not isinstance(spend, Spend):
            raise invalid_value("spend", "a Spend", repr(spend))
        return self.debits(dataset, {request: spend})[0]

    def debits(
        self, dataset: str, spends: Mapping[str, Spend], said: Mapping[str, Any] | None = None
    ) -> list[Debit]:
        """Pay for questions by request, all of them in one transaction or none.

        Args:
            said: what the first of them keeps of the release: who answers for it and why (`about`),
                and what was declared of the table (`declared`), in the curator's words.

        Raises:
            BudgetRefused: together they would exceed the budget, a request was used for another
                question, or they are about another table than the dataset's.
        """
        asked = {read_name(key, "request"): spend for key, spend in spends.items()}
        _read_spends(list(asked.values()))
        parts = list(dict.fromkeys(each.part for each in asked.values() if each.part is not None))
        with self._turn(dataset, *asked, parts=parts) as turn:
            row, budget_state = turn.row, ledger_entries.read_budget_state(turn.row)
            asked = {key: price_spend(each, budget_state.plan) for key, each in asked.items()}
            for key, paid in turn.debits.items():
                registry.other_question(paid, asked[key], self._only)
                if key not in turn.answers:
                    registry.other_table(paid, asked[key], budget_state)
            if asked.keys() - turn.answers.keys():
                states.refuse_suspended(budget_state)
            new = {key: spend for key, spend in asked.items() if key not in turn.debits}
            if new:
                paid_from = states.pay_debits(
                    budget_state, list(new.values()), turn.levels, self.who, turn.time
                )
                _check_joint(turn, budget_state, list(new.values()))
                made, kept = list[Entry](), list[str | None]()
                levels = dict[str, PartLevel]()
                for (key, spend), (accounts, level, quota) in zip(
                    new.items(), paid_from, strict=True
                ):
                    spent, ends = (
                        accounts.total,
                        spend.ends(budget_state.budget, budget_state.registered),
                    )
                    kept.append(accounts.text())
                    levels |= {} if spend.part is None else {spend.part: level}
                    changes = {
                        "accounts": kept[-1],
                        "spent_epsilon": spent.epsilon,
                        "spent_rho": spent.rho,
                        "spent_delta": spent.delta,
                        "debits": row.debits + 1,
                        "state": "complete" if ends else row.state,
                    }
                    about = {} if made else encoding.plain_copy(said or {}, "said")
                    about |= spend.to_dict() | states.check_registration(budget_state, spend)
                    about |= {} if quota is None else {"quota": quota}
                    body = self._signed(about, turn.time)
                    entry, row = ledger_entries.next_entry(row, "debit", key, body, **changes)
                    made.append(entry)
                turn.commit(row, *made, accounts=kept, levels=levels, settle=False)
                turn.debits.update({str(entry.request): entry for entry in made})
        return [
            Debit(row.name, key, key in new, turn.answers.get(key), turn.debits[key].body)
            for key in asked
        ]

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
                budget_state = ledger_entries.read_budget_state(row)
                states.refuse_suspended(budget_state)
                states.check_clock(budget_state, turn.time)
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
                if debit.answer is None:
                    drawn[number] = draw(number)
                else:
                    found[number] = json.loads(debit.answer)
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

    def answers(self, dataset: str, prefix: str) -> dict[str, Any]:
        """The stored answers of the requests that begin with a text."""
        with self._store.reading() as connection:
            name = read_name(dataset, "dataset")
            stored = ledger_entries.stored_answers(connection, name, prefix)
        return {request: json.loads(text) for request, text in stored.items()}

    def find_continued(self, table: str) -> list[str]:
        """The datasets whose history has a table, or a file of one, of this name."""
        histories = ((name, self.history(name)) for name in self.datasets())
        known = (
            (name, str(each.body.get("table", ""))) for name, past in histories for each in past
        )
        found = (name for name, each in known if table in (each, *each[:-1].split(" (")))
        return list(dict.fromkeys(found))

    def find_debit(self, dataset: str, request: str) -> Entry | None:
        """The debit of a request; None where there is none."""
        with self._store.reading() as connection:
            return ledger_entries.find_debit(
                connection, read_name(dataset, "dataset"), read_name(request, "request")
            )

    def find_debits(self, dataset: str, requests: Iterable[str]) -> list[Debit]:
        """The debits of those of these requests that were paid for, with their stored answers."""
        with self._turn(dataset, *(read_name(each, "request") for each in requests)) as turn:
            return [
                Debit(turn.row.name, key, False, turn.answers.get(key), entry.body)
                for key, entry in turn.debits.items()
                if self._only in (None, entry.body.get("who"))
            ]

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
        return ledger_entries.find_requests(
            connection, name, beginning, answered=answered, who=self._only
        )

    def record(self, dataset: str) -> tuple[BudgetState, list[Entry], dict[str, str]]:
        """Everything about a dataset in one consistent view: budget state, entries, stored
        answers."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            history = ledger_entries.read_history(connection, row.name)
            answers = ledger_entries.stored_answers(connection, row.name)
            parts = ledger_entries.part_levels(connection, row.name, states.MAX_SHOWN_PARTS)
        suspensions = sum(entry.kind == "suspended" for entry in history)
        state = ledger_entries.read_budget_state(row, suspensions)
        return replace(state, parts=parts), history, answers

    def publications(self, dataset: str) -> tuple[ReleaseRecord, ...]:
        """The answered releases of a dataset, oldest first."""
        relation = self.budget_state(dataset).plan.relation
        return ledger_entries.list_publications(self.history(dataset), relation)

    @contextmanager
    def replaying(self, dataset: str) -> Iterator[tuple[Any, Iterator[tuple[Any, object]], Any]]:
        """The row of a dataset, the rows of its entries one by one, and the connection, in one
        view."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            with closing(ledger_entries.stream_history(connection, row.name)) as entries:
                yield row, entries, connection

    def part_levels(
        self, dataset: str, parts: Iterable[str] | None = None, *, most: int = -1
    ) -> dict[str, PartLevel]:
        """What the parts of a dataset, or these of them, have come to; most costly first."""
        with self._store.reading() as connection:
            name = self._find(connection, dataset).name
            if parts is None:
                return ledger_entries.part_levels(connection, name, most)
            return {each: ledger_entries.part_level(connection, name, each) for each in parts}

    def set_quota(
        self,
        dataset: str,
        name: str,
        share: object,
        *,
        until: str | None = None,
        members: Sequence[str] = (),
    ) -> BudgetState:
        """Keep a share of the total for some people, or change what is kept for them.

        Args:
            share: of the whole total, from 0 to 1: all that they may spend, with what they spent.
            until: the last day, such as "2027-12-31", or "" for no end; as before by default.
            members: whose answers are paid from it; as before by default, and of a new or revoked
                quota whoever has its name.

        Raises:
            BudgetRefused: together with what was spent and what is kept for others it would be
                more than the total.
        """
        said = {read_name(each, "member") for each in members}
        last = until and _read_day(until)

        def change(state: BudgetState, day: str) -> dict[str, Quota]:
            known = state.accounts.quotas
            before = known.get(name, Quota(ZERO_COST))
            named = tuple(sorted(said)) or before.members or (read_name(name, "member"),)
            ends = before.until if last is None else last
            if ends and ends < day:
                raise InvalidInput(f"until {ends} is over", field="until", value=ends)
            for other, each in known.items():
                twice = {*named} & {*each.members} if each.is_open(day) and other != name else ()
                if twice:
                    message = f"{min(twice)!r} is a member of quota {other!r} already"
                    raise InvalidInput(message, field="members", value=min(twice))
            limit = _read_limit(state, share)
            more = limit.less(before.spent)
            if name in known and not before.members and not (more.epsilon or more.rho):
                raise _refuse_revoked(
                    state, name, "a larger share opens it again, and a new name begins another one"
                )
            return {name: Quota(limit, before.spent, ends, named)}

        state = self._change_quotas(dataset, "set", name, change)
        for each in self._store.missing_roles(state.accounts.quotas[name].members):
            warn_caller(
                f"the ledger's server has no role {each!r}: only a curator could ask in that name"
            )
        return state

    def move_quota(self, dataset: str, name: str, share: object, to: str) -> BudgetState:
        """Move a share of the total, unspent, from one quota to another one."""

        def change(state: BudgetState, day: str) -> dict[str, Quota]:
            giver, taker = _find_quota(state, name), _find_quota(state, to)
            moved = _read_limit(state, share)
            if not taker.members:
                raise _refuse_revoked(state, to, "a --share of its own opens it again")
            if name == to or not moved.within(giver.limit.less(giver.spent)):
                message = f"quota {name!r} has less than {share} of the budget left to move"
                raise BudgetRefused(message, field="share", value=str(share))
            return {
                name: replace(giver, limit=giver.limit.less(moved)),
                to: replace(taker, limit=taker.limit + moved),
            }

        return self._change_quotas(dataset, "moved", name, change)

    def revoke_quota(self, dataset: str, name: str) -> BudgetState:
        """Take back what is unspent of a quota: its members are then like everyone else."""

        def change(state: BudgetState, day: str) -> dict[str, Quota]:
            quota = _find_quota(state, name)
            if not quota.members:
                raise _refuse_revoked(state, name, "nothing is kept for anyone")
            spent = quota.limit.less(quota.limit.less(quota.spent))
            return {name: replace(quota, limit=spent, members=())}

        return self._change_quotas(dataset, "revoked", name, change)

    def _change_quotas(
        self,
        dataset: str,
        how: str,
        name: str,
        change: Callable[[BudgetState, str], dict[str, Quota]],
    ) -> BudgetState:
        read_name(name, "quota")
        with self._turn(dataset) as turn:
            state, day = ledger_entries.read_budget_state(turn.row), turn.time[:10]
            states.open_for_debits(state)
            changed = change(state, day)
            accounts = replace(state.accounts, quotas={**state.accounts.quotas, **changed})
            if len(accounts.quotas) > MAX_QUOTAS:
                message = f"a dataset has at most {MAX_QUOTAS} quotas"
                raise InvalidInput(message, field="quota", value=name)
            for each, quota in changed.items():
                if not quota.spent.within(quota.limit):
                    message = f"quota {each!r} has spent more than this share already"
                    raise BudgetRefused(message, field="share", hint="revoke it, or give it more")
            if not (accounts.total + accounts.kept(day)).within(state.budget.limit):
                rest = {k: each for k, each in accounts.quotas.items() if k not in changed}
                others = replace(state.accounts, quotas=rest)
                left = state.budget.limit.less(state.spent + others.kept(day))
                free = Fraction(left.epsilon, state.budget.epsilon)
                raise BudgetRefused(
                    f"quota {name!r} would keep more than the {format_figures(free, 4, 'down')} of "
                    f"the budget of dataset {state.dataset!r} that is neither spent nor kept for "
                    "others",
                    field="share",
                )
            listed = {each: quota.to_dict() for each, quota in changed.items()}
            said = {"quota": name, "change": how, "quotas": listed}
            self._append(turn, "quota", said, accounts=accounts.text())
        return self.budget_state(dataset)

    def survey(self) -> None:
        """See that the ledger as a whole is one that a ledger makes (see `survey_ledger`)."""
        with self._store.reading() as connection:
            survey_ledger(connection, self.name, self._store.heads)

    def noted(self, dataset: str) -> tuple[int, str] | None:
        """The number and head of the last entry that was noted beside the file, if any was."""
        heads = self._store.heads
        return None if heads is None else heads.read().get(read_name(dataset, "dataset"))


def _check_joint(turn: Transaction, budget_state: BudgetState, spends: Sequence[Spend]) -> None:
    """Levels that were measured jointly do not add with others: all debits or none are joint.
    Joint ones are made of datasets without a table, and where levels do not follow from ε."""
    if not budget_state.debits or budget_state.registered is not None:
        return
    family = budget_state.plan.family.name
    if budget_state.budget.relation != "replace" and family not in JOINT_FAMILIES:
        return
    joint = {"after" in turn.first_debit().body, *(spend.after is not None for spend in spends)}
    if len(joint) > 1:
        message = "releases that are measured jointly do not add with other answers"
        hint = "register a dataset of its own for either"
        raise BudgetRefused(message, field="dataset", value=budget_state.dataset, hint=hint)


MAX_QUOTAS = 100


def _read_limit(state: BudgetState, share: object) -> Cost:
    """A share of a dataset's total; nothing at 0."""
    return state.budget.part(share).limit if rational(share, "share") else ZERO_COST


def _find_quota(state: BudgetState, name: str) -> Quota:
    if name not in state.accounts.quotas:
        raise UnknownName("quota", name, state.accounts.quotas)
    return state.accounts.quotas[name]


def _refuse_revoked(state: BudgetState, name: str, hint: str) -> BudgetRefused:
    spent = Fraction(state.accounts.quotas[name].limit.epsilon, state.budget.epsilon)
    had = f"after it had spent {format_figures(spent, 4)} of the budget"
    return BudgetRefused(f"quota {name!r} was revoked {had}", field="quota", value=name, hint=hint)


def _read_day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise invalid_value("until", "a day, such as 2027-12-31", repr(value)[:80]) from None


def _read_spends(spends: object) -> tuple[Spend, ...]:
    """A batch as it may be read more than once."""
    listed = isinstance(spends, Iterable) and not isinstance(spends, str | bytes | Mapping)
    result = tuple(cast(Iterable[object], spends)) if listed else (None,)
    if not all(isinstance(each, Spend) for each in result):
        raise invalid_value("spends", "a list of one Spend or more", repr(spends))
    return cast(tuple[Spend, ...], result)
