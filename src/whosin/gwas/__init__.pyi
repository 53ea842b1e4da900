from .counting import count_bed as count_bed
from .distance import distance_scores as distance_scores
from .offer import Question as Question
from .offer import StudyOffer as StudyOffer
from .offer import price as price
from .release import StudyRelease as StudyRelease
from .release import publish as publish
from .sensitivities import RELATIONS as RELATIONS
from .sensitivities import STATISTICS as STATISTICS
from .sensitivities import sensitivity as sensitivity
from .simulation import Simulation as Simulation
from .snps import Snps as Snps
from .spark import count_bed_spark as count_bed_spark
from .statistics import allelic_chi2 as allelic_chi2
from .statistics import frequencies as frequencies
from .statistics import genotypic_chi2 as genotypic_chi2
from .statistics import odds_ratios as odds_ratios
from .statistics import p_values as p_values
from .study import Study as Study
from .study import read_study as read_study

__all__: list[str]
