"""Identifiability over sets of priors, against every corner of the set in fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import pytest

import prior_set_oracle as oracle
import record_oracle as records
import whosin as wi
from amounts import cases
from refusals import refused
from whosin.errors import InvalidInput, NoImplication, Unsupported
from whosin.notions import Identifiability
from whosin.priors import Box, Hull, Independent

SIZES = [(1, 2), (1, 3), (1, 4), (2, 2), (2, 3), (3, 2)]
NUMBER: Any = 3
"""No list."""


def random_box(rng: random.Random, m: int) -> tuple[list[Fraction], list[Fraction]]:
    """Bounds around a distribution: wide, narrow, touching 0 and 1, or a single point."""
    middle = records.random_distribution(rng, m, rng.choice([0, 0.4]))
    low = [p * Fraction(rng.choice([0, 1, 2, 4]), 4) for p in middle]
    high = [p + (1 - p) * Fraction(rng.choice([0, 0, 1, 2, 4]), 4) for p in middle]
    return low, high


def random_set(rng: random.Random, n: int, m: int) -> tuple[Any, list[list[oracle.Point]]]:
    """A set, and the corners of each row's."""
    by_row = rng.random() < 0.4
    if rng.random() < 0.5:
        boxes = [random_box(rng, m) for _ in range(n if by_row else 1)]
        low, high = zip(*boxes, strict=True)
        made: Any = Box(low, high) if by_row else Box(low[0], high[0])
        rows = [oracle.corners(*box) for box in boxes]
    else:
        zeros = rng.choice([0, 0.3])
        rows = [
            [tuple(records.random_distribution(rng, m, zeros)) for _ in range(rng.randint(1, 3))]
            for _ in range(n if by_row else 1)
        ]
        made = Hull(rows) if by_row else Hull(rows[0])
    return made, rows if by_row else rows * n


@cases(90, 3000)
def test_identifiability_is_the_largest_of_any_corner(count):
    """Exactly: the ratio is that of brute force, and the witness is a member that attains it."""
    rng, kinds = random.Random(21), set()
    for _ in range(count):
        n, m = rng.choice(SIZES)
        channel = records.random_channel(rng, n, m, rng.randint(1, 3), rng.choice([0, 0.25]))
        made, rows = random_set(rng, n, m)
        truth = oracle.identifiability(rows, channel, n, m)
        level = Identifiability(made).measure(wi.Channel(wi.Records(n, m), list(channel.values())))
        case = level.witness
        assert level.exact and case.ratio == truth
        assert float(level.value) == pytest.approx(oracle.log(truth), abs=1e-12)
        member = case.distribution.rows(wi.Records(n, m))
        assert records.identifiability(records.independent(member), channel, n, m) == truth
        assert all(is_member(made, n, place, row) for place, row in enumerate(member))
        kinds.add((type(made), truth == math.inf, len(set(map(tuple, rows))) > 1))
    assert len(kinds) == 8


def is_member(made: Any, n: int, place: int, row: tuple[Fraction, ...]) -> bool:
    if isinstance(made, Hull):
        return row in (made.points[place] if made.by_row else made.points)
    low, high = (side[place] if made.by_row else side for side in (made.low, made.high))
    return sum(row) == 1 and all(a <= p <= b for a, p, b in zip(low, row, high, strict=True))


@cases(50, 2000)
def test_no_member_of_a_set_is_worse(count):
    """Mixtures of corners, which no list of corners has."""
    rng = random.Random(22)
    for _ in range(count):
        n, m = rng.choice(SIZES)
        made, rows = random_set(rng, n, m)
        channel = records.random_channel(rng, n, m, 2, rng.choice([0, 0.25]))
        level = Identifiability(made).measure(wi.Channel(wi.Records(n, m), list(channel.values())))
        mixed = [mixture(rng, corners) for corners in rows]
        one = records.identifiability(records.independent(mixed), channel, n, m)
        assert one <= level.witness.ratio


def mixture(rng: random.Random, points: list[oracle.Point]) -> tuple[Fraction, ...]:
    shares = records.random_distribution(rng, len(points))
    columns = zip(*points, strict=True)
    return tuple(sum((s * p for s, p in zip(shares, c, strict=True)), Fraction(0)) for c in columns)


CONSTANT = wi.Channel(wi.Records(2, 2), [["1/3", "2/3"]] * 4)
NEAR = wi.Channel(wi.Records(1, 2), [["1/3", "2/3"], ["1/2", "1/2"]])


@pytest.mark.parametrize(
    ("made", "ratio"),
    [
        (Hull([("1/2", "1/2")]), 1),
        (Hull([("1/2", "1/2"), ("9/10", "1/10")]), 9),
        (Hull([("1/2", "1/2"), (1, 0)]), math.inf),
        (Hull([(1, 0)]), math.inf),
        (Box(["2/5", "2/5"], ["3/5", "3/5"]), Fraction(3, 2)),
        (Box(["2/5", 0], [1, "9/10"]), math.inf),  # the second value may be impossible
        (Box(["2/5", "1/10"], [1, 1]), 9),
        (Box(["1e-300", 0], ["1e-300", 1]), 10**300 - 1),
    ],
)
def test_a_constant_answer_shows_what_the_set_gives_away(made, ratio):
    level = Identifiability(made).measure(CONSTANT)
    assert level.exact and level.witness.ratio == ratio


