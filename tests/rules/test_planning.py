"""The smallest threshold, base or population that keeps a promise."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import whosin as wi
from amounts import some
from refusals import refused
from whosin import families, rules
from whosin.errors import Unsupported

F = Fraction
FAMILY = families.AtMostKnown(2, "0.1", "0.5")
TARGET = wi.Posterior("0.6")


def keeps(rule, people, delta, family=FAMILY):
    return rules.failure(rule, people, family, "3/2").upper <= delta


SURER = families.AtMostKnown(1, "0.3", "0.5")


@cache
def enough(family, delta):
    """From how many people on the exact count keeps the promise, and all rules do (F24)."""
    size = rules.plan_rule("population", TARGET, family, delta).parameter
    assert size is not None
    return size


@pytest.mark.parametrize("step", [24, pytest.param(1, marks=pytest.mark.soak)])
@pytest.mark.parametrize("zeros", some(["shown", "hidden"], 1))
def test_the_threshold_is_the_smallest_that_is_known_to_hold(zeros, step):
    """For 12 people and for any more: 13 would do for exactly 12, and fails for 40."""
    found = rules.plan_rule("suppress", TARGET, SURER, "0.1", 12, zeros)
    below = found.parameter
    assert below is not None and found.ratio == 1.5 and found.failure[1] <= 0.1 and found.at_least
    numbers = range(12, enough(SURER, "0.1") + 3, step)
    for t in (below - 1, below):
        kept = all(keeps(rules.Suppress(t, zeros), n, 0.1, SURER) for n in numbers)
        assert kept == (t >= below)
    tails = [rules.failure(rules.Suppress(13, zeros), n, SURER, "3/2") for n in (12, 40)]
    assert tails[0].upper <= 0.1 < tails[1].lower


def test_more_people_than_declared_do_not_break_a_threshold():
    """A threshold of 17 for 20 people failed for 40 of them in 24% of cases; 2% were promised."""
    assert rules.failure(rules.Suppress(17), 40, FAMILY, "3/2").lower > 0.2
    found = rules.plan_rule("suppress", TARGET, families.Uninformed(), "0.05", 20)
    below = found.parameter
    assert below is not None and found.at_least
    for n in range(20, 300, 9):
        tail = rules.failure(rules.Suppress(below), n, families.Uninformed(), "3/2")
        assert tail.exact is False or tail.upper <= found.failure[1] <= 0.05
        assert tail.upper <= 0.05


@pytest.mark.parametrize(("people", "delta"), some([(12, "0.1"), (20, "0.3")], 1, several=True))
@pytest.mark.parametrize(
    ("kind", "make"), [("round", rules.Round), ("random-round", rules.RandomRound)]
)
def test_the_base_is_the_first_that_is_known_to_hold(kind, make, people, delta):
    found = rules.plan_rule(kind, TARGET, SURER, delta, people)
    numbers = [people + 1, people + 7, 2 * people, *range(people, enough(SURER, delta), 3)]
    assert found.at_least
    for base in range(2, (found.parameter or people) + 1):
        kept = all(keeps(make(base), n, F(delta), SURER) for n in numbers)
        assert kept == (base == found.parameter)


def test_a_search_that_would_take_too_long_is_for_exactly_so_many_people():
    found = rules.plan_rule("suppress", wi.Posterior("0.501"), SURER, "0.4", 12)
    assert not found.at_least and found.to_dict()["people_are"] == "exactly"
    assert found.parameter is None or found.failure[1] <= 0.4


def test_nobody_else_may_be_in_so_no_population_is_enough():
    """Someone may be sure that all others are out, however many there are: this never answered."""
    found = rules.plan_rule("population", TARGET, families.FixedProbability("0.3"), "0.1")
    assert found.parameter is None and found.failure == (1.0, 1.0)
    hidden = rules.plan_rule(
        "suppress", TARGET, families.FixedProbability("0.3"), "0.1", 20, "hidden"
    )
    assert hidden.parameter is not None and hidden.at_least
    for people in (2, 5, 20, 40, 80):
        rule = rules.Suppress(hidden.parameter, "hidden")
        tail = rules.failure(rule, people, families.FixedProbability("0.3"), "7/2")
        assert tail.upper <= hidden.failure[1] <= 0.1


def test_the_population_is_the_smallest_whose_exact_count_holds():
    found = rules.plan_rule("population", TARGET, FAMILY, "0.1", 30)
    size = found.parameter
    assert size is not None and keeps(rules.Exact(), size, 0.1)
    assert not any(keeps(rules.Exact(), n, 0.1) for n in (4, size // 2, size - 1))
    assert found.without is not None and found.without[1] > 0.1  # 30 people are too few
    assert rules.plan_rule("population", TARGET, FAMILY, "0.1").parameter == size


def test_a_population_holds_for_whatever_is_published():
    """The tail of the exact count is no bound on that of coarser numbers: F9's is (F22)."""
    family, ratio, delta = families.Uninformed(), F(3, 2), F(2, 100)
    size = rules.plan_rule("population", TARGET, family, delta).parameter
    exact = next(
        n for n in range(2, 200) if rules.failure(rules.Exact(), n, family, ratio).upper <= delta
    )
    assert exact < size

    def worst(people):
        """The largest tail of "at least c" for any c."""
        found = F(0)
        for c in range(people + 1):
            above = sum(math.comb(people - 1, x) for x in range(max(c - 1, 0), people))
            below = sum(math.comb(people - 1, x) for x in range(c, people))
            if above > ratio * below:
                found = max(found, F(above, 2 ** (people - 1)))
        return found

    assert worst(size) <= delta < worst(exact)


