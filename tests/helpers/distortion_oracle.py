"""The best mechanism from the definition: the program over m^(2n) variables."""

from __future__ import annotations

import math
from itertools import permutations, product
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


def robust_program(
    corners: Any, values: int, epsilon: float, notion: str, cost: Any = None
) -> float | None:
    """The least worst-case distortion over all priors of independent rows with one of these
    corners each, from the definition: one mechanism of whole tables, one bound and one set of
    ratios for each such prior."""
    worlds = list(product(range(values), repeat=len(corners)))
    size = len(worlds)
    price = 1 - np.eye(values) if cost is None else np.asarray(cost)
    d = np.array(
        [[sum(price[a][b] for a, b in zip(x, y, strict=True)) for y in worlds] for x in worlds]
    )
    priors = [
        np.array([math.prod(float(p[v]) for p, v in zip(rows, x, strict=True)) for x in worlds])
        for rows in product(*corners)
    ]
    weights = [np.ones(size)] if notion == "dp" else priors
    lines = []
    for weight, (i, j) in product(weights, permutations(range(size), 2)):
        if sum(a != b for a, b in zip(worlds[i], worlds[j], strict=True)) == 1:
            line = np.zeros(size)
            line[i], line[j] = weight[i], -math.exp(epsilon) * weight[j]
            lines.append(line / np.abs(line).max())
    ratios = kron(csr_matrix(np.array(lines)), csr_matrix(np.eye(size))).toarray()
    bounds = np.array([(mass[:, None] * d).ravel() for mass in priors])
    upper = np.block(
        [[ratios, np.zeros((len(ratios), 1))], [bounds, np.full((len(bounds), 1), -1.0)]]
    )
    sums = np.hstack([np.kron(np.eye(size), np.ones(size)), np.zeros((size, 1))])
    goal = np.append(np.zeros(size**2), 1.0)
    found = linprog(goal, csr_matrix(upper), np.zeros(len(upper)), csr_matrix(sums), np.ones(size))
    return found.fun if found.status == 0 else None
