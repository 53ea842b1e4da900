"""`Session`: parse, estimate, debit, scan, publish.

A batch is checked against the schema, its cost is estimated, it is debited in one transaction, and
only then scanned. Answers are stored before they are returned, and a stored one is returned with
the question that it was stored for. No error, message or refusal depends on the rows. An error
after the debit names the request that continues without paying again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, WhosinError, invalid_value, warn_caller
from whosin.exact import format_epsilon
from whosin.ledger import BudgetState, Debit, Ledger, encoding
from whosin.ledger.budget import Accounts, Budget, Cost, PartLevel, Schedule, Spend, price_spend
from whosin.ledger.budget_state import check_session, open_for_debits
from whosin.ledger.encoding import read_name
from whosin.ledger.entries import ReleaseRecord, same_question
from whosin.ledger.registry import STEP_KEY, add_note, describe_unanswered, describe_unnamed
from whosin.release.answer import Answer, Release, read_answers, read_said
from whosin.release.budget_allocation import estimate_batch_cost, read_queries
from whosin.release.cost import (
    CostEstimate,
    common_part,
    known_cost,
    paid_estimates,
    priced_spends,
)
from whosin.release.engines.base import Progress, share_scans
from whosin.release.queries import Query
from whosin.release.requests import (
    NamedBatch,
    continue_streams,
    describe_batch,
    describe_repeat,
    name_debits,
    read_request,
    require_new_files,
    was_registered,
)
from whosin.release.table import Table, find_last_writes, register_table
from whosin.scenario_model import read_statements

Watch = Callable[[str], Progress | None]
"""Told a query's title when its scan begins; returns whom to tell how far it is."""


@dataclass(eq=False)
class _Batch:
    """What a session was asked at once, by its words: the request that pays, from which number of
    it on, and what the session had spent before."""

    words: str
    request: str
    first: int
    accounts: Accounts
    levels: Mapping[str, PartLevel]
    answered: bool = False


