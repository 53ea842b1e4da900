"""The best mechanism against a set of priors (T26): against the program over whole tables."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import prior_set_oracle as oracle
import record_oracle as records
import whosin as wi
from amounts import cases
from distortion_oracle import robust_program
from refusals import refused
from whosin.distortion import best
from whosin.errors import ImpossibleTarget, Unsupported
from whosin.notions import DifferentialPrivacy, Identifiability
from whosin.priors import Box, Hull, Independent

SIZES = [(1, 2), (1, 3), (1, 4), (2, 2), (2, 2), (2, 3)]
COSTS = {2: [[0, 1], [3, 0]], 3: [[0, 1, 2], [1, 0, 1], [5, 1, 0]]}


def random_rows(rng, n, m):
    """A set, and the corners of each row's."""
    low, high, points = [], [], []
    for _ in range(n):
        middle = records.random_distribution(rng, m, 0)
        low.append([p * Fraction(rng.choice([1, 2, 4]), 4) for p in middle])
        high.append([p + (1 - p) * Fraction(rng.choice([0, 1, 2]), 4) for p in middle])
        points.append([tuple(records.random_distribution(rng, m, 0)) for _ in range(2)])
    if rng.random() < 0.5:
        return Hull(points), points
    return Box(low, high), [oracle.corners(*pair) for pair in zip(low, high, strict=True)]


@pytest.mark.parametrize("notion", ["dp", "identifiability"])
@cases(5, 1000)
def test_the_sum_over_rows_is_the_optimum_over_tables(notion, count):
    """It is what the program over whole tables finds, the mechanism keeps the level exactly, and
    no corner has more distortion than is said."""
    rng = random.Random(26)
    for _ in range(count):
        n, m = rng.choice(SIZES)
        made, corners = random_rows(rng, n, m)
        cost = rng.choice([None, COSTS.get(m)])
        epsilon = rng.choice([0, 0.1, 0.7, 2]) + (
            math.log(made.spread) if notion == "identifiability" else 0
        )
        space = wi.Records(n, m)
        found = best(space, made, epsilon=epsilon, notion=notion, cost=cost)
        truth = robust_program(corners, m, found.epsilon + 1e-13, notion, cost)
        assert found.distortion == pytest.approx(truth, abs=1e-6)
        assert 0 <= found.gap < 1e-8 and found.theorems == ("T26",)
        assert found.lower <= found.distortion == found.upper
        asked = DifferentialPrivacy("replace") if notion == "dp" else Identifiability(made)
        assert asked.measure(found.mechanism.channel(space)).holds(found.epsilon)
        worst = max(distortion(found.mechanism, rows, m, cost) for rows in product(*corners))
        assert float(worst) == pytest.approx(found.distortion, abs=1e-12)
        assert worst <= Fraction(found.distortion)


def distortion(mechanism, rows, m, cost):
    price = cost or (1 - np.eye(m, dtype=int)).tolist()
    return sum(
        p[a] * mechanism.of_row(number)[a][b] * price[a][b]
        for number, p in enumerate(rows)
        for a, b in product(range(m), repeat=2)
    )


def test_a_set_of_one_prior_is_that_prior():
    for notion, epsilon in (("dp", 1), ("identifiability", 2)):
        row = ("0.5", "0.3", "0.2")
        one = best(wi.Records(5, 3), Independent(row), epsilon=epsilon, notion=notion)
        for made in (Hull([row]), Box(row, row)):
            same = best(wi.Records(5, 3), made, epsilon=epsilon, notion=notion)
            assert same.distortion == pytest.approx(one.distortion, abs=1e-9)


def test_a_set_costs_more_than_its_members_and_rows_add_up():
    points = [("0.8", "0.1", "0.1"), ("0.1", "0.1", "0.8")]
    both = best(wi.Records(1, 3), Hull(points), epsilon=1).distortion
    alone = [best(wi.Records(1, 3), Independent(p), epsilon=1).distortion for p in points]
    assert both > max(alone) + 0.05
    assert best(wi.Records(1000, 3), Hull(points), epsilon=1).distortion == pytest.approx(
        1000 * both
    )


@pytest.mark.parametrize("epsilon", [0, 1e-9, 50, 700, "inf"])
def test_the_ends_of_the_range(epsilon):
    made = Box(["0.2", "0.2", "0.1"], ["0.6", "0.5", "0.5"])
    found = best(wi.Records(2, 3), made, epsilon=epsilon)
    channel = found.mechanism.channel(wi.Records(2, 3))
    assert DifferentialPrivacy("replace").measure(channel).holds(found.epsilon)
    assert found.gap < 1e-7


def test_what_no_mechanism_reaches_is_refused():
    made = Hull([("0.7", "0.3"), ("0.5", "0.5")])
    with refused("epsilon", 0.5, kind=ImpossibleTarget):
        best(wi.Records(2, 2), made, epsilon="0.5", notion="identifiability")
    with refused("epsilon", 5.0, kind=ImpossibleTarget):
        best(wi.Records(2, 2), Hull([(1, 0)]), epsilon=5, notion="identifiability")


def test_other_questions_are_refused_in_a_sentence():
    made = Hull([("0.7", "0.3"), ("0.5", "0.5")])
    with refused("notion", "mutual-information", kind=Unsupported):
        best(wi.Records(2, 2), made, epsilon=1, notion="mutual-information")
    with refused("values", 30, kind=Unsupported):
        best(wi.Records(2, 30), Box([0] * 30, [1] * 30), epsilon=1)
    with refused("prior", 2):
        best(wi.Records(2, 3), made, epsilon=1)
    with refused("space", "Subsets(2)"):
        best(wi.Subsets(2), made, epsilon=1)
