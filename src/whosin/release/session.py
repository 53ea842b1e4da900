"""`Session`: parse, estimate, debit, scan, publish.

A batch is checked against the schema, its cost is estimated, it is debited in one transaction, and
only then scanned. Answers are stored before they are returned, and a stored one is returned with
the question that it was stored for. No error, message or refusal depends on the rows. An error
after the debit names the request that continues without paying again.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Self

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, WhosinError, invalid_value, warn_caller
from whosin.exact import format_epsilon
from whosin.ledger import BudgetState, Debit, Ledger, encoding
from whosin.ledger.budget import Accounts, Budget, Cost, PartLevel, Schedule, Spend, price_spend
from whosin.ledger.budget_state import check_session
from whosin.ledger.encoding import read_name
from whosin.ledger.registration import Registration
from whosin.ledger.registry import (
    STEP_KEY,
    add_note,
    describe_copy,
    describe_unanswered,
    describe_unnamed,
)
from whosin.release.answer import Answer, Release, read_answers
from whosin.release.budget_allocation import estimate_batch_cost, read_queries
from whosin.release.cost import (
    CostEstimate,
    common_part,
    continue_streams,
    known_cost,
    paid_estimates,
    priced_spends,
)
from whosin.release.engines.base import Progress, share_scans
from whosin.release.queries import Query
from whosin.release.table import Table, register_table
from whosin.scenario_model import read_statements

MAX_REQUEST_LENGTH = 100
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
        dataset: the name in the ledger; the table's own by default.
        who: in whose name.
        request: an id for this session's questions. A session that was interrupted is continued
            under the same id: what was paid is not paid again, what was answered stays the same.
        share: the part of the plan that each batch of this session gets if it does not say; 1 for
            a session of one batch that may spend everything. Only the share has to be left.
        amend: record that the dataset goes on with this table, such as next month's file, or with
            these domains and bounds, under the same budget.
        curator: False for someone who may ask and not decide: the dataset must be registered with
            this very table, and requests of others are not answered.
        copies: "refuse" where rows that have a budget under another name may not get another one.
        new_people: False where a new dataset with the privacy unit and columns of another one is
            refused; True records that nobody is in both, as the curator's word.
        schedule: how a new dataset's budget is divided over time (see `Schedule.plan`); a batch
            then spends the share of its period by default.
        batch: what is asked, as plain data, where asking it again of the same rows is not new.
        again: ask the batch anew whatever was asked before, and pay again.
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
        copies: str = "warn",
        new_people: bool | None = None,
        schedule: Mapping[str, Any] | None = None,
        batch: Mapping[str, Any] | None = None,
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
        self.request = uuid.uuid4().hex if request is None else _read_request(request)
        self.notes: tuple[str, ...] = ()
        self._accounts, self._levels, self._asked = Accounts(), dict[str, PartLevel](), 0
        self._begun: list[Spend] = []
        self._batch = batch if request is None else None
        self._settings = batch and {**batch["budget"], "share": None}
        self._again, self._looks = again, preflight and curator
        self._about = read_statements(about or {})
        self.schedule, self._dated = schedule, False
        try:
            self._open(queries, amend, copies, new_people)
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
        watch: Watch | None = None,
    ) -> Release:
        """Answer a batch: parse, estimate, debit, scan, publish.

        Raises:
            BudgetRefused: the batch does not fit, or the look stops it; nothing was spent.
            ScanFailed: the engine failed; the debits of this request stand, and once the curator
                has resumed the dataset they can be used again.
            SourceChanged: the same holds for this, and nothing has to be resumed.
        """
        asked = read_queries(queries)
        estimates = self._estimate_costs(asked, share, split, noise)
        self._look_at_rows(asked, estimates)
        paid = self._steps(estimates)
        debits = self._debit_costs(paid)
        stored = self._scan_table(debits, paid, watch)
        return self._publish_answers(debits, estimates, stored)

    def _estimate_costs(
        self, asked: Sequence[Query], share: object, split: str, noise: str
    ) -> list[CostEstimate]:
        """The cost of each query. A batch that failed before and is asked again continues where it
        was; another one comes after what that had paid."""
        if self._begun:
            try:
                estimates = self.dry_run(asked, share=share, split=split, noise=noise)
            except WhosinError:
                estimates = []
            if [estimate.spend for estimate in self._steps(estimates)] == self._begun:
                return estimates
            self._close_batch()
        return self.dry_run(asked, share=share, split=split, noise=noise)

    def _look_at_rows(self, asked: Sequence[Query], estimates: Sequence[CostEstimate]) -> None:
        """The curator's look, once for a batch, and never at one that was paid for."""
        if not self._looks or self._begun:
            return
        numbers = range(self._asked, self._asked + len(paid_estimates(estimates)))
        paid = {f"{self.request}/{number}" for number in numbers}
        if paid & self._paid():
            return
        from whosin.release.inspection import look_before_debit

        home = self.ledger, self.dataset
        found = look_before_debit(self.table, asked, estimates, *home, dated=self._dated)
        if found.stops or found.changed_periods:
            raise found.refuse("Session(…, preflight=False)", details=True)
        for line in found.lines:
            self._note(f"before the debit, for the curator alone: {line}", warn=True)

    def _debit_costs(self, paid: Sequence[CostEstimate]) -> list[Debit]:
        """All debits in one transaction, or none."""
        numbers = count(self._asked)
        requests = [each.request or f"{self.request}/{next(numbers)}" for each in paid]
        self._require_new_files(requests, paid)
        spends = dict(
            zip(requests, priced_spends(paid, self.registration, self.table), strict=True)
        )
        self._fix_universe(spends.values())
        before, self._begun = self._begun, [estimate.spend for estimate in paid]
        try:
            return self.ledger.debits(self.dataset, spends, self._about)
        except BudgetRefused:
            self._begun = before
            raise
        except BaseException as error:
            try:
                stand = not spends.keys().isdisjoint(self._paid())
            except WhosinError:  # whoever cannot look cannot say that nothing was spent
                unknown = f"request {self.request} continues, and pays once"
                raise add_note(error, unknown) from None
            if stand:
                raise add_note(error, describe_unanswered(self.request)) from None
            self._begun = []
            raise add_note(error, "nothing was debited for this batch") from None

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
        self, debits: Sequence[Debit], estimates: Sequence[CostEstimate], stored: Sequence[Any]
    ) -> Release:
        """The stored answers in the order of the queries, and where the dataset stands now."""
        relation, pairs = self.plan.relation, iter(zip(debits, stored, strict=True))
        found = {}
        for each in paid_estimates(estimates):
            count_steps = len(each.query.steps(each.query.restrict_table(self.table), each))
            own = [(debit.body, answer) for debit, answer in islice(pairs, count_steps)]
            found[id(each)] = iter(read_answers(own, each.noise, relation, each.query.title))
        answers = tuple(next(found[id(estimate.paid)]) for estimate in estimates)
        self._close_batch()
        try:
            when = max((str(debit.body.get("when", "")) for debit in debits), default="")
            people = self.ledger.people_budget(self.dataset) if self.curator else None
            state = self.ledger.budget_state(self.dataset, parts=True)
            about: Any = next((each.body["about"] for each in debits if each.body.get("about")), {})
            name = str(debits[-1].body.get("table", "")) if debits else ""
            return Release(self.request, answers, state, when, people, about, name)
        except BaseException as error:
            raise add_note(error, describe_unanswered(self.request)) from None

    def ask(self, query: Query, *, share: object = None, noise: str = "laplace") -> Answer:
        """Answer one query, debited before it is drawn."""
        return self.release(query, share=share, noise=noise)[0]

    def sql(
        self,
        sql: str,
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
        watch: Watch | None = None,
    ) -> Release:
        """Answer a SELECT, an answer for each of its aggregates; as `release` does."""
        asked = self.parse_sql(sql)
        return self.release(asked, share=share, split=split, noise=noise, watch=watch)

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
        asked = read_queries(queries)
        paid = continue_streams(self.ledger, self.dataset, self.table, self.plan, asked)
        if len(paid) == len(asked):
            return list(paid.values())
        own = share is None
        if share is None:
            sized = self.share is None and all(query.within is not None for query in asked)
            share = 1 if sized or self.plan.query is not None else self.share
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
            self._seen_from(queries),
            share=share,
            split=split,
            noise=noise,
            capped=own,
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

    def _open(
        self, queries: Sequence[Query], amend: bool, copies: str, new_people: bool | None
    ) -> None:
        known = self.dataset in self.ledger.datasets()
        if not known and not self.curator:
            raise BudgetRefused(
                f"dataset {self.dataset!r} has no budget in this ledger",
                field="dataset",
                value=self.dataset,
                hint="its curator opens one with whosin ledger create",
            )
        self.registration = register_table(self.table, queries, rows=amend or not known)
        if not self._again and (answered := self._find_answered(queries)) is not None:
            self.request = answered
            self._note(describe_repeat(answered))
            if self.share is None:
                self._share_period(known=True)
            return
        goes_on, amend = amend, amend or (known and self._corrects())
        amend = amend and known and not self._is_registered()
        if known and not amend:
            self._name_request(queries, goes_on=goes_on)
        streams = self.ledger, self.dataset, self.table, self.plan, queries
        paid = known and bool(queries) and len(continue_streams(*streams)) == len(queries)
        if self.share is None and not paid:
            self._share_period(known)
        if self._paid():
            if self._batch is not None:
                self._check_registered()
                self._note(describe_repeat(self.request))
            return
        if not known:
            self._claim_people(copies, new_people)
        if not self.curator:
            self._check_registered()
        part, cost = common_part(queries, self.table), None
        if self._settings is not None and self.share is not None:
            cost = known_cost(self.dry_run(queries, **self._settings), self.plan)
        budget_state = self.ledger.admit(
            self.dataset,
            self.plan,
            resume=self.share is None,
            share=self.share,
            registration=self.registration,
            amend=amend,
            copies=copies,
            schedule=self.schedule,
            part=part,
            cost=cost,
            paid=paid,
        )
        self._name_request(queries, goes_on=True)
        if not paid:
            self._check_remaining(budget_state, part, cost)

    def _claim_people(self, copies: str, new_people: bool | None) -> None:
        if new_people is not None:
            claim = self.ledger.claim_people
            self.registration = claim(self.dataset, self.registration, new_people=new_people)
        for other in self.ledger.copies(self.dataset, self.registration)[:1]:
            self._note(describe_copy(self.dataset, other), warn=copies == "warn")

    def _share_period(self, known: bool) -> None:
        """The share of the period, where there is a schedule: of the one in which this request was
        paid before, or of today's."""
        budget, moments = Budget.of(self.plan), list[str]()
        today = encoding.utc_now().date().isoformat()
        schedule = self.ledger.budget_state(self.dataset).schedule if known else None
        if schedule is not None and (paid := self._paid()):
            entries = self.ledger.history(self.dataset)
            moments = [each.body["when"][:10] for each in entries if each.request in paid]
        if not known and self.schedule is not None:
            schedule = Schedule.plan(self.schedule, budget, today)
        if schedule is not None and self.plan.query is None:
            self.share, self._dated = schedule.share(min(moments, default=today), budget), True

    def _check_remaining(self, state: BudgetState, part: str | None, cost: Cost | None) -> None:
        """Refuse a session where nothing is left; say so where it takes most of what is left."""
        if part is not None:
            state = state.seen_from(self.ledger.part_levels(self.dataset, [part])[part])
        budget, everyone = Budget.of(self.plan), replace(state, spent=state.accounts.everyone)
        of_parts = self.table.part is not None and everyone.spendable_units > 0
        if not (state.spendable_units or of_parts):  # a part may have what the whole has not
            check_session(state, self.plan, budget, cost=cost)
        own = budget.part(self.share).epsilon if self.share else 0
        own = min(own, cost.epsilon if cost is not None else own)
        if state.debits and 2 * own > state.spendable_units:
            taken = format_epsilon(Fraction(own, encoding.EPSILON_UNITS))
            words = f"has ε = {format_epsilon(state.spendable)} left, and this session takes"
            self._note(f"dataset {self.dataset!r} {words} {taken} of it")

    def _name_request(self, queries: Sequence[Query], *, goes_on: bool) -> None:
        """Name the request after what is asked, where asking it again is not new.

        Raises:
            BudgetRefused: it was asked of rows that have changed since, and nobody said whether
                today's rows are to be asked.
        """
        if self._batch is None:
            return
        asked = self.registration
        if asked.lives and self.curator:
            asked = register_table(self.table, queries, rows=True)
        about = self.ledger, self.dataset, self.plan, self._batch, asked
        name = name_request(*about, again=self._again)
        if self._again and self.ledger.requests(self.dataset, f"{name}/"):
            return
        if not (self._again or goes_on):
            require_same_rows(self.ledger, self.dataset, name, asked)
        self.request = name

    def _find_answered(self, queries: Sequence[Query]) -> str | None:
        """The request of this batch if it was answered before the dataset went on with another
        table."""
        known = self.dataset in self.ledger.datasets()
        if self._batch is None or not self.curator or not known or self._is_registered():
            return None
        table = register_table(self.table, queries, rows=True)
        return find_answered(self.ledger, self.dataset, self.plan, self._batch, table)

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
        registered = self.ledger.budget_state(self.dataset).registered
        if registered is None:
            raise BudgetRefused(describe_unnamed(self.dataset))
        registered.check(self.dataset, self.registration)

    def _note(self, words: str, *, warn: bool = False) -> None:
        self.notes += (words,)
        if warn:
            warn_caller(words)

    @property
    def budget_state(self) -> BudgetState:
        """Where the dataset stands."""
        return self.ledger.budget_state(self.dataset)

    def _require_new_files(self, requests: Sequence[str], paid: Sequence[CostEstimate]) -> None:
        """What is not paid for yet writes files that are not there yet."""
        if any(estimate.query.writes_file for estimate in paid):
            begun = self._paid()
            for request, estimate in zip(requests, paid, strict=True):
                if request not in begun:
                    estimate.query.require_new_file()

    def _fix_universe(self, spends: Iterable[Spend]) -> None:
        """The first maximum says who could be in, once and for all, if whoever asks may."""
        universes = {
            each.registration.universe for each in spends if each.registration is not None
        } - {None}
        if not universes or not self.curator or self._paid():
            return
        budget_state = self.budget_state
        fixed = (
            budget_state.registered is None
            or budget_state.registered.registration.universe is not None
        )
        if not fixed and not budget_state.debits:
            self.registration = replace(self.registration, universe=universes.pop())
            self.ledger.amend(self.dataset, self.registration)

    def _close_batch(self) -> None:
        for spend in self._begun:
            level = self._levels.get(spend.part or "", PartLevel())
            priced = price_spend(spend, self.plan)
            self._accounts, level = self._accounts.pay(priced, self.plan.relation, level)
            self._levels[spend.part or ""] = level
        self._asked += sum(STEP_KEY not in spend.what for spend in self._begun)
        self._begun = []

    def _seen_from(self, queries: Query | Sequence[Query]) -> Cost:
        """What this session has spent, as it matters to a batch: to one about one part alone, only
        what was spent there and on everyone."""
        part = common_part(queries, self.table)
        if part is None:
            return self._accounts.total
        return self._accounts.seen_from(self._levels.get(part, PartLevel()), self.plan.relation)

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


