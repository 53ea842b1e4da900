"""Sets of priors on records: each row's distribution lies anywhere in a set (Wang14 asks for it).

Rows are independent, and each takes any member of its set. A set is not a prior: what asks for a
single one is refused, since few quantities are settled at a set's corners.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array
from whosin.priors.base import AsNumber
from whosin.priors.records import RecordPrior
from whosin.spaces.records import Records

Row = tuple[Fraction, ...]


class RowSet(ABC):
    """A closed set of distributions over the values of one row."""

    @property
    @abstractmethod
    def values(self) -> int:
        """How many values the row has."""

    @abstractmethod
    def odds(self, value: int, other: int) -> Fraction | float | None:
        """The largest p(value) / p(other) in the set: infinite where p(other) can be 0 beside a
        possible value, None where the value is impossible throughout."""

    @abstractmethod
    def farthest(self, value: int, other: int) -> Row:
        """A member that attains the odds."""

    @abstractmethod
    def likeliest(self, value: int) -> Row:
        """A member in which the value has its largest probability."""

    @abstractmethod
    def worst(self, costs: Sequence[Any]) -> Row:
        """A member with the largest mean of these costs, one for each value."""

    def all_odds(self) -> dict[tuple[int, int], Fraction | float]:
        """The odds of any two different values, where the first one is possible."""
        pairs = ((a, b) for a in range(self.values) for b in range(self.values) if a != b)
        answers = ((pair, self.odds(*pair)) for pair in pairs)
        return {pair: odds for pair, odds in answers if odds is not None}


class PriorSet(RecordPrior):
    """All priors of independent rows, each row's distribution in its own set."""

    @property
    @abstractmethod
    def sets(self) -> tuple[RowSet, ...]:
        """One set that serves every row, or one for each row."""

    def of_rows(self, space: Records) -> tuple[RowSet, ...]:
        """The set of each row."""
        sets = self.sets * space.rows if len(self.sets) == 1 else self.sets
        if len(sets) != space.rows:
            raise InvalidInput("prior", f"one set, or {space.rows}, one for each row", len(sets))
        for one in self.sets:
            if one.values != space.values:
                accepted = f"distributions over {space.values} values"
                raise InvalidInput("prior", accepted, f"{one.values} values")
        return sets

    @property
    def spread(self) -> Fraction | float:
        """e^ε_X of its worst member: the largest odds of two values of a row."""
        largest = (
            max(one.all_odds().values(), default=Fraction(1)) for one in dict.fromkeys(self.sets)
        )
        return max(largest)

    def on_records(self, space: Records, number: AsNumber) -> Array:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unsupported(
            f"{type(self).__name__} is a set of priors on records, and this asks for one prior: "
            "only Identifiability and distortion.best take a set"
        )


def ratio_of(top: Fraction, bottom: Fraction) -> Fraction | float | None:
    """Odds as `RowSet.odds` has them."""
    if top == 0:
        return None
    return top / bottom if bottom else math.inf


def nested(value: Any) -> bool:
    """Whether it is a list."""
    return isinstance(value, Iterable) and not isinstance(value, str)
