"""What is measured: a table of counts, or differences inside one, in whole numbers.

A measurement (B, D) with D ⊆ B is a table over the attributes of B, in which an attribute of D
stands by its differences: with two values by one number, the first count less the second; with n
values by n·count − total, for each value. So (B, ∅) is the table of counts, and (A, A) is R_A
times whole numbers. Noise is added to every whole number of it, so that no rounding and no
projection of noise enters the price; projecting afterwards is free.

What one person changes (rows of at most `rows` each), in L1 and in L2 squared: an attribute of D
multiplies a person's unit by a vector of L1 norm 2(n−1) and squared L2 norm n(n−1), or by ±1 with
two values. Replacing a person changes it by U − V, where U and V are sums of at most `rows` units
each, so that `rows` equal ones are the worst. In L1 that is at most both together. In squared L2 it
is |u|² + |v|² −
2⟨u, v⟩; ⟨u, v⟩ is the product over D of |·|² where they agree and of −n (−1 with two values) where
not, and is least where they disagree in one attribute of D, that with the fewest values, and agree
in all others. One of the two may be absent, by a condition: the total then changes by one unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.marginals.workload import Attributes, Workload, subsets


@dataclass(frozen=True)
class Measurement:
    """A table, with differences for some of its attributes."""

    attributes: Attributes
    differences: Attributes = ()

    def shape(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the numbers that are measured."""
        return tuple(
            1 if each in self.differences and sizes[each] == 2 else sizes[each]
            for each in self.attributes
        )

    def cells(self, sizes: tuple[int, ...]) -> int:
        """How many numbers are measured."""
        return prod(self.shape(sizes))

    def sensitivity(self, sizes: tuple[int, ...], relation: str, rows: int = 1) -> int:
        """L1: how far one person can move all its numbers together."""
        one = prod(_lengths(sizes[each])[0] for each in self.differences)
        both = 2 if relation == "replace" and self.attributes else 1
        return rows * one * both

    def squared(self, sizes: tuple[int, ...], relation: str, rows: int = 1) -> Fraction:
        """L2, squared."""
        one = Fraction(prod(_lengths(sizes[each])[1] for each in self.differences))
        if relation == "replace" and self.attributes:
            one *= 2
            if self.differences:
                fewest = min(sizes[each] for each in self.differences)
                one *= 1 + Fraction(1, max(fewest - 1, 1))
        return rows**2 * one

    def informs(self, workload: Workload) -> list[tuple[int, float]]:
        """(index of A, what 1/v_B adds to π_A) for each residual that it tells something about."""
        sizes, inside = workload.sizes, set(self.attributes)
        if len(self.attributes) <= MOST_LISTED:
            parts = [part for part in subsets(self.attributes) if part in workload.index_of]
        else:
            parts = [part for part in workload.residuals if inside.issuperset(part)]
        result = []
        for part in parts:
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
                result = _differences(result, axis)
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
        """Plain data, with names for attributes."""
        return {
            "columns": [names[each] for each in self.attributes],
            "differences": [names[each] for each in self.differences],
        }


MOST_LISTED = 12
"""Attributes whose subsets are listed; where there are more, all residuals are looked through
instead."""


def _lengths(size: int) -> tuple[int, int]:
    """(L1, L2 squared) of what one person is among the differences of an attribute."""
    return (1, 1) if size == 2 else (2 * (size - 1), size * (size - 1))


def _differences(counts: Array, axis: int) -> Array:
    size = counts.shape[axis]
    if size == 2:
        first, second = np.split(counts, 2, axis=axis)
        return np.asarray(first - second)
    return np.asarray(size * counts - counts.sum(axis=axis, keepdims=True))
