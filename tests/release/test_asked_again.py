"""The same question about the same rows under the same plan is paid for once, in any session."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import release_oracle as oracle
import whosin as wi
from whosin.errors import BudgetRefused, ScanFailed
from whosin.ledger import encoding
from whosin.release import Count, Quantile, Rows, Running, Session, Sum
from whosin.release.answer import read_releases
from whosin.release.conditions import canonical_question, parse_condition
from whosin.release.queries.base import scenario_keys
from whosin.release.scenario import load_scenario
from whosin.release.table import register_table

PLAN = oracle.PLANS["add-remove"]
ROWS = [(f"p{number}", number % 2, number % 5) for number in range(40)]


def write(path: Path, rows: list[tuple[str, int, int]]) -> Path:
    lines = [f"{who},{ward},{days}" for who, ward, days in rows]
    path.write_text("\n".join(["who,ward,days", *lines, ""]))
    return path


def opened(path: Path, days: int = 5, **options: Any) -> wi.Table:
    domains = {"ward": [0, 1], "days": (0, days)}
    return wi.Table(path, "who", domains, name="people", **options)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write(tmp_path / "people.csv", ROWS)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[wi.Ledger]:
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as found:
        yield found


def debits(ledger: wi.Ledger) -> int:
    return ledger.budget_state("people").debits


def test_a_question_is_paid_for_once_in_a_session(rows, ledger) -> None:
    with Session(opened(rows), PLAN, ledger) as session:
        by = session.ask(Count(by="ward"), share="1/4")
        other = session.ask(Sum(column="days"), share="1/4")
        assert session.ask(Count(by="ward"), share=0.25) == by
        assert session.ask(Sum(column="days"), share="25%") == other
        assert debits(ledger) == 2 and len(session.notes) == 2
        assert "again=True" in session.notes[0]


def test_a_question_is_paid_for_once_in_all_sessions(rows, ledger) -> None:
    """Also where nothing is left, and in whatever order."""
    asked = [Count(), Rows(by="ward"), Sum(column="days"), Count(by="ward")]
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        first = [session.ask(each) for each in asked]
    assert ledger.budget_state("people").spendable < 0.001
    for order in ((0, 1, 2, 3), (3, 1, 3, 0, 2, 0)):
        with Session(opened(rows), PLAN, ledger) as session:
            for number in order:
                assert session.ask(asked[number], share="1/4") == first[number]
            with pytest.raises(BudgetRefused):
                session.ask(Count(where="days > 1"), share="1/4")
    assert debits(ledger) == 4


def test_a_plan_is_the_same_in_any_spelling(rows, ledger) -> None:
    for posterior, low, high in (
        ("3/4", "0.05", "0.5"),
        ("0.75", "1/20", "0.50"),
        (0.75, 0.05, 0.5),
    ):
        plan = wi.calibrate(wi.Posterior(posterior), wi.families.Independent(low, high))
        with Session(opened(rows), plan, ledger) as session:
            session.ask(Count(by="ward"), share="1/4")
    assert debits(ledger) == 1


def test_all_of_a_plan_is_shown_again(rows, ledger) -> None:
    batch = [Count(), Sum(column="days", within=500)]
    with Session(opened(rows), PLAN, ledger, share=1) as session:
        first, rest = session.ask(Rows(by="ward", within=200)), session.release(batch[:1])
    for share in (1, None):
        with Session(opened(rows), PLAN, ledger, share=share) as session:
            found = session.release(batch[:1], share=None if share else 1)
            assert (found.request, found.answers) == (rest.request, rest.answers)
            assert session.ask(Rows(by="ward", within=200), share=1) == first
    with pytest.raises(BudgetRefused):
        Session(opened(rows), PLAN, ledger, share=1, again=True)
    with Session(opened(rows), PLAN, ledger, share=1) as session, pytest.raises(BudgetRefused):
        session.release(batch)
    assert debits(ledger) == 2


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (Count(), {"share": "1/6"}),
        (Count(), {"noise": "gaussian"}),
        (Count(by="ward"), {}),
        (Count(max_rows_per_group=1), {}),
    ],
)
def test_another_question_or_another_price_pays(query, options, rows, ledger) -> None:
    with Session(opened(rows), oracle.WITH_DELTA["add-remove"], ledger, share="1/5") as session:
        first = session.ask(Count())
        second = session.release(query, **options)
        same = query == Count() and not options
        assert debits(ledger) == 2 - same and second[0] != first


SAME = [
    [Count(), Count(by=[]), Count(by=(), name="all")],
    [Count(by="ward"), Count(by=["ward"]), Count(by=("ward",), name="people")],
    [Quantile(column="days"), *(Quantile(column="days", quantile=q) for q in (0.5, "1/2"))],
    [
        Sum(column="days", where=text, factor=factor, name=name)
        for text, factor, name in (
            ("days >= 2 and (ward = 1 or ward is null)", 2, ""),
            (' ("days">=2)AND(( ward=1 OR "ward"\n IS NULL )) ', "2.0", "days"),
            ("(days >= 2) AND (ward = 1 or (ward IS null))", 2.0, ""),
            ("((ward IS null) or 1 = ward) and 2 <= days", 2.0, ""),
        )
    ],
]
OTHERS = [
    "days = -(2)",
    "days = -2",
    "days = 2",
    "days = 2.0",
    "days = '2'",
    "ward = 1 and days = 2",
    "not (ward is null)",
    "(not ward = 1) is null",
    "ward = 1 and (days = 2 or days = 3)",
    "(ward = 1 and days = 2) or days = 3",
    "who = 'p1'",
    "who = 'P1'",
    "who = ' p1'",
    "who = 'p 1'",
    "days - (ward - 1) = 1",
    "days - ward - 1 = 1",
    "not (ward = 1 and days = 2)",
    "not ward = 1 and days = 2",
    "days < ward",
    "ward < days",
    "days <= ward",
    "days >= ward",
    "days in (2, 3)",
    "days in (2, 4)",
    "not days in (3, 2)",
    "days between 2 and 3",
    "days between 3 and 2",
    "case when ward = 1 then days = 2 else days = 3 end",
    "case when ward = 1 then days = 3 else days = 2 end",
    "coalesce(ward, days) = 1",
    "coalesce(days, ward) = 1",
]


def test_a_question_is_the_same_in_any_spelling(rows, ledger) -> None:
    for number, questions in enumerate(SAME, 1):
        found = []
        for each in questions:
            with Session(opened(rows), PLAN, ledger, share="1/7") as session:
                found.append(session.ask(each))
        assert [each.title for each in found] == [each.title for each in questions]
        assert {each.rows for each in found} == {found[0].rows} and debits(ledger) == number
    select = "SELECT SUM(days) AS d FROM people WHERE days>=2 AND (WARD=1 OR ward IS NULL)"
    with Session(opened(rows), PLAN, ledger, share="1/7", request="named") as session:
        session.ask(Count(by="ward", where="days = 2"))
        assert session.release(Count(by=["ward"], where="days=2")).request == "named"
    plain = Sum(column="days", where="days >= 2 and (ward = 1 or ward is null)")
    with Session(opened(rows), PLAN, ledger) as session:
        first = session.ask(plain, share="1/8")
        assert session.sql(select.replace("WARD", "ward"), share="1/8")[0].rows == first.rows
    assert debits(ledger) == 6


def test_questions_that_differ_are_never_taken_for_one_another(rows) -> None:
    told = [encoding.canonical_json(canonical_question({"where": each})) for each in OTHERS]
    assert len(set(told)) == len(OTHERS)
    # By the rows, some without values: conditions with one form are true of the same ones.
    rows.write_text(rows.read_text() + "n1,,2\nn2,1,\nn3,,\n,0,3\n")
    table, grouped = opened(rows), dict[str, set[Any]]()
    chance = random.Random(32)
    for _ in range(150):
        text, other = _random_condition(chance)
        forms = {_form(text), _form(other)}
        assert len(forms) == 1
        found = set()
        for each in (text, other):
            data = table.data.filter(parse_condition(each, table.data)).select("who", "days")
            pairs = table.engine.run(data).to_pydict()
            found.add(frozenset(zip(*pairs.values(), strict=True)))
        grouped.setdefault(forms.pop(), set()).update(found)
    assert all(len(each) == 1 for each in grouped.values()) and len(grouped) > 80


def _form(text: str) -> str:
    return encoding.canonical_json(canonical_question({"where": text}))


def _random_condition(chance: random.Random, depth: int = 3) -> tuple[str, str]:
    """A condition, and the same with operands, list items and sides in another order."""
    kind = chance.choice(("and", "or", "not", "compare", "in", "plain") if depth else ("compare",))
    if kind in ("and", "or"):
        parts = [_random_condition(chance, depth - 1) for _ in range(chance.choice((2, 2, 3)))]
        first = f" {kind} ".join(f"({each})" for each, _ in parts)
        chance.shuffle(parts)
        *others, last = (f"({each})" for _, each in parts)
        return first, f"(({f' {kind} '.join(others)}) {kind} {last})"
    if kind == "not":
        return tuple(f"not ({each})" for each in _random_condition(chance, depth - 1))
    if kind == "in":
        items = [str(chance.randrange(5)) for _ in range(3)]
        texts = f"days in ({', '.join(items)})", f"days in ({', '.join(items[::-1])})"
        return chance.choice((texts, texts[::-1]))
    if kind == "plain":
        return (chance.choice(("who like '%1'", "ward is null", "true", "days - ward = 1")),) * 2
    left, right = chance.sample(["days", "ward", "2", "1", "-(2)", "'2'"], 2)
    if {left, right} <= {"2", "1", "-(2)", "'2'"}:
        left = "days"
    pairs = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
    sign = chance.choice(list(pairs))
    return f"{left} {sign} {right}", f"{right} {pairs[sign]} {left}"


def test_what_was_interrupted_goes_on_in_another_spelling(rows, ledger) -> None:
    session = Session(opened(rows), PLAN, ledger, share="1/3")
    Stopping.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        session.ask(Stopping(by="ward", where="days > 1"))
    Stopping.error = None
    with Session(opened(rows), PLAN, ledger, share="1/3") as session:
        session.ask(Stopping(by=["ward"], where="(days>1)", name="later"))
    assert (debits(ledger), Stopping.answered) == (1, 1)


def test_weights_are_part_of_what_is_asked(rows, ledger) -> None:
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        first = session.release([Count(), Rows(weight=2)])
        assert session.release([Count(), Rows(weight=3)]).request != first.request
        assert session.release([Count(), Rows(weight="2")]).request == first.request
    assert debits(ledger) == 4


ASKED = [
    Count(),
    Count(name="everyone"),
    Count(weight=2),
    Count(by="ward"),
    Rows(where="days > 1 and ward = 1"),
    Rows(where="ward = 1 and 1 < days", weight="2"),
    Sum(column="days", weight="1/2"),
    Running(column="day", upto="2026-02", max_periods=2),
]


def _key(query: Any) -> tuple[str, str]:
    asked = canonical_question(scenario_keys(query))
    return encoding.canonical_json(asked), str(Fraction(str(query.weight)))


def test_a_batch_is_the_same_in_any_order(tmp_path) -> None:
    """Equal questions with other weights keep their own answers, and streams their steps."""
    path = tmp_path / "days.csv"
    lines = [f"{who},{ward},{days},2026-0{days % 3 + 1}-05" for who, ward, days in ROWS]
    path.write_text("\n".join(["who,ward,days,day", *lines, ""]))
    months = {"lower": "2026-01-01", "upper": "2026-04-30", "edges": "month"}
    domains = {"ward": [0, 1], "days": (0, 5), "day": months}
    plan, chance = oracle.WITH_DELTA["add-remove"], random.Random(7)
    budget: dict[str, Any] = {"share": "1/50", "noise": "gaussian"}
    with wi.Ledger(tmp_path / "ledger.db", who="ann") as ledger:
        for size in (2, 3, 5, 8):
            batch = chance.sample(ASKED, size)
            with Session(wi.Table(path, "who", domains, name="people"), plan, ledger) as session:
                first = session.release(batch, **budget)
            paid, plain = debits(ledger), all(query.kind != "running" for query in batch)
            for number in range(4):
                order = chance.sample(range(size), size)
                table = wi.Table(path, "who", domains, name="people")
                named = {"request": first.request} if plain and number == 3 else {}
                with Session(table, plan, ledger, **named) as session:
                    made = session.release([batch[each] for each in order], **budget)
                found = [
                    (_key(batch[n]), each.rows, each.cost)
                    for n, each in zip(order, made, strict=True)
                ]
                kept = [
                    (_key(query), each.rows, each.cost)
                    for query, each in zip(batch, first, strict=True)
                ]
                assert sorted(map(repr, found)) == sorted(map(repr, kept))
                assert [each.title for each in made] == [first[each].title for each in order]
                assert (made.request, made.digest, debits(ledger)) == (
                    first.request,
                    first.digest,
                    paid,
                )
            stored = {each.request: each for each in read_releases(ledger, "people")}
            assert not plain or stored[first.request].digest == first.digest
        with Session(table, plan, ledger) as session:
            session.release(batch[::-1], again=True, **budget)
            assert debits(ledger) > paid


@pytest.mark.parametrize("split", ["weights", "relative-error", "optimal"])
@pytest.mark.parametrize("named", [False, True])
def test_a_question_never_has_the_answer_of_another_one(split, named, rows, ledger) -> None:
    """Batches of a few questions in random orders, some interrupted, in one ledger: what is
    answered is what was asked, at its own price."""
    chance = random.Random(35)
    some = [
        Stopping(by="ward", magnitude=10),
        Count(magnitude=5),
        Count(magnitude=5, weight=2),
        Count(magnitude=50),
        Sum(column="days", magnitude=10),
        Sum(column="days", where="ward = 1 or days = 2", magnitude=10),
    ]
    seen: dict[str, set[Any]] = {}
    for number in range(24):
        batch = chance.sample(some, chance.choice((1, 2, 2, 3)))
        name = {"request": f"r{number % 3}"} if named else {}
        session = Session(opened(rows), PLAN, ledger, share="1/100", **name)
        prices = [each.spend.costs for each in session.dry_run(batch, split=split)]
        prices = [each["add-remove"] for each in prices]
        Stopping.error = KeyboardInterrupt() if chance.random() < 0.3 else None
        try:
            made = session.release(batch, split=split)
        except (KeyboardInterrupt, BudgetRefused):  # a name that was used for another batch
            continue
        for query, answer, price in zip(batch, made, prices, strict=True):
            asked = canonical_question(scenario_keys(query))
            told = canonical_question({**answer.question, "kind": answer.question["query"]})
            assert {key: told[key] for key in asked} == asked
            assert split == "optimal" or answer.cost == price
            if not named and split != "optimal":
                key = repr((sorted(map(repr, batch)), repr(query)))
                seen.setdefault(key, set()).add(answer.rows)
    assert all(len(each) == 1 for each in seen.values())


@pytest.mark.parametrize("widths", [False, True])
def test_a_batch_measured_at_once_is_the_same_in_any_order(widths, rows, ledger) -> None:
    """Each question keeps its own numbers, also where others have the same groups."""
    within = {"within": 300} if widths else {}
    batch = [
        Count(name="all", **within),
        Count(by="ward", weight=2),
        Count(name="wards", by=["ward"], weight=2),
        Sum(column="days", **within),
        Rows(where="days > 1"),
        Count(where="days > 1", by="ward"),
        Count(),
    ]
    chance, budget = random.Random(11), {"share": "1/3", "split": "optimal"}
    with Session(opened(rows), PLAN, ledger) as session:
        first = session.release(batch, **budget)
    paid = debits(ledger)
    assert paid < len(batch)
    for _ in range(6):
        order = chance.sample(range(len(batch)), len(batch))
        with Session(opened(rows), PLAN, ledger) as session:
            made = session.release([batch[each] for each in order], **budget)
        assert (made.request, made.digest, debits(ledger)) == (first.request, first.digest, paid)
        for number, answer in zip(order, made, strict=True):
            assert (answer.title, answer.rows) == (first[number].title, first[number].rows)


@pytest.mark.parametrize("split", ["weights", "relative-error"])
def test_what_was_interrupted_goes_on_in_another_order(split, rows, ledger) -> None:
    sizes = (0.1, 0.7, 300, 11, 23.3)
    batch = [Sum(column="days", where=f"days > {n}", magnitude=s) for n, s in enumerate(sizes)]
    batch = [*batch, Stopping(magnitude=40), Rows(magnitude="1/3")]
    Stopping.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        Session(opened(rows), PLAN, ledger, share="1/3").release(batch, split=split)
    paid = {each.request for each in ledger.history("people") if each.kind == "debit"}
    Stopping.error = None
    chance, found = random.Random(3), []
    for _ in range(3):
        chance.shuffle(batch)
        with Session(opened(rows), PLAN, ledger, share="1/3") as session:
            found.append(session.release(batch, split=split))
    assert ledger.requests("people") == paid and Stopping.answered == 1
    assert len({each.digest for each in found}) == 1


def test_magnitudes_are_part_of_what_is_asked_where_they_split(rows, ledger) -> None:
    for split, pays in (("weights", 2), ("relative-error", 4)):
        before = debits(ledger) if ledger.datasets() else 0
        for sizes in ((1, 100), (100, 1)):
            batch = [Count(magnitude=sizes[0]), Rows(magnitude=sizes[1])]
            with Session(opened(rows), PLAN, ledger, share="1/9") as session:
                session.release(batch, split=split)
        assert debits(ledger) - before == pays


def test_narrower_bounds_are_another_question(rows, ledger) -> None:
    """The dataset is registered with the wider ones."""
    for most in (3, 2):
        with Session(opened(rows, max_rows_per_group=most), PLAN, ledger, share="1/4") as session:
            session.ask(Sum(column="days"))
    assert debits(ledger) == 2


def test_again_pays(rows, ledger) -> None:
    with Session(opened(rows), PLAN, ledger, share="1/9") as session:
        first = session.ask(Count(by="ward"))
        drawn = [session.ask(Count(by="ward"), again=True) for _ in range(3)]
        assert debits(ledger) == 4 and len({each.rows for each in [first, *drawn]}) > 1
        assert session.ask(Count(by="ward")) == first
    with Session(opened(rows), PLAN, ledger, share="1/9", again=True) as session:
        session.release([Count(by="ward")])
        session.ask(Count(by="ward"))
        assert session.ask(Count(by="ward"), again=False) == first
        assert debits(ledger) == 6


def test_sql_is_paid_for_once(rows, ledger) -> None:
    select = "SELECT ward, COUNT(*), SUM(days) FROM people GROUP BY ward"
    with Session(opened(rows), PLAN, ledger) as session:
        first = session.sql(select, share="1/4")
        assert session.sql(select.lower(), share="1/4").answers == first.answers
        paid = debits(ledger)
        session.sql(select, share="1/4", again=True)
        assert debits(ledger) == 2 * paid


def test_another_month_is_refused_until_somebody_says_whose_it_is(rows, ledger) -> None:
    """It opened a second budget without a word."""

    def month(name: str, **options: Any) -> Session:
        table = wi.Table(rows.parent / f"{name}.csv", "who", {"ward": [0, 1], "days": (0, 5)})
        return Session(table, PLAN, ledger, share="1/4", **options)

    write(rows.parent / "january.csv", ROWS)
    write(rows.parent / "february.csv", ROWS[:-1])
    write(rows.parent / "others.csv", [("q1", 1, 1)])
    write(rows.parent / "copy.csv", ROWS[::-1])
    month("january").ask(Count())
    for name, options in (
        ("february", {}),
        ("february", {"amend": True}),
        ("copy", {}),
        ("copy", {"new_people": True}),
    ):
        with pytest.raises(BudgetRefused, match=r'dataset="january", amend=True'):
            month(name, **options)
    table = register_table(wi.Table(rows.parent / "february.csv", "who"), (), rows=True)
    with pytest.raises(BudgetRefused, match="january"):
        ledger.register("february", PLAN, table)
    assert ledger.datasets() == ["january"]
    month("february", dataset="january", amend=True).sql("SELECT COUNT(*) FROM february")
    month("others", new_people=True).ask(Count())
    write(rows.parent / "march.csv", ROWS[1:])
    with pytest.raises(BudgetRefused, match=r"'january' and 'others'.*, one of january, others"):
        month("march")
    assert [ledger.budget_state(name).debits for name in ledger.datasets()] == [2, 1]
    assert "january" in str(ledger.history("others")[0].body)


def test_a_table_that_a_dataset_went_on_with_has_its_answers_in_a_plain_session(rows) -> None:
    """The command showed them, and Python refused it as a copy."""
    place = rows.parent / "months.db"

    def month(name: str, **options: Any) -> Session:
        table = wi.Table(rows.parent / f"{name}.csv", "who", {"ward": [0, 1], "days": (0, 5)})
        return Session(table, PLAN, place, share="1/4", **options)

    write(rows.parent / "january.csv", ROWS)
    write(rows.parent / "february.csv", ROWS[:-1])
    batch, others = [Count(), Rows()], [Rows(), Count()]
    first = month("january").release(batch)
    second = month("february", dataset="january", amend=True).release(batch)
    for queries in ((), batch):
        session = month("february", queries=queries)
        made = session.release(others)
        assert (session.dataset, made.request) == ("january", second.request)
        assert made.answers == second.answers[::-1] and made.budget_state.debits == 4
    assert month("january").release(others).answers == first.answers[::-1]
    # What was not asked, somebody else's name and whoever may not decide: as before.
    with pytest.raises(BudgetRefused, match=r'dataset="january", amend=True'):
        month("february").release([Sum(column="days")])
    for options in ({"dataset": "february"}, {"curator": False}, {"again": True}):
        with pytest.raises(BudgetRefused):
            month("february", **options).release(batch)
    with wi.Ledger(place) as ledger:
        assert ledger.datasets() == ["january"] and ledger.budget_state("january").debits == 4


def test_rows_that_changed_are_asked_anew(rows, ledger) -> None:
    """Once the curator says that the dataset goes on with them; the earlier ones still show."""
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        first = session.ask(Count())
    write(rows, ROWS[:-1])
    with pytest.raises(BudgetRefused), Session(opened(rows), PLAN, ledger, share="1/4") as session:
        session.ask(Count())
    assert debits(ledger) == 1
    for _ in range(2):
        with Session(opened(rows), PLAN, ledger, share="1/4", amend=True) as session:
            session.ask(Count())
        assert debits(ledger) == 2
    write(rows, ROWS)
    for amend in (False, True):
        with Session(opened(rows), PLAN, ledger, share="1/4", amend=amend) as session:
            assert session.ask(Count()) == first
    assert debits(ledger) == 2
    amendments = [each for each in ledger.history("people") if each.kind == "amended"]
    assert len(amendments) == 1


def test_rows_that_changed_within_a_session_are_noticed(rows, ledger) -> None:
    plain = Session(opened(rows), PLAN, ledger, share="1/4")
    first = plain.ask(Count())
    write(rows, ROWS[:-1])
    for query in (Count(), Rows()):
        with pytest.raises(BudgetRefused, match="the source has changed"):
            plain.ask(query)
    assert debits(ledger) == 1
    with Session(opened(rows), PLAN, ledger, share="1/4", amend=True) as session:
        session.ask(Count())
        write(rows, ROWS[:-2])
        session.ask(Count())
        assert debits(ledger) == 3
    write(rows, ROWS)
    assert plain.ask(Count()) == first and debits(ledger) == 3


def test_other_declarations_are_other_rows(rows, ledger) -> None:
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        session.ask(Sum(column="days"))
    with Session(opened(rows, 9), PLAN, ledger, share="1/4", amend=True) as session:
        session.ask(Sum(column="days"))
    assert debits(ledger) == 2


def test_the_command_and_python_have_the_same_answers(rows, tmp_path) -> None:
    path = tmp_path / "people.toml"
    path.write_text(
        '[target]\nepsilon = 1\n[adversary]\nprior = "0..1"\n[table]\nsource = "people.csv"\n'
        'privacy_unit = "who"\n[domains]\ndays = "0..5"\n[ledger]\nurl = "own.db"\n'
        '[budget]\nshare = "1/2"\n[[queries]]\nkind = "count"\n'
    )
    scenario = load_scenario(path)
    with scenario.open_session() as session:
        first = scenario.release(session)
    table = wi.Table(rows, "who", {"days": (0, 5)})
    with Session(table, scenario.plan, tmp_path / "own.db", share="0.5") as session:
        found = session.release(Count())
    assert (found.request, found.answers) == (first.request, first.answers)
    assert scenario.find_request()


def test_an_analyst_does_not_see_what_others_asked(rows, tmp_path) -> None:
    """Neither the answers nor that it was asked, and what is their own is shown once more. How many
    people there are, and what was chosen by looking, is the curator's word alone."""
    place, asked = tmp_path / "ledger.db", opened(rows, people=40)
    with wi.Ledger(place, who="ann") as ledger, Session(asked, PLAN, ledger) as session:
        made = session.release(Count(), share="1/5")
        first = made[0]
        assert made.declared["people"] == 40
    found = []
    for who in ("bob", "eve", "bob"):
        with wi.Ledger(place, who=who, own=True) as ledger:
            asked = opened(rows, people=7 if who == "eve" else None)
            asked.domains["ward"] = replace(asked.domains["ward"], from_rows=True)
            session = Session(asked, PLAN, ledger, curator=False, share="1/5")
            made = session.release(Count())
            found.append(made)
            assert made.declared["people"] is None and made.declared["looked_up"] == []
            assert made[0] != first and bool(session.notes) == (len(found) == 3)
            assert made.budget_state.debits == 1 + len({each.request for each in found})
    assert found[2].answers == found[0].answers and found[1].request != found[0].request


