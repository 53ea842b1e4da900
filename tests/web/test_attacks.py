"""Requests that once stopped a server or ended in an internal error: each is a sentence now."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import duckdb
import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from web_server import PLAN, SCENARIO, problem, program, served
from whosin.app.web import tasks
from whosin.app.web.server import running
from whosin.families import Cliques
from whosin.mechanisms import Channel
from whosin.notions import PositiveMembership
from whosin.spaces import Subsets

SPACE = {"kind": "subsets", "entities": ["ann"]}
ROWS = [["3/4", "1/4"], ["1/2", "1/2"]]
DEEP: Any = 1
for _ in range(900):
    DEEP = [DEEP]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("attacked")
    settings = served(found, 50)
    with duckdb.connect(str(found / "clinic.duckdb")) as made:
        made.execute('CREATE TABLE "s.x" (patient VARCHAR, age INTEGER)')
        made.execute("CREATE SCHEMA s")
        made.execute("CREATE TABLE s.x (patient VARCHAR, other INTEGER)")
        made.execute(f'CREATE TABLE "{decomposed("café")}" (patient VARCHAR)')
    table = pa.table({"patient": ["a", "b"], decomposed("café"): ["x", "y"]})
    pq.write_table(table, found / f"{decomposed('é')}t.parquet")
    return settings


@pytest.fixture(scope="module")
def server(folder):
    with running(folder) as url, program(url) as client:
        yield client


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def post(client: httpx.Client, path: str, body: object) -> httpx.Response:
    """With letters that httpx would refuse to send."""
    headers = {"Content-Type": "application/json"}
    return client.post(path, content=json.dumps(body).encode(), headers=headers)


def channel(**parts: object) -> dict[str, object]:
    whole = {"space": SPACE, "outputs": ["l", "h"], "probabilities": ROWS} | parts
    return {"channel": json.dumps(whole)}


def asked(**query: object) -> dict[str, object]:
    return SCENARIO | {"queries": [{"kind": "count"} | query]}


MANY = [f"n{number}" for number in range(100_000)]
LINKED = {"adversary": {"linked": 10**99}, "target": {"posterior": "0.6"}}
LISTED = "age in (" + ",".join(map(str, range(1900))) + ")"
NINE = channel(
    probabilities=[[1]] * 512, outputs=["l"], space={"kind": "subsets", "entities": 9}
) | {"family": "at-most-known=3:0.1..0.9"}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("plan", {"target": {"rho": "0.6", "candidates": 10**250}}, "target.candidates"),
        ("plan", LINKED, "adversary.linked"),
        ("plan", PLAN | {f"k{n}": 1 for n in range(60_000)}, None),
        ("estimate", asked(by=None), "queries.0.by"),
        ("estimate", asked(by=3), "queries.0.by"),
        ("estimate", asked(kind="maximum", universe=None), "queries.0"),
        ("estimate", asked(kind="maximum", universe=MANY), "queries.0.universe"),
        ("estimate", SCENARIO | {"domains": {"ward": DEEP}}, None),
        ("estimate", SCENARIO | {"domains": {"ward": MANY}}, "domains.ward"),
        ("estimate", SCENARIO | {"title": "\ud800"}, None),
        ("estimate", asked(where=LISTED), "queries.0.where"),
        ("scenario/read", {"text": ".".join("a" * 20_000) + " = 1"}, "scenario"),
        ("scenario/read", {"text": ".".join("a" * 300_000) + " = 1"}, "scenario"),
        ("verify", channel(outputs=[[["l"]], [{"h": 1}]]), "channel"),
        ("verify", channel(space={"kind": "subsets", "entities": MANY}), "channel"),
        ("verify", NINE, "channel"),
    ],
)
def test_a_request_that_once_failed(server, path, body, field):
    problem(post(server, f"/api/{path}", body), 422, field)


@pytest.mark.parametrize("prior", [5e-324, "1e-300", "0..1e-300"])
def test_beliefs_beyond_any_float(server, prior):
    body = {"adversary": {"prior": prior}, "target": {"posterior": "0.6"}}
    curves = server.post("/api/plan", json=body).json()["curves"]
    assert all(0 <= after <= 1 for curve in curves for _, after in curve["points"])


def test_nested_names_of_outputs(server):
    found = post(server, "/api/verify", channel(outputs=[["l", ["m"]], "h"])).json()
    assert found["level"]["value_exact"] == "2"


def test_ratios_that_python_does_not_print(server):
    """Numbers of 900 digits come in, their products have thousands."""
    small = [[f"1/{10**900 + n}", f"{10**900 + n - 1}/{10**900 + n}"] for n in (1, 3, 7, 9)]
    space = {"kind": "subsets", "entities": ["ann", "bob"]}
    body = channel(space=space, probabilities=small) | {"family": "independent=1/7..1/3"}
    answer = post(server, "/api/verify", body)
    assert answer.status_code == 200 or "characters" in problem(answer, 422, "channel")


def test_a_huge_group_is_as_large_as_everyone(server):
    found = post(server, "/api/verify", channel() | {"family": "cliques=1000000000"}).json()
    assert found["level"]["value_exact"] == "2"
    space = Subsets(3)
    rows = [[(n + 1) / 10, (9 - n) / 10] for n in range(8)]
    levels = [
        PositiveMembership(Cliques(k)).measure(Channel(space, rows)).value for k in (3, 10**9)
    ]
    assert levels[0] == levels[1]


def test_a_table_with_a_point_in_its_name(server):
    """Its name says which one it is, and a table of a schema is another one."""
    shown = [each["name"] for each in server.get("/api/files").json()["tables"]]
    for name, second in (("main.s.x", "age"), ("s.x", "other"), (decomposed("café"), None)):
        assert f"clinic.duckdb::{name}" in shown
        columns = server.get("/api/columns", params={"file": f"clinic.duckdb::{name}"})
        assert columns.status_code == 200, columns.text
        assert [each["name"] for each in columns.json()["columns"]][1:] == (
            [second] if second else []
        )


def test_decomposed_letters(server, folder):
    """As some systems write the names of files."""
    name = f"{decomposed('é')}t.parquet"
    assert name in {each["name"] for each in server.get("/api/files").json()["tables"]}
    column = server.get("/api/columns", params={"file": name}).json()["columns"][1]["name"]
    body = SCENARIO | {
        "table": {"source": name, "privacy_unit": "patient"},
        "domains": {column: [decomposed("é"), "y"]},
        "queries": [{"kind": "count", "by": [column], "where": f"\"{column}\" = 'x'"}],
    }
    price = post(server, "/api/estimate", body)
    assert price.status_code == 200, price.text
    asked = {"scenario": body, "request": "decomposed", "preflight": False}
    made = post(server, "/api/release", asked)
    assert made.status_code == 200, made.text
    upload = server.post("/api/files", params={"name": f"{decomposed('ö')}.csv"}, content=b"a\n1\n")
    assert upload.json()["name"] == "ö.csv"


def test_what_takes_long_is_stopped_and_others_go_on(own_processes, server, monkeypatch):
    """A deadline, here one that has passed at the start, ends the process; the next request is
    answered."""
    from dataclasses import replace

    monkeypatch.setattr(tasks, "QUICK_LIMITS", replace(tasks.QUICK_LIMITS, seconds=0))
    answer = server.post("/api/distortion", json={"rows": 16})
    assert "takes longer" in problem(answer, 413) and "command" in answer.text
    monkeypatch.undo()
    assert server.post("/api/plan", json=PLAN).status_code == 200


def test_edges_beyond_any_float(server):
    body = SCENARIO | {"domains": {"age": {"lower": 0, "upper": 120, "edges": [0, 10**250]}}}
    assert "1e100" in problem(post(server, "/api/estimate", body), 422, "domains.age")


def test_an_epsilon_that_is_rounded_down_to_nothing(server):
    body = {"adversary": {"linked": 3}, "target": {"epsilon": 5e-324}}
    assert "too small" in problem(post(server, "/api/plan", body), 422, "target.epsilon")