def _read_request(request: object) -> str:
    if not isinstance(request, str) or not 0 < len(request) <= MAX_REQUEST_LENGTH or "/" in request:
        accepted = f"text of at most {MAX_REQUEST_LENGTH} characters, without a slash"
        raise invalid_value("request", accepted, repr(request)[:80])
    return unicodedata.normalize("NFC", request)


def describe_repeat(request: str) -> str:
    return (
        f"this was asked before, as request {request}: these are its answers, from the rows of "
        "that day, and nothing more is spent; --again asks today's rows, and pays"
    )


def name_request(
    ledger: Ledger,
    dataset: str,
    plan: Plan,
    batch: Mapping[str, Any],
    registration: Registration | None = None,
    *,
    again: bool = False,
) -> str:
    """The name of a batch under a plan of the table that a dataset is registered with.

    Args:
        registration: the table as it is today, with the fingerprints of its rows: those of one that
            lives are part of the name, so that it tells whether the same batch was asked of others.
        again: a new name for a table that lives, whatever was asked of it.
    """
    registered = ledger.budget_state(dataset).registered
    name = _request_digest(plan, batch, None if registered is None else registered.entry())
    if registered is None or registration is None or not registration.lives:
        return name
    known = [] if again else _list_earlier(ledger, dataset, name)
    if earlier := registered.find_rows(registration, name, known):
        return earlier
    # Rows that nobody looked at are never known to be the same; what is unfinished goes on.
    begun = [] if again else sorted(ledger.unanswered(dataset, name))
    return begun[0].rpartition("/")[0] if begun else registered.mark_rows(registration, name)