class Session:
    """A session on one table.

    Args:
        table: the data. The first session on a dataset binds its budget to the table: privacy unit,
            domains, bounds, columns and rows.
        plan: whom to protect from whom; its ε is what this session may spend, and the dataset's
            total if the ledger does not know the dataset yet.
        ledger: a file, a database URL, or a `Ledger`.
        dataset: the name in the ledger; the table's own by default. Where the ledger does not know
            that, what a dataset has answered that was registered with this very table is shown.
        who: in whose name.
        request: an id for this session's questions. A session that was interrupted is continued
            under the same id: what was paid is not paid again, what was answered stays the same.
        share: the part of the plan that each batch of this session gets if it does not say: a
            default, and no limit, so that a batch with a larger one spends that. 1 is for a session
            of one batch that may spend everything. Only the share has to be left.
        amend: record that the dataset goes on with this table, such as next month's file, or with
            these domains and bounds, under the same budget (`dataset` says which).
        curator: False for someone who may ask and not decide: the dataset must be registered with
            this very table, and requests of others are not answered.
        new_people: record that nobody is in a dataset with the same privacy unit and columns, as
            the curator's word. A new dataset beside one is refused without it, and rows that have
            a budget under another name always are.
        schedule: how a new dataset's budget is divided over time (see `Schedule.plan`); a batch
            then spends the share of its period by default.
        again: ask anew what was asked before of the same rows under the same plan and at the same
            share, and pay again. Otherwise its stored answers are shown, and cost nothing.
        preflight: look at the rows for the curator before a batch is paid for: what looks like a
            slip refuses it, the rest is a warning and a note. Without `curator` there is none.
        about: who answers for it, and why: [about], and its title; the ledger keeps these words.

    Attributes:
        notes: what people should be told about the session, in sentences.

    Raises:
        BudgetRefused: the plan does not fit what is left, or the budget is for another table.
    """

    def __init__(  # noqa: PLR0913 (public parameters, all by name)
        self,
        table: Table,
        plan: Plan,
        ledger: object,
        *,
        dataset: str | None = None,
        who: str | None = None,
        request: str | None = None,
        share: object = None,
        amend: bool = False,
        curator: bool = True,
        new_people: bool = False,
        schedule: Mapping[str, Any] | None = None,
        again: bool = False,
        preflight: bool = True,
        about: Mapping[str, Any] | None = None,
        queries: Sequence[Query] = (),
    ) -> None:
        if not isinstance(table, Table):
            raise invalid_value("table", "a Table", type(table).__name__)
        if not isinstance(plan, Plan):
            raise invalid_value("plan", "a Plan, such as calibrate(…) makes", type(plan).__name__)
        self.table, self.plan, self.share, self.curator = table, plan, share, curator
        self._opens_ledger = not isinstance(ledger, Ledger)
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, who=who)
        self.dataset = read_name(dataset if dataset is not None else table.name, "dataset")
        self.request = uuid.uuid4().hex if request is None else read_request(request)
        self.notes: tuple[str, ...] = ()
        self._accounts, self._levels, self._asked = Accounts(), dict[str, PartLevel](), 0
        self._batches: dict[str, _Batch] = {}
        self._named = request is not None
        self._again, self._looks = again, preflight and curator
        self._about = read_statements(about or {})
        self.schedule, self._dated, self._unclaimed = schedule, False, ""
        self._queries, self._amends, self._new_people = tuple(queries), amend, new_people
        self._finds = curator and dataset is None and not (request or amend or new_people or again)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def release(
        self,
        queries: Query | Sequence[Query],
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
        again: bool | None = None,
        watch: Watch | None = None,
    ) -> Release:
        """Answer a batch: parse, estimate, debit, scan, publish. What was paid for before is shown.

        Args:
            again: ask it anew, and pay again; by default what the session says.

        Raises:
            BudgetRefused: the batch does not fit, or the look stops it; nothing was spent.
            ScanFailed: the engine failed; the debits of this request stand, and once the curator
                has resumed the dataset they can be used again.
            SourceChanged: the same holds for this, and nothing has to be resumed.
        """
        asked = read_queries(queries)
        budget: dict[str, Any] = {"share": share, "split": split, "noise": noise}
        said = budget | {"share": self.share if share is None else share}
        try:
            words = describe_batch(self.table, self.plan, asked, **said)
        except Exception:  # what is wrong with a question is for its estimate to say
            self._price(asked, Accounts(), {}, **said)
            raise
        admit = partial(self._admit, asked, **budget)
        batch = self._find_batch(words, self._again if again is None else again, admit)
        estimates = self._estimate_costs(asked, batch, **budget)
        paid = self._steps(estimates)
        requests = name_debits(paid, batch.request, split, batch.first)
        debits = self.ledger.find_debits(self.dataset, requests)
        before = {each.request: each.body["what"] for each in debits}
        pairs = zip(paid, requests, strict=True)
        paid = [each.worded(before.get(name, {})) for each, name in pairs]
        new = len(debits) < len(requests)
        if new:
            if self._unclaimed or not debits:  # else this request was used for something
                admit()
            self._look_at_rows(asked, estimates)
            require_new_files(requests, paid, debits)
        elif not self._named and describe_repeat(batch.request) not in self.notes:
            self._note(describe_repeat(batch.request))
        shown = not (new or self._named) and all(
            debit.answer is not None and same_question(debit, estimate.spend.what)
            for debit, estimate in zip(debits, paid, strict=True)
        )
        if shown:  # whatever it would cost today
            self._begin(batch, paid)
        else:
            debits = self._debit_costs(batch, requests, paid, new=new)
        stored = self._scan_table(debits, paid, watch)
        return self._publish_answers(batch, debits, estimates, stored)

    def _find_batch(
        self, words: Mapping[str, Any], again: bool, admit: Callable[[], None]
    ) -> _Batch:
        """Where a batch is paid: what was begun goes on, and what was asked before is shown."""
        if not self._named and find_last_writes(self.table) != self._written:
            self._register(rows=True)
        said = encoding.canonical_json(words)
        known = self._batches.get(said)
        same = self._named or not self.registration.source  # nobody can see whether rows changed
        if known is not None and (not known.answered or (same and not again)):
            batch = known
        else:
            request = self.request if self._named else self._name_request(words, again, admit)
            first = self._asked if self._named else 0
            batch = _Batch(said, request, first, self._accounts, dict(self._levels))
            if known is not None and (known.request, known.first) == (request, first):
                batch = known
        self.request = batch.request
        return batch

    def _estimate_costs(
        self, asked: Sequence[Query], batch: _Batch, **budget: Any
    ) -> list[CostEstimate]:
        """The cost of each query, after what the session had spent before the batch; of one that
        was paid for in another session, where that is too much, as though it were the first."""
        budget["beside"] = f"{batch.request}/{batch.first}"
        try:
            return self._price(asked, batch.accounts, batch.levels, **budget)
        except BudgetRefused:
            if not self.ledger.requests(self.dataset, f"{batch.request}/"):
                raise
            return self._price(asked, Accounts(), {}, **budget)

    def _look_at_rows(self, asked: Sequence[Query], estimates: Sequence[CostEstimate]) -> None:
        """The curator's look, once for a batch, and never at one that was paid for."""
        if not self._looks:
            return
        from whosin.release.inspection import look_before_debit

        home = self.ledger, self.dataset
        found = look_before_debit(self.table, asked, estimates, *home, dated=self._dated)
        if found.stops or found.changed_periods:
            raise found.refuse("Session(…, preflight=False)", details=True)
        for line in found.lines:
            self._note(f"before the debit, for the curator alone: {line}", warn=True)

    def _debit_costs(
        self, batch: _Batch, requests: Sequence[str], paid: Sequence[CostEstimate], *, new: bool
    ) -> list[Debit]:
        """All debits in one transaction, or none."""
        priced = priced_spends(paid, self.registration, self.table)
        spends = dict(zip(requests, priced, strict=True))
        if new:
            self._fix_universe(spends.values())
        before = dict(self._batches)
        self._begin(batch, paid)
        try:
            return self.ledger.debits(self.dataset, spends, self._said())
        except BudgetRefused:
            self._undo(batch, before)
            raise
        except BaseException as error:
            try:
                stand = bool(self.ledger.find_debits(self.dataset, requests))
            except WhosinError:  # whoever cannot look cannot say that nothing was spent
                unknown = f"request {self.request} continues, and pays once"
                raise add_note(error, unknown) from None
            if stand:
                raise add_note(error, describe_unanswered(self.request)) from None
            self._undo(batch, before)
            raise add_note(error, "nothing was debited for this batch") from None

    def list_publications(self) -> tuple[ReleaseRecord, ...]:
        """All releases of the dataset, for its curator."""
        return self.ledger.publications(self.dataset) if self.curator else ()

    def _said(self) -> dict[str, Any]:
        """What a report of the answers must say, and no registration does."""
        looked_up = [name for name, each in self.table.domains.items() if each.from_rows]
        said = {"declared": {"people": self.table.people, "looked_up": looked_up}}
        return said | ({"about": self._about} if self._about else {})

    def _begin(self, batch: _Batch, paid: Sequence[CostEstimate]) -> None:
        """Count what a batch costs as spent by this session, once."""
        if self._batches.get(batch.words) is batch:
            return
        self._batches[batch.words] = batch
        for spend in (estimate.spend for estimate in paid):
            level = self._levels.get(spend.part or "", PartLevel())
            priced = price_spend(spend, self.plan)
            self._accounts, level = self._accounts.pay(priced, self.plan.relation, level)
            self._levels[spend.part or ""] = level
            self._asked += STEP_KEY not in spend.what

    def _undo(self, batch: _Batch, before: dict[str, _Batch]) -> None:
        """Nothing was debited for a batch, unless it was begun before."""
        if before.get(batch.words) is not batch:
            self._batches, self._asked = before, batch.first
            self._accounts, self._levels = batch.accounts, dict(batch.levels)

    def _scan_table(
        self, debits: Sequence[Debit], paid: Sequence[CostEstimate], watch: Watch | None
    ) -> list[Any]:
        """Scan, draw and store what has no stored answer; a failure suspends the dataset. Files
        get their names when their answers are stored."""
        files = [number for number, each in enumerate(paid) if each.query.writes_file]
        owner, drawn = "", dict[int, Any]()
        scanned, missing = dict[int, Any](), [n for n, each in enumerate(debits) if not each.answer]
        places = {id(paid[number].expression): number for number in missing}  # steps share theirs
        scans = share_scans({number: paid[number].expression for number in places.values()})
        if files:
            from whosin.release.synthetic_tables import draft_owner, remove_drafts

            owner = draft_owner(self.ledger, self.dataset)
            for number in files:
                if debits[number].answer is None:
                    remove_drafts(self.ledger, self.dataset, Path(paid[number].query.path).parent)

        def draw(number: int) -> object:
            estimate = paid[number]
            progress = watch(estimate.query.title) if watch is not None else None
            asked = estimate.query.restrict_table(self.table)
            scan = scans[places[id(estimate.expression)]]
            ready = replace(estimate, owner=owner, expression=scan, scanned=scanned)
            data = dict(estimate.query.answer(asked, ready, progress))
            drawn[number] = {**data, "noise": estimate.noise}
            return drawn[number]

        try:
            stored = self.ledger.answer_debits(debits, self.request, draw)
        except BaseException:
            for number in drawn.keys() & set(files):
                if self._unanswered(debits[number]):
                    paid[number].query.publish(self.table, drawn[number], None)
            raise
        for number in files:
            said = paid[number].query.publish(self.table, drawn.get(number), stored[number])
            self.notes += () if said is None else (said,)
        return stored

    def _publish_answers(
        self,
        batch: _Batch,
        debits: Sequence[Debit],
        estimates: Sequence[CostEstimate],
        stored: Sequence[Any],
    ) -> Release:
        """The stored answers in the order of the queries, and where the dataset stands now."""
        relation, pairs = self.plan.relation, iter(zip(debits, stored, strict=True))
        found = {}
        for each in paid_estimates(estimates):
            count_steps = len(each.query.steps(each.query.restrict_table(self.table), each))
            own = [(debit.body, answer) for debit, answer in islice(pairs, count_steps)]
            found[id(each)] = iter(read_answers(own, each.noise, relation))
        answers = tuple(
            replace(next(found[id(each.paid)]), title=each.query.title) for each in estimates
        )
        batch.answered = True
        try:
            when = max((str(debit.body.get("when", "")) for debit in debits), default="")
            people = self.ledger.people_budget(self.dataset) if self.curator else None
            state = self.ledger.budget_state(self.dataset, parts=True)
            said = [each.body for each in debits]
            return Release(self.request, answers, state, when, people, **read_said(said))
        except BaseException as error:
            raise add_note(error, describe_unanswered(self.request)) from None

    def ask(
        self,
        query: Query,
        *,
        share: object = None,
        noise: str = "laplace",
        again: bool | None = None,
    ) -> Answer:
        """Answer one query, debited before it is drawn; as `release` does."""
        return self.release(query, share=share, noise=noise, again=again)[0]

    def sql(
        self,
        sql: str,
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
        again: bool | None = None,
        watch: Watch | None = None,
    ) -> Release:
        """Answer a SELECT, an answer for each of its aggregates; as `release` does."""
        budget: dict[str, Any] = {"share": share, "split": split, "noise": noise}
        return self.release(self.parse_sql(sql), again=again, watch=watch, **budget)

    def parse_sql(self, sql: str) -> tuple[Query, ...]:
        """The queries that a SELECT asks, for `dry_run` or `release`; nothing is spent."""
        from whosin.release.sql import parse_queries

        return parse_queries(sql, self.table, (self.dataset,))

    def dry_run(
        self,
        queries: Query | Sequence[Query],
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
    ) -> list[CostEstimate]:
        """What a batch would cost and how good it would be; nothing is spent, no row is read.

        Args:
            share: the part of the plan's budget for this batch, such as "1/10"; more than what is
                left is refused. By default the session's own, of which 1 means all that is left. A
                plan for one query (`calibrate(…, query=…)`) needs none.
            split: "weights" or "relative-error" (see `split_budget`), or "optimal" (see
                `least_error`): counts of the same people are then measured at once.
            noise: "laplace" or "gaussian".
        """
        budget: dict[str, Any] = {"share": share, "split": split, "noise": noise}
        budget["beside"] = f"{self.request}/{self._asked}" if self._named else ""
        return self._price(read_queries(queries), self._accounts, self._levels, **budget)

    def _price(
        self,
        asked: Sequence[Query],
        accounts: Accounts,
        levels: Mapping[str, PartLevel],
        *,
        share: object,
        beside: str = "",
        **budget: str,
    ) -> list[CostEstimate]:
        """What a batch costs after this was spent."""
        paid = continue_streams(self.ledger, self.dataset, self.table, self.plan, asked, beside)
        if len(paid) == len(asked):
            return list(paid.values())
        own = share is None
        if share is None:
            share = self._find_share() if self.plan.query is None else 1
            sized = share is None and all(query.within is not None for query in asked)
            share = 1 if sized else share
        if share is None:
            raise InvalidInput(
                "share is missing: which part of the plan's budget these questions may spend",
                field="share",
                hint='give it, such as share="1/10", or share=1 for all of it; Session(…, share=1) '
                "gives it for every batch",
            )
        new = estimate_batch_cost(
            self.table,
            self.plan,
            [query for number, query in enumerate(asked) if number not in paid],
            self._seen_from(asked, accounts, levels),
            share=share,
            capped=own,
            **budget,
        )
        rest = iter(new)
        return [paid.get(number) or next(rest) for number in range(len(asked))]

    def _steps(self, estimates: Sequence[CostEstimate]) -> list[CostEstimate]:
        """All that is debited for estimates, streams step by step."""
        asked = paid_estimates(estimates)
        listed = (each.query.steps(each.query.restrict_table(self.table), each) for each in asked)
        found = list(chain.from_iterable(listed))
        registered = self.budget_state.registered if any(each.request for each in found) else None
        return [replace(each, seal=registered and registered.seal_rows) for each in found]

    def _open(self) -> None:
        known = self.dataset in self.ledger.datasets()
        if not known and not self.curator:
            raise BudgetRefused(
                f"dataset {self.dataset!r} has no budget in this ledger",
                field="dataset",
                value=self.dataset,
                hint="its curator opens one with whosin ledger create",
            )
        self._register(rows=self._amends or not known)
        if self._named and self._paid():
            return
        if not self.curator:
            self._check_registered()
        if not known and self._find_dataset():
            return
        if known and self._queries:  # when they are asked: then it is known what they cost
            return
        asked = known and not (self._named or self._again)
        asked = asked and bool(self.ledger.requests(self.dataset))
        if asked and not self._is_registered():
            today = register_table(self.table, (), rows=True)
            if self.curator and was_registered(self.ledger, self.dataset, today):
                return  # what was asked of it is shown, and nothing is amended for that
            asked = False
        try:
            self._admit()
        except BudgetRefused:
            if not asked:  # else what was asked before is shown without a budget
                raise

    def _register(self, *, rows: bool) -> None:
        self._written, self._admitted = find_last_writes(self.table), False
        self.registration = register_table(self.table, self._queries, rows=rows)

    def _admit(self, asked: Sequence[Query] = (), **budget: Any) -> None:
        """See that the plan, or what is asked of it, fits what is left, and that the dataset is
        registered with this table, once, before anything is paid."""
        if self._admitted:
            return
        if self._unclaimed:  # nobody said that this goes on under that budget
            self.ledger.claim_people(self._unclaimed, self.registration, new_people=False)
        cost = None
        if asked:
            cost = known_cost(self._price(asked, self._accounts, self._levels, **budget), self.plan)
        known = self.dataset in self.ledger.datasets()
        amend = known and (self._amends or self._corrects()) and not self._is_registered()
        streams = self.ledger, self.dataset, self.table, self.plan, asked
        continues = known and bool(asked) and len(continue_streams(*streams)) == len(asked)
        paid = continues or bool(self._batches)  # a session goes on: each debit is checked
        share = None if paid else self._find_share()
        part = common_part(asked or self._queries, self.table)
        budget_state = self.ledger.admit(
            self.dataset,
            self.plan,
            resume=share is None,
            share=share,
            registration=self.registration,
            amend=amend,
            new_people=self._new_people,
            schedule=self.schedule,
            part=part,
            cost=cost,
            paid=paid,
        )
        if not paid:
            self._check_remaining(budget_state, part, share, cost)
        self._admitted = True

    def _find_share(self) -> object:
        """What a batch may spend that does not say: with a schedule the share of the period in
        which this request was paid before, or of today's."""
        if self.share is not None or self.plan.query is not None:
            return self.share
        budget, moments = Budget.of(self.plan), list[str]()
        today = encoding.utc_now().date().isoformat()
        known = self.dataset in self.ledger.datasets()
        schedule = self.ledger.budget_state(self.dataset).schedule if known else None
        if schedule is not None and (paid := self._paid()):
            entries = self.ledger.history(self.dataset)
            moments = [each.body["when"][:10] for each in entries if each.request in paid]
        if not known and self.schedule is not None:
            schedule = Schedule.plan(self.schedule, budget, today)
        self._dated = schedule is not None
        return schedule and schedule.share(min(moments, default=today), budget)

    def _check_remaining(
        self, state: BudgetState, part: str | None, share: object, cost: Cost | None
    ) -> None:
        """Refuse a session where nothing is left; say so where it takes most of what is left."""
        if part is not None:
            state = state.seen_from(self.ledger.part_levels(self.dataset, [part])[part])
        budget, everyone = Budget.of(self.plan), replace(state, spent=state.accounts.everyone)
        of_parts = self.table.part is not None and everyone.spendable_units > 0
        if not (state.spendable_units or of_parts):  # a part may have what the whole has not
            check_session(state, self.plan, budget, cost=cost)
        own = budget.part(share).epsilon if share else 0
        own = min(own, cost.epsilon if cost is not None else own)
        if state.debits and 2 * own > state.spendable_units:
            taken = format_epsilon(Fraction(own, encoding.EPSILON_UNITS))
            words = f"has ε = {format_epsilon(state.spendable)} left, and this session takes"
            self._note(f"dataset {self.dataset!r} {words} {taken} of it")

    def _name_request(
        self, words: Mapping[str, Any], again: bool, admit: Callable[[], None]
    ) -> str:
        """The request that paid for a batch about the same rows before, or its new name.

        Raises:
            BudgetRefused: it was asked of rows that have changed since, and nobody said whether
                today's rows are to be asked.
        """
        asked, who = self.registration, "" if self.curator else self.ledger.who
        if self.curator and (asked.lives or not self._is_registered()):
            asked = register_table(self.table, self._queries, rows=True)
        batch = NamedBatch(self.ledger, self.dataset, self.plan, words, asked, who)
        if not self._is_registered():
            if not again and self.curator and (answered := batch.find_answered()) is not None:
                return answered
            admit()
        name = batch.name(again=again)
        if again and self.ledger.requests(self.dataset, f"{name}/"):
            return uuid.uuid4().hex
        if not (again or self._amends):
            batch.require_same_rows(name)
        return name

    def _is_registered(self) -> bool:
        """Whether the dataset is registered with this very table already."""
        registered = self.ledger.budget_state(self.dataset).registered
        return registered is not None and registered.difference(self.registration) is None

    def _corrects(self) -> bool:
        """Whether a curator declares other domains of the same table before anything was paid for,
        such as what the look at its rows found."""
        state = self.budget_state
        if not self.curator or state.registered is None or state.debits:
            return False
        return state.registered.difference(replace(self.registration, domains={})) is None

    def _check_registered(self) -> None:
        """Someone who may not decide finds everything decided."""
        state = self.budget_state
        if state.registered is None:
            raise BudgetRefused(describe_unnamed(self.dataset))
        try:
            state.registered.check(self.dataset, self.registration)
        except BudgetRefused:
            open_for_debits(state)  # what is closed says that first
            raise

    def _find_dataset(self) -> bool:
        """Take one that was registered with this very table, where none was named: what it has
        answered is shown."""
        held = self.ledger.copies(self.dataset, self.registration) if self._finds else []
        found = next((n for n in held if was_registered(self.ledger, n, self.registration)), None)
        if found is not None:
            self._note(f"these rows are part of dataset {found!r}: what it has answered is shown")
            self._unclaimed, self.dataset = self.dataset, found
        return found is not None

    def _note(self, words: str, *, warn: bool = False) -> None:
        self.notes += (words,)
        if warn:
            warn_caller(words)

    @property
    def budget_state(self) -> BudgetState:
        """Where the dataset stands."""
        return self.ledger.budget_state(self.dataset)

    def _fix_universe(self, spends: Iterable[Spend]) -> None:
        """The first maximum says who could be in, once and for all, if whoever asks may."""
        named = (each.registration for each in spends if each.registration is not None)
        universes = {each.universe for each in named} - {None}
        if not universes or not self.curator:
            return
        state, known = self.budget_state, self.budget_state.registered
        if known is not None and known.registration.universe is None and not state.debits:
            self.registration = replace(self.registration, universe=universes.pop())
            self.ledger.amend(self.dataset, self.registration)

    def _seen_from(
        self, queries: Sequence[Query], accounts: Accounts, levels: Mapping[str, PartLevel]
    ) -> Cost:
        """What was spent, as it matters to a batch: to one about one part alone, only what was
        spent there and on everyone."""
        part = common_part(queries, self.table)
        if part is None:
            return accounts.total
        return accounts.seen_from(levels.get(part, PartLevel()), self.plan.relation)

    def _unanswered(self, debit: Debit) -> bool:
        """Whether the ledger is known to have no answer: a failed store may have stored it."""
        try:
            return debit.request in self.ledger.unanswered(self.dataset, debit.request)
        except WhosinError:
            return False

    @property
    def continues(self) -> bool:
        """Whether something was debited under this session's request."""
        return bool(self._paid())

    def _paid(self) -> set[str]:
        """The requests of this session that were debited before."""
        return self.ledger.requests(self.dataset, f"{self.request}/")

    def __repr__(self) -> str:
        """Which budget it draws on, and under which request."""
        about = f"{self.dataset!r} in {self.ledger.name}, ε = {format_epsilon(self.plan.epsilon)}"
        return f"Session on {about}, request {self.request}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger if this session opened it; one that was handed over stays open."""
        if self._opens_ledger:
            self.ledger.dispose()
