"""`/api/check`: the curator's private look at a table, where whoever asks may have it.

Contract: it shows exact figures about the rows and goes past the ledger, as `whosin table check`
does. On a page without users whoever uses it is the curator (`visitors`); on a shared server those
are whom the file of users names, and nobody else may look.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from pydantic import BaseModel

from whosin.app.web import scenarios, work
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.failures import Refused
from whosin.app.web.models import LookBody, ScenarioBody, TargetBody
from whosin.app.web.routes.files import settings_of
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, visitor_of
from whosin.release.checking import PRIVATE, check_table

router = APIRouter(tags=["files"], route_class=BoundedRoute)


class Figure(BaseModel):
    """One exact figure about the rows."""

    what: str
    rows: int


class Look(BaseModel):
    """Figures that are not for publication."""

    warning: str
    figures: list[Figure]


def may_look(request: Request) -> bool:
    """Whether whoever asks is the curator."""
    return visitor_of(request, settings_of(request)).curator


@router.post("/api/check")
def look(request: Request, body: LookBody) -> Look:
    """Exact figures about the rows: how many an entity has, what is dropped, clamped or "other"."""
    if not may_look(request):
        raise Refused(403, "only the curator may look at the rows, with whosin table check", None)
    return work.scan(request, looked, settings_of(request), body)  # type: ignore[no-any-return]


def looked(settings: Settings, body: LookBody) -> Look:
    """The task."""
    # A scenario on the table; any target and any question will do.
    asked = ScenarioBody(
        target=TargetBody.model_validate({"epsilon": 1.0}),
        table=body.table,
        domains=body.domains,
        queries=[{"kind": "count"}],
    )
    with scenarios.opened(settings, asked, Visitor()) as (_, table):
        found = check_table(table)
    return Look(warning=PRIVATE, figures=[Figure(what=f.what, rows=f.rows) for f in found])
