"""Through the routes: every adversary and target of a scenario, synthetic tables, databases."""

from __future__ import annotations

import hashlib
import io
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import whosin as wi
from web_faults import second_scan_failing, with_fault
from web_server import ONE, SCENARIO, problem, run_script
from whosin.app.web import folder
from whosin.app.web.bodies import ScenarioBody
from whosin.calibration import read_plan
from whosin.ledger import Ledger
from whosin.release.scenario import load_scenario

SIZED = {"adversary": {"prior": "0.05..0.5", "size-known": True}}
COPY = {"kind": "synthetic", "name": "a copy", "columns": ["ward"], "path": "copy.parquet"}
SYNTHETIC = SCENARIO | SIZED | {"queries": [{"kind": "count"}, COPY]}


PLANS: list[tuple[dict[str, object], dict[str, object], list[float]]] = [
    ({"prior": "10%..50%", "known": 3}, {"posterior": "60%"}, [0.1, 0.5]),
    ({"prior": "10%..50%", "known": 0}, {"gain": "10%"}, [0.1, 0.5]),
    ({"uninformed": True}, {"posterior": "60%"}, [0.5, 0.5]),
    ({"uninformed": True}, {"gamma": "1.5", "delta": "1e-6"}, [0.5, 0.5]),
    ({"prior": "5%..50%"}, {"gain": "20%"}, [0.05, 0.5]),
    ({"linked": 3}, {"gain": "20%"}, [0, 1]),
    ({}, {"rho": "10%", "candidates": 20}, [0.05, 0.05]),
]


def test_every_adversary_and_target(still, tmp_path) -> None:
    """Displayed, priced, saved as TOML and as a script: always the same plan."""
    for adversary, target, band in PLANS:
        body = ONE | {"adversary": adversary, "target": target}
        view = still.post("/api/plan", json={"adversary": adversary, "target": target}).json()
        plan = read_plan(adversary, target)
        assert view["plan"]["epsilon"] == plan.epsilon and view["band"] == band
        assert still.post("/api/estimate", json=body).json()["epsilon"] == plan.epsilon
        toml = still.post("/api/scenario/toml", json=body).text
        (tmp_path / "again.toml").write_text(toml, encoding="utf-8")
        assert load_scenario(tmp_path / "again.toml").plan.to_dict() == plan.to_dict()
        read = still.post("/api/scenario/read", json={"text": toml}).json()["scenario"]
        assert {"adversary": {}} | read == body
        asked = {"scenario": body, "request": "not-made-yet"}
        script = still.post("/api/scenario/script", json=asked).text
        names: dict[str, Any] = {"wi": wi}
        lines = [line for line in script.splitlines() if line.startswith(("target", "adv", "plan"))]
        exec("\n".join(lines), names)
        assert names["plan"].to_dict() == plan.to_dict()


@pytest.mark.parametrize(
    ("adversary", "target", "field"),
    [
        ({"known": 3}, {"gamma": 2}, "adversary.prior"),
        ({"known": 3, "prior": "0.5"}, {"gamma": 2, "delta": 0.01}, "adversary.people"),
        ({"known": 3, "prior": "0.5", "people": 9}, {"gamma": 2}, "adversary.people"),
        ({"uninformed": True, "prior": "0.5"}, {"gamma": 2}, "adversary.uninformed"),
        ({}, {"gain": "1.2"}, "target.gain"),
        ({}, {"rho": "0.1"}, "target.candidates"),
        ({}, {"rho": "0.1", "candidates": 5}, "target.rho"),
    ],
)  # fmt: skip
def test_a_wrong_adversary_or_target_names_its_field(still, adversary, target, field):
    body = {"adversary": adversary, "target": target}
    problem(still.post("/api/plan", json=body), 422, field)


