"""Routes from a scenario to its cost to its answers, SQL and the curator's look among them."""

from __future__ import annotations

from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi import APIRouter, Query, Request
from fastapi.responses import FileResponse
from pydantic import BaseModel, ValidationError

from whosin import documents
from whosin.app.cli.main import plain_json
from whosin.app.web import bodies, folder, scenarios, tasks
from whosin.app.web.access import (
    Settings,
    Visitor,
    has_ledger,
    request_visitor,
    server_settings,
)
from whosin.app.web.bodies import (
    BoundedRoute,
    InspectionBody,
    ReleaseBody,
    RequestRefused,
    ScenarioBody,
    SqlBody,
    TextBody,
    body_data,
    log_line,
)
from whosin.app.web.catalogue_routes import FileName
from whosin.app.web.tasks import quick_route, scan_route
from whosin.calibration import Plan
from whosin.errors import (
    Crashed,
    InvalidInput,
    OutOfMemory,
    ScanFailed,
    TookTooLong,
    at,
    invalid_value,
    require_extras,
)
from whosin.ledger import BudgetState, Ledger, encoding
from whosin.ledger.budget import Budget
from whosin.ledger.registry import PeopleBudget, suspend_dataset
from whosin.release import Answer, Release
from whosin.release.accuracy import meaningless_titles, suggest_changes
from whosin.release.answer import read_releases
from whosin.release.cost import batch_cost
from whosin.release.inspection import (
    CURATOR_NOTE,
    InspectionFinding,
    Preflight,
    check_table,
)
from whosin.release.queries.base import scenario_keys
from whosin.release.sql import parse_queries
from whosin.report import card as report_card
from whosin.report import evidence
from whosin.report.accounts import describe_people
from whosin.report.card import budget_state_card, cost_words
from whosin.report.document import SectionData, TextSection, section_data
from whosin.report.html import release_report
from whosin.report.releases import (
    describe_costs,
    describe_preflight,
    estimate_data,
    expectation_words,
    suggestion_data,
)
from whosin.report.summary import name_question, promise_sentence
from whosin.report.table_views import (
    answer_decimals,
    column_scales,
    csv_bytes,
    describe_agreement,
    page_data,
    parquet_bytes,
)
from whosin.scenario_model import RequestedTable, TableSection

release_router = APIRouter(tags=["release"], route_class=BoundedRoute)
PARQUET_MEDIA_TYPE = "application/vnd.apache.parquet"
ZIP_MEDIA_TYPE = "application/zip"
AnswerNumber = Annotated[int, Query(ge=0, le=99)]
TableNumber = Annotated[int | None, Query(ge=0, le=10**6)]
ReportReader = Annotated[str | None, Query(max_length=20)]


class EstimateView(BaseModel):
    """What a scenario costs and how good its answers will be; nothing is spent.

    `promise` is what the plan promises, in a sentence. `remaining` is what the ledger has left
    for the dataset, if it knows it, `remaining_percent` that in per cent of the plan's ε, and
    `today` what of it the visitor may spend today, where quotas or periods keep the rest;
    `period_percent` is the share of it that today's period has, where there is a schedule, which
    a scenario without a share spends;
    `refusal` is why it would say no, and `lacks_budget` whether that is for want of budget.
    `paid` has for each query the request that answered it before. `stored` is the request under
    which all of this was paid before: without an id of its own a release shows its answers, and
    spends nothing. `lookalikes` are datasets with the same privacy unit and columns, where a
    curator has to say whose people these are; `amends` is whether `continues` with this very
    dataset would record a change of its columns, domains or bounds, which is refused otherwise.
    `together` says what this release and theirs then allow of someone who is in all.
    `suggestions` were tried; `meaningless` are queries whose interval will be the whole
    declared range.
    """

    dataset: str
    estimates: list[dict[str, Any]]
    suggestions: list[dict[str, Any]]
    meaningless: list[str]
    total: str
    total_epsilon: float | None
    promise: str
    epsilon: float
    relation: str
    remaining: float | None
    remaining_percent: float
    today: float | None
    period_percent: float | None
    refusal: str | None
    lacks_budget: bool
    paid: list[str | None]
    stored: str | None
    lookalikes: list[str]
    amends: bool
    together: list[str]


