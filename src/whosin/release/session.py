"""`Session`: questions to a table under a plan, paid for in a ledger.

Contract: a batch is checked against the schema, priced, debited in one transaction, and only then
scanned; its answers are stored before they are returned, and a stored one is returned with the
question that it was stored for. No error, message or refusal depends on the rows. An error after
the debit names the request that continues without paying again.
"""

from __future__ import annotations

import json
import unicodedata
import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, WhosinError
from whosin.ledger import Debit, Ledger, Standing, refusal, units
from whosin.ledger.budget import Budget
from whosin.ledger.charge import Charge, Cost
from whosin.ledger.halting import drawn, stands
from whosin.ledger.names import read_name
from whosin.ledger.registration import copied
from whosin.release.answer import Answer, Release
from whosin.release.engines.base import Progress
from whosin.release.prices.batch_price import asked_of, price
from whosin.release.prices.pricing import Offer
from whosin.release.queries import Query
from whosin.release.registration import binding_of, question_of
from whosin.release.sql import queries_in
from whosin.release.stored_answers import answers_of
from whosin.release.table import Table

LONGEST_REQUEST = 100
Watch = Callable[[str], Progress | None]
"""Told a query's title when its scan begins; returns whom to tell how far it is."""


class Session:
    """A session on one table.

    Args:
        table: the data. The first session on a dataset binds its budget to the table: entity,
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

    Attributes:
        notes: what people should be told about the session, in sentences.

    Raises:
        BudgetRefused: the plan does not fit what is left of the dataset's budget, or the table is
            not the one that the budget is for.
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
        share: object = None,
        amend: bool = False,
        curator: bool = True,
        copies: str = "warn",
        queries: Sequence[Query] = (),
    ) -> None:
        if not isinstance(table, Table):
            raise InvalidInput("table", "a Table", type(table).__name__)
        if not isinstance(plan, Plan):
            raise InvalidInput("plan", "a Plan, such as calibrate(…) makes", type(plan).__name__)
        self.table, self.plan, self.share, self.curator = table, plan, share, curator
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger, who=who)
        self.dataset = read_name(dataset if dataset is not None else table.name, "dataset")
        self.request = uuid.uuid4().hex if request is None else _request(request)
        self.notes: tuple[str, ...] = ()
        self._spent, self._asked = Cost(0, 0), 0
        self._begun: list[Charge] = []
        self._open(queries, amend, copies)

    def _open(self, queries: Sequence[Query], amend: bool, copies: str) -> None:
        known = self.dataset in self.ledger.datasets()
        if not known and not self.curator:
            raise BudgetRefused(
                f"dataset {self.dataset!r} has no budget here: its curator opens one with whosin "
                "ledger create"
            )
        self.binding = binding_of(self.table, queries, rows=amend or not known)
        if self._paid():
            return
        if amend and known:
            self.ledger.amend(self.dataset, self.binding)
        elif not known:
            for other in self.ledger.copies(self.dataset, self.binding)[:1]:
                self._note(copied(self.dataset, other), warn=copies == "warn")
        if not self.curator:
            self._bound()
        standing = self.ledger.admit(
            self.dataset,
            self.plan,
            resume=self.share is None,
            share=self.share,
            binding=self.binding,
            copies=copies,
        )
        budget = Budget.of(self.plan)
        if not standing.spendable_units:
            refusal.session(standing, self.plan, budget)
        if self.share is not None and standing.debits:
            part = budget.part(self.share).epsilon / units.EPSILON_UNITS
            self._note(
                f"dataset {self.dataset!r} has ε = {standing.spendable:.6g} left, and this session "
                f"takes {part:.6g} of it"
            )

    def _bound(self) -> None:
        """Someone who may not decide finds everything decided."""
        bound = self.ledger.standing(self.dataset).bound
        if bound is None:
            raise BudgetRefused(unnamed(self.dataset))
        bound.check(self.dataset, self.binding)

    def _note(self, words: str, *, warn: bool = False) -> None:
        self.notes += (words,)
        if warn:
            warnings.warn(words, stacklevel=4)

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
            share: the part of the plan's budget for this batch, such as "1/10", at most what is
                left; the session's own by default. A plan for one query (`calibrate(…, query=…)`)
                needs none.
            split: "weights" or "relative-error" (see `budget_split.shares`), or "optimal" (see
                `least_error`): counts of the same people are then measured at once.
            noise: "laplace" or "gaussian".
        """
        if share is None:
            share = self.share if self.plan.query is None else 1
        if share is None:
            accepted = 'given: the part of the plan for this, such as share="1/10", or share=1 for '
            accepted += "all of it, here or for every batch in Session(…, share=1)"
            raise InvalidInput("share", accepted, "nothing")
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
        """Answer a batch: it is debited as one, then each query is scanned, noised, stored, and
        returned.

        Raises:
            BudgetRefused: the batch does not fit; nothing was spent.
            ScanFailed: the engine failed; the debits of this request stand, and once the curator
                has resumed the dataset they can be used again.
            SourceChanged: the same holds for this, and nothing has to be resumed.
        """
        asked = asked_of(queries)
        offers = self._resumed(asked, share, split, noise)
        if offers is None:
            offers = self.dry_run(asked, share=share, split=split, noise=noise)
        paid = _paid_offers(offers)
        answered = {
            id(offer): iter(self._answers(debit, offer, watch))
            for debit, offer in zip(self._pay(paid), paid, strict=True)
        }
        answers = [next(answered[id(offer.paid)]) for offer in offers]
        self._close_batch()
        try:
            return Release(self.request, tuple(answers), self.standing)
        except BaseException as error:
            raise named(error, self._stands) from None

    def _pay(self, offers: Sequence[Offer]) -> list[Debit]:
        """All debits in one transaction, or none."""
        charges = {
            f"{self.request}/{self._asked + index}": replace(
                offer.charge,
                binding=question_of(self.binding, offer.query, self.table),
            )
            for index, offer in enumerate(offers)
        }
        self._fix_universe(charges.values())
        before, self._begun = self._begun, [offer.charge for offer in offers]
        try:
            return self.ledger.debits(self.dataset, charges)
        except BudgetRefused:
            self._begun = before
            raise
        except BaseException as error:
            try:
                stand = not charges.keys().isdisjoint(self._paid())
            except WhosinError:  # whoever cannot look cannot say that nothing was spent
                unknown = f"request {self.request} continues, and pays once"
                raise named(error, unknown) from None
            if stand:
                raise named(error, self._stands) from None
            self._begun = []
            raise named(error, "nothing was debited for this batch") from None

    def _fix_universe(self, charges: Iterable[Charge]) -> None:
        """The first maximum says who could be in, once and for all, if whoever asks may."""
        universes = {each.binding.universe for each in charges if each.binding is not None} - {None}
        if not universes or not self.curator or self._paid():
            return
        standing = self.standing
        fixed = standing.bound is None or standing.bound.binding.universe is not None
        if not fixed and not standing.debits:
            self.binding = replace(self.binding, universe=universes.pop())
            self.ledger.amend(self.dataset, self.binding)

    @property
    def _stands(self) -> str:
        return stands(self.request)

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
        if [offer.charge for offer in _paid_offers(offers)] == self._begun:
            return offers
        self._close_batch()
        return None

    def _close_batch(self) -> None:
        for charge in self._begun:
            self._spent += charge.cost(self.plan.relation)
        self._asked += len(self._begun)
        self._begun = []

    def queries_in(self, sql: str) -> tuple[Query, ...]:
        """The queries that a SELECT asks, for `dry_run` or `release`; nothing is spent."""
        return queries_in(sql, self.table, (self.dataset,))

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
        asked = self.queries_in(sql)
        return self.release(asked, share=share, split=split, noise=noise, watch=watch)

    def ask(self, query: Query, *, share: object = None, noise: str = "laplace") -> Answer:
        """Answer one query."""
        return self.release(query, share=share, noise=noise)[0]

    def _answers(self, debit: Debit, offer: Offer, watch: Watch | None) -> list[Answer]:
        """The answer of an offer, or those of all queries that it is for."""
        result, stored = None, None if debit.answer is None else json.loads(debit.answer)
        if stored is None:
            result = self._drawn(debit, offer, watch)
            try:
                stored = self.ledger.store(debit, result)
            except BaseException as error:
                if self._unanswered(debit):
                    offer.query.publish(self.table, result, None)
                raise named(error, self._stands) from None
        missing = offer.query.publish(self.table, result, stored)
        if missing is not None:
            self._note(missing)
        return answers_of(debit.body, stored, offer.noise, self.plan.relation)

    def _unanswered(self, debit: Debit) -> bool:
        """Whether the ledger is known to have no answer: a failed store may have stored it."""
        try:
            return debit.request in self.ledger.unanswered(self.dataset, debit.request)
        except WhosinError:
            return False

    def _drawn(self, debit: Debit, offer: Offer, watch: Watch | None) -> dict[str, Any]:
        """Scan and draw; a failure halts the dataset."""

        def draw() -> dict[str, Any]:
            progress = watch(offer.query.title) if watch is not None else None
            asked = offer.query.asked_of(self.table)
            data = dict(offer.query.answer(asked, offer, progress))
            return {**data, "noise": offer.noise}

        return drawn(self.ledger, debit, self.request, draw)

    @property
    def continues(self) -> bool:
        """Whether something was debited under this session's request."""
        return bool(self._paid())

    def _paid(self) -> set[str]:
        """The requests of this session that were debited before."""
        return self.ledger.requests(self.dataset, f"{self.request}/")


def named(error: BaseException, words: str) -> BaseException:
    """The same error, which says more; an interruption says it too."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(f"interrupted: {words}")
    if isinstance(error, WhosinError):
        error.args = (f"{error.message}; {words}",)
    return error


def unnamed(dataset: str) -> str:
    """That whoever asks would decide what is protected."""
    return (
        f"dataset {dataset!r} was registered without its table: its curator names it with whosin "
        "ledger amend"
    )


def _paid_offers(offers: Iterable[Offer]) -> list[Offer]:
    """What is debited for offers, each once."""
    return list({id(offer.paid): offer.paid for offer in offers}.values())


def _request(request: object) -> str:
    if not isinstance(request, str) or not 0 < len(request) <= LONGEST_REQUEST or "/" in request:
        accepted = f"a text of at most {LONGEST_REQUEST} letters, without a slash"
        raise InvalidInput("request", accepted, repr(request)[:80])
    return unicodedata.normalize("NFC", request)
