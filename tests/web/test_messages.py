"""Whatever is wrong with the shape of a request is said in one sentence that names the field."""

from __future__ import annotations

import re
import socket

import httpx
import pytest

from web_server import ONE, PLAN, program, served
from whosin.app.cli.main import main
from whosin.app.web.server import running

FOREIGN = re.compile(
    r"constrained|Input should|Field required|Extra inputs|validation|pattern|\^\[|dictionar"
    r"|boolean|string|integer|decode|Not Found|Not Allowed|[Ee]rror parsing|Errno|\[key\]"
)
"""Words that are the framework's, not ours."""
GAMMA = {"gamma": 2}
NUMBER = 'a finite number, or a short text that spells one, such as "0.6"'
LONG = "0" * 101


@pytest.fixture(scope="module")
def still(tmp_path_factory):
    with running(served(tmp_path_factory.mktemp("still"), 50)) as url, program(url) as client:
        yield client


def said(answer: httpx.Response) -> tuple[int, str | None, str]:
    error = answer.json()["error"]
    assert not FOREIGN.search(error["message"]), error
    assert error["field"] is None or error["field"] in error["message"], error
    return answer.status_code, error["field"], error["message"]


BODY = "the body must be a JSON object, sent with the header Content-Type: application/json"
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers", "status", "words"),
    [
        (b"{}", {}, 422, BODY),
        (b"{}", {"Content-Type": "text/plain"}, 422, BODY),
        (b"", JSON, 422, BODY),
        (b"null", JSON, 422, BODY),
        (b"[]", JSON, 422, f"{BODY}, not a list"),
        (b'"x"', JSON, 422, f"{BODY}, not a text"),
        (b"3", JSON, 422, f"{BODY}, not a number"),
        (b'{"a":', JSON, 422, "the body is not JSON"),
        (b'{"a":"\xff"}', JSON, 422, "the body must be JSON in UTF-8"),
        (b"[" * 100_000, JSON, 422, "the body is nested more than"),
        (b'{"target":{"gamma":' + b"9" * 5000 + b"}}", JSON, 422, "numbers of at most 1000 digits"),
    ],
)
def test_a_body_that_is_none(still, content, headers, status, words):
    found = said(still.post("/api/plan", content=content, headers=headers))
    assert found[:2] == (status, None) and words in found[2]


@pytest.mark.parametrize(
    ("path", "body", "field", "words"),
    [
        ("plan", {}, "target", "target must be given"),
        ("plan", {"target": None}, "target", "an object with keys, not nothing"),
        ("plan", {"target": 3}, "target", "an object with keys, not a number"),
        ("plan", {"target": {"posterior": []}}, "target.posterior", f"{NUMBER}, not a list"),
        ("plan", {"target": {"posterior": {}}}, "target.posterior", f"{NUMBER}, not an object"),
        ("plan", {"target": {"posterior": True}}, "target.posterior", "not true or false"),
        ("plan", {"target": {"gain": LONG}}, "target.gain", f"{NUMBER}, not a text of 101 letters"),
        ("plan", {"target": {"speed": 1}}, "target.speed", "no such key"),
        ("plan", {"target": {"float": 1}}, "target.float", "no such key"),
        ("plan", {"target": {"rho": 1, "candidates": "x"}}, "target.candidates", "a whole number"),
        ("plan", {"target": {"rho": 1, "candidates": 2.5}}, "target.candidates", "a whole number"),
        ("plan", {"target": {"rho": 1, "candidates": True}}, "target.candidates", "whole number"),
        ("plan", {"target": GAMMA, "adversary": 3}, "adversary", "an object with keys"),
        ("plan", {"target": GAMMA, "adversary": {"prior": []}}, "adversary.prior", "such as"),
        ("plan", {"target": GAMMA, "adversary": {"prior": LONG}}, "adversary.prior", "101 letters"),
        ("plan", {"target": GAMMA, "adversary": {"size-known": "yes"}}, "adversary.size-known",
         "true or false, not a text"),
        ("plan", {"target": GAMMA, "adversary": {"uninformed": 1}}, "adversary.uninformed",
         "true or false, not a number"),
        ("plan", {"target": GAMMA, "adversary": {"linked": "x"}}, "adversary.linked", "whole"),
        ("plan", {"target": GAMMA, "adversary": {"known": 1.5}}, "adversary.known", "whole number"),
        ("release", {"scenario": ONE}, "request", "must be given"),
        ("release", {"request": "abcdefgh"}, "scenario", "must be given"),
        ("release", {"scenario": ONE, "request": 3}, "request", "a text, not a number"),
        ("release", {"scenario": ONE, "request": "short"}, "request",
         "request must be 8 to 80 letters, digits and dashes, not a text"),
        ("release", {"scenario": ONE, "request": "a" * 81}, "request", "8 to 80 letters"),
        ("release", {"scenario": ONE, "request": "with a blank!"}, "request", "and dashes"),
        ("release", {"scenario": ONE | {"title": 3}, "request": "abcdefgh"}, "scenario.title",
         "a text, not a number"),
        ("estimate", ONE | {"title": "x" * 201}, "title", "at most 200 letters, not a text of 201"),
        ("estimate", ONE | {"table": 3}, "table", "an object with keys"),
        ("estimate", ONE | {"table": {"source": 3, "privacy_unit": "a"}}, "table.source", "a text"),
        ("estimate", ONE | {"table": {"source": "x"}}, "table.privacy_unit", "must be given"),
        ("estimate", ONE | {"table": {"source": "x", "privacy_unit": "e", "max_groups": "3"}},
         "table.max_groups", "a whole number, not a text"),
        ("estimate", ONE | {"domains": 3}, "domains", "an object with keys"),
        ("estimate", ONE | {"domains": {"x" * 201: []}}, "domains", "at most 200 letters"),
        ("estimate", ONE | {"domains": {str(i): [1] for i in range(501)}}, "domains",
         "at most 500"),
        ("estimate", ONE | {"queries": 3}, "queries", "a list, not a number"),
        ("estimate", ONE | {"queries": []}, "queries", "at least 1 of them"),
        ("estimate", ONE | {"queries": [3]}, "queries.0", "an object with keys, not a number"),
        ("estimate", ONE | {"queries": [{"kind": "count"}] * 101}, "queries",
         "at most 100 of them"),
        ("estimate", ONE | {"budget": {"split": 3}}, "budget.split", "a text"),
        ("estimate", ONE | {"budget": {"share": []}}, "budget.share", "a finite number"),
        ("estimate", ONE | {"x" * 300: 1}, "x" * 300, "no such key"),
        ("verify", {"channel": 3}, "channel", "a text, not a number"),
        ("tradeoff", {"rows": "many"}, "rows", "rows must be a whole number, not a text"),
        ("tradeoff", {"rows": 1.5}, "rows", "a whole number"),
        ("login", {"token": 3}, "token", "a text"),
        ("scenario/read", {"text": 3}, "text", "a text"),
        ("release/csv?answer=x", {"scenario": ONE, "request": "abcdefgh"}, "answer", "a whole"),
        ("release/csv?answer=-1", {"scenario": ONE, "request": "abcdefgh"}, "answer", "at least 0"),
        ("release/csv?answer=100", {"scenario": ONE, "request": "abcdefgh"}, "answer", "most 99"),
    ],
)  # fmt: skip
def test_a_wrong_shape_names_its_field(still, path, body, field, words):
    answer = still.post(f"/api/{path}", json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["field"]) == (422, field), error
    assert words in error["message"] and field[:120] in error["message"]
    assert not FOREIGN.search(error["message"])
    assert len(error["message"]) < 300 and ". " not in error["message"]


