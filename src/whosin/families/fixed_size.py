"""Adversaries who know the size (Li13 4.6, 4.7; Tramèr15 Definition 8), and one of m candidates
(Li13 5.5).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import (
    MAX_POPULATION,
    InvalidInput,
    invalid_value,
    read_whole,
    shorten_value,
    spell,
    spelled_whole,
)
from whosin.exact import ONE_HALF, Array, flint_rational, rational
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
from whosin.families.odds_search import (
    MAX_SEARCHED_PEOPLE,
    OddsSearch,
    alike_shifts,
    list_shares,
    swap_of_two,
    worst_alike,
)
from whosin.priors import FixedSize as FixedSizePrior
from whosin.priors import Prior
from whosin.spaces.arrays import BLOCK_ELEMENTS, exceeds_best, first_at_least, largest_ratio
from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice, spread_on_grid
from whosin.spaces.statistics import Contributions, Count, CountColumns
from whosin.spaces.worlds import Subsets

MAX_INSERTED_CANDIDATES, MAX_SPREAD_PEOPLE = 24, 20
"""Up to this many candidates insertion is faster than partial sorting; up to this many people
maxima are spread over all sets."""


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
        shares = (Fraction(1, self.m - 1),) * (self.m - 1)
        choice = _worst_choice(likelihoods, lattice, shares, positive, literal=self.literal)
        assert choice is not None
        yield choice.as_worst(lattice, *self.beliefs)

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        return _same_count(self, columns, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        self.check(sums.space)
        if sums.apart:
            named = _smallest_cell(sums)
            others = _farthest_others(sums, named, self.m - 1)
        else:
            named, counts = _farthest_from_value(sums, self.m, positive)
            others = [kind for kind, count in counts.items() for _ in range(count)]
        shares = (Fraction(1, self.m - 1),) * (self.m - 1)
        yield _shift_choice(sums, named, others, shares, positive, self.beliefs, self.literal)


def _same_count(family: Family, columns: CountColumns, positive: bool) -> Iterator[Worst]:
    """Whoever knows the number of people learns nothing from what shows it."""
    lattice = Count().lattice(columns.space)
    for worst in family.worst(np.ones((lattice.worlds, 1)), lattice, positive):
        seen = columns.counts == (worst.present or ((0, 1),))[0][0]
        yield replace(worst, output=int(columns.outputs[np.argmax(seen)]))


@dataclass(frozen=True)
class Choice:
    """A known set and one more entity: the named one, or another one with some share."""

    ratio: Any
    output: int
    space: Subsets
    known: frozenset[int]
    named: int
    others: tuple[int, ...]
    shares: tuple[Fraction, ...]

    def prior(self, belief: Fraction) -> Prior:
        odds = [Fraction(entity in self.known) for entity in range(self.space.size)]
        named = [(self.named, belief)]
        for entity, share in (*named, *zip(self.others, self.shares, strict=True)):
            weight = share if entity == self.named else share * (1 - belief)
            odds[entity] = weight / (1 + weight)
        return FixedSizePrior(odds, len(self.known) + 1)

    def as_worst(self, lattice: Lattice, low: Fraction, high: Fraction) -> Worst:
        present = ((lattice.class_of({*self.known, self.named}), Fraction(1)),)
        absent = tuple(
            (lattice.class_of({*self.known, other}), share)
            for other, share in zip(self.others, self.shares, strict=True)
        )
        return Worst(self.ratio, self.named, self.output, low, high, self.prior, present, absent)


def _worst_choice(
    likelihoods: Array,
    lattice: Lattice,
    shares: tuple[Fraction, ...],
    positive: bool,
    *,
    literal: bool = False,
) -> Choice | None:
    """The worst named candidate and others with these shares, the largest share first; None where
    there are not so many."""
    m = len(shares) + 1
    grid: Lattice
    best: tuple[Any, int, int] | None = None
    if isinstance(lattice, MaximumLattice) and len(set(shares)) == 1:
        grid, array = lattice, likelihoods
        best = worst_candidate_of_maximum(array, lattice, m, literal, positive)
    else:
        grid, array = spread_on_grid(lattice, likelihoods)
        for bases in _base_blocks(grid, array, m, literal):
            sides = _contrast(grid, array, bases, shares, positive)
            ratio = largest_ratio(*sides)
            if best is None or exceeds_best(ratio, best[0]):
                row, output = first_at_least(*sides, ratio)
                best = ratio, int(bases[row]), int(output)
    if best is None:
        return None
    ratio, base, output = best
    ways = grid.neighbours(base)
    if literal and isinstance(grid, MaximumLattice):  # the others below it are known
        above = [way for way in ways if way[1] > base]
        ways = above + [way for way in ways if way[1] <= base][: m - len(above)]
    ways = sorted(ways, key=lambda way: array[way[1], output])
    ways = ways if positive else ways[::-1]
    entity, others = ways[-1][0], tuple(other for other, _ in ways[: m - 1])
    known = frozenset(grid.representative(base))
    if literal:
        known = frozenset(range(grid.space.size)) - {entity, *others}
    return Choice(ratio, output, lattice.space, known, entity, others, shares)


def _contrast(
    grid: CountLattice, array: Array, bases: Array, shares: tuple[Fraction, ...], positive: bool
) -> tuple[Array, Array]:
    """(bases × outputs): numerator and denominator of the worst ratio at each base."""
    if array.dtype == object:
        values, free = _candidate_likelihoods(grid, array, bases, len(shares) + 1)
        return _contrast_exact(values, free, shares, positive)
    # Seen negatively, the smallest likelihood stands against the largest others: one sign.
    sign = 1 if positive else -1
    one, others = _extreme_likelihoods(grid, array, bases, shares, sign)
    return (one, others) if positive else (-others, -one)


def _shift_choice(
    sums: Contributions,
    named: int,
    others: Sequence[int],
    shares: tuple[Fraction, ...],
    positive: bool,
    beliefs: Range,
    literal: bool = False,
) -> Shift:
    """One of several candidates for noise on a sum: the named kind, and the others' kinds with
    their shares. The output is the named one's own value, or far from it beyond the others."""
    counts = Counter(others)
    members = {kind: iter(sums.kinds[kind][kind == named :]) for kind in counts}
    chosen = tuple(next(members[kind]) for kind in others)
    entity = sums.kinds[named][0]
    far = max(sums.distance(named, kind) for kind in counts)
    shown = Counter({named: 1})
    if not positive:
        end = next(kind for kind in counts if sums.distance(named, kind) == far)
        cells = (kind for kind in counts if kind != named)
        shown = Counter(cells if sums.apart else (end,))
    known: frozenset[int] = frozenset()
    if literal:
        known = frozenset(range(sums.space.size)) - {entity, *chosen}
        shown += Counter({kind: len(members) for kind, members in enumerate(sums.kinds)})
        shown -= counts + Counter({named: 1})
    weights: dict[Fraction, Fraction] = {}
    for kind, share in zip(others, shares, strict=True):
        distance = sums.distance(named, kind)
        distance = distance if positive else far - distance
        weights[distance] = weights.get(distance, Fraction(0)) + share
    choice = Choice(None, 0, sums.space, known, entity, chosen, shares)
    present = ((Fraction(0) if positive else far, Fraction(1)),)
    absent = tuple(weights.items())
    return Shift(entity, sums.total(shown), *beliefs, choice.prior, present, absent)


