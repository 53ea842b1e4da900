"""`/api/kinds`: what can be asked and said, from the registries, for pages and programs."""

from __future__ import annotations

from dataclasses import fields

from fastapi import APIRouter
from pydantic import BaseModel

from whosin import vocabulary
from whosin.app.web.bodies import BoundedRoute
from whosin.calibration import TARGETS
from whosin.families import FAMILIES
from whosin.notions import NOTIONS
from whosin.release.queries import QUERIES, Query
from whosin.vocabulary import Word
from whosin.words import takes

ON_A_PAGE = {"family": vocabulary.NOTION["family"]}
"""What a page asks for beside the notion."""
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


class FamilyKind(BaseModel):
    """A family of adversaries: how it is written, and one of them."""

    form: str
    example: str


class NotionKind(BaseModel):
    """A notion that a channel can be measured by, and the words that it takes."""

    name: str
    label: str
    words: list[str]


class Kinds(BaseModel):
    """Every kind of question, of target (its words), of family and of notion, and every word of a
    scenario by its section."""

    queries: list[QueryKind]
    targets: list[list[str]]
    words: dict[str, list[Word]]
    families: list[FamilyKind]
    notions: list[NotionKind]


@router.get("/api/kinds")
def kinds() -> Kinds:
    """What can be asked, and the words for it."""
    return Kinds(
        queries=[_query(kind) for kind in QUERIES.values()],
        words={section: list(words.values()) for section, words in vocabulary.SCENARIO.items()},
        targets=[*(list(kind.words_taken) for kind in TARGETS.values()), ["hipaa"]],
        families=[
            FamilyKind(form=kind.name + kind.form, example=kind.example)
            for kind in FAMILIES.values()
            if kind.example
        ],
        notions=[
            NotionKind(name=name, label=kind.label or name.replace("-", " "), words=list(words))
            for name, kind in NOTIONS.items()
            if (words := takes(kind, ON_A_PAGE)) is not None
        ],
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
