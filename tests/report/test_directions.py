"""What is said after "at most" is never below the truth, and after "at least" never above it."""

from __future__ import annotations

import math
import random
import re
from fractions import Fraction

import pytest

import whosin as wi
from documents_shown import section_text
from whosin.calibration.planning import ChainPlan
from whosin.curves.epsilon_meaning import check_sufficiency, explain_epsilon
from whosin.errors import InvalidInput
from whosin.exact import (
    chosen_percent,
    format_decimals,
    format_figures,
    format_percent,
    format_typed,
)
from whosin.gwas.simulation import Experiment, Outcome
from whosin.ledger import encoding
from whosin.ledger.budget import Cost, Spend
from whosin.release.answer import Answer
from whosin.report import charts, study_forecasts
from whosin.report.card import budget_state_card, entry_row, plan_card
from whosin.report.document import format_short, per_thousand
from whosin.report.explanation import audience_lines, describe_explanation
from whosin.report.terminal import print_document


def test_numbers_are_rounded_in_the_direction_that_is_named():
    rng = random.Random(4)
    for _ in range(300):
        size = Fraction(10) ** rng.randint(-9, 9)
        value = Fraction(rng.randint(1, 10**9), rng.randint(1, 10**9)) * size
        for number in (value, float(value)):
            said = [format_figures(number, 6, side) for side in ("down", "up")]
            low, high = (Fraction(each.replace(",", "")) for each in said)
            assert low <= number <= high and high - low <= Fraction(1, 10**5) * high
            assert Fraction(format_decimals(number, 3, "down")) <= number
            assert number <= Fraction(format_decimals(number, 3, "up"))
        share = value / (1 + value)
        low, high = (Fraction(format_percent(share, side)[:-1]) / 100 for side in ("down", "up"))
        assert low <= share <= high and high - low <= Fraction(1, 1000)
        assert per_thousand(share) >= share * 1000


def test_floats_that_miss_a_short_decimal_by_their_rounding_are_that_decimal():
    assert (
        format_percent(0.1 + 0.2, "up") == "30.0%"
        and format_percent(Fraction(3, 10), "up") == "30.0%"
    )
    assert format_percent(Fraction(3, 10) + Fraction(1, 10**18), "up") == "30.1%"
    assert (
        format_figures(0.1 + 0.2, 6, "up") == "0.3" and format_decimals(0.7 * 10, 0, "down") == "7"
    )


def test_nothing_is_rounded_to_a_certainty_that_it_is_not():
    assert format_percent(Fraction(9996, 10000), "up") == "99.9600%"
    assert format_percent(Fraction(9993, 10000), "up") == "99.9300%"
    assert format_percent(Fraction(1, 10**5), "down") == "0.00100%"
    assert format_percent(1 - Fraction(1, 10**20), "up") == "almost 100%"
    for power in range(1, 30):
        for side in ("up", "down", "nearest"):
            text = format_percent(1 - Fraction(1, 10**power), side)
            assert text == "almost 100%" or Fraction(text[:-1]) < 100
    assert (format_percent(0), format_percent(1, "down")) == ("0%", "100%")
    assert format_percent(Fraction(1, 3 * 10**40), "down") == "3.33e-39%"
    assert format_percent(Fraction(1, 10**400), "up") == "almost 0%"
    assert chosen_percent(Fraction(1, 10**300), "down") == "1e-298%"


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (wi.Posterior("0.6004"), "at most 60.04% sure"),
        (wi.Posterior(0.6), "at most 60.0% sure"),
        (wi.Posterior("2/3"), "at most 66.7% sure"),
        (wi.Posterior("1/3"), "at most 33.4% sure"),
        (wi.Gamma("1.4634146"), "at most 1.4634146 times"),
        (wi.Gamma(Fraction(60, 41)), "at most 1.46342 times"),
        (wi.Gamma(1.5), "at most 1.5 times"),
        (wi.Epsilon("0.70802912"), "ε = 0.70802912 private"),
        (wi.Rho("0.2004", 20), "at most 20.04% sure"),
        (wi.Gain("0.12345678"), "at most 12.345678 percentage points"),
        (wi.Advantage("0.12345678"), "of at most 0.12345678"),
        (wi.Detection("0.1234", "0.00123"), "at most 12.34% of those who are in, with any test"),
        (wi.Detection("0.1", "2/300"), "accuses at most 0.6% of"),
        (wi.BayesRisk("1/2", "0.49996"), "at least 49.996% of the time when"),
        (wi.BayesRisk("1/2", "2/6"), "at least 33.3% of the time when"),
        (wi.Profile({"0.1": "0.3001", "0.5": "2/3"}), "30.01% sure from 10.0% and 66.7% from"),
    ],
)
def test_targets_are_said_with_the_digits_that_they_have(target, words):
    assert words in target.words()


