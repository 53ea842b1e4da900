"""A reserve of pure ε beside Gaussian noise (F35): adaptive joint channels, enumerated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import release_oracle as oracle
import whosin as wi
from refusals import refused
from reserve_checks import PLAN, ask, check_reserve
from whosin import release
from whosin.calibration import Plan
from whosin.ledger import Cost, encoding
from whosin.ledger.budget import (
    Budget,
    affordable_epsilon,
    conversion_delta,
    fixed_order,
    price_epsilon,
    price_spend,
)
from whosin.ledger.encoding import EPSILON_UNITS, INFINITE_UNITS, ZERO_COST
from whosin.ledger.registry import PeopleBudget

Law = tuple[Fraction, ...]
Choice = tuple[Cost, Law, Law]


def response(epsilon: Fraction) -> tuple[Cost, Law, Law]:
    """Randomised response."""
    high = Fraction(1 / (1 + math.exp(-epsilon)))
    return Cost.pure(epsilon), (high, 1 - high), (1 - high, high)


def noisy_bit(square: int) -> tuple[Cost, Law, Law]:
    """A bit with discrete Gaussian noise, its answer cut to −1..2."""
    weights = {x: Fraction(math.exp(-x * x / (2 * square))) for x in range(-40, 41)}
    whole = sum(weights.values())
    laws = []
    for bit in (0, 1):
        law = [Fraction(0)] * 4
        for x, weight in weights.items():
            law[min(max(x + bit, -1), 2) + 1] += weight / whole
        laws.append(tuple(law))
    return Cost.gaussian(Fraction(1, 2 * square)), laws[0], laws[1]


def failing(delta: Fraction) -> tuple[Cost, Law, Law]:
    """(0, δ)-DP, and nothing better."""
    law, zero = (1 - delta, delta), Fraction(0)
    return Cost.pure(0, delta), (*law, zero), (law[0], zero, delta)


def price(choices: Sequence[Choice], plan: Plan, factor: Fraction = Fraction(1)) -> list[Choice]:
    """The choices at what a plan asks for them; the ρ of all, but for a factor."""
    result = []
    for cost, one, other in choices:
        priced = price_spend(ask(cost), plan).cost("add-remove")
        result.append((replace(priced, rho=math.ceil(priced.rho * factor)), one, other))
    return result


def worst_delta(choices: Sequence[Choice], plan: Plan, depth: int) -> float:
    """The largest δ at the plan's ε of whoever chooses each question by the answers before, within
    what the budget holds."""
    budget, ratio = Budget.of(plan), Fraction(math.exp(plan.epsilon))

    @cache
    def best(spent: Cost, left: int, p: Fraction, q: Fraction) -> Fraction:
        found = max(Fraction(0), p - ratio * q)
        for cost, one, other in choices if left else ():
            if budget.holds(after := spent + cost):
                for pair in ((one, other), (other, one)):
                    moved = zip(*pair, strict=True)
                    found = max(found, sum(best(after, left - 1, p * a, q * b) for a, b in moved))
        return found

    return float(best(ZERO_COST, depth, Fraction(1), Fraction(1)))


@pytest.mark.parametrize(
    ("epsilon", "delta", "reserve"),
    [("1", "0.1", "0.4"), ("2", "0.3", "1"), ("1.5", "0.05", "0.6"), ("3", "0.02", "1.5")],
)
def test_no_adaptive_choice_exceeds_the_promise(epsilon: str, delta: str, reserve: str) -> None:
    plan = wi.calibrate(wi.Epsilon(epsilon), delta=float(delta), reserve=reserve)
    kept = Fraction(reserve)
    choices = [
        *map(response, (kept, kept / 2, Fraction(epsilon) * 4 / 5)),
        *map(noisy_bit, (4, 12)),
        failing(Fraction(delta) / 4),
    ]
    found = worst_delta(price(choices, plan), plan, 4)
    assert float(delta) / 4 * 0.999 <= found <= float(delta)
    # Costs that are seven tenths of these, and so a larger reserve, are refuted.
    assert worst_delta(price(choices, plan, Fraction(7, 10)), plan, 4) > float(delta)


def test_a_cost_is_the_divergence_at_the_order_and_no_less() -> None:
    plan = wi.calibrate(wi.Epsilon(2), delta=0.03, reserve=1)
    order = float(fixed_order(plan) or 0)

    def worst_moment(choices: Sequence[Choice], left: int) -> float:
        """The largest E_Q[(P/Q)^α] of adaptive choices within some ρ."""
        found = 1.0
        for cost, one, other in choices:
            if cost.rho <= left:
                rest = worst_moment(choices, left - cost.rho)
                for p, q in ((one, other), (other, one)):
                    pairs = [(float(a), float(b)) for a, b in zip(p, q, strict=True)]
                    found = max(found, rest * sum(b * (a / b) ** order for a, b in pairs))
        return found

    kinds = [response(Fraction(1)), response(Fraction(1, 2)), noisy_bit(4)]
    for share, factor in ((Fraction(1), 1.0), (Fraction(99, 100), 0.99)):
        choices = price(kinds, plan, share)
        for left in (choices[0][0].rho, choices[0][0].rho + choices[1][0].rho, 2 * 10**11):
            allowed = math.exp((order - 1) * order * left / EPSILON_UNITS)
            refuted = worst_moment(choices, left) > allowed * (1 + 1e-9)
            assert refuted == (factor < 1 and left != 2 * 10**11)


def test_a_budget_with_a_reserve_holds_it_and_no_more(tmp_path: Path) -> None:
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as ledger:
        check_reserve(ledger)


def test_the_limit_is_proved_and_a_larger_one_is_not() -> None:
    budget = Budget.of(PLAN)
    assert budget.proved(PLAN) and not replace(budget, rho=budget.rho + 3).proved(PLAN)
    order, delta = fixed_order(PLAN) or Fraction(1), 0.75e-6
    level = float(order) * budget.rho / EPSILON_UNITS
    excess = (-math.log(delta) - math.log(order)) / (float(order) - 1) + math.log1p(-1 / order)
    assert level + excess == pytest.approx(1, abs=1e-9)
    limit = encoding.concentrated_limit(encoding.EPSILON_UNITS, conversion_delta(PLAN), order)
    assert 0 <= limit - budget.rho < 10
    plain = Budget.of(wi.calibrate(wi.Epsilon(1), delta=1e-6))
    assert not budget.proved(wi.calibrate(wi.Epsilon(1), delta=1e-6)) or budget.rho < plain.rho


def test_prices_and_their_inverse() -> None:
    plain = replace(PLAN, reserve=0.0)
    assert price_epsilon(3 * 10**11, plain) == encoding.rho_from_epsilon(3 * 10**11)
    last = 0
    for epsilon in (1, 10**6, 10**9, 10**10, 10**11, 3 * 10**11, 10**12):
        cost = price_epsilon(epsilon, PLAN)
        assert last <= cost <= encoding.rho_from_epsilon(epsilon)
        assert price_epsilon(affordable_epsilon(cost, PLAN), PLAN) <= cost
        assert affordable_epsilon(cost, PLAN) >= epsilon
        last = cost
    # A level that is no ε of differential privacy has no ρ, and keeps none.
    spend = ask(Cost(10**11, INFINITE_UNITS))
    assert price_spend(spend, PLAN) == spend and price_spend(ask(Cost.pure(1)), plain).costs


def test_the_budget_is_promised_and_pure_answers_report_their_sum(
    tmp_path: Path,
) -> None:
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as ledger:
        ledger.register("d", PLAN)
        ledger.debit("d", "pure", ask(Cost.pure("0.2")))
        state = ledger.budget_state("d")
        assert (state.epsilon, state.reading, state.certain) == (0.2, "pure", True)
        ledger.debit("d", "gaussian", ask(Cost.gaussian("0.001")))
        state = ledger.budget_state("d")
        assert (state.epsilon, state.reading, state.certain) == (1.0, "promised", False)
        assert 0.3 < state.remaining < 0.8  # as much as fits beside, to the unit
        ledger.register("plain", wi.calibrate(wi.Epsilon(1), delta=1e-6))
        ledger.debit("plain", "gaussian", ask(Cost.gaussian("0.001")))
        together = PeopleBudget((state, ledger.budget_state("plain")), ())
        assert (together.epsilon, together.certain) == (2.0, False)  # both keep what they promise
        ledger.debit("d", "all", ask(Cost(state.left, encoding.rho_from_epsilon(state.left))))
        assert ledger.budget_state("d").left < 10**6


def test_a_plan_keeps_its_reserve(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    PLAN.save(path)
    assert wi.Plan.load(path) == PLAN and PLAN.to_dict()["reserve"] == 0.3
    assert "reserve" not in replace(PLAN, reserve=0.0).to_dict()
    said = wi.calibrate(epsilon=1, delta=1e-6, reserve="0.3")
    assert said == PLAN


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 1, "reserve": 0.3},
        {"epsilon": 1, "delta": 1e-6, "reserve": 1},
        {"epsilon": 1, "delta": 1e-6, "reserve": -0.1},
        {"epsilon": 1, "delta": 1e-6, "reserve": "much"},
        {"posterior": 0.6, "prior": (0.1, 0.5), "known": 5, "entities": 50}
        | {"delta": 1e-6, "reserve": 0.01},
    ],
)
def test_bad_reserves_are_one_sentence(given: dict[str, Any]) -> None:
    with refused("reserve") as caught:
        wi.calibrate(**given)
    assert ". " not in str(caught.value)


@pytest.mark.parametrize("own", ["0", "0.3", "0.7"])
def test_a_session_of_any_plan_pays_what_the_dataset_asks(tmp_path: Path, own: str) -> None:
    """At a higher order pure answers cost less: a session's own reserve is not the dataset's."""
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as ledger:
        ledger.register("d", PLAN)
        plan = wi.calibrate(wi.Epsilon(1), delta=1e-6, reserve=own)
        table = oracle.table({"who": ["a", "b"], "x": [1.0, 2.0]}, {"x": (0, 5)})
        asked = [{"share": "1/4"}, {"share": "1/4", "noise": "gaussian"}, {"share": "1/10"}]
        for number, options in enumerate(asked):
            with wi.Session(table, plan, ledger, dataset="d", share=options["share"]) as session:
                session.ask(release.Count(where=f"x > {number}"), **options)
            if not number:
                spent = ledger.budget_state("d").spent
                assert spent == Cost(25 * 10**10, price_epsilon(25 * 10**10, PLAN))
        state = ledger.budget_state("d")
        assert state.reading == "promised" and state.debits == 3
