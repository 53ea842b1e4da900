"""Parts, periods and quotas: sums against brute force, and against both stores."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import psycopg
import pytest

import whosin as wi
from ledger_programs import rewrite
from whosin.errors import BrokenHistory, BudgetRefused, InvalidInput, WhosinError
from whosin.ledger import Cost, Spend, encoding, entries, store, verify
from whosin.ledger.budget import Accounts, PartLevel, Quota
from whosin.ledger.registration import Registration
from whosin.report.accounts import accounts_lines, schedule_lines

PLANS = {
    "add-remove": wi.calibrate(wi.Epsilon(1)),
    "replace": wi.calibrate(wi.Epsilon(1), wi.families.FixedSize()),
}
GAUSSIAN = {
    "add-remove": wi.calibrate(wi.Epsilon(1), delta=1e-6),
    "replace": wi.calibrate(wi.Epsilon(1), wi.families.FixedSize(), delta=1e-6),
}
TABLE = Registration("who", part={"column": "region", "rule": "constant"})


def ask(part: str | None, own: object, entering: object = None, cost=Cost.pure) -> Spend:
    costs = {"replace": cost(own), "add-remove": cost(own if entering is None else entering)}
    return Spend({"query": "count", "part": part}, costs, registration=TABLE, part=part)


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as opened:
        yield opened


# Brute force: adaptive questions to one person's record, with exact likelihoods.

ABSENT = None
RECORDS = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def bits(ratio: Fraction) -> int:
    """The least k with ratio ≤ 2^k: a level as a whole number, as a ledger has it."""
    k = 0
    while ratio > 2**k:
        k += 1
    return k


def random_tree(chance: random.Random, depth: int):
    """A question, and what is asked after each of its answers: which part it is about, its
    likelihoods by the record that it sees, and its two levels."""
    part = chance.choice(["a", "b", None])
    seen = [ABSENT, *(each for each in RECORDS if part in (None, each[0]))]
    ones = {each: Fraction(chance.randint(1, 15), 16) for each in seen}
    flat = chance.random()
    ones = {
        each: ones[ABSENT] * Fraction(int(flat * 8), 8)
        + ones[each] * (1 - Fraction(int(flat * 8), 8))
        for each in seen
    }

    def level(pairs) -> int:
        ratios = [max(p / q, (1 - p) / (1 - q)) for p, q in pairs]
        return bits(max(ratios))

    inside = [ones[each] for each in seen if each is not ABSENT]
    own = level((p, q) for p, q in product(inside + ([ones[ABSENT]] if part else []), repeat=2))
    entering = level(pair for p in inside for pair in ((p, ones[ABSENT]), (ones[ABSENT], p)))
    spend = Spend(
        {}, {"replace": Cost(own, own), "add-remove": Cost(entering, entering)}, part=part
    )
    later = [random_tree(chance, depth - 1) if depth > 1 else None for _ in range(2)]
    return spend, ones, later


def transcripts(tree, relation: str, accounts=None, levels=None, likelihoods=None):
    """(the accounts, the likelihood of each record) of every transcript."""
    accounts = Accounts() if accounts is None else accounts
    levels = levels or {}
    likelihoods = likelihoods or dict.fromkeys([ABSENT, *RECORDS], Fraction(1))
    if tree is None:
        yield accounts, likelihoods
        return
    spend, ones, later = tree
    before = levels.get(spend.part or "", PartLevel())
    after, level = accounts.pay(spend, relation, before)
    for answer, following in enumerate(later):
        moved = {}
        for record, likelihood in likelihoods.items():
            one = ones[record] if record in ones else ones[ABSENT]
            moved[record] = likelihood * (one if answer else 1 - one)
        known = {**levels, spend.part or "": level}
        yield from transcripts(following, relation, after, known, moved)


@pytest.mark.parametrize("relation", PLANS)
def test_no_transcript_tells_more_than_the_total(relation):
    """Adaptive questions about two parts and everyone, with exact likelihoods: the likelihood ratio
    of each transcript is within its own total, and sometimes within no less."""
    chance, tight, alone = random.Random(7), 0, 0
    for _ in range(150):
        for accounts, likelihoods in transcripts(random_tree(chance, 3), relation):
            pairs = (
                product(RECORDS, repeat=2)
                if relation == "replace"
                else [(x, y) for r in RECORDS for x, y in ((r, ABSENT), (ABSENT, r))]
            )
            worst = max(likelihoods[x] / likelihoods[y] for x, y in pairs)
            assert worst <= 2**accounts.total.epsilon
            tight += worst > 2 ** (accounts.total.epsilon - 1)
            alone += worst > 2 ** (accounts.everyone.epsilon + accounts.largest.epsilon)
    assert tight
    assert (alone > 0) == (relation == "replace")  # someone may move: one part is not enough


def test_the_sums_are_those_of_all_parts():
    """The few sums that are kept are the maxima over all parts, whatever order they are paid in."""
    for seed in range(60):
        chance = random.Random(seed)
        relation = chance.choice(list(PLANS))
        accounts, levels, everyone = Accounts(), {}, Cost(0, 0)
        for _ in range(chance.randint(1, 40)):
            part = chance.choice([None, *"abcde"])
            own, entering = chance.randint(0, 4), chance.randint(0, 4)
            costs = {"replace": Cost(own, own), "add-remove": Cost(entering, own + entering)}
            spend = Spend({}, costs, part=part)
            level = levels.get(part, PartLevel())
            accounts, after = accounts.pay(spend, relation, level)
            if part is None:
                everyone += spend.cost(relation)
            else:
                levels[part] = after
                assert after.own == level.own + spend.cost(relation)
        largest = [
            max((getattr(each.own, key) for each in levels.values()), default=0)
            for key in ("epsilon", "rho")
        ]
        moves = [
            sum(sorted((getattr(each.entering, key) for each in levels.values()), reverse=True)[:2])
            for key in ("epsilon", "rho")
        ]
        wanted = [
            max(one, two) if relation == "replace" else one
            for one, two in zip(largest, moves, strict=True)
        ]
        assert (accounts.total.epsilon, accounts.total.rho) == (
            everyone.epsilon + wanted[0],
            everyone.rho + wanted[1],
        )
        for part, level in levels.items():
            others = max(
                (each.entering.epsilon for name, each in levels.items() if name != part), default=0
            )
            moved = level.entering.epsilon + others if relation == "replace" else 0
            seen = accounts.seen_from(level, relation).epsilon
            assert seen == everyone.epsilon + max(level.own.epsilon, moved)
        assert Accounts.read(accounts.text(), accounts.total) == accounts
        assert accounts.begin_parts().total == accounts.total


def test_paying_where_an_answer_came_from_is_no_budget():
    """w3c/attribution#75: three conversions, each answered from the last period with an impression
    that was not used yet and paid there alone, move by five answers when one period is taken away.
    Here a question about all periods pays in all, and the second one is refused."""

    def last_touch(impressions: list[int]) -> list[tuple[int, ...]]:
        unspent, answers = list(impressions), []
        for _ in range(3):
            last = unspent.pop(0) if unspent else None
            answers.append(tuple(int(each == last) for each in (1, 2, 3)))
        return answers

    with_, without = last_touch([1, 2, 3]), last_touch([2, 3])
    distance = sum(
        abs(x - y)
        for one, other in zip(with_, without, strict=True)
        for x, y in zip(one, other, strict=True)
    )
    assert distance == 5  # each period promised 1
    accounts, level = Accounts(), PartLevel()
    for _ in range(3):
        accounts, level = accounts.pay(ask(None, "1"), "add-remove", level)
    assert accounts.total.epsilon == 3 * encoding.EPSILON_UNITS


@pytest.mark.parametrize("relation", PLANS)
def test_parts_are_paid_side_by_side(ledger, relation):
    ledger.register("d", PLANS[relation], TABLE)
    ledger.debit("d", "north", ask("north", "1/2"))
    ledger.debit("d", "south", ask("south", "1/2"))
    state = ledger.budget_state("d")
    assert state.epsilon == pytest.approx(0.5 if relation == "add-remove" else 1)
    if relation == "replace":  # someone may have moved from north to south
        with pytest.raises(BudgetRefused, match=r"part 'east'|dataset 'd' has 0"):
            ledger.debit("d", "east", ask("east", "3/4"))
        return
    ledger.debit("d", "all", ask(None, "1/2"))
    with pytest.raises(BudgetRefused, match="part 'north' of dataset 'd' has 0 left"):
        ledger.debit("d", "more", ask("north", "1/100"))
    ledger.debit("d", "east", ask("east", "1/2"))
    assert verify(ledger, "d").debits == 4
    assert [*ledger.part_levels("d")] == ["east", "north", "south"]


def test_a_table_that_goes_on_begins_its_parts_anew(ledger):
    """Someone who was in the north in January may be in the south in February."""
    ledger.register("d", PLANS["add-remove"], TABLE)
    ledger.debit("d", "january", ask("north", "1/2"))
    february = replace(TABLE, source={"bytes": "other"})
    ledger.amend("d", replace(february, domains={"x": {"values": ["a"]}}))
    ledger.amend("d", february)
    spend = replace(ask("south", "2/3"), registration=february)
    with pytest.raises(
        BudgetRefused, match=r"needs ε = 0\.666667, and part 'south' .* has 0\.5 left"
    ):
        ledger.debit("d", "february", spend)
    ledger.debit("d", "february", replace(ask("north", "1/2"), registration=february))
    assert ledger.budget_state("d").accounts.epoch == 1
    assert verify(ledger, "d").debits == 2


def test_what_has_no_parts_pays_for_none(ledger):
    ledger.register("d", PLANS["add-remove"], replace(TABLE, part={}))
    ledger.register("bare", PLANS["add-remove"])
    for name in ("d", "bare"):
        with pytest.raises(BudgetRefused, match="parts"):
            ledger.debit(
                name, "r", replace(ask("north", "1/2"), registration=replace(TABLE, part={}))
            )
        assert ledger.budget_state(name).debits == 0


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE whosin_parts SET epsilon = 1",
        "DELETE FROM whosin_parts",
        "UPDATE whosin_parts SET part = 'west'",
        "UPDATE whosin_datasets SET accounts = NULL",
    ],
)
def test_a_changed_part_shows(tmp_path, ledger, statement):
    ledger.register("d", PLANS["add-remove"], TABLE)
    ledger.debit("d", "north", ask("north", "1/2"))
    verify(ledger, "d")
    rewrite(tmp_path / "ledger.db", statement)
    with pytest.raises(BrokenHistory):
        verify(ledger, "d")


def test_a_million_parts_cost_what_is_paid(ledger, tmp_path):
    """A debit reads and writes the level of its own part, however many there are."""
    ledger.register("d", PLANS["add-remove"], TABLE)
    ledger.debit("d", "first", ask("north", "1/2"))
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000)"
    rewrite(
        tmp_path / "ledger.db",
        f"{numbers} INSERT INTO whosin_parts SELECT 'd', 'p' || i, 0, 1, 1, 0, 1, 1, 0 FROM n",
    )
    statements: list[str] = []
    with ledger._store.turn("d", ["second"], ["p7"]) as turn:
        turn.connection.set_trace_callback(statements.append)
        plan = turn.connection.execute(
            "EXPLAIN QUERY PLAN SELECT * FROM whosin_parts WHERE dataset = 'd' AND part = 'p7'"
        ).fetchall()
        turn.connection.set_trace_callback(None)
        assert turn.levels["p7"].own.epsilon == 1
    assert "USING INDEX" in str(plan)
    ledger.debit("d", "second", ask("p7", "1/2"))
    assert ledger.budget_state("d").epsilon <= 0.500001


def test_a_long_history_is_verified_in_little_memory(ledger):
    """Its entries pass one by one; parts are what is kept."""
    ledger.register("d", PLANS["add-remove"], TABLE)
    parts = [f"p{number}" for number in range(50)]
    for batch in range(3):
        spends = {f"{batch}/{number}": ask(parts[number % 50], "0.0001") for number in range(1000)}
        debits = ledger.debits("d", spends)
        ledger.store_answers([(debit, {"value": 1}) for debit in debits[::2]])
    tracemalloc.start()
    try:
        found = verify(ledger, "d")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.entries, found.debits, len(found.unanswered)) == (4501, 3000, 1500)
    assert peak < 2 << 20  # a kilobyte an entry would be more than twice that


def test_bodies_that_are_not_decoded_are_read_as_those_that_are(ledger):
    """After each body of a history any change of one sign, and what a forger may write, is read as
    a whole reading reads it, or refused; sums in another spelling are left to whoever compares."""
    ledger.register("d", PLANS["add-remove"], TABLE)
    for number, where in enumerate(("x > 1", 'a "quoted" {"when":"x"}', "é")):
        spend = replace(ask("north" if number else None, "0.01"), what={"q": {"when": where}})
        ledger.answer("d", spend, lambda: {"value": 1}, f"{number}")
    plain = replace(ask("o", "0.01"), what={"part": "x", "sums": {"a": 1}, "where": ["north"]})
    ledger.answer("d", plain, lambda: {"value": 2}, "nested")
    for number, spend in enumerate((plain, replace(plain, part=None))):
        ledger.debits("d", {f"about {number}": spend}, {"about": {"part": "o", "name": "ann"}})
    with ledger._store.reading() as connection:
        rows = [row for row, _ in entries.stream_history(connection, "d")]
    reader, read = entries.BodyReader(), Counter[str]()

    def compare(row, text):
        changed = row._replace(body=text)
        try:
            expected = entries.read_entry_body(changed)
        except BrokenHistory:
            expected = None
        try:
            found, sums = reader.read(changed)
        except BrokenHistory:
            assert expected is None, text
            return
        known = expected or {}
        if expected is None or sums != encoding.canonical_json(known.get("sums")):
            assert sums != own, text  # the caller has the sums that must stand there
            return
        assert found == {key: known[key] for key in found}
        assert known.keys() - found <= {"sums", "what"}
        read["short" if "sums" not in found else "whole"] += 1

    for row in rows:
        body, own = row.body, encoding.canonical_json(entries.read_entry_body(row)["sums"])
        compare(row, body)
        for place in range(len(body)):
            for sign in ('"', "\\", "{", "}", ",", ":", " ", "1", "é", ""):
                compare(row, body[:place] + sign + body[place + 1 :])
                compare(row, body[:place] + sign + body[place:])
        for forged in (
            body.replace(',"when":"', ',"when":"2027-01-15","when":"', 1),
            body.replace('"who":"', '"who":"eve","who":"', 1),
            body.replace('"part":"o"', '"part":"p"', 1),
            body.replace('"who":"', '"who":"eve\\"', 1),
            body.replace('"terms":', '"terms":"x","terms":', 1),
            body.replace(',"sums":{', ',"sums":{},"sums":{', 1),
            f"{body[:-1]},{body[1:]}",
        ):
            compare(row, forged)
    assert read["short"] > 1000 and read["whole"] > 100


def test_a_debit_of_a_part_disturbs_no_verification(ledger, tmp_path, monkeypatch):
    """The parts are looked at in the view that the entries are."""
    ledger.register("d", PLANS["add-remove"], TABLE)
    ledger.debit("d", "north", ask("north", "1/4"))
    find = wi.Ledger._find

    def pay_meanwhile(*given):
        row = find(*given)  # from here on the view stands
        monkeypatch.setattr(wi.Ledger, "_find", find)
        with wi.Ledger(tmp_path / "ledger.db", who="bob") as bob:
            bob.debit("d", "meanwhile", ask("north", "1/4"))
        return row

    monkeypatch.setattr(wi.Ledger, "_find", pay_meanwhile)
    assert verify(ledger, "d").debits == 1
    assert verify(ledger, "d").debits == 2


# Periods


YEAR = {"every": "month", "start": "2027-01", "until": "2027-12"}


@pytest.fixture(autouse=True)
def january(clock):
    clock("2027-01-15")


def pay(ledger: wi.Ledger, request: str, price: object, name: str = "d") -> None:
    cost = price if isinstance(price, Cost) else Cost.pure(price)
    ledger.debit(name, request, Spend({}, {"add-remove": cost}))


def test_a_month_is_a_twelfth_and_what_it_leaves_rolls_on(ledger, clock):
    ledger.register("d", PLANS["add-remove"], schedule=YEAR)
    with pytest.raises(BudgetRefused, match="in its period from 2027-01-01"):
        pay(ledger, "too much", "1/11")
    pay(ledger, "january", "1/24")
    clock("2027-03-01")
    (_, _, month), (_, _, year) = ledger.budget_state("d").periods_left()
    assert month.remaining == pytest.approx(3 / 12 - 1 / 24)
    said = schedule_lines(ledger.budget_state("d"))[0]
    assert "Left this month (2027-03-01 to 2027-03-31): ε = 0.20833" in said
    assert "; this year (to 2027-12-31): ε = 0.95833" in said
    assert year.remaining == pytest.approx(1 - 1 / 24)
    pay(ledger, "march", "5/25")
    pay(ledger, "january", "1/24")  # a past period again, under its request: nothing
    assert ledger.budget_state("d").debits == 2
    clock("2028-01-01")
    with pytest.raises(BudgetRefused, match="ended with 2027-12-31, and today is 2028"):
        pay(ledger, "late", "1/100")
    assert ledger.budget_state("d").periods_left() == []
    pay(ledger, "march", "5/25")
    assert verify(ledger, "d").debits == 2


def test_what_a_month_leaves_lapses_where_that_was_said(ledger, clock):
    ledger.register("d", PLANS["add-remove"], schedule={**YEAR, "unspent": "lapses"})
    pay(ledger, "january", "1/24")
    clock("2027-03-01")
    with pytest.raises(BudgetRefused, match="in its period from 2027-03-01"):
        pay(ledger, "march", "1/11")
    pay(ledger, "march", "0.08333333333")
    with pytest.raises(BudgetRefused, match="has 0 left"):
        pay(ledger, "more", "1/100")
    (_, _, month), (_, _, year) = ledger.budget_state("d").periods_left()
    assert month.spendable == 0 and year.remaining == pytest.approx(9 / 12)
    assert verify(ledger, "d").debits == 2


def test_gaussian_noise_of_one_month_opens_no_other(ledger, clock):
    """It has no pure ε, so what was spent when February began is infinite in ε: that is no
    ceiling."""
    ledger.register("d", GAUSSIAN["add-remove"], schedule={**YEAR, "unspent": "lapses"})
    rho = Fraction(ledger.budget_state("d").budget.rho, encoding.EPSILON_UNITS)
    pay(ledger, "january", Cost.gaussian(rho / 24))
    clock("2027-02-05")
    with pytest.raises(BudgetRefused, match="in its period from 2027-02-01"):
        pay(ledger, "half a year", Cost.gaussian(rho / 2))
    with pytest.raises(BudgetRefused, match=r"has 0\.0618\d* left of ε = 0\.0833"):
        pay(ledger, "no pure one either", "1/13")
    pay(ledger, "february", Cost.gaussian(rho / 13))
    (_, _, month), (_, _, year) = ledger.budget_state("d").periods_left()
    assert month.remaining_rho == pytest.approx(float(rho * (1 / 12 - 1 / 13)))
    assert year.remaining_rho == pytest.approx(float(rho * (11 / 12 - 1 / 13)))
    assert ledger.budget_state("d").left_for("ann") == month.spendable
    assert verify(ledger, "d").debits == 2


def test_what_only_those_who_move_pay_for_is_bound_by_its_period(ledger):
    """How many people a part has changes with nobody who is replaced within it."""
    ledger.register("d", PLANS["replace"], TABLE, schedule=YEAR)
    ledger.debit("d", "few", ask("north", 0, "1/24"))
    with pytest.raises(BudgetRefused, match=r"needs ε = 0\.0909091, .* has 0\.0416666 left"):
        ledger.debit("d", "many", ask("north", 0, "1/11"))
    assert verify(ledger, "d").debits == 1


def test_a_history_that_spent_past_its_period_shows(ledger, clock, monkeypatch):
    """Written by a program that looks at no period."""
    ledger.register("d", GAUSSIAN["add-remove"], schedule={**YEAR, "unspent": "lapses"})
    rho = Fraction(ledger.budget_state("d").budget.rho, encoding.EPSILON_UNITS)
    pay(ledger, "january", Cost.gaussian(rho / 24))
    clock("2027-02-05")
    monkeypatch.setattr("whosin.ledger.budget_state.check_limits", lambda *_: None)
    pay(ledger, "half a year", Cost.gaussian(rho / 2))
    with pytest.raises(BrokenHistory, match="more than its period allows"):
        verify(ledger, "d")


def test_clocks_that_differ_begin_no_period_twice(ledger, clock):
    """Around midnight one machine is in February and another still in January."""
    ledger.register("d", PLANS["add-remove"], schedule={**YEAR, "unspent": "lapses"})
    paid = 0
    for number in range(12):
        moment = ("2027-01-31T23:59:40", "2027-02-01T00:00:10")[number % 2]
        clock(moment)
        try:
            pay(ledger, str(number), "1/13")
            paid += 1
        except BudgetRefused:
            continue
    assert paid == 2  # January's share and February's
    assert verify(ledger, "d").debits == 2


@pytest.mark.parametrize(("plans", "cost"), [(PLANS, Cost.pure), (GAUSSIAN, Cost.gaussian)])
def test_no_order_of_debits_exceeds_what_its_periods_allow(ledger, clock, plans, cost):
    """Random debits on random days, against ceilings added up by hand, in ε and in ρ."""
    chance = random.Random(5)
    for number in range(6):
        lapses, name = number % 2 == 1, f"d{number}"
        shares = [Fraction(chance.randint(1, 4), 40) for _ in range(12)]
        said = {**YEAR, "shares": [str(each) for each in shares]}
        clock("2027-01-01")
        ledger.register(
            name, plans["add-remove"], schedule={**said, "unspent": "lapses"} if lapses else said
        )
        budget = ledger.budget_state(name).budget
        units = budget.epsilon if cost == Cost.pure else budget.rho // 1000 * 1000
        whole = Fraction(units, encoding.EPSILON_UNITS)
        spent = [Fraction(0)] * 12
        days = sorted(chance.choices(range(12 * 28), k=25))
        for request, (month, day) in enumerate(divmod(each, 28) for each in days):
            clock(f"2027-{month + 1:02}-{day + 1:02}")
            asked = Fraction(chance.randint(1, 6), 100)
            past, allowed = (
                (spent[month], shares[month]) if lapses else (sum(spent), sum(shares[: month + 1]))
            )
            price = cost(asked * whole)
            if past + asked <= allowed:
                pay(ledger, f"{request}", price, name)
                spent[month] += asked
            else:
                with pytest.raises(BudgetRefused):
                    pay(ledger, f"{request}", price, name)
        assert verify(ledger, name).debits and sum(spent) > Fraction(1, 4)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({**YEAR, "shares": ["1/2", "1/2", "1/100"] + ["1/100"] * 9}, "add up to"),
        ({**YEAR, "shares": ["1/2"]}, "one share for each of the 12"),
        ({**YEAR, "shares": ["3/2"] + ["1/100"] * 11}, "at most 1"),
        ({**YEAR, "start": "2020", "until": "2026-12"}, "the schedule ended with 2026-12-31"),
        ({"periods": ["2027-01..2027-06", "2027-06..2027-12"]}, "they overlap"),
        ({"periods": ["2027-06..2027-01"]}, "before it begins"),
        ({"periods": "2027"}, "is a list"),
        ({"every": "fortnight", "until": "2027"}, "fortnight"),
        ({"every": "month"}, "no until"),
        ({"every": "month", "until": "June"}, "2027-12"),
        ({"every": "day", "start": "2020", "until": "2099"}, "periods"),
        ({**YEAR, "unspent": "burns"}, "burns"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(ledger, clock, said, words):
    with pytest.raises(InvalidInput, match=words) as raised:
        ledger.register("d", PLANS["add-remove"], schedule=said)
    assert "\n" not in str(raised.value) and ledger.datasets() == []


def test_a_clock_behind_the_last_entry_is_refused(ledger, clock):
    ledger.register("d", PLANS["add-remove"], schedule=YEAR)
    ledger.register("free", PLANS["add-remove"])
    clock("2027-03-01")
    pay(ledger, "march", "1/24")
    clock("2027-02-01")
    with pytest.raises(BudgetRefused, match="the clock says 2027-02-01"):
        pay(ledger, "february", "1/24")
    assert ledger.budget_state("d").debits == 1
    pay(ledger, "no dates", "1/24", "free")


def test_every_entry_looks_at_the_clock_where_dates_decide(ledger, clock, monkeypatch):
    """None is written behind the last one, so that the check cannot be avoided either; but for a
    suspension, which must not wait, and is dated like the last entry."""
    ledger.register("d", PLANS["add-remove"], TABLE, schedule=YEAR)
    spend = replace(ask(None, "1/100"), registration=TABLE)
    debit = ledger.debit("d", "first", spend)
    clock("2027-01-01")
    for entry in (
        lambda: ledger.amend("d", replace(TABLE, domains={"x": {"values": ["a"]}})),
        lambda: ledger.store(debit, 1),
        lambda: ledger.close("d"),
        lambda: ledger.set_quota("d", "bob", "1/100"),
        lambda: ledger.debit("d", "second", spend),
    ):
        with pytest.raises(BudgetRefused, match="the clock says 2027-01-01") as refused:
            entry()
        assert "whosin ledger resume" in (refused.value.hint or "")
    ledger.suspend("d", "first")
    assert ledger.budget_state("d").last.startswith("2027-01-15")
    assert [each.kind for each in ledger.history("d")] == ["registered", "debit", "suspended"]
    ledger.resume("d")
    assert ledger.budget_state("d").last.startswith("2027-01-01")
    ledger.store(debit, 1)
    monkeypatch.setattr("whosin.ledger.budget_state.check_clock", lambda *_: None)
    clock("2026-12-31")
    ledger.close("d")
    with pytest.raises(BrokenHistory, match="entry 6 is dated before entry 5"):
        verify(ledger, "d")


@pytest.mark.parametrize("unspent", ["rolls-on", "lapses"])
def test_a_curator_goes_on_after_a_clock_that_was_ahead(ledger, clock, unspent):
    """What it paid for stays paid, and the periods that it entered are entered when they come."""
    schedule = {**YEAR, "until": "2030-12", "unspent": unspent}
    ledger.register("d", PLANS["add-remove"], schedule=schedule)
    pay(ledger, "january", "1/100")
    clock("2030-12-05")
    pay(ledger, "ahead", "1/100")
    clock("2027-02-05")
    for cost in ("1/100", 0):
        with pytest.raises(BudgetRefused, match="the clock says 2027-02-05"):
            pay(ledger, "february", cost)
    ledger.resume("d")
    with pytest.raises(BudgetRefused, match="is not suspended"):
        ledger.resume("d")
    with pytest.raises(BudgetRefused, match="in its period from 2027-02-01"):
        pay(ledger, "too much", "1/24")
    pay(ledger, "february", "1/50")
    assert ledger.budget_state("d").left_for("ann") == pytest.approx(
        2 / 48 - 4 / 100 if unspent == "rolls-on" else 1 / 48 - 1 / 50
    )
    clock("2027-03-05")
    pay(ledger, "march", "1/50")
    assert verify(ledger, "d").debits == 4


def test_a_schedule_is_set_once(ledger, clock):
    ledger.admit("d", PLANS["add-remove"], share="1/12", schedule=YEAR)
    ledger.admit("d", PLANS["add-remove"], share="1/12", schedule=YEAR)
    ledger.admit("d", PLANS["add-remove"], share="1/12")
    with pytest.raises(BudgetRefused, match="has another schedule: every = month"):
        ledger.admit("d", PLANS["add-remove"], share="1/12", schedule={**YEAR, "every": "year"})
    ledger.register("free", PLANS["add-remove"])
    with pytest.raises(BudgetRefused, match="opened without a schedule"):
        ledger.admit("free", PLANS["add-remove"], share="1/12", schedule=YEAR)
    with pytest.raises(BudgetRefused, match="needs"):
        ledger.admit("d", PLANS["add-remove"], share="1/6")


# Quotas


def test_quotas_keep_what_they_say(ledger, tmp_path, clock):
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "team", "1/2", until="2027-06-30", members=["bob", "eve"])
    pay(ledger, "free", "1/4")
    with pytest.raises(BudgetRefused, match=r"beside what quotas keep for others, has 0\.25 left"):
        pay(ledger, "more", "1/3")
    with wi.Ledger(tmp_path / "ledger.db", who="bob") as bob:
        pay(bob, "bob", "1/4")
        with pytest.raises(BudgetRefused, match=r"quota 'team' of dataset 'd' has 0\.25 left"):
            pay(bob, "more", "1/3")
        clock("2027-07-01")
        assert bob.budget_state("d").left_for("bob") == 0.5  # like everyone else
        pay(bob, "late", "1/8")
    pay(ledger, "what they left", "3/8")
    state = ledger.budget_state("d")
    assert state.epsilon == 1 and state.unreserved.remaining == 0
    assert state.accounts.quotas["team"].spent == Cost.pure("1/4")
    assert verify(ledger, "d").debits == 4


def test_what_costs_nothing_is_paid_after_the_last_period(ledger, clock):
    """A step of a stream, whose first one paid for all; December's is drawn in January."""
    ledger.register("d", PLANS["add-remove"], schedule=YEAR)
    pay(ledger, "first", "1/24")
    clock("2028-01-05")
    pay(ledger, "step", 0)
    assert "running totals that were paid for go on" in schedule_lines(ledger.budget_state("d"))[0]
    with pytest.raises(BudgetRefused, match="ended with 2027-12-31"):
        pay(ledger, "new", "1/1000")
    assert verify(ledger, "d").debits == 2


