"""The application: routes, guard and static files, put together."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from whosin.app.web import connections, failures
from whosin.app.web.access import Access
from whosin.app.web.guard import Guard
from whosin.app.web.models import Refusal
from whosin.app.web.routes import (
    check,
    files,
    kinds,
    ledger,
    notions,
    plan,
    published,
    release,
    session,
    sql,
    tradeoff,
    verify,
)
from whosin.app.web.settings import Settings
from whosin.app.web.work import SHARED, Work
from whosin.isolation import Nursery

STATIC = Path(__file__).parent / "static"
REFUSALS = {
    400: "unknown host name, or a body that cannot be read",
    401: "a token is needed",
    403: "the header X-Whosin is missing",
    404: "not there",
    409: "refused by the ledger, or a name that is taken",
    411: "a body without a length",
    413: "too large",
    422: "a field is wrong; the message says which values are accepted",
    429: "busy",
    501: "packages are missing; the message says which extra brings them",
    503: "the engine or the ledger's store failed",
}
ABOUT = """The steps of the page as JSON routes, for notebooks and programs.

Send the header `X-Whosin` with every POST, and `Authorization: Bearer TOKEN` where users have one.
Whatever is refused comes as `{"error": {"field", "message"}}`. Answers are paid for in the server's
ledger; a retry under the same `request` id returns the same answer and pays nothing."""

GROUPS = (
    session, kinds, plan, files, check, release, sql, verify, published, notions, tradeoff, ledger,
)  # fmt: skip


def make_app(settings: Settings, nursery: Nursery = SHARED) -> FastAPI:
    """The page and the routes of one served folder."""
    app = FastAPI(
        title="whosin",
        summary="How sure can anyone be that you are in the data?",
        description=ABOUT,
        version=version("whosin"),
        docs_url=None,  # FastAPI's own page loads its parts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses={code: {"model": Refusal, "description": why} for code, why in REFUSALS.items()},
    )
    app.state.settings = settings
    app.state.access = access = Access(settings.users, settings.login)
    app.state.work = Work(settings, nursery)
    failures.install(app)
    for group in GROUPS:
        app.include_router(group.router)

    @app.get("/", include_in_schema=False)
    def _page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/api", include_in_schema=False)
    def _reference() -> FileResponse:
        return FileResponse(STATIC / "api.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, settings=settings, access=access)
    return app


def make_server(settings: Settings, nursery: Nursery = SHARED) -> uvicorn.Server:
    """A server; `run(sockets=[…])` starts it on a socket that listens already."""
    nursery.start()
    config = uvicorn.Config(
        make_app(settings, nursery),
        log_config=None,  # its own would close everybody else's handlers
        log_level="critical",  # `failures` logs what goes wrong, without its words
        access_log=False,  # addresses may hold names of files and datasets
        server_header=False,
        timeout_graceful_shutdown=5,
        ws="none",
        http=connections.Connection,
        timeout_keep_alive=connections.KEPT_SECONDS,
        h11_max_incomplete_event_size=connections.LARGEST_HEADER,
    )
    return uvicorn.Server(config)


@contextmanager
def running(settings: Settings, nursery: Nursery = SHARED) -> Iterator[str]:
    """A server on a free port of this machine while the block lasts; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = make_server(settings, nursery)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
