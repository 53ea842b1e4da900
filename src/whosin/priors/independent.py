"""Entities are present independently of each other (Li13, distribution family 4.3)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, probability, rational
from whosin.priors.base import AsNumber, Prior
from whosin.priors.records import distribution
from whosin.spaces.lattice import Lattice
from whosin.spaces.memory import require_table
from whosin.spaces.records import Records
from whosin.spaces.subsets import Subsets


@dataclass(frozen=True, init=False)
class Independent(Prior):
    """Pr[T] = ∏_{t∈T} p_t ∏_{t∉T} (1 − p_t); on records Pr[x] = ∏ p(x_i).

    Args:
        p: one probability for everyone, or one for each entity in the space's order; on records a
            distribution over values, or a list with one for each row.
    """

    p: object

    def __init__(self, p: object) -> None:
        values = p if isinstance(p, str) or not isinstance(p, Iterable) else tuple(p)
        if isinstance(values, tuple) and any(_is_list(entry) for entry in values):
            rows = tuple(tuple(row) if _is_list(row) else (row,) for row in values)
            object.__setattr__(self, "p", rows)
            for number, row in enumerate(rows):
                distribution(row, f"distribution of row {number}")
            return
        object.__setattr__(self, "p", values)
        if not self._exact:
            raise InvalidInput("p", "a probability or one for each entity", "an empty list")

    @cached_property
    def _exact(self) -> tuple[Fraction, ...]:
        return tuple(probability(value, "p") for value in self.parameters)

    @property
    def parameters(self) -> tuple[object, ...]:
        if self.by_row:
            return tuple(entry for row in self.p for entry in row)  # type: ignore[attr-defined]
        return self.p if isinstance(self.p, tuple) else (self.p,)

    @property
    def by_row(self) -> bool:
        """Whether it lists a distribution for each row of records."""
        return isinstance(self.p, tuple) and bool(self.p) and isinstance(self.p[0], tuple)

    def canonical(self) -> Independent:
        if self.by_row:
            return Independent([tuple(map(rational, row)) for row in self.p])  # type: ignore[attr-defined]
        return Independent(self._exact if isinstance(self.p, tuple) else self._exact[0])

    def beliefs(self, space: Subsets) -> tuple[Fraction, ...]:
        """p_t for each entity."""
        self.check(space)
        return self._exact if isinstance(self.p, tuple) else self._exact * space.size

    def on_records(self, space: Records, number: AsNumber) -> Array:
        require_table("a table over all records", space.worlds, 1, space.values)
        mass = np.array([number(1)], dtype=float if number is float else object)
        for row in self.rows(space):
            mass = np.multiply.outer(mass, np.array([number(p) for p in row], mass.dtype)).ravel()
        return mass

    def rows(self, space: Records) -> list[tuple[Fraction, ...]]:
        """The distribution of each row."""
        listed = self.p if self.by_row else (self.p,) * space.rows
        assert isinstance(listed, tuple)
        if len(listed) != space.rows:
            raise InvalidInput(
                "p", f"a distribution, or {space.rows}, one for each row", len(listed)
            )
        read: dict[int, tuple[Fraction, ...]] = {}  # by identity: a million rows often share one
        for number, row in enumerate(listed):
            if id(row) in read:
                continue
            if not isinstance(row, tuple) or len(row) != space.values:
                raise InvalidInput("p", f"a distribution over {space.values} values", repr(row))
            read[id(row)] = distribution(row, f"distribution of row {number}")
        return [read[id(row)] for row in listed]

    def check(self, space: Subsets) -> None:
        if self.by_row:
            raise InvalidInput(
                "p", "numbers, one for each entity", "distributions, one for each row"
            )
        if isinstance(self.p, tuple) and len(self.p) != space.size:
            raise InvalidInput("p", f"one probability or {space.size}", f"{len(self.p)}")

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        return lattice.independent([number(p) for p in self.beliefs(lattice.space)])

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        beliefs = [number(p) for p in self.beliefs(lattice.space)]
        sure = [number(1), number(0)]
        present, absent = (
            lattice.independent([*beliefs[:entity], certain, *beliefs[entity + 1 :]])
            for certain in sure
        )
        return present, absent

    def belief(self, space: Subsets, entity: int) -> Fraction:
        return self.beliefs(space)[entity]


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)
