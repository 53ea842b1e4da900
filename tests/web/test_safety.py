"""Whom a server lets in, and what one connection or request can take from the others."""

from __future__ import annotations

import json
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

from web_server import ONE, PLAN, problem, program, served
from whosin.app.web import access, server
from whosin.app.web.access import Access, add_user, find_user, read_users, remove_user
from whosin.app.web.bodies import RequestRefused
from whosin.app.web.server import running
from whosin.errors import InvalidInput


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# Who is let in


@pytest.mark.parametrize("damage", ["deleted", "emptied", "nobody", "damaged", "deep"])
def test_a_lost_file_of_users_lets_nobody_in(hospital, damage):
    token = add_user(hospital.users, "Ann")
    with running(hospital) as url, program(url) as client:
        assert client.get("/api/files", headers=bearer(token)).status_code == 200
        client.post("/api/login", json={"token": token})
        if damage == "deleted":
            hospital.users.unlink()
        else:
            texts = {"emptied": "", "nobody": '{"users": {}}', "damaged": "[1"}
            texts["deep"] = "[" * 100_000
            hospital.users.write_text(texts[damage])
        for headers in ({}, bearer(token)):
            for path in ("/api/files", "/api/ledger", "/api/openapi.json"):
                answer = client.get(path, headers=headers)
                assert answer.status_code in (401, 503), (path, answer.text)
            body = {"scenario": ONE, "request": "nobody-there"}
            assert client.post("/api/release", json=body, headers=headers).status_code in (401, 503)


def test_one_name_is_one_person(hospital):
    """The ledger spells names in one way; two users whom it cannot tell apart would see each
    other's requests."""
    composed, apart = "Zo\u00eb", "Zoe\u0308"
    first, second = add_user(hospital.users, composed), add_user(hospital.users, apart)
    assert find_user(read_users(hospital.users), first) is None
    assert find_user(read_users(hospital.users), second) == composed
    for name in (" Ann", "Ann ", "", "a\nb"):
        with pytest.raises(InvalidInput):
            add_user(hospital.users, name)
    remove_user(hospital.users, apart)
    assert not read_users(hospital.users)


def test_a_first_user_closes_the_door_behind_everyone_else(hospital):
    with running(hospital) as url, program(url) as client:
        assert client.get("/api/files").status_code == 200
        token = add_user(hospital.users, "Ann")
        problem(client.get("/api/files"), 401)
        assert client.get("/api/files", headers=bearer(token)).status_code == 200
        remove_user(hospital.users, "Ann")
        problem(client.get("/api/files"), 401)
        problem(client.get("/api/files", headers=bearer(token)), 401)


def test_what_is_said_of_files_does_not_depend_on_their_rows(hospital):
    """The size of a file tells whether one person's row is in it."""
    with running(hospital) as url, program(url) as client:
        before = client.get("/api/files").json()
        assert before["tables"]
        served(hospital.folder, 51)
        assert client.get("/api/files").json() == before


def test_a_server_that_was_started_for_users_needs_them(hospital):
    assert Access(hospital.users, required=True).required
    assert not Access(hospital.users).required


def test_logging_out_ends_the_session(hospital):
    """A copy of the cookie is worth nothing afterwards, and never was the token."""
    token = add_user(hospital.users, "Ann")
    with running(hospital) as url, program(url) as client:
        client.post("/api/login", json={"token": token})
        copy = client.cookies[access.COOKIE_NAME]
        assert copy != token
        stolen = {"Cookie": f"{access.COOKIE_NAME}={copy}"}
        with program(url) as thief:
            assert thief.get("/api/files", headers=stolen).status_code == 200
            problem(thief.get("/api/files", headers=bearer(copy)), 401)
            problem(
                thief.get("/api/files", headers={"Cookie": f"{access.COOKIE_NAME}={token}"}), 401
            )
            client.post("/api/logout")
            problem(thief.get("/api/files", headers=stolen), 401)
        client.post("/api/login", json={"token": token})
        client.post("/api/logout", headers=bearer(token))  # as a program: all sessions of its token
        problem(client.get("/api/files"), 401)


def test_a_removed_user_and_a_new_token_end_sessions(hospital):
    token, other = add_user(hospital.users, "Ann"), add_user(hospital.users, "Bob")
    with running(hospital) as url, program(url) as ann, program(url) as bob:
        ann.post("/api/login", json={"token": token})
        bob.post("/api/login", json={"token": other})
        remove_user(hospital.users, "Ann")
        problem(ann.get("/api/files"), 401)
        assert bob.get("/api/hello").json()["user"] == "Bob"
        add_user(hospital.users, "Bob")
        problem(bob.get("/api/files"), 401)


