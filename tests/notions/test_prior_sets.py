"""Identifiability over sets of priors, against every corner of the set in fractions."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import leakage_oracle as leakages
import prior_set_oracle as oracle
import record_oracle as records
import whosin as wi
from amounts import cases
from refusals import refused
from whosin.errors import InvalidInput, NoImplication, Unsupported
from whosin.notions import Identifiability
from whosin.priors import Box, Hull, Independent, MarkovChain, Uniform, WorldTable

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
TABLES = Hull([MarkovChain(["1/2", "1/2"], [["3/4", "1/4"], ["1/4", "3/4"]]), Uniform()])


@pytest.mark.parametrize(
    "ask",
    [
        lambda: wi.notions.MeanShift(ONE).measure(CONSTANT),
        lambda: wi.notions.BayesianDifferentialPrivacy(TABLES).measure(CONSTANT),
        lambda: wi.notions.Leakage("identity", [ONE, ONE]).measure(CONSTANT),
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


def random_case(rng: random.Random) -> tuple[Any, list[list[oracle.Point]], Any, wi.Channel]:
    """A set, the corners of each independent part, a channel, and the same for the engine: rows
    with a set each, or one set for whole tables; zeros, ties and extreme ratios among them."""
    n, m = rng.choice(SIZES)
    channel = records.random_channel(rng, n, m, rng.randint(1, 3), rng.choice([0, 0.25]))
    if rng.random() < 0.2:  # a likelihood of nearly nothing
        channel[(0,) * n] = [1 - Fraction(len(channel[(0,) * n]) - 1, 10**12)] + [
            Fraction(1, 10**12)
        ] * (len(channel[(0,) * n]) - 1)
    if n > 1 and rng.random() < 0.3:
        points = [list(records.random_prior(rng, n, m, 0.3).values()) for _ in range(2)]
        kind = rng.choice([0, 1, 2])
        if kind == 2:
            low, high = random_box(rng, m**n) if m**n == 4 else ((points[0],) * 2)
            made: Any = Box(low, high)
            rows = [oracle.corners(low, high)]
        else:
            made = Hull([WorldTable(p) for p in points] if kind else points)
            rows = [[tuple(p) for p in points]]
    else:
        made, rows = random_set(rng, n, m)
    return made, rows, channel, wi.Channel(wi.Records(n, m), list(channel.values()))


def masses(rows: Any) -> list[Fraction]:
    """The prior of independent parts, in world order."""
    result = [Fraction(1)]
    for row in rows:
        result = [a * b for a in result for b in row]
    return result


def some_members(rng: random.Random, rows: list[list[oracle.Point]], count: int) -> Any:
    """Every product of corners, and some of their mixtures."""
    yield from map(masses, product(*rows))
    for _ in range(count):
        yield masses([mixture(rng, corners) for corners in rows])


def attained(level: Any) -> Any:
    return level.value if level.lower is None else level.lower


@cases(25, 1200)
def test_mutual_information_is_the_largest_of_any_member(count):
    """No member has more, the member that is named attains it, and the bound is near it: at one
    row, or for whole tables, as near as floats get."""
    rng, gaps = random.Random(31), []
    for _ in range(count):
        made, rows, channel, measured = random_case(rng)
        level, table = wi.notions.MutualInformation(made).measure(measured), list(channel.values())
        for prior in some_members(rng, rows, 12):
            assert leakages.information(table, list(map(float, prior))) <= level.value + 1e-12
        named = [float(p) for p in level.prior.on_records(measured.space, float)]
        assert leakages.information(table, named) == pytest.approx(float(attained(level)), abs=1e-9)
        gaps.append(float(level.value) - float(attained(level)))
        assert len(rows) > 1 or gaps[-1] < 1e-10
    assert sorted(gaps)[int(0.9 * count)] < 2e-9 and max(gaps) < 1e-2


def test_information_of_rows_together_is_not_at_a_corner_nor_their_capacity():
    """Whether the rows agree, seen: ln 2 at even rows, and nothing at any corner."""
    agree = wi.Channel(wi.Records(2, 2), [[1, 0], [0, 1], [0, 1], [1, 0]])
    level = wi.notions.MutualInformation(Hull([(1, 0), (0, 1)])).measure(agree)
    assert float(level.value) == pytest.approx(math.log(2), abs=1e-9)
    assert float(attained(level)) == pytest.approx(math.log(2), abs=1e-8)
    narrow = Box(["0.9", 0], [1, "0.1"])
    level = wi.notions.MutualInformation(narrow).measure(agree)
    odd = 2 * 0.9 * 0.1
    truth = -odd * math.log(odd) - (1 - odd) * math.log(1 - odd)
    assert float(level.value) == pytest.approx(truth, abs=1e-8)


def strategies_program(table: Any, corners: Any, gains: Any, form: str) -> float:
    """The largest leakage over mixtures of corners: a linear program for each strategy."""
    from scipy.optimize import linprog

    points = np.array(corners, dtype=float)
    gain, likelihood = np.array(gains, dtype=float), np.array(table, dtype=float)
    before, best = points @ gain.T, 0.0
    for strategy in product(range(len(gains)), repeat=len(table[0])):
        shown = sum(likelihood[:, y] * gain[guess] for y, guess in enumerate(strategy))
        after = points @ shown
        if form == "multiplicative":
            found = linprog(-after, before.T, np.ones(len(gains)))
        else:
            limits = np.column_stack([before.T, -np.ones(len(gains))])
            sums = [[*[1.0] * len(points), 0.0]]
            found = linprog([*-after, 1.0], limits, np.zeros(len(gains)), sums, [1.0])
        best = max(best, math.inf if found.status == 3 else -found.fun)
    return best


def random_gains(rng: random.Random, worlds: int) -> Any:
    if rng.random() < 0.4 and worlds < 5:
        return leakages.tries(worlds, 1)
    many = rng.randint(1, 3)
    return [[Fraction(rng.choice([0, 1, 1, 2, 50])) for _ in range(worlds)] for _ in range(many)]


@cases(15, 1200)
def test_leakage_of_one_part_is_exact_and_a_member_attains_it(count):
    """Equal to a linear program for each strategy of guesses."""
    rng, inside = random.Random(32), 0
    for _ in range(count):
        m = rng.choice([2, 3])
        table = leakages.random_table(rng, m, rng.randint(1, 3))
        made, rows = random_set(rng, 1, m)
        gains, form = random_gains(rng, m), rng.choice(["multiplicative", "additive"])
        notion = wi.notions.Leakage(gains, made, form)
        level = notion.measure(wi.Channel(wi.Records(1, m), table))
        truth = strategies_program(table, rows[0], gains, form)
        if form == "multiplicative":
            truth = max(truth, 1.0)
        if all(leakages.value(point, gains) for point in rows[0]):
            assert level.exact and float(level.value) == pytest.approx(truth, abs=1e-7)
        named = level.witness.distribution.rows(wi.Records(1, m))[0]
        before, after = leakages.vulnerabilities(table, named, gains)
        assert level.value == ((after / before if before else 1) if "m" in form else after - before)
        inside += named not in rows[0]
    assert inside > count / 20  # not at a corner


@cases(6, 400)
def test_leakage_of_several_parts_is_between_its_bounds(count):
    rng = random.Random(33)
    for _ in range(count):
        made, rows, channel, measured = random_case(rng)
        worlds, table = len(channel), list(channel.values())
        gains, form = random_gains(rng, worlds), rng.choice(["multiplicative", "additive"])
        level = wi.notions.Leakage(gains, made, form).measure(measured)

        def leak(prior: Any, table=table, gains=gains, form=form) -> Any:
            before, after = leakages.vulnerabilities(table, prior, gains)
            return after - before if form == "additive" else after / before if before else 1

        assert all(leak(prior) <= level.value for prior in some_members(rng, rows, 8))
        named = level.witness.distribution.on_records(measured.space, wi.exact.rational)
        assert leak(named) == attained(level) or level.exact


@cases(40, 1500)
def test_pointwise_leakage_is_a_limit_at_a_corner(count):
    """No member has more, and members close to it come as close as is asked for."""
    rng, limits = random.Random(34), 0
    for _ in range(count):
        made, rows, channel, measured = random_case(rng)
        level, table = wi.notions.PointwiseLeakage(made).measure(measured), list(channel.values())
        truth = max(leakages.pointwise(table, prior) for prior in some_members(rng, rows, 4))
        assert level.exact and leakages_log(truth) <= level.value + 1e-12
        case = level.witness
        if not case.attained:
            limits += 1
            claim = Fraction(100) if level.value == math.inf else Fraction(level.value) * 99 / 100
            case = level.nearer(claim)
        named = case.distribution.on_records(measured.space, wi.exact.rational)
        assert case.ratio == leakages.pointwise(table, named) or not case.attained
        assert case.attained or leakages_log(case.ratio) >= float(claim) - 1e-9
        if case.attained:
            assert leakages_log(case.ratio) == pytest.approx(float(level.value), abs=1e-12)
    assert limits


def leakages_log(ratio: Any) -> float:
    return oracle.log(ratio)


@cases(20, 1000)
def test_bayesian_privacy_and_membership_are_those_of_the_widest_member(count):
    rng = random.Random(35)
    for _ in range(count):
        n, m = rng.choice(SIZES)
        made, rows = random_set(rng, n, m)
        channel = records.random_channel(rng, n, m, rng.randint(1, 3), rng.choice([0, 0.25]))
        measured = wi.Channel(wi.Records(n, m), list(channel.values()))
        level = wi.notions.BayesianDifferentialPrivacy(made).measure(measured)
        for prior in some_members(rng, rows, 2):
            known = dict(zip(channel, prior, strict=True))
            assert records.bayesian_ratio(known, channel, n) <= level.witness.ratio
        named = records.independent(level.witness.distribution.rows(measured.space))
        assert level.exact and records.bayesian_ratio(named, channel, n) == level.witness.ratio
        member = wi.notions.RecordMembership(made).measure(measured)
        assert member.value == level.witness.ratio


def test_a_box_of_too_many_corners_is_refused_in_a_sentence():
    wide = Box([0] * 12, ["1/2"] * 12)
    noisy = wi.Channel(wi.Records(2, 12), [["1/2", "1/2"]] * 144)
    with refused("prior", 12, kind=Unsupported):
        wi.notions.MutualInformation(wide).measure(noisy)
    one = wi.Channel(wi.Records(1, 12), [["1/2", "1/2"]] * 12)
    assert wi.notions.MutualInformation(wide).measure(one).value < 1e-12
