"""`/api/kinds`: what can be asked and said, from the registries, for pages and programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, fields
from inspect import getdoc

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
IN_PLACE = (
    *("name", "where", "weight", "magnitude", "column", "columns", "by", "rows", "groups"),
    "universe",
)
"""Keys of questions that a page asks for in its own way, or once for the whole table, or not."""
TAKES = {
    "int | None": "whole",
    "bool": "flag",
    "bool | str": "flag",
    "str": "text",
    "object": "number",
    "Sequence[object] | None": "numbers",
    "Sequence[Sequence[str]] | None": "sets",
    "Mapping[str, Sequence[object]] | None": "ranges",
}
"""What a key takes, by its type."""
router = APIRouter(tags=["kinds"], route_class=BoundedRoute)


class QueryField(BaseModel):
    """A key of a kind of question that a page asks for as it is.

    `takes` is "whole", "number", "text", "flag", "numbers", "sets" (lists of columns) or "ranges"
    (pairs of ends by column); with `choices` it is one of them, or for a flag true as well. With
    `only_with` it belongs to one word of another key.
    """

    key: str
    takes: str
    choices: list[str]
    default: str
    only_with: list[str]
    help: str


class QueryKind(BaseModel):
    """A kind of question: its keys, and what a page needs to ask for them."""

    kind: str
    label: str
    keys: list[str]
    column: str
    extra: list[str]
    more: list[QueryField]
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
        more=list(_fields(kind)),
        needs_delta=kind.needs_delta,
        writes_file=kind.writes_file,
    )


def _fields(kind: type[Query]) -> Iterator[QueryField]:
    """The keys that a page asks for in no special way, by what they take."""
    said = _argument_words(kind)
    for each in fields(kind):
        choices = kind.choices.get(each.name, ())
        takes = TAKES.get(str(each.type))
        if each.name in IN_PLACE or each.name == kind.example[0] or takes is None:
            continue
        default = "" if each.default in (None, MISSING, False) else str(each.default)
        yield QueryField(
            key=each.name,
            takes=takes,
            choices=list(choices),
            default=default,
            only_with=list(kind.only_with.get(each.name, ())),
            help=said.get(each.name, ""),
        )


def _argument_words(kind: type[Query]) -> dict[str, str]:
    """What the docstrings of a kind say of each argument."""
    result: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        listed = (getdoc(each) or "").partition("Args:\n")[2].partition("\n\n")[0]
        attributes = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", listed, flags=re.MULTILINE)
        result |= {name: re.sub(r"\s+", " ", words) for name, words in attributes}
    return result