class ReleaseResult(BaseModel):
    """A release: its answers and what they all allow anyone to believe. `independent` says so where
    answers contain each other and have noise of their own."""

    title: str
    request: str
    answers: list[dict[str, Any]]
    independent: str
    budget_state: dict[str, Any]
    card: list[SectionData]


class ScenarioView(BaseModel):
    """A scenario that was read, and what was left out of it."""

    scenario: dict[str, Any]
    notes: list[str]


@release_router.post("/api/estimate")
@tasks.quick_route
def estimate_scenario(settings: Settings, visitor: Visitor, body: ScenarioBody) -> EstimateView:
    """The cost and the expected error of each query, before anything runs."""
    with scenarios.opened(settings, body, visitor) as (scenario, table):
        stored = scenarios.find_stored(settings, scenario, table, visitor)
        if stored is None and scenarios.writes_files(scenario.queries):
            folder.check_outputs(folder.output_home(settings, visitor), body)
        estimates = scenarios.estimates_for(scenario, table, stored or "")
        period = scenario.period_share()
        asked = table, scenario.plan, scenario.queries, estimates
        better = suggest_changes(*asked, scenario.period_budget())
        dataset = scenarios.body_dataset(body)
        budget_state = scenarios.dataset_budget_state(settings, dataset)
        relation = scenario.plan.relation
        total = batch_cost(estimates, scenario.plan)
        infinite = total.epsilon >= encoding.INFINITE_UNITS
        new = [] if stored else estimates
        about = scenario, table
        people = scenarios.find_people(settings, body, about, new)
        refused = scenarios.find_refusal(settings, body, about, estimates, visitor)
        amended = body.model_copy(update={"continues": dataset})
        may_amend = refused and not refused[1] and budget_state is not None and visitor.curator
        return EstimateView(
            dataset=dataset,
            estimates=[
                plain_json(estimate_data(estimate))
                | {"cost": cost_words(estimate.spend.cost(relation))}
                | expectation_words(estimate)
                for estimate in estimates
            ],
            suggestions=[plain_json(suggestion_data(each)) for each in better],
            meaningless=list(meaningless_titles(estimates)),
            total=cost_words(total),
            total_epsilon=None if infinite else total.epsilon / encoding.EPSILON_UNITS,
            promise=promise_sentence(scenario.plan),
            epsilon=scenario.plan.epsilon,
            relation=relation,
            remaining=None if budget_state is None else budget_state.spendable,
            remaining_percent=percent_left(budget_state, scenario.plan),
            today=scenarios.left_today(settings, visitor, budget_state),
            period_percent=None if period is None else float(100 * period),
            refusal=refused and refused[0],
            lacks_budget=refused is not None and refused[1],
            paid=scenarios.list_paid(settings, about, estimates, visitor),
            stored=stored,
            lookalikes=scenarios.find_lookalikes(settings, body, table) if visitor.curator else [],
            amends=bool(may_amend)
            and scenarios.find_refusal(settings, amended, about, estimates, visitor) is None,
            together=[] if people is None else _together_lines(people),
        )


def percent_left(state: BudgetState | None, plan: Plan) -> float:
    """What is left of a plan in per cent of its ε, from whole units, rounded down to a tenth."""
    total = Budget.of(plan).epsilon
    left = total if state is None else state.spendable_units
    return left * 1000 // total / 10 if 0 < total < encoding.INFINITE_UNITS else 0.0


def _together_lines(people: PeopleBudget) -> list[str]:
    section = describe_people(people, "the answers after this release")
    return [line for part in section_data([section]) for line in part.lines]


@release_router.post("/api/release")
def make_release(request: Request, body: ReleaseBody) -> ReleaseResult:
    """Answer a scenario: debited first, stored, then shown. Retry under the same id."""
    settings, visitor = server_settings(request), request_visitor(request)
    tasks.run_quick(request, check_release, settings, body, visitor)
    with folder.reserved(folder.output_home(settings, visitor), body.scenario):
        request.state.told = {"dataset": scenarios.body_dataset(body.scenario)}
        try:
            made: Any = tasks.run_scan(request, run_release, settings, body, visitor)
            costs = [str(answer["paid"]) for answer in made["answers"]]
            request.state.told |= {"request": made["request"], "cost": costs}
            return made  # type: ignore[no-any-return]
        except (Crashed, OutOfMemory, TookTooLong) as error:
            words = tasks.server_work(request).always(suspend_stopped, settings, body, visitor)
            if words is None:
                raise
            log_line(f"{scenarios.body_dataset(body.scenario)!r} is suspended: {error}")
    raise ScanFailed(words)