def _farthest_others(sums: Contributions, named: int, count: int) -> list[int]:
    """The kinds of as many other entities as far as possible from one of a kind, farthest first."""
    others: list[int] = []
    for kind in sorted(range(len(sums.kinds)), key=lambda kind: -sums.distance(named, kind)):
        room = count - len(others)
        others += [kind] * min(room, len(sums.kinds[kind]) - (kind == named))
    return others


def _smallest_cell(sums: Contributions) -> int:
    """The cell of a histogram from which most people are apart."""
    return min(range(len(sums.kinds)), key=lambda kind: len(sums.kinds[kind]))


def _farthest_from_value(sums: Contributions, m: int, positive: bool) -> tuple[int, dict[int, int]]:
    """(kind of the named candidate, number of other candidates by kind) for a sum of numbers w.

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
        split = int(np.argmin(sums_at)) % m
        named = int(tried[:, split][np.argmin(sums_at[:, split])])
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
    grid: CountLattice, array: Array, bases: Array, shares: tuple[Fraction, ...], sign: int
) -> tuple[Array, Array]:
    """(bases × outputs): the largest of sign · likelihood after adding one entity, and the mean of
    the smallest: for few candidates kept sorted by insertion while the slots go by."""
    m, weights = len(shares) + 1, list(map(float, shares))
    if m > MAX_INSERTED_CANDIDATES:
        values, free = _candidate_likelihoods(grid, array, bases, m)
        values *= sign
        largest = np.where(free, values, -np.inf).max(axis=-1)
        values = np.where(free, values, np.inf)
        values.sort(axis=-1)
        return largest, values[..., : m - 1] @ np.array(weights)
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
    mean = np.sum([w * kept for w, kept in zip(weights, smallest, strict=True)], axis=0)
    return largest, np.asarray(mean)


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


def _contrast_exact(
    values: Array, free: Array, shares: tuple[Fraction, ...], positive: bool
) -> tuple[Array, Array]:
    weights = list(map(flint_rational, shares))
    top = np.empty(values.shape[:2], dtype=object)
    bottom = np.empty(values.shape[:2], dtype=object)
    for base, output in np.ndindex(*values.shape[:2]):
        ranked = sorted(values[base, output][free[base, 0]], reverse=not positive)
        one, mean = ranked[-1], sum(w * v for w, v in zip(weights, ranked, strict=False))
        top[base, output], bottom[base, output] = (one, mean) if positive else (mean, one)
    return top, bottom


@dataclass(frozen=True)
class FixedSize(Bounded):
    """D_B, or D_B^[low, high] when uncertain entities have beliefs in [low, high] only.

    The worst ratio is between two worlds that exchange one entity for another (Li13 Theorem 4.8).
    For each base T it is the largest Pr[o|T∪t] over the smallest: running extremes, never pairs.

    With bounds that ratio is an upper bound (T11), tight when low + high = 1. The witness is then
    the best prior whose other uncertain people are alike, or that has one of several candidates in,
    or all but one, by a fractional knapsack over their beliefs: where it meets the bound, or the
    family has no other priors, that is the level; elsewhere it is `Level.lower`, and the odds of
    few people are searched for a better one and a smaller bound. Where there are no priors at all
    nobody is uncertain, and the level is 1.
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
        if self.tight:
            yield from worst_swap(likelihoods, lattice, positive, *self.swaps)
            return
        people = lattice.space.size
        yield from worst_alike(likelihoods, lattice, self.bounds, positive)
        spread = not isinstance(lattice, MaximumLattice) or people <= MAX_SPREAD_PEOPLE
        for shares, beliefs in list_shares(low, high, people):
            searched = spread or len(set(shares)) == 1
            if searched and (choice := _worst_choice(likelihoods, lattice, shares, positive)):
                yield choice.as_worst(lattice, *beliefs)
        if not spread:
            return
        # All but one of them: one of them, seen from those who are absent. Complementing every
        # world reverses a grid's numbering and exchanges present with absent.
        grid, array = spread_on_grid(lattice, likelihoods)
        for shares, beliefs in list_shares(1 - high, 1 - low, people):
            if choice := _worst_choice(array[::-1], grid, shares, not positive):
                yield _mirror_worst(choice.as_worst(grid, *beliefs), grid, lattice)

    def narrows(self, people: int) -> bool:
        low, high = self.bounds
        return people <= MAX_SEARCHED_PEOPLE and low > 0 and high < 1

    def narrow(
        self, likelihoods: Array, lattice: Lattice, positive: bool, reached: float, most: float
    ) -> tuple[Worst | None, float]:
        low, high = self.bounds
        grid, array = CountLattice.single(lattice.space), likelihoods[lattice.labels()]
        if not positive:
            array, low, high = array[::-1], 1 - high, 1 - low
        search = OddsSearch(array, lattice.space, (low, high), reached, most)
        if (worst := search.run()) is not None:
            worst = (_regroup if positive else _mirror_worst)(worst, grid, lattice)
        return worst, search.bound

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        return _same_count(self, columns, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        if self.tight:
            yield from self._swap_shift(sums, positive)
            return
        low, high = self.bounds
        yield from alike_shifts(sums, self.bounds, positive)
        yield from _shift_choices(sums, low, high, positive)
        # The sum over those who are absent is the total less that over those who are present.
        mirrored = replace(sums, weights=tuple(-weight for weight in sums.weights))
        total = sums.total({kind: len(members) for kind, members in enumerate(sums.kinds)})
        for shift in _shift_choices(mirrored, 1 - high, 1 - low, not positive):
            point = tuple(a + b for a, b in zip(total, shift.output, strict=True))
            seen = replace(shift, present=shift.absent, absent=shift.present, output=point)
            yield replace(seen, **_mirror(shift))

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

    def bounding(self, people: int) -> Family | None:
        return None if self.tight or self._is_tried(people) else SwapOfTwo()

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


def _shift_choices(
    sums: Contributions, low: Fraction, high: Fraction, positive: bool
) -> Iterator[Shift]:
    """The knapsack for noise on a sum, someone at either end being named (of a histogram, in the
    smallest cell)."""
    kinds = range(len(sums.kinds))
    ends = [max(kinds, key=sums.weights.__getitem__), min(kinds, key=sums.weights.__getitem__)]
    for shares, beliefs in list_shares(low, high, sums.space.size):
        for named in [_smallest_cell(sums)] if sums.apart else ends:
            others = _farthest_others(sums, named, len(shares))
            yield _shift_choice(sums, named, others, shares, positive, beliefs)


def _mirror(case: Worst | Shift) -> dict[str, Any]:
    """The beliefs and the prior of a case about who is absent, for those who are present."""

    def prior(belief: Fraction) -> Prior:
        seen = case.prior(1 - belief)
        assert isinstance(seen, FixedSizePrior)
        odds = [1 - rational(p) for p in seen.parameters]
        return FixedSizePrior(odds, len(odds) - seen.size)

    return {"low": 1 - case.high, "high": 1 - case.low, "prior": prior}


def _regroup(worst: Worst, grid: Lattice, lattice: Lattice, *, mirrored: bool = False) -> Worst:
    """The same case in terms of a lattice's classes, with everyone's complement if mirrored."""
    present, absent = (
        tuple(
            (
                lattice.class_of(grid.representative(grid.worlds - 1 - w if mirrored else w)),
                weight,
            )
            for w, weight in side or ()
        )
        for side in (worst.present, worst.absent)
    )
    return replace(worst, present=present, absent=absent)


def _mirror_worst(worst: Worst, grid: Lattice, lattice: Lattice) -> Worst:
    """A case about who is absent, with every world's complement, for those who are present."""
    case = _regroup(worst, grid, lattice, mirrored=True)
    return replace(case, **_mirror(worst), present=case.absent, absent=case.present)


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
