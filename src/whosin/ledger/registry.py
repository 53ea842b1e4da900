"""The datasets of a ledger: registering, refusing, suspending and resuming.

A budget is set once. The table that it is for may be amended as long as whom it protects stays the
same. Each registration, amendment, suspension, resumption and closing is an entry of the history.
A refusal is a `BudgetRefused` with its reason, and nothing was spent.

Whether an engine runs out of memory may depend on one person's rows, so a failure after a debit
tells something that no debit paid for. The words are the same whatever the reason was, and nothing
of the engine's own is repeated, not even as a context, since it may quote rows. The failure is an
entry, and nothing more is drawn until the curator resumes the dataset, so that it cannot be tried
again. Someone who stops the work, and a source whose columns were replaced, tell nothing of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from whosin.calibration import Plan
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    ScanFailed,
    StoreFailed,
    UnknownName,
    WhosinError,
    invalid_value,
    spell,
)
from whosin.ledger import budget as ledger_budget
from whosin.ledger import encoding, entries
from whosin.ledger.budget import (
    COUNTED_NOTION,
    Budget,
    BudgetState,
    Cost,
    PeopleBudget,
    Spend,
    describe_promise,
    drop_dust,
    group_by_people,
)
from whosin.ledger.encoding import current_user, read_name
from whosin.ledger.entries import Entry
from whosin.ledger.registration import RegisteredTable, Registration, read_registration
from whosin.ledger.store import WAIT_SECONDS, Store
from whosin.ledger.transaction import Transaction

STEP_KEY = "step"
"""Of a question that is a step of a stream, which one it is: see `release.queries.running`."""
COPY_POLICIES = ("warn", "refuse")
"""What to do about rows that have a budget under another name."""


def first_row(name: str, plan: Plan, budget: Budget, registered: RegisteredTable | None) -> Any:
    """A dataset's row before its first entry."""
    text = encoding.canonical_json(plan.to_dict())
    registration = None if registered is None else registered.text()
    fixed = {**vars(budget), "alone": int(budget.alone), "plan": text, "registration": registration}
    zero = dict.fromkeys(("spent_epsilon", "spent_rho", "spent_delta", "debits", "entries"), 0)
    start = {
        "name": name,
        "state": "open",
        "head": encoding.FIRST_HEAD,
        "last": "",
        **zero,
        **fixed,
    }
    return entries.DatasetRow(**start)


def first_entry(plan: Plan, budget: Budget, registered: RegisteredTable | None) -> dict[str, Any]:
    """What the entry of a registration says."""
    body = {"plan": plan.to_dict(), "budget": vars(budget)}
    return body if registered is None else body | {"registration": registered.entry()}


def find_copies(connection: Any, name: str, registration: Registration | None) -> list[str]:
    """Other datasets with the same rows, as far as fingerprints tell."""
    if registration is None:
        return []
    return sorted(
        other
        for other, registered in entries.registrations(connection).items()
        if other != name and registered.holds_rows_of(registration)
    )


def describe_lookalike(name: str, other: str) -> str:
    """That a table may be about the people of another dataset, in words."""
    return (
        f"{name!r} has the privacy unit and the columns of dataset {other!r}, which has a budget "
        "of its own"
    )


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


def open_for_debits(budget_state: BudgetState) -> None:
    """A closed dataset, or one about which a release of its own was made, answers nothing more; one
    that is suspended, nothing for now."""
    refuse_suspended(budget_state)
    reason = {
        "closed": "is closed and answers no more questions",
        "complete": "has had its one release: its promise does not compose with further answers",
    }.get(budget_state.state)
    if reason is not None:
        raise BudgetRefused(f"dataset {budget_state.dataset!r} {reason}", field="dataset")


def refuse_suspended(budget_state: BudgetState) -> None:
    """Nothing is drawn after an engine failed: whether it fails again could depend on one row. The
    words are the same whatever the reason was."""
    if budget_state.suspended:
        raise BudgetRefused(
            f"dataset {budget_state.dataset!r} is suspended, since an engine failed after a debit: "
            "its curator looks into it and lets it go on with whosin ledger resume"
        )


