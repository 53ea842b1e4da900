"""`Session`: parse, estimate, debit, scan, publish.

A batch is checked against the schema, its cost is estimated, it is debited in one transaction, and
only then scanned. Answers are stored before they are returned, and a stored one is returned with
the question that it was stored for. No error, message or refusal depends on the rows. An error
after the debit names the request that continues without paying again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, WhosinError, invalid_value, warn_caller
from whosin.exact import format_epsilon
from whosin.ledger import BudgetState, Debit, Ledger, encoding
from whosin.ledger.encoding import read_name
from whosin.ledger.entries import ReleaseRecord, same_question
from whosin.ledger.registry import add_note, describe_unanswered
from whosin.release.admission import Admission
from whosin.release.answer import Answer, Release, read_answers, read_said
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.cost import (
    CostEstimate,
    Spending,
    common_part,
    paid_estimates,
    priced_spends,
)
from whosin.release.engines.base import Progress, share_scans
from whosin.release.queries import Query
from whosin.release.requests import (
    Batch,
    continue_streams,
    describe_batch,
    describe_repeat,
    name_debits,
    read_queries,
    read_request,
    require_new_files,
)
from whosin.release.table import Table
from whosin.scenario_model import read_statements

Watch = Callable[[str], Progress | None]
"""Told a query's title when its scan begins; returns whom to tell how far it is."""


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
        self._named, self._again, self._looks = request is not None, again, preflight and curator
        self.request = uuid.uuid4().hex if request is None else read_request(request)
        self._notes: list[str] = []
        self._looked: Sequence[Query] | None = None
        self._spent, self._batches = Spending(), dict[str, Batch]()
        self._about = read_statements(about or {})
        find = curator and dataset is None and not (request or amend or new_people or again)
        self._admission = Admission(
            table,
            plan,
            self.ledger,
            read_name(dataset if dataset is not None else table.name, "dataset"),
            curator=curator,
            share=share,
            schedule=schedule,
            amends=amend,
            new_people=new_people,
            queries=tuple(queries),
            notes=self._notes,
        )
        try:
            self._admission.open(self.request, continues=self._named, again=again, find=find)
        except BaseException:
            self.close()
            raise

    @property
    def dataset(self) -> str:
        """The dataset's name in the ledger."""
        return self._admission.dataset

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should be told about the session, in sentences."""
        return tuple(self._notes)

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
        batch = self._find_batch(asked, self._again if again is None else again, budget)
        estimates = self._estimate_costs(asked, batch, budget)
        paid, debits = self._debit_costs(asked, batch, estimates, budget)
        stored = self._scan_table(debits, paid, watch)
        return self._publish_answers(batch, debits, estimates, stored)

    def _find_batch(self, asked: Sequence[Query], again: bool, budget: Mapping[str, Any]) -> Batch:
        """Where a batch is paid: what was begun goes on, and what was asked before is shown."""
        said = {**budget, "share": self.share if budget["share"] is None else budget["share"]}
        try:
            words = describe_batch(self.table, self.plan, asked, **said)
        except Exception:  # what is wrong with a question is for its estimate to say
            self._price(asked, Spending(), **said)
            raise
        if not self._named:
            self._admission.notice_changes()
        written = encoding.canonical_json(words)
        known = self._batches.get(written)
        # Of a source without fingerprints nobody can see whether its rows have changed.
        same = self._named or not self._admission.registration.source
        if known is not None and (not known.answered or (same and not again)):
            batch = known
        elif self._named:
            batch = Batch(written, self.request, self._spent.debits, self._spent)
        else:
            admit = partial(self._admit, asked, budget)
            request = self._admission.name_request(words, again=again, admit=admit)
            batch = Batch(written, request, 0, self._spent)
            if known is not None and known.request == request:
                batch = known
        self.request = batch.request
        return batch

    def _admit(self, asked: Sequence[Query], budget: Mapping[str, Any]) -> None:
        price = partial(self._price, asked, self._spent, **budget)
        if self._admission.will_amend:  # a release that is stopped leaves nothing in the history
            self._look_at_rows(asked, price())
        self._admission.admit(self.request, asked, price, going_on=bool(self._batches))

    def _estimate_costs(
        self, asked: Sequence[Query], batch: Batch, budget: Mapping[str, Any]
    ) -> list[CostEstimate]:
        """The cost of each query, after what the session had spent before the batch; of one that
        was paid for in another session, where that is too much, as though it were the first."""
        beside = f"{batch.request}/{batch.first}"
        try:
            return self._price(asked, batch.before, beside=beside, **budget)
        except BudgetRefused:
            if not self._admission.find_paid(batch.request):
                raise
            return self._price(asked, Spending(), beside=beside, **budget)

    def _look_at_rows(self, asked: Sequence[Query], estimates: Sequence[CostEstimate]) -> None:
        """The curator's look, once for a batch, and never at one that was paid for."""
        if not self._looks or self._looked is asked:
            return
        self._looked = asked
        from whosin.release.inspection import look_before_debit

        found = look_before_debit(self.table, asked, estimates, self.ledger, self.dataset)
        if found.stops or found.changed_periods:
            raise found.refuse("Session(…, preflight=False)", details=True)
        for line in found.lines:
            self._notes.append(f"before the debit, for the curator alone: {line}")
            warn_caller(self._notes[-1])

    def _debit_costs(
        self,
        asked: Sequence[Query],
        batch: Batch,
        estimates: Sequence[CostEstimate],
        budget: Mapping[str, Any],
    ) -> tuple[list[CostEstimate], list[Debit]]:
        """What is paid for, and its debits: those that are there, or all in one transaction."""
        paid = self._steps(estimates)
        requests = name_debits(paid, batch.request, budget["split"], batch.first)
        debits = self.ledger.find_debits(self.dataset, requests)
        before = {each.request: each.body["what"] for each in debits}
        pairs = zip(paid, requests, strict=True)
        paid = [each.worded(before.get(name, {})) for each, name in pairs]
        new = len(debits) < len(requests)
        if new:
            undecided = self._admission.unclaimed or self._admission.will_amend
            if undecided or not debits:  # else this request was used for something
                self._admit(asked, budget)
            self._look_at_rows(asked, estimates)
            require_new_files(requests, paid, debits)
        elif not self._named:
            if describe_repeat(batch.request) not in self._notes:
                self._notes.append(describe_repeat(batch.request))
            told = zip(debits, paid, strict=True)
            if all(d.answer is not None and same_question(d, each.spend.what) for d, each in told):
                self._begin(batch, paid)  # whatever it would cost today
                return paid, debits
        priced = priced_spends(paid, self._admission.registration, self.table)
        spends = dict(zip(requests, priced, strict=True))
        if new:
            self._admission.fix_universe(spends.values())
        try:
            debits = self.ledger.debits(self.dataset, spends, self._said())
            self._begin(batch, paid)
        except BudgetRefused:
            raise
        except BaseException as error:
            try:
                stand = bool(self.ledger.find_debits(self.dataset, requests))
            except WhosinError:  # whoever cannot look cannot say that nothing was spent
                self._begin(batch, paid)
                unknown = f"request {self.request} continues, and pays once"
                raise add_note(error, unknown) from None
            if stand:
                self._begin(batch, paid)
                raise add_note(error, describe_unanswered(self.request)) from None
            raise add_note(error, "nothing was debited for this batch") from None
        return paid, debits

    def _begin(self, batch: Batch, paid: Sequence[CostEstimate]) -> None:
        """Count what a batch costs as spent by this session, once."""
        if self._batches.get(batch.words) is not batch:
            self._batches[batch.words] = batch
            self._spent = self._spent.pay(paid, self.plan)

    def list_publications(self) -> tuple[ReleaseRecord, ...]:
        """All releases of the dataset, for its curator."""
        return self.ledger.publications(self.dataset) if self.curator else ()

    def _said(self) -> dict[str, Any]:
        """What a report of the answers must say, and no registration does: the curator's word."""
        declared = {"people": self.table.people, "looked_up": self.table.looked_up}
        said = {"declared": declared if self.curator else {"people": None, "looked_up": []}}
        return said | ({"about": self._about} if self._about else {})

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
            self._notes += [] if said is None else [said]
        return stored

    def _publish_answers(
        self,
        batch: Batch,
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
            found[id(each)] = read_answers(own, each.noise, relation)
        answers = tuple(
            replace(found[id(each.paid)][each.place], title=each.query.title) for each in estimates
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
        """Answer one query, debited before it is drawn; as `release` does with several."""
        if isinstance(query, list | tuple):
            raise InvalidInput(
                f"ask answers one query, and these are {len(query)}",
                field="query",
                hint="session.release([…], share=…) answers several",
            )
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
        beside = f"{self.request}/{self._spent.debits}" if self._named else ""
        return self._price(read_queries(queries), self._spent, beside=beside, **budget)

    def _price(
        self,
        asked: Sequence[Query],
        spent: Spending,
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
            share = self._admission.find_share(self.request) if self.plan.query is None else 1
            sized = share is None and all(query.within is not None for query in asked)
            share = 1 if sized else share
        if share is None:
            raise InvalidInput(
                "share is missing: which part of the plan's budget these questions may spend",
                field="share",
                hint='give it, such as share="1/10", or share=1 for all of it; Session(…, share=1) '
                "gives it for every batch",
            )
        part = common_part(asked, self.table)

        def find_left() -> BudgetState:
            levels = {} if part is None else self.ledger.part_levels(self.dataset, [part])
            return self.budget_state if part is None else self.budget_state.seen_from(levels[part])

        new = estimate_batch_cost(
            self.table,
            self.plan,
            [query for number, query in enumerate(asked) if number not in paid],
            spent.seen_from(part, self.plan),
            share=share,
            capped=own,
            held=find_left,
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

    @property
    def budget_state(self) -> BudgetState:
        """Where the dataset stands."""
        return self.ledger.budget_state(self.dataset)

    def _unanswered(self, debit: Debit) -> bool:
        """Whether the ledger is known to have no answer: a failed store may have stored it."""
        try:
            return debit.request in self.ledger.unanswered(self.dataset, debit.request)
        except WhosinError:
            return False

    @property
    def continues(self) -> bool:
        """Whether something was debited under this session's request."""
        return bool(self._admission.find_paid(self.request))

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
