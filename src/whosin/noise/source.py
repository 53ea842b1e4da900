"""Random bits from the operating system, uniform integers, exact inversion, and coins."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias, overload

import numpy as np

from whosin.errors import InvalidInput, invalid_value, read_whole, shorten_value
from whosin.exact import Array, ball, ball_exp, rational, read_ranged

# Where random bits come from: the operating system, and nowhere else in a release.
#
# The package has one source, `SYSTEM_SOURCE`. It has no state, so nothing can be seeded, and a
# forked process does not repeat its parent. Tests pass a `Source` of their own by keyword; an
# object that merely looks like one (a NumPy generator) is refused, and a test reads the code to see
# that no other room passes one.


class Source(ABC):
    """Independent, uniform random bits."""

    @abstractmethod
    def draw(self, count: int) -> bytes:
        """Return `count` random bytes from the system."""

    def words(self, bits: int, count: int) -> Array:
        """Random words of 8, 16, 32 or 64 bits."""
        return np.frombuffer(self.draw(count * bits // 8), dtype=f"<u{bits // 8}")

    def integer(self, bits: int) -> int:
        """One random integer with this number of bits, a multiple of 8."""
        return int.from_bytes(self.draw(bits // 8), "little")


class SystemSource(Source):
    """The operating system's generator."""

    def draw(self, count: int) -> bytes:
        return os.urandom(count)


SYSTEM_SOURCE = SystemSource()


def checked_source(source: object) -> Source:
    """The source itself, if it is one."""
    if not isinstance(source, Source):
        message = f"a {type(source).__name__} is no source of randomness"
        raise InvalidInput(
            message, field="source", value=type(source).__name__, hint="use a whosin.noise.Source"
        )
    return source


# Reading scales and shapes.
#
# A float scale is read by its decimals, as it was written. Scales stay below 2^52, where a draw
# that does not fit into 64 bits has a chance below 2^-1400 (and is an error, never a wrong number).

Shape: TypeAlias = int | Sequence[int]
Size: TypeAlias = Shape | None

MAX_SCALE_PARAMETER = 2**52


def read_positive(value: object, field: str, largest: int = MAX_SCALE_PARAMETER) -> Fraction:
    """A number above 0 and at most the largest, exactly."""
    accepted = f"a number above 0 and at most 2^{largest.bit_length() - 1}"
    try:
        number = rational(value, field)
    except InvalidInput:
        raise invalid_value(field, accepted, repr(value)) from None
    if isinstance(value, bool | np.bool_) or not 0 < number <= largest:
        raise invalid_value(field, accepted, value)
    return number


def read_shape(size: object) -> tuple[int, ...]:
    """The shape that a size stands for; None, one draw, is ()."""
    lengths: Sequence[Any] = ()
    if size is not None:
        lengths = size if isinstance(size, Sequence) else (size,)
    whole = all(
        isinstance(length, int | np.integer) and not isinstance(length, bool) and length >= 0
        for length in lengths
    )
    if isinstance(size, str | bytes) or not whole:
        raise invalid_value("size", "None, an integer from 0 up or a tuple of these", repr(size))
    if math.prod(int(length) for length in lengths) > 2**40:
        raise InvalidInput(
            f"size asks for more than 2^40 draws: {shorten_value(size)}", field="size", value=size
        )
    return tuple(int(length) for length in lengths)


def count_draws(size: object) -> int:
    """How many draws a size stands for."""
    return math.prod(read_shape(size))


def shape_draws(draws: Array, size: object) -> Array | int:
    """Draws in the shape asked for; a single one as a Python integer."""
    return int(draws[0]) if size is None else draws.reshape(read_shape(size))


# Uniform integers.
#
# Each of 0, …, n − 1 has probability 1/n, exactly: words are kept where all n outcomes have equally
# many of them, and the few others are drawn again.

MAX_INTEGER = 2**63


@overload
def uniform(n: int, size: None = None, *, source: Source = SYSTEM_SOURCE) -> int: ...
@overload
def uniform(n: int, size: Shape, *, source: Source = SYSTEM_SOURCE) -> Array: ...
def uniform(n: int, size: Size = None, *, source: Source = SYSTEM_SOURCE) -> Array | int:
    """Integers from 0 to n − 1, each with probability 1/n, exactly.

    Args:
        n: how many values there are, from 1 to 2^63.
        size: how many draws, or a shape; None for one Python integer.
    """
    below_n = read_whole(n, "n", 1, MAX_INTEGER)
    return shape_draws(draw_below(below_n, count_draws(size), checked_source(source)), size)


def draw_below(n: int, count: int, source: Source) -> Array:
    """A number of uniform integers below n."""
    bits = next(bits for bits in (8, 16, 32, 64) if n << 4 <= 1 << bits or bits == 64)
    fair = (1 << bits) // n * n
    words = source.words(bits, count)
    if fair < 1 << bits:
        words = words.copy()
        unfair = np.flatnonzero(words >= fair)
        while unfair.size:
            again = source.words(bits, unfair.size)
            words[unfair] = again
            unfair = unfair[again >= fair]
    remainders: Array = (words % words.dtype.type(n)).astype(np.int64)
    return remainders


