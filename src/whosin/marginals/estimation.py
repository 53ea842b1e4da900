"""Estimate all marginals at once (F20): variances, residuals, intervals, whole tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, prod
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes, Workload, list_subsets, sum_cells

# What is measured: a table of counts, or differences inside one, in whole numbers.
#
# A measurement (B, D) with D ⊆ B is a table over the attributes of B, in which an attribute of D
# stands by its differences: with two values by one number, the first count less the second; with n
# values by n·count − total, for each value. So (B, ∅) is the table of counts, and (A, A) is R_A
# times whole numbers. Noise is added to every whole number of it, so that no rounding and no
# projection of noise enters the price; projecting afterwards is free.
#
# What one person changes (rows of at most `rows` each), in L1 and in L2 squared: an attribute of D
# multiplies a person's unit by a vector of L1 norm 2(n−1) and squared L2 norm n(n−1), or by ±1 with
# two values. Replacing a person changes it by U − V, where U and V are sums of at most `rows` units
# each, so that `rows` equal ones are the worst. In L1 that is at most both together. In squared L2
# it is |u|² + |v|² − 2⟨u, v⟩; ⟨u, v⟩ is the product over D of |·|² where they agree and of −n (−1
# with two values) where not, and is least where they disagree in one attribute of D, that with the
# fewest values, and agree in all others. One of the two may be absent, by a condition: the total
# then changes by one unit.


@dataclass(frozen=True)
class Measurement:
    """A table, with differences for some of its attributes."""

    attributes: Attributes
    differences: Attributes = ()

    def shape(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(
            1 if each in self.differences and sizes[each] == 2 else sizes[each]
            for each in self.attributes
        )

    def cells(self, sizes: tuple[int, ...]) -> int:
        return prod(self.shape(sizes))

    def l1_sensitivity(self, sizes: tuple[int, ...], relation: str, rows: int = 1) -> int:
        """L1: how far one person can move all its numbers together."""
        one = prod(_difference_sensitivities(sizes[each])[0] for each in self.differences)
        both = 2 if relation == "replace" and self.attributes else 1
        return rows * one * both

    def squared_l2_sensitivity(
        self, sizes: tuple[int, ...], relation: str, rows: int = 1
    ) -> Fraction:
        one = Fraction(prod(_difference_sensitivities(sizes[each])[1] for each in self.differences))
        if relation == "replace" and self.attributes:
            one *= 2
            if self.differences:
                fewest = min(sizes[each] for each in self.differences)
                one *= 1 + Fraction(1, max(fewest - 1, 1))
        return rows**2 * one

    def informs(self, workload: Workload) -> list[tuple[int, float]]:
        """(index of A, what 1/v_B adds to π_A) for each residual that it tells something about."""
        sizes, inside = workload.sizes, set(self.attributes)
        result = []
        for part in (part for part in workload.residuals if inside.issuperset(part)):
            if set(self.differences).issubset(part):
                gain = prod(2.0 if sizes[i] == 2 else sizes[i] ** 2 for i in self.differences)
                summed = prod(sizes[j] for j in inside.difference(part))
                result.append((workload.index_of[part], gain / summed))
        return result

    def of_counts(self, counts: Array) -> Array:
        """The exact whole numbers, from the table of counts over its attributes."""
        result = counts
        for axis, each in enumerate(self.attributes):
            if each in self.differences:
                result = _take_differences(result, axis)
        return result

    def residual(self, values: Array, part: Attributes, sizes: tuple[int, ...]) -> Array:
        """R_A from measured numbers; axes before those of the table are carried along."""
        start = values.ndim - len(self.attributes)
        drop = tuple(start + at for at, each in enumerate(self.attributes) if each not in part)
        result = values.sum(axis=drop, dtype=np.float64) if drop else values.astype(np.float64)
        for axis, each in enumerate(part, start):
            if each in self.differences and sizes[each] == 2:
                result = np.concatenate([result, -result], axis=axis) / 2
            else:
                if each in self.differences:
                    result = result / sizes[each]
                result = result - result.mean(axis=axis, keepdims=True)
        return result

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {
            "columns": [names[each] for each in self.attributes],
            "differences": [names[each] for each in self.differences],
        }


MAX_LISTED_ATTRIBUTES = 12
"""Attributes whose subsets are listed; where there are more, all residuals are looked through
instead."""


def _difference_sensitivities(size: int) -> tuple[int, int]:
    """(L1, L2 squared) of what one person is among the differences of an attribute."""
    return (1, 1) if size == 2 else (2 * (size - 1), size * (size - 1))


def _take_differences(counts: Array, axis: int) -> Array:
    size = counts.shape[axis]
    if size == 2:
        first, second = np.split(counts, 2, axis=axis)
        return np.asarray(first - second)
    return np.asarray(size * counts - counts.sum(axis=axis, keepdims=True))


# How exact tables will be, before anything is measured: F20.
#
# The best linear unbiased estimate of every table C has, in every cell, the variance Σ_{A⊆C}
# ∏_{i∈A}(1−1/n_i) ∏_{j∈C∖A} n_j^−2 / π_A, where π_A adds up what each measurement tells about R_A.
# The estimated R_A has the covariance ⊗_{i∈A}(I − 1/n_i) / π_A, and those of different A are
# uncorrelated; so a product of sums, of l_i cells each, has the variance Σ_{A⊆C}
# ∏_{i∈A}(l_i − l_i²/n_i) ∏_{j∈C∖A} (l_j/n_j)² / π_A.


class Information:
    """What measurements tell about the residuals of a workload: the matrix that takes 1/v_B to π_A,
    by its entries."""

    def __init__(self, workload: Workload, measurements: Sequence[Measurement]) -> None:
        self.workload, self.measurements = workload, tuple(measurements)
        alike: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        found: list[tuple[list[int] | Array, list[int] | Array, list[float] | Array]] = []
        for number, each in enumerate(self.measurements):
            if len(each.attributes) > MAX_LISTED_ATTRIBUTES:
                told = each.informs(workload)
                places = [at for at, _ in told]
                found.append((places, [number] * len(told), [gain for _, gain in told]))
                continue
            differences = tuple(map(each.attributes.index, each.differences))
            alike.setdefault((len(each.attributes), differences), []).append(number)
        for (length, differences), numbers in alike.items():
            found += self._subset_gains(np.array(numbers, np.int64), length, differences)
        residuals, measured, gains = (
            np.concatenate([np.asarray(each[part]) for each in found]) for part in range(3)
        )
        # By measurement, and by residual, where smaller sets come first.
        order = np.lexsort((residuals, measured))
        self.residuals, self.numbers = residuals[order].astype(np.int64), measured[order]
        self.gains = gains[order].astype(np.float64)

    def _subset_gains(
        self, numbers: Array, length: int, differences: tuple[int, ...]
    ) -> list[tuple[Array, Array, Array]]:
        """(residuals, measurements, gains), all measurements of one form at once: for each choice
        of their attributes, which has those of the differences."""
        sizes, index_of = np.array(self.workload.sizes, np.int64), self.workload.index_of
        held = np.array([self.measurements[each].attributes for each in numbers], np.int64)
        held = held.reshape(len(numbers), length)
        counts = sizes[held].astype(np.float64)
        own = counts[:, differences]
        gains = np.where(own == 2, 2.0, own**2).prod(axis=1)
        result = []
        for kept in list_subsets(tuple(range(length))):
            if not set(differences).issubset(kept):
                continue
            parts = map(tuple, held[:, kept].tolist())
            places = np.array([index_of.get(part, -1) for part in parts], np.int64)
            left = [place for place in range(length) if place not in kept]
            told = gains / counts[:, left].prod(axis=1)
            known = places >= 0
            result.append((places[known], numbers[known], told[known]))
        return result

    def about(self, precisions: Array) -> Array:
        """π_A from the precisions 1/v_B."""
        told = self.gains * precisions[self.numbers]
        return np.bincount(self.residuals, told, len(self.workload.residuals))

    def back(self, worths: Array) -> Array:
        """For each measurement the sum of what its residuals are worth, by what it tells."""
        result = self.gains * worths[self.residuals]
        return np.bincount(self.numbers, result, len(self.measurements))


def table_variances(workload: Workload, about: Array) -> Array:
    """The variance of a cell of each table, from π; infinite where a residual is not known. For
    sums it is the mean."""
    tables, residuals, factors = workload.uses
    with np.errstate(divide="ignore"):
        each = factors / about[residuals]
    return np.bincount(tables, each, len(workload.sets))


def cell_variances(
    workload: Workload, measurements: Sequence[Measurement], variances: Sequence[float]
) -> Array:
    """The variance of a cell of each table, for noise of some variance a number; for sums
    the mean."""
    about = Information(workload, measurements).about(1 / np.asarray(variances, np.float64))
    return table_variances(workload, about)


def sum_variances(
    workload: Workload, measurements: Sequence[Measurement], variances: Sequence[float]
) -> dict[int, Array]:
    """The variance of each sum of each table that asks for sums, by the table's number."""
    about = Information(workload, measurements).about(1 / np.asarray(variances, np.float64))
    asked = [number for number in range(len(workload.sets)) if not workload.alike(number)]
    return {number: _each_variance(workload, about, number) for number in asked}


