"""A gain function written out: guesses × worlds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_array, flint_rational, is_exact, ranged
from whosin.notions.gains.base import GainFunction, Guess, first_best, slack
from whosin.spaces import Space
from whosin.validation import listed

NARROW = 2.0**-450
"""Gains further apart than this are compared in rationals alone: products could underflow."""


@dataclass(frozen=True, init=False)
class GainMatrix(GainFunction):
    """The gain of each guess (a row) in each world (a column).

    Args:
        matrix: rows of numbers of at least 0, each with one number a world, in world order.
        guesses: names of the guesses; 0, 1, … by default.
    """

    matrix: tuple[tuple[Fraction, ...], ...]
    guesses: tuple[Hashable, ...]
    _exact: bool = field(repr=False)

    def __init__(self, matrix: object, guesses: Sequence[Hashable] | None = None) -> None:
        accepted = "a list of rows, one for each guess, with a number for each world"
        rows = [listed(row, "gain", accepted) for row in listed(matrix, "gain", accepted)]
        if not rows or any(len(row) != len(rows[0]) or not row for row in rows):
            sizes = sorted({len(row) for row in rows})
            raise InvalidInput("gain", accepted, f"rows of {sizes} numbers" if rows else "none")
        numbers = tuple(tuple(ranged(each, "gain", "at least 0") for each in row) for row in rows)
        names = tuple(range(len(rows)) if guesses is None else listed(guesses, "guesses", "names"))
        if len(names) != len(rows):
            raise InvalidInput("guesses", f"{len(rows)} names, one for each row", len(names))
        object.__setattr__(self, "matrix", numbers)
        object.__setattr__(self, "guesses", names)
        object.__setattr__(self, "_exact", all(is_exact(*row) for row in rows))

    @property
    def spelled(self) -> str:
        return f"a matrix of {len(self.matrix)} guesses × {len(self.matrix[0])} worlds"

    @property
    def words(self) -> str:
        return f"what the better of {len(self.matrix)} guesses gains"

    @property
    def exact(self) -> bool:
        return self._exact

    def check(self, space: Space) -> None:
        if len(self.matrix[0]) != space.worlds:
            accepted = f"rows of {space.worlds} numbers, one for each world, in world order"
            raise InvalidInput("gain", accepted, f"rows of {len(self.matrix[0])}")

    def best(self, near: Array, weight: Callable[[int], Any], space: Space) -> Guess:
        table = gains_of(self)
        floats, exact = table
        values = floats @ near
        used = floats[floats > 0]
        wide = used.size and used.max() * NARROW <= used.min() and used.max() < 1 / NARROW
        indices = list(range(len(floats)))
        if wide:
            indices = np.flatnonzero(values >= values.max() * (1 - slack(len(near)))).tolist()
        gains = [_value(exact[index], weight) for index in indices]
        chosen = first_best(gains)
        return gains[chosen], self.guesses[indices[chosen]]


def gains_of(gain: GainMatrix) -> tuple[Array, Array]:
    """The matrix in floats, and in FLINT rationals."""
    shape = (len(gain.matrix), len(gain.matrix[0]))
    floats = np.array([[float(each) for each in row] for row in gain.matrix])
    return floats, flint_array((each for row in gain.matrix for each in row), shape)


def _value(row: Array, weight: Callable[[int], Any]) -> Any:
    total = flint_rational(0)
    for world in np.flatnonzero(row != 0):
        total += row[world] * weight(int(world))
    return total
