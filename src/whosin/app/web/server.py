"""The application: routes, the guard that every request passes, connections and static files."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from whosin.app.web import (
    analysis_routes,
    bodies,
    catalogue_routes,
    folder,
    guide_routes,
    ledger_routes,
    release_routes,
    study_routes,
)
from whosin.app.web.access import LARGEST_BODY, Access, Settings, is_loopback
from whosin.app.web.bodies import Refusal
from whosin.app.web.tasks import SHARED_POOL, TaskQueue
from whosin.errors import StoreFailed
from whosin.isolation import WorkerPool

# How a server treats connections: no silent one stays, and there are never too many. A connection
# that has not sent a whole request, headers and body, within some seconds is closed, whether it is
# new or kept; however steadily its bytes come, there is an end, by the length that it says. A
# connection that does not take its answer is closed too. When there are many, the one that has been
# silent for longest makes room, so that idle ones cannot keep others out. Small answers are sent at
# once (TCP_NODELAY: listening sockets made by Python are not seen as TCP by asyncio, which would
# otherwise set it).


HEADER_SECONDS = 10.0
BODY_SECONDS = 20.0
"""Seconds without a byte of the body."""
FIRST_SECONDS = 60.0
"""What a body of any size has in all, and more for its size: see `MIN_BYTES_PER_SECOND`."""
KEPT_SECONDS = 15
UNREAD_SECONDS = 60.0
MIN_BYTES_PER_SECOND = 1 << 17
"""Bytes a second, after the first minute. So the length that a request says bounds its time: 76
seconds for the longest JSON, less than 10 minutes for an upload of 64 MB."""
LARGEST_HEADER = 1 << 15


def most_connections() -> int:
    """How many are open at once: at most half of what the system allows this process."""
    return max(32, min(512, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))


class Connection(H11Protocol):
    """One connection, as uvicorn handles it, with an eye on the clock."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Make room for it, and expect a request soon."""
        super().connection_made(transport)
        self.heard = self.began = time.monotonic()
        self.taken = 0
        self.unsent = (0, self.heard)
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6):
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if len(self.connections) > most_connections():
            idle = [each for each in self.connections if each is not self and _is_idle(each)]
            if idle:
                min(idle, key=_last_heard).transport.abort()
            else:
                transport.abort()
        self.watch: asyncio.TimerHandle | None = self.loop.call_later(1.0, self._look)

    def data_received(self, data: bytes) -> None:
        """As uvicorn does, and take note."""
        if not self.taken:  # a new request begins, and more bytes do not put its end off
            self.began = time.monotonic()
        self.heard, self.taken = time.monotonic(), self.taken + len(data)
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Start the clock of a kept connection anew."""
        self.heard = self.began = time.monotonic()
        self.taken = 0
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection for silence."""
        if self.watch is not None:
            self.watch.cancel()
            self.watch = None
        super().connection_lost(exc)

    def _look(self) -> None:
        now = time.monotonic()
        if self._unread(now) or (not self.transport.is_closing() and self._late(now)):
            self.transport.abort()
        else:
            self.watch = self.loop.call_later(1.0, self._look)

    def _unread(self, now: float) -> bool:
        """Whether the other side does not take what it asked for."""
        size = self.transport.get_write_buffer_size()
        if not size or size != self.unsent[0]:
            self.unsent = (size, now)
        return now - self.unsent[1] > UNREAD_SECONDS

    def _late(self, now: float) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            kept = self.cycle is not None and not self.taken
            return now - self.began > (KEPT_SECONDS + 1 if kept else HEADER_SECONDS)
        if self.cycle.more_body and not self.flow.read_paused:
            slow = now - self.began > FIRST_SECONDS + self.taken / MIN_BYTES_PER_SECOND
            return slow or now - self.heard > BODY_SECONDS
        return False


def _is_idle(connection: object) -> bool:
    assert isinstance(connection, Connection)
    return connection.cycle is None or connection.cycle.response_complete


def _last_heard(connection: object) -> float:
    assert isinstance(connection, Connection)
    return connection.heard


