"""`/api/scenario`, `/api/price`, `/api/release`: from a scenario to its cost to its answers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse, PlainTextResponse, Response
from pydantic import BaseModel, ValidationError

from whosin import documents
from whosin.app.cli.output import plain
from whosin.app.web import folder, outputs, scenario_files, scenarios, shapes, work
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.failures import Refused, log
from whosin.app.web.models import ReleaseBody, ScenarioBody, TextBody, data
from whosin.app.web.routes.files import FileName, settings_of
from whosin.app.web.routes.plan import CardSection, sections
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, visitor_of
from whosin.errors import Crashed, InvalidInput, OutOfMemory, ScanFailed, TookTooLong, at
from whosin.extras import needs
from whosin.ledger import units
from whosin.ledger.charge import Cost
from whosin.ledger.halting import halted_by
from whosin.release import Answer, Release
from whosin.release.scenario import Scenario
from whosin.release.table import dataset_name
from whosin.report import card
from whosin.report.budget import standing_card
from whosin.report.html import release_report
from whosin.report.releases import cost_words, offer_data

router = APIRouter(tags=["release"], route_class=BoundedRoute)
PARQUET = "application/vnd.apache.parquet"
TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {}}}}


class Price(BaseModel):
    """What a scenario costs and how good its answers will be; nothing is spent.

    `remaining` is what the ledger has left for the dataset, if it knows it; `refusal` is why it
    would say no.
    """

    dataset: str
    offers: list[dict[str, Any]]
    total: str
    total_epsilon: float | None
    epsilon: float
    relation: str
    remaining: float | None
    refusal: str | None


class Made(BaseModel):
    """A release: its answers and what they all allow anyone to believe."""

    title: str
    request: str
    answers: list[dict[str, Any]]
    standing: dict[str, Any]
    card: list[CardSection]


class ScenarioView(BaseModel):
    """A scenario that was read, and what was left out of it."""

    scenario: dict[str, Any]
    notes: list[str]


@router.post("/api/price")
def price_scenario(request: Request, body: ScenarioBody) -> Price:
    """The cost and the expected error of each query, before anything runs."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    return work.quick(request, priced, settings, body, visitor)  # type: ignore[no-any-return]


def priced(settings: Settings, body: ScenarioBody, visitor: Visitor) -> Price:
    """The task."""
    with scenarios.opened(settings, body, visitor) as (scenario, table):
        outputs.check(settings.folder, body)
        offers = scenarios.offers_for(scenario, table)
        standing = scenarios.standing_of(settings, table.name)
        relation = scenario.plan.relation
        total = sum((offer.charge.cost(relation) for offer in offers), Cost(0, 0))
        infinite = total.epsilon >= units.INFINITE
        return Price(
            dataset=table.name,
            offers=[
                plain(offer_data(offer)) | {"cost": cost_words(offer.charge.cost(relation))}
                for offer in offers
            ],
            total=cost_words(total),
            total_epsilon=None if infinite else total.epsilon / units.EPSILON_UNITS,
            epsilon=scenario.plan.epsilon,
            relation=relation,
            remaining=None if standing is None else standing.spendable,
            refusal=scenarios.refused(settings, scenario, table, offers, visitor),
        )


@router.post("/api/release")
def make_release(request: Request, body: ReleaseBody) -> Made:
    """Answer a scenario: debited first, stored, then shown. Retry under the same id."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    work.quick(request, checked, settings, body, visitor)
    with outputs.reserved(settings.folder, body.scenario):
        try:
            return work.scan(request, released, settings, body, visitor)  # type: ignore[no-any-return]
        except (Crashed, OutOfMemory, TookTooLong) as error:
            words = work.always(request, stopped, settings, body, visitor)
            if words is None:
                raise
            log(f"{dataset_name(body.scenario.table.source)!r} is halted: {error}")
    raise ScanFailed(words)


def stopped(settings: Settings, body: ReleaseBody, visitor: Visitor) -> str | None:
    """The task: halt a dataset whose process was stopped or crashed after its debit, since that may
    depend on the rows; what to tell people then, which says no more than of any other failure."""
    dataset = dataset_name(body.scenario.table.source)
    if scenarios.standing_of(settings, dataset) is None:
        return None
    with visitor.ledger(settings, create=False) as ledger:
        request = visitor.request(body.request)
        waiting = ledger.unanswered(dataset, f"{request}/")
        if not waiting:
            return None
        return str(halted_by(ledger, dataset, min(waiting), request))


def checked(settings: Settings, body: ReleaseBody, visitor: Visitor) -> None:
    """The task: everything that comes before a debit."""
    with scenarios.opened(settings, body.scenario, visitor) as (scenario, table):
        scenarios.offers_for(scenario, table)


def released(settings: Settings, body: ReleaseBody, visitor: Visitor) -> Made:
    """The task."""
    scenario, made = scenarios.release(settings, body.scenario, body.request, visitor)
    return _made(scenario, made, body.request)


@router.post(
    "/api/release/report", responses={200: {"content": {"text/html": {}}}}, response_class=Response
)
def report_release(request: Request, body: ReleaseBody) -> Response:
    """The report of a release that was made: one HTML file that stands alone."""
    settings = settings_of(request)
    text = work.scan(request, reported, settings, body, visitor_of(request, settings))
    return Response(text, media_type="text/html")


def reported(settings: Settings, body: ReleaseBody, visitor: Visitor) -> str:
    """The task."""
    needs("charts")
    with_plan, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    return release_report(with_plan.title, with_plan.plan, made)


@router.post(
    "/api/release/csv", responses={200: {"content": {"text/csv": {}}}}, response_class=Response
)
def csv_release(
    request: Request, body: ReleaseBody, answer: Annotated[int, Query(ge=0, le=99)] = 0
) -> Response:
    """One answer of a release that was made, as CSV."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    text = work.scan(request, answer_csv, settings, body, visitor, answer)
    return Response(text, media_type="text/csv")