def test_the_command_removes_users(tmp_path, run):
    users = tmp_path / "whosin-users.json"
    add_user(users, "Ann")
    add_user(users, "Bob")
    code, out, _ = run("serve --folder", tmp_path, "--remove-user", "Ann", "--json")
    assert (code, json.loads(out)) == (0, {"removed": "Ann"})
    assert read_users(users).keys() == {"Bob"} and users.stat().st_mode & 0o077 == 0
    code, _, err = run("serve --folder", tmp_path, "--remove-user", "Cyd")
    assert code == 2 and "no user 'Cyd'" in err


def test_failed_logins_are_counted_and_slowed(tmp_path, monkeypatch, capfd):
    users = tmp_path / "users.json"
    token, other = add_user(users, "Ann"), add_user(users, "Bob")
    now = [1000.0]  # of this module alone: the loops of other tests' servers go by the real one
    monkeypatch.setattr(access, "time", SimpleNamespace(monotonic=lambda: now[0]))
    door = Access(users)
    assert door.login(token, "10.0.0.1")[0] == "Ann"
    for number in range(access.FREE_FAILED_LOGINS):
        with pytest.raises(RequestRefused) as wrong:
            door.login(f"guess {number}", "10.0.0.1")
        assert wrong.value.status == 401
    assert f"{access.FREE_FAILED_LOGINS} failed logins from 10.0.0.1" in capfd.readouterr().err
    for guess in ("another guess", other):  # right or wrong: nothing is said about it
        with pytest.raises(RequestRefused, match="wait 1 seconds") as late:
            door.login(guess, "10.0.0.1")
        assert late.value.status == 429
    assert door.login(token, "10.0.0.1")[0] == "Ann"  # was used before
    assert door.login(other, "10.0.0.2")[0] == "Bob"  # comes from elsewhere
    waits = []
    for _ in range(12):
        before = now[0]
        while True:
            try:
                door.login("guess", "10.0.0.1")
            except RequestRefused as refused:
                if refused.status == 401:
                    break
            now[0] += 0.5
        waits.append(now[0] - before)
    assert waits == sorted(waits) and max(waits) == access.MAX_WAIT_SECONDS
    for number in range(20):  # addresses of one network count as one
        with pytest.raises(RequestRefused):
            door.login("guess", f"2001:db8::{number:x}")
    assert len(door._failures) == 2


def test_what_the_door_keeps_is_bounded(tmp_path, monkeypatch):
    users = tmp_path / "users.json"
    token = add_user(users, "Ann")
    monkeypatch.setattr(access, "MAX_ADDRESSES", 50)
    door = Access(users)
    for number in range(200):
        with pytest.raises(RequestRefused):
            door.login("guess", f"10.0.{number}.1")
        door.login(token, "10.1.0.1")
    assert (len(door._failures), len(door._sessions)) == (50, access.MAX_SESSIONS_PER_USER)


# Connections and bodies


def raw(url: str, *lines: str, body: bytes = b"") -> bytes:
    """What a server says to bytes that no client would send."""
    address = httpx.URL(url)
    with closing(socket.create_connection((address.host, address.port), 300)) as peer:
        peer.sendall("\r\n".join([*lines, "Host: 127.0.0.1", "X-Whosin: 1", "", ""]).encode())
        with suppress(ConnectionError):
            peer.sendall(body)
        peer.settimeout(300)
        return _all(peer)


def _all(peer: socket.socket) -> bytes:
    found = b""
    try:
        while part := peer.recv(65536):
            found += part
    except ConnectionError:
        pass
    return found


def test_a_body_says_its_length_in_one_way(still):
    url = str(still.base_url)
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    for first in ("POST /api/plan HTTP/1.1", "GET /api/hello HTTP/1.1"):
        answer = raw(
            url,
            first,
            "Content-Length: 2",
            "Transfer-Encoding: chunked",
            "Connection: close",
            body=chunk * 100,
        )
        assert answer.startswith((b"HTTP/1.1 411", b"HTTP/1.1 400")), answer[:80]
    for length in ("-2", "2, 3", "٢", "9" * 5000):
        said = raw(url, "POST /api/plan HTTP/1.1", f"Content-Length: {length}", "Connection: close")
        assert said.startswith((b"HTTP/1.1 4",)), said[:80]
    assert still.get("/api/hello").status_code == 200


