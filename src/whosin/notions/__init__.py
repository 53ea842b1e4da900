"""Definitions of privacy: each measures the level of a mechanism (THEORY 2, 5).

`NOTIONS` is the registry: contract and documentation tests find a notion through it.
"""

from whosin.notions.base import Notion
from whosin.notions.bayesian_differential_privacy import BayesianDifferentialPrivacy
from whosin.notions.bayesian_semantic_privacy import BayesianSemanticPrivacy
from whosin.notions.differential_identifiability import DifferentialIdentifiability
from whosin.notions.differential_privacy import DifferentialPrivacy
from whosin.notions.identifiability import Identifiability
from whosin.notions.level import Level, Witness
from whosin.notions.mean_shift import MeanShift
from whosin.notions.membership import NegativeMembership, PositiveMembership
from whosin.notions.mutual_information import MutualInformation
from whosin.notions.record_membership import RecordMembership
from whosin.notions.sampled_differential_privacy import SampledDifferentialPrivacy
from whosin.notions.semantic_privacy import SemanticPrivacy

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
}

__all__ = [
    "NOTIONS",
    "BayesianDifferentialPrivacy",
    "BayesianSemanticPrivacy",
    "DifferentialIdentifiability",
    "DifferentialPrivacy",
    "Identifiability",
    "Level",
    "MeanShift",
    "MutualInformation",
    "NegativeMembership",
    "Notion",
    "PositiveMembership",
    "RecordMembership",
    "SampledDifferentialPrivacy",
    "SemanticPrivacy",
    "Witness",
]