def _list_earlier(ledger: Ledger, dataset: str, name: str) -> list[str]:
    return sorted({each.rpartition("/")[0] for each in ledger.requests(dataset, name)})


def require_same_rows(
    ledger: Ledger, dataset: str, request: str, registration: Registration
) -> None:
    """See that a batch about a table that lives is not taken for one that was asked of other rows.

    Args:
        request: its name (`name_request`).

    Raises:
        BudgetRefused: it was asked before, and the rows have changed, or nobody can tell.
    """
    if not registration.lives:
        return
    name = request.partition("-")[0]
    earlier = _list_earlier(ledger, dataset, name)
    if request in earlier or not earlier:
        return
    when = {
        str(entry.request).rpartition("/")[0]: str(entry.body.get("when", ""))
        for entry in ledger.history(dataset)
        if entry.kind == "debit"
    }
    latest = max(earlier, key=lambda each: when.get(each, ""))
    looked = any(kind.partition(":")[0] == "rows" for kind in registration.source)
    changed = "its rows have changed since" if looked else "it is too large to see what changed"
    raise BudgetRefused(
        f"dataset {dataset!r} was asked this on {when.get(latest, '')[:10]}, and {changed}",
        field="dataset",
        value=dataset,
        hint=f"--again asks today's rows, and pays; --request {latest} shows the answers of that "
        "day, and spends nothing",
    )


