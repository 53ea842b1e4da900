"""Requests: how a batch is named after what it asks, so that asking it again is not new."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from whosin.calibration import Plan
from whosin.errors import BudgetRefused, InvalidInput, at, invalid_value
from whosin.exact import rational
from whosin.ledger import Debit, Ledger, encoding
from whosin.ledger.registration import RegisteredTable, Registration
from whosin.ledger.registry import STEP_KEY
from whosin.release.answer import Answer
from whosin.release.conditions import canonical_question
from whosin.release.cost import CostEstimate, Spending
from whosin.release.queries import Query
from whosin.release.queries.base import scenario_keys
from whosin.release.table import FINGERPRINT_LIMITS, Table

MAX_REQUEST_LENGTH = 100


@dataclass(eq=False)
class Batch:
    """What a session was asked at once, by its words: the request that pays, and what the session
    had spent before.

    Attributes:
        first: the number of its first debit in the request.
    """

    words: str
    request: str
    first: int
    before: Spending
    answered: bool = False


def read_request(request: object) -> str:
    if not isinstance(request, str) or not 0 < len(request) <= MAX_REQUEST_LENGTH or "/" in request:
        accepted = f"text of at most {MAX_REQUEST_LENGTH} characters, without a slash"
        raise invalid_value("request", accepted, repr(request)[:80])
    return unicodedata.normalize("NFC", request)


def read_queries(queries: object) -> list[Query]:
    """One query or several, as a list."""
    asked = queries if isinstance(queries, list | tuple) else [queries]
    result = [query for query in asked if isinstance(query, Query)]
    if not result or len(result) != len(asked):
        raise invalid_value(
            "queries", "a query or a list of queries, such as Count()", repr(queries)[:80]
        )
    return result


def _describe_query(query: Query, split: str) -> dict[str, Any]:
    """What a query is in a batch: its question, and what its share depends on."""
    said = canonical_question(scenario_keys(query)) | {"weight": str(rational(query.weight))}
    if split != "weights" and query.magnitude is not None:
        said["magnitude"] = str(rational(query.magnitude))
    return said


def rank_queries(queries: Sequence[Query], split: str) -> list[int]:
    """The places of queries in an order that depends on what they ask alone."""
    told = [encoding.canonical_json(_describe_query(query, split)) for query in queries]
    return sorted(range(len(queries)), key=told.__getitem__)


def number_debits(paid: Sequence[CostEstimate], split: str, first: int = 0) -> dict[int, int]:
    """The number that each debit of a batch has in its request, by its place: its rank among them,
    so that each question finds its own in whatever order they are asked. Streams have requests of
    their own."""
    places = [place for place, each in enumerate(paid) if each.query.kind != "running"]
    order = rank_queries([paid[place].query for place in places], split)
    return {places[rank]: number for number, rank in enumerate(order, first)}


def name_streams(queries: Sequence[Any], table: Table) -> dict[int, str]:
    """The names in a ledger of the streams that queries are about, by the queries' numbers.

    Raises:
        InvalidInput: two are about the same one, which has one payment.
    """
    found = dict[int, str]()
    for number, query in enumerate(queries):
        if query.kind == "running":
            with at(f"queries[{number}]"), query.at_own_key():
                name = query.stream_request(query.restrict_table(table))
                if name in found.values():
                    message = "an earlier question of this batch asks for the same running total"
                    raise InvalidInput(message, hint="ask for it once, up to the last period")
                found[number] = name
    return found


def continue_streams(
    ledger: Ledger,
    dataset: str,
    table: Table,
    plan: Plan,
    queries: Sequence[Any],
    beside: str = "",
) -> dict[int, CostEstimate]:
    """The estimates of queries about streams that were paid for, by the queries' numbers: with the
    noise that they have, and nothing to pay.

    Args:
        beside: the request of another question in their batch. Streams that were paid for together
            with it are left out, since it has the share that they left to it.
    """
    found, streams = dict[int, CostEstimate](), name_streams(queries, table)
    paid = ledger.find_debit(dataset, beside) if streams and beside else None
    for number, name in streams.items():
        first = ledger.find_debit(dataset, f"{name}/1")
        if first is None or STEP_KEY not in first.body["what"]:
            continue
        if paid is None or paid.body["when"] != first.body["when"]:  # of one transaction
            asked = queries[number].restrict_table(table)
            found[number] = queries[number].continue_stream(asked, plan, first.body)
    return found


def name_debits(
    paid: Sequence[CostEstimate], request: str, split: str, first: int = 0
) -> list[str]:
    """The request of each debit of a batch: its number in the batch's own, or a stream's step.

    Raises:
        BudgetRefused: the batch is named like a stream that it asks for.
    """
    numbers = number_debits(paid, split, first)
    names = [each.request or f"{request}/{numbers[place]}" for place, each in enumerate(paid)]
    if len({*names}) < len(names):
        message = f"request {request!r} is the name of a running total"
        raise BudgetRefused(message, field="request", value=request, hint="choose a new name")
    return names


def describe_batch(
    table: Table,
    plan: Plan,
    queries: Sequence[Query],
    *,
    share: object,
    split: str = "weights",
    noise: str = "laplace",
) -> dict[str, Any]:
    """What is asked of a table, as plain data, which names its request: however it is written, and
    in whatever order.

    Args:
        share: as it was said; None for that of the period.
    """
    share = share if plan.query is None else 1
    columns = set[str]()
    for number, query in enumerate(queries):
        with at(f"queries[{number}]"), query.at_own_key():
            columns |= query.names(table)
    told = [_describe_query(query, split) for query in queries]
    return {
        "queries": sorted(told, key=encoding.canonical_json),
        "columns": sorted(columns),
        "bounds": [table.max_rows_per_group, table.max_groups],
        "share": None if share is None else str(rational(share, "share")),
        "split": str(split),
        "noise": str(noise),
    }


def require_new_files(
    requests: Sequence[str], paid: Sequence[CostEstimate], debits: Sequence[Debit]
) -> None:
    """What is not paid for yet writes files that are not there yet."""
    begun = {debit.request for debit in debits}
    for request, estimate in zip(requests, paid, strict=True):
        if request not in begun and estimate.query.writes_file:
            estimate.query.require_new_file()


def match_answers(queries: Sequence[Query], release: Sequence[Answer]) -> list[Answer] | None:
    """The stored answers to these questions, in their order; None where there are others, or not
    all."""
    rest, matched = list(release), list[Answer]()
    for query in queries:
        asked = canonical_question(query.question())
        for each in rest:
            told = canonical_question(each.question)
            if told.get("where") == asked.get("where") and told.items() >= asked.items():
                matched.append(each)
                rest.remove(each)
                break
    return matched if len(matched) == len(queries) and not rest else None


def describe_repeat(request: str) -> str:
    return (
        f"this was asked before, as request {request}: these are its answers, from the rows of "
        "that day, and nothing more is spent; --again (again=True) asks today's rows, and pays"
    )


@dataclass(frozen=True)
class NamedBatch:
    """What is asked of a table under a plan, as a ledger knows it: its request is named after it,
    so that asking it again is not new.

    The name is made of what the history shows anyway, so that it says nothing more of the rows, and
    neither does the mark beside it.

    Attributes:
        words: see `describe_batch`.
        table: as it is today, with the fingerprints of its rows where they may be looked at: those
            of one that lives are part of the name, so that it tells whether the same was asked of
            others.
        who: asks, where nobody else is to see the answers, or learn that this was asked.
    """

    ledger: Ledger
    dataset: str
    plan: Plan
    words: Mapping[str, Any]
    table: Registration
    who: str = ""

    def name(self, *, again: bool = False) -> str:
        """The name of the table that the dataset is registered with.

        Args:
            again: a new name for a table that lives, whatever was asked of it.
        """
        registered = self.ledger.budget_state(self.dataset).registered
        name = self._digest(registered)
        if registered is None or not self.table.lives or self.who:
            return name
        if not again and (earlier := registered.find_rows(self.table, name, self._earlier(name))):
            return earlier
        # Rows that nobody looked at are never known to be the same; what is unfinished goes on.
        begun = [] if again else sorted(self.ledger.unanswered(self.dataset, name))
        return begun[0].rpartition("/")[0] if begun else registered.mark_rows(self.table, name)

    def require_same_rows(self, request: str) -> None:
        """See that a batch about a table that lives is not taken for one that was asked of other
        rows.

        Raises:
            BudgetRefused: it was asked before, and the rows have changed, or nobody can tell.
        """
        if not self.table.lives or self.who:
            return
        earlier = self._earlier(request.partition("-")[0])
        if request in earlier or not earlier:
            return
        when = {
            str(entry.request).rpartition("/")[0]: str(entry.body.get("when", ""))
            for entry in self.ledger.history(self.dataset)
            if entry.kind == "debit"
        }
        latest = max(earlier, key=lambda each: when.get(each, ""))
        changed = "its rows have changed since"
        if not any(kind.partition(":")[0] == "rows" for kind in self.table.source):
            changed = f"whosin cannot tell whether its rows are the same: {FINGERPRINT_LIMITS}"
        said = f"was asked this on {when.get(latest, '')[:10]}, and {changed}"
        hint = f"--request {latest} shows the answers of that day, and spends nothing"
        if self.ledger.budget_state(self.dataset).state == "closed":
            said = f"is closed; it {said}"
        else:
            hint += "; --again (again=True) asks today's rows, and pays"
        said = f"dataset {self.dataset!r} {said}"
        raise BudgetRefused(said, field="dataset", value=self.dataset, hint=hint)

    def find_answered(self) -> str | None:
        """The request that has all answers about this very table, which the dataset was registered
        with before it went on with another one; None if there is none."""
        registered = self.ledger.budget_state(self.dataset).registered
        if registered is None or not was_registered(self.ledger, self.dataset, self.table):
            return None
        name = self._digest(registered.seal_table(self.table))
        if self.table.lives:
            name = registered.find_rows(self.table, name, self._earlier(name)) or name
        paid = self.ledger.requests(self.dataset, f"{name}/")
        return name if paid and not self.ledger.unanswered(self.dataset, f"{name}/") else None

    def _earlier(self, name: str) -> list[str]:
        paid = self.ledger.requests(self.dataset, name)
        return sorted({each.rpartition("/")[0] for each in paid})

    def _digest(self, registered: RegisteredTable | None) -> str:
        table = replace(
            self.table.about(frozenset(self.words["columns"])), max_rows_per_group=1, max_groups=1
        )
        about = None if registered is None else registered.asked(table)
        asked = {"batch": self.words, "plan": self.plan.terms(), "table": about, "who": self.who}
        name = encoding.digest_text(encoding.canonical_json(asked))[:32]
        return name + (f"-{encoding.mark_asker(self.who)}" if self.who else "")


def was_registered(ledger: Ledger, dataset: str, table: Registration) -> bool:
    """Whether a dataset is registered with this very table, or was before it went on with another
    one.

    Args:
        table: with the fingerprints of its rows.
    """
    registered = ledger.budget_state(dataset).registered
    asked = {} if registered is None else registered.seal_table(table).entry()
    return any(
        {**entry.body["registration"], "apart_from": None} == {**asked, "apart_from": None}
        for entry in ledger.history(dataset)
        if entry.kind in ("registered", "amended") and entry.body.get("registration")
    )
