"""Uniform integers.

Contract: each of 0, …, n − 1 has probability 1/n, exactly: words are kept where all n
outcomes have equally many of them, and the few others are drawn again.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from whosin.exact import Array
from whosin.noise.parameters import Shape, Size, count_of, shaped
from whosin.noise.source import SYSTEM, Source, checked_source
from whosin.validation import whole

LARGEST = 2**63


@overload
def uniform(n: int, size: None = None, *, source: Source = SYSTEM) -> int: ...
@overload
def uniform(n: int, size: Shape, *, source: Source = SYSTEM) -> Array: ...
def uniform(n: int, size: Size = None, *, source: Source = SYSTEM) -> Array | int:
    """Integers from 0 to n − 1, each with probability 1/n, exactly.

    Args:
        n: how many values there are, from 1 to 2^63.
        size: how many draws, or a shape; None for one Python integer.
    """
    below_n = whole(n, "n", 1, LARGEST)
    return shaped(below(below_n, count_of(size), checked_source(source)), size)


def below(n: int, count: int, source: Source) -> Array:
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
