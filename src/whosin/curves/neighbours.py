"""Which rows of a channel are compared: worlds with and without someone, or one for another."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from whosin.curves.curve import ComparedWorlds
from whosin.errors import UnknownName, Unsupported
from whosin.exact import Array
from whosin.spaces import Lattice, Records, Space

RELATIONS = ("add-remove", "replace")


def compared(space: Space, lattice: Lattice | None, relation: str) -> tuple[Array, Array]:
    """(in, out): the numbers of the rows of each two neighbours."""
    if relation not in RELATIONS:
        raise UnknownName("relation", str(relation), RELATIONS)
    if isinstance(space, Records):
        if relation != "replace":
            raise Unsupported("records are always there: use relation='replace'")
        return _records(space)
    assert lattice is not None
    numbers = np.arange(lattice.worlds)[:, None]
    sides = [
        (np.asarray(each.present).ravel(), np.asarray(each.absent).ravel())
        for each in lattice.additions(numbers)
    ]
    present, absent = (np.concatenate(side) for side in zip(*sides, strict=True))
    if relation == "add-remove":
        return present, absent
    return _replaced(present, absent)


def pair_of(space: Space, lattice: Lattice | None, in_: int, out: int) -> ComparedWorlds:
    """Two rows of a channel by their numbers."""
    if lattice is None:
        return ComparedWorlds(space, in_, out)
    return ComparedWorlds(lattice, in_, out, alone=out == lattice.class_of(()))


def _replaced(present: Array, absent: Array) -> tuple[Array, Array]:
    """Two ways to add someone to the same others, in both orders."""
    order = np.argsort(absent, kind="stable")
    starts = np.flatnonzero(np.diff(absent[order], prepend=-1))
    pairs: set[tuple[int, int]] = set()
    for group in np.split(present[order], starts[1:]):
        pairs.update(permutations(set(group.tolist()), 2))
    both = np.array(sorted(pairs) or [(0, 0)])
    return both[:, 0], both[:, 1]


def _records(space: Records) -> tuple[Array, Array]:
    """One row's value for another."""
    numbers = np.arange(space.worlds)[:, None]
    one, other = [], []
    for row in range(space.rows):
        view = space.axis(numbers, row)
        for a, b in permutations(range(space.values), 2):
            one.append(view[:, a].ravel())
            other.append(view[:, b].ravel())
    return np.concatenate(one), np.concatenate(other)
