"""Bayesian semantic privacy between the centres of noise, against dense searches (THEORY 15)."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import record_oracle as records
import whosin as wi
from spreads_oracle import dense, level, spread
from whosin import priors
from whosin.mechanisms import Composed, Geometric, Laplace
from whosin.notions import BayesianSemanticPrivacy, bsp_interior

LIMIT = {
    (0, 1, 1): 416,
    (0, 1, 2): 17,
    (0, 3, 1): 6,
    (0, 3, 2): 2276,
    (1, 1, 1): 314,
    (1, 1, 2): 166,
    (1, 3, 1): 2,
    (1, 3, 2): 6803,
}
WEIGHTS = [0, 0, 20, 10]


def correlated(rng: random.Random, n: int, m: int, zeros: float) -> dict:
    """A prior over tables with masses of very different sizes, none 0 unless asked."""
    parts = [
        0 if rng.random() < zeros else rng.choice([1, 3, 20, 300, 5000]) * rng.randint(1, 9)
        for _ in range(m**n)
    ]
    parts[0] += 1
    return {x: Fraction(p, sum(parts)) for x, p in zip(records.worlds(n, m), parts, strict=True)}


def like_the_limit(rng: random.Random) -> tuple[dict, list]:
    """Priors and weights of the kind for which the level is between centres."""
    worlds = [(a, b, c) for a in (0, 1) for b in (1, 3) for c in (1, 2)]
    parts = [int(10 ** rng.uniform(0, 4)) + 1 for _ in worlds]
    prior = dict.fromkeys(records.worlds(3, 4), Fraction(0))
    prior |= {x: Fraction(p, sum(parts)) for x, p in zip(worlds, parts, strict=True)}
    return prior, [0, rng.choice([0, 1]), rng.choice([12, 20]), rng.choice([5, 10])]


def sums(n: int, weights: list) -> dict:
    return {x: sum(weights[v] for v in x) for x in records.worlds(n, len(weights))}


def test_a_root_between_centres_is_found():
    """Row 0 with row 1 known: 0.4989 at the centres, 0.7954 at 13.776 (rows 1 and 2 are never at
    the default, and the level says so)."""
    prior = {x: Fraction(p, 10000) for x, p in LIMIT.items()}
    found = BayesianSemanticPrivacy(priors.Table(prior)).measure(
        Laplace(wi.statistics.Sum(WEIGHTS), 1), wi.Records(3, 4)
    )
    truth = level(dense(prior, sums(3, WEIGHTS), 3, 0, 1.0))
    assert found.exact and found.value == pytest.approx(truth, abs=1e-7) and found.value >= truth
    assert round(found.value, 4) == 0.7954 and round(found.witness.output, 3) == 13.776
    assert (found.witness.row, found.witness.rows_known) == (0, (1,))
    assert "row 1, 2" in found.note and found.theorems == ()
    # The output of the witness shows what the witness says.
    output = found.witness.output
    shown = {
        (row, known): float(k)
        for row, known, k in spread(
            prior, sums(3, WEIGHTS), 3, 0, lambda c: math.exp(-abs(output - c))
        )
    }
    assert shown[0, (1,)] == pytest.approx(found.witness.ratio, rel=1e-9)
    points = np.array(sorted(set(sums(3, WEIGHTS).values())), dtype=float)
    floats = {x: float(p) for x, p in prior.items()}
    cases = spread(floats, sums(3, WEIGHTS), 3, 0, lambda c: np.exp(-abs(points - c)))
    assert level(max(k.max() for *_, k in cases)) == pytest.approx(0.4989, abs=1e-4)


def test_laplace_noise_against_a_dense_search():
    rng, beyond = random.Random(2), 0
    for number in range(16):
        n, m = (3, 4) if number % 2 else rng.choice([(2, 3), (3, 2), (2, 4), (3, 3)])
        weights = [0, *rng.choices([0, 1, 2, 5, 10, 20], k=m - 1)]
        scale, default = rng.choice([1, 2, 5]), rng.randrange(m)
        prior = correlated(rng, n, m, rng.choice([0, 0, 0.5]))
        if (n, m) == (3, 4):
            (prior, weights), default, scale = like_the_limit(rng), 0, 1
        try:
            found = BayesianSemanticPrivacy(priors.Table(prior), default).measure(
                Laplace(wi.statistics.Sum(weights), scale), wi.Records(n, m)
            )
        except wi.errors.InvalidInput:
            continue  # nothing to compare: test_record_notions
        truth = level(dense(prior, sums(n, weights), n, default, float(scale)))
        assert found.exact
        assert truth - 1e-12 <= found.value <= truth + 2e-7
        beyond += found.witness.output not in sums(n, weights).values()
    assert beyond, beyond


@pytest.mark.parametrize("spelled", [{"alpha": Fraction(1, 2)}, {"scale": 1}])
def test_geometric_noise_at_every_whole_output(spelled):
    """Between centres only whole outputs count: exactly, by going through all of them."""
    rng, beyond = random.Random(5), 0
    for number in range(8):
        n, m = rng.choice([(2, 3), (3, 2), (2, 4), (3, 4)]) if number else (3, 4)
        weights = [0, *rng.choices([0, 2, 3, 7, 9], k=m - 1)]
        prior, default = correlated(rng, n, m, 0), rng.randrange(m)
        if (n, m) == (3, 4):
            (prior, weights), default = like_the_limit(rng), 0
        if not number:  # worst between its centres
            weights = WEIGHTS
            prior |= {x: Fraction(LIMIT.get(x, 0), 10000) for x in prior}
        centres = sums(n, weights)
        found = BayesianSemanticPrivacy(priors.Table(prior), default).measure(
            Geometric(wi.statistics.Sum(weights), **spelled), wi.Records(n, m)
        )
        base = spelled.get("alpha", math.exp(-1))
        outputs = range(min(centres.values()) - 2, max(centres.values()) + 3)
        truth = max(
            max(np.ravel(k))
            for y in outputs
            for *_, k in spread(
                prior if "alpha" in spelled else {x: float(p) for x, p in prior.items()},
                centres,
                n,
                default,
                lambda c, y=y, base=base: base ** abs(y - c),
            )
        )
        assert found.exact and found.witness.output in outputs
        assert found.value == pytest.approx(level(truth), abs=1e-12)
        if "alpha" in spelled:  # exactly: the least float that is not below
            assert found.witness.ratio == math.nextafter(float(truth), 0) or (
                Fraction(found.witness.ratio) >= truth
            )
        beyond += found.witness.output not in centres.values()
    assert beyond, beyond


def test_several_dimensions_say_bound():
    """Two answers at once: no output on a dense grid leaks more than the bound, and the lower end
    is what the witness shows."""
    space, brackets = wi.Records(3, 4), 0
    rng = random.Random(3)
    one, two = np.meshgrid(np.linspace(-1, 61, 249), np.linspace(-1, 4, 21))

    def fall(centre):
        return np.exp(-abs(one - centre[0]) - abs(two - centre[1]) / 5)

    for _ in range(4):
        prior, weights = like_the_limit(rng)
        pair = Composed([Laplace(wi.statistics.Sum(weights), 1), Laplace(wi.statistics.Count(), 5)])
        found = BayesianSemanticPrivacy(priors.Table(prior)).measure(pair, space)
        floats = {x: float(p) for x, p in prior.items() if p}
        centres = {x: (sum(weights[v] for v in x), sum(v > 0 for v in x)) for x in floats}
        most = max(float(k.max()) for *_, k in spread(floats, centres, 3, 0, fall))
        assert level(most) <= found.value + 1e-12
        if found.exact:
            assert found.value == pytest.approx(level(most), abs=1e-6)
            continue
        brackets += 1
        assert found.lower <= level(most) + 1e-9 and found.lower < found.value
        assert found.holds((found.lower + found.value) / 2) is None
    assert brackets


def test_a_geometric_histogram_has_nothing_between():
    """Counts are next to each other: every whole output is a deciding point."""
    rng = random.Random(4)
    prior = correlated(rng, 2, 3, 0)
    found = BayesianSemanticPrivacy(priors.Table(prior)).measure(
        Geometric(wi.statistics.Histogram(), alpha=Fraction(1, 3)), wi.Records(2, 3)
    )
    assert found.exact
    centres = {x: tuple(sum(v == cell for v in x) for cell in range(3)) for x in prior}
    truth = max(
        k
        for y in product(range(3), repeat=3)
        for *_, k in spread(
            prior,
            centres,
            2,
            0,
            lambda c, y=y: Fraction(1, 3) ** sum(abs(a - b) for a, b in zip(y, c, strict=True)),
        )
    )
    assert found.value == pytest.approx(level(truth), abs=1e-15)


def test_gaps_too_deep_for_roots_say_bound(monkeypatch):
    """Where roots are not taken the ends of the gap bound the level."""
    prior = {x: Fraction(p, 10000) for x, p in LIMIT.items()}
    notion = BayesianSemanticPrivacy(priors.Table(prior))
    noisy, space = Laplace(wi.statistics.Sum(WEIGHTS), 1), wi.Records(3, 4)
    exact = notion.measure(noisy, space)
    for name, value in (("MAX_LOG_GAP", 1.0), ("MAX_COMPARED_PAIRS", -1)):
        with monkeypatch.context() as patch:
            patch.setattr(bsp_interior, name, value)
            found = notion.measure(noisy, space)
        assert not found.exact and found.lower < exact.value <= found.value
        assert found.lower == pytest.approx(0.4989, abs=1e-4)


def test_when_a_root_cannot_be_enclosed_the_gap_is_bounded(monkeypatch):
    prior = {x: Fraction(p, 10000) for x, p in LIMIT.items()}
    notion = BayesianSemanticPrivacy(priors.Table(prior))
    noisy, space = Laplace(wi.statistics.Sum(WEIGHTS), 1), wi.Records(3, 4)
    exact = notion.measure(noisy, space)
    monkeypatch.setattr(bsp_interior, "_ball_roots", lambda *_: [None])
    found = notion.measure(noisy, space)
    assert not found.exact and found.value > exact.value
    assert found.lower == pytest.approx(exact.value, abs=1e-12) and found.lower <= exact.value
