"""A uniform number U in [0, 1) known by its first bits, compared with certified reals.

Contract: `word` of `bits` bits says U ∈ [word, word + 1) / 2^bits. A real T is known by Arb balls
of any precision. `brackets` encloses ⌊2^bits T⌋; T ≤ U is certain once the upper end is below the
word, and T > U once the lower end is above it. Neither: draw more bits. U = T has probability 0,
so this ends with probability 1 even if T is a binary fraction that its balls never pin down.

FLINT's precision is global to the process. Another thread that lowers it makes a ball wider, never
wrong: the next round draws more bits at the right precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from whosin.noise.source import Source

Real: TypeAlias = Callable[[int], Any]
"""A real number: precision in bits → an Arb ball that contains it."""

STEP = 64


def brackets(balls: Iterable[Any], bits: int) -> list[tuple[int, int]]:
    """For each ball, integers that enclose ⌊2^bits T⌋ for every T in it, cut to those of a word."""
    from flint import ctx

    last, result = (1 << bits) - 1, []
    with ctx.workprec(bits + STEP):  # an end is rounded outwards, to this precision
        for ball in balls:
            low, high = _floor(ball.lower(), bits), _floor(ball.upper(), bits)
            result.append((min(max(low, 0), last), min(max(high, 0), last)))
    return result


def _floor(end: Any, bits: int) -> int:
    mantissa, exponent = end.man_exp()
    whole, shift = int(mantissa), int(exponent) + bits
    if shift >= 0:
        return whole << min(shift, 2 * bits)
    return whole >> min(-shift, whole.bit_length() + 1)


def count_below(
    source: Source, word: int, bits: int, reals: Callable[[int], list[Any]], low: int, high: int
) -> int:
    """#{i : T_i ≤ U} for increasing T, given that it lies in [low, high], drawing bits until it is
    certain."""
    while low < high:
        word, bits = word << STEP | source.integer(STEP), bits + STEP
        ends = brackets(reals(bits + STEP)[low:high], bits)
        low, high = (
            low + sum(above < word for _, above in ends),
            low + sum(below <= word for below, _ in ends),
        )
    return low


def is_below(source: Source, real: Real, word: int = 0, bits: int = 0) -> bool:
    """Whether U < T, for U that continues the word."""
    return count_below(source, word, bits, lambda precision: [real(precision)], 0, 1) == 0
