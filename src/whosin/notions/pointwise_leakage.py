"""Pointwise maximal leakage: the worst output for any gain (Saeidian et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.exact import Array, is_exact, log_up, rational
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import OfPriors, exact_or_up
from whosin.notions.gains.base import world_name
from whosin.notions.leakage import masses
from whosin.notions.level import Level, Witness
from whosin.priors import Prior
from whosin.spaces import Space
from whosin.spaces.width import products

Case = tuple[Fraction, int, int, Any]
"""(ratio, world, output, the world's mass)."""


@dataclass(frozen=True, init=False)
class PointwiseLeakage(OfPriors):
    """max over outputs y of ln max over possible worlds x of Pr[y|x] / Pr[y], in nats: after no
    output has any guess of any secret become better by a larger factor.

    Args:
        prior: a prior, or a list of them; then the largest of their levels counts.
    """

    unit: ClassVar[str] = "nats"
    about_records: ClassVar[None] = None  # type: ignore[assignment, misc]

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space).on_worlds()
        channel.need_finite("pointwise leakage")
        cases = ((_largest(channel, masses(prior, channel.space)), prior) for prior in self.priors)
        (ratio, world, output, mass), prior = max(cases, key=lambda case: case[0][0])
        exact = channel.exact is not None and is_exact(*prior.parameters)
        before = rational(mass)
        case = Witness(
            output=channel.outputs[output],
            prior=exact_or_up(before, exact),
            posterior=exact_or_up(before * ratio, exact),
            ratio=exact_or_up(ratio, exact),
            guess=world_name(channel.space, world),
            adversary=_constantly(prior),
        )
        return Level(log_up(max(ratio, Fraction(1))), case, True, (), notion=self)


def _constantly(prior: Prior) -> Any:
    return lambda: prior


def _largest(channel: Channel, mass: Array) -> Case:
    """The largest ratio of a likelihood to its output's probability. Which output has it is
    searched in floats; those within their rounding are computed again."""
    possible = np.array([bool(each != 0) for each in mass])
    weights, array = products(mass, channel.wide)
    used = array[possible]
    sums = (weights[possible, None] * used).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(sums > 0, used.max(axis=0) / sums, 0.0)
    rounding = (len(mass) + 16) * 2.0**-50
    outputs = np.flatnonzero(near >= near.max() * (1 - rounding))
    return max(
        (_of_output(channel, mass, possible, int(output)) for output in outputs),
        key=lambda case: case[0],
    )


def _of_output(channel: Channel, mass: Array, possible: Array, output: int) -> Case:
    worlds = [int(world) for world in np.flatnonzero(possible)]
    entries = {world: channel.entries.at(world, output) for world in worlds}
    total = sum((mass[world] * entries[world] for world in worlds[1:]), mass[worlds[0]] * 0)
    total += mass[worlds[0]] * entries[worlds[0]]
    world = max(worlds, key=lambda each: entries[each])
    return rational(entries[world] / total), world, output, mass[world]
