"""Exact draws: from rational probabilities, with no rounding of a threshold.

A uniform number is revealed 62 bits at a time: it is below a threshold, above it, or its bits so
far agree with the threshold's, and only then are more needed. For simulation: the bits come from
numpy's generator, which is not secure randomness.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.spaces import Records, Space
from whosin.spaces.memory import require

BITS = 62


def checked_table(space: Records, table: Sequence[int] | Array) -> Array:
    """The rows of one table of a space, refused where they are not that."""
    rows = np.asarray(table, dtype=np.int64)
    if rows.shape != (space.rows,) or ((rows < 0) | (rows >= space.values)).any():
        accepted = f"{space.rows} values from 0 to {space.values - 1}"
        raise InvalidInput("table", accepted, rows.shape)
    return rows


def need_pairs(own: Records, space: Space | None) -> None:
    """Refuse another space than the mechanism's own, and one too large to write out."""
    if space is not None and space != own:
        raise InvalidInput("space", f"{own!r}, as the mechanism's", repr(space))
    require("a table of worlds by worlds", 200 * own.worlds**2)


def below(limit: int, rng: np.random.Generator) -> int:
    """A uniform whole number from 0 to limit − 1."""
    bits = limit.bit_length()
    while True:
        drawn = int.from_bytes(rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)
        if drawn < limit:
            return drawn


def drawn_index(ends: Sequence[int], rng: np.random.Generator) -> int:
    """An index drawn with probability proportional to the steps of the cumulative sums `ends`."""
    return bisect_right(ends, below(int(ends[-1]), rng))


def choices(tables: Sequence[Sequence[Fraction]], which: Array, rng: np.random.Generator) -> Array:
    """One draw from `tables[which]` for each entry of `which`, each table a distribution."""
    inner = [list(accumulate(table))[:-1] for table in tables]
    cells = np.array([[int(end * 2**BITS) for end in ends] for ends in inner], dtype=np.int64)
    cells = cells.reshape(len(tables), -1)
    drawn = rng.integers(0, 1 << BITS, len(which))
    mine = cells[which]
    result = (drawn[:, None] >= mine).sum(axis=1)
    for number in np.flatnonzero((drawn[:, None] == mine).any(axis=1)):
        result[number] = _revealed(inner[which[number]], int(drawn[number]), rng)
    return np.asarray(result)


def _revealed(ends: list[Fraction], drawn: int, rng: np.random.Generator) -> int:
    """Go on revealing bits of a number that begins with `drawn` until it is certain where the
    number lies."""
    bits = BITS
    while True:
        low, high = Fraction(drawn, 1 << bits), Fraction(drawn + 1, 1 << bits)
        first, last = bisect_right(ends, low), bisect_right(ends, high)
        # The number is in [low, high): a threshold equal to `high` does not divide it.
        if first == last or all(end == high for end in ends[first:last]):
            return first
        drawn = drawn << BITS | int(rng.integers(0, 1 << BITS))
        bits += BITS
