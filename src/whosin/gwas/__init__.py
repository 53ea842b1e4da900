"""Genome-wide association studies: counts, statistics, sensitivities, private releases, the attack.

What is public: which SNPs were looked at, and how many cases and controls there are. Counts and
every statistic of them are private until a release has paid for them.
"""

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

__all__ = [
    "RELATIONS",
    "STATISTICS",
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
    "read_study",
    "sensitivity",
]
