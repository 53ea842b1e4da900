"""How far one person, or one exchange of labels, moves a statistic.

Contract: exact rationals, for groups of two people and more. Relations: "genotype", one
participant has another genotype (or is another person); "label-swap", a case and a control
exchange labels. One person has a genotype at every SNP, so M SNPs multiply the sensitivity by M.

The published allelic sensitivity assumes that no genotype is absent and is too small (E6).
"""

from __future__ import annotations

from fractions import Fraction

from whosin.errors import UnknownName
from whosin.exact import Rational
from whosin.gwas.people import SMALLEST
from whosin.validation import whole

RELATIONS = ("genotype", "label-swap")
STATISTICS = ("allelic-chi2", "genotypic-chi2", "case-frequency", "allele-counts", "distance-score")


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
    cases, controls = whole(cases, "cases", SMALLEST), whole(controls, "controls", SMALLEST)
    snps = whole(snps, "snps", 1)
    check_relation(relation)
    if statistic not in STATISTICS:
        raise UnknownName("statistic", str(statistic), STATISTICS)
    return Rational(snps * _of_one(statistic, cases, controls, relation == "label-swap"))


def check_relation(relation: object) -> None:
    """Refuse a relation that is not one of the two."""
    if relation not in RELATIONS:
        raise UnknownName("relation", str(relation), RELATIONS)


def _of_one(statistic: str, cases: int, controls: int, swap: bool) -> Fraction:
    if statistic == "case-frequency":
        return Fraction(1, cases)
    if statistic == "allele-counts":
        return Fraction(4 if swap else 2)
    if statistic == "distance-score":
        return Fraction(1)
    people, product = cases + controls, cases * controls
    share = Fraction(people * people, product)
    genotypic = (
        2 * share * (1 - Fraction(people, 2 * product))
        if swap
        else share * (1 - Fraction(1, max(cases, controls) + 1))
    )
    return genotypic if statistic == "genotypic-chi2" else 2 * genotypic
