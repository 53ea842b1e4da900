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
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from sqlalchemy import Connection

from whosin.errors import BudgetRefused, InvalidInput, SourceChanged
from whosin.ledger import chain, refusal, rows, running
from whosin.ledger.charge import Charge
from whosin.ledger.entries import Debit, Entry
from whosin.ledger.names import read_name
from whosin.ledger.registry import Registry
from whosin.ledger.standing import Standing
from whosin.ledger.whole_check import survey


class Ledger(Registry):
    """A ledger in a file (SQLite) or on a server (`postgresql://…`).

    Args:
        url: a file, or a database URL. It is made if it does not exist and `create` is true.
        who: in whose name entries are made; by default the user of this process.
        wait: how many seconds to wait for other writers.
        own: whether answers to requests that others paid for are refused.
    """

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
            BudgetRefused: together they would exceed the budget, a request was used for another
                question, or they are about another table than the dataset's.
        """
        asked = {read_name(key, "request"): charge for key, charge in charges.items()}
        _charges(list(asked.values()))
        with self._turn(dataset, *asked) as turn:
            row, standing = turn.row, rows.standing(turn.row)
            for key, paid in turn.debits.items():
                refusal.other_question(paid, asked[key], self._only)
                if key not in turn.answers:
                    refusal.other_table(paid, asked[key], standing)
            if asked.keys() - turn.answers.keys():
                refusal.halted(standing)
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
                    said = {**charge.to_dict(), **refusal.bound(standing, charge)}
                    body = self._signed(said, turn.time)
                    entry, row = running.following(row, "debit", key, body, **changes)
                    made.append(entry)
                turn.commit(row, *made, settle=False)
                turn.debits.update({str(entry.request): entry for entry in made})
        return [
            Debit(row.name, key, key in new, turn.answers.get(key), turn.debits[key].body)
            for key in asked
        ]

    def store(self, debit: Debit, answer: object) -> Any:
        """Store the answer of a debit and return what may be shown.

        That is the answer stored first: if another process has answered the same request by
        now, its answer counts and this one must be thrown away.

        Raises:
            BudgetRefused: the dataset has been halted since; this answer must be thrown away.
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
            refusal.halted(rows.standing(turn.row))
            self._append(turn, "answer", {"digest": chain.digest(text)}, key, text)
        return json.loads(text)

    def answer(
        self, dataset: str, charge: Charge, draw: Callable[[], object], request: str | None = None
    ) -> Any:
        """Pay, draw, store, and only then return: the whole way of an answer. If `draw` raises, the
        dataset is halted (see `halt`), since that may depend on a row.

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
        try:
            drawn = draw()
        except SourceChanged:
            raise
        except Exception:
            self.halt(debit.dataset, debit.request)
            raise
        return self.store(debit, drawn)

    def history(self, dataset: str) -> list[Entry]:
        """All entries of a dataset, oldest first."""
        with self._store.reading() as connection:
            return rows.history(connection, self._find(connection, dataset).name)

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

    def _requests(
        self, connection: Connection, dataset: str, prefix: str, *, answered: bool
    ) -> set[str]:
        name = read_name(dataset, "dataset")
        if not isinstance(prefix, str):
            raise InvalidInput("prefix", "the beginning of a request", repr(prefix))
        beginning = unicodedata.normalize("NFC", prefix)
        result = rows.requests(connection, name, beginning, answered=answered)
        if self._only is not None:
            result &= rows.requests_of(connection, name, beginning, self._only)
        return result

    def record(self, dataset: str) -> tuple[Standing, list[Entry], dict[str, str]]:
        """Everything about a dataset in one consistent view: standing, entries, stored answers."""
        row, history, answers = self.evidence(dataset)
        halts = sum(entry.kind == "halted" for entry in history)
        return rows.standing(row, halts), history, answers

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


def _charges(charges: object) -> tuple[Charge, ...]:
    """A batch as it may be read more than once."""
    listed = isinstance(charges, Iterable) and not isinstance(charges, str | bytes | Mapping)
    result = tuple(cast(Iterable[object], charges)) if listed else (None,)
    if not all(isinstance(each, Charge) for each in result):
        raise InvalidInput("charges", "a list of Charges", repr(charges))
    return cast(tuple[Charge, ...], result)