def test_someone_who_knows_few_sees_one_answer(server):
    few = {"adversary": {"prior": "0.1..0.5", "known": 3}}
    refusal = server.post("/api/estimate", json=SCENARIO | few).json()["refusal"]
    made = server.post("/api/release", json={"scenario": SCENARIO | few, "request": "many-of-them"})
    assert refusal is not None or made.status_code == 409, "three answers are one too many"
    one = server.post("/api/release", json={"scenario": ONE | few, "request": "only-a-count"})
    assert one.status_code == 200, one.text


def test_widths_that_fit_what_is_left_are_answered(server):
    for within, fits in ((12, True), (200, True), (13, False)):
        body = ONE | {"queries": [{"kind": "count", "within": within}]}
        seen = server.post("/api/estimate", json=body).json()
        assert (seen["refusal"] is None) is fits and seen["lacks_budget"] is not fits
        made = server.post("/api/release", json={"scenario": body, "request": None})
        assert made.status_code == (200 if fits else 409), made.text


def test_a_script_of_widths_pays_from_what_is_left(server, hospital):
    for within in (12, 200):
        body = ONE | {"queries": [{"kind": "count", "within": within}]}
        asked = {"scenario": body, "request": None}
        script = hospital.folder / f"s{within}.py"
        script.write_text(server.post("/api/scenario/script", json=asked).text, encoding="utf-8")
        assert "left: " in run_script(script, hospital.folder)


def test_answers_that_were_measured_at_once_are_fetched_again(server, hospital):
    """They share a debit, so there are fewer debits than answers; nothing more is paid."""
    counts = [{"kind": "count", "by": ["age"]}, {"kind": "count", "by": ["ward"]}]
    copy = COPY | {"path": "best.parquet"}
    known = {"adversary": {"prior": "0.05..0.5", "size-known": True}}
    one = {"table": SCENARIO["table"] | {"max_groups": 1}}
    best = SCENARIO | known | one
    best |= {"queries": [*counts, copy], "budget": {"split": "optimal"}}
    body = {"scenario": best, "request": "measured-at-once", "accept": True}
    problem(server.post("/api/release/csv", json=body), 404, "request")
    made = server.post("/api/release", json=body)
    assert made.status_code == 200, made.text
    with Ledger(hospital.ledger) as ledger:
        debits = ledger.budget_state("hospital").debits
    assert debits < len(best["queries"])
    text = server.post("/api/release/csv", params={"answer": 1}, json=body)
    assert text.status_code == 200 and "surgery" in text.text
    assert server.post("/api/release/report", json=body).status_code == 200
    assert server.post("/api/release/parquet", json=body).content[:4] == b"PAR1"
    file = server.post("/api/release/file", params={"answer": 2}, json=body)
    digest = made.json()["answers"][2]["rows"][0][2]
    assert hashlib.sha256(file.content).hexdigest() == digest
    assert server.post("/api/release", json=body).json() == made.json()
    more = body | {"scenario": best | {"queries": [*counts, copy, {"kind": "count", "name": "x"}]}}
    assert server.post("/api/release/csv", json=more).status_code in (404, 409)
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == debits


SCHEDULE = {"every": "month", "until": "2099-12", "unspent": "lapses"}


