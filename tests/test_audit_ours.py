"""Our own samplers, as users get them, under attack: never above their promise, and close to it.

They draw from the system's randomness, so these tests take a confidence of 1 − 10^-6: a bound above
the promise is then a mistake of ours, not bad luck.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import whosin as wi
from whosin import noise

SURE = "0.999999"


def test_discrete_laplace():
    def draw(count, size, _rng):
        return count + noise.discrete_laplace(2, size)

    found = wi.audit.two_worlds(draw, 1, 0, 400_000, SURE)
    assert 0.45 < found.epsilon <= 0.5
    wrong = wi.audit.two_worlds(
        lambda count, size, rng: count + noise.discrete_laplace("1.9", size), 1, 0, 400_000, SURE
    )
    assert wrong.refutes(0.5), "a scale that is 5% too small is not found"


def test_discrete_gaussian():
    """(ε, δ) of the discrete Gaussian: δ = Pr[X > εσ² − 1/2] − e^ε Pr[X > εσ² + 1/2]."""
    sigma, epsilon = 2.0, 1.0
    support = np.arange(-60, 61)
    weights = np.exp(-(support**2) / (2 * sigma**2))
    weights /= weights.sum()
    edge = epsilon * sigma**2
    delta = (
        weights[support > edge - 0.5].sum()
        - math.exp(epsilon) * weights[support > edge + 0.5].sum()
    )

    def draw(count, size, _rng):
        return count + noise.discrete_gaussian(sigma, size)

    held = wi.audit.two_worlds(draw, 1, 0, 400_000, SURE, delta=delta * 1.0001)
    assert not held.refutes(epsilon)
    pure = wi.audit.two_worlds(draw, 1, 0, 400_000, SURE)
    assert pure.refutes(1), "Gaussian noise has no pure ε, and a tail should show it"


def test_randomized_response():
    def draw(bit, size, _rng):
        rows = [["3/4", "1/4"], ["1/4", "3/4"]]
        return noise.randomized_response(np.full(size, bit), rows)

    found = wi.audit.two_worlds(draw, 1, 0, 200_000, SURE)
    assert 0.95 * math.log(3) < found.epsilon <= math.log(3)


def test_selection():
    scores = np.array([3, 0, 0, 0]), np.array([2, 1, 1, 1])

    def draw(values, _rng):
        return noise.noisy_max(values, 4.0)

    found = wi.audit.two_worlds(draw, *scores, 2_500, SURE)
    assert 0.05 < found.epsilon <= 0.5  # 2Δ/scale


def test_the_noise_of_a_plan():
    plan = wi.calibrate(
        wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query=wi.Query("count")
    )

    def draw(count, size, _rng):
        return count + noise.discrete_laplace(plan.noise.scale, size)

    found = wi.audit.two_worlds(draw, 1, 0, 400_000, SURE)
    assert found.posterior(0.5) <= 0.6 and found.posterior(0.5) > 0.59
    assert 0.9 * plan.epsilon < found.epsilon <= plan.epsilon


@pytest.mark.soak
def test_a_release(tmp_path):
    """A count answered from a table, as a session answers it, with one person more or less."""
    from whosin.release import Count

    plan = wi.calibrate(wi.Epsilon(1), wi.families.Independent())
    drawn = []
    for place, people in enumerate((3, 2)):
        file = tmp_path / f"people{place}.csv"
        file.write_text("who\n" + "".join(f"p{n}\n" for n in range(people)), encoding="utf-8")
        table = wi.Table(str(file), entity="who", domains={})
        session = wi.Session(table, plan, ledger=str(tmp_path / f"{place}.db"))
        offer = session.dry_run(Count())[0]
        drawn.append((table, offer))

    def draw(world):
        table, offer = drawn[world]
        return offer.query.answer(table, offer, None)["rows"][0][0]

    found = wi.audit.two_worlds(draw, 0, 1, 600, SURE)
    assert 0.05 < found.epsilon <= 1


@pytest.mark.parametrize("kind", ["response", "mixture"])
def test_finite_mechanisms(kind):
    """The exact level is above the bound, and the bound above 80% of it."""
    weak, strong = (wi.mechanisms.RandomizedResponse(epsilon=e) for e in ("0.8", "1.5"))
    mixed = wi.mechanisms.Mixture([weak, strong], ["1/2", "1/2"])
    mechanism = {"response": weak, "mixture": mixed}[kind]
    channel = mechanism.channel(wi.Subsets(2)).on_worlds()
    exact = float(wi.notions.DifferentialPrivacy().measure(channel).value)
    rows = channel.likelihoods

    def draw(world, size, rng):
        return rng.choice(rows.shape[1], size, p=rows[world])

    pairs = [(high, low) for low in range(4) for high in range(4) if high & low == low != high]
    pairs = [(a, b) for a, b in pairs if (a ^ b).bit_count() == 1]
    found = wi.audit.search(draw, pairs, 1_000_000, SURE, seed=1)
    assert 0.8 * exact < found.epsilon <= exact
