"""Profiles, failure probabilities and levels with a δ, against brute force in exact rationals."""

from __future__ import annotations

import math
import random
import time
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import rule_oracle as oracle
import whosin as wi
from amounts import cases, some
from refusals import refused
from whosin import families, mechanisms, notions, rules
from whosin.errors import Unsupported
from whosin.exact import exp_down, rational
from whosin.notions.failure_probability import list_cases
from whosin.spaces.quotients import block_of_binomials, two_binomials

F = Fraction
MADE = {
    "exact": lambda number: rules.Exact(),
    "suppress": rules.Suppress,
    "suppress zeros": lambda number: rules.Suppress(number, zeros="hidden"),
    "round": lambda number: rules.Round(max(2, number)),
    "random-round": lambda number: rules.RandomRound(max(2, number)),
}
KINDS = list(MADE)
KEYS = {0: {0: F(1)}, 1: {-1: F(1, 4), 0: F(1, 2), 1: F(1, 4)}, 2: {-1: F(1, 3), 2: F(2, 3)}}
MORE = {
    "cell key": rules.CellKey(KEYS),
    "suppress, round": wi.mechanisms.PostProcessed(rules.Suppress(3), rules.Round(4)),
    "cell key, suppress": wi.mechanisms.PostProcessed(rules.CellKey(KEYS), rules.Suppress(2)),
}


def of_ones_own(people):
    """A rule that shows one of ten numbers."""
    rows = [[F(1 + (c * o) % 4, 40) for o in range(9)] for c in range(people + 1)]
    return rules.FromTable([[*row, 1 - sum(row)] for row in rows])


ANYTHING: Any = "all"


def seeds(few, everything):
    """A test of one random case, as a test of many."""

    def decorate(check):
        @cases(few, everything)
        def test(count):
            for seed in range(count):
                check(random.Random(seed))

        test.__doc__ = check.__doc__
        return test

    return decorate


def a_rule(rng, people):
    """A random rule, with its rows from the definition; sometimes one of one's own, a cell key, or
    one rule after another."""
    kind = rng.choice([*KINDS, "own", "cell key", "chain"])
    if kind == "cell key":
        return MORE[kind], [oracle.changed(KEYS, c) for c in range(people + 1)]
    if kind == "chain":
        second, number, third = rng.choice(KINDS), rng.randint(2, 5), rng.randint(2, 5)
        rows = [oracle.shown("random-round", number, c) for c in range(people + 1)]
        chain = wi.mechanisms.PostProcessed(rules.RandomRound(number), MADE[second](third))
        return chain, [oracle.after(row, second, third) for row in rows]
    if kind == "own":
        rows = []
        for _ in range(people + 1):
            parts = [rng.choice((0, 0, 1, 1, 2, 5)) for _ in range(4)]
            parts[rng.randrange(4)] += 1
            rows.append([F(part, sum(parts)) for part in parts])
        return rules.FromTable(rows), [dict(enumerate(row)) for row in rows]
    number = rng.randint(2, people + 2)
    return MADE[kind](number), [oracle.shown(kind, number, c) for c in range(people + 1)]


def a_range(rng):
    low = F(rng.randint(1, 9), 10)
    return low, min(F(9, 10), low + F(rng.randint(0, 5), 10))


@seeds(12, 1000)
def test_the_profile_is_that_of_all_vertices(rng):
    """F21, n ≤ 14: equal to the largest over every vertex with at most k known, each by itself."""
    people = rng.randint(1, 14)
    rule, rows = a_rule(rng, people)
    low, high = a_range(rng)
    known = rng.randint(0, min(people, 4))
    epsilon = rng.choice([0, 0.1, 0.5, 1.0, 2.5, -0.5])
    factor = exp_down(epsilon) if epsilon else F(1)
    truth = max(
        oracle.hockey_stick(*oracle.sides(rows, others), factor)
        for others in oracle.vertices(people - 1, known, low, high)
    )
    family = families.AtMostKnown(known, low, high)
    assert rules.profile(rule, people, family, epsilon) == pytest.approx(float(truth), rel=1e-14)