def answer_csv(settings: Settings, body: ReleaseBody, visitor: Visitor, answer: int) -> bytes:
    """The task."""
    _, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    from pyarrow import csv

    out = io.BytesIO()
    csv.write_csv(_answer(made, answer).to_arrow(), out)
    return out.getvalue()


@router.post(
    "/api/release/file",
    responses={200: {"content": {PARQUET: {}}}},
    response_class=Response,
)
def file_release(
    request: Request, body: ReleaseBody, answer: Annotated[int, Query(ge=0, le=99)] = 0
) -> FileResponse:
    """The file that an answer of a release wrote: a synthetic table, as Parquet."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    path = Path(work.scan(request, answer_file, settings, body, visitor, answer))
    return FileResponse(path, media_type=PARQUET, filename=path.name)


def answer_file(settings: Settings, body: ReleaseBody, visitor: Visitor, answer: int) -> str:
    """The task."""
    _, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    return str(outputs.written(settings.folder, _answer(made, answer)))


def _answer(made: Release, place: int) -> Answer:
    if place >= len(made):
        raise InvalidInput("answer", f"a number from 0 to {len(made) - 1}", place)
    return made[place]


@router.post("/api/scenario/toml", response_class=Response, responses=TEXT)
def write_scenario(request: Request, body: ScenarioBody) -> Response:
    """The scenario as a file for `whosin release`."""
    return PlainTextResponse(work.quick(request, as_toml, settings_of(request), body))


def as_toml(settings: Settings, body: ScenarioBody) -> str:
    """The task."""
    return scenario_files.toml_text(scenarios.full_data(settings, body))


@router.post("/api/scenario/script", response_class=Response, responses=TEXT)
def write_script(request: Request, body: ReleaseBody) -> Response:
    """A Python script that makes the same run."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    return PlainTextResponse(work.quick(request, as_script, settings, body, visitor))


def as_script(settings: Settings, body: ReleaseBody, visitor: Visitor) -> str:
    """The task."""
    given = scenarios.full_data(settings, body.scenario)
    with scenarios.opened(settings, body.scenario, visitor) as (scenario, _):
        return scenario_files.script_text(given, scenario.plan, visitor.request(body.request))


@router.post("/api/scenario/read")
def read_text(request: Request, body: TextBody) -> ScenarioView:
    """Read a scenario file's text."""
    return work.quick(request, scenario_text, body.text)  # type: ignore[no-any-return]


@router.get("/api/scenario")
def read_file(request: Request, file: FileName) -> ScenarioView:
    """Read a scenario file of the served folder."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    return work.quick(request, scenario_file, settings, file, visitor)  # type: ignore[no-any-return]


def scenario_file(settings: Settings, file: str, visitor: Visitor) -> ScenarioView:
    """The task."""
    with at("file"):
        path = folder.find(settings.folder, file, scenario=True, seen=visitor.tables(settings))
        return scenario_text(documents.read_text(path, "file", documents.MOST_TOML))


def scenario_text(text: str) -> ScenarioView:
    """The task."""
    found = documents.parse_toml(text, "scenario")
    notes = []
    if found.pop("ledger", None):
        notes.append("The ledger of this server is used, and datasets are named after their files.")
    table = found.get("table")
    if isinstance(table, dict):
        for key in ("name", "engine", "memory", "spill", "master", "views"):
            if table.pop(key, None) is not None:
                notes.append(f"{key} of the table is not used here.")
        source = table.get("source")
        if isinstance(source, str) and Path(source).name != source:
            table["source"] = Path(source).name
            notes.append("The table is looked for in the served folder.")
    try:
        body = ScenarioBody.model_validate(found)
    except ValidationError as error:
        field, words = shapes.sentence(error.errors(include_url=False))
        raise Refused(422, words, field) from None
    return ScenarioView(scenario=plain(data(body)), notes=notes)


def _made(scenario: Scenario, made: Release, request: str) -> Made:
    answers = [
        plain(answer.to_dict()) | {"paid": cost_words(answer.cost)} for answer in made.answers
    ]
    words = [*card.card(scenario.plan)[:2], *standing_card(made.standing)]
    last = [part for part in card.card(scenario.plan) if part.title.startswith("If they know")]
    return Made(
        title=scenario.title,
        request=request,
        answers=answers,
        standing=plain(made.standing.to_dict()),
        card=sections([*words, *last]),
    )