def test_a_quota_moves_and_is_revoked(ledger, clock):
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "ann", "1/4")
    ledger.set_quota("d", "bob", "1/4")
    pay(ledger, "one", "1/8")  # ann's
    with pytest.raises(BudgetRefused, match="less than 1/4"):
        ledger.move_quota("d", "ann", "1/4", "bob")
    ledger.move_quota("d", "ann", "1/16", "bob")
    pay(ledger, "two", "1/16")
    with pytest.raises(BudgetRefused, match=r"quota 'ann' .* has 0 left"):
        pay(ledger, "three", "1/100")
    ledger.revoke_quota("d", "bob")
    assert ledger.budget_state("d").unreserved.remaining == pytest.approx(1 - 3 / 16)
    with pytest.raises(BudgetRefused, match="spent more"):
        ledger.set_quota("d", "ann", "1/100")
    ledger.set_quota("d", "ann", 1)
    pay(ledger, "four", "1/2")
    assert [each.kind for each in ledger.history("d")].count("quota") == 5
    verify(ledger, "d")


@pytest.mark.parametrize("quota", [None, "team"])
def test_a_debit_from_a_wrong_quota_shows(ledger, monkeypatch, quota):
    """Of a member outside of the quota, and of someone else in it."""
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "team", "1/2", members=["eve" if quota else "ann"])
    with monkeypatch.context() as lies:
        lies.setattr(Accounts, "find_quota", lambda *_: quota)
        ledger.debit("d", "a lie", ask(None, "1/4"))
    with pytest.raises(BrokenHistory, match="wrong quota"):
        verify(ledger, "d")


