"""The JSON routes: the same steps as the page, safe by default, and nothing private in errors."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

import whosin as wi
from described_requests import send_all
from spreadsheets import write_workbook
from web_faults import (
    appears,
    crashing_scan,
    descendants,
    failing_plan,
    failing_scan,
    waiting_scan,
    with_fault,
)
from web_server import ONE, PLAN, SCENARIO, problem, program, run_script, served
from whosin.app.cli.main import main
from whosin.app.web import scenarios
from whosin.app.web.access import Settings, add_user, read_users
from whosin.app.web.server import SECURITY_HEADERS, running
from whosin.errors import InvalidInput
from whosin.ledger import Ledger, verify
from whosin.release.scenario import load_scenario

SECRET = "patient 4711 is Ann"


def test_a_server_leaves_the_logs_of_others_alone_and_bounds_bodies(hospital):
    """A server in a notebook: handlers that others made stay open."""
    handler = logging.StreamHandler()
    closed = []
    handler.close = lambda: closed.append(True)
    with running(hospital) as url, program(url) as client:
        assert not closed
        problem(client.post("/api/plan", content=b" " * 3_000_000), 413)
        problem(client.post("/api/plan", content=iter([b"{}"])), 411)


# The steps


def test_a_plan_is_the_library_s_plan(still):
    view = still.post("/api/plan", json=PLAN).json()
    plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count")
    assert wi.Plan.from_dict(view["plan"]).epsilon == plan.epsilon
    assert view["plan"]["noise"] == vars(plan.noise)
    assert view["band"] == [0.05, 0.5]
    assert [part["title"] for part in view["card"]][:2] == ["Who is looking", "What is promised"]
    before, after = view["curves"][-1]["points"][50]
    assert (before, after) == (0.5, pytest.approx(0.6))
    assert any("T11" in line for line in view["theorems"])


def changed(**parts: object) -> dict[str, object]:
    return SCENARIO | parts


def table(**parts: object) -> dict[str, object]:
    return SCENARIO | {"table": SCENARIO["table"] | parts}


def asked(*queries: dict[str, object]) -> dict[str, object]:
    return SCENARIO | {"queries": list(queries)}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (table(source="none.csv"), "table.source"),
        (table(source="/etc/passwd"), "table.source"),
        (table(privacy_unit="pation"), "table.privacy_unit"),
        (table(max_rows_per_group=0), "table.max_rows_per_group"),
        (changed(domains={"age": {"lower": 9, "upper": 1}}), "domains.age"),
        (changed(domains={"age": ["old"]}), "domains.age"),
        (changed(domains={"age": list(range(2001))}), "domains.age"),
        (asked({"kind": "count", "where": "age >"}), "queries.0.where"),
        (asked({"kind": "count"}, {"kind": "mean", "column": "ward"}), "queries.1"),
        (asked({"kind": "count", "weight": -1}), "queries.0.weight"),
        (asked({"kind": "synthetic", "columns": ["ward"], "path": "x"}), "queries.0.path"),
    ],
)  # fmt: skip
def test_a_wrong_scenario_names_its_field(still, body, field):
    problem(still.post("/api/estimate", json=body), 422, field)


@pytest.mark.parametrize("kind", ["count", "top"])
def test_an_answer_that_no_page_can_show_is_refused(still, kind):
    many = {name: {"lower": 0, "upper": 200, "edges": list(range(200))} for name in ("age", "days")}
    body = asked({"kind": kind, "by": ["age", "days"]}) | {"domains": many}
    problem(still.post("/api/estimate", json=body), 422, "queries.0.by")


def test_the_price_is_shown_and_nothing_is_spent(server, hospital):
    price = server.post("/api/estimate", json=SCENARIO).json()
    assert [estimate["title"] for estimate in price["estimates"]] == [
        "patients",
        "visits by ward",
        "days",
    ]
    assert price["total_epsilon"] == pytest.approx(price["epsilon"])
    assert (price["remaining"], price["refusal"]) == (None, None)
    assert not Path(hospital.ledger).exists()
    counts = [{"kind": "count"}, {"kind": "count", "by": ["ward"]}]
    mean = {"kind": "mean", "column": "age"}
    best = SCENARIO | {"queries": [*counts, mean], "budget": {"split": "optimal"}}
    price = server.post("/api/estimate", json=best).json()
    assert [estimate["title"] for estimate in price["estimates"]] == [
        "count",
        "count by ward",
        "mean",
    ]
    assert price["total_epsilon"] == pytest.approx(price["epsilon"])
    assert ["by_weights" in estimate for estimate in price["estimates"]] == [True, True, False]


def test_the_whole_round(server, hospital, tmp_path):
    assert server.get("/api/files").json()["tables"][0]["name"] == "hospital.parquet"
    columns = server.get("/api/columns", params={"file": "hospital.parquet"}).json()["columns"]
    assert [column["name"] for column in columns] == ["patient", "age", "ward", "days"]
    body = {"scenario": SCENARIO, "request": "the-first-one"}
    made = server.post("/api/release", json=body).json()
    assert [answer["title"] for answer in made["answers"]] == ["patients", "visits by ward", "days"]
    value, low, high = made["answers"][0]["rows"][0]
    assert low < value < high and abs(value - 400) < 200
    assert server.post("/api/release", json=body).json() == made  # a retry

    text = server.post("/api/release/csv", params={"answer": 1}, json=body).text
    assert text.splitlines()[1].startswith('"surgery",')
    report = server.post("/api/release/report", json=body).text
    assert "visits by ward" in report and "<script" not in report
    assert "http:" not in report.replace("http://www.w3.org", "") and "https:" not in report
    short = server.post("/api/release/report", params={"reader": "officer"}, json=body).text
    assert len(short) < len(report) / 2
    other = server.post("/api/release/report", params={"reader": "nobody"}, json=body)
    assert problem(other, 422, "reader")
    about = body | {"scenario": body["scenario"] | {"about": {"decided_by": "the board"}}}
    assert "the board" in server.post("/api/release/report", json=about).text
    assert problem(server.post("/api/release/csv", params={"answer": 9}, json=body), 422, "answer")

    toml = server.post("/api/scenario/toml", json=SCENARIO).text
    (tmp_path / "again.toml").write_text(toml, encoding="utf-8")
    again = load_scenario(tmp_path / "again.toml")
    assert again.plan.epsilon == made["budget_state"]["plan"]["epsilon"]
    assert again.ledger == hospital.ledger
    read = server.post("/api/scenario/read", json={"text": toml}).json()
    assert read["scenario"] == SCENARIO and "ledger" in read["notes"][0]
    found = server.get("/api/scenario", params={"file": "again.toml"}).json()
    assert found["scenario"] == SCENARIO

    (tmp_path / "again.py").write_text(server.post("/api/scenario/script", json=body).text)
    printed = run_script(tmp_path / "again.py", tmp_path)
    for answer in made["answers"]:
        for row in answer["rows"]:
            assert "\t".join(map(str, row)) in printed
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 3  # paid once, whatever was fetched since

    shown = server.get("/api/ledger").json()["datasets"][0]
    assert shown["dataset"] == "hospital" and shown["budget_state"]["debits"] == 3
    history = server.get("/api/ledger/history", params={"dataset": "hospital"}).json()
    assert history["whole"] and len(history["entries"]) == 7
    refused = server.post("/api/release", json=body | {"request": "a-second-one"})
    assert "has 0 left" in problem(refused, 409, "budget.share")
    assert "left" in server.post("/api/estimate", json=SCENARIO).json()["refusal"]


def test_a_download_never_releases(server, hospital):
    body = {"scenario": ONE, "request": "never-made"}
    for path in ("/api/release/csv", "/api/release/parquet", "/api/release/report"):
        problem(server.post(path, json=body), 404, "request")
    assert not Path(hospital.ledger).exists()
    assert server.get("/api/ledger").json()["datasets"] == []


def test_verify_shows_its_witness(still):
    channel = {
        "space": {"kind": "subsets", "entities": ["ann", "bob"]},
        "outputs": ["low", "high"],
        "probabilities": [["3/4", "1/4"], ["1/2", "1/2"], [0.6, 0.4], ["1/4", "3/4"]],
    }
    body = {"channel": json.dumps(channel), "family": "independent=0.05..0.5", "at_most": "1.5"}
    found = still.post("/api/verify", json=body).json()
    assert found["level"]["value_exact"] == "40/21" and found["level"]["holds"] is False
    assert found["level"]["witness"]["entity"] == "ann" and found["belief"] == ["5.0%", "9.5%"]
    assert found["level"]["outcome"] == "refuted" and "refuted by this case" in found["verdict"]
    shares = ("0.7", "0.6", "0.8", "0.1", "0.8", "0.1", "0.5", "0.7")
    three = {
        "space": {"kind": "subsets", "entities": ["ann", "bob", "cat"]},
        "outputs": ["low", "high"],
        "probabilities": [[share, str(1 - Fraction(share))] for share in shares],
    }
    between = {"channel": json.dumps(three), "family": "fixed-size=0.1..0.4"}
    between["at_most"] = "1.66666666668"  # the bracket is as narrow as rounding
    found = still.post("/api/verify", json=between).json()
    assert found["level"]["outcome"] == "undecided" and found["level"]["holds"] is None
    assert "undecided" in found["verdict"]
    problem(still.post("/api/verify", json=body | {"channel": "{"}), 422, "channel")
    problem(still.post("/api/verify", json=body | {"family": "friends"}), 422, "family")
    problem(still.post("/api/verify", json=body | {"at_most": "much"}), 422, "at_most")
    wide = json.dumps({**channel, "probabilities": [[1] * 70_000]})
    problem(still.post("/api/verify", json=body | {"channel": wide}), 422, "channel")
    records, subsets = {"kind": "records", "rows": 10**9, "values": 9}, {"kind": "subsets"}
    for space in (records, subsets | {"entities": 10**9}):
        large = json.dumps({**channel, "space": space})
        problem(still.post("/api/verify", json=body | {"channel": large}), 422, "channel")


PUBLISHED = {
    "published": "ward,a,b,total\nA,<5,12,15\n",
    "population": "ward,a,b\nA,40,60\n",
    "prior": "0.1",
}


def test_a_table_before_it_is_published(still):
    found = still.post("/api/rules/check", json=PUBLISHED).json()
    assert "1 cell is suppressed: 1 can be worked out exactly" in found["summary"][0]
    assert found["rows"][1] == ["A, a", "–", "40", "10.0%", "7.5%", "3"]
    assert "must not be published" in found["warning"]
    earlier = {"before": "ward,a,b,total\nA,<5,13,16\n", "population_before": "ward,a,b\nA,40,61\n"}
    found = still.post("/api/rules/check", json=PUBLISHED | earlier).json()
    assert found["rows"][0][0] == "A, b, who left" and found["rows"][0][4] == "100%"
    for words, field in (
        ({"rule": "cell-key=/etc/passwd"}, "rule"),
        ({"rule": "round=1"}, "rule"),
        ({"prior": 2}, "prior"),
        ({"secret": "x"}, "secret"),
        ({"totals": "x"}, "totals"),
        ({"population": "ward,a\nA,40\n"}, "population"),
        ({"published": "ward,a,b\nA,?,1\n"}, "published"),
        ({"published": "ward,a,b,total\nA,6,7,15\n"}, "published"),
        ({"before": "ward,a,b\nA,1,2\n"}, "population_before"),
        ({"population_before": "ward,a,b\nA,1,2\n"}, "before"),
        (earlier | {"before": "ward,a,c\nA,1,2\n"}, "before"),
    ):
        answer = still.post("/api/rules/check", json=PUBLISHED | words)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"].startswith(field), answer.text


def test_notions_and_distortion(still):
    found = still.get("/api/notions").json()
    line = next(edge for edge in found["implications"] if edge["theorem"] == "T6")
    assert "T6" in line["statement"] and line["source"] in found["places"]
    curves = still.post("/api/distortion", json={"rows": 4, "prior": "0.7,0.3"}).json()["curves"]
    assert curves["dp"][0]["distortion"] == pytest.approx(1.2)
    problem(still.post("/api/distortion", json={"rows": 400}), 422, "rows")
    problem(still.post("/api/distortion", json={"rows": 4, "values": 40}), 422, "values")
    problem(still.post("/api/distortion", json={"rows": 4, "prior": "0.7"}), 422, "prior")


# Safe by default


def test_foreign_pages_and_rebound_names_are_refused(hospital):
    with running(hospital) as url, httpx.Client(base_url=url) as plain, program(url) as client:
        problem(plain.post("/api/plan", json=PLAN), 403)
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            problem(client.post("/api/plan", json=PLAN, headers=headers), 403)
        own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        assert client.post("/api/plan", json=PLAN, headers=own).status_code == 200
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "["):
            for path in ("/", "/api/ledger", "/static/app.js"):
                problem(client.get(path, headers={"Host": host}), 400)
        for path in ("/", "/api", "/static/app.js", "/api/hello", "/api/nothing"):
            headers = client.get(path).headers
            assert all(headers[name] for name in SECURITY_HEADERS), path
            assert "access-control-allow-origin" not in headers
        assert "unsafe" not in SECURITY_HEADERS["Content-Security-Policy"]
        assert client.get("/static/../server.py").status_code == 404
        assert client.get("/static/%2e%2e/server.py").status_code == 404


def test_tokens(tmp_path, capsys):
    hospital = served(tmp_path)
    token = add_user(hospital.users, "Ann", curator=True)
    second = add_user(hospital.users, "Bob")
    kept = hospital.users.read_text(encoding="utf-8")
    assert token not in kept and set(read_users(hospital.users)) == {"Ann", "Bob"}
    assert hospital.users.stat().st_mode & 0o077 == 0
    with running(hospital) as url, program(url) as client:
        hello = client.get("/api/hello").json()
        assert hello["login"] and hello["user"] is None
        for path in ("/api/files", "/api/ledger", "/api/openapi.json"):
            problem(client.get(path), 401)
        problem(client.post("/api/release", json={"scenario": ONE, "request": "x" * 9}), 401)
        problem(client.post("/api/login", json={"token": "guess"}), 401, "token")
        problem(client.get("/api/files", headers={"Authorization": f"Bearer {token}x"}), 401)
        bearer = {"Authorization": f"Bearer {token}"}
        made = client.post(
            "/api/release", json={"scenario": ONE, "request": "by-ann-first"}, headers=bearer
        )
        assert made.status_code == 200
        assert client.post("/api/login", json={"token": second}).json()["user"] == "Bob"
        assert client.get("/api/hello").json()["user"] == "Bob"  # by its cookie
        rows = client.get("/api/ledger/history", params={"dataset": "hospital"}).json()["entries"]
        assert {row[2] for row in rows} == {"Ann"}
        assert client.post("/api/logout").json()["user"] is None
        problem(client.get("/api/files"), 401)
        cookie = client.post("/api/login", json={"token": second}).headers["set-cookie"].lower()
        assert "httponly" in cookie and "samesite=strict" in cookie


def test_a_shared_server_opens_no_budgets(tmp_path):
    hospital = served(tmp_path, register=False)
    body = {"scenario": ONE, "request": "shared-one"}
    with running(hospital) as url, program(url) as client:
        refused = client.post("/api/release", json=body)
        problem(refused, 409, "table.source")
        create = "whosin ledger create ledger.db hospital --scenario scenario.toml"
        for path in ("/api/estimate", "/api/release"):
            asked = client.post(path, json=ONE if path == "/api/estimate" else body)
            assert create in asked.text and "--register" in asked.text
        problem(client.post("/api/files", params={"name": "a.csv"}, content=b"a\n1\n"), 409, "name")
        with Ledger(hospital.ledger) as ledger:
            plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"))
            ledger.register("hospital", plan)
        assert client.post("/api/release", json=body).status_code == 200


def upload(client: httpx.Client, name: str, content: bytes) -> httpx.Response:
    return client.post("/api/files", params={"name": name}, content=content)


def test_uploads(tmp_path):
    hospital = served(tmp_path / "data", largest_upload=3000)
    with running(hospital) as url, program(url) as client:
        assert upload(client, "new.csv", b"who,age\nann,3\nbob,4\n").status_code == 201
        columns = client.get("/api/columns", params={"file": "new.csv"}).json()["columns"]
        assert [column["type"] for column in columns] == ["string", "string"]
        for name in (
            "../evil.csv",
            "/evil.csv",
            ".hidden.csv",
            "a/b.csv",
            "x.exe",
            "note.docx",
            "",
            "*.csv",
        ):
            problem(upload(client, name, b"a\n1\n"), 422, "name")
        problem(upload(client, "new.csv", b"a\n1\n"), 409, "name")
        problem(upload(client, "large.csv", b"a" * 3001), 413)
        for name, content in (
            ("text.parquet", b"who,age\nann,3\n"),
            ("binary.csv", b"PAR1\0\0\0"),
            ("latin.csv", "who\nJosé\n".encode("latin-1") * 9),
            ("empty.csv", b""),
            ("text.arrow", b"who\nann\n"),
            ("text.xlsx", b"who\nann\n"),
            ("torn.xlsx", b"PK\x03\x04"),
        ):
            problem(upload(client, name, content), 422, "name")
        book = write_workbook(tmp_path / "b.xlsx", {"S": [["who", "age"], ["ann", 3]]}).read_bytes()
        assert upload(client, "book.xlsx", book).status_code == 201
        columns = client.get("/api/columns", params={"file": "book.xlsx"}).json()["columns"]
        assert [column["name"] for column in columns] == ["who", "age"]
        assert upload(client, "torn.parquet", b"PAR1 and nothing more").status_code == 201
        problem(client.get("/api/columns", params={"file": "torn.parquet"}), 422, "table.source")
    there = {path.name for path in (tmp_path / "data").iterdir()}
    assert there == {"hospital.parquet", "hospital.toml", "new.csv", "torn.parquet", "book.xlsx"}
    assert not list(tmp_path.glob("evil*"))


def test_only_files_of_the_folder_are_served(server, hospital, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside") / "private.csv"
    outside.write_text("who\nann\n")
    (hospital.folder / "link.csv").symlink_to(outside)
    (hospital.folder / ".hidden.csv").write_text("who\nann\n")
    names = [file["name"] for file in server.get("/api/files").json()["tables"]]
    assert names == ["hospital.parquet"]
    for name in ("link.csv", ".hidden.csv", str(outside), "users.json", "ledger.db"):
        problem(server.get("/api/columns", params={"file": name}), 422, "table.source")


def test_two_browsers_cannot_overdraw(own_processes, server, hospital):
    """Every one of many racing for the same budget is paid in full or refused."""
    start = threading.Barrier(6)

    def go(number: int) -> httpx.Response:
        start.wait()
        return server.post("/api/release", json={"scenario": ONE, "request": f"racing-{number}"})

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(go, range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409, 409]
    with Ledger(hospital.ledger) as ledger:
        budget_state = ledger.budget_state("hospital")
        assert budget_state.debits == 1 and budget_state.remaining == 0
        assert verify(ledger, "hospital").unanswered == ()


def test_a_failing_scan_keeps_the_debit_and_tells_nothing(server, hospital, monkeypatch, capfd):
    body = {"scenario": ONE, "request": "will-fail-once"}
    with monkeypatch.context() as patch:
        with_fault(patch, failing_scan, SECRET)
        first = server.post("/api/release", json=body)
    assert "the debit stands" in problem(first, 503)
    _resume(hospital)
    made = server.post("/api/release", json=body)
    assert made.status_code == 200
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1
    assert SECRET not in first.text + "".join(capfd.readouterr())


def _resume(hospital: Settings) -> None:
    """What a curator does once it is known why an engine failed."""
    with Ledger(hospital.ledger) as ledger:
        ledger.resume("hospital")


def test_an_unexpected_error_tells_nothing(server, monkeypatch, capfd):
    with_fault(monkeypatch, failing_plan, SECRET)
    answer = server.post("/api/plan", json=PLAN)
    said = "".join(capfd.readouterr())
    assert "internal error" in problem(answer, 500)
    assert SECRET not in answer.text + said and "ValueError" in said


def test_a_crash_leaves_the_debit_and_no_second_answer(server, hospital, monkeypatch):
    """A process dies between the debit and the noise; another goes on under the same id."""
    body = {"scenario": ONE, "request": "crashed-midway"}
    with monkeypatch.context() as patch:
        with_fault(patch, crashing_scan)
        words = problem(server.post("/api/release", json=body), 503)
    assert "continues without paying again" in words
    _resume(hospital)
    _goes_on(server, hospital, body)


SERVER = """
import sys
sys.path.insert(0, sys.argv[2])
from _pytest.monkeypatch import MonkeyPatch
from web_faults import waiting_scan, with_fault
from whosin.app.cli.main import main
with_fault(MonkeyPatch(), waiting_scan, sys.argv[1])
main(["serve", "--folder", sys.argv[1], "--port", "0"])
"""


def test_a_killed_server_takes_its_processes_along(hospital):
    """The server is killed while a table is scanned; a new one goes on under the same id."""
    body = {"scenario": ONE, "request": "killed-midway"}
    helpers = Path(__file__).parents[1] / "helpers"
    command = [sys.executable, "-c", SERVER, str(hospital.folder), str(helpers)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        ThreadPoolExecutor(1) as pool,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().split()[3]
        with program(url) as client:
            lost = pool.submit(client.post, "/api/release", json=body)
            try:
                assert appears(hospital.folder / "scanning")
                started = descendants(process.pid)
                assert len(started) >= 2  # what forks, and what was forked
            finally:
                process.kill()
            with pytest.raises(httpx.TransportError):
                lost.result()
    end = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in started) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)
    with running(hospital) as url, program(url) as client:
        _goes_on(client, hospital, body)


def _goes_on(client: httpx.Client, hospital: Settings, body: dict[str, object]) -> None:
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1
        assert verify(ledger, "hospital").unanswered != ()
    made = client.post("/api/release", json=body).json()
    assert made["answers"] and client.post("/api/release", json=body).json() == made
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1


def test_a_long_scan_does_not_hold_up_others(server, hospital, monkeypatch):
    with_fault(monkeypatch, waiting_scan, str(hospital.folder))
    with ThreadPoolExecutor(1) as pool:
        body = {"scenario": ONE, "request": "a-long-scan"}
        long = pool.submit(server.post, "/api/release", json=body)
        assert appears(hospital.folder / "scanning")
        assert server.post("/api/plan", json=PLAN).status_code == 200
        assert server.get("/api/ledger").json()["datasets"][0]["budget_state"]["debits"] == 1
        assert not long.done()
        (hospital.folder / "go-on").touch()
        assert long.result().status_code == 200


# The command


def test_the_command_refuses_what_is_unsafe(tmp_path, capsys):
    def refused(*words: str) -> str:
        code = main(["serve", "--folder", str(tmp_path), *words])
        streams = capsys.readouterr()
        assert streams.out == ""
        return f"{code} {streams.err}"

    assert "token" in refused("--host", "::") and refused("--folder", "none").startswith("2 ")
    assert refused("--port", "70000").startswith("2 ")
    assert refused("--upload-limit", "0").startswith("2 ")
    assert refused("--ledger", "mysql://x").startswith("2 ")
    assert refused("--add-user", "").startswith("2 ")


def test_the_command_adds_users(tmp_path, capsys):
    assert main(["serve", "--folder", str(tmp_path), "--add-user", "Ann", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["user"] == "Ann" and len(made["token"]) > 40
    assert read_users(tmp_path / "whosin-users.json").keys() == {"Ann"}
    assert main(["serve", "--folder", str(tmp_path), "--add-user", "Bob"]) == 0
    said = capsys.readouterr().out
    assert "not shown again" in said and "everyone needs" not in said  # Ann has one already
    (tmp_path / "new").mkdir()
    assert main(["serve", "--folder", str(tmp_path / "new"), "--add-user", "Bob"]) == 0
    assert "everyone needs a token" in capsys.readouterr().out
    (tmp_path / "whosin-users.json").write_text("[]")
    assert main(["serve", "--folder", str(tmp_path)]) == 3


# Files


keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
leaves = st.one_of(keys, st.booleans(), st.integers(-(2**62), 2**62), floats)
values = st.one_of(
    leaves, st.lists(leaves, max_size=4), st.dictionaries(keys, leaves, min_size=1, max_size=3)
)
tables = st.dictionaries(keys, values, min_size=1, max_size=4)


@given(title=keys, domains=tables, queries=st.lists(tables, min_size=1, max_size=3))
@settings(max_examples=30, deadline=None)
def test_toml_reads_as_it_was_written(title, domains, queries):
    data = {"title": title, "domains": domains, "queries": queries}
    assert tomllib.loads(scenarios.toml_text(data)) == data
    with pytest.raises(InvalidInput, match="null"):
        scenarios.toml_text({"domains": {"ward": ["a", [None]]}})
    empty = data | {"adversary": {}, "budget": {}, "ledger": None}
    assert tomllib.loads(scenarios.toml_text(empty)) == data


# Anything at all, by the description of the routes


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with running(served(folder, 50)) as url:
        yield url


def test_anything_at_all(fuzzed):
    def check(case):
        answer = case.call(base_url=fuzzed, headers={"X-Whosin": "fuzz"}, timeout=300)
        checks = [
            not_a_server_error,
            status_code_conformance,
            content_type_conformance,
            response_schema_conformance,
        ]
        if answer.status_code != 413:  # too large a body is refused before it is read
            checks.append(negative_data_rejection)
        case.validate_response(answer, checks=checks)

    send_all(3, check)


def test_a_release_that_the_look_stops_is_refused_by_the_route_itself(tmp_path):
    """Not by the page's script alone; a misspelt ward once spent the whole budget."""
    hospital = served(tmp_path / "data")
    wards = ["Surgery", "medicine", "maternity", "children"]
    wrong = SCENARIO | {"domains": SCENARIO["domains"] | {"ward": wards}}
    narrow = SCENARIO | {
        "table": SCENARIO["table"] | {"max_rows_per_group": 1},
        "domains": SCENARIO["domains"] | {"days": {"lower": 0, "upper": 2}},
    }
    with running(hospital) as url, program(url) as client:
        message = problem(client.post("/api/release", json={"scenario": wrong}), 409, "preflight")
        assert "nothing was spent" in message or "before anything was spent" in message
        assert not (tmp_path / "data" / "ledger.db").exists()
        seen = client.post("/api/preflight", json=narrow).json()
        assert any("days" in line and "2" in line for line in seen["lines"]), "clamping"
        assert any("max_rows_per_group" in line for line in seen["lines"]), "bounds"
        tight = SCENARIO | {"table": narrow["table"]}
        seen = client.post("/api/preflight", json=tight).json()
        assert not seen["stops"] and any("max_rows_per_group" in each for each in seen["asks"])
        problem(client.post("/api/release", json={"scenario": tight}), 409)
        assert not (tmp_path / "data" / "ledger.db").exists()
        agreed = client.post("/api/preflight", json=SCENARIO).json()["spends"]
        other = SCENARIO | {"budget": {"share": "1/3"}}
        given = {"scenario": other, "spends": agreed}
        problem(client.post("/api/release", json=given), 409, "spends")
        wards = {"kind": "count", "name": "by ward", "by": ["ward"], "max_groups": 1}
        asked = wrong | {"queries": [SCENARIO["queries"][0], wards]}
        made = client.post("/api/release", json={"scenario": asked, "preflight": False})
        assert made.status_code == 200 and "patients and by ward" in made.json()["independent"]
        paid = {"dataset": "hospital", "request": made.json()["request"]}
        stored = client.get("/api/ledger/answers", params=paid).json()
        assert stored["independent"] == made.json()["independent"]


def test_the_ledger_names_what_was_asked_and_who_answers(server):
    """Rows had no `by`, and the report had the dataset's name as its title."""
    about = {"controller": "Westhaven Hospital", "reasons": "neighbours know much"}
    asked = {"queries": [{"kind": "rows", "by": ["ward"], "where": "age >= 18"}], "about": about}
    made = server.post("/api/release", json={"scenario": ONE | asked, "accept": True}).json()
    where = {"dataset": "hospital", "request": made["request"]}
    (paid,) = server.get("/api/ledger/requests", params=where).json()["requests"]
    assert paid["questions"] == ["number of rows by ward where age >= 18"]
    assert made["answers"][0]["named"] == paid["questions"][0]
    page = server.get("/api/ledger/report", params=where | {"reader": "officer"}).text
    assert "<h1>Visits</h1>" in page and all(words in page for words in about.values())
