"""A small failure probability (F9, F19): valid against exact enumeration, and close to the truth.

F9 bounds Pr[r(o) > g | t] by the privacy profile. Here profiles and failure probabilities of finite
mechanisms are enumerated in exact rationals, so that a bound that is too small would show.
"""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from itertools import combinations, product

import flint
import numpy as np
import pytest

import oracle
import whosin as wi
from refusals import refused
from whosin.calibration import PlannedQuery, Process, calibrate, calibrate_process
from whosin.calibration import failure as calibration_failure
from whosin.calibration.accounting import _loss_distribution
from whosin.calibration.failure import failure_bound, gaussian_plan, gaussian_profile, log_normal
from whosin.errors import InvalidInput, Unsupported
from whosin.families import AtMostKnown, Cliques, FixedSize, Independent, OneOf
from whosin.spaces.quotients import binomial

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)


def hockey_stick(top, bottom, growth: Fraction) -> Fraction:
    """sup over events of P(S) − growth · Q(S)."""
    return sum((max(p - growth * q, ZERO) for p, q in zip(top, bottom, strict=True)), ZERO)


# (a) The Gaussian profile.


@pytest.mark.parametrize("sigma", [0.7, 2.0, 8.0])
def test_gaussian_profile_against_the_accountant(sigma):
    """dp-accounting's bound is never below ours, and close to it."""
    epsilons = np.linspace(0, 2 / sigma, 9)
    exact = gaussian_profile(sigma)(epsilons)
    bound = Process().profile(sigma)(epsilons)
    assert np.all(bound >= exact * (1 - 1e-9) - 1e-13)
    assert bound == pytest.approx(exact, rel=1e-3, abs=1e-9)


# (b) The bound is a bound.


def exact_profile(pairs):
    """δ(ε) of a finite mechanism over all pairs of rows (with, without), event by event."""
    top, bottom = (np.array([pair[side] for pair in pairs], dtype=float) for side in (0, 1))

    def profile(epsilons):
        growths = np.exp(np.asarray(epsilons))[:, None, None]
        return np.maximum(top - growths * bottom, 0).sum(axis=2).max(axis=1)

    return profile


def failure(prior: dict, channel: dict, t: int, g: Fraction) -> Fraction:
    """Pr[r(o) > g | t] under one prior."""
    sides = [{w: m for w, m in prior.items() if (t in w) == inside} for inside in (True, False)]
    outputs = range(len(next(iter(channel.values()))))
    laws = [
        [sum(m * channel[w][o] for w, m in side.items()) / sum(side.values()) for o in outputs]
        for side in sides
    ]
    return sum((p for p, q in zip(*laws, strict=True) if oracle.ratio(p, q) > g), ZERO)


def random_g(rng: random.Random) -> Fraction:
    return 1 + Fraction(rng.randint(1, 300), 100)


def test_f9_covers_random_mechanisms_under_random_independent_priors():
    """The true failure probability is at most F9 of the exact profile, add-remove."""
    rng, near = random.Random(91), 0.0
    for _ in range(50):
        n = rng.randint(1, 3)
        channel = oracle.random_channel(rng, n, rng.randint(2, 5), rng.choice([0, 0.2]))
        pairs = [(channel[a], channel[b]) for a, b in oracle.added(n)]
        g = random_g(rng)
        bound = failure_bound(exact_profile(pairs), float(g))[0]
        for _ in range(8):
            p = [Fraction(rng.randint(0, 8), 8) for _ in range(n)]
            prior = {w: m for w, m in oracle.independent(p).items() if m}
            for t in range(n):
                if 0 < p[t] < 1:
                    truth = failure(prior, channel, t, g)
                    assert float(truth) <= bound * (1 + 1e-9)
                    near = max(near, float(truth) / bound if bound else 0)
    assert near > 0.9, "the bound is never close: it would hide a mistake"


