"""`/api/ledger`: what was spent, what is left, and what it all allows anyone to believe."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel

from whosin.app.cli.output import plain
from whosin.app.web import work
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.routes.files import settings_of
from whosin.app.web.routes.plan import CardSection, sections
from whosin.app.web.scenarios import ledger_place
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, has_ledger, visitor_of
from whosin.errors import BrokenHistory, InvalidInput
from whosin.ledger import Ledger, verify
from whosin.report.budget import entry_row, standing_card

router = APIRouter(tags=["ledger"], route_class=BoundedRoute)
MOST_ENTRIES = 500
SAVED = "scenario.toml"
"""As the page saves a scenario."""


class Dataset(BaseModel):
    """Where a dataset stands, in words and as data, and for its curator the command that goes on
    with another file, other domains or bounds."""

    dataset: str
    amend: str | None
    card: list[CardSection]
    standing: dict[str, Any]


class Datasets(BaseModel):
    """All datasets of the ledger."""

    datasets: list[Dataset]


class History(BaseModel):
    """The last entries of a dataset (number, when, who, what, cost), and whether it is whole."""

    dataset: str
    entries: list[list[str]]
    whole: bool
    unanswered: int


@router.get("/api/ledger")
def list_datasets(request: Request) -> Datasets:
    """Where all datasets stand."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    return work.quick(request, datasets, settings, visitor)  # type: ignore[no-any-return]


def datasets(settings: Settings, visitor: Visitor) -> Datasets:
    """The task."""
    where = settings.ledger
    if not has_ledger(settings):
        return Datasets(datasets=[])
    place = ledger_place(settings)
    with Ledger(where, create=False) as ledger:
        standings = [ledger.standing(name) for name in ledger.datasets()]
        return Datasets(
            datasets=[
                Dataset(
                    dataset=standing.dataset,
                    amend=_amend(place, standing.dataset) if visitor.curator else None,
                    card=sections(standing_card(standing)),
                    standing=plain(standing.to_dict()),
                )
                for standing in standings
            ]
        )


def _amend(place: str, dataset: str) -> str:
    return shlex.join(["whosin", "ledger", "amend", place, dataset, "--scenario", SAVED])


@router.get("/api/ledger/history")
def show_history(request: Request, dataset: Annotated[str, Query(max_length=200)]) -> History:
    """The history of a dataset, with its chain of digests checked."""
    settings = settings_of(request)
    visitor = visitor_of(request, settings)
    return work.quick(request, history, settings, dataset, visitor)  # type: ignore[no-any-return]


def history(settings: Settings, dataset: str, visitor: Visitor) -> History:
    """The task. A user sees own requests, and of others' only what they add up to."""
    where = settings.ledger
    if not has_ledger(settings):
        raise InvalidInput("dataset", "one that the ledger knows; it is empty", repr(dataset))
    with Ledger(where, create=False) as ledger:
        standing, entries, _ = ledger.record(dataset)
        try:
            check = verify(ledger, dataset)
        except BrokenHistory:  # its words may name the requests of others
            if visitor.curator:
                raise
            raise BrokenHistory(dataset, "its curator can see where") from None
        relation = standing.budget.relation
        seen = [entry for entry in entries if visitor.sees(entry)]
        own = {entry.request for entry in seen}
        return History(
            dataset=standing.dataset,
            entries=[list(entry_row(entry, relation)) for entry in seen[-MOST_ENTRIES:]],
            whole=True,
            unanswered=sum(request in own for request in check.unanswered),
        )
