"""Our own samplers, as users get them, under attack: never above their promise, and close to it.

They draw from the system's randomness, so these tests take a confidence of 1 − 10^-6: a bound above
the promise is then a mistake of ours, not bad luck.
"""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import gwas_oracle
import release_oracle
import selection_oracle as oracle
import whosin as wi
from amounts import cases, some
from whosin import gwas, noise, release
from whosin.exact import log_up
from whosin.gwas import question as gwas_question
from whosin.gwas import release as gwas_release
from whosin.gwas import scores as gwas_scores
from whosin.gwas.people import Snps
from whosin.gwas.scores import SNP_SCORE_KINDS
from whosin.release import Range
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.engines import DuckDB, files
from whosin.release.engines.base import WrittenFile

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

    held = wi.audit.two_worlds(draw, 1, 0, 200_000, SURE, delta=delta * 1.0001)
    assert not held.refutes(epsilon)
    pure = wi.audit.two_worlds(draw, 1, 0, 200_000, SURE)
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
        return noise.noisy_max(values, 2.0)

    found = wi.audit.two_worlds(draw, *scores, 1_500, SURE)
    assert 0 < found.epsilon <= 1  # 2Δ/scale; 25 runs found .29 to .58


def test_the_noise_of_a_plan():
    plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count")

    def draw(count, size, _rng):
        return count + noise.discrete_laplace(plan.noise.scale, size)

    found = wi.audit.two_worlds(draw, 1, 0, 150_000, SURE)
    assert 0.58 < found.posterior(0.5) <= 0.6
    assert 0.85 * plan.epsilon < found.epsilon <= plan.epsilon


@pytest.mark.parametrize("kind", some(["response", "mixture"], 1))
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
    found = wi.audit.search(draw, pairs, 300_000, SURE, seed=1)
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
    names, dots = ["snp1", "snp2", "snp3"], ["."] * 3
    snps = Snps(["1"] * 3, names, np.arange(1, 4), dots, dots)
    some = gwas.Study(snps, np.full((3, 6), 2), PEOPLE, PEOPLE)
    asked = gwas.Question(TOP, relation, score, "nothing", CUT)
    estimate = gwas.estimate_study_cost(STUDY_PLAN, asked, some)
    scale = float(estimate.selection_spread)
    tables = gwas_oracle.tables(PEOPLE, PEOPLE)
    values = gwas_scores.selection_scores(score, np.array(tables), relation, CUT).tolist()
    of = dict(zip(tables, values, strict=True))
    pairs = {(of[old], of[new]): (old, new) for old in tables for new in moved(old, relation)}
    ordered = sorted(pairs, key=lambda pair: pair[1] - pair[0])
    best = max(
        product(ordered[:5] + ordered[-5:], repeat=3),
        key=lambda snps: oracle.seen_level(*zip(*snps, strict=True), TOP, scale),
    )
    worlds = [np.array(world) for world in zip(*(pairs[snp] for snp in best), strict=True)]

    def draw(world):
        study = gwas.Study(snps, worlds[world], PEOPLE, PEOPLE)
        return tuple(gwas_release.draw_answer(estimate, study)["places"])

    found = wi.audit.two_worlds(draw, 0, 1, samples, confidence)
    return found, oracle.level(*zip(*best, strict=True), TOP, scale), estimate.epsilons[0]


@pytest.fixture
def scored_once(monkeypatch):
    """Scores are no matter of chance: each world's are computed once."""
    known = {}

    def remembered(kind, table, relation, threshold, sizes):
        key = (kind, relation, table.tobytes())
        if key not in known:
            known[key] = gwas_scores.selection_scores(kind, table, relation, threshold, sizes)
        return known[key]

    monkeypatch.setattr(gwas_release, "selection_scores", remembered)


@pytest.mark.parametrize("relation", some(gwas.STUDY_RELATIONS, 1))
@pytest.mark.parametrize("score", some(SNP_SCORE_KINDS, 1))
def test_selection_of_snps(score, relation, scored_once):
    """The function that a release of a study calls."""
    found, exact, promised = audited_study(score, relation, 1_000, SURE)
    shown(f"SNPs by {score}, {relation}", found.epsilon, exact, promised)
    assert found.epsilon <= exact <= promised == STUDY_PLAN.epsilon


