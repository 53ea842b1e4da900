"""Routes about the budget and the session: ledger, login, logout."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from whosin.app.cli.main import plain_json
from whosin.app.web.access import (
    COOKIE_NAME,
    Access,
    Settings,
    Visitor,
    has_ledger,
    request_visitor,
    require_dataset,
    server_settings,
)
from whosin.app.web.bodies import (
    BoundedRoute,
    DatasetName,
    QuotaBody,
    TokenBody,
)
from whosin.app.web.scenarios import ledger_command
from whosin.app.web.tasks import quick_route
from whosin.errors import BrokenHistory, InvalidInput
from whosin.ledger import BudgetState, Ledger, verify
from whosin.ledger.encoding import digest_text
from whosin.ledger.registry import group_by_people
from whosin.report.accounts import describe_people
from whosin.report.card import budget_state_card, entry_row
from whosin.report.document import SectionData, section_data

ledger_router = APIRouter(tags=["ledger"], route_class=BoundedRoute)
MAX_SHOWN_ENTRIES = 500
HEALTH_SECONDS = 2.0
"""How long a look at the ledger waits, and how long what it found holds."""


class Dataset(BaseModel):
    """Where a dataset stands, in words and as data, and for its curator the command that goes on
    with another file, other domains or bounds."""

    dataset: str
    amend: str | None
    card: list[SectionData]
    budget_state: dict[str, Any]


def read_health(settings: Settings) -> str:
    """The task: see that the ledger can be read, where there is one yet."""
    if has_ledger(settings):
        with Ledger(settings.ledger, create=False, wait=HEALTH_SECONDS) as ledger:
            ledger.datasets()
    return "ok"


class Datasets(BaseModel):
    """The budget state of every dataset of the ledger, what those that may be about the same people
    allow together, and whether the visitor decides what is kept for whom."""

    datasets: list[Dataset]
    together: list[SectionData]
    curator: bool


class History(BaseModel):
    """The last entries of a dataset (number, when, who, what, cost), and whether it is whole."""

    dataset: str
    entries: list[list[str]]
    whole: bool
    unanswered: int


@ledger_router.get("/api/ledger")
@quick_route
def list_datasets(settings: Settings, visitor: Visitor) -> Datasets:
    """The budget state of every dataset, as far as the visitor may see it."""
    if not has_ledger(settings):
        return Datasets(datasets=[], together=[], curator=visitor.curator)
    with Ledger(settings.ledger, create=False) as ledger:
        budget_states = [visitor.view(ledger.budget_state(name)) for name in ledger.datasets()]
        return Datasets(
            datasets=[_describe_dataset(settings, visitor, each) for each in budget_states],
            together=section_data(
                [describe_people(each) for each in group_by_people(budget_states)]
            ),
            curator=visitor.curator,
        )


def _describe_dataset(settings: Settings, visitor: Visitor, state: BudgetState) -> Dataset:
    return Dataset(
        dataset=state.dataset,
        amend=_amend_command(settings, state) if visitor.curator else None,
        card=section_data(budget_state_card(state)),
        budget_state=plain_json(state.to_dict()),
    )


@ledger_router.post("/api/ledger/quota")
@quick_route
def keep_quota(settings: Settings, visitor: Visitor, body: QuotaBody) -> Dataset:
    """Keep a share of a dataset's budget for some people, as `whosin ledger quota` does; move it to
    another quota, or take back what is unspent. For curators alone."""
    visitor.require_curator("decides what is kept for whom")
    require_dataset(settings, body.dataset)
    said: dict[str, Any] = {"until": body.until, "members": body.members}
    given = {key: value for key, value in said.items() if value}
    if body.revoke == (body.share is not None):
        message = f"quota {body.quota!r} needs a share, or revoke = true, and not both"
        raise InvalidInput(message, field="share", value=body.share)
    if given and (body.revoke or body.to is not None):
        field = next(iter(given))
        raise InvalidInput(f"{field} belongs to a new share", field=field, hint="leave it out")
    with visitor.ledger(settings, create=False) as ledger:
        if body.revoke:
            state = ledger.revoke_quota(body.dataset, body.quota)
        elif body.to is not None:
            state = ledger.move_quota(body.dataset, body.quota, body.share, body.to)
        else:
            state = ledger.set_quota(body.dataset, body.quota, body.share, **given)
        return _describe_dataset(settings, visitor, state)


def _amend_command(settings: Settings, state: BudgetState) -> str | None:
    """How a budget goes on with another table; a study's does under Study."""
    if state.registered is not None and "SNPs" in state.registered.registration.domains:
        return None
    return ledger_command(settings, "amend", state.dataset)


@ledger_router.get("/api/ledger/history")
@quick_route
def show_history(settings: Settings, visitor: Visitor, dataset: DatasetName) -> History:
    """The history of a dataset, with its chain of digests checked."""
    require_dataset(settings, dataset)
    with Ledger(settings.ledger, create=False) as ledger:
        budget_state, entries, _ = ledger.record(dataset)
        try:
            check = verify(ledger, dataset)
        except BrokenHistory:  # its words may name the requests of others
            if visitor.curator:
                raise
            raise BrokenHistory(dataset, "its curator can see where") from None
        relation = budget_state.budget.relation
        # A user sees their own requests, and of others' only what they add up to.
        seen = [entry for entry in entries if visitor.sees(entry)]
        if not visitor.curator:  # names of files are not for analysts
            seen = [replace(each, body={**each.body, "table": ""}) for each in seen]
        own = {entry.request for entry in seen}
        return History(
            dataset=budget_state.dataset,
            entries=[list(entry_row(entry, relation)) for entry in seen[-MAX_SHOWN_ENTRIES:]],
            whole=True,
            unanswered=sum(request in own for request in check.unanswered),
        )


session_router = APIRouter(tags=["session"], route_class=BoundedRoute)


class Hello(BaseModel):
    """The server, in whose name requests are made, and whether they may look at the rows. `folder`
    tells one served folder from another, for what a browser keeps of a form."""

    version: str
    folder: str
    user: str | None
    login: bool
    register_datasets: bool
    curator: bool
    largest_upload: int


@session_router.get("/api/hello")
def hello(request: Request) -> Hello:
    """Whether the server is there, who asks, and whether a token is needed."""
    settings, user = server_settings(request), getattr(request.state, "user", None)
    needed = bool(getattr(request.state, "login", False))
    folder = "" if needed and user is None else digest_text(str(settings.folder.resolve()))[:16]
    return Hello(
        version=version("whosin"),
        folder=folder,
        user=user,
        login=needed,
        register_datasets=settings.register,
        curator=request_visitor(request).curator,
        largest_upload=settings.largest_upload,
    )


@session_router.post("/api/login")
def login(request: Request, response: Response, body: TokenBody) -> Hello:
    """Begin a session of this page: a cookie holds its number. Programs send
    `Authorization: Bearer …` instead."""
    address = request.client.host if request.client else ""
    user, number = _request_access(request).login(body.token.strip(), address)
    response.set_cookie(
        COOKIE_NAME,
        number,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    request.state.user = user
    return hello(request)


@session_router.post("/api/logout")
def logout(request: Request, response: Response) -> Hello:
    """End the session of this browser."""
    _request_access(request).logout(request.headers)
    response.delete_cookie(COOKIE_NAME, httponly=True, samesite="strict")
    request.state.user = None
    return hello(request)


def _request_access(request: Request) -> Access:
    access: Access = request.app.state.access
    return access
