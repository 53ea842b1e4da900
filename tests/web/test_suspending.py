"""A process that fails after its debit, on a server: one refusal, until a curator looks."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from web_faults import crashing_scan, failing_scan, waiting_scan, with_fault
from web_server import ONE, problem, program
from whosin import isolation
from whosin.app.web.access import Settings, Visitor, add_user
from whosin.app.web.bodies import RequestRefused
from whosin.app.web.server import running
from whosin.app.web.tasks import TaskQueue
from whosin.ledger import Entry, Ledger, verify
from whosin.release.scenario import read_scenario
from whosin.release.table import register_table

SECRET = "patient 4711 is Ann"
BODY = {"scenario": {**ONE, "budget": {"share": "1/4"}}, "request": "will-fail"}


def is_suspended(client: httpx.Client, hospital: Settings) -> None:
    """It refuses everything that is not stored, on every route, and nothing more is debited."""
    for request in (BODY["request"], "another-one"):
        words = problem(client.post("/api/release", json={**BODY, "request": request}), 409)
        assert words.startswith("dataset 'hospital' is suspended")
    assert client.post("/api/estimate", json=BODY["scenario"]).json()["refusal"] == words
    [shown] = client.get("/api/ledger").json()["datasets"]
    assert (
        shown["budget_state"]["state"] == "suspended" and shown["budget_state"]["suspensions"] == 1
    )
    assert any(line.startswith("Suspended: ") for line in shown["card"][0]["lines"])
    history = client.get("/api/ledger/history", params={"dataset": "hospital"}).json()
    assert history["whole"] and history["entries"][-1][3] == "suspended"
    with Ledger(hospital.ledger) as ledger:
        assert f"{BODY['request']}/0" in verify(ledger, "hospital").unanswered


def goes_on(client: httpx.Client, hospital: Settings) -> None:
    with Ledger(hospital.ledger) as ledger:
        before = ledger.resume("hospital").debits
    assert client.post("/api/release", json=BODY).status_code == 200
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == before
        assert verify(ledger, "hospital").unanswered == ()


def too_large(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The process is found to hold too much as soon as it scans."""
    mark = folder / "scanning"

    def usage(_: object) -> tuple[float, float]:
        if not mark.exists():
            return 0, 0
        mark.unlink()
        return 0, 1 << 60

    patch.setattr(isolation, "process_usage", usage)
    with_fault(patch, waiting_scan, str(folder))


def too_slow(patch: pytest.MonkeyPatch, folder: Path) -> None:
    """The deadline comes as soon as it scans."""
    mark = folder / "scanning"

    def monotonic() -> float:
        if not mark.exists():
            return time.monotonic()
        mark.unlink()
        return time.monotonic() + 1e6

    patch.setattr(isolation, "time", SimpleNamespace(monotonic=monotonic))
    with_fault(patch, waiting_scan, str(folder))


def crashed(patch: pytest.MonkeyPatch, _: Path) -> None:
    with_fault(patch, crashing_scan)


def failed(patch: pytest.MonkeyPatch, _: Path) -> None:
    with_fault(patch, failing_scan, SECRET)


@pytest.mark.parametrize("fault", [failed, crashed, too_large, too_slow])
def test_the_words_do_not_say_why(own_processes, server, hospital, monkeypatch, capfd, fault):
    """An exception, a crash, too much memory and too much time look the same to whoever asked, and
    cannot be tried twice; whoever runs the server sees more."""
    with monkeypatch.context() as patch:
        fault(patch, hospital.folder)
        words = problem(server.post("/api/release", json=BODY), 503)
    assert words == (
        "the engine failed: the debit stands; dataset 'hospital' is suspended until its curator "
        "lets it go on with whosin ledger resume, and request will-fail then continues without "
        "paying again"
    )
    if fault is crashed:
        is_suspended(server, hospital)
        goes_on(server, hospital)
    with Ledger(hospital.ledger) as ledger:
        budget_state = ledger.budget_state("hospital")
    assert (budget_state.suspensions, budget_state.debits) == (1, 1) and budget_state.suspended == (
        fault is not crashed
    )
    said = "".join(capfd.readouterr())
    assert SECRET not in said and ("is suspended: " in said) == (fault is not failed)


def test_a_full_queue_does_not_keep_a_failure_uncounted(server, hospital, monkeypatch):
    """Whoever has used up all turns cannot get around the suspension."""
    real, priced = TaskQueue.quick, []

    def busy(self, *given):
        if priced:
            raise RequestRefused(429, "busy")
        priced.append(True)
        return real(self, *given)

    with monkeypatch.context() as patch:
        with_fault(patch, crashing_scan)
        patch.setattr(TaskQueue, "quick", busy)
        problem(server.post("/api/release", json=BODY), 503)
    is_suspended(server, hospital)


def test_what_is_stored_is_still_shown(server, hospital, monkeypatch):
    answered = {**BODY, "request": "was-answered"}
    made = server.post("/api/release", json=answered)
    with monkeypatch.context() as patch:
        with_fault(patch, crashing_scan)
        problem(server.post("/api/release", json=BODY), 503)
    again = server.post("/api/release", json=answered)
    assert again.status_code == 200 and again.json()["answers"] == made.json()["answers"]
    is_suspended(server, hospital)


def test_a_crash_before_any_debit_suspends_nothing(server, hospital, monkeypatch):
    with monkeypatch.context() as patch:
        with_fault(patch, crashing_scan)
        patch.setattr(TaskQueue, "scan", lambda *_: limits_reached())
        assert "memory" in problem(server.post("/api/release", json=BODY), 413)
    assert server.post("/api/release", json=BODY).status_code == 200
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").suspensions == 0


def limits_reached() -> None:
    raise isolation.TaskLimits(1, 1 << 30).too_large()


def test_a_users_failure_suspends_too(hospital, monkeypatch):
    """A user's request has a name of its own in the ledger, and the suspension finds it."""
    user = add_user(hospital.users, "Ann")
    with running(hospital) as url, program(url) as client:
        add_user(hospital.users, "Eve", curator=True)
        headers = {"Authorization": f"Bearer {user}"}
        with Ledger(hospital.ledger) as ledger:
            found = read_scenario(BODY["scenario"], hospital.folder)
            table = found.open_table()
            ledger.register("hospital", found.plan, register_table(table, found.queries, rows=True))
        with monkeypatch.context() as patch:
            with_fault(patch, crashing_scan)
            words = problem(client.post("/api/release", json=BODY, headers=headers), 503)
        assert "dataset 'hospital' is suspended" in words
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").suspended


def test_a_user_is_not_told_whose_scan_failed():
    entry = Entry("d", 2, "suspended", None, {"who": "Ann", "request": "r/0"}, "")
    assert Visitor("Ann", False).sees(entry) and Visitor("Boss").sees(entry)
    assert not Visitor("Bob", False).sees(entry)
