"""Likelihoods for every set of known rows at once.

Each row of a table of records is given one more value, "unknown", whose slice is the sum of the
others: (m+1)^n entries hold Pr[y, x_i, x_S] and Pr[x_i, x_S] for every set S of known rows.
Conditioning events of probability 0 become NaN and are passed over. These tables are for searching,
in floats wide enough that nothing underflows; `certain` recomputes what they find.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whosin.exact import Array
from whosin.spaces import Records
from whosin.spaces.memory import require
from whosin.spaces.width import products

COLUMNS = 1 << 24
"""How many entries of the larger table are held at once."""


def conditioned(array: Array, mass: Array, space: Records) -> Iterator[tuple[int, Array]]:
    """(first output, Pr[y | known rows]) for the outputs, a few at a time: (m+1)^n × outputs.

    Each output's likelihoods are up to a factor of its own, which cancels in every ratio.

    Args:
        array: likelihoods, worlds × outputs.
        mass: the probability of each world, as FLINT rationals.
    """
    cells = (space.values + 1) ** space.rows
    fits = "a Markov chain with noise on a sum needs no table, and reaches thousands of rows"
    require("a table over all sets of known rows", 4 * 8 * cells, fits)
    weights, array = products(mass, array)
    known = _extended(weights[:, None], space)
    step = max(1, COLUMNS // cells)
    for start in range(0, array.shape[1], step):
        joint = _extended(weights[:, None] * array[:, start : start + step], space)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield start, joint / np.where(known > 0, known, np.nan)


def possible(mass: Array, space: Records) -> Array:
    """Which conditions have a positive probability: (m+1)^n."""
    return _extended((mass != 0).astype(np.float64)[:, None], space)[:, 0] > 0


def _extended(table: Array, space: Records) -> Array:
    """Give every row the value "unknown": the sum over its values."""
    columns = table.shape[1]
    for row in reversed(range(space.rows)):
        # Rows after this one are extended already, those before it not yet.
        after = (space.values + 1) ** (space.rows - 1 - row) * columns
        view = table.reshape(-1, space.values, after)
        table = np.concatenate([view, view.sum(axis=1, keepdims=True)], axis=1)
    return table.reshape(-1, columns)


def axis(table: Array, space: Records, row: int) -> Array:
    """View the table as (before, values and unknown, after, outputs) along one row."""
    after = (space.values + 1) ** (space.rows - 1 - row)
    return table.reshape(-1, space.values + 1, after, table.shape[1])


def coordinates(index: int, space: Records) -> list[int | None]:
    """The value of each row at an entry of the table; None where it is unknown."""
    digits = np.unravel_index(index, (space.values + 1,) * space.rows)
    return [None if digit == space.values else int(digit) for digit in digits]
