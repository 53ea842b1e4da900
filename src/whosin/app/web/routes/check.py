"""`/api/check`: the curator's private look at a table.

Contract: it shows exact figures about the rows and goes past the ledger, as `whosin table check`
does. On a page without users whoever uses it is the curator (`visitors`); on a shared server the
file of users names the curators, and nobody else may look.
"""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.web import scenarios
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.failures import Refused
from whosin.app.web.models import LookBody
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor
from whosin.app.web.work import scan_route
from whosin.release.scans.checking import PRIVATE, Finding, check_table

router = APIRouter(tags=["files"], route_class=BoundedRoute)


class Look(BaseModel):
    """Figures that are not for publication."""

    warning: str
    figures: list[Finding]


@router.post("/api/check")
@scan_route
def look(settings: Settings, visitor: Visitor, body: LookBody) -> Look:
    """Exact figures about the rows: how many an entity has, what is dropped, clamped or "other"."""
    if not visitor.curator:
        raise Refused(403, "only the curator may look at the rows, with whosin table check", None)
    with scenarios.opened(settings, scenarios.on_table(body), Visitor()) as (_, table):
        return Look(warning=PRIVATE, figures=check_table(table))
