"""Genome-wide association studies: counts, statistics, sensitivities, private releases, the attack.

What is public: which SNPs were looked at, and how many cases and controls there are. Counts and
every statistic of them are private until a release has paid for them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from whosin.gwas.counting import count_bed
from whosin.gwas.distance import distance_scores
from whosin.gwas.sensitivities import RELATIONS, STATISTICS, sensitivity
from whosin.gwas.simulation import Simulation
from whosin.gwas.snps import Snps
from whosin.gwas.spark import count_bed_spark
from whosin.gwas.statistics import (
    allelic_chi2,
    frequencies,
    genotypic_chi2,
    odds_ratios,
    p_values,
)
from whosin.gwas.study import Study, read_study

if TYPE_CHECKING:
    from whosin.gwas.offer import Offer as Offer
    from whosin.gwas.offer import Question as Question
    from whosin.gwas.offer import price as price
    from whosin.gwas.release import Release as Release
    from whosin.gwas.release import publish as publish

_LATER = {
    "Offer": "offer",
    "Question": "offer",
    "Release": "release",
    "price": "offer",
    "publish": "release",
}
"""Names that need the ledger and plans: imported when first used, so that counting starts early."""

__all__ = [
    "RELATIONS",
    "STATISTICS",
    "Offer",
    "Question",
    "Release",
    "Simulation",
    "Snps",
    "Study",
    "allelic_chi2",
    "count_bed",
    "count_bed_spark",
    "distance_scores",
    "frequencies",
    "genotypic_chi2",
    "odds_ratios",
    "p_values",
    "price",
    "publish",
    "read_study",
    "sensitivity",
]


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module(f"whosin.gwas.{_LATER[name]}"), name)
    raise AttributeError(f"module 'whosin.gwas' has no attribute {name!r}")