def test_f9_covers_fixed_sizes():
    """The same for replace, by the coupling of Lemma 4.9."""
    rng = random.Random(92)
    for _ in range(40):
        n = rng.randint(2, 3)
        channel = oracle.random_channel(rng, n, rng.randint(2, 5), rng.choice([0, 0.2]))
        pairs = [(channel[a], channel[b]) for a, b in oracle.swapped(n)]
        g = random_g(rng)
        bound = failure_bound(exact_profile(pairs), float(g))[0]
        for _ in range(8):
            p = [Fraction(rng.randint(0, 8), 8) for _ in range(n)]
            prior = oracle.fixed_size(p, rng.randint(1, n - 1))
            for t in range(n):
                if prior and 0 < sum(m for w, m in prior.items() if t in w) < 1:
                    assert float(failure(prior, channel, t, g)) <= bound * (1 + 1e-9)


def test_f9_covers_gaussian_noise_in_closed_form():
    """Two worlds: r(o) > g exactly when o − μ > …, so the truth is a normal tail."""
    from scipy.stats import norm

    for sigma, log_g in product((0.5, 1.0, 3.0), (0.1, 0.5, 1.0, 2.0)):
        # ln r at o is (o − 1/2)/σ²; given t, o ~ N(1, σ²).
        truth = norm.sf((sigma**2 * log_g - 0.5) / sigma)
        bound, epsilon, delta = failure_bound(gaussian_profile(sigma), math.exp(log_g))
        assert truth <= bound <= 1
        assert bound == pytest.approx(min(1, delta / (1 - math.exp(epsilon - log_g))))
        if truth < 1e-3:
            assert bound < 40 * truth


def test_f9_of_the_example_of_laplace():
    """Laplace ε = 1, ln g = 0.9: the truth is about 1/2 and F9 gives 0.655 (THEORY 4)."""
    bound = failure_bound(_laplace_profile, math.exp(0.9))[0]
    assert bound == pytest.approx(0.655, abs=1e-3)
    # Given t, o ~ Laplace about 1; ln r = 1 from the centre on, and 2o − 1 before it.
    truth = 1 - 0.5 * math.exp(-(1 - 0.95))
    assert 0.5 <= truth <= bound


def _laplace_profile(epsilons):
    """δ(ε) = 1 − e^((ε−1)/2) of Laplace noise with ε = 1."""
    return np.maximum(0, -np.expm1((np.asarray(epsilons) - 1) / 2))


def test_tails_of_an_accountants_distribution_are_not_bounds():
    """On a grid of 0.3 the tail above 0.9 is 0.188, below the truth; F9 on that grid is not."""
    losses = _loss_distribution(Process("laplace"), 1.0, 0.3)
    tail = sum(mass for step, mass in losses._loss_probs.items() if step * 0.3 > 0.9 + 1e-9)
    truth = 0.5
    assert tail == pytest.approx(0.188, abs=5e-3) and tail < truth
    assert failure_bound(Process("laplace").profile(1.0, 0.3), math.exp(0.9))[0] > truth


def test_failures_are_not_closed_under_post_processing_but_f9_is():
    """.4/.22 and .1/0 fail with .1 at γ = 1.5, p = 1/2 (g = 2); merged, with .5."""
    with_it = [Fraction(4, 10), Fraction(1, 10), HALF]
    without = [Fraction(22, 100), ZERO, Fraction(78, 100)]
    g = 2 * Fraction(3, 2) - 1
    fails = sum(p for p, q in zip(with_it, without, strict=True) if oracle.ratio(p, q) > g)
    merged = ([HALF, HALF], [Fraction(22, 100), Fraction(78, 100)])
    assert fails == Fraction(1, 10)
    assert sum(p for p, q in zip(*merged, strict=True) if oracle.ratio(p, q) > g) == HALF
    bound = failure_bound(exact_profile([(with_it, without)]), float(g))[0]
    assert bound >= failure_bound(exact_profile([merged]), float(g))[0] >= 0.5


# (c) and (d): monotone, and just enough.


