"""What a budget is for: one privacy unit, one table, one promise; and the ways around it."""

from __future__ import annotations

import json
import math
import multiprocessing
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

import release_oracle as oracle
import whosin as wi
from refusals import refused
from whosin import release
from whosin.errors import BrokenHistory, BudgetRefused, StoreFailed
from whosin.ledger import Cost, Ledger, Spend, verify
from whosin.ledger.budget import Budget
from whosin.ledger.encoding import EPSILON_UNITS
from whosin.ledger.registration import RegisteredTable, Registration, _same_rows
from whosin.release import Count, Histogram, Median, Rows, Session, Sum
from whosin.release.table import fingerprint_table, register_table

PLAN = oracle.PLANS["add-remove"]
ROWS = "patient,visit,days\n" + "".join(f"p{n % 7},v{n},{n % 9}\n" for n in range(60))


@pytest.fixture
def visits(tmp_path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture
def ledger(tmp_path):
    with wi.Ledger(tmp_path / "ledger.db", who="tests") as found:
        yield found


def table(path, privacy_unit="patient", days="0..30", **options) -> wi.Table:
    domains = {} if days is None else {"days": days}
    return wi.Table(path, privacy_unit, domains, **options)


def entries(ledger, kind, dataset="visits"):
    return [entry for entry in ledger.history(dataset) if entry.kind == kind]


# One privacy unit, domains, bounds, columns


def test_a_column_called_row_is_not_each_row(tmp_path, ledger) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("row,days\np1,3\np2,4\n")
    second.write_text("days,who\n3,p1\n4,p1\n")
    options: dict[str, Any] = {"dataset": "visits", "share": "1/10"}
    Session(table(first, "column:row"), PLAN, ledger, **options)
    with pytest.raises(BudgetRefused, match="set once and for all"):
        Session(table(second, "row"), PLAN, ledger, amend=True, **options)


@pytest.mark.parametrize("share", [1, None])
@pytest.mark.parametrize("bare", [False, True])
def test_a_refused_session_records_nothing(tmp_path, visits, ledger, share, bare) -> None:
    """The next month's table used to be recorded before the empty budget was seen."""
    if bare:  # registered without a table, and paid by someone without one
        ledger.register("visits", PLAN)
        ledger.answer("visits", Spend({}, {"add-remove": Cost.pure(PLAN.epsilon)}), lambda: 1)
    else:
        Session(table(visits), PLAN, ledger, share=1).ask(Count())
    later = tmp_path / "later.csv"
    later.write_text(ROWS + "p8,v80,4\n")
    before = ledger.history("visits")
    for plan in (PLAN, oracle.PLANS["replace"]):
        with pytest.raises(BudgetRefused):
            Session(table(later), plan, ledger, dataset="visits", amend=True, share=share)
        assert ledger.history("visits") == before
    ledger.close("visits")
    before = ledger.history("visits")
    with pytest.raises(BudgetRefused, match="closed"):
        Session(table(later), PLAN, ledger, dataset="visits", amend=True, share=share)
    assert ledger.history("visits") == before


def test_a_name_in_two_spellings_is_one_dataset(tmp_path, ledger) -> None:
    path = tmp_path / "Zoe\u0308.csv"
    path.write_text(ROWS)
    Session(table(path), PLAN, ledger, share="1/10").ask(Count())
    again = Session(table(path), PLAN, ledger, share="1/10", curator=False)
    assert again.dataset == "Zo\u00eb" and again.budget_state.debits == 1


def test_the_privacy_unit_is_fixed(visits, ledger) -> None:
    Session(table(visits), PLAN, ledger).ask(Count(), share="1/10")
    for amend in (False, True):
        with pytest.raises(
            BudgetRefused, match="the privacy unit 'patient', and this is about 'visit'"
        ):
            Session(table(visits, "visit"), PLAN, ledger, amend=amend)
    other = Session(table(visits), PLAN, ledger)
    other.table = table(visits, "visit")
    other._admission.registration = register_table(other.table)
    with pytest.raises(BudgetRefused, match="set once and for all"):  # in the debit's own turn
        other.ask(Count(where="days > 1"), share="1/10")
    assert ledger.budget_state("visits").debits == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"days": "0..3"}, "'days' as 0..30, and this has 0..3;"),
        ({"max_rows_per_group": 3}, "max_rows_per_group = 2, and this has 3;"),
        ({"max_groups": 2}, "max_groups = 1, and this has 2;"),
    ],
)
def test_other_domains_and_wider_bounds_are_amended_or_refused(
    visits, ledger, options, words
) -> None:
    Session(table(visits, max_rows_per_group=2), PLAN, ledger).ask(Count(), share="1/10")
    with pytest.raises(BudgetRefused) as caught:
        Session(table(visits, **({"max_rows_per_group": 2} | options)), PLAN, ledger)
    assert words in str(caught.value) and "amend" in str(caught.value)
    changed = table(visits, **({"max_rows_per_group": 2} | options))
    Session(changed, PLAN, ledger, amend=True).ask(Count(where="days > 1"), share="1/10")
    assert len(entries(ledger, "amended")) == 1
    assert ledger.budget_state("visits").debits == 2
    verify(ledger, "visits")


