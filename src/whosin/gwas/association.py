"""Association statistics, estimates from noisy counts, and their sensitivities.

*Statistics* of genotype tables are exact values, rounded once. SNPs on which nothing varies have χ²
= 0, never NaN. They look at the exact counts: they are the curator's, and are published only
through a release.

*Estimates* follow from released allele counts and public sizes alone, so they cost nothing (T13).
Odds ratios and p-values are never noised themselves: their sensitivity is unbounded or unknown.
Noise v on the copies among cases and w on those among controls moves the difference of frequencies
by v/(2R) − w/(2S), on top of the sampling error; where the pooled count is published exactly
(labels are secret, genomes are not) w = −v. P is the probability that the sum of both is at least
as large as the difference seen, in either direction, if the allele is as frequent among cases as
among controls; CHISQ is the χ² with that P. Both are PLINK's where there is no noise.

*Sensitivities*: how far one person, or one exchange of labels, moves a statistic. Exact rationals,
for groups of two people and more. Relations: "genotype", one participant has another genotype (or
is another person); "label-swap", a case and a control exchange labels. One person has a genotype at
every SNP, so M SNPs multiply the sensitivity by M. The published allelic sensitivity assumes that
no genotype is absent and is too small (E6).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.errors import UnknownName, invalid_value, read_whole
from whosin.exact import Array, Rational
from whosin.gwas.people import MIN_GROUP_SIZE, allele_counts, group_sizes, read_counts
from whosin.noise import CubeNoise


def allelic_chi2(counts: object) -> Array:
    """χ² of the 2×2 table of alleles: 2N (xS − yR)² / (R S (x+y)(2N−x−y)), 0 where nothing varies.

    Where x, y = copies of A1 among the R cases and S controls, N = R + S.
    """
    table = read_counts(counts)
    return chi2_of_copies(*allele_counts(table), *group_sizes(table))


def chi2_of_copies(x: Array, y: Array, cases: Array | int, controls: Array | int) -> Array:
    """The allelic χ² of x and y copies of A1 among cases and controls, 0 where nothing varies."""
    people, copies = cases + controls, x + y
    gap = (x * controls - y * cases).astype(float)
    below = 1.0 * cases * controls * copies * (2 * people - copies)
    return _safe_ratio(2.0 * people * gap * gap, below)


def p_values(chi2: object) -> Array:
    from scipy.special import chdtrc

    try:
        values = np.asarray(chi2, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid_value("chi2", "an array of numbers", type(chi2).__name__) from None
    return np.asarray(chdtrc(1, values))


def _safe_ratio(top: Array, below: Array) -> Array:
    return np.divide(top, below, out=np.zeros_like(top), where=below > 0)


NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, eq=False)
class Association:
    """Estimates for each SNP.

    Attributes:
        f_a, f_u: frequencies of A1 among cases and controls, cut to [0, 1].
        f_a_noise, f_u_noise: 95% of the noise is within ± that much.
        chi2, p: of the difference, sampling and noise together.
        odds_ratio, se: of A1, and the standard error of its logarithm, noise included; infinite
            where the noise is larger than an allele's count.
    """

    f_a: Array
    f_u: Array
    f_a_noise: Array
    f_u_noise: Array
    chi2: Array
    p: Array
    odds_ratio: Array
    se: Array

    @property
    def interval(self) -> tuple[Array, Array]:
        with np.errstate(over="ignore"):
            spread = np.exp(NORMAL_95 * self.se)
        return self.odds_ratio / spread, self.odds_ratio * spread


def estimate_association(
    x: Array,
    y: Array,
    cases: int,
    controls: int,
    noise: CubeNoise | None = None,
    *,
    pooled: bool = False,
    inflation: Array | float = 1.0,
) -> Association:
    """Estimates from copies of A1 among cases (x) and controls (y).

    Args:
        noise: on x, and as much on y by itself; in copies.
        pooled: x + y is exact instead, and y has the noise of x.
        inflation: how many times larger the sampling variance is than that of two independent
            copies a person (`Study.variance_factors`).
    """
    from scipy.special import chdtri

    alleles, others = 2 * cases, 2 * controls
    x_cut, y_cut = np.clip(x, 0, alleles).astype(float), np.clip(y, 0, others).astype(float)
    f_a, f_u = x_cut / alleles, y_cut / others
    share = np.clip((x_cut + y_cut) / (alleles + others), 0.5 / (alleles + others), None)
    share = np.minimum(share, 1 - 0.5 / (alleles + others))
    deviation = np.sqrt(inflation * share * (1 - share) * (1 / alleles + 1 / others))
    difference = np.abs(np.asarray(x) / alleles - np.asarray(y) / others)
    factors = [1 / alleles + 1 / others] if pooled else [1 / alleles, 1 / others]
    p = two_sided(difference, deviation, noise, factors if noise else [])
    cells = [x_cut + 0.5, alleles - x_cut + 0.5, y_cut + 0.5, others - y_cut + 0.5]
    a, b, c, d = (1 / cell for cell in cells)
    spread = noise.variance if noise else 0.0
    # The derivatives of the logarithm by the noise: on x alone, or also as much less on y.
    slopes = (a + b + c + d) ** 2 if pooled else (a + b) ** 2 + (c + d) ** 2
    variance = inflation * (a + b + c + d) + spread * slopes
    # Noise that is larger than a cell leaves the odds ratio open: the expansion would not hold.
    variance[np.min(cells, axis=0) < math.sqrt(spread)] = np.inf
    within = np.full(len(f_a), noise.continuous_quantile(0.95) if noise else 0.0)
    chi2, odds = chdtri(1, np.maximum(p, 1e-300)), cells[0] * cells[3] / (cells[1] * cells[2])
    # As in PLINK there is nothing to test where nothing varies.
    (flat,) = np.nonzero((x_cut + y_cut <= 0) | (x_cut + y_cut >= alleles + others))
    for column in (chi2, p, odds):
        column[flat] = np.nan
    noise_a, noise_u = within / alleles, within / others
    return Association(f_a, f_u, noise_a, noise_u, chi2, p, odds, np.sqrt(variance))


CELLS_PER_DEVIATION = 16
CHUNK_TAILS = 256
NEGLIGIBLE_TAIL = 1e-40


def two_sided(t: Array, sigma: Array, noise: CubeNoise | None, factors: Sequence[float]) -> Array:
    """P(|Z + Σ f_i V_i| ≥ t) for normal Z of deviation σ and independent V_i, one count's noise
    each, to about 1e-3 of itself.

    The noise is cut into cells of equal width with exact masses, which are convolved; over a cell
    it counts as uniform, so that a small σ does no harm.
    """
    from scipy.special import erfc

    if noise is None or not factors:
        return np.asarray(erfc(t / sigma / math.sqrt(2)))
    width = max(factors) * math.sqrt(noise.variance) / CELLS_PER_DEVIATION
    width = max(width, 1e-4 * float(np.min(sigma)))
    masses = np.ones(1)
    for factor in factors:
        masses = np.convolve(masses, _cell_masses(noise, width / factor))
    (kept,) = np.nonzero(masses > 0)
    centres = (kept - len(masses) // 2) * width
    found = np.empty(len(t))
    for first in range(0, len(found), CHUNK_TAILS):
        part = slice(first, first + CHUNK_TAILS)
        z = (np.asarray(t)[part, None] - centres) / sigma[part, None]
        half = width / 2 / sigma[part, None]
        upper = (_tail_integral(z - half) - _tail_integral(z + half)) / (2 * half)
        found[part] = 2 * upper @ masses[kept]
    return np.clip(found, 0.0, 1.0)


def _cell_masses(noise: CubeNoise, width: float) -> Array:
    """The masses of cells of a width, the middle one around 0, up to where nothing is left."""
    reach = 4
    while noise.continuous_tail((reach + 0.5) * width) > NEGLIGIBLE_TAIL:
        reach *= 2
    tails = noise.continuous_tail((np.arange(reach + 2) - 0.5) * width)
    side = -np.diff(tails[1:]) / 2
    return np.concatenate([side[::-1], [1 - tails[1]], side])


def _tail_integral(z: Array) -> Array:
    """∫ Φ̄ from z on: φ(z) − z Φ̄(z)."""
    from scipy.special import ndtr

    return np.asarray(np.exp(-z * z / 2) / math.sqrt(2 * math.pi) - z * ndtr(-z))


def noisy_chi2_p(chi2: Array, noise: CubeNoise) -> Array:
    """P(U + V ≥ χ²) for U of the χ² distribution with one degree and noise V on it:
    E SF(χ² − Z²) over a standard normal Z."""
    z = np.linspace(0, 12, 1_201)
    weights = np.exp(-z * z / 2) * math.sqrt(2 / math.pi) * (z[1] - z[0])
    weights[[0, -1]] /= 2
    distance = np.asarray(chi2)[:, None] - z * z
    half = noise.continuous_tail(distance) / 2
    return np.asarray(np.clip(np.where(distance > 0, half, 1 - half) @ weights, 0.0, 1.0))


STUDY_RELATIONS = ("genotype", "label-swap")
LINEAR_RELATIONS = ("stratum-swap", "label", "trait")
"""Relations that only linear scores have: labels are exchanged inside a public stratum; one label
changes and the number of cases with it; or one value of a quantitative trait does."""


def sensitivity(
    statistic: str, cases: int, controls: int, relation: str = "genotype", snps: int = 1
) -> Fraction:
    """The L1 sensitivity of a statistic of `snps` SNPs, exactly.

    Where R = cases, S = controls, N = R + S:

    - "allelic-chi2": 2N²/(RS) · (1 − 1/(max(R,S)+1)); label swaps 4N²/(RS) · (1 − N/(2RS))
    - "genotypic-chi2": half of each
    - "case-frequency" (of A1 among cases): 1/R
    - "allele-counts" (of A1 among cases and among controls): 2; label swaps 4
    - "distance-score": 1, each for its own relation

    >>> print(sensitivity("allelic-chi2", 10, 10))
    80/11
    >>> print(sensitivity("allelic-chi2", 10, 10, "label-swap"))
    72/5
    """
    cases = read_whole(cases, "cases", MIN_GROUP_SIZE)
    controls = read_whole(controls, "controls", MIN_GROUP_SIZE)
    snps = read_whole(snps, "snps", 1)
    check_relation(relation)
    swap, people, product = relation == "label-swap", cases + controls, cases * controls
    lost = Fraction(people, 2 * product) if swap else Fraction(1, max(cases, controls) + 1)
    genotypic = (1 + swap) * Fraction(people * people, product) * (1 - lost)
    of_one_snp = {
        "allelic-chi2": 2 * genotypic,
        "genotypic-chi2": genotypic,
        "case-frequency": Fraction(1, cases),
        "allele-counts": Fraction(4 if swap else 2),
        "distance-score": Fraction(1),
    }
    if statistic not in of_one_snp:
        raise UnknownName("statistic", str(statistic), of_one_snp)
    return Rational(snps * of_one_snp[statistic])


def imputed_sensitivity(statistic: str, cases: int, controls: int, relation: str) -> Fraction:
    """How far a neighbour moves the imputed copies of A1 of one SNP (`people.imputed_copies`), each
    of the two numbers, or the χ² of both.

    The derivatives of the allelic χ² by x and by y, copies among R cases and S controls, are at
    most N²/(RS), also between whole numbers: with m = x + y and q = (xS − yR) / (m(2N−m)), the one
    by x is 2N/(RS) · (2Sq − 2q²(N−m)), where −min(R/(2N−m), S/m) ≤ q ≤ min(S/(2N−m), R/m). The
    bracket is largest at the ends, 2NS²/(2N−m)² for m ≤ 2R and 2NR(m−R)/m² beyond: at most N/2. So
    χ² moves by at most N²/(RS) for each copy by which x and y move together: 2 where a genotype
    changes, 4 where labels are exchanged.
    """
    if statistic == "allele-counts":
        return Fraction(2)
    together = 2 if relation == "genotype" else 4  # "label" has no numbers
    return together * Fraction((cases + controls) ** 2, cases * controls)


def check_relation(relation: object) -> None:
    if relation not in STUDY_RELATIONS:
        raise UnknownName("relation", str(relation), STUDY_RELATIONS)
