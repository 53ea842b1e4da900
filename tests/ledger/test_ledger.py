"""The ledger: exact sums, refusals, retries, the composition numbers, and a history that shows
every change."""

from __future__ import annotations

import json
import math
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from amounts import cases, some
from documents_shown import section_text
from refusals import refused
from suspending_checks import check_forking
from whosin import ledger as books
from whosin.errors import BrokenHistory, BudgetRefused, InvalidInput, UnknownName
from whosin.ledger import Cost, Spend, encoding, verify
from whosin.ledger.budget import Budget, best_accounting, describe_promise
from whosin.ledger.store import format_moment
from whosin.report import card

ONE = encoding.EPSILON_UNITS
PLAIN = wi.calibrate(wi.Epsilon(1))
BOUNDED = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"))
FAILING = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), delta=1e-6)
SIZED = wi.calibrate(wi.Gamma(2), wi.families.FixedSize())
UNCERTAIN = wi.calibrate(wi.Gamma(2), wi.families.AtMostKnown(3, 0.2, 0.8))


def pure(epsilon: object, delta: object = 0, **more) -> Spend:
    return Spend({"query": "count"}, {"add-remove": Cost.pure(epsilon, delta)}, **more)


def gaussian(rho: object, delta: object = 0) -> Spend:
    return Spend({"query": "sum"}, {"add-remove": Cost.gaussian(rho, delta)}, "gaussian")


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tester") as opened:
        yield opened


# Composition


def brute_epsilon(rho: float, delta: float) -> float:
    """The conversion of Canonne, Kamath and Steinke, by trying very many orders."""
    import numpy as np

    a = 1 + np.exp(np.linspace(-12, 22, 40_001))
    found = a * rho + (math.log(1 / delta) - np.log(a)) / (a - 1) + np.log1p(-1 / a)
    return float(found.min())


@pytest.mark.parametrize("rho", some([1e-9, 1e-4, 0.01, 0.1, 1, 30], 3))
@pytest.mark.parametrize("delta", some([1e-12, 1e-6, 1e-2], 2))
def test_the_conversion_is_safe_and_the_best_over_orders(rho, delta):
    found = encoding.epsilon_of(round(rho * ONE), Fraction(delta)) / ONE
    assert found == pytest.approx(max(0, brute_epsilon(rho, delta)), rel=1e-6, abs=2e-12)
    if found == 0:  # so little that it is within δ alone
        return
    back = encoding.concentrated_limit(round(found * ONE), Fraction(delta)) / ONE
    assert back == pytest.approx(rho, rel=1e-6, abs=2e-12)


@pytest.mark.parametrize(("rho", "delta"), [(0.05, 1e-6), (0.5, 1e-8), (2, 1e-5)])
def test_the_conversion_agrees_with_dp_accounting(rho, delta):
    from dp_accounting.rdp import rdp_privacy_accountant

    orders = [1 + math.exp(x / 200) for x in range(-1000, 1600)]
    theirs, _ = rdp_privacy_accountant.compute_epsilon(orders, [a * rho for a in orders], delta)
    ours = encoding.epsilon_of(round(rho * ONE), Fraction(delta)) / ONE
    assert ours == pytest.approx(float(theirs), rel=1e-4) and ours >= float(theirs) * (1 - 1e-4)


@given(st.floats(1e-6, 5), st.floats(1e-12, 0.1))
def test_the_conversion_is_above_the_exact_profile_of_gaussian_noise(rho, delta):
    """ρ-zCDP of Gaussian noise promises no more than its exact δ(ε) (Balle and Wang 2018)."""
    from scipy.special import log_ndtr

    epsilon = encoding.epsilon_of(math.ceil(rho * ONE), Fraction(delta)) / ONE
    sigma = 1 / math.sqrt(2 * rho)
    above, below = (
        log_ndtr(1 / (2 * sigma) - epsilon * sigma),
        log_ndtr(-1 / (2 * sigma) - epsilon * sigma),
    )
    assert math.exp(above) - math.exp(min(epsilon + below, 0)) <= delta * (1 + 1e-9) + 1e-15


@given(st.integers(1, 10**15), st.integers(1, 10**15))
def test_levels_are_fixed_in_advance_and_cover(rho, budget):
    rho = min(rho, budget)
    number, end = encoding.filter_level(rho, budget)
    assert rho <= end <= budget
    assert end**4 * 2**number <= budget**4 < (end + 1) ** 4 * 2**number
    lower = math.isqrt(math.isqrt(budget**4 >> (number + 1)))
    assert lower < rho or lower == end


def test_levels_use_no_more_than_their_share_of_delta():
    lower = sum(encoding.level_share(j) for j in range(1, 2000))
    assert encoding.level_share(0) + lower + Fraction(1, 4) <= 1  # a quarter: single answers
    assert lower > Fraction(1, 4) - Fraction(1, 1000)


