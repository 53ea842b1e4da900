"""Fewest exchanges of labels between a case and a control across a threshold, exactly.

Contract: `to_gain` and `to_lose` as for genotype changes, on tables whose genotypes stay and whose
labels move; UNREACHABLE where no assignment of the labels crosses. Equal to breadth-first search.

An exchange keeps x + y = m, so χ² depends on x alone. Exchanging k pairs at their best moves x by 2
while cases without A1 can meet controls with two copies, then by 1, then not at all; so the fewest
exchanges for a step are in closed form. Landing in a band of insignificant x that holds a single
whole number can fail by one; then all tables with these margins are searched.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from whosin.exact import Array
from whosin.gwas.genotype_changes import reversed_alleles
from whosin.gwas.moves import UNREACHABLE, Moves
from whosin.gwas.tables import allele_counts, group_sizes
from whosin.gwas.threshold import first_above_sharing


def to_gain(counts: Array, c: Fraction) -> Array:
    """The fewest exchanges that make each SNP significant, where no SNP is significant yet."""
    return np.minimum(_gain_above(counts, c), _gain_above(reversed_alleles(counts), c))


def _gain_above(counts: Array, c: Fraction) -> Array:
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    return _raising(counts).cost(np.maximum(first_above_sharing(x + y, r, s, c) - x, 0))


def _raising(counts: Array) -> Moves:
    """Exchanges that raise the cases' allele count: the k-th best one exchanges the case with the
    k-th fewest copies and the control with the k-th most."""
    none, one = counts[:, 0], counts[:, 1]
    other_one, other_two = counts[:, 4], counts[:, 5]
    ones = np.where(
        other_two > none,
        np.minimum(one, other_two - none),
        np.minimum(other_one, none - other_two),
    )
    return Moves(np.minimum(none, other_two), ones)


def to_lose(counts: Array, c: Fraction) -> Array:
    """The fewest exchanges that make each SNP insignificant, where all SNPs are significant."""
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    # Count the allele that is rarer among cases, so that the step is upwards.
    table = np.where((x * s > y * r)[:, None], reversed_alleles(counts), counts)
    x, y = allele_counts(table)
    m = x + y
    highest = first_above_sharing(m, r, s, c) - 1
    lowest = 2 * r - first_above_sharing(2 * (r + s) - m, r, s, c) + 1
    raising = _raising(table)
    fewest = raising.cost(lowest - x)
    landing = x + raising.reach(fewest)
    fewest = np.where(lowest > highest, UNREACHABLE, fewest)
    for row in np.flatnonzero((fewest < UNREACHABLE) & (landing > highest)):
        fewest[row] = _search(table[row], int(lowest[row]), int(highest[row]))
    return fewest


def _search(row: Array, lowest: int, highest: int) -> int:
    """The fewest exchanges to any table with these margins and x in a range."""
    margins, cases = row[:3] + row[3:], row[:3]
    best = int(UNREACHABLE)
    for x in range(lowest, highest + 1):
        two = np.arange(0, margins[2] + 1)
        one = x - 2 * two
        none = cases.sum() - one - two
        fits = (one >= 0) & (one <= margins[1]) & (none >= 0) & (none <= margins[0])
        if fits.any():
            moved = abs(two - cases[2]) + abs(one - cases[1]) + abs(none - cases[0])
            best = min(best, int(moved[fits].min()) // 2)
    return best
