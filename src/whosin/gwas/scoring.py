"""Scores by which SNPs are chosen privately, with what each costs.

Contract: whole numbers, the larger the better, and their sensitivity for the relation asked; tables
have one public size, so nothing but the scores depends on the data.
"""

from __future__ import annotations

from fractions import Fraction

from whosin import noise
from whosin.errors import UnknownName
from whosin.exact import Array
from whosin.gwas.distance import distance_scores
from whosin.gwas.sensitivities import sensitivity
from whosin.gwas.statistics import allelic_chi2

SCORES = ("distance", "chi2")
SCORE_STEP = Fraction(1, 256)
"""The grid of χ² as a score to choose by; finer than the published one, since it is never shown."""
GENOME_WIDE = Fraction(297168, 10_000)
"""χ² of the usual genome-wide significance, p = 5·10⁻⁸."""


def scores(kind: str, table: Array, relation: str, threshold: object) -> Array:
    """Scores of complete tables: "distance" to the threshold, or "chi2" on a grid."""
    if kind not in SCORES:
        raise UnknownName("score", str(kind), SCORES)
    if kind == "distance":
        return distance_scores(table, threshold, relation)
    return noise.Grid(SCORE_STEP).units(allelic_chi2(table))


def score_sensitivity(kind: str, cases: int, controls: int, relation: str) -> int:
    """How far a neighbour moves a score. Floating point computes χ² to within 2N·2⁻⁴⁸; that much
    is added on both sides."""
    if kind == "distance":
        return 1
    slack = Fraction(4 * (cases + controls), 2**48)
    change = sensitivity("allelic-chi2", cases, controls, relation) + slack
    return noise.Grid(SCORE_STEP).sensitivity(change)


def selection_scale(sensitivity: int, epsilon: Fraction, top: int) -> float:
    """The scale of the noise with which choosing `top` SNPs costs at most ε, by OpenDP's map."""
    scale = float(2 * top * sensitivity / epsilon)
    while noise.selection_epsilon(sensitivity, scale, top) > epsilon:
        scale *= 1 + 2.0**-50
    return scale
