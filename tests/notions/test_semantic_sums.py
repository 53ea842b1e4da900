"""Bayesian semantic privacy of noise on sums, by parts and messages, against brute force over all
sets of known rows."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

import record_oracle as records
import whosin as wi
from amounts import cases
from network_cases import HALF, noisy_rows, random_nodes, random_query, tree
from refusals import refused
from spreads_oracle import dense, level, spread
from whosin import statistics
from whosin.errors import InvalidInput
from whosin.mechanisms import Geometric, Laplace
from whosin.notions import (
    BayesianDifferentialPrivacy,
    BayesianSemanticPrivacy,
    semantic_privacy,
    semantic_sums,
)
from whosin.priors import Blocks, Box, ChainBox, Independent, MarkovChain, Network, Uniform


@pytest.fixture(autouse=True)
def by_parts(monkeypatch):
    """Few rows too are measured by parts, and not in one table over all rows."""
    monkeypatch.setattr(semantic_privacy, "MAX_CERTIFIED_CONDITIONS", 0)


def several_parts(rng: random.Random) -> tuple[int, int, list]:
    """Rows in parts that do not depend on each other, some of them alike."""
    m = rng.choice([2, 2, 3])
    n, nodes = rng.randint(1, 4 if m == 2 else 3), []
    while len(nodes) < n:
        size = rng.randint(1, n - len(nodes))
        part = random_nodes(rng, size, m, rng.choice([1, 2]), rng.choice([0, 0.3, 0.6]))
        for _ in range(rng.choice([1, 2]) if len(nodes) + 2 * size <= n else 1):
            first = len(nodes)
            nodes += [(tuple(p + first for p in parents), given) for parents, given in part]
    return n, m, nodes


def refuses(prior: dict, n: int, default: int) -> bool:
    """Whether nothing can be compared with the default, and something would have to be."""
    both = missing = False
    for row in range(n):
        seen = {x[row] for x, p in prior.items() if p}
        both |= default in seen and len(seen) > 1
        others: dict = {}
        for x, p in prior.items():
            if p:
                others.setdefault(x[:row] + x[row + 1 :], set()).add(x[row])
        missing |= any(default not in values for values in others.values())
    return missing and not both


@cases(25, 1200)
def test_whole_outputs_in_rationals(count):
    """Geometric noise: the level is that of all sets of known rows and outputs, in rationals."""
    rng = random.Random(61)
    for _ in range(count):
        n, m, nodes = several_parts(rng)
        prior, default = records.network(nodes, m), rng.randrange(m)
        weights = [rng.choice([-2, 0, 1, 1, 2, 3, 7]) for _ in range(m)]
        alpha = rng.choice([HALF, Fraction(9, 10), Fraction(1, 50)])
        centres = {x: sum(weights[v] for v in x) for x in prior}
        outputs = range(min(centres.values()), max(centres.values()) + 1)
        worst = Fraction(1)
        for row in range(n):
            found = spread_exactly(prior, centres, n, default, alpha, outputs, row)
            worst = max([worst, *(each for _row, _known, each in found)])
        notion = BayesianSemanticPrivacy(Network(nodes), default)
        mechanism = Geometric(statistics.Sum(weights), alpha=alpha)
        if refuses(prior, n, default):
            with refused("default", kind=InvalidInput):
                notion.measure(mechanism, wi.Records(n, m))
            continue
        measured = notion.measure(mechanism, wi.Records(n, m))
        assert measured.exact
        assert measured.value == pytest.approx(level(worst), abs=1e-11)
        case = measured.witness
        if worst > 1:
            shown = {
                (row, known): found
                for row, known, found in spread_exactly(
                    prior, centres, n, default, alpha, [case.output], case.row
                )
            }
            assert shown[case.row, case.rows_known] == pytest.approx(float(worst), rel=1e-9)


def spread_exactly(prior, centres, n, default, alpha, outputs, row):
    """max r / min r by the definition for each set of known rows, at the worst of some outputs: all
    sums in whole numbers, and one division a ratio."""
    m = round(len(prior) ** (1 / n))
    masses = whole_numbers([prior[x] for x in records.worlds(n, m)])
    rates = whole_numbers([alpha**k for k in range(1 + max(map(abs, outputs)) + spanned(centres))])
    noise = np.array([[rates[abs(y - centres[x])] for y in outputs] for x in centres], object)
    mass = np.array(masses, object).reshape(*[m] * n, 1)
    joint = mass * noise.reshape(*[m] * n, len(outputs))
    for known in records.subsets([other for other in range(n) if other != row]):
        unknown = tuple(other for other in range(n) if other not in (*known, row))
        place = sum(other < row for other in known)
        seen, chance = (np.moveaxis(t.sum(axis=unknown), place, 0) for t in (joint, mass))
        both = (chance * chance[default] > 0)[..., 0]
        tops = (seen * chance[default])[both]
        bottoms = np.broadcast_to(seen[default] * chance, seen.shape)[both]
        ratios = (tops / bottoms).astype(float)
        yield row, known, max(1.0, (ratios.max(0) / ratios.min(0)).max() if len(ratios) else 1.0)


def spanned(centres: dict) -> int:
    return max(map(abs, centres.values()))


def whole_numbers(fractions: list) -> list[int]:
    """Fractions, all times the same number."""
    common = math.lcm(*(each.denominator for each in fractions))
    return [int(each * common) for each in fractions]


@cases(12, 1000)
def test_laplace_noise_against_a_dense_search(count):
    """Laplace noise: between the centres too."""
    rng, beyond = random.Random(62), 0
    for number in range(count):
        n, m, nodes = several_parts(rng)
        default, scale = rng.randrange(m), rng.choice([1, 2, 5])
        weights = [0, *rng.choices([0, 1, 2, 5, 10, 20], k=m - 1)]
        if number % 2:  # one part whose rows depend on each other in any way
            n, m, default, weights = 3, 2, 0, [0, rng.choice([1, 2, 5])]
            joint = [10 ** rng.uniform(0, 4) for _ in range(8)]
            nodes = whole_table(joint)
        prior = records.network(nodes, m)
        if refuses(prior, n, default):
            continue
        measured = BayesianSemanticPrivacy(Network(nodes), default).measure(
            Laplace(statistics.Sum(weights), scale), wi.Records(n, m)
        )
        centres = {x: sum(weights[v] for v in x) for x in prior}
        truth = level(max(1.0, dense(prior, centres, n, default, float(scale))))
        assert measured.exact
        assert truth - 1e-10 <= measured.value <= truth + 2e-7
        beyond += measured.witness.output not in centres.values()
        if truth > 1e-6:
            shown = [
                float(k)
                for row, known, k in spread(
                    prior,
                    centres,
                    n,
                    default,
                    lambda c, y=measured.witness.output, s=scale: math.exp(-abs(y - c) / s),
                    [measured.witness.row],
                )
                if known == measured.witness.rows_known
            ]
            assert level(*shown) == pytest.approx(truth, abs=3e-7)
    assert beyond or count < 100


def whole_table(joint: list) -> list:
    """Three rows of two values with any joint distribution, as a network."""
    worlds = dict(zip(records.worlds(3, 2), joint, strict=True))

    def given(known: tuple) -> list:
        parts = [
            sum(p for x, p in worlds.items() if x[: len(known) + 1] == (*known, v))
            for v in range(2)
        ]
        first = Fraction(parts[0] / sum(parts)).limit_denominator(10**9)
        return [first, 1 - first]

    return [
        (tuple(range(row)), {key: given(key) for key in itertools.product(range(2), repeat=row)})
        for row in range(3)
    ]


@cases(15, 1000)
def test_joint_releases_and_brackets_hold_the_level(count, monkeypatch):
    """Several releases, histograms, and rows without room for a table: the level at the centres is
    not above the bracket, and the lower end is not above a dense search."""
    rng, brackets, closed = random.Random(63), 0, 0
    for _ in range(count):
        n, m, nodes = several_parts(rng)
        mechanism, added, bases = random_query(rng, n, m)
        prior, default = records.network(nodes, m), rng.randrange(m)
        room = rng.choice([1, 30, 10**6])
        monkeypatch.setattr(semantic_sums, "MAX_PART_ENTRIES", room)
        if refuses(prior, n, default):
            continue
        measured = BayesianSemanticPrivacy(Network(nodes), default).measure(
            mechanism, wi.Records(n, m)
        )
        _outputs, channel = noisy_rows(n, m, added, bases)
        listed = records.semantic_cases(prior, channel, n, default)
        truth = max((records.best_two_point(one, two) for *_, one, two in listed), default=0.0)
        assert truth <= measured.value + 1e-9
        if len(bases) == 1 and room == 10**6:
            assert measured.exact
        if measured.exact:
            closed += 1
            continue
        brackets += 1
        leaks = BayesianDifferentialPrivacy(Network(nodes)).measure(mechanism, wi.Records(n, m))
        assert measured.value <= math.tanh(float(leaks.value) / 2) + 1e-9
        sums = {
            x: tuple(sum(added[r][x[r]][c] for r in range(n)) for c in range(len(bases)))
            for x in prior
        }
        assert measured.lower <= largest(prior, sums, n, default, bases) + 1e-9
    assert closed and brackets


@cases(10, 1000)
def test_windows_of_chains_hold_the_level(count, monkeypatch):
    """A chain by windows around a row: the level is in the bracket, or is it."""
    rng, closed = random.Random(64), 0
    monkeypatch.setattr(semantic_sums, "MAX_PART_ENTRIES", 500)
    for _ in range(count):
        m, n = rng.choice([(2, 6), (2, 5), (3, 4)])
        zeros = rng.choice([0, 0, 0.3])
        start = records.random_distribution(rng, m, zeros)
        several = rng.random() < 0.3
        steps = [
            [records.random_distribution(rng, m, zeros) for _ in range(m)]
            for _ in range(n - 1 if several else 1)
        ]
        chain = MarkovChain(start, steps if several else steps[0])
        prior = records.markov(start, steps if several else steps * (n - 1))
        weights, default = [0, *rng.choices([0, 1, 2, 3], k=m - 1)], rng.randrange(m)
        alpha = rng.choice([HALF, Fraction(4, 5)])
        if refuses(prior, n, default):
            continue
        centres = {x: sum(weights[v] for v in x) for x in prior}
        outputs = range(max(centres.values()) + 1)
        worst = Fraction(1)
        for row in range(n):
            found = spread_exactly(prior, centres, n, default, alpha, outputs, row)
            worst = max([worst, *(each for _row, _known, each in found)])
        measured = BayesianSemanticPrivacy(chain, default).measure(
            Geometric(statistics.Sum(weights), alpha=alpha), wi.Records(n, m)
        )
        truth = level(float(worst))
        lower = measured.value if measured.lower is None else measured.lower
        assert lower - 1e-9 <= truth <= measured.value + 1e-9
        closed += measured.exact
    assert closed


def largest(prior: dict, sums: dict, n: int, default: int, bases: list) -> float:
    """A bound from above: max r and min r each at an output of its own."""
    outputs = list(
        itertools.product(*(sorted(set(axis)) for axis in zip(*sums.values(), strict=True)))
    )
    channel = {
        x: [
            math.prod(b ** float(abs(o - c)) for b, o, c in zip(bases, y, centre, strict=True))
            for y in outputs
        ]
        for x, centre in sums.items()
    }
    worst: dict = {}
    for row, known, _y, one, two in records.semantic_cases(prior, channel, n, default):
        ratios = [one[x] / two[x] for x in one if two[x]]
        if ratios:
            low, high = worst.get((row, known), (1.0, 1.0))
            worst[row, known] = min(low, *ratios), max(high, *ratios)
    return level(max((high / low for low, high in worst.values()), default=1.0))


def test_independent_rows_need_only_what_is_possible():
    """A thousand rows: one moves the count by 1 either way; as over every prior between bounds."""
    count, space = Laplace("count", 2), wi.Records(1000, 2)
    likely = Independent([("0.3", "0.7")] * 1000)
    for prior in (likely, Uniform(), Box(["0.1", "0.2"], ["0.8", "0.9"]), [likely, Uniform()]):
        measured = BayesianSemanticPrivacy(prior).measure(count, space)
        assert measured.exact and measured.value == pytest.approx(math.tanh(1 / 4), abs=1e-12)
        assert 0 < measured.witness.output < 1000
        leaks = BayesianDifferentialPrivacy(prior).measure(count, space)
        assert leaks.exact and leaks.value == pytest.approx(1 / 2, abs=1e-12)


def test_households_and_series_of_hundreds():
    """Households of three are exact, as are forty days of a chain; four months are alike;
    a tree is a bracket, and a histogram of them too."""
    homes = Blocks.common_cause(
        [(3 * h, 3 * h + 1, 3 * h + 2) for h in range(100)], [("0.1", "0.8"), ("0.9", "0.05")]
    )
    home = Blocks.common_cause([(0, 1, 2)], [("0.1", "0.8"), ("0.9", "0.05")])
    count = Laplace("count", 2)
    many = BayesianSemanticPrivacy(homes).measure(count, wi.Records(300, 2))
    one = BayesianSemanticPrivacy(home).measure(count, wi.Records(3, 2))
    leaks = float(BayesianDifferentialPrivacy(homes).measure(count, wi.Records(300, 2)).value)
    assert many.exact and one.value < many.value <= math.tanh(leaks / 2)
    chain = MarkovChain([HALF, HALF], [["0.8", "0.2"], ["0.3", "0.7"]])
    levels = [
        BayesianSemanticPrivacy(chain).measure(Laplace("sum", 2), wi.Records(n, 2))
        for n in (40, 120)
    ]
    assert all(each.exact for each in levels)
    assert levels[0].value == pytest.approx(levels[1].value, abs=1e-9)
    for mechanism in (Laplace("sum", 5), Laplace("histogram", 5)):
        leaks = BayesianDifferentialPrivacy(tree(15, "0.55")).measure(mechanism, wi.Records(15, 2))
        found = BayesianSemanticPrivacy(tree(15, "0.55")).measure(mechanism, wi.Records(15, 2))
        assert (
            0
            < (found.lower or found.value)
            <= found.value
            <= math.tanh(float(leaks.value) / 2) + 1e-9
        )


def test_chains_between_bounds_have_a_bracket():
    rows = [Box(["0.6", "0.38"], ["0.62", "0.4"]), ("0.4", "0.6")]
    box = ChainBox([HALF, HALF], rows)
    space, noisy = wi.Records(8, 2), Laplace("sum", 3)
    found = BayesianSemanticPrivacy(box).measure(noisy, space)
    leaks = BayesianDifferentialPrivacy(box).measure(noisy, space)
    assert not found.exact and 0 < found.lower < found.value
    assert found.value == pytest.approx(math.tanh(float(leaks.value) / 2))


def default_zero(
    rows: int, *, start=(0, HALF, HALF), first=(HALF, HALF, 0)
) -> BayesianSemanticPrivacy:
    """A chain of three values."""
    third = Fraction(1, 3)
    return BayesianSemanticPrivacy(
        MarkovChain(start, [first, [0, HALF, HALF], [0, third, 2 * third]])
    )


@pytest.mark.parametrize("rows", [5, 45])
def test_a_default_that_nothing_leads_to_is_refused(rows):
    """As many rows as there may be: what is possible is worked out, not supposed."""
    with refused("default", kind=InvalidInput):
        default_zero(rows).measure(Laplace("sum", 4), wi.Records(rows, 3))


@pytest.mark.parametrize("rows", [5, 45])
def test_values_that_nothing_leads_to_rule_out_no_default(rows):
    """Value 2 would rule out value 0 in the row after it, and is never reached."""
    steps = [[HALF, HALF, 0], ["0.3", "0.7", 0], [0, HALF, HALF]]
    found = BayesianSemanticPrivacy(MarkovChain([HALF, HALF, 0], steps)).measure(
        Laplace("sum", 4), wi.Records(rows, 3)
    )
    assert "default" not in found.note and found.theorems == ("T15",)


def test_one_row_without_its_default_passes_among_many():
    """Row 0 is 1 for sure: there is nothing to compare in it, and the others have their levels."""
    given = {(0,): [HALF, HALF], (1,): ["0.25", "0.75"]}
    levels = []
    for rows in (12, 45):
        nodes = [((), {(): [0, 1]}), *(((row - 1,), given) for row in range(1, rows))]
        found = BayesianSemanticPrivacy(Network(nodes)).measure(
            Laplace("sum", 4), wi.Records(rows, 2)
        )
        assert "in row 0 " in found.note and found.theorems == ()
        levels.append((found.value if found.lower is None else found.lower, found.value))
    assert levels[1][0] <= levels[0][0] <= levels[1][1]


@pytest.mark.parametrize("scale", [10, 10**6, 10**9, 10**15])
def test_levels_too_small_for_floats_say_so(scale):
    """One of many independent rows moves a count by 1: ε is 1/scale, no claim below it holds."""
    prior, space = Independent([("0.3", "0.7")] * 30), wi.Records(30, 2)
    chain = MarkovChain(["0.3", "0.7"], [["0.3", "0.7"]] * 2)
    for each in (prior, chain):
        for notion, truth in (
            (BayesianDifferentialPrivacy(each), 1 / scale),
            (BayesianSemanticPrivacy(each), math.tanh(1 / (2 * scale))),
        ):
            found = notion.measure(Laplace("count", scale), space)
            assert found.holds(truth * (1 - 1e-9)) is not True
            assert found.holds(truth * (1 + 1e-9)) is not False
            assert found.exact == (scale == 10)