def test_fewer_columns_and_tighter_bounds_are_within(visits, ledger) -> None:
    Session(table(visits, max_rows_per_group=2), PLAN, ledger)
    Session(table(visits, days=None), PLAN, ledger).ask(Count(), share="1/10")
    with pytest.raises(BudgetRefused, match="no domain for 'visit'"):
        Session(wi.Table(visits, "patient", {"visit": ["v1"]}), PLAN, ledger)
    assert not entries(ledger, "amended")


def test_domains_are_compared_by_what_they_mean(visits, ledger) -> None:
    Session(table(visits, days=(0, 30)), PLAN, ledger)
    for same in ("0..30", {"lower": "0", "upper": 30.0}, release.Range(0, "30")):
        Session(table(visits, days=same), PLAN, ledger)


def test_debits_record_what_they_were_asked_of(visits, ledger) -> None:
    session = Session(table(visits, max_rows_per_group=2), PLAN, ledger)
    session.release([Count(), Sum(column="days")], share="1/2")
    count, total = (entry.body["registration"] for entry in entries(ledger, "debit"))
    assert count["privacy_unit"] == "patient" and (
        count["max_rows_per_group"],
        count["max_groups"],
    ) == (1, 1)
    assert (total["max_rows_per_group"], total["max_groups"]) == (2, 1)
    assert count["domains"] == {} and total["domains"] == {"days": {"lower": "0", "upper": "30"}}
    assert len(total["schema"]) == 64 and len(total["source"]) == 64
    assert entries(ledger, "registered")[0].body["registration"]["schema"]["days"] == "string"


VISITS = Histogram(column="visit")
BOTH = {"days": "0..30", "visit": ["v0", "v1", "v2"]}


@pytest.mark.parametrize(
    ("within", "beyond", "words"),
    [
        (
            Rows(max_rows_per_group=2),
            Rows(max_rows_per_group=3),
            "max_rows_per_group = 2, and this has 3",
        ),
        (
            Sum(column="days", max_rows_per_group=1),
            Sum(column="days", max_rows_per_group=50),
            "max_rows_per_group = 2, and this has 50",
        ),
        (
            Median(column="days"),
            Median(column="days", max_rows_per_group=9),
            "max_rows_per_group = 2, and this has 9",
        ),
        (
            Histogram(column="visit"),
            Histogram(column="visit", max_groups=2),
            "max_groups = 1, and this has 2",
        ),
    ],
)
def test_a_question_has_no_wider_bounds_than_the_registered(visits, ledger, within, beyond, words):
    """The noise would pay for them; but whose rows count, and how many, the curator has fixed."""
    bounded = wi.Table(visits, "patient", BOTH, max_rows_per_group=2)
    session = Session(bounded, PLAN, ledger)
    session.ask(within, share="1/20")
    with pytest.raises(BudgetRefused, match=words):
        session.ask(beyond, share="1/20")
    with pytest.raises(BudgetRefused, match=words):  # someone who may not decide, at once
        Session(bounded, PLAN, ledger, curator=False, queries=[beyond])
    assert ledger.budget_state("visits").debits == 1
    Session(bounded, PLAN, ledger, amend=True, queries=[beyond]).ask(beyond, share="1/20")
    verify(ledger, "visits")


