"""`/api/scenario`, `/api/price`, `/api/release`: from a scenario to its cost to its answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, ValidationError

from whosin import documents
from whosin.app.cli.output import plain
from whosin.app.web import folder, outputs, scenario_files, scenarios, shapes, work
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.failures import Refused, log
from whosin.app.web.models import ReleaseBody, ScenarioBody, TextBody, data
from whosin.app.web.routes.files import FileName
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, settings_of, visitor_of
from whosin.errors import Crashed, InvalidInput, OutOfMemory, ScanFailed, TookTooLong, at
from whosin.extras import needs
from whosin.ledger import units
from whosin.ledger.charge import Cost
from whosin.ledger.halting import halted_by
from whosin.release import Answer, Release
from whosin.release.table import dataset_name
from whosin.report import card
from whosin.report.answers import csv_bytes, parquet_bytes
from whosin.report.budget import cost_words, standing_card
from whosin.report.html import release_report
from whosin.report.releases import offer_data
from whosin.report.table_views import agreement, page_data, scales_of

router = APIRouter(tags=["release"], route_class=BoundedRoute)
PARQUET = "application/vnd.apache.parquet"
AnswerNumber = Annotated[int, Query(ge=0, le=99)]
TableNumber = Annotated[int | None, Query(ge=0, le=10**6)]


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
    card: list[card.Section]


class ScenarioView(BaseModel):
    """A scenario that was read, and what was left out of it."""

    scenario: dict[str, Any]
    notes: list[str]


@router.post("/api/price")
@work.quick_route
def price_scenario(settings: Settings, visitor: Visitor, body: ScenarioBody) -> Price:
    """The cost and the expected error of each query, before anything runs."""
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
    settings, visitor = settings_of(request), visitor_of(request)
    work.quick(request, checked, settings, body, visitor)
    with outputs.reserved(settings.folder, body.scenario):
        try:
            return work.scan(request, released, settings, body, visitor)  # type: ignore[no-any-return]
        except (Crashed, OutOfMemory, TookTooLong) as error:
            words = work.work_of(request).always(stopped, settings, body, visitor)
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
    sections = card.card(scenario.plan)
    last = [part for part in sections if part.title.startswith("If they know")]
    return Made(
        title=scenario.title,
        request=body.request,
        answers=[_answer_data(each) for each in made],
        standing=plain(made.standing.to_dict()),
        card=[*sections[:2], *standing_card(made.standing), *last],
    )


@router.post("/api/release/report", **work.gives("text/html"))
@work.text_route("text/html", work.scan)
def report_release(settings: Settings, visitor: Visitor, body: ReleaseBody) -> str:
    """The report of a release that was made: one HTML file that stands alone."""
    needs("charts")
    with_plan, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    return release_report(with_plan.title, with_plan.plan, made)


@router.post("/api/release/csv", **work.gives("text/csv"))
@work.text_route("text/csv", work.scan)
def csv_release(
    settings: Settings,
    visitor: Visitor,
    body: ReleaseBody,
    answer: AnswerNumber = 0,
    table: TableNumber = None,
) -> str:
    """One answer of a release that was made, or one table of an answer that has several, as CSV."""
    _, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    chosen = _answer(made, answer)
    return csv_bytes(chosen if table is None else _table(chosen, table)).decode()


@router.post("/api/release/parquet", **work.gives(PARQUET))
@work.text_route(PARQUET, work.scan)
def parquet_release(
    settings: Settings, visitor: Visitor, body: ReleaseBody, answer: AnswerNumber = 0
) -> bytes:
    """One answer of a release that was made, with all its tables, as Parquet."""
    _, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    return parquet_bytes(_answer(made, answer))


@router.post("/api/release/file", **work.gives(PARQUET))
def file_release(request: Request, body: ReleaseBody, answer: AnswerNumber = 0) -> FileResponse:
    """The file that an answer of a release wrote: a synthetic table, as Parquet."""
    given = settings_of(request), body, visitor_of(request), answer
    path = Path(work.scan(request, answer_file, *given))
    return FileResponse(path, media_type=PARQUET, filename=path.name)


def answer_file(settings: Settings, body: ReleaseBody, visitor: Visitor, answer: int) -> str:
    """The task."""
    _, made = scenarios.stored(settings, body.scenario, body.request, visitor)
    return str(outputs.written(settings.folder, _answer(made, answer)))


def _answer(made: Release, index: int) -> Answer:
    if index >= len(made):
        raise InvalidInput("answer", f"a number from 0 to {len(made) - 1}", index)
    return made[index]


def _table(answer: Answer, index: int) -> Answer:
    count = len(answer.tables)
    if index >= count:
        accepted = f"a number from 0 to {count - 1}" if count else "left out for this answer"
        raise InvalidInput("table", accepted, index)
    return answer.tables[index]


def _answer_data(answer: Answer) -> dict[str, Any]:
    """An answer as a page shows it."""
    data: dict[str, Any] = plain(answer.to_dict()) | {
        "paid": cost_words(answer.cost),
        "scales": scales_of(answer),
    }
    if answer.tables:
        data |= {"tables": plain(page_data(answer)), "agreement": agreement(answer)}
    return data


@router.post("/api/scenario/toml", **work.gives("text/plain"))
@work.text_route("text/plain", work.quick)
def write_scenario(settings: Settings, body: ScenarioBody) -> str:
    """The scenario as a file for `whosin release`."""
    return scenario_files.toml_text(scenarios.full_data(settings, body))


@router.post("/api/scenario/script", **work.gives("text/plain"))
@work.text_route("text/plain", work.quick)
def write_script(settings: Settings, visitor: Visitor, body: ReleaseBody) -> str:
    """A Python script that makes the same run."""
    given = scenarios.full_data(settings, body.scenario)
    with scenarios.opened(settings, body.scenario, visitor) as (scenario, _):
        return scenario_files.script_text(given, scenario.plan, visitor.request(body.request))


@router.post("/api/scenario/read")
@work.quick_route
def read_text(body: TextBody) -> ScenarioView:
    """Read a scenario file's text."""
    return scenario_text(body.text)


@router.get("/api/scenario")
@work.quick_route
def read_file(settings: Settings, visitor: Visitor, file: FileName) -> ScenarioView:
    """Read a scenario file of the served folder."""
    with at("file"):
        path = folder.find(settings.folder, file, scenario=True, seen=visitor.tables(settings))
        return scenario_text(documents.read_text(path, "file", documents.MOST_TOML))


def scenario_text(text: str) -> ScenarioView:
    """A scenario file for the page, and what of it does not hold there."""
    result = documents.parse_toml(text, "scenario")
    notes = []
    if result.pop("ledger", None):
        notes.append("The ledger of this server is used, and datasets are named after their files.")
    table = result.get("table")
    if isinstance(table, dict):
        for key in ("name", "engine", "memory", "spill", "master", "views"):
            if table.pop(key, None) is not None:
                notes.append(f"{key} of the table is not used here.")
        source = table.get("source")
        if isinstance(source, str) and Path(source).name != source:
            table["source"] = Path(source).name
            notes.append("The table is looked for in the served folder.")
    try:
        body = ScenarioBody.model_validate(result)
    except ValidationError as error:
        field, words = shapes.sentence(error.errors(include_url=False))
        raise Refused(422, words, field) from None
    return ScenarioView(scenario=plain(data(body)), notes=notes)
