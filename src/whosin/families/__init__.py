"""Sets of priors: the adversaries that a notion of privacy defends against (THEORY 1).

A family describes itself: what it is called and how it is spelled, who it is in plain words, which
beliefs and neighbours it has, and which other families it includes.
"""

from whosin.families.any_prior import AnyPrior
from whosin.families.at_most_known import AtMostKnown
from whosin.families.base import Adversary, Family, Worst
from whosin.families.cliques import Cliques
from whosin.families.explicit import Explicit
from whosin.families.fixed_probability import FixedProbability
from whosin.families.fixed_size import FixedSize, SwapOfTwo
from whosin.families.independent import Independent, OneOfTwo
from whosin.families.one_of import OneOf
from whosin.families.registry import FAMILIES, read_family, spellings
from whosin.families.uninformed import Uninformed

__all__ = [
    "FAMILIES",
    "Adversary",
    "AnyPrior",
    "AtMostKnown",
    "Cliques",
    "Explicit",
    "Family",
    "FixedProbability",
    "FixedSize",
    "Independent",
    "OneOf",
    "OneOfTwo",
    "SwapOfTwo",
    "Uninformed",
    "Worst",
    "read_family",
    "spellings",
]