def test_the_bound_falls_with_the_ratio_and_with_the_noise():
    """A larger g and more noise both fail less often."""
    ratios = np.exp(np.linspace(0.05, 3, 30))
    found = [failure_bound(gaussian_profile(2.0), g)[0] for g in ratios]
    assert found == sorted(found, reverse=True)
    found = [failure_bound(gaussian_profile(s), 1.5)[0] for s in np.geomspace(0.3, 30, 30)]
    assert found == sorted(found, reverse=True)
    for g in (1.0, 0.5, -1.0):
        with refused("ratio"):
            failure_bound(gaussian_profile(1.0), g)


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("ratio", [1.05, 1.5, 3.0, 20.0])
def test_gaussian_plans_meet_their_delta_with_nothing_to_spare(ratio, delta):
    """Achieved ≤ δ, and 1% less noise is not enough."""
    multiplier, failure, epsilon, dp_delta = gaussian_plan(ratio, delta)
    assert failure_bound(gaussian_profile(multiplier), ratio)[0] == failure <= delta
    assert failure_bound(gaussian_profile(multiplier * 0.99), ratio)[0] > delta
    again = gaussian_profile(multiplier)(np.array([epsilon]))[0]
    assert dp_delta == pytest.approx(again, rel=1e-9)


def test_plans_with_a_delta_use_it():
    """The plan's (ε, δ) is a point of the profile of the planned noise, in the query's units."""
    plan = calibrate(
        wi.Posterior("0.6"),
        Independent("0.05", "0.5"),
        1e-6,
        PlannedQuery("histogram", max_groups=3),
    )
    sigma = plan.noise.scale / math.sqrt(3)
    assert failure_bound(gaussian_profile(sigma), 1.5)[0] <= 1e-6 * (1 + 1e-9)
    assert gaussian_profile(sigma)(np.array([plan.epsilon]))[0] == pytest.approx(plan.dp_delta)


# (e) Processes.


def test_dp_sgd_to_an_advantage():
    """The case of riskcal's README: at most 1.0252, certified, and 0.5% less is too little."""
    process = Process("gaussian", 0.002, 10_000)
    plan = calibrate_process(wi.Advantage("0.1"), process)
    assert plan.multiplier <= 1.0252 and plan.bound <= plan.goal == 0.1
    at = np.zeros(1)
    assert process.profile(plan.multiplier, plan.grid)(at)[0] <= 0.1
    assert process.profile(plan.multiplier * 0.995, plan.grid)(at)[0] > 0.1


@pytest.mark.parametrize(
    "process",
    [
        Process("laplace"),
        Process("laplace", 1.0, 10),
        Process("laplace", 0.1, 10),
        Process("discrete-gaussian", 1.0, 1),
        Process("discrete-gaussian", 0.1, 10),
        Process("gaussian", 0.01, 100),
    ],
    ids=repr,
)
def test_processes_to_a_posterior(process):
    """Certified on the finest grid, and 0.5% less noise is too little there."""
    family, delta = Independent("0.05", "0.5"), 1e-6
    plan = calibrate_process(wi.Posterior("0.6"), process, family, delta)
    ratio = 1.5
    assert plan.bound <= delta
    assert failure_bound(process.profile(plan.multiplier, plan.grid), ratio)[0] <= delta
    assert failure_bound(process.profile(plan.multiplier * 0.995, plan.grid), ratio)[0] > delta


@pytest.mark.parametrize("rate", [1e-6, 0.002, 0.3, 0.99, 1.0])
@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 3.0, 50.0])
def test_sampled_gaussian_profiles(sigma, rate):
    """Beside dp-accounting's own, which inverts the loss one number at a time, and, from the
    definition, beside sums over a fine grid that need no inverse at all."""
    from dp_accounting.pld import privacy_loss_mechanism as mechanisms
    from scipy.stats import norm

    remove = mechanisms.AdjacencyType.REMOVE
    loss = mechanisms.GaussianPrivacyLoss(sigma, adjacency_type=remove, sampling_prob=rate)
    ends = loss.connect_dots_bounds()
    epsilons = np.linspace(ends.epsilon_lower - 0.1, ends.epsilon_upper, 501)
    found = gaussian_profile(sigma, rate)(epsilons)
    assert np.abs(found - loss.get_delta_for_epsilon(epsilons)).max() < 1e-15
    at = np.linspace(-12 * sigma, 1 + 12 * sigma, 200_001)
    without = norm.pdf(at, 0, sigma)
    with_person = (1 - rate) * without + rate * norm.pdf(at, 1, sigma)
    for index in range(0, 501, 50):
        excess = np.maximum(with_person - math.exp(epsilons[index]) * without, 0)
        assert found[index] == pytest.approx(np.trapezoid(excess, at), abs=1e-8)