@pytest.mark.parametrize("kind", [*KINDS, *MORE, "own"])
def test_no_prior_in_between_beats_the_profile(kind):
    """1,000 interior priors in floats: none is above by more than its own rounding."""
    rng = np.random.default_rng(5)
    people, known, low, high = 14, 2, 0.1, 0.7
    rule = MORE.get(kind) or (of_ones_own(people) if kind == "own" else MADE[kind](3))
    family = families.AtMostKnown(known, F(1, 10), F(7, 10))
    table = rule.channel(wi.Subsets(people)).likelihoods
    ratios = (0.2, 1.0)
    most = [rules.profile(rule, people, family, epsilon) for epsilon in ratios]
    for _ in range(100):
        others = rng.uniform(low, high, people - 1)
        others[: rng.integers(0, known + 1)] = rng.integers(0, 2)
        weights = np.ones(1)
        for p in others:
            weights = np.convolve(weights, [1 - p, p])
        top, bottom = weights @ table[1:], weights @ table[:-1]
        for epsilon, bound in zip(ratios, most, strict=True):
            assert np.maximum(top - np.exp(epsilon) * bottom, 0).sum() <= bound + 1e-13


@seeds(12, 1000)
def test_the_bracket_holds_at_every_vertex_and_in_between(rng):
    """`lower` is the largest tail of all vertices, exactly, ties included; `upper` is above every
    tail, also of priors in between, which may exceed those of vertices."""
    people = rng.randint(2, 10)
    rule, rows = a_rule(rng, people)
    low, high = a_range(rng)
    known = rng.randint(0, 3)
    pairs = [
        oracle.sides(rows, others)
        for others in oracle.vertices(people - 1, min(known, people - 1), low, high)
        if sum(p in (0, 1) for p in others) == min(known, people - 1)
    ]
    seen = [p / b[o] for t, b in pairs[:4] for o, p in t.items() if b.get(o) and p > b[o]]
    ratio = rng.choice([*seen, F(3, 2), F(4)])  # a ratio that occurs is not exceeded by itself
    result = rules.failure(rule, people, families.AtMostKnown(min(known, people), low, high), ratio)
    assert result.lower == max(oracle.tail(*pair, ratio) for pair in pairs)
    assert result.lower <= result.upper <= 1
    for _ in range(12):
        others = [low + (high - low) * F(rng.randint(0, 8), 8) for _ in range(people - 1)]
        for place in range(min(known, people - 1)):
            others[place] = F(rng.randint(0, 1)) if rng.random() < 0.8 else others[place]
        assert oracle.tail(*oracle.sides(rows, others), ratio) <= result.upper
    witness = result.witness
    others = witness.distribution.beliefs(wi.Subsets(people))[1:]
    top, bottom = oracle.sides(rows, others)
    assert oracle.tail(top, bottom, ratio) == result.lower == witness.probability
    assert {o for o, p in top.items() if p > ratio * bottom.get(o, 0)} == set(witness.outputs)


def test_everyone_may_be_known():
    """At most 9 known of 4 people is everyone known (F21)."""
    nine, three = (families.AtMostKnown(k, F(1, 4), F(1, 2)) for k in (9, 3))
    assert rules.profile(rules.Round(3), 4, nine, 1) == rules.profile(rules.Round(3), 4, three, 1)
    level = notions.PositiveMembership(nine).measure(
        rules.RandomRound(3), wi.Subsets(4), delta="0.1"
    )
    assert level.value == math.inf


