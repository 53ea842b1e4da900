"""Genome-wide association studies: counts, statistics, sensitivities, private releases, the attack.

What is public: which SNPs were looked at, and how many cases and controls there are. Counts and
every statistic of them are private until a release has paid for them.

Names are imported when they are first used, so that counting a file starts at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whosin.gwas.counting import count_bed as count_bed
    from whosin.gwas.distance import distance_scores as distance_scores
    from whosin.gwas.offer import Question as Question
    from whosin.gwas.offer import StudyOffer as StudyOffer
    from whosin.gwas.offer import price as price
    from whosin.gwas.release import StudyRelease as StudyRelease
    from whosin.gwas.release import publish as publish
    from whosin.gwas.sensitivities import RELATIONS as RELATIONS
    from whosin.gwas.sensitivities import STATISTICS as STATISTICS
    from whosin.gwas.sensitivities import sensitivity as sensitivity
    from whosin.gwas.simulation import Simulation as Simulation
    from whosin.gwas.snps import Snps as Snps
    from whosin.gwas.spark import count_bed_spark as count_bed_spark
    from whosin.gwas.statistics import allelic_chi2 as allelic_chi2
    from whosin.gwas.statistics import frequencies as frequencies
    from whosin.gwas.statistics import genotypic_chi2 as genotypic_chi2
    from whosin.gwas.statistics import odds_ratios as odds_ratios
    from whosin.gwas.statistics import p_values as p_values
    from whosin.gwas.study import Study as Study
    from whosin.gwas.study import read_study as read_study

_NAMES = {
    "StudyOffer": "offer",
    "Question": "offer",
    "RELATIONS": "sensitivities",
    "StudyRelease": "release",
    "STATISTICS": "sensitivities",
    "Simulation": "simulation",
    "Snps": "snps",
    "Study": "study",
    "allelic_chi2": "statistics",
    "count_bed": "counting",
    "count_bed_spark": "spark",
    "distance_scores": "distance",
    "frequencies": "statistics",
    "genotypic_chi2": "statistics",
    "odds_ratios": "statistics",
    "p_values": "statistics",
    "price": "offer",
    "publish": "release",
    "read_study": "study",
    "sensitivity": "sensitivities",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> object:
    if name in _NAMES:
        return getattr(import_module(f"whosin.gwas.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'whosin.gwas' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