class Analyst:
    """Every adaptive strategy of asking randomised responses with these ε, at once.

    The transcript's Σ (P − e^ε(transcript) Q)⁺ is a sum over its ends, so the worst strategy is
    found node by node: at each one stop, or ask the question with the worst continuation. What
    counts is how often each question was asked and how often it answered 1.
    """

    def __init__(self, levels: list[str], budget: Budget, shown) -> None:
        self.levels, self.budget, self.shown = levels, budget, shown
        self.prices = [Cost.pure(level) for level in levels]
        self.found: dict[tuple, float] = {}
        self.most = 0

    def worst(self, asked: tuple[int, ...] = (0, 0), ones: tuple[int, ...] = (0, 0)) -> float:
        """The largest value from here on, for one unit of Q."""
        if (asked, ones) not in self.found:
            spent = Cost(0, 0)
            for price, count in zip(self.prices, asked, strict=True):
                for _ in range(count):
                    spent += price
            self.most = max(self.most, spent.epsilon)
            net = sum(
                float(level) * (2 * one - count)
                for level, one, count in zip(self.levels, ones, asked, strict=True)
            )
            best = max(0.0, math.exp(net) - math.exp(self.shown(spent)))
            for place, level in enumerate(self.levels):
                if self.budget.holds(spent + self.prices[place]):
                    more = tuple(n + (i == place) for i, n in enumerate(asked))
                    one = tuple(n + (i == place) for i, n in enumerate(ones))
                    chance = 1 / (1 + math.exp(float(level)))  # Q of the answer 1
                    after = chance * self.worst(more, one) + (1 - chance) * self.worst(more, ones)
                    best = max(best, after)
            self.found[asked, ones] = best
        return self.found[asked, ones]


TOTAL = replace(PLAIN, delta=0.2, dp_delta=0.1)


@pytest.mark.parametrize("levels", some([["0.1", "0.3"], ["0.15", "0.5"]], 1))
def test_one_of_two_readings_is_enough_for_an_adaptive_analyst(levels):
    budget = Budget.of(TOTAL)
    analyst = Analyst(levels, budget, lambda spent: 1.0)
    assert 0 < analyst.worst() <= TOTAL.dp_delta
    assert analyst.most > budget.epsilon  # also where the pure reading had ended
    # Asking on without a budget is seen to break the promise.
    wide = replace(budget, rho=3 * budget.rho)
    assert Analyst(["0.3", "0.6"], wide, lambda spent: 1.0).worst() > TOTAL.dp_delta


def test_what_is_shown_may_be_read_at_any_time():
    """The ε shown at the moment that the analyst chose to stop, the worst for us."""
    budget = Budget.of(TOTAL)

    def shown(spent: Cost) -> float:
        return best_accounting(spent, budget, TOTAL)[0] / ONE

    analyst = Analyst(["0.1", "0.3"], budget, shown)
    assert 0 <= analyst.worst() <= TOTAL.dp_delta
    # A reading of half of what it should be is seen to fail.
    assert Analyst(["0.1", "0.3"], budget, lambda s: shown(s) / 2).worst() > TOTAL.dp_delta


# Costs and sums


@given(st.floats(0, 1000, allow_nan=False))
def test_costs_are_rounded_up_and_budgets_down(value):
    written = Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
    assert Fraction(encoding.cost_units(value, "x"), ONE) >= written
    assert Fraction(encoding.budget_units(value, "x"), ONE) <= written
    assert encoding.cost_units(value, "x") - encoding.budget_units(value, "x") <= 1


@given(st.integers(0, 10**18))
def test_pure_answers_in_concentrated_terms(epsilon):
    rho = encoding.rho_from_epsilon(epsilon)
    assert rho == encoding.INFINITE_UNITS or Fraction(rho, ONE) >= Fraction(epsilon, ONE) ** 2 / 2
    assert rho == encoding.INFINITE_UNITS or encoding.epsilon_from_rho(rho) >= epsilon
    assert encoding.rho_from_epsilon(encoding.epsilon_from_rho(min(epsilon, 10**17))) <= min(
        epsilon, 10**17
    )


CHARGES = st.one_of(
    st.tuples(st.just("pure"), st.fractions(0, "0.3"), st.sampled_from([0, 0, 0, 1e-9])),
    st.tuples(st.just("gaussian"), st.fractions(0, "0.002"), st.sampled_from([0, 0, 1e-9])),
)


@settings(max_examples=8, deadline=None)
@given(st.sampled_from([PLAIN, BOUNDED, FAILING]), st.lists(CHARGES, min_size=1, max_size=12))
def test_no_sequence_of_charges_exceeds_the_budget(tmp_path_factory, plan, spends):
    """By an exact recomputation from the rational costs, with the conversion by brute force."""
    path = tmp_path_factory.mktemp("sequence") / "ledger.db"
    with wi.Ledger(path, who="tester") as ledger:
        ledger.register("d", plan)
        epsilon, rho, delta = Fraction(0), Fraction(0), Fraction(0)
        for number, (kind, level, failing) in enumerate(spends):
            make = pure if kind == "pure" else gaussian
            try:
                before = ledger.budget_state("d")
                debit = ledger.debit("d", f"{number}", make(level, failing))
            except BudgetRefused:
                assert ledger.budget_state("d") == before
                continue
            assert debit.new and not ledger.debit("d", f"{number}", make(level, failing)).new
            epsilon += level if kind == "pure" else Fraction(10**9)
            rho += level**2 / 2 if kind == "pure" else level
            delta += Fraction(failing)
            total, failures = Fraction(plan.epsilon), Fraction(plan.dp_delta)
            assert delta <= failures / 4
            fits = epsilon <= total
            if not fits and rho:
                fits = brute_epsilon(float(rho), float(failures / 2)) <= plan.epsilon * (1 + 1e-9)
            assert fits or not rho
            budget_state = ledger.budget_state("d")
            assert Fraction(budget_state.spent.rho, ONE) >= rho
            assert budget_state.epsilon >= min(
                float(epsilon),
                brute_epsilon(float(rho), float(failures)) if rho and failures else 0,
            ) * (1 - 1e-9)
            assert budget_state.epsilon <= plan.epsilon
        verify(ledger, "d")


