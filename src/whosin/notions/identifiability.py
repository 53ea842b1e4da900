"""Identifiability (Wang, Ying, Zhang 2014, Definition 2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np

from whosin.exact import flint_rational, is_exact, log_up, precisely, rational
from whosin.notions.base import OfOnePrior
from whosin.notions.certain import (
    Certain,
    Nearest,
    case_along,
    largest_pair,
    level_of,
    on_records,
    value_witness,
)
from whosin.notions.level import Level
from whosin.notions.robust_identifiability import OverSet
from whosin.priors import PriorSet
from whosin.spaces import Space
from whosin.spaces.width import products


@dataclass(frozen=True)
class Identifiability(OfOnePrior):
    """Pr[x|y] ≤ e^ε Pr[x'|y] for tables x, x' that differ in one row: who it is stays open.

    A pair where neither table is possible with y is passed over. Unlike the other notions it can be
    violated by the prior alone: no mechanism is below ε_X.

    Args:
        prior: a prior on records, or a set of them (`Hull`, `Box`); then the largest level of any
            member counts, and the witness has that member.
    """

    unit: ClassVar[str] = "ε"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = on_records(mechanism, space)
        if isinstance(self.prior, PriorSet):
            return OverSet(self.prior, channel, records).level(self)
        mass = self.prior.on_records(records, flint_rational)
        weights, array = products(mass, channel.wide)
        joint, near = weights[:, None] * array, Nearest()
        for row in range(records.rows):
            view = records.axis(joint, row)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = view.max(axis=1) / view.min(axis=1)
            ratio = np.where(np.isnan(ratio), 1.0, ratio)
            near.add(ratio, partial(case_along, records, row, joint.shape[1]))
        certain = Certain(channel, mass)
        upper, attained, (row, worlds, values, output) = near.certified(
            partial(_largest, certain), lambda _: records.values, certain.budget
        )
        known = dict(enumerate(records.world(worlds[0])))
        del known[row]
        odds = [rational(mass[world]) for world in worlds]
        belief = odds[0] / sum(odds) if any(odds) else Fraction(1, 2)
        exact = channel.exact is not None and is_exact(*self.prior.parameters)
        case = value_witness(channel.outputs[output], attained, row, values, known, exact, belief)
        return level_of(self, log_up, upper, attained, case)


def _largest(
    certain: Certain, case: tuple[int, tuple[int, ...], int]
) -> tuple[Fraction | float, tuple[int, tuple[int, int], tuple[int, int], int]]:
    """The largest ratio of joint probabilities between two of these worlds, recomputed."""
    row, worlds, output = case
    with precisely():
        joint = [certain.mass[world] * certain.entry(world, output) for world in worlds]
    ratio, high, low = largest_pair(enumerate(joint))
    return ratio, (row, (worlds[high], worlds[low]), (high, low), output)
