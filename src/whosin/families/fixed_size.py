"""Adversaries who know how many are in the data (Li13 4.6, 4.7; Tramèr15 Definition 8)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from whosin.errors import InvalidInput
from whosin.exact import Array, rational
from whosin.families.base import HALF, WHOLE, Bounded, Family, Range, Worst, columns, nested
from whosin.families.explicit import Explicit
from whosin.families.one_of import OneOf
from whosin.families.prior_kinds import fixed_size_structure
from whosin.priors import FixedSize as FixedSizePrior
from whosin.priors import Prior
from whosin.spaces.count_lattice import as_grid
from whosin.spaces.lattice import Lattice
from whosin.spaces.search import exceeds, first_at_least, largest_ratio
from whosin.spaces.subsets import Subsets


@dataclass(frozen=True)
class FixedSize(Bounded):
    """D_B, or D_B^[low, high] when uncertain entities have beliefs in [low, high] only.

    The worst ratio is between two worlds that exchange one entity for another (Li13 Theorem 4.8).
    For each base T it is the largest Pr[o|T∪t] over the smallest: running extremes, never pairs.

    With bounds that ratio is an upper bound only (T11), tight when low + high = 1; the witness is
    then the best prior found among swaps, one-of-m and all-but-one-of-m choices, and its level is
    `Level.lower`.
    """

    low: object = 0
    high: object = 1

    name: ClassVar[str] = "fixed-size"
    example: ClassVar[str] = "fixed-size=0.05..1/3"
    key: ClassVar[str] = "size-known"
    relation: ClassVar[str] = "replace"
    symbol: ClassVar[str] = "D_B"
    definition: ClassVar[str] = "an independent prior given the number of entities present"
    source: ClassVar[str] = "Li13, distribution family 4.6; Tramèr15, Definition 8"
    theorems: ClassVar[tuple[str, ...]] = ("T1", "T5")

    @property
    def downward(self) -> bool:  # type: ignore[override]
        # Less belief in one is more in the others, so a bound at either end stands in the way.
        return self.bounds == WHOLE

    upward = downward

    @property
    def tight(self) -> bool:  # type: ignore[override]
        return sum(self.bounds) == 1

    def contains(self, prior: Prior, space: Subsets) -> bool:
        if fixed_size_structure(prior, space) is None:
            return False
        low, high = self.bounds
        beliefs = [prior.belief(space, entity) for entity in range(space.size)]
        return all(p in (0, 1) or low <= p <= high for p in beliefs)

    def includes(self, other: Family) -> bool:
        match other:
            case FixedSize():
                return nested(self.bounds, other.bounds)
            case OneOf():
                return nested(self.bounds, other.beliefs)
            case Explicit(priors=listed):
                sized = all(isinstance(each, FixedSizePrior) for each in listed)
                return self.bounds == WHOLE and sized
        return False

    def relatives(self) -> Iterator[Family]:
        if nested(self.bounds, (HALF, HALF)):
            yield SwapOfTwo(*self.swaps)

    def words(self) -> str:
        return (
            "someone who knows how many people are in the data, may know everything about "
            f"everyone else, {self.band}"
        )

    @property
    def swaps(self) -> tuple[Fraction, Fraction]:
        """The beliefs p of a swap of two: the other entity has belief 1 − p, which must be allowed
        as well.

        Raises:
            InvalidInput: there are none.
        """
        low, high = self.bounds
        if not low <= HALF <= high:
            accepted = "a range with 1/2 in it: a swap of two has beliefs p and 1 − p"
            raise InvalidInput("low and high", accepted, f"{float(low):g}..{float(high):g}")
        return max(low, 1 - high), min(high, 1 - low)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        low, high = self.bounds
        if low <= HALF <= high:
            least, most = self.swaps
            yield from worst_swap(likelihoods, lattice, positive, least, most)
        if not self.tight:
            for m in range(2, lattice.space.size + 1):
                if low <= Fraction(1, m) <= high:
                    yield from OneOf(m).worst(likelihoods, lattice, positive)
                if m > 2 and low <= 1 - Fraction(1, m) <= high:
                    yield from _all_but_one(m, likelihoods, lattice, positive)

    def upper(
        self, likelihoods: Array, lattice: Lattice, positive: bool
    ) -> tuple[Any, Fraction, Fraction] | None:
        if self.tight:
            return None
        low, high = self.bounds
        swap = next(worst_swap(likelihoods, lattice, positive, low, high), None)
        return (swap.ratio if swap else Fraction(1)), low, high


@dataclass(frozen=True)
class SwapOfTwo(FixedSize):
    """D_B²: exactly two worlds, T with one entity or T with another. Its level is that of D_B."""

    name: ClassVar[str] = "swap-of-two"
    example: ClassVar[str] = "swap-of-two=0.4..0.6"
    key: ClassVar[str] = ""
    symbol: ClassVar[str] = "D_B²"
    definition: ClassVar[str] = "fixed size, and exactly two worlds: T∪{t1} and T∪{t2}"
    source: ClassVar[str] = "Li13, distribution family 4.7"
    tight: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        _ = self.swaps

    def contains(self, prior: Prior, space: Subsets) -> bool:
        worlds = [world for world, mass in enumerate(prior.probabilities(space)) if mass]
        return len(worlds) == 2 and super().contains(prior, space)

    @property
    def beliefs(self) -> Range:
        return self.swaps

    def includes(self, other: Family) -> bool:
        if isinstance(other, OneOf):
            return other.m == 2  # a canonical range of swaps has 1/2 in it
        return isinstance(other, SwapOfTwo) and nested(self.bounds, other.bounds)


def _all_but_one(m: int, likelihoods: Array, lattice: Lattice, positive: bool) -> Iterator[Worst]:
    """A known set and all but one of m candidates: one-of-m, seen from those who are absent.

    Complementing every world reverses a grid's numbering and exchanges present with absent.
    """
    grid, array = as_grid(lattice, likelihoods)
    size = grid.space.size

    def complement(world: int) -> int:
        return lattice.class_of(grid.representative(grid.worlds - 1 - world))

    for mirrored in OneOf(m).worst(array[::-1], grid, not positive):
        assert mirrored.present is not None and mirrored.absent is not None
        seen = mirrored.prior(mirrored.low)
        assert isinstance(seen, FixedSizePrior)
        prior = FixedSizePrior([1 - rational(p) for p in seen.parameters], size - seen.size)
        yield Worst(
            ratio=mirrored.ratio,
            entity=mirrored.entity,
            output=mirrored.output,
            low=1 - mirrored.low,
            high=1 - mirrored.low,
            prior=lambda _belief, prior=prior: prior,  # type: ignore[misc]
            present=tuple((complement(world), weight) for world, weight in mirrored.absent),
            absent=tuple((complement(world), weight) for world, weight in mirrored.present),
        )


def worst_swap(
    array: Array,
    lattice: Lattice,
    positive: bool = True,
    low: Fraction = Fraction(0),
    high: Fraction = Fraction(1),
) -> Iterator[Worst]:
    """Nothing when no two entities can be exchanged; otherwise the worst exchange.

    A swap is its own mirror image: t1's gain is t2's loss, so `positive` only says which is named.
    """
    result = largest_swap(array, lattice)
    if result is None:
        return
    ratio, base, output = result
    ways = lattice.neighbours(base)
    gains = max(ways, key=lambda way: array[way[1], output])
    others = [way for way in ways if way[0] != gains[0]]
    loses = min(others, key=lambda way: array[way[1], output])
    named, other = (gains, loses) if positive else (loses, gains)
    yield Worst(
        ratio=ratio,
        entity=named[0],
        output=output,
        low=low,
        high=high,
        prior=swap_of_two(lattice, base, named[0], other[0]),
        present=((named[1], Fraction(1)),),
        absent=((other[1], Fraction(1)),),
    )


def largest_swap(array: Array, lattice: Lattice) -> tuple[Any, int, int] | None:
    """(ratio, base, output) of the largest ratio between worlds that exchange one entity."""
    best: tuple[Any, int, int] | None = None
    for start, piece in columns(array):
        largest, smallest, bases = lattice.extremes(piece)
        if not bases.any():
            return None
        zero = piece[0, 0] * 0
        largest[~bases], smallest[~bases] = zero, zero + 1
        ratio = largest_ratio(largest, smallest)
        if best is None or exceeds(ratio, best[0]):
            base, output = first_at_least(largest, smallest, ratio)
            best = ratio, int(base), start + int(output)
    return best


def swap_of_two(lattice: Lattice, base: int, named: int, other: int) -> Callable[[Fraction], Prior]:
    """The fixed-size prior with two worlds: the base with one entity, or with the other."""
    known = set(lattice.representative(base))
    space = lattice.space

    def prior(belief: Fraction) -> Prior:
        odds = [Fraction(entity in known) for entity in range(space.size)]
        odds[named], odds[other] = belief, HALF
        return FixedSizePrior(odds, len(known) + 1)

    return prior
