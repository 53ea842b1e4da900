"""`/api/ledger`: what was spent, what is left, and what it all allows anyone to believe."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel

from whosin.app.cli.output import plain
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.scenarios import ledger_url
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, has_ledger
from whosin.app.web.work import quick_route
from whosin.errors import BrokenHistory, InvalidInput
from whosin.ledger import Ledger, verify
from whosin.report.budget import entry_row, standing_card
from whosin.report.card import Section

router = APIRouter(tags=["ledger"], route_class=BoundedRoute)
MOST_ENTRIES = 500
SAVED = "scenario.toml"
"""The name under which the page saves a scenario."""


class Dataset(BaseModel):
    """Where a dataset stands, in words and as data, and for its curator the command that goes on
    with another file, other domains or bounds."""

    dataset: str
    amend: str | None
    card: list[Section]
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
@quick_route
def list_datasets(settings: Settings, visitor: Visitor) -> Datasets:
    """Where all datasets stand."""
    if not has_ledger(settings):
        return Datasets(datasets=[])
    url = ledger_url(settings)
    with Ledger(settings.ledger, create=False) as ledger:
        standings = [ledger.standing(name) for name in ledger.datasets()]
        return Datasets(
            datasets=[
                Dataset(
                    dataset=standing.dataset,
                    amend=_amend(url, standing.dataset) if visitor.curator else None,
                    card=standing_card(standing),
                    standing=plain(standing.to_dict()),
                )
                for standing in standings
            ]
        )


def _amend(url: str, dataset: str) -> str:
    return shlex.join(["whosin", "ledger", "amend", url, dataset, "--scenario", SAVED])


@router.get("/api/ledger/history")
@quick_route
def show_history(
    settings: Settings, visitor: Visitor, dataset: Annotated[str, Query(max_length=200)]
) -> History:
    """The history of a dataset, with its chain of digests checked."""
    if not has_ledger(settings):
        raise InvalidInput("dataset", "one that the ledger knows; it is empty", repr(dataset))
    with Ledger(settings.ledger, create=False) as ledger:
        standing, entries, _ = ledger.record(dataset)
        try:
            check = verify(ledger, dataset)
        except BrokenHistory:  # its words may name the requests of others
            if visitor.curator:
                raise
            raise BrokenHistory(dataset, "its curator can see where") from None
        relation = standing.budget.relation
        # A user sees their own requests, and of others' only what they add up to.
        seen = [entry for entry in entries if visitor.sees(entry)]
        own = {entry.request for entry in seen}
        return History(
            dataset=standing.dataset,
            entries=[list(entry_row(entry, relation)) for entry in seen[-MOST_ENTRIES:]],
            whole=True,
            unanswered=sum(request in own for request in check.unanswered),
        )
