"""Priors about records only: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from typing import NoReturn

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, is_exact, probability
from whosin.priors.base import TOLERANCE, AsNumber, Prior
from whosin.spaces.lattice import Lattice
from whosin.spaces.records import Records
from whosin.spaces.subsets import Subsets
from whosin.validation import listed


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
        raise Unsupported(f"{type(self).__name__} is a prior about records, not about entities")

    @abstractmethod
    def on_records(self, space: Records, number: AsNumber) -> Array:
        """The probability of each table."""


def distribution(values: Sequence[object], field: str) -> tuple[Fraction, ...]:
    """Read probabilities with sum 1 (floats within 1e-9, then scaled to it)."""
    values = listed(values, field, "a list of probabilities")
    exact = tuple(probability(value, field) for value in values)
    total = sum(exact, Fraction(0))
    slack = Fraction(0) if is_exact(*values) else TOLERANCE
    if abs(total - 1) > slack:
        by = f"sum {float(total):.12g} (off by {float(total - 1):+.3g})"
        raise InvalidInput(field, "probabilities with sum 1", by)
    return tuple(value / total for value in exact)
