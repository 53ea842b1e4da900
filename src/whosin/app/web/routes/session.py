"""`/api/hello`, `/api/login`: who is there."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from whosin.app.web.access import COOKIE, Access
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import TokenBody
from whosin.app.web.visitors import settings_of, visitor_of

router = APIRouter(tags=["session"], route_class=BoundedRoute)


class Hello(BaseModel):
    """The server, in whose name requests are made, and whether they may look at the rows."""

    version: str
    user: str | None
    login: bool
    register_datasets: bool
    curator: bool
    largest_upload: int


@router.get("/api/hello")
def hello(request: Request) -> Hello:
    """Whether the server is there, who asks, and whether a token is needed."""
    settings = settings_of(request)
    return Hello(
        version=version("whosin"),
        user=getattr(request.state, "user", None),
        login=bool(getattr(request.state, "login", False)),
        register_datasets=settings.register,
        curator=visitor_of(request).curator,
        largest_upload=settings.largest_upload,
    )


@router.post("/api/login")
def login(request: Request, response: Response, body: TokenBody) -> Hello:
    """Begin a session of this page: a cookie holds its number. Programs send
    `Authorization: Bearer …` instead."""
    address = request.client.host if request.client else ""
    user, number = _access(request).login(body.token.strip(), address)
    response.set_cookie(
        COOKIE,
        number,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    request.state.user = user
    return hello(request)


@router.post("/api/logout")
def logout(request: Request, response: Response) -> Hello:
    """End the session."""
    _access(request).logout(request.headers)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    request.state.user = None
    return hello(request)


def _access(request: Request) -> Access:
    access: Access = request.app.state.access
    return access
