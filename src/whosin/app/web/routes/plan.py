"""`/api/plan`: from an adversary and a target to what that needs, in numbers and in words."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.cli.output import plain
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import PlanBody, data
from whosin.app.web.scenarios import plan_of
from whosin.app.web.work import quick_route
from whosin.calibration import Plan
from whosin.curves import of as curve_of
from whosin.exact import decimals
from whosin.references import THEOREMS
from whosin.report import card
from whosin.report.charts import rates_drawn

router = APIRouter(tags=["plan"], route_class=BoundedRoute)
POINTS = 101


class RatesView(BaseModel):
    """What the best test reaches: (FPR, TPR) from 0.001% to 100%, the rates that the target names,
    and whether the target is about rates, so that this picture comes first."""

    points: list[tuple[float, float]]
    promise: tuple[float, float] | None
    first: bool


class PlanView(BaseModel):
    """A plan: its numbers, its card, its theorems and its curves."""

    plan: dict[str, Any]
    card: list[card.Section]
    theorems: list[str]
    band: list[float]
    curves: list[dict[str, Any]]
    rates: RatesView


@router.post("/api/plan")
@quick_route
def make_plan(body: PlanBody) -> PlanView:
    """What an adversary and a target need: ε, the error of a count, the fallback."""
    given = data(body)
    plan = plan_of(given.get("adversary", {}), given["target"], "count")
    steps = [x / (POINTS - 1) for x in range(POINTS)]
    return PlanView(
        plan=plain(plan.to_dict()),
        card=card.card(plan),
        theorems=[str(THEOREMS[number]) for number in plan.theorems],
        band=list(card.band(plan)),
        curves=[
            {"name": name, "points": [[x, float(decimals(posterior(x), 6, "up"))] for x in steps]}
            for _mark, name, posterior in card.curves(plan)
        ],
        rates=_rates(plan),
    )


def _rates(plan: Plan) -> RatesView:
    curve, promised = curve_of(plan), card.promised_rates(plan.target)
    return RatesView(
        points=[(fpr, float(curve.tpr(fpr))) for fpr in rates_drawn(curve)],
        promise=None if promised is None else (float(promised[0]), float(promised[1])),
        first=plan.target.averages,
    )