@pytest.mark.parametrize("length", ["Content-Length: 2", "X-Nothing: 1"])
@pytest.mark.parametrize("first", ["POST /api/plan HTTP/1.1", "GET /api/hello HTTP/1.1"])
def test_a_body_with_two_ends_ends_the_connection(still, first, length):
    """A proxy that goes by the length sees another request where this server sees a body."""
    hidden = b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    answer = raw(
        str(still.base_url), first, length, "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + hidden
    )  # it ends when the server closes the connection
    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 411"), answer[:200]
    assert b"connection: close" in answer.lower()


@pytest.mark.parametrize("line", ["X-Long: {}", "Cookie: a={}", "GET /api/hello?q={} HTTP/1.1"])
def test_headers_are_as_long_as_is_said(still, line):
    """Also those that come in one piece, and many short ones."""
    url, first = str(still.base_url), "GET /api/hello HTTP/1.1"
    for size, fits in ((31_000, True), (33_500, False), (60_000, False), (400_000, False)):
        text = line.format("a" * size)
        lines = [text] if line.startswith("GET") else [first, text]
        answer = raw(url, *lines, "Connection: close")
        assert answer.startswith(b"HTTP/1.1 200") is fits, (size, answer[:80])
    many = [f"X-{number}: a" for number in range(8000)]
    assert not raw(url, first, *many, "Connection: close").startswith(b"HTTP/1.1 200")


def test_a_body_is_counted_while_it_comes():
    """Whatever the headers said."""
    import asyncio

    from whosin.app.web.access import LARGEST_BODY
    from whosin.app.web.server import Guard

    class Nothing:
        largest_upload = 5

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b" " * (LARGEST_BODY // 2 + 1), "more_body": True}

    guard = Guard(None, Nothing(), None)
    counted = guard._counted({"path": "/api/plan"}, receive)
    asyncio.run(counted())
    with pytest.raises(RequestRefused) as refused:
        asyncio.run(counted())
    assert refused.value.status == 413


def test_foreign_origins_that_are_no_addresses(still):
    for origin in ("http://[::1", "http://[", "null", "", "http://\u2100"):
        headers = {"Origin": origin.encode()}
        problem(still.post("/api/plan", json=PLAN, headers=headers), 403)


def test_silent_and_slow_connections_are_closed(hospital, monkeypatch):
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.3)
    monkeypatch.setattr(server, "BODY_SECONDS", 0.3)
    monkeypatch.setattr(server, "KEPT_SECONDS", 0.3)
    starts = (
        b"",
        b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\nX-",
        b"POST /api/plan HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Whosin: 1\r\nContent-Length: 9\r\n\r\n{",
        b"GET /api/hello HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    )
    with running(hospital) as url, ExitStack() as stack:
        address = (httpx.URL(url).host, httpx.URL(url).port)
        for start in starts:
            peer = stack.enter_context(closing(socket.create_connection(address, 300)))
            peer.sendall(start)
            _all(peer)  # ends only when the server closes it


@pytest.mark.parametrize("path", ["/api/plan", "/api/files?name=slow.csv"])
def test_a_body_that_drips_has_an_end(hospital, monkeypatch, path):
    """No pause is long, and the whole still takes too long: 40 kB a second, where 128 are due."""
    monkeypatch.setattr(server, "FIRST_SECONDS", 1.0)
    lines = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "X-Whosin: 1", "Content-Length: 2000000")
    head = "\r\n".join((*lines, "", ""))
    with running(hospital) as url:
        address = (httpx.URL(url).host, httpx.URL(url).port)
        with closing(socket.create_connection(address, 300)) as peer:
            peer.sendall(head.encode())
            sent = 0
            with suppress(ConnectionError):
                while sent < 2_000_000:
                    peer.sendall(b"a" * 2000)
                    sent += 2000
                    time.sleep(0.05)
        assert sent < 1_000_000
        end = time.monotonic() + 60
        while list(hospital.folder.glob(".upload-*")) and time.monotonic() < end:
            time.sleep(0.05)
        assert not list(hospital.folder.glob(".upload-*"))


def test_answers_are_sent_at_once(hospital, monkeypatch):
    """A kept connection does not wait for acknowledgements."""
    seen = []
    made = server.Connection.connection_made

    def look(self, transport):
        made(self, transport)
        peer = transport.get_extra_info("socket")
        seen.append(peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr(server.Connection, "connection_made", look)
    with running(hospital) as url:
        httpx.get(f"{url}/api/hello")
    assert seen and all(seen)


def test_idle_connections_do_not_stop_a_server(hospital):
    code = "import sys; from whosin.app.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "serve", "--folder", str(hospital.folder), "--port", "0"]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with (
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard)),
        ) as process,
        ExitStack() as stack,
    ):
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[3]
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
            stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            address = (httpx.URL(url).host, httpx.URL(url).port)
            for number in range(300):
                peer = stack.enter_context(closing(socket.create_connection(address, 300)))
                if number % 2:
                    peer.sendall(b"GET / HTTP/1.1\r\n")
            began = time.monotonic()
            with program(url) as client:
                assert client.post("/api/plan", json=PLAN).status_code == 200
            assert time.monotonic() - began < 300
        finally:
            process.terminate()
            process.wait(300)