def test_a_quota_keeps_what_is_not_said_again(ledger, clock):
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "lab", "1/10", until="2027-06-30", members=["bob"])

    def quota():
        found = ledger.budget_state("d").accounts.quotas["lab"]
        return found.limit.epsilon, found.until, found.members

    ledger.set_quota("d", "lab", "1/8")
    assert quota() == (encoding.EPSILON_UNITS // 8, "2027-06-30", ("bob",))
    ledger.set_quota("d", "lab", "1/8", members=["eve", "bob"])
    assert quota()[1:] == ("2027-06-30", ("bob", "eve"))
    clock("2027-07-01")
    with pytest.raises(InvalidInput, match="until 2027-06-30 is over"):
        ledger.set_quota("d", "lab", "1/4")
    ledger.set_quota("d", "lab", "1/4", until="")
    assert quota()[1:] == ("", ("bob", "eve"))
    ledger.revoke_quota("d", "lab")
    ledger.set_quota("d", "lab", "1/4")
    assert quota()[1:] == ("", ("lab",))
    verify(ledger, "d")


def test_a_member_of_a_revoked_quota_is_like_everyone_else(ledger, tmp_path, clock):
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "team", "1/4", until="2027-12-31", members=["bob", "eve"])
    with wi.Ledger(tmp_path / "ledger.db", who="bob") as bob:
        pay(bob, "one", "1/8")
        ledger.revoke_quota("d", "team")
        pay(bob, "two", "1/2")
        clock("2028-01-01")
        pay(bob, "three", "1/4")
        assert bob.budget_state("d").seen_by("bob").accounts.quotas == {}
    state = ledger.budget_state("d")
    assert state.unreserved.remaining == pytest.approx(1 / 8) == state.remaining
    assert "Quota team was revoked; ε = 0.125 of it was spent." in accounts_lines(state)
    assert verify(ledger, "d").debits == 3


