"""Requests of all kinds, right and wrong: never a 500, a traceback, a hang or much memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from schemathesis.checks import not_a_server_error

import isolation_tasks
import web_fuzz
from described_requests import description, send_all
from web_faults import descendants
from web_server import served
from whosin.app.web.server import running
from whosin.errors import Crashed
from whosin.isolation import TaskLimits

SLOWEST, PATIENCE = 10.0, 100.0
"""Seconds that an answer may take, in computing and on a busy machine."""
LARGEST = 2 << 30
MUTATED, BATCH, FORKED, DESCRIBED = 48_000, 4_000, 2_000, 250
"""Requests of the mutator, how many of them go to one server, those that go to a server as people
start it, and those of schemathesis for each of the routes."""
CODE = "import sys; from whosin.app.cli.main import main; sys.exit(main(sys.argv[1:]))"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server as people start it, whose log is kept in the folder."""
    served(folder, 60)
    web_fuzz.furnish(folder)
    command = [sys.executable, "-c", CODE, "serve", "--folder", str(folder), "--port", "0"]
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[3].rstrip("/"), process
            assert process.poll() is None, "the server is gone"
        finally:
            process.terminate()
            process.wait(300)
    assert "error" not in (folder / "log").read_text()


def sound(outcome: web_fuzz.Outcome, count: int) -> None:
    assert not outcome.faults, "\n".join([f"{len(outcome.faults)} faults:", *outcome.faults])
    assert outcome.statuses.total() == count


def send_batch(folder: Path, kept: Any, count: int, seed: int) -> web_fuzz.Outcome:
    """Mutated requests to a server whose tasks share a process."""
    settings = served(folder, 60)
    web_fuzz.furnish(folder)
    with running(settings, kept) as url:
        done = web_fuzz.run(url, count, seed, seconds=PATIENCE, threads=2)
    sound(done, count)
    return done


def test_mutated_requests(tmp_path, kept):
    """A few; the soak sends tens of thousands."""
    done = send_batch(tmp_path, kept, 80, seed=1)
    assert done.statuses[200] > 10 and done.statuses[422] > 10


def test_the_mutator_knows_every_route():
    paths = {path for _, path, _, _ in web_fuzz.seeds()}
    assert paths == set(description()["paths"])


@pytest.mark.parametrize(
    ("status", "text", "fault"),
    [
        (200, "{}", None),
        (422, '{"error": {"field": "a", "message": "a must be 1, not 2"}}', None),
        (500, '{"error": {"field": null, "message": "internal error"}}', "a fault"),
        (200, "Traceback (most recent call last)", "a traceback"),
        (422, '{"error": {"field": "a", "message": "two\\nlines"}}', "no sentence"),
        (422, '{"error": {"field": "a", "message": "a must be 1, not P7"}}', "the cell P7"),
        (200, f'{{"rows": ["{web_fuzz.SECRET}9"]}}', "the cell"),
    ],
)
def test_what_no_answer_may_have(status, text, fault):
    answer = httpx.Response(status, content=text, headers={"content-type": "application/json"})
    found = web_fuzz.fault_of({"method": "POST", "content": b"{}"}, answer)
    assert found is None if fault is None else str(found).startswith(fault)


@pytest.mark.soak
def test_two_thousand_mutated_requests_at_once(tmp_path, capsys):
    """To a server as people start it, which forks a process for each."""
    with serving(tmp_path) as (url, process), web_fuzz.Watched(process.pid, descendants) as watched:
        done = web_fuzz.run(url, FORKED, seed=web_fuzz.FIRST, seconds=PATIENCE)
    with capsys.disabled():
        print(f"\n{done}, {watched.largest >> 20} MB")
    sound(done, FORKED)
    assert watched.largest < LARGEST


def test_a_kept_process_works_on_many_tasks(kept):
    allowed = TaskLimits(300, 1 << 30)
    assert [kept.run(isolation_tasks.add, 1, n, limits=allowed) for n in (1, 2)] == [2, 3]
    with pytest.raises(Crashed):
        kept.run(isolation_tasks.crash, limits=allowed)
    assert kept.run(isolation_tasks.add, 1, 3, limits=allowed) == 4 and kept.largest > 0


@pytest.mark.soak
@pytest.mark.parametrize("batch", range(MUTATED // BATCH))
def test_fifty_thousand_mutated_requests(batch, tmp_path, kept, capsys):
    done = send_batch(tmp_path, kept, BATCH, web_fuzz.FIRST + 1 + batch)
    with capsys.disabled():
        print(f"\n{done}, {kept.slowest:.1f} s of computing, {kept.largest >> 20} MB")
    assert kept.largest < LARGEST and kept.slowest < SLOWEST
    assert {200, 409, 422} <= done.statuses.keys()


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with serving(folder) as (url, process), web_fuzz.Watched(process.pid, descendants) as found:
        yield url
    assert found.largest < LARGEST


@pytest.mark.soak
def test_described_requests(watched):
    def check(case):
        answer = case.call(base_url=watched, headers={"X-Whosin": "fuzz"}, timeout=PATIENCE)
        case.validate_response(answer, checks=[not_a_server_error])

    send_all(DESCRIBED, check)
