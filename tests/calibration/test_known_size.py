"""What a plan with a δ promises of someone who knows how many people are in: F9 after two steps."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import pytest

import whosin as wi
from whosin.calibration.planning import ratio_of_replacement
from whosin.exact import exp_down
from whosin.report.card import known_size

Row = Sequence[Fraction]


def excess(one: Row, two: Row, factor: Fraction) -> Fraction:
    """The hockey-stick divergence of two rows, exactly."""
    return sum(
        (max(p - factor * q, Fraction(0)) for p, q in zip(one, two, strict=True)), Fraction(0)
    )


def dp_delta(rows: Sequence[Row], people: int, factor: Fraction) -> Fraction:
    """The least δ for additions and removals, in both directions."""
    worst = Fraction(0)
    for world in range(1 << people):
        for person in range(people):
            pair = rows[world], rows[world ^ (1 << person)]
            worst = max(worst, excess(*pair, factor))
    return worst


def tails(rows: Sequence[Row], people: int, size: int, beliefs: Row, ratio: Fraction) -> Fraction:
    """The largest Pr[r > ratio | t] under an independent prior given the size, by enumeration."""
    worlds = [sum(1 << i for i in chosen) for chosen in combinations(range(people), size)]
    mass = {
        world: math.prod(
            (p if world >> i & 1 else 1 - p for i, p in enumerate(beliefs)), start=Fraction(1)
        )
        for world in worlds
    }
    worst = Fraction(0)
    for person in range(people):
        sides = []
        for inside in (1, 0):
            own = {w: m for w, m in mass.items() if (w >> person & 1) == inside}
            total = sum(own.values(), Fraction(0))
            if not total:
                break
            sides.append(
                [
                    sum((m * rows[w][o] for w, m in own.items()), Fraction(0)) / total
                    for o in range(len(rows[0]))
                ]
            )
        if len(sides) == 2:
            there, absent = sides
            above = (p for p, q in zip(there, absent, strict=True) if p > ratio * q)
            worst = max(worst, sum(above, Fraction(0)))
    return worst


def random_rows(rng: random.Random, people: int) -> list[Row]:
    """A count with noise of a few outputs, or anything, with rare outputs that tell everything."""
    outputs = rng.randint(2, 4)
    rows: list[Row] = []
    for world in range(1 << people):
        count = bin(world).count("1")
        weights = [
            rng.randint(1, 4) + 2 * abs(count - o) * rng.randint(0, 1) for o in range(outputs)
        ]
        rare = [Fraction(rng.choice([0, 0, 1]), 1000) for _ in range(2)]
        rest = 1 - sum(rare, Fraction(0))
        rows.append([*(rest * Fraction(w, sum(weights)) for w in weights), *rare])
    return rows


def test_whoever_knows_the_size_is_held_to_the_ratio_of_replacement() -> None:
    rng, reached = random.Random(3), 0
    for _ in range(50):
        people = rng.randint(2, 4)
        rows = random_rows(rng, people)
        epsilon = Fraction(rng.randint(1, 8), 4)
        failing = Fraction(rng.randint(1, 40), 100)
        delta = dp_delta(rows, people, exp_down(epsilon))
        bound = ratio_of_replacement(epsilon, delta, failing)
        if math.isinf(bound):
            continue
        for size in range(1, people):
            beliefs = [Fraction(rng.randint(1, 19), 20) for _ in range(people)]
            assert tails(rows, people, size, beliefs, Fraction(bound)) <= failing
            reached += tails(rows, people, size, beliefs, Fraction(bound) / 3) > 0
    assert reached > 20  # the bound rules something out


def test_without_the_second_step_it_would_not_hold() -> None:
    """The same with the ratio for additions alone, e^ε: a count with geometric noise exceeds it."""
    rows = [
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
        [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
        [Fraction(1, 4), Fraction(1, 8), Fraction(5, 8)],
        [Fraction(1, 4), Fraction(1, 2), Fraction(1, 4)],
    ]
    even = [Fraction(1, 2)] * 2
    epsilon = Fraction(math.log(2) * 1.01)
    delta = dp_delta(rows, 2, exp_down(epsilon))
    assert tails(rows, 2, 1, even, exp_down(epsilon)) > delta
    assert tails(rows, 2, 1, even, Fraction(ratio_of_replacement(epsilon, delta, delta * 4))) == 0


@pytest.mark.parametrize(("delta", "least", "most"), [(1e-6, 0.692, 0.695), ("0.01", 0.692, 0.70)])
def test_a_plan_with_a_delta_promises_nearly_as_much_as_one_without(delta, least, most) -> None:
    target, family = wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5")
    plan = wi.calibrate(target, family, delta=delta)
    [gamma] = [each.gamma for each in plan.fallback if each.family == "D_B"]
    assert least < gamma / (1 + gamma) < most
    assert len(known_size(plan)) == 1 and known_size(wi.calibrate(target, family)) == []
    assert wi.Plan.from_dict(plan.to_dict()) == plan


def test_where_the_budget_has_no_room_nothing_is_promised() -> None:
    plan = wi.calibrate(wi.Posterior("0.9"), wi.families.Independent("0.05", "0.5"), delta=0.05)
    assert [math.isinf(each.gamma) for each in plan.fallback if each.family == "D_B"] == [True]
    assert len(known_size(plan)) == 1