def test_a_revoked_quota_opens_again_or_says_why_not(ledger, clock):
    ledger.register("d", PLANS["add-remove"])
    ledger.set_quota("d", "ann", "1/4")
    ledger.set_quota("d", "bob", "1/4")
    pay(ledger, "one", "1/8")
    ledger.revoke_quota("d", "ann")
    for share in (0, "1/100", "1/8"):
        with pytest.raises(BudgetRefused, match=r"'ann' was revoked after it had spent 0\.125 of"):
            ledger.set_quota("d", "ann", share)
    with pytest.raises(BudgetRefused, match="quota 'ann' was revoked"):
        ledger.move_quota("d", "bob", "1/8", "ann")
    with pytest.raises(BudgetRefused, match=r"was revoked .* nothing is kept for anyone"):
        ledger.revoke_quota("d", "ann")
    with pytest.raises(InvalidInput) as raised:
        ledger.set_quota("d", "ann", "150%")
    assert "1.5%" not in (raised.value.hint or "")
    ledger.set_quota("d", "ann", "3/8")
    with pytest.raises(BudgetRefused, match=r"quota 'ann' .* has 0\.25 left"):
        pay(ledger, "two", "1/2")
    pay(ledger, "three", "1/4")
    verify(ledger, "d")


@pytest.mark.parametrize("relation", PLANS)
@pytest.mark.parametrize("plans", [PLANS, GAUSSIAN])
def test_what_is_left_for_an_asker_can_be_spent_and_no_more(tmp_path, plans, relation, clock):
    """Also after others spent in the other currency; and a refusal says the same number."""
    for seed in range(12):
        chance = random.Random(seed)
        schedule = {**YEAR, "every": "quarter", "unspent": chance.choice(["rolls-on", "lapses"])}
        with wi.Ledger(tmp_path / f"{seed}.db", who="free") as ledger:
            plan = plans[relation]
            ledger.register("d", plan, TABLE, schedule=schedule if seed % 2 else None)
            total = Fraction(ledger.budget_state("d").budget.rho, encoding.EPSILON_UNITS)
            for who in chance.sample(["bob", "eve", "ann"], 2):
                ledger.set_quota("d", who, chance.choice(["1/5", "1/10", 0]))
            for number in range(5):
                who, part = chance.choice(["bob", "eve", "free"]), chance.choice(["a", "b", None])
                with wi.Ledger(tmp_path / f"{seed}.db", who=who) as asker:
                    spend = ask(part, Fraction(1, chance.choice([20, 9])))
                    if plans is GAUSSIAN and chance.random() < 0.5:
                        spend = ask(part, total / chance.choice([20, 9]), None, Cost.gaussian)
                    with suppress(BudgetRefused):
                        asker.debit("d", str(number), spend)
                    levels = asker.part_levels("d", ["a", "b"])
                    for each in ("a", "b", None):
                        level = None if each is None else levels.get(each, PartLevel())
                        left = asker.budget_state("d").left_for(who, level)
                        if left:
                            asker.check("d", [ask(each, left)])
                        with pytest.raises(BudgetRefused) as refused:
                            asker.check("d", [ask(each, left + 1e-9)])
                        said = str(refused.value).partition(" has ")[2].partition(" left")[0]
                        assert float(said) == pytest.approx(left, abs=1e-6)


