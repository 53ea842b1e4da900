"""Intervals of quotients: the steps of the argument one by one, then the coverage itself."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from amounts import some
from whosin.noise import LaplaceNoise
from whosin.noise.distributions import Noise, make_noise
from whosin.release.contribution_bounds import ROWS_PART, Aggregate
from whosin.release.cost import NoisyAggregate
from whosin.release.queries.sums import laplace_tail, noisy_proportion, noisy_quotient

SURE = 1e-6
KINDS = ("laplace", "gaussian")


@pytest.mark.parametrize("scale", [0.2, 0.5, 0.9, 2.0, 4.7, 300.0])
def test_whole_laplace_noise_is_a_step_of_continuous_noise(scale):
    """|X + U| ≤ |L| + 1/(8s) in distribution, at every point and not only at the halves."""
    places = np.linspace(0, 40 * scale + 3, 20_001)
    a, below = math.exp(-1 / scale), np.floor(places + 0.5)

    def tail(k):  # Pr[X ≥ k], k ≥ 1
        return a**k / (1 + a)

    part = places + 0.5 - below  # of the step around `below`
    outer = tail(below) + part * (tail(below + 1) - tail(below))
    middle = 1 / 2 - places * (1 - a) / (1 + a)  # the step around 0, of which half lies above
    smooth = np.where(below > 0, outer, middle)
    shifted = np.exp(-np.maximum(places - 1 / (8 * scale), 0) / scale) / 2
    assert (smooth <= shifted * (1 + 1e-12)).all()
    if scale < 1:
        assert (smooth > np.exp(-places / scale) / 2 * (1 + 1e-6)).any(), "the 1/(8s) is needed"


@pytest.mark.parametrize("scale", [4.0, 4.7, 11.0, 300.0])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_noise_is_below_continuous_noise_plus_one(kind, scale):
    """Pr[X > x] ≤ Pr[L + 1 > x] for every x, from the probabilities of all whole numbers."""
    support = np.arange(-int(45 * scale), int(45 * scale) + 1)
    weights = np.exp(
        -np.abs(support) / scale if kind == "laplace" else -((support / scale) ** 2) / 2
    )
    weights /= weights.sum()
    beyond = weights[::-1].cumsum()[::-1]  # Pr[X ≥ k]
    law = stats.laplace(0, scale) if kind == "laplace" else stats.norm(0, scale)
    # Pr[X > x] is constant from k − 1 up to k, where Pr[L + 1 > x] is least.
    assert (beyond <= law.sf(support - 1.0) * (1 + 1e-9) + 1e-15).all()
    assert (beyond > law.sf(support + 1.0) * (1 - 1e-9) - 1e-15).all(), "and no coarse bound"


def above(value: float) -> float:
    """Pr[L > value] for Laplace noise of scale 1."""
    return math.exp(-value) / 2 if value >= 0 else 1 - math.exp(value) / 2


@pytest.mark.parametrize("other", [0.0, 1e-9, 0.3, 0.9989, 0.9995, 1.0, 1.0005, 1.2, 50.0])
def test_tails_of_two_laplace_noises(other):
    for beyond in (0.0, 0.5, 3.0, 20.0):
        found = float(laplace_tail(np.array([beyond]), 1.0, np.array([other]))[0])

        def given(value, beyond=beyond):
            sides = above(beyond - other * value) + above(beyond + other * value)
            return math.exp(-abs(value)) / 2 * sides

        ends = sorted({-60.0, -beyond / max(other, 1e-3), 0.0, beyond / max(other, 1e-3), 60.0})
        inner = [end for end in ends if -60 <= end <= 60]
        exact = sum(
            integrate.quad(given, low, high, limit=200, epsabs=1e-12)[0]
            for low, high in itertools.pairwise(inner)
        )
        assert exact * (1 - 1e-6) - 1e-9 <= found <= exact * 1.02 + 1e-9


@pytest.mark.parametrize("failing", [0.05, 0.025])
def test_the_reach_grows_and_is_convex(failing):
    def reach(other):
        def miss(beyond):
            return float(laplace_tail(np.array([beyond]), 1.0, np.array([other]))[0]) - failing

        return optimize.brentq(miss, 1e-9, 1e4, xtol=1e-12)

    places = np.linspace(0, 8, 161)
    away = places[np.abs(places - 1) > 0.01]  # where both are taken for the larger one
    reaches = np.array([reach(place) for place in places])
    assert (np.diff(reaches) > 0).all()
    slopes = np.diff([reach(place) for place in away]) / np.diff(away)
    assert (np.diff(slopes) > -1e-6).all()


CASES = [  # scales of the sum and of the rows, rows, quotient
    (40, 40, 4000, 0.3),
    (600, 44, 4000, -8),
    (600, 44, 200, 8),
    (600, 44, 60, 14),
    (30, 400, 3000, 14.9),
    (5, 5, 30, 0),
    (2, 2, 100, 3),
    (600, 44, 0, 0),
]


def spread_noise(kind: str, spread: float | Fraction) -> Noise:
    """Noise of a scale, or of a σ."""
    exact = Fraction(spread)
    return make_noise(kind, exact**2 if kind == "gaussian" else exact)


@pytest.mark.parametrize("case", some(CASES, 3))
@pytest.mark.parametrize("kind", KINDS)
def test_coverage(kind, case):
    """Of 40,000 intervals; a promise of 94% for 95% would be seen."""
    scales, (rows, middle) = case[:2], case[2:]
    noisy = (
        NoisyAggregate(
            Aggregate("sum", Fraction(1, 10), -150, 150), spread_noise(kind, 10 * scales[0])
        ),
        NoisyAggregate(ROWS_PART, spread_noise(kind, scales[1])),
    )
    total, runs = round(10 * middle * rows), 40_000
    sums = total + noisy[0].noise.draw(runs), rows + noisy[1].noise.draw(runs)
    value, low, high = noisy_quotient(sums, noisy, (-15.0, 15.0))
    assert (low <= value).all() and (value <= high).all()
    assert low.min() >= -15 and high.max() <= 15
    exact = total / 10 / rows if rows else 0.0
    hits = int(((low <= exact + 1e-9) & (exact - 1e-9 <= high)).sum())
    assert stats.binom.cdf(hits, runs, 0.95) > SURE
    if rows >= 3000:  # where many rows leave nothing to the ends of the range
        assert stats.binom.sf(hits - 1, runs, 0.955) > SURE, "wider than its noises explain"
        assert stats.binom.sf(hits - 1, runs, 0.94) < SURE


PROPORTIONS = [  # units a row, scale over that, rows, proportion
    (78, 0.91, 1000, 0.35),
    (78, 2.0, 400, 0.9),
    (1, 0.91, 1000, 0.35),
    (1, 10.0, 2000, 0.5),
    (4, 0.33, 500, 0.1),
    (1, 0.2, 500, 0.1),
    (300, 40.0, 30, 0.02),
    (300, 3.0, 0, 0.5),
]


@pytest.mark.parametrize("case", some(PROPORTIONS, 4))
@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_proportions(kind, case):
    """And at usual ε an interval is little wider than the 4.2 root mean square errors of Laplace
    noise, or the 3.9 of Gaussian noise; it was 7.5."""
    width, scale, rows, share = case
    part = Aggregate("above", Fraction(1, 10), 0, width, paired=True)
    noisy = [NoisyAggregate(part, spread_noise(kind, Fraction(scale) * width))] * 2
    above, runs = round(share * rows * width), 20_000
    exact = above / (rows * width) if rows else 0.5
    sums = above + noisy[0].noise.draw(runs), rows * width - above + noisy[1].noise.draw(runs)
    value, low, high = noisy_proportion(sums, noisy)
    assert (low <= value).all() and (value <= high).all()
    assert low.min() >= 0 and high.max() <= 1
    hits = int(((low <= exact + 1e-9) & (exact - 1e-9 <= high)).sum())
    assert stats.binom.cdf(hits, runs, 0.95) > SURE
    if rows >= 400 and width > 4:
        error = math.sqrt(np.mean((value - exact) ** 2))
        assert 3.5 < np.mean(high - low) / error < 4.6
        narrow = np.abs(value - exact) <= 0.9 * np.where(value < exact, high - value, value - low)
        assert stats.binom.cdf(int(narrow.sum()), runs, 0.95) < SURE, "no room to spare"


def test_wrong_scales_are_noticed():
    """Noise that is a tenth larger than what the interval was told."""
    told = (
        NoisyAggregate(Aggregate("sum", Fraction(1, 10), -150, 150), LaplaceNoise(Fraction(6000))),
        NoisyAggregate(ROWS_PART, LaplaceNoise(Fraction(44))),
    )
    real = [NoisyAggregate(each.part, each.noise.at_cost(Fraction(10, 11))) for each in told]
    sums = 320_000 + real[0].noise.draw(40_000), 4000 + real[1].noise.draw(40_000)
    _, low, high = noisy_quotient(sums, told, (-15.0, 15.0))
    hits = int(((low <= 8) & (high >= 8)).sum())
    assert stats.binom.cdf(hits, 40_000, 0.95) < SURE


def test_no_noise_leaves_the_quotient():
    none = [
        NoisyAggregate(Aggregate("sum", Fraction(1), -15, 15), LaplaceNoise(Fraction(1, 10**6))),
        NoisyAggregate(ROWS_PART, LaplaceNoise(Fraction(1, 10**6))),
    ]
    value, low, high = noisy_quotient((np.array([30]), np.array([12])), none, (-15.0, 15.0))
    assert value[0] == 2.5 and low[0] == pytest.approx(2.5) and high[0] == pytest.approx(2.5)
    assert math.isclose(low[0], high[0], rel_tol=1e-9)