def test_a_scenario_registers_the_bounds_of_its_questions(visits, ledger):
    asked = [Rows(max_rows_per_group=3), Histogram(column="visit", max_groups=50), Count()]
    opened = wi.Table(visits, "patient", BOTH)
    Session(opened, PLAN, ledger, queries=asked).release(asked, share="1/2")
    kept = ledger.budget_state("visits").registered.registration
    assert kept.max_rows_per_group == 3 and 1 < kept.max_groups < 50, "no more cells than there are"


def test_a_bound_dataset_takes_no_debit_of_nothing(visits, ledger) -> None:
    Session(table(visits), PLAN, ledger)
    with pytest.raises(BudgetRefused, match="must say which table"):
        ledger.debit("visits", "raw", Spend({}, {"add-remove": Cost.pure("0.1")}))


def test_a_replay_shows_the_stored_question(visits, ledger) -> None:
    wide = Session(table(visits), PLAN, ledger, request="r").ask(Sum(column="days"), share="1/2")
    narrow = table(visits, days="0..3")
    with pytest.raises(BudgetRefused):
        Session(narrow, PLAN, ledger)
    ledger.amend("visits", register_table(narrow, (), rows=True))
    again = Session(narrow, PLAN, ledger, request="r").ask(Sum(column="days"), share="1/2")
    assert again == wide and again.noise == wide.noise
    fresh = Session(narrow, PLAN, ledger).dry_run(Sum(column="days"), share="1/2")[0]
    assert fresh.noise != wide.noise


def test_what_was_paid_is_drawn_from_what_it_was_paid_for(visits, ledger, monkeypatch) -> None:
    session = Session(table(visits), PLAN, ledger, request="r")
    with monkeypatch.context() as patch:
        patch.setattr(Sum, "answer", lambda *_: 1 / 0)
        with pytest.raises(wi.errors.ScanFailed):
            session.ask(Sum(column="days"), share="1/2")
    ledger.resume("visits")
    narrow = table(visits, days="0..3")
    ledger.amend("visits", register_table(narrow, (), rows=True))
    with refused("request", kind=BudgetRefused):
        Session(narrow, PLAN, ledger, request="r").ask(Sum(column="days"), share="1/2")


def test_a_changed_registration_breaks_the_history(visits, ledger, tmp_path) -> None:
    Session(table(visits), PLAN, ledger).ask(Count(), share="1/10")
    verify(ledger, "visits")
    registered = ledger.budget_state("visits").registered
    forged = replace(
        registered, registration=replace(registered.registration, privacy_unit="visit")
    )
    with sqlite3.connect(tmp_path / "ledger.db") as connection:
        connection.execute("UPDATE whosin_datasets SET registration = ?", [forged.text()])
    with pytest.raises(BrokenHistory):
        verify(ledger, "visits")
    with pytest.raises(BrokenHistory):
        ledger.amend("visits", Registration("visit"))


# Fresh budgets by another name


def copies(visits: Path) -> dict[str, object]:
    folder = visits.parent
    shutil.copy(visits, folder / "VISITS.csv")
    (folder / "link.csv").symlink_to(visits)
    header, *lines = ROWS.splitlines()
    (folder / "sorted.csv").write_text("\n".join([header, *sorted(lines, reverse=True)]) + "\n")
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute(f"CREATE TABLE seen AS FROM '{visits}'")
        connection.execute(f"COPY (FROM '{visits}') TO '{folder}/other.parquet'")
    return {
        "a copy in another case": folder / "VISITS.csv",
        "a link": folder / "link.csv",
        "another order": folder / "sorted.csv",
        "a database": f"{folder}/clinic.duckdb::seen",
        "another format": folder / "other.parquet",
        "memory": pq.read_table(folder / "other.parquet"),
    }


