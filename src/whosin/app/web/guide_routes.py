"""Routes of the page's guide: the draft it starts from, accuracy first, the look before a release
pays, and answers that were paid before.

Whatever depends on rows is for curators alone: the kinds of texts that are guessed from the first
rows, domains that are read off the rows, and the look before a release.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.cli.main import plain_json
from whosin.app.cli.plan import measure_accuracy
from whosin.app.web import folder, scenarios, tasks
from whosin.app.web.access import Settings, Visitor, require_dataset
from whosin.app.web.bodies import (
    AccuracyBody,
    BoundedRoute,
    DatasetName,
    DraftBody,
    RequestName,
    RequestRefused,
    ScenarioBody,
    body_data,
)
from whosin.app.web.release_routes import ReleaseResult, ReportReader, show_release
from whosin.app.web.study_routes import opens_on_page
from whosin.app.web.tasks import quick_route, scan_route
from whosin.calibration import TARGET_KINDS, Plan, PlannedQuery, read_plan
from whosin.calibration.plan import encode_object
from whosin.errors import UnknownName, WhosinError, at
from whosin.exact import rational
from whosin.families.base import spelled_number
from whosin.ledger import BudgetState, Entry, Ledger
from whosin.ledger.budget import Cost
from whosin.release import DuckDB, Release
from whosin.release.answer import read_releases
from whosin.release.draft import UNIT_NAME_PATTERN, ColumnDraft, draft_columns, read_dictionary
from whosin.release.inspection import CURATOR_NOTE
from whosin.release.table import dataset_name
from whosin.report.accounts import budget_picture
from whosin.report.card import cost_words, find_secret, plan_card
from whosin.report.html import release_report
from whosin.report.releases import describe_costs, describe_preflight
from whosin.report.summary import name_question
from whosin.scenario_model import AdversarySection, TargetSection

guide_router = APIRouter(tags=["guide"], route_class=BoundedRoute)
COUNT_KINDS = ("count", "rows", "histogram")


class DraftColumn(BaseModel):
    """A column as a draft has it: "values", "numbers", "dates", or "text" for what has too many
    values to list; its domain where a dictionary or a look at the rows says it."""

    name: str
    type: str
    numeric: bool
    kind: str
    domain: Any
    from_rows: bool
    about: str


class Draft(BaseModel):
    """The draft of a scenario: the columns of a table, those that may say whose row it is, and what
    the ledger has the table registered with, if it has."""

    file: str
    columns: list[DraftColumn]
    privacy_units: list[str]
    registered: dict[str, Any] | None


@guide_router.post("/api/draft")
@quick_route
def draft_table(settings: Settings, visitor: Visitor, body: DraftBody) -> Draft:
    """The columns of a table with guessed kinds, as `whosin draft` has them: from the schema, and
    for a curator's text files from the first rows; no value of a row is shown."""
    return _make_draft(settings, visitor, body, from_rows=False)


@guide_router.post("/api/draft/rows")
@scan_route
def look_up_domains(settings: Settings, visitor: Visitor, body: DraftBody) -> Draft:
    """The same with domains read off the rows, which are marked so: for curators."""
    visitor.require_look()
    return _make_draft(settings, visitor, body, from_rows=True)


def _make_draft(settings: Settings, visitor: Visitor, body: DraftBody, *, from_rows: bool) -> Draft:
    with at("table.source"):
        source = folder.find_table(settings.folder, body.source, visitor.tables(settings))
    with DuckDB() as engine:
        with at("table.source"):
            data = engine.open(source)
        schema = data.schema()
        names = body.columns or list(schema)
        for name in names:
            if name not in schema:
                raise UnknownName("columns", name, list(schema))
        known = _read_dictionary(body.dictionary, list(schema))
        look = visitor.curator
        drafts = draft_columns(engine, data, names, known, from_rows=from_rows, look=look)
    return Draft(
        file=body.source,
        columns=[_describe_draft(each, schema[each.name]) for each in drafts],
        privacy_units=[name for name in schema if UNIT_NAME_PATTERN.fullmatch(name)],
        registered=_registered_table(settings, body.source),
    )


def _describe_draft(draft: ColumnDraft, kind: Any) -> DraftColumn:
    said = {key: getattr(draft, key) for key in ("name", "kind", "from_rows", "about")}
    domain = plain_json(draft.domain)
    return DraftColumn(type=str(kind), numeric=bool(kind.is_numeric()), domain=domain, **said)


def _read_dictionary(text: str | None, names: list[str]) -> dict[str, ColumnDraft]:
    if text is None:
        return {}
    with TemporaryDirectory() as home, at("dictionary"):
        path = Path(home, "the dictionary")
        path.write_text(text, encoding="utf-8")
        return read_dictionary(path, names)