def test_extreme_odds_do_not_overflow():
    """e^ε of 10^600 is above every double, and finite."""
    far = wi.Channel(wi.Records(1, 2), [["1e-150", 1 - Fraction(1, 10**150)], [1, 0]])
    made = Hull([("1e-150", 1 - Fraction(1, 10**150)), ("1/2", "1/2")])
    level = Identifiability(made).measure(far)
    assert level.value == math.inf and level.witness.ratio == math.inf
    near = wi.Channel(wi.Records(1, 2), [["1e-150", 1 - Fraction(1, 10**150)], ["1/2", "1/2"]])
    level = Identifiability(made).measure(near)
    assert level.witness.ratio == (10**150 - 1) * Fraction(10**150, 2)
    assert float(level.value) == pytest.approx(300 * math.log(10) - math.log(2))


def test_a_value_that_no_member_allows_is_passed_over_in_other_rows():
    """Row 1 is 0 in every member: what is shown of row 0 when row 1 is 1 tells nobody anything."""
    table = [["1/2", "1/2"], [1, 0], ["1/2", "1/2"], [0, 1]]
    made = Hull([[("1/2", "1/2"), ("1/4", "3/4")], [(1, 0)]])
    level = Identifiability(made).measure(wi.Channel(wi.Records(2, 2), table))
    assert level.value == math.inf and level.witness.row == 1  # which the prior alone gives away


def test_floats_are_read_as_distributions_and_shown_as_floats():
    level = Identifiability(Box([0.1, 0.2, 0.7], [0.1, 0.2, 0.7])).measure(
        wi.Channel(wi.Records(1, 3), [[1]] * 3)
    )
    assert float(level.value) == pytest.approx(math.log(7)) and isinstance(
        level.witness.ratio, float
    )
    points = [Independent((0.3, 0.7)), [0.5, 0.5]]
    level = Identifiability(Hull(points)).measure(CONSTANT)
    assert float(level.value) == pytest.approx(math.log(7 / 3))


def test_sets_have_one_spelling_in_exact_numbers():
    assert Hull([("0.5", "1/2")]).canonical() == Hull([(Fraction(1, 2),) * 2]).canonical()
    assert Box(["0.5", 0], [1, "1/2"]).canonical() == Box(["1/2", 0], [1, "0.5"]).canonical()
    assert hash(Hull([[("0.5", "1/2")]] * 2)) == hash(Hull([[("0.5", "1/2")]] * 2))


@pytest.mark.parametrize(
    "build",
    [
        lambda: Hull([]),
        lambda: Hull("ab"),
        lambda: Hull(["0.5", "0.5"]),
        lambda: Hull([[]]),
        lambda: Hull([("0.5", "0.6")]),
        lambda: Hull([("0.5", "0.5"), ("0.2", "0.3", "0.5")]),
        lambda: Hull([("0.5", "0.5"), [("0.5", "0.5")]]),
        lambda: Hull([[("0.5", "0.5")], []]),
        lambda: Hull([Independent("0.5")]),
        lambda: Hull(NUMBER),
        lambda: Box([], []),
        lambda: Box("01", "11"),
        lambda: Box(["0.6", "0.5"], [1, 1]),
        lambda: Box([0, 0], ["0.4", "0.5"]),
        lambda: Box(["0.6", 0], ["0.5", 1]),
        lambda: Box([0, 0], [1, 1, 1]),
        lambda: Box([[0, 0]], [1, 1]),
        lambda: Box([[0, 0], [0, 0]], [[1, 1]]),
        lambda: Box([-1, 0], [1, 1]),
        lambda: Box([0, [0]], [1, 1]),
        lambda: Box(NUMBER, NUMBER),
    ],
)
def test_what_is_no_set_is_refused_in_a_sentence(build):
    with pytest.raises(InvalidInput) as error:
        build()
    assert "\n" not in str(error.value) and len(str(error.value)) < 250


@pytest.mark.parametrize(
    "made",
    [Hull([("0.2", "0.3", "0.5")]), Hull([[("0.5", "0.5")]] * 3), Box([[0, 0]] * 3, [[1, 1]] * 3)],
)
def test_sets_that_do_not_fit_the_records_are_refused(made):
    with refused("prior", 3):
        Identifiability(made).measure(CONSTANT)


ONE = Hull([("0.7", "0.3"), ("0.5", "0.5")])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: wi.notions.MutualInformation(ONE).measure(CONSTANT),
        lambda: wi.notions.MeanShift(ONE).measure(CONSTANT),
        lambda: wi.notions.BayesianDifferentialPrivacy(ONE).measure(CONSTANT),
        lambda: wi.notions.BayesianSemanticPrivacy(ONE).measure(CONSTANT),
        lambda: wi.notions.RecordMembership(ONE).measure(CONSTANT),
        lambda: wi.notions.PointwiseLeakage(ONE).measure(CONSTANT),
        lambda: wi.notions.Leakage(wi.notions.gains.Tries(1), ONE).measure(CONSTANT),
        lambda: wi.distortion.curves(wi.Records(40, 2), ONE),
        lambda: ONE.belief(wi.Subsets(2), 0),
    ],
)
def test_what_asks_for_one_prior_refuses_a_set(ask):
    with refused("prior", kind=Unsupported):
        ask()


def test_levels_carry_over_to_differential_privacy_and_back():
    """By T19 with the largest odds of the set, ln(7/3)."""
    extra = math.log(7 / 3)
    dp = wi.notions.DifferentialPrivacy("replace").measure(NEAR)
    there = wi.theorems.convert(dp, Identifiability(ONE))
    assert float(there.value) == pytest.approx(float(dp.value) + extra)
    measured = Identifiability(ONE).measure(NEAR)
    assert float(measured.value) <= float(there.value)
    back = wi.theorems.convert(measured, wi.notions.DifferentialPrivacy("replace"))
    assert float(dp.value) <= float(back.value) == pytest.approx(float(measured.value) + extra)
    with pytest.raises(NoImplication):
        wi.theorems.convert(dp, Identifiability(Hull([(1, 0)])))