def test_one_gaussian_step_agrees_with_the_closed_form():
    """A process of one step needs what `gaussian_plan` says."""
    family = Independent("0.05", "0.5")
    plan = calibrate_process(wi.Posterior("0.6"), Process(), family, 1e-6)
    exact = gaussian_plan(1.5, 1e-6)[0]
    assert exact * (1 - 1e-6) <= plan.multiplier <= exact * 1.001
    sized = calibrate_process(wi.Posterior("0.6"), Process(), FixedSize("0.05", "0.5"), 1e-6)
    assert sized.multiplier == plan.multiplier
    rho = calibrate_process(wi.Rho("0.6", 2), Process(), None, 1e-6)
    assert rho.multiplier == pytest.approx(plan.multiplier, rel=1e-3)


@pytest.mark.parametrize("sampling", [1.0, 0.3])
@pytest.mark.parametrize("sigma", [0.8, 3.0])
def test_the_accounted_direction_is_with_over_without(sampling, sigma):
    """One run of the discrete Gaussian, enumerated: (1−q)N + qN(·−1) on top, N below.

    With sampling the other direction is smaller near ε = −ln(1−q): the accountant's bound covers
    the one that F9 needs, and is close to it.
    """
    points = np.arange(-60, 62)
    noise = np.exp(-(points**2) / (2 * sigma**2))
    noise /= noise.sum()
    shifted = np.exp(-((points - 1) ** 2) / (2 * sigma**2))
    shifted /= shifted.sum()
    top = (1 - sampling) * noise + sampling * shifted
    epsilons = np.linspace(0, 1.5, 16)
    truth = np.array([np.maximum(top - math.exp(e) * noise, 0).sum() for e in epsilons])
    bound = Process("discrete-gaussian", sampling).profile(sigma)(epsilons)
    assert np.all(bound >= truth * (1 - 1e-9) - 1e-12)
    assert bound == pytest.approx(truth, rel=1e-3, abs=1e-7)
    if sampling < 1:
        other = np.array([np.maximum(noise - math.exp(e) * top, 0).sum() for e in epsilons])
        assert np.any(truth > other * 1.5 + 1e-9), "the directions must differ for this to test"


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_accounted_direction_of_continuous_noise(noise):
    """The same for Gaussian and Laplace noise, by a fine Riemann sum."""
    q, scale, step = 0.3, 1.2, 1e-3
    x = np.arange(-25, 26, step)
    density = {
        "gaussian": lambda z: np.exp(-(z**2) / (2 * scale**2)) / (scale * math.sqrt(2 * math.pi)),
        "laplace": lambda z: np.exp(-np.abs(z) / scale) / (2 * scale),
    }[noise]
    bottom = density(x)
    top = (1 - q) * bottom + q * density(x - 1)
    epsilons = np.linspace(0, 0.6, 7)
    truth = [np.maximum(top - math.exp(e) * bottom, 0).sum() * step for e in epsilons]
    bound = Process(noise, q).profile(scale)(epsilons)
    assert bound == pytest.approx(np.array(truth), rel=2e-3, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "field"),
    [
        (
            lambda: calibrate_process(wi.Gamma(2), Process(sample_rate=0.1), FixedSize(), 1e-6),
            Unsupported,
            "family",
        ),
        (
            lambda: calibrate_process(wi.Gamma(2), Process(), Cliques(2), 1e-6),
            Unsupported,
            "family",
        ),
        (
            lambda: calibrate_process(wi.Rho("0.5", 5), Process(sample_rate=0.1), None, 1e-6),
            Unsupported,
            "family",
        ),
        (
            lambda: calibrate_process(wi.Rho("0.5", 5), Process(), Independent(), 1e-6),
            InvalidInput,
            "family",
        ),
        (
            lambda: calibrate_process(wi.Rho("0.5", 5), Process(), OneOf(4), 1e-6),
            InvalidInput,
            "family",
        ),
        (lambda: calibrate_process(wi.Gamma(2), Process()), InvalidInput, "delta"),
        (lambda: calibrate_process(wi.Gamma(2), Process(), None, 1), InvalidInput, "delta"),
        (lambda: calibrate_process(wi.Advantage(0.1), Process(), None, 7), InvalidInput, "delta"),
        (
            lambda: calibrate_process(wi.Gain("0.6"), Process(), Independent("0.45", "0.5"), 1e-6),
            InvalidInput,
            "target",
        ),
        (lambda: Process("cauchy"), InvalidInput, "noise"),
        (lambda: Process(sample_rate=0), InvalidInput, "sample rate"),
        (lambda: Process(sample_rate=1.5), InvalidInput, "sample rate"),
        (lambda: Process(steps=0), InvalidInput, "steps"),
        (lambda: Process(steps=2.5), InvalidInput, "steps"),  # type: ignore[arg-type]
    ],
)
def test_processes_that_are_refused(call, error, field):
    """Sampling is accounted for add-remove only; `Rho` is about replacing."""
    with refused(field, kind=error):
        call()


