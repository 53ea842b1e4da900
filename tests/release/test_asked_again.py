"""The same question about the same rows under the same plan is paid for once, in any session."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import release_oracle as oracle
import whosin as wi
from whosin.errors import BudgetRefused, ScanFailed
from whosin.release import Count, Rows, Session, Sum
from whosin.release.scenario import load_scenario

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
        (Count(name="n"), {}),
        (Count(max_rows_per_group=1), {}),
    ],
)
def test_another_question_or_another_price_pays(query, options, rows, ledger) -> None:
    with Session(opened(rows), oracle.WITH_DELTA["add-remove"], ledger, share="1/5") as session:
        first = session.ask(Count())
        second = session.release(query, **options)
        same = query == Count() and not options
        assert debits(ledger) == 2 - same and second[0] != first


def test_weights_are_part_of_what_is_asked(rows, ledger) -> None:
    with Session(opened(rows), PLAN, ledger, share="1/4") as session:
        first = session.release([Count(), Rows(weight=2)])
        assert session.release([Count(), Rows(weight=3)]).request != first.request
        assert session.release([Count(), Rows(weight="2")]).request == first.request
    assert debits(ledger) == 4


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
    assert scenario.was_asked()


def test_an_analyst_does_not_see_what_others_asked(rows, tmp_path) -> None:
    """Neither the answers nor that it was asked, and what is their own is shown once more."""
    place = tmp_path / "ledger.db"
    with wi.Ledger(place, who="ann") as ledger, Session(opened(rows), PLAN, ledger) as session:
        first = session.ask(Count(), share="1/5")
    found = []
    for who in ("bob", "eve", "bob"):
        with wi.Ledger(place, who=who, own=True) as ledger:
            session = Session(opened(rows), PLAN, ledger, curator=False, share="1/5")
            made = session.release(Count())
            found.append(made)
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
