"""What selections cost in ρ: the Rényi divergences of every small case, in exact rationals."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import chance
import selection_oracle
from whosin.noise import selection_epsilon, selection_rho, top_k

BASE = Fraction(3, 2)
"""e^(1/scale): with it all chances of whole scores are rational."""
SCALE = 1 / math.log(BASE)


def gumbel_chances(scores: tuple[int, ...], k: int) -> dict[tuple[int, ...], Fraction]:
    """The chance of every order of the k best: one after the other by the exponential mechanism."""
    weights = [BASE**each for each in scores]
    found = {}
    for order in permutations(range(len(scores)), k):
        left, chance = sum(weights), Fraction(1)
        for place in order:
            chance *= weights[place] / left
            left -= weights[place]
        found[order] = chance
    return found


def exponential_chances(scores: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """Permute and flip: the chance of each winner."""
    heads = [BASE ** (each - max(scores)) for each in scores]
    found: dict[tuple[int, ...], Fraction] = {(place,): Fraction(0) for place in range(len(scores))}
    orders = list(permutations(range(len(scores))))
    for order in orders:
        reached = Fraction(1, len(orders))
        for place in order:
            found[(place,)] += reached * heads[place]
            reached *= 1 - heads[place]
    return found


def renyi(first: dict, second: dict, order: int) -> float:
    moment = sum(p**order / second[key] ** (order - 1) for key, p in first.items())
    return math.log(moment) / (order - 1)


def pairs(width: int, change: tuple[int, ...]):
    for scores in product((0, 1, 3), repeat=width):
        for moved in product(change, repeat=width):
            yield scores, tuple(a + b for a, b in zip(scores, moved, strict=True))


@pytest.mark.parametrize(("k", "monotonic"), [(1, False), (1, True), (2, False), (2, True)])
def test_gumbel_selections_keep_their_rho(k: int, monotonic: bool) -> None:
    """D_α ≤ αρ with ρ = k·ε²/8, for every change of every score by at most 1."""
    rho = selection_rho(1, Fraction(SCALE), k, monotonic=monotonic)
    epsilon = selection_epsilon(1, Fraction(SCALE), 1, monotonic=monotonic)
    assert rho == pytest.approx(k * epsilon**2 / 8, rel=1e-12)
    assert rho >= k * (math.log(BASE) * (1 if monotonic else 2)) ** 2 / 8 * (1 - 1e-12)
    width, worst = (4 if k == 1 else 3), 0.0
    for one, other in pairs(width, (0, 1) if monotonic else (-1, 0, 1)):
        first, second = gumbel_chances(one, k), gumbel_chances(other, k)
        for order in (2, 8):
            worst = max(worst, renyi(first, second, order) / order / rho)
            worst = max(worst, renyi(second, first, order) / order / rho)
    assert 0.9 * (1 if k == 1 else 0.8) < worst <= 1, "and no much smaller ρ would do"


def test_exponential_noise_does_not_keep_that_rho() -> None:
    """Permute and flip costs the same ε and more ρ than ε²/8: it is charged ε²/2."""
    base = math.log(BASE)
    worst = max(
        renyi(exponential_chances(one), exponential_chances(other), 2) / 2
        for one, other in pairs(3, (-1, 0, 1))
    )
    assert (2 * base) ** 2 / 8 < worst <= (2 * base) ** 2 / 2


@pytest.mark.parametrize("drawn_by", ["opendp", "tests"])
@pytest.mark.parametrize("gumbel", [True, False], ids=["gumbel", "exponential"])
@pytest.mark.parametrize("k", [1, 2])
def test_selections_have_the_chances_of_their_noise(k: int, gumbel: bool, drawn_by: str) -> None:
    """OpenDP's, which nothing repeats, and those of all other tests: no answer and no winner has a
    count that its chance hardly ever gives, and the other noise would give one."""
    if drawn_by == "opendp":
        chance.fresh()
    scores, runs = (0, 0, 3), 5000
    both = gumbel_chances(scores, k), selection_oracle.chances(scores, k, SCALE)
    law, other = both if gumbel else both[::-1]
    drawn = [tuple(top_k(np.array(scores), k, SCALE, gumbel=gumbel).tolist()) for _ in range(runs)]
    told_apart = False
    for event in {*law, *((place,) for place in range(len(scores)))}:
        found, true, wrong = (
            sum(weight for order, weight in each.items() if order[: len(event)] == event)
            for each in (Counter(drawn), law, other)
        )
        low, high = chance.likely_counts(true, runs)
        least, most = chance.likely_counts(wrong, runs)
        assert low <= found <= high, event
        told_apart |= high < least or most < low
    assert told_apart
    smallest = top_k([5.5, 1.0, 3.0], 2, 1e-3, negate=True, gumbel=gumbel)
    assert smallest.tolist() == [1, 2]
    assert top_k(np.arange(1000), 3, 1e-3, gumbel=gumbel).tolist() == [999, 998, 997]