def test_beliefs_that_are_assumed_are_said_with_their_digits():
    assert "between 5.04% and 50.0%" in wi.families.Independent("0.0504", 0.5).words()
    assert format_typed(1.5, "up") == "1.5" and chosen_percent(0.05, "up") == "5.0%"


def test_cards_round_up_what_is_promised():
    plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.4"))
    text = section_text(plan_card(plan))
    for shown in re.findall(r"γ = (\d+(?:\.\d+)?)", text):
        assert any(
            0 <= Fraction(shown) - Fraction(value) < Fraction(1, 10**4)
            for value in (plan.gamma, *(each.gamma for each in plan.fallback))
            if value < math.inf
        ), shown
    for each in plan.fallback:
        if each.gamma < math.inf:
            most = Fraction(each.gamma) / (Fraction(each.gamma) + 1)
            assert f"from 50% to at most {format_percent(most, 'up')}" in text


def test_explanations_round_up():
    for level in (Fraction(1), Fraction(7, 10), Fraction(11, 100)):
        meaning = explain_epsilon(level, Fraction(0))
        reading = meaning.readings[0]
        assert reading.ratio >= math.exp(level)
        text = " ".join(audience_lines(meaning, "analyst") + audience_lines(meaning, "officer"))
        after = [meaning.posterior(each, Fraction(1, 10)) for each in meaning.readings]
        for shown in re.findall(r"at most ([\d.]+)%", text):
            assert any(0 <= float(shown) / 100 - each < 0.001 for each in after)
        assert re.search(rf"at most {re.escape(format_short(reading.ratio, 'up'))} for", text)


def test_dp_under_replace_promises_nothing_to_those_who_do_not_know_the_size():
    target = wi.Detection("0.1", "0.01")
    sized = wi.calibrate(target, wi.families.FixedSize(), delta=1e-6)
    text = " ".join(section_text(plan_card(sized)).split())
    assert "does not rest on" not in text and "the exact number costs nothing here" in text
    assert "takes the number of people as known" in text and "(D_U)" in text
    anyone = wi.calibrate(target, wi.families.Independent(), delta=1e-6)
    text = " ".join(section_text(plan_card(anyone)).split())
    assert "does not rest on what anyone knows or believes of each person" in text
    assert "Not covered: someone who believes that people come and go together (D_U)." in text


def test_rates_are_held_against_the_relation_and_the_group_of_the_adversary():
    target, level = wi.Detection("0.1", "0.01"), Fraction(2)
    alone = check_sufficiency(target, wi.families.Independent(), level, Fraction(0), "add-remove")
    sized = check_sufficiency(target, wi.families.FixedSize(), level, Fraction(0), "add-remove")
    linked = check_sufficiency(target, wi.families.Cliques(3), level, Fraction(0), "add-remove")
    direct = check_sufficiency(target, wi.families.FixedSize(), level, Fraction(0), "replace")
    assert alone.enough and direct.enough and not sized.enough and not linked.enough
    assert alone.epsilon == direct.epsilon == pytest.approx(2 * sized.epsilon)
    assert linked.epsilon == pytest.approx(alone.epsilon / 3)
    assert sized.reached == pytest.approx(0.01 * math.exp(4))
    curve = wi.curves.tradeoff(wi.mechanisms.RandomizedResponse(keep="3/4"), wi.Subsets(2))
    numbers = Fraction(11, 10), Fraction(0), "add-remove", curve
    known = check_sufficiency(target, wi.families.FixedSize(), *numbers)
    assert known.reached == pytest.approx(0.01 * math.exp(2.2))  # the curve is of one who comes
    for family in (wi.families.FixedSize(), wi.families.Cliques(2)):
        with pytest.raises(InvalidInput) as refusal:
            check_sufficiency(target, family, level, Fraction(1, 10**6), "add-remove")
        assert refusal.value.field == "delta"
    with pytest.raises(InvalidInput, match="know the size"):
        check_sufficiency(target, wi.families.Independent(), level, Fraction(0), "replace")


