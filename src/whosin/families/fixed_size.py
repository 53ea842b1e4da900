"""Adversaries who know the size (Li13 4.6, 4.7; Tramèr15 Definition 8), and one of m candidates
(Li13 5.5).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import InvalidInput, invalid_value, spell
from whosin.exact import ONE_HALF, Array, rational
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Bounded,
    Family,
    Range,
    Shift,
    Worst,
    far_apart,
    fixed_size_structure,
    is_nested,
    output_columns,
)
from whosin.families.explicit import Explicit
from whosin.families.maxima import worst_candidate_of_maximum
from whosin.priors import FixedSize as FixedSizePrior
from whosin.priors import Prior
from whosin.spaces.arrays import BLOCK_ELEMENTS, exceeds_best, first_at_least, largest_ratio
from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice, spread_on_grid
from whosin.spaces.statistics import Contributions
from whosin.spaces.worlds import Subsets
from whosin.validation import MAX_POPULATION, read_whole, shorten_value, spelled_whole

MAX_INSERTED_CANDIDATES = 24
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
        read_whole(self.m, "m", 2, MAX_POPULATION)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return not self.literal  # which asks how many there are beside the candidates

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
        swaps = other.name == "swap-of-two" and other.beliefs == (ONE_HALF, ONE_HALF)
        return swaps and self.m == 2 and not self.literal

    def relatives(self) -> Iterator[Family]:
        yield OneOf(self.m)
        if self.m == 2:
            yield SwapOfTwo(ONE_HALF, ONE_HALF)

    def words(self) -> str:
        return f"someone who knows all but one person, who is one of {self.m} likely candidates"

    @property
    def argument(self) -> str:
        return f"{self.m}:literal" if self.literal else str(self.m)

    @classmethod
    def parse(cls, argument: str) -> Self:
        number, _, literal = argument.partition(":")
        if literal not in ("", "literal"):
            raise invalid_value("one-of", "m or m:literal", shorten_value(argument))
        return cls(spelled_whole(number, "m in one-of=m"), literal == "literal")

    def check(self, space: Subsets) -> None:
        if self.m > space.size:
            raise invalid_value("m", f"at most the number of entities, {space.size}", self.m)

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
        if isinstance(lattice, MaximumLattice):
            case = worst_candidate_of_maximum(likelihoods, lattice, self.m, self.literal, positive)
            yield self._worst_case(lattice, lattice, likelihoods, *case, positive)
            return
        grid, array = spread_on_grid(lattice, likelihoods)
        best: tuple[Any, int, int] | None = None
        for bases in _base_blocks(grid, array, self.m, self.literal):
            one, others = self._contrast(grid, array, bases, positive)
            ratio = largest_ratio(one, others)
            if best is None or exceeds_best(ratio, best[0]):
                row, output = first_at_least(one, others, ratio)
                best = ratio, int(bases[row]), int(output)
        assert best is not None
        yield self._worst_case(lattice, grid, array, *best, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        """The output is the named candidate's own value, or far beyond it from the others."""
        self.check(sums.space)
        find = _farthest_from_cell if sums.apart else _farthest_from_value
        named, others = find(sums, self.m, positive)
        entity = sums.kinds[named][0]
        chosen = {
            member
            for kind, count in others.items()
            for member in sums.kinds[kind][kind == named :][:count]
        }
        known: list[int] = []
        counts = {named: 1}
        far = max(sums.distance(named, kind) for kind in others)
        if not positive:
            end = next(kind for kind in others if sums.distance(named, kind) == far)
            cells = (kind for kind in range(len(sums.kinds)) if kind != named)
            counts = dict.fromkeys(cells if sums.apart else (end,), 1)
        if self.literal:
            known = [e for e in range(sums.space.size) if e != entity and e not in chosen]
            for kind, members in enumerate(sums.kinds):
                inside = len(members) - (kind == named) - others.get(kind, 0)
                counts[kind] = counts.get(kind, 0) + inside

        def prior(_belief: Fraction) -> Prior:
            odds = [Fraction(0)] * sums.space.size
            for member in known:
                odds[member] = Fraction(1)
            for member in (entity, *chosen):
                odds[member] = ONE_HALF
            return FixedSizePrior(odds, len(known) + 1)

        share = Fraction(1, self.m - 1)
        distances = [(sums.distance(named, kind), count * share) for kind, count in others.items()]
        present, absent = Fraction(0), tuple(distances)
        if not positive:
            present, absent = far, tuple((far - d, weight) for d, weight in distances)
        yield Shift(
            entity, sums.total(counts), *self.beliefs, prior, ((present, Fraction(1)),), absent
        )

    def _contrast(
        self, grid: CountLattice, array: Array, bases: Array, positive: bool
    ) -> tuple[Array, Array]:
        """(bases × outputs): numerator and denominator of the worst ratio at each base."""
        if array.dtype == object:
            return _contrast_exact(
                *_candidate_likelihoods(grid, array, bases, self.m), self.m, positive
            )
        # Seen negatively, the smallest likelihood stands against the largest others: one sign.
        sign = 1 if positive else -1
        one, others = _extreme_likelihoods(grid, array, bases, self.m, sign)
        return (one, others) if positive else (-others, -one)

    def _worst_case(
        self,
        lattice: Lattice,
        grid: Lattice,
        array: Array,
        ratio: Any,
        base: int,
        output: int,
        positive: bool,
    ) -> Worst:
        ways = grid.neighbours(base)
        if self.literal and isinstance(grid, MaximumLattice):  # the others below it are known
            above = [way for way in ways if way[1] > base]
            ways = above + [way for way in ways if way[1] <= base][: self.m - len(above)]
        ways = sorted(ways, key=lambda way: array[way[1], output])
        ways = ways if positive else ways[::-1]
        entity, others = ways[-1][0], [other for other, _ in ways[: self.m - 1]]
        known = set(grid.representative(base))
        if self.literal:
            known = set(range(grid.space.size)) - {entity, *others}
        odds = [Fraction(position in known) for position in range(grid.space.size)]
        for candidate in (entity, *others):
            odds[candidate] = Fraction(1, 2)
        prior = FixedSizePrior(odds, len(known) + 1)
        present = ((lattice.class_of({*known, entity}), Fraction(1)),)
        share = Fraction(1, self.m - 1)
        absent = tuple((lattice.class_of({*known, other}), share) for other in others)
        return Worst(ratio, entity, output, *self.beliefs, lambda _belief: prior, present, absent)


