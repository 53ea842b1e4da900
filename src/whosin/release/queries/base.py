"""What every query has, and what a query must do.

A query is data. `offer` reads the schema and a share of the budget and says what it will cost and
how good the answer will be; `answer` scans the rows, draws the noise and returns JSON data whose
shape the domains fix. The ledger's debit comes between the two.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar

from whosin.errors import InvalidInput, UnknownName, at_keys
from whosin.exact import rational
from whosin.ledger.charge import COUNTED, Charge, promise_of
from whosin.release.columns.derived import column_of
from whosin.release.columns.levels import root_of
from whosin.release.conditions.predicate import columns_in
from whosin.release.engines.base import Progress
from whosin.release.prices.pricing import Offer, Share
from whosin.release.scans.bounding import Bounds
from whosin.release.table import Table
from whosin.release.what_counts import Caution, Counted, may_vary

LONGEST_NAME = 120
STATISTICS = (
    *("average", "avg", "deviation", "max", "median", "min", "minimum", "mode", "percentile"),
    *("quartile", "range", "std", "stddev", "var"),
)
"""Other statistics: whoever asks for one of them did not mean one with a similar name."""


AMOUNT, POINT, NAME = "amount", "point", "name"
"""What a number may be: how many or how much, a point of a column (perhaps a year), or a name."""


@dataclass(frozen=True, kw_only=True)
class Query(ABC):
    """A question to a table.

    Args:
        name: what to call the answer.
        where: a condition on rows, such as "age >= 65 and ward = 'A'".
        weight: how much of a batch's budget this query gets, relative to the others.
        magnitude: how large the answer is thought to be, for splitting a budget by relative error.
            Say what is publicly known: it must not come from the data.
    """

    kind: ClassVar[str]
    label: ClassVar[str]
    """What it asks, for people who choose one."""
    column_takes: ClassVar[str] = ""
    """Which columns it may be about: "numbers", "cells" (values or bins), "any"; "" for none."""
    example: ClassVar[tuple[str, str, str]] = ("", "", "")
    """A key of its own that a page asks for: the key, what to call it, an example."""
    choices: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Keys that take one of some words, the default first."""
    only_with: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """Keys that belong to one word of another key, with both."""
    needs_delta: ClassVar[bool] = False
    """Whether it needs a part of the plan's δ."""
    writes_file: ClassVar[bool] = False
    """Whether its answer is a file, at `path`."""
    sums: ClassVar[bool] = False
    """Whether Gaussian noise can be added to the answer."""
    about_rows: ClassVar[bool] = False
    """Whether it is about rows, also where it names a person's features alone."""
    scale: ClassVar[str] = AMOUNT
    """What its values are: amounts, points of a column, or names."""
    name: str = ""
    where: str | None = None
    weight: object = 1
    magnitude: object = None

    def __post_init__(self) -> None:
        name = self.name
        if not isinstance(name, str) or len(name) > LONGEST_NAME or not name.isprintable():
            accepted = f"a text of at most {LONGEST_NAME} letters"
            raise InvalidInput("name of a query", accepted, repr(name)[:80])
        if rational(self.weight, "weight") <= 0:
            raise InvalidInput("weight", "above 0", self.weight)
        if self.magnitude is not None and rational(self.magnitude, "magnitude") <= 0:
            raise InvalidInput("magnitude", "above 0", self.magnitude)

    @property
    def takes_gaussian(self) -> bool:
        """Whether this query can have Gaussian noise."""
        return self.sums

    @abstractmethod
    def offer(self, table: Table, share: Share) -> Offer:
        """The price and the expected error. Raises for a query that does not fit the schema."""

    @abstractmethod
    def answer(self, table: Table, offer: Offer, progress: Progress | None = None) -> Any:
        """Scan, add noise, and return JSON data: {"columns": […], "rows": [[…], …], …}."""

    @abstractmethod
    def counted(self, table: Table) -> Counted:
        """What of an entity's rows counts in the answer."""

    def names(self, table: Table) -> frozenset[str]:
        """The declared columns that it may use, and what it calls them."""
        result: set[str] = set()
        for field in ("column", "by", "columns"):
            named = getattr(self, field, ())
            result |= {named} if isinstance(named, str) else _texts(named)
        for named in _listed(getattr(self, "sets", None)):
            result |= _texts(named)
        result |= {column_of(name) for name in result}  # cumulative(month(visit)), or less
        result |= {column_of(name) for name in result}
        result |= {name for name in table.levels if name in str(self.where)}
        return frozenset(result | {root_of(table.domains, name) for name in result})

    def asked_of(self, table: Table) -> Table:
        """The table as this query needs it."""
        return table.about(self.names(table) | columns_in(self.where), rows=self.about_rows)

    def bounds(self, table: Table) -> Bounds:
        """How many rows and cells of an entity count, at most."""
        own = (getattr(self, name, None) for name in ("rows", "groups"))
        return Bounds(*map(table.bound, ("rows", "groups"), own))

    def ranked(self) -> list[tuple[Any, Fraction]]:
        """Everyone who could be in, with a public value each, where the query names them."""
        return []

    def cautions(self, table: Table) -> tuple[Caution, ...]:
        """What to decide before asking, from what was declared."""
        return ()

    def caution(self, table: Table, about: str, columns: tuple[str, ...]) -> tuple[Caution, ...]:
        """That "rows" or "groups" is at its default, where a column may differ between the rows of
        one entity."""
        varying = may_vary(table.domains, columns)
        alone = varying and table.at_default(about, getattr(self, about))
        return (Caution(about, varying),) if alone else ()

    def publish(self, table: Table, drawn: Any, stored: Any) -> str | None:
        """Show what the stored answer wrote outside the ledger; remove what else was drawn.

        Args:
            drawn: what `answer` returned now; None where the answer was stored before.
            stored: what the ledger stored; None where it could not.

        Returns:
            what to tell people, if something of the answer is not there.
        """
        return None

    @classmethod
    @contextmanager
    def at_own_key(cls) -> Iterator[None]:
        """Errors in this block that are about a key of the query say so in their path."""
        with at_keys({each.name for each in fields(cls)}):
            yield

    @property
    def title(self) -> str:
        """What to call the answer."""
        return self.name or self.kind

    def asked(self, table: Table) -> dict[str, Any]:
        """The question to a table, with what counts in its answer: what the ledger keeps."""
        return self.question() | {COUNTED: self.counted(table).to_dict()}

    def charged_alone(self, table: Table, share: Share, words: str) -> Charge:
        """The charge of a release with a promise of its own, which must be a dataset's only one."""
        promise = promise_of(share.plan)
        return Charge(self.asked(table), {}, words, alone=True, promise=promise)

    def question(self) -> dict[str, Any]:
        """The query as JSON data: what was asked."""
        data: dict[str, Any] = {"query": self.kind}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in ("weight", "magnitude") and value != field.default:
                data[field.name] = _json(value)
        return data


