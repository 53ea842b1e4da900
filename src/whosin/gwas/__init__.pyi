from .association import STATISTIC_NAMES as STATISTIC_NAMES
from .association import STUDY_RELATIONS as STUDY_RELATIONS
from .association import allele_frequencies as allele_frequencies
from .association import allelic_chi2 as allelic_chi2
from .association import genotypic_chi2 as genotypic_chi2
from .association import odds_ratios as odds_ratios
from .association import p_values as p_values
from .association import sensitivity as sensitivity
from .people import Snps as Snps
from .people import StudyFilter as StudyFilter
from .release import Question as Question
from .release import StudyCostEstimate as StudyCostEstimate
from .release import StudyRelease as StudyRelease
from .release import estimate_study_cost as estimate_study_cost
from .release import publish_study as publish_study
from .scores import distance_scores as distance_scores
from .simulation import Simulation as Simulation
from .study import Study as Study
from .study import count_bed as count_bed
from .study import count_bed_spark as count_bed_spark
from .study import read_study as read_study

__all__: list[str]
