"""The adversary that a plan is for: what a family means for ε, as the target sees it."""

from __future__ import annotations

from fractions import Fraction

from whosin.calibration.targets import Rho, Target
from whosin.errors import InvalidInput
from whosin.families import Adversary, Family, FixedSize, Independent, OneOf


def against(target: Target, family: Family) -> Adversary:
    """The adversary of a family as a target sees it: `Rho` fixes the prior, and the relation.

    Raises:
        Unsupported: no finite ε protects against the family.
        InvalidInput: `Rho` with a family that has no m equally likely candidates.
    """
    if not isinstance(family, Family):
        raise InvalidInput("family", "a family of priors", repr(family))
    adversary = family.adversary()
    if not isinstance(target, Rho):
        return adversary
    prior = Fraction(1, target.m)
    fits = isinstance(family, OneOf) and family.m == target.m
    bounds = adversary.low <= prior <= adversary.high
    if not fits and not (isinstance(family, FixedSize) and bounds):
        raise InvalidInput("family", f"one-of={target.m} or fixed-size for rho", repr(family))
    return Adversary(prior, prior, "replace", tight=target.m == 2, theorems=("T5", "T8"))


def default_family(target: Target) -> Family:
    """Anyone with independent beliefs; one of m candidates for `Rho`."""
    return OneOf(target.m) if isinstance(target, Rho) else Independent()