class Stopping(Count):
    """A count whose scan does what it is told."""

    kind = "count"
    error: BaseException | None = None
    answered = 0

    def answer(self, table, estimate, progress=None):
        if type(self).error is not None:
            raise type(self).error
        type(self).answered += 1
        return super().answer(table, estimate, progress)


@pytest.fixture(autouse=True)
def _reset() -> None:
    Stopping.error, Stopping.answered = None, 0


@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("again", [True, False])
def test_what_was_interrupted_goes_on(same, again, rows, ledger) -> None:
    batch = [Rows(by="ward"), Stopping()]
    session = Session(opened(rows), PLAN, ledger, share="1/3", again=again)
    Stopping.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        session.release(batch)
    stopped = session.request
    Stopping.error = None
    if not same:
        session = Session(opened(rows), PLAN, ledger, share="1/3")
    made = session.release(batch)
    assert (made.request, debits(ledger), Stopping.answered) == (stopped, 2, 1)
    assert session.release(batch, again=False).answers == made.answers
    assert (debits(ledger), Stopping.answered) == (2, 1)


def test_a_failed_scan_is_paid_once_after_the_curator_resumed(rows, ledger) -> None:
    session = Session(opened(rows), PLAN, ledger, share="1/3")
    Stopping.error = RuntimeError("row of p7")
    for _ in range(2):
        with pytest.raises((ScanFailed, BudgetRefused)) as caught:
            session.ask(Stopping())
        assert "p7" not in str(caught.value)
    ledger.resume("people")
    Stopping.error = None
    first = session.ask(Stopping())
    with Session(opened(rows), PLAN, ledger, share="1/3") as other:
        assert other.ask(Stopping()) == first
    assert (debits(ledger), Stopping.answered) == (1, 1)


