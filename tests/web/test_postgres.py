"""The page's server on a PostgreSQL ledger: the whole round, a race, and a database that stops."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import httpx
import pytest

import postgres
from web_faults import appears, waiting_scan, with_fault
from web_server import ONE, SCENARIO, program, served
from whosin.app.web.server import running
from whosin.ledger import Ledger, verify


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
    patients = 300 + sum(map(ord, request.node.name)) % 200
    settings = replace(served(tmp_path, patients), ledger=database.url)
    table = f"{request.node.name}.parquet"
    (tmp_path / "hospital.parquet").rename(tmp_path / table)
    return settings, table


@pytest.fixture
def server(hospital):
    with running(hospital[0]) as url, program(url) as client:
        yield client


def about(scenario: dict[str, Any], table: str) -> dict[str, Any]:
    return scenario | {"table": {**scenario["table"], "source": table}}


def problem(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert postgres.PASSWORD not in answer.text
    return str(answer.json()["error"]["message"])


def test_the_whole_round(server, hospital, tmp_path, database):
    settings, table = hospital
    name = table.removesuffix(".parquet")
    scenario = about(SCENARIO, table)
    body = {"scenario": scenario, "request": "on-a-database"}
    assert server.post("/api/price", json=scenario).json()["remaining"] is None
    made = server.post("/api/release", json=body).json()
    assert [answer["title"] for answer in made["answers"]] == ["patients", "visits by ward", "days"]
    assert server.post("/api/release", json=body).json() == made
    assert "left" in server.post("/api/price", json=scenario).json()["refusal"]
    report = server.post("/api/release/report", json=body).text
    toml = server.post("/api/scenario/toml", json=scenario).text
    script = server.post("/api/scenario/script", json=body).text
    assert "postgresql://whosin:" in toml
    assert not any(postgres.PASSWORD in text for text in (report, toml, script))
    (tmp_path / "again.py").write_text(script)
    run = [sys.executable, str(tmp_path / "again.py"), str(settings.folder), database.url]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert "\t".join(map(str, made["answers"][0]["rows"][0])) in printed
    shown = server.get("/api/ledger").json()["datasets"]
    assert [each["standing"]["debits"] for each in shown if each["dataset"] == name] == [3]
    history = server.get("/api/ledger/history", params={"dataset": name}).json()
    assert history["whole"] and history["unanswered"] == 0
    refused = server.post("/api/release", json=body | {"request": "a-second-one"})
    assert "has 0 left" in problem(refused, 409)


def test_two_servers_race_for_the_last_budget(server, hospital):
    """Two servers on one ledger, three clients each: one pays, the others are refused."""
    settings, table = hospital
    start = threading.Barrier(6)
    with running(settings) as url, program(url) as other:

        def go(number: int) -> httpx.Response:
            start.wait()
            body = {"scenario": about(ONE, table), "request": f"racing-{number}"}
            return (server, other)[number % 2].post("/api/release", json=body)

        with ThreadPoolExecutor(6) as pool:
            answers = list(pool.map(go, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    with Ledger(settings.ledger) as ledger:
        name = table.removesuffix(".parquet")
        assert ledger.standing(name).debits == 1 and ledger.standing(name).remaining == 0
        assert verify(ledger, name).unanswered == ()


def test_the_database_stops_before_the_debit(server, hospital, database):
    _, table = hospital
    body = {"scenario": about(ONE, table), "request": "while-it-is-away"}
    database.stop()
    try:
        for path in ("/api/release", "/api/release/csv", "/api/release/report"):
            words = problem(server.post(path, json=body), 503)
            assert "the server cannot be reached" in words and "answers" not in words
        assert "cannot be reached" in problem(server.get("/api/ledger"), 503)
        assert "cannot be reached" in problem(server.post("/api/price", json=body["scenario"]), 503)
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
        assert ledger.standing(name).debits == 1
        assert verify(ledger, name).unanswered != ()
    made = server.post("/api/release", json=body)
    assert made.status_code == 200 and server.post("/api/release", json=body).json() == made.json()
    with Ledger(settings.ledger) as ledger:
        assert ledger.standing(name).debits == 1
        assert verify(ledger, name).unanswered == ()
