"""An engine that fails after a debit suspends its dataset: it counts, and what is not stored yet
gets the same refusal until the curator lets it go on. Whether it fails can depend on one person's
rows, so nobody may try it twice."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import release_oracle as oracle
import whosin as wi
from ledger_programs import run_killed
from suspending_checks import PLAN, PRICE, SUSPENDED, check_a_release_of_its_own, check_suspending
from whosin.errors import BrokenHistory, BudgetRefused, ScanFailed, SourceChanged, StoreFailed
from whosin.ledger import budget_state as states
from whosin.ledger import entries, verify
from whosin.release import Count, DuckDB, Rows, Session, Table


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tester") as opened:
        yield opened


def test_a_failure_after_a_debit_suspends_the_dataset(ledger):
    check_suspending(ledger)


def test_a_release_of_its_own_stays_the_only_one(ledger):
    check_a_release_of_its_own(ledger)


def test_whoever_stops_the_work_and_a_replaced_source_suspend_nothing(ledger):
    def stop() -> object:
        raise KeyboardInterrupt

    def replaced() -> object:
        raise SourceChanged("the table has other columns")

    ledger.register("d", PLAN)
    for draw, error in ((stop, KeyboardInterrupt), (replaced, SourceChanged)):
        with pytest.raises(error):
            ledger.answer("d", PRICE, draw, "r")
    assert not ledger.budget_state("d").suspended and ledger.answer("d", PRICE, lambda: 1, "r") == 1


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE whosin_datasets SET state = 'open'",
        "UPDATE whosin_datasets SET state = 'suspended closed'",
        "UPDATE whosin_datasets SET state = 'stopped'",
        "DELETE FROM whosin_entries WHERE kind = 'suspended'",
    ],
)
def test_a_suspension_cannot_be_wiped_off(ledger, tmp_path, forgery):
    ledger.register("d", PLAN)
    ledger.debit("d", "r", PRICE)
    ledger.suspend("d", "r")
    with sqlite3.connect(tmp_path / "ledger.db") as base:
        base.execute(forgery)
    with pytest.raises(BrokenHistory):
        verify(ledger, "d")
    with pytest.raises(BrokenHistory):
        ledger.debit("d", "s", PRICE)


def test_a_history_that_answers_while_it_is_suspended_is_broken(ledger, monkeypatch):
    """Someone patched the refusal away: the entries still show it."""
    ledger.register("d", PLAN)
    debit = ledger.debit("d", "r", PRICE)
    ledger.suspend("d", "r")
    monkeypatch.setattr(states, "refuse_suspended", lambda _: None)
    ledger.store(debit, 1)
    with pytest.raises(BrokenHistory, match="while it was suspended"):
        verify(ledger, "d")


def test_states_are_what_they_were_before_a_suspension():
    for state in entries.BASIC_STATES:
        assert entries.state_after_resuming(entries.state_after_suspension(state)) == state
        assert entries.state_after_suspension(
            entries.state_after_suspension(state)
        ) == entries.state_after_suspension(state)
        assert len(entries.state_after_suspension(state)) <= 24  # the column's width
        assert (
            entries.state_after_resuming(
                entries.state_after_closing(entries.state_after_suspension(state))
            )
            == "closed"
        )


# Races and kills


def test_of_sessions_that_race_none_shows_more_after_the_first_failure(ledger) -> None:
    """Ten questions are paid and drawn at once. Were they judged one by one, ten failures would
    tell ten bits: after the first one nothing is stored."""
    ledger.register("d", PLAN)
    paid = threading.Barrier(10)
    failed = threading.Event()
    outcomes: list[object] = []

    def ask(place: int) -> None:
        def draw() -> object:
            paid.wait(30)
            if place == 0:
                raise MemoryError
            failed.wait(30)
            return place

        try:
            outcomes.append(ledger.answer("d", PRICE, draw, f"r{place}"))
        except (BudgetRefused, MemoryError) as error:
            outcomes.append(type(error))
        if place == 0:
            failed.set()

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(ask, range(10)))
    assert outcomes.count(BudgetRefused) == 9 and outcomes.count(MemoryError) == 1
    assert len(ledger.unanswered("d")) == 10 and ledger.budget_state("d").suspensions == 1
    ledger.resume("d")
    assert ledger.answer("d", PRICE, lambda: 7, "r7") == 7
    verify(ledger, "d")


KILLED = """
import os, signal
moment, path = sys.argv[1:]
ledger = wi.Ledger(path, who="killed")
price = Spend({"query": "count"}, {"add-remove": Cost.pure("0.1")})
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def draw():
    if moment == "drawing":
        die()
    if moment == "suspending":
        ledger._store._settle = die    # the suspension is committed, and nothing after it happens
    else:
        ledger._turn = die
    raise MemoryError
