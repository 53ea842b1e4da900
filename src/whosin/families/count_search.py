"""Worst priors on what shows a count, for people who know k others: from the largest count down.

Of u others who are at an end s are out with weight w(s), up to a factor: the s-th coefficient of
(1 + x(1−a)/a)^(at a) · (1 + x(1−b)/b)^(at b). It is log-concave, so w(s+1)/w(s) falls in s, and
Pr[o|t]/Pr[o|¬t], a mean of it over the counts that lead to o, is at most what it is at the
largest of them. So outputs are tried from the top until no other can be worse. Those about who
is out are the same with everyone's complement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from math import comb

import numpy as np

from whosin.exact import Array
from whosin.families.base import Range, Weighted, Worst, capped_ratio, vary_belief
from whosin.spaces.arrays import Underflow, ignore_division
from whosin.spaces.quotients import MIN_CUT_PEOPLE, block_of_binomials
from whosin.spaces.statistics import CountColumns

WINDOW_PEOPLE = 48
"""How far below the largest count weights are computed for all priors at once."""
MIN_WIDE_SHARE = 1e-3
"""Sums below this, of the largest likelihood, are not accurate without what is cut off."""


def worst_known_count(columns: CountColumns, k: int, bounds: Range, positive: bool) -> Worst:
    """The worst of the priors with k known others (fewer are no worse), the rest at two beliefs."""
    low, high = bounds if positive else (1 - bounds[1], 1 - bounds[0])
    known = min(k, columns.space.size - 1)
    search = CountSearch(columns if positive else columns.mirrored(), known, low, high)
    search.run()
    people, growth = columns.space.size, search.growth
    sides = search.sides()
    beliefs = [low] * (search.at_low + 1) + [high] * (search.unsure - search.at_low)
    beliefs += [Fraction(1)] * search.inside + [Fraction(0)] * (known - search.inside)
    if not positive:
        beliefs = [1 - belief for belief in beliefs]
        sides = [tuple((people - count, w) for count, w in side) for side in reversed(sides)]
    prior = vary_belief(beliefs, 0)
    return Worst(capped_ratio(growth), 0, search.output, *bounds, prior, *sides)


class CountSearch:
    """The largest ln(Pr[o|t]/Pr[o|¬t]) over outputs, known people and the others' beliefs.

    Attributes:
        growth: the largest so far, found at
        inside, at_low, output: known people who are in, others at the lower belief, and the output.
    """

    def __init__(self, columns: CountColumns, known: int, low: Fraction, high: Fraction) -> None:
        self.columns, self.known, self.low, self.high = columns, known, low, high
        self.unsure = columns.space.size - 1 - known
        self.growth, self.inside, self.at_low, self.output = 0.0, 0, 0, int(columns.outputs[0])

    def run(self) -> None:
        inside = self.columns.counts - 1 - self.unsure
        found = (inside >= 0) & (inside <= self.known) & (self.columns.before < inside)
        if found.any():  # an output of the largest count only
            place = int(np.argmax(found))
            self._see(math.inf, int(inside[place]), 0, int(self.columns.outputs[place]))
            return
        for number in range(self.known + 1):
            if self.low == self.high:
                self._try_one_prior(number)
            elif not self._try_top(number):
                self._try_all(number)

    def _see(self, growth: float, inside: int, at_low: int, output: int) -> None:
        if growth > self.growth:
            self.growth, self.inside, self.at_low, self.output = growth, inside, at_low, output

    def _try_one_prior(self, inside: int) -> None:
        """Everyone at one belief: a sum for each output, in logarithms."""
        columns, out = self.columns, np.arange(1, self.unsure + 1, dtype=np.longdouble)
        odds = np.longdouble(float((1 - self.low) / self.low))
        steps = np.cumsum(np.append(0, np.log((self.unsure - out + 1) / out * odds)))
        weights = np.concatenate([[-np.inf], steps, [-np.inf]])
        firsts, sides = columns.starts[:-1], []
        for outside in (2, 1):
            places = inside + self.unsure + outside - columns.counts
            logs = columns.logs + weights[np.clip(places, 0, self.unsure + 2)]
            most = np.maximum.reduceat(logs, firsts)
            anchors = np.where(most > -np.inf, most, 0)
            with ignore_division():
                sums = np.add.reduceat(np.exp(logs - anchors[columns.outputs]), firsts)
                sides.append(anchors + np.log(sums))
        with ignore_division():
            growth = np.nan_to_num(sides[0] - sides[1], nan=-np.inf, posinf=np.inf)
        output = int(np.argmax(growth))
        self._see(float(growth[output]), inside, 0, output)

    @cached_property
    def _weights(self) -> Array:
        """w(s), for s up to the window, by how many are at the lower belief."""
        at_low = np.arange(self.unsure + 1, dtype=np.longdouble)
        parts = []
        for count, belief in ((at_low, self.low), (self.unsure - at_low, self.high)):
            part, odds = [np.ones_like(at_low)], np.longdouble(float((1 - belief) / belief))
            for s in range(min(self.unsure, WINDOW_PEOPLE)):
                part.append(part[-1] * np.maximum(count - s, 0) / (s + 1) * odds)
            parts.append(part)
        one, two = parts
        return np.array([sum(one[m] * two[s - m] for m in range(s + 1)) for s in range(len(one))])

    def _try_top(self, inside: int) -> bool:
        """Try outputs from the top; whether the others are known to be no worse."""
        columns, weights = self.columns, self._weights
        top, reach = inside + self.unsure, len(weights) - 1
        every = reach == self.unsure
        bounds = np.log((weights[1:] / weights[:-1]).max(axis=1)) if reach else np.zeros(1)
        out = np.where(columns.counts < inside, columns.space.size + 1, top - columns.counts)
        out[out < -1] = columns.space.size + 1
        nearest = np.minimum.reduceat(out, columns.starts[:-1])
        farthest = np.maximum.reduceat(np.where(out > self.unsure, -1, out), columns.starts[:-1])
        for output in np.argsort(nearest, kind="stable").tolist():
            near = int(nearest[output])
            if near > self.unsure or (near >= reach and every):
                return True
            if near >= reach:
                return bool(self.growth >= bounds[-1])
            if near >= 0 and self.growth >= bounds[near]:
                return True
            if farthest[output] >= reach and not every:
                return False
            part = columns.column(output)
            places, logs = out[part], columns.logs[part]
            scale = np.exp((logs - logs.max()).astype(np.longdouble))
            above, below = np.zeros((2, self.unsure + 1), dtype=np.longdouble)
            for s, likelihood in zip(places.tolist(), scale, strict=True):
                if -1 <= s < self.unsure:
                    above = above + likelihood * weights[s + 1]
                if 0 <= s <= self.unsure:
                    below = below + likelihood * weights[s]
            with ignore_division():
                growth = np.nan_to_num(np.log(above / below), nan=-np.inf, posinf=np.inf)
            at_low = int(np.argmax(growth))
            self._see(float(growth[at_low]), inside, at_low, output)
        return True

    def _try_all(self, inside: int) -> None:
        """All outputs, for some priors at a time."""
        low, high, unsure = float(self.low), float(self.high), self.unsure
        for start in range(0, unsure + 1, MIN_CUT_PEOPLE):
            count = min(MIN_CUT_PEOPLE, unsure + 1 - start)
            first, rows = block_of_binomials(start, low, unsure - start, high, count)
            first += inside
            present, absent = (
                rows @ self.columns.table[first + shift : first + shift + rows.shape[1]]
                for shift in (1, 0)
            )
            if unsure >= MIN_CUT_PEOPLE and min(present.min(), absent.min()) < MIN_WIDE_SHARE:
                raise Underflow
            with ignore_division():
                growth = np.nan_to_num(np.log(present / absent), nan=-np.inf, posinf=np.inf)
            at_low, output = np.unravel_index(int(np.argmax(growth)), growth.shape)
            self._see(float(growth[at_low, output]), inside, start + int(at_low), int(output))

    def sides(self) -> list[Weighted]:
        """What the winner is made of: counts with their weights, up to a factor, with the entity
        in and with it out."""
        part = self.columns.column(self.output)
        top = self.inside + self.unsure
        counts = [c for c in self.columns.counts[part].tolist() if self.inside <= c <= top + 1]
        weigh = self._exact_weights(max((top + 1 - c for c in counts), default=0), len(counts))
        return [
            tuple(
                (c, weigh(top + shift - c)) for c in counts if 0 <= top + shift - c <= self.unsure
            )
            for shift in (1, 0)
        ]

    def _exact_weights(self, farthest: int, entries: int) -> Callable[[int], Fraction]:
        people = ((self.at_low, self.low), (self.unsure - self.at_low, self.high))
        one, two = ((count, (1 - belief) / belief) for count, belief in people)
        if entries > WINDOW_PEOPLE or (farthest > WINDOW_PEOPLE and one[0] and two[0]):
            from flint import fmpz_poly

            product = fmpz_poly([1])
            for count, belief in people:
                inside, all_ways = belief.as_integer_ratio()
                product *= fmpz_poly([inside, all_ways - inside]) ** count
            return lambda s: Fraction(int(product[s]))

        def weight(s: int) -> Fraction:
            return sum(
                (
                    comb(one[0], m) * one[1] ** m * comb(two[0], s - m) * two[1] ** (s - m)
                    for m in range(max(0, s - two[0]), min(s, one[0]) + 1)
                ),
                Fraction(0),
            )

        return weight


MAX_SAMPLED_ENTRIES = 1 << 29
"""Entries of outputs, once for each number of people who may be in, that are summed up."""


def largest_sampled(
    columns: CountColumns, beta: Fraction, positive: bool
) -> tuple[float, int, int] | None:
    """(logarithm of the largest ratio, output, others who may be in) where u others, for any u,
    are each in with one probability: in logarithms; None where there is too much to try.

    Bin(u, c)/Bin(u, c − 1) = (u − c + 1)β/(c(1 − β)) falls in c and grows with u. Negatively the
    ratio is a mean of it over the counts of an output, so that outputs without the count 0 are at
    most at what it is for the smallest of their counts and all people.
    """
    people, firsts = columns.space.size, columns.starts[:-1]
    factorials = np.append(0, np.cumsum(np.log(np.arange(1, people + 1, dtype=np.longdouble))))
    inside, outside = (np.log(np.longdouble(float(p))) for p in (beta, 1 - beta))
    least = columns.counts[firsts].astype(float)
    with ignore_division():
        bounds = np.log((people - least) / least * float(beta / (1 - beta)))
    if positive:
        bounds = np.full(len(firsts), math.inf)
    best, work = (0.0, 0, 0), 0
    for output in np.argsort(-bounds, kind="stable").tolist():
        if bounds[output] <= best[0]:
            break
        part = columns.column(output)
        counts, logs = columns.counts[part], columns.logs[part]
        work += len(counts) * people
        if work > MAX_SAMPLED_ENTRIES:
            return None
        step = max(1, (1 << 18) // len(counts))
        for start in range(0, people, step):
            unsure = np.arange(start, min(start + step, people))[:, None]
            sides = []
            for others in (counts - 1, counts):
                placed = np.clip(others, 0, unsure)
                weights = factorials[unsure] - factorials[placed] - factorials[unsure - placed]
                weights = weights + placed * inside + (unsure - placed) * outside
                terms = np.where((others >= 0) & (others <= unsure), weights + logs, -np.inf)
                most = terms.max(axis=1, keepdims=True)
                anchor = np.where(most > -np.inf, most, 0)
                with ignore_division():
                    sums = np.log(np.exp((terms - anchor).astype(float)).sum(axis=1))
                sides.append(sums + anchor[:, 0])
            present, absent = sides if positive else sides[::-1]
            with ignore_division():
                growth = present - absent
            growth = np.nan_to_num(growth, nan=-np.inf, posinf=np.inf)
            place = int(np.argmax(growth))
            best = max(best, (float(growth[place]), output, start + place))
    return best
