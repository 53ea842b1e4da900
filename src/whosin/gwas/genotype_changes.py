"""Fewest genotype changes across a threshold of the allelic χ², exactly.

Contract: `to_gain` for SNPs that are not significant, `to_lose` for those that are; both equal
breadth-first search over tables (the tests do that on every small table).

Both orient a table so that A1 is, or shall be, more frequent among cases: x copies among R cases,
z = 2S − y copies of the *other* allele among S controls. Changing k1 cases and k2 controls moves x
and z by at most `Moves.reach`. To gain significance the corner (x + …, z + …) must be above; the
region that is not above is convex, so for each k only the ends and breaks of the split k = k1 + k2
matter, and at each of those one coordinate is known and the other solves a quadratic.

To lose it, the corner (x − …, z − …) must leave the region above. G = D − √(cRS m(2N−m)/2N) is
convex along each linear piece of the split, with its minimum at one fixed m a piece, so the two
whole splits around it settle a k. The least k is at or just after the optimum over fractions of
people, which is in closed form. A corner can jump over the band of insignificant tables to the
other side; then every table of the row is searched.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from whosin.exact import Array
from whosin.gwas.moves import UNREACHABLE, Moves, cost_between
from whosin.gwas.tables import allele_counts, group_sizes
from whosin.gwas.threshold import boundary, first_above, is_above

STEPS = ((2, 2), (2, 1), (1, 2), (1, 1))


def reversed_alleles(counts: Array) -> Array:
    """The same people, with the other allele counted."""
    return counts[:, [2, 1, 0, 5, 4, 3]]


def to_gain(counts: Array, c: Fraction) -> Array:
    """The fewest changes that make each SNP significant, where no SNP is significant yet."""
    return np.minimum(_gain_above(counts, c), _gain_above(reversed_alleles(counts), c))


def _gain_above(counts: Array, c: Fraction) -> Array:
    """The fewest changes that make A1 significantly more frequent among cases."""
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    cases, controls = Moves(counts[:, 0], counts[:, 1]), Moves(counts[:, 5], counts[:, 4])
    z = 2 * s - y
    best = _one_side(x, z, cases, controls, r, s, c)
    return np.minimum(best, _one_side(z, x, controls, cases, s, r, c))


def _one_side(
    x: Array, z: Array, mine: Moves, others: Moves, r: Array, s: Array, c: Fraction
) -> Array:
    """The same where the other group makes no change, all its twos, or all that it can."""
    best = np.full(len(x), UNREACHABLE)
    for step, cost in (
        (np.zeros_like(z), np.zeros_like(z)),
        (2 * others.twos, others.twos),
        (others.most, others.twos + others.ones),
    ):
        needed = first_above(2 * s - z - step, r, s, c)
        best = np.minimum(best, cost + mine.cost(np.maximum(needed - x, 0)))
    return best


def to_lose(counts: Array, c: Fraction) -> Array:
    """The fewest changes that make each SNP insignificant, where all SNPs are significant."""
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    table = np.where((x * s > y * r)[:, None], counts, reversed_alleles(counts))
    fewest, jumped = _leave(table, c)
    for row in np.flatnonzero(jumped):
        fewest[row] = _search(table[row], c)
    return fewest


def _leave(counts: Array, c: Fraction) -> tuple[Array, Array]:
    """The fewest changes whose corner is no longer above, and where none of these corners is
    insignificant."""
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    cases, controls = Moves(counts[:, 2], counts[:, 1]), Moves(counts[:, 3], counts[:, 4])
    turns = _turns(r, s, c)
    rows = _Rows(x, y, r, s, cases, controls, turns, c)
    fewest = np.ceil(_real_changes(rows) * (1 - 1e-9) - 1e-6).astype(np.int64)
    result = np.zeros(len(x), dtype=bool)
    open_ = np.arange(len(x))
    while len(open_):  # whole people need at most a few more than fractions of them
        left, inside = rows.take(open_).splits(fewest[open_])
        result[open_] = inside
        open_ = open_[~left]
        fewest[open_] += 1
    return fewest, ~result


def _turns(r: Array, s: Array, c: Fraction) -> Array:
    """m where G is least along splits, by how far a case and a control move: 2 and 2, 2 and 1,
    1 and 2, 1 and 1."""
    n = (r + s).astype(float)
    kappa = np.sqrt(float(c) * r * s / (2 * n))
    result = []
    for mine, others in STEPS:
        # One more changed case and one fewer control: D and m change by these.
        slope = (others * r - mine * s) / (kappa * (mine + others))
        result.append(n + n * slope / np.hypot(1.0, slope))
    return np.array(result)


def _real_changes(rows: _Rows) -> Array:
    """The fewest changes if fractions of people could change: a convex problem, whose optimum is
    where a group makes no change or all its twos, or on the boundary where G turns."""
    x, y, r, s, c = rows.x, rows.y, rows.r, rows.s, rows.c
    z, n = 2 * s - y, (r + s).astype(float)
    best = np.full(len(x), np.inf)
    for moved in (np.zeros_like(y), 2 * rows.controls.twos, rows.controls.most):
        step = x - boundary(y + moved, r, s, c)
        best = np.minimum(best, rows.controls.real_cost(moved) + rows.cases.real_cost(step))
    for moved in (np.zeros_like(x), 2 * rows.cases.twos, rows.cases.most):
        step = z - boundary(2 * r - x + moved, s, r, c)
        best = np.minimum(best, rows.cases.real_cost(moved) + rows.controls.real_cost(step))
    for m in rows.turns:
        gap = np.sqrt(float(c) * r * s * (m * (2 * n - m)) / (2 * n))
        at = (m * r + gap) / n
        down, up = x - at, m - at - y
        cost = rows.cases.real_cost(down) + rows.controls.real_cost(up)
        best = np.where((down >= 0) & (up >= 0), np.minimum(best, cost), best)
    return best


@dataclass(frozen=True, eq=False)
class _Rows:
    """Tables with A1 significantly more frequent among cases, and how each group can change."""

    x: Array
    y: Array
    r: Array
    s: Array
    cases: Moves
    controls: Moves
    turns: Array
    c: Fraction

    def take(self, which: Array) -> _Rows:
        if len(which) == len(self.x):
            return self
        x, y, r, s = (v[which] for v in (self.x, self.y, self.r, self.s))
        moves = self.cases.take(which), self.controls.take(which)
        return _Rows(x, y, r, s, *moves, self.turns[:, which], self.c)

    def splits(self, k: Array) -> tuple[Array, Array]:
        """Whether k changes can leave the region above, and whether a corner where they do is
        insignificant, not beyond it."""
        x, y, r, s, cases, controls = self.x, self.y, self.r, self.s, self.cases, self.controls
        least = np.maximum(k - controls.twos - controls.ones, 0)
        most = np.minimum(k, cases.twos + cases.ones)
        first = np.clip(cases.twos, least, most)
        second = np.clip(k - controls.twos, least, most)
        breaks = (least, np.minimum(first, second), np.maximum(first, second), most)
        left, inside = np.zeros(len(k), dtype=bool), np.zeros(len(k), dtype=bool)
        for start, end in pairwise(breaks):
            # On this piece both steps are constant: 2 until a group's twos are used up, then 1.
            mine = np.where(end <= cases.twos, 2, 1)
            others = np.where(k - start <= controls.twos, 2, 1)
            turn = self.turns[2 * (mine == 1) + (others == 1), np.arange(len(k))]
            m = x - cases.reach(start) + y + controls.reach(k - start)
            best = start + np.floor((m - turn) / (mine + others)).astype(np.int64)
            for split in (np.clip(best, start, end), np.clip(best + 1, start, end)):
                nx, ny = x - cases.reach(split), y + controls.reach(k - split)
                out = ~is_above(nx, ny, r, s, self.c)
                left |= out
                inside |= out & (nx * s >= ny * r)
                (far,) = np.nonzero(out & ~inside)
                if len(far):  # beyond the diagonal, perhaps still in the band
                    inside[far] = ~is_above(ny[far], nx[far], s[far], r[far], self.c)
        return left, inside


def _search(row: Array, c: Fraction) -> int:
    """The fewest changes to any insignificant table, over all tables of one row."""
    if row[:3].sum() > row[3:].sum():
        row = row[[5, 4, 3, 2, 1, 0]]  # walk through the smaller group's counts
    table = row[None, :]
    ((r,), (s,)), ((x,), (y,)) = group_sizes(table), allele_counts(table)
    targets = np.arange(0, 2 * r + 1)
    ones = np.ones_like(targets)
    highest = np.minimum(first_above(targets, s * ones, r * ones, c) - 1, 2 * s)
    lowest = np.maximum(2 * s - first_above(2 * r - targets, s * ones, r * ones, c) + 1, 0)
    up, down = Moves(row[0] * ones, row[1] * ones), Moves(row[2] * ones, row[1] * ones)
    mine = cost_between(targets, x * ones, up, down)
    up, down = Moves(row[3] * ones, row[4] * ones), Moves(row[5] * ones, row[4] * ones)
    nearest = np.clip(y * ones, lowest, np.maximum(highest, lowest))
    others = cost_between(nearest, y * ones, up, down)
    total = np.where(lowest <= highest, mine + others, UNREACHABLE)
    return int(total.min())