def suspend_stopped(settings: Settings, body: ReleaseBody, visitor: Visitor) -> str | None:
    """The task: suspend a dataset whose process was stopped or crashed after its debit, since that
    may depend on the rows; what to tell people then, which says no more than of any other
    failure."""
    dataset = scenarios.body_dataset(body.scenario)
    if scenarios.dataset_budget_state(settings, dataset) is None:
        return None
    with scenarios.opened(settings, body.scenario, visitor) as opened:
        request = str(scenarios.find_request(settings, opened, body.request, visitor))
    with visitor.ledger(settings, create=False) as ledger:
        waiting = ledger.unanswered(dataset, f"{request}/")
        if not waiting:
            return None
        return str(suspend_dataset(ledger, dataset, min(waiting), request))


def check_release(settings: Settings, body: ReleaseBody, visitor: Visitor) -> None:
    """The task: everything that comes before a debit and looks at no row. An answer whose interval
    will be the whole declared range is paid for where somebody says so."""
    with scenarios.opened(settings, body.scenario, visitor) as opened:
        found = Preflight(meaningless=meaningless_titles(scenarios.estimates_for(*opened)))
        if body.accept or not found.asks:
            return
        if not scenarios.is_paid(settings, opened, body.request, visitor):
            found.require_accepted("accept = true")


def look_before_debit(settings: Settings, body: ReleaseBody, visitor: Visitor) -> None:
    """Look at the rows where a curator pays for something new, and see that it spends what was
    agreed to: whoever calls the route without the page is stopped as the page is.

    Raises:
        RequestRefused: the look found what would make answers worthless, or the cost is another
            one; nothing was spent.
    """
    if not visitor.curator or not (body.preflight or body.spends):
        return
    with scenarios.opened(settings, body.scenario, visitor) as opened:
        scenario, table = opened
        if scenarios.is_paid(settings, opened, body.request, visitor):
            return
        if body.spends is not None:
            estimates = scenarios.estimates_for(scenario, table)
            if (now := describe_costs(scenario.plan, estimates)) != body.spends:
                raise RequestRefused(409, "this would spend something else", "spends", now)
        if not body.preflight:
            return
        found = scenario.run_preflight(table)
        if found.stops:
            first, *more = describe_preflight(found)
            beside = f" (and {len(more)} more)" if more else ""
            raise RequestRefused(
                409,
                f"stopped before anything was spent: {first}{beside}",
                "preflight",
                "correct the scenario, or send preflight = false if it is as it should be",
            )
        if not body.accept:
            found.require_accepted("accept = true")


def run_release(settings: Settings, body: ReleaseBody, visitor: Visitor) -> ReleaseResult:
    """Run a release in its task, and return what the page shows."""
    look_before_debit(settings, body, visitor)
    scenario, made = scenarios.release_scenario(settings, body.scenario, body.request, visitor)
    promised = report_card.plan_card(scenario.plan)
    return show_release(scenario.title, body.request or made.request, made, promised, visitor)


def show_release(
    title: str, request: str, made: Release, promised: list[TextSection], visitor: Visitor
) -> ReleaseResult:
    """What the page shows of a release, with the sections of its plan."""
    state = visitor.view(made.budget_state)
    last = [part for part in promised if part.heading == report_card.FALLBACK_HEADING]
    return ReleaseResult(
        title=title,
        request=request,
        answers=[answer_data(each) for each in made],
        independent=made.independence_note,
        budget_state=plain_json(state.to_dict()),
        card=section_data([*promised[:2], *budget_state_card(state), *last]),
    )


@release_router.post("/api/release/report", **tasks.file_response("text/html"))
@tasks.text_route("text/html", tasks.run_scan)
def report_release(
    settings: Settings, visitor: Visitor, body: ReleaseBody, reader: ReportReader = None
) -> str:
    """The report of a release that was made: one HTML file that stands alone; for an officer the
    two pages that are to be signed."""
    require_extras("charts")
    with_plan, made = scenarios.stored_release(settings, body.scenario, body.request, visitor)
    return release_report(with_plan.title, with_plan.plan, made, with_plan, reader)