def test_bounds_below_a_ratio_of_one():
    """F9 holds for every real ε: where outputs rule nobody out, a negative one bounds best."""
    rows = [[F(9, 10), F(1, 10)], [F(1, 10), F(9, 10)], [F(1, 10), F(9, 10)]]
    nobody = families.AtMostKnown(1, F(1, 2), F(1, 2))
    found = rules.failure(rules.FromTable(rows), 2, nobody, 2)
    share = F(1, 9)  # e^ε = 1/9 is the least ratio: δ = 8/9
    assert found.lower == F(9, 10)
    assert found.lower <= found.upper <= float((1 - share) / (1 - share / 2)) + 1e-3


@seeds(8, 1000)
def test_families_with_few_priors_are_exact(rng):
    people = rng.randint(1, 9)
    rule, rows = a_rule(rng, people)
    beta = F(rng.randint(1, 9), 10)
    ratio, delta = rng.choice([F(5, 4), F(2), F(7)]), rng.choice([F(1, 100), F(1, 7), F(1, 2)])
    lists = {
        families.FixedProbability(beta): [
            [beta] * j + [F(0)] * (people - 1 - j) for j in range(people)
        ],
        families.Uninformed(): [[F(1, 2)] * (people - 1)],
    }
    for family, priors in lists.items():
        pairs = [oracle.sides(rows, others) for others in priors]
        result = rules.failure(rule, people, family, ratio)
        assert result.exact and result.lower == result.upper
        assert result.lower == max(oracle.tail(*pair, ratio) for pair in pairs)
        ratios = [oracle.quantile(*pair, delta) for pair in pairs]
        belief = family.beliefs[0]
        level = notions.PositiveMembership(family).measure(rule, wi.Subsets(people), delta=delta)
        assert level.exact and level.value == max(wi.beliefs.gamma(r, belief) for r in ratios)
        truth = max(oracle.hockey_stick(*pair, exp_down(0.3)) for pair in pairs)
        assert rules.profile(rule, people, family, 0.3) == pytest.approx(float(truth), rel=1e-14)


@seeds(10, 1000)
def test_listed_priors_may_depend_on_each_other(rng):
    people = rng.randint(2, 5)
    rule, rows = a_rule(rng, people)
    masses = [rng.choice((0, 1, 1, 3)) for _ in range(2**people)]
    masses[0] += 1
    masses[-1] += 1
    prior = {world: F(mass, sum(masses)) for world, mass in enumerate(masses)}
    tails, profiles = [], []
    for entity in range(people):
        sides = []
        for inside in (1, 0):
            side: dict = {}
            total = sum(p for world, p in prior.items() if world >> entity & 1 == inside)
            for world, p in prior.items():
                if world >> entity & 1 == inside:
                    for output, q in rows[world.bit_count()].items():
                        side[output] = side.get(output, F(0)) + p * q / total
            sides.append(side)
        tails.append(oracle.tail(*sides, F(3, 2)))
        profiles.append(oracle.hockey_stick(*sides, exp_down(0.5)))
    family = families.Explicit(wi.priors.Table(prior))
    result = rules.failure(rule, people, family, "3/2")
    assert result.exact and result.lower == result.upper == max(tails)
    found = rules.profile(rule, people, family, 0.5)
    assert found == pytest.approx(float(max(profiles)), rel=1e-14)


