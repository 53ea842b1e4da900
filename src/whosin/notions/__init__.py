"""Definitions of privacy: each measures the level of a mechanism.

`NOTION_KINDS` is the registry: the command, the page, the reference and contract tests find a
notion there. Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.notions.base import Level, Notion, Witness
from whosin.notions.bayesian_privacy import BayesianDifferentialPrivacy
from whosin.notions.differential_privacy import (
    DifferentialIdentifiability,
    DifferentialPrivacy,
    Identifiability,
    MetricPrivacy,
    SampledDifferentialPrivacy,
)
from whosin.notions.gaussian_leakage import (
    GaussianLeakage,
    GaussianRelease,
    measure_gaussian_leakage,
)
from whosin.notions.leakage import Leakage, MaximalLeakage, PointwiseLeakage
from whosin.notions.membership import NegativeMembership, PositiveMembership, RecordMembership
from whosin.notions.mutual_information import Capacity, MeanShift, MutualInformation
from whosin.notions.semantic_privacy import BayesianSemanticPrivacy, SemanticPrivacy

__all__ = ["NOTION_KINDS", "BayesianDifferentialPrivacy", "BayesianSemanticPrivacy", "Capacity"]
__all__ += ["DifferentialIdentifiability", "DifferentialPrivacy", "GaussianLeakage"]
__all__ += ["GaussianRelease", "Identifiability", "Leakage", "measure_gaussian_leakage"]
__all__ += ["Level", "MaximalLeakage", "MeanShift", "MetricPrivacy", "MutualInformation"]
__all__ += ["NegativeMembership", "Notion", "PointwiseLeakage", "PositiveMembership"]
__all__ += ["RecordMembership", "SampledDifferentialPrivacy", "SemanticPrivacy", "Witness"]


def __dir__() -> list[str]:
    return __all__


NOTION_KINDS: dict[str, type[Notion]] = {
    "positive-membership": PositiveMembership,
    "negative-membership": NegativeMembership,
    "differential-privacy": DifferentialPrivacy,
    "differential-identifiability": DifferentialIdentifiability,
    "sampled-differential-privacy": SampledDifferentialPrivacy,
    "bayesian-differential-privacy": BayesianDifferentialPrivacy,
    "semantic-privacy": SemanticPrivacy,
    "bayesian-semantic-privacy": BayesianSemanticPrivacy,
    "identifiability": Identifiability,
    "mutual-information": MutualInformation,
    "record-membership": RecordMembership,
    "mean-shift": MeanShift,
    "leakage": Leakage,
    "maximal-leakage": MaximalLeakage,
    "pointwise-leakage": PointwiseLeakage,
    "capacity": Capacity,
    "metric-privacy": MetricPrivacy,
}
