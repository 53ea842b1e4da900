"""`Session`: ask, estimate, debit, scan, publish; and answers that were stored.

A batch is checked against the schema, its cost is estimated, it is debited in one transaction, and
only then scanned. Answers are stored before they are returned, and a stored one is returned with
the question that it was stored for. No error, message or refusal depends on the rows. An error
after the debit names the request that continues without paying again.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
import uuid
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, WhosinError, invalid_value, spell
from whosin.ledger import BudgetState, Debit, Ledger, encoding, registry
from whosin.ledger.budget import Budget, Charge, Cost
from whosin.ledger.encoding import read_name
from whosin.ledger.registry import describe_copy, describe_unanswered, draw_or_suspend
from whosin.plain_files import remove_unlocked, remove_unlocked_folders
from whosin.release.answer import Answer, Release
from whosin.release.budget_allocation import estimate_batch_cost, read_queries
from whosin.release.cost import CostEstimate, apportion_cost
from whosin.release.engines.base import DIGEST_LETTERS, Progress, list_drafts
from whosin.release.queries import Query
from whosin.release.queries.base import FILE_COLUMNS
from whosin.release.table import Table, register_question, register_table


def stored_answers(paid: Mapping[str, Any], stored: Any, noise: str, relation: str) -> list[Answer]:
    """The answer of a debit, or those of all questions that were paid for at once.

    Args:
        paid: the debit's entry, as data.
        stored: its answer, as data.
        noise: what noise it has, for entries that do not say it.
    """
    what, cost = paid["what"], paid["costs"].get(relation)
    whole = Cost(encoding.INFINITE_UNITS, encoding.INFINITE_UNITS) if cost is None else Cost(**cost)
    asked, answers, costs = [dict(what)], [stored], [whole]
    if "answers" in stored:
        from whosin.release.queries.together import paid_questions

        asked, answers = paid_questions(what), stored["answers"]
        costs = apportion_cost(whole, len(asked))
    return [
        Answer(
            question.get("name") or question["query"],
            question,
            tuple(answer["columns"]),
            tuple(tuple(row) for row in answer["rows"]),
            stored.get("noise", noise),
            own,
            answer.get("details"),
        )
        for question, answer, own in zip(asked, answers, costs, strict=True)
    ]


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

    Attributes:
        notes: what people should be told about the session, in sentences.

    Raises:
        BudgetRefused: the plan does not fit what is left of the dataset's budget, or the table is
            not the one that the budget is for.
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
        self._spent, self._asked = Cost(0, 0), 0
        self._begun: list[Charge] = []
        self._expected: tuple[object, list[CostEstimate]] | None = None
        try:
            self._open(queries, amend, copies)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the ledger if this session opened it; one that was handed over stays open."""
        if self._opens_ledger:
            self.ledger.dispose()

    def _open(self, queries: Sequence[Query], amend: bool, copies: str) -> None:
        known = self.dataset in self.ledger.datasets()
        if not known and not self.curator:
            raise BudgetRefused(
                f"dataset {self.dataset!r} has no budget in this ledger",
                field="dataset",
                value=self.dataset,
                hint="its curator opens one with whosin ledger create",
            )
        self.registration = register_table(self.table, queries, rows=amend or not known)
        if self._paid():
            return
        if amend and known:
            self.ledger.amend(self.dataset, self.registration)
        elif not known:
            for other in self.ledger.copies(self.dataset, self.registration)[:1]:
                self._note(describe_copy(self.dataset, other), warn=copies == "warn")
        if not self.curator:
            self._check_registered()
        budget_state = self.ledger.admit(
            self.dataset,
            self.plan,
            resume=self.share is None,
            share=self.share,
            registration=self.registration,
            copies=copies,
        )
        budget = Budget.of(self.plan)
        if not budget_state.spendable_units:
            registry.check_session(budget_state, self.plan, budget)
        if self.share is not None and budget_state.debits:
            part = budget.part(self.share).epsilon / encoding.EPSILON_UNITS
            self._note(
                f"dataset {self.dataset!r} has ε = {spell(budget_state.spendable)} left, and this "
                f"session takes {spell(part)} of it"
            )

    def _check_registered(self) -> None:
        """Someone who may not decide finds everything decided."""
        registered = self.ledger.budget_state(self.dataset).registered
        if registered is None:
            raise BudgetRefused(describe_unnamed(self.dataset))
        registered.check(self.dataset, self.registration)

    def _note(self, words: str, *, warn: bool = False) -> None:
        self.notes += (words,)
        if warn:
            warnings.warn(words, stacklevel=4)

    @property
    def budget_state(self) -> BudgetState:
        """Where the dataset stands."""
        return self.ledger.budget_state(self.dataset)

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
        own = share is None
        if share is None:
            share = self.share if self.plan.query is None else 1
        if share is None:
            raise InvalidInput(
                "share is missing: which part of the plan's budget these questions may spend",
                field="share",
                hint='give it, such as share="1/10", or share=1 for all of it; Session(…, share=1) '
                "gives it for every batch",
            )
        return estimate_batch_cost(
            self.table,
            self.plan,
            queries,
            self._spent,
            share=share,
            split=split,
            noise=noise,
            capped=own,
        )

    def expect(
        self,
        queries: Sequence[Query],
        estimates: list[CostEstimate],
        *,
        share: object = None,
        split: str = "weights",
        noise: str = "laplace",
    ) -> None:
        """Take the estimates of a batch on this session's table for those of its first release, if
        that asks for the same: a scenario is priced before its session is opened."""
        self._expected = (list(queries), share, split, noise), estimates

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
        asked = read_queries(queries)
        expected, self._expected = self._expected, None
        estimates = self._resumed(asked, share, split, noise)
        if estimates is None and expected and expected[0] == (asked, share, split, noise):
            estimates = expected[1]
        if estimates is None:
            estimates = self.dry_run(asked, share=share, split=split, noise=noise)
        paid = paid_estimates(estimates)
        self._require_new_files(paid)
        answered = {
            id(estimate): iter(self._answers(debit, estimate, watch))
            for debit, estimate in zip(self._pay(paid), paid, strict=True)
        }
        answers = [next(answered[id(estimate.paid)]) for estimate in estimates]
        self._close_batch()
        try:
            return Release(self.request, tuple(answers), self.budget_state)
        except BaseException as error:
            raise add_note(error, self._stands) from None

    def _require_new_files(self, estimates: Sequence[CostEstimate]) -> None:
        """What is not paid for yet writes files that are not there yet."""
        if any(estimate.query.writes_file for estimate in estimates):
            begun = self._paid()
            for index, estimate in enumerate(estimates):
                if f"{self.request}/{self._asked + index}" not in begun:
                    estimate.query.require_new_file()

    def _pay(self, estimates: Sequence[CostEstimate]) -> list[Debit]:
        """All debits in one transaction, or none."""
        charges = {
            f"{self.request}/{self._asked + index}": replace(
                estimate.charge,
                registration=register_question(self.registration, estimate.query, self.table),
            )
            for index, estimate in enumerate(estimates)
        }
        self._fix_universe(charges.values())
        before, self._begun = self._begun, [estimate.charge for estimate in estimates]
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
                raise add_note(error, unknown) from None
            if stand:
                raise add_note(error, self._stands) from None
            self._begun = []
            raise add_note(error, "nothing was debited for this batch") from None

    def _fix_universe(self, charges: Iterable[Charge]) -> None:
        """The first maximum says who could be in, once and for all, if whoever asks may."""
        universes = {
            each.registration.universe for each in charges if each.registration is not None
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

    @property
    def _stands(self) -> str:
        return describe_unanswered(self.request)

    def _resumed(
        self, queries: Sequence[Query], share: object, split: str, noise: str
    ) -> list[CostEstimate] | None:
        """The cost estimates of a batch that failed before and is asked again; it continues where
        it was. Another batch comes after what the failed one had paid."""
        if not self._begun:
            return None
        try:
            estimates = self.dry_run(queries, share=share, split=split, noise=noise)
        except WhosinError:
            estimates = []
        if [estimate.charge for estimate in paid_estimates(estimates)] == self._begun:
            return estimates
        self._close_batch()
        return None

    def _close_batch(self) -> None:
        for charge in self._begun:
            self._spent += charge.cost(self.plan.relation)
        self._asked += len(self._begun)
        self._begun = []

    def queries_in(self, sql: str) -> tuple[Query, ...]:
        """The queries that a SELECT asks, for `dry_run` or `release`; nothing is spent."""
        from whosin.release.sql import parse_queries

        return parse_queries(sql, self.table, (self.dataset,))

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
        """Answer one query, debited before it is drawn."""
        return self.release(query, share=share, noise=noise)[0]

    def _answers(self, debit: Debit, estimate: CostEstimate, watch: Watch | None) -> list[Answer]:
        """The answer of a cost estimate, or those of all queries that it is for."""
        result, stored = None, None if debit.answer is None else json.loads(debit.answer)
        if stored is None:
            if estimate.query.writes_file:
                remove_drafts(self.ledger, self.dataset, Path(estimate.query.path).parent)
            result = self._drawn(debit, estimate, watch)
            try:
                stored = self.ledger.store(debit, result)
            except BaseException as error:
                if self._unanswered(debit):
                    estimate.query.publish(self.table, result, None)
                raise add_note(error, self._stands) from None
        missing = estimate.query.publish(self.table, result, stored)
        if missing is not None:
            self._note(missing)
        return stored_answers(debit.body, stored, estimate.noise, self.plan.relation)

    def _unanswered(self, debit: Debit) -> bool:
        """Whether the ledger is known to have no answer: a failed store may have stored it."""
        try:
            return debit.request in self.ledger.unanswered(self.dataset, debit.request)
        except WhosinError:
            return False

    def _drawn(self, debit: Debit, estimate: CostEstimate, watch: Watch | None) -> dict[str, Any]:
        """Scan and draw; a failure suspends the dataset."""

        def draw() -> dict[str, Any]:
            progress = watch(estimate.query.title) if watch is not None else None
            asked = estimate.query.asked_of(self.table)
            owner = draft_owner(self.ledger, self.dataset)
            data = dict(estimate.query.answer(asked, replace(estimate, owner=owner), progress))
            return {**data, "noise": estimate.noise}

        return draw_or_suspend(self.ledger, debit, self.request, draw)

    @property
    def continues(self) -> bool:
        """Whether something was debited under this session's request."""
        return bool(self._paid())

    def _paid(self) -> set[str]:
        """The requests of this session that were debited before."""
        return self.ledger.requests(self.dataset, f"{self.request}/")


def add_note(error: BaseException, words: str) -> BaseException:
    """The same error, which says more; an interruption says it too."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt(f"interrupted: {words}")
    if isinstance(error, WhosinError):
        error.args = (f"{error.message}; {words}",)
    return error


def draft_owner(ledger: Ledger, dataset: str) -> str:
    """What tells the drafts of a dataset in a ledger from those of others."""
    return hashlib.sha256(f"{ledger.name}\0{dataset}".encode()).hexdigest()[:16]


def remove_drafts(ledger: Ledger, dataset: str, folder: Path) -> None:
    """Remove the drafts of synthetic tables that killed processes left in a folder, unless the
    ledger has stored them: each is a second table for one debit, and never published."""
    left = list_drafts(folder, draft_owner(ledger, dataset))
    if not left:
        return
    stored = {each[:DIGEST_LETTERS] for each in _stored_digests(ledger, dataset)}
    unstored = [path for path, digest in left.items() if digest not in stored]
    remove_unlocked(unstored)
    remove_unlocked_folders(unstored)


def _stored_digests(ledger: Ledger, dataset: str) -> set[str]:
    """Of the files that requests have written."""
    _, _, answers = ledger.evidence(dataset)
    result = set()
    for text in answers.values():
        answer = json.loads(text)
        if isinstance(answer, dict) and answer.get("columns") == FILE_COLUMNS:
            result.add(str(answer["rows"][0][FILE_COLUMNS.index("digest")]))
    return result


def describe_unnamed(dataset: str) -> str:
    """That whoever asks would decide what is protected."""
    return (
        f"dataset {dataset!r} was registered without its table: its curator names it with whosin "
        "ledger amend"
    )


def paid_estimates(estimates: Iterable[CostEstimate]) -> list[CostEstimate]:
    """What is debited for cost estimates, each once."""
    return list({id(estimate.paid): estimate.paid for estimate in estimates}.values())


def _read_request(request: object) -> str:
    if not isinstance(request, str) or not 0 < len(request) <= MAX_REQUEST_LENGTH or "/" in request:
        accepted = f"text of at most {MAX_REQUEST_LENGTH} characters, without a slash"
        raise invalid_value("request", accepted, repr(request)[:80])
    return unicodedata.normalize("NFC", request)
