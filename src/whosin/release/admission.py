"""`Admission`: in which dataset a table is asked, and that it may be; nothing is spent.

A session's table is registered with its dataset before anything is paid, once: a budget is opened
for it, goes on with it (`amend`), or is found to be bound to it. What is only shown again needs no
admission. Of rows nothing is read but the fingerprints that a registration seals.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from whosin.calibration import Plan
from whosin.errors import BudgetRefused
from whosin.exact import format_epsilon
from whosin.ledger import BudgetState, Ledger, encoding
from whosin.ledger.budget import Budget, Cost, Schedule, Spend
from whosin.ledger.budget_state import check_session, open_for_debits
from whosin.ledger.registration import Registration
from whosin.ledger.registry import check_schedule, describe_unnamed
from whosin.release.cost import (
    CostEstimate,
    common_part,
    known_cost,
    paid_estimates,
    priced_spends,
)
from whosin.release.engines.base import list_local_files, stat_files
from whosin.release.queries import Query
from whosin.release.requests import NamedBatch, continue_streams, was_registered
from whosin.release.table import Table, register_table


def find_last_writes(table: Table) -> list[tuple[int, ...]]:
    """When the local files of a table were written last."""
    sources = [table.source, *(each.source for each in table.tables)]
    paths = [str(each) for each in sources if isinstance(each, str | Path)]
    listed = (list_local_files(path) or [path.partition("::")[0]] for path in paths)
    return stat_files(file for files in listed for file in files if Path(file).is_file())


@dataclass(eq=False)
class Admission:
    """The dataset of a session and its registration; see `Session` for what is said of them.

    Attributes:
        queries: those that will be asked, where they are known.
        registration: the table as it is today, once `register` has looked.
        unclaimed: the name that a session would have had, where it shows what another dataset has
            answered: nobody has said that it goes on under that one's budget.
        notes: what people should be told.
    """

    table: Table
    plan: Plan
    ledger: Ledger
    dataset: str
    curator: bool
    share: object
    schedule: Mapping[str, Any] | None
    amends: bool
    new_people: bool
    queries: tuple[Query, ...]
    notes: list[str]
    unclaimed: str = ""

    @property
    def state(self) -> BudgetState:
        return self.ledger.budget_state(self.dataset)

    @property
    def known(self) -> bool:
        """Whether the ledger knows the dataset."""
        return self.dataset in self.ledger.datasets()

    @property
    def is_registered(self) -> bool:
        """Whether the dataset is registered with this very table already."""
        registered = self.state.registered
        return registered is not None and registered.difference(self.registration) is None

    @property
    def will_amend(self) -> bool:
        """Whether the dataset would go on with another table, or other domains and bounds."""
        return self.known and (self.amends or self._corrects()) and not self.is_registered

    def open(self, request: str, *, continues: bool, again: bool, find: bool) -> None:
        """See at the start that the table may be asked, as far as that does not depend on the
        questions, and what was answered is shown without it.

        Args:
            continues: whether the request is one that may have been paid for before.
            find: take the dataset that these rows are part of, where this one is not known.
        """
        known = self.known
        if not known and not self.curator:
            raise BudgetRefused(
                f"dataset {self.dataset!r} has no budget in this ledger",
                field="dataset",
                value=self.dataset,
                hint="its curator opens one with whosin ledger create",
            )
        self.register(rows=self.amends or not known)
        if continues and self.find_paid(request):
            return
        if not self.curator:
            self._check_registered()
        if find and not known and self._find_dataset():
            return
        if known and self.queries:  # when they are asked: then it is known what they cost
            return
        asked = known and not continues and not again and bool(self.ledger.requests(self.dataset))
        if asked and not self.is_registered:
            today = register_table(self.table, (), rows=True)
            if self.curator and was_registered(self.ledger, self.dataset, today):
                return  # what was asked of it is shown, and nothing is amended for that
            asked = False
        try:
            self.admit(request, record=not self.will_amend)  # which waits for what is asked
        except BudgetRefused:
            if not asked:  # else what was asked before is shown without a budget
                raise

    def register(self, *, rows: bool = True) -> None:
        """Say what the table is today; nothing is admitted yet."""
        self._written, self._admitted = find_last_writes(self.table), False
        self.registration = register_table(self.table, self.queries, rows=rows)

    def notice_changes(self) -> None:
        """Register the table anew where its files were written since."""
        if find_last_writes(self.table) != self._written:
            self.register()

    def admit(
        self,
        request: str,
        asked: Sequence[Query] = (),
        price: Callable[[], Sequence[CostEstimate]] | None = None,
        *,
        going_on: bool = False,
        record: bool = True,
    ) -> None:
        """See that the plan, or what is asked of it, fits what is left, and that the dataset is
        registered with this table, once, before anything is paid.

        Args:
            price: what it costs.
            going_on: whether the session has paid already: then each debit is checked.
            record: that the dataset goes on with another table; else only see that it may.
        """
        if self._admitted:
            return
        if self.unclaimed:  # nobody said that this goes on under that budget
            self.ledger.claim_people(self.unclaimed, self.registration, new_people=False)
        cost = None if price is None else known_cost(price(), self.plan)
        known = self.known
        streams = self.ledger, self.dataset, self.table, self.plan, asked
        paid = going_on or (known and bool(asked) and len(continue_streams(*streams)) == len(asked))
        share = None if paid else self.find_share(request)
        part = common_part(asked or self.queries, self.table)
        state = self.ledger.admit(
            self.dataset,
            self.plan,
            resume=share is None,
            share=share,
            registration=self.registration,
            amend=self.will_amend,
            record=record,
            new_people=self.new_people,
            schedule=self.schedule,
            part=part,
            cost=cost,
            paid=paid,
        )
        if record and not paid:
            self._check_remaining(state, part, share, cost)
        self._admitted = record

    def find_paid(self, request: str) -> set[str]:
        """The debits of a request."""
        return self.ledger.requests(self.dataset, f"{request}/")

    def find_share(self, request: str) -> object:
        """What a batch may spend that does not say: with a schedule the share of the period in
        which this request was paid before, or of today's."""
        if self.share is not None or self.plan.query is not None:
            return self.share
        budget, today, moments = Budget.of(self.plan), encoding.today(), list[str]()
        schedule = self.state.schedule if self.known else None
        if schedule is not None and (paid := self.find_paid(request)):
            entries = self.ledger.history(self.dataset)
            moments = [each.body["when"][:10] for each in entries if each.request in paid]
        elif self.schedule is not None and not self.known:
            schedule = Schedule.plan(self.schedule, budget, today)
        return schedule and schedule.share(min(moments, default=today), budget)

    def name_request(
        self, words: Mapping[str, Any], *, again: bool, admit: Callable[[], None]
    ) -> str:
        """The request that paid for a batch about the same rows before, or its new name.

        Raises:
            BudgetRefused: it was asked of rows that have changed since, and nobody said whether
                today's rows are to be asked.
        """
        asked, who = self.registration, "" if self.curator else self.ledger.who
        registered = self.is_registered
        if self.curator and (asked.lives or not registered):
            asked = register_table(self.table, self.queries, rows=True)
        batch = NamedBatch(self.ledger, self.dataset, self.plan, words, asked, who)
        if not registered:
            if not again and self.curator and (answered := batch.find_answered()) is not None:
                return answered
            admit()
        name = batch.name(again=again)
        if again and self.find_paid(name):
            return uuid.uuid4().hex
        if not (again or self.amends):
            batch.require_same_rows(name)
        return name

    def fix_universe(self, spends: Iterable[Spend]) -> None:
        """The first maximum says who could be in, once and for all, if whoever asks may."""
        named = (each.registration for each in spends if each.registration is not None)
        universes = {each.universe for each in named} - {None}
        if not universes or not self.curator:
            return
        state, known = self.state, self.state.registered
        if known is not None and known.registration.universe is None and not state.debits:
            self.registration = replace(self.registration, universe=universes.pop())
            self.ledger.amend(self.dataset, self.registration)

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
            self.notes.append(f"dataset {self.dataset!r} {words} {taken} of it")

    def _corrects(self) -> bool:
        """Whether a curator declares other domains of the same table before anything was paid for,
        such as what the look at its rows found."""
        state = self.state
        if not self.curator or state.registered is None or state.debits:
            return False
        return state.registered.corrects(self.registration)

    def _check_registered(self) -> None:
        """Someone who may not decide finds everything decided."""
        state = self.state
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
        for held in self.ledger.copies(self.dataset, self.registration):
            if was_registered(self.ledger, held, self.registration):
                shown = f"these rows are part of dataset {held!r}: what it has answered is shown"
                self.notes.append(shown)
                self.unclaimed, self.dataset = self.dataset, held
                return True
        return False