def test_a_schedule_is_read_and_its_period_s_share_is_spent(server, hospital, tmp_path):
    """Every route refused the key; and without it a release of a dataset that has a schedule was
    taken to spend everything, with different reasons from the estimate and the release."""
    text = """
[target]
epsilon = 1
[table]
source = "hospital.parquet"
privacy_unit = "patient"
[schedule]
every = "month"
until = "2099-12"
unspent = "lapses"
[[queries]]
kind = "count"
"""
    (hospital.folder / "month.toml").write_text(text)
    read = server.post("/api/scenario/read", json={"text": text}).json()
    assert read == server.get("/api/scenario", params={"file": "month.toml"}).json()
    body = read["scenario"]
    assert body["schedule"] == SCHEDULE and read["notes"] == []
    assert tomllib.loads(server.post("/api/scenario/toml", json=body).text)["schedule"] == SCHEDULE
    new = server.post("/api/estimate", json=body).json()
    assert new["refusal"] is None and 0 < new["total_epsilon"] < 1 / 800
    wrong = server.post("/api/estimate", json=body | {"schedule": {"every": "moon"}})
    assert "moon" in problem(wrong, 422, "schedule")
    asked = {"scenario": body, "accept": True, "request": "the-first-one"}
    made = server.post("/api/release", json=asked)
    assert made.status_code == 200, made.text
    assert server.post("/api/release", json=asked).json()["answers"] == made.json()["answers"]
    bare = {key: value for key, value in body.items() if key != "schedule"}
    for each in (body, bare):
        each = each | {"queries": [{"kind": "count", "name": "again"}]}
        found = server.post("/api/estimate", json=each).json()
        assert found["total_epsilon"] == new["total_epsilon"]
        assert "in its period" in found["refusal"]
        refused = server.post("/api/release", json={"scenario": each, "accept": True})
        assert "in its period" in problem(refused, 409)
    other = body | {"schedule": SCHEDULE | {"until": "2050-12"}, "queries": [{"kind": "rows"}]}
    found = server.post("/api/estimate", json=other).json()
    refused = server.post("/api/release", json={"scenario": other, "accept": True})
    for words in (problem(refused, 409), found["refusal"]):
        assert "has another schedule" in words
    (tmp_path / "again.py").write_text(server.post("/api/scenario/script", json=asked).text)
    assert "count" in run_script(tmp_path / "again.py", hospital.folder, hospital.ledger)


STAYS = "patient,month\na,2025-01-03\nb,2025-01-09\na,2025-02-05\n"
MONTHLY = {
    "target": {"epsilon": 1, "delta": "1e-6"},
    "table": {"source": "stays.csv", "privacy_unit": "patient"},
    "domains": {"month": {"lower": "2025-01-01", "upper": "2025-12-31", "edges": "month"}},
    "budget": {"noise": "gaussian"},
    "queries": [{"kind": "running", "column": "month", "upto": "2025-01"}],
}


@pytest.mark.parametrize("request_name", ["january-2025", None])
def test_a_batch_with_running_totals_repeats_for_nothing(server, hospital, request_name):
    (hospital.folder / "stays.csv").write_text(STAYS)
    queries = [*MONTHLY["queries"], {"kind": "count"}]
    asked = MONTHLY | {"queries": queries, "budget": {"noise": "gaussian", "share": "1/2"}}
    body = {"scenario": asked, "accept": True, "request": request_name}
    alone = body | {"scenario": MONTHLY}
    for each in (body, alone):  # nothing is paid for by asking for what was not answered
        problem(server.post("/api/release/report", json=each), 404, "request")
        problem(server.post("/api/release/csv", json=each), 404, "request")
    twice = asked | {"queries": [*queries, *MONTHLY["queries"]]}
    for way, sent in (("estimate", twice), ("release", body | {"scenario": twice})):
        refused = problem(server.post(f"/api/{way}", json=sent), 422, "queries.2")
        assert "the same running total" in refused
    priced = server.post("/api/estimate", json=asked).json()["estimates"]
    made = server.post("/api/release", json=body)
    assert made.status_code == 200, made.text
    assert server.post("/api/release", json=body).json() == made.json()
    assert server.post("/api/release/report", json=body).status_code == 200
    if request_name is None:
        assert server.post("/api/estimate", json=asked).json()["estimates"] == priced
    later = [MONTHLY["queries"][0] | {"upto": "2025-02"}, queries[1]]
    more = body | {"scenario": asked | {"queries": later}}
    problem(server.post("/api/release/csv", json=more), 404, "request")
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("stays").debits == 2