KILLED_BEFORE_ITS_ANSWER = """
import os, signal, sys
import whosin as wi
from whosin.release import Count, Session

class Killed(Count):
    kind = "count"
    def answer(self, *_):
        os.kill(os.getpid(), signal.SIGKILL)

rows, ledger = sys.argv[1:]
table = wi.Table(rows, "who", {"ward": [0, 1], "days": (0, 5)}, name="people")
plan = wi.calibrate(wi.Epsilon(1.0), wi.families.Independent())
Session(table, plan, ledger, share="1/3").ask(Killed())
"""


def test_a_kill_between_debit_and_answer_is_paid_once(rows, tmp_path) -> None:
    place = tmp_path / "ledger.db"
    stopped = subprocess.run([sys.executable, "-c", KILLED_BEFORE_ITS_ANSWER, rows, place])
    assert stopped.returncode == -signal.SIGKILL
    with wi.Ledger(place) as ledger:
        assert debits(ledger) == 1
        found = [Session(opened(rows), PLAN, ledger, share="1/3").ask(Stopping()) for _ in "ab"]
        assert found[0] == found[1]
        assert (debits(ledger), Stopping.answered) == (1, 1)


def test_two_sessions_at_once_pay_once(rows, ledger) -> None:
    """The second one asks between the debit and the answer of the first."""
    inner = []

    class Meanwhile(Stopping):
        def answer(self, table, estimate, progress=None):
            if not inner:
                inner.append(None)
                inner[0] = Session(opened(rows), PLAN, ledger, share="1/3").ask(Meanwhile())
            return super().answer(table, estimate, progress)

    made = Session(opened(rows), PLAN, ledger, share="1/3").ask(Meanwhile())
    assert inner == [made] and debits(ledger) == 1


def test_a_session_under_an_id_shows_its_own(rows, ledger) -> None:
    for _ in range(2):
        with Session(opened(rows), PLAN, ledger, share="1/4", request="mine") as session:
            first, second = session.ask(Count()), session.ask(Rows())
            assert session.ask(Count()) == first and session.ask(Rows()) == second
        assert debits(ledger) == 2
    assert ledger.requests("people") == {"mine/0", "mine/1"}


def test_what_was_asked_is_shown_whatever_has_become_of_prices(rows, ledger, monkeypatch) -> None:
    """Such as in a later version, which prices otherwise."""
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        first = session.ask(Count())
    own = Count.estimate_cost

    def halved(self, table, share):
        return own(self, table, replace(share, epsilon=share.epsilon / 2))

    monkeypatch.setattr(Count, "estimate_cost", halved)
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        assert session.ask(Count()) == first
    assert debits(ledger) == 1