def test_ten_tenths_fit_exactly_when_they_are_tenths(ledger):
    ledger.register("d", PLAIN)
    for number in range(10):
        ledger.debit("d", f"{number}", pure("0.1"))
    assert ledger.budget_state("d").remaining == 0
    with pytest.raises(BudgetRefused, match="needs ε = 1e-12, and dataset 'd' has 0 left"):
        ledger.debit("d", "more", pure("1e-12"))


def test_a_hair_too_much_is_refused_with_all_its_digits(ledger):
    ledger.register("d", PLAIN)
    ledger.debit("d", "first", pure("0.9"))
    with pytest.raises(BudgetRefused, match=r"needs ε = 0\.100000000001, .* has 0\.1 left"):
        ledger.debit("d", "second", pure("0.100000000001"))
    assert ledger.debit("d", "third", pure(0.1)) is not None  # a tenth, as it is written


@pytest.mark.parametrize(
    "make",
    [
        lambda: Cost.pure("much"),
        lambda: Cost.pure(-1),
        lambda: Cost.pure(float("nan")),
        lambda: Cost.pure(1, 2),
        lambda: Cost.gaussian(None),
        lambda: Cost.gaussian(-0.1),
        lambda: Cost(-5, 0),
        lambda: Cost(0.5, 0),  # type: ignore[arg-type]
        lambda: Spend("count", {}),  # type: ignore[arg-type]
        lambda: Spend({"x": float("nan")}, {}),
        lambda: Spend({"x": object()}, {}),
        lambda: Spend({}, {"neighbours": Cost(1, 1)}),
        lambda: Spend({}, {"replace": 3}),  # type: ignore[dict-item]
        lambda: Spend({}, {}, guarantee=None),  # type: ignore[arg-type]
    ],
)
def test_costs_that_are_none(make):
    with pytest.raises(InvalidInput):
        make()


def test_costs_and_conversions_without_end():
    endless = encoding.INFINITE_UNITS
    assert Cost.pure(math.inf) == Cost(endless, endless)
    assert (Cost.pure(math.inf) + Cost.pure(5)).epsilon == endless
    assert encoding.epsilon_of(0, Fraction(0)) == 0
    assert encoding.epsilon_of(5, Fraction(0)) == endless
    assert encoding.epsilon_of(endless, Fraction(1, 2)) == endless
    assert encoding.concentrated_budget(ONE, Fraction(0)) == 0


# What was spent, in beliefs


