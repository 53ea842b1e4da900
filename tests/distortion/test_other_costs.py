"""Answers beside the values, ordered values, costs of whole tables, and dependent rows under a set
of priors: against the definitions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import prior_set_oracle as sets
import record_oracle as records
import whosin as wi
from amounts import cases
from distortion_oracle import binary_row, rate_bounds, table_program
from refusals import refused
from whosin.distortion import best, curves
from whosin.errors import UnknownName, Unsupported
from whosin.exact import exp_down, exp_up
from whosin.notions import DifferentialPrivacy, Identifiability, MutualInformation
from whosin.priors import Box, Hull, Independent, MarkovChain, Uniform, WorldTable

PRICES = [0, 0, 1, 1, 2, 0.3, 7, 1000, 0.000001]


def random_cost(rng, values, outputs):
    return [
        [Fraction(0) if a == b else Fraction(str(rng.choice(PRICES))) for b in range(outputs)]
        for a in range(values)
    ]


def floats(cost):
    return [[float(price) for price in line] for line in cost]


@cases(60, 3000)
def test_one_row_of_two_values_is_solved_exactly(count):
    """Any cost, any number of answers, one prior or an interval of them: the closed form in
    rationals, at rationals on either side of e^ε."""
    rng, kinds = random.Random(41), set()
    for _ in range(count):
        outputs, rows = rng.randint(2, 4), rng.choice([1, 1, 5])
        cost = random_cost(rng, 2, outputs)
        ends = sorted(Fraction(rng.choice([0, 1, 2, 5, 9, 10, 10]), 10) for _ in range(2))
        if rng.random() < 0.4:
            ends = [ends[0]] * 2
        made = Box([1 - ends[1], ends[0]], [1 - ends[0], ends[1]])
        if ends[0] == ends[1] and rng.random() < 0.7:
            made = Independent([1 - ends[0], ends[0]])
        epsilon = rng.choice([0, 0.01, 0.5, 1, 3, 20])
        found = best(wi.Records(rows, 2), made, epsilon=epsilon, cost=floats(cost))
        most, least = (rows * binary_row(ends, cost, g(epsilon)) for g in (exp_down, exp_up))
        size = max(1, *(float(price) for line in cost for price in line))
        assert float(least) <= found.distortion * (1 + 1e-14)
        assert found.distortion <= float(most) + 3e-9 * size and found.gap <= 3e-9 * size
        kinds.add((type(made), outputs > 2, epsilon == 0))
    assert len(kinds) == 8


def random_problem(rng):
    """(rows, values, prior, the corners of its set, a cost of tables or of rows, its sums)."""
    n, m = rng.choice([(2, 2), (2, 2), (3, 2), (2, 3)])
    worlds, zeros = m**n, rng.choice([0, 0, 0.3])
    points = [records.random_distribution(rng, worlds, zeros) for _ in range(rng.choice([1, 2, 3]))]
    corners = points
    if len(points) == 1:
        made = WorldTable(points[0])
    elif rng.random() < 0.6 or worlds > 4:
        made = Hull([WorldTable(p) for p in points] if rng.random() < 0.5 else points)
    else:
        low = [p * Fraction(rng.choice([1, 2, 4]), 4) for p in points[0]]
        high = [p + (1 - p) * Fraction(rng.choice([0, 1, 2]), 4) for p in points[0]]
        made, corners = Box(low, high), sets.corners(low, high)
    if rng.random() < 0.5:
        cost = random_cost(rng, worlds, worlds + rng.choice([0, 0, 1]))
        return n, m, made, corners, cost, cost
    outputs = m + rng.choice([0, 1])
    cost = random_cost(rng, m, outputs)
    tables = [
        [
            sum(cost[a][b] for a, b in zip(x, y, strict=True))
            for y in product(range(outputs), repeat=n)
        ]
        for x in product(range(m), repeat=n)
    ]
    return n, m, made, corners, cost, tables


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@cases(6, 1000)
def test_programs_for_tables_meet_the_definition(notion, count):
    """What the program over tables finds; the mechanism keeps its level exactly; no corner of the
    set has more distortion than is said, and the least favourable prior is a member."""
    rng, kinds = random.Random(42), set()
    for _ in range(count):
        n, m, made, corners, cost, tables = random_problem(rng)
        space, identifiable = wi.Records(n, m), notion == "identifiability"
        epsilon = rng.choice([0, 0.2, 1, 3])
        if identifiable:
            alone = wi.Channel(space, [[1]] * space.worlds)
            spread = max(
                float(Identifiability(WorldTable(p)).measure(alone).value) for p in corners
            )
            if spread == math.inf:
                continue
            epsilon += spread + 0.01
        found = best(space, made, epsilon=epsilon, notion=notion, cost=floats(cost))
        truth = table_program(n, m, corners, (found.epsilon, identifiable), floats(tables))
        size = max(1.0, truth)
        assert found.distortion == pytest.approx(truth, abs=2e-6 * size)
        assert 0 <= found.gap < 1e-8 * max(1, *(price for line in cost for price in line))
        channel = found.mechanism.channel(space)
        asked = [DifferentialPrivacy("replace")]
        if identifiable:
            asked = [Identifiability(WorldTable(p)) for p in corners]
        assert all(each.measure(channel).holds(found.epsilon) for each in asked)
        spent = [
            sum(wi.exact.rational(a) * b for a, b in zip(line, price, strict=True))
            for line, price in zip(channel.rationals, tables, strict=True)
        ]
        worst = max(sum(p * s for p, s in zip(point, spent, strict=True)) for point in corners)
        assert worst <= Fraction(found.distortion) * (1 + Fraction(1, 10**15))
        assert float(worst) == pytest.approx(found.distortion, abs=1e-9 * size)
        if found.prior is not None:
            assert sum(found.prior_numbers) == pytest.approx(1)
            assert found.prior.on_records(space, float).min() >= 0
        kinds.add((type(made), len(cost) == space.worlds, len(cost[0]) > len(cost)))
    assert len(kinds) > 3


CHAINS = Hull(
    [
        MarkovChain(["1/2", "1/2"], [[1 - p, p], [p, 1 - p]])
        for p in (Fraction(1, 10), Fraction(2, 5))
    ]
)


def test_a_set_of_chains_costs_as_much_as_its_least_favourable_mixture():
    """Minimax: against that mixture alone no mechanism does better."""
    space = wi.Records(3, 2)
    found = best(space, CHAINS, epsilon=1)
    alone = best(space, found.prior, epsilon=1)
    assert alone.distortion == pytest.approx(found.distortion, abs=1e-9)
    ends = [best(space, chain, epsilon=1).distortion for chain in CHAINS.points]
    assert max(ends) <= found.distortion + 1e-9


@pytest.mark.parametrize(
    ("space", "prior", "cost", "notion"),
    [
        (wi.Records(3, 2), CHAINS, None, "dp"),
        (wi.Records(2, 2), Hull([("0.6", "0.4"), ("0.5", "0.5")]), None, "identifiability"),
        (wi.Records(9, 3), Box(["0.2"] * 3, ["0.6"] * 3), "absolute+missing=0.9", "dp"),
        (wi.Records(2, 3), Uniform(), "total", "dp"),
    ],
)
def test_the_level_of_a_distortion_is_the_distortion_of_a_level(space, prior, cost, notion):
    there = best(space, prior, epsilon=1.2, notion=notion, cost=cost)
    back = best(space, prior, distortion=there.distortion, notion=notion, cost=cost)
    assert back.epsilon == pytest.approx(1.2, abs=1e-6) and back.gap < 1e-6
    assert back.given == "distortion" and back.distortion <= there.distortion
    free = best(space, prior, distortion=0, notion=notion, cost=cost)
    assert free.epsilon == math.inf and free.distortion == 0


def test_spelled_costs_are_these_matrices():
    space, prior = wi.Records(2, 3), Independent(("0.5", "0.3", "0.2"))
    for text, matrix in {
        "hamming": [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
        "absolute": [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
        "absolute=0, 0.1, 5": [[0, 0.1, 5], [0.1, 0, 4.9], [5, 4.9, 0]],
        "hamming+missing=1/4": [[0, 1, 1, 0.25], [1, 0, 1, 0.25], [1, 1, 0, 0.25]],
        "total": [[abs(sum(x) - sum(y)) for y in space] for x in space],
        "any-row": [[int(x != y) for y in space] for x in space],
    }.items():
        one, two = (best(space, prior, epsilon=1, cost=cost) for cost in (text, matrix))
        assert one.distortion == two.distortion and one.epsilon == two.epsilon


def test_missing_answers_are_never_dearer_and_can_be_cheaper():
    space, prior = wi.Records(50, 3), Independent(("0.5", "0.3", "0.2"))
    plain = best(space, prior, epsilon=1).distortion
    costs = [
        best(space, prior, epsilon=1, cost=f"hamming+missing={p}") for p in ("0.1", "0.3", "1")
    ]
    values = [found.distortion for found in costs]
    assert values == sorted(values) and values[0] == pytest.approx(5)  # always missing
    assert values[1] < plain - 1e-3 and values[2] == pytest.approx(plain, abs=1e-7)


def test_answers_are_drawn_as_the_channel_has_them():
    rng = np.random.default_rng(3)
    space = wi.Records(2, 2)
    for cost in ("hamming+missing=0.3", "total"):
        made = best(space, Independent(("0.6", "0.4")), epsilon=1, cost=cost).mechanism
        channel = made.channel(space)
        counts = dict.fromkeys(channel.outputs, 0)
        for _ in range(900):
            counts[tuple(int(v) for v in made.sample((0, 1), rng))] += 1
        for output, share in zip(channel.outputs, channel.likelihoods[1], strict=True):
            assert abs(counts[output] - 900 * share) <= 6 * math.sqrt(900 * share * (1 - share) + 1)


@cases(4, 1000)
def test_rate_distortion_with_other_answers_and_of_tables(count):
    """The mechanism has the distortion and the information that are said, within the bounds of
    Blahut and Arimoto, which share nothing with the library; ties, zeros and extreme ratios of
    costs and of probabilities among them."""
    rng = random.Random(43)
    for number in range(count):
        n, m, _, corners, cost, tables = random_problem(rng)
        if number % 4 == 3:  # as different as floats allow
            far = rng.choice([[0, 1e-9, 1, 1e9], [0, 0, 0, 1], [1e-6, 1, 1e3]])
            tables = cost = [
                [0 if a == b else rng.choice(far) for b in range(m**n)] for a in range(m**n)
            ]
        prior, space = WorldTable(corners[0]), wi.Records(n, m)
        price = np.array(floats(tables))
        mass = np.array([float(p) for p in corners[0]])
        most = float((mass[:, None] * price).sum(axis=0).min())
        if most == 0:
            continue
        wanted = most * rng.choice([0.01, 1 / 3, 1 / 3, 0.99])
        found = best(
            space, prior, distortion=wanted, notion="mutual-information", cost=floats(cost)
        )
        channel = found.mechanism.channel(space)
        spent = float((mass[:, None] * channel.likelihoods * price).sum())
        assert spent <= wanted * (1 + 1e-9) and found.gap < 2e-9
        learned = float(MutualInformation(prior).measure(channel).value)
        assert learned == pytest.approx(found.mutual_information, abs=1e-9)
        least, reached = rate_bounds(mass, price, wanted)
        assert least - 1e-9 <= learned <= reached + 1e-9
        if most > 1e-3:
            back = best(
                space, prior, epsilon=learned, notion="mutual-information", cost=floats(cost)
            )
            assert back.distortion == pytest.approx(wanted, abs=1e-5 * max(1, most))


def test_a_curve_that_is_nearly_straight():
    """A little more slope takes the distortion from one point to another: mixtures are between."""
    cost = [[0, 2, 7, 0], [0, 0, 1000, 0], [7, 0, 0, 0.3], [1, 1e-6, 1e-6, 0]]
    prior = WorldTable([Fraction(k, 16) for k in (3, 6, 1, 6)])
    found = best(
        wi.Records(2, 2), prior, distortion=1 / 160, notion="mutual-information", cost=cost
    )
    assert found.gap < 1e-9 and found.distortion == pytest.approx(1 / 160)
    mass, price = np.array([3, 6, 1, 6]) / 16, np.array(cost)
    least, reached = rate_bounds(mass, price, 1 / 160)
    assert least - 1e-9 <= found.mutual_information <= reached + 1e-9


def test_what_is_no_cost_is_refused_in_a_sentence():
    space, prior = wi.Records(2, 2), Uniform()
    for cost in ("hamming=1,2", "absolute=1", "total+missing=1", "hamming+lost=1", [[0, 1]], [[0]]):
        with refused("cost"):
            best(space, prior, epsilon=1, cost=cost)
    with refused("cost", kind=UnknownName):
        best(space, prior, epsilon=1, cost="squared")
    with refused("missing"):
        best(space, prior, epsilon=1, cost="hamming+missing=-1")
    with refused("space", kind=Unsupported):
        best(wi.Records(9, 2), prior, epsilon=1, cost="total")
    with refused("space", kind=Unsupported):
        best(wi.Records(7, 2), CHAINS, epsilon=1)
    with refused("cost", kind=Unsupported):
        best(space, Hull([("0.5", "0.5"), ("0.6", "0.4")]), epsilon=1, cost="total")
    with refused("cost", kind=Unsupported):
        curves(space, prior, cost="total")
    with refused("notion", kind=Unsupported):
        best(space, CHAINS, epsilon=1, notion="mutual-information")