def _each_variance(workload: Workload, about: Array, number: int) -> Array:
    attributes = workload.sets[number]
    inside, evenly = {}, {}
    for each, sums in zip(attributes, workload.sums[number], strict=True):
        size = workload.sizes[each]
        inside[each] = np.full(size, 1 - 1 / size) if sums is None else sums.within
        evenly[each] = np.full(size, size**-2.0) if sums is None else sums.evenly
    result = np.zeros(workload.asked(number))
    for part in list_subsets(attributes):
        factor = np.ones(())
        for each in attributes:
            factor = np.multiply.outer(factor, inside[each] if each in part else evenly[each])
        with np.errstate(divide="ignore", invalid="ignore"):
            told = factor / about[workload.index_of[part]]
        result += np.where(factor > 0, told, 0.0)
    return result


def optimal_variance(workload: Workload, rho: float) -> float:
    """The least mean variance of any linear Gaussian mechanism of ρ-zCDP, where one person is one
    row, and is there or not: (Σ_A √(c_A p_A))² / 2ρ."""
    roots = np.sqrt(workload.importance() * workload.spread)
    return float(roots.sum() ** 2 / (2 * rho))


# All tables from one estimate: each residual by the mean of what measurements say about it,
# weighted by what each tells, and each table by its residuals.
#
# This is generalised least squares (F20), so it is unbiased, has the least variance of all linear
# estimates, and its tables agree wherever they share attributes.