def _farthest_from_cell(sums: Contributions, m: int, _positive: bool) -> tuple[int, dict[int, int]]:
    """(kind of the named candidate, number of other candidates by kind) in a histogram: someone of
    the smallest cell, and as many others of other cells as there are."""
    named = min(range(len(sums.kinds)), key=lambda kind: len(sums.kinds[kind]))
    others, room = {}, m - 1
    for kind in (*(k for k in range(len(sums.kinds)) if k != named), named):
        others[kind] = min(room, len(sums.kinds[kind]) - (kind == named))
        room -= others[kind]
    return named, {kind: count for kind, count in others.items() if count}


def _farthest_from_value(sums: Contributions, m: int, positive: bool) -> tuple[int, dict[int, int]]:
    """The same for a sum of numbers w.

    Positively the others are the l smallest and the r = m − 1 − l largest, and Σ e^−|w − w_t| is
    A_l e^−w_t + B_r e^w_t, least where e^2w_t is next to A_l/B_r. Negatively one end of the values
    is named, and the others are at the other end: each term grows with the output's distance.
    """
    order = sorted(range(len(sums.kinds)), key=sums.weights.__getitem__)
    sizes = [len(sums.kinds[kind]) for kind in order]
    least = sums.weights[order[0]]
    spread = [min(float(sums.weights[kind] - least) * sums.rate, 1e300) for kind in order]
    x, n = np.repeat(spread, sizes), sum(sizes)
    left = np.logaddexp.accumulate(np.concatenate([[-np.inf], x[: m - 1]]))
    right = np.logaddexp.accumulate(np.concatenate([[-np.inf], -x[::-1][: m - 1]]))[::-1]
    first, last = np.arange(m), n - m + np.arange(m)
    if positive:
        middle = np.searchsorted(x, np.clip((left - right) / 2, -1e300, 1e300))
        tried = np.clip(np.stack([middle, middle - 1]), first, last)
        sums_at = np.logaddexp(left - x[tried], right + x[tried])
        row, split = np.unravel_index(int(np.argmin(sums_at)), sums_at.shape)
        named, split = int(tried[row, split]), int(split)
    else:
        top = np.logaddexp.reduce(x[n - m + 1 :]) - x[0]
        bottom = np.logaddexp.reduce(-x[: m - 1]) + x[-1]
        named, split = (0, 0) if top >= bottom else (n - 1, m - 1)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    chosen = [range(split), range(n - m + 1 + split, n)]
    others: dict[int, int] = {}
    for kind, start, stop in zip(order, starts, starts[1:], strict=False):
        count = sum(max(0, min(stop, part.stop) - max(start, part.start)) for part in chosen)
        if count:
            others[kind] = int(count)
    return order[int(np.searchsorted(starts, named, side="right")) - 1], others