HALVED = [("chi2", "genotype")]
ALL_HALVED = [
    pytest.param(score, relation, marks=[] if (score, relation) in HALVED else pytest.mark.soak)
    for score in SNP_SCORE_KINDS
    for relation in gwas.STUDY_RELATIONS
]


@pytest.mark.parametrize(("score", "relation"), ALL_HALVED)
def test_half_of_the_sensitivity_is_refuted(score, relation, scored_once, monkeypatch):
    true = gwas_question.score_sensitivity
    monkeypatch.setattr(gwas_question, "score_sensitivity", lambda *of: Fraction(true(*of), 2))
    found, exact, promised = audited_study(score, relation, 8_000, "0.99")
    assert exact > promised and found.refutes(promised)


class Kept:
    """An engine that scans once: where bounding leaves no choice, scans are no matter of chance."""

    write_rows = DuckDB.write_rows

    def __init__(self, engine):
        self.engine, self.results = engine, []

    def run(self, expression, progress=None):
        if not self.results:
            self.results.append(self.engine.run(expression, progress))
        return self.results[0]


def built_once(method):
    known = []

    def build(*of):
        if not known:
            known.append(method(*of))
        return known[0]

    return build


def answering(query, plan, rows):
    """The estimate, and a function that answers the query on a table of (who, x, w)."""
    columns = dict(zip(("who", "x", "w"), map(list, zip(*rows, strict=True)), strict=True))
    data = release_oracle.table(columns, {"x": Range(0, 10, step=1), "w": ["A", "B"]})
    estimate = estimate_batch_cost(data, plan, query)[0]
    data.engine, asked = Kept(data.engine), copy.copy(query)
    for name in ("exact", "_expression"):
        if hasattr(query, name):
            object.__setattr__(asked, name, built_once(getattr(query, name)))
    return estimate, lambda: asked.answer(data, estimate)["rows"]


def shifted(*steps):
    """The level of noisy sums that one person moves by these steps."""
    return lambda estimate, _worlds: float(
        sum(step / part.noise.width for step, part in zip(steps, estimate.parts, strict=True))
    )


def top_level(estimate, worlds):
    counts = [[sum(w == each for _, _, w in rows) for each in "AB"] for rows in worlds]
    return oracle.level(*counts, 1, float(estimate.details.scale))


def median_level(estimate, worlds):
    """The selection of a median, by the definition of its scores: how many rows the middle rank has
    to spare on a point, on either side."""
    points = (0, 5, 10)

    def scores(rows):
        values = [min(points, key=lambda point: (abs(point - x), -point)) for _, x, _ in rows]
        return [
            min(
                len(rows) - 2 * sum(v < c for v in values),
                2 * sum(v <= c for v in values) - len(rows),
            )
            for c in points
        ]

    return oracle.level(*map(scores, worlds), 1, float(estimate.details.scale))


def table_level(estimate, worlds):
    """Every answer of every row, in rationals; only how many rows a cell has is shown."""
    kept = estimate.details.kept
    chances = []
    for rows in worlds:
        found = {}
        for answers in product(("A", "B", "other"), repeat=len(rows)):
            pairs = zip(answers, rows, strict=True)
            chance = math.prod(kept if said == w else (1 - kept) / 2 for said, (_, _, w) in pairs)
            key = tuple(sorted(answers))
            found[key] = found.get(key, 0) + chance
        chances.append(found)
    ratios = [chances[0][key] / chances[1][key] for key in chances[0]]
    return log_up(max(max(ratio, 1 / ratio) for ratio in ratios))