@pytest.mark.parametrize("kind", some(["round", "suppress", "random-round", "population"], 2))
def test_no_attack_beats_a_promise(kind):
    """Whoever is in the family, outputs that take them above 60% are as rare as promised: their
    probability is computed for random priors of the family, known people and beliefs alike."""
    delta, rng = 0.5 if kind == "round" else 0.1, np.random.default_rng(4)
    found = rules.plan_rule(kind, TARGET, FAMILY, delta, 30)
    assert found.parameter is not None
    # A threshold for 30 people and more hides all of 30.
    people = {"population": found.parameter, "suppress": 80}.get(kind, 30)
    made = {
        "suppress": rules.Suppress, "round": rules.Round, "random-round": rules.RandomRound,
        "population": lambda _: rules.Round(5),
    }[kind](found.parameter)  # fmt: skip
    table, worst = made.channel(wi.Subsets(people)).likelihoods, 0.0
    for _ in range(60):
        others = rng.choice([rng.uniform(0.1, 0.5, people - 1), rng.choice([0.1, 0.5], people - 1)])
        others[: rng.integers(0, 3)] = rng.integers(0, 2)
        weights = np.ones(1)
        for p in others:
            weights = np.convolve(weights, [1 - p, p])
        top, bottom = weights @ table[1:], weights @ table[:-1]
        for prior in (0.1, 0.3, 0.5):
            sure = prior * top > (0.6 + 1e-12) * (prior * top + (1 - prior) * bottom)
            worst = max(worst, float(top[sure].sum()))
    assert 0 < worst <= delta


def test_costs_noise_and_what_remains():
    found = rules.plan_rule("random-round", TARGET, FAMILY, "0.1", 24)
    base = found.parameter
    assert base is not None
    for cost, share in zip(found.costs, (0.1, 0.5), strict=True):
        truth = 0.0
        for count in range(25):
            weight = math.comb(24, count) * share**count * (1 - share) ** (24 - count)
            over = count % base
            truth += weight * 2 * over * (base - over) / base
        assert cost.error == pytest.approx(truth, rel=1e-9) and cost.suppressed == 0
    geometric, laplace = found.beside
    assert geometric.kind == "geometric" and geometric.error < laplace.error
    assert (
        laplace.error
        == wi.calibrate(TARGET, families.Independent("0.1", "0.5"), query="count").noise.scale
    )
    assert [each.known for each in found.remains] == [4, 12, 23] and found.at_least
    assert [each.lower for each in found.remains] == sorted(each.lower for each in found.remains)
    assert found.remains[-1].lower > 0.1
    hidden = rules.plan_rule("suppress", TARGET, FAMILY, "0.2", 24)
    low = sum(math.comb(24, c) * 0.1**c * 0.9 ** (24 - c) for c in range(1, hidden.parameter))
    assert hidden.costs[0].suppressed == pytest.approx(low, rel=1e-9)
    assert hidden.at_least
    for each in hidden.remains:  # as the promise: for 24 people or any larger number
        more = families.AtMostKnown(each.known, "0.1", "0.5")
        seen = rules.failure(rules.Suppress(hidden.parameter), 48, more, hidden.ratio)
        assert each.upper is None and each.lower >= max(0.05, float(seen.lower))
    assert hidden.costs[0].error == 0


def test_no_rule_may_be_enough():
    found = rules.plan_rule("round", wi.Posterior("0.501"), FAMILY, "1e-6", 12)
    assert found.parameter is None and found.costs == () and found.failure == found.without


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: rules.plan_rule("hide", TARGET, FAMILY, 0.1, 9), "rule"),
        (lambda: rules.plan_rule("round", TARGET, FAMILY, 0, 9), "delta"),
        (lambda: rules.plan_rule("round", TARGET, FAMILY, 0.1), "people"),
        (lambda: rules.plan_rule("round", TARGET, FAMILY, 0.1, 1), "people"),
        (
            lambda: rules.plan_rule("round", TARGET, families.AtMostKnown(9, "0.1", "0.5"), 0.1, 8),
            "known",
        ),
        (
            lambda: rules.plan_rule("round", TARGET, families.Independent("0.1", "0.5"), 0.1, 8),
            "known",
        ),
        (lambda: rules.plan_rule("round", wi.Rho("0.6", 2), FAMILY, 0.1, 9), "target"),
        (lambda: rules.plan_rule("round", wi.Epsilon(1), FAMILY, 0.1, 9), "target"),
        (lambda: rules.plan_rule("suppress", TARGET, FAMILY, 0.1, 9, "no"), "zeros"),
    ],
)
def test_plans_that_make_no_sense_are_refused(call, field):
    with refused(field):
        call()


def test_other_families_are_refused():
    with refused("family", kind=Unsupported):
        rules.plan_rule("round", wi.Gamma(2), families.OneOf(3), 0.1, 9)
