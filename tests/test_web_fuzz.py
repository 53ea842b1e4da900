"""Requests of all kinds, right and wrong: never a 500, a traceback, a hang or much memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error

import web_fuzz
from web_server import served
from whosin.app.web.server import make_app
from whosin.app.web.settings import Settings

SLOWEST = 10.0
LARGEST = 2 << 30
MUTATED, DESCRIBED = 42_000, 500
"""Requests of the mutator, and of schemathesis for each of the routes."""
CODE = "import sys; from whosin.app.cli.main import main; sys.exit(main(sys.argv[1:]))"


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server as people start it, whose log is kept in the folder."""
    served(folder, 60)
    with duckdb.connect(str(folder / "clinic.duckdb")) as made:
        made.execute('CREATE TABLE "s.x" (patient VARCHAR, age INTEGER)')
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


def descendants(pid: int) -> list[int]:
    """The processes that a process has started, and theirs."""
    own: list[int] = []
    with suppress(OSError):  # it may end meanwhile
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            own += map(int, file.read_text().split())
    return [*own, *(each for child in own for each in descendants(child))]


def test_mutated_requests(tmp_path):
    """A few; the soak sends tens of thousands."""
    with serving(tmp_path) as (url, _):
        done = web_fuzz.run(url, 120, seed=1, seconds=300, threads=2)
    assert done[200] > 10 and done[422] > 10


@pytest.mark.soak
def test_forty_thousand_mutated_requests(tmp_path):
    with serving(tmp_path) as (url, process), web_fuzz.Watched(process.pid, descendants) as watched:
        done = web_fuzz.run(url, MUTATED, seed=2, seconds=SLOWEST)
    assert done.total() == MUTATED and watched.largest < LARGEST
    assert {200, 201, 409, 413, 422} <= done.keys()


schema = schemathesis.openapi.from_dict(
    make_app(Settings(Path(), "x.db", Path("x.json"))).openapi()
)


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    with serving(folder) as (url, process), web_fuzz.Watched(process.pid, descendants) as found:
        yield url
    assert found.largest < LARGEST


@pytest.mark.soak
@schema.parametrize()
@settings(
    max_examples=DESCRIBED,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_ten_thousand_described_requests(case, watched):
    answer = case.call(base_url=watched, headers={"X-Whosin": "fuzz"}, timeout=SLOWEST)
    case.validate_response(answer, checks=[not_a_server_error])
