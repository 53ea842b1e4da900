"""`/api/sql`: the questions that a SELECT asks, for the page to show and price like others."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.web import scenarios
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import SqlBody
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor
from whosin.app.web.work import quick_route
from whosin.errors import at
from whosin.release.queries.base import scenario_keys
from whosin.release.sql import queries_in

router = APIRouter(tags=["release"], route_class=BoundedRoute)


class Asked(BaseModel):
    """Questions, as [[queries]] of a scenario file has them; nothing was asked or spent."""

    queries: list[dict[str, Any]]


@router.post("/api/sql")
@quick_route
def read_sql(settings: Settings, visitor: Visitor, body: SqlBody) -> Asked:
    """A SELECT as questions. What no question answers is refused, with the nearest one that can be
    asked."""
    opened = scenarios.opened(settings, scenarios.on_table(body), visitor)
    with opened as (_, table), at("sql"):
        return Asked(queries=[scenario_keys(query) for query in queries_in(body.sql, table)])
