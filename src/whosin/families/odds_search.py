"""Beliefs bounded on both sides under a known size: others who are alike, and searches of odds.

Of m uncertain people s are in, with probability in proportion to the product of their odds θ. For
entity t the ratio Pr[o|t]/Pr[o|¬t] depends on the others' odds alone, up to a factor, and with
these given the others' beliefs are linear in t's own belief p: whoever bounds them leaves an
interval for p, at an end of which γ is largest (F4). Weighted means by products of odds are
fractions that are linear in each odds above and below, hence monotone in each of them, so over a
box of odds their extremes are at its corners: that bounds ratio and interval on every box. Odds of
two people in [a, b] are at most min(b, 1 − a)/(a(1 − b)) apart, since presences given their number
are negatively associated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import ceil
from typing import Any

import numpy as np

from whosin.exact import ONE_HALF, Array
from whosin.families.base import Range, Shift, Worst, far_apart
from whosin.priors import FixedSize, Prior
from whosin.spaces.arrays import (
    BLOCK_ELEMENTS,
    exceeds_best,
    first_at_least,
    ignore_division,
    largest_ratio,
)
from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice
from whosin.spaces.statistics import Contributions
from whosin.spaces.worlds import Subsets

MAX_SEARCHED_PEOPLE = 6
"""Up to this many people odds are searched."""
SEARCHED_GAP = Fraction(1, 1000)
"""How far apart, relatively, the ends of a bracket are at most where the search comes to an end."""
MAX_BOXES = 1 << 19
"""How many boxes are looked at before a search ends with a wider bracket."""
ROUNDING_SLACK = 1e-11
"""More than floats lose in a bound, relatively."""


MAX_TRIED_OTHERS = 64
"""Up to this many others, beliefs at which their shares change are tried one by one."""


def list_shares(
    low: Fraction, high: Fraction, people: int
) -> Iterator[tuple[tuple[Fraction, ...], Range]]:
    """(shares of the others given that the named one is out, beliefs in the named one).

    One of several candidates with beliefs in [low, high]: the fractional knapsack. At each belief
    p in the named one the others' beliefs add up to 1 − p, and the least likely given the output
    get as much of it as they may. What the level is made of is linear in p, or nearly so, between
    the beliefs at which one more of them is at an end.
    """
    tried = {low, high}
    for count in range(max(ceil((1 - high) / high), 1), ceil((1 - low) / high) + 1):
        if count <= min(MAX_TRIED_OTHERS, people - 1):
            tried |= {1 - count * low - full * (high - low) for full in range(count + 1)}
    seen = set()
    for belief in sorted(p for p in tried if low <= p <= high and p < 1):
        rest, count = 1 - belief, ceil((1 - belief) / high)
        if count * low > rest or count >= people:
            continue
        parts: list[Fraction] = []
        for after in reversed(range(count)):
            parts.append(min(high, rest - sum(parts) - after * low))
        shares = tuple(part / rest for part in parts)
        if shares not in seen:
            seen.add(shares)
            yield shares, (max(low, 1 - high / shares[0]), min(high, 1 - low / shares[-1]))


def swap_of_two(
    space: Subsets, base: Collection[int], named: int, other: int
) -> Callable[[Fraction], Prior]:
    """The fixed-size prior with two worlds: the base with one entity, or with the other."""
    known = set(base)

    def prior(belief: Fraction) -> Prior:
        odds = [Fraction(entity in known) for entity in range(space.size)]
        odds[named], odds[other] = belief, ONE_HALF
        return FixedSize(odds, len(known) + 1)

    return prior


# Others who are alike: s of m uncertain people are in, and all but the named one are of one kind,
# with one belief. Given the named one s − 1 of the others are in, else s of them, whoever they are:
# two classes of worlds that exchange one person for another, as in the bound (T11). So the bound is
# attained wherever there are enough people of a kind.


@dataclass(frozen=True)
class Shape:
    """How many of the others are in beside the named one, and how many are out then; the beliefs in
    the named one that leave the others' in range."""

    inside: int
    outside: int
    low: Fraction
    high: Fraction

    @property
    def others(self) -> int:
        return self.inside + self.outside

    def prior(
        self, space: Subsets, entity: int, others: Sequence[int], known: Collection[int]
    ) -> Callable[[Fraction], Prior]:
        """The prior at a belief in the entity; a known set, the others apart, is in."""
        alike = set(others[: self.others])
        size = self.inside + 1 + len(set(known) - alike)

        def prior(belief: Fraction) -> Prior:
            odds = belief / (1 - belief) * Fraction(self.outside, self.inside + 1)
            shares = [
                ONE_HALF if each in alike else Fraction(each in known) for each in range(space.size)
            ]
            shares[entity] = odds / (1 + odds)
            return FixedSize(shares, size)

        return prior