def test_a_further_step_of_running_totals_is_no_expense(server, hospital):
    """The estimate said that the ledger would refuse it, since the first step had spent all."""
    rows, body = STAYS, MONTHLY
    (hospital.folder / "stays.csv").write_text(rows)
    assert server.post("/api/release", json={"scenario": body, "accept": True}).status_code == 200
    step = body | {"queries": [{"kind": "running", "column": "month", "upto": "2025-02"}]}
    assert server.post("/api/estimate", json=step).json()["refusal"] is None
    made = server.post("/api/release", json={"scenario": step, "accept": True})
    assert made.status_code == 200 and len(made.json()["answers"][0]["rows"]) == 2
    moved = rows.replace("b,2025-01-09", "b,2025-03-09")
    (hospital.folder / "stays.csv").write_text(moved)
    step |= {"queries": [{"kind": "running", "column": "month", "upto": "2025-03"}]}
    step |= {"continues": "stays"}
    look = server.post("/api/preflight", json=step).json()
    assert not look["stops"] and any("2025-01 have changed" in each for each in look["asks"])
    refused = server.post("/api/release", json={"scenario": step})
    assert "the rows of 2025-01 have changed" in problem(refused, 409)
    assert server.post("/api/release", json={"scenario": step, "accept": True}).status_code == 200


# Synthetic tables


def test_a_synthetic_table_is_written_once_and_handed_out(server, hospital, tmp_path):
    body = {"scenario": SYNTHETIC, "request": "with-a-table", "accept": True}
    estimates = server.post("/api/estimate", json=SYNTHETIC).json()["estimates"]
    assert "cells" in estimates[1]["noise"] and not (hospital.folder / "copy.parquet").exists()
    made = server.post("/api/release", json=body).json()
    name, rows, digest = made["answers"][1]["rows"][0]
    content = server.post("/api/release/file", params={"answer": 1}, json=body)
    assert hashlib.sha256(content.content).hexdigest() == digest
    assert "copy.parquet" in content.headers["content-disposition"]
    (tmp_path / "kept.parquet").write_bytes(content.content)
    assert (name, rows) == ("copy.parquet", parquet.read_table(tmp_path / "kept.parquet").num_rows)
    assert rows == 400
    assert server.post("/api/release", json=body).json() == made  # a retry writes nothing
    assert (hospital.folder / "copy.parquet").read_bytes() == content.content

    problem(server.post("/api/release/file", json=body), 422, "answer")  # a count wrote no file
    problem(server.post("/api/estimate", json=SYNTHETIC), 409, "queries.1.path")
    again = body | {"request": "under-another-id"}
    problem(server.post("/api/release", json=again), 409, "queries.1.path")

    toml = tomllib.loads(server.post("/api/scenario/toml", json=SYNTHETIC).text)
    assert toml["queries"][1] == COPY
    (tmp_path / "again.py").write_text(server.post("/api/scenario/script", json=body).text)
    printed = run_script(tmp_path / "again.py", hospital.folder)
    assert f"copy.parquet\t{rows}\t{digest}" in printed
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 2

    (hospital.folder / "copy.parquet").write_bytes(b"PAR1 something else")
    lost = server.post("/api/release/file", params={"answer": 1}, json=body)
    problem(lost, 409, "answer")
    (hospital.folder / "copy.parquet").unlink()
    problem(server.post("/api/release/file", params={"answer": 1}, json=body), 404, "answer")


@pytest.mark.parametrize(
    "path", ["../out.parquet", "/out.parquet", ".hidden.parquet", "a/b.parquet", "x.csv", 3, ""]
)
def test_a_synthetic_table_stays_in_the_folder(still, path):
    body = SYNTHETIC | {"queries": [COPY | {"path": path}]}
    problem(still.post("/api/estimate", json=body), 422, "queries.0.path")
    made = still.post("/api/release", json={"scenario": body, "request": "outside-of-it"})
    problem(made, 422, "queries.0.path")
    script = still.post("/api/scenario/script", json={"scenario": body, "request": "outside-of-it"})
    problem(script, 422, "queries.0.path")


