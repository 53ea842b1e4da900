"""Noise as value objects, against sums over their laws in exact rationals and floats."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from whosin.errors import InvalidInput
from whosin.noise import GaussianNoise, LaplaceNoise
from whosin.noise.distributions import make_noise

WIDTHS = [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(29, 10), Fraction(40)]


def law(noise: LaplaceNoise | GaussianNoise) -> dict[int, float]:
    """Pr[X = k], summed over the integers that have any weight in floats."""
    if isinstance(noise, LaplaceNoise):
        weights = {k: math.exp(-abs(k) / float(noise.scale)) for k in range(-3000, 3001)}
    else:
        square = 2 * float(noise.sigma_squared)
        weights = {k: math.exp(-(k**2) / square) for k in range(-3000, 3001)}
    total = math.fsum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_moments_tails_and_quantiles_are_those_of_the_law(kind: str, width: Fraction) -> None:
    noise = make_noise(kind, width)
    exact = law(noise)
    variance = math.fsum(k**2 * p for k, p in exact.items())
    assert noise.variance == pytest.approx(variance, rel=1e-9, abs=2e-12)
    for confidence in (0.5, 0.9, 0.95, 0.999):
        within = noise.quantile(confidence)
        outside = math.fsum(p for k, p in exact.items() if abs(k) > within)
        assert outside <= (1 - confidence) * (1 + 1e-9)
        assert outside <= noise.tail(within) <= 1
        if kind == "laplace":
            assert noise.mean_error == pytest.approx(
                math.fsum(abs(k) * p for k, p in exact.items()), rel=1e-9, abs=1e-12
            )
            assert noise.tail(within) == pytest.approx(outside, rel=1e-6, abs=1e-15)
            nearer = math.fsum(p for k, p in exact.items() if abs(k) > within - 1)
            assert within == 0 or nearer > 1 - confidence, "the least such distance"


@pytest.mark.parametrize("sensitivity", [1, 3, Fraction(7, 2)])
@pytest.mark.parametrize("budget", [Fraction(1, 7), Fraction(1), Fraction(13, 3)])
def test_noise_for_a_budget_costs_that_budget(sensitivity: Fraction, budget: Fraction) -> None:
    laplace = LaplaceNoise.at_epsilon(sensitivity, budget)
    assert laplace.cost(sensitivity) == budget and laplace.cost(2 * sensitivity) == 2 * budget
    gaussian = GaussianNoise.at_rho(Fraction(sensitivity) ** 2, budget)
    assert budget * Fraction(999_999, 10**6) < gaussian.cost(Fraction(sensitivity) ** 2) <= budget
    for noise in (laplace, gaussian):
        assert noise.at_cost(4).cost(sensitivity) == 4 * noise.cost(sensitivity)
        assert make_noise(noise.kind, noise.width) == noise


@pytest.mark.parametrize("noise", [LaplaceNoise(Fraction(5)), GaussianNoise(Fraction(25))])
def test_draws_follow_the_law_that_the_object_states(noise: LaplaceNoise | GaussianNoise) -> None:
    """And would be seen to be off by 15%."""
    drawn = noise.draw(20_000)
    exact, bins = law(noise), range(-15, 16)
    observed = [int((drawn == k).sum()) for k in bins]
    for factor, holds in ((1, True), (Fraction(3, 4), False)):
        stated = law(noise.at_cost(factor)) if factor != 1 else exact
        expected = np.array([stated[k] for k in bins]) * len(drawn)
        rest = len(drawn) - sum(observed), len(drawn) - expected.sum()
        p = stats.chisquare([*observed, rest[0]], [*expected, rest[1]]).pvalue
        assert bool(p > 1e-6) is holds


def test_no_noise_is_none_and_too_much_is_refused() -> None:
    for noise in (LaplaceNoise(Fraction(0)), GaussianNoise(Fraction(0))):
        assert not noise.draw(3).any() and noise.quantile(0.95) == 0
        assert noise.tail(0) == 0 and noise.tail(-1) == 1 and 0 < noise.variance < 1e-9
    for wide in (LaplaceNoise(Fraction(2**53)), GaussianNoise(Fraction(2**106))):
        with pytest.raises(InvalidInput) as refused:
            wide.check_drawable("spend more")
        assert refused.value.field == "noise" and refused.value.hint == "spend more"


def test_continuous_noise_is_as_far_as_its_density_says() -> None:
    """By the integral of the density beyond the quantile, and a smaller distance leaves more."""
    for noise, density in (
        (LaplaceNoise(Fraction(7, 2)), lambda x: math.exp(-x / 3.5) / 7),
        (GaussianNoise(Fraction(9)), lambda x: math.exp(-(x**2) / 18) / math.sqrt(18 * math.pi)),
    ):
        grid = np.linspace(0, 60, 60_001)
        weights = np.vectorize(density)(grid) * (grid[1] - grid[0]) * 2
        within = noise.continuous_quantile(0.95)
        assert weights[grid > within].sum() == pytest.approx(0.05, abs=1e-4)
        assert weights[grid > 0.9 * within].sum() > 0.06
        assert (weights * grid).sum() == pytest.approx(noise.continuous_error, rel=1e-3)


@pytest.mark.parametrize("kind", [LaplaceNoise, GaussianNoise])
@pytest.mark.parametrize("distance", [0, 1, 2, 10, 37])
def test_the_widest_noise_within_a_distance_is_the_widest(
    kind: type[LaplaceNoise | GaussianNoise], distance: int
) -> None:
    """By summing its law; a noise that is a thousandth wider is outside too often."""
    noise = kind.within(distance)
    for width, most in ((noise.width, 0.05), (noise.width * Fraction(1001, 1000), 1.0)):
        beyond = math.fsum(p for k, p in law(kind(width)).items() if abs(k) > distance)
        assert (beyond <= 0.05 + 1e-9) is (most == 0.05)


def test_widths_of_the_theory() -> None:
    """F33: ε for a count within ±0, ±1 and ±10."""
    costs = [float(LaplaceNoise.within(w).cost(1)) for w in (0, 1, 10)]
    assert costs == pytest.approx([3.664, 1.765, 0.2843], abs=5e-4)
