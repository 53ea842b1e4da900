"""What the tests of the page share: one process that works on the tasks of all their servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kept_worker_pool import KeptWorkerPool
from whosin.app.web.tasks import SHARED_POOL


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
