"""The discrete Gaussian, of any width.

Contract: P(k) ∝ e^(−k²/(2σ²)) on the integers, exactly (Canonne, Kamath and Steinke 2020). Up to σ
= 128 by one table; beyond its end, k = K + 1 + x with x geometric of scale σ²/(K + 1), kept with
probability e^(−x²/(2σ²)). Above, k = ±(q·2^b + r): q from a table of P(q) ∝ e^(−(q·2^b)²/(2σ²)), r
uniform, kept with the probability that is missing, e^(−(2q·2^b·r + r²)/(2σ²)), and −0 dropped.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt, sqrt
from typing import Any, overload

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, ball_exp
from whosin.noise.coins import bernoulli_exp, exp_minus
from whosin.noise.inversion import BLOCK, Inversion
from whosin.noise.laplace import geometric, magnitudes
from whosin.noise.lazy import is_below
from whosin.noise.parameters import LARGEST, Shape, Size, count_of, positive, shaped
from whosin.noise.source import SYSTEM, Source, checked_source

TOP_WIDTH = 128
TAIL_WIDTHS = 5
"""The table ends after this many σ, where about 2^-21 of the mass is left."""


@overload
def discrete_gaussian(
    sigma: object = None, size: None = None, *, variance: object = None, source: Source = SYSTEM
) -> int: ...
@overload
def discrete_gaussian(
    sigma: object, size: Shape, *, variance: object = None, source: Source = SYSTEM
) -> Array: ...
def discrete_gaussian(
    sigma: object = None,
    size: Size = None,
    *,
    variance: object = None,
    source: Source = SYSTEM,
) -> Array | int:
    """Integers with P(k) ∝ e^(−k²/(2σ²)), exactly. Added to an integer statistic of sensitivity Δ
    it is Δ²/(2σ²)-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4); over several coordinates
    these add up, so Δ is then the sensitivity in L2.

    Args:
        sigma: σ, above 0 and at most 2^52; a float is the binary fraction that it is.
        size: how many, or a shape; None for one Python integer.
        variance: σ² instead of σ, for a width that is not rational.
    """
    if (sigma is None) == (variance is None):
        raise InvalidInput("sigma", "given, or else variance", f"{sigma!r} and {variance!r}")
    if variance is None:
        square = positive(sigma, "sigma") ** 2
    else:
        square = positive(variance, "variance", LARGEST**2)
    count = count_of(size)
    return shaped(_sampler(square).draw(checked_source(source), count), size)


class DiscreteGaussian:
    """The tables for one variance."""

    def __init__(self, variance: Fraction, first_bits: int = 16, word_bits: int = 64) -> None:
        width = isqrt(variance.__ceil__() - 1) + 1  # σ, rounded up
        self.variance = variance
        self.low_bits = ((width - 1) // TOP_WIDTH).bit_length()
        self.top_variance = variance / 4**self.low_bits
        self.last = isqrt(int(TAIL_WIDTHS**2 * self.top_variance)) + 1
        split = self.low_bits > 0
        self.top = _top(self.top_variance, self.last, split, first_bits, word_bits)

    def draw(self, source: Source, count: int) -> Array:
        if not self.low_bits:
            return self._top(source, count)
        drawn = np.empty(count, dtype=np.int64)
        for start in range(0, count, BLOCK):
            block = drawn[start : start + BLOCK]
            missing = np.arange(block.size)
            while missing.size:
                block[missing], kept = self._proposals(source, missing.size)
                missing = missing[~kept]
        return drawn

    def _top(self, source: Source, count: int) -> Array:
        """Draws of the table; an end stands for all beyond it."""
        drawn = self.top.draw(source, count)
        signed: Array = drawn.astype(np.int64)
        lowest, highest = int(self.top.outcomes[0]), int(self.top.outcomes[-1])
        for index in np.flatnonzero((drawn == lowest) | (drawn == highest)):
            beyond = self._beyond(source)
            signed[index] += beyond if signed[index] > 0 else -beyond
        return signed

    def _beyond(self, source: Source) -> int:
        """x ≥ 0 with P(x) ∝ e^(−(K + 1 + x)²/(2σ²)): geometric, thinned by e^(−x²/(2σ²))."""
        while True:
            beyond = geometric(self.top_variance / (self.last + 1), source=source)
            if is_below(source, exp_minus(Fraction(beyond**2) / (2 * self.top_variance))):
                break
        if self.last + 1 + beyond >= 1 << (62 - self.low_bits):
            raise Unsupported("a draw of noise does not fit into 64 bits; use a smaller sigma")
        return beyond

    def _proposals(self, source: Source, count: int) -> tuple[Array, Array]:
        """±(q·2^b + r), and which of them to keep."""
        signed = self._top(source, count)
        high = magnitudes(signed)
        width = next(bits for bits in (8, 16, 32, 64) if bits >= self.low_bits)
        words = source.words(width, count)
        low = (words & words.dtype.type((1 << self.low_bits) - 1)).astype(np.int64)
        sigma = sqrt(self.variance)
        offset = low / sigma
        # (2q·2^b·r + r²)/(2σ²), all terms positive: a handful of roundings of 2^-53 each.
        exponents = offset * (high * (2.0**self.low_bits / sigma) + offset / 2)

        def exact(index: int) -> Fraction:
            start, more = int(high[index]) << self.low_bits, int(low[index])
            return Fraction(2 * start * more + more**2) / (2 * self.variance)

        kept = bernoulli_exp(exponents, exact, source)
        total = (high << self.low_bits) + low
        kept &= (signed >= 0) | (total > 0)
        return np.where(signed < 0, -total, total), kept


def thresholds(variance: Fraction, last: int, split: bool, precision: int) -> list[Any]:
    """Cumulative probabilities of k = −last − 1, …, last, where the first stands for all below it.

    If split, of the pairs (sign, q) with q ≥ 0 instead, named q or −1 − q, from −last − 2 on.
    """
    from flint import ctx

    with ctx.workprec(precision + 64):
        weights, remainder = _weights(variance, last, precision + 64)
        tail, tails = remainder, [remainder]  # Σ_{i ≥ k} of the weights, from large k to 0
        for weight in reversed(weights):
            tail = tail + weight
            tails.append(tail)
        total = 2 * tail if split else 2 * tail - 1
        start = len(weights) - last - 1  # tails[start] is Σ_{i > last}
        below = [tail / total for tail in tails[start : None if split else -1]]
        middle = [] if split else [1 - below[-1]]
        mirrored = [1 - ball for ball in reversed(below[:-1])]
        return below + middle + mirrored


def _weights(variance: Fraction, last: int, precision: int) -> tuple[list[Any], Any]:
    """The weights e^(−k²/(2σ²)) from 0 to beyond `last`, and the ball of the sum of all others: at
    most w_N/(1 − w_{N+1}/w_N), as successive ratios decrease."""
    from flint import arb

    ratio, step = ball_exp(-1 / (2 * variance), precision), ball_exp(-1 / variance, precision)
    negligible = arb(2) ** -precision
    weight = arb(1)
    weights: list[Any] = []
    while len(weights) <= last or not weight < negligible:
        weights.append(weight)
        weight, ratio = weight * ratio, ratio * step
    rest = (weight / (1 - ratio)).upper() / 2
    return weights, arb(rest, rest)


@lru_cache(maxsize=32)
def _top(variance: Fraction, last: int, split: bool, first_bits: int, word_bits: int) -> Inversion:
    """The table of q; variances that differ by powers of 4 share it."""
    return Inversion(
        lambda precision: thresholds(variance, last, split, precision),
        np.arange(-last - 1 - split, last + 2),
        first_bits,
        word_bits,
    )


_sampler = lru_cache(maxsize=32)(DiscreteGaussian)