def check_session(
    budget_state: BudgetState, plan: Plan, budget: Budget, share: object = None
) -> None:
    """A session's plan, or the share of it that will be spent, must fit what is left."""
    open_for_debits(budget_state)
    total, name = budget_state.budget, f"dataset {budget_state.dataset!r}"
    if budget.relation != total.relation:
        asked = f"this plan is for {budget.relation} neighbours"
        message = f"the budget of {name} is for {total.relation} neighbours, and {asked}"
        raise BudgetRefused(message, field="plan")
    if budget.alone and (budget_state.debits or not total.alone):
        promise = "this plan's promise does not compose with other answers"
        message = f"{promise}, and {name} was not registered for it alone"
        hint = "register a dataset of its own with this plan"
        raise BudgetRefused(message, field="plan", hint=hint)
    if total.alone and describe_promise(plan) != describe_promise(budget_state.plan):
        allowed = f"{name} allows one release, under the plan that it was registered with"
        raise BudgetRefused(f"{allowed}, and this is a different plan", field="plan")
    if share is not None:
        budget = budget.part(share)
    rho = budget.rho or encoding.rho_from_epsilon(budget.epsilon)
    whole = Cost(budget.epsilon, rho, budget.delta)
    if total.holds(budget_state.spent + whole):
        return
    asked = "the plan" if share is None or share == 1 else f"a share of {share} of the plan"
    if budget_state.spent.delta + budget.delta > total.delta:
        # A session counts on its whole δ; the ledger keeps a quarter of it for single answers.
        left = 4 * (total.delta - budget_state.spent.delta)
        needed, have = distinguish_units(4 * budget.delta, left, encoding.DELTA_UNITS)
        message = f"{asked} needs δ = {needed}, and {name} has {have} left"
        raise BudgetRefused(message, field="share")
    needed, have = distinguish_units(budget.epsilon, _left_for_people(budget_state, budget.epsilon))
    message = f"{asked} needs ε = {needed}, and {name} has {have} left of {budget_words(total)}"
    raise BudgetRefused(message, field="share", hint=_fitting_share(budget_state, plan))


def _fitting_share(budget_state: BudgetState, plan: Plan) -> str:
    """Which share of the plan would fit, if any."""
    whole = encoding.budget_units(plan.epsilon, "epsilon of the plan")
    fits = budget_state.spendable_units
    if not 0 < fits < whole:
        return ""
    return f"a share of 1/{-(-whole // fits)} of the plan would fit"


def check_debits(budget_state: BudgetState, spends: Sequence[Spend]) -> None:
    """The whole history must stay within the budget.

    A release of its own that has no cost under the dataset's relation answers for its own promise.
    """
    open_for_debits(budget_state)
    spent, count = budget_state.spent, budget_state.debits
    joint = [spend.after for spend in spends if spend.after is not None]
    if joint and (len(spends) > 1 or joint[0] != count):
        message = "another release was paid for since this one was measured with those before"
        raise BudgetRefused(message, field="request", hint="measure and ask again")
    relation = budget_state.budget.relation
    for spend in spends:
        if count and (spend.alone or budget_state.budget.alone):
            promise = "this release's promise does not compose with other answers"
            message = f"{promise}, and dataset {budget_state.dataset!r} has answered before"
            raise BudgetRefused(message, field="dataset")
        spent, count = spent + spend.cost(relation), count + 1
    if any(spend.alone for spend in spends) and len(spends) > 1:
        message = "a release whose promise does not compose with others must be asked alone"
        raise BudgetRefused(message, field="spends", value=len(spends))
    for spend in spends:
        check_registration(budget_state, spend)
    if not all(spend.alone and relation not in spend.costs for spend in spends):
        if not budget_state.budget.holds(spent):
            raise BudgetRefused(_describe_excess(budget_state, spends, spent), field="budget")
        return
    # A promise of its own says nothing about other adversaries: it must be the registered one.
    promised = encoding.plain_copy(describe_promise(budget_state.plan), "plan")
    for spend in spends:
        if spend.promise != promised:
            own = f"this answer has a promise of its own ({spend.guarantee})"
            mine = f"the one that dataset {budget_state.dataset!r} was registered with"
            hint = "register a dataset with that very plan"
            raise BudgetRefused(f"{own}, which does not imply {mine}", field="plan", hint=hint)