def test_what_one_currency_takes_from_a_quota_is_said(tmp_path, ledger):
    """A quota is kept in ε and in ρ, and the dataset must be within one of them: what others spend
    of pure ε may leave no ρ, and Gaussian noise of one member leaves the others no pure ε."""
    with wi.Ledger(tmp_path / "ledger.db", who="bob") as bob:
        for name in ("pure", "gaussian"):
            ledger.register(name, GAUSSIAN["add-remove"])
            ledger.set_quota(name, "ann", "1/2")
        rho = Fraction(ledger.budget_state("pure").budget.rho, encoding.EPSILON_UNITS)
        pay(bob, "bob", "0.4", "pure")
        assert ledger.budget_state("pure").quota_states()["ann"].remaining_rho == 0
        assert ledger.budget_state("pure").left_for("ann") == 0.5
        with pytest.raises(BudgetRefused, match=r"ρ = \S+ is more than the 0 left"):
            pay(ledger, "ann", Cost.gaussian(rho / 1000), "pure")
        pay(ledger, "ann", Cost.gaussian(rho / 1000), "gaussian")
        left = bob.budget_state("gaussian").left_for("bob")
        assert left == pytest.approx(float(rho) ** 0.5, rel=1e-6)
        assert bob.budget_state("gaussian").unreserved.remaining == left
        with pytest.raises(BudgetRefused, match=r"keep for others, has 0\.151451 left"):
            pay(bob, "bob", "0.4", "gaussian")
        ledger.set_quota("gaussian", "ann", 1)
        with pytest.raises(BudgetRefused, match=r"for others: these .* more than the 0 left"):
            pay(bob, "rho", Cost.gaussian(rho / 1000), "gaussian")