# A uniform number U in [0, 1) known by its first bits, compared with certified reals.
#
# `word` of `bits` bits says U ∈ [word, word + 1) / 2^bits. A real T is known by Arb balls of any
# precision. `bracket_thresholds` encloses ⌊2^bits T⌋; T ≤ U is certain once the upper end is below
# the word, and T > U once the lower end is above it. Neither: draw more bits. U = T has probability
# 0, so this ends with probability 1 even if T is a binary fraction that its balls never pin down.
#
# FLINT's precision is global to the process. Another thread that lowers it makes a ball wider,
# never wrong: the next round draws more bits at the right precision.

Real: TypeAlias = Callable[[int], Any]
"""A real number: precision in bits → an Arb ball that contains it."""

BIT_STEP = 64


def bracket_thresholds(balls: Iterable[Any], bits: int) -> list[tuple[int, int]]:
    """For each ball, integers that enclose ⌊2^bits T⌋ for every T in it, cut to those of a word."""
    from flint import ctx

    last, result = (1 << bits) - 1, []
    with ctx.workprec(bits + BIT_STEP):  # an end is rounded outwards, to this precision
        for ball in balls:
            low, high = _floor_bits(ball.lower(), bits), _floor_bits(ball.upper(), bits)
            result.append((min(max(low, 0), last), min(max(high, 0), last)))
    return result


def _floor_bits(end: Any, bits: int) -> int:
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
        word, bits = word << BIT_STEP | source.integer(BIT_STEP), bits + BIT_STEP
        ends = bracket_thresholds(reals(bits + BIT_STEP)[low:high], bits)
        low, high = (
            low + sum(above < word for _, above in ends),
            low + sum(below <= word for below, _ in ends),
        )
    return low


def is_below(source: Source, real: Real, word: int = 0, bits: int = 0) -> bool:
    """Whether U < T, for U that continues the word."""
    return count_below(source, word, bits, lambda precision: [real(precision)], 0, 1) == 0


# Exact inversion of a cumulative distribution, a million words at a time.
#
# With thresholds 0 ≤ T_0 ≤ T_1 ≤ … ≤ 1 and a uniform U, outcome number #{i : T_i ≤ U} is drawn:
# outcome i has probability T_i − T_{i−1}, exactly. U is read lazily: its first 16 bits pick the
# outcome from a guide of 2^16 cells, unless a threshold may lie in that cell; then 64 bits are
# compared with the thresholds' brackets by binary search; and a word that a threshold may still
# split goes on, with more and more bits, in `count_below`.

BLOCK_WORDS = 1 << 16
"""Words drawn at a time: few enough to stay in the cache."""


class Inversion:
    """A distribution on a list of integers, given by certified cumulative thresholds.

    `thresholds(precision)` gives the balls of all T_i, one fewer than outcomes. `first_bits` and
    `word_bits` are 16 and 64; tests make them small, to go through all words.
    """

    def __init__(
        self,
        thresholds: Callable[[int], list[Any]],
        outcomes: Array,
        first_bits: int = 16,
        word_bits: int = 64,
    ) -> None:
        self.thresholds, self.first_bits, self.word_bits = thresholds, first_bits, word_bits
        ends = bracket_thresholds(thresholds(word_bits + BIT_STEP), word_bits)
        pairs = np.array(ends, dtype=np.uint64).reshape(-1, 2)
        # The thresholds increase, so their brackets may be made to.
        self.below = np.maximum.accumulate(pairs[:, 0])
        self.above = np.minimum.accumulate(pairs[::-1, 1])[::-1].copy()
        self.outcomes = _narrow_type(outcomes)
        self.undecided = np.iinfo(self.outcomes.dtype).min
        self.guide = self._guide()

    def _guide(self) -> Array:
        """The outcome of each cell of the first word, or `undecided`."""
        shift, cells = np.uint64(self.word_bits - self.first_bits), 1 << self.first_bits
        passed = np.bincount((self.above >> shift).astype(np.int64), minlength=cells)
        reached = np.bincount((self.below >> shift).astype(np.int64), minlength=cells)
        certain = np.cumsum(passed) - passed  # thresholds surely at or below the cell's start
        possible = np.cumsum(reached)  # all but those surely at or beyond its end
        guide: Array = self.outcomes[certain]
        guide[certain != possible] = self.undecided
        return guide

    def draw(self, source: Source, count: int) -> Array:
        """A number of independent outcomes."""
        drawn = np.empty(count, dtype=self.guide.dtype)
        for start in range(0, count, BLOCK_WORDS):
            block = drawn[start : start + BLOCK_WORDS]
            first = source.words(self.first_bits, block.size)
            np.take(self.guide, first, out=block, mode="clip")
            late = np.flatnonzero(block == self.undecided)
            if late.size:
                block[late] = self._settle(source, first[late])
        return drawn

    def _settle(self, source: Source, first: Array) -> Array:
        """The outcomes of words that the guide does not decide, with more bits of each."""
        missing = self.word_bits - self.first_bits
        width = next(bits for bits in (8, 16, 32, 64) if bits >= missing)
        rest = source.words(width, first.size).astype(np.uint64) >> np.uint64(width - missing)
        words = first.astype(np.uint64) << np.uint64(missing) | rest
        low = np.searchsorted(self.above, words, side="left")
        high = np.searchsorted(self.below, words, side="right")
        for index in np.flatnonzero(low != high):
            low[index] = count_below(
                source,
                int(words[index]),
                self.word_bits,
                self.thresholds,
                int(low[index]),
                int(high[index]),
            )
        settled: Array = self.outcomes[low]
        return settled


