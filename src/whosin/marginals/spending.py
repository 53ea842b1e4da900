"""What to measure, and with how much of the budget.

Contract: the parts add up to at most 1, and only public numbers decide. Gaussian noise, where one
person is there or not: the residuals themselves are measured, which is the best linear mechanism
there is, and for the mean error the parts have a closed form. Otherwise a mean variance Σ_A c_A/π_A
is lowered step by step. By convexity 1/Σ_B x_B ≤ Σ_B λ_B²/x_B where the λ_B add up to 1, with
equality at the present point for λ_B = x_B/Σx; the right side splits over measurements and has its
least value in closed form, so that no step makes the error larger (majorise, then minimise). The
program is convex in 1/v_B for Gaussian noise; for Laplace noise, v_B = 2(Δ_B/ε_B)², it is not, and
the best of several starts is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from whosin.errors import UnknownName
from whosin.exact import Array
from whosin.marginals.covers import cover, largest
from whosin.marginals.measurements import Measurement
from whosin.marginals.variance import Information, table_variances
from whosin.marginals.workload import Attributes, Workload

NOISES = ("laplace", "gaussian")
GOALS = ("mean", "cells", "worst")
STEPS, ROUNDS = 400, 60
NEGLIGIBLE = 1e-7
"""A part this small, relative to the largest, is not measured."""
GAIN = 1e-7
"""A step that lowers the error by less than this is the last one."""
MOST_LARGER = 2**17
"""Cells of a table that is larger than those that are wanted."""
SMALL = 12
"""Values of an attribute that may be added to a table: a third one to pairs makes one table of
three, each with three times the ε, and sums n noises."""
HOPELESS = 2.0
"""Where larger tables are this much worse, still larger ones are not tried."""
MOST_MEASURED = 2 * 10**6
"""Cells of all larger tables together."""


@dataclass(frozen=True)
class Spending:
    """Measurements with their parts of the budget.

    Attributes:
        parts: of ε for Laplace noise, of ρ for Gaussian noise.
        variances: what the cells of each table would have, for a budget of 1.
    """

    noise: str
    measurements: tuple[Measurement, ...]
    parts: Array
    variances: Array

    def __post_init__(self) -> None:
        self.parts.flags.writeable = self.variances.flags.writeable = False


@lru_cache(maxsize=4)
def spend(
    workload: Workload,
    noise: str = "laplace",
    relation: str = "add-remove",
    goal: str = "mean",
    rows: int = 1,
) -> Spending:
    """The best way that was found to measure a workload. The last few are kept, since a batch is
    priced more than once.

    Args:
        goal: "mean" for the least weighted mean of the tables' variances; "cells" for that of all
            cells, where a table counts by its cells; "worst" for the least largest variance times
            weight.
    """
    if noise not in NOISES:
        raise UnknownName("noise", str(noise), NOISES)
    if goal not in GOALS:
        raise UnknownName("goal", str(goal), GOALS)
    if goal == "cells":
        cells = (prod(workload.asked(number)) for number in range(len(workload.sets)))
        weights = tuple(one * many for one, many in zip(workload.weights, cells, strict=True))
        return spend(replace(workload, weights=weights), noise, relation, "mean", rows)
    if noise == "gaussian" and relation == "add-remove":
        return _residuals(workload, goal, rows)
    result = [
        _descend(workload, noise, relation, goal, rows, start) for start in _starts(workload, noise)
    ]
    given = np.array(workload.weights)
    return min(result, key=lambda each: _score(each.variances, given, goal))


def _score(variances: Array, weights: Array, goal: str) -> float:
    if goal == "worst":
        return float((variances * weights).max())
    return float(variances @ weights / weights.sum())


def _residuals(workload: Workload, goal: str, rows: int) -> Spending:
    """Residuals, each with a precision π_A at a price of p_A: π_A ∝ √(c_A/p_A)."""
    spread = workload.spread

    def best(weights: Array) -> Array:
        precision = np.sqrt(workload.importance(weights) / spread)
        return np.asarray(precision / (precision @ spread))

    weights = np.array(workload.weights)
    told = best(weights) if goal == "mean" else _levelled(workload, best, weights)
    # One person moves R_A by p_A in squared L2: ρ = p_A π_A rows² / 2.
    variances = table_variances(workload, told) * rows**2 / 2
    measured = tuple(Measurement(part, part) for part in workload.residuals)
    return Spending("gaussian", measured, told * spread, variances)


def _levelled(workload: Workload, best: Callable[[Array], Array], weights: Array) -> Array:
    """The precisions of the least worst table: weights rise where the variance is large."""
    given, result, least = weights / weights.sum(), best(weights), np.inf
    for number in range(ROUNDS * 5):
        told = best(given * weights)
        variances = table_variances(workload, told) * weights
        if variances.max() < least:
            result, least = told, variances.max()
        given = given * (variances / variances.max()) ** (1.0 if number < 50 else 0.5)
        given = given / given.sum()
    return result


@dataclass(frozen=True)
class _Start:
    """Measurements to begin with, and how much of the budget each gets."""

    measurements: tuple[Measurement, ...]
    parts: Array


def _starts(workload: Workload, noise: str) -> list[_Start]:
    """Where to begin: with the wanted tables; with those that are inside no other; with a few
    larger ones that hold them all."""
    sizes = workload.sizes
    inside = [Measurement(part) for part in workload.residuals]
    wanted = set(workload.sets)
    outer = largest(workload.sets)
    extra = []
    for part in workload.residuals:
        binary = tuple(each for each in part if sizes[each] == 2)
        if noise == "gaussian" and part:
            extra.append(Measurement(part, part))
        elif binary:
            extra.append(Measurement(part, binary))
    every = (*inside, *extra)
    starts = [
        _begin(every, [each in wanted for each in workload.residuals]),
        _begin(every, [each in outer for each in workload.residuals]),
        _begin((*inside, *extra), [True] * len(every)),
    ]
    if noise == "laplace":
        for blocks in _larger(workload):
            starts.append(_begin((*map(Measurement, blocks), *every), [True] * len(blocks)))
    return starts


def _begin(measurements: Sequence[Measurement], favoured: Sequence[bool]) -> _Start:
    """Nearly everything for those that are favoured, a little for the others."""
    parts = np.full(len(measurements), 0.02 / len(measurements))
    chosen = np.flatnonzero(favoured)
    parts[chosen] += 0.98 / len(chosen)
    return _Start(tuple(measurements), parts)


def _larger(workload: Workload) -> list[tuple[Attributes, ...]]:
    """Covers of the tables of small attributes by larger ones, of four times the cells again and
    again, beside the other tables; the two most promising."""
    sizes, importance = workload.sizes, workload.importance()
    outer = sorted(largest(workload.sets))
    small = [each for each in outer if max(workload.shape(each), default=0) <= SMALL]
    others = tuple(each for each in outer if each not in set(small))
    if not small:
        return []
    most = max(workload.cells(each) for each in small)
    result: dict[tuple[Attributes, ...], float] = {}
    before, cells = _even(workload, outer, importance), 4 * most
    while cells <= MOST_LARGER:
        covering = cover(sizes, small, cells)
        blocks = (*covering, *others)
        score = _even(workload, blocks, importance)
        new = [each for each in blocks if each not in workload.index_of]
        if new and sum(workload.cells(each) for each in new) <= MOST_MEASURED:
            result[blocks] = score
        if len(covering) == 1 or score > HOPELESS * before:
            break
        cells *= 4
    return sorted(result, key=lambda each: result[each])[:2]


def _even(workload: Workload, blocks: Sequence[Attributes], importance: Array) -> float:
    """The error of tables with the same ε each."""
    told = Information(workload, [Measurement(each) for each in blocks])
    precisions = np.full(len(blocks), 1 / len(blocks) ** 2)
    return float((importance / told.about(precisions)).sum())


def _descend(
    workload: Workload, noise: str, relation: str, goal: str, rows: int, start: _Start
) -> Spending:
    """Lower the error from a start until it hardly falls."""
    sizes, told = workload.sizes, Information(workload, start.measurements)
    gaussian = noise == "gaussian"
    prices = np.array(
        [
            float(each.squared(sizes, relation, rows))
            if gaussian
            else float(each.sensitivity(sizes, relation, rows))
            for each in start.measurements
        ]
    )

    def precisions(parts: Array) -> Array:
        return np.asarray(2 * parts / prices if gaussian else (parts / prices) ** 2 / 2)

    def step(parts: Array, importance: Array) -> Array:
        precision = precisions(parts)
        about = told.about(precision)
        needed = precision**2 * told.back(importance / about**2)
        moved = np.sqrt(needed * prices) if gaussian else np.cbrt(needed * prices**2)
        return np.asarray(moved / moved.sum())

    weights = np.array(workload.weights)
    parts, given = start.parts, weights / weights.sum()
    best, least = parts, np.inf
    for number in range(STEPS if goal == "mean" else 2 * STEPS):
        parts = step(parts, workload.importance(given))
        if number % 10 == 9:
            variances = table_variances(workload, told.about(precisions(parts)))
            score = _score(variances, weights, goal)
            if goal == "mean" and score > least * (1 - GAIN):
                break
            if score < least:
                best, least = parts, score
            if goal == "worst":
                given = given * (variances * weights / (variances * weights).max())
                given = given / given.sum()
    kept = best > NEGLIGIBLE * best.max()
    kept_parts = best[kept] / best[kept].sum()
    measured = tuple(each for each, keep in zip(start.measurements, kept, strict=True) if keep)
    full = np.zeros(len(best))
    full[kept] = kept_parts
    variances = table_variances(workload, told.about(precisions(full)))
    return Spending(noise, measured, kept_parts, variances)
