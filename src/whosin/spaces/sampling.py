"""Likelihoods after each present entity is kept with probability β, axis by axis."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.spaces.count_lattice import CountLattice


def sample(grid: CountLattice, array: Array, beta: Any) -> Array:
    """Row v of the result is the mixture of rows that sampling v's entities leads to."""
    out = array.copy()
    for kind in range(len(grid.kinds)):
        sample_axis(grid, out, kind, beta)
    return out


def sample_axis(grid: CountLattice, array: Array, kind: int, beta: Any) -> None:
    """Sample the entities of one kind, in place."""
    view = grid.axis(array, kind)
    if grid.lengths[kind] == 2:
        view[:, 1] *= beta
        view[:, 1] += (1 - beta) * view[:, 0]
    else:
        view[:] = np.matmul(binomials(grid.lengths[kind], beta), view)


def binomials(length: int, beta: Any) -> Array:
    """Row v: the probabilities that 0, 1, … of v entities are kept, for v < length."""
    if not isinstance(beta, float):
        rows = np.zeros((length, length), dtype=object)
        for v in range(length):
            for j in range(v + 1):
                rows[v, j] = comb(v, j) * beta**j * (1 - beta) ** (v - j)
        return rows
    table = np.zeros((length, length))
    table[0, 0] = 1.0
    for v in range(1, length):
        table[v, : v + 1] = (1 - beta) * table[v - 1, : v + 1]
        table[v, 1 : v + 1] += beta * table[v - 1, :v]
    return table
