"""`/api/kinds`: what can be asked and said, from the registries, for pages and programs."""

from __future__ import annotations

from dataclasses import fields

from fastapi import APIRouter
from pydantic import BaseModel

from whosin import vocabulary
from whosin.app.web.bodies import BoundedRoute
from whosin.families import spellings
from whosin.release.queries import QUERIES, Query
from whosin.vocabulary import Word

router = APIRouter(tags=["kinds"], route_class=BoundedRoute)


class QueryKind(BaseModel):
    """A kind of question: its keys, and what a page needs to ask for them."""

    kind: str
    label: str
    keys: list[str]
    column: str
    extra: list[str]
    needs_delta: bool
    writes_file: bool


class Kinds(BaseModel):
    """Every kind of question, every word of a scenario by its section, every family."""

    queries: list[QueryKind]
    words: dict[str, list[Word]]
    families: list[str]


@router.get("/api/kinds")
def kinds() -> Kinds:
    """What can be asked, and the words for it."""
    return Kinds(
        queries=[_query(kind) for kind in QUERIES.values()],
        words={section: list(words.values()) for section, words in vocabulary.SCENARIO.items()},
        families=spellings(),
    )


def _query(kind: type[Query]) -> QueryKind:
    return QueryKind(
        kind=kind.kind,
        label=kind.label,
        keys=[each.name for each in fields(kind)],
        column=kind.column_takes,
        extra=[part for part in kind.example if part],
        needs_delta=kind.needs_delta,
        writes_file=kind.writes_file,
    )
