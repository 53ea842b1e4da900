"""Which family of priors contains which, whatever the space. Families in canonical spelling."""

from __future__ import annotations

from fractions import Fraction

from whosin import families as f
from whosin import priors
from whosin.exact import rational

HALF = Fraction(1, 2)
Range = tuple[Fraction, Fraction]
WHOLE = (Fraction(0), Fraction(1))


def includes(larger: f.Family, smaller: f.Family) -> bool:
    """Whether one family is known to contain another on every space on which both make sense."""
    match larger, smaller:
        case f.AnyPrior(), _:
            return True
        case f.Cliques(k=k), f.Cliques(k=j):
            return j <= k
        case f.Cliques(), _:  # a group of one is a person
            return includes(f.Independent(), smaller)
        case f.OneOfTwo(), f.OneOfTwo():
            return _nested(larger.bounds, smaller.bounds)
        case f.OneOfTwo(), _:
            return False
        case f.Independent(), _:
            within = independent_range(smaller)
            return within is not None and _nested(larger.bounds, within)
        case f.SwapOfTwo(), f.SwapOfTwo():
            return _nested(larger.bounds, smaller.bounds)
        case f.SwapOfTwo(), f.OneOf(m=2):
            return True  # a canonical range of swaps has 1/2 in it
        case f.SwapOfTwo(), _:
            return False
        case f.FixedSize(), f.FixedSize():
            return _nested(larger.bounds, smaller.bounds)
        case f.FixedSize(), f.OneOf(m=m):
            return _nested(larger.bounds, (Fraction(1, m), Fraction(1, m)))
        case f.FixedSize(), f.Explicit(priors=listed):
            whole = larger.bounds == WHOLE
            return whole and all(isinstance(each, priors.FixedSize) for each in listed)
        case f.OneOf(m=m, literal=literal), f.OneOf(m=n, literal=other):
            return m == n and (other or not literal)
        case f.OneOf(m=2, literal=False), f.SwapOfTwo():
            return smaller.bounds == (HALF, HALF)
        case f.FixedProbability(), _:
            return _at_one_belief(larger, smaller)
        case f.AtMostKnown(k=k), f.AtMostKnown(k=j):
            return j <= k and _nested(larger.bounds, smaller.bounds)
        case f.AtMostKnown(), f.Uninformed():
            return _nested(larger.bounds, (HALF, HALF))
        case f.Uninformed(), f.AtMostKnown(k=0):
            return smaller.bounds == (HALF, HALF)
        case f.Explicit(priors=known), f.Explicit(priors=listed):
            return set(listed) <= set(known)
    return larger == smaller


def independent_range(family: f.Family) -> Range | None:
    """The beliefs, other than 0 and 1, of a family whose priors are all independent."""
    match family:
        case f.Independent() | f.AtMostKnown():
            return family.bounds
        case f.FixedProbability(beta=beta):
            return rational(beta), rational(beta)
        case f.Uninformed():
            return HALF, HALF
        case f.Explicit(priors=listed):
            found: list[Fraction] = []
            for prior in listed:
                if isinstance(prior, priors.Uniform):
                    found.append(HALF)
                elif isinstance(prior, priors.Independent) and not _by_row(prior):
                    found += [p for p in map(rational, prior.parameters) if 0 < p < 1]
                else:
                    return None
            return (min(found), max(found)) if found else None
    return None


def _by_row(prior: priors.Independent) -> bool:
    return isinstance(prior.p, tuple) and any(isinstance(each, tuple) for each in prior.p)


def _at_one_belief(larger: f.FixedProbability, smaller: f.Family) -> bool:
    """D_F^β has the priors in which everyone is at β or out for certain."""
    beta = rational(larger.beta)
    match smaller:
        case f.FixedProbability():
            return rational(smaller.beta) == beta
        case f.Uninformed():
            return beta == HALF
        case f.AtMostKnown(k=0):
            return smaller.bounds == (beta, beta)
        case f.Explicit(priors=listed):
            within = independent_range(smaller)
            numbers = [rational(p) for prior in listed for p in prior.parameters]
            return within == (beta, beta) and 1 not in numbers
    return False


def _nested(larger: Range, smaller: Range) -> bool:
    return larger[0] <= smaller[0] and smaller[1] <= larger[1]
