"""Whatever is wrong with the shape of a request is refused in one shape that names the field."""

from __future__ import annotations

import re
import socket

import httpx
import pytest

from web_server import ONE
from whosin.app.cli.main import main

FOREIGN = re.compile(
    r"constrained|Input should|Field required|Extra inputs|validation|pattern|\^\[|dictionar"
    r"|boolean|string|integer|decode|Not Found|Not Allowed|[Ee]rror parsing|Errno|\[key\]"
)
"""Words that are the framework's, not ours."""
GAMMA = {"gamma": 2}
LONG = "0" * 101


def refused_field(answer: httpx.Response) -> tuple[int, str | None]:
    """The status and the field of a refusal, in one sentence that is ours."""
    error = answer.json()["error"]
    assert set(error) - {"mistakes"} == {"field", "message", "hint"}
    assert not FOREIGN.search(error["message"]), error
    assert len(error["message"]) < 300 and ". " not in error["message"], error
    assert error["hint"] is None or error["message"].endswith(error["hint"])
    return answer.status_code, error["field"]


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("content", "headers"),
    [
        (b"{}", {}),
        (b"{}", {"Content-Type": "text/plain"}),
        (b"", JSON),
        (b"null", JSON),
        (b"[]", JSON),
        (b'"x"', JSON),
        (b"3", JSON),
        (b'{"a":', JSON),
        (b'{"a":"\xff"}', JSON),
        (b"[" * 100_000, JSON),
        (b'{"target":{"gamma":' + b"9" * 5000 + b"}}", JSON),
        (b"[" + b"1," * 200_001 + b"1]", JSON),
        (b"{" + b",".join(b'"%d":1' % i for i in range(5001)) + b"}", JSON),
    ],
)
def test_a_body_that_is_none(still, content, headers):
    answer = still.post("/api/plan", content=content, headers=headers)
    assert refused_field(answer) == (422, None)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("plan", {}, "target"),
        ("plan", {"target": None}, "target"),
        ("plan", {"target": 3}, "target"),
        ("plan", {"target": {"posterior": []}}, "target.posterior"),
        ("plan", {"target": {"gain": LONG}}, "target.gain"),
        ("plan", {"target": {"speed": 1}}, "target.speed"),
        ("plan", {"target": {"posterior": 0.6}, "adversary": {"prior": 0.7}}, "target.posterior"),
        ("plan", {"target": {"rho": 1, "candidates": "x"}}, "target.candidates"),
        ("plan", {"target": GAMMA, "adversary": 3}, "adversary"),
        ("plan", {"target": GAMMA, "adversary": {"prior": []}}, "adversary.prior"),
        ("plan", {"target": GAMMA, "adversary": {"size-known": "yes"}}, "adversary.size-known"),
        ("plan", {"target": GAMMA, "adversary": {"linked": "x"}}, "adversary.linked"),
        ("release", {"request": "abcdefgh"}, "scenario"),
        ("release", {"scenario": ONE, "request": "short"}, "request"),
        ("release", {"scenario": ONE, "request": "a" * 81}, "request"),
        ("release", {"scenario": ONE, "request": "with a blank!"}, "request"),
        ("release", {"scenario": ONE | {"title": 3}, "request": "abcdefgh"}, "scenario.title"),
        ("estimate", ONE | {"title": "x" * 201}, "title"),
        ("estimate", ONE | {"table": {"source": 3, "privacy_unit": "a"}}, "table.source"),
        ("estimate", ONE | {"table": {"source": "x"}}, "table.privacy_unit"),
        (
            "estimate",
            ONE | {"table": {"source": "x", "privacy_unit": "e", "max_groups": "3"}},
            "table.max_groups",
        ),
        ("estimate", ONE | {"domains": 3}, "domains"),
        ("estimate", ONE | {"domains": {"x" * 201: []}}, "domains"),
        ("estimate", ONE | {"domains": {str(i): [1] for i in range(501)}}, "domains"),
        ("estimate", ONE | {"queries": []}, "queries"),
        ("estimate", ONE | {"queries": [3]}, "queries.0"),
        ("estimate", ONE | {"queries": [{"kind": "count"}] * 101}, "queries"),
        ("estimate", ONE | {"budget": {"share": []}}, "budget.share"),
        ("estimate", ONE | {"x" * 300: 1}, "x" * 300),
        ("verify", {"channel": 3}, "channel"),
        ("distortion", {"rows": 1.5}, "rows"),
        ("login", {"token": 3}, "token"),
        ("scenario/read", {"text": 3}, "text"),
        ("release/csv?answer=x", {"scenario": ONE, "request": "abcdefgh"}, "answer"),
        ("release/csv?answer=100", {"scenario": ONE, "request": "abcdefgh"}, "answer"),
    ],
)
def test_a_wrong_shape_names_its_field(still, path, body, field):
    assert refused_field(still.post(f"/api/{path}", json=body)) == (422, field)


@pytest.mark.parametrize(
    ("number", "field"), [("NaN", None), ("Infinity", None), ("1e999", "target.gamma")]
)
def test_numbers_that_are_none(still, number, field):
    body = f'{{"target": {{"gamma": {number}}}}}'.encode()
    assert refused_field(still.post("/api/plan", content=body, headers=JSON)) == (422, field)


def test_addresses_and_names(still):
    for text in ("not toml", "\0", "a = " * 9):
        answer = still.post("/api/scenario/read", json={"text": text})
        assert answer.status_code == 422 and answer.json()["error"]["message"]
    assert refused_field(still.get("/api/columns")) == (422, "file")
    assert refused_field(still.get("/api/columns", params={"file": "x" * 300})) == (422, "file")
    for path in ("/api/none", "/static/none.js"):
        assert refused_field(still.get(path)) == (404, None)
    assert refused_field(still.get("/api/plan")) == (405, None)
    assert refused_field(still.request("DELETE", "/api/hello")) == (405, None)


def test_a_hint_comes_as_data(still):
    """What to do stands at the end of the message, and by itself."""
    answer = still.post("/api/distortion", json={"rows": 4000})
    assert refused_field(answer) == (422, "rows")
    assert answer.json()["error"]["hint"] == "whosin distortion takes more"
    assert still.get("/api/none").json()["error"]["hint"] is None


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("title = 1", "title"),
        ("[target]\ngamma = [1]", "target.gamma"),
        ("[target]\nspeed = 1", "target.speed"),
        ("[table]\nmax_groups = true", "table.max_groups"),
    ],
)
def test_a_scenario_of_the_wrong_shape(still, text, field):
    whole = "[target]\ngamma = 2\n" if "target" not in text else ""
    table = "[table]\nsource = 'x'\nprivacy_unit = 'y'\n" if "[table]" not in text else ""
    queries = "[[queries]]\nkind = 'count'\n"
    body = {"text": "\n".join([text, whole, table, queries])}
    assert refused_field(still.post("/api/scenario/read", json=body)) == (422, field)


def test_a_port_that_is_taken(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["serve", "--folder", str(tmp_path), "--port", str(port)]) == 3
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and f"--port {port + 1}" in err


def test_addresses_to_listen_on(tmp_path, refused_at):
    """One of another machine, and any but this machine's own before users have tokens."""
    assert refused_at("serve --host 0.0.0.0 --folder", tmp_path) == "--host"
    assert main(["serve", "--folder", str(tmp_path), "--add-user", "ann"]) == 0
    assert refused_at("serve --host 192.0.2.1 --folder", tmp_path) == "--host"
