"""Identifiability (Wang14 Definition 2), for one prior and over sets of priors."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from typing import Any, ClassVar

import numpy as np

from whosin.exact import (
    Array,
    certificate_precision,
    divide_up,
    flint_rational,
    is_exact,
    log_up,
    rational,
)
from whosin.mechanisms import Channel
from whosin.notions.base import Level, Notion, OfOnePrior, Witness
from whosin.notions.certificates import (
    MAX_RECOMPUTED_BALLS,
    MAX_RECOMPUTED_ENTRIES,
    Certain,
    Nearest,
    case_along,
    largest_pair,
    level_from_ratio,
    record_channel,
    value_witness,
)
from whosin.priors import Independent, PriorSet
from whosin.priors.sets import RowSet
from whosin.spaces import Records, Space
from whosin.spaces.arrays import scaled_products

# Identifiability over a set of priors: the largest of any member's (Wang14 asks for it).
#
# For independent rows Pr[x|y] / Pr[x'|y] of tables that differ in row i is p_i(a)/p_i(b) times
# A(y|x)/A(y|x'), so row i's odds are taken at their largest over its set, exactly. Other rows only
# have to be possible in some member.

Odds = dict[tuple[int, int], Any]
Case = tuple[int, tuple[int, ...], int]
"""A row, the worlds that differ in it only, an output."""


class OverSet:
    """A channel on records and a set of priors on them, ready to be searched."""

    def __init__(self, prior: PriorSet, channel: Channel, space: Records) -> None:
        self.prior, self.channel, self.space = prior, channel, space
        self.sets = prior.of_rows(space)
        self.odds: dict[RowSet, Odds] = {one: one.all_odds() for one in dict.fromkeys(self.sets)}
        self.possible = {
            one: np.array([one.likeliest(v)[v] > 0 for v in range(space.values)])
            for one in self.odds
        }

    def level(self, notion: Notion) -> Level:
        """The largest identifiability of a member, with that member."""
        near, space = Nearest(), self.space
        floats, array = self._in_floats()
        for row, one in enumerate(self.sets):
            view = space.axis(self._beside_possible(array, row), row)
            near.add(
                _worst_odds(view, floats[one]), partial(case_along, space, row, array.shape[1])
            )
        budget = MAX_RECOMPUTED_BALLS if self.channel.entries.in_balls else MAX_RECOMPUTED_ENTRIES
        upper, attained, case = near.certified(self._largest, lambda _: space.values, budget)
        return level_from_ratio(notion, log_up, upper, attained, self._witness(attained, *case))

    def _in_floats(self) -> tuple[dict[RowSet, Odds], Array]:
        """Odds and likelihoods in floats so wide that no product of the two overflows."""
        finite = [o for each in self.odds.values() for o in each.values() if o != math.inf]
        small = [flint_rational(1 / odds if odds > 1 else odds) for odds in finite]
        numbers, array = scaled_products(np.array([*small, flint_rational(1)]), self.channel.wide)
        pairs = zip(finite, numbers, strict=False)
        known = {odds: 1 / number if odds > 1 else number for odds, number in pairs}
        known[math.inf] = array.dtype.type(math.inf)
        return {
            one: {pair: known[value] for pair, value in odds.items()}
            for one, odds in self.odds.items()
        }, array

    def _beside_possible(self, array: Array, row: int) -> Array:
        """The likelihoods, 0 where another row has a value that no member allows."""
        if all(each.all() for each in self.possible.values()):
            return array
        parts = [self.possible[one] for one in self.sets]
        parts[row] = np.ones_like(parts[row])
        return np.where(reduce(np.multiply.outer, parts).reshape(-1, 1), array, 0)

    def _largest(self, case: Case) -> tuple[Fraction | float, tuple[Case, tuple[int, int]]]:
        """The largest odds of two of these worlds after the output, recomputed."""
        row, worlds, output = case
        best: Fraction | float = Fraction(1)
        values = (0, 0)
        rest = enumerate(zip(self.sets, self.space.world(worlds[0]), strict=True))
        if not all(self.possible[one][value] for other, (one, value) in rest if other != row):
            return best, (case, values)
        with certificate_precision():
            entries = [self.channel.entries.at(world, output) for world in worlds]
            for (a, b), odds in self.odds[self.sets[row]].items():
                if odds == math.inf:
                    ratio = math.inf if entries[a] != 0 else Fraction(1)
                else:
                    ratio = divide_up(flint_rational(odds) * entries[a], entries[b])
                if ratio > best:
                    best, values = ratio, (a, b)
        return best, (case, values)

    def _witness(self, ratio: Fraction | float, case: Case, values: tuple[int, int]) -> Witness:
        row, worlds, output = case
        known = dict(enumerate(self.space.world(worlds[values[0]])))
        del known[row]
        rows = [one.likeliest(known.get(n, 0)) for n, one in enumerate(self.sets)]
        (a, b), belief = values, Fraction(1, 2)
        if a != b:
            rows[row] = self.sets[row].farthest(a, b)
            belief = rows[row][a] / (rows[row][a] + rows[row][b])
        exact = self.channel.exact is not None and is_exact(*self.prior.parameters)
        name = self.channel.outputs[output]
        witness = value_witness(name, ratio, row, values, known, exact, belief)
        return replace(witness, adversary=lambda: Independent(rows))


def _worst_odds(view: Array, odds: Odds) -> Array:
    """For each rest and output the largest odds of two values of the row; 1 where there are none
    above, as for pairs that are both impossible (0/0)."""
    worst = np.ones((view.shape[0], view.shape[2]), dtype=view.dtype)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        for (a, b), most in odds.items():
            np.fmax(worst, most * (view[:, a] / view[:, b]), out=worst)
    return worst


@dataclass(frozen=True)
class Identifiability(OfOnePrior):
    """Pr[x|y] ≤ e^ε Pr[x'|y] for tables x, x' that differ in one row: who it is stays open
    (Wang, Ying, Zhang 2014, Definition 2).

    A pair where neither table is possible with y is passed over. Unlike the other notions it can be
    violated by the prior alone: no mechanism is below ε_X.

    Args:
        prior: a prior on records, or a set of them (`Hull`, `Box`); then the largest level of any
            member counts, and the witness has that member.
    """

    unit: ClassVar[str] = "ε"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = record_channel(mechanism, space)
        if isinstance(self.prior, PriorSet):
            return OverSet(self.prior, channel, records).level(self)
        mass = self.prior.on_records(records, flint_rational)
        weights, array = scaled_products(mass, channel.wide)
        joint, near = weights[:, None] * array, Nearest()
        for row in range(records.rows):
            view = records.axis(joint, row)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = view.max(axis=1) / view.min(axis=1)
            ratio = np.where(np.isnan(ratio), 1.0, ratio)
            near.add(ratio, partial(case_along, records, row, joint.shape[1]))
        certain = Certain(channel, mass)
        upper, attained, (row, worlds, values, output) = near.certified(
            partial(_largest_ratio, certain), lambda _: records.values, certain.budget
        )
        known = dict(enumerate(records.world(worlds[0])))
        del known[row]
        odds = [rational(mass[world]) for world in worlds]
        belief = odds[0] / sum(odds) if any(odds) else Fraction(1, 2)
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        case = value_witness(channel.outputs[output], attained, row, values, known, exact, belief)
        return level_from_ratio(self, log_up, upper, attained, case)


def _largest_ratio(
    certain: Certain, case: tuple[int, tuple[int, ...], int]
) -> tuple[Fraction | float, tuple[int, tuple[int, int], tuple[int, int], int]]:
    """The largest ratio of joint probabilities between two of these worlds, recomputed."""
    row, worlds, output = case
    with certificate_precision():
        joint = [certain.mass[world] * certain.entry(world, output) for world in worlds]
    ratio, high, low = largest_pair(enumerate(joint))
    return ratio, (row, (worlds[high], worlds[low]), (high, low), output)