def test_a_synthetic_table_replaces_nothing(server, hospital):
    before = (hospital.folder / "hospital.parquet").read_bytes()
    body = SYNTHETIC | {"queries": [COPY | {"path": "hospital.parquet"}]}
    problem(server.post("/api/estimate", json=body), 409, "queries.0.path")
    made = server.post(
        "/api/release", json={"scenario": body, "request": "over-the-table", "accept": True}
    )
    problem(made, 409, "queries.0.path")
    twice = SYNTHETIC | {"queries": [COPY, COPY | {"name": "another"}]}
    problem(server.post("/api/estimate", json=twice), 409, "queries.1.path")
    unsized = SCENARIO | {"queries": [COPY]}
    problem(server.post("/api/estimate", json=unsized), 422, "queries.0")
    assert (hospital.folder / "hospital.parquet").read_bytes() == before


def test_two_tables_of_one_name_at_once(hospital):
    """Whoever comes second is told, also while the first is still being written."""
    body = ScenarioBody.model_validate(SYNTHETIC)
    with (
        folder.reserved(hospital.folder, body),
        pytest.raises(folder.RequestRefused),
        folder.reserved(hospital.folder, body),
    ):
        pass
    with folder.reserved(hospital.folder, body):
        pass


def test_an_interrupted_table_is_continued_under_its_id(server, hospital, monkeypatch):
    body = {"scenario": SYNTHETIC, "request": "breaks-once", "accept": True}
    with_fault(monkeypatch, second_scan_failing, str(hospital.folder / "failed"))
    assert "the debit stands" in problem(server.post("/api/release", json=body), 503)
    with Ledger(hospital.ledger) as ledger:
        ledger.resume("hospital")
    made = server.post("/api/release", json=body)
    assert made.status_code == 200 and (hospital.folder / "copy.parquet").exists()
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 2


# Databases


@pytest.fixture
def database(hospital):
    source = hospital.folder / "hospital.parquet"
    with duckdb.connect(str(hospital.folder / "clinic.duckdb")) as made:
        made.execute(f"CREATE TABLE visits AS SELECT * FROM '{source}'")
        made.execute("CREATE SCHEMA old")
        made.execute("CREATE TABLE old.visits AS SELECT * FROM visits LIMIT 10")
    return hospital.folder / "clinic.duckdb"


def test_a_table_of_a_database(server, hospital, database, tmp_path):
    names = [file["name"] for file in server.get("/api/files").json()["tables"]]
    assert names == ["hospital.parquet", "clinic.duckdb::visits", "clinic.duckdb::old.visits"]
    source = "clinic.duckdb::visits"
    columns = server.get("/api/columns", params={"file": source}).json()
    assert [column["name"] for column in columns["columns"]] == ["patient", "age", "ward", "days"]
    scenario = ONE | {"table": ONE["table"] | {"source": source}}
    body = {"scenario": scenario, "request": "from-a-database"}
    made = server.post("/api/release", json=body).json()
    assert abs(made["answers"][0]["rows"][0][0] - 400) < 200
    assert made["budget_state"]["dataset"] == "visits"
    assert server.post("/api/release/csv", json=body).status_code == 200
    toml = server.post("/api/scenario/toml", json=scenario).text
    assert server.post("/api/scenario/read", json={"text": toml}).json()["scenario"] == scenario
    (tmp_path / "again.py").write_text(server.post("/api/scenario/script", json=body).text)
    printed = run_script(tmp_path / "again.py", hospital.folder)
    assert f"\n{made['answers'][0]['rows'][0][0]}\t" in printed


def test_tables_that_are_none(server, database):
    for source in (
        *("clinic.duckdb::none", "clinic.duckdb", "none.duckdb::visits", "../x.duckdb::visits"),
        *("/etc/passwd::x", "::visits", "hospital.parquet::x"),
        "clinic.duckdb::visits; DROP TABLE x",
    ):
        scenario = ONE | {"table": ONE["table"] | {"source": source}}
        problem(server.post("/api/estimate", json=scenario), 422, "table.source")
    problem(server.get("/api/columns", params={"file": source}), 422, "table.source")