def check_registration(budget_state: BudgetState, spend: Spend) -> dict[str, Any]:
    """What a debit records of its table; it must be the dataset's."""
    if budget_state.registered is None:
        return {}
    budget_state.registered.check(budget_state.dataset, spend.registration)
    assert spend.registration is not None
    return {"registration": budget_state.registered.asked(spend.registration)}


def other_question(before: Entry, spend: Spend, only: str | None = None) -> None:
    """A request id belongs to one question, and to one person where only a person's own requests
    count.

    What of a table's rows counts follows from the table: an answer that is stored is shown with
    what was true of it, and `other_table` sees to one that is not.
    """
    asked = spend.to_dict()
    paid = {key: before.body.get(key) for key in asked}
    others = only is not None and before.body.get("who") != only
    if others or _question_text(paid) != _question_text(asked):
        message = f"request {before.request!r} was made for another question or at another cost"
        same = "repeat a request with the same questions, share, split, weights and noise"
        hint = f"{same}, or choose a new name"
        raise BudgetRefused(message, field="request", value=before.request, hint=hint)


def _question_text(data: dict[str, Any]) -> str:
    what = {key: value for key, value in data["what"].items() if key != COUNTED_NOTION}
    return encoding.canonical_json({**data, "what": what})


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


def budget_words(budget: Budget) -> str:
    """A total in a few words."""
    return f"ε = {spell(budget.epsilon / encoding.EPSILON_UNITS)} ({budget.relation})"


def distinguish_units(
    needed: int, left: int, scale: int = encoding.EPSILON_UNITS
) -> tuple[str, str]:
    """Two numbers of units with as many digits as it takes to tell them apart."""
    first, second, digits = "", "", 6
    while first == second and digits < 18:
        first, second = (spell(max(0, value) / scale, digits) for value in (needed, left))
        digits += 1
    return first, second


def _left_for_people(budget_state: BudgetState, needed: int) -> int:
    """What is left, as people are told: dust is nothing, except next to a cost like it."""
    return budget_state.spendable_units or (
        budget_state.left if needed <= 2 * budget_state.left else 0
    )


