"""`/api/files`: the tables of the served folder, their columns, and uploads."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from whosin.app.web import folder, work
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.failures import Refused
from whosin.app.web.models import LookBody
from whosin.app.web.scenarios import on_table, opened
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, settings_of, visitor_of
from whosin.errors import Crashed, InvalidInput, OutOfMemory, TookTooLong, at
from whosin.extras import needs
from whosin.release import DuckDB

router = APIRouter(tags=["files"], route_class=BoundedRoute)
FileName = Annotated[str, Query(max_length=200)]


class File(BaseModel):
    """A file of the folder: its name alone, since its size tells how many rows it has."""

    name: str


class Files(BaseModel):
    """What the folder holds."""

    tables: list[File]
    scenarios: list[str]


class Column(BaseModel):
    """A column, by its schema."""

    name: str
    type: str
    numeric: bool


class ColumnList(BaseModel):
    """The schema of a table; no row is looked at."""

    file: str
    columns: list[Column]


@router.get("/api/files")
@work.quick_route
def list_files(settings: Settings, visitor: Visitor) -> Files:
    """The tables and scenarios in the served folder."""
    # Who is no curator sees the tables that have a budget, and no scenario files.
    home, seen = settings.folder, visitor.tables(settings)
    tables = {path.name: path for path in folder.tables(home)} | folder.databases(home)
    return Files(
        tables=[File(name=name) for name in tables if folder.is_seen(home, name, seen)],
        scenarios=[path.name for path in folder.scenarios(home)] if visitor.curator else [],
    )


@router.get("/api/columns")
@work.quick_route
def list_columns(settings: Settings, visitor: Visitor, file: FileName) -> ColumnList:
    """The columns of a table, from its schema alone."""
    with at("table.source"):
        source = folder.find_table(settings.folder, file, visitor.tables(settings))
        with DuckDB() as engine:
            schema = engine.open(source).schema()
    return ColumnList(
        file=file,
        columns=[_column(name, kind) for name, kind in schema.items()],
    )


@router.post("/api/columns")
@work.quick_route
def list_all_columns(settings: Settings, visitor: Visitor, body: LookBody) -> ColumnList:
    """The columns of a table with those of further tables and with features, from the schemas
    alone."""
    with opened(settings, on_table(body), visitor) as (_, table):
        return ColumnList(
            file=body.table.source,
            columns=[_column(name, kind) for name, kind in table.kinds.items()],
        )


def _column(name: str, kind: Any) -> Column:
    return Column(name=name, type=str(kind), numeric=bool(kind.is_numeric()))


BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


@router.post(
    "/api/files",
    status_code=201,
    openapi_extra={"requestBody": {"required": True, "content": BINARY}},
)
async def upload_file(request: Request, name: FileName) -> File:
    """Bring a table into the folder: the body is the file. No file is replaced."""
    needs("release")
    settings = settings_of(request)
    if not settings.register or not visitor_of(request).curator:
        raise Refused(409, "this server takes no files; ask whoever runs it", "name")

    async def check(path: str, name: str) -> None:
        try:
            await run_in_threadpool(work.quick, request, folder.check_upload, path, name)
        except (Crashed, OutOfMemory, TookTooLong):
            raise InvalidInput("file", "one that can be read", name) from None

    with at("name"):
        most = settings.largest_upload
        path = await folder.receive(settings.folder, name, request.stream(), most, check)
    return File(name=path.name)
