"""Singling out: a description that fits exactly one row (Cohen and Nissim 2020)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, flint_rational, is_exact, ranged
from whosin.notions.gains.base import GainFunction, Guess, first_best, slack
from whosin.priors.records import distribution
from whosin.spaces import Records, Space

MOST = 1 << 24
"""Predicates times worlds."""


@dataclass(frozen=True)
class SinglingOut(GainFunction):
    """1 where exactly one row fits a predicate: a set of values of weight at most w.

    Without the weight a predicate that fits half of all people would single someone out by luck
    alone; the vulnerability before the output is exactly that luck.

    Args:
        weight: the most that a predicate may weigh.
        values: how likely each value is in the population; all alike by default.
    """

    weight: object
    values: tuple[object, ...] | None = None
    example: ClassVar[str] = "singling-out=1/4"

    def __post_init__(self) -> None:
        self.limit  # noqa: B018  read once, so that what is wrong is said at once
        if self.values is not None:
            distribution(self.values, "values")
            object.__setattr__(self, "values", tuple(self.values))

    @property
    def limit(self) -> Fraction:
        """w."""
        return ranged(self.weight, "singling-out", "above 0 and at most 1")

    @property
    def spelled(self) -> str:
        return f"singling-out={self.limit}"

    @property
    def words(self) -> str:
        return f"the probability of singling someone out by a predicate of weight {self.limit}"

    @property
    def exact(self) -> bool:
        return is_exact(self.weight, *(self.values or ()))

    def check(self, space: Space) -> None:
        if not isinstance(space, Records):
            raise Unsupported("singling out is about the values of rows: it needs Records")
        if self.values is not None and len(self.values) != space.values:
            raise InvalidInput("values", f"{space.values} probabilities", len(self.values))
        if not any(mass <= self.limit for mass in self._masses(space)):
            least = min(self._masses(space))
            accepted = f"at least {least}, the weight of the rarest value"
            raise InvalidInput("singling-out", accepted, self.limit)
        if 2**space.values * space.worlds > MOST:
            raise Unsupported(
                f"singling out looks at 2^{space.values} predicates on {space.worlds:,} tables, "
                f"more than {MOST:,} together; use fewer values or rows"
            )

    def _masses(self, space: Records) -> tuple[Fraction, ...]:
        if self.values is None:
            return (Fraction(1, space.values),) * space.values
        return distribution(self.values, "values")

    def predicates(self, space: Records) -> Iterator[tuple[int, ...]]:
        """The sets of values that are light enough, smaller ones first."""
        masses = self._masses(space)
        for size in range(1, space.values + 1):
            for chosen in combinations(range(space.values), size):
                if sum((masses[value] for value in chosen), Fraction(0)) <= self.limit:
                    yield chosen

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        assert isinstance(space, Records)
        chosen = list(self.predicates(space))
        digits = np.array(list(space), dtype=np.int64)
        fits = [(np.isin(digits, each).sum(axis=1) == 1) for each in chosen]
        values = np.array([near[each].sum() for each in fits])
        indices = np.flatnonzero(values >= values.max() * (1 - slack(len(near)))).tolist()
        zero = flint_rational(0)
        gains = [sum((weight(int(w)) for w in np.flatnonzero(fits[p])), zero) for p in indices]
        most = first_best(gains)
        return gains[most], chosen[indices[most]]
