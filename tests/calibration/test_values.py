"""Secrets that are values: levels, plans and guesses against the definitions, by enumeration."""

from __future__ import annotations

import json
import math
import random
import re
from fractions import Fraction
from itertools import product

import pytest

import record_oracle as oracle
import whosin as wi
from amounts import cases
from refusals import refused
from whosin import beliefs
from whosin.calibration import read_plan
from whosin.curves import tradeoff
from whosin.curves.epsilon_meaning import explain_epsilon
from whosin.errors import ImpossibleTarget, InvalidInput, UnknownName, Unsupported
from whosin.exact import exact_fraction
from whosin.notions import NegativeMembership, PositiveMembership
from whosin.report.card import describe_plan
from whosin.report.document import section_data

HALF = Fraction(1, 2)
ABSENT = 0


def belief(rng: random.Random) -> Fraction:
    return rng.choice([Fraction(1, 1000), Fraction(999, 1000), Fraction(rng.randint(1, 11), 12)])


def instance(rng: random.Random, least: int = 2) -> tuple[int, int, dict]:
    """A channel on few rows of few values; some with zeros, ties and extreme ratios."""
    n, m = rng.choice([(1, 3), (2, 2), (2, 3), (1, least + 2)])
    m = max(m, least)
    channel = oracle.random_channel(rng, n, m, rng.randint(2, 3), rng.choice([0, 0, 0.3]))
    if rng.random() < 0.3:  # nearly constant: levels near 1
        blind = oracle.random_distribution(rng, len(next(iter(channel.values()))), 0)
        channel = {
            x: [(9 * a + b) / 10 for a, b in zip(blind, row, strict=True)]
            for x, row in channel.items()
        }
    return n, m, channel


def as_channel(n: int, m: int, channel: dict) -> wi.Channel:
    return wi.Channel(wi.Records(n, m), [channel[x] for x in oracle.worlds(n, m)])


def least_gamma(before: Fraction, top: Fraction, bottom: Fraction) -> Fraction | float:
    """The least γ of the definition for one value against another, at one belief in the first."""
    total = before * top + (1 - before) * bottom
    if total == 0:
        return Fraction(1)
    after = before * top / total
    if after == 1:
        return math.inf
    return max(Fraction(1), after / before, (1 - before) / (1 - after))


@cases(100, 1500)
def test_a_level_is_its_definition(count):
    """Every row, all others known, every two values, both ends of the beliefs (F6)."""
    rng = random.Random()
    for _ in range(count):
        n, m, channel = instance(rng)
        low, high = sorted((belief(rng), belief(rng)))
        family = wi.families.ValueOfOne(low, high)
        for notion, ends in (
            (PositiveMembership, (low, high)),
            (NegativeMembership, (1 - low, 1 - high)),
        ):
            truth = max(
                least_gamma(end, channel[x][y], channel[oracle.replaced(x, row, value)][y])
                for x, row, value in product(channel, range(n), range(m))
                for y in range(len(channel[x]))
                for end in ends
            )
            level = notion(family).measure(as_channel(n, m, channel))
            assert level.value == truth and level.exact
            case = level.witness
            if truth < math.inf:
                known = case.known
                sides = [
                    channel[tuple({**known, case.row: v}[r] for r in range(n))][case.output]
                    for v in case.values
                ]
                assert case.prior in ends or truth == 1
                assert least_gamma(case.prior, *sides) == truth


@cases(100, 1500)
def test_no_belief_in_a_value_moves_further(count):
    """Any beliefs over all values of a row, and any over the other rows that do not depend on it:
    a value that was believed at p becomes at most r p/(1 + (r − 1)p) likely (T14, F18)."""
    rng = random.Random()
    for _ in range(count):
        n, m, channel = instance(rng)
        r = wi.notions.DifferentialPrivacy("replace").measure(as_channel(n, m, channel))
        ratio = r.witness.ratio
        rows = [oracle.random_distribution(rng, m, 0.3) for _ in range(n)]
        prior = oracle.independent(rows)
        for row, y in product(range(n), range(len(next(iter(channel.values()))))):
            joint = [Fraction(0)] * m
            for x, mass in prior.items():
                joint[x[row]] += mass * channel[x][y]
            if sum(joint):
                for value, before in enumerate(rows[row]):
                    assert joint[value] / sum(joint) <= beliefs.posterior(ratio, before)
                uniform = [
                    a / b if b else Fraction(0) for a, b in zip(joint, rows[row], strict=True)
                ]
                if min(rows[row]) > 0 and ratio < math.inf:  # m equally likely values: F18
                    assert max(uniform) / sum(uniform) <= ratio / (ratio + m - 1)


