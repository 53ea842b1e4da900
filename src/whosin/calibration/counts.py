"""A count, exact or with noise, against adversaries who are uncertain about nearly everyone.

`AtMostKnown(k, low, high)` with a failure probability (F19): for each event the profile is
multilinear in the others' beliefs, so its sup is where each of the n − 1 − k uncertain others is at
low or at high. Their number is then a sum of two binomials; that distribution, and its convolution
with geometric noise, is log-concave, so the likelihood ratio of "one more" grows with the count and
the worst event of each level is a tail: one pass of cumulative sums gives the whole profile.

Without a failure probability uncertainty about others buys nothing: beyond every centre the ratio
of Laplace or geometric noise is e^(1/scale) whatever the others do, and an exact count of n people
has the output n, which reveals them all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from whosin.calibration.failure import DeltaProfile, failure_bound, smallest_multiplier
from whosin.exact import Array
from whosin.families import AtMostKnown
from whosin.spaces.binomials import two_binomials

SLACK = 1e-15
"""Added to every δ(ε): more than all the probability that is cut off."""
ROUNDING = 1e-10
"""More than the relative error of any tail: at most 10^5 roundings of positive terms."""
FEW = 33


def profile(
    entities: int, family: AtMostKnown, scale: float = 0.0, vertices: int | None = None
) -> DeltaProfile:
    """δ(ε) between a count with one person and without, the others as uncertain as the family says.

    Args:
        scale: of geometric noise, α = e^(−1/scale); 0 for an exact count.
        vertices: how many of the extreme priors to try: for a search, not for a certificate.
    """
    unsure = max(0, entities - 1 - family.k)
    low, high = map(float, family.bounds)
    noise = _geometric(scale)
    every = range(unsure + 1) if low < high else range(1)
    if vertices is not None and len(every) > vertices:
        tried = sorted({round(x) for x in np.linspace(0, unsure, vertices)})
    else:
        tried = list(every)

    def sup(epsilons: Array) -> Array:
        worst = np.zeros(len(epsilons))
        for at_low in tried:
            _, rest = two_binomials(at_low, low, unsure - at_low, high)
            ratios, above, below = _tails(np.convolve(rest, noise))
            first = np.searchsorted(ratios, epsilons, side="right")
            near = np.searchsorted(ratios, epsilons - ROUNDING, side="right")
            result = above[first] - np.exp(epsilons) * below[first]
            worst = np.maximum(worst, result + 2 * ROUNDING * above[near])
        return np.minimum(worst + SLACK, 1.0)

    return sup


def _tails(weights: Array) -> tuple[Array, Array, Array]:
    """For outputs in increasing order: ln of the ratio with over without, and the probabilities of
    each upper tail with and without the person (one entry more, for the empty tail)."""
    with_it = np.concatenate([[0.0], weights])
    without = np.concatenate([weights, [0.0]])
    with np.errstate(divide="ignore"):
        ratios = np.log(with_it) - np.log(without)
    ratios = np.maximum.accumulate(ratios)  # log-concave: already so, up to rounding
    above, below = (np.append(np.cumsum(side[::-1])[::-1], 0.0) for side in (with_it, without))
    return ratios, above, below


def _geometric(scale: float) -> Array:
    """Two-sided geometric noise, cut off where less than e^−40 is left."""
    if scale == 0:
        return np.ones(1)
    alpha = math.exp(-1 / scale)
    reach = math.ceil(40 * scale) + 1
    weights = alpha ** np.abs(np.arange(-reach, reach + 1))
    return np.asarray(weights * (1 - alpha) / (1 + alpha))


def _certified(bound: Callable[..., float], goal: float, start: float) -> float:
    """The least scale, possibly 0, whose bound meets the goal: searched on a few of the extreme
    priors, then certified on all of them (`bound(scale, None)`)."""
    scale = smallest_multiplier(bound, goal, start, accuracy=1e-3) if bound(0.0) > goal else 0.0
    while bound(scale, None) > goal:
        scale = scale * 1.02 if scale else 0.05
    return scale


@lru_cache(maxsize=64)
def least_scale(
    entities: int, family: AtMostKnown, epsilon: float, delta: float
) -> tuple[float, float, float]:
    """(scale, ε, δ): the least geometric noise, possibly none, for which a count is (ε, δ)-DP
    against the family: δ(ε) ≤ δ between a count with one person and without, and the reverse.

    Exchanging in and out turns one direction into the other, and beliefs p into 1 − p.
    """
    at = np.array([epsilon])
    low, high = family.bounds
    sides = {family, AtMostKnown(family.k, 1 - high, 1 - low)} if low + high != 1 else {family}

    def bound(scale: float, vertices: int | None = FEW) -> float:
        return max(float(profile(entities, side, scale, vertices)(at)[0]) for side in sides)

    return _certified(bound, delta, 1 / epsilon), epsilon, delta


@lru_cache(maxsize=64)
def smallest_scale(
    entities: int, family: AtMostKnown, ratio: float, delta: float
) -> tuple[float, float, float, float]:
    """(scale, failure, ε, δ(ε)): the least geometric noise, possibly none, for which the ratio of a
    count exceeds `ratio` with probability at most δ given that the person is in."""

    @lru_cache(maxsize=2)
    def bound(scale: float, vertices: int | None = FEW) -> tuple[float, float, float]:
        return failure_bound(profile(entities, family, scale, vertices), ratio)

    scale = _certified(lambda *given: bound(*given)[0], delta, 1 / math.log(ratio))
    return scale, *bound(scale, None)
