"""What is too large, and which structure would make it possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whosin.distortion.symmetry.compositions import number_of_moves, number_of_types
from whosin.errors import Unsupported

if TYPE_CHECKING:
    from whosin.distortion.symmetry.parts import Structure

MOST_TYPES = 20_000
"""Of a linear program."""
MOST_MOVES = 120_000
"""Its inequalities."""
MOST_WORLDS = 4096
"""Of a prior that is written out."""


def need_types(structure: Structure, most: int) -> None:
    """Refuse more types than that.

    Raises:
        Unsupported: there are too many; the message says which structure would help.
    """
    sizes = tuple(len(group) for group in structure.groups)
    n, m = structure.space.rows, structure.space.values
    needed = number_of_types(sizes, m)
    if needed <= most:
        return
    alike = number_of_types((n,), m)
    fit = n
    while fit > 1 and number_of_types((fit,), m) > MOST_TYPES:
        fit -= 1
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


def need_moves(structure: Structure) -> None:
    """Refuse more inequalities than a program can have."""
    sizes = tuple(len(group) for group in structure.groups)
    n, m = structure.space.rows, structure.space.values
    moves = number_of_moves(sizes, m)
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