def test_the_same_rows_under_another_name(visits, ledger) -> None:
    Session(table(visits, days=None), PLAN, ledger)
    for what, source in copies(visits).items():
        name = f"copy: {what}"
        copy = table(source, days=None, name=name)
        with pytest.raises(BudgetRefused, match="are those of dataset"):
            Session(copy, PLAN, ledger, new_people=True)
        assert name not in ledger.datasets(), what
    (visits.parent / "else.csv").write_text(ROWS + "p9,v99,1\n")
    Session(table(visits.parent / "else.csv", days=None), PLAN, ledger, new_people=True)


def test_next_month_goes_on_under_the_same_budget(visits, ledger) -> None:
    Session(table(visits), PLAN, ledger).ask(Count(), share="1/2")
    visits.write_text(ROWS + "p9,v99,1\n")
    with pytest.raises(BudgetRefused, match="the source has changed"):
        Session(table(visits), PLAN, ledger)
    Session(table(visits), PLAN, ledger, amend=True).ask(Count(), share="1/2")
    assert ledger.budget_state("visits").spendable == 0
    verify(ledger, "visits")


def test_fingerprints_stay_with_the_curator(visits, ledger, tmp_path) -> None:
    session = Session(table(visits), PLAN, ledger)
    session.ask(Count(), share="1/2")
    prints = register_table(session.table, rows=True).source
    assert set(prints) == {"bytes", "rows"}
    budget_state, history, _ = ledger.record("visits")
    kept = budget_state.registered
    shown = json.dumps([budget_state.to_dict(), [entry.to_dict() for entry in history]])
    for secret in (*prints.values(), *kept.registration.source.values(), kept.key):
        assert secret not in shown
    # Whoever guesses the whole table cannot test the guess against an entry without the key.
    other = RegisteredTable.of(register_table(session.table, rows=True))
    assert other.entry()["source"] != history[0].body["registration"]["source"]
    assert other.entry() | {"source": ""} == history[0].body["registration"] | {"source": ""}


def test_large_files_are_sampled(tmp_path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    block = (("x" * 62 + ",\n") * 1024).encode()
    for path in (first, second):
        path.write_bytes(b"who,x\n" + block * 300)
    prints = [fingerprint_table(wi.Table(p, "who")) for p in (first, second)]
    assert prints[0] == prints[1] and set(prints[0]) == {"bytes"}
    with second.open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"y")
    assert fingerprint_table(wi.Table(second, "who")) != prints[0]


# Promises of their own


def test_an_uninformed_adversary_is_not_substituted(ledger) -> None:
    data = oracle.table({"who": ["a", "b", "c"]})
    registered = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"))
    ledger.register("people", registered)
    plan = wi.calibrate(wi.Gamma("1.5"), wi.families.Uninformed())
    query = release.Maximum(universe=[(name, n) for n, name in enumerate("abcdefgh")])
    session = Session(data, plan, ledger, share="1/2")
    with refused("plan", kind=BudgetRefused):
        session.ask(query)
    session.ask(Count())  # costs world-level ε, whatever the words
    assert ledger.budget_state("people").debits == 1
    with pytest.raises(BudgetRefused):
        ledger.debits("people", {"x": Spend({}, {}, "my own promise", alone=True)})


def test_the_universe_is_registered(ledger) -> None:
    data = oracle.table({"who": ["a", "b", "c"]})
    plan = wi.calibrate(wi.Gamma("1.5"), wi.families.Uninformed())
    people = [(name, n) for n, name in enumerate("abcdefgh")]
    invented = [("a", 9), *((f"nobody {n}", n) for n in range(7))]
    session = Session(data, plan, ledger, queries=[release.Maximum(universe=people)], share=1)
    with pytest.raises(BudgetRefused, match="another universe"):
        session.ask(release.Maximum(universe=invented))
    with pytest.raises(BudgetRefused, match="another universe"):
        Session(data, plan, ledger, amend=True, share=1).ask(release.Maximum(universe=invented))
    assert session.ask(release.Maximum(universe=people[::-1])).columns == ("value", "places")
    verify(ledger, "people")


def test_users_find_everything_decided(visits, ledger) -> None:
    data = table(visits)
    with refused("dataset", kind=BudgetRefused):
        Session(data, PLAN, ledger, curator=False)
    ledger.register("visits", PLAN)
    with pytest.raises(BudgetRefused, match="registered without its table"):
        Session(data, PLAN, ledger, curator=False)
    ledger.amend("visits", register_table(data))
    Session(data, PLAN, ledger, curator=False).ask(Count(), share="1/10")
    with pytest.raises(BudgetRefused, match="and this is about 'visit'"):
        Session(table(visits, "visit"), PLAN, ledger, curator=False)