def scenario_keys(query: Query) -> dict[str, Any]:
    """A query as the keys of a scenario file, which `read_query` takes."""
    asked = query.question()
    return {"kind": asked.pop("query"), **asked}


def read_query(data: object, kinds: Mapping[str, type[Query]]) -> Query:
    """A query from the keys of a scenario file."""
    if not isinstance(data, Mapping):
        raise InvalidInput("query", "a table of keys", repr(data))
    if "kind" not in data:
        raise InvalidInput("kind of a query", f"one of {', '.join(sorted(kinds))}", "nothing")
    kind = data["kind"]
    if not isinstance(kind, str) or kind not in kinds:
        raise UnknownName("kind of a query", str(kind), kinds, STATISTICS)
    known = {field.name: field for field in fields(kinds[kind])}
    for key in data:
        if key != "kind" and key not in known:
            raise UnknownName(f"key of a {kind} query", str(key), [*known, "kind"])
    missing = [name for name, each in known.items() if each.default is MISSING and name not in data]
    if missing:
        raise InvalidInput(f"{kind} query", f"given with {', '.join(missing)}", "nothing")
    with kinds[kind].at_own_key():
        return kinds[kind](**{key: value for key, value in data.items() if key != "kind"})


def _listed(value: object) -> Sequence[Any]:
    """A list, or none: what is no list is refused elsewhere."""
    return value if isinstance(value, list | tuple) else ()


def _texts(value: object) -> set[str]:
    return {str(name) for name in _listed(value)}


def _json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_json(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): _json(each) for key, each in value.items()}
    return value if isinstance(value, str | int | bool | None) else str(value)