def test_a_database_that_cannot_be_read(server, hospital):
    (hospital.folder / "broken.duckdb").write_bytes(b"no database")
    names = [file["name"] for file in server.get("/api/files").json()["tables"]]
    assert names == ["hospital.parquet"]


def test_racing_for_one_name(own_processes, server, hospital):
    """Six releases that want the same file: one has it, the others are told before they pay."""
    share = {"budget": {"share": "10%"}, "queries": [COPY]}
    barrier = threading.Barrier(6)

    def go(number: int) -> httpx.Response:
        barrier.wait()
        body = {"scenario": SYNTHETIC | share, "request": f"racing-{number}", "accept": True}
        return server.post("/api/release", json=body)

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(go, range(6)))
    assert sorted(answer.status_code for answer in found) == [200, 409, 409, 409, 409, 409]
    with Ledger(hospital.ledger) as ledger:
        assert ledger.budget_state("hospital").debits == 1


def test_many_tables_at_once(server) -> None:
    """Asked on a page, priced table by table, released, and refused where a page cannot hold it."""
    kind = next(
        each for each in server.get("/api/kinds").json()["queries"] if each["kind"] == "marginals"
    )
    assert {"columns", "order", "sets"} <= set(kind["keys"]) and kind["extra"][0] == "order"
    takes = {each["key"]: each["takes"] for each in kind["more"]}
    wanted = {"sets": "sets", "weights": "numbers", "goal": "text", "magnitudes": "numbers"}
    assert takes == wanted | {"ranges": "ranges", "within": "number", "part": "number"}
    query = {"kind": "marginals", "columns": ["ward", "age"], "order": 2}
    asked = SCENARIO | {"queries": [query]}
    (estimate,) = server.post("/api/estimate", json=asked).json()["estimates"]
    assert [each["columns"] for each in estimate["tables"]] == [["ward"], ["age"], ["ward", "age"]]
    made = server.post(
        "/api/release", json={"scenario": asked, "request": "tables-at-once", "accept": True}
    ).json()
    answer = made["answers"][0]
    assert len(answer["rows"]) == 5 + 4 + 20
    assert [each["start"] for each in answer["tables"]] == [0, 5, 9]
    assert [len(each) for each in answer["tables"][2]["labels"]] == [5, 4]
    assert answer["agreement"].startswith("The totals agree: each of the 3 tables adds up to")
    _same_numbers_in_files(
        server, {"scenario": asked, "request": "tables-at-once", "accept": True}, answer
    )
    long = {"ward": [f"w{n}" for n in range(400)], "age": list(range(400))}
    body = asked | {"domains": long}
    problem(server.post("/api/estimate", json=body), 422, "queries.0.columns")


def _same_numbers_in_files(server, body, answer) -> None:
    """What is downloaded is what was shown: nothing is drawn anew."""
    place = {name: at for at, name in enumerate(answer["columns"])}
    shown = [row[place["value"]] for row in answer["rows"]]
    every = server.post("/api/release/parquet", json=body)
    table = parquet.read_table(pa.BufferReader(every.content))
    assert every.headers["content-type"] == "application/vnd.apache.parquet"
    assert table["value"].to_pylist() == shown and table["noisy"].to_pylist() == answer["noisy"]
    assert table.column_names[:4] == ["table", "cell", "ward", "age"]
    one = server.post("/api/release/csv", params={"table": 2}, json=body).content
    assert csv.read_csv(io.BytesIO(one))["value"].to_pylist() == shown[9:]
    wrong = server.post("/api/release/csv", params={"table": 3}, json=body)
    problem(wrong, 422, "table")
    for path in ("csv", "parquet"):
        other = server.post(f"/api/release/{path}", json=body | {"request": "another-one"})
        problem(other, 404, "request")