def test_a_request_is_its_owners(visits, tmp_path, ledger) -> None:
    mine = Session(table(visits), PLAN, ledger, request="secret").ask(Count(), share="1/10")
    with wi.Ledger(tmp_path / "ledger.db", who="eve", own=True) as hers:
        assert hers.requests("visits", "secret") == set()
        with refused("request", kind=BudgetRefused):
            Session(table(visits), PLAN, hers, request="secret", curator=False).ask(
                Count(), share="1/10"
            )
    with wi.Ledger(tmp_path / "ledger.db", who="tests", own=True) as own:
        again = Session(table(visits), PLAN, own, request="secret", curator=False)
        assert again.ask(Count(), share="1/10") == mine


# Batches and shares


def test_racing_batches_are_paid_whole_or_not_at_all(visits, tmp_path, ledger) -> None:
    data = table(visits)
    Session(data, PLAN, ledger)
    batch = [Count(), Rows(), Sum(column="days")]
    estimates = Session(data, PLAN, ledger).dry_run(batch, share="1/2")
    registration = register_table(data)
    spends = [replace(estimate.spend, registration=registration) for estimate in estimates]
    refused, lock = [], threading.Barrier(5)

    def race(number: int) -> None:
        with wi.Ledger(tmp_path / "ledger.db") as own:
            lock.wait()
            try:
                own.debits("visits", {f"{number}/{place}": c for place, c in enumerate(spends)})
            except BudgetRefused as error:
                refused.append(str(error))

    with ThreadPoolExecutor(5) as pool:
        list(pool.map(race, range(5)))
    paid = [entry.request.split("/")[0] for entry in entries(ledger, "debit")]
    assert len(paid) == 6 and all(paid.count(each) == 3 for each in paid)
    assert len(refused) == 3 and all("nothing was spent" in words for words in refused)
    verify(ledger, "visits")


def test_a_share_that_fits_is_admitted_and_says_so(visits, ledger) -> None:
    for _ in range(3):
        session = Session(table(visits), PLAN, ledger, share="1/3", again=True)
        session.ask(Count())
    assert "has ε = " in session.notes[0] and "takes" in session.notes[0]
    with refused("share", kind=BudgetRefused):
        Session(table(visits), PLAN, ledger, share="1/3").ask(Rows())


def test_nothing_is_spent_by_default(visits, ledger) -> None:
    session = Session(table(visits), PLAN, ledger)
    for call in (session.ask, session.release, session.dry_run):
        with refused("share"):
            call(Count())
    assert not entries(ledger, "debit")
    one = wi.calibrate(wi.Epsilon("0.1"), wi.families.Independent(), query="count")
    Session(table(visits), one, ledger).ask(Count())
    again = Session(table(visits), PLAN, ledger)  # the registered plan goes on with what is left
    again.ask(Count(), share="9/10")


def test_errors_after_the_debit_name_the_request(visits, ledger, monkeypatch) -> None:
    def failing(*_: object) -> None:
        raise StoreFailed("the ledger cannot be used: the disk is full; no answer was given")

    session = Session(table(visits), PLAN, ledger, request="friday")
    for method in ("store_answers", "budget_state"):
        with monkeypatch.context() as patch:
            patch.setattr(wi.Ledger, method, failing)
            with pytest.raises(StoreFailed, match="request friday continues without paying again"):
                session.release([Count(), Rows()], share="1/2")
    assert len(entries(ledger, "debit")) == 2


# Synthetic tables


SPAWN = multiprocessing.get_context("spawn")


class ExitingThread(threading.Thread):
    """A thread with the exit code of a process: 1 unless its target returned."""

    exitcode = 1

    def run(self) -> None:
        super().run()
        self.exitcode = 0


