"""The page's server on a PostgreSQL ledger: the whole round, a race, and a database that stops."""

from __future__ import annotations

import errno
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pyarrow.parquet as pq
import pytest

import postgres
from amounts import cases, some
from open_files import many_files
from web_faults import appears, failing_system, waiting_scan, with_fault
from web_server import ONE, SCENARIO, program, run_script, served
from whosin.app.web import scenarios
from whosin.app.web.access import Visitor
from whosin.app.web.bodies import ScenarioBody
from whosin.app.web.server import running
from whosin.errors import WhosinError
from whosin.ledger import Ledger, store, verify


@pytest.fixture(scope="module")
def database():
    postgres.require()
    with postgres.server() as found:
        Ledger(found.url).dispose()  # as whosin serve does when it starts
        yield found


@pytest.fixture
def hospital(tmp_path, database, request):
    """A served folder whose dataset has a name of its own in the shared ledger."""
    # Rows of its own too: the same rows have one budget, whatever they are called.
    name = re.sub("[^a-z_0-9]", "-", request.node.name)
    patients = 300 + sum(map(ord, name)) % 200
    settings = replace(served(tmp_path, patients), ledger=database.url)
    table = f"{name}.parquet"
    (tmp_path / "hospital.parquet").rename(tmp_path / table)
    return settings, table


@pytest.fixture
def server(hospital):
    with running(hospital[0]) as url, program(url) as client:
        yield client


def about(scenario: dict[str, Any], table: str) -> dict[str, Any]:
    return scenario | {"table": {**scenario["table"], "source": table}, "new_people": True}


