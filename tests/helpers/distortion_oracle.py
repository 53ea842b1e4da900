"""The best mechanism from the definition: the program over m^(2n) variables."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, kron


def full_program(
    rows: int, values: int, mass: Any, epsilon: float, notion: str, cost: Any = None
) -> float | None:
    """Its optimum, or None where it has no solution; shares nothing with the library."""
    worlds = list(product(range(values), repeat=rows))
    size = len(worlds)
    price = 1 - np.eye(values) if cost is None else np.asarray(cost)
    d = np.array(
        [[sum(price[a][b] for a, b in zip(x, y, strict=True)) for y in worlds] for x in worlds]
    )
    weight = np.ones(size) if notion == "dp" else np.asarray(mass)
    pairs = [
        (i, j)
        for i, x in enumerate(worlds)
        for j, z in enumerate(worlds)
        if sum(a != b for a, b in zip(x, z, strict=True)) == 1
    ]
    upper = np.zeros((len(pairs), size))
    for k, (i, j) in enumerate(pairs):
        upper[k, i] = weight[i]
        upper[k, j] = -math.exp(epsilon) * weight[j]
    each = csr_matrix(np.eye(size))
    found = linprog(
        (np.asarray(mass)[:, None] * d).ravel(),
        kron(csr_matrix(upper), each),
        np.zeros(len(pairs) * size),
        kron(each, csr_matrix(np.ones(size))),
        np.ones(size),
    )
    return found.fun if found.status == 0 else None