def test_quotas_never_exceed_the_total(ledger, tmp_path):
    """Everyone spends what they can, in any order, with Gaussian noise too."""
    plan = wi.calibrate(wi.Epsilon(1), delta=1e-6)
    for seed in range(4):
        chance, name = random.Random(seed), f"d{seed}"
        ledger.register(name, plan)
        people = ["ann", "bob", "eve", "joe"]
        for person in people[1:]:
            ledger.set_quota(name, person, chance.choice(["1/4", "1/5", "1/10"]))
        total = ledger.budget_state(name).budget.rho
        for number in range(60):
            with wi.Ledger(tmp_path / "ledger.db", who=chance.choice(people)) as own:
                rho = Fraction(total * chance.randint(1, 9), 100 * encoding.EPSILON_UNITS)
                cost = (
                    Cost.gaussian(rho) if seed % 2 else Cost.pure(chance.choice(["1/10", "1/50"]))
                )
                try:
                    own.debit(name, f"{number}", Spend({}, {"add-remove": cost}))
                except BudgetRefused:
                    continue
        state = ledger.budget_state(name)
        assert state.budget.holds(state.spent) and verify(ledger, name).debits == state.debits > 4
        for quota in state.accounts.quotas.values():
            assert quota.spent.within(quota.limit)


