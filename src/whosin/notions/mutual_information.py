"""Mutual information between the table and the output (Wang, Ying, Zhang 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whosin.exact import BALL_BITS, Array, ball_up, flint_rational
from whosin.mechanisms import Channel
from whosin.notions.base import OfOnePrior
from whosin.notions.certain import bracket, on_records
from whosin.notions.level import Level
from whosin.spaces import Space
from whosin.spaces.width import products

FEW = 1 << 16
"""Up to this many entries are summed in balls, more in floats with a bound on their error."""

PRECISIONS = (BALL_BITS, 4 * BALL_BITS, 16 * BALL_BITS)
"""Bits of the balls, until the sum is known to `ENOUGH` of them: terms may nearly cancel."""
ENOUGH = 64


@dataclass(frozen=True)
class MutualInformation(OfOnePrior):
    """I(X; Y) in nats, rounded up: an average, so no single case stands behind it and the witness
    is None.

    Args:
        prior: a prior on records.
    """

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return f"{super().title} between the records and the output"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel, records = on_records(mechanism, space)
        channel.need_finite("mutual information")
        mass = self.prior.on_records(records, flint_rational)
        few = channel.likelihoods.size <= FEW
        if few:
            return Level(information(mass, channel.rationals), None, True, (), notion=self)
        value, least = _in_floats(mass, channel)
        exact, lower = bracket(value, least)
        return Level(value, None, exact, (), lower, notion=self)


def information(mass: Array, table: Array, *, up: bool = True) -> float:
    """Σ Pr[x,y] ln(Pr[y|x]/Pr[y]) of FLINT rationals, each ratio exact and its logarithm a ball;
    rounded up, or down."""
    from flint import arb, ctx

    weight: dict[Any, Any] = {}
    for column in table.T:
        joint = mass * column
        total = joint.sum()
        for both, likelihood in zip(joint, column, strict=True):
            if both != 0:
                ratio = likelihood / total
                weight[ratio] = weight.get(ratio, 0) + both
    for bits in PRECISIONS:
        with ctx.workprec(bits):
            terms = [arb(ratio).log() * arb(both) for ratio, both in weight.items() if ratio != 1]
            total = sum(terms, arb(0))
            if total.rel_accuracy_bits() > ENOUGH:
                break
    return max(ball_up(total) if up else -ball_up(-total), 0.0)


def _in_floats(mass: Array, channel: Channel) -> tuple[float, float]:
    """The same sum in floats, plus and minus more than its rounding.

    Every input is within 2^−52 of the truth, a sum over N worlds within N times that, and a
    logarithm errs by as much more as it is large; fsum adds without error.
    """
    weights, array = products(mass, channel.wide)
    joint = weights[:, None] * array
    outputs = joint.sum(axis=0)
    scale = np.frexp(channel.wide.max(axis=0))[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.ldexp(joint, scale) * (np.log(array) - np.log(outputs))
        size = np.ldexp(joint, scale) * (np.abs(np.log(array)) + np.abs(np.log(outputs)) + 1)
    possible = joint > 0
    value = math.fsum(np.where(possible, terms, 0.0).ravel().tolist())
    rounding = float(np.where(possible, size, 0.0).sum()) * (len(mass) + 16) * 2.0**-52
    above, below = math.nextafter(value + rounding, math.inf), value - rounding
    return max(above, 0.0), max(math.nextafter(below, -math.inf), 0.0)
