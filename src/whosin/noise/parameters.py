"""Reading scales and shapes.

Contract: a float scale is exactly the binary fraction that it is. Scales stay below 2^52, where a
draw that does not fit into 64 bits has a chance below 2^-1400 (and is an error, never a wrong
number).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, rational

Shape: TypeAlias = int | Sequence[int]
Size: TypeAlias = Shape | None

LARGEST = 2**52


def positive(value: object, field: str, largest: int = LARGEST) -> Fraction:
    """A number above 0 and at most the largest, exactly."""
    accepted = f"a number above 0 and at most 2^{largest.bit_length() - 1}"
    try:
        number = rational(value, field)
    except InvalidInput:
        raise InvalidInput(field, accepted, repr(value)) from None
    if isinstance(value, bool | np.bool_) or not 0 < number <= largest:
        raise InvalidInput(field, accepted, value)
    return number


def shape_of(size: object) -> tuple[int, ...]:
    """The shape that a size stands for; None, one draw, is ()."""
    lengths: Sequence[Any] = ()
    if size is not None:
        lengths = size if isinstance(size, Sequence) else (size,)
    whole = all(
        isinstance(length, int | np.integer) and not isinstance(length, bool) and length >= 0
        for length in lengths
    )
    if isinstance(size, str | bytes) or not whole:
        raise InvalidInput("size", "None, an integer from 0 up or a tuple of these", repr(size))
    if math.prod(int(length) for length in lengths) > 2**40:
        raise InvalidInput("size", "at most 2^40 draws in all", repr(size))
    return tuple(int(length) for length in lengths)


def count_of(size: object) -> int:
    """How many draws a size stands for."""
    return math.prod(shape_of(size))


def shaped(draws: Array, size: object) -> Array | int:
    """Draws in the shape asked for; a single one as a Python integer."""
    return int(draws[0]) if size is None else draws.reshape(shape_of(size))
