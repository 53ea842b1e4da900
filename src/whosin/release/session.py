"""`Session`: questions to a table under a plan, paid for in a ledger.

Contract: a query is checked against the schema, priced, debited, and only then scanned; its answer
is stored before it is returned. No error, message or refusal depends on the rows.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from whosin.calibration import Plan
from whosin.errors import InvalidInput, ScanFailed, WhosinError
from whosin.ledger import Ledger, Standing
from whosin.ledger.charge import Charge, Cost
from whosin.release.answer import Answer, Release
from whosin.release.batch import asked_of, price
from whosin.release.engines.base import Progress
from whosin.release.pricing import Offer
from whosin.release.queries import Query
from whosin.release.table import Table

LONGEST_REQUEST = 100
Watch = Callable[[str], Progress | None]
"""Told a query's title when its scan begins; returns whom to tell how far it is."""


class Session:
    """A session on one table.

    Args:
        table: the data.
        plan: whom to protect from whom; its ε is what this session may spend, and the dataset's
            total if the ledger does not know the dataset yet.
        ledger: a file, a database URL, or a `Ledger`.
        dataset: the name in the ledger; the table's own by default.
        who: in whose name.
        request: an id for this session's questions. A session that was interrupted is continued
            under the same id: what was paid is not paid again, what was answered stays the same.

    Raises:
        BudgetRefused: the plan does not fit what is left of the dataset's budget.
    """

    def __init__(
        self,
        table: Table,
        plan: Plan,
        ledger: object,
        *,
        dataset: str | None = None,
        who: str | None = None,
        request: str | None = None,
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidInput("table", "a Table", type(table).__name__)
        if not isinstance(plan, Plan):
            raise InvalidInput("plan", "a Plan, such as calibrate(…) makes", type(plan).__name__)
        self.table, self.plan = table, plan
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, who=who)
        self.dataset = dataset if dataset is not None else table.name
        self.request = uuid.uuid4().hex if request is None else _request(request)
        self._spent, self._asked = Cost(0, 0), 0
        self._begun: list[Charge] = []
        if request is None or not self._paid():
            self.ledger.admit(self.dataset, plan)

    @property
    def standing(self) -> Standing:
        """Where the dataset stands."""
        return self.ledger.standing(self.dataset)

    def dry_run(
        self,
        queries: Query | Sequence[Query],
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
    ) -> list[Offer]:
        """What a batch would cost and how good it would be; nothing is spent, no row is read.

        Args:
            share: the part of the session's budget for this batch; by default all that is left.
            split: "weights" or "relative-error" (see `splitting.shares`).
            noise: "laplace" or "gaussian".
        """
        return price(
            self.table, self.plan, queries, self._spent, share=share, split=split, noise=noise
        )

    def release(
        self,
        queries: Query | Sequence[Query],
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
        watch: Watch | None = None,
    ) -> Release:
        """Answer a batch: each query is debited, scanned, noised, stored, and then returned.

        Raises:
            BudgetRefused: the batch does not fit; nothing was spent.
            ScanFailed: the engine failed; the debits of this request stand and can be used again.
        """
        asked = asked_of(queries)
        offers = self._resumed(asked, share, split, noise)
        if offers is None:
            offers = self.dry_run(asked, share=share, split=split, noise=noise)
        names = [f"{self.request}/{self._asked + place}" for place in range(len(offers))]
        paid = self._paid()
        unpaid = [o.charge for name, o in zip(names, offers, strict=True) if name not in paid]
        if unpaid:
            self.ledger.check(self.dataset, unpaid)
        answers = []
        self._begun = []
        for name, offer in zip(names, offers, strict=True):
            answers.append(self._answer(name, offer, watch))
        self._close_batch()
        return Release(self.request, tuple(answers), self.standing)

    def _resumed(
        self, queries: Sequence[Query], share: object, split: str, noise: str
    ) -> list[Offer] | None:
        """The offers of a batch that failed before and is asked again; it continues where it was.
        Another batch comes after what the failed one had paid."""
        if not self._begun:
            return None
        try:
            offers = self.dry_run(queries, share=share, split=split, noise=noise)
        except WhosinError:
            offers = []
        if [offer.charge for offer in offers[: len(self._begun)]] == self._begun:
            return offers
        self._close_batch()
        return None

    def _close_batch(self) -> None:
        for charge in self._begun:
            self._spent += charge.cost(self.plan.relation)
        self._asked += len(self._begun)
        self._begun = []

    def ask(self, query: Query, *, share: object = None, noise: str = "laplace") -> Answer:
        """Answer one query."""
        return self.release(query, share=share, noise=noise)[0]

    def _answer(self, request: str, offer: Offer, watch: Watch | None) -> Answer:
        scanning = False

        def draw() -> object:
            nonlocal scanning
            scanning = True
            progress = watch(offer.query.title) if watch is not None else None
            answer = offer.query.answer(self.table, offer, progress)
            scanning = False
            return answer

        self._begun.append(offer.charge)
        failure: BaseException
        stands = f"the debit stands; request {self.request} continues without paying again"
        data: Any = None
        try:
            data = self.ledger.answer(self.dataset, offer.charge, draw, request)
        except KeyboardInterrupt:
            if not scanning and request not in self._paid():
                self._begun.pop()
                stands = "nothing was debited for this question"
            failure = KeyboardInterrupt(f"interrupted: {stands}")
        except Exception as error:
            if not scanning:  # the ledger's own words
                if request not in self._paid():
                    self._begun.pop()
                raise
            # The engine's words may quote rows, so they are not repeated, not even as a context.
            failure = ScanFailed(f"the engine failed: {stands}")
            del error
        if data is None:
            raise failure
        return Answer(
            offer.query.title,
            dict(offer.charge.what),
            tuple(data["columns"]),
            tuple(tuple(row) for row in data["rows"]),
            offer.noise,
            offer.charge.cost(self.plan.relation),
        )

    def _paid(self) -> set[str]:
        """The requests of this session that were debited before."""
        return self.ledger.requests(self.dataset, f"{self.request}/")


def _request(request: object) -> str:
    if not isinstance(request, str) or not 0 < len(request) <= LONGEST_REQUEST or "/" in request:
        accepted = f"a text of at most {LONGEST_REQUEST} letters, without a slash"
        raise InvalidInput("request", accepted, repr(request)[:80])
    return unicodedata.normalize("NFC", request)