def present_levels(n: int, m: int, channel: dict) -> tuple[Fraction | float, Fraction | float]:
    """The largest ratios of adding or removing a person, and of replacing the rows of one who is
    in; value 0 of a row stands for nobody."""
    moved, swapped = Fraction(1), Fraction(1)
    for x, row, value in product(channel, range(n), range(m)):
        other = oracle.replaced(x, row, value)
        found = max(oracle.ratio(*pair) for pair in zip(channel[x], channel[other], strict=True))
        if (x[row] == ABSENT) != (value == ABSENT):
            moved = max(moved, found)
        elif x[row] != ABSENT:
            swapped = max(swapped, found)
    return moved, swapped


@cases(100, 1500)
def test_a_replacement_is_at_most_a_removal_and_an_addition(count):
    """ε add-remove is at most 2ε between two values of someone who is in (T6), and `explain` says
    what that allows."""
    rng = random.Random()
    for _ in range(count):
        n, m, channel = instance(rng, least=3)
        moved, swapped = present_levels(n, m, channel)
        assert swapped <= moved**2
        if 1 < moved < 50:
            up = Fraction(math.nextafter(math.log(moved), 9))
            meaning = explain_epsilon(up, secret="value")
            for before in (Fraction(1, 10), HALF):
                assert meaning.posterior(meaning.readings[0], before) >= beliefs.posterior(
                    swapped, before
                )


@pytest.mark.parametrize("r", [Fraction(3, 2), Fraction(4), Fraction(1000)])
def test_both_ratios_are_attained(r):
    """One value shows an output as often as possible, the other as seldom: 2ε. And m-ary randomised
    response has F18 with ε between two values, so that plans against values are tight."""
    channel = {(0,): [HALF, HALF], (1,): [None, None], (2,): [None, None]}
    small = 1 / (1 + r)  # odds 1, r and 1/r of something seldom
    seen = small / r
    channel = {
        (0,): [seen, 1 - seen],
        (1,): [seen * r, 1 - seen * r],
        (2,): [seen / r, 1 - seen / r],
    }
    assert present_levels(1, 3, channel) == (r, r**2)
    for m in (2, 3, 7):
        keep = r / (r + m - 1)
        response = wi.mechanisms.RandomizedResponse(keep=keep).channel(wi.Records(1, m))
        target = wi.Rho(keep, m=m)
        plan = wi.calibrate(target, wi.families.ValueOfOne())
        level = wi.notions.DifferentialPrivacy("replace").measure(response)
        assert plan.tight and plan.relation == "replace" and plan.epsilon <= level.value
        assert math.isclose(plan.epsilon, level.value, rel_tol=1e-12)
        success = wi.notions.Leakage("identity", wi.priors.Uniform()).measure(response)
        assert success.witness.posterior == keep


def test_the_plan_is_that_of_its_ratio():
    """r = q(1−b)/(b(1−q)) between two values of a row; a median prior of m values is 1/m."""
    plan = wi.calibrate(posterior="0.6", prior="0.05..0.5", secret="value")
    assert math.isclose(plan.epsilon, math.log(1.5)) and plan.relation == "replace" and plan.tight
    assert wi.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))).to_dict() == plan.to_dict()
    held = {each.family: each.gamma for each in plan.fallback}
    assert held["D_I"] == math.inf and held["D_B"] == pytest.approx(1.5)
    said = wi.calibrate(rho="0.5", candidates=5, secret="value")
    assert math.isclose(said.epsilon, math.log(4)) and said.beliefs == (Fraction(1, 5),) * 2
    member = wi.calibrate(posterior="0.6", prior="0.05..0.5", secret="membership")
    assert member.relation == "add-remove"


