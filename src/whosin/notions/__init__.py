"""Definitions of privacy: each measures the level of a mechanism (THEORY 2, 5).

`NOTIONS` is the registry: contract and documentation tests find a notion through it.
"""

from whosin.notions.base import Notion
from whosin.notions.differential_identifiability import DifferentialIdentifiability
from whosin.notions.differential_privacy import DifferentialPrivacy
from whosin.notions.level import Level, Witness
from whosin.notions.membership import NegativeMembership, PositiveMembership
from whosin.notions.sampled_differential_privacy import SampledDifferentialPrivacy

NOTIONS: dict[str, type[Notion]] = {
    "positive-membership": PositiveMembership,
    "negative-membership": NegativeMembership,
    "differential-privacy": DifferentialPrivacy,
    "differential-identifiability": DifferentialIdentifiability,
    "sampled-differential-privacy": SampledDifferentialPrivacy,
}

__all__ = [
    "NOTIONS",
    "DifferentialIdentifiability",
    "DifferentialPrivacy",
    "Level",
    "NegativeMembership",
    "Notion",
    "PositiveMembership",
    "SampledDifferentialPrivacy",
    "Witness",
]
