"""`Ledger`: the durable budget of datasets, shared by sessions, processes, machines and users.

Contract:
* a debit is committed before noise is drawn, and refused when it would exceed the budget;
* an answer is stored with its debit before it is shown; a retry with the same request returns the
  stored answer, or draws under the debit that stands: it neither pays nor answers twice;
* entries are only appended, and their digests form a chain.
"""

from __future__ import annotations

import json
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, cast

from sqlalchemy import Connection, select

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, UnknownName
from whosin.ledger import chain, refusal, rows, running
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Charge
from whosin.ledger.entries import Debit, Entry
from whosin.ledger.names import read_name, user
from whosin.ledger.schema import datasets
from whosin.ledger.standing import Standing
from whosin.ledger.store import WAIT, Store
from whosin.ledger.survey import survey
from whosin.ledger.turn import Turn


class Ledger:
    """A ledger in a file (SQLite) or on a server (`postgresql://…`).

    Args:
        url: a file, or a database URL. It is made if it does not exist and `create` is true.
        who: in whose name entries are made; by default the user of this process.
        wait: how many seconds to wait for other writers.
    """

    def __init__(
        self, url: object, *, who: str | None = None, create: bool = True, wait: float = WAIT
    ) -> None:
        self.who = read_name(who if who is not None else user(), "who")
        self._store = Store(url, wait, create)

    @property
    def name(self) -> str:
        """Where it is, without a password."""
        return self._store.name

    def __enter__(self) -> Ledger:
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

    def register(self, dataset: str, plan: Plan) -> Standing:
        """Set a dataset's budget, once: the plan's ε is the total.

        Raises:
            BudgetRefused: it is registered already.
        """
        name, budget = read_name(dataset, "dataset"), _budget(plan)
        with self._store.writing() as connection:
            if not self._register(connection, name, plan, budget):
                raise BudgetRefused(
                    f"dataset {name!r} is registered already; its budget is set once and for all"
                )
            return rows.standing(rows.dataset_row(connection, name))

    def admit(self, dataset: str, plan: Plan, *, resume: bool = False) -> Standing:
        """Open a session: register a new dataset, or see that the plan fits what is left.

        Args:
            resume: admit the plan that the dataset was registered with whatever has been spent, to
                go on, or to retry after a crash; each debit is still checked.

        Raises:
            BudgetRefused: the plan does not fit the remainder, or is for another relation.
        """
        name, budget = read_name(dataset, "dataset"), _budget(plan)
        with self._store.writing() as connection:
            self._register(connection, name, plan, budget)
            standing = rows.standing(rows.dataset_row(connection, name))
        if not (resume and standing.plan.to_dict() == plan.to_dict()):
            refusal.session(standing, plan, budget)
        return standing

    def standing(self, dataset: str) -> Standing:
        """Where a dataset stands."""
        with self._store.reading() as connection:
            return rows.standing(self._find(connection, dataset))

    def check(self, dataset: str, charges: Iterable[Charge]) -> Standing:
        """Whether these questions could all be paid now; nothing is spent.

        Raises:
            BudgetRefused: they could not.
        """
        asked = _charges(charges)
        standing = self.standing(dataset)
        refusal.debits(standing, asked)
        return standing

    def debit(self, dataset: str, request: str, charge: Charge) -> Debit:
        """Pay for a question. When this returns, the debit is on disk.

        Raises:
            BudgetRefused: it would exceed the budget, or the request was used for another question.
        """
        if not isinstance(charge, Charge):
            raise InvalidInput("charge", "a Charge", repr(charge))
        return self.debits(dataset, {request: charge})[0]

    def debits(self, dataset: str, charges: Mapping[str, Charge]) -> list[Debit]:
        """Pay for questions by request, all of them in one transaction or none.

        Raises:
            BudgetRefused: together they would exceed the budget, or a request was used for another
                question.
        """
        asked = {read_name(key, "request"): charge for key, charge in charges.items()}
        _charges(list(asked.values()))
        with self._turn(dataset, *asked) as turn:
            row, standing = turn.row, rows.standing(turn.row)
            for key, paid in turn.debits.items():
                refusal.other_question(paid, asked[key])
            new = {key: charge for key, charge in asked.items() if key not in turn.debits}
            if new:
                refusal.debits(standing, list(new.values()))
                made, spent = [], standing.spent
                for key, charge in new.items():
                    spent += charge.cost(row.relation)
                    changes = {
                        "spent_epsilon": spent.epsilon,
                        "spent_rho": spent.rho,
                        "spent_delta": spent.delta,
                        "debits": row.debits + 1,
                        "state": "complete" if charge.alone or row.alone else row.state,
                    }
                    body = self._signed(charge.to_dict(), turn.time)
                    entry, row = running.following(row, "debit", key, body, **changes)
                    made.append(entry)
                turn.commit(row, *made)
        return [Debit(row.name, key, key in new, turn.answers.get(key)) for key in asked]

    def store(self, debit: Debit, answer: object) -> Any:
        """Store the answer of a debit and return what may be shown.

        That is the answer stored first: if another process answered the same request meanwhile,
        its answer counts and this one must be thrown away.
        """
        if not isinstance(debit, Debit):
            raise InvalidInput("debit", "a Debit, as `Ledger.debit` returns it", repr(debit))
        key = read_name(debit.request, "request")
        text = chain.canonical(answer, "answer")
        with self._turn(debit.dataset, key) as turn:
            if key not in turn.debits:
                raise BudgetRefused(f"request {key!r} has not been paid for")
            if key in turn.answers:
                return json.loads(turn.answers[key])
            body = self._signed({"digest": chain.digest(text)}, turn.time)
            entry, row = running.following(turn.row, "answer", key, body)
            turn.commit(row, entry, answer=text)
        return json.loads(text)

    def answer(
        self, dataset: str, charge: Charge, draw: Callable[[], object], request: str | None = None
    ) -> Any:
        """Pay, draw, store, and only then return: the whole way of an answer.

        Args:
            draw: draws the noise and returns the answer as JSON data. It runs after the debit is
                committed, and not at all when the answer is stored already.
            request: an id of this question, for a retry; by default a fresh one.
        """
        if not callable(draw):
            raise InvalidInput("draw", "a function that draws the answer", repr(draw))
        debit = self.debit(dataset, uuid.uuid4().hex if request is None else request, charge)
        if debit.answer is not None:
            return json.loads(debit.answer)
        return self.store(debit, draw())

    def close(self, dataset: str) -> Standing:
        """Allow no further debits, for good."""
        with self._turn(dataset) as turn:
            if turn.row.state == "closed":
                raise BudgetRefused(f"dataset {turn.row.name!r} is closed already")
            body = self._signed({}, turn.time)
            entry, row = running.following(turn.row, "closed", None, body, state="closed")
            turn.commit(row, entry)
        return self.standing(dataset)

    def history(self, dataset: str) -> list[Entry]:
        """All entries of a dataset, oldest first."""
        with self._store.reading() as connection:
            return rows.history(connection, self._find(connection, dataset).name)

    def requests(self, dataset: str, prefix: str = "", *, answered: bool = False) -> set[str]:
        """The requests that were paid for and begin with a text; none for an unknown dataset.

        Args:
            answered: only those whose answer is stored.
        """
        name = read_name(dataset, "dataset")
        if not isinstance(prefix, str):
            raise InvalidInput("prefix", "the beginning of a request", repr(prefix))
        with self._store.reading() as connection:
            beginning = unicodedata.normalize("NFC", prefix)
            return rows.requests(connection, name, beginning, answered=answered)

    def record(self, dataset: str) -> tuple[Standing, list[Entry], dict[str, str]]:
        """Everything about a dataset in one consistent view: standing, entries, stored answers."""
        row, history, answers = self.evidence(dataset)
        return rows.standing(row), history, answers

    def evidence(self, dataset: str) -> tuple[Any, list[Entry], dict[str, str]]:
        """The row, the entries and the answers of a dataset, as they are, in one view."""
        with self._store.reading() as connection:
            row = self._find(connection, dataset)
            history = rows.history(connection, row.name)
            return row, history, rows.stored_answers(connection, row.name)

    def survey(self) -> None:
        """See that the ledger as a whole is one that a ledger makes (see `survey`).

        Raises:
            BrokenHistory: something was added to it, or a dataset was taken away.
        """
        with self._store.reading() as connection:
            survey(connection, self.name, self._store.heads)

    def noted(self, dataset: str) -> tuple[int, str] | None:
        """The number and head of the last entry that was noted beside the file, if any was."""
        heads = self._store.heads
        return None if heads is None else heads.read().get(read_name(dataset, "dataset"))

    def _register(self, connection: Connection, name: str, plan: Plan, budget: Budget) -> bool:
        """Make a dataset unless there is one of this name."""
        if rows.dataset_row(connection, name) is not None:
            return False
        fixed = {
            "relation": budget.relation,
            "alone": int(budget.alone),
            "epsilon": budget.epsilon,
            "rho": budget.rho,
            "delta": budget.delta,
            "plan": chain.canonical(plan.to_dict()),
            "binding": None,
        }
        zero = dict.fromkeys(("spent_epsilon", "spent_rho", "spent_delta", "debits", "entries"), 0)
        start = {"name": name, "state": "open", "head": chain.START, "last": "", **zero, **fixed}
        body = self._signed(
            {"plan": plan.to_dict(), "budget": vars(budget)}, self._store.stamp(connection)
        )
        row = rows.DatasetRow(**start)
        return self._store.register(connection, *running.following(row, "registered", None, body))

    @contextmanager
    def _turn(self, dataset: object, *requests: str) -> Iterator[Turn]:
        """A turn on a dataset whose row is the one that its last entry says."""
        name = read_name(dataset, "dataset")
        with self._store.turn(name, requests) as turn:
            if turn.row is not None:
                running.check(turn.row, turn.last)
                yield turn
                return
        with self._store.reading() as connection:
            raise _unknown(connection, name)

    def _find(self, connection: Connection, dataset: object) -> Any:
        name = read_name(dataset, "dataset")
        row = rows.dataset_row(connection, name)
        if row is None:
            raise _unknown(connection, name)
        return row

    def _signed(self, body: dict[str, Any], time: str) -> dict[str, Any]:
        return {"who": self.who, "when": time, **body}


def _unknown(connection: Connection, name: str) -> InvalidInput:
    known = [str(each) for each in connection.scalars(select(datasets.c.name))]
    if not known:
        return InvalidInput("dataset", "registered first; the ledger is empty", repr(name))
    return UnknownName("dataset", name, known)


def _budget(plan: object) -> Budget:
    if not isinstance(plan, Plan):
        raise InvalidInput("plan", "a Plan", repr(plan))
    return Budget.of(plan)


def _charges(charges: object) -> tuple[Charge, ...]:
    """A batch as it may be read more than once."""
    listed = isinstance(charges, Iterable) and not isinstance(charges, str | bytes | Mapping)
    found = tuple(cast(Iterable[object], charges)) if listed else (None,)
    if not all(isinstance(each, Charge) for each in found):
        raise InvalidInput("charges", "a list of Charges", repr(charges))
    return cast(tuple[Charge, ...], found)