@pytest.mark.parametrize(
    "promise", [{"posterior": "0.6", "prior": "0.05..0.5"}, {"rho": "0.5", "candidates": 5}]
)
def test_the_card_agrees_with_itself_about_guesses(promise):
    """Nobody guesses better on average than the surest anyone may become."""
    plan = wi.calibrate(**promise, secret="value")
    shown = section_data(describe_plan(plan).sections)
    lines = " ".join(line for section in shown for line in section.lines)
    sure = int(re.search(r"as sure as if (\d+) had", lines)[1])
    assert int(re.search(r"right in at most (\d+)", lines)[1]) <= sure


# What riskcal calls the unified bound (F36).


def corners(pairs: list[tuple[list[Fraction], list[Fraction]]]) -> list[tuple[Fraction, Fraction]]:
    """The corners (FPR, TPR) of the best tests of each pair, from the sorted ratios."""
    found = [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))]
    for top, bottom in pairs:
        order = sorted(
            range(len(top)),
            key=lambda y: -math.inf if not top[y] else -oracle.ratio(top[y], bottom[y]),
        )
        order.sort(key=lambda y: oracle.ratio(top[y], bottom[y]), reverse=True)
        fpr = tpr = Fraction(0)
        for y in order:
            fpr, tpr = fpr + bottom[y], tpr + top[y]
            found.append((fpr, tpr))
    return found


def hull_at(points: list[tuple[Fraction, Fraction]], at: Fraction) -> Fraction:
    """The concave hull of points, at one place: the best mixture of two of them."""
    best = max((y for x, y in points if x <= at), default=Fraction(0))
    for x0, y0 in points:
        for x1, y1 in points:
            if x0 < at < x1:
                best = max(best, y0 + (y1 - y0) * (at - x0) / (x1 - x0))
    return best


def best_gain(weights: list[Fraction], gains: list[list[Fraction]]) -> Fraction:
    return max(sum(w * g for w, g in zip(weights, row, strict=True)) for row in gains)


@cases(100, 1500)
def test_guesses_are_right_as_often_as_the_curve_allows(count):
    """Guesses of anything about a row, with gains in [0, 1], all else known: on average they gain
    at most 1 − f(gain without answers), f the exact curve by enumeration or the package's own; and
    f may be that between the row and nobody."""
    rng = random.Random()
    for _ in range(count):
        n, m, channel = instance(rng, least=3)
        package = tradeoff(as_channel(n, m, channel), relation="replace")
        for others in product(range(m), repeat=n - 1):
            rows = [channel[(value, *others)] for value in range(m)]
            prior = oracle.random_distribution(rng, m, 0.2)
            gains = [[Fraction(rng.randint(0, 4), 4) for _ in range(m)] for _ in range(3)]
            if rng.random() < 0.5:
                gains = [[Fraction(v == w) for v in range(m)] for w in range(m)]
            before = best_gain(prior, gains)
            outputs = range(len(rows[0]))
            after = sum(
                best_gain([p * row[y] for p, row in zip(prior, rows, strict=True)], gains)
                for y in outputs
            )
            swaps = [(a, b) for a in rows for b in rows if a is not b]
            assert after <= hull_at(corners(swaps), before) <= 1
            assert after <= exact_fraction(package.tpr(before)) * (1 + Fraction(1, 10**12))
            # Value 0 as nobody: the guess is about the others, who are in.
            if sum(prior[1:]):
                given = [Fraction(0), *(p / sum(prior[1:]) for p in prior[1:])]
                lucky = best_gain(given, gains)
                right = sum(
                    best_gain([p * row[y] for p, row in zip(given, rows, strict=True)], gains)
                    for y in outputs
                )
                added = [(row, rows[ABSENT]) for row in rows[1:]]
                assert right <= hull_at(corners(added), lucky)


def test_the_bound_is_attained_under_add_remove():
    """Nobody: every value alike; a value: itself e^ε times as often, the others e^−ε times at the
    least. A guess among m is then right e^ε/m of the time, which is e^ε times luck."""
    r, m = Fraction(3, 2), 5
    present = [[r / m if v == w else (1 - r / m) / (m - 1) for w in range(m)] for v in range(m)]
    channel = {(0,): [Fraction(1, m)] * m} | {(v + 1,): row for v, row in enumerate(present)}
    assert present_levels(1, m + 1, channel)[0] == r
    success = sum(max(row[y] for row in present) for y in range(m)) / m
    meaning = explain_epsilon(Fraction(math.log(r)), secret="value")
    assert math.isclose(meaning.right_guesses(Fraction(1, m)), success) and success == r / m