def estimate_residuals(
    workload: Workload,
    measurements: Sequence[Measurement],
    variances: Sequence[float],
    values: Sequence[Array],
) -> dict[Attributes, Array]:
    """The residuals; arrays whose axes before those of the table are carried along.

    Args:
        variances: the variance of the noise of a number, for each measurement.
        values: the measured numbers, in the shape of each measurement.
    """
    told = Information(workload, measurements)
    precisions = 1 / np.asarray(variances, np.float64)
    about = told.about(precisions)
    result: dict[Attributes, Array] = {}
    for at, number, gain in zip(told.residuals, told.numbers, told.gains, strict=True):
        part = workload.residuals[at]
        share = gain * precisions[number] / about[at]
        one = share * measurements[number].residual(values[number], part, workload.sizes)
        result[part] = result[part] + one if part in result else one
    return result


def estimate_tables(workload: Workload, residuals: dict[Attributes, Array]) -> list[Array]:
    """The tables, or sums of their cells, in the order of the workload."""
    return [
        sum_cells(estimate_table(workload, residuals, each), sums)
        for each, sums in zip(workload.sets, workload.sums, strict=True)
    ]


def estimate_table(
    workload: Workload, residuals: dict[Attributes, Array], attributes: Attributes
) -> Array:
    """The cells of one table: Σ_{A ⊆ C} R_A, each spread evenly over the attributes that it does
    not have."""
    carried = residuals[()].shape
    total = np.zeros((*carried, *workload.shape(attributes)))
    for part in list_subsets(attributes):
        axes = [workload.sizes[each] if each in part else 1 for each in attributes]
        over = prod(workload.sizes[each] for each in attributes if each not in part)
        total += residuals[part].reshape((*carried, *axes)) / over
    return total


# Tables of whole numbers, none below 0, with the same total in each.
#
# Post-processing of the estimate, free of charge and biased: cells that are truly 0 come out at 0
# or above, never below.
#
# A table of one attribute is the closest one, in least squares, with no cell below 0 and the common
# total. A larger table starts where its attributes would be independent, and moves towards its
# estimate by exponentiated gradients, which keep cells positive, until what is left is no more than
# noise: many cells of a large table are nearly empty, and there the closest table would follow the
# noise. Where it does not come that near, it is the closest table too. Then cells are rounded so
# that the total stays.


EXPLAINED_SHARE = 0.6
"""The share of the noise's expected square that may be left between a table and its estimate."""
NEARLY_FACTOR = 1.1
"""Times what is left by the closest table, which need not be reached."""
MAX_FIT_STEPS = 100
MIN_ERROR = 0.5
"""People in a margin, so that no cell starts at 0."""


