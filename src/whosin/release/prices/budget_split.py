"""A budget split over a batch: by weights, or so that relative errors are alike. `least_error` has
the split "optimal"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from whosin.calibration import Plan
from whosin.errors import InvalidInput, UnknownName, at
from whosin.exact import rational
from whosin.ledger import units
from whosin.release.prices.pricing import Share
from whosin.release.queries import Query
from whosin.release.table import Table

OPTIMAL = "optimal"
SPLITS = ("weights", "relative-error", OPTIMAL)
NOISES = ("laplace", "gaussian")


@dataclass(frozen=True)
class Unspent:
    """What a batch may spend in all, in units."""

    plan: Plan
    epsilon: int
    rho: int
    delta: int


def shares(
    queries: Sequence[Query], table: Table, unspent: Unspent, split: str, noise: str
) -> list[Share]:
    """The share of each query; together they are within the unspent.

    Args:
        split: "weights", by each query's weight; or "relative-error", so that the expected error
            over the declared magnitude is the same for all whose error is known beforehand. True
            answers play no part.
        noise: "laplace", or "gaussian" for queries that sum, under a plan with a δ; the others
            then get the ε whose ρ is their part.
    """
    if split not in SPLITS:
        raise UnknownName("split", str(split), SPLITS)
    if split == "weights":
        return divided(queries, [rational(query.weight) for query in queries], unspent, noise)
    gaussian = noise == "gaussian"
    parts = _equal_errors(queries, table, unspent.plan, pot_of(unspent, noise), gaussian)
    return divided(queries, parts, unspent, noise)


def pot_of(unspent: Unspent, noise: str) -> int:
    """What there is to divide: units of ρ for Gaussian noise, of ε otherwise."""
    if noise not in NOISES:
        raise UnknownName("noise", str(noise), NOISES)
    if noise == "gaussian" and not unspent.rho:
        raise InvalidInput("noise", "laplace, under a plan without a delta", noise)
    # After Gaussian noise there is no pure ε left to spend, but ε that counts by its ρ.
    return unspent.rho if noise == "gaussian" else unspent.epsilon or units.pure(unspent.rho)


def divided(
    queries: Sequence[Query], parts: Sequence[Fraction], unspent: Unspent, noise: str
) -> list[Share]:
    """The share of each query, in the ratio of some parts."""
    pot, gaussian = pot_of(unspent, noise), noise == "gaussian"
    whole = sum(parts, Fraction(0))
    failing = sum(query.needs_delta for query in queries)
    result = []
    for number, (query, part) in enumerate(zip(queries, parts, strict=True)):
        delta = Fraction(0)
        if query.needs_delta:
            delta = Fraction(unspent.delta // failing, units.DELTA_UNITS)
        amount = int(pot * part / whole)
        rho = amount if gaussian and query.takes_gaussian else 0
        epsilon = 0 if rho else units.pure(amount) if gaussian else amount
        if not epsilon and not rho:
            with at(f"queries[{number}].weight"):
                raise InvalidInput("weight", "large enough to get any budget", query.weight)
        scale = units.EPSILON_UNITS
        result.append(Share(unspent.plan, Fraction(epsilon, scale), Fraction(rho, scale), delta))
    return result


def _equal_errors(
    queries: Sequence[Query], table: Table, plan: Plan, pot: int, gaussian: bool
) -> list[Fraction]:
    """Parts of the pot that give all queries the same expected error over magnitude; those whose
    error is not known beforehand (means, variances, quantiles, selections) keep what their weight
    gives them.

    Discrete Laplace noise on a sensitivity of Δ steps has the expected error r for ε =
    Δ·asinh(step/r), and Gaussian noise for a ρ that falls as 1/r²: the r for which they add up to
    the rest of the pot is found by bisection.
    """
    weights = [rational(query.weight) for query in queries]
    parts = [Fraction(pot, units.EPSILON_UNITS) * weight / sum(weights) for weight in weights]
    reaches = {
        number: reach
        for number, query in enumerate(queries)
        if (reach := _reach(query, table, plan, gaussian)) is not None
    }
    if not reaches:
        accepted = "weights, where no query has an error that is known beforehand"
        raise InvalidInput("split", accepted, "relative-error")
    budget = float(sum(parts[number] for number in reaches))

    def needed(error: float) -> list[float]:
        if gaussian:
            return [(reach / error) ** 2 for _, reach in reaches.values()]
        return [steps * math.asinh(reach / steps / error) for steps, reach in reaches.values()]

    low, high = 1e-300, 1e300
    for _ in range(200):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (middle, high) if sum(needed(middle)) > budget else (low, middle)
    for number, part in zip(reaches, needed(high), strict=True):
        parts[number] = Fraction(part)
    return parts


def _reach(query: Query, table: Table, plan: Plan, gaussian: bool) -> tuple[float, float] | None:
    """(sensitivity in steps, what to divide by a relative error) of a query; None where its error
    is not known beforehand."""
    probe = Fraction(1, 1000)
    rho = probe if gaussian and query.takes_gaussian else Fraction(0)
    offer = query.offer(query.asked_of(table), Share(plan, probe, rho, probe))
    if offer.error is None or len(offer.parts) != 1 or (gaussian and not query.takes_gaussian):
        return None
    if query.magnitude is None:
        raise InvalidInput("magnitude", "declared for every query, to split by error", query.title)
    noisy, magnitude = offer.parts[0], float(rational(query.magnitude))
    if gaussian:
        return 0.0, offer.error / magnitude * math.sqrt(probe)
    steps = float(noisy.scale * probe)
    return steps, steps * float(noisy.part.unit) / magnitude