FEW = [(1, 2, "A"), (2, 5, "A"), (3, 7, "B")]
MORE = [*FEW, (4, 10, "A")]
SWAPPED = [*FEW, (4, 10, "B")]
HIGH = [(1, 0, "A"), (2, 10, "A"), (3, 10, "A")]
CROWD = [(who, 5, "A") for who in range(9)]
FREE, FIXED = wi.families.Independent(), wi.families.FixedSize()
UNINFORMED = wi.families.Uninformed()
QUERIES = {
    "count": (release.Count(), FREE, MORE, FEW, shifted(1)),
    "sum": (release.Sum(column="x"), FREE, MORE, FEW, shifted(10)),
    "mean": (release.Mean(column="x"), FREE, MORE, FEW, shifted(10, 0)),
    "histogram": (release.Histogram(column="w"), FIXED, MORE, SWAPPED, shifted(2)),
    "top": (release.Top(by="w", k=1), FIXED, MORE, SWAPPED, top_level),
    "quantile": (release.Quantile(column="x", points=3), FREE, HIGH, HIGH[:2], median_level),
    "keys": (release.Keys(column="w"), FREE, CROWD, CROWD[1:], shifted(1)),
    "synthetic": (
        release.Synthetic(columns=["w"], path="table.parquet"),
        FIXED,
        FEW[1:],
        [(2, 5, "B"), FEW[2]],
        table_level,
    ),
}


def audited_query(kind, epsilon, confidence, written, samples=500):
    query, family, with_, without, exact = QUERIES[kind]
    plan = wi.calibrate(wi.Epsilon(epsilon), family, delta="0.001" if kind == "keys" else 0)
    worlds = [answering(query, plan, rows) for rows in (with_, without)]

    def draw(world):
        rows = worlds[world][1]()
        return tuple(written) if kind == "synthetic" else tuple(v for row in rows for v in row)

    found = wi.audit.two_worlds(draw, 0, 1, samples, confidence)
    return found, exact(worlds[0][0], (with_, without)), plan.epsilon


@pytest.fixture
def written(monkeypatch):
    """The rows of a synthetic table, which are not put on the disk thousands of times."""
    rows = []

    def keep(batches, *_given):
        rows[:] = [row for batch in batches for row in batch.column(0).to_pylist()]
        return WrittenFile(len(rows), "")

    monkeypatch.setattr(files, "write_draft", keep)
    return rows


@cases(250, 2000)
@pytest.mark.parametrize("kind", some(QUERIES, 3))
def test_queries_of_a_release(kind, count, written):
    """Answers as a session gives them, with a person more or less, or with another in their place;
    and the same under a plan of many times the ε, which the attack refutes. (A selection's noise
    is for scores that move against each other; these move one way, and show half of it.)"""
    found, exact, promised = audited_query(kind, 1, SURE, written, count)
    shown(f"{kind} of a release", found.epsilon, exact, promised)
    assert found.epsilon <= exact <= promised
    loose, more, _ = audited_query(kind, 8 if kind == "quantile" else 4, "0.95", written)
    assert loose.refutes(promised) and more > 3


def test_keys_of_one_person_alone():
    """They show with probability δ at most: a claim of ε alone falls, and one with δ stands."""
    plan = wi.calibrate(wi.Epsilon(1), FREE, delta="0.4")
    alone = [*CROWD, (20, 5, "B")]
    worlds = [answering(release.Keys(column="w"), plan, rows) for rows in (alone, CROWD)]

    def draw(world):
        return any(row[0] == "B" for row in worlds[world][1]())

    granted = wi.audit.two_worlds(draw, 0, 1, 600, SURE, delta=plan.dp_delta)
    assert not granted.refutes(plan.epsilon)
    assert wi.audit.two_worlds(draw, 0, 1, 1_500, "0.95").refutes(plan.epsilon)


def test_the_maximum_against_the_uninformed():
    """k-Max promises γ to whoever holds every world for equally likely: such worlds are drawn."""
    everyone = [(who, who) for who in range(1, 5)]
    query, plan = release.Maximum(universe=everyone), wi.calibrate(wi.Gamma("1.5"), UNINFORMED)
    asks = {
        world: answering(query, plan, [(who, 0, "A") for who in (*world, 99)])[1]  # 99: a stranger
        for count in range(5)
        for world in combinations(range(1, 5), count)
    }

    def draw(is_in, rng):
        others = [who for who in range(1, 4) if rng.random() < 0.5]
        return asks[(*others, *([4] if is_in else []))]()[0][0]

    found = wi.audit.two_worlds(draw, True, False, 1_000, SURE)
    shown("the maximum, as γ at prior 1/2", wi.beliefs.gamma(found.ratio, 0.5), 1.5, plan.gamma)
    assert 1 < wi.beliefs.gamma(found.ratio, 0.5) <= 1.5
