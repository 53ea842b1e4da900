"""Exact linear systems of rationals, with pivots found modulo a prime.

A square part that is invertible modulo a prime is invertible. That it has the whole rank is only
likely, so whoever relies on it checks what it solved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from whosin.exact import Array, flint_rational

PRIME = 2**61 - 1


def pivots(table: Array) -> tuple[list[int], list[int]]:
    """Rows and columns of a largest invertible part."""
    if not table.size:
        return [], []
    columns = _pivot_columns(table)
    rows = _pivot_columns(table[:, columns].T) if columns else []
    return rows, columns


def _pivot_columns(table: Array) -> list[int]:
    from flint import nmod_mat

    flat = [int(each.p) * pow(int(each.q), -1, PRIME) % PRIME for each in table.ravel()]
    rows, columns = table.shape
    reduced, rank = nmod_mat(rows, columns, flat, PRIME).rref()
    result, column = [], 0
    for row in range(rank):
        while int(reduced[row, column]) == 0:
            column += 1
        result.append(column)
    return result


def solved(square: Array, right: Array) -> Array:
    """X with square · X = right."""
    if not square.size:
        return np.empty((0, right.shape[1]), dtype=object)
    if not right.size:
        return np.empty((square.shape[0], 0), dtype=object)
    return array(matrix(square).solve(matrix(right), algorithm="dixon"))


def product(left: Array, right: Array) -> Array:
    """left · right, of FLINT rationals."""
    if not left.size or not right.size:
        return np.full((left.shape[0], right.shape[1]), flint_rational(0), dtype=object)
    return array(matrix(left) * matrix(right))


def matrix(table: Array) -> Any:
    """A FLINT matrix."""
    from flint import fmpq_mat

    rows, columns = table.shape
    return fmpq_mat(rows, columns, list(table.ravel()))


def array(matrix: Any) -> Array:
    """A FLINT matrix as an array."""
    result = np.empty(matrix.nrows() * matrix.ncols(), dtype=object)
    result[:] = matrix.entries()
    return result.reshape(matrix.nrows(), matrix.ncols())
