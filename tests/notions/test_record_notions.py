"""Notions on records against brute force from their definitions, on a thousand instances each."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import record_oracle as records
import whosin as wi
from refusals import refused
from whosin import priors
from whosin.errors import InvalidInput, TooLarge, Unsupported
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    DifferentialPrivacy,
    Identifiability,
    MeanShift,
    MutualInformation,
    SemanticPrivacy,
)
from whosin.theorems import papers

INSTANCES = 1000
SIZES = [(1, 2), (1, 3), (2, 2), (2, 2), (2, 3), (2, 3), (3, 2), (3, 2), (3, 2), (3, 3)]


class Amount:
    """One of how many random cases is tried: of ten in `make test`, each in `make soak`."""

    of = 1


@pytest.fixture(params=[10, pytest.param(1, marks=pytest.mark.soak)], autouse=True)
def amount(request, monkeypatch):
    monkeypatch.setattr(Amount, "of", request.param)


def instances(seed: int, count: int = INSTANCES, zeros=(0, 0.25)):
    """(rng, rows, values, prior, channel), with and without zeros in either."""
    rng = random.Random(seed)
    for _ in range(count // Amount.of):
        n, m = rng.choice(SIZES)
        prior = records.random_prior(rng, n, m, rng.choice(zeros))
        channel = records.random_channel(rng, n, m, rng.randint(1, 3), rng.choice(zeros))
        yield rng, n, m, prior, channel


def engine(channel: dict, n: int, m: int, exact: bool = True) -> wi.Channel:
    table: Any = list(channel.values())
    if not exact:
        table = np.array([[float(v) for v in row] for row in table])
    return wi.Channel(wi.Records(n, m), table)


def table(prior: dict) -> priors.Table:
    return priors.Table(list(prior.values()))


def test_bayesian_differential_privacy():
    """The level is max ln Pr[y|x_i,x_S]/Pr[y|x_i',x_S] over i, S, x_i, x_i', x_S and y for which
    the conditions are possible, and the witness replayed from the definition has that ratio."""
    infinite = 0
    for _rng, n, m, prior, channel in instances(1):
        truth = records.bayesian_ratio(prior, channel, n)
        notion = BayesianDifferentialPrivacy(table(prior))
        level = notion.measure(engine(channel, n, m))
        assert level.exact and level.notion == notion
        assert float(level.value) == pytest.approx(records.log(truth), abs=1e-12)
        assert float(level.value) >= records.log(truth) - 1e-15
        case = level.witness
        assert case.row not in case.known
        found = records.replayed(prior, channel, case.row, case.known, case.values, case.output)
        assert found == truth == case.ratio
        after = Fraction(1) if truth == math.inf else truth / (1 + truth)
        assert (case.prior, case.posterior) == (Fraction(1, 2), after)
        infinite += truth == math.inf
        floats = notion.measure(engine(channel, n, m, exact=False))
        assert float(floats.value) == pytest.approx(records.log(truth), abs=1e-12)
    assert 100 < infinite * Amount.of < 900


def beliefs(rng: random.Random, points: list) -> dict:
    """A random rational belief over some of the points."""
    return dict(zip(points, records.random_distribution(rng, len(points), 0.4), strict=True))


def check_semantic(rng: random.Random, cases: list, level) -> None:
    """No belief does better than the level, and the best belief on two points attains it."""
    attained = max((records.best_two_point(a, b) for _, _, _, a, b in cases), default=0.0)
    assert level.value == pytest.approx(attained, abs=1e-9)
    for _row, _known, _y, with_row, without in rng.sample(cases, min(3, len(cases))):
        if not with_row:
            continue
        belief = beliefs(rng, list(with_row))
        both = records.posteriors(belief, with_row, without)
        if both is not None:
            assert float(records.total_variation(*both)) <= level.value + 1e-12
    case = level.witness
    mine = [c for c in cases if c[0] == case.row and c[2] == case.output]
    if case.rows_known is not None:
        mine = [c for c in mine if c[1] == case.rows_known]
    assert len(mine) == 1
    assert records.best_two_point(*mine[0][3:]) == pytest.approx(level.value, abs=1e-9)


def test_semantic_privacy():
    """Zhao17 Definition 1: the closed form tanh(¼ ln(max r / min r)) is the sup over beliefs of
    the total variation between the posteriors with and without row i's data."""
    for rng, n, m, _prior, channel in instances(3):
        default = rng.randrange(m)
        level = SemanticPrivacy(default).measure(engine(channel, n, m))
        check_semantic(rng, list(records.semantic_cases(None, channel, n, default)), level)
        case = level.witness
        if case.ratio != math.inf:
            assert case.posterior - case.prior == pytest.approx(level.value, abs=1e-12)


def test_bayesian_semantic_privacy():
    """Zhao17 Definition 2, for every set S of known rows: the rest follows the prior, the belief is
    about (x_i, x_S)."""
    for rng, n, m, prior, channel in instances(4):
        default = rng.randrange(m)
        notion, measured = BayesianSemanticPrivacy(table(prior), default), engine(channel, n, m)
        together = [default_beside(prior, n, default, row) for row in range(n)]
        if any(missing for _, missing in together) and not any(both for both, _ in together):
            with refused("default"):
                notion.measure(measured)
            continue
        level = notion.measure(measured)
        check_semantic(rng, list(records.semantic_cases(prior, channel, n, default)), level)
        everywhere = not any(missing for _, missing in together)
        assert (level.theorems == ("T15",)) == everywhere == (level.note == "")
        if everywhere and level.value < 1:
            leaks = BayesianDifferentialPrivacy(table(prior)).measure(measured).value
            assert leaks <= papers.dp_from_semantic(level.value) + 1e-9


def default_beside(prior: dict, n: int, default: int, row: int) -> tuple[bool, bool]:
    """Whether some known rows allow the default in a row beside another value, and whether some
    allow another value without the default."""
    both = missing = False
    for known in records.subsets([other for other in range(n) if other != row]):
        allowed: dict = {}
        for x, p in prior.items():
            if p:
                allowed.setdefault(tuple(x[r] for r in known), set()).add(x[row])
        both |= any(default in values and len(values) > 1 for values in allowed.values())
        missing |= any(default not in values for values in allowed.values())
    return both, missing


def test_identifiability():
    """Wang14 Definition 2: max ln Pr[x|y]/Pr[x'|y] over neighbours and outputs that can occur."""
    for _rng, n, m, prior, channel in instances(6):
        truth = records.identifiability(prior, channel, n, m)
        level = Identifiability(table(prior)).measure(engine(channel, n, m))
        assert float(level.value) == pytest.approx(records.log(truth), abs=1e-12)
        case = level.witness
        assert case.ratio == truth
        worlds = [tuple(case.known.get(row, value) for row in range(n)) for value in case.values]
        joint = [prior[x] * channel[x][case.output] for x in worlds]
        assert records.ratio(*joint) == truth
        odds = prior[worlds[0]] + prior[worlds[1]]
        assert not odds or case.prior == prior[worlds[0]] / odds


def test_mutual_information():
    """I(X;Y) = Σ Pr[x,y] ln Pr[y|x]/Pr[y], summed directly."""
    for _rng, n, m, prior, channel in instances(7):
        truth = records.mutual_information(prior, channel)
        level = MutualInformation(table(prior)).measure(engine(channel, n, m))
        assert level.value == pytest.approx(truth, abs=1e-12)
        assert level.witness is None


def test_mutual_information_needs_all_outputs():
    """Densities at deciding points are not a distribution over outputs."""
    with refused("mechanism", kind=Unsupported):
        MutualInformation(priors.Uniform()).measure(
            wi.mechanisms.Laplace(wi.statistics.Sum(), 1), wi.Records(2, 2)
        )


def test_infinite_levels_are_results():
    """A prior without full support, or an output that gives a value away, is a level of infinity
    with the case that shows it."""
    prior = priors.Table({(0, 0): Fraction(1, 2), (1, 1): Fraction(1, 2)})
    first = wi.Channel(wi.Records(2, 2), [[1, 0], [1, 0], [0, 1], [0, 1]])
    level = BayesianDifferentialPrivacy(prior).measure(first)
    assert level.value == math.inf and level.exact
    assert (level.witness.ratio, level.witness.posterior) == (math.inf, 1)
    assert level.witness.known == {}
    assert BayesianSemanticPrivacy(prior).measure(first).value == 1
    assert SemanticPrivacy().measure(first).value == 1
    half = Fraction(1, 2)
    silent = wi.Channel(wi.Records(2, 2), [[half, half]] * 4)
    assert BayesianDifferentialPrivacy(prior).measure(silent).value == 0
    found = Identifiability(prior).measure(silent)
    assert found.value == math.inf and found.witness.ratio == math.inf


def test_t14_membership_from_bayesian_privacy():
    """T14: Pr[x_i|y] ≤ e^ε p and its mirror for every prior of D_*, and the least such e^ε as p
    falls to 0 is the measured one."""
    for rng, n, m, prior, channel in instances(10, 300):
        case = BayesianDifferentialPrivacy(table(prior)).measure(engine(channel, n, m)).witness
        r = case.ratio
        if r == math.inf or case.values[0] == case.values[1]:
            continue
        levels = []
        for p in (Fraction(1, 10**9), Fraction(rng.randint(1, 9), 10)):
            after = r * p / (r * p + 1 - p)
            levels.append(records.positive_pair(p, after))
            assert levels[-1] <= r
        assert float(levels[0]) == pytest.approx(float(r), rel=1e-6)


def test_outputs_that_never_come_with_the_default():
    """An output that occurs only with data in row i gives that away: level 1, also where no belief
    leaves a posterior to compare with. Otherwise SP would be 0 here, DP infinite, and T15 false."""
    channel = wi.Channel(
        wi.Records(1, 3), [[0, 1], [Fraction(1, 2)] * 2, [Fraction(1, 9), Fraction(8, 9)]]
    )
    assert SemanticPrivacy(0).measure(channel).value == 1
    assert DifferentialPrivacy("replace").measure(channel).value == math.inf


def test_t15_needs_the_default_to_be_possible():
    """Where the default never occurs Bayesian SP has nothing to compare: it is refused, with what
    to do instead, since a level of 0 would give 0-Bayesian DP by T15 where it is infinite."""
    prior = priors.Table({(1,): Fraction(1, 2), (2,): Fraction(1, 2)})
    channel = wi.Channel(wi.Records(1, 3), [[1, 0], [1, 0], [0, 1]])
    with refused("default", 0):
        BayesianSemanticPrivacy(prior, 0).measure(channel)
    some = priors.Table({(0,): "0.001", (1,): "0.499", (2,): "0.5"})
    assert BayesianSemanticPrivacy(some, 0).measure(channel).value == 1
    assert BayesianSemanticPrivacy(prior, 1).measure(channel).value == 1
    assert BayesianDifferentialPrivacy(prior).measure(channel).value == math.inf


def test_e3_constants():
    """E3: the published constants beside ours. SP from ε = 1 is at most 0.4621; e^(2ε) − 1 exceeds
    1 from ε = 0.35; the way back works for every level below 1 instead of below 1/2."""
    assert papers.semantic_from_dp(1) == pytest.approx(0.4621, abs=5e-5)
    assert (
        papers.semantic_from_dp_as_published(0.346)
        < 1
        < (papers.semantic_from_dp_as_published(0.35))
    )
    for epsilon in (0.01, 0.1, 0.3, 1.0, 3.0):
        assert papers.semantic_from_dp(epsilon) == pytest.approx(math.tanh(epsilon / 2))
        assert papers.semantic_from_dp(epsilon) < papers.semantic_from_dp_as_published(epsilon)
        level = 0.5 - 1 / (math.exp(epsilon) + 1)
        assert papers.dp_from_semantic_as_published(level) == pytest.approx(epsilon)
        assert papers.dp_from_semantic(math.tanh(epsilon / 4)) == pytest.approx(epsilon)
        # The published level is more than the one that is needed.
        assert level < math.tanh(epsilon / 4) < 1
        assert papers.dp_from_semantic(level) < epsilon
    assert papers.dp_from_semantic(0.9) == pytest.approx(4 * math.atanh(0.9))
    assert papers.dp_from_semantic(1) == math.inf
    with pytest.raises(InvalidInput):
        papers.dp_from_semantic_as_published(0.5)
    for wrong in (-0.1, 1.1):
        with pytest.raises(InvalidInput):
            papers.dp_from_semantic(wrong)
    with pytest.raises(InvalidInput):
        papers.semantic_from_dp(-1)


def test_very_small_likelihoods_are_compared():
    """Ratios beyond the range of doubles are still ranked: the level is the largest, not the
    first."""
    tiny = Fraction(1, 10**400)
    rows = [[1 - tiny**k, tiny**k] for k in (2, 1, 0, 0)]
    for exact in (rows, rows[::-1], [rows[i] for i in (0, 2, 1, 3)]):
        channel = dict(zip(records.worlds(2, 2), exact, strict=True))
        measured = wi.Channel(wi.Records(2, 2), exact)
        uniform = dict.fromkeys(channel, Fraction(1, 4))
        level = BayesianDifferentialPrivacy(priors.Uniform()).measure(measured)
        assert level.witness.ratio == records.bayesian_ratio(uniform, channel, 2)
        level = Identifiability(priors.Uniform()).measure(measured)
        assert level.witness.ratio == records.identifiability(uniform, channel, 2, 2)
        assert SemanticPrivacy().measure(measured).value == 1


def test_very_little_noise_is_ranked_across_rows():
    """Laplace noise of scale 1/800 on four linked rows: an inner row leaks most, e^805.91."""
    stay = Fraction(9, 10)
    chain = priors.MarkovChain((0.5, 0.5), ((stay, 1 - stay), (1 - stay, stay)))
    space = wi.Records(4, 2)
    noisy = wi.mechanisms.Laplace(wi.statistics.Sum(), Fraction(1, 800)).channel(space)
    listed = priors.Table(list(chain.on_records(space, float)))
    level = BayesianDifferentialPrivacy(listed).measure(noisy)
    # At scale 1/100 nothing is near the end of the range; the excess over 1/scale is the same.
    near = wi.mechanisms.Laplace(wi.statistics.Sum(), Fraction(1, 100)).channel(space)
    excess = float(BayesianDifferentialPrivacy(listed).measure(near).value) - 100
    assert float(level.value) == pytest.approx(800 + excess, abs=1e-6)


def test_only_records():
    """The notions about values of rows refuse subsets, and a default that is no value."""
    subsets = wi.Channel(wi.Subsets(1), [[1, 0], [0, 1]])
    for notion in (
        BayesianDifferentialPrivacy(priors.Uniform()),
        SemanticPrivacy(),
        BayesianSemanticPrivacy(priors.Uniform()),
        Identifiability(priors.Uniform()),
        MutualInformation(priors.Uniform()),
    ):
        with refused("space", kind=Unsupported):
            notion.measure(subsets)
    channel = wi.Channel(wi.Records(1, 2), [[1, 0], [0, 1]])
    for default in (2, -1, True, 0.0):
        with refused("default"):
            SemanticPrivacy(default).measure(channel)
    for nothing in ([], [1]):
        with refused("prior"):
            BayesianDifferentialPrivacy(nothing)
    for notion in (BayesianSemanticPrivacy, Identifiability, MutualInformation, MeanShift):
        with refused("prior"):
            notion(None)


@pytest.mark.parametrize("n", [11, pytest.param(14, marks=pytest.mark.soak)])
def test_full_table_at_scale(n):
    """m = 2, n = 14, K = 8 in seconds, and at least what DP says (T19)."""
    generator = np.random.default_rng(1)
    rows = generator.dirichlet(np.ones(8) * 50, 2**n)
    channel = wi.Channel(wi.Records(n, 2), rows)
    bayes = BayesianDifferentialPrivacy(priors.Uniform()).measure(channel)
    plain = DifferentialPrivacy("replace").measure(channel)
    assert float(bayes.value) == pytest.approx(float(plain.value), abs=1e-9)


def test_semantic_privacy_of_many_rows_that_are_no_product_is_refused_at_once():
    alike = wi.priors.Exchangeable([Fraction(1, 41)] * 41)
    mechanism = wi.mechanisms.Laplace("sum", scale=4)
    with pytest.raises(TooLarge):
        wi.notions.BayesianSemanticPrivacy(alike).measure(mechanism, wi.Records(40, 2))