@seeds(6, 1000)
def test_the_least_level_at_a_delta_is_between_the_ends(rng):
    """The lower end is the largest δ-quantile of vertices; at the upper end no prior fails more
    often than δ. The reverse direction for negative membership."""
    people, positive = rng.randint(2, 9), rng.random() < 0.5
    rule, rows = a_rule(rng, people)
    low, high = a_range(rng)
    known = rng.randint(0, min(2, people - 1))
    delta = rng.choice([F(1, 1000), F(1, 50), F(1, 5)])
    family = families.AtMostKnown(known, low, high)
    notion = (notions.PositiveMembership if positive else notions.NegativeMembership)(family)
    level = notion.measure(rule, wi.Subsets(people), delta=delta)
    beliefs = wi.beliefs.sides(low, high, positive)

    def pair(others):
        sides = oracle.sides(rows, others)
        return sides if positive else sides[::-1]

    exactly = [
        o
        for o in oracle.vertices(people - 1, known, low, high)
        if sum(p in (0, 1) for p in o) == known
    ]
    ratio = max(oracle.quantile(*pair(others), delta) for others in exactly)
    least = wi.beliefs.worst_belief(ratio, *beliefs).gamma
    lower = level.value if level.lower is None else level.lower
    assert lower == least <= level.value
    if level.value < math.inf:
        most = min(wi.beliefs.largest_ratio(b, rational(level.value)) for b in beliefs)
        for _ in range(12):
            others = [low + (high - low) * F(rng.randint(0, 8), 8) for _ in range(people - 1)]
            others[:known] = [F(rng.randint(0, 1)) for _ in range(known)]
            assert oracle.tail(*pair(others), most * (1 + F(1, 10**9))) <= delta
    assert level.holds(level.value) is True
    if level.lower is not None and level.lower > 1:
        assert level.holds(F(level.lower) * F(999, 1000)) is False


def test_against_informed_people_there_is_no_level():
    for rule in (rules.Exact(), rules.Suppress(5), rules.Round(5), rules.RandomRound(5)):
        level = notions.PositiveMembership(families.Independent()).measure(
            rule, wi.Subsets(300), delta=F(1, 1000)
        )
        assert level.value == math.inf and level.exact and level.witness.posterior == 1
        assert "knows about 299 others (" in level.note
        assert f"{level.witness.output}, which is impossible if the person is out" in level.note
    # Rounded at random, an informed neighbour is sure one time in five: with δ above that, less.
    level = notions.PositiveMembership(families.Independent()).measure(
        rules.RandomRound(5), wi.Subsets(300), delta=F(1, 4)
    )
    assert 1.999 < level.lower <= level.value < math.inf
    assert rules.failure(rules.Exact(), 50, families.Independent(), 100).lower == 1
    assert rules.profile(rules.RandomRound(5), 50, families.Independent(), 3) == 0.2


def test_a_mechanism_of_ones_own_on_all_worlds():
    """The same rule as a channel on 2^n worlds, where nothing says that it is about a count."""
    rng = random.Random(3)
    people = 4
    rule, rows = a_rule(rng, people)
    channel = rule.channel(wi.Subsets(people)).on_worlds()
    for family in (
        families.AtMostKnown(1, F(1, 5), F(3, 5)),
        families.FixedProbability(F(1, 3)),
        families.Uninformed(),
        families.Independent(F(1, 4), F(1, 2)),
    ):
        notion = notions.PositiveMembership(family)
        for delta in (F(1, 20), F(1, 3)):
            one = notion.measure(rule, wi.Subsets(people), delta=delta)
            two = notion.measure(channel, delta=delta)
            assert two.value == pytest.approx(float(one.value), rel=1e-9)
            assert two.lower == one.lower
    del rows


