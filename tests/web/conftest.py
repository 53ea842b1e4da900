"""What the tests of the page share: servers, and one process that works on the tasks of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from kept_worker_pool import KeptWorkerPool
from web_server import program, served
from whosin.app.web.access import Settings
from whosin.app.web.server import running
from whosin.app.web.tasks import SHARED_POOL


@pytest.fixture
def hospital(tmp_path: Path) -> Settings:
    return served(tmp_path)


@pytest.fixture
def server(hospital: Settings) -> Iterator[httpx.Client]:
    with running(hospital) as url, program(url) as client:
        yield client


@pytest.fixture(scope="session")
def still(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server for tests that change nothing."""
    with running(served(tmp_path_factory.mktemp("still"), 50)) as url, program(url) as client:
        yield client


@pytest.fixture(scope="session")
def kept() -> Iterator[KeptWorkerPool]:
    found = KeptWorkerPool()
    yield found
    found.close()


@pytest.fixture
def own_processes(kept: KeptWorkerPool) -> None:
    """For tests of races and limits: each task in a process of its own, as for people."""
    kept.close()


@pytest.fixture(autouse=True)
def _one_process(
    request: pytest.FixtureRequest, kept: KeptWorkerPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "own_processes" not in request.fixturenames:
        monkeypatch.setattr(SHARED_POOL, "run", kept.run)
