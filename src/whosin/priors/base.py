"""What every prior can do, on subsets and on records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, flint_rational, is_exact, probability, rational
from whosin.spaces.arrays import require_table
from whosin.spaces.quotients import CountLattice, Lattice
from whosin.spaces.worlds import Records, Subsets
from whosin.validation import check_kind, read_list, wrong_sum

if TYPE_CHECKING:
    from whosin.priors.table import WorldTable


# What every prior can do.
#
# A prior is plain data and takes its space from what it is used with. It answers in the kind of
# number it is asked for: `number` is `float`, or `flint_rational` for exact work.


AsNumber = Callable[[Any], Any]
SUM_TOLERANCE = Fraction(1, 10**9)
"""By how much probabilities in floats may miss a sum of 1."""


class Prior(ABC):
    """A distribution over worlds: what one adversary believes before seeing any output."""

    @property
    @abstractmethod
    def parameters(self) -> tuple[object, ...]:
        """The numbers it was built from, to tell exact priors from floating-point ones."""

    def canonical(self) -> Prior:
        """The same prior in one spelling, with exact numbers."""
        return self

    @abstractmethod
    def check(self, space: Subsets) -> None:
        """Raise `InvalidInput` unless the prior makes sense on this space."""

    @abstractmethod
    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        """The probability of each class of worlds."""

    @abstractmethod
    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        """The distribution over classes given that the entity is in, and given that it is out."""

    @abstractmethod
    def belief(self, space: Subsets, entity: int) -> Fraction:
        """Pr[t ∈ T], exactly."""

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """The probability of each table of records, in world order."""
        raise Unsupported(
            f"{type(self).__name__} is a prior about entities, not about records", field="prior"
        )

    def probabilities(self, space: Subsets) -> list[Fraction]:
        """The probability of each of the 2^n worlds, exactly."""
        check_kind(space, Subsets, "space", "Subsets(…)")
        require_table("a table over all subsets", space.worlds, 1)
        return [rational(w) for w in self.mass(CountLattice.single(space), flint_rational)]

    def as_table(self, space: Subsets) -> WorldTable:
        """The same prior, written out."""
        from whosin.priors.table import WorldTable

        return WorldTable({w: mass for w, mass in enumerate(self.probabilities(space)) if mass})


def normalise(weights: Array) -> Array:
    """Scale to total 1; all zeros stay."""
    total = weights.sum()
    return weights / total if total > 0 else weights


def convert_array(values: Array, number: AsNumber) -> Array:
    """An array of exact numbers in the kind asked for."""
    if number is float:
        return np.array([float(value) for value in values])
    out = np.empty(len(values), dtype=object)
    out[:] = [number(value) for value in values]
    return out


# Priors about records only: what they share.


class RecordPrior(Prior):
    """A distribution over tables; it says nothing about sets of entities."""

    def check(self, space: Subsets) -> None:
        self._refuse()

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self._refuse()

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        self._refuse()

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unsupported(
            f"{type(self).__name__} is a prior about records, not about entities", field="prior"
        )

    @abstractmethod
    def on_records(self, space: Records, number: AsNumber) -> Array:
        """The probability of each table."""


def read_distribution(values: Sequence[object], field: str) -> tuple[Fraction, ...]:
    """Read probabilities with sum 1 (floats within 1e-9, then scaled to it)."""
    values = read_list(values, field, "a list of probabilities")
    exact = tuple(probability(value, field) for value in values)
    total = sum(exact, Fraction(0))
    slack = Fraction(0) if is_exact(*values) else SUM_TOLERANCE
    if abs(total - 1) > slack:
        raise wrong_sum(field, total, f"the probabilities in {field}")
    return tuple(value / total for value in exact)
