"""Our own samplers, as users get them, under attack: never above their promise, and close to it.

They draw from the system's randomness, so these tests take a confidence of 1 − 10^-6: a bound above
the promise is then a mistake of ours, not bad luck.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import gwas_oracle
import selection_oracle as oracle
import whosin as wi
from whosin import gwas, noise
from whosin.gwas import offer as gwas_offer
from whosin.gwas import release as gwas_release
from whosin.gwas import scoring
from whosin.gwas.scoring import SCORES
from whosin.gwas.snps import unnamed

SURE = "0.999999"


def shown(name, bound, exact, promised):
    """The audit's bound beside the exact level (`pytest -s` shows them)."""
    print(f"{name}: audit {bound:.3f} ≤ exact {exact:.3f} ≤ promised {float(promised):.3f}")


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


TOP, PEOPLE, CUT = 2, 6, "3.84"
STUDY_PLAN = wi.calibrate(wi.Epsilon(1), wi.families.FixedSize())


def moved(table, relation):
    """Tables that are one change of a case's genotype, or one exchange of labels, away."""
    if relation == "label-swap":
        return gwas_oracle.label_swaps(table)
    return (each for each in gwas_oracle.genotype_changes(table) if each[3:] == table[3:])


def audited_study(score, relation, samples, confidence):
    """Price a selection of SNPs as a release does, and audit it on the two neighbouring studies
    whose selections differ most, of all with three SNPs, six cases and six controls."""
    some = gwas.Study(unnamed(3), np.full((3, 6), 2), PEOPLE, PEOPLE)
    asked = gwas.Question(TOP, relation, score, "nothing", CUT)
    offered = gwas.price(STUDY_PLAN, asked, some)
    scale = offered.selection_scale
    tables = gwas_oracle.tables(PEOPLE, PEOPLE)
    values = scoring.scores(score, np.array(tables), relation, CUT).tolist()
    of = dict(zip(tables, values, strict=True))
    pairs = {(of[old], of[new]): (old, new) for old in tables for new in moved(old, relation)}
    ordered = sorted(pairs, key=lambda pair: pair[1] - pair[0])
    best = max(
        product(ordered[:5] + ordered[-5:], repeat=3),
        key=lambda snps: oracle.seen_level(*zip(*snps, strict=True), TOP, scale),
    )
    worlds = [np.array(world) for world in zip(*(pairs[snp] for snp in best), strict=True)]

    def draw(world):
        return tuple(gwas_release.choose(offered, worlds[world]).tolist())

    found = wi.audit.two_worlds(draw, 0, 1, samples, confidence)
    return found, oracle.level(*zip(*best, strict=True), TOP, scale), offered.epsilons[0]


@pytest.fixture
def scored_once(monkeypatch):
    """Scores are no matter of chance: each world's are computed once."""
    known = {}

    def remembered(kind, table, relation, threshold):
        key = (kind, relation, table.tobytes())
        if key not in known:
            known[key] = scoring.scores(kind, table, relation, threshold)
        return known[key]

    monkeypatch.setattr(gwas_release, "scores", remembered)


@pytest.mark.parametrize("relation", gwas.RELATIONS)
@pytest.mark.parametrize("score", SCORES)
def test_selection_of_snps(score, relation, scored_once):
    """The function that a release of a study calls."""
    found, exact, promised = audited_study(score, relation, 2_000, SURE)
    shown(f"SNPs by {score}, {relation}", found.epsilon, exact, promised)
    assert found.epsilon <= exact <= promised == STUDY_PLAN.epsilon


@pytest.mark.parametrize("relation", gwas.RELATIONS)
@pytest.mark.parametrize("score", SCORES)
def test_half_of_the_sensitivity_is_refuted(score, relation, scored_once, monkeypatch):
    true = gwas_offer.score_sensitivity
    monkeypatch.setattr(gwas_offer, "score_sensitivity", lambda *of: Fraction(true(*of), 2))
    found, exact, promised = audited_study(score, relation, 4_000, "0.99")
    assert exact > promised and found.refutes(promised)
