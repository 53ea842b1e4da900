"""Routes that compute without a table: plan, verify, notions, distortion, rules."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.cli.main import plain_json
from whosin.app.web.bodies import BoundedRoute, DistortionBody, PlanBody, RuleCheckBody, VerifyBody
from whosin.app.web.scenarios import make_page_plan
from whosin.app.web.tasks import quick_route
from whosin.calibration import Plan
from whosin.curves import tradeoff
from whosin.distortion import NOTION_NAMES, curves
from whosin.documents import check_object, parse_json
from whosin.errors import InvalidInput, WhosinError, at, invalid_value, shorten
from whosin.exact import format_decimals, format_percent
from whosin.mechanisms import Channel
from whosin.notions import Notion
from whosin.notions.reading import read_notion
from whosin.priors import Independent, Prior, Uniform
from whosin.references import THEOREMS
from whosin.release.budget_allocation import NOISE_KINDS
from whosin.release.queries.sums import noise_of_count
from whosin.report import card as report_card
from whosin.report.charts import NODE_POSITIONS, rates_drawn
from whosin.report.document import SectionData, format_short, rounding_side, section_data
from whosin.report.levels import claim_verdict, level_data
from whosin.report.rules import (
    FINDING_HEADS,
    finding_notes,
    finding_rows,
    secret_words,
    summarise_findings,
)
from whosin.rules import Publication, Rule, check_published
from whosin.rules.publication import (
    TableFile,
    compare_labels,
    make_publication,
    parse_table,
    read_procedure,
    read_rule,
)
from whosin.rules.published import PRIVATE_NOTE
from whosin.spaces import Records
from whosin.theorems.notion_map import EDGE_REASONS, NOTION_BARRIERS, NOTION_EDGES

plan_router = APIRouter(tags=["plan"], route_class=BoundedRoute)
PAGE_CURVE_POINTS = 101


class RatesView(BaseModel):
    """What the best test reaches: (FPR, TPR) from 0.001% to 100%, the rates that the target names,
    and whether the target is about rates, so that this picture comes first."""

    points: list[tuple[float, float]]
    promise: tuple[float, float] | None
    first: bool


class CountView(BaseModel):
    """How exact one count of everyone is that takes all of the budget, as a release answers it."""

    error: float
    within: float


class PlanView(BaseModel):
    """A plan: its numbers, its card, its theorems and its curves; how exact a count is by the kind
    of noise, where the plan allows it."""

    plan: dict[str, Any]
    count: dict[str, CountView]
    card: list[SectionData]
    theorems: list[str]
    band: list[float]
    curves: list[dict[str, Any]]
    rates: RatesView


@plan_router.post("/api/plan")
@quick_route
def make_plan(body: PlanBody) -> PlanView:
    """What an adversary and a target need: ε, the error of a count, the fallback."""
    plan = make_page_plan(body.adversary, body.target, "count")
    steps = [x / (PAGE_CURVE_POINTS - 1) for x in range(PAGE_CURVE_POINTS)]
    return PlanView(
        plan=plain_json(plan.to_dict()),
        count=_count_views(plan),
        card=section_data(report_card.plan_card(plan)),
        theorems=[str(THEOREMS[number]) for number in plan.theorems],
        band=list(report_card.belief_band(plan)),
        curves=[
            {
                "name": name,
                "points": [[x, float(format_decimals(posterior(x), 6, "up"))] for x in steps],
            }
            for _mark, name, posterior in report_card.plan_curves(plan)
        ],
        rates=_rates_view(plan),
    )


def _count_views(plan: Plan) -> dict[str, CountView]:
    noisy = {kind: noise_of_count(plan, kind) for kind in NOISE_KINDS}
    return {
        kind: CountView(error=each.error, within=each.interval_radius())
        for kind, each in noisy.items()
        if each is not None
    }


def _rates_view(plan: Plan) -> RatesView:
    curve, promised = tradeoff(plan), report_card.promised_rates(plan.target)
    return RatesView(
        points=[(fpr, float(curve.tpr(fpr))) for fpr in rates_drawn(curve)],
        promise=None if promised is None else (float(promised[0]), float(promised[1])),
        first=plan.target.averages,
    )


verify_router = APIRouter(tags=["verify"], route_class=BoundedRoute)
MAX_CHANNEL_ENTRIES = 1 << 14
MAX_UNCERTAIN_PEOPLE = 6
"""Sizes that are measured in about a second; `whosin verify` takes larger ones."""
USE_VERIFY = "whosin verify takes larger ones"


class Measured(BaseModel):
    """A level with its witness, as `whosin verify --json` gives it, and the same in words."""

    level: dict[str, Any]
    title: str
    value: str
    lower: str | None
    verdict: str | None
    belief: list[str] | None
    theorems: list[str]


@verify_router.post("/api/verify")
@quick_route
def verify_channel(body: VerifyBody) -> Measured:
    """Measure a channel file under a family of adversaries; a claim is checked."""
    try:
        notion = read_notion(body.notion, body.parameters())
    except WhosinError as error:
        error.path = error.path.removeprefix("notion.") or "notion"
        raise
    claim = body.at_most
    with at("channel"):
        level = notion.measure(_read_channel(body.channel, notion))
        case = level.witness if claim is None else level.refutation(claim) or level.witness
        return Measured(
            level=plain_json(level_data(level, notion, claim)),
            title=notion.title,
            value=format_short(level.value, rounding_side(level.exact)),
            lower=None if level.lower is None else format_short(level.lower, "down"),
            verdict=None if claim is None else claim_verdict(level, notion, claim),
            belief=None
            if case is None
            else [format_percent(case.prior), format_percent(case.posterior)],
            theorems=[str(THEOREMS[number]) for number in level.theorems],
        )


def _read_channel(spelled: str, notion: Notion) -> Channel:
    result = check_object(parse_json(spelled, "channel", spelled=True), "channel")
    rows = result.get("probabilities")
    size = sum(len(row) for row in rows if isinstance(row, list)) if isinstance(rows, list) else 0
    if size > MAX_CHANNEL_ENTRIES:
        raise InvalidInput(
            f"the channel has {size:,} probabilities; at most {MAX_CHANNEL_ENTRIES:,} fit here",
            field="probabilities",
            value=size,
            hint=USE_VERIFY,
        )
    space = result.get("space")
    if isinstance(space, dict):
        for key in ("entities", "rows", "values"):
            number = space.get(key)
            number = len(number) if isinstance(number, list | dict | str) else number
            if isinstance(number, int) and not 0 <= number <= MAX_CHANNEL_ENTRIES.bit_length() * 2:
                raise InvalidInput(
                    f"the page takes no channel whose {key} are {number}",
                    field=key,
                    value=number,
                    hint=USE_VERIFY,
                )
    if getattr(getattr(notion, "family", None), "hides_others", False):
        worlds, most = len(rows) if isinstance(rows, list) else 0, 1 << MAX_UNCERTAIN_PEOPLE
        if worlds > most or size > most * 8:
            raise InvalidInput(
                f"the channel has {worlds} worlds and {size} probabilities, and against these "
                f"adversaries the page takes at most {most} and {most * 8}",
                field="channel",
                hint=USE_VERIFY,
            )
    return Channel.from_dict(result)


notions_router = APIRouter(tags=["notions"], route_class=BoundedRoute)


class NotionMap(BaseModel):
    """Notions with their places, implications with their theorems, counterexamples."""

    places: dict[str, list[float]]
    implications: list[dict[str, Any]]
    counterexamples: list[dict[str, Any]]


@notions_router.get("/api/notions")
def notion_map() -> NotionMap:
    """Which level of one notion gives which level of another."""
    implications = []
    for edge in NOTION_EDGES:
        known = THEOREMS.get(edge.theorem)
        statement = str(known) if known is not None else EDGE_REASONS[edge.theorem]
        implications.append(asdict(edge) | {"statement": statement})
    return NotionMap(
        places={name: list(spot) for name, spot in NODE_POSITIONS.items()},
        implications=implications,
        counterexamples=[asdict(barrier) for barrier in NOTION_BARRIERS],
    )


distortion_router = APIRouter(tags=["distortion"], route_class=BoundedRoute)
MAX_PROGRAM_VARIABLES = 1000
USE_DISTORTION = "whosin distortion takes more"
DISTORTION_POINTS = 9
DISTORTION_KEYS = ("distortion", "epsilon", "mutual_information", "gap", "lower", "upper")


class CurveList(BaseModel):
    """Points of each curve: the least distortion, and the closed-form bounds on it."""

    rows: int
    values: int
    curves: dict[str, list[dict[str, Any]]]
    skipped: dict[str, str]


@distortion_router.post("/api/distortion")
@quick_route
def distortion_curves(body: DistortionBody) -> CurveList:
    """The least number of changed rows at each level of privacy, for rows of one distribution."""
    _check_size(body.rows, body.values)
    with at("prior"):
        space = Records(body.rows, body.values)
        result = curves(space, _read_prior(body), NOTION_NAMES, DISTORTION_POINTS)
    return CurveList(
        rows=space.rows,
        values=space.values,
        curves={
            notion: [
                plain_json({key: getattr(point, key) for key in DISTORTION_KEYS})
                for point in points
            ]
            for notion, points in result.points.items()
        },
        skipped=dict(result.skipped),
    )


def _check_size(rows: int, values: int) -> None:
    """One variable a type (F14): these are solved in about a second."""
    with at("values"):
        if not 2 <= values <= 6:
            raise invalid_value("values", "from 2 to 6", values, hint=USE_DISTORTION)
    most = max(
        n
        for n in range(1, 40)
        if math.comb(n + values**2 - 1, values**2 - 1) <= MAX_PROGRAM_VARIABLES
    )
    if not 1 <= rows <= most:
        accepted = f"from 1 to {most} where a row has {values} values"
        raise invalid_value("rows", accepted, rows, hint=USE_DISTORTION)


def _read_prior(body: DistortionBody) -> Prior:
    if body.prior.strip() == "uniform":
        return Uniform()
    row = [part.strip() for part in body.prior.split(",")]
    if len(row) != body.values:
        raise InvalidInput(
            f"prior {shorten(body.prior)} does not fit rows of {body.values} values",
            field="prior",
            value=body.prior,
            hint="write uniform, or one probability for each value, with commas between them",
        )
    return Independent([row] * body.rows)


# `/api/rules/check`: what a table would say of people, before it is published. It works on the
# numbers in the request alone; no file of the server is read.


rules_router = APIRouter(tags=["rules"], route_class=BoundedRoute)


class PublishedFindings(BaseModel):
    """What the table says, in sentences and cell by cell; not for publication."""

    warning: str
    summary: list[str]
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


@rules_router.post("/api/rules/check")
@quick_route
def published_table(body: RuleCheckBody) -> PublishedFindings:
    """How sure anyone could become of each person, and which suppressed cells can be worked out."""
    secret_words(body.secret)
    if (body.before is None) != (body.population_before is None):
        missing = "before" if body.before is None else "population_before"
        raise InvalidInput(
            f"{missing} is missing",
            field=missing,
            hint="an earlier table comes with its population",
        )
    rule = read_rule(body.rule, files=False) if body.rule else None
    with at("published"):
        table = parse_table(body.published, "table")
    now = _read_publication(body, table, rule, body.population, "population")
    then = None
    if body.before is not None and body.population_before is not None:
        with at("before"):
            earlier = parse_table(body.before, "table")
        compare_labels(table, earlier, "before")
        then = _read_publication(body, earlier, rule, body.population_before, "population_before")
    findings = check_published(now, body.prior, then)
    labels = table.rows, table.columns
    return PublishedFindings(
        warning=PRIVATE_NOTE,
        summary=summarise_findings(findings, labels, body.secret),
        heads=list(FINDING_HEADS),
        rows=[list(row) for row in finding_rows(findings, labels)],
        notes=finding_notes(findings, body.secret),
    )


def _read_publication(
    body: RuleCheckBody, table: TableFile, rule: Rule | None, population: str, field: str
) -> Publication:
    with at(field):
        frame = parse_table(population, "table", totals=False)
    further = read_procedure(body.secondary_by) if body.secondary_by else body.secondary
    return make_publication(table, frame, rule, body.totals, further)