def test_a_delta_is_counted_in():
    """(ε, δ) for additions is (2ε, (1 + e^ε)δ) for values, and ten times that δ is what may fail;
    a guess on average is bounded at one ε, and does not fail."""
    meaning = explain_epsilon(Fraction(1), Fraction("1e-6"), secret="value")
    assert meaning.readings[0].ratio >= math.exp(2) / 0.9
    assert meaning.failure >= 10 * (1 + math.e) * 1e-6
    assert meaning.right_guesses(Fraction(1, 10)) == pytest.approx(0.1 * math.e + 1e-6, rel=1e-9)
    # At δ so large that 10 (1 + e^ε) δ ≥ 1 nothing is said of a belief.
    assert (
        explain_epsilon(Fraction(1), Fraction("0.05"), secret="value").readings[0].ratio == math.inf
    )


@pytest.mark.parametrize(
    ("adversary", "target", "path", "kind"),
    [
        ({"secret": "valu"}, {"gamma": 2}, "adversary.secret", UnknownName),
        ({"secret": "value", "size-known": True}, {"gamma": 2}, "adversary.secret", InvalidInput),
        ({"secret": "value"}, {"posterior": "0.6"}, "target.posterior", ImpossibleTarget),
        ({"secret": "value"}, {"tpr": "0.1", "fpr": "0.01"}, "target.tpr", InvalidInput),
        (
            {"secret": "value", "prior": "0.5"},
            {"rho": "0.5", "candidates": 5},
            "target.rho",
            InvalidInput,
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(adversary, target, path, kind):
    with pytest.raises(kind) as caught:
        read_plan(adversary, target)
    assert caught.value.path == path


def test_values_are_about_records():
    with refused("space", kind=Unsupported):
        PositiveMembership(wi.families.ValueOfOne()).measure(
            wi.mechanisms.RandomizedResponse(keep="3/4"), wi.Subsets(2)
        )
    family, space = wi.families.ValueOfOne("0.1", "0.4"), wi.Records(2, 2)
    assert family.contains(wi.priors.Table({(0, 0): "0.4", (0, 1): "0.6"}), space)
    assert not family.contains(wi.priors.Table({(0, 0): "0.5", (0, 1): "0.5"}), space)
    assert not family.contains(wi.priors.Table({(0, 0): "0.4", (1, 1): "0.6"}), space)


def test_the_command_asks_about_values(run):
    """`plan`, `plan --within` and `explain` say what the library does; others are refused."""
    code, out, _ = run("plan --posterior 0.6 --prior 0.05..0.5 --secret value --json")
    said = json.loads(out)
    assert code == 0 and said["relation"] == "replace" and said["family"]["name"] == "value"
    code, out, _ = run("explain --epsilon 1 --secret value --prior 0.1 --json")
    said = json.loads(out)
    assert said["adversaries"][0]["posteriors"][0]["posterior"] == pytest.approx(0.4509, abs=1e-4)
    assert said["guesses"] == [{"luck": 0.1, "right": pytest.approx(math.e / 10)}]
    code, out, _ = run("plan --within 20 --secret value --prior 0.1 --posterior 0.3 --json")
    said = json.loads(out)
    assert said["relation"] == "replace" and said["secret"] == "value" and said["target"]["enough"]
    response = "verify --mechanism randomized-response --keep 3/4"
    code, out, _ = run(f"{response} --rows 2 --values 3 --family value=0.05..0.5 --json")
    said = json.loads(out)
    assert code == 0 and said["value"] == pytest.approx(4.8) and said["witness"]["row"] is not None
    code, _, err = run(f"{response} --entities 3 --family value")
    assert code == 2 and "about the values of rows" in err
    for line in ("explain --epsilon 1", "plan --gamma 2", "plan --within 20"):
        code, _, err = run(f"{line} --secret salary")
        assert code == 2 and "--secret" in err
