"""A budget split over a batch: by weights, or so that relative errors are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import rational
from whosin.ledger import units
from whosin.release.pricing import Share
from whosin.release.queries import Keys, Query
from whosin.release.table import Table

SPLITS = ("weights", "relative-error")
NOISES = ("laplace", "gaussian")


@dataclass(frozen=True)
class Purse:
    """What a batch may spend in all, in units."""

    plan: Plan
    epsilon: int
    rho: int
    delta: int


def shares(
    queries: Sequence[Query], table: Table, purse: Purse, split: str, noise: str
) -> list[Share]:
    """The share of each query; together they are within the purse.

    Args:
        split: "weights", by each query's weight; or "relative-error", so that the expected error
            over the declared magnitude is the same for all. True answers play no part.
        noise: "laplace", or "gaussian" for queries that sum, under a plan with a δ.
    """
    if split not in SPLITS:
        raise UnknownName("split", str(split), SPLITS)
    if noise not in NOISES:
        raise UnknownName("noise", str(noise), NOISES)
    if noise == "gaussian" and not purse.rho:
        raise InvalidInput("noise", "laplace, under a plan without a delta", noise)
    if split == "weights":
        parts = [rational(query.weight) for query in queries]
    else:
        parts = [_relative(query, table, purse.plan, noise) for query in queries]
    whole = sum(parts, Fraction(0))
    failing = sum(isinstance(query, Keys) for query in queries)
    found = []
    for query, part in zip(queries, parts, strict=True):
        delta = purse.delta // failing if isinstance(query, Keys) else 0
        gaussian = noise == "gaussian"
        pot = purse.rho if gaussian else purse.epsilon
        amount = Fraction(int(pot * part / whole), units.EPSILON_UNITS)
        if amount <= 0:
            raise InvalidInput("weight", "large enough to get any budget", query.title)
        share = Fraction(delta, units.DELTA_UNITS)
        if gaussian:
            found.append(Share(purse.plan, Fraction(0), amount, share))
        else:
            found.append(Share(purse.plan, amount, Fraction(0), share))
    return found


def _relative(query: Query, table: Table, plan: Plan, noise: str) -> Fraction:
    """How much a query needs for a relative error of one; Laplace errors fall as 1/ε, Gaussian
    ones as 1/√ρ."""
    if query.magnitude is None:
        raise InvalidInput("magnitude", "declared for every query, to split by error", query.title)
    probe = Fraction(1, 1000)
    gaussian = noise == "gaussian"
    share = Share(plan, probe, probe if gaussian else Fraction(0), probe)
    error = query.offer(table, share).error
    if error is None:
        accepted = "weights, for a batch with means, variances, quantiles or selections"
        raise InvalidInput("split", accepted, query.title)
    needed = Fraction(error) / rational(query.magnitude) * (probe if not gaussian else 1)
    return needed**2 * probe if gaussian else needed