def test_a_risk_is_told_as_how_often_someone_errs(run):
    status, out, _ = run("explain --epsilon 1 --risk 0.2 --risk-prior 0.3")
    text = " ".join(out.split())
    assert status == 0
    assert "Enough: whoever is looking errs at least 26.8% of the time; 20.0% was asked." in text
    status, out, _ = run("explain --epsilon 2 --risk 0.2 --risk-prior 0.3")
    text = " ".join(out.split())
    assert "Not enough: whoever is looking may err only 11.9% of the time; 20.0% was asked" in text


def test_a_function_with_arguments_is_no_object_of_another_tool(refused_at, tmp_path):
    code = tmp_path / "noisy.py"
    code.write_text("def count(rows, *more, seed=1, scale):\n    return 1\n")
    assert refused_at(f"explain --from {code}:count") == "--from"
    code.write_text("def count():\n    raise ValueError('no rows')\n")
    assert refused_at(f"explain --from {code}:count") == "--from"
    assert refused_at("explain --epsilon 1 --max-rows 2") == "--max-rows"


def numbers_after(words, text):
    """What stands after some words, as exact numbers."""
    found = re.findall(rf"{words}\s*(\d+(?:\.\d+)?(?:e[+-]?\d+)?)", text)
    assert found, (words, text)
    return [Fraction(each) for each in found]


def test_margins_of_error_are_rounded_up():
    """95% of answers are within what is said, and not within a little more."""
    for scale in ("0.1003", "0.2001", "0.3007", "0.70117"):
        plan = wi.calibrate(wi.Gamma(1 + Fraction(scale)), query="count")
        (within,) = numbers_after("within ±", section_text(plan_card(plan)))
        assert within >= Fraction(plan.noise.within) * (1 - Fraction(1, 2**50))


def test_the_ledger_rounds_what_is_left_down(tmp_path):
    (tmp_path / "t.csv").write_text("who\na\nb\n", encoding="utf-8")
    for place, gamma in enumerate(("1.641", "1.889")):
        plan = wi.calibrate(wi.Gamma(gamma), query="count")
        table = wi.Table(tmp_path / "t.csv", "who", {})
        with wi.Ledger(tmp_path / f"{place}.db") as ledger:
            session = wi.Session(table, plan, ledger)
            budget_state = session.release(wi.queries.Count(), share="1/7").budget_state
            text = section_text(budget_state_card(budget_state))
            (left,) = numbers_after("Left: ε =", text)
            assert left <= Fraction(budget_state.spendable) * (1 + Fraction(1, 2**50))


def test_the_history_says_a_budget_rounded_down(tmp_path):
    (tmp_path / "t.csv").write_text("who\na\n", encoding="utf-8")
    plan = wi.calibrate(wi.Gamma("1.7"), query="count")
    with wi.Ledger(tmp_path / "l.db") as ledger:
        wi.Session(wi.Table(tmp_path / "t.csv", "who", {}), plan, ledger, share=1)
        first = next(each for each in ledger.history("t") if each.kind == "registered")
        (said,) = numbers_after("budget ε =", entry_row(first, plan.relation)[-1])
    assert plan.epsilon * 0.99999 <= said <= plan.epsilon