def find_answered(
    ledger: Ledger,
    dataset: str,
    plan: Plan,
    batch: Mapping[str, Any],
    registration: Registration,
) -> str | None:
    """The request that has all answers to a batch under a plan, of this very table, which the
    dataset was registered with before it went on with another one; None if there is none.

    Args:
        registration: the table's, with the fingerprints of its rows.
    """
    registered = ledger.budget_state(dataset).registered
    if registered is None:
        return None
    asked = registered.seal_table(registration).entry()
    for entry in reversed(ledger.history(dataset)):
        before = entry.body.get("registration")
        if entry.kind not in ("registered", "amended") or before is None:
            continue
        if {**before, "apart_from": None} != {**asked, "apart_from": None}:
            continue
        name = _request_digest(plan, batch, before)
        known = _list_earlier(ledger, dataset, name) if registration.lives else []
        found = registered.find_rows(registration, name, known) if registration.lives else name
        paid = found and ledger.requests(dataset, f"{found}/")
        if paid and not ledger.unanswered(dataset, f"{found}/"):
            return found
    return None


def _request_digest(plan: Plan, batch: Mapping[str, Any], table: Mapping[str, Any] | None) -> str:
    """The name of a batch under a plan of a table. It is made of what the history shows anyway, so
    that it says nothing more of the rows, and neither does the mark beside it."""
    asked = {"batch": dict(batch), "plan": plan.to_dict(), "table": table}
    return encoding.digest_text(encoding.canonical_json(asked))[:32]
