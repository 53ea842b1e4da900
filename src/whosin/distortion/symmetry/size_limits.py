"""What is too large, and which structure would make it possible."""

from __future__ import annotations

import math

from whosin.errors import Unsupported

MOST_TYPES = 20_000
"""Variables of a linear program."""
MOST_MOVES = 120_000
"""Inequalities of a linear program."""
MOST_WORLDS = 4096
"""Worlds of a prior that is written out."""


def number_of_types(sizes: tuple[int, ...], values: int) -> int:
    """∏ C(k + m² − 1, m² − 1), without building them."""
    cells = values * values
    return math.prod(math.comb(size + cells - 1, cells - 1) for size in sizes)


def number_of_moves(sizes: tuple[int, ...], values: int) -> int:
    """How many pairs of neighbours there are by type, without building them."""
    total, cells = number_of_types(sizes, values), values * values
    # A move needs a row in its cell: the other rows have any type.
    return sum(
        total
        // number_of_types((size,), values)
        * (cells * (values - 1) * number_of_types((size - 1,), values))
        for size in sizes
    )


def need_types(sizes: tuple[int, ...], values: int, most: int) -> None:
    """Refuse more types than that.

    Raises:
        Unsupported: there are too many; the message says which structure would help.
    """
    n, m, needed = sum(sizes), values, number_of_types(sizes, values)
    if needed <= most:
        return
    alike = number_of_types((n,), m)
    fit = next(k for k in range(n, 0, -1) if k == 1 or number_of_types((k,), m) <= MOST_TYPES)
    better = (
        f"if the prior treated all rows alike (exchangeable) it would be {alike:,}, and "
        if alike <= MOST_TYPES
        else f"with rows that the prior treats alike {fit} rows of {m} values fit, and "
    )
    raise Unsupported(
        f"the best mechanism for {n} rows of {m} values in groups of {', '.join(map(str, sizes))} "
        f"needs {needed:,} variables, of at most {most:,}: {better}independent rows or blocks are "
        "solved one by one, however many"
    )


def need_moves(sizes: tuple[int, ...], values: int) -> None:
    """Refuse more inequalities than a program can have."""
    n, m, moves = sum(sizes), values, number_of_moves(sizes, values)
    if moves > MOST_MOVES:
        raise Unsupported(
            f"the best mechanism for {n} rows of {m} values has {moves:,} inequalities, of at most "
            f"{MOST_MOVES:,}: with fewer values it would fit, and independent rows with Hamming "
            "distortion have a closed form for any number of values"
        )


def need_worlds(worlds: int) -> None:
    """Refuse to write out a prior of more worlds."""
    if worlds > MOST_WORLDS:
        raise Unsupported(
            f"{worlds:,} worlds are too many for a prior without declared structure (at most "
            f"{MOST_WORLDS:,}): use Independent, Uniform or Exchangeable, or Blocks for rows that "
            "depend on each other only within small groups"
        )
