"""What is measured of a table, as a dense matrix, from the definitions alone."""

from __future__ import annotations

import numpy as np

from whosin.exact import Array


def dense(
    sizes: tuple[int, ...], attributes: tuple[int, ...], differences: tuple[int, ...] = ()
) -> Array:
    """The matrix that takes the counts of all combinations to what is measured."""
    matrix: Array = np.ones((1, 1))
    for each, size in enumerate(sizes):
        factor: Array
        if each not in attributes:
            factor = np.ones((1, size))
        elif each not in differences:
            factor = np.eye(size)
        elif size == 2:
            factor = np.array([[1.0, -1.0]])
        else:
            factor = size * np.eye(size) - np.ones((size, size))
        matrix = np.kron(matrix, factor)
    return matrix
