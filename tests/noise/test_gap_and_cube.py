"""The winner with its gap, and noise on a cube: exact laws, and their costs by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, product

import numpy as np
import pytest
from scipy import stats

from amounts import cases
from whosin import noise
from whosin.noise.additive import eulerian_numbers

RHO = Fraction(1, 2)
Law = dict[tuple[int, int], Fraction]


@lru_cache(maxsize=20_000)
def gap_law(
    scores: tuple[int, ...], most: int, *, plain: bool = False, silent: int | None = None
) -> Law:
    """Pr[winner, gap] for gaps up to `most`, in exact rationals: the sum over the winner's noise of
    the product of the others' distribution functions, by inclusion and exclusion. `plain` leaves
    the order of ties out of the gap; `silent` is a candidate without noise."""
    law = {}
    for i in range(len(scores)):
        reaches = []
        for gap in range(most + 2):
            # All others at most r_i − gap, and in the order before i at most one less.
            late = [0 if plain and gap else int(j < i) for j in range(len(scores))]
            reaches.append(_reach(scores, i, gap, late, silent))
        for gap in range(most + 1):
            law[i, gap] = reaches[gap] - reaches[gap + 1]
    return law


def _reach(scores, i, gap, late, silent) -> Fraction:
    """Pr[r_j + late_j + gap ≤ r_i for all others j]."""
    others = [(scores[i] - gap - late[j] - q, j) for j, q in enumerate(scores) if j != i]
    # P(Z_j ≤ k + d) = 1 − ρ^(k+d+1) from k + d ≥ 0 on; without noise 1 from there on.
    start = max([0, *(-d for d, _ in others)])
    if i == silent:
        factors = [1 - RHO ** (d + 1) if d >= 0 else 0 for d, _ in others]
        return Fraction(math.prod(factors))
    noisy = [d for d, j in others if j != silent]
    total = Fraction(0)
    for chosen in chain.from_iterable(combinations(noisy, n) for n in range(len(noisy) + 1)):
        power = len(chosen) + 1
        first = RHO ** (start * power + sum(d + 1 for d in chosen))
        total += (-1) ** len(chosen) * first / (1 - RHO**power)
    return (1 - RHO) * total


def worst_ratio(first: Law, second: Law) -> Fraction:
    worst = Fraction(1)
    for key, chance in first.items():
        other = second[key]
        if chance or other:
            if not chance or not other:
                return Fraction(10**9)
            worst = max(worst, chance / other, other / chance)
    return worst


def test_the_law_is_that_of_the_definition():
    """Against a sum over all noises up to a bound, which leaves 2^-18 out."""
    for scores in ((0, 0), (2, 0, 1), (0, -3, 0)):
        law = gap_law(scores, 12)
        summed = dict.fromkeys(law, 0.0)
        for drawn in product(range(20), repeat=len(scores)):
            noisy = [q + z for q, z in zip(scores, drawn, strict=True)]
            best = noisy.index(max(noisy))
            gap = min(noisy[best] - r - (j < best) for j, r in enumerate(noisy) if j != best)
            if gap <= 12:
                summed[best, gap] += 0.5 ** (len(scores) + sum(drawn))
        for key, chance in law.items():
            assert math.isclose(chance, summed[key], abs_tol=1e-5), (scores, key)


@cases(8, 600)
def test_the_lexicographic_gap_is_free(count):
    """Every change of every score by at most 1 moves no (winner, gap) by more than ρ^(−2), or
    ρ^(−1) if all move the same way; and never by more than the largest difference of two
    changes."""
    rng = np.random.default_rng(3)
    everything = [*product(range(-1, 2), repeat=3), (2, 1, -2), (0, 0, 0, 0), (3, 0, 0, -1)]
    random = [tuple(rng.integers(-4, 5, rng.integers(2, 5)).tolist()) for _ in range(count)]
    attained = Fraction(1)
    for scores in [*everything[:: 1 if count > 100 else 5], *random]:
        before = gap_law(scores, 8)
        for change in product((-1, 0, 1), repeat=len(scores)):
            after = gap_law(tuple(q + c for q, c in zip(scores, change, strict=True)), 8)
            ratio = worst_ratio(before, after)
            assert ratio <= RHO ** -(max(change) - min(change)), (scores, change)
            attained = max(attained, ratio)
    assert attained == RHO**-2, "and no smaller promise would do"


def test_the_plain_gap_costs_twice():
    """THEORY F25: (2, 1, −2) → (1, 2, −1), the second one wins with gap 0."""
    one, other = (gap_law(q, 3, plain=True) for q in ((2, 1, -2), (1, 2, -1)))
    assert other[1, 0] / one[1, 0] == RHO**-4
    fair = [gap_law(q, 3) for q in ((2, 1, -2), (1, 2, -1))]
    assert worst_ratio(*fair) <= RHO**-2


def test_none_of_them_needs_noise():
    """A candidate without noise: a gap that one study shows and its neighbour cannot."""
    scores, moved = (2, 0), (1, 0)
    noisy = gap_law(scores, 6), gap_law(moved, 6)
    assert worst_ratio(*noisy) <= RHO**-2
    silent = gap_law(scores, 6, silent=1), gap_law(moved, 6, silent=1)
    assert worst_ratio(*silent) == 10**9


def test_winners_and_gaps_are_drawn_by_that_law():
    scale, scores, runs = 1 / Fraction(math.log(2)), (1, 0, 2), 6000
    law = gap_law(scores, 3)
    drawn = [noise.noisy_max_gap(np.array(scores), scale) for _ in range(runs)]
    keys = [key for key, chance in law.items() if chance * runs > 20]
    seen = [drawn.count(key) for key in keys]
    for other, fits in ((law, True), (gap_law((0, 1, 2), 3), False)):
        wanted = [float(other[key] * runs) for key in keys]
        table = [*seen, runs - sum(seen)], [*wanted, runs - sum(wanted)]
        assert (stats.chisquare(*table).pvalue > 1e-6) == fits


def cube_law(dimensions: int, reach: int, a: Fraction) -> dict[tuple[int, ...], Fraction]:
    """a^‖v‖∞ / Σ_r (shell of r) a^r over all of Z^M, for the vectors in a box."""
    # Σ_r ((2r+1)^M − (2r−1)^M) a^r = (1 − a) Σ_r (2r+1)^M a^r, by parts; the rest of the sum is
    # less than the last term's geometric tail, and far below what is compared.
    whole = (1 - a) * sum((2 * r + 1) ** dimensions * a**r for r in range(400))
    box = product(range(-reach, reach + 1), repeat=dimensions)
    return {v: a ** max(map(abs, v)) / whole for v in box}


def test_radii_have_eulerian_weights():
    """Σ_K (2K+1)^M z^K (1 − z)^(M+1) = Σ_j B(M, j) z^j, coefficient by coefficient."""
    for order in range(1, 8):
        wanted = [
            sum(
                (-1) ** i * math.comb(order + 1, i) * (2 * (j - i) + 1) ** order
                for i in range(j + 1)
            )
            for j in range(order + 1)
        ]
        assert eulerian_numbers(order) == wanted
        assert sum(wanted) == 2**order * math.factorial(order)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_cube_noise_costs_what_it_says(dimensions):
    """Over a box of Z^M: every shift by at most Δ in each coordinate, Δ = 1, 2."""
    a, reach = Fraction(1, 2), 4
    law = cube_law(dimensions, reach, a)
    for change in (1, 2):
        worst = max(
            law[v] / law[w]
            for v in law
            for shift in product((-change, 0, change), repeat=dimensions)
            if (w := tuple(x + y for x, y in zip(v, shift, strict=True))) in law
        )
        assert worst == a**-change
        scale = 1 / Fraction(math.log(2))
        assert math.isclose(noise.CubeNoise(scale, dimensions).cost(change), change * math.log(2))
    assert noise.CubeNoise.at_epsilon(4, Fraction(1, 2), dimensions).scale == 8


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_cube_noise_has_its_law(dimensions):
    scale, runs = 1 / Fraction(math.log(2)), 8000
    drawn = noise.CubeNoise(scale, dimensions).draw(runs)
    assert drawn.shape == (runs, dimensions)
    law = cube_law(dimensions, 1, Fraction(1, 2))
    keys = [key for key, chance in law.items() if chance * runs > 20]
    counted = dict.fromkeys(keys, 0)
    for row in map(tuple, drawn.tolist()):
        if row in counted:
            counted[row] += 1
    seen = list(counted.values())
    for a, fits in ((Fraction(1, 2), True), (Fraction(3, 5), False)):
        chances = cube_law(dimensions, 1, a)
        wanted = [float(chances[key] * runs) for key in keys]
        table = [*seen, runs - sum(seen)], [*wanted, runs - sum(wanted)]
        assert (stats.chisquare(*table).pvalue > 1e-6) == fits


def test_cube_noise_knows_its_width():
    """Variance by summation of the marginal law, tails of the wide law by drawing, and the gain
    over Laplace noise that F29 states."""
    for dimensions, scale in ((1, Fraction(3)), (2, Fraction(1)), (5, Fraction(7, 2))):
        a = math.exp(-1 / scale)
        radii = np.arange(0.0, 400)
        weights = (2 * radii + 1) ** dimensions * a**radii
        wanted = weights @ (radii * (radii + 1)) / 3 / weights.sum()
        assert math.isclose(noise.CubeNoise(scale, dimensions).variance, wanted, rel_tol=1e-9)
    for dimensions, gain in ((5, 1.9), (20, 2.3)):
        cube = noise.CubeNoise(Fraction(1000), dimensions)
        laplace = noise.LaplaceNoise(Fraction(1000) * dimensions)
        assert abs(math.sqrt(laplace.variance / cube.variance) - gain) < 0.1
        drawn = np.abs(cube.draw(3000)[:, 0])
        assert abs((drawn > cube.continuous_quantile(0.95)).mean() - 0.05) < 0.02
        assert stats.kstest(drawn, lambda x, c=cube: 1 - c.continuous_tail(x)).pvalue > 1e-4
    assert math.isclose(
        noise.CubeNoise(Fraction(9), 1).continuous_quantile(0.95),
        noise.LaplaceNoise(Fraction(9)).continuous_quantile(0.95),
        rel_tol=1e-9,
    )