# What every request passes before a route sees it. In this order: the Host header names this server
# (against DNS rebinding); the headers are not too long; a body says its length, in one way, and
# keeps to it and within bounds (what says it in two ways ends the connection: a proxy may see
# another request behind it); a request that could change something carries the header `X-Whosin`,
# which no foreign page can send, and comes from this page if it says where it comes from; a server
# with users knows whose token it is. Every answer carries headers that keep the page to itself.


OPEN_PATHS = ("/api/hello", "/api/login")
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
UPLOAD_PATH = "/api/files"
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}


NO_LENGTH = 411, "a body must say its length, by Content-Length and nothing else"
UNCLEAR_STATUSES = (411, 431)


class Guard:
    """ASGI middleware that refuses what no route should see."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self.app, self.settings, self.access = app, settings, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started, status, began = False, 500, time.monotonic()

        async def guarded(message: Message) -> None:
            nonlocal started, status
            if message["type"] == "http.response.start":
                started, status = True, message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                status, words = refusal
                # What comes after may be part of a body whose end two sides see in two places.
                ends = {"Connection": "close"} if status in UNCLEAR_STATUSES else {}
                answer = JSONResponse(bodies.refusal_body(None, words), status, ends)
                await answer(scope, receive, guarded)
                return
            await self.app(scope, self._counted(scope, receive), guarded)
        except Exception as error:  # whatever it says may be about rows
            bodies.log_unexpected(error)
            if not started:
                await JSONResponse(bodies.refusal_body(None, bodies.INTERNAL_ERROR), 500)(
                    scope, receive, guarded
                )
        finally:
            if self.settings.log:
                bodies.log_request(scope, status, time.monotonic() - began)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers, path = Headers(scope=scope), str(scope["path"])
        if not self._known_host(headers.get("host", "")):
            return 400, "this server does not answer to that name (see whosin serve --name)"
        foreign = None if scope["method"] in SAFE_METHODS else self._foreign(headers)
        wrong = _refuse_unclear_body(scope, headers) or foreign or self._too_long(headers, path)
        return wrong or self._unknown(scope, headers, path)

    def _unknown(self, scope: Scope, headers: Headers, path: str) -> tuple[int, str] | None:
        client = scope.get("client")
        try:
            user = self.access.user(headers, client[0] if client else "")
        except bodies.RequestRefused as refused:
            return refused.status, str(refused)
        except (StoreFailed, OSError):
            return 503, "the file of users cannot be read, so nobody is let in"
        required = self.access.required
        scope.setdefault("state", {}).update(user=user, login=required)
        if required and user is None and path.startswith("/api/") and path not in OPEN_PATHS:
            return 401, "a token is needed: whosin serve --add-user NAME makes one"
        return None

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        """Count the bytes of a body while they come."""
        left = self._most(str(scope["path"]))

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise bodies.RequestRefused(413, "the body is longer than it may be")
            return message

        return counted

    def _known_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if is_loopback(name) or name in self.settings.names:
            return True
        try:
            # A rebound name is a name: plain addresses cannot be taken over.
            return bool(ip_address(name))
        except ValueError:
            return False

    def _foreign(self, headers: Headers) -> tuple[int, str] | None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        try:
            same = origin is None or urlsplit(origin).netloc == headers.get("host")
        except ValueError:
            same = False
        if "x-whosin" in headers and same and site in (None, "same-origin", "none"):
            return None
        return 403, "only this page, or a program that sends the header X-Whosin, may ask for this"

    def _too_long(self, headers: Headers, path: str) -> tuple[int, str] | None:
        most, length = self._most(path), headers.get("content-length", "0")
        if not length.isdecimal() or not length.isascii():
            return NO_LENGTH
        if len(length) > 15:
            return 413, f"the body has more than the {most // 1000:,} kB that are taken"
        if int(length) > most:
            return (
                413,
                f"the body has {int(length) // 1000:,} kB, and {most // 1000:,} kB are taken",
            )
        return None

    def _most(self, path: str) -> int:
        return self.settings.largest_upload if path == UPLOAD_PATH else LARGEST_BODY


def _refuse_unclear_body(scope: Scope, headers: Headers) -> tuple[int, str] | None:
    """Refuse headers that are too long, and a body whose end can be seen in two places."""
    lines = [scope["method"], scope.get("raw_path") or b"", scope.get("query_string") or b""]
    size = sum(map(len, lines)) + sum(len(name) + len(value) + 4 for name, value in headers.raw)
    if size > LARGEST_HEADER:
        return 431, f"the headers may have {LARGEST_HEADER // 1000} kB in all"
    return NO_LENGTH if "transfer-encoding" in headers else None


STATIC_FOLDER = Path(__file__).parent / "static"
REFUSAL_STATUSES = {
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
API_DESCRIPTION = """The steps of the page as JSON routes, for notebooks and programs.

