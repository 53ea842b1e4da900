"""Worst priors on maxima: one pass over the ranks for each output (F11).

Likelihoods v_0 … v_n belong to the largest rank that is present, v_0 to nobody. Let t have rank j,
M be the mean of v over those below t, and X what those above t contribute, over the probability
that none of them is in. Then Pr[o|t] / Pr[o|¬t] = (v_j + X)/(M + X). One more rank i with belief
p turns M into (1−p)M + p v_i, from below, and X into (X + p v_i)/(1−p), from above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.exact import Array, flint_rational
from whosin.families.base import Range, Worst, known_beliefs, vary_belief
from whosin.priors import Prior
from whosin.spaces.arrays import (
    MIN_LIKELIHOOD,
    Underflow,
    check_underflow,
    exceeds_best,
    first_at_least,
    ignore_division,
    largest_ratio,
)
from whosin.spaces.quotients import MaximumLattice


class Best:
    """The largest ratio seen, and where."""

    def __init__(self, positive: bool) -> None:
        self.positive = positive
        self.ratio: Any = None
        self.place: tuple[int, ...] = ()

    def see(self, present: Array, absent: Array, *place: int) -> None:
        """Compare likelihoods with and without an entity, output by output."""
        top, bottom = (present, absent) if self.positive else (absent, present)
        if self.ratio is not None and not (top > bottom).any():
            return
        ratio = largest_ratio(top, bottom)
        if exceeds_best(ratio, self.ratio):
            self.ratio, self.place = ratio, (*place, *first_at_least(top, bottom, ratio))


def _cut_ranks(array: Array) -> tuple[int, Array]:
    """(ranks left out below, the other rows): without the ranks, but one on either side, below
    which M and above which X is 0 at every output."""
    possible = np.flatnonzero((array != 0).any(axis=1))
    if not len(possible):
        return 0, array[:2]
    below = max(int(possible[0]) - 1, 0)
    return below, array[below : int(possible[-1]) + 2]


def worst_sampled_maximum(
    array: Array, lattice: MaximumLattice, beta: Fraction, positive: bool
) -> Worst:
    """D_F^β: every belief is 0 or β.

    Those above t only bring the ratio closer to 1, so nobody there may be in, and X = 0; below,
    M is least (largest) if each rank is let in just where that lowers (raises) it.
    """
    number = flint_rational(beta) if array.dtype == object else float(beta)
    better, (left_out, array) = np.minimum if positive else np.maximum, _cut_ranks(array)
    best, mean, largest = Best(positive), array[0], array.max(axis=0)
    for rank in range(1, len(array)):
        best.see(array[rank], mean, rank)
        if best.ratio == math.inf:
            break
        mean = better(mean, number * array[rank] + (1 - number) * mean)
        check_underflow(mean, largest, lambda rank=rank: _possible(array, rank, positive))  # type: ignore[misc]
    rank, output = best.place
    column, mean = array[:, output], array[0, output]
    beliefs = [Fraction(0)] * lattice.space.size
    for below in range(1, rank):
        after = number * column[below] + (1 - number) * mean
        if (after < mean) if positive else (after > mean):
            beliefs[lattice.order[left_out + below - 1]] = beta
            mean = after
    entity = lattice.order[left_out + rank - 1]
    return Worst(best.ratio, entity, output, beta, beta, vary_belief(beliefs, entity))


def _possible(array: Array, rank: int, positive: bool) -> Array:
    """Whether the mean of the ranks up to this one is positive, however small it is."""
    return np.asarray(array[0] > 0 if positive else (array[: rank + 1] > 0).any(axis=0))


def worst_independent_maximum(
    prior: Prior, array: Array, lattice: MaximumLattice, positive: bool
) -> Iterator[Worst]:
    """For each belief the worst entity and output under one independent prior."""
    exact, (left_out, array) = array.dtype == object, _cut_ranks(array)
    order = lattice.order[left_out : left_out + len(array) - 1]
    known = known_beliefs(prior, lattice.space)
    beliefs = [known[entity] for entity in order]
    numbers = [flint_rational(p) if exact else float(p) for p in beliefs]
    means, largest = [array[0]], array.max(axis=0)
    possible = array[0] > 0
    for rank, p in enumerate(numbers, start=1):
        means.append(p * array[rank] + (1 - p) * means[-1])
        possible = (possible & (p < 1)) | ((array[rank] > 0) & (p > 0))
        check_underflow(means[-1], largest, lambda possible=possible: possible)  # type: ignore[misc]
    above = array[0] * 0
    best: dict[Fraction, Best] = {}
    with ignore_division():
        for rank in range(len(order), 0, -1):
            p, belief = numbers[rank - 1], beliefs[rank - 1]
            if 0 < belief < 1:
                seen = best.setdefault(belief, Best(positive))
                seen.see(array[rank] + above, means[rank - 1] + above, rank)
            if p == 1:  # who is below makes no difference
                break
            above = (above + p * array[rank]) / (1 - p)
    for belief, seen in best.items():
        rank, output = seen.place
        entity = order[rank - 1]
        yield Worst(seen.ratio, entity, output, belief, belief, lambda _belief: prior)


MIN_STEP = 2.0**-100
"""Beliefs closer than this to 0 or 1 might carry a mean from far above the least float to below."""


def worst_known_maximum(
    array: Array, lattice: MaximumLattice, k: int, bounds: Range, positive: bool
) -> Worst:
    """At most k known: the least X and the least (largest) M for each number of known ranks.

    Everyone above t is at the low end, unless known to be out.
    """
    exact, (left_out, array) = array.dtype == object, _cut_ranks(array)
    size = len(array) - 1
    low, high = ends = [flint_rational(p) if exact else float(p) for p in bounds]
    known, better = min(k, lattice.space.size - 1), np.minimum if positive else np.maximum
    least = array[0] * 0 if exact else array.max(axis=0) * MIN_LIKELIHOOD
    lowest = least.max()
    if not exact and min(low, 1 - high) < MIN_STEP:
        raise Underflow
    means = [np.repeat(array[:1], known + 1, axis=0)]
    for rank in range(1, size):
        row, mean = array[rank], means[-1]
        after = better(*(p * row + (1 - p) * mean for p in ends))
        after[1:] = better(after[1:], better(mean[:-1], row))
        if not exact and after.min() < lowest and ((after > 0) & (after < least)).any():
            raise Underflow
        means.append(after)
    best, above = Best(positive), means[0] * 0
    with ignore_division():
        for rank in range(size, 0, -1):
            if best.ratio == math.inf:
                break
            others = above[::-1]
            best.see(array[rank] + others, means[rank - 1] + others, rank)
            after = (above + low * array[rank]) / (1 - low)
            after[1:] = np.minimum(after[1:], above[:-1])
            above = after
    rank, inside, output = best.place
    column = array[:, output]
    pick = min if positive else max
    below = _trace(
        column[0],
        column[1:rank],
        inside,
        pick,
        lambda mean, row: [
            (p * row + (1 - p) * mean, q) for p, q in zip(ends, bounds, strict=True)
        ],
        lambda mean, row: [(mean, Fraction(0)), (row, Fraction(1))],
    )
    beyond = _trace(
        column[0] * 0,
        column[:rank:-1],
        known - inside,
        min,
        lambda rest, row: [((rest + low * row) / (1 - low), bounds[0])],
        lambda rest, _row: [(rest, Fraction(0))],
    )
    order = lattice.order[left_out:]
    beliefs = [bounds[0]] * lattice.space.size
    for each, belief in zip(order, [*below, bounds[0], *reversed(beyond)], strict=False):
        beliefs[each] = belief
    entity = order[rank - 1]
    return Worst(best.ratio, entity, output, *bounds, vary_belief(beliefs, entity))


Options = Callable[[Any, Any], list[tuple[Any, Fraction]]]


def _trace(
    start: Any, rows: Iterable[Any], known: int, pick: Any, unsure: Options, sure: Options
) -> list[Fraction]:
    """The beliefs, rank after rank, with which one output's best value comes about.

    Args:
        unsure, sure: (value after one more rank, its belief) for the ways to be unsure of it, and
            to know it; of these at most `known`.
    """
    states: list[tuple[Any, Any]] = [(start, None)] * (known + 1)
    for row in rows:
        after = []
        for count, (value, path) in enumerate(states):
            ways = [(new, (path, belief)) for new, belief in unsure(value, row)]
            if count:
                value, path = states[count - 1]
                ways += [(new, (path, belief)) for new, belief in sure(value, row)]
            after.append(pick(ways, key=lambda way: way[0]))
        states = after
    beliefs, path = [], states[known][1]
    while path is not None:
        path, belief = path
        beliefs.append(belief)
    return beliefs[::-1]


def worst_candidate_of_maximum(
    array: Array, lattice: MaximumLattice, m: int, literal: bool, positive: bool
) -> tuple[Any, int, int]:
    """(ratio, base, output) for one of m candidates beside a known set of maximum `base`.

    The candidates are those above the base, and copies of the base itself: those below it. From
    the top down the m − 1 smallest likelihoods (seen negatively: the largest) are kept sorted.
    """
    size, sign = lattice.space.size, 1 if positive else -1
    never = array[0] * 0 + 4 * (m + 1)  # more than any sum of likelihoods
    largest, smallest = -never, [never] * (m - 1)
    best = Best(True)
    for base in range(size, -1, -1):
        copies = max(base - 1, 0) if not literal else base - (size - m)
        row = sign * array[base]
        fits = bool(base) == (size > m) if literal else size - base + copies >= m
        if copies >= 0 and fits:
            sums = np.concatenate([[never * 0], np.cumsum(np.array(smallest), axis=0)])
            least = sums[-1]
            for used in range(1, min(copies, m - 1) + 1):
                least = np.minimum(least, sums[m - 1 - used] + used * row)
            one = np.maximum(largest, row) if copies else largest
            sides = ((m - 1) * one, least) if positive else (-least, -(m - 1) * one)
            best.see(*sides, base)
        if base:
            largest = np.maximum(largest, row)
            for index, kept in enumerate(smallest):
                smallest[index], row = np.minimum(kept, row), np.maximum(kept, row)
    return best.ratio, *best.place
