"""What every request passes before a route sees it.

Contract, in this order: the Host header names this server (against DNS rebinding); a body says its
length, in one way, and keeps to it and within bounds; a request that could change something carries
the header `X-Whosin`, which no foreign page can send, and comes from this page if it says where it
comes from; a server with users knows whose token it is. Every answer carries headers that keep the
page to itself.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whosin.app.web import failures
from whosin.app.web.access import Access
from whosin.app.web.settings import LARGEST_BODY, Settings, is_loopback
from whosin.errors import StoreFailed

OPEN = ("/api/hello", "/api/login")
SAFE = ("GET", "HEAD", "OPTIONS")
UPLOAD = "/api/files"
SECURITY = {
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


class Guard:
    """The gate, as ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self.app, self.settings, self.access = app, settings, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = False

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                status, words = refusal
                answer = JSONResponse(failures.body(None, words), status)
                await answer(scope, receive, guarded)
                return
            await self.app(scope, self._counted(scope, receive), guarded)
        except Exception as error:  # whatever it says may be about rows
            failures.log_unexpected(error)
            if not started:
                await JSONResponse(failures.body(None, failures.INTERNAL), 500)(
                    scope, receive, guarded
                )

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers, path = Headers(scope=scope), str(scope["path"])
        if not self._known_host(headers.get("host", "")):
            return 400, "this server does not answer to that name (see whosin serve --name)"
        foreign = None if scope["method"] in SAFE else self._foreign(headers)
        return foreign or self._too_long(headers, path) or self._unknown(scope, headers, path)

    def _unknown(self, scope: Scope, headers: Headers, path: str) -> tuple[int, str] | None:
        client = scope.get("client")
        try:
            user = self.access.user(headers, client[0] if client else "")
        except failures.Refused as refused:
            return refused.status, str(refused)
        except (StoreFailed, OSError):
            return 503, "the file of users cannot be read, so nobody is let in"
        required = self.access.required
        scope.setdefault("state", {}).update(user=user, login=required)
        if required and user is None and path.startswith("/api/") and path not in OPEN:
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
                raise failures.Refused(413, "the body is longer than it may be")
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
        if "transfer-encoding" in headers or not length.isdecimal() or not length.isascii():
            return 411, "a body must say its length, by Content-Length and nothing else"
        if len(length) > 15:
            return 413, f"at most {most // 1000:,} kB are taken"
        if int(length) > most:
            return 413, f"at most {most // 1000:,} kB are taken; got {int(length) // 1000:,} kB"
        return None

    def _most(self, path: str) -> int:
        return self.settings.largest_upload if path == UPLOAD else LARGEST_BODY