Send the header `X-Whosin` with every POST, and `Authorization: Bearer TOKEN` where users have one.
Whatever is refused comes as `{"error": {"field", "message", "hint"}}`. Answers are paid for in the
server's ledger; a retry under the same `request` id returns the same answer and pays nothing."""

ROUTE_GROUPS = (
    ledger_routes.session_router,
    catalogue_routes.kinds_router,
    analysis_routes.plan_router,
    catalogue_routes.files_router,
    release_routes.inspection_router,
    guide_routes.guide_router,
    release_routes.release_router,
    release_routes.sql_router,
    analysis_routes.verify_router,
    analysis_routes.rules_router,
    analysis_routes.notions_router,
    analysis_routes.distortion_router,
    study_routes.study_router,
    ledger_routes.ledger_router,
)


def make_app(settings: Settings, pool: WorkerPool = SHARED_POOL) -> FastAPI:
    """The page and the routes of one served folder."""
    app = FastAPI(
        title="whosin",
        summary="How sure can anyone be that you are in the data?",
        description=API_DESCRIPTION,
        version=version("whosin"),
        docs_url=None,  # FastAPI's own page loads its parts from elsewhere
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses={
            code: {"model": Refusal, "description": why} for code, why in REFUSAL_STATUSES.items()
        },
    )
    app.state.settings = settings
    app.state.access = access = Access(settings.users, settings.login)
    app.state.work = TaskQueue(settings, pool)
    bodies.install_handlers(app)
    for router in ROUTE_GROUPS:
        app.include_router(router)

    @app.get("/", include_in_schema=False)
    def _page() -> FileResponse:
        return FileResponse(STATIC_FOLDER / "index.html")

    app.state.health = (0.0, "")

    @app.get("/healthz", include_in_schema=False)
    def _health() -> JSONResponse:
        """Whether it works, for whoever watches it: nothing of what is served."""
        until, found = app.state.health
        if time.monotonic() >= until:
            try:
                found = app.state.work.always(ledger_routes.read_health, settings)
            except Exception:  # without its words
                found = "the ledger cannot be read"
            app.state.health = time.monotonic() + ledger_routes.HEALTH_SECONDS, found
        return JSONResponse({"status": found}, 200 if found == "ok" else 503)

    @app.get("/api", include_in_schema=False)
    def _reference() -> FileResponse:
        return FileResponse(STATIC_FOLDER / "api.html")

    app.mount("/static", StaticFiles(directory=STATIC_FOLDER), name="static")
    app.add_middleware(Guard, settings=settings, access=access)
    return app


def make_server(settings: Settings, pool: WorkerPool = SHARED_POOL) -> uvicorn.Server:
    """A server; `run(sockets=[…])` starts it on a socket that listens already."""
    pool.start()
    folder.remove_uploads(settings.folder)
    config = uvicorn.Config(
        make_app(settings, pool),
        log_config=None,  # its own would close everybody else's handlers
        log_level="critical",  # `bodies` logs what goes wrong, without its words
        access_log=False,  # addresses may hold names of files and datasets
        server_header=False,
        timeout_graceful_shutdown=5,
        ws="none",
        http=Connection,
        timeout_keep_alive=KEPT_SECONDS,
        h11_max_incomplete_event_size=LARGEST_HEADER,
    )
    return uvicorn.Server(config)


@contextmanager
def running(settings: Settings, pool: WorkerPool = SHARED_POOL) -> Iterator[str]:
    """A server on a free port of this machine while the block lasts; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = make_server(settings, pool)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