def _registered_table(settings: Settings, source: str) -> dict[str, Any] | None:
    """The privacy unit, bounds, domains, parts and the promise that a table's budget is for."""
    budget_state = scenarios.dataset_budget_state(settings, dataset_name(source))
    if budget_state is None or budget_state.registered is None:
        return None
    keys = ("privacy_unit", "max_rows_per_group", "max_groups", "domains")
    public = budget_state.registered.public()
    found = {key: plain_json(public[key]) for key in keys if key in public}
    if part := public.get("part"):
        column, least = part["column"], part["rule"] == "least"
        found["part"] = f"least({column})" if least else column
        if not least:
            found["domains"][column]["constant"] = True
    return {**found, "promise": spell_promise(budget_state.plan)}


def spell_promise(plan: Plan) -> dict[str, Any] | None:
    """[adversary] and [target] of a plan, where these say all of it."""
    family, _, said = plan.family.spelled.partition("=")
    first, _, prior = said.partition(":")
    count = int(first) if first.isdigit() else None
    spelled: dict[str, dict[str, Any]] = {
        "independent": {"prior": said or "0..1"},
        "fixed-size": {"prior": said or "0..1", "size-known": True},
        "value": {"prior": said or "0..1", "secret": "value"},
        "at-most-known": {"prior": prior or "0..1", "known": count},
        "cliques": {"linked": count},
        "uninformed": {"uninformed": True},
        "one-of": {},
    }
    target = encode_object(plan.target)
    words = TARGET_KINDS[str(target.pop("name"))].words_taken
    values = [_spell_value(each) for each in target.values()]
    failing = {"delta": plan.delta, "reserve": plan.reserve}
    promise = {
        "adversary": spelled.get(family, {"family": plan.family.spelled}),
        "target": dict(zip(words, values, strict=False))
        | {key: str(each) for key, each in failing.items() if each},
    }
    try:
        again = read_plan(
            AdversarySection.read(promise["adversary"], "adversary"),
            TargetSection.read(promise["target"], "target"),
        )
    except WhosinError:
        return None
    return promise if again.terms() == plan.terms() else None


def _spell_value(value: Any) -> str | int:
    """As people type it: 0.7 for 7/10, and a profile as 0.1:0.3,0.5:0.6."""
    if isinstance(value, int):
        return value
    if isinstance(value, tuple):
        return ",".join(":".join(point) for point in value)
    return spelled_number(rational(value, "target"))


class Accuracy(BaseModel):
    """The least ε (with a δ, the least ρ) for answers this exact, what anyone may believe then, and
    whether that keeps the target, if one was given."""

    epsilon: float
    rho: float | None
    delta: float
    relation: str
    noise: str
    scale: float
    words: str
    adversaries: list[dict[str, Any]]
    target: dict[str, Any] | None


@guide_router.post("/api/plan/accuracy")
@quick_route
def plan_accuracy(body: AccuracyBody) -> Accuracy:
    """What must be promised for 95% of answers within ± a width: the other way round (F33)."""
    if body.query not in COUNT_KINDS:
        raise UnknownName("query", body.query, COUNT_KINDS)
    query = PlannedQuery(
        body.query, Fraction(0), Fraction(1), body.max_rows_per_group, body.max_groups
    )
    given = body_data(body)
    adversary, target = given.get("adversary", {}), given.get("target", {})
    if "prior" not in adversary:  # a target is about someone with a prior
        target = {key: target[key] for key in ("delta",) if key in target}
    within = rational(body.within, "within")
    data, noise, *_ = measure_accuracy(query, within, target, adversary, "within")
    keys = ("epsilon", "delta", "relation", "adversaries")
    return Accuracy(
        **plain_json({key: data[key] for key in keys}),
        rho=data.get("rho"),
        noise=noise.kind,
        scale=noise.scale,
        words=query.words(),
        target=plain_json(data.get("target")),
    )


class PreflightView(BaseModel):
    """What the look before a release found, for the curator alone; whether it should not be paid
    for as it is; what has to be accepted otherwise; and what it would spend."""

    warning: str
    lines: list[str]
    stops: bool
    causes: list[str]
    asks: list[str]
    spends: str


@guide_router.post("/api/preflight")
@scan_route
def look_before_release(settings: Settings, visitor: Visitor, body: ScenarioBody) -> PreflightView:
    """The curator's look before the first debit: undeclared values, categories that no row has,
    conditions that are never true. Nothing is spent, and nothing of it may be published."""
    visitor.require_look()
    with scenarios.opened(settings, body, visitor) as (scenario, table):
        estimates = scenarios.estimates_for(scenario, table)
        found = scenario.run_preflight(table)
        return PreflightView(
            warning=CURATOR_NOTE,
            lines=describe_preflight(found),
            stops=found.stops,
            causes=found.causes,
            asks=found.asks,
            spends=describe_costs(scenario.plan, estimates),
        )


