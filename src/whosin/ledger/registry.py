"""The datasets of a ledger: registering, suspending and resuming; and those about the same people.

A budget is set once. The table that it is for may be amended as long as whom it protects stays the
same. Each registration, amendment, suspension, resumption and closing is an entry of the history.

Whether an engine runs out of memory may depend on one person's rows, so a failure after a debit
tells something that no debit paid for. The words are the same whatever the reason was, and nothing
of the engine's own is repeated, not even as a context, since it may quote rows. The failure is an
entry, and nothing more is drawn until the curator resumes the dataset, so that it cannot be tried
again. Someone who stops the work, and a source whose columns were replaced, tell nothing of rows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

from whosin import beliefs
from whosin.calibration import Plan
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    ScanFailed,
    StoreFailed,
    UnknownName,
    WhosinError,
    invalid_value,
)
from whosin.exact import exp_up, rational, round_up
from whosin.ledger import budget_state as states
from whosin.ledger import encoding, entries
from whosin.ledger.budget import (
    Budget,
    Cost,
    Schedule,
    Spend,
    best_reading,
    plan_total,
)
from whosin.ledger.budget_state import BudgetState
from whosin.ledger.encoding import EPSILON_UNITS, INFINITE_UNITS, read_name
from whosin.ledger.entries import Entry
from whosin.ledger.registration import RegisteredTable, Registration, read_registration
from whosin.ledger.store import WAIT_SECONDS, Store
from whosin.ledger.transaction import Transaction

STEP_KEY = "step"
"""Of a question that is a step of a stream, which one it is: see `release.queries.running`."""


def describe_lookalike(name: str, others: Sequence[str]) -> str:
    """That a table may be about the people of other datasets, in words: which, nobody can tell."""
    about = f"{name!r} has the privacy unit and the columns of"
    if len(others) == 1:
        return f"{about} dataset {others[0]!r}, which has a budget of its own"
    listed = f"{', '.join(map(repr, others[:-1]))} and {others[-1]!r}"
    return f"{about} datasets {listed}, which have budgets of their own"


def describe_copy(name: str, other: str) -> str:
    """That rows have two budgets, in words."""
    return (
        f"the rows of {name!r} are those of dataset {other!r}, which has a budget of its own: two "
        "budgets for the same people promise less than either says"
    )


def describe_unnamed(dataset: str) -> str:
    """That whoever asks would decide what is protected."""
    return (
        f"dataset {dataset!r} was registered without its table: its curator names it with whosin "
        "ledger amend"
    )


def other_question(before: Entry, spend: Spend, only: str | None = None) -> None:
    """A request id belongs to one question, and to one person where only a person's own requests
    count.

    What of a table's rows counts follows from the table: an answer that is stored is shown with
    what was true of it, and `other_table` sees to one that is not.
    """
    asked = spend.to_dict()
    paid = {key: before.body.get(key) for key in asked}
    others = only is not None and before.body.get("who") != only
    costs = {encoding.canonical_json({**each, "what": None}) for each in (paid, asked)}
    if others or len(costs) > 1 or not entries.same_question(before, spend.what):
        message = f"request {before.request!r} was made for another question or at another cost"
        same = "repeat a request with the same questions, share, split, weights and noise"
        hint = f"{same}, or choose a new name"
        raise BudgetRefused(message, field="request", value=before.request, hint=hint)


def other_table(before: Entry, spend: Spend, budget_state: BudgetState) -> None:
    """What was paid for and not answered yet is drawn from the table that it was paid for; a step
    of a stream from any later one, which has the same rows of its periods and those before."""
    recorded = before.body.get("registration")
    if STEP_KEY in spend.what and recorded is not None and budget_state.registered is not None:
        budget_state.registered.check(budget_state.dataset, spend.registration)
        return
    if recorded is None or budget_state.registered is None or spend.registration is None:
        return
    budget_state.registered.check(budget_state.dataset, spend.registration)
    asked = budget_state.registered.asked(spend.registration)
    if encoding.canonical_json(recorded) != encoding.canonical_json(asked):
        question = f"request {before.request!r} asked this question"
        message = f"{question} of another table, or with other domains or bounds"
        raise BudgetRefused(message, field="request", value=before.request)


@dataclass(frozen=True)
class PeopleBudget:
    """What datasets of the same privacy unit and columns allow together of someone who is in all.

    What was spent between neighbouring worlds adds up, as pure ε or as ρ, and so do the budgets'
    (ε, δ); beliefs are read off once, from the starting prior, and never added.

    Attributes:
        states: the datasets.
        apart: those that are about other people by the curator's word (`--new-people`).
    """

    states: tuple[BudgetState, ...]
    apart: tuple[str, ...]

    @property
    def adds(self) -> bool:
        """Whether what was spent is between the same neighbours, and adds up."""
        one_relation = len({each.budget.relation for each in self.states}) == 1
        return one_relation and not any(each.by_itself for each in self.states)

    @property
    def _read(self) -> tuple[int, str]:
        """(ε, in units; which reading gave it) of all answers, at any time.

        As for one dataset, with the sums of ρ, of what each dataset may spend of it, and of δ: a
        dataset that has spent more, by the pure reading, has no such end. What single answers use
        of δ is at most a quarter of each δ, and so of their sum.
        """
        if not self.adds:
            return INFINITE_UNITS, "pure"
        cost = sum((each.spent for each in self.states), Cost(0, 0))
        ends = [each.budget.rho or _pure_end(each.budget) for each in self.states]
        within = all(each.spent.rho <= end for each, end in zip(self.states, ends, strict=True))
        epsilon = sum(each.budget.epsilon for each in self.states)
        delta = sum(plan_total(each.plan)[1] for each in self.states)
        reserved = any(each.plan.reserve for each in self.states)  # each keeps its own (ε, δ)
        return best_reading(cost, epsilon, sum(ends) if within and delta else 0, delta, reserved)

    @property
    def certain(self) -> bool:
        """Whether `epsilon` holds without exception: pure ε added up, and no δ was used."""
        return self._read[1] == "pure" and not any(each.spent.delta for each in self.states)

    @property
    def epsilon(self) -> float:
        """The ε of all answers of all datasets, rounded up; infinite where they do not add."""
        return round_up(encoding.number_from_units(self._read[0]))

    @property
    def budget_epsilon(self) -> float:
        """The ε of all budgets, rounded up: what it may come to, with the sum of their δ; infinite
        where they do not add."""
        if not self.adds or any(each.budget.alone for each in self.states):
            return math.inf
        return round_up(sum(Fraction(each.budget.epsilon, EPSILON_UNITS) for each in self.states))

    @property
    def failure(self) -> Fraction:
        """The probability with which beliefs may move further where a δ is used (T18)."""
        return sum((each.plan.failure for each in self.states if each.plan.dp_delta), Fraction(0))

    @property
    def prior(self) -> Fraction:
        """The largest belief that the plans are for, below certainty; one half where none is."""
        ends = [each.plan.beliefs[1] for each in self.states]
        return max((end for end in ends if end < 1), default=Fraction(1, 2))

    def posterior(self, epsilon: float, *, certain: bool = True) -> float:
        """How sure someone who was `prior` sure can become at a total ε, rounded up; but for a
        probability of `failure` where that is not certain: e^ε/(1 − δ'/δ) by T18, δ' the sum of the
        plans' δ."""
        group = max(each.plan.family.adversary().group for each in self.states)
        uncertain_group = not certain and group > 1
        if epsilon * group > 700 or uncertain_group or not (certain or self.failure < 1):
            return 1.0
        ratio = exp_up(Fraction(epsilon) * group)
        if not certain and self.failure:
            used = sum((rational(each.plan.dp_delta) for each in self.states), Fraction(0))
            ratio /= 1 - used / self.failure
        return round_up(Fraction(beliefs.posterior(Fraction(round_up(ratio)), self.prior)))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON."""
        whole = not self.failure
        return {
            "datasets": [each.dataset for each in self.states],
            "other_people_by_curators_word": list(self.apart),
            "reading": self._read[1],
            "spent_epsilon": states.finite_or_text(self.epsilon),
            "budget_epsilon": states.finite_or_text(self.budget_epsilon),
            "prior": float(self.prior),
            "posterior": self.posterior(self.epsilon, certain=self.certain),
            "budget_posterior": self.posterior(self.budget_epsilon, certain=whole),
            "failure": round_up(self.failure),
        }


def _pure_end(budget: Budget) -> int:
    """The most ρ that a budget of pure ε alone may come to."""
    return encoding.rho_from_epsilon(budget.epsilon)


def group_by_people(states: Sequence[BudgetState]) -> list[PeopleBudget]:
    """Datasets whose people may be the same, where there are several: those with one privacy unit
    and the same columns."""
    groups: dict[str, list[BudgetState]] = {}
    for each in states:
        if each.registered is not None and each.registered.registration.schema:
            about = each.registered.registration
            shape = encoding.canonical_json([about.privacy_unit, dict(about.schema)])
            groups.setdefault(shape, []).append(each)
    return [
        PeopleBudget(
            tuple(group),
            tuple(
                each.dataset
                for each in group
                if each.registered is not None and each.registered.registration.apart_from
            ),
        )
        for group in groups.values()
        if len(group) > 1
    ]


class Registry:
    """The datasets of a ledger; `Ledger` pays for answers about them."""

    def __init__(
        self,
        url: object,
        *,
        who: str | None = None,
        create: bool = True,
        wait: float = WAIT_SECONDS,
        own: bool = False,
    ) -> None:
        self._store = Store(url, wait, create, None if who is None else read_name(who, "who"))
        self.who = self._store.who
        self._only = self.who if own else None

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._store.name

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connections to the store."""
        self._store.dispose()

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        with self._store.reading() as connection:
            return sorted(entries.dataset_names(connection))

    def register(
        self,
        dataset: str,
        plan: Plan,
        registration: Registration | None = None,
        *,
        new_people: bool | Collection[str] = False,
        schedule: Mapping[str, Any] | None = None,
    ) -> BudgetState:
        """Set a dataset's budget, once: the plan's ε is the total.

        Args:
            registration: the table that the budget is for (`release.table.register_table`): whose
                rows they are is then fixed too.
            new_people: as for `claim_people`; or, where it was said elsewhere whose rows they are,
                the other datasets with these rows that the caller has seen.
            schedule: how it is divided over time (see `Schedule.plan`).

        Raises:
            BudgetRefused: it is registered already, or its people may have a budget here.
        """
        name, budget = read_name(dataset, "dataset"), _read_budget(plan)
        with self._store.writing() as connection:
            if not self._register(
                connection,
                name,
                plan,
                budget,
                read_registration(registration),
                new_people,
                schedule,
            ):
                raise BudgetRefused(
                    f"dataset {name!r} is registered already; its budget is set once and for all",
                    field="dataset",
                    value=name,
                )
            return entries.read_budget_state(entries.dataset_row(connection, name))

    def admit(  # noqa: PLR0913 (public parameters, all by name)
        self,
        dataset: str,
        plan: Plan,
        *,
        resume: bool = False,
        share: object = None,
        registration: Registration | None = None,
        amend: bool = False,
        record: bool = True,
        new_people: bool | Collection[str] = False,
        paid: bool = False,
        schedule: Mapping[str, Any] | None = None,
        part: str | None = None,
        cost: Cost | None = None,
    ) -> BudgetState:
        """Open a session: register a new dataset, or see that the plan fits what is left. Nothing
        is recorded of a session that is refused.

        Args:
            resume: admit the registered plan whatever was spent; each debit is still checked.
            share: the part of the plan that the session will spend; all of it by default.
            registration: the table that will be asked; one without a table is bound to it.
            amend: the dataset goes on with this table: `record` that, or see that it may.
            new_people, schedule: as for `register`; a known dataset has this schedule already.
            part, cost: of all questions, as for `check_session`.
            paid: whether all that will be asked was paid for before: nothing has to be left.

        Raises:
            BudgetRefused: the plan does not fit the remainder, or the table is another one.
        """
        name, budget = read_name(dataset, "dataset"), _read_budget(plan)
        registration = read_registration(registration)
        with self._store.reading() as connection:
            row = entries.dataset_row(connection, name)
        if row is None:
            with self._store.writing() as connection:
                self._register(connection, name, plan, budget, registration, new_people, schedule)
                row = entries.dataset_row(connection, name)
        budget_state = entries.read_budget_state(row)
        try:
            check_schedule(budget_state, schedule)
            changes = registration is not None and _changes_table(budget_state, registration, amend)
        except BudgetRefused:
            states.open_for_debits(budget_state)  # what is closed says that first
            raise
        retried = resume and budget_state.plan.to_dict() == plan.to_dict()
        if not paid and (not retried or (changes and not budget_state.spendable_units)):
            self.check_plan(budget_state, plan, share, part, cost)
        if changes and registration is not None:
            states.open_for_debits(budget_state)
            if not record and budget_state.registered is not None:
                with self._store.reading() as connection:
                    _claim_people(connection, name, registration, new_people=new_people, bound=True)
                return budget_state
            budget_state = self.amend(name, registration, new_people=new_people)
            assert budget_state.registered is not None
            budget_state.registered.check(name, registration)
        return budget_state

    def check_plan(
        self, state: BudgetState, plan: Plan, share: object, part: str | None, cost: Cost | None
    ) -> None:
        """Whether a session of this asker could begin now: see `check_session`."""
        with self._store.reading() as connection:
            level = entries.part_level(connection, state.dataset, part)
            about: Any = {"who": self.who, "moment": self._store.stamp(connection), "part": part}
        budget = _read_budget(plan)
        states.check_session(state, plan, budget, share, cost=cost, level=level, **about)

    def amend(
        self,
        dataset: str,
        registration: Registration,
        *,
        new_people: bool | Collection[str] = False,
    ) -> BudgetState:
        """Record that a dataset goes on with another table, other domains or bounds, under the same
        budget: next month's file, a column that was not declared before.

        Args:
            new_people: as for `register`, where the dataset has no table yet.

        Raises:
            BudgetRefused: the privacy unit or the universe would change, and with it the promise.
        """
        read_registration(registration)
        with self._turn(dataset) as turn:
            before = entries.read_budget_state(turn.row).registered
            self._store.lock_registrations(turn.connection)
            claim: Any = {"new_people": new_people, "bound": before is not None}
            registration = _claim_people(turn.connection, dataset, registration, **claim)
            registered = (
                RegisteredTable.of(registration)
                if before is None
                else before.amended(turn.row.name, registration)
            )
            if before is None or before.difference(registration) is not None:
                accounts = entries.read_budget_state(turn.row).accounts.begin_parts()
                self._append(
                    turn,
                    "amended",
                    registered.body(),
                    registration=registered.text(),
                    accounts=accounts.text(),
                )
        return self.budget_state(dataset)

    def copies(self, dataset: str, registration: Registration) -> list[str]:
        """Other datasets with the same rows, as far as fingerprints tell. For curators only: to
        whoever brings a table of guessed rows it would say whether the guess is right."""
        name = read_name(dataset, "dataset")
        with self._store.reading() as connection:
            return entries.find_copies(connection, name, read_registration(registration))

    def lookalikes(self, dataset: str, registration: Registration) -> list[str]:
        """Other datasets with the same privacy unit and columns."""
        with self._store.reading() as connection:
            return entries.find_lookalikes(connection, dataset, registration)

    def people_budget(self, dataset: str) -> PeopleBudget | None:
        """A dataset with all others of its privacy unit and columns; None where it is alone."""
        state = self.budget_state(dataset)
        if state.registered is None:
            return None
        others = self.lookalikes(dataset, state.registered.registration)
        found = group_by_people([self.budget_state(name) for name in sorted([dataset, *others])])
        return found[0] if found else None

    def claim_people(
        self, dataset: str, registration: Registration, *, new_people: bool
    ) -> Registration:
        """The registration of a new dataset, once it is said whose rows these are.

        Args:
            new_people: record that nobody is in a dataset with the same privacy unit and columns,
                as the curator's word.

        Raises:
            BudgetRefused: the rows have a budget under another name, or may be about the people of
                another dataset and nobody has said that they are not.
        """
        with self._store.reading() as connection:
            return _claim_people(connection, dataset, registration, new_people=new_people)

    def budget_state(self, dataset: str, *, parts: bool = False) -> BudgetState:
        """Where a dataset stands.

        Args:
            parts: also read the levels of those that cost most, which looks at all of them.
        """
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            state = entries.read_budget_state(row, entries.count_suspensions(connection, row.name))
            most = states.MAX_SHOWN_PARTS if parts else 0
            return replace(state, parts=entries.part_levels(connection, row.name, most))

    def close(self, dataset: str) -> BudgetState:
        """Allow no further debits, for good."""
        with self._turn(dataset) as turn:
            if entries.state_after_resuming(turn.row.state) == "closed":
                message = f"dataset {turn.row.name!r} is closed already"
                raise BudgetRefused(message, field="dataset", value=turn.row.name)
            self._append(turn, "closed", {}, state=entries.state_after_closing(turn.row.state))
        return self.budget_state(dataset)

    def suspend(self, dataset: str, request: str | None = None) -> None:
        """Draw nothing more until the curator has looked: an engine failed after a debit. Each time
        counts, whether it was suspended already or not, and whatever the clock says.

        Args:
            request: whose answer could not be drawn.
        """
        said = {} if request is None else {"request": read_name(request, "request")}
        with self._turn(dataset) as turn:
            self._append(
                turn, "suspended", said, state=entries.state_after_suspension(turn.row.state)
            )

    def resume(self, dataset: str) -> BudgetState:
        """Let a suspended dataset go on: for its curator, who knows why an engine failed. What was
        paid for can then be answered under its request. Let one go on, too, whose last entry has a
        date that is still to come, since a clock was ahead: dates go on from this one."""
        with self._turn(dataset) as turn:
            state = entries.read_budget_state(turn.row)
            behind = state.dates_decide and states.is_behind(turn.time, state.last)
            if not (state.suspended or behind):
                raise BudgetRefused(f"dataset {turn.row.name!r} is not suspended")
            accounts = state.accounts.leave_period() if behind else state.accounts
            after = entries.state_after_resuming(turn.row.state)
            self._append(turn, "resumed", {}, state=after, accounts=accounts.text())
        return self.budget_state(dataset)

    def _register(
        self,
        connection: Any,
        name: str,
        plan: Plan,
        budget: Budget,
        registration: Registration | None,
        new_people: bool | Collection[str],
        schedule: Mapping[str, Any] | None = None,
    ) -> bool:
        """Make a dataset unless there is one of this name."""
        self._store.lock_registrations(connection)
        if entries.dataset_row(connection, name) is not None:
            return False
        if registration is not None:
            registration = _claim_people(connection, name, registration, new_people=new_people)
        registered = None if registration is None else RegisteredTable.of(registration)
        moment = self._store.stamp(connection)
        planned = None if schedule is None else _plan_schedule(schedule, budget, moment)
        text = None if planned is None else planned.text()
        said: dict[str, Any] = {"plan": plan.to_dict(), "budget": vars(budget)}
        said |= {} if text is None else {"schedule": json.loads(text)}
        said |= {} if registered is None else registered.body()
        fixed = {**vars(budget), "alone": int(budget.alone), "schedule": text, "accounts": None}
        fixed["plan"] = encoding.canonical_json(plan.to_dict())
        fixed["registration"] = None if registered is None else registered.text()
        empty = dict.fromkeys(("spent_epsilon", "spent_rho", "spent_delta", "debits", "entries"), 0)
        start = {"name": name, "state": "open", "last": "", "head": encoding.FIRST_HEAD}
        row = entries.DatasetRow(**{**fixed, **empty, **start})
        body = self._signed(said, moment)
        return self._store.register(connection, *entries.next_entry(row, "registered", None, body))

    @contextmanager
    def _turn(
        self, dataset: object, *requests: str, parts: Sequence[str] = ()
    ) -> Iterator[Transaction]:
        """A turn on a dataset whose row is the one that its last entry says."""
        name = read_name(dataset, "dataset")
        with self._store.turn(name, requests, parts) as turn:
            if turn.row is not None:
                entries.check_row(turn.row, turn.last)
                yield turn
                return
        with self._store.reading() as connection:
            raise _refuse_unknown(connection, name)

    def _append(
        self, turn: Transaction, kind: str, said: dict[str, Any], **changes: object
    ) -> None:
        """Commit one more entry, with what it changes."""
        if kind not in ("suspended", "resumed"):
            states.check_clock(entries.read_budget_state(turn.row), turn.time)
        time = max(turn.time, turn.row.last) if kind == "suspended" else turn.time
        body = self._signed(said, time)
        entry, row = entries.next_entry(turn.row, kind, None, body, **changes)
        turn.commit(row, entry)

    def _find(self, connection: Any, dataset: object) -> Any:
        name = read_name(dataset, "dataset")
        row = entries.dataset_row(connection, name)
        if row is None:
            raise _refuse_unknown(connection, name)
        return row

    def _signed(self, body: dict[str, Any], time: str) -> dict[str, Any]:
        return {"who": self.who, "when": time, **body}


def _changes_table(budget_state: BudgetState, registration: Registration, amend: bool) -> bool:
    """Whether a session on a table has an amendment to record; refuses another table than the
    dataset's, or with `amend` one that it cannot go on with."""
    before, name = budget_state.registered, budget_state.dataset
    if before is None:
        return True
    if amend:
        before.amended(name, registration)
        return True
    universe = before.registration.universe is None and registration.universe is not None
    before.check(name, replace(registration, universe=None) if universe else registration)
    return universe


def _plan_schedule(said: Mapping[str, Any], budget: Budget, moment: str) -> Schedule:
    if budget.alone:
        message = "this plan's promise is for one release, which no schedule divides"
        raise InvalidInput(message, field="schedule", hint="leave the schedule out")
    return Schedule.plan(said, budget, moment[:10])


def check_schedule(budget_state: BudgetState, said: Mapping[str, Any] | None) -> None:
    """A schedule is set when a dataset is opened, and never changes."""
    if said is None:
        return
    name, known = f"dataset {budget_state.dataset!r}", budget_state.schedule
    if known is None:
        message = f"{name} was opened without a schedule, and its budget is set once and for all"
        raise BudgetRefused(message, field="schedule", hint="leave the schedule out")
    asked = Schedule.plan(said, budget_state.budget, known.periods[0].first)
    if asked.said != known.said:
        listed = ", ".join(f"{key} = {value}" for key, value in known.said.items())
        message = f"{name} has another schedule: {listed}"
        raise BudgetRefused(message, field="schedule", hint="say the same, or leave it out")


def _claim_people(
    connection: Any,
    dataset: str,
    registration: Registration,
    *,
    new_people: bool | Collection[str],
    bound: bool = False,
) -> Registration:
    """See `Registry.claim_people`; a dataset that is bound to a table says itself whose it is."""
    known = () if isinstance(new_people, bool) else new_people
    same = entries.find_copies(connection, dataset, registration)
    if same := [each for each in same if each not in known]:
        hint = f"{_describe_continuing(same[0])} goes on under that budget"
        raise BudgetRefused(
            describe_copy(dataset, same[0]), field="dataset", value=dataset, hint=hint
        )
    bound = bound or not isinstance(new_people, bool)
    others = [] if bound else entries.find_lookalikes(connection, dataset, registration)
    if others and not new_people:
        hint = (
            f"say {_describe_continuing(*others)} if people may be in both (next month, a "
            "correction), or --new-people (new_people=True) if nobody is"
        )
        raise BudgetRefused(
            describe_lookalike(dataset, others), field="dataset", value=dataset, hint=hint
        )
    said = dict.fromkeys(others, "other people, by the curator's word")
    return replace(registration, apart_from=said) if others else registration


def _describe_continuing(*datasets: str) -> str:
    if len(datasets) == 1:
        return f'--continues {datasets[0]} (dataset="{datasets[0]}", amend=True)'
    return f"--continues NAME (dataset=NAME, amend=True), one of {', '.join(datasets)},"


def _refuse_unknown(connection: Any, name: str) -> InvalidInput:
    known = entries.dataset_names(connection)
    if not known:
        message = f"dataset {name!r} is not registered: the ledger is empty"
        return InvalidInput(
            message, field="dataset", value=name, hint="register it with whosin ledger create"
        )
    return UnknownName("dataset", name, known)


def _read_budget(plan: object) -> Budget:
    if not isinstance(plan, Plan):
        raise invalid_value("plan", "a Plan", repr(plan))
    return Budget.of(plan)


def describe_unanswered(request: str) -> str:
    """What is true of a debit without an answer."""
    return f"the debit stands; request {request} continues without paying again"


def add_note(error: BaseException, words: str) -> BaseException:
    """The same error, which says more; an interruption says it too."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(f"interrupted: {words}")
    if isinstance(error, WhosinError):
        error.args = (f"{error.message}; {words}",)
    return error


def suspend_dataset(ledger: Registry, dataset: str, answer: str, request: str) -> ScanFailed:
    """Suspend a dataset; returns what to raise.

    Args:
        answer: the request whose answer could not be drawn.
        request: what people continue.
    """
    try:
        ledger.suspend(dataset, answer)
    except StoreFailed:  # that says something of the ledger, and nothing of the rows
        return ScanFailed(
            f"the engine failed: {describe_unanswered(request)}; the ledger could not be told"
        )
    return ScanFailed(
        f"the engine failed: the debit stands; dataset {dataset!r} is suspended until its curator "
        f"lets it go on with whosin ledger resume, and request {request} then continues without "
        "paying again"
    )