def synthesise(folder: str, ledger: str, barrier) -> None:
    plan = oracle.PLANS["replace"]
    data = wi.Table(f"{folder}/../visits.csv", "patient", {"days": [str(n) for n in range(9)]})
    session = Session(data, plan, ledger, request="R1", share=1)
    barrier.wait()
    session.ask(release.Synthetic(columns=["days"], path=f"{folder}/s.parquet"))


@pytest.mark.parametrize(
    ("count", "barrier_of", "start"),
    [
        pytest.param(2, threading.Barrier, ExitingThread, id="threads"),
        pytest.param(4, SPAWN.Barrier, SPAWN.Process, id="processes", marks=pytest.mark.soak),
    ],
)
def test_one_request_is_one_synthetic_table_wherever_it_runs(
    visits, tmp_path, count, barrier_of, start
) -> None:
    barrier = barrier_of(count)
    folders = [tmp_path / str(number) for number in range(count)]
    for folder in folders:
        folder.mkdir()
    ledger = str(tmp_path / "ledger.db")
    data = wi.Table(visits, "patient", {"days": [str(n) for n in range(9)]})
    Session(data, oracle.PLANS["replace"], ledger)
    runs = [start(target=synthesise, args=(str(folder), ledger, barrier)) for folder in folders]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert [run.exitcode for run in runs] == [0] * count
    written = {path.read_bytes() for folder in folders for path in folder.iterdir()}
    assert len(written) == 1, "one debit, one table"
    with wi.Ledger(ledger) as opened:
        assert len(entries(opened, "debit")) == 1


def test_a_table_that_was_not_stored_is_not_there(visits, ledger, tmp_path, monkeypatch) -> None:
    out = tmp_path / "out"
    out.mkdir()
    data = wi.Table(visits, "patient", {"days": [str(n) for n in range(9)]})
    query = release.Synthetic(columns=["days"], path=str(out / "s.parquet"))
    session = Session(data, oracle.PLANS["replace"], ledger, request="R1", share=1)

    def locked(*_: object) -> None:
        raise StoreFailed("the ledger cannot be used: it is locked; no answer was given")

    with monkeypatch.context() as patch:
        patch.setattr(wi.Ledger, "store_answers", locked)
        with pytest.raises(StoreFailed, match="R1 continues"):
            session.ask(query)
    assert not list(out.iterdir())
    answer = session.ask(query)
    assert pq.read_table(out / "s.parquet").num_rows == answer.rows[0][1] == 7
    # What a killed process leaves is a table that nobody paid for: it is for its owner only.
    assert (out / "s.parquet").stat().st_mode & 0o077 == 0
    # A crash between storing and publishing: the draft is still there, and is what is published.
    whole = (out / "s.parquet").read_bytes()
    draft = out / release.engines.base.draft_name("s.parquet", answer.rows[0][2])
    (out / "s.parquet").rename(draft)
    again = Session(data, oracle.PLANS["replace"], ledger, request="R1", share=1)
    assert again.ask(query) == answer and (out / "s.parquet").read_bytes() == whole
    (out / "s.parquet").unlink()
    lost = Session(data, oracle.PLANS["replace"], ledger, request="R1", share=1)
    assert lost.ask(query) == answer and "is not here" in lost.notes[0]
    assert not list(out.iterdir())


@pytest.mark.parametrize(
    ("mine", "other", "known", "alike"),
    [
        ({"bytes": "a", "place": "x"}, {"bytes": "a", "place": "y"}, False, True),
        ({"bytes": "a", "place": "x"}, {"bytes": "b", "place": "x"}, True, False),
        ({"bytes": "a", "place": "x"}, {"place": "x"}, False, True),
        ({"place": "x"}, {"place": "y"}, True, False),
        ({"bytes": "a"}, {"place": "a"}, True, False),  # nothing to compare: not the same
        ({}, {"place": "x"}, True, True),
        ({}, {"place": "x"}, False, False),
        ({}, {}, False, False),
    ],
)
def test_sources_are_alike_by_what_both_say(mine, other, known, alike):
    assert _same_rows(mine, other, known=known) is alike
    assert _same_rows(other, mine, known=known) is alike


