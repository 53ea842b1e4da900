"""One run against trade-off curves: the recursion against programs and enumeration, null runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

import whosin as wi
from amounts import cases, some
from attacked import most_alarms
from refusals import about
from whosin.audit.tradeoff_claims import (
    BOTH,
    IN,
    OUT,
    ApproximateCurve,
    CurveTest,
    FunctionCurve,
    GaussianCurve,
    least_total,
)
from whosin.errors import InvalidInput


def least_total_by_program(right, tried, canaries, mass, lines) -> float:
    """min Σ p over p ≥ 0 with Σ_{c ≥ right} p_c ≥ mass and a_j ≤ k b_{j−1} + d for each line."""
    counts = np.arange(tried + 1)
    rows, limits = [], []
    for j in range(1, tried + 1):
        a = np.where(counts >= j, counts, 0) / canaries
        b = np.where(counts >= j - 1, tried - counts, 0) / canaries
        for slope, offset in lines:
            rows.append(a - slope * b)
            limits.append(offset)
    rows.append(-(counts >= right).astype(float))
    limits.append(-mass)
    found = linprog(np.ones(tried + 1), A_ub=rows, b_ub=limits, method="highs")
    return found.fun if found.status == 0 else math.inf


@pytest.mark.parametrize("delta", [0.0, 0.03])
def test_the_recursion_is_the_least_total_of_the_program(delta):
    rng = np.random.default_rng(3)
    for _ in range(15):
        canaries = int(rng.integers(2, 9))
        tried = int(rng.integers(1, canaries + 1))
        right = int(rng.integers(1, tried + 1))
        epsilon, mass = float(rng.choice([0.0, 0.4, 1.5])), float(rng.choice([0.01, 0.2, 0.6]))
        grow = math.exp(epsilon)
        lines = [(grow, delta), (1 / grow, 1 - (1 - delta) / grow), (0.0, 1.0)]
        expected = least_total_by_program(right, tried, canaries, mass, lines)
        level = ApproximateCurve(epsilon, delta).level
        found = least_total(right, tried, canaries, mass, lambda a, of=level: min(of(a), 9.0))
        assert min(found, 1.0) == pytest.approx(min(expected, 1.0), abs=1e-6)


def powers(first, second):
    """(level, power) of the best tests of `second` against `first`, by Neyman–Pearson."""
    order = sorted(range(len(first)), key=lambda o: -(second[o] / max(first[o], 1e-300)))
    levels, tops = (np.cumsum([row[o] for o in order]) for row in (first, second))
    return [(0.0, 0.0), *zip(levels, tops, strict=True)]


class Enumerated:
    """The smallest concave bound on the power of every test of one coin of a finite mechanism."""

    def __init__(self, table, coins: int) -> None:
        worlds = list(itertools.product((0, 1), repeat=coins))
        points = {(0.0, 0.0), (1.0, 1.0)}
        for world in worlds:
            for i in range(coins):
                other = (*world[:i], 1 - world[i], *world[i + 1 :])
                points |= set(powers(table[world], table[other]))
        self.hull: list[tuple[float, float]] = []
        for point in sorted(points):
            while len(self.hull) > 1 and self._below(self.hull[-2], self.hull[-1], point):
                self.hull.pop()
            self.hull.append(point)

    @staticmethod
    def _below(one, two, three) -> bool:
        turn = (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])
        return turn >= 0

    def level(self, power: float) -> float:
        """Down the hull, by hand."""
        if power <= max(y for x, y in self.hull if x == self.hull[0][0]):
            return 0.0
        for (x0, y0), (x1, y1) in itertools.pairwise(self.hull):
            if y0 <= power <= y1 and y1 > y0:
                return max(0.0, x0 + (x1 - x0) * (power - y0) / (y1 - y0) - 1e-12)
        return 1.0


def mechanisms(rng, coins: int, outputs: int):
    """Random rows, rows that are mostly alike, and one that rarely shows everything."""
    worlds = list(itertools.product((0, 1), repeat=coins))
    yield {world: rng.dirichlet(np.ones(outputs)) for world in worlds}
    base = rng.dirichlet(np.ones(outputs))
    yield {world: 0.8 * base + 0.2 * rng.dirichlet(np.ones(outputs)) for world in worlds}
    shown = {}
    for place, world in enumerate(worlds):
        row = np.full(len(worlds), 0.9 / len(worlds))
        row[place] += 0.1
        shown[world] = row
    yield shown


@cases(12, 300)
def test_no_adversary_beats_the_recursion_on_mechanisms_that_can_be_enumerated(count):
    rng = np.random.default_rng(5)
    for _ in range(count):
        coins = int(rng.integers(2, 4))
        for table in mechanisms(rng, coins, 8):
            curve = Enumerated(table, coins)
            outputs = len(next(iter(table.values())))
            tried = int(rng.integers(1, coins + 1))
            for side in (BOTH, IN, OUT):
                _check_adversary(rng, table, curve, coins, outputs, tried, side)


def _check_adversary(rng, table, curve, coins, outputs, tried, side):
    rate = 0.5 if side == BOTH else float(rng.choice([0.5, 0.3, 0.7]))
    words = {BOTH: (0, 1), IN: (1,), OUT: (0,)}[side]
    likely = {world: math.prod(rate if coin else 1 - rate for coin in world) for world in table}
    chances = np.zeros(tried + 1)
    for output in range(outputs):
        chosen = list(
            itertools.product(
                itertools.combinations(range(coins), tried),
                [*itertools.product(words, repeat=tried)],
            )
        )

        # The best guess for the event that all are right, or any guess.
        def gain(guess, output=output):
            return sum(
                likely[world] * table[world][output]
                for world in table
                if all(world[i] == v for i, v in zip(*guess, strict=True))
            )

        who, said = (
            max(chosen, key=gain) if rng.random() < 0.8 else chosen[rng.integers(len(chosen))]
        )
        for world in table:
            right = sum(world[i] == v for i, v in zip(who, said, strict=True))
            chances[right] += likely[world] * table[world][output]
    for right in range(1, tried + 1):
        truth = float(chances[right:].sum())
        test = CurveTest(right, tried, coins, side, (rate, rate))
        assert not test.refutes(curve, truth * (1 - 1e-9))


def test_the_recursion_refutes_a_curve_that_is_a_little_too_private():
    """All mass used: "show everything with probability τ" reaches the bound of its own curve."""
    coins, tau = 3, 0.2
    table = {}
    for place, world in enumerate(itertools.product((0, 1), repeat=coins)):
        table[world] = np.full(9, 0.0)
        table[world][place], table[world][8] = tau, 1 - tau
    curve = Enumerated(table, coins)
    test = CurveTest(coins, coins, coins, BOTH, (0.5, 0.5))
    truth = tau + (1 - tau) / 8
    assert not test.refutes(curve, truth)
    assert test.refutes(ApproximateCurve(0.0, tau / 2), truth)


def gaussian_run(rng, mu, count, rate=0.5):
    coins = rng.random(count) < rate
    return coins, mu * coins + rng.normal(size=count)


@pytest.mark.parametrize("kind", some(["smooth", "ties", "few", "rare", "shown at once"], 2))
@cases(12, 1000)
def test_bounds_are_false_as_rarely_as_stated(kind, count):
    rng, false = np.random.default_rng(), 0
    for _ in range(count):
        size, rate, mu = (30 if kind == "few" else 150), (0.2 if kind == "rare" else 0.5), 0.3
        coins, told = gaussian_run(rng, mu, size, rate)
        if kind == "ties":
            told = np.round(told)
        if kind == "shown at once":  # all canaries at once, as rarely as the curve allows
            tell = float(ndtr(mu / 2) - ndtr(-mu / 2))  # the total variation, a δ at ε = 0
            told = coins * 1.0 if rng.random() < tell else rng.normal(size=size)
            if wi.audit.curve_run(coins, told, rate=rate, known_rate=True).refutes(
                ApproximateCurve(0.0, tell)
            ):
                false += 1
            continue
        found = wi.audit.curve_run(coins, told, rate=rate, known_rate=True)
        false += found.mu > mu
    assert false <= most_alarms(count)


def test_a_gaussian_run_shows_most_of_what_theory_allows():
    found = wi.audit.curve_run(*gaussian_run(np.random.default_rng(1), 4.0, 1000), known_rate=True)
    assert 8.3 < found.epsilon(1e-5) < GaussianCurve(4.0).epsilon(1e-5)
    assert found.refutes(GaussianCurve(found.mu * 0.99))
    assert not found.refutes(GaussianCurve(found.mu * 1.01))
    assert found.refutes(lambda x: ndtr(ndtri(1 - x) - 0.5))
    assert not found.refutes(lambda x: ndtr(ndtri(1 - x) - 4))
    assert found.refutes(ApproximateCurve(3, 1e-5)) and not found.refutes(ApproximateCurve(20))
    assert found.to_dict()["guesses"]["right"] > 0
    less = wi.audit.curve_run(*gaussian_run(np.random.default_rng(1), 4.0, 1000))
    assert 0 < less.mu < found.mu  # the interval of the rate has its price


def test_curves_are_what_they_say():
    for mu, epsilon in ((1.0, 4.378), (4.0, 24.38)):  # by the formula of Balle and Wang
        assert GaussianCurve(mu).epsilon(1e-5) == pytest.approx(epsilon, abs=0.01)
    assert GaussianCurve(0).epsilon(0) == 0 and GaussianCurve(1).epsilon(0) == math.inf
    drawn = FunctionCurve(lambda x: float(ndtr(ndtri(1 - x) - 1)))
    for power in (0.01, 0.3, 0.9, 0.999):
        assert drawn.level(power) == pytest.approx(GaussianCurve(1).level(power), abs=1e-6)
        for epsilon, delta in ((0.0, 0.1), (1.0, 0.0), (2.0, 0.01)):
            x = ApproximateCurve(epsilon, delta).level(power)
            grow = math.exp(epsilon)
            top = min(1.0, delta + grow * x, 1 - (1 - delta - x) / grow)
            assert top == pytest.approx(max(power, top if x == 0 else 0), abs=1e-8)


@pytest.mark.parametrize(
    "curve", [3, lambda x: x, lambda x: 1 - x * x, lambda x: "?", lambda x: 2.0]
)
def test_what_is_no_curve_is_refused(curve):
    found = wi.audit.curve_run(*gaussian_run(np.random.default_rng(1), 1.0, 40), known_rate=True)
    with pytest.raises(InvalidInput, check=about("curve")):
        found.refutes(curve)


def test_several_canaries_a_person_count_as_one_coin():
    rng = np.random.default_rng(2)
    coins = rng.random(300) < 0.5
    people = np.repeat(np.arange(300), 4)
    told = coins[people] * 0.8 + rng.normal(size=1200)
    together = wi.audit.one_run(coins[people], told, people=people, known_rate=True)
    sums = told.reshape(300, 4).sum(axis=1)
    assert together == wi.audit.one_run(coins, sums, known_rate=True)
    assert together.canaries == 300
    assert together.epsilon > wi.audit.one_run(coins, told[::4], known_rate=True).epsilon
    assert wi.audit.curve_run(coins[people], told, people=people, known_rate=True).canaries == 300
    with pytest.raises(InvalidInput, check=about("included", 300)):
        wi.audit.one_run(np.tile([1, 0, 1, 0], 300), told, people=people)
    with pytest.raises(InvalidInput, check=about("people")):
        wi.audit.one_run(coins[people], told, people=people[:-1])
    with pytest.raises(InvalidInput, check=about("scores")):
        wi.audit.one_run(coins[people], [math.inf, -math.inf, *told[2:]], people=people)


def test_a_known_rate_costs_nothing_and_is_checked():
    coins, told = gaussian_run(np.random.default_rng(1), 1.0, 1000, 0.3)
    known = wi.audit.one_run(coins, told, rate=0.3, known_rate=True)
    assert known.rates == (0.3, 0.3)
    assert known.log_ratio > wi.audit.one_run(coins, told, rate=0.3).log_ratio
    with pytest.raises(InvalidInput, check=about("included")):
        wi.audit.one_run(coins, told, known_rate=True)
    with pytest.raises(InvalidInput, check=about("known_rate", "yes")):
        wi.audit.one_run(coins, told, known_rate="yes")
