"""Private selection by its definition: how likely each answer is, over every order of candidates.

Permute-and-flip (McKenna and Sheldon 2020): candidates come in random order, and each is taken with
probability e^(−(best − score)/scale); the next of k is chosen in the same way among the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from flint import arb

RARE = 0.04
Answer = tuple[int, ...]


def chances(
    scores: Sequence[int], k: int, scale: float, exp: Callable[[Any], Any] = math.exp
) -> dict[Answer, Any]:
    """The probability of every answer: k places, best first."""
    return _chances(dict(enumerate(scores)), k, lambda gap: exp(gap / scale))


def _chances(scores: dict[int, int], k: int, keep: Callable[[int], Any]) -> dict[Answer, Any]:
    if k == 0:
        return {(): 1}
    best, orders = max(scores.values()), list(permutations(scores))
    first: dict[int, Any] = dict.fromkeys(scores, 0)
    for order in orders:
        left: Any = 1
        for place in order:
            taken = left * keep(scores[place] - best)
            first[place] += taken / len(orders)
            left -= taken
    found = {}
    for place, chance in first.items():
        others = {other: score for other, score in scores.items() if other != place}
        for rest, then in _chances(others, k - 1, keep).items():
            found[(place, *rest)] = chance * then
    return found


def level(scores: Sequence[int], others: Sequence[int], k: int, scale: float) -> float:
    """The exact ε between two lists of scores, from balls: an upper end of the largest ratio."""
    worlds = [chances(each, k, scale, lambda power: arb(power).exp()) for each in (scores, others)]
    ratios = [(worlds[0][answer] / worlds[1][answer]).log() for answer in worlds[0]]
    return max(float(abs(ratio).upper()) for ratio in ratios)


def seen_level(scores: Sequence[int], others: Sequence[int], k: int, scale: float) -> float:
    """The same among answers that are not rare, in floating point: what an audit can count."""
    one, two = chances(scores, k, scale), chances(others, k, scale)
    ratios = [math.log(one[a] / two[a]) for a in one if min(one[a], two[a]) > RARE]
    return max(map(abs, ratios), default=0.0)