@pytest.mark.parametrize(
    ("number", "field"), [("NaN", None), ("Infinity", None), ("1e999", "target.gamma")]
)
def test_numbers_that_are_none(still, number, field):
    body = f'{{"target": {{"gamma": {number}}}}}'.encode()
    found = said(still.post("/api/plan", content=body, headers=JSON))
    assert found[:2] == (422, field) and "finite" in found[2]


def test_addresses_and_names(still):
    assert said(still.get("/api/columns")) == (422, "file", "file must be given")
    assert "at most 200 letters" in said(still.get("/api/columns", params={"file": "x" * 300}))[2]
    assert said(still.get("/api/none"))[0] == said(still.get("/static/none.js"))[0] == 404
    assert said(still.get("/api/plan")) == (405, None, "this address takes POST only")
    assert said(still.request("DELETE", "/api/hello"))[2] == "this address takes GET only"


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("title = 1", "title", "title must be a text, not a number"),
        ("[target]\ngamma = [1]", "target.gamma", f"{NUMBER}, not a list"),
        ("[target]\nspeed = 1", "target.speed", "no such key"),
        ("[table]\nrows = true", "table.source", "must be given"),
    ],
)
def test_a_scenario_of_the_wrong_shape(still, text, field, words):
    whole = "[target]\ngamma = 2\n" if "target" not in text else ""
    table = "[table]\nsource = 'x'\nentity = 'y'\n" if "[table]" not in text else ""
    queries = "[[queries]]\nkind = 'count'\n"
    body = {"text": "\n".join([text, whole, table, queries])}
    found = said(still.post("/api/scenario/read", json=body))
    assert found[:2] == (422, field) and words in found[2]


def test_a_right_request_is_none_of_this(still):
    assert still.post("/api/plan", json=PLAN).status_code == 200


def test_a_port_that_is_taken(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--folder", str(tmp_path), "--port", str(port)]) == 3
    words = f"whosin: port {port} is in use; choose another one: --port {port + 1}\n"
    assert capsys.readouterr() == ("", words)


def test_an_address_of_another_machine(tmp_path, capsys):
    (tmp_path / "whosin-users.json").unlink(missing_ok=True)
    assert main(["serve", "--folder", str(tmp_path), "--add-user", "ann"]) == 0
    capsys.readouterr()
    assert main(["serve", "--folder", str(tmp_path), "--host", "192.0.2.1"]) == 2
    words = "whosin: --host must be an address of this machine, not 192.0.2.1\n"
    assert capsys.readouterr().err == words
