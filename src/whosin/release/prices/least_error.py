"""A batch whose budget is divided so that the expected error is least: the split "optimal".

Contract: only public numbers decide. What is lowered is Σ worth · variance of a number, over the
queries whose error is known beforehand; it is never more than under the split by weights, at the
same price. A query's worth is its weight, over its magnitude squared where all have magnitudes;
otherwise errors of sums count relative to the most that one row can add, so that units play no
part. Queries whose error is not known beforehand (means, variances, quantiles, selections,
synthetic tables) keep the part of the budget that their weight gives them.

Counts and group-bys that are tables of one workload are measured at once (`queries.together`). The
variance of a number falls as 1/ε² with the ε of its query, and as 1/ρ with its ρ, so the least
Σ V/ε² has parts that go as the cube root of V, and the least Σ V/ρ as its square root.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from whosin.calibration import Plan
from whosin.errors import InvalidInput, at
from whosin.exact import rational
from whosin.release.prices.budget_split import Unspent, divided, shares
from whosin.release.prices.pricing import Offer, Share
from whosin.release.queries import Query
from whosin.release.queries.together import Together, mergeable
from whosin.release.table import Table

LEAST = 1e-6
"""The part of a query whose error hardly counts."""


@dataclass(frozen=True)
class _Unit:
    """What is debited as one: a query, or several that are measured at once."""

    query: Query
    indices: tuple[int, ...]


def least_error(
    queries: Sequence[Query], table: Table, unspent: Unspent, noise: str
) -> list[Offer]:
    """An offer for each query; those that are measured at once have one `joint` offer."""
    evenly = offered(queries, table, shares(queries, table, unspent, "weights", noise))
    if any(offer.charge.alone for offer in evenly):
        return evenly
    spread = [standard_error(offer) for offer in evenly]
    worths = _worths(queries, evenly, spread)
    units = _units(queries, table, unspent.plan, worths)
    parts = [
        float(sum(rational(queries[index].weight) for index in each.indices)) for each in units
    ]
    best = [replace(each, standard_error=error) for each, error in zip(evenly, spread, strict=True)]
    for _ in range(2):  # the parts by weight first, then those that the variances there ask for
        exact = [Fraction(part) for part in parts]
        given = divided([each.query for each in units], exact, unspent, noise)
        offers = _offers(units, table, given)
        if _score(offers, worths) < _score(best, worths):
            best = offers
        parts = _better(units, parts, offers, worths, 1 if noise == "gaussian" else 2)
    return [
        replace(offer, by_weights=before, cautions=query.cautions(query.asked_of(table)))
        for offer, before, query in zip(best, spread, queries, strict=True)
    ]


def offered(queries: Sequence[Query], table: Table, given: Sequence[Share]) -> list[Offer]:
    """The offers of queries with a share each; errors name the query."""
    offers = []
    for index, (query, share) in enumerate(zip(queries, given, strict=True)):
        with at(f"queries[{index}]"), query.at_own_key():
            asked = query.asked_of(table)
            offers.append(replace(query.offer(asked, share), cautions=query.cautions(asked)))
    if len(offers) > 1 and any(offer.charge.alone for offer in offers):
        raise InvalidInput("queries", "only one, where a promise does not add", len(offers))
    return offers


def standard_error(offer: Offer) -> float | None:
    """The standard error of a number of an answer, or the root of the mean square over its tables,
    where it is known beforehand."""
    if offer.tables:
        squares = [float(each["standard_error"]) ** 2 for each in offer.tables]
        return math.sqrt(math.fsum(squares) / len(squares))
    if offer.error is None or len(offer.parts) != 1:
        return None
    noisy = offer.parts[0]
    return math.sqrt(noisy.variance) * float(noisy.part.unit)


def _worths(
    queries: Sequence[Query], offers: Sequence[Offer], spread: Sequence[float | None]
) -> list[float | None]:
    """How much the variance of a number of each query counts; None where it is not known."""
    known = [query for query, error in zip(queries, spread, strict=True) if error is not None]
    said = [query.magnitude is not None for query in known]
    if any(said) and not all(said):
        missing = next(query for query in known if query.magnitude is None)
        raise InvalidInput("magnitude", "declared for all queries or for none", missing.title)
    result: list[float | None] = []
    for query, offer, error in zip(queries, offers, spread, strict=True):
        if query.magnitude is not None:
            scale = float(rational(query.magnitude))
        else:
            part = offer.parts[0].part if len(offer.parts) == 1 else None
            scale = 1.0 if part is None else float(part.most * part.unit)
        worth = float(rational(query.weight)) / scale**2
        result.append(None if error is None else worth)
    return result


def _units(
    queries: Sequence[Query], table: Table, plan: Plan, worths: Sequence[float | None]
) -> list[_Unit]:
    """The queries, those that can be measured at once put together, in the order of the first."""
    groups: dict[object, list[int]] = {}
    for index, query in enumerate(queries):
        key = mergeable(query, query.asked_of(table), plan)
        groups.setdefault(index if key is None else key, []).append(index)
    units = []
    for indices in groups.values():
        query = queries[indices[0]]
        if len(indices) > 1:
            members = tuple(queries[index] for index in indices)
            query = Together.of(members, tuple(worths[index] or 0.0 for index in indices))
        units.append(_Unit(query, tuple(indices)))
    return units


def _offers(units: Sequence[_Unit], table: Table, given: Sequence[Share]) -> list[Offer]:
    """The offers of each query, in the order of the queries."""
    offers: dict[int, Offer] = {}
    for unit, share in zip(units, given, strict=True):
        asked = unit.query.asked_of(table)
        offer = unit.query.offer(asked, share)
        if isinstance(unit.query, Together):
            offers |= dict(zip(unit.indices, unit.query.parts(asked, offer), strict=True))
        else:
            offers[unit.indices[0]] = replace(offer, standard_error=standard_error(offer))
    return [offers[index] for index in sorted(offers)]


def _score(offers: Sequence[Offer], worths: Sequence[float | None]) -> float:
    """What is to be least."""
    return math.fsum(
        worth * (offer.standard_error or 0.0) ** 2
        for offer, worth in zip(offers, worths, strict=True)
        if worth is not None
    )


def _better(
    units: Sequence[_Unit],
    parts: Sequence[float],
    offers: Sequence[Offer],
    worths: Sequence[float | None],
    power: int,
) -> list[float]:
    """Parts that make Σ V/part^power least, where the variances at the present parts give the V;
    what has none keeps its part, and nothing gets less than `LEAST` of what is divided."""
    result, free = list(parts), []
    for number, unit in enumerate(units):
        own = [worths[index] for index in unit.indices]
        if None not in own:
            score = _score([offers[index] for index in unit.indices], own)
            free.append(number)
            result[number] = (score * parts[number] ** power) ** (1 / (power + 1))
    whole, wanted = (sum(listed[number] for number in free) for listed in (parts, result))
    for number in free:
        result[number] = whole * max(result[number] / wanted, LEAST)
    return result