@release_router.post("/api/evidence", **tasks.file_response(ZIP_MEDIA_TYPE))
@tasks.text_route(ZIP_MEDIA_TYPE, tasks.run_quick)
def pack_evidence(settings: Settings, visitor: Visitor, body: ScenarioBody) -> bytes:
    """The evidence about a scenario, as `whosin evidence` collects it: a ZIP file with a page, data
    with a schema, and an entry for a registry. No row is read; `about`, or what the ledger keeps
    of it, has to say who answers."""
    with scenarios.opened(settings, body, visitor) as (scenario, table):
        scenarios.check_budget(settings, body, table, visitor)
        estimates = scenarios.estimates_for(scenario, table)
        refused = scenarios.find_refusal(settings, body, (scenario, table), estimates, visitor)
        dataset, made = scenarios.body_dataset(body), list[Release]()
        state = scenarios.dataset_budget_state(settings, dataset)
        if state is not None:
            with Ledger(settings.ledger, create=False) as ledger:
                made = read_releases(ledger, dataset, None if visitor.curator else visitor.sees)
        asked = scenario, estimates, state, encoding.today(), version("whosin"), made
        said: dict[str, Any] = {"refusal": refused[0] if refused else ""}
        data = evidence.evidence_data(*asked, **said, ledger_exists=has_ledger(settings))
    packed = BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as pack:
        for name, text in evidence.pack_texts(data).items():
            pack.writestr(name, text)
    return packed.getvalue()


@release_router.post("/api/release/csv", **tasks.file_response("text/csv"))
@tasks.text_route("text/csv", tasks.run_scan)
def csv_release(
    settings: Settings,
    visitor: Visitor,
    body: ReleaseBody,
    answer: AnswerNumber = 0,
    table: TableNumber = None,
) -> str:
    """One answer of a release that was made, or one table of an answer that has several, as CSV."""
    _, made = scenarios.stored_release(settings, body.scenario, body.request, visitor)
    chosen = _find_answer(made, answer)
    return csv_bytes(chosen if table is None else _find_table(chosen, table)).decode()


@release_router.post("/api/release/parquet", **tasks.file_response(PARQUET_MEDIA_TYPE))
@tasks.text_route(PARQUET_MEDIA_TYPE, tasks.run_scan)
def parquet_release(
    settings: Settings, visitor: Visitor, body: ReleaseBody, answer: AnswerNumber = 0
) -> bytes:
    """One answer of a release that was made, with all its tables, as Parquet."""
    _, made = scenarios.stored_release(settings, body.scenario, body.request, visitor)
    return parquet_bytes(_find_answer(made, answer))


@release_router.post("/api/release/file", **tasks.file_response(PARQUET_MEDIA_TYPE))
def file_release(request: Request, body: ReleaseBody, answer: AnswerNumber = 0) -> FileResponse:
    """The file that an answer of a release wrote: a synthetic table, as Parquet."""
    given = server_settings(request), body, request_visitor(request), answer
    path = Path(tasks.run_scan(request, answer_file, *given))
    return FileResponse(path, media_type=PARQUET_MEDIA_TYPE, filename=path.name)


def answer_file(settings: Settings, body: ReleaseBody, visitor: Visitor, answer: int) -> str:
    """Find the file of a stored answer, in its task."""
    _, made = scenarios.stored_release(settings, body.scenario, body.request, visitor)
    home = folder.output_home(settings, visitor, body.request and visitor.request(body.request))
    return str(folder.find_output(home, _find_answer(made, answer)))


def _find_answer(made: Release, index: int) -> Answer:
    if index >= len(made):
        raise invalid_value("answer", f"a number from 0 to {len(made) - 1}", index)
    return made[index]


def _find_table(answer: Answer, index: int) -> Answer:
    count = len(answer.tables)
    if index >= count:
        if not count:
            raise InvalidInput(
                "this answer is one table", field="table", value=index, hint="leave table out"
            )
        raise invalid_value("table", f"a number from 0 to {count - 1}", index)
    return answer.tables[index]


def answer_data(answer: Answer) -> dict[str, Any]:
    """An answer as a page shows it."""
    data: dict[str, Any] = plain_json(answer.to_dict()) | {
        "named": name_question(answer.title, answer.question),
        "paid": cost_words(answer.cost),
        "scales": column_scales(answer),
        "decimals": answer_decimals(answer),
    }
    if answer.tables:
        data |= {"tables": plain_json(page_data(answer)), "agreement": describe_agreement(answer)}
    return data


