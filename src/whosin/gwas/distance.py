"""How far a SNP is from the other side of significance (Johnson and Shmatikov 2013).

Contract: `distance_scores` has sensitivity 1 for the relation that it is asked for, so the
exponential mechanism may use it: one genotype change (or one exchange of labels) moves the fewest
changes to the other side by at most one, and crossing goes from 1 to 0.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.gwas import genotype_changes, label_swaps
from whosin.gwas.people import SMALLEST
from whosin.gwas.sensitivities import check_relation
from whosin.gwas.tables import allele_counts, group_sizes, read_counts
from whosin.gwas.threshold import is_above, read_threshold

CHUNK = 1 << 14
"""SNPs at a time: some thirty arrays of this length stay in the cache."""


def distance_scores(counts: object, threshold: object, relation: str = "genotype") -> Array:
    """For a significant SNP the fewest changes that make it insignificant, otherwise 1 − the fewest
    that make it significant.

    Exact, in O(log N) per SNP. A SNP is significant when its allelic χ² is at least the threshold.
    Labels of a SNP's genotypes cannot always be exchanged until it crosses. These SNPs, and all
    tables that exchanges lead to from them, get min(R,S) + 1 beyond significance or −min(R,S)
    below.

    Args:
        counts: SNPs × 6, people with 0, 1, 2 copies of A1 among cases, then among controls.
        threshold: the χ² threshold, above 0 and at most 2N.
        relation: "genotype" (one genotype changes) or "label-swap" (a case and a control exchange).

    >>> distance_scores([[0, 0, 4, 1, 2, 1], [1, 0, 3, 0, 2, 2]], 3.84).tolist()
    [1, -1]
    """
    check_relation(relation)
    table = read_counts(counts)
    r, s = group_sizes(table)
    if len(table) and min(r.min(), s.min()) < SMALLEST:
        raise InvalidInput(
            "counts", f"at least {SMALLEST} cases and controls with a genotype a SNP", "fewer"
        )
    c = read_threshold(threshold, r + s)
    scores = np.empty(len(table), dtype=np.int64)
    for first in range(0, len(table), CHUNK):
        part = slice(first, first + CHUNK)
        scores[part] = _scores(np.asfortranarray(table[part]), c, relation == "label-swap")
    return scores


def significant(counts: Array, c: Fraction) -> Array:
    """Whether the allelic χ² of each SNP is at least c, decided exactly."""
    (r, s), (x, y) = group_sizes(counts), allele_counts(counts)
    return is_above(x, y, r, s, c) | is_above(y, x, s, r, c)


def _scores(table: Array, c: Fraction, swaps: bool) -> Array:
    changes = label_swaps if swaps else genotype_changes
    scores = np.empty(len(table), dtype=np.int64)
    beyond = significant(table, c)
    inside, outside = table[beyond], table[~beyond]
    far_inside, far_outside = (np.minimum(*group_sizes(t)) + 1 for t in (inside, outside))
    scores[beyond] = np.minimum(changes.to_lose(inside, c), far_inside if swaps else 1 << 40)
    scores[~beyond] = 1 - np.minimum(changes.to_gain(outside, c), far_outside if swaps else 1 << 40)
    return scores
