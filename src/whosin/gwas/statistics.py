"""Association statistics of genotype tables, exact values rounded once.

Contract: SNPs on which nothing varies have χ² = 0, never NaN. Everything here looks at the exact
counts: it is the curator's, and is published only through a release.
"""

from __future__ import annotations

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array
from whosin.gwas.tables import allele_counts, group_sizes, read_counts
from whosin.validation import whole


def allelic_chi2(counts: object) -> Array:
    """χ² of the 2×2 table of alleles: 2N (xS − yR)² / (R S (x+y)(2N−x−y)), 0 where nothing varies.

    Where x, y = copies of A1 among the R cases and S controls, N = R + S.
    """
    table = read_counts(counts)
    (x, y), (r, s) = allele_counts(table), group_sizes(table)
    n, m = r + s, x + y
    gap = (x * s - y * r).astype(float)
    below = r.astype(float) * s * m * (2 * n - m)
    return _ratio(2.0 * n * gap * gap, below)


def genotypic_chi2(counts: object) -> Array:
    """χ² of the 3×2 table of genotypes: Σ over genotypes g of (S a_g − R b_g)² / (R S (a_g + b_g)).

    Where a_g, b_g = cases and controls with genotype g; genotypes that nobody has add nothing.
    """
    table = read_counts(counts)
    r, s = group_sizes(table)
    cases, controls = table[:, :3], table[:, 3:]
    gap = (cases * s[:, None] - controls * r[:, None]).astype(float)
    below = (cases + controls) * (r.astype(float) * s)[:, None]
    total: Array = _ratio(gap * gap, below).sum(axis=1)
    return total


def frequencies(counts: object) -> tuple[Array, Array]:
    """Frequencies of A1 among cases and controls (F_A, F_U); NaN where no genotype is known."""
    table = read_counts(counts)
    (x, y), (r, s) = allele_counts(table), group_sizes(table)
    with np.errstate(invalid="ignore"):
        return x / (2.0 * r), y / (2.0 * s)


def p_values(chi2: object, degrees: int = 1) -> Array:
    """Upper tails of the χ² distribution."""
    from scipy.special import chdtrc

    try:
        values = np.asarray(chi2, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("chi2", "numbers", type(chi2).__name__) from None
    tails: Array = chdtrc(whole(degrees, "degrees", 1), values)
    return tails


def odds_ratios(counts: object) -> Array:
    """x(2S−y) / (y(2R−x)): infinite or NaN where an allele is absent, as in PLINK."""
    table = read_counts(counts)
    (x, y), (r, s) = allele_counts(table), group_sizes(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Array = x.astype(float) * (2 * s - y) / (y.astype(float) * (2 * r - x))
    return result


def _ratio(top: Array, below: Array) -> Array:
    return np.divide(top, below, out=np.zeros_like(top), where=below > 0)
