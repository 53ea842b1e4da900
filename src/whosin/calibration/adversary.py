"""What a family means for calibration: the beliefs it allows, its neighbours, and how tight it is.

World-level ε bounds the ratio between neighbouring worlds; a family decides which neighbours count
(THEORY 8: D_I-like families mean add-remove, D_B-like ones replace) and at which prior beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from whosin import families
from whosin.calibration.targets import Rho, Target
from whosin.errors import InvalidInput, Unsupported
from whosin.exact import rational
from whosin.priors import Independent, Uniform

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Adversary:
    """How calibration reads a family.

    Attributes:
        low, high: the beliefs that uncertain entities may have.
        relation: "add-remove" or "replace".
        group: how many entities may move together, so that r ≤ e^(group · ε).
        tight: whether no larger ε would do for every mechanism; otherwise the plan is sufficient.
        theorems: why.
    """

    low: Fraction
    high: Fraction
    relation: str
    group: int = 1
    tight: bool = True
    theorems: tuple[str, ...] = ()


def read(family: families.Family) -> Adversary:
    """The adversary of a family.

    Raises:
        Unsupported: no finite ε protects against the family (D_U), or it has no bounds to read.
    """
    match family:
        case families.Independent():
            return Adversary(*family.bounds, "add-remove", theorems=_bounded(family.bounds, "T4"))
        case families.SwapOfTwo():  # beliefs p and 1 − p, both in the range
            return Adversary(*family.swaps, "replace", theorems=_bounded(family.swaps, "T5"))
        case families.FixedSize():
            reason = _bounded(family.bounds, "T5")
            return Adversary(*family.bounds, "replace", tight=family.tight, theorems=reason)
        case families.OneOf(m=m):
            prior = Fraction(1, m)
            return Adversary(prior, prior, "replace", tight=m == 2, theorems=("T5", "T11"))
        case families.FixedProbability(beta=beta):
            prior = rational(beta)
            return Adversary(prior, prior, "add-remove", tight=False, theorems=("T4", "T11"))
        case families.Uninformed():
            return Adversary(HALF, HALF, "add-remove", tight=False, theorems=("T4", "T11"))
        case families.AtMostKnown():
            return Adversary(*family.bounds, "add-remove", tight=False, theorems=("T4", "T11"))
        case families.Cliques(k=k):
            return Adversary(Fraction(0), Fraction(1), "add-remove", group=k, theorems=("T7",))
        case families.Explicit(priors=priors):
            return _explicit(priors)
        case families.AnyPrior():
            raise Unsupported(
                "no ε between neighbours protects against every prior (T3): the noise would have "
                "to hide everyone at once; say how many people may be linked with cliques=k"
            )
    raise InvalidInput("family", "a family of priors that calibration knows", repr(family))


def against(target: Target, family: families.Family) -> Adversary:
    """The adversary of a family as a target sees it: `Rho` fixes the prior, and the relation.

    Raises:
        InvalidInput: `Rho` with a family that has no m equally likely candidates.
    """
    adversary = read(family)
    if not isinstance(target, Rho):
        return adversary
    prior = Fraction(1, target.m)
    fits = isinstance(family, families.OneOf) and family.m == target.m
    bounds = adversary.low <= prior <= adversary.high
    if not fits and not (isinstance(family, families.FixedSize) and bounds):
        raise InvalidInput("family", f"one-of={target.m} or fixed-size for rho", repr(family))
    return Adversary(prior, prior, "replace", tight=target.m == 2, theorems=("T5", "T8"))


def default_family(target: Target) -> families.Family:
    """Anyone with independent beliefs; one of m candidates for `Rho`."""
    return families.OneOf(target.m) if isinstance(target, Rho) else families.Independent()


def _bounded(bounds: tuple[Fraction, Fraction], theorem: str) -> tuple[str, ...]:
    return (theorem,) if bounds == (Fraction(0), Fraction(1)) else (theorem, "T11")


def _explicit(priors: tuple[object, ...]) -> Adversary:
    """Independent priors, whose beliefs span a range; others need their mechanism verified."""
    found: list[Fraction] = []
    for prior in priors:
        if isinstance(prior, Uniform):
            found.append(HALF)
        elif isinstance(prior, Independent):
            found += [p for p in map(rational, prior.parameters) if 0 < p < 1]
        else:
            raise Unsupported(
                "calibration reads lists of independent priors; verify the mechanism instead"
            )
    if not found:
        raise Unsupported("nobody is uncertain under these priors: there is nothing to protect")
    return Adversary(min(found), max(found), "add-remove", tight=False, theorems=("T4", "T11"))
