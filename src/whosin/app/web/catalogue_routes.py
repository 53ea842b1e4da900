"""Routes that list what there is: kinds of queries and families, files, columns."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi import Query as fastapi_Query
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from whosin.app.scenario_schema import QueryKey, query_keys
from whosin.app.web import folder, tasks
from whosin.app.web.access import Settings, Visitor, request_visitor, server_settings
from whosin.app.web.bodies import BoundedRoute, InspectionBody, RequestRefused
from whosin.app.web.scenarios import opened, table_scenario
from whosin.calibration import TARGET_KINDS
from whosin.errors import Crashed, InvalidInput, OutOfMemory, TookTooLong, at, require_extras
from whosin.families import FAMILY_KINDS
from whosin.notions import NOTION_KINDS
from whosin.release import DuckDB
from whosin.release.queries import QUERIES, Query
from whosin.release.queries.synthetic import LEARNED_KEYS, MARGINALS_METHOD, SYNTHETIC_METHODS
from whosin.report.summary import QUESTION_NAMES
from whosin.scenario_model import SIGNED_KEYS, ScenarioModel, match_fields

PAGE_PARAMETERS = ("family",)
"""What a page asks for beside the notion."""
IN_PLACE = (
    *("name", "where", "weight", "magnitude", "column", "columns", "by", "universe"),
    *("max_rows_per_group", "max_groups"),
)
"""Keys of questions that a page asks for in its own way, or once for the whole table, or not."""


class QueryForm(NamedTuple):
    """How a page asks for a kind of question.

    Attributes:
        label: what it asks.
        column: which columns it may be about: "numbers", "cells" (values or bins), "periods"
            (functions of dates, or cells) or "any".
        extra: a key that is asked for first: the key, what to call it, an example.
    """

    label: str
    column: str = ""
    extra: tuple[str, ...] = ()


QUERY_FORMS = {
    "count": QueryForm("how many people there are"),
    "rows": QueryForm("how many rows there are"),
    "sum": QueryForm("the sum of a column", "numbers"),
    "mean": QueryForm("the mean of a column", "numbers"),
    "variance": QueryForm("the variance of a column", "numbers"),
    "deviation": QueryForm("the standard deviation of a column", "numbers"),
    "histogram": QueryForm("how many people by a column", "cells"),
    "keys": QueryForm("values that were not declared (needs δ)", "any"),
    "quantile": QueryForm(
        "a quantile of a column", "numbers", ("quantile", "share of the rows below", "0.25")
    ),
    "median": QueryForm("the median of a column", "numbers"),
    "top": QueryForm("the most frequent values", extra=("k", "how many", "3")),
    "running": QueryForm("how many people in each period, and so far (needs δ)", "periods"),
    "maximum": QueryForm("the largest of a list of candidates"),
    "synthetic": QueryForm(
        "a synthetic table", extra=("path", "name of the file", "synthetic.parquet")
    ),
    "marginals": QueryForm(
        "tables by several columns, all at once", extra=("order", "columns of a table, at most")
    ),
}
"""Kinds that are not listed have a form by their keys."""
KEYS_OF_WORDS = {
    "synthetic": {
        "prior": ["method", SYNTHETIC_METHODS[0]],
        **{key: ["method", MARGINALS_METHOD] for key in LEARNED_KEYS},
    }
}
"""Keys that belong to one word of another key, with both."""
kinds_router = APIRouter(tags=["kinds"], route_class=BoundedRoute)


class QueryKind(BaseModel):
    """A kind of question: its keys, and what a page needs to ask for them and to name it."""

    kind: str
    label: str
    named: str
    keys: list[str]
    column: str
    extra: list[str]
    more: list[QueryKey]
    needs_delta: bool
    writes_file: bool


class FamilyKind(BaseModel):
    """A family of adversaries: how it is written, and one of them."""

    form: str
    example: str


class NotionKind(BaseModel):
    """A notion that a channel can be measured by, and the words that it takes."""

    name: str
    label: str
    words: list[str]


class Word(BaseModel):
    """A key of a section: its name, what it takes, what it says, and whether what people sign needs
    it."""

    name: str
    takes: str
    help: str
    signed: bool


class Kinds(BaseModel):
    """Every kind of question, of target (its words), of family and of notion, and every word of a
    scenario by its section."""

    queries: list[QueryKind]
    targets: list[list[str]]
    words: dict[str, list[Word]]
    families: list[FamilyKind]
    notions: list[NotionKind]


@kinds_router.get("/api/kinds")
def kinds() -> Kinds:
    """What can be asked, and the words for it."""
    return Kinds(
        queries=[_query_kind(kind) for kind in QUERIES.values()],
        words={
            name: [
                Word(
                    name=each.name,
                    takes=each.kind.name,
                    help=each.description,
                    signed=name == "about" and each.name in SIGNED_KEYS,
                )
                for each in key.kind.section.known_keys().values()
            ]
            for name, key in ScenarioModel.known_keys().items()
            if key.kind.section is not None
        },
        targets=[*(list(kind.words_taken) for kind in TARGET_KINDS.values()), ["hipaa"]],
        families=[
            FamilyKind(form=kind.name + kind.form, example=kind.example)
            for kind in FAMILY_KINDS.values()
            if kind.example
        ],
        notions=[
            NotionKind(name=name, label=kind.label or name.replace("-", " "), words=list(words))
            for name, kind in NOTION_KINDS.items()
            if (words := match_fields(kind, PAGE_PARAMETERS)) is not None
        ],
    )


def _query_kind(kind: type[Query]) -> QueryKind:
    keys = [each.name for each in fields(kind)]
    label = kind.kind.replace("-", " ")
    form = QUERY_FORMS.get(kind.kind, QueryForm(label, "any" if "column" in keys else ""))
    only_with = KEYS_OF_WORDS.get(kind.kind, {})
    return QueryKind(
        kind=kind.kind,
        label=form.label,
        named=QUESTION_NAMES.get(kind.kind, label),
        keys=keys,
        column=form.column,
        extra=list(form.extra),
        more=[
            replace(key, only_with=only_with.get(key.key, ()))
            for key in query_keys(kind)
            if key.key not in (*IN_PLACE, *form.extra[:1])
            and (key.key != "within" or kind.takes_width())
        ],
        needs_delta=kind.needs_delta,
        writes_file=kind.writes_file,
    )


files_router = APIRouter(tags=["files"], route_class=BoundedRoute)
FileName = Annotated[str, fastapi_Query(max_length=200)]


class File(BaseModel):
    """A file of the folder: its name alone, since its size tells how many rows it has."""

    name: str


class Files(BaseModel):
    """The tables and scenario files of the served folder."""

    tables: list[File]
    scenarios: list[str]


class Column(BaseModel):
    """A column: its name, and its type by the schema."""

    name: str
    type: str
    numeric: bool


class ColumnList(BaseModel):
    """The schema of a table; no row is looked at."""

    file: str
    columns: list[Column]


@files_router.get("/api/files")
@tasks.quick_route
def list_files(settings: Settings, visitor: Visitor) -> Files:
    """The tables and scenarios in the served folder."""
    # Who is no curator sees the tables that have a budget, and no scenario files.
    home, seen = settings.folder, visitor.tables(settings)
    tables = [path.name for path in folder.list_tables(home)]
    tables += folder.list_database_tables(home)
    return Files(
        tables=[File(name=name) for name in tables if folder.is_seen(home, name, seen)],
        scenarios=[path.name for path in folder.list_scenarios(home)] if visitor.curator else [],
    )


@files_router.get("/api/columns")
@tasks.quick_route
def list_columns(settings: Settings, visitor: Visitor, file: FileName) -> ColumnList:
    """The columns of a table, from its schema alone."""
    with at("table.source"):
        source = folder.find_table(settings.folder, file, visitor.tables(settings))
        with DuckDB() as engine:
            schema = engine.open(source).schema()
    return ColumnList(
        file=file,
        columns=[_describe_column(name, kind) for name, kind in schema.items()],
    )


@files_router.post("/api/columns")
@tasks.quick_route
def list_all_columns(settings: Settings, visitor: Visitor, body: InspectionBody) -> ColumnList:
    """The columns of a table with those of further tables and with features, from the schemas
    alone."""
    with opened(settings, table_scenario(body), visitor) as (_, table):
        return ColumnList(
            file=body.table.source,
            columns=[_describe_column(name, kind) for name, kind in table.kinds.items()],
        )


def _describe_column(name: str, kind: Any) -> Column:
    return Column(name=name, type=str(kind), numeric=bool(kind.is_numeric()))


BINARY_CONTENT = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@files_router.post(
    "/api/files",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": BINARY_CONTENT}},
)
async def upload_file(request: Request, name: FileName) -> File:
    """Bring a table into the folder: the body is the file. No file is replaced."""
    require_extras("release")
    settings = server_settings(request)
    if not settings.register or not request_visitor(request).curator:
        raise RequestRefused(409, "this server takes no files", "name", "ask its curator")

    async def check(path: str, name: str) -> None:
        try:
            await run_in_threadpool(tasks.run_quick, request, folder.check_upload, path, name)
        except (Crashed, OutOfMemory, TookTooLong):
            raise InvalidInput(
                f"{name} cannot be read",
                field="file",
                hint="see whether other programs can open it",
            ) from None

    with at("name"):
        most = settings.largest_upload
        path = await folder.receive_upload(settings.folder, name, request.stream(), most, check)
    return File(name=path.name)
