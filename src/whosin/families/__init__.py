"""Sets of priors: the adversaries that a notion of privacy defends against (THEORY 1).

`FAMILIES` is the registry: contract, property and documentation tests find a family through it.
"""

from whosin.families.any_prior import AnyPrior
from whosin.families.at_most_known import AtMostKnown
from whosin.families.base import Family, Worst
from whosin.families.cliques import Cliques
from whosin.families.explicit import Explicit
from whosin.families.fixed_probability import FixedProbability
from whosin.families.fixed_size import FixedSize, SwapOfTwo
from whosin.families.independent import Independent, OneOfTwo
from whosin.families.one_of import OneOf
from whosin.families.uninformed import Uninformed

FAMILIES: dict[str, type[Family]] = {
    "any": AnyPrior,
    "independent": Independent,
    "one-of-two": OneOfTwo,
    "fixed-size": FixedSize,
    "swap-of-two": SwapOfTwo,
    "one-of": OneOf,
    "fixed-probability": FixedProbability,
    "uninformed": Uninformed,
    "cliques": Cliques,
    "at-most-known": AtMostKnown,
    "explicit": Explicit,
}

__all__ = [
    "FAMILIES",
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
]