def people_of(ledger, spends, plan):
    """Datasets of one shape with these spends, taken together."""
    shape = Registration("person", schema={"person": "string"})
    for number, spent in enumerate(spends):
        name = f"month {number}"
        own = replace(shape, source={"rows": str(number)})
        ledger.register(name, plan, own, new_people=True)
        for index, cost in enumerate(spent):
            costs = {plan.relation: cost}
            spend = Spend({"query": "count"}, costs, registration=replace(shape, source={}))
            ledger.debit(name, f"r/{index}", spend)
    return ledger.people_budget("month 0")


def test_gaussian_answers_of_several_datasets_add_in_rho(tmp_path):
    """Neither in ε nor in beliefs; what is said is above the exact curve of their Gaussian noise,
    and below what adding the ε of each would say."""
    from scipy.stats import norm

    plan = wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.05, 0.5), delta=1e-6)
    with Ledger(str(tmp_path / "l.db")) as ledger:
        limit = Budget.of(plan).rho / EPSILON_UNITS
        people = people_of(ledger, [[Cost.gaussian(limit * 0.499)] * 2] * 4, plan)
        assert people is not None and not people.certain and len(people.states) == 4
        separate = sum(each.epsilon for each in people.states)
        mean = 2 * math.sqrt(2 * limit)  # of four, in standard deviations
        delta = norm.cdf(mean / 2 - people.epsilon / mean) - math.exp(people.epsilon) * norm.cdf(
            -mean / 2 - people.epsilon / mean
        )
        assert delta <= 4 * plan.dp_delta and people.epsilon < 0.75 * separate
        assert people.budget_epsilon == pytest.approx(4 * plan.epsilon)
        sure = people.posterior(people.epsilon, certain=False)
        assert people.posterior(people.epsilon) < sure < 1 and people.failure == 4 * plan.failure
        ratio = math.exp(people.epsilon) / (1 - plan.dp_delta / float(plan.failure))
        assert sure == pytest.approx(ratio / (1 + ratio), rel=1e-9)


def test_pure_answers_of_several_datasets_add_in_epsilon(tmp_path):
    plan = wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.05, 0.5))
    with Ledger(str(tmp_path / "l.db")) as ledger:
        people = people_of(ledger, [[Cost.pure(0.1)], [Cost.pure(0.2)], []], plan)
        assert people.certain and people.epsilon == pytest.approx(0.3)
        assert people.posterior(people.epsilon) == pytest.approx(1 / (1 + math.exp(-0.3)))
        assert ledger.people_budget("month 2").epsilon == people.epsilon


def test_a_dataset_beyond_its_rho_is_added_by_its_pure_epsilon(tmp_path):
    """Its pure ε may be within the budget where its ρ is not."""
    plan = wi.calibrate(wi.Posterior(0.6), wi.families.Independent(0.05, 0.5), delta=1e-6)
    with Ledger(str(tmp_path / "l.db")) as ledger:
        whole = Cost.pure(0.9 * plan.epsilon)
        assert whole.rho > Budget.of(plan).rho
        people = people_of(ledger, [[whole], [Cost.gaussian(0.0001)]], plan)
        assert math.isinf(people.epsilon) and people.posterior(people.epsilon) == 1
        assert people.to_dict()["spent_epsilon"] == "inf"


@pytest.mark.parametrize("bound", [False, True])
def test_rows_of_another_dataset_are_refused_to_one_that_exists(tmp_path, visits, ledger, bound):
    """However it was opened: a second budget for the same people doubles the promise."""
    Session(table(visits), PLAN, ledger)
    copy = tmp_path / "copy.csv"
    copy.write_text(ROWS)
    if bound:
        copy.write_text(ROWS.replace("p1", "q1"))
        Session(table(copy), PLAN, ledger, dataset="second", new_people=True)
        copy.write_text(ROWS)
    else:
        ledger.register("second", PLAN)
    same = register_table(table(copy), rows=True)
    with pytest.raises(BudgetRefused, match="'visits'"):
        Session(table(copy), PLAN, ledger, dataset="second", amend=bound, new_people=True)
    with pytest.raises(BudgetRefused, match="'visits'"):
        ledger.amend("second", same)
    registered = ledger.budget_state("second").registered
    assert (registered is not None) == bound and not (bound and registered.holds_rows_of(same))