def whole_tables(tables: Sequence[Array], variances: Sequence[float], total: float) -> list[Array]:
    """The whole version of some tables.

    Args:
        variances: the variance of a cell, for each estimate.
        total: the estimate of how many there are in all.
    """
    people = max(0, round(float(total)))
    result = []
    for table, variance in zip(tables, variances, strict=True):
        fitted = project_to_simplex(table.ravel(), people).reshape(table.shape)
        if table.ndim > 1 and people:
            least = float(((fitted - table) ** 2).sum())
            allowed = max(EXPLAINED_SHARE * float(variance) * table.size, NEARLY_FACTOR * least)
            fitted = _move_to_estimate(table, people, allowed, float(variance) ** 0.5, fitted)
        result.append(_round_to_total(fitted.ravel(), people).reshape(table.shape))
    return result


def _move_to_estimate(
    table: Array, total: int, allowed: float, error: float, closest: Array
) -> Array:
    """From independence towards the estimate, until no more than `allowed` is left; the closest
    table where that takes too long."""
    fit = _independent_table(table, total)
    square = float(((fit - table) ** 2).sum())
    rate = 1 / (float(fit.max()) + error)
    for _ in range(MAX_FIT_STEPS):
        if square <= allowed:
            return fit
        moved = fit * np.exp(np.clip(rate * (table - fit), -5.0, 5.0))
        moved *= total / moved.sum()
        left = float(((moved - table) ** 2).sum())
        if left < square:
            fit, square, rate = moved, left, rate * 1.3
        else:
            rate /= 2
    return fit if square <= allowed else closest


def _independent_table(table: Array, total: int) -> Array:
    """The table that the margins of an estimate would have if attributes were independent."""
    result = np.array(float(total))
    for axis in range(table.ndim):
        others = tuple(each for each in range(table.ndim) if each != axis)
        margin = np.maximum(project_to_simplex(table.sum(axis=others), total), MIN_ERROR)
        result = np.multiply.outer(result, margin / margin.sum())
    return result


def project_to_simplex(cells: Array, total: float) -> Array:
    """The closest point, in least squares, whose coordinates are at least 0 and add up: all cells
    less a constant, those that would be below 0 set to it."""
    if not total:
        return np.zeros(cells.size)
    falling = np.sort(cells)[::-1]
    sums = (np.cumsum(falling) - total) / np.arange(1, cells.size + 1)
    kept = int(np.flatnonzero(falling > sums)[-1])
    return np.asarray(np.maximum(cells - sums[kept], 0.0))


def _round_to_total(cells: Array, total: int) -> Array:
    """Down, then one more for those with the largest remainders, until the total is there."""
    result = np.floor(cells).astype(np.int64)
    rest = total - int(result.sum())
    order = np.argsort(result - cells, kind="stable")
    if rest > 0:
        result[order[:rest]] += 1
    for index in order[::-1][: max(-rest, 0)]:  # only where sums of floats are off by a unit
        result[index] -= result[index] > 0
    return result


# How far the estimate may be from the truth: for each cell, and for all cells of a table at once.
#
# The noise does not depend on the data, so its error can be drawn again: K copies of the measured
# noise go through the same estimate. The radii hold with at least the stated probability, whatever
# K is, counting the copies' own chance too; no limit theorem is used.
#
# *All cells.* The largest errors of the K copies and the true one are exchangeable, so the true one
# is at most the k-th least of the copies' with probability k/(K+1).
# *Each cell.* Let F_j(r) be the share of a copy's cells that are off by more than r, and r the
# least radius with (1 + Σ_j F_j(r)) / (K+1) ≤ α. With the true errors instead of the 1 the least
# radius would be smaller, and by exchangeability the mean of F at that one is at most α. All cells
# of a table have the same error distribution, since noise is alike in all cells and symmetric, and
# the estimate commutes with renaming the values of an attribute; so α holds for each of them, and a
# few cells of a large table are enough to find r.
# *Sums.* The error of a sum depends on how many cells it has, attribute by attribute, and on
# nothing else, for the same reason: one sum of each kind is looked at. All sums of a table are
# compared in units of their standard errors, which are public, so that each has its own radius.


COPY_COUNTS = (199, 99, 39)
"""How many copies to draw, as many as stay within the limit of numbers."""
MAX_DRAWN_NUMBERS = 5 * 10**6
MAX_HELD_NUMBERS = 2 * 10**6
"""Numbers that are held at a time."""
RADIUS_CELLS = 64
"""Cells of a table that give the radius of each of its cells."""
Draw = Callable[[int, tuple[int, ...]], Array]
"""Noise for a measurement, by its number, in a shape."""