@pytest.mark.parametrize("word", ["1/2", "2"])
def test_a_quota_above_what_is_left_is_refused(ledger, word):
    ledger.register("d", PLANS["add-remove"])
    pay(ledger, "one", "2/3")
    with pytest.raises(WhosinError) as raised:
        ledger.set_quota("d", "ann", word)
    assert "\n" not in str(raised.value) and not ledger.budget_state("d").accounts.quotas


# Both stores


@pytest.mark.filterwarnings("ignore:the ledger's server has no role")
@pytest.mark.parametrize("relation", PLANS)
def test_both_stores_keep_the_same_accounts(tmp_path, relation):
    """The same random debits, amendments and quotas: PostgreSQL computes the sums by itself, and
    refuses what does not fit."""
    import postgres

    postgres.require()
    with (
        postgres.server() as server,
        wi.Ledger(server.url, who="ann") as remote,
        wi.Ledger(tmp_path / "both.db", who="ann") as local,
    ):
        for seed in range(6):
            plans = GAUSSIAN if seed % 2 else PLANS
            one, other = (
                play(each, random.Random(seed), f"d{seed}", plans[relation])
                for each in (local, remote)
            )
            assert one == other
        check_settling(server.url, remote, relation)


def check_settling(url: str, remote: wi.Ledger, relation: str) -> None:
    """PostgreSQL sees in a period what Python sees, wherever the period began: the server's own
    clock cannot be moved on."""
    chance, year, seen = random.Random(3), datetime.now(UTC).year, set()
    said = {"periods": [f"{year}..{year + 1}"], "shares": ["1/4"], "unspent": "lapses"}
    remote.register("lapses", GAUSSIAN[relation], TABLE, new_people=True, schedule=said)
    state = remote.budget_state("lapses")
    assert state.schedule is not None
    settle = "SELECT whosin_settle(d, %s::jsonb, %s, %s) FROM whosin_datasets d WHERE name = %s"
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(60):
            pure, rho, more = chance.random() < 0.5, chance.randint(0, 60), chance.randint(1, 40)
            begun = Cost(0 if pure else encoding.INFINITE_UNITS, state.budget.rho * rho // 100)
            spent = Cost(encoding.INFINITE_UNITS, state.budget.rho * more // 100)
            first = state.schedule.periods[0].first
            after = Accounts(everyone=begun + spent, begun=begun, period=first)
            ceiling = state.schedule.ceiling(after, first)
            fits = after.total.within(ceiling) and after.total.within(state.budget.limit)
            seen.add((pure, fits))
            text, moment = after.text(), store.format_moment(datetime.now(UTC))
            with suppress(psycopg.Error) if not fits else nullcontext():
                connection.execute(settle, (text, text, moment, "lapses"))
                assert fits
    assert len(seen) == 4


def play(ledger: wi.Ledger, chance: random.Random, name: str, plan: wi.Plan):
    year = datetime.now(UTC).year
    periods = [f"{year}..{year + 1}", f"{year + 2}..{year + 5}"]
    said = {"periods": periods, "shares": ["3/4", "1/4"]}
    if chance.random() < 0.7:
        said["unspent"] = chance.choice(["lapses", "rolls-on"])
        ledger.register(name, plan, TABLE, new_people=True, schedule=said)
    else:
        ledger.register(name, plan, TABLE, new_people=True)
    outcomes, table = [], TABLE
    for number in range(40):
        kind = chance.random()
        try:
            if kind < 0.08:
                table = replace(table, domains={"x": {"values": [f"v{number}"]}})
                ledger.amend(name, table)
            elif kind < 0.2:
                share = f"{chance.randint(0, 20)}/100"
                ledger.set_quota(name, chance.choice(["bob", "eve", "ann"]), share)
            elif kind < 0.25:
                ledger.move_quota(name, "bob", "1/50", "eve")
            else:
                spends = {}
                for each in range(chance.randint(1, 3)):
                    own, entering = (f"{chance.randint(0, 9)}/100" for _ in range(2))
                    cost = Cost.gaussian if plan.dp_delta and chance.random() < 0.5 else Cost.pure
                    if cost == Cost.gaussian:
                        own, entering = (f"{chance.randint(0, 9)}/4000" for _ in range(2))
                    spend = ask(chance.choice([None, *"abcd"]), own, entering, cost)
                    spends[f"{number}/{each}"] = replace(spend, registration=table)
                ledger.debits(name, spends)
            outcomes.append("done")
        except (BudgetRefused, InvalidInput) as error:
            outcomes.append(str(error))
    assert verify(ledger, name)
    state = ledger.budget_state(name)
    return outcomes, state.accounts, state.spent, ledger.part_levels(name)


def test_the_first_quota_by_name_pays_in_whatever_order_they_were_made():
    """Stores read them by name, and a replayed history in the order in which they were made."""
    quotas = {name: Quota(Cost(1, 0), members=("ann",)) for name in ("zeta", "alpha")}
    for names in (["zeta", "alpha"], ["alpha", "zeta"]):
        accounts = Accounts(quotas={name: quotas[name] for name in names})
        assert accounts.find_quota("ann", "2024-01-01") == "alpha"


@pytest.mark.parametrize("known", [True, False])
def test_two_who_amend_at_once_never_have_the_same_rows(tmp_path, monkeypatch, known) -> None:
    """Each looks for rows like its own when the other has looked already, or not at all."""
    import postgres
    from whosin.ledger import registry

    postgres.require()
    claim, both = registry._claim_people, threading.Barrier(2)

    def claim_together(*asked: Any, **said: Any) -> Any:
        found = claim(*asked, **said)
        with suppress(threading.BrokenBarrierError):
            both.wait(1)
        return found

    def amend(url: str, name: str) -> bool:
        rows = Registration("who", source={"rows": "the same"})
        with wi.Ledger(url, who="curator", wait=60) as ledger, suppress(BudgetRefused):
            ledger.amend(name, rows, new_people=True)
            return True
        return False

    with postgres.server() as server:
        for url in (str(tmp_path / "l.db"), server.url):
            with wi.Ledger(url) as ledger:
                for name in "ab":
                    own = Registration("who", source={"rows": f"of {name}"}) if known else None
                    ledger.register(name, PLANS["replace"], own, new_people=True)
            both.reset()
            monkeypatch.setattr(registry, "_claim_people", claim_together)
            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(partial(amend, url), "ab")) == [False, True]
            monkeypatch.undo()