def _narrow_type(outcomes: Array) -> Array:
    """The outcomes in the smallest type that holds them and one value more: less cache."""
    largest = int(np.abs(outcomes).max())
    kind = next(kind for kind in (np.int16, np.int32, np.int64) if largest <= np.iinfo(kind).max)
    return np.asarray(outcomes, dtype=kind)


# Coins, tossed exactly.
#
# P(1) is the probability, exactly. A real is given as a function from a precision in bits to an Arb
# ball that contains it; `exp_minus(x)` is e^(−x) for a rational x ≥ 0. `bernoulli_exp` draws one
# coin for each of many exponents that are known as floats with a relative error, using nothing but
# IEEE arithmetic where that decides, and the exact exponent where it does not.

MAX_COMPARED_OUTCOMES = 64
"""Up to this many coins are compared one by one, without a table."""
SCREEN_MARGIN = 2.0**-44
"""More than the rounding errors of the sums below; exponents come within this relative error."""


@overload
def bernoulli(probability: object, size: None = None, *, source: Source = SYSTEM_SOURCE) -> int: ...
@overload
def bernoulli(probability: object, size: Shape, *, source: Source = SYSTEM_SOURCE) -> Array: ...
def bernoulli(
    probability: object, size: Size = None, *, source: Source = SYSTEM_SOURCE
) -> Array | int:
    """Coins: 1 with the probability, exactly, and otherwise 0.

    Args:
        probability: a number in [0, 1] (a float is read by its decimals), or a certified
            real: a function from a precision in bits to an Arb ball, such as `exp_minus(x)`.
        size: how many, or a shape; None for one Python integer.
    """
    real, count = _read_real(probability), count_draws(size)
    source = checked_source(source)
    if count <= MAX_COMPARED_OUTCOMES:
        coins = np.array([is_below(source, real) for _ in range(count)], dtype=np.int64)
    else:
        coins = _table_coins(real).draw(source, count).astype(np.int64)
    return shape_draws(coins, size)


def exp_minus(exponent: object) -> Real:
    """e^(−x) as a certified real, for a rational x ≥ 0."""
    number = rational(exponent, "exponent")
    if number < 0:
        raise invalid_value("exponent", "at least 0", exponent)
    return lambda precision: ball_exp(-number, precision)


def _read_real(probability: object) -> Real:
    if not callable(probability):
        return _rational(read_ranged(probability, "probability", "between 0 and 1"))
    from flint import arb

    result = probability(128)
    if not isinstance(result, arb) or not result.is_finite() or result < 0 or result > 1:
        accepted = "between 0 and 1, or a function from a precision to an Arb ball there"
        raise invalid_value("probability", accepted, repr(result))
    return probability


@lru_cache(maxsize=64)
def _rational(number: Fraction) -> Real:
    """The rational as a certified real; the same function each time, so that its table is kept."""
    from flint import ctx

    def real(precision: int) -> Any:
        with ctx.workprec(precision):
            return ball(number)

    return real


@lru_cache(maxsize=32)
def _table_coins(real: Real) -> Inversion:
    return Inversion(lambda precision: [real(precision)], np.array([1, 0]))


def bernoulli_exp(exponents: Array, exact: Callable[[int], Fraction], source: Source) -> Array:
    """For each exponent y ≥ 0 a coin with P(True) = e^(−y).

    The sums 1 − y + y²/2 − … ± y^n/n! lie below e^(−y) for odd n and above it for even n (Taylor's
    theorem), so U is certainly below or above unless it falls between the two.

    Args:
        exponents: floats within a relative error of 2^-45 of the true exponents.
        exact: the true exponent at a position.
    """
    words = source.words(32, exponents.size)
    low = _taylor_exp(exponents * (1 + SCREEN_MARGIN), 7) - SCREEN_MARGIN
    high = _taylor_exp(exponents * (1 - SCREEN_MARGIN), 8) + SCREEN_MARGIN
    # A sum is off by many times its largest term's unit: beyond 1 the exact path decides.
    near = exponents <= 1
    below = near & (words + 1.0 <= low * 2.0**32)
    unsure = np.flatnonzero(~(below | (near & (words >= high * 2.0**32))))
    for index in unsure:
        real = exp_minus(exact(int(index)))
        below[index] = is_below(source, real, int(words[index]), 32)
    return below


def _taylor_exp(exponents: Array, order: int) -> Array:
    """Σ_{i ≤ order} (−y)^i/i!, by Horner's rule."""
    total = np.ones_like(exponents)
    for step in range(order, 0, -1):
        total = 1 - exponents / step * total
    return total
