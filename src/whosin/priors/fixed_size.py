"""An independent prior given the size of the data (Li13, distribution family 4.6)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational, rational
from whosin.priors.base import AsNumber, Prior
from whosin.priors.independent import Independent
from whosin.spaces.count_lattice import CountLattice
from whosin.spaces.lattice import Lattice
from whosin.spaces.subsets import Subsets
from whosin.validation import whole


@dataclass(frozen=True, init=False)
class FixedSize(Prior):
    """Independent(p) conditioned on |T| = size.

    Args:
        p: one probability for everyone, or one for each entity: relative odds, not beliefs.
        size: the known number of entities present.
    """

    p: object
    size: int

    def __init__(self, p: object, size: int) -> None:
        object.__setattr__(
            self, "p", p if isinstance(p, str) or not isinstance(p, Iterable) else tuple(p)
        )
        object.__setattr__(self, "size", whole(size, "size", 0))
        _ = self._odds

    @cached_property
    def _odds(self) -> Independent:
        return Independent(self.p)

    @property
    def parameters(self) -> tuple[object, ...]:
        return self._odds.parameters

    def _total(self, beliefs: tuple[Fraction, ...], size: int) -> Fraction:
        """Pr[|T| = size] under the independent prior."""
        unsure = [flint_rational(p) for p in beliefs if 0 < p < 1]
        wanted = size - sum(p == 1 for p in beliefs)
        if not unsure or not 0 <= wanted <= len(unsure):
            return Fraction(wanted == 0)
        counted = CountLattice(Subsets(len(unsure)), (tuple(range(len(unsure))),))
        return rational(counted.independent(unsure)[wanted])

    def check(self, space: Subsets) -> None:
        self._odds.check(space)
        if not self._total(self._odds.beliefs(space), self.size):
            raise InvalidInput("size", "possible under p", self.size)

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        beliefs = [number(p) for p in self._odds.beliefs(lattice.space)]
        return lattice.independent(beliefs, size=self.size)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        beliefs = [number(p) for p in self._odds.beliefs(lattice.space)]
        present, absent = (
            lattice.independent(
                [*beliefs[:entity], number(sure), *beliefs[entity + 1 :]], self.size
            )
            for sure in (1, 0)
        )
        return present, absent

    def belief(self, space: Subsets, entity: int) -> Fraction:
        self.check(space)
        beliefs = self._odds.beliefs(space)
        fixed = (*beliefs[:entity], Fraction(1), *beliefs[entity + 1 :])
        whole = self._total(beliefs, self.size)
        return beliefs[entity] * self._total(fixed, self.size) / whole
