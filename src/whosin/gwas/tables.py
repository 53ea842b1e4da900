"""Genotype tables: reading counts that a caller hands over.

Contract: counts are SNPs × 6, people with 0, 1, 2 copies of A1 among cases, then among controls.
Rows may have fewer people than the groups (missing genotypes), never more.
"""

from __future__ import annotations

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array

LARGEST = 1 << 28
"""Groups beyond some hundred million people would not fit the arithmetic."""


def read_counts(counts: object) -> Array:
    """Counts as an int64 array, checked."""
    try:
        given = np.asarray(counts)
    except ValueError:
        raise InvalidInput(
            "counts", "an array of SNPs × 6 numbers", "rows of unequal length"
        ) from None
    if given.ndim != 2 or given.shape[1] != 6:
        raise InvalidInput("counts", "an array of SNPs × 6 numbers", f"shape {given.shape}")
    if given.dtype.kind not in "iuf" and given.size:
        raise InvalidInput("counts", "whole numbers", f"an array of {given.dtype}")
    with np.errstate(invalid="ignore"):
        whole = given.astype(np.int64)
    if (whole != given).any():
        raise InvalidInput("counts", "whole numbers", "others")
    if (whole < 0).any():
        raise InvalidInput("counts", "at least 0", "negative ones")
    if (whole > LARGEST).any():
        raise InvalidInput("counts", f"at most {LARGEST}", "larger ones")
    return whole


def group_sizes(counts: Array) -> tuple[Array, Array]:
    """People with a known genotype among cases and among controls, for every SNP."""
    return counts[:, :3].sum(axis=1), counts[:, 3:].sum(axis=1)


def allele_counts(counts: Array) -> tuple[Array, Array]:
    """Copies of A1 among cases (x) and among controls (y), for every SNP."""
    return counts[:, 1] + 2 * counts[:, 2], counts[:, 4] + 2 * counts[:, 5]


def complete(counts: Array, cases: int, controls: int) -> Array:
    """The same people without missing genotypes: a missing one is read as no copy of A1.

    A release needs tables of one public size; which genotypes are missing is private.
    """
    first, second = group_sizes(counts)
    over = (first > cases) | (second > controls)
    if over.any():
        raise InvalidInput(
            "counts", f"at most {cases} cases and {controls} controls a SNP", "more people"
        )
    whole = counts.copy()
    whole[:, 0] += cases - first
    whole[:, 3] += controls - second
    return whole