def list_shapes(low: Fraction, high: Fraction, most: int) -> list[Shape]:
    """The shapes with up to so many others, without those that need more people of a kind than
    another one with the same beliefs."""
    found: list[Shape] = []
    for inside in range(most):
        fewest = max(1, ceil((inside + 1) * (1 - high) / high))
        if any(each.outside <= fewest and (each.low, each.high) == (low, high) for each in found):
            break
        for outside in range(fewest, most - inside + 1):
            others = inside + outside
            ends = max(low, inside + 1 - others * high), min(high, inside + 1 - others * low)
            if ends[0] > ends[1]:
                break
            if not any(
                each.outside <= outside and each.low <= ends[0] and ends[1] <= each.high
                for each in found
            ):
                found.append(Shape(inside, outside, *ends))
            if ends == (low, high):
                break
    return [each for each in found if each.others > 1]  # two people swap


def worst_alike(array: Array, lattice: Lattice, beliefs: Range, positive: bool) -> Iterator[Worst]:
    """For each shape its worst case on a quotient."""
    if isinstance(lattice, MaximumLattice):
        yield from _worst_alike_maximum(array, lattice, beliefs, positive)
        return
    assert isinstance(lattice, CountLattice)
    classes, lengths, strides = np.arange(lattice.worlds), lattice.lengths, lattice.strides
    for shape in list_shapes(*beliefs, max(lengths) - 1):
        best: tuple[Any, int, int, int, int] | None = None
        for other, length in enumerate(lengths):
            if length <= shape.others:
                continue
            counts = classes // strides[other] % length
            room = (counts >= shape.inside) & (length - 1 - counts >= shape.outside)
            for named in range(len(lengths)):
                free = classes // strides[named] % lengths[named] < lengths[named] - 1
                bases = np.flatnonzero(room & free) if named != other else classes[:0]
                step = max(1, BLOCK_ELEMENTS // array.shape[1])
                for start in range(0, len(bases), step):
                    some = bases[start : start + step]
                    sides = array[some + strides[named]], array[some + strides[other]]
                    sides = sides if positive else sides[::-1]
                    ratio = largest_ratio(*sides)
                    if exceeds_best(ratio, None if best is None else best[0]):
                        row, output = first_at_least(*sides, ratio)
                        best = ratio, int(output), named, other, int(some[row])
        if best is not None:
            ratio, output, named, other, base = best
            known, kind = set(lattice.representative(base)), lattice.kinds[other]
            others = sorted(kind, key=lambda each: each not in known)
            # As many of them in as the shape has, and the others out.
            inside = len(known & set(kind)) - shape.inside
            entity = lattice.kinds[named][lattice.counts(base)[named]]
            prior = shape.prior(lattice.space, entity, others[inside:], known)
            worlds = (
                ((base + strides[named], Fraction(1)),),
                ((base + strides[other], Fraction(1)),),
            )
            yield Worst(ratio, entity, output, shape.low, shape.high, prior, *worlds)


def _worst_alike_maximum(
    array: Array, lattice: MaximumLattice, beliefs: Range, positive: bool
) -> Iterator[Worst]:
    """The others are below someone who is known to be in, and the named one above."""
    people, extreme = lattice.space.size, np.maximum if positive else np.minimum
    above = extreme.accumulate(array[::-1], axis=0)[::-1]
    for shape in list_shapes(*beliefs, people - 2):
        first = shape.others + 1
        sides = (above[first + 1 :], array[first:-1])
        sides = sides if positive else sides[::-1]
        ratio = largest_ratio(*sides)
        row, output = first_at_least(*sides, ratio)
        base = first + int(row)
        column = array[base + 1 :, output]
        rank = base + 1 + int(column.argmax() if positive else column.argmin())
        entity, known = lattice.order[rank - 1], {lattice.order[base - 1]}
        prior = shape.prior(lattice.space, entity, lattice.order[: base - 1], known)
        classes = ((rank, Fraction(1)),), ((base, Fraction(1)),)
        yield Worst(ratio, entity, int(output), shape.low, shape.high, prior, *classes)


def alike_shifts(sums: Contributions, beliefs: Range, positive: bool) -> Iterator[Shift]:
    """The same for noise on a sum: the named one adds least or most."""
    order = sorted(range(len(sums.kinds)), key=sums.weights.__getitem__)
    ends = {*order[:2], *order[-2:]}
    for shape in list_shapes(*beliefs, max(map(len, sums.kinds))):
        pairs = [
            (sums.distance(named, other), named, other)
            for other, members in enumerate(sums.kinds)
            for named in ends - {other}
            if len(members) >= shape.others
        ]
        if pairs:
            distance, named, other = max(pairs)
            entity = sums.kinds[named][0]
            shown = {named: 1, other: shape.inside} if positive else {other: shape.inside + 1}
            prior = shape.prior(sums.space, entity, sums.kinds[other], ())
            ends_of = far_apart(distance, positive)
            yield Shift(entity, sums.total(shown), shape.low, shape.high, prior, *ends_of)


@dataclass(frozen=True, eq=False)
class SizeCase:
    """Who is uncertain, how many of them are in, and who is known to be in.

    Attributes:
        entity: t, by position; others: the other uncertain people.
        known: those who are known to be in.
        present, absent: the sets of others who are in given t and given ¬t, a row of zeros and
            ones each.
    """

    space: Subsets
    entity: int
    others: tuple[int, ...]
    known: tuple[int, ...]
    present: Array
    absent: Array

    def world(self, row: Sequence[int], *, inside: bool) -> int:
        members = [each for each, is_in in zip(self.others, row, strict=True) if is_in]
        return sum(1 << each for each in (*members, *self.known, *[self.entity] * inside))

    def likelihoods(self, array: Array) -> tuple[Array, Array]:
        return (
            array[[self.world(row, inside=True) for row in self.present]],
            array[[self.world(row, inside=False) for row in self.absent]],
        )


def list_cases(space: Subsets, low: Fraction, high: Fraction) -> Iterator[SizeCase]:
    """All cases of three uncertain people and more; two of them swap."""
    for uncertain in range(3, space.size + 1):
        sizes = [s for s in range(1, uncertain) if uncertain * low <= s <= uncertain * high]
        for group in combinations(range(space.size), uncertain):
            rest = [each for each in range(space.size) if each not in group]
            for size, entity in product(sizes, group):
                others = tuple(each for each in group if each != entity)
                rows = [
                    np.array([[i in chosen for i in range(len(others))] for chosen in ways], int)
                    for ways in (
                        combinations(range(len(others)), count) for count in (size - 1, size)
                    )
                ]
                for flags in product((False, True), repeat=len(rest)):
                    known = tuple(e for e, is_in in zip(rest, flags, strict=True) if is_in)
                    yield SizeCase(space, entity, others, known, *rows)


class OddsSearch:
    """The largest γ over cases with beliefs in a range, from below and from above.

    Attributes:
        reached: the largest γ of a prior, to start with that of another one.
        bound: no prior has a larger one.
    """

    def __init__(
        self, array: Array, space: Subsets, beliefs: Range, reached: float, most: float
    ) -> None:
        self.array, self.space, self.beliefs = array, space, beliefs
        self.reached, self.most = reached, most
        self.bound = reached
        self.found: tuple[SizeCase, Array, int] | None = None

    def start(self) -> list[tuple[SizeCase, Array]]:
        """A box of the logarithms of all odds, relative to those of the last one, for each case."""
        low, high = map(float, self.beliefs)
        apart = math.log(min(high, 1 - low) / (low * (1 - high))) + ROUNDING_SLACK
        return [
            (case, np.array([[[end] * (len(case.others) - 1) for end in (-apart, apart)]]))
            for case in list_cases(self.space, *self.beliefs)
        ]

    def run(self) -> Worst | None:
        """Find the bound, and the worst prior, where one is worse than what was reached before."""
        open_boxes = self.start()
        looked_at, axis, bounds = 0, 0, [math.inf] * len(open_boxes)
        while open_boxes:
            looked_at += sum(len(boxes) for _, boxes in open_boxes)
            if looked_at > MAX_BOXES:
                self.bound = max(self.bound, *bounds)
                break
            remaining, bounds = [], []
            for case, boxes in open_boxes:
                values = self.bound_boxes(case, boxes)
                kept = values > self.reached * (1 + float(SEARCHED_GAP))
                self.bound = max(self.bound, values[~kept].max(initial=0.0))
                if kept.any():
                    remaining.append((case, _halve(boxes[kept], axis)))
                    bounds.append(float(values[kept].max()))
            open_boxes, axis = remaining, axis + 1
        if self.bound > 1:  # otherwise nobody is uncertain
            self.bound = min(self.bound * (1 + ROUNDING_SLACK), self.most)
        return self._worst()

    def bound_boxes(self, case: SizeCase, boxes: Array) -> Array:
        """No prior with odds in a box has a larger γ; sees the middles of the boxes on the way."""
        corners = np.array(list(product((0, 1), repeat=boxes.shape[2])))
        axes = np.arange(boxes.shape[2])
        means = self._means(case, boxes[:, corners, axes])
        inside, outside, given_in, given_out = means
        ratios = _divide(inside.max(axis=1), outside.min(axis=1)).max(axis=1)
        ends = self._allowed(
            (given_in.min(axis=1), given_in.max(axis=1)),
            (given_out.min(axis=1), given_out.max(axis=1)),
        )
        values = _largest_gamma(ratios, ends[0] - ROUNDING_SLACK, ends[1] + ROUNDING_SLACK)
        self._see_middles(case, boxes[values > self.reached].mean(axis=1))
        return values

    def _see_middles(self, case: SizeCase, middles: Array) -> None:
        if not len(middles):
            return
        inside, outside, given_in, given_out = (
            side[:, 0] for side in self._means(case, middles[:, None])
        )
        first, last = self._allowed((given_in, given_in), (given_out, given_out))
        for place in np.flatnonzero((first > last) & (first < last + ROUNDING_SLACK)):
            # One belief is left, or none: exact numbers say which.
            ends = _allowed_exactly(case, _exact_odds(middles[place]), self.beliefs)
            if ends is not None:
                first[place], last[place] = ends
        ratios = _divide(inside, outside)
        values = _largest_gamma(ratios.max(axis=1), first, last)
        best = int(np.argmax(values))
        if values[best] > self.reached:
            self.reached = float(values[best])
            self.found = case, middles[best], int(np.argmax(ratios[best]))

    def _means(self, case: SizeCase, logs: Array) -> tuple[Array, ...]:
        """For odds (boxes × points × people but the last): the likelihoods with and without the
        entity, by output, and the others' beliefs given each."""
        logs = np.concatenate([logs, np.zeros((*logs.shape[:2], 1))], axis=2)
        likelihoods = case.likelihoods(self.array)
        results = []
        for rows, entries in zip((case.present, case.absent), likelihoods, strict=True):
            weights = np.exp(logs @ rows.T)
            weights /= weights.sum(axis=2, keepdims=True)
            results.append((weights @ entries, weights @ rows))
        (inside, given_in), (outside, given_out) = results
        return inside, outside, given_in, given_out

    def _allowed(
        self, given_in: tuple[Array, Array], given_out: tuple[Array, Array]
    ) -> tuple[Array, Array]:
        """The beliefs in t with which those in the others may be in the range: p · (given t) +
        (1 − p) · (given ¬t), for the least and the largest values of these."""
        low, high = map(float, self.beliefs)
        first, last = np.full(len(given_in[0]), low), np.full(len(given_in[0]), high)
        for sign, end, ins, outs in (
            (1, high, given_in[0], given_out[0]),
            (-1, low, given_in[1], given_out[1]),
        ):
            # sign · (out + p (in − out)) ≤ sign · end
            slope, room = sign * (ins - outs), sign * (end - outs)
            with ignore_division():
                limit = room / slope
            last = np.minimum(last, np.where(slope > 0, limit, np.inf).min(axis=1))
            first = np.maximum(first, np.where(slope < 0, limit, -np.inf).max(axis=1))
            first = np.where(((slope == 0) & (room < -ROUNDING_SLACK)).any(axis=1), np.inf, first)
        return first, last

    def _worst(self) -> Worst | None:
        if self.found is None:
            return None
        case, logs, output = self.found
        odds = _exact_odds(logs)
        present, absent = (
            [(case.world(row, inside=inside), _multiply(odds, row)) for row in rows]
            for rows, inside in ((case.present, True), (case.absent, False))
        )
        ends = _allowed_exactly(case, odds, self.beliefs)
        if ends is None:
            return None
        ways = sum(w for _, w in present), sum(w for _, w in absent)

        def prior(belief: Fraction) -> Prior:
            entity = belief / (1 - belief) * ways[1] / ways[0]
            shares = [Fraction(each in case.known) for each in range(case.space.size)]
            for each, value in zip((case.entity, *case.others), (entity, *odds), strict=True):
                shares[each] = value / (1 + value)
            return FixedSize(shares, len(case.known) + int(case.absent[0].sum()))

        sides = [
            tuple((w, mass / way) for w, mass in side)
            for side, way in zip((present, absent), ways, strict=True)
        ]
        return Worst(self.reached, case.entity, output, *ends, prior, *sides)


def _exact_odds(logs: Array) -> list[Fraction]:
    return [Fraction(math.exp(value)) for value in (*logs, 0.0)]


def _allowed_exactly(case: SizeCase, odds: list[Fraction], beliefs: Range) -> Range | None:
    first, last = beliefs
    given = []
    for rows in (case.present, case.absent):
        weights = [_multiply(odds, row) for row in rows]
        total = sum(weights)
        given.append(
            [
                sum((w for w, row in zip(weights, rows, strict=True) if row[i]), Fraction(0))
                / total
                for i in range(len(odds))
            ]
        )
    for inside, outside in zip(*given, strict=True):
        slope = inside - outside  # below 0: whoever else is in leaves less room
        if slope == 0:
            continue
        limits = sorted((end - outside) / slope for end in beliefs)
        first, last = max(first, limits[0]), min(last, limits[1])
    return (first, last) if first <= last else None


def _multiply(odds: Sequence[Fraction], row: Sequence[int]) -> Fraction:
    return math.prod((o for o, is_in in zip(odds, row, strict=True) if is_in), start=Fraction(1))


def _divide(top: Array, bottom: Array) -> Array:
    with ignore_division():
        return np.where(top > 0, top / bottom, 1.0)


def _largest_gamma(ratios: Array, first: Array, last: Array) -> Array:
    """γ over beliefs between two ends (F4); 0 where there are none."""
    with ignore_division():
        falling = 1 / (first + (1 - first) / ratios)
        rising = (ratios - 1) * last + 1
    values = np.maximum(np.maximum(falling, rising), 1 + ROUNDING_SLACK)
    return np.where(first <= last, values, 0.0)


def _halve(boxes: Array, axis: int) -> Array:
    axis %= boxes.shape[2]
    lower, upper = boxes.copy(), boxes.copy()
    lower[:, 1, axis] = upper[:, 0, axis] = boxes[:, :, axis].mean(axis=1)
    return np.concatenate([lower, upper])
