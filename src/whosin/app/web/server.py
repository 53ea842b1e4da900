"""The application: routes, guard and static files, put together."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from whosin.app.web import failures
from whosin.app.web.guard import Guard
from whosin.app.web.models import Refusal
from whosin.app.web.routes import files, ledger, notions, plan, release, session, tradeoff, verify
from whosin.app.web.settings import Settings

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
    503: "the engine or the ledger's store failed",
}
ABOUT = """The steps of the page as JSON routes, for notebooks and programs.

Send the header `X-Whosin` with every POST, and `Authorization: Bearer TOKEN` where users have one.
Whatever is refused comes as `{"error": {"field", "message"}}`. Answers are paid for in the server's
ledger; a retry under the same `request` id returns the same answer and pays nothing."""


def make_app(settings: Settings) -> FastAPI:
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
    failures.install(app)
    for group in (session, plan, files, release, verify, notions, tradeoff, ledger):
        app.include_router(group.router)

    @app.get("/", include_in_schema=False)
    def _page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    @app.get("/api", include_in_schema=False)
    def _reference() -> FileResponse:
        return FileResponse(STATIC / "api.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    app.add_middleware(Guard, settings=settings)
    return app
