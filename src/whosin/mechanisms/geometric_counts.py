"""A count with two-sided geometric noise, as a table of counts by outputs.

Noisy counts are all whole numbers, but those below 0 have likelihoods in proportion to each other,
whatever the count 0 … n is, and so have those above n: taking them together loses nothing. Maps
that mix some of them with others need the first few on either side told apart (`margin`).
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import numpy as np

from whosin.exact import exp_down, flint_rational, probability, rational
from whosin.mechanisms.count_table import Beyond, CountTable
from whosin.spaces.memory import require_table

LEFT = 64 * math.log(2)
"""Minus the logarithm of what may be left beyond the margin where a map needs all of it."""
SMALLEST = 1e-290


def geometric_counts(people: int, alpha: object, scale: object, margin: int) -> CountTable:
    """Pr[noisy count | count], one column for each of −margin … people + margin and two for what is
    beyond them.

    Args:
        alpha: the noise has probability ∝ α^|x|: exact; or
        scale: α = e^(−1/scale), rounded down, so that there is no more noise than that.
        margin: reduced to where less than 2^−64 is left.
    """
    exact = alpha is not None
    base = probability(alpha, "alpha") if exact else exp_down(-1 / float(rational(scale)))
    margin = min(margin, math.ceil(LEFT / -math.log(base)) + 1)
    first, last = -margin, people + margin
    outcomes = np.arange(first - 1, last + 2)
    require_table("the table of counts by outputs", people + 1, len(outcomes))
    counts = np.repeat(np.arange(people + 1), len(outcomes))
    columns = np.tile(np.arange(len(outcomes)), people + 1)
    apart = np.abs(outcomes[columns] - counts)
    # Σ over all further counts of α^distance is α^(distance of the first of them)/(1 − α).
    at_end = (columns == 0) | (columns == len(outcomes) - 1)
    number = flint_rational(base) if exact else float(base)
    powers = np.empty(int(apart.max()) + 1, dtype=object if exact else float)
    power = number**0
    for exponent in range(len(powers)):
        powers[exponent] = power
        power = power * number
    weights = powers[apart] * np.where(at_end, 1 / (1 + number), (1 - number) / (1 + number))
    kept = weights != 0
    outputs: tuple[Hashable, ...] = (
        Beyond(True, first),
        *(int(each) for each in outcomes[1:-1]),
        Beyond(False, last),
    )
    lost = not exact and float(powers[-1]) < SMALLEST
    return CountTable(people, counts[kept], columns[kept], weights[kept], outputs, lost)
