"""`/api/published`: what a table would say of people, before it is published.

Contract: it works on the numbers in the request alone; no file of the server is read.
"""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from whosin.app.web.bodies import BoundedRoute
from whosin.app.web.models import PublishedBody
from whosin.app.web.work import quick_route
from whosin.errors import InvalidInput, at
from whosin.report.published_tables import HEADS, notes, rows, summary
from whosin.report.secrets import secret_words
from whosin.rules import Publication, Rule, check_published
from whosin.rules.published import PRIVATE
from whosin.rules.published_file import (
    TableFile,
    compare_labels,
    parse_table,
    publication,
    read_rule,
)
from whosin.rules.secondary import read_procedure

router = APIRouter(tags=["published"], route_class=BoundedRoute)


class PublishedFindings(BaseModel):
    """What the table says, in sentences and cell by cell; not for publication."""

    warning: str
    summary: list[str]
    heads: list[str]
    rows: list[list[str]]
    notes: list[str]


@router.post("/api/published")
@quick_route
def published_table(body: PublishedBody) -> PublishedFindings:
    """How sure anyone could become of each person, and which suppressed cells can be worked out."""
    secret_words(body.secret)
    if (body.before is None) != (body.population_before is None):
        raise InvalidInput("before", "given with population_before", "one without the other")
    rule = read_rule(body.rule, files=False) if body.rule else None
    with at("published"):
        table = parse_table(body.published, "table")
    now = _publication(body, table, rule, body.population, "population")
    then = None
    if body.before is not None and body.population_before is not None:
        with at("before"):
            earlier = parse_table(body.before, "table")
        compare_labels(table, earlier, "before")
        then = _publication(body, earlier, rule, body.population_before, "population_before")
    findings = check_published(now, body.prior, then)
    labels = table.rows, table.columns
    return PublishedFindings(
        warning=PRIVATE,
        summary=summary(findings, labels, body.secret),
        heads=list(HEADS),
        rows=[list(row) for row in rows(findings, labels)],
        notes=notes(findings, body.secret),
    )


def _publication(
    body: PublishedBody, table: TableFile, rule: Rule | None, population: str, field: str
) -> Publication:
    with at(field):
        frame = parse_table(population, "table", totals=False)
    further = read_procedure(body.secondary_by) if body.secondary_by else body.secondary
    return publication(table, frame, rule, body.totals, further)