@pytest.mark.parametrize("kind", some(KINDS, 2))
def test_floats_for_more_people_agree_with_rationals(kind):
    """For more people everything is in floats, in blocks of crowds; and not below the truth."""
    people = 120
    low, high, known = F(1, 20), F(1, 2), 3
    rule = MADE[kind](5)
    rows = [oracle.shown(kind, 5, c) for c in range(people + 1)]
    family = families.AtMostKnown(known, low, high)
    unsure = people - 1 - known
    crowds = [(0, 0), (3, 1), (1, unsure // 2), (2, unsure)]
    truth, tails = F(0), F(0)
    for inside, at_low in crowds:
        others = [F(1)] * inside + [F(0)] * (known - inside)
        others += [low] * at_low + [high] * (unsure - at_low)
        pair = oracle.sides(rows, others)
        truth = max(truth, oracle.hockey_stick(*pair, exp_down(0.4)))
        tails = max(tails, oracle.tail(*pair, F(2)))
    found = rules.profile(rule, people, family, 0.4)
    assert found >= truth * (1 - F(1, 10**15))
    cases_ = list_cases(rule, wi.Subsets(people), family, True)
    assert not cases_.is_small
    best = max(
        (np.maximum(pair.top[row] - np.exp(0.4) * pair.bottom[row], 0).sum(), pair.case(row).words)
        for pair in cases_.pairs()
        for row in range(len(pair.top))
    )
    assert found == pytest.approx(best[0], rel=1e-9, abs=2e-15)
    result = rules.failure(rule, people, family, 2)
    assert tails <= result.upper + 1e-15 and result.lower >= float(tails) * (1 - 1e-9) - 2e-15


def test_blocks_of_binomials_are_binomials():
    first, rows = block_of_binomials(30, 0.05, 400, 0.5, 48)
    for number, row in enumerate(rows):
        start, weights = two_binomials(30 + number, 0.05, 400 - number, 0.5)
        cut = row[start - first : start - first + len(weights)] if start >= first else row
        plain = weights if start >= first else weights[first - start : first - start + len(row)]
        size = min(len(cut), len(plain))
        assert cut[:size] == pytest.approx(plain[:size], rel=1e-11, abs=1e-17)


SIMULATED = [rules.Suppress(9), rules.Round(5), rules.RandomRound(4), *MORE.values()]


@pytest.mark.parametrize(
    "rule", some([*SIMULATED, of_ones_own(60)], 3), ids=lambda rule: repr(rule)[:60]
)
def test_simulated_attacks_stay_inside_the_bracket(rule):
    """Draws of what a rule shows, with the person in: the share of draws whose ratio exceeds the
    promise is within the bracket, up to what chance does less than once in a billion runs."""
    people, known, ratio, size = 60, 5, 1.5, 20_000
    rng = np.random.default_rng(11)
    family = families.AtMostKnown(known, "0.1", "0.5")
    result = rules.failure(rule, people, family, "1.5")
    table = rule.channel(wi.Subsets(people)).likelihoods
    for beliefs in ([0.1] * 54, [0.5] * 54, [0.3] * 54, [0.1] * 27 + [0.5] * 27):
        weights = np.ones(1)
        for p in beliefs:
            weights = np.convolve(weights, [1 - p, p])
        weights = np.concatenate([weights, np.zeros(people - len(weights))])
        top, bottom = weights @ table[1:], weights @ table[:-1]
        above = top > ratio * bottom
        counts = 1 + (rng.random((size, len(beliefs))) < np.array(beliefs)).sum(axis=1)
        hits = above[drawn(table, counts, rng)].mean()
        assert hits <= float(result.upper) + 6.2 * math.sqrt(0.25 / size)
    witness = result.witness
    beliefs = [float(p) for p in witness.distribution.beliefs(wi.Subsets(people))[1:]]
    counts = 1 + (rng.random((size, people - 1)) < np.array(beliefs)).sum(axis=1)
    names = rule.channel(wi.Subsets(people)).outputs
    seen = np.isin(drawn(table, counts, rng), [names.index(o) for o in witness.outputs])
    assert abs(seen.mean() - float(result.lower)) <= 6.2 * math.sqrt(0.25 / size)


def drawn(table, counts, rng):
    """For each count the number of an output, drawn by its row."""
    edges = np.cumsum(table, axis=1)[counts]
    return np.minimum((edges < rng.random(len(counts))[:, None]).sum(axis=1), table.shape[1] - 1)


def test_shifted_rows_are_compared_by_exact_weights():
    """Rows that a shift turns into each other are tried once; ones that floats cannot tell apart,
    but that differ, are not taken for the same."""
    tiny, half = F(1, 10**30), F(1, 2)
    keys = rules.CellKey({0: {0: 1}, 1: {0: half, 1: half}}).on_counts(9)
    assert keys.looks(1, 3) == keys.looks(4, 3) != keys.looks(0, 3)
    rows = [[F(0)] * c + [half, half] + [F(0)] * (9 - c) for c in range(10)]
    same = rules.FromTable(rows).on_counts(9)
    assert same.looks(0, 4) == same.looks(5, 4)
    rows[7][7:9] = half - tiny, half + tiny
    assert [float(p) for p in rows[7][7:9]] == [0.5, 0.5]
    other = rules.FromTable(rows).on_counts(9)
    assert other.looks(0, 4) == other.looks(1, 4) != other.looks(5, 4)


def test_noise_and_rules_after_it_are_measured_alike():
    """Geometric noise loses nothing where its far outputs are taken together; a rule after it leaks
    no more."""
    noise = mechanisms.Geometric("count", alpha=F(1, 2))
    family = families.AtMostKnown(2, F(1, 10), F(1, 2))
    alone = rules.profile(noise, 20, family, 0.2)
    rounded = rules.profile(mechanisms.PostProcessed(noise, rules.Round(5)), 20, family, 0.2)
    assert 0 < rounded <= alone < rules.profile(rules.Exact(), 20, family, 0.2)
    assert rules.profile(noise, 20, families.Independent(), math.log(2)) == pytest.approx(
        0, abs=1e-15
    )


def test_ties_are_decided_exactly_for_hundreds_of_people():
    """A count of 200 of 300 has the ratio 2 for someone uninformed: it does not exceed 2."""
    result = rules.failure(rules.Exact(), 300, families.Uninformed(), 2)
    assert result.exact and result.lower == result.upper
    assert 200 not in result.witness.outputs and 201 in result.witness.outputs
    assert 200 in rules.failure(rules.Exact(), 300, families.Uninformed(), "1.99").witness.outputs


@pytest.mark.parametrize(
    ("people", "ratio"), [(3000, "1.4"), pytest.param(10_000, "1.2", marks=pytest.mark.soak)]
)
def test_a_rule_on_thousands_of_people(people, ratio):
    start = time.process_time()
    family = families.AtMostKnown(100, "0.05", "0.5")
    result = rules.failure(rules.Suppress(7), people, family, ratio)
    assert 0 < result.lower < result.upper < 1e-2
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda f: rules.profile(rules.Exact(), 0, f, 1), "people"),
        (lambda f: rules.profile(ANYTHING, 9, f, 1), "rule"),
        (lambda f: rules.profile(rules.Exact(), 9, ANYTHING, 1), "family"),
        (lambda f: rules.profile(rules.Exact(), 9, f, 1000), "epsilon"),
        (lambda f: rules.profile(rules.Exact(), 9, f, "much"), "epsilon"),
        (lambda f: rules.failure(rules.Exact(), 9, f, 1), "ratio"),
        (lambda f: rules.failure(rules.FromTable([[1], [1]]), 9, f, 2), "rows of matrix"),
        (
            lambda f: notions.PositiveMembership(f).measure(rules.Exact(), wi.Subsets(9), delta=1),
            "delta",
        ),
        (
            lambda f: notions.PositiveMembership(f).measure(
                rules.Exact(), wi.Subsets(9), delta="1e-13"
            ),
            "delta",
        ),
    ],
)
def test_calls_that_make_no_sense_are_refused(call, field):
    with refused(field):
        call(families.AtMostKnown(3, "0.1", "0.5"))


def test_what_has_no_failure_probability_says_so():
    for family in (families.AnyPrior(), families.Cliques(2), families.OneOf(3)):
        with refused("family", kind=Unsupported):
            rules.profile(rules.Exact(), 9, family, 1)
    with refused("mechanism", kind=Unsupported):
        rules.profile(mechanisms.Laplace("count", 1), 9, families.Uninformed(), 1)
    with refused("space", kind=Unsupported):
        notions.PositiveMembership(families.Uninformed()).measure(
            mechanisms.Geometric("count", alpha=F(1, 2)), wi.Records(2, 2), delta=F(1, 10)
        )
