"""The least distortion at a level against every prior of a set (T26): row by row."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

from whosin.distortion.closed.costs import check_cost
from whosin.distortion.mechanisms.per_row import PerRow, identity
from whosin.distortion.optimum import Optimum
from whosin.distortion.program.least_favourable import best_row
from whosin.distortion.rate.information import information_of
from whosin.distortion.symmetry.detection import structure
from whosin.errors import ImpossibleTarget, InvalidInput, Unsupported
from whosin.exact import exp_down, exp_up, log_up, round_down, round_up
from whosin.priors import Independent, PriorSet
from whosin.priors.sets import Row
from whosin.spaces import Records, Space

MOST_VALUES = 24
"""Values of a row: a program has about the cube of this number of constraints."""
NOTE = (
    "distortion is that of the worst prior of the set, and mutual information that of the "
    "least favourable one found"
)


def best_over(
    space: Space, prior: PriorSet, cost: object, notion: str, epsilon: float | None
) -> Optimum:
    """The mechanism whose distortion under its worst prior of the set is least.

    Raises:
        Unsupported: another question than for the distortion at an ε of differential privacy or
            identifiability, or rows of too many values.
        ImpossibleTarget: identifiability below what the set alone gives away.
    """
    if not isinstance(space, Records):
        raise InvalidInput("space", "Records(rows, values)", repr(space))
    prior.of_rows(space)  # it fits
    sets, matrix = prior.sets, check_cost(space, cost)
    if epsilon is None or notion == "mutual-information":
        raise Unsupported(
            'a set of priors takes an epsilon, and "dp" or "identifiability" as notion: other '
            "optima over a set are not settled at its corners"
        )
    if space.values > MOST_VALUES:
        raise Unsupported(f"a set of priors takes up to {MOST_VALUES} values, not {space.values}")
    if epsilon == math.inf:
        learned = structure(space, _one_prior([one.likeliest(0) for one in sets])).entropy
        result = (0.0, epsilon, learned, identity(space.values), 0.0)
        note = "no distortion: the data themselves; mutual information is of one prior of the set"
        return Optimum(space, notion, "epsilon", *result, 0.0, 0.0, ("T26",), note)
    floor = Fraction(1)
    if notion == "identifiability":
        floor = _reachable(prior, epsilon)
        epsilon = max(epsilon, log_up(floor))
    least, most = max(exp_down(epsilon), floor), max(exp_up(epsilon), floor)
    best = {}
    for one in dict.fromkeys(sets):
        pairs = ((a, b) for a in range(one.values) for b in range(one.values) if a != b)
        odds = one.all_odds() if notion == "identifiability" else dict.fromkeys(pairs, Fraction(1))
        exact = {pair: Fraction(ratio) for pair, ratio in odds.items()}
        best[one] = best_row(one, matrix, exact, least, most)
    times = Counter(sets) if len(sets) > 1 else {sets[0]: space.rows}
    value = sum((n * best[one].distortion for one, n in times.items()), Fraction(0))
    bound = sum((n * best[one].bound for one, n in times.items()), Fraction(0))
    made = PerRow(tuple(best[one].matrix for one in (sets if len(best) > 1 else sets[:1])))
    known = structure(space, _one_prior([best[one].member for one in sets]))
    gap = round_up(max(value - bound, Fraction(0)))
    result = (round_up(value), epsilon, information_of(known, made), made, gap)
    ends = (round_down(bound), round_up(value))
    return Optimum(space, notion, "epsilon", *result, *ends, ("T26",), NOTE)


def _one_prior(rows: list[Row]) -> Independent:
    """The prior with these rows, or with one distribution for any number of rows."""
    return Independent(rows if len(rows) > 1 else rows[0])


def _reachable(prior: PriorSet, epsilon: float) -> Fraction:
    """The largest odds of the set, unless they are above e^ε."""
    odds = prior.spread
    if not isinstance(odds, Fraction):
        raise ImpossibleTarget(
            "a prior of the set has zeros, so no mechanism has finite identifiability", math.inf
        )
    spread = log_up(odds)
    if epsilon < spread and not math.isclose(epsilon, spread, rel_tol=1e-14):
        raise ImpossibleTarget(
            f"no mechanism has identifiability below {spread:.6g}, which is what the set of priors "
            f"alone gives away; got {epsilon:g}",
            spread,
        )
    return odds