ledger.answer("d", price, draw, "r")
"""


@pytest.mark.parametrize(
    ("moment", "suspended"), [("drawing", False), ("before", False), ("suspending", True)]
)
def test_a_kill_between_the_debit_and_the_suspension(ledger, tmp_path, moment, suspended):
    """A process that dies tells nobody: its debit stands, and the same request continues. Once the
    suspension is committed, it is."""
    ledger.register("d", PLAN)
    run_killed(KILLED, moment, tmp_path / "ledger.db")
    assert ledger.budget_state("d").suspended is suspended
    assert verify(ledger, "d").unanswered == ("r",)
    if suspended:
        with pytest.raises(BudgetRefused, match=SUSPENDED):
            ledger.answer("d", PRICE, lambda: 1, "r")
        ledger.resume("d")
    assert ledger.answer("d", PRICE, lambda: 1, "r") == 1
    assert ledger.budget_state("d").debits == 1


# Sessions


class Failing(Count):
    """A count whose scan fails as it is told, or not."""

    error: BaseException | None = None

    def answer(self, table, estimate, progress=None):
        if type(self).error is not None:
            raise type(self).error
        return super().answer(table, estimate, progress)


@pytest.fixture
def people(tmp_path) -> Table:
    return oracle.table({"who": ["a", "b", "c"], "x": [1.0, 2.0, 3.0]}, {"x": (0, 5)})


@pytest.fixture(autouse=True)
def _sound() -> None:
    Failing.error = None


def test_the_same_words_whatever_failed(people, ledger):
    """And the same refusal afterwards, in this session and in any other."""
    said, refused = set(), set()
    for place, error in enumerate([MemoryError(), OSError(28, "ann"), ValueError("row of ann")]):
        session = Session(people, PLAN, ledger, request=f"r{place}", share="1/10")
        Failing.error = error
        with pytest.raises(ScanFailed) as caught:
            session.ask(Failing())
        assert caught.value.__context__ is None and caught.value.__cause__ is None
        said.add(str(caught.value).replace(session.request, "…"))
        Failing.error = None
        for again in (
            session,
            Session(people, PLAN, ledger, request=f"r{place}"),
            Session(people, PLAN, ledger),
        ):
            with pytest.raises(BudgetRefused) as caught:
                again.ask(Count(), share="1/10")
            refused.add(str(caught.value))
        assert ledger.budget_state("people").suspensions == place + 1
        ledger.resume("people")
    assert len(said) == len(refused) == 1


def test_a_failed_batch_goes_on_where_it_was(people, ledger):
    session = Session(people, PLAN, ledger, share=1)
    batch = [Count(), Failing(weight=2), Rows()]
    Failing.error = RuntimeError()
    with pytest.raises(ScanFailed):
        session.release(batch)
    for _ in range(2):
        with pytest.raises(BudgetRefused, match="is suspended"):
            session.release(batch)
    ledger.resume("people")
    Failing.error = None
    assert len(session.release(batch)) == 3 and ledger.budget_state("people").debits == 3


def test_another_batch_after_a_refusal_does_not_take_the_paid_ones_place(people, ledger):
    session = Session(people, PLAN, ledger)
    Failing.error = RuntimeError()
    with pytest.raises(ScanFailed):
        session.ask(Failing(), share="1/4")
    with pytest.raises(BudgetRefused):
        session.ask(Failing(), share="1/4")
    ledger.resume("people")
    session.ask(Rows(), share="1/4")
    assert ledger.budget_state("people").debits == 2


def test_a_ledger_that_cannot_be_told_is_said(people, ledger, monkeypatch):
    session = Session(people, PLAN, ledger, request="r", share=1)
    Failing.error = RuntimeError("row of ann")

    def full(*_: object) -> None:
        raise StoreFailed("the disk is full")

    monkeypatch.setattr(wi.Ledger, "suspend", full)
    with pytest.raises(ScanFailed, match=r"request r continues .*; the ledger could not be told"):
        session.ask(Failing())


def test_a_replaced_source_keeps_its_words(ledger, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("who,x\na,1\n")
    with DuckDB() as engine:
        session = Session(Table(path, "who", engine=engine), PLAN, ledger, request="r")
        path.write_text("x,who\n1,a\n")
        with pytest.raises(SourceChanged) as caught:
            session.ask(Count(), share="1/2")
    assert str(caught.value) == (
        "the table has other columns than when it was opened: column 1 of the header is another "
        "one; the debit stands; request r continues without paying again"
    )
    assert not ledger.budget_state("t").suspended


# Commands


def test_the_command_shows_and_resumes(ledger, tmp_path, run):
    where = str(tmp_path / "ledger.db")
    ledger.register("d", PLAN)
    ledger.debit("d", "r", PRICE)
    ledger.suspend("d", "r")
    code, out, _ = run("ledger show", where, "d", "--entries")
    assert code == 0 and "State: open." in out and "suspended" in out
    assert "Suspended: nothing is answered until its curator has looked" in " ".join(out.split())
    assert "An engine failed after a debit once." in " ".join(out.split())
    assert (
        json.loads(run("ledger show", where, "d", "--json")[1])["datasets"][0]["suspensions"] == 1
    )
    code, out, _ = run("ledger resume", where, "d")
    assert code == 0 and "It was suspended; its curator let it go on." in " ".join(out.split())
    code, out, err = run("ledger resume", where, "d")
    assert (code, out) == (1, "") and err == "whosin: dataset 'd' is not suspended\n"
    assert run("ledger verify", where)[0] == 0
    code, out, _ = run("ledger export", where, "d", "--json")
    assert [e["kind"] for e in json.loads(out)["datasets"][0]["history"]][-1] == "resumed"


def test_a_release_that_failed_is_refused_until_it_is_resumed(tmp_path, run, monkeypatch):
    path = Path(tmp_path, "visits.csv")
    path.write_text("who,x\na,1\nb,2\n")
    scenario = Path(tmp_path, "s.toml")
    scenario.write_text(
        f'''[target]
epsilon = 1
[table]
source = "{path}"
privacy_unit = "who"
[ledger]
url = "{tmp_path / "books.db"}"
[budget]
share = "1/2"
[[queries]]
kind = "count"
'''
    )
    with monkeypatch.context() as patch:
        patch.setattr(Count, "answer", lambda *_: 1 / 0)
        code, out, err = run("release", str(scenario), "--request", "r")
    assert (code, out) == (3, "") and "request r then continues" in err
    for request in ("r", "s"):
        code, out, err = run("release", str(scenario), "--request", request)
        assert (code, out) == (1, "") and "'visits' is suspended" in err
    assert run("ledger resume", str(tmp_path / "books.db"), "visits")[0] == 0
    assert run("release", str(scenario), "--request", "r")[0] == 0
