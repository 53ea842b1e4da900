"""What sums of counts say where it also matters which cells were suppressed: table by table (F23).

Contract: every table of counts that fits the sums is made, and only those that are allowed are
summed over, in whole numbers. Where there are more than `MOST_TABLES`, bounds that hold for every
table which fits the sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.rules.elimination import Lines
from whosin.rules.secondary import Pattern
from whosin.rules.sums import (
    MOST_BITS,
    WIDEST,
    AlikePeople,
    Inferred,
    ShownSum,
    count_ends,
    count_weights,
    infer,
    whole_weights,
)

MOST_TABLES = 300_000
"""Tables that are made, at any step, before those that do not fit are left out."""
AT_ONCE = 2_000_000
"""Cells of all tables that are looked at together."""

Allowed = Callable[[Lines], Pattern]
"""Which lines of counts, one for each group, are allowed."""


def infer_allowed(
    groups: Sequence[AlikePeople], seen: Sequence[ShownSum], allowed: Allowed
) -> list[Inferred]:
    """The count of each group, given all that was seen and that the table is an allowed one.

    Raises:
        InvalidInput: no table fits, or none that fits is allowed.
    """
    ends = count_ends(groups, seen)
    free = [g for g, (low, high) in enumerate(ends) if low < high]
    made = None
    if all(ends[g][1] - ends[g][0] <= WIDEST for g in free):
        made = _tables(ends, _in_order(free, seen), seen)
    if made is None:
        return [_bounded(each) for each in infer(groups, seen, share=10)]
    step = max(1, AT_ONCE // max(1, len(groups)))
    kept = []
    for start in range(0, len(made), step):
        lines = _whole_lines(made[start : start + step], ends, free)
        kept.append(made[start : start + step][allowed(lines)])
    fits = np.concatenate(kept) if kept else made
    if not len(fits):
        accepted = "cells that the procedure suppresses for some counts which fit"
        raise InvalidInput("published", accepted, "others")
    weights = _line_weights(groups, seen, ends, free, fits)
    result = [Inferred(low, high, Fraction(low), True) for low, high in ends]
    for column, g in enumerate(free):
        result[g] = _mean(fits[:, column], weights)
    return result


def _bounded(count: Inferred) -> Inferred:
    sure = count.low == count.high
    return Inferred(count.low, count.high, Fraction(count.low) if sure else None, sure)


def _in_order(free: list[int], seen: Sequence[ShownSum]) -> list[int]:
    """The groups in an order in which sums are complete early."""
    waiting, open_sums = set(free), [set(each.groups) & set(free) for each in seen]
    result: list[int] = []
    while waiting:
        shortest = min((each for each in open_sums if each), key=len, default=waiting)
        g = min(shortest)
        result.append(g)
        waiting.discard(g)
        for each in open_sums:
            each.discard(g)
    return result


def _tables(
    ends: Sequence[tuple[int, int]], order: list[int], seen: Sequence[ShownSum]
) -> Lines | None:
    """The counts of all groups in `order`, sorted by group, of every table that fits the sums; None
    where there are too many."""
    columns = {g: column for column, g in enumerate(sorted(order))}
    lines = np.array([[ends[g][0] for g in sorted(order)]], dtype=np.int64)
    done: set[int] = set()
    for g in order:
        low, high = ends[g]
        if len(lines) * (high - low + 1) > MOST_TABLES:
            return None
        lines = np.repeat(lines, high - low + 1, axis=0)
        lines[:, columns[g]] = np.resize(np.arange(low, high + 1), len(lines))
        done.add(g)
        fits = np.ones(len(lines), dtype=bool)
        for each in seen:
            if g in each.groups:
                fixed = sum(ends[m][0] for m in each.groups if m not in columns)
                total = fixed + lines[:, [columns[m] for m in each.groups if m in columns]].sum(1)
                slack = sum(ends[m][1] - ends[m][0] for m in each.groups if m not in done)
                fits &= (total <= max(each.likely)) & (total + slack >= min(each.likely))
                if not slack:
                    fits &= np.isin(total, [sum_ for sum_, p in each.likely.items() if p])
        lines = lines[fits]
    return lines


def _whole_lines(lines: Lines, ends: Sequence[tuple[int, int]], free: list[int]) -> Lines:
    """The counts of all groups."""
    result = np.tile(np.array([low for low, _ in ends], dtype=np.int64), (len(lines), 1))
    result[:, free] = lines
    return result


def _line_weights(
    groups: Sequence[AlikePeople],
    seen: Sequence[ShownSum],
    ends: Sequence[tuple[int, int]],
    free: list[int],
    fits: Lines,
) -> Array:
    """How likely each line is, with what was seen, up to a factor: whole numbers."""
    result = np.ones(len(fits), dtype=object)
    for column, g in enumerate(free):
        weights = count_weights(groups[g], *ends[g], [])
        assert weights is not None
        result = result * weights[fits[:, column] - ends[g][0]]
    columns = {g: column for column, g in enumerate(free)}
    for each in seen:
        members = [columns[g] for g in each.groups if g in columns]
        if len(each.likely) > 1 and members:
            fixed = sum(ends[g][0] for g in each.groups if g not in columns)
            totals, which = np.unique(fixed + fits[:, members].sum(1), return_inverse=True)
            shares = [each.likely[total] for total in totals.tolist()]
            result = result * whole_weights(shares)[which.reshape(-1)]
    return result // math.gcd(*result)


def _mean(counts: Lines, weights: Array) -> Inferred:
    values, which = np.unique(counts, return_inverse=True)
    sums = np.zeros(len(values), dtype=object)
    np.add.at(sums, which.reshape(-1), weights)
    mean = Fraction(int(sum(sums * values.tolist())), int(sum(sums)))
    ends = int(values[0]), int(values[-1])
    if mean.denominator.bit_length() > MOST_BITS:
        return Inferred(*ends, float(mean), False)
    return Inferred(*ends, mean, True)
