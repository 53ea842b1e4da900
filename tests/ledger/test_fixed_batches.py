"""Why a batch that was chosen by what was seen is paid in pure ε or in ρ (F35)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import pytest

import whosin as wi
from whosin.errors import BudgetRefused
from whosin.ledger import Cost, Spend
from whosin.ledger.budget import Budget
from whosin.ledger.encoding import EPSILON_UNITS

Law = dict[object, Fraction]


def excess(one: Law, other: Law, epsilon: Fraction) -> Fraction:
    """δ at e^ε given as a ratio: Σ (P − ratio·Q)⁺."""
    outcomes = one.keys() | other.keys()
    zero = Fraction(0)
    return sum((max(zero, one.get(x, zero) - epsilon * other.get(x, zero)) for x in outcomes), zero)


def response(ratio: Fraction) -> tuple[Law, Law]:
    """Randomised response with this likelihood ratio, under two neighbours."""
    high, low = ratio / (1 + ratio), 1 / (1 + ratio)
    return {"yes": high, "no": low}, {"yes": low, "no": high}


def failing(delta: Fraction) -> tuple[Law, Law]:
    """(0, δ)-DP, and nothing better: with probability δ it says which neighbour it is."""
    rest = 1 - delta
    return {"nothing": rest, "first": delta}, {"nothing": rest, "second": delta}


def test_both_branches_may_be_within_what_their_choice_is_not() -> None:
    ratio = Fraction(math.exp(2))
    first, delta = response(Fraction(3)), Fraction(3, 100)
    seconds = {"yes": response(Fraction(math.exp(0.958))), "no": failing(delta)}

    def joint(branch: Callable[[object], tuple[Law, Law]]) -> tuple[Law, Law]:
        def both(side: int) -> Law:
            law = first[side]
            return {(x, y): law[x] * p for x in law for y, p in branch(x)[side].items()}

        return both(0), both(1)

    fixed = [joint(lambda _, kept=each: kept) for each in seconds.values()]  # type: ignore[misc]
    for pair, order in product(fixed, (1, -1)):
        assert excess(*pair[::order], ratio) <= delta  # each batch, if it was fixed: (2, .03)
    adaptive = joint(lambda seen: seconds[str(seen)])
    found = max(excess(*adaptive[::order], ratio) for order in (1, -1))
    assert float(found) == pytest.approx(0.0375, abs=2e-4)
    assert found > delta


@pytest.mark.parametrize("reserve", [0, "1.1", "1.9"])
def test_the_ledger_does_not_take_them_for_what_fixed_batches_are(tmp_path, reserve) -> None:
    plan = wi.calibrate(wi.Epsilon(2.0), wi.families.Independent(), delta=0.03, reserve=reserve)
    first, rest = (
        Spend({"query": name}, {"add-remove": cost})
        for name, cost in (
            ("first", Cost.pure(math.log(3))),
            ("rest", Cost.pure("0.958")),
        )
    )
    leaks = Spend({"query": "leaks"}, {"add-remove": Cost.pure(0, "0.03")})
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as ledger:
        ledger.register("d", plan)
        ledger.debit("d", "1", first)
        for each in (rest, leaks):
            with pytest.raises(BudgetRefused):
                ledger.debit("d", "2", each)
        assert ledger.budget_state("d").debits == 1


def batch_delta(count: int, each: float, epsilon: float) -> float:
    """The exact δ at ε of a fixed batch of randomised responses, which are the pairs that dominate
    geometric noise on counts: the number of likelier answers is binomial."""
    high = 1 / (1 + math.exp(-each))
    found = 0.0
    for likelier in range(count + 1):
        loss = (2 * likelier - count) * each
        if loss > epsilon:
            chance = math.comb(count, likelier) * high**likelier * (1 - high) ** (count - likelier)
            found += chance * -math.expm1(epsilon - loss)
    return found


def test_what_a_fixed_batch_would_gain_gaussian_noise_has() -> None:
    """Standard deviations of counts within (1, 10⁻⁶): of a batch as one dominating pair, against
    what the ledger takes of anyone: pure ε, ρ of Laplace noise, ρ of Gaussian noise."""
    delta = 1e-6
    rho = Budget.of(wi.calibrate(wi.Epsilon(1), delta=delta)).rho / EPSILON_UNITS
    gains = {}
    for count in range(1, 101):
        low, high = 1 / count, 3.0
        for _ in range(40):
            middle = (low + high) / 2
            within = batch_delta(count, middle, 1) <= delta
            low, high = (middle, high) if within else (low, middle)
        laplace = min(math.sqrt(2) * count, math.sqrt(count / rho))
        gaussian = math.sqrt(count / (2 * rho))
        batch = math.sqrt(2) / low
        gains[count] = 1 - batch / laplace, 1 - batch / gaussian, 1 - gaussian / laplace
    assert gains[10][0] < 0.002 and 0.11 < gains[50][0] < 0.125
    assert gains[50][2] == pytest.approx(1 - math.sqrt(0.5), abs=1e-9)
    assert max(min(of_laplace, of_gaussian) for of_laplace, of_gaussian, _ in gains.values()) < 0.03