# (f) Counts under uncertainty about nearly everyone.


def poisson_binomial(beliefs: list[Fraction]) -> list[Fraction]:
    weights = [ONE]
    for p in beliefs:
        more = [*weights, ZERO]
        weights = [(1 - p) * more[i] + p * (more[i - 1] if i else ZERO) for i in range(len(more))]
    return weights


def noisy(weights: list[Fraction], alpha: Fraction, reach: int) -> list[Fraction]:
    """The law plus two-sided geometric noise, clamped to [−reach, len + reach]: post-processing
    that changes no hockey-stick divergence of these laws, beyond whose support ratios are flat."""
    size = len(weights) + 2 * reach
    out = [ZERO] * size
    for value, mass in enumerate(weights):
        for place in range(size):
            distance = abs(place - reach - value)
            chance = alpha**distance * (1 - alpha) / (1 + alpha)
            if place in (0, size - 1):
                chance = alpha**distance / (1 + alpha)
            out[place] += mass * chance
    return out


def deltas(others: list[Fraction], alpha: Fraction | None, growths: list[Fraction]):
    """δ of the count with one person against without, exactly, for each growth e^ε."""
    weights = poisson_binomial(others)
    without, with_it = [*weights, ZERO], [ZERO, *weights]
    if alpha is not None:
        without, with_it = noisy(without, alpha, 2), noisy(with_it, alpha, 2)
    return [hockey_stick(with_it, without, growth) for growth in growths]


def vertices(n: int, k: int, low: Fraction, high: Fraction):
    """Beliefs about the n − 1 others: each at an end, at most k of them known to be in or out."""
    for known in range(min(k, n - 1) + 1):
        for who in combinations(range(n - 1), known):
            choices = [(ZERO, ONE) if i in who else (low, high) for i in range(n - 1)]
            yield from product(*choices)


@pytest.mark.parametrize("scale", [0.0, 0.7, 2.0])
@pytest.mark.parametrize(("n", "k"), [(2, 0), (3, 0), (3, 1), (4, 2), (5, 1), (6, 0), (6, 2)])
def test_profiles_of_counts_against_enumeration(n, k, scale):
    """F19: the profile is the largest over all vertices, and covers random interior priors."""
    rng = random.Random(f"{n} {k} {scale}")
    low, high = Fraction(rng.randint(1, 4), 10), Fraction(rng.randint(5, 9), 10)
    family = AtMostKnown(k, low, high)
    alpha = Fraction(math.exp(-1 / scale)) if scale else None
    epsilons = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
    growths = [Fraction(math.exp(e)) for e in epsilons]
    found = calibration_failure.count_profile(n, family, scale)(epsilons)
    # Only how many are at each end matters to a count.
    ways = {tuple(sorted(way)) for way in vertices(n, k, low, high)}
    each = [deltas(list(way), alpha, growths) for way in ways]
    worst = [max(column) for column in zip(*each, strict=True)]
    for mine, truth in zip(found, worst, strict=True):
        assert Fraction(float(mine)) >= truth
        assert float(mine) == pytest.approx(float(truth), rel=1e-8, abs=1e-9)
    for _ in range(40):
        others = [low + (high - low) * Fraction(rng.randint(0, 50), 50) for _ in range(n - 1)]
        for i in rng.sample(range(n - 1), rng.randint(0, min(k, n - 1))):
            others[i] = Fraction(rng.randint(0, 1))
        inside = deltas(others, alpha, growths)
        assert all(Fraction(float(m)) >= d for m, d in zip(found, inside, strict=True))


