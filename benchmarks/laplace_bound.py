"""How exact tables with Laplace noise can be at best, whatever tables are measured.

Let tables B over any attributes be measured with ε_B each, Σ ε_B = 1, so that v_B = 2/ε_B² where
one person is there or not. By F20 the mean variance is Σ_A c_A/π_A with 2π_A = Σ_{B⊇A} ε_B²
g_AB², g_AB² = 1/∏_{j∈B∖A} n_j. The root of a sum of squares is at most the sum, so √(2π_A) ≤ s_A
= Σ_B ε_B g_AB, and the mean variance is at least min over ε of Σ_A 2c_A/s_A², which is convex.
For any λ ≥ 0 let H = max_B Σ_{A⊆B} λ_A g_AB, so that Σ λ_A s_A ≤ H; by Hölder's inequality Σ_A
2c_A/s_A² ≥ 2 (Σ_A (c_A λ_A²)^⅓)³/H². That holds for every λ; λ_A = c_A/s_A³ makes it tight at the
least point.

Two values as one difference (`Measurement.differences`) tell √2 times as much for the same ε, on
fewer A: where an attribute has two values, these are listed beside the tables. With more values
differences tell less than the table itself.
"""

from __future__ import annotations

from itertools import combinations
from math import prod, sqrt

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.marginals import Workload
from whosin.marginals.workload import Attributes, list_subsets

MAX_BOUND_ATTRIBUTES = 15
"""Attributes, where those of two values count twice: all tables and differences are listed."""
LAPLACE_BOUND_STEPS = 2_000
CLOSE_FACTOR = 1.002
"""Where bound and relaxation are this close, the bound hardly rises any more."""


def laplace_bound(workload: Workload) -> float:
    """A number that no choice of measured tables, and no division of ε = 1 over them, can bring the
    mean variance below, where one person is one row, and is there or not."""
    listed = len(workload.sizes) + workload.sizes.count(2)
    if listed > MAX_BOUND_ATTRIBUTES:
        message = (
            f"the bound lists all differences of the workload, which has {listed} attributes, "
            "those of two values counted twice"
        )
        hint = f"use at most {MAX_BOUND_ATTRIBUTES}"
        raise InvalidInput(message, field="workload", value=listed, hint=hint)
    numbers, residuals, gains = _measurement_gains(workload)
    importance, count = workload.importance(), int(numbers.max()) + 1
    parts = np.full(count, 1 / count)
    best, relaxed = 0.0, np.inf
    for _ in range(LAPLACE_BOUND_STEPS):
        told = np.bincount(residuals, gains * parts[numbers], len(importance))
        relaxed = min(relaxed, float(2 * (importance / told**2).sum()))
        worths = importance / told**3
        reach = np.bincount(numbers, gains * worths[residuals], count)
        roots = np.cbrt(importance * worths**2).sum()
        best = max(best, float(2 * roots**3 / reach.max() ** 2))
        if relaxed < CLOSE_FACTOR * best:
            break
        parts = parts * np.sqrt(reach / reach.max())
        parts = parts / parts.sum()
    return best


def _measurement_gains(workload: Workload) -> tuple[Array, Array, Array]:
    """(measurement, residual, g) for every table and every difference of two values in it."""
    sizes, order = workload.sizes, max(map(len, workload.residuals))
    numbers: list[int] = []
    residuals: list[int] = []
    gains: list[float] = []
    number = 0
    for length in range(len(sizes) + 1):
        for table in combinations(range(len(sizes)), length):
            inside = [
                part
                for size in range(min(order, length) + 1)
                for part in combinations(table, size)
                if part in workload.index_of
            ]
            for apart in _difference_sets(sizes, table):
                told = [part for part in inside if set(apart).issubset(part)]
                for part in told:
                    summed = prod(sizes[each] for each in table if each not in part)
                    numbers.append(number)
                    residuals.append(workload.index_of[part])
                    gains.append(sqrt(2.0 ** len(apart) / summed))
                number += bool(told)
    return np.array(numbers), np.array(residuals), np.array(gains)


def _difference_sets(sizes: tuple[int, ...], table: Attributes) -> list[Attributes]:
    return list_subsets(tuple(each for each in table if sizes[each] == 2))
