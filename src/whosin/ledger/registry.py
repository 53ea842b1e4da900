"""`Registry`: the datasets of a ledger: which there are, whose budget they have, for which table.

Contract: a budget is set once. The table that it is for may be amended as long as whom it protects
stays the same. Where an engine failed after a debit the dataset is halted until its curator resumes
it. Each registration, amendment, halt, resumption and closing is an entry of the history.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

from sqlalchemy import Connection, select

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, UnknownName
from whosin.ledger import refusal, registration, rows, running, states
from whosin.ledger.binding import Binding, Bound, read_binding
from whosin.ledger.budget import Budget
from whosin.ledger.names import read_name, user
from whosin.ledger.schema import datasets
from whosin.ledger.standing import Standing
from whosin.ledger.store import WAIT, Store
from whosin.ledger.transaction import Transaction


class Registry:
    """The datasets of a ledger; `Ledger` pays for answers about them."""

    def __init__(
        self,
        url: object,
        *,
        who: str | None = None,
        create: bool = True,
        wait: float = WAIT,
        own: bool = False,
    ) -> None:
        self.who = read_name(who if who is not None else user(), "who")
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
        """Close the connections."""
        self._store.dispose()

    def datasets(self) -> list[str]:
        """The names of all datasets."""
        with self._store.reading() as connection:
            return sorted(map(str, connection.scalars(select(datasets.c.name))))

    def register(
        self, dataset: str, plan: Plan, binding: Binding | None = None, *, copies: str = "warn"
    ) -> Standing:
        """Set a dataset's budget, once: the plan's ε is the total.

        Args:
            binding: the table that the budget is for, as `release.registration.binding_of` says it:
                whose rows they are is then fixed too.
            copies: whether rows that have a budget under another name are refused ("refuse").

        Raises:
            BudgetRefused: it is registered already.
        """
        name, budget = read_name(dataset, "dataset"), _budget(plan)
        with self._store.writing() as connection:
            if not self._register(connection, name, plan, budget, read_binding(binding), copies):
                raise BudgetRefused(
                    f"dataset {name!r} is registered already; its budget is set once and for all"
                )
            return rows.standing(rows.dataset_row(connection, name))

    def admit(
        self,
        dataset: str,
        plan: Plan,
        *,
        resume: bool = False,
        share: object = None,
        binding: Binding | None = None,
        copies: str = "warn",
    ) -> Standing:
        """Open a session: register a new dataset, or see that the plan fits what is left.

        Args:
            resume: admit the plan that the dataset was registered with whatever has been spent, to
                go on, or to retry after a crash; each debit is still checked.
            share: the part of the plan that the session will spend; all of it by default.
            binding: the table that will be asked; one without a table is bound to it.
            copies: as for `register`.

        Raises:
            BudgetRefused: the plan does not fit the remainder, is for another relation, or the
                table is not the registered one.
        """
        name, budget = read_name(dataset, "dataset"), _budget(plan)
        binding = read_binding(binding)
        _check_copies(copies)
        with self._store.reading() as connection:
            row = rows.dataset_row(connection, name)
        if row is None:
            with self._store.writing() as connection:
                self._register(connection, name, plan, budget, binding, copies)
                row = rows.dataset_row(connection, name)
        standing = rows.standing(row)
        if binding is not None:
            if standing.bound is None:
                standing = self.amend(name, binding)
            elif standing.bound.binding.universe is None and binding.universe is not None:
                standing.bound.check(name, replace(binding, universe=None))
                standing = self.amend(name, binding)
            assert standing.bound is not None
            standing.bound.check(name, binding)
        if not (resume and standing.plan.to_dict() == plan.to_dict()):
            refusal.session(standing, plan, budget, share)
        return standing

    def amend(self, dataset: str, binding: Binding) -> Standing:
        """Record that a dataset goes on with another table, other domains or bounds, under the same
        budget: next month's file, a column that was not declared before.

        Raises:
            BudgetRefused: the entity or the universe would change, and with it the promise.
        """
        read_binding(binding)
        with self._turn(dataset) as turn:
            before = rows.standing(turn.row).bound
            bound = Bound.of(binding) if before is None else before.amended(turn.row.name, binding)
            if before is None or before.difference(binding) is not None:
                self._append(turn, "amended", {"binding": bound.entry()}, binding=bound.text())
        return self.standing(dataset)

    def copies(self, dataset: str, binding: Binding) -> list[str]:
        """Other datasets with the same rows, as far as fingerprints tell. For curators only: to
        whoever brings a table of guessed rows it would say whether the guess is right."""
        name = read_name(dataset, "dataset")
        with self._store.reading() as connection:
            return registration.copies(connection, name, read_binding(binding))

    def standing(self, dataset: str) -> Standing:
        """Where a dataset stands."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            return rows.standing(row, rows.halts(connection, row.name))

    def close(self, dataset: str) -> Standing:
        """Allow no further debits, for good."""
        with self._turn(dataset) as turn:
            if states.without_halt(turn.row.state) == "closed":
                raise BudgetRefused(f"dataset {turn.row.name!r} is closed already")
            self._append(turn, "closed", {}, state=states.closed(turn.row.state))
        return self.standing(dataset)

    def halt(self, dataset: str, request: str | None = None) -> None:
        """Draw nothing more until the curator has looked: an engine failed after a debit. Each time
        counts, whether it was halted already or not.

        Args:
            request: whose answer could not be drawn.
        """
        said = {} if request is None else {"request": read_name(request, "request")}
        with self._turn(dataset) as turn:
            self._append(turn, "halted", said, state=states.halted(turn.row.state))

    def resume(self, dataset: str) -> Standing:
        """Let a halted dataset go on: for its curator, who knows why an engine failed. What was
        paid for can then be answered under its request.

        Raises:
            BudgetRefused: it is not halted.
        """
        with self._turn(dataset) as turn:
            if not states.is_halted(turn.row.state):
                raise BudgetRefused(f"dataset {turn.row.name!r} is not halted")
            self._append(turn, "resumed", {}, state=states.without_halt(turn.row.state))
        return self.standing(dataset)

    def _register(
        self,
        connection: Connection,
        name: str,
        plan: Plan,
        budget: Budget,
        binding: Binding | None,
        copies: str,
    ) -> bool:
        """Make a dataset unless there is one of this name."""
        _check_copies(copies)
        if rows.dataset_row(connection, name) is not None:
            return False
        others = registration.copies(connection, name, binding)
        if others and copies == "refuse":
            raise BudgetRefused(registration.copied(name, others[0]))
        bound = None if binding is None else Bound.of(binding)
        row = registration.first_row(name, plan, budget, bound)
        said = registration.first_entry(plan, budget, bound)
        body = self._signed(said, self._store.stamp(connection))
        return self._store.register(connection, *running.following(row, "registered", None, body))

    @contextmanager
    def _turn(self, dataset: object, *requests: str) -> Iterator[Transaction]:
        """A turn on a dataset whose row is the one that its last entry says."""
        name = read_name(dataset, "dataset")
        with self._store.turn(name, requests) as turn:
            if turn.row is not None:
                running.check(turn.row, turn.last)
                yield turn
                return
        with self._store.reading() as connection:
            raise _unknown(connection, name)

    def _append(
        self,
        turn: Transaction,
        kind: str,
        said: dict[str, Any],
        request: str | None = None,
        answer: str | None = None,
        **changes: object,
    ) -> None:
        """Commit one more entry, with the answer that it is about and what it changes."""
        body = self._signed(said, turn.time)
        entry, row = running.following(turn.row, kind, request, body, **changes)
        turn.commit(row, entry, answer=answer)

    def _find(self, connection: Connection, dataset: object) -> Any:
        name = read_name(dataset, "dataset")
        row = rows.dataset_row(connection, name)
        if row is None:
            raise _unknown(connection, name)
        return row

    def _signed(self, body: dict[str, Any], time: str) -> dict[str, Any]:
        return {"who": self.who, "when": time, **body}


def _check_copies(copies: object) -> None:
    if copies not in registration.COPIES:
        raise UnknownName("copies", str(copies), registration.COPIES)


def _unknown(connection: Connection, name: str) -> InvalidInput:
    known = [str(each) for each in connection.scalars(select(datasets.c.name))]
    if not known:
        return InvalidInput("dataset", "registered first; the ledger is empty", repr(name))
    return UnknownName("dataset", name, known)


def _budget(plan: object) -> Budget:
    if not isinstance(plan, Plan):
        raise InvalidInput("plan", "a Plan", repr(plan))
    return Budget.of(plan)
