"""What every prior can do, on subsets and on records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.errors import Unsupported, check_kind, read_list, wrong_sum
from whosin.exact import Array, flint_rational, is_exact, probability, rational
from whosin.spaces.arrays import require_table
from whosin.spaces.quotients import CountLattice, Lattice
from whosin.spaces.worlds import Records, Subsets

if TYPE_CHECKING:
    from whosin.priors.table import WorldTable


AsNumber = Callable[[Any], Any]
Factor = tuple[tuple[int, ...], Sequence[Fraction]]
"""Some rows, and a number for each of their tuples of values, the first changing slowest."""
SUM_TOLERANCE = Fraction(1, 10**9)
"""By how much probabilities in floats may miss a sum of 1."""


class Prior(ABC):
    """A distribution over worlds: what one adversary believes before seeing any output.

    A prior is plain data and takes its space from what it is used with: entities, records, or
    either. It answers in the kind of number it is asked for: `number` is `float`, or
    `flint_rational` for exact work.
    """

    @property
    @abstractmethod
    def parameters(self) -> tuple[object, ...]:
        """The numbers it was built from, to tell exact priors from floating-point ones."""

    def canonical(self) -> Prior:
        """The same prior in one spelling, with exact numbers."""
        return self

    def check(self, space: Subsets) -> None:
        """Raise `InvalidInput` unless the prior makes sense on this space."""
        raise self._unsupported("records, not about entities")

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        """The probability of each class of worlds."""
        raise self._unsupported("records, not about entities")

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        """The distribution over classes given that the entity is in, and given that it is out."""
        raise self._unsupported("records, not about entities")

    def belief(self, space: Subsets, entity: int) -> Fraction:
        """Pr[t ∈ T], exactly."""
        raise self._unsupported("records, not about entities")

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """The probability of each table of records, in world order."""
        raise self._unsupported("entities, not about records")

    def factors(self, space: Records) -> list[Factor] | None:
        """The prior as a product of tables over few rows each; nothing where it is none."""
        return None

    def _unsupported(self, about: str) -> Unsupported:
        return Unsupported(f"{type(self).__name__} is a prior about {about}", field="prior")

    def probabilities(self, space: Subsets) -> list[Fraction]:
        """The probability of each of the 2^n worlds, exactly."""
        check_kind(space, Subsets, "space", "Subsets(…)")
        require_table("a table over all subsets", space.worlds, 1)
        return [rational(w) for w in self.mass(CountLattice.single(space), flint_rational)]

    def as_table(self, space: Subsets) -> WorldTable:
        from whosin.priors.table import WorldTable

        return WorldTable({w: mass for w, mass in enumerate(self.probabilities(space)) if mass})


def convert_array(values: Array | Sequence[Any], number: AsNumber) -> Array:
    """An array of exact numbers in the kind asked for."""
    out = np.empty(len(values), dtype=float if number is float else object)
    out[:] = [number(value) for value in values]
    return out


def multiply_rows(rows: Sequence[Sequence[Fraction]], number: AsNumber) -> Array:
    """The probability of each table of independent rows, the first row changing slowest."""
    mass = convert_array([Fraction(1)], number)
    for row in rows:
        mass = np.multiply.outer(mass, convert_array(row, number)).ravel()
    return mass


def read_distribution(values: Sequence[object], field: str) -> tuple[Fraction, ...]:
    """Read probabilities with sum 1 (floats within 1e-9, then scaled to it)."""
    values = read_list(values, field, "a list of probabilities")
    exact = tuple(probability(value, field) for value in values)
    slack = Fraction(0) if is_exact(*values) else SUM_TOLERANCE
    total = check_sum(exact, field, slack, f"the probabilities in {field}")
    return tuple(value / total for value in exact)


def check_sum(
    values: Iterable[Fraction], field: str, slack: Fraction = SUM_TOLERANCE, what: str = ""
) -> Fraction:
    """The sum of probabilities, if it is 1 up to the slack."""
    total = sum(values, Fraction(0))
    if abs(total - 1) > slack:
        raise wrong_sum(field, total, what)
    return total
