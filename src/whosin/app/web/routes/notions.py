"""`/api/notions`: the map of notions and the theorems between them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.web.bodies import BoundedRoute
from whosin.references import THEOREMS
from whosin.report.charts import POSITIONS
from whosin.theorems.map import BARRIERS, EDGES, REASONS

router = APIRouter(tags=["notions"], route_class=BoundedRoute)


class NotionMap(BaseModel):
    """Notions with their places, implications with their theorems, counterexamples."""

    places: dict[str, list[float]]
    implications: list[dict[str, Any]]
    counterexamples: list[dict[str, Any]]


@router.get("/api/notions")
def notion_map() -> NotionMap:
    """Which level of one notion gives which level of another."""
    implications = []
    for edge in EDGES:
        known = THEOREMS.get(edge.theorem)
        statement = str(known) if known is not None else REASONS[edge.theorem]
        implications.append(asdict(edge) | {"statement": statement})
    return NotionMap(
        places={name: list(spot) for name, spot in POSITIONS.items()},
        implications=implications,
        counterexamples=[asdict(barrier) for barrier in BARRIERS],
    )