@dataclass(frozen=True)
class IntervalRadii:
    """The radii of one table's intervals.

    Attributes:
        cell: each cell of it is this close, with the stated probability.
        table: all cells of it are this close, likewise. Both are a number for each sum where
            sums are asked, since these are not equally exact.
    """

    cell: float | Array
    table: float | Array


def interval_radii(
    workload: Workload,
    measurements: Sequence[Measurement],
    variances: Sequence[float],
    draw: Draw,
    confidence: float = 0.95,
    copies: int | None = None,
) -> list[IntervalRadii]:
    """The radii of each table, from copies of the noise.

    Args:
        draw: draws noise of the same distribution as the measured one had.
        copies: K; by default as many as are cheap. With fewer the radii are larger.
    """
    numbers = sum(each.cells(workload.sizes) for each in measurements)
    count = copies or next(
        (k for k in COPY_COUNTS if k * numbers <= MAX_DRAWN_NUMBERS), COPY_COUNTS[-1]
    )
    most_cells = max(prod(workload.asked(number)) for number in range(len(workload.sets)))
    block = max(1, min(count, MAX_HELD_NUMBERS // max(numbers, most_cells, 1)))
    errors = {
        number: np.sqrt(each)
        for number, each in sum_variances(workload, measurements, variances).items()
    }
    seen = [
        _TableErrors(workload, number, errors.get(number), count, confidence)
        for number in range(len(workload.sets))
    ]
    for start in range(0, count, block):
        size = min(block, count - start)
        noise = [
            draw(number, (size, *each.shape(workload.sizes)))
            for number, each in enumerate(measurements)
        ]
        residuals = estimate_residuals(workload, measurements, variances, noise)
        for number, attributes in enumerate(workload.sets):
            table = estimate_table(workload, residuals, attributes)
            seen[number].look(np.abs(sum_cells(table, workload.sums[number])))
    return [each.radii() for each in seen]


class _TableErrors:
    """Errors of copies of a table: the largest of each copy, for sums in standard errors; and of
    one sum of each kind, or of a few cells together, the largest ones, the least of which is the
    radius. That is the least r with (1 + Σ F_j(r))/(K+1) at most 1 − confidence.

    Args:
        errors: the standard errors of a table of sums; None for one of cells.
    """

    def __init__(
        self,
        workload: Workload,
        number: int,
        errors: Array | None,
        copies: int,
        confidence: float,
    ) -> None:
        self.errors, self.confidence = errors, confidence
        self.cells = min(RADIUS_CELLS, prod(workload.asked(number))) if errors is None else 1
        beyond = floor(self.cells * ((1 - confidence) * (copies + 1) - 1) + 1e-9)
        self.kept = max(beyond + 1, 0)  # 0 where there are too few copies for any radius
        self.largest: list[Array] = []
        asked = list(zip(workload.asked(number), workload.sums[number], strict=True))
        self.kinds = [np.zeros(1, int) if each is None else each.kinds for _, each in asked]
        self.kind_of = [
            np.zeros(size, int) if each is None else each.kind_of for size, each in asked
        ]
        self.looked = np.zeros((0, *map(len, self.kinds)))

    def look(self, errors: Array) -> None:
        flat = (errors if self.errors is None else errors / self.errors).reshape(len(errors), -1)
        self.largest.append(flat.max(axis=1))
        if self.errors is None:
            errors = flat[:, : self.cells].reshape(-1, *self.looked.shape[1:])
        else:
            for axis, each in enumerate(self.kinds, 1):
                errors = errors.take(each, axis=axis)
        both = np.sort(np.concatenate([self.looked, errors]), axis=0)
        self.looked = both[max(len(both) - self.kept, 0) :]

    def radii(self) -> IntervalRadii:
        joint = _joint_radius(np.concatenate(self.largest), self.confidence)
        cell = self.looked[0] if self.kept else np.full(self.looked.shape[1:], np.inf)
        if self.errors is None:
            return IntervalRadii(float(cell.item()), joint)
        for axis, each in enumerate(self.kind_of):
            cell = cell.take(each, axis=axis)
        return IntervalRadii(cell, self.errors * joint)


def _joint_radius(largest: Array, confidence: float) -> float:
    """The k-th least, k/(K+1) being the confidence or more."""
    copies = len(largest)
    rank = ceil(confidence * (copies + 1) - 1e-9)
    return float(np.sort(largest)[rank - 1]) if rank <= copies else float("inf")