# What can be seen


def test_users_see_registered_tables_only(hospital):
    """Any text file has a first line; only what has a budget can be looked at."""
    (hospital.folder / "notes.csv").write_text("Ann is patient 4711,surgery\nBob,medicine\n")
    token = add_user(hospital.users, "Ann")
    curator = add_user(hospital.users, "Cyd", curator=True)
    other = {"table": {"source": "notes.csv", "privacy_unit": "x"}}
    with running(hospital) as url, program(url) as client:

        def seen(headers: dict[str, str]) -> list[str]:
            files = client.get("/api/files", headers=headers).json()["tables"]
            return [file["name"] for file in files]

        assert seen(bearer(token)) == []
        assert seen(bearer(curator)) == ["hospital.parquet", "notes.csv"]
        release = {"scenario": ONE, "request": "by-a-curator"}
        made = client.post("/api/release", json=release, headers=bearer(curator))
        assert made.status_code == 200, made.text
        assert seen(bearer(token)) == ["hospital.parquet"]
        hidden = client.get("/api/columns", params={"file": "notes.csv"}, headers=bearer(token))
        absent = client.get("/api/columns", params={"file": "nope.csv"}, headers=bearer(token))
        assert problem(hidden, 422, "table.source").replace("notes", "nope") == problem(
            absent, 422, "table.source"
        )
        for path, body in (
            ("/api/estimate", ONE | other),
            ("/api/release", release | {"scenario": ONE | other}),
            ("/api/scenario/script", release | {"scenario": ONE | other}),
        ):
            answer = client.post(path, json=body, headers=bearer(token))
            words = problem(answer, 422, "table.source")
            assert "one of hospital.parquet" in words and "4711" not in answer.text
        known = client.get("/api/columns", params={"file": "notes.csv"}, headers=bearer(curator))
        assert known.status_code == 200


def test_the_log_says_who_asked_what_at_which_cost_and_no_answer(hospital, capfd):
    """Lines of JSON: request, dataset, cost, duration; no row, no answer, no address."""
    with running(replace(hospital, log=True)) as url, program(url) as client:
        body = {"scenario": ONE, "request": "log-this-request"}
        made = client.post("/api/release", json=body).json()
        client.get("/api/files?name=secret-name.csv")
        client.post("/api/plan", json={"target": {"posterior": "a secret"}})
        assert client.get("/healthz").json() == {"status": "ok"}
    err = capfd.readouterr().err
    lines = [json.loads(line) for line in err.splitlines() if line.startswith("{")]
    (paid,) = [line for line in lines if line["route"] == "/api/release"]
    assert paid["status"] == 200, (paid, made)
    assert paid["request"] == "log-this-request" and paid["status"] == 200 and paid["seconds"] > 0
    assert paid["dataset"] == made["budget_state"]["dataset"]
    assert paid["cost"] == [answer["paid"] for answer in made["answers"]]
    known = {"time", "method", "route", "status", "seconds", "user", "dataset", "request", "cost"}
    assert all(line.keys() <= known for line in lines)
    assert "secret" not in err
    for answer in made["answers"]:
        assert json.dumps(answer["rows"]) not in err and "rows" not in err
    with running(hospital) as url, program(url) as client:
        client.post("/api/release", json=body)
    assert "log-this-request" not in capfd.readouterr().err  # only where it was asked for


def test_health_says_whether_the_ledger_can_be_read_and_nothing_else(tmp_path, monkeypatch):
    hospital = served(tmp_path)
    token = add_user(hospital.users, "ann")
    assert token
    monkeypatch.setattr("whosin.app.web.ledger_routes.HEALTH_SECONDS", 0.2)
    with running(hospital) as url, httpx.Client(base_url=url) as client:
        assert client.get("/api/files").status_code == 401
        assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (
            200,
            {"status": "ok"},
        )
        Path(hospital.ledger).write_bytes(b"no ledger at all" * 100)
        time.sleep(0.3)
        found = client.get("/healthz")
        assert found.status_code == 503
        assert found.json() == {"status": "the ledger cannot be read"}
