"""The discrete Laplace, geometric, Gaussian and cube distributions, drawn exactly."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache, partial
from math import isqrt, sqrt
from typing import Any, overload

import numpy as np

from whosin.errors import Unsupported, read_whole, require_exactly_one
from whosin.exact import Array, ball_exp
from whosin.noise.source import (
    BLOCK_WORDS,
    MAX_SCALE_PARAMETER,
    SYSTEM_SOURCE,
    Inversion,
    Shape,
    Size,
    Source,
    bernoulli_exp,
    checked_source,
    count_draws,
    draw_below,
    exp_minus,
    is_below,
    read_positive,
    shape_draws,
)

# The discrete Laplace and the geometric distribution, of any scale.
#
# P(k) ∝ e^(−|k|/s) on the integers, or P(x) ∝ e^(−x/s) from 0 up, exactly. With a = e^(−1/s), if X
# is geometric and B an independent coin with P(B) = a/(1 + a), then X if not B, and −1 − X if B, is
# discrete Laplace. X is written in digits, x = q·2^b + Σ r_i·2^(b_i): e^(−x/s) is a product over
# them, so they are independent. Each low digit and the pair (B, q) are drawn by inversion; beyond
# the table of q, the geometric starts again, having no memory.

TOP_SCALE = 128
DIGIT_BITS = 11
TAIL_SCALES = 17
"""The table of q ends after this many scales, where about 2^-24 of the mass is left."""


@overload
def discrete_laplace(
    scale: object, size: None = None, *, source: Source = SYSTEM_SOURCE
) -> int: ...
@overload
def discrete_laplace(scale: object, size: Shape, *, source: Source = SYSTEM_SOURCE) -> Array: ...
def discrete_laplace(
    scale: object, size: Size = None, *, source: Source = SYSTEM_SOURCE
) -> Array | int:
    """Integers with P(k) = tanh(1/(2s)) e^(−|k|/s), exactly: the two-sided geometric of Ghosh,
    Roughgarden and Sundararajan (2009). Added to an integer statistic of sensitivity Δ, it is
    Δ/s-differentially private.

    Args:
        scale: s, above 0 and at most 2^52; a float is read by its decimals.
        size: how many, or a shape; None for one Python integer.
    """
    sampler = _sampler(read_positive(scale, "scale"))
    count = count_draws(size)
    return shape_draws(sampler.draw(checked_source(source), count), size)


@overload
def geometric(scale: object, size: None = None, *, source: Source = SYSTEM_SOURCE) -> int: ...
@overload
def geometric(scale: object, size: Shape, *, source: Source = SYSTEM_SOURCE) -> Array: ...
def geometric(scale: object, size: Size = None, *, source: Source = SYSTEM_SOURCE) -> Array | int:
    """Integers from 0 up with P(x) = (1 − e^(−1/s)) e^(−x/s), exactly.

    Args:
        scale: s, above 0 and at most 2^52; the ratio of successive probabilities is e^(−1/s).
        size: how many, or a shape; None for one Python integer.
    """
    sampler = _sampler(read_positive(scale, "scale"))
    count = count_draws(size)
    return shape_draws(signed_magnitudes(sampler.draw(checked_source(source), count)), size)


def signed_magnitudes(signed: Array) -> Array:
    """X of the pair (B, X), which is stored as X, or as −1 − X if B."""
    folded: Array = signed ^ (signed >> (8 * signed.itemsize - 1))
    return folded


class DiscreteLaplace:
    """The tables for one scale."""

    def __init__(self, scale: Fraction, first_bits: int = 16, word_bits: int = 64) -> None:
        self.low_bits = max(0, (scale.__ceil__() - 1) // TOP_SCALE).bit_length()
        self.last = int(TAIL_SCALES * scale / 2**self.low_bits)
        names = np.arange(-self.last - 2, self.last + 2)
        thresholds = partial(top_thresholds, scale, self.low_bits, self.last)
        self.top = Inversion(thresholds, names, first_bits, word_bits)
        self.digits = []
        for shift in range(0, self.low_bits, DIGIT_BITS):
            # A digit r < 2^bits of weight 2^shift: P(r) ∝ e^(−r·2^shift/s).
            bits = min(DIGIT_BITS, self.low_bits - shift)
            thresholds = partial(digit_thresholds, scale, shift, bits)
            digit = Inversion(thresholds, np.arange(1 << bits), first_bits, word_bits)
            self.digits.append((shift, digit))

    def draw(self, source: Source, count: int) -> Array:
        signed = self._top(source, count)
        if not self.digits:
            return signed
        for start in range(0, count, BLOCK_WORDS):
            block = signed[start : start + BLOCK_WORDS]
            # −1 − (q·2^b + r) has the complement of r as its low bits.
            low = (block >> 63) & ((1 << self.low_bits) - 1)
            for shift, digit in self.digits:
                low ^= digit.draw(source, block.size).astype(np.int64) << shift
            block <<= self.low_bits
            block |= low
        return signed

    def _top(self, source: Source, count: int) -> Array:
        """Pairs (B, q); an end of the table stands for all beyond, where the law starts again."""
        drawn = self.top.draw(source, count)
        signed: Array = drawn.astype(np.int64)
        tails = np.flatnonzero((drawn > self.last) | (drawn < -self.last - 1))
        while tails.size:
            more = signed_magnitudes(self.top.draw(source, tails.size).astype(np.int64))
            signed[tails] += np.where(signed[tails] < 0, -more, more)
            if signed_magnitudes(signed[tails]).max() >= 1 << (62 - self.low_bits):
                message = "a draw of noise does not fit into 64 bits"
                raise Unsupported(message, field="scale", hint="use a smaller scale")
            tails = tails[more > self.last]
        return signed


def top_thresholds(scale: Fraction, low_bits: int, last: int, precision: int) -> list[Any]:
    """P((B, q) ≤ j) for j = −last − 2, …, last, where (B, q) is named q, or −1 − q if B:
    p A^(−1−j) below 0 and 1 − (1 − p) A^(j+1) from 0, with A = a^(2^low_bits), p = a/(1 + a)."""
    from flint import ctx

    with ctx.workprec(precision + 64):
        single = ball_exp(-1 / scale, precision + 64)
        powers = [single**0]
        ratio = ball_exp(Fraction(-(2**low_bits)) / scale, precision + 64)
        for _ in range(last + 1):
            powers.append(powers[-1] * ratio)
        below = single / (1 + single)
        above = 1 / (1 + single)
        return [below * power for power in reversed(powers)] + [
            1 - above * power for power in powers[1:]
        ]


def digit_thresholds(scale: Fraction, shift: int, bits: int, precision: int) -> list[Any]:
    """P(digit < r) = (1 − ρ^r)/(1 − ρ^(2^bits)) for r from 1 up, with ρ = e^(−2^shift/s)."""
    from flint import ctx

    with ctx.workprec(precision + 128):  # 1 − ρ loses up to 52 bits
        ratio = ball_exp(Fraction(-(2**shift)) / scale, precision + 128)
        powers = [ratio]
        for _ in range((1 << bits) - 1):
            powers.append(powers[-1] * ratio)
        whole = 1 - powers[-1]
        return [(1 - power) / whole for power in powers[:-1]]


_sampler = lru_cache(maxsize=32)(DiscreteLaplace)


# The discrete Gaussian, of any width.
#
# P(k) ∝ e^(−k²/(2σ²)) on the integers, exactly (Canonne, Kamath and Steinke 2020). Up to σ = 128 by
# one table; beyond its end, k = K + 1 + x with x geometric of scale σ²/(K + 1), kept with
# probability e^(−x²/(2σ²)). Above, k = ±(q·2^b + r): q from a table of P(q) ∝ e^(−(q·2^b)²/(2σ²)),
# r uniform, kept with the probability that is missing, e^(−(2q·2^b·r + r²)/(2σ²)), and −0 dropped.

TOP_WIDTH = 128
TAIL_WIDTHS = 5
"""The table ends after this many σ, where about 2^-21 of the mass is left."""


@overload
def discrete_gaussian(
    sigma: object = None,
    size: None = None,
    *,
    variance: object = None,
    source: Source = SYSTEM_SOURCE,
) -> int: ...
@overload
def discrete_gaussian(
    sigma: object, size: Shape, *, variance: object = None, source: Source = SYSTEM_SOURCE
) -> Array: ...
def discrete_gaussian(
    sigma: object = None,
    size: Size = None,
    *,
    variance: object = None,
    source: Source = SYSTEM_SOURCE,
) -> Array | int:
    """Integers with P(k) ∝ e^(−k²/(2σ²)), exactly. Added to an integer statistic of sensitivity Δ
    it is Δ²/(2σ²)-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4); over several coordinates
    these add up, so Δ is then the sensitivity in L2.

    Args:
        sigma: σ, above 0 and at most 2^52; a float is read by its decimals.
        size: how many, or a shape; None for one Python integer.
        variance: σ² instead of σ, for a width that is not rational.
    """
    require_exactly_one(sigma=sigma, variance=variance)
    if variance is None:
        square = read_positive(sigma, "sigma") ** 2
    else:
        square = read_positive(variance, "variance", MAX_SCALE_PARAMETER**2)
    count = count_draws(size)
    return shape_draws(_sampler_gaussian(square).draw(checked_source(source), count), size)


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
        for start in range(0, count, BLOCK_WORDS):
            block = drawn[start : start + BLOCK_WORDS]
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
            message = "a draw of noise does not fit into 64 bits"
            raise Unsupported(message, field="sigma", hint="use a smaller sigma")
        return beyond

    def _proposals(self, source: Source, count: int) -> tuple[Array, Array]:
        """±(q·2^b + r), and which of them to keep."""
        signed = self._top(source, count)
        high = signed_magnitudes(signed)
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


def cumulative_thresholds(variance: Fraction, last: int, split: bool, precision: int) -> list[Any]:
    """Cumulative probabilities of k = −last − 1, …, last, where the first stands for all below it.

    If split, of the pairs (sign, q) with q ≥ 0 instead, named q or −1 − q, from −last − 2 on.
    """
    from flint import ctx

    with ctx.workprec(precision + 64):
        weights, remainder = _gaussian_weights(variance, last, precision + 64)
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


def _gaussian_weights(variance: Fraction, last: int, precision: int) -> tuple[list[Any], Any]:
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
        lambda precision: cumulative_thresholds(variance, last, split, precision),
        np.arange(-last - 1 - split, last + 2),
        first_bits,
        word_bits,
    )


_sampler_gaussian = lru_cache(maxsize=32)(DiscreteGaussian)


# The cube distribution: whole vectors, P(v) ∝ e^(−‖v‖∞/s).
#
# Σ_{K ≥ ‖v‖∞} a^K = a^‖v‖∞/(1 − a), where a = e^(−1/s): a radius K with the weight (2K+1)^M a^K and
# then M independent uniforms on {−K, …, K} have that law. And Σ_K (2K+1)^M z^K = Σ_j B(M, j) z^j /
# (1 − z)^(M+1), with the Eulerian numbers of type B, so K = J + M + 1 geometrics, where J has the
# weight B(M, j) a^j (Hardt and Talwar 2010 for the continuous law).

MAX_CUBE_DIMENSIONS = 1_000
"""The table of J has as many entries, of as many digits."""


def cube(
    scale: object, dimensions: int, count: int = 1, *, source: Source = SYSTEM_SOURCE
) -> Array:
    """Vectors of integers (count × dimensions) with P(v) ∝ e^(−‖v‖∞/s), exactly. Added to counts
    that a neighbour moves by at most Δ *each*, they are Δ/s-differentially private.

    Args:
        scale: s, above 0 and at most 2^52; a float is read by its decimals.
        dimensions: M, from 1 to 1,000.
        count: how many vectors.
    """
    width = read_positive(scale, "scale")
    size = read_whole(dimensions, "dimensions", 1, MAX_CUBE_DIMENSIONS)
    vectors = count_draws(count)
    bits = checked_source(source)
    more = geometric(width, (vectors, size + 1), source=bits).sum(axis=1)
    radii = _cube_table(width, size).draw(bits, vectors).astype(np.int64) + more
    if (radii >= 1 << 61).any() or (radii < 0).any():
        message = "a draw of noise does not fit into 64 bits"
        raise Unsupported(message, field="scale", hint="use a smaller scale")
    drawn = [draw_below(2 * radius + 1, size, bits) - radius for radius in radii.tolist()]
    return np.array(drawn, dtype=np.int64).reshape(vectors, size)


def eulerian_numbers(order: int) -> list[int]:
    """B(n, 0), …, B(n, n): B(n, k) = (2k+1) B(n−1, k) + (2n−2k+1) B(n−1, k−1)."""
    row = [1]
    for n in range(1, order + 1):
        longer = [*row, 0]
        row = [
            (2 * k + 1) * longer[k] + ((2 * n - 2 * k + 1) * longer[k - 1] if k else 0)
            for k in range(n + 1)
        ]
    return row


@lru_cache(maxsize=32)
def _cube_table(scale: Fraction, dimensions: int) -> Inversion:
    """J by inversion of P(J ≤ j)."""
    numbers = eulerian_numbers(dimensions)

    def thresholds(precision: int) -> list[Any]:
        from flint import arb, ctx

        with ctx.workprec(precision + 64):
            ratio = ball_exp(-1 / scale, precision + 64)
            sums, power = [arb(0)], arb(1)
            for number in numbers:
                sums.append(sums[-1] + number * power)
                power = power * ratio
            return [each / sums[-1] for each in sums[1:-1]]

    return Inversion(thresholds, np.arange(dimensions + 1))