def test_failures_of_counts_are_covered_inside_the_family_too():
    """Tail probabilities are not largest at vertices, but F9 of the profile covers them."""
    rng, beaten = random.Random(19), 0
    for _ in range(24):
        n, k = rng.randint(3, 6), rng.randint(0, 1)
        low, high = sorted(Fraction(x, 20) for x in rng.sample(range(2, 19), 2))
        g = 1 + Fraction(rng.randint(20, 300), 100)
        bound = failure_bound(
            calibration_failure.count_profile(n, AtMostKnown(k, low, high)), float(g)
        )[0]

        def fails(others: list[Fraction], g: Fraction = g) -> Fraction:
            weights = poisson_binomial(others)
            pairs = zip([ZERO, *weights], [*weights, ZERO], strict=True)
            return sum((p for p, q in pairs if oracle.ratio(p, q) > g), ZERO)

        ends = max(fails(list(way)) for way in vertices(n, k, low, high))
        assert float(ends) <= bound * (1 + 1e-9)
        for _ in range(30):
            others = [low + (high - low) * Fraction(rng.randint(0, 20), 20) for _ in range(n - 1)]
            inside = fails(others)
            assert float(inside) <= bound * (1 + 1e-9)
            beaten += inside > ends
    assert beaten, "no interior prior was worse than all vertices: F19 would be vacuous"


def test_profiles_of_large_counts_against_arb():
    """10^4 people: never below the truth, computed with 200 bits, and within 10^−6 of it."""
    from flint import arb, ctx, fmpq

    n, belief = 10_000, 0.3
    epsilons = np.array([0.0, 0.001, 0.01, 0.03, 0.05, 0.1])
    found = calibration_failure.count_profile(n, AtMostKnown(0, belief, belief))(epsilons)
    with ctx.workprec(200):
        p = arb(fmpq(*belief.as_integer_ratio()))
        weights = [(1 - p) ** (n - 1)]
        for j in range(n - 1):
            weights.append(weights[-1] * (n - 1 - j) / (j + 1) * p / (1 - p))
        for epsilon, mine in zip(epsilons, found, strict=True):
            growth, truth = arb(float(epsilon)).exp(), arb(0)
            for with_it, without in zip([arb(0), *weights], [*weights, arb(0)], strict=True):
                excess = with_it - growth * without
                if excess > 0:
                    truth += excess
            assert truth <= arb(float(mine))
            assert float(mine) == pytest.approx(float(truth), rel=1e-6)


def test_what_is_cut_off_is_less_than_the_slack():
    """Binomials and geometric noise keep all but a part of their mass that SLACK covers."""
    from scipy.stats import binom

    for count, belief in product((1, 50, 2000, 10_000, 10**6), (0.001, 0.1, 0.5, 0.99)):
        middle, spread = count * belief, math.sqrt(count * belief * (1 - belief))
        first = max(0, math.floor(middle - 9 * spread - 60))
        last = min(count, math.ceil(middle + 9 * spread + 60))
        gone = binom.cdf(first - 1, count, belief) + binom.sf(last, count, belief)
        assert gone < 1e-17
        weights = binomial(count, belief)[1]
        assert len(weights) == last - first + 1 and weights.sum() == pytest.approx(1, abs=1e-12)
        middle_weight = binom.pmf(round(middle), count, belief)
        assert weights[round(middle) - first] == pytest.approx(middle_weight, rel=1e-8)
    for scale in (0.1, 1.0, 30.0):
        alpha = math.exp(-1 / scale)
        reach = math.ceil(40 * scale) + 1
        assert len(calibration_failure._geometric_weights(scale)) == 2 * reach + 1
        assert 2 * alpha ** (reach + 1) / (1 + alpha) < 1e-17
    assert calibration_failure.CUT_PROBABILITY > 4e-17


