"""What the tests of the page share: servers, and one process that works on the tasks of all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import httpx
import pytest
from playwright.sync_api import Browser, Page

from kept_worker_pool import UNLIMITED, KeptWorkerPool, serve
from web_page import SIZES
from web_server import program, served
from whosin.app.web.access import Settings
from whosin.app.web.server import running
from whosin.app.web.tasks import SHARED_POOL
from whosin.isolation import WorkerPool

Theme = Literal["light", "dark"]


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
    found = KeptWorkerPool(
        lambda address: WorkerPool.run(SHARED_POOL, serve, address, limits=UNLIMITED)
    )
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


@pytest.fixture(scope="module")
def album() -> Path | None:
    """Where pictures go, if anywhere: taking them costs a third of the browser's time."""
    given = os.environ.get("WHOSIN_SCREENSHOTS")
    if not given:
        return None
    folder = Path(given)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def serving() -> Iterator[Callable[[Settings], str]]:
    """Starts servers that stop at the test's end, after its pages have closed."""
    with ExitStack() as stack:
        yield lambda settings: stack.enter_context(running(settings))


@pytest.fixture(scope="module")
def tabs() -> list[Page]:
    """The tab of the last test, which the next one takes over: a new one takes seconds. Servers
    have ports of their own, and so what a page stores is another page's."""
    return []


@pytest.fixture
def opened(
    browser: Browser, serving: Callable[[Settings], str], tabs: list[Page]
) -> Iterator[Callable[..., Page]]:
    """Opens pages; whatever the console complains about fails the test at its end."""
    pages: list[Page] = []
    complaints: list[str] = []
    heard: list[tuple[Any, str, Callable[..., None]]] = []

    def listen(page: Any, event: str, hear: Callable[..., None]) -> None:
        page.on(event, hear)
        heard.append((page, event, hear))

    def start(url: str, size: str = "desktop", theme: Theme = "light", quiet: bool = True) -> Page:
        width, height = SIZES[size]
        page = tabs.pop() if tabs else browser.new_context(reduced_motion="reduce").new_page()
        pages.append(page)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        page.set_default_timeout(120_000)
        if quiet:
            error = lambda m: complaints.append(m.text) if m.type == "error" else None  # noqa: E731
            listen(page, "console", error)
        listen(page, "pageerror", lambda error: complaints.append(str(error)))
        elsewhere = lambda request: not request.url.startswith((url, "blob:", "data:"))  # noqa: E731
        listen(page, "request", lambda r: complaints.append(r.url) if elsewhere(r) else None)
        page.goto(url)
        return page

    yield start
    for page, event, hear in heard:
        page.remove_listener(event, hear)
    for page in pages:
        if tabs or page.is_closed():
            page.context.close()
        else:
            page.goto("about:blank")
            page.context.clear_cookies()
            tabs.append(page)
    assert complaints == []
