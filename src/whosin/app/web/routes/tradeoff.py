"""`/api/tradeoff`: privacy against distortion."""

from __future__ import annotations

import math
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.cli.output import plain
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import TradeoffBody
from whosin.app.web.work import quick_route
from whosin.distortion import NOTIONS, curves
from whosin.errors import InvalidInput, at
from whosin.priors import Independent, Prior, Uniform
from whosin.spaces import Records

router = APIRouter(tags=["trade-off"], route_class=BoundedRoute)
MOST_VARIABLES = 1000
POINTS = 9
KEYS = ("distortion", "epsilon", "mutual_information", "gap", "lower", "upper")


class CurveList(BaseModel):
    """Points of each curve: the least distortion, and the closed-form bounds on it."""

    rows: int
    values: int
    curves: dict[str, list[dict[str, Any]]]
    skipped: dict[str, str]


@router.post("/api/tradeoff")
@quick_route
def trade_off(body: TradeoffBody) -> CurveList:
    """The least number of changed rows at each level of privacy, for rows of one distribution."""
    _check_size(body.rows, body.values)
    with at("prior"):
        space = Records(body.rows, body.values)
        result = curves(space, _prior(body), NOTIONS, POINTS)
    return CurveList(
        rows=space.rows,
        values=space.values,
        curves={
            notion: [plain({key: getattr(point, key) for key in KEYS}) for point in points]
            for notion, points in result.points.items()
        },
        skipped=dict(result.skipped),
    )


def _check_size(rows: int, values: int) -> None:
    """One variable a type (F14): these are solved in about a second."""
    with at("values"):
        if not 2 <= values <= 6:
            raise InvalidInput("values", "from 2 to 6 here", values)
    most = max(
        n for n in range(1, 40) if math.comb(n + values**2 - 1, values**2 - 1) <= MOST_VARIABLES
    )
    if not 1 <= rows <= most:
        raise InvalidInput("rows", f"from 1 to {most} here, with {values} values", rows)


def _prior(body: TradeoffBody) -> Prior:
    if body.prior.strip() == "uniform":
        return Uniform()
    row = [part.strip() for part in body.prior.split(",")]
    if len(row) != body.values:
        accepted = f"uniform, or {body.values} probabilities with commas between them"
        raise InvalidInput("prior", accepted, repr(body.prior))
    return Independent([row] * body.rows)