@dataclass(frozen=True)
class Outlook:
    """What a ledger would say to whoever asks now.

    Attributes:
        who: asks.
        left: the ε that they may spend on these questions: see `BudgetState.left_for`.
        known: whether this batch was paid for before: its stored answers are shown, for nothing.
        refusal: why they would not be answered if they were asked anew; None where they would be.
    """

    who: str
    left: float
    known: bool
    refusal: str | None


def foresee_release(  # noqa: PLR0913 (all by name)
    ledger: Ledger,
    dataset: str,
    *,
    table: Table,
    plan: Plan,
    estimates: Sequence[CostEstimate],
    share: object,
    amend: bool,
    new_people: bool,
    schedule: Mapping[str, Any] | None = None,
    known: bool = False,
) -> Outlook | None:
    """What a ledger would say to a curator's batch, which it knows or not; nothing is spent. None
    where it knows nothing of the table."""
    registration = register_table(table, [each.query for each in estimates])
    if dataset not in ledger.datasets():
        if known:
            return Outlook(ledger.who, plan.epsilon, known, None)
        try:
            ledger.claim_people(dataset, registration, new_people=new_people)
        except BudgetRefused as error:
            return Outlook(ledger.who, plan.epsilon, False, str(error))
        return None
    state = ledger.budget_state(dataset)
    left = left_for_questions(ledger, state, [each.query for each in estimates], table)
    if state.registered is not None and state.registered.registration.universe is None:
        registration = replace(registration, universe=None)
    held = state.registered
    changed = held is None or held.difference(registration) is not None
    corrects = held is None or (not state.debits and held.corrects(registration))
    amended = changed and (amend or corrects)
    about = table, plan, estimates, registration
    try:
        check_schedule(state, schedule)
        check_batch(ledger, state, *about, share=share, amended=amended)
    except BudgetRefused as error:
        return Outlook(ledger.who, left, known, str(error))
    return Outlook(ledger.who, left, known, None)


def left_for_questions(
    ledger: Ledger, state: BudgetState, queries: Sequence[Query], table: Table
) -> float:
    """The ε that whoever asks may spend today on these questions (`BudgetState.left_for`)."""
    part = common_part(queries, table)
    level = None if part is None else ledger.part_levels(state.dataset, [part])[part]
    return state.left_for(ledger.who, level)


def check_batch(
    ledger: Ledger,
    state: BudgetState,
    table: Table,
    plan: Plan,
    estimates: Sequence[CostEstimate],
    registration: Registration,
    *,
    share: object,
    amended: bool,
) -> None:
    """See that a batch could be paid for now; nothing is spent.

    Args:
        share: what it may spend of the plan; None for the share of today's period.
        amended: whether the dataset would go on with this registration.

    Raises:
        BudgetRefused: it could not.
    """
    new = paid_estimates(each for each in estimates if each.first is None)
    if new:
        if share is None and state.schedule is not None:
            share = state.schedule.share(state.today, Budget.of(plan))
        part = common_part([each.query for each in new], table)
        ledger.check_plan(state, plan, share, part, known_cost(estimates, plan))
    spends = priced_spends(new, registration, table)
    ledger.check(state.dataset, spends, amended=registration if amended else None)