class PaidRequest(BaseModel):
    """A request that was paid for: when, in whose name, what it asked of which table, what it cost,
    whether all of it is answered, whether that is a study, and whether it can be opened here: of
    studies those that this page can release."""

    request: str
    when: str
    who: str
    questions: list[str]
    table: str
    cost: str
    answered: bool
    study: bool
    opens: bool


class PaidRequests(BaseModel):
    """The paid requests of a dataset, the newest first, as far as the visitor may see them, and
    what draws its budget over time and by part."""

    dataset: str
    picture: dict[str, Any]
    requests: list[PaidRequest]


@guide_router.get("/api/ledger/requests")
@quick_route
def list_requests(settings: Settings, visitor: Visitor, dataset: DatasetName) -> PaidRequests:
    """What was paid for from a dataset's budget, request by request."""
    budget_state, paid, answers = _read_paid(settings, visitor, dataset)
    seen = [debit for debits in paid.values() for debit in debits]
    seen.sort(key=lambda entry: entry.number)
    return PaidRequests(
        dataset=dataset,
        picture=budget_picture(visitor.view(budget_state), seen),
        requests=[
            PaidRequest(
                request=name,
                when=str(debits[0].body["when"])[:19].replace("T", " "),
                who=str(debits[0].body["who"]),
                questions=[_question_name(each) for each in debits],
                table=str(debits[-1].body.get("table", "")) if visitor.curator else "",
                cost=_total_cost(debits, budget_state.budget.relation),
                answered=all(each.request in answers for each in debits),
                study=_is_study(debits[0]),
                opens="release" not in debits[0].body["what"] or opens_on_page(debits[0]),
            )
            for name, debits in reversed(paid.items())
        ],
    )


@guide_router.get("/api/ledger/answers")
@quick_route
def open_answers(
    settings: Settings, visitor: Visitor, dataset: DatasetName, name: RequestName
) -> ReleaseResult:
    """The stored answers of a paid request; nothing is spent."""
    made = _stored_answers(settings, visitor, dataset, name)
    promised = plan_card(made.budget_state.plan, find_secret(made.budget_state))
    return show_release(made.about.get("title", dataset), name, made, promised, visitor)


@guide_router.get("/api/ledger/report", **tasks.file_response("text/html"))
@tasks.text_route("text/html", tasks.run_scan)
def report_answers(
    settings: Settings,
    visitor: Visitor,
    dataset: DatasetName,
    name: RequestName,
    reader: ReportReader = None,
) -> str:
    """The report of a paid request: one HTML file that stands alone; for an officer the two pages
    that are to be signed. Nothing is spent."""
    made = _stored_answers(settings, visitor, dataset, name)
    title = made.about.get("title", dataset)
    return release_report(title, made.budget_state.plan, made, None, reader)


def _read_paid(
    settings: Settings, visitor: Visitor, dataset: str
) -> tuple[BudgetState, dict[str, list[Entry]], dict[str, str]]:
    """A dataset's budget state, its debits by request, and the stored answers."""
    require_dataset(settings, dataset)
    with Ledger(settings.ledger, create=False) as ledger:
        budget_state, entries, answers = ledger.record(dataset)
    paid: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.kind == "debit" and visitor.sees(entry):
            name = str(entry.request)  # a study has one debit, under the request itself
            paid.setdefault(name.rpartition("/")[0] or name, []).append(entry)
    return budget_state, paid, answers


def _stored_answers(settings: Settings, visitor: Visitor, dataset: str, request: str) -> Release:
    require_dataset(settings, dataset)
    with Ledger(settings.ledger, create=False) as ledger:
        request = visitor.request(request)
        found = read_releases(ledger, dataset, None if visitor.curator else visitor.sees)
        unanswered = ledger.unanswered(dataset, f"{request}/")
    made = [each for each in found if each.request == request]
    if not made or unanswered:
        raise RequestRefused(404, "no release of this id has been answered", "request")
    return made[0]


def _is_study(entry: Entry) -> bool:
    return bool(entry.body["what"].get("release") == "gwas")


def _question_name(entry: Entry) -> str:
    what = entry.body["what"]
    if _is_study(entry):
        return f"top {what['top']} of {what['snps']:,} SNPs" if what["top"] else "named SNPs"
    return name_question(str(what.get("name") or what.get("query") or entry.request), what)


def _total_cost(debits: list[Entry], relation: str) -> str:
    costs = [each.body["costs"].get(relation) for each in debits]
    if None in costs:
        return "∞"
    return cost_words(sum((Cost(**each) for each in costs), Cost(0, 0)))
