"""One of m candidates is in: the adversaries of differential identifiability (Li13 5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.families.base import HALF, Adversary, Family, Range, Worst
from whosin.families.prior_kinds import fixed_size_structure
from whosin.priors import FixedSize as FixedSizePrior
from whosin.priors import Prior
from whosin.spaces.count_lattice import CountLattice, as_grid
from whosin.spaces.lattice import Lattice
from whosin.spaces.search import BLOCK, exceeds, first_at_least, largest_ratio
from whosin.spaces.subsets import Subsets
from whosin.validation import MOST_PEOPLE, spelled_whole, whole

FEW = 24
"""Up to this many candidates insertion is faster than partial sorting."""


@dataclass(frozen=True)
class OneOf(Family):
    """D_C^m: a known set T and one more entity, drawn uniformly from m candidates outside it.

    For each T and output the worst choice is the candidate with the largest likelihood among the
    m − 1 others with the smallest. The paper's definition asks for |U∖T| = m, which allows data of
    one size only and makes its Theorem 5.7 false (erratum E2); `literal=True` gives that reading.
    """

    m: int
    literal: bool = False

    name: ClassVar[str] = "one-of"
    form: ClassVar[str] = "=m"
    example: ClassVar[str] = "one-of=3"
    relation: ClassVar[str] = "replace"
    symbol: ClassVar[str] = "D_C^m"
    definition: ClassVar[str] = "a known set plus one entity drawn uniformly from m candidates"
    source: ClassVar[str] = "Li13, distribution family 5.5"
    theorems: ClassVar[tuple[str, ...]] = ("T8",)

    def __post_init__(self) -> None:
        whole(self.m, "m", 2, MOST_PEOPLE)

    @property
    def beliefs(self) -> Range:
        return Fraction(1, self.m), Fraction(1, self.m)

    def adversary(self) -> Adversary:
        pair = self.m == 2
        equivalent = pair and not self.literal
        return Adversary(*self.beliefs, self.relation, 1, pair, equivalent, ("T5", "T11"))

    def includes(self, other: Family) -> bool:
        if isinstance(other, OneOf):
            return self.m == other.m and (other.literal or not self.literal)
        swaps = other.name == "swap-of-two" and other.beliefs == (HALF, HALF)
        return swaps and self.m == 2 and not self.literal

    def relatives(self) -> Iterator[Family]:
        from whosin.families.fixed_size import SwapOfTwo  # which is made from this one

        yield OneOf(self.m)
        if self.m == 2:
            yield SwapOfTwo(HALF, HALF)

    def words(self) -> str:
        return f"someone who knows all but one person, who is one of {self.m} likely candidates"

    @property
    def argument(self) -> str:
        return f"{self.m}:literal" if self.literal else str(self.m)

    @classmethod
    def parse(cls, argument: str) -> Self:
        number, _, literal = argument.partition(":")
        if literal not in ("", "literal"):
            raise InvalidInput("one-of", "one-of=m or one-of=m:literal", repr(argument))
        return cls(spelled_whole(number, "m in one-of=m"), literal == "literal")

    def check(self, space: Subsets) -> None:
        if self.m > space.size:
            raise InvalidInput("m", f"at most the number of entities, {space.size}", self.m)

    def contains(self, prior: Prior, space: Subsets) -> bool:
        structure = fixed_size_structure(prior, space)
        if structure is None:
            return False
        known, odds, size = structure
        return (
            len(odds) == self.m
            and size == len(known) + 1
            and len(set(odds.values())) == 1
            and (not self.literal or space.size - len(known) == self.m)
        )

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        self.check(lattice.space)
        grid, array = as_grid(lattice, likelihoods)
        best: tuple[Any, int, int] | None = None
        for bases in _base_blocks(grid, array, self.m, self.literal):
            one, others = self._contrast(grid, array, bases, positive)
            ratio = largest_ratio(one, others)
            if best is None or exceeds(ratio, best[0]):
                row, output = first_at_least(one, others, ratio)
                best = ratio, int(bases[row]), int(output)
        assert best is not None
        yield self._worst_case(lattice, grid, array, *best, positive)

    def _contrast(
        self, grid: CountLattice, array: Array, bases: Array, positive: bool
    ) -> tuple[Array, Array]:
        """(bases × outputs): numerator and denominator of the worst ratio at each base."""
        if array.dtype == object:
            return _contrast_exact(*_candidates(grid, array, bases, self.m), self.m, positive)
        # Seen negatively, the smallest likelihood stands against the largest others: one sign.
        sign = 1 if positive else -1
        one, others = _extremes(grid, array, bases, self.m, sign)
        return (one, others) if positive else (-others, -one)

    def _worst_case(
        self,
        lattice: Lattice,
        grid: CountLattice,
        array: Array,
        ratio: Any,
        base: int,
        output: int,
        positive: bool,
    ) -> Worst:
        ways = sorted(grid.neighbours(base), key=lambda way: array[way[1], output])
        if positive:
            entity, world = ways[-1]
            others = ways[: self.m - 1]
        else:
            entity, world = ways[0]
            others = ways[len(ways) - self.m + 1 :]
        known = set(grid.representative(base))
        odds = [Fraction(position in known) for position in range(grid.space.size)]
        for candidate, _ in [(entity, world), *others]:
            odds[candidate] = Fraction(1, 2)
        prior = FixedSizePrior(odds, len(known) + 1)
        after = {
            other: lattice.class_of({*known, other}) for other, _ in [(entity, world), *others]
        }
        return Worst(
            ratio=ratio,
            entity=entity,
            output=output,
            low=Fraction(1, self.m),
            high=Fraction(1, self.m),
            prior=lambda _belief: prior,
            present=((after[entity], Fraction(1)),),
            absent=tuple((after[other], Fraction(1, self.m - 1)) for other, _ in others),
        )


def _base_blocks(grid: CountLattice, array: Array, m: int, literal: bool) -> Iterator[Array]:
    """Classes with at least m (literal: exactly m) entities outside, a block at a time."""
    outside = grid.space.size - grid.totals()
    bases = np.flatnonzero(outside == m if literal else outside >= m)
    width = 8 if m <= FEW else len(_slots(grid, m)) // 8 + 1
    step = max(1, BLOCK // (width * array.shape[1]))
    for start in range(0, len(bases), step):
        yield bases[start : start + step]


def _slots(grid: CountLattice, m: int) -> list[tuple[int, int]]:
    """(kind, copy): a kind with several entities outside has as many slots, up to m."""
    return [
        (kind, copy)
        for kind, length in enumerate(grid.lengths)
        for copy in range(min(length - 1, m))
    ]


def _extremes(
    grid: CountLattice, array: Array, bases: Array, m: int, sign: int
) -> tuple[Array, Array]:
    """(bases × outputs): the largest of sign · likelihood after adding one entity, and the mean of
    the m − 1 smallest: for few candidates kept sorted by insertion while the slots go by."""
    if m > FEW:
        values, free = _candidates(grid, array, bases, m)
        values *= sign
        largest = np.where(free, values, -np.inf).max(axis=-1)
        values = np.where(free, values, np.inf)
        values.partition(m - 2, axis=-1)
        return largest, values[..., : m - 1].sum(axis=-1) / (m - 1)
    shape = (len(bases), array.shape[1])
    largest = np.full(shape, -np.inf, dtype=array.dtype)
    smallest = [np.full(shape, np.inf, dtype=array.dtype) for _ in range(m - 1)]
    for kind, copy in _slots(grid, m):
        room = grid.lengths[kind] - 1 - bases // grid.strides[kind] % grid.lengths[kind]
        value = array[np.where(room > 0, bases + grid.strides[kind], 0)]
        if sign < 0:
            np.negative(value, out=value)
        taken = room <= copy
        if copy == 0:
            value[taken] = -np.inf
            np.maximum(largest, value, out=largest)
        value[taken] = np.inf
        for index, kept in enumerate(smallest):
            smallest[index] = np.minimum(kept, value)
            np.maximum(kept, value, out=value)
    return largest, sum(smallest[1:], smallest[0]) / (m - 1)


def _candidates(grid: CountLattice, array: Array, bases: Array, m: int) -> tuple[Array, Array]:
    """Likelihoods after adding one entity: (bases × outputs × slots), and which slots are real."""
    slots = _slots(grid, m)
    values = np.empty((len(bases), array.shape[1], len(slots)), dtype=array.dtype)
    free = np.empty((len(bases), 1, len(slots)), dtype=bool)
    for slot, (kind, copy) in enumerate(slots):
        room = grid.lengths[kind] - 1 - bases // grid.strides[kind] % grid.lengths[kind]
        free[:, 0, slot] = room > copy
        values[:, :, slot] = array[np.where(room > 0, bases + grid.strides[kind], 0)]
    return values, free


def _contrast_exact(values: Array, free: Array, m: int, positive: bool) -> tuple[Array, Array]:
    top = np.empty(values.shape[:2], dtype=object)
    bottom = np.empty(values.shape[:2], dtype=object)
    for base, output in np.ndindex(*values.shape[:2]):
        ranked = sorted(values[base, output][free[base, 0]])
        one, others = (ranked[-1], ranked[: m - 1]) if positive else (ranked[0], ranked[1 - m :])
        mean = sum(others[1:], others[0]) / (m - 1)
        top[base, output], bottom[base, output] = (one, mean) if positive else (mean, one)
    return top, bottom