def _base_blocks(grid: CountLattice, array: Array, m: int, literal: bool) -> Iterator[Array]:
    """Classes with at least m (literal: exactly m) entities outside, a block at a time."""
    outside = grid.space.size - grid.totals()
    bases = np.flatnonzero(outside == m if literal else outside >= m)
    width = 8 if m <= MAX_INSERTED_CANDIDATES else len(_list_slots(grid, m)) // 8 + 1
    step = max(1, BLOCK_ELEMENTS // (width * array.shape[1]))
    for start in range(0, len(bases), step):
        yield bases[start : start + step]


def _list_slots(grid: CountLattice, m: int) -> list[tuple[int, int]]:
    """(kind, copy): a kind with several entities outside has as many slots, up to m."""
    return [
        (kind, copy)
        for kind, length in enumerate(grid.lengths)
        for copy in range(min(length - 1, m))
    ]


def _extreme_likelihoods(
    grid: CountLattice, array: Array, bases: Array, m: int, sign: int
) -> tuple[Array, Array]:
    """(bases × outputs): the largest of sign · likelihood after adding one entity, and the mean of
    the m − 1 smallest: for few candidates kept sorted by insertion while the slots go by."""
    if m > MAX_INSERTED_CANDIDATES:
        values, free = _candidate_likelihoods(grid, array, bases, m)
        values *= sign
        largest = np.where(free, values, -np.inf).max(axis=-1)
        values = np.where(free, values, np.inf)
        values.partition(m - 2, axis=-1)
        return largest, values[..., : m - 1].sum(axis=-1) / (m - 1)
    shape = (len(bases), array.shape[1])
    largest = np.full(shape, -np.inf, dtype=array.dtype)
    smallest = [np.full(shape, np.inf, dtype=array.dtype) for _ in range(m - 1)]
    for kind, copy in _list_slots(grid, m):
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


def _candidate_likelihoods(
    grid: CountLattice, array: Array, bases: Array, m: int
) -> tuple[Array, Array]:
    """Likelihoods after adding one entity: (bases × outputs × slots), and which slots are real."""
    slots = _list_slots(grid, m)
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


@dataclass(frozen=True)
class FixedSize(Bounded):
    """D_B, or D_B^[low, high] when uncertain entities have beliefs in [low, high] only.

    The worst ratio is between two worlds that exchange one entity for another (Li13 Theorem 4.8).
    For each base T it is the largest Pr[o|T∪t] over the smallest: running extremes, never pairs.

    With bounds that ratio is an upper bound only (T11), tight when low + high = 1; the witness is
    then the best prior found among swaps, one-of-m and all-but-one-of-m choices, and its level is
    `Level.lower`. Where the family has no other priors, as for two people, that is the level; where
    it has none at all nobody is uncertain, and the level is 1.
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
        return self.bounds == WHOLE_RANGE

    upward = downward

    @property
    def tight(self) -> bool:  # type: ignore[override]
        return sum(self.bounds) == 1

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.tight

    def contains(self, prior: Prior, space: Subsets) -> bool:
        if fixed_size_structure(prior, space) is None:
            return False
        low, high = self.bounds
        beliefs = [prior.belief(space, entity) for entity in range(space.size)]
        return all(p in (0, 1) or low <= p <= high for p in beliefs)

    def includes(self, other: Family) -> bool:
        match other:
            case FixedSize():
                return is_nested(self.bounds, other.bounds)
            case OneOf():
                return is_nested(self.bounds, other.beliefs)
            case Explicit(priors=listed):
                sized = all(isinstance(each, FixedSizePrior) for each in listed)
                return self.bounds == WHOLE_RANGE and sized
        return False

    def relatives(self) -> Iterator[Family]:
        if is_nested(self.bounds, (ONE_HALF, ONE_HALF)):
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
        """
        low, high = self.bounds
        if not low <= ONE_HALF <= high:
            raise InvalidInput(
                "no prior that swaps two people has its beliefs, p and 1 − p, within "
                f"{spell(low)}..{spell(high)}",
                field="low and high",
                value=(low, high),
                hint="give a range with 1/2 in it",
            )
        return max(low, 1 - high), min(high, 1 - low)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        low, high = self.bounds
        if low <= ONE_HALF <= high:
            least, most = self.swaps
            yield from worst_swap(likelihoods, lattice, positive, least, most)
        if not self.tight:
            for m in range(2, lattice.space.size + 1):
                if low <= Fraction(1, m) <= high:
                    yield from OneOf(m).worst(likelihoods, lattice, positive)
                if m > 2 and low <= 1 - Fraction(1, m) <= high:
                    yield from _all_but_one(m, likelihoods, lattice, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift] | None:
        return self._swap_shift(sums, positive) if self.tight else None

    def _swap_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        """The two whose contributions are farthest apart."""
        kinds = sorted(range(len(sums.kinds)), key=sums.weights.__getitem__)
        if sums.space.size > 1:
            one, two = kinds[-1], kinds[0]
            named, other = sums.kinds[one][0], sums.kinds[two][-1]
            point = sums.total({one if positive else two: 1})
            prior = swap_of_two(sums.space, (), named, other)
            sides = far_apart(sums.distance(one, two), positive)
            yield Shift(named, point, *self.swaps, prior, *sides)

    def upper(
        self, likelihoods: Array, lattice: Lattice, positive: bool
    ) -> tuple[Any, Fraction, Fraction] | None:
        if self.tight or self._is_tried(lattice.space.size):
            return None
        low, high = self.bounds
        swap = next(worst_swap(likelihoods, lattice, positive, low, high), None)
        return (swap.ratio if swap else Fraction(1)), low, high

    def _is_tried(self, people: int) -> bool:
        """Whether `worst` tries all priors for so many people, if there are any.

        Beliefs in m uncertain people of whom s are in add up to s, so ma ≤ s ≤ mb. Of two people
        one is in: a swap. Where s is ma or mb all beliefs are alike, which is one of m, or all but
        one of m, for s = 1 and m − 1.
        """
        low, high = self.bounds
        for m in range(3, people + 1):
            least, most = max(ceil(m * low), 1), min(floor(m * high), m - 1)
            alike = {m * low, m * high} & {1, m - 1}
            if any(s not in alike for s in range(least, min(most, least + 2) + 1)):
                return False
        return True


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
        return isinstance(other, SwapOfTwo) and is_nested(self.bounds, other.bounds)


def _all_but_one(m: int, likelihoods: Array, lattice: Lattice, positive: bool) -> Iterator[Worst]:
    """A known set and all but one of m candidates: one-of-m, seen from those who are absent.

    Complementing every world reverses a grid's numbering and exchanges present with absent.
    """
    grid, array = spread_on_grid(lattice, likelihoods)
    size = grid.space.size

    def complement(world: int) -> int:
        return lattice.class_of(grid.representative(grid.worlds - 1 - world))

    for mirrored in OneOf(m).worst(array[::-1], grid, not positive):
        assert mirrored.present is not None and mirrored.absent is not None
        seen = mirrored.prior(mirrored.low)
        assert isinstance(seen, FixedSizePrior)
        prior = FixedSizePrior([1 - rational(p) for p in seen.parameters], size - seen.size)
        yield replace(
            mirrored,
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
    prior = swap_of_two(lattice.space, lattice.representative(base), named[0], other[0])
    sides = [((each[1], Fraction(1)),) for each in (named, other)]
    yield Worst(ratio, named[0], output, low, high, prior, *sides)


def largest_swap(array: Array, lattice: Lattice) -> tuple[Any, int, int] | None:
    """(ratio, base, output) of the largest ratio between worlds that exchange one entity."""
    best: tuple[Any, int, int] | None = None
    for start, piece in output_columns(array):
        largest, smallest, bases = lattice.extremes(piece)
        if not bases.any():
            return None
        zero = piece[0, 0] * 0
        largest[~bases], smallest[~bases] = zero, zero + 1
        ratio = largest_ratio(largest, smallest)
        if best is None or exceeds_best(ratio, best[0]):
            base, output = first_at_least(largest, smallest, ratio)
            best = ratio, int(base), start + int(output)
    return best


def swap_of_two(
    space: Subsets, base: Collection[int], named: int, other: int
) -> Callable[[Fraction], Prior]:
    """The fixed-size prior with two worlds: the base with one entity, or with the other."""
    known = set(base)

    def prior(belief: Fraction) -> Prior:
        odds = [Fraction(entity in known) for entity in range(space.size)]
        odds[named], odds[other] = belief, ONE_HALF
        return FixedSizePrior(odds, len(known) + 1)

    return prior
