"""Scores by which SNPs are chosen privately, with what each costs.

Contract: whole numbers and their sensitivity, for the relation asked; both come from tables of one
public size, so nothing but the scores depends on the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin import noise
from whosin.errors import UnknownName
from whosin.exact import Array
from whosin.gwas.distance import distance_scores
from whosin.gwas.sensitivities import sensitivity
from whosin.gwas.statistics import allelic_chi2

SCORES = ("distance", "chi2")
CHI2_STEP = Fraction(1, 256)
GENOME_WIDE = Fraction(297168, 10_000)
"""χ² of the usual genome-wide significance, p = 5·10⁻⁸."""


@dataclass(frozen=True, eq=False)
class Scores:
    """One whole number a SNP, the larger the better, and how far a neighbour moves it."""

    values: Array
    sensitivity: int


def scores(
    kind: str, table: Array, cases: int, controls: int, relation: str, threshold: object
) -> Scores:
    """Scores of complete tables: "distance" to the threshold, or "chi2" on a grid.

    Floating point computes χ² to within 2N·2⁻⁴⁸; that much is added to its sensitivity.
    """
    if kind not in SCORES:
        raise UnknownName("score", str(kind), SCORES)
    if kind == "distance":
        return Scores(distance_scores(table, threshold, relation), 1)
    grid = noise.Grid(CHI2_STEP)
    slack = Fraction(4 * (cases + controls), 2**48)
    change = sensitivity("allelic-chi2", cases, controls, relation) + slack
    return Scores(grid.units(allelic_chi2(table)), grid.sensitivity(change))


def selection_scale(sensitivity: int, epsilon: Fraction, top: int) -> float:
    """The scale of the noise with which choosing `top` SNPs costs at most ε, by OpenDP's map."""
    scale = float(2 * top * sensitivity / epsilon)
    while noise.selection_epsilon(sensitivity, scale, top) > epsilon:
        scale *= 1 + 2.0**-50
    return scale