def test_gaussian_answers_share_a_plan_with_a_delta(ledger):
    ledger.register("d", FAILING)
    total = ledger.budget_state("d").budget.rho
    part = Fraction(total // 10, ONE)
    parts = [Fraction(total // 100, ONE), *[part] * 9]
    for number, each in enumerate(parts):
        ledger.debit("d", f"{number}", gaussian(each))
        budget_state = ledger.budget_state("d")
        assert budget_state.reading == "concentrated" and budget_state.epsilon <= FAILING.epsilon
        if not number:  # the first spending reads small
            assert 0.1 * FAILING.epsilon < budget_state.epsilon < 0.15 * FAILING.epsilon
        # What was spent so far is read at a level fixed in advance, never below the plain reading.
        plain = encoding.epsilon_of(budget_state.spent.rho, Fraction(FAILING.dp_delta) / 2)
        assert plain <= budget_state.epsilon * ONE * (1 + 1e-9)
    with pytest.raises(BudgetRefused, match=r"ρ = .* is more than the .* left"):
        ledger.debit("d", "more", gaussian(part))
    with pytest.raises(BudgetRefused, match="needs ε"):
        ledger.admit("d", FAILING)
    assert ledger.admit("d", FAILING, resume=True).debits == 10
    left = total - ledger.budget_state("d").spent.rho
    ledger.debit("d", "all but dust", gaussian(Fraction(left - 2, ONE)))
    budget_state = ledger.budget_state("d")
    assert budget_state.remaining_rho > 0 == budget_state.spendable_rho
    # The pure reading has its whole ε left only in name: the answers were Gaussian.
    assert budget_state.spendable == 0 < budget_state.remaining
    with pytest.raises(BudgetRefused, match=r"ρ = 0.001 is more than the 0 left"):
        ledger.debit("d", "more", gaussian("0.001"))
    bound = wi.Posterior("0.6").ratio(Fraction("0.05"), Fraction("0.5"))
    assert ledger.budget_state("d").ratio <= float(bound) * (1 + 1e-9)
    assert ledger.budget_state("d").posterior("0.5") <= 0.6 + 1e-9


def test_many_small_pure_answers_are_cheaper_in_concentrated_terms(ledger):
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-3)
    ledger.register("d", plan)
    total = ledger.budget_state("d").budget
    price = Fraction(plan.epsilon) / 100
    most = total.rho // encoding.rho_from_epsilon(encoding.cost_units(price, "x"))
    spends = [pure(price)] * most
    assert most > 100
    ledger.check("d", spends)
    with pytest.raises(BudgetRefused):
        ledger.check("d", [*spends, pure(price)])


@pytest.mark.parametrize(
    ("plan", "group"),
    [(BOUNDED, 1), (wi.calibrate(wi.Gamma(3), wi.families.Cliques(3)), 3)],
    ids=["one", "cliques"],
)
def test_ratios_and_posteriors_are_on_the_safe_side(ledger, plan, group):
    """Groups that come and go together count k times."""
    ledger.register("d", plan)
    before = ledger.budget_state("d")
    assert before.ratio == 1 and before.posterior("0.25") == 0.25
    ledger.debit("d", "first", pure("0.3"))
    budget_state, ratio = ledger.budget_state("d"), math.exp(0.3 * group)
    assert ratio <= budget_state.ratio * (1 + 1e-15) <= ratio * (1 + 1e-12)
    exact = ratio / (ratio + 1)
    assert exact <= budget_state.posterior("0.5") * (1 + 1e-15) <= exact * (1 + 1e-12)
    assert budget_state.certain and budget_state.remaining <= plan.epsilon - 0.3
    with pytest.raises(InvalidInput):
        budget_state.posterior(2)


def test_pure_answers_under_a_failing_plan_do_not_fail(ledger):
    ledger.register("d", FAILING)
    ledger.debit("d", "first", pure("0.001"))
    assert ledger.budget_state("d").certain
    assert not any("fail" in line for line in card.belief_lines(ledger.budget_state("d")))
    ledger.debit("d", "second", pure("0.001", "1e-9"))
    budget_state = ledger.budget_state("d")
    assert not budget_state.certain and budget_state.ratio > math.exp(0.002)
    assert any("fail" in line for line in card.belief_lines(budget_state))


def test_an_epsilon_with_a_delta_says_what_it_allows(ledger):
    """T18: beyond e^ε/(1 − δ/f) with probability at most f, for f = 10 δ."""
    ledger.register("d", wi.calibrate(wi.Epsilon(1), delta=1e-6))
    ledger.debit("d", "first", pure("0.5", "1e-7"))
    budget_state = ledger.budget_state("d")
    assert not budget_state.certain
    assert budget_state.ratio == pytest.approx(math.exp(budget_state.epsilon) * 10 / 9)
    told = " ".join(card.belief_lines(budget_state))
    assert "from 50.0% to at most" in told and "fail with probability 1e-05" in told
    ledger.register("all", wi.calibrate(wi.Epsilon(1), delta=0.2))
    ledger.debit("all", "first", pure("0.5", "1e-7"))
    assert math.isinf(ledger.budget_state("all").ratio)


def test_the_words_say_what_all_answers_allow(ledger):
    ledger.register("d", BOUNDED)
    assert "learned nothing" in " ".join(card.belief_lines(ledger.budget_state("d")))
    for number in range(4):
        ledger.debit("d", f"{number}", pure("0.1"))
    text = " ".join(card.belief_lines(ledger.budget_state("d")))
    assert "from 5.0% to at most 7.3%" in text and "from 50.0% to at most 59.9%" in text


# Refusals


def test_a_budget_is_set_once(ledger):
    ledger.register("d", PLAIN)
    with refused("dataset", kind=BudgetRefused):
        ledger.register("d", BOUNDED)
    assert ledger.budget_state("d").plan == PLAIN


def test_a_session_fits_or_is_refused(ledger):
    assert ledger.admit("d", PLAIN).remaining == 1
    ledger.debit("d", "first", pure("0.5"))
    assert ledger.admit("d", wi.calibrate(wi.Epsilon("0.5"))).debits == 1
    with refused("share", kind=BudgetRefused):
        ledger.admit("d", PLAIN)
    assert ledger.admit("d", PLAIN, resume=True).debits == 1
    with pytest.raises(BudgetRefused, match="needs ε"):
        ledger.admit("d", wi.calibrate(wi.Epsilon("0.6")), resume=True)
    with refused("plan", kind=BudgetRefused):
        ledger.admit("d", SIZED)
    with pytest.raises(BudgetRefused, match="needs δ"):
        ledger.admit("d", wi.calibrate(wi.Epsilon("0.1"), delta=1e-6))
    with refused("plan", kind=BudgetRefused):
        ledger.admit("d", UNCERTAIN)
    assert ledger.budget_state("d").entries == 2


def test_noise_without_a_pure_level_needs_a_delta(ledger):
    ledger.register("d", PLAIN)
    with pytest.raises(BudgetRefused, match=r"no pure ε .* Gaussian noise needs one"):
        ledger.debit("d", "first", gaussian("0.001"))
    with pytest.raises(BudgetRefused, match="no ρ either"):
        ledger.debit("d", "first", Spend({}, {"replace": Cost.pure("0.1")}))
    with pytest.raises(BudgetRefused, match=r"needs δ = 1e-09, and dataset 'd' has 0 left"):
        ledger.debit("d", "first", pure("0.1", "1e-9"))
    assert ledger.budget_state("d").debits == 0


def test_a_release_of_its_own_comes_first_and_last(ledger):
    ledger.register("before", BOUNDED)
    ledger.debit("before", "first", pure("0.1"))
    alone = Spend({"query": "k-max"}, {}, "k-max", alone=True, promise=describe_promise(BOUNDED))
    with pytest.raises(BudgetRefused, match="does not compose"):
        ledger.debit("before", "second", alone)
    ledger.register("after", BOUNDED)
    with pytest.raises(BudgetRefused, match="does not compose"):
        ledger.check("after", [alone, pure("0.1")])
    assert ledger.answer("after", alone, lambda: "cat", "only") == "cat"
    budget_state = ledger.budget_state("after")
    assert (budget_state.state, budget_state.remaining) == ("complete", 0)
    assert "becomes at most 60.0% sure" in " ".join(card.belief_lines(budget_state))
    assert math.isinf(budget_state.ratio) and not budget_state.certain
    with refused("dataset", kind=BudgetRefused):
        ledger.debit("after", "second", pure("0.001"))
    assert ledger.answer("after", alone, lambda: "dog", "only") == "cat"
    verify(ledger, "after")
    closed = ledger.close("after")
    assert "becomes at most 60.0% sure" in " ".join(card.belief_lines(closed))
    verify(ledger, "after")
    # With a cost under the dataset's relation it has to fit like any other.
    ledger.register("costly", BOUNDED)
    with pytest.raises(BudgetRefused, match="needs ε"):
        ledger.debit("costly", "first", pure("0.5", alone=True))


def test_a_plan_that_does_not_add_allows_one_answer(ledger):
    ledger.register("d", UNCERTAIN)
    assert ledger.budget_state("d").budget.alone
    ledger.debit("d", "first", pure("0.01"))
    with refused("dataset", kind=BudgetRefused):
        ledger.debit("d", "second", pure("0.01"))
    assert card.budget_state_card(ledger.budget_state("d"))


def test_a_closed_dataset_answers_nothing_new(ledger):
    ledger.register("d", PLAIN)
    paid = ledger.debit("d", "first", pure("0.1"))
    assert ledger.close("d").state == "closed"
    for again in (lambda: ledger.close("d"), lambda: ledger.debit("d", "second", pure("0.1"))):
        with refused("dataset", kind=BudgetRefused):
            again()
    assert ledger.store(paid, 5) == 5  # what was paid for may still be answered
    verify(ledger, "d")


# Retries


def test_a_retry_neither_pays_nor_answers_twice(ledger):
    ledger.register("d", PLAIN)
    draws = []

    def draw():
        draws.append(len(draws))
        return {"count": len(draws)}

    first = ledger.answer("d", pure("0.6"), draw, "r")
    assert [ledger.answer("d", pure("0.6"), draw, "r") for _ in range(3)] == [first] * 3
    assert len(draws) == 1 and ledger.budget_state("d").debits == 1


def test_a_crash_before_the_answer_draws_once_under_the_same_debit(ledger):
    ledger.register("d", PLAIN)

    def fail():
        raise SystemExit("the power went")

    with pytest.raises(SystemExit):
        ledger.answer("d", pure("0.6"), fail, "r")
    assert verify(ledger, "d").unanswered == ("r",)
    assert ledger.answer("d", pure("0.6"), lambda: 7, "r") == 7
    assert ledger.budget_state("d").debits == 1 and verify(ledger, "d").unanswered == ()


def test_two_who_draw_at_once_show_one_answer(ledger):
    ledger.register("d", PLAIN)
    one, two = (ledger.debit("d", "r", pure("0.6")) for _ in range(2))
    assert (one.new, two.new) == (True, False)
    assert [ledger.store(two, "b"), ledger.store(one, "a")] == ["b", "b"]


@pytest.mark.parametrize(
    "other",
    [
        Spend({"query": "sum"}, {"add-remove": Cost.pure("0.6")}),
        pure("0.5"),
        pure("0.6", guarantee="another"),
        pure("0.6", alone=True),
    ],
)
def test_a_request_stands_for_one_question(ledger, other):
    ledger.register("d", PLAIN)
    ledger.answer("d", pure("0.6"), lambda: 7, "r")
    with refused("request", kind=BudgetRefused):
        ledger.answer("d", other, lambda: 8, "r")


def test_an_answer_that_is_not_json_is_not_shown(ledger):
    ledger.register("d", PLAIN)
    for answer in (float("nan"), object(), {1, 2}):
        with refused("answer"):
            ledger.answer("d", pure("0.1"), lambda answer=answer: answer, "r")
    assert ledger.answer("d", pure("0.1"), lambda: [1, None, "é"], "r") == [1, None, "é"]
    with refused("request", kind=BudgetRefused):
        ledger.store(books.Debit("d", "other", True, None), 1)


def test_questions_with_numbers_as_keys_verify(ledger):
    ledger.register("d", PLAIN)
    spend = Spend({"cells": {9: "a", 10: "b"}, "range": (0, 1)}, pure("0.1").costs)
    ledger.answer("d", spend, lambda: {10: 1, 9: 2}, "r")
    assert ledger.answer("d", spend, lambda: 0, "r") == {"9": 2, "10": 1}
    verify(ledger, "d")


# Names and addresses


@pytest.mark.parametrize("name", ["", " ", " d", "d\n", "a\tb", "\x1b[31m", "‮abc", None, 7])
def test_names_that_are_none(ledger, name):
    with pytest.raises(InvalidInput) as caught:
        ledger.register(name, PLAIN)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)
    assert ledger.datasets() == []


def test_names_of_every_kind(ledger):
    names = ["[red]x", "Ärzte 2026", "病院", "a" * 200, "'; drop table x; --", "%s {0}"]
    for name in names:
        ledger.register(name, PLAIN)
        assert verify(ledger, name).dataset == name
    assert ledger.datasets() == sorted(names)
    ledger.register("caf\u00e9", PLAIN)
    assert ledger.budget_state("cafe\u0301").dataset == "caf\u00e9"  # one name in two spellings
    with refused("dataset", 201):
        ledger.register("a" * 201, PLAIN)


def test_an_unknown_dataset(ledger):
    with refused("dataset"):
        ledger.budget_state("hospital")
    ledger.register("hospital", PLAIN)
    with pytest.raises(UnknownName, match="did you mean 'hospital'"):
        ledger.debit("hospitol", "r", pure("0.1"))


@pytest.mark.parametrize(
    "url",
    [
        None,
        3,
        "",
        "a\0b",
        "mysql://host/x",
        "sqlite://",
        "sqlite:///:memory:",
        "nothing://",
        "sqlite:///x.db?mode=ro",
        "postgresql://host:port/x",
        "://",
    ],
)
def test_addresses_that_are_none(url):
    with refused("ledger"):
        wi.Ledger(url)


def test_waiting_times_and_plans_that_are_none(tmp_path, ledger):
    for wait in (0, -1, float("nan"), "long", None):
        with refused("wait"):
            wi.Ledger(tmp_path / "x.db", wait=wait)
    for call in (ledger.register, ledger.admit):
        with refused("plan"):
            call("d", {"epsilon": 1})


def test_every_plan_survives(ledger):
    plans = [
        PLAIN,
        BOUNDED,
        FAILING,
        SIZED,
        UNCERTAIN,
        wi.calibrate(wi.Rho("0.1", 20)),
        wi.calibrate(wi.Gamma(2), wi.families.AtMostKnown(3, 0.2, 0.8), 1e-3, "count", 200),
        wi.calibrate(wi.Gain("0.2"), query=wi.calibration.PlannedQuery("sum", 0, 5, 2)),
    ]
    for number, plan in enumerate(plans):
        ledger.register(f"{number}", plan)
        assert ledger.budget_state(f"{number}").plan == plan
        verify(ledger, f"{number}")


# Files and connections


def test_the_pragmas_hold_on_every_connection(ledger):
    store = ledger._store
    seen = []

    def look(_):
        with store.reading() as connection:
            barrier.wait(300)
            names = ("journal_mode", "synchronous", "foreign_keys")
            seen.append([connection.execute(f"PRAGMA {n}").fetchone()[0] for n in names])

    barrier = threading.Barrier(7)
    with ThreadPoolExecutor(7) as pool:
        list(pool.map(look, range(7)))
    assert seen == [["wal", 2, 1]] * 7


def test_a_writer_locks_before_it_reads(ledger, tmp_path):
    other = sqlite3.connect(tmp_path / "ledger.db", timeout=0)
    with ledger._store.writing(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    with ledger._store.reading() as connection:
        assert connection.execute("SELECT count(*) FROM whosin_entries").fetchone() == (0,)
        other.execute("BEGIN IMMEDIATE")
    other.close()


def test_threads_share_a_ledger(ledger):
    ledger.register("d", PLAIN)
    outcomes = []

    def ask(worker):
        for number in range(5):
            try:
                ledger.answer("d", pure("0.05"), lambda: worker, f"{worker}/{number}")
                outcomes.append(True)
            except BudgetRefused:
                outcomes.append(False)

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(ask, range(20)))
    assert (outcomes.count(True), len(outcomes)) == (20, 100)
    verify(ledger, "d")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_opens_its_own_connections(ledger):
    check_forking(ledger)


# The history


def seeded(path: Path) -> str:
    """A ledger with some history; returns the head of its main dataset."""
    with wi.Ledger(path, who="tester") as ledger:
        ledger.register("d", FAILING)
        ledger.register("other", UNCERTAIN)
        for number in range(4):
            made = {"n": number}
            ledger.answer("d", pure("0.001", "1e-10"), made.copy, f"r{number}")
        ledger.debit("d", "unanswered", gaussian("1e-6"))
        ledger.answer("other", pure("0.01"), lambda: "x", "only")
        ledger.close("other")
        return ledger.budget_state("d").head


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    path = tmp_path_factory.mktemp("template") / "ledger.db"
    head = seeded(path)
    return path.read_bytes(), head


@pytest.fixture
def copy(template, tmp_path):
    def change(*statements: tuple[str, tuple]) -> Path:
        path = tmp_path / "copy.db"
        for old in tmp_path.glob("copy.db*"):
            old.unlink()
        path.write_bytes(template[0])
        base = sqlite3.connect(path)
        base.execute("PRAGMA synchronous = OFF")
        for statement, values in statements:
            assert base.execute(statement, values).rowcount > 0, statement
        base.commit()
        base.close()
        return path

    return change


def broken(path: Path, head: str | None = None) -> bool:
    with wi.Ledger(path, create=False) as ledger:
        try:
            for name in ("d", "other"):
                verify(ledger, name, head if name == "d" else None)
        except (BrokenHistory, UnknownName):
            return True
        return False


def cells() -> list[tuple[str, str]]:
    from whosin.ledger import entries

    tables = (entries.DATASETS_TABLE, entries.ENTRIES_TABLE, entries.ANSWERS_TABLE)
    return [(table, column) for table in tables for column in entries.TABLE_COLUMNS[table]]


def other_values(value: object) -> list[object]:
    """Changes of every kind: another number, another letter, another type, nothing."""
    if isinstance(value, int):
        return [value + 1, -value - 1, "many", None, float(value) + 0.5]
    if value is None:
        return ["r0", "", 0]
    text = str(value)
    swapped = text.replace("1", "2") if "1" in text else text + "1"
    return [text[:-1], swapped, text + " ", "{}", b"\xff", None]


@cases(2, 1000)
@pytest.mark.parametrize(("table", "column"), cells())
def test_every_change_of_every_cell_shows(copy, table, column, count):
    base = sqlite3.connect(copy())
    rows = base.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    base.close()
    seen = 0
    for rowid, value in rows[:: -(-len(rows) // count)]:
        for other in other_values(value):
            if other == value and type(other) is type(value):
                continue
            try:
                path = copy((f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, rowid)))
            except sqlite3.IntegrityError:
                continue  # the database itself refuses it
            base = sqlite3.connect(path)
            kept = base.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (rowid,))
            same = kept.fetchone()[0]
            base.close()
            if same == value and type(same) is type(value):
                continue  # the column's type brought it back
            seen += 1
            assert broken(path), (rowid, value, other)
    assert seen > 0


@pytest.mark.parametrize("table", ["whosin_entries", "whosin_answers", "whosin_datasets"])
def test_a_removed_row_shows(copy, table):
    base = sqlite3.connect(copy())
    rows = [row[0] for row in base.execute(f"SELECT rowid FROM {table}")]
    base.close()
    for rowid in rows:
        assert broken(copy((f"DELETE FROM {table} WHERE rowid = ?", (rowid,))))


def test_swapped_rows_show(copy):
    number = "UPDATE whosin_entries SET number = ? WHERE dataset = 'd' AND number = ?"
    assert broken(copy((number, (99, 2)), (number, (2, 4)), (number, (4, 99))))
    answer = "UPDATE whosin_answers SET request = ? WHERE dataset = 'd' AND request = ?"
    assert broken(copy((answer, ("x", "r0")), (answer, ("r0", "r1")), (answer, ("r1", "x"))))


def test_an_added_row_shows(copy):
    add = "INSERT INTO whosin_answers VALUES ('d', ?, '5')"
    assert broken(copy((add, ("never asked",))))
    assert broken(copy((add, ("unanswered",))))


def cut_tail(copy, template) -> Path:
    """Someone who knows the format removes the last entry and makes all sums fit."""
    path = copy(("DELETE FROM whosin_entries WHERE dataset = 'd' AND number = 10", ()))
    base = sqlite3.connect(path)
    query = "SELECT head, json_extract(body, '$.when') FROM whosin_entries WHERE dataset = 'd'"
    head, last = base.execute(query + " AND number = 9").fetchone()
    spent = Cost(0, 0)
    for _ in range(4):
        spent += Cost.pure("0.001", "1e-10")
    base.execute(
        "UPDATE whosin_datasets SET head = ?, last = ?, entries = 9, debits = 4, "
        "spent_epsilon = ?, spent_rho = ?, spent_delta = ? WHERE name = 'd'",
        (head, last, spent.epsilon, spent.rho, spent.delta),
    )
    base.commit()
    base.close()
    return path


def test_a_truncated_tail_shows_only_by_a_printed_head(copy, template):
    path = cut_tail(copy, template)
    assert not broken(path)
    assert broken(path, template[1])
    assert broken(path, template[1][:12].upper())


def test_an_old_head_is_found_in_a_longer_history(ledger):
    ledger.register("d", PLAIN)
    old = ledger.budget_state("d").head
    ledger.debit("d", "r", pure("0.1"))
    assert verify(ledger, "d", old).entries == 2
    with pytest.raises(BrokenHistory, match="does not run through"):
        verify(ledger, "d", "f" * 64)
    for wrong in ("abc", "not a digest", 7):
        with refused("head"):
            verify(ledger, "d", wrong)


@settings(max_examples=5, deadline=None)
@given(st.data())
def test_a_forged_history_that_overspends_shows(tmp_path_factory, data):
    """Someone rewrites a whole chain with more debits than the budget: the sums do not hold."""
    from whosin.ledger import encoding

    path = tmp_path_factory.mktemp("forged") / "ledger.db"
    with wi.Ledger(path, who="tester") as ledger:
        ledger.register("d", PLAIN)
        ledger.debit("d", "r", pure("0.9"))
        when = ledger.budget_state("d").last
    costs = data.draw(st.lists(st.integers(ONE // 5, ONE), min_size=1, max_size=3))
    base = sqlite3.connect(path)
    head, epsilon, rho = base.execute(
        "SELECT head, spent_epsilon, spent_rho FROM whosin_datasets"
    ).fetchone()
    for number, cost in enumerate(costs, 3):
        paid = Cost(cost, encoding.rho_from_epsilon(cost))
        body = {"who": "tester", "when": when, **Spend({}, {"add-remove": paid}).to_dict()}
        entry = {
            "dataset": "d",
            "number": number,
            "kind": "debit",
            "request": f"{number}",
            "body": body,
        }
        head, epsilon, rho = encoding.link_digest(head, entry), epsilon + cost, rho + paid.rho
        row = ("d", number, "debit", f"{number}", encoding.canonical_json(body), head)
        base.execute("INSERT INTO whosin_entries VALUES (?, ?, ?, ?, ?, ?)", row)
    base.execute(
        "UPDATE whosin_datasets SET head = ?, spent_epsilon = ?, spent_rho = ?, debits = ?, "
        "entries = ?",
        (head, epsilon, rho, 1 + len(costs), 2 + len(costs)),
    )
    base.commit()
    base.close()
    with wi.Ledger(path) as ledger, pytest.raises(BrokenHistory, match="more was spent"):
        verify(ledger, "d")


def test_entries_say_who_when_what_and_how_much(ledger):
    ledger.register("d", PLAIN)
    spend = Spend(
        {"query": "count"}, {"add-remove": Cost.pure("0.1"), "replace": Cost.pure("0.2")}, "pure"
    )
    ledger.answer("d", spend, lambda: 41, "r")
    registered, debit, answer = ledger.history("d")
    assert registered.body["plan"]["epsilon"] == 1 and registered.kind == "registered"
    assert (debit.body["who"], debit.body["guarantee"]) == ("tester", "pure")
    assert format_moment()[:4] == debit.body["when"][:4]
    assert debit.body["costs"]["replace"]["epsilon"] == ONE // 5
    assert debit.body["costs"]["add-remove"]["delta"] == 0
    assert answer.body["digest"] == books.encoding.digest_text("41")
    assert json.loads(json.dumps(answer.to_dict()))["head"] == ledger.budget_state("d").head


# What is looked up


def test_requests_are_found_by_how_they_begin(ledger):
    assert ledger.requests("d") == set()
    ledger.register("d", PLAIN)
    ledger.register("other", PLAIN)
    names = ["a/0", "a/1", "a", "a0", "A/0", "a/é", "a/\U0001f600", "b/0", "e\u0301/0"]
    for name in names:
        ledger.debit("d", name, pure("0.01"))
    ledger.debit("other", "a/7", pure("0.01"))
    ledger.answer("d", pure("0.01"), lambda: 1, "a/answered")
    assert ledger.requests("d", "a/") == {"a/0", "a/1", "a/é", "a/answered"} | {"a/\U0001f600"}
    assert ledger.requests("d", "a/", answered=True) == {"a/answered"}
    assert ledger.requests("d", "e\u0301/") == {"é/0"} == ledger.requests("d", "é/")
    assert len(ledger.requests("d")) == len(names) + 1
    assert ledger.requests("d", "a/%") == ledger.requests("d", "zzz") == set()


# The clock


@pytest.mark.parametrize("year", some(["2001", "2999"], 1))
def test_a_wrong_clock_stops_nobody(ledger, monkeypatch, year):
    """Entries are ordered by their numbers: one from the future blocks no debit and no close."""
    from whosin.ledger import store as ledger_store

    ledger.register("d", PLAIN)
    monkeypatch.setattr(ledger_store, "format_moment", lambda *_: f"{year}-01-01T00:00:00.000000Z")
    assert ledger.answer("d", pure("0.1"), lambda: 1, "r") == 1
    assert ledger.history("d")[1].body["when"].startswith(year)
    monkeypatch.undo()
    assert ledger.answer("d", pure("0.1"), lambda: 2, "s") == 2
    ledger.close("d")
    assert [entry.number for entry in ledger.history("d")] == [1, 2, 3, 4, 5, 6]
    assert verify(ledger, "d").debits == 2


def test_the_reading_of_a_history_is_the_better_one():
    budget = Budget.of(FAILING)
    small = Cost.pure("0.0001")
    assert best_accounting(small, budget, FAILING) == (small.epsilon, "pure")
    assert (
        best_accounting(Cost(encoding.INFINITE_UNITS, budget.rho), budget, FAILING)[1]
        == "concentrated"
    )
    assert (
        best_accounting(Cost(encoding.INFINITE_UNITS, budget.rho + 1), budget, FAILING)[0]
        == encoding.INFINITE_UNITS
    )


NOT_THESE = [None, 3, 1.5, "books.db", b"x", [1], {"a": 1}, object()]


@pytest.mark.parametrize("wrong", NOT_THESE, ids=lambda wrong: type(wrong).__name__)
def test_wrong_types_are_one_clear_message_and_cost_nothing(ledger, wrong):
    ledger.register("d", PLAIN)
    price, paid = pure("0.1"), books.Debit("d", "r", True, None)
    calls = {
        "draw must be a function": lambda: ledger.answer("d", price, wrong),
        "spends must be a list of one Spend": lambda: ledger.check("d", wrong),
        "spend must be a Spend": lambda: ledger.debit("d", "r", wrong),
        "debit must be a Debit": lambda: ledger.store(wrong, 1),
        "ledger must be a Ledger": lambda: verify(wrong, "d"),
        "cost must be a Cost": lambda: Cost(1, 1) + wrong,
    }
    if not isinstance(wrong, str):
        calls |= {
            "dataset must be": lambda: ledger.answer(wrong, price, lambda: 1),
            "request must be": lambda: ledger.store(replace(paid, request=wrong), 1),
            "relation must be": lambda: price.cost(wrong),
        }
    for message, call in calls.items():
        with pytest.raises(InvalidInput, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)
    assert ledger.budget_state("d").debits == 0


def test_a_batch_that_can_be_read_once_is_checked_whole(ledger):
    ledger.register("d", PLAIN)
    with pytest.raises(BudgetRefused, match=r"needs ε = 1.2"):
        ledger.check("d", (pure("0.4") for _ in range(3)))
    assert ledger.check("d", (pure("0.4") for _ in range(2))).debits == 0
    with refused("spends"):
        ledger.check("d", [pure("0.1"), None])


def test_dust_is_shown_as_nothing_and_can_still_be_spent_to_the_unit(ledger):
    ledger.register("d", PLAIN)
    ledger.debit("d", "most", pure("0.999999999998"))
    budget_state = ledger.budget_state("d")
    assert (budget_state.left, budget_state.spendable_units, budget_state.spendable) == (2, 0, 0.0)
    assert budget_state.to_dict()["remaining_epsilon"] == pytest.approx(2e-12)
    assert "Left: ε = 0." in section_text(card.budget_state_card(budget_state)).splitlines()
    with pytest.raises(BudgetRefused, match=r"needs ε = 0.3, and dataset 'd' has 0 left of"):
        ledger.debit("d", "more", pure("0.3"))
    with refused("share", kind=BudgetRefused):
        ledger.admit("d", PLAIN)
    with pytest.raises(BudgetRefused, match="needs ε = 3e-12, and dataset 'd' has 2e-12 left"):
        ledger.debit("d", "a hair", pure("0.000000000003"))
    ledger.debit("d", "the dust", pure("0.000000000002"))
    assert ledger.budget_state("d").left == 0


@given(st.integers(0, 10**13), st.integers(0, 10**13), st.integers(0, 5000))
def test_what_is_shown_is_never_more_than_what_is_left(left, total, debits):
    shown = books.budget_state.drop_dust(left, total, debits)
    assert shown in (0, left)
    if debits == 0 or left > max(total / 10**9, debits + 1):
        assert shown == left
