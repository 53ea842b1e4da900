"""Definitions of privacy: each measures the level of a mechanism.

`NOTION_KINDS` is the registry: the command, the page, the reference and contract tests find a
notion there. Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.notions.base import Level as Level
from whosin.notions.base import Notion as Notion
from whosin.notions.base import Witness as Witness
from whosin.notions.bayesian_privacy import (
    BayesianDifferentialPrivacy as BayesianDifferentialPrivacy,
)
from whosin.notions.differential_privacy import (
    DifferentialIdentifiability as DifferentialIdentifiability,
)
from whosin.notions.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from whosin.notions.differential_privacy import MetricPrivacy as MetricPrivacy
from whosin.notions.differential_privacy import (
    SampledDifferentialPrivacy as SampledDifferentialPrivacy,
)
from whosin.notions.identifiability import Identifiability as Identifiability
from whosin.notions.leakage import Leakage as Leakage
from whosin.notions.leakage import MaximalLeakage as MaximalLeakage
from whosin.notions.leakage import PointwiseLeakage as PointwiseLeakage
from whosin.notions.membership import NegativeMembership as NegativeMembership
from whosin.notions.membership import PositiveMembership as PositiveMembership
from whosin.notions.membership import RecordMembership as RecordMembership
from whosin.notions.mutual_information import Capacity as Capacity
from whosin.notions.mutual_information import MeanShift as MeanShift
from whosin.notions.mutual_information import MutualInformation as MutualInformation
from whosin.notions.semantic_privacy import BayesianSemanticPrivacy as BayesianSemanticPrivacy
from whosin.notions.semantic_privacy import SemanticPrivacy as SemanticPrivacy

__all__ = [
    "NOTION_KINDS",
    "BayesianDifferentialPrivacy",
    "BayesianSemanticPrivacy",
    "Capacity",
    "DifferentialIdentifiability",
    "DifferentialPrivacy",
    "Identifiability",
    "Leakage",
    "Level",
    "MaximalLeakage",
    "MeanShift",
    "MetricPrivacy",
    "MutualInformation",
    "NegativeMembership",
    "Notion",
    "PointwiseLeakage",
    "PositiveMembership",
    "RecordMembership",
    "SampledDifferentialPrivacy",
    "SemanticPrivacy",
    "Witness",
]


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
