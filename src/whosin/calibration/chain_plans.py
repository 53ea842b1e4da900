"""The least Laplace noise that a series needs, beside what other methods would add."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from whosin.errors import InvalidInput
from whosin.mechanisms import Laplace
from whosin.notions.chains import leakage
from whosin.notions.level import Level
from whosin.notions.sums import NoisySum, noisy_sum
from whosin.priors import MarkovChain
from whosin.spaces import Records
from whosin.validation import within


@dataclass(frozen=True)
class ChainPlan:
    """Noise for a series.

    Attributes:
        epsilon: the leakage that is allowed.
        scale: the least Laplace scale that keeps it, and `leakage`, what was measured there.
        plain_scale: what differential privacy would add for the same ε, and `plain_leakage`, what
            that really leaks about a row of this series.
        group_scale: what group privacy would add, treating all rows as one.
        exact: whether the leakages are exact; otherwise upper bounds.
    """

    epsilon: float
    scale: float
    leakage: float
    plain_scale: float
    plain_leakage: float
    group_scale: float
    exact: bool


def measured(
    prior: Sequence[MarkovChain], space: Records, statistic: object, scale: float
) -> Level:
    """The leakage of Laplace noise of this scale, the largest over the chains."""
    asked = noisy_sum(Laplace(statistic, scale), space)
    assert asked is not None
    levels = [leakage(chain, space, asked) for chain in prior]
    return max(levels, key=lambda level: level.value)


def plan(
    prior: Sequence[MarkovChain],
    space: Records,
    statistic: object,
    epsilon: float,
    accuracy: float = 1e-6,
) -> ChainPlan:
    """The least Laplace noise on a series whose leakage is at most ε, beside what others would add.

    More Laplace noise is post-processing of less (the quotient of the characteristic functions is
    a characteristic function), so the leakage falls with the scale; what is returned was measured.
    """
    within(epsilon, "epsilon", "above 0")
    asked = noisy_sum(Laplace(statistic, 1), space)
    assert asked is not None
    plain = _sensitivity(asked) / epsilon
    if plain == 0:
        raise InvalidInput("query", "one that depends on the rows", "the same for every value")
    at_plain = measured(prior, space, statistic, plain)
    scale, best = plain, at_plain
    if float(at_plain.value) > epsilon * (1 + 1e-12):
        scale, best = _least(
            lambda s: measured(prior, space, statistic, s), epsilon, plain, at_plain, accuracy
        )
    return ChainPlan(
        epsilon,
        scale,
        float(best.value),
        plain,
        float(at_plain.value),
        plain * space.rows,
        best.exact and at_plain.exact,
    )


def _least(
    leaks: Callable[[float], Level], epsilon: float, low: float, at_low: Level, accuracy: float
) -> tuple[float, Level]:
    """The least scale above `low` that keeps ε, by secants in logarithms inside a bracket."""
    high, at_high = low, at_low
    while float(at_high.value) > epsilon:
        low, at_low = high, at_high
        high *= max(2.0, float(at_high.value) / epsilon)
        at_high = leaks(high)
    aim = math.log(epsilon) - accuracy / 4
    while high / low > 1 + accuracy and float(at_high.value) < epsilon * (1 - accuracy):
        drop = math.log(float(at_low.value)) - math.log(float(at_high.value))
        share = (math.log(float(at_low.value)) - aim) / drop if drop > 0 else 0.5
        # Stay inside, and never creep: at least a fiftieth of the bracket goes each time.
        share = min(max(share, 0.02), 0.98)
        middle = math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
        tried = leaks(middle)
        if float(tried.value) <= epsilon:
            high, at_high = middle, tried
        else:
            low, at_low = middle, tried
    return high, at_high


def _sensitivity(query: NoisySum) -> float:
    """How far one row can move the sums, in total."""
    steps = [float(step) for step in query.step]
    rows = query.weights * np.array(steps)
    return float(np.abs(rows[:, None] - rows[None]).sum(axis=2).max())
