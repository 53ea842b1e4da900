"""Larger tables that hold the wanted ones: few of them, each of a limited number of cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes, subsets


def cover(sizes: Sequence[int], sets: Sequence[Attributes], cells: int) -> tuple[Attributes, ...]:
    """Sets of attributes, found greedily. Each wanted set is inside one of them.

    Args:
        cells: how many cells a table may have; one that is wanted may have more.
    """
    member = np.zeros((len(sets), len(sizes)), np.float32)
    for number, each in enumerate(sets):
        member[number, list(each)] = 1
    lengths = np.log(np.asarray(sizes, np.float64))
    member = member[np.argsort(-(member @ lengths), kind="stable")]
    result = []
    while len(member):
        inside = _grown(member, member[0] > 0, lengths, np.log(cells) + 1e-9)
        member = member[member @ ~inside > 0]
        result.append(tuple(int(each) for each in np.flatnonzero(inside)))
    return tuple(result)


def _grown(member: Array, inside: Array, lengths: Array, most: float) -> Array:
    """Attributes added one by one. Each time it is the one that completes most sets for its length;
    where none completes any, the one that is in most sets that are partly inside."""
    while True:
        fits = ~inside & (lengths + lengths[inside].sum() <= most)
        if not fits.any():
            return inside
        missing = member @ ~inside
        completed = member[missing == 1].sum(axis=0)
        if not (completed[fits] > 0).any():
            completed = member[missing > 1].sum(axis=0)
            if not (completed[fits] > 0).any():
                return inside
        inside[int(np.argmax(np.where(fits, completed / lengths, -1.0)))] = True


def largest(sets: Sequence[Attributes]) -> set[Attributes]:
    """The sets that are inside no other."""
    inside = {part for each in sets for part in subsets(each) if part != each}
    return set(sets) - inside