def _describe_excess(budget_state: BudgetState, spends: Sequence[Spend], spent: Cost) -> str:
    budget, name, before = budget_state.budget, budget_state.dataset, budget_state.spent
    if spent.delta > budget.delta:
        needed, have = distinguish_units(
            spent.delta - before.delta, budget.delta - before.delta, encoding.DELTA_UNITS
        )
        return (
            f"this needs δ = {needed}, and dataset {name!r} has {have} left for single answers; "
            "nothing was spent"
        )
    asked = sum((spend.cost(budget.relation) for spend in spends), Cost(0, 0))
    if asked.epsilon < encoding.INFINITE_UNITS:
        needed, have = distinguish_units(
            asked.epsilon, _left_for_people(budget_state, asked.epsilon)
        )
        return (
            f"this needs ε = {needed}, and dataset {name!r} has {have} left of "
            f"{budget_words(budget)}; nothing was spent"
        )
    what = "these answers have" if len(spends) > 1 else "this answer has"
    reason = "its plan has no δ, and Gaussian noise needs one"
    if asked.rho >= encoding.INFINITE_UNITS:
        reason = "no ρ either"
    elif budget.rho:
        left = budget.rho - before.rho
        clear = drop_dust(left, budget.rho, budget_state.debits)
        needed, have = distinguish_units(asked.rho, clear or (left if asked.rho <= 2 * left else 0))
        reason = f"ρ = {needed} is more than the {have} left"
    return (
        f"dataset {name!r}: {what} no pure ε between {budget.relation} neighbours, and {reason}; "
        "nothing was spent"
    )


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
        self.who = read_name(who if who is not None else current_user(), "who")
        self._only = self.who if own else None
        self._store = Store(url, wait, create)

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
        copies: str = "warn",
    ) -> BudgetState:
        """Set a dataset's budget, once: the plan's ε is the total.

        Args:
            registration: the table that the budget is for (`release.table.register_table`): whose
                rows they are is then fixed too.
            copies: whether rows that have a budget under another name are refused ("refuse").

        Raises:
            BudgetRefused: it is registered already.
        """
        name, budget = read_name(dataset, "dataset"), _read_budget(plan)
        with self._store.writing() as connection:
            if not self._register(
                connection, name, plan, budget, read_registration(registration), copies
            ):
                raise BudgetRefused(
                    f"dataset {name!r} is registered already; its budget is set once and for all",
                    field="dataset",
                    value=name,
                )
            return entries.read_budget_state(entries.dataset_row(connection, name))

    def admit(
        self,
        dataset: str,
        plan: Plan,
        *,
        resume: bool = False,
        share: object = None,
        registration: Registration | None = None,
        amend: bool = False,
        copies: str = "warn",
        paid: bool = False,
    ) -> BudgetState:
        """Open a session: register a new dataset, or see that the plan fits what is left. Nothing
        is recorded of a session that is refused.

        Args:
            resume: admit the plan that the dataset was registered with whatever has been spent, to
                go on, or to retry after a crash; each debit is still checked.
            share: the part of the plan that the session will spend; all of it by default.
            registration: the table that will be asked; one without a table is bound to it.
            amend: record that the dataset goes on with this table, as `amend` does.
            copies: as for `register`.
            paid: whether all that will be asked was paid for before: nothing has to be left.

        Raises:
            BudgetRefused: the plan does not fit the remainder, is for another relation, or the
                table is not the registered one.
        """
        name, budget = read_name(dataset, "dataset"), _read_budget(plan)
        registration = read_registration(registration)
        _check_copies(copies)
        with self._store.reading() as connection:
            row = entries.dataset_row(connection, name)
        if row is None:
            with self._store.writing() as connection:
                self._register(connection, name, plan, budget, registration, copies)
                row = entries.dataset_row(connection, name)
        budget_state = entries.read_budget_state(row)
        changes = registration is not None and _changes_table(budget_state, registration, amend)
        retried = resume and budget_state.plan.to_dict() == plan.to_dict()
        if not paid and (not retried or (changes and not budget_state.spendable_units)):
            check_session(budget_state, plan, budget, share)
        if changes and registration is not None:
            open_for_debits(budget_state)
            budget_state = self.amend(name, registration)
            assert budget_state.registered is not None
            budget_state.registered.check(name, registration)
        return budget_state

    def amend(self, dataset: str, registration: Registration) -> BudgetState:
        """Record that a dataset goes on with another table, other domains or bounds, under the same
        budget: next month's file, a column that was not declared before.

        Raises:
            BudgetRefused: the privacy unit or the universe would change, and with it the promise.
        """
        read_registration(registration)
        with self._turn(dataset) as turn:
            before = entries.read_budget_state(turn.row).registered
            registered = (
                RegisteredTable.of(registration)
                if before is None
                else before.amended(turn.row.name, registration)
            )
            if before is None or before.difference(registration) is not None:
                self._append(
                    turn,
                    "amended",
                    {"registration": registered.entry()},
                    registration=registered.text(),
                )
        return self.budget_state(dataset)

    def copies(self, dataset: str, registration: Registration) -> list[str]:
        """Other datasets with the same rows, as far as fingerprints tell. For curators only: to
        whoever brings a table of guessed rows it would say whether the guess is right."""
        name = read_name(dataset, "dataset")
        with self._store.reading() as connection:
            return find_copies(connection, name, read_registration(registration))

    def lookalikes(self, dataset: str, registration: Registration) -> list[str]:
        """Other datasets with the same privacy unit and columns."""
        with self._store.reading() as connection:
            return sorted(
                other
                for other, registered in entries.registrations(connection).items()
                if other != dataset and registered.has_shape_of(registration)
            )

    def people_budget(self, dataset: str) -> PeopleBudget | None:
        """A dataset with all others of its privacy unit and columns; None where it is alone."""
        state = self.budget_state(dataset)
        if state.registered is None:
            return None
        others = self.lookalikes(dataset, state.registered.registration)
        names = sorted([dataset, *others])
        found = group_by_people([self.budget_state(name) for name in names])
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
        if same := self.copies(dataset, registration):
            raise BudgetRefused(
                describe_copy(dataset, same[0]),
                field="dataset",
                value=dataset,
                hint=f"say --continues {same[0]} to go on under that budget",
            )
        others = self.lookalikes(dataset, registration)
        if others and not new_people:
            raise BudgetRefused(
                describe_lookalike(dataset, others[0]),
                field="dataset",
                value=dataset,
                hint=f"say --continues {others[0]} if people may be in both (next month, a "
                "correction), or --new-people if nobody is",
            )
        said = dict.fromkeys(others, "other people, by the curator's word")
        return replace(registration, apart_from=said) if others else registration

    def budget_state(self, dataset: str) -> BudgetState:
        """Where a dataset stands."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            return entries.read_budget_state(row, entries.count_suspensions(connection, row.name))

    def close(self, dataset: str) -> BudgetState:
        """Allow no further debits, for good."""
        with self._turn(dataset) as turn:
            if ledger_budget.state_after_resuming(turn.row.state) == "closed":
                message = f"dataset {turn.row.name!r} is closed already"
                raise BudgetRefused(message, field="dataset", value=turn.row.name)
            self._append(
                turn, "closed", {}, state=ledger_budget.state_after_closing(turn.row.state)
            )
        return self.budget_state(dataset)

    def suspend(self, dataset: str, request: str | None = None) -> None:
        """Draw nothing more until the curator has looked: an engine failed after a debit. Each time
        counts, whether it was suspended already or not.

        Args:
            request: whose answer could not be drawn.
        """
        said = {} if request is None else {"request": read_name(request, "request")}
        with self._turn(dataset) as turn:
            self._append(
                turn, "suspended", said, state=ledger_budget.state_after_suspension(turn.row.state)
            )

    def resume(self, dataset: str) -> BudgetState:
        """Let a suspended dataset go on: for its curator, who knows why an engine failed. What was
        paid for can then be answered under its request."""
        with self._turn(dataset) as turn:
            if not ledger_budget.is_suspended(turn.row.state):
                raise BudgetRefused(f"dataset {turn.row.name!r} is not suspended")
            self._append(
                turn, "resumed", {}, state=ledger_budget.state_after_resuming(turn.row.state)
            )
        return self.budget_state(dataset)

    def _register(
        self,
        connection: Any,
        name: str,
        plan: Plan,
        budget: Budget,
        registration: Registration | None,
        copies: str,
    ) -> bool:
        """Make a dataset unless there is one of this name."""
        _check_copies(copies)
        if entries.dataset_row(connection, name) is not None:
            return False
        others = find_copies(connection, name, registration)
        if others and copies == "refuse":
            raise BudgetRefused(describe_copy(name, others[0]))
        registered = None if registration is None else RegisteredTable.of(registration)
        row = first_row(name, plan, budget, registered)
        said = first_entry(plan, budget, registered)
        body = self._signed(said, self._store.stamp(connection))
        return self._store.register(connection, *entries.next_entry(row, "registered", None, body))

    @contextmanager
    def _turn(self, dataset: object, *requests: str) -> Iterator[Transaction]:
        """A turn on a dataset whose row is the one that its last entry says."""
        name = read_name(dataset, "dataset")
        with self._store.turn(name, requests) as turn:
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
        body = self._signed(said, turn.time)
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


def _check_copies(copies: object) -> None:
    if copies not in COPY_POLICIES:
        raise UnknownName("copies", str(copies), COPY_POLICIES)


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