def test_claims_that_are_refuted_are_not_said_to_be_larger(run, tmp_path, monkeypatch):
    """A claim of 0.70801298 that is refuted says nothing about 0.708013."""
    monkeypatch.chdir(tmp_path)
    text = "def f(n, size, rng):\n    return (n + rng.laplace(0, 0.2, size)).round(2)\n"
    (tmp_path / "m.py").write_text(text, encoding="utf-8")
    line = "audit function m.py:f --with 1 --without 0 --samples 4000 --seed 1 --at-most 0.70801298"
    code, out, _err = run(line)
    assert code == 1 and "ε ≤ 0.70801298 is refuted" in out
    verify = "verify --mechanism randomized-response --epsilon 1 --entities 2 --notion dp --at-most"
    for claim, words in (("0.999999999", "refuted"), ("1.000000001", "holds")):
        code, out, _err = run(f"{verify} {claim}")
        (said,) = numbers_after("The claim ε ≤", out)
        assert words in out
        assert said <= Fraction(claim) if words == "refuted" else said >= Fraction(claim)


def test_the_margin_of_a_learned_table_is_rounded_up():
    quality = {"tables": 3, "columns": 2, "distance": 0.0714, "within": 0.0121}
    details = {"quality": quality, "measured": []}
    answer = Answer("rows", {}, ("ward",), (("a",),), "none", Cost(0, 0), details)
    assert "7.1% of the rows" in answer.statement and "give or take 1.3%" in answer.statement


def test_the_epsilon_of_a_plan_is_rounded_down_in_titles_and_tables(capsys):
    pytest.importorskip("altair")
    plan = ChainPlan(0.10599999, 10.0, 0.1, 9.0, 0.2, 50.0, True)
    title = charts.leakage_chart([(1.0, 1.0), (2.0, 0.5)], plan, 5).to_dict()["title"]
    assert title.endswith("for ε = 0.105999")
    (relation, privacy), *_others = study_forecasts.SETTING_NAMES
    outcome = Outcome(1000, 500, 500, 1.5, 3, "distance", relation, privacy, 0.4057, 1.0, 0.5, 0.01)
    asked = Experiment(people=(1000,), gammas=("1.5",), tops=(3,))
    print_document(study_forecasts.describe_experiment([outcome], asked))
    assert "0.405" in (text := capsys.readouterr().out) and "0.406" not in text


def test_posteriors_are_at_most_so_from_the_priors_that_are_printed(capsys, monkeypatch):
    """The truth at the prior as it is printed is never above what is said."""
    monkeypatch.setenv("COLUMNS", "160")
    rng = random.Random(7)
    for _ in range(40):
        low = Fraction(rng.randint(1, 300), 1000)
        high = low + Fraction(rng.randint(1, 400), 1000)
        epsilon = Fraction(rng.randint(1, 3000), 1000)
        meaning = explain_epsilon(epsilon, band=(low, high))
        print_document(describe_explanation(meaning))
        lines = capsys.readouterr().out.splitlines()
        head = next(line for line in lines if line.strip().startswith("someone who"))
        row = next(line for line in lines if "(D_I)" in line)
        before, after = (
            [Fraction(each) / 100 for each in re.findall(r"([0-9.]+)%", line)]
            for line in (head, row)
        )
        for prior, said in zip(before[-len(after) :], after, strict=True):
            ratio = Fraction(math.exp(float(epsilon)))
            assert ratio * prior / (1 - prior + ratio * prior) <= said + Fraction(1, 10**12)


def test_what_was_spent_is_not_printed_above_a_budget_that_is_not_overdrawn(tmp_path):
    """A budget of 0.847297860387 is printed as 0.847297, and all of it as no more."""
    ledger = wi.Ledger(tmp_path / "books.db")
    ledger.register("d", wi.calibrate(wi.Posterior("0.7"), wi.families.Independent("0.05", "0.5")))
    whole = Fraction(ledger.budget_state("d").budget.epsilon, encoding.EPSILON_UNITS)
    ledger.debit("d", "all", Spend({"query": "count"}, {"add-remove": Cost.pure(whole)}))
    lines = section_text(budget_state_card(ledger.budget_state("d"))).splitlines()
    spent, total = (
        re.search(r"ε = ([0-9.]+[0-9])", next(line for line in lines if line.startswith(word)))
        for word in ("Spent", "Budget")
    )
    assert spent and total and spent[1] == total[1] == "0.847297"