@release_router.post("/api/scenario/toml", **tasks.file_response("text/plain"))
@tasks.text_route("text/plain", tasks.run_quick)
def write_scenario(settings: Settings, body: ScenarioBody) -> str:
    """The scenario as a file for `whosin release`."""
    return scenarios.toml_text(scenarios.full_data(settings, body))


@release_router.post("/api/scenario/script", **tasks.file_response("text/plain"))
@tasks.text_route("text/plain", tasks.run_quick)
def write_script(settings: Settings, visitor: Visitor, body: ReleaseBody) -> str:
    """A Python script that makes the same run."""
    given = scenarios.full_data(settings, body.scenario)
    with scenarios.opened(settings, body.scenario, visitor) as opened:
        request = scenarios.find_request(settings, opened, body.request, visitor)
        state = scenarios.dataset_budget_state(settings, scenarios.body_dataset(body.scenario))
        share = opened[0].own_share(state)
        return scenarios.script_text(given, opened[0].plan, request, share)


@release_router.post("/api/scenario/read")
@tasks.quick_route
def read_text(body: TextBody) -> ScenarioView:
    """Read a scenario file's text."""
    return scenario_text(body.text)


@release_router.get("/api/scenario")
@tasks.quick_route
def read_file(settings: Settings, visitor: Visitor, file: FileName) -> ScenarioView:
    """Read a scenario file of the served folder."""
    with at("file"):
        path = folder.find_file(settings.folder, file, scenario=True, seen=visitor.tables(settings))
        return scenario_text(documents.read_text(path, "file", documents.MAX_TOML_LENGTH))


def scenario_text(text: str) -> ScenarioView:
    """A scenario file for the page, and what of it does not hold there."""
    result = documents.parse_toml(text, "scenario")
    notes = []
    if result.pop("ledger", None):
        notes.append("The ledger of this server is used, and datasets are named after their files.")
    table = result.get("table")
    if isinstance(table, dict):
        for key in TableSection.known_keys():
            if key not in RequestedTable.known_keys() and table.pop(key, None) is not None:
                notes.append(f"{key} of the table is not used here.")
        source = table.get("source")
        if isinstance(source, str) and Path(source).name != source:
            table["source"] = Path(source).name
            notes.append("The table is looked for in the served folder.")
    try:
        body = ScenarioBody.model_validate(result)
    except ValidationError as error:
        raise bodies.read_complaint(error.errors(include_url=False)) from None
    return ScenarioView(scenario=plain_json(body_data(body)), notes=notes)


sql_router = APIRouter(tags=["release"], route_class=BoundedRoute)


class SqlQueries(BaseModel):
    """Questions, as [[queries]] of a scenario file has them; nothing was asked or spent."""

    queries: list[dict[str, Any]]


@sql_router.post("/api/sql")
@quick_route
def read_sql(settings: Settings, visitor: Visitor, body: SqlBody) -> SqlQueries:
    """A SELECT as questions. What no question answers is refused, with the nearest one that can be
    asked."""
    opened = scenarios.opened(settings, scenarios.table_scenario(body), visitor)
    with opened as (_, table), at("sql"):
        return SqlQueries(
            queries=[scenario_keys(query) for query in parse_queries(body.sql, table)]
        )


# `/api/inspect`: the curator's private look at a table. It shows exact figures about the rows and
# goes past the ledger, as `whosin inspect` does. On a page without users whoever uses it is the
# curator; on a shared server the file of users names the curators, and nobody else may look.


inspection_router = APIRouter(tags=["files"], route_class=BoundedRoute)


class Inspection(BaseModel):
    """Figures that are not for publication."""

    warning: str
    figures: list[InspectionFinding]


@inspection_router.post("/api/inspect")
@scan_route
def look(settings: Settings, visitor: Visitor, body: InspectionBody) -> Inspection:
    """Exact figures about the rows: how many a privacy unit has, what is dropped, clamped or
    "other"."""
    visitor.require_look()
    with scenarios.opened(settings, scenarios.table_scenario(body), Visitor()) as (_, table):
        return Inspection(warning=CURATOR_NOTE, figures=check_table(table))
