"""Leakages, capacity, metric privacy and groups, against brute force in fractions."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import leakage_oracle as oracle
import whosin as wi
from amounts import cases
from refusals import refused
from whosin import families, notions
from whosin.notions.gains import GainMatrix, SinglingOut, Tries

WRONG: Any = 0.3
HALF = Fraction(1, 2)
SHAPES = [(1, 3), (2, 2), (3, 2), (2, 3)]


def draw(seed: int) -> tuple[random.Random, wi.Records, oracle.Table, list[Fraction]]:
    rng = random.Random(seed)
    space = wi.Records(*SHAPES[seed % len(SHAPES)])
    table = oracle.random_table(rng, space.worlds, rng.randint(1, 4), rng.choice([0, 0.3, 0.7]))
    return rng, space, table, oracle.random_row(rng, space.worlds, rng.choice([0, 0.5]))


def level(notion: wi.notions.Notion, space: wi.Records, table: oracle.Table) -> wi.Level:
    return notion.measure(wi.Channel(space, table))


@cases(16, 2000)
def test_leakage_is_that_of_the_definition(count):
    for seed in range(count):
        rng, space, table, prior = draw(seed)
        gains = [
            [Fraction(rng.choice([0, 0, 1, 2, 7]), 3) for _ in range(space.worlds)]
            for _ in range(rng.randint(1, 4))
        ]
        tries = rng.randint(1, space.worlds)
        weight = Fraction(rng.randint(1, space.values), space.values)
        masses = [Fraction(1, space.values)] * space.values
        listed = [
            (gains, gains),
            (Tries(tries), oracle.tries(space.worlds, tries)),
            (SinglingOut(weight), oracle.singling_out(space.rows, masses, weight)),
        ]
        for gain, matrix in listed:
            before, after = oracle.vulnerabilities(table, prior, matrix)
            factor = after / before if before else Fraction(1)
            belief = wi.priors.Table(prior)
            result = level(wi.notions.Leakage(gain, belief), space, table)
            assert result.value == factor and result.exact and result.holds(factor)
            assert (result.witness.prior, result.witness.posterior) == (before, after)
            added = level(wi.notions.Leakage(gain, belief, "additive"), space, table)
            assert added.value == after - before and added.refutation(-1) is not None


def test_the_strategy_of_the_witness_attains_the_leakage():
    for seed in range(30):
        rng, space, table, prior = draw(seed)
        gains = [[rng.randint(0, 5) for _ in range(space.worlds)] for _ in range(3)]
        case = level(wi.notions.Leakage(gains, wi.priors.Table(prior)), space, table).witness
        after = sum(
            prior[x] * table[x][y] * gains[guess][x]
            for y, guess in case.strategy.items()
            for x in range(space.worlds)
        )
        assert after == case.posterior
        assert sum(p * g for p, g in zip(prior, gains[case.guess], strict=True)) == case.prior
        assert case.distribution.on_records(space, Fraction).tolist() == prior


@cases(16, 2000)
def test_maximal_and_pointwise_leakage_are_those_of_the_definitions(count):
    for seed in range(count):
        _, space, table, prior = draw(seed)
        result = level(wi.notions.MaximalLeakage(), space, table)
        assert result.witness.ratio == oracle.maximal(table)
        known = math.log1p(float(oracle.maximal(table) - 1))  # ln of a float near 1 is rougher
        assert result.value == pytest.approx(known, rel=1e-14)
        assert result.value >= known * (1 - 1e-15)
        uniform = wi.notions.Leakage("identity", wi.priors.Uniform())
        assert level(uniform, space, table).value == oracle.maximal(table)
        point = level(wi.notions.PointwiseLeakage(wi.priors.Table(prior)), space, table)
        assert point.witness.ratio == oracle.pointwise(table, prior)
        assert point.witness.posterior == point.witness.prior * point.witness.ratio


def test_no_gain_and_no_prior_exceeds_maximal_leakage():
    for seed in range(20):
        rng, space, table, prior = draw(seed)
        most = level(wi.notions.MaximalLeakage(), space, table).witness.ratio
        gains = [[rng.randint(0, 3) for _ in range(space.worlds)] for _ in range(4)]
        assert level(wi.notions.Leakage(gains, wi.priors.Table(prior)), space, table).value <= most
        bound = level(wi.notions.Leakage(gains, wi.families.AnyPrior()), space, table)
        assert bound.lower is None or bound.lower <= bound.value
        assert bound.value == most or bound.exact
        difference = level(
            wi.notions.Leakage(gains, wi.families.AnyPrior(), "additive"), space, table
        )
        own = level(wi.notions.Leakage(gains, wi.priors.Table(prior), "additive"), space, table)
        assert own.value <= difference.value
    known = level(wi.notions.Leakage("identity", wi.families.AnyPrior()), space, table)
    assert known.exact and known.value == most


@cases(16, 1000)
def test_capacity_lies_between_certified_numbers(count):
    for seed in range(count):
        rng, space, table, _ = draw(seed)
        result = level(wi.notions.Capacity(), space, table)
        lower = result.value if result.lower is None else result.lower
        assert lower <= result.value <= lower + 1e-9
        mass = [float(m) for m in result.prior.on_records(space, float)]
        near = 1e-12 if result.lower is not None else 1e-11  # two numbers that agree are one
        assert oracle.information(table, mass) == pytest.approx(lower, abs=near)
        tried = oracle.random_row(rng, space.worlds, 0.3)
        assert oracle.information(table, [float(p) for p in tried]) <= result.value + 1e-13
        if seed < 8:
            assert oracle.capacity(table) <= result.value + 1e-12


@pytest.mark.parametrize(
    ("table", "value"),
    [
        ([[1, 0], [0, 1]], math.log(2)),
        ([["1/2", "1/2"], ["1/2", "1/2"]], 0.0),
        ([[1, 0], ["1/2", "1/2"]], math.log(5 / 4)),  # the Z channel
        (
            [["9/10", "1/10"], ["1/10", "9/10"]],
            math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1),
        ),
        ([[1, 0], ["999999999999/1000000000000", "1/1000000000000"]], 3.678794411714e-13),
    ],
)
def test_capacity_of_channels_that_are_known(table, value):
    result = wi.notions.Capacity().measure(wi.Channel(wi.Subsets(1), table))
    assert result.value == pytest.approx(value, rel=1e-9, abs=1e-12) and result.value >= value * (
        1 - 1e-6
    )


def test_capacity_of_many_worlds():
    table = np.random.default_rng(5).random((2**12, 6)) ** 8
    table /= table.sum(axis=1, keepdims=True)
    result = wi.notions.Capacity().measure(wi.Channel(wi.Subsets(12), table))
    assert result.exact or result.value - result.lower < 1e-9
    worlds = list(result.prior.support)
    few = wi.Channel(wi.Records(1, len(worlds)), table[worlds])
    assert wi.notions.Capacity().measure(few).value == pytest.approx(result.value, abs=1e-9)


def test_classes_of_worlds_have_the_levels_of_all_worlds():
    channel = wi.rules.RandomRound(3).channel(wi.Subsets(4))
    spread = channel.on_worlds()
    assert channel.likelihoods.shape != spread.likelihoods.shape
    for notion in (wi.notions.Capacity(), wi.notions.MaximalLeakage()):
        one, two = notion.measure(channel), notion.measure(spread)
        assert float(one.value) == pytest.approx(float(two.value), abs=1e-9)
    for gain in ("identity", "tries=2"):
        notion = wi.notions.Leakage(gain, wi.priors.Independent("1/3"))
        assert notion.measure(channel).value == notion.measure(spread).value


@cases(20, 1000)
def test_metric_privacy_is_that_of_the_definition(count):
    for seed in range(count):
        rng, space, table, _ = draw(seed)
        worlds = list(product(range(space.values), repeat=space.rows))
        far = {
            "hamming": lambda x, y: sum(a != b for a, b in zip(x, y, strict=True)),
            "difference": lambda x, y: sum(abs(a - b) for a, b in zip(x, y, strict=True)),
        }
        for name, distance in far.items():
            written = [[Fraction(distance(x, y)) for y in worlds] for x in worlds]
            truth = oracle.metric_level(table, written)
            for metric in (name, written):
                result = level(wi.notions.MetricPrivacy(metric), space, table)
                assert result.value == pytest.approx(truth, rel=1e-13)
        own = [[0] * space.worlds for _ in worlds]
        for i, j in product(range(space.worlds), repeat=2):
            if i < j:
                own[i][j] = own[j][i] = rng.choice([0, Fraction(1, 3), 1, 5, math.inf])
        result = level(wi.notions.MetricPrivacy(own), space, table)
        assert result.value == pytest.approx(oracle.metric_level(table, own), rel=1e-13)


@cases(20, 1000)
def test_groups_are_those_of_the_definition(count):
    for seed in range(count):
        _, space, table, _ = draw(seed)
        one = level(wi.notions.DifferentialPrivacy("replace"), space, table).value
        for group in range(1, space.rows + 2):
            notion = wi.notions.DifferentialPrivacy("replace", group=group)
            result = level(notion, space, table)
            truth = oracle.group_ratio(table, space.rows, space.values, group)
            assert result.witness.ratio == truth
            assert result.value == pytest.approx(math.log(truth) if truth < math.inf else truth)
            assert result.value <= group * one * (1 + 1e-12)
            if group > 1:
                assert len(result.witness.group) <= group
                assert not result.witness.group.keys() & result.witness.known.keys()


def test_floats_that_tie_are_told_apart_exactly():
    """The second world is likelier by less than a float can tell."""
    third, bit = Fraction(1, 3), Fraction(1, 10**30)
    table = [[third, 1 - third], [third + bit, 1 - third - bit]]
    result = wi.notions.MaximalLeakage().measure(wi.Channel(wi.Subsets(1), table))
    assert result.witness.ratio == 1 + bit and result.value >= 1e-30
    prior = wi.priors.Table([Fraction(1, 2), Fraction(1, 2)])
    leak = wi.notions.Leakage([[1, 0], [0, 1]], prior).measure(wi.Channel(wi.Subsets(1), table))
    assert leak.value == 1 + bit
    far = wi.notions.MetricPrivacy([[0, 1], [1, 0]]).measure(wi.Channel(wi.Subsets(1), table))
    assert far.value == pytest.approx(3e-30, rel=1e-9)


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: wi.notions.Leakage([[1, 2], [3]], wi.priors.Uniform()), "gain"),
        (lambda: wi.notions.Leakage([], wi.priors.Uniform()), "gain"),
        (lambda: wi.notions.Leakage([[1, -1]], wi.priors.Uniform()), "gain"),
        (lambda: wi.notions.Leakage(5, wi.priors.Uniform()), "gain"),
        (lambda: wi.notions.Leakage("best", wi.priors.Uniform()), "gain"),
        (lambda: wi.notions.Leakage("identity", WRONG), "prior"),
        (lambda: wi.notions.Leakage("identity", wi.priors.Uniform(), "other"), "form"),
        (lambda: GainMatrix([[1, 2]], ["a", "b"]), "guesses"),
        (lambda: Tries(0), "tries"),
        (lambda: SinglingOut(0), "singling-out"),
        (lambda: wi.notions.MetricPrivacy([[0, 1]]), "metric"),
        (lambda: wi.notions.MetricPrivacy([[0, 1], [2, 0]]), "metric"),
        (lambda: wi.notions.MetricPrivacy([[1]]), "metric"),
        (lambda: wi.notions.DifferentialPrivacy(group=2), "group"),
        (lambda: wi.notions.DifferentialPrivacy("replace", group=0), "group"),
    ],
)
def test_what_makes_no_sense_is_refused(make, field):
    with refused(field):
        make()


def test_what_does_not_fit_the_worlds_is_refused():
    channel = wi.Channel(wi.Records(1, 2), [[1, 0], [0, 1]])
    uniform = wi.priors.Uniform()
    for notion, field in [
        (wi.notions.Leakage([[1, 0, 0]], uniform), "gain"),
        (wi.notions.Leakage("tries=3", uniform), "tries"),
        (wi.notions.Leakage("singling-out=1/3", uniform), "singling-out"),
        (wi.notions.MetricPrivacy([[0]]), "metric"),
    ]:
        with refused(field):
            notion.measure(channel)
    with refused("mechanism", kind=wi.errors.Unsupported):
        wi.notions.MaximalLeakage().measure(
            wi.mechanisms.Laplace(wi.statistics.Count(), 1), wi.Subsets(2)
        )
    with refused("space", kind=wi.errors.Unsupported):
        wi.notions.DifferentialPrivacy("replace", group=2).measure(
            wi.Channel(wi.Subsets(1), [[1], [1]])
        )


def test_verify_takes_the_words_of_leakages(run, tmp_path):
    channel, prior, gain = (tmp_path / name for name in ("c.json", "p.json", "g.json"))
    wi.Channel(wi.Records(1, 2), [["3/4", "1/4"], ["1/4", "3/4"]]).save(channel)
    prior.write_text('{"kind": "uniform"}')
    gain.write_text('{"matrix": [[1, 0], [0, 1]], "guesses": ["no", "yes"]}')
    code, out, _ = run(
        f"verify {channel} --notion leakage --prior-file {prior} --gain {gain} --json"
    )
    data = json.loads(out)
    assert code == 0 and data["value_exact"] == "3/2" and data["form"] == "multiplicative"
    assert data["witness"]["strategy"] == [
        {"output": 0, "guess": "no"},
        {"output": 1, "guess": "yes"},
    ]
    code, out, _ = run(f"verify {channel} --notion leakage --prior-file {prior} --at-most 1.4")
    assert code == 1 and "refuted" in out and "guess" in out
    code, out, _ = run(f"verify {channel} --notion capacity --at-most 0.2")
    assert code == 0 and "holds" in out
    gain.write_text('{"matrix": [[1, 0, 0]]}')
    code, _, err = run(f"verify {channel} --notion leakage --prior-file {prior} --gain {gain}")
    assert code == 2 and err.count("\n") == 1 and "--gain" in err


FEW_PRIORS = {
    "uninformed": (families.Uninformed(), lambda beliefs: set(beliefs) == {HALF}),
    "fixed probability": (families.FixedProbability("1/3"), lambda beliefs: 1 not in beliefs),
    "one belief": (families.Independent("1/3", "1/3"), lambda beliefs: True),
    "one is uncertain": (
        families.OneOfTwo("2/5", "2/5"),
        lambda beliefs: sum(0 < p < 1 for p in beliefs) == 1,
    ),
    "one may be known": (
        families.AtMostKnown(1, "1/3", "1/3"),
        lambda beliefs: sum(p in (0, 1) for p in beliefs) <= 1,
    ),
    "one of two": (families.OneOf(2), None),
    "swaps": (families.SwapOfTwo("1/2", "1/2"), None),
}


@pytest.mark.parametrize("name", FEW_PRIORS)
@pytest.mark.parametrize("form", ["multiplicative", "additive"])
def test_families_of_few_priors_are_exact(name, form):
    """Against all priors, written down from the definition, and the best guess by hand."""
    family, allowed = FEW_PRIORS[name]
    rng, people = random.Random(5), 3
    space = wi.Subsets(people)
    rows = [[Fraction(rng.randint(0, 5)) for _ in range(3)] for _ in range(space.worlds)]
    rows = [[(entry + 1) / (sum(row) + 3) for entry in row] for row in rows]
    tables = []
    if allowed is None:  # two worlds that differ in who one person is
        for one, two in product(range(space.worlds), repeat=2):
            if one.bit_count() == two.bit_count() and (one ^ two).bit_count() == 2:
                tables.append([HALF * (world in (one, two)) for world in range(space.worlds)])
    else:
        for beliefs in product((Fraction(0), Fraction(1), family.beliefs[0]), repeat=people):
            if allowed(beliefs):
                tables.append(
                    [
                        math.prod(p if world >> t & 1 else 1 - p for t, p in enumerate(beliefs))
                        for world in range(space.worlds)
                    ]
                )
    worst = Fraction(0)
    for mass in tables:
        before = max(mass)
        after = sum(max(m * row[o] for m, row in zip(mass, rows, strict=True)) for o in range(3))
        worst = max(worst, after / before if form == "multiplicative" else after - before)
    level = notions.Leakage("identity", family, form).measure(wi.Channel(space, rows))
    assert level.exact and level.value == worst and level.lower is None
    assert level.holds(worst) is True and level.holds(worst - Fraction(1, 10**9)) is False
