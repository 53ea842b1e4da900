"""The discrete Laplace and the geometric distribution, of any scale.

Contract: P(k) ∝ e^(−|k|/s) on the integers, or P(x) ∝ e^(−x/s) from 0 up, exactly. With a =
e^(−1/s), if X is geometric and B an independent coin with P(B) = a/(1 + a), then X if not B, and
−1 − X if B, is discrete Laplace. X is written in digits, x = q·2^b + Σ r_i·2^(b_i): e^(−x/s) is a
product over them, so they are independent. Each low digit and the pair (B, q) are drawn by
inversion; beyond the table of q, the geometric starts again, having no memory.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, overload

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, ball_exp
from whosin.noise.inversion import BLOCK, Inversion
from whosin.noise.parameters import Shape, Size, count_of, positive, shaped
from whosin.noise.source import SYSTEM, Source, checked_source

TOP_SCALE = 128
DIGIT_BITS = 11
TAIL_SCALES = 17
"""The table of q ends after this many scales, where about 2^-24 of the mass is left."""


@overload
def discrete_laplace(scale: object, size: None = None, *, source: Source = SYSTEM) -> int: ...
@overload
def discrete_laplace(scale: object, size: Shape, *, source: Source = SYSTEM) -> Array: ...
def discrete_laplace(scale: object, size: Size = None, *, source: Source = SYSTEM) -> Array | int:
    """Integers with P(k) = tanh(1/(2s)) e^(−|k|/s), exactly: the two-sided geometric of Ghosh,
    Roughgarden and Sundararajan (2009). Added to an integer statistic of sensitivity Δ, it is
    Δ/s-differentially private.

    Args:
        scale: s, above 0 and at most 2^52; a float is the binary fraction that it is.
        size: how many, or a shape; None for one Python integer.
    """
    sampler = _sampler(positive(scale, "scale"))
    count = count_of(size)
    return shaped(sampler.draw(checked_source(source), count), size)


@overload
def geometric(scale: object, size: None = None, *, source: Source = SYSTEM) -> int: ...
@overload
def geometric(scale: object, size: Shape, *, source: Source = SYSTEM) -> Array: ...
def geometric(scale: object, size: Size = None, *, source: Source = SYSTEM) -> Array | int:
    """Integers from 0 up with P(x) = (1 − e^(−1/s)) e^(−x/s), exactly.

    Args:
        scale: s, above 0 and at most 2^52; the ratio of successive probabilities is e^(−1/s).
        size: how many, or a shape; None for one Python integer.
    """
    sampler = _sampler(positive(scale, "scale"))
    count = count_of(size)
    return shaped(magnitudes(sampler.draw(checked_source(source), count)), size)


def magnitudes(signed: Array) -> Array:
    """X of the pair (B, X), which is stored as X, or as −1 − X if B."""
    folded: Array = signed ^ (signed >> (8 * signed.itemsize - 1))
    return folded


class DiscreteLaplace:
    """The tables for one scale."""

    def __init__(self, scale: Fraction, first_bits: int = 16, word_bits: int = 64) -> None:
        self.low_bits = max(0, (scale.__ceil__() - 1) // TOP_SCALE).bit_length()
        self.last = int(TAIL_SCALES * scale / 2**self.low_bits)
        names = np.arange(-self.last - 2, self.last + 2)
        self.top = Inversion(
            lambda precision: top_thresholds(scale, self.low_bits, self.last, precision),
            names,
            first_bits,
            word_bits,
        )
        shifts = range(0, self.low_bits, DIGIT_BITS)
        widths = [(shift, min(DIGIT_BITS, self.low_bits - shift)) for shift in shifts]
        self.digits = [(w[0], _digit(scale, *w, first_bits, word_bits)) for w in widths]

    def draw(self, source: Source, count: int) -> Array:
        signed = self._top(source, count)
        if not self.digits:
            return signed
        for start in range(0, count, BLOCK):
            block = signed[start : start + BLOCK]
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
            more = magnitudes(self.top.draw(source, tails.size).astype(np.int64))
            signed[tails] += np.where(signed[tails] < 0, -more, more)
            if magnitudes(signed[tails]).max() >= 1 << (62 - self.low_bits):
                raise Unsupported("a draw of noise does not fit into 64 bits; use a smaller scale")
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


def _digit(scale: Fraction, shift: int, bits: int, first_bits: int, word_bits: int) -> Inversion:
    """A digit r < 2^bits of weight 2^shift: P(r) ∝ e^(−r·2^shift/s)."""
    return Inversion(
        lambda precision: digit_thresholds(scale, shift, bits, precision),
        np.arange(1 << bits),
        first_bits,
        word_bits,
    )


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
