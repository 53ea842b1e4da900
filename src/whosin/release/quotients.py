"""A noisy sum over a noisy number of rows: a mean, with the interval that its two noises explain.

A quotient μ = S/N satisfies S = μN, so the noisy S̃ and Ñ differ from that by X − μY, where X and Y
are the noises: μ is in the interval when |S̃ − μÑ| is no larger than |X − μY| is with the promised
probability (Fieller 1954). That holds for every μ, so the interval covers the true quotient with
that probability, however small N is; two reaches side by side would be up to twice as wide.

X is whole-numbered and no larger, in distribution, than a continuous noise of the same scale plus
one unit: for Laplace noise Pr[X ≥ k] = e^(−k/s)/(1 + e^(−1/s)) lies between e^(−k/s)/2 and
e^(−(k−1/2)/s)/2, for Gaussian noise see Canonne, Kamath and Steinke 2020, Proposition 25. So
Pr[|uX − μY| > t] is at most that of continuous noises beyond t − u − |μ|, u being the sum's unit.
The reach grows with |μ| and is convex in it (quantiles of log-concave symmetric vectors are norms:
Bobkov 2010), so that what is ruled out above the interval reaches up to the end of the range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from whosin.exact import Array
from whosin.release.prices.pricing import CONFIDENCE, NoisyPart

SMALL = 4
"""Below this scale a unit matters: there the reaches of both noises are added."""
ROUNDS = 60


def quotient(
    sums: tuple[Array, Array],
    noisy: Sequence[NoisyPart],
    ends: tuple[float, float],
    confidence: float = CONFIDENCE,
) -> tuple[Array, Array, Array]:
    """(quotient, low, high) of a noisy sum over a noisy number of rows.

    Args:
        sums: both in units of their parts.
        ends: the true quotient is between them, since every summand is.
    """
    total, rows = sums[0] * float(noisy[0].part.unit), sums[1].astype(np.float64)
    possible = _judge(noisy, confidence)

    def above(at: Array) -> Array:
        return (at * rows > total) & ~possible(total - at * rows, at)

    def below(at: Array) -> Array:
        return (at * rows < total) & ~possible(total - at * rows, at)

    low, high = (np.full(len(total), end) for end in ends)
    value = np.clip(total / np.maximum(rows, 1.0), *ends)
    least = np.minimum(_edge(below, high, low), value)
    most = np.maximum(_edge(above, low, high), value)
    return value, least, most


def _judge(noisy: Sequence[NoisyPart], confidence: float) -> Callable[[Array, Array], Array]:
    """Whether the noises of a sum and of a number of rows explain S̃ − μÑ, given μ."""
    unit = float(noisy[0].part.unit)
    if min(each.scale for each in noisy) < SMALL:
        both = 1 - (1 - confidence) / 2
        reach, slack = noisy[0].reach(both), noisy[1].reach(both)
        return lambda distance, at: np.abs(distance) <= reach + np.abs(at) * slack
    scales = [float(each.scale * each.part.unit) for each in noisy]
    tail = _normal_tail if noisy[0].kind == "gaussian" else laplace_tail

    def possible(distance: Array, at: Array) -> Array:
        beyond = np.maximum(np.abs(distance) - unit - np.abs(at), 0.0)
        return tail(beyond, scales[0], np.abs(at) * scales[1]) >= 1 - confidence

    return possible


def laplace_tail(beyond: Array, one: float, other: Array) -> Array:
    """Pr[|aL + bM| > t] = (a² e^(−t/a) − b² e^(−t/b))/(a² − b²) for Laplace noises L, M of scale 1;
    scales that are nearly alike are both taken for the larger one."""
    large, small = np.maximum(one, other), np.minimum(one, other)
    alike = small > 0.999 * large
    apart = np.where(alike, 0.0, small)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.where(apart > 0, apart**2 * np.exp(-beyond / apart), 0.0)
        split = (large**2 * np.exp(-beyond / large) - far) / (large**2 - apart**2)
    result: Array = np.where(alike, (1 + beyond / (2 * large)) * np.exp(-beyond / large), split)
    return result


def _normal_tail(beyond: Array, one: float, other: Array) -> Array:
    from scipy.special import ndtr

    return np.asarray(2 * ndtr(-beyond / np.hypot(one, other)))


def _edge(ruled_out: Callable[[Array], Array], inside: Array, outside: Array) -> Array:
    """The last point, from the inside, that is not ruled out; the end itself if that is not."""
    open_end = ~ruled_out(outside)
    end = outside
    for _ in range(ROUNDS):
        middle = (inside + outside) / 2
        out = ruled_out(middle)
        inside, outside = np.where(out, inside, middle), np.where(out, middle, outside)
    return np.where(open_end, end, outside)
