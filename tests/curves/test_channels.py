"""The curve of a channel against all of its pairs, in rationals, where floats see little."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import pytest

import whosin as wi
from whosin import curves, families, mechanisms
from whosin.curves import mechanism_curves
from whosin.curves.curve import concave_hull, ordered_corners
from whosin.curves.mechanism_curves import neighbouring_rows

F = Fraction
SIZES = [F(1, 10**e) for e in (0, 0, 0, 1, 3, 13, 16, 20, 40, 250)] + [F(1, 3), F(1, 7)]


def norm(row: Sequence[F | int]) -> list[F]:
    return [F(entry) / sum(row) for entry in row]


def rows_of(rng: random.Random, worlds: int, outputs: int) -> list[list[F]]:
    """Rows of very unlike sizes: like ones again, nearly like ones, zeros, and a tiny change."""
    rows: list[list[F]] = []
    for _ in range(worlds):
        if rows and rng.random() < 0.5:
            row = list(rng.choice(rows))
            one, two = rng.sample(range(outputs), 2)
            moved = min(row[one], rng.choice(SIZES) * row[one] + rng.choice(SIZES) / 10**9)
            row[one], row[two] = row[one] - moved, row[two] + moved
            rng.shuffle(row) if rng.random() < 0.2 else None
        else:
            row = [rng.choice([F(0), *SIZES]) for _ in range(outputs)]
            row[rng.randrange(outputs)] += 1
            row = norm(row)
        rows.append(row)
    return rows


def true_corners(channel: wi.Channel, rows: list[list[F]], relation: str) -> list[tuple[F, F]]:
    pairs = zip(*neighbouring_rows(channel.space, channel.lattice, relation), strict=True)
    points = [ordered_corners(list(zip(rows[a], rows[b], strict=True))) for a, b in pairs]
    return concave_hull([corner for each in points for corner in each])


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_no_pair_is_lost_to_rounding(relation):
    rng = random.Random(29)
    for _ in range(20):
        rows = rows_of(rng, 8, rng.randint(2, 6))
        channel = wi.Channel(wi.Subsets(3), rows)
        curve = curves.tradeoff(channel, relation=relation)
        assert isinstance(curve, curves.CornerCurve) and curve.exact
        assert curve.corners == true_corners(channel, rows, relation)


def test_a_tiny_probability_does_not_hide_one_that_is_impossible():
    """(10⁻²⁰, 10⁻³) and (0, 1/2000) were one point."""
    tiny, some, half = F(1, 10**20), F(1, 1000), F(1, 2000)
    rows = [[tiny, 0, 1 - tiny], [some, 0, 1 - some], [0, half, 1 - half], [tiny, 0, 1 - tiny]]
    channel = wi.Channel(wi.Subsets(2), rows)
    curve = curves.tradeoff(channel)
    assert curve.exact and curve.tpr(0) == half
    assert curve.epsilon("1e-4") == float("inf")
    for small in ("1e-13", "1e-30"):
        for row in ([small, str(1 - F(small))], ["1", "0"]):
            other = ["0", "1"] if row[0] == small else [str(1 - F(small)), small]
            for pair in ([row, other], [other, row]):
                curve = curves.tradeoff(wi.Channel(wi.Subsets(1), pair))
                assert curve.advantage == F(small) and curve.delta(0) >= F(small)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_curve_in_floats_is_a_bound_and_says_so(relation, monkeypatch):
    monkeypatch.setattr(mechanism_curves, "MAX_EXACT_PAIRS", 0)
    monkeypatch.setattr(mechanism_curves, "FIRST_PAIRS", 3)
    monkeypatch.setattr(mechanism_curves, "PAIR_BLOCK_ENTRIES", 20)
    rng = random.Random(30)
    for _ in range(14):
        rows = rows_of(rng, 8, rng.randint(2, 6))
        channel = wi.Channel(wi.Subsets(3), rows)
        curve = curves.tradeoff(channel, relation=relation)
        truth = true_corners(channel, rows, relation)
        assert isinstance(curve, curves.CornerCurve) and not curve.exact
        for (x0, y0), (x1, y1) in pairwise(truth):
            for share in (F(0), F(1, 3), F(1)):
                fpr, tpr = x0 + share * (x1 - x0), y0 + share * (y1 - y0)
                assert curve.tpr(fpr) >= tpr
        for slope in (F(1, 10**15), F(1), F(10**15)):  # as sharp as floats are, at both ends
            best = max(y - slope * x for x, y in truth)
            most = max(y - slope * x for x, y in curve.corners)
            assert best <= most <= best + F(1, 10**11) * max(best, min(1, slope))


def test_a_bound_in_floats_is_not_below_a_test_that_accuses_nearly_everyone(monkeypatch):
    """Rates of floats that add up to more than 1: the hull of such a bound falls at its end."""
    monkeypatch.setattr(mechanism_curves, "MAX_EXACT_PAIRS", 0)
    third = F(18014398509481983, 54043195562000383)
    rows = [
        norm([1, 10**307, 2 * 10**307]),
        norm([0, 1, 2]),
        [F(0), third, 1 - third],
        norm([1] * 3),
    ]
    channel = wi.Channel(wi.Subsets(2), rows)
    curve = curves.tradeoff(channel)
    assert not curve.exact
    for fpr, tpr in true_corners(channel, rows, "add-remove"):
        assert curve.tpr(fpr) >= tpr


def test_the_bound_in_floats_is_as_near_as_documented(monkeypatch):
    """At most 10⁻¹² of the rates for each output and ten more, as in docs/curves.md."""
    monkeypatch.setattr(mechanism_curves, "MAX_EXACT_PAIRS", 0)
    rng = random.Random(31)
    for outputs in (10, 300):
        weights = [F(rng.randint(1, 10**6)) for _ in range(outputs)]
        nearly = [each * (1 + F(rng.randint(0, 3), 2**50)) for each in weights]
        rows = [norm(weights), norm(nearly)]
        channel = wi.Channel(wi.Subsets(1), rows)
        curve = curves.tradeoff(channel)
        assert isinstance(curve, curves.CornerCurve) and not curve.exact
        for fpr, tpr in true_corners(channel, rows, "add-remove"):
            off = curve.tpr(fpr) - tpr
            assert 0 <= off <= F(outputs + 10, 10**12) * tpr


def test_families_in_floats_have_a_bound_too(monkeypatch):
    family = families.AtMostKnown(1, "0.1", "0.5")
    rule = mechanisms.Suppress(4)
    truth = curves.tradeoff(rule, wi.Subsets(12), family=family)
    monkeypatch.setattr("whosin.notions.failure_probability.MAX_EXACT_WORK", 0)
    bound = curves.tradeoff(rule, wi.Subsets(12), family=family)
    assert isinstance(truth, curves.CornerCurve) and isinstance(bound, curves.CornerCurve)
    assert not bound.exact
    for fpr, _ in truth.corners:
        assert truth.tpr(fpr) <= bound.tpr(fpr) <= truth.tpr(fpr) + F(1, 10**9)


def test_epsilon_is_the_steepest_line():
    curve = curves.tradeoff(mechanisms.RandomizedResponse(epsilon=800), wi.Subsets(1))
    assert curve.exact and curve.epsilon(0) == pytest.approx(800, rel=1e-15)
    assert curve.epsilon("0.9999") < 800
