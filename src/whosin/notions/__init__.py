"""Definitions of privacy: each measures the level of a mechanism.

`NOTIONS` is the registry: the command, the page, the reference and contract tests find a notion
there.
Numbers such as T7, F12 or E3 are explained in docs/theory/numbers.md.
"""

from whosin.notions.base import Notion as Notion
from whosin.notions.bayesian_differential_privacy import (
    BayesianDifferentialPrivacy as BayesianDifferentialPrivacy,
)
from whosin.notions.bayesian_semantic_privacy import (
    BayesianSemanticPrivacy as BayesianSemanticPrivacy,
)
from whosin.notions.capacity import Capacity as Capacity
from whosin.notions.differential_identifiability import (
    DifferentialIdentifiability as DifferentialIdentifiability,
)
from whosin.notions.differential_privacy import DifferentialPrivacy as DifferentialPrivacy
from whosin.notions.identifiability import Identifiability as Identifiability
from whosin.notions.leakage import Leakage as Leakage
from whosin.notions.level import Level as Level
from whosin.notions.level import Witness as Witness
from whosin.notions.maximal_leakage import MaximalLeakage as MaximalLeakage
from whosin.notions.mean_shift import MeanShift as MeanShift
from whosin.notions.membership import NegativeMembership as NegativeMembership
from whosin.notions.membership import PositiveMembership as PositiveMembership
from whosin.notions.metric_privacy import MetricPrivacy as MetricPrivacy
from whosin.notions.mutual_information import MutualInformation as MutualInformation
from whosin.notions.pointwise_leakage import PointwiseLeakage as PointwiseLeakage
from whosin.notions.record_membership import RecordMembership as RecordMembership
from whosin.notions.sampled_differential_privacy import (
    SampledDifferentialPrivacy as SampledDifferentialPrivacy,
)
from whosin.notions.semantic_privacy import SemanticPrivacy as SemanticPrivacy

NOTIONS: dict[str, type[Notion]] = {
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
