"""`/api/hello`, `/api/login`: who is there."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from whosin.app.web.failures import Refused
from whosin.app.web.guard import COOKIE
from whosin.app.web.models import TokenBody
from whosin.app.web.routes.check import may_look
from whosin.app.web.routes.files import settings_of
from whosin.app.web.users import read_users, user_of

router = APIRouter(tags=["session"])


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
        curator=may_look(request),
        largest_upload=settings.largest_upload,
    )


@router.post("/api/login")
def login(request: Request, response: Response, body: TokenBody) -> Hello:
    """Keep a token in a cookie of this page. Programs send `Authorization: Bearer …` instead."""
    user = user_of(read_users(settings_of(request).users), body.token.strip())
    if user is None:
        raise Refused(401, "nobody has this token", "token")
    response.set_cookie(
        COOKIE,
        body.token.strip(),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    request.state.user = user
    return hello(request)


@router.post("/api/logout")
def logout(request: Request, response: Response) -> Hello:
    """Forget the token."""
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    request.state.user = None
    return hello(request)
