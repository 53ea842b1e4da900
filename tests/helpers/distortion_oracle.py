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


def table_program(rows: int, values: int, priors: Any, level: Any, cost: Any) -> float | None:
    """The least distortion under the worst of these priors of whole tables, from the definition.

    Args:
        priors: for each the probability of every table.
        level: (ε, whether identifiability under every prior is meant).
        cost: tables × answers.
    """
    worlds = list(product(range(values), repeat=rows))
    price = np.asarray(cost, dtype=float)
    size, outputs = price.shape
    epsilon, identifiable = level
    masses = [np.array(prior, dtype=float) for prior in priors]
    lines = []
    for weight in masses if identifiable else [np.ones(size)]:
        for i, j in permutations(range(size), 2):
            if sum(a != b for a, b in zip(worlds[i], worlds[j], strict=True)) == 1:
                line = np.zeros(size)
                line[i], line[j] = weight[i], -math.exp(epsilon) * weight[j]
                if line.any():
                    lines.append(line / np.abs(line).max())
    ratios = np.kron(np.array(lines), np.eye(outputs))
    bounds = np.array([(mass[:, None] * price).ravel() for mass in masses])
    upper = np.block([[ratios, np.zeros((len(ratios), 1))], [bounds, -np.ones((len(bounds), 1))]])
    sums = np.hstack([np.kron(np.eye(size), np.ones(outputs)), np.zeros((size, 1))])
    goal = np.append(np.zeros(size * outputs), 1.0)
    found = linprog(goal, csr_matrix(upper), np.zeros(len(upper)), csr_matrix(sums), np.ones(size))
    return found.fun if found.status == 0 else None


def binary_row(ends: Any, cost: Any, g: Any) -> Any:
    """The least distortion of one row of two values against every p between two ends, exactly.

    Each answer of an ε-private mechanism is a mixture of two kinds, as (g, 1) and as (1, g), so
    under one p the cheapest answer of each kind is taken; and the least favourable p is at an end
    or where two answers tie.
    """
    low, high = ends
    answers = range(len(cost[0]))

    def line(weights: Any, y: int) -> Any:
        """p ↦ weights · costs, as (value at 0, slope)."""
        return weights[0] * cost[0][y], weights[1] * cost[1][y] - weights[0] * cost[0][y]

    kinds = [[line(kind, y) for y in answers] for kind in ((g, 1), (1, g))]
    points = {low, high}
    for lines in kinds:
        for (a, b), (c, d) in product(lines, repeat=2):
            if b != d and low < (c - a) / (b - d) < high:
                points.add((c - a) / (b - d))
    return max(sum(min(a + b * p for a, b in lines) for lines in kinds) / (g + 1) for p in points)


def rate_bounds(mass: Any, price: Any, wanted: float) -> tuple[float, float]:
    """(less, more) than the least information at a distortion: Blahut and Arimoto's steps at many
    slopes, the bound on their way, and a mixture of two channels."""
    mass, price = mass[mass > 0], price[mass > 0]
    shown = np.where(price == 0, 1.0, 0.0)
    shown /= shown.sum(axis=1, keepdims=True)
    constant = np.zeros_like(price)
    constant[:, (mass @ price).argmin()] = 1
    low, high, least = 1e-4, 1e14, 0.0
    left, right = (_spent_and_learned(mass, price, each) for each in (shown, constant))
    for _ in range(45):
        slope = math.sqrt(low * high)
        kernel, weights = np.exp(-slope * price), np.full(price.shape[1], 1 / price.shape[1])
        for _ in range(200):
            pull = kernel.T @ (mass / (kernel @ weights))
            weights = weights * pull
        weights = weights / weights.sum()
        sums = kernel @ weights
        top = max(1.0, (kernel.T @ (mass / sums)).max())
        least = max(least, -mass @ np.log(sums) - math.log(top) - slope * wanted)
        point = _spent_and_learned(mass, price, kernel * weights / sums[:, None])
        if point[0] <= wanted:
            left, high = min(left, point, key=lambda each: each[1]), slope
        else:
            right, low = point, slope
    share = (wanted - left[0]) / (right[0] - left[0])
    return least, (1 - share) * left[1] + share * right[1]


def _spent_and_learned(mass: Any, price: Any, channel: Any) -> tuple[float, float]:
    joint = mass[:, None] * channel
    outputs, seen = np.broadcast_to(joint.sum(axis=0), joint.shape), joint > 0
    learned = float((joint[seen] * np.log(channel[seen] / outputs[seen])).sum())
    return float((joint * price).sum()), learned
