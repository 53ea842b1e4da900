"""What follows from released allele counts: frequencies, χ², p-values and odds ratios, with the
error of the noise carried along.

Contract: functions of what was released and of public sizes alone, so they cost nothing (T13).
Odds ratios and p-values are never noised themselves: their sensitivity is unbounded or unknown.

Noise of scale s on the counts moves the difference of frequencies by Laplace errors of scales
s/(2R) and s/(2S), on top of the sampling error. P is the probability that the sum of all three is
at least as large as the difference seen, in either direction, if the allele is as frequent among
cases as among controls; CHISQ is the χ² with that P. Both are PLINK's when s = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from whosin.exact import Array

NORMAL_95 = 1.959963984540054
TAIL_95 = math.log(20)


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
        """The odds ratio's 95% interval."""
        with np.errstate(over="ignore"):
            spread = np.exp(NORMAL_95 * self.se)
        return self.odds_ratio / spread, self.odds_ratio * spread


def association(x: Array, y: Array, cases: int, controls: int, scale: float) -> Association:
    """Estimates from noisy copies of A1 among cases (x) and controls (y), noise of that scale."""
    from scipy.special import chdtri

    alleles, others = 2 * cases, 2 * controls
    x_cut, y_cut = np.clip(x, 0, alleles).astype(float), np.clip(y, 0, others).astype(float)
    f_a, f_u = x_cut / alleles, y_cut / others
    pooled = np.clip((x_cut + y_cut) / (alleles + others), 0.5 / (alleles + others), None)
    pooled = np.minimum(pooled, 1 - 0.5 / (alleles + others))
    deviation = np.sqrt(pooled * (1 - pooled) * (1 / alleles + 1 / others))
    difference = np.abs(np.asarray(x) / alleles - np.asarray(y) / others)
    p = two_sided(difference, deviation, scale / alleles, scale / others)
    cells = [x_cut + 0.5, alleles - x_cut + 0.5, y_cut + 0.5, others - y_cut + 0.5]
    a, b, c, d = (1 / cell for cell in cells)
    noise = laplace_variance(scale)
    variance = a + b + c + d + noise * ((a + b) ** 2 + (c + d) ** 2)
    # Noise that is larger than a cell leaves the odds ratio open: the expansion would not hold.
    variance[np.min(cells, axis=0) < math.sqrt(noise)] = np.inf
    within = np.full(len(f_a), TAIL_95 * scale)
    return Association(
        f_a,
        f_u,
        within / alleles,
        within / others,
        chdtri(1, np.maximum(p, 1e-300)),
        p,
        cells[0] * cells[3] / (cells[1] * cells[2]),
        np.sqrt(variance),
    )


def laplace_variance(scale: float) -> float:
    """The variance of discrete Laplace noise: 2α/(1−α)², α = e^(−1/scale)."""
    if scale <= 0:
        return 0.0
    alpha = math.exp(-1 / scale)
    return 2 * alpha / math.expm1(-1 / scale) ** 2


def two_sided(t: Array, sigma: Array, first: float, second: float) -> Array:
    """P(|Z + L₁ + L₂| ≥ t) for normal Z and Laplace L₁, L₂ of these scales.

    The density of L₁ + L₂ is (b₁² f(b₁) − b₂² f(b₂)) / (b₁² − b₂²); equal scales are moved apart.
    """
    from scipy.special import erfc

    if first <= 0 or second <= 0:
        tail: Array = erfc(t / sigma / math.sqrt(2))
        return tail
    if abs(first - second) < 1e-3 * first:
        second = first * (1 + 1e-3)
    weight = first**2 / (first**2 - second**2)
    mixed = weight * _upper(t, sigma, first) + (1 - weight) * _upper(t, sigma, second)
    return np.clip(2 * mixed, 0.0, 1.0)


def _upper(t: Array, sigma: Array, b: float) -> Array:
    """P(Z + L ≥ t): Φ̄(t/σ) + ½ e^(σ²/2b²) (e^(−t/b) Φ(t/σ − σ/b) − e^(t/b) Φ̄(t/σ + σ/b))."""
    from scipy.special import log_ndtr, ndtr

    z, ratio = t / sigma, sigma / b
    half = ratio * ratio / 2
    rise = np.exp(half - t / b + log_ndtr(z - ratio))
    fall = np.exp(half + t / b + log_ndtr(-z - ratio))
    upper: Array = ndtr(-z) + (rise - fall) / 2
    return upper


def noisy_chi2_p(chi2: Array, scale: float) -> Array:
    """P(U + L ≥ χ²) for U of the χ² distribution with one degree and Laplace noise of that scale:
    E SF(χ² − Z²) over a standard normal Z."""
    z = np.linspace(0, 40, 40_001)
    weights = np.exp(-z * z / 2) * math.sqrt(2 / math.pi) * (z[1] - z[0])
    weights[[0, -1]] /= 2
    distance = (np.asarray(chi2)[:, None] - z * z) / scale
    tails = np.where(
        distance > 0, np.exp(-np.maximum(distance, 0)) / 2, 1 - np.exp(np.minimum(distance, 0)) / 2
    )
    p: Array = np.clip(tails @ weights, 0.0, 1.0)
    return p