def test_an_exact_count_can_be_judged():
    """Among many uncertain people an exact count keeps a γ with a small δ; among few it needs
    noise, and knowing more people needs more of it."""
    started = time.process_time()
    many = calibrate(wi.Gamma("1.5"), AtMostKnown(10, "0.1", "0.9"), 1e-6, "count", 2000)
    assert time.process_time() - started < 20
    assert many.noise.kind == "none" and many.noise.scale == 0 and not many.composes
    few = calibrate(wi.Gamma("1.5"), AtMostKnown(10, "0.1", "0.9"), 1e-6, "count", 100)
    assert few.noise.kind == "geometric"
    scale, family = few.noise.scale, AtMostKnown(10, "0.1", "0.9")
    ratio = float(wi.Gamma("1.5").ratio(*family.bounds))
    assert failure_bound(calibration_failure.count_profile(100, family, scale), ratio)[0] <= 1e-6
    assert (
        failure_bound(calibration_failure.count_profile(100, family, scale * 0.97), ratio)[0] > 1e-6
    )
    known = calibrate(wi.Gamma("1.5"), AtMostKnown(90, "0.1", "0.9"), 1e-6, "count", 100)
    assert known.noise.scale >= scale
    pure = calibrate(wi.Gamma("1.5"), family, query="count")
    assert scale <= pure.noise.scale * 1.001
    assert all(each.gamma == math.inf for each in few.fallback)


def test_geometric_errors_are_those_of_the_noise():
    """The mean error and the 95% of the planned noise, by summation."""
    plan = calibrate(wi.Gamma(2), AtMostKnown(1, "0.2", "0.8"), 1e-6, "count", 20)
    weights = calibration_failure._geometric_weights(plan.noise.scale)
    size = np.abs(np.arange(len(weights)) - len(weights) // 2)
    assert plan.noise.error == pytest.approx(float((weights * size).sum()), rel=1e-9)
    assert weights[size <= plan.noise.within].sum() >= 0.95 - 1e-12
    assert weights[size < plan.noise.within].sum() < 0.95


@pytest.mark.parametrize("scale", [1, 2, Fraction(1, 2)])
def test_without_a_delta_uncertainty_about_others_buys_nothing(scale):
    """The pure level of a Laplace count under AtMostKnown is that of e^(1/scale) at the ends."""
    low, high = Fraction(1, 5), Fraction(3, 5)
    noise = wi.mechanisms.Laplace(wi.statistics.Count(), scale)
    r = math.exp(1 / scale)
    for n, k in ((1, 0), (4, 0), (4, 2), (30, 3)):
        notion = wi.notions.PositiveMembership(AtMostKnown(k, low, high))
        level = notion.measure(noise, wi.Subsets(n))
        worst = max(r / ((r - 1) * float(low) + 1), (r - 1) * float(high) + 1)
        assert float(level.value) == pytest.approx(worst, rel=1e-9)
        assert float(level.witness.ratio) == pytest.approx(r, rel=1e-9)


def test_the_normal_distribution_far_out_is_that_of_balls():
    near = np.linspace(-45, 9, 400)
    places = np.concatenate([near, [-1e4, -1e3, -30.0, -30.0001, -29.9999, 0.0]])
    with flint.ctx.workprec(300):
        root = flint.arb(2).sqrt()
        true = [float(((flint.arb(-x) / root).erfc() / 2).log()) for x in places.tolist()]
    np.testing.assert_allclose(log_normal(places), true, rtol=1e-13)
    assert log_normal(np.array([-np.inf, np.inf])).tolist() == [-np.inf, 0.0]
