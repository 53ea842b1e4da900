"""`/api/verify`: the exact leakage of a channel, with the case that proves it."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.cli.output import plain
from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import VerifyBody
from whosin.app.web.work import quick_route
from whosin.beliefs import percent
from whosin.documents import check_object, parse_json
from whosin.errors import InvalidInput, WhosinError, at
from whosin.exact import rational
from whosin.mechanisms import Channel
from whosin.notions import Notion
from whosin.notions.reading import read_notion
from whosin.references import THEOREMS
from whosin.report import text
from whosin.report.data import level_data
from whosin.report.numbers import short, side

router = APIRouter(tags=["verify"], route_class=BoundedRoute)
MOST_ENTRIES = 1 << 14
MOST_UNCERTAIN = 6
"""Sizes that are measured in about a second; `whosin verify` takes larger ones."""


class Measured(BaseModel):
    """A level with its witness, as `whosin verify --json` gives it, and the same in words."""

    level: dict[str, Any]
    title: str
    value: str
    lower: str | None
    verdict: str | None
    belief: list[str] | None
    theorems: list[str]


@router.post("/api/verify")
@quick_route
def verify_channel(body: VerifyBody) -> Measured:
    """Measure a channel file under a family of adversaries; a claim is checked."""
    try:
        notion = read_notion(body.notion, body.words())
    except WhosinError as error:
        error.path = error.path.removeprefix("notion.") or "notion"
        raise
    claim = None
    if body.at_most is not None:
        with at("at_most"):
            claim = rational(body.at_most, "at_most")
    with at("channel"):
        level = notion.measure(_channel(body.channel, notion))
        case = level.witness if claim is None else level.refutation(claim) or level.witness
        return Measured(
            level=plain(level_data(level, notion, claim)),
            title=notion.title,
            value=short(level.value, side(level.exact)),
            lower=None if level.lower is None else short(level.lower, "down"),
            verdict=None if claim is None else text.verdict(level, notion, claim),
            belief=None if case is None else [percent(case.prior), percent(case.posterior)],
            theorems=[str(THEOREMS[number]) for number in level.theorems],
        )


def _channel(spelled: str, notion: Notion) -> Channel:
    result = check_object(parse_json(spelled, "channel", spelled=True), "channel")
    rows = result.get("probabilities")
    size = sum(len(row) for row in rows if isinstance(row, list)) if isinstance(rows, list) else 0
    if size > MOST_ENTRIES:
        raise InvalidInput("probabilities", f"at most {MOST_ENTRIES:,} of them here", f"{size:,}")
    space = result.get("space")
    if isinstance(space, dict):
        for key in ("entities", "rows", "values"):
            number = space.get(key)
            number = len(number) if isinstance(number, list | dict | str) else number
            if isinstance(number, int) and not 0 <= number <= MOST_ENTRIES.bit_length() * 2:
                raise InvalidInput(key, "a small number here", number)
    if getattr(getattr(notion, "family", None), "hides_others", False):
        worlds, most = len(rows) if isinstance(rows, list) else 0, 1 << MOST_UNCERTAIN
        if worlds > most or size > most * 8:
            accepted = f"at most {most} worlds and {most * 8} probabilities here"
            raise InvalidInput("channel", accepted, f"{worlds} and {size}")
    return Channel.from_dict(result)