def problem(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert postgres.PASSWORD not in answer.text
    return str(answer.json()["error"]["message"])


def test_the_whole_round(server, hospital, tmp_path, database):
    settings, table = hospital
    name = table.removesuffix(".parquet")
    scenario = about(SCENARIO, table)
    body = {"scenario": scenario, "request": "on-a-database"}
    assert server.post("/api/estimate", json=scenario).json()["remaining"] is None
    made = server.post("/api/release", json=body).json()
    assert [answer["title"] for answer in made["answers"]] == ["patients", "visits by ward", "days"]
    assert server.post("/api/release", json=body).json() == made
    assert "left" in server.post("/api/estimate", json=scenario).json()["refusal"]
    report = server.post("/api/release/report", json=body).text
    toml = server.post("/api/scenario/toml", json=scenario).text
    script = server.post("/api/scenario/script", json=body).text
    assert "postgresql://whosin:" in toml
    assert not any(postgres.PASSWORD in text for text in (report, toml, script))
    (tmp_path / "again.py").write_text(script)
    printed = run_script(tmp_path / "again.py", settings.folder, database.url)
    assert "\t".join(map(str, made["answers"][0]["rows"][0])) in printed
    shown = server.get("/api/ledger").json()["datasets"]
    assert [each["budget_state"]["debits"] for each in shown if each["dataset"] == name] == [3]
    history = server.get("/api/ledger/history", params={"dataset": name}).json()
    assert history["whole"] and history["unanswered"] == 0
    refused = server.post("/api/release", json=body | {"request": "a-second-one"})
    assert "has 0 left" in problem(refused, 409)


@pytest.mark.parametrize("files", some([nullcontext, many_files], 1))
def test_two_servers_race_for_the_last_budget(own_processes, server, hospital, files):
    """Two servers on one ledger, three clients each: one pays, the others are refused; also where a
    process has so many files open that some of the clients come beyond the first thousand."""
    settings, table = hospital
    start = threading.Barrier(6)
    with files(), running(settings) as url, program(url) as other:

        def go(number: int) -> httpx.Response:
            start.wait()
            body = {"scenario": about(ONE, table), "request": f"racing-{number}"}
            return (server, other)[number % 2].post("/api/release", json=body)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(go, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    with Ledger(settings.ledger) as ledger:
        name = table.removesuffix(".parquet")
        assert ledger.budget_state(name).debits == 1 and ledger.budget_state(name).remaining == 0
        assert verify(ledger, name).unanswered == ()


def sent(patch: pytest.MonkeyPatch, hook: Callable[[], None]) -> None:
    """Call a function before each thing that is asked of PostgreSQL."""
    for kind, name in [(psycopg.Connection, each) for each in ("execute", "commit", "rollback")] + [
        (psycopg.Cursor, "execute")
    ]:
        usual = getattr(kind, name)

        def hooked(self, *given, usual=usual, **options):
            hook()
            return usual(self, *given, **options)

        patch.setattr(kind, name, hooked)


def outcome(settings, body, request):
    """What comes of a release in this process: "answered", or the kind of a refusal."""
    try:
        scenarios.release_scenario(settings, ScenarioBody.model_validate(body), request, Visitor())
    except WhosinError as error:  # every other kind would be an internal error of the server
        return type(error).__name__
    return "answered"


class Copies:
    """Datasets of a name and rows of their own, one after the other, as a test needs them."""

    def __init__(self, settings, table):
        self.settings, self.number = settings, 0
        self.rows = pq.read_table(settings.folder / table)
        self.name = table.removesuffix(".parquet")

    def next(self):
        self.number += 1
        name = f"{self.name}-{self.number}.parquet"
        pq.write_table(self.rows.slice(self.number), self.settings.folder / name)
        return about(ONE, name)


def statements(settings, body, monkeypatch):
    """How many things a release asks of PostgreSQL."""
    asked = []
    with monkeypatch.context() as patch:
        sent(patch, lambda: asked.append(1))
        assert outcome(settings, body, "first") == "answered"
    return len(asked)


@cases(8, 200)
def test_another_release_between_any_two_statements(hospital, monkeypatch, count):
    """Whenever another process makes its release, one of the two is answered and the other one is
    refused; or it finds the dataset locked and pays nothing."""
    settings, table = hospital
    copies = Copies(settings, table)
    total = statements(settings, copies.next(), monkeypatch)
    for place in sorted({total * at // min(count, total) for at in range(min(count, total))}):
        body, seen, others = copies.next(), [], []

        def hook(place=place, body=body, seen=seen, others=others):
            seen.append(1)
            if len(seen) == place + 1:
                with monkeypatch.context() as within:
                    usual = store.connect_server
                    within.setattr(store, "connect_server", lambda to, _: usual(to, 0.05))
                    others.append(outcome(settings, body, "other"))

        with monkeypatch.context() as patch:
            sent(patch, hook)
            own = outcome(settings, body, "own")
        assert (own, *others) in (
            ("BudgetRefused", "answered"),
            ("answered", "BudgetRefused"),
            ("answered", "StoreFailed"),
        ), place


@cases(6, 200)
def test_no_failure_of_the_server_is_an_internal_error(hospital, monkeypatch, count):
    """Whatever PostgreSQL says at whichever statement."""
    settings, table = hospital
    copies = Copies(settings, table)
    total = statements(settings, copies.next(), monkeypatch)
    said = [
        psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected,
        psycopg.errors.UniqueViolation, psycopg.errors.QueryCanceled, psycopg.OperationalError,
        psycopg.InterfaceError,
    ]  # fmt: skip
    for turn, place in enumerate(sorted({total * at // count for at in range(count)})):
        for kind in said if count > 100 else said[turn % len(said) :][:1]:
            body, seen = copies.next(), []

            def hook(place=place, seen=seen, kind=kind):
                seen.append(1)
                if len(seen) == place + 1:
                    raise kind("said by the server")

            with monkeypatch.context() as patch:
                sent(patch, hook)
                assert outcome(settings, body, "own") in ("answered", "StoreFailed"), place
            assert outcome(settings, body, "own") == "answered"  # the same request goes on


def test_a_failing_system_is_no_internal_error(server, hospital, monkeypatch):
    """It is named by its number alone: its words may hold the name of a file, or a row."""
    _, table = hospital
    with monkeypatch.context() as patch:
        with_fault(patch, failing_system, errno.EMFILE, "/a/secret")
        words = problem(server.post("/api/estimate", json=about(ONE, table)), 503)
    assert "Too many open files" in words and "secret" not in words


def test_the_database_stops_before_the_debit(server, hospital, database):
    _, table = hospital
    body = {"scenario": about(ONE, table), "request": "while-it-is-away"}
    database.stop()
    try:
        for path in ("/api/release", "/api/release/csv", "/api/release/report"):
            words = problem(server.post(path, json=body), 503)
            assert "the server cannot be reached" in words and "answers" not in words
        assert "cannot be reached" in problem(server.get("/api/ledger"), 503)
        assert "cannot be reached" in problem(
            server.post("/api/estimate", json=body["scenario"]), 503
        )
        plan = {key: body["scenario"][key] for key in ("adversary", "target")}
        assert server.post("/api/plan", json=plan).status_code == 200  # it needs no ledger
    finally:
        database.start()
    assert server.post("/api/release", json=body).status_code == 200


def test_the_database_stops_while_a_table_is_scanned(server, hospital, database, monkeypatch):
    """The debit stands, the answer cannot be stored and is not shown, and a retry pays nothing."""
    settings, table = hospital
    body = {"scenario": about(ONE, table), "request": "stopped-midway"}
    with monkeypatch.context() as patch, ThreadPoolExecutor(1) as pool:
        with_fault(patch, waiting_scan, str(settings.folder))
        asked = pool.submit(server.post, "/api/release", json=body)
        assert appears(settings.folder / "scanning")
        database.stop()
        try:
            (settings.folder / "go-on").touch()
            assert "ledger" in problem(asked.result(), 503) and "rows" not in asked.result().text
        finally:
            database.start()
    name = table.removesuffix(".parquet")
    with Ledger(settings.ledger) as ledger:
        assert ledger.budget_state(name).debits == 1
        assert verify(ledger, name).unanswered != ()
    made = server.post("/api/release", json=body)
    assert made.status_code == 200 and server.post("/api/release", json=body).json() == made.json()
    with Ledger(settings.ledger) as ledger:
        assert ledger.budget_state(name).debits == 1
        assert verify(ledger, name).unanswered == ()
