"""Trade-off curves against all tests there are, in exact rationals."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations

import pytest

import whosin as wi
from amounts import cases
from refusals import refused
from whosin.calibration import Process, calibrate_process
from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.exact import exp_down

ZERO, ONE = Fraction(0), Fraction(1)
RATES = [ZERO, *(Fraction(k, 24) for k in (1, 2, 5, 9, 12, 17, 23)), ONE]
Pair = tuple[list[Fraction], list[Fraction]]


def random_rows(rng: random.Random, rows: int, outputs: int) -> list[list[Fraction]]:
    """Small whole weights: zeros, ties and impossible outputs happen."""
    result = []
    for _ in range(rows):
        weights = [rng.choice((0, 0, 1, 1, 2, 3, 50)) for _ in range(outputs)]
        weights[rng.randrange(outputs)] += 1
        result.append([Fraction(w, sum(weights)) for w in weights])
    return result


def all_tests(pairs: list[Pair]) -> set[tuple[Fraction, Fraction]]:
    """(FPR, TPR) of every test without coins, for every pair."""
    outputs = range(len(pairs[0][0]))
    chosen = [set(some) for k in range(len(outputs) + 1) for some in combinations(outputs, k)]
    return {
        (sum((out[o] for o in some), ZERO), sum((in_[o] for o in some), ZERO))
        for in_, out in pairs
        for some in chosen
    }


def largest(tests: set[tuple[Fraction, Fraction]], fpr: Fraction) -> Fraction:
    """The best coin between any two tests, at most this FPR on average."""
    by_rate: dict[Fraction, Fraction] = {}
    for x, y in tests:
        by_rate[x] = max(y, by_rate.get(x, ZERO))
    below = [(x, y) for x, y in by_rate.items() if x <= fpr]
    above = [(x, y) for x, y in by_rate.items() if x > fpr]
    best = max(y for _, y in below)
    for x0, y0 in below:
        for x1, y1 in above:
            best = max(best, y0 + (y1 - y0) * (fpr - x0) / (x1 - x0))
    return best


def neighbours(n: int, rows: list[list[Fraction]], relation: str) -> list[Pair]:
    """From the definition: worlds as sets of bits."""
    pairs = []
    for world in range(2**n):
        absent = [i for i in range(n) if not world >> i & 1]
        if relation == "add-remove":
            pairs += [(rows[world | 1 << i], rows[world]) for i in absent]
        else:
            pairs += [
                (rows[world | 1 << i], rows[world | 1 << j])
                for i in absent
                for j in absent
                if i != j
            ]
    return pairs


@cases(6, 1000)
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_curves_of_channels_are_what_all_tests_reach(relation, count):
    rng = random.Random(f"curves {relation}")
    for _ in range(count):
        n, outputs = rng.randint(2, 3), rng.randint(1, 4)
        rows = random_rows(rng, 2**n, outputs)
        curve = wi.curves.tradeoff(wi.Channel(wi.Subsets(n), rows), relation=relation)
        assert curve.exact
        pairs = neighbours(n, rows, relation)
        tests = all_tests(pairs)
        for fpr in RATES:
            assert curve.tpr(fpr) == largest(tests, fpr)
        assert curve.advantage == max(y - x for x, y in tests)
        for prior in (Fraction(1, 10), Fraction(1, 2), Fraction(7, 9)):
            risks = (
                sum(min(prior * p, (1 - prior) * q) for p, q in zip(*pair, strict=True))
                for pair in pairs
            )
            assert curve.bayes_risk(prior) == min(risks)
            for epsilon in (-1.5, 0.25, 2):
                factor = math.exp(epsilon)
                most = max(
                    sum(max(0.0, p - factor * q) for p, q in zip(*pair, strict=True))
                    for pair in pairs
                )
                assert most - 1e-12 <= curve.delta(epsilon) <= most + 1e-12


def test_one_test_can_serve_several_pairs():
    """The largest TPR of each pair is not enough: someone who is unsure of another person mixes."""
    rows = [["1/2", "1/2", 0, 0], ["9/10", "1/10", 0, 0], [0, 0, "9/10", "1/10"], [0, 0, 1, 0]]
    channel = wi.Channel(wi.Subsets(2), rows)
    curve = wi.curves.tradeoff(channel)
    with_, without = (
        [sum(Fraction(rows[w][o]) for w in worlds) / 2 for o in range(4)]
        for worlds in ((1, 3), (0, 2))
    )
    mixed = all_tests([(with_, without)])
    assert all(largest(mixed, fpr) <= curve.tpr(fpr) for fpr in RATES)


def test_records_are_replaced():
    rng = random.Random(5)
    for _ in range(6):
        rows = random_rows(rng, 9, 3)
        curve = wi.curves.tradeoff(wi.Channel(wi.Records(2, 3), rows), relation="replace")
        worlds = [(a, b) for a in range(3) for b in range(3)]
        pairs = [
            (rows[i], rows[j])
            for i, one in enumerate(worlds)
            for j, two in enumerate(worlds)
            if sum(a != b for a, b in zip(one, two, strict=True)) == 1
        ]
        tests = all_tests(pairs)
        assert all(curve.tpr(fpr) == largest(tests, fpr) for fpr in RATES)


def test_composition_and_sampling_are_those_of_channels():
    """Two answers together are a product channel; sampling mixes "in" with "out"."""
    rng = random.Random(6)
    for _ in range(15):
        (p, q), (p_, q_) = random_rows(rng, 2, 3), random_rows(rng, 2, 2)
        one, two = (
            wi.curves.tradeoff(wi.Channel(wi.Subsets(1), [b, a])) for a, b in ((p, q), (p_, q_))
        )
        both = [[a * b for a in x for b in y] for x, y in ((q, q_), (p, p_))]
        assert (
            one.composed(two).corners == wi.curves.tradeoff(wi.Channel(wi.Subsets(1), both)).corners
        )
        mixed = [q, [Fraction(1, 3) * a + Fraction(2, 3) * b for a, b in zip(p, q, strict=True)]]
        sampled = one.sampled("1/3").corners
        assert sampled == wi.curves.tradeoff(wi.Channel(wi.Subsets(1), mixed)).corners


def test_composed_curves_bound_those_of_joint_channels_and_say_when_they_are_exact():
    rng = random.Random(16)
    seen = set()
    for _ in range(30):
        space, relation = wi.Subsets(2), rng.choice(("add-remove", "replace"))
        one, two = (wi.Channel(space, random_rows(rng, 4, rng.randint(2, 3))) for _ in range(2))
        two = one if rng.random() < 0.5 else two
        joint = wi.curves.tradeoff(wi.mechanisms.Composed([one, two]), space, relation)
        both = wi.curves.tradeoff(one, relation=relation).composed(
            wi.curves.tradeoff(two, relation=relation)
        )
        same = joint.corners == both.corners
        assert same if both.exact else all(joint.tpr(x) <= both.tpr(x) for x in RATES)
        assert both.relation == relation
        seen.add((both.exact, same))
    assert seen >= {(True, True), (False, False)}


def test_sampled_curves_bound_those_of_sampled_mechanisms_and_say_when_they_are_exact():
    rng = random.Random(17)
    seen = set()
    for _ in range(30):
        channel = wi.Channel(wi.Subsets(2), random_rows(rng, 4, 3))
        truth = wi.curves.tradeoff(wi.mechanisms.Sampled(channel, "1/3"), wi.Subsets(2))
        claimed = wi.curves.tradeoff(channel).sampled("1/3")
        same = truth.corners == claimed.corners
        assert same if claimed.exact else all(truth.tpr(x) <= claimed.tpr(x) for x in RATES)
        seen.add((claimed.exact, same))
    assert seen >= {(True, True), (False, False)}
    both_in = [["1", 0], ["1", 0], ["1", 0], [0, "1"]]  # a person shows only beside the other
    claimed = wi.curves.tradeoff(wi.Channel(wi.Subsets(2), both_in)).sampled("1/2")
    truth = wi.curves.tradeoff(wi.mechanisms.Sampled(wi.Channel(wi.Subsets(2), both_in), "1/2"))
    assert (claimed.advantage, truth.advantage, claimed.exact) == (ONE / 2, ONE / 4, False)


def test_curves_of_noise_are_exact_together_only_between_the_same_worlds():
    space = wi.Subsets(2)
    one, two = (
        wi.mechanisms.Geometric(wi.statistics.Sum(weights), alpha="1/2")
        for weights in ([1, 2], [2, 1])
    )
    first, second = wi.curves.tradeoff(one, space), wi.curves.tradeoff(two, space)
    assert first.composed(first).exact and not first.composed(second).exact
    assert first.sampled("1/2").exact


PARITY = [(1, 0), (0, 1)]


def parity(*people):
    """The parity of some of three people, and nothing else."""
    rows = [PARITY[sum(world >> i & 1 for i in people) % 2] for world in range(8)]
    return wi.Channel(wi.Subsets(3), rows)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: wi.curves.tradeoff(parity(1, 2), family=wi.families.Uninformed()),
            "priors of a family",
        ),
        (
            lambda: wi.curves.tradeoff(parity(1, 2), family=wi.families.FixedProbability("1/3")),
            "priors of a family",
        ),
        (
            lambda: wi.curves.tradeoff(
                wi.calibrate(wi.Gamma(2), wi.families.AtMostKnown(1, 0.1, 0.9))
            ),
            "plan for one release",
        ),
        (lambda: wi.curves.tradeoff(parity(1, 2), relation="replace"), "add-remove"),
        (
            lambda: wi.curves.tradeoff(wi.calibrate(wi.Gamma(2), wi.families.Cliques(3))),
            "add-remove",
        ),
        (lambda: wi.curves.CornerCurve([(ZERO, ONE / 2)]), "priors of a family"),
    ],
)
def test_curves_that_are_not_about_one_person_in_or_out_are_not_sampled(make, reason):
    curve = make()
    with refused("relation", kind=Unsupported):
        curve.sampled("1/5")
    if curve.relation is None:
        with refused("relation", kind=Unsupported):
            curve.composed(curve)
    else:
        assert curve.composed(curve).advantage >= curve.advantage


def test_two_answers_may_show_what_neither_shows_to_the_uninformed():
    """Why curves over families are not composed: parities of two and of three people."""
    one, two, unsure = parity(1, 2), parity(0, 1, 2), wi.families.Uninformed()
    both = wi.mechanisms.Composed([one, two])
    assert [
        wi.curves.tradeoff(each, wi.Subsets(3), family=unsure).advantage for each in (one, two)
    ] == [0, 0]
    assert wi.curves.tradeoff(both, wi.Subsets(3), family=unsure).advantage == 1
    with refused("relation", kind=Unsupported):
        wi.curves.tradeoff(one).composed(wi.curves.tradeoff(one, relation="replace"))


def test_geometric_noise_needs_whole_numbers_in_curves_too():
    noise = wi.mechanisms.Geometric(wi.statistics.Sum(["1/2", "1/2"]), alpha="1/2")
    for use in (wi.curves.tradeoff, lambda mechanism, space: mechanism.channel(space)):
        with refused("statistic"):
            use(noise, wi.Subsets(2))


def test_epsilons_are_taken_exactly():
    for spelled in ("299.7", "299.8", "299.9"):  # floats are up to 3e-14 above or below
        rare = 1 / (4 * exp_down(Fraction(spelled)))
        curve = wi.curves.CornerCurve([(rare, Fraction(1, 2))])
        assert curve.delta(spelled) >= 0.25


def test_noise_has_the_curve_of_its_definition():
    count, space = wi.statistics.Count(), wi.Subsets(4)
    normal = wi.curves.tradeoff(wi.mechanisms.Gaussian(count, 2), space)
    for cut in (-2.0, -1.0, 0.3, 1.5):  # FPR = Φ(−cut), TPR = Φ(1/σ − cut)
        fpr, tpr = (math.erfc(x / math.sqrt(2)) / 2 for x in (cut, cut - 0.5))
        assert tpr - 1e-12 <= normal.tpr(fpr) <= tpr + 1e-7
    laplace = wi.curves.tradeoff(wi.mechanisms.Laplace(count, 2), space)
    for cut in (-1.0, 0.2, 0.5, 0.9, 3.0):  # between centres 0 and 1, scale 2
        tail = [
            math.exp(-(cut - c) / 2) / 2 if cut >= c else 1 - math.exp((cut - c) / 2) / 2
            for c in (0, 1)
        ]
        assert laplace.tpr(tail[0]) == pytest.approx(tail[1], rel=1e-12)
        assert laplace.delta(0.1) >= tail[1] - math.exp(0.1) * tail[0] - 1e-15
    weights = wi.statistics.Sum([1, 3, 1, 1])
    geometric = wi.curves.tradeoff(wi.mechanisms.Geometric(weights, alpha="1/2"), space)
    law = {y: Fraction(1, 3) / 2 ** abs(y) for y in range(-60, 61)}
    for cut in range(-3, 6):
        fpr = sum(law[y] for y in law if y >= cut)
        tpr = sum(mass for y, mass in law.items() if y + 3 >= cut)
        assert abs(geometric.tpr(fpr) - tpr) < Fraction(1, 10**15)
    assert geometric.exact


def test_a_process_agrees_with_the_closed_form():
    """Through losses on a grid: one run of Gaussian noise that is not sampled, from above."""
    losses = Process("gaussian", 0.999999, 4).losses(4.0)
    curve, plain = wi.curves.LossCurve(losses), wi.curves.NormalCurve(2.0)
    for fpr in (0.001, 0.01, 0.3, 0.9):
        assert plain.tpr(fpr) - 1e-6 <= curve.tpr(fpr) <= plain.tpr(fpr) + 1e-4
    assert curve.bayes_risk("0.3") == pytest.approx(plain.bayes_risk("0.3"), abs=1e-4)


def test_over_a_family_every_prior_stays_below():
    """Uninformed adversaries: the one prior, in exact numbers."""
    rows = random_rows(random.Random(8), 8, 3)
    channel = wi.Channel(wi.Subsets(3), rows)
    curve = wi.curves.tradeoff(channel, family=wi.families.Uninformed())
    pairs = []
    for i in range(3):
        sides = [[rows[w] for w in range(8) if bool(w >> i & 1) is side] for side in (True, False)]
        pairs.append(tuple([sum(c) / 4 for c in zip(*side, strict=True)] for side in sides))
    tests = all_tests(pairs)
    assert all(curve.tpr(fpr) == largest(tests, fpr) for fpr in RATES)


# Plans; `test_attacked_plans` attacks them.


def test_curves_of_plans_keep_their_targets():
    for target in (wi.Detection("0.1", "0.01"), wi.BayesRisk("0.3", "0.2"), wi.Advantage("0.1")):
        for given in ({}, {"delta": 1e-6}, {"delta": 1e-6, "query": "count"}):
            curve = wi.curves.tradeoff(wi.calibrate(target, **given))
            kept = {
                wi.Detection: lambda c: c.tpr("0.01") <= Fraction("0.1"),
                wi.BayesRisk: lambda c: c.bayes_risk("0.3") >= Fraction("0.2") - Fraction(1, 10**9),
                wi.Advantage: lambda c: c.advantage <= Fraction("0.1") + Fraction(1, 10**9),
            }[type(target)]
            assert kept(curve), (target, given)


def test_the_curve_of_an_exact_count_holds_in_its_one_direction():
    """Counts that rest on what others hide bound presence: absence may show all."""
    family = wi.families.AtMostKnown(0, "0.01", "0.01")
    plan = wi.calibrate(wi.Posterior("0.09"), family, delta=0.01, query="count", entities=50)
    assert plan.noise.kind == "none" and plan.one_way
    some = 1 - Fraction(99, 100) ** 49  # at least one of the others: "in" whenever the count is
    assert wi.curves.tradeoff(plan).tpr(some) == 1
    private = wi.calibrate(wi.Epsilon(1), family, delta=0.01, query="count", entities=50)
    assert not private.one_way  # (ε, δ)-DP is planned for both directions


def test_a_process_keeps_its_detection_rate_and_no_more():
    sgd = Process("gaussian", 0.01, 200)
    plan = calibrate_process(wi.Detection("0.1", "0.01"), sgd)
    reached = wi.curves.tradeoff(plan).tpr("0.01")
    assert 0.0995 < reached <= 0.1 + 1e-9 and plan.bound <= plan.goal
    assert wi.curves.LossCurve(sgd.losses(plan.multiplier * 0.99)).tpr("0.01") > 0.1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: wi.curves.tradeoff(3), InvalidInput),
        (
            lambda: wi.curves.tradeoff(wi.mechanisms.KMax(2), wi.Subsets(3), relation="x"),
            UnknownName,
        ),
        (
            lambda: wi.curves.tradeoff(
                wi.calibrate(wi.Gamma(2), wi.families.Independent()), relation="x"
            ),
            UnknownName,
        ),
        (
            lambda: wi.curves.tradeoff(
                wi.calibrate(wi.Gamma(2), wi.families.Independent()), relation="replace"
            ),
            InvalidInput,
        ),
        (lambda: wi.curves.tradeoff(wi.Channel(wi.Records(1, 2), [[1, 0], [0, 1]])), Unsupported),
        (lambda: wi.curves.tradeoff(wi.mechanisms.KMax(2), wi.Subsets(3)).tpr(2), InvalidInput),
        (lambda: wi.curves.tradeoff(wi.mechanisms.KMax(2), wi.Subsets(3)).delta(1e9), InvalidInput),
        (
            lambda: wi.curves.tradeoff(wi.mechanisms.KMax(2), wi.Subsets(3)).posterior(0.5, 0),
            InvalidInput,
        ),
    ],
)
def test_what_is_no_curve_is_refused(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("noise", ["Laplace", "Geometric", "Gaussian"])
def test_noise_too_small_for_a_curve_is_refused(noise):
    with refused("scale", kind=Unsupported):
        wi.curves.tradeoff(getattr(wi.mechanisms, noise)("count", 1e-300), wi.Subsets(3)).tpr(0.1)
    small = wi.curves.tradeoff(getattr(wi.mechanisms, noise)("count", 1e-2), wi.Subsets(3))
    assert small.tpr(0.1) == pytest.approx(1)
