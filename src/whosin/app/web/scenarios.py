"""From a request to a scenario on the served folder, to a price, to a release.

Contract: a table is a file of the folder, the ledger is the server's, the dataset is named after
the file, so that nobody gets a second budget by another name. Errors say which field they mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

from whosin.app.web import folder, outputs
from whosin.app.web.failures import Refused
from whosin.app.web.models import LookBody, ScenarioBody, TargetBody, data
from whosin.app.web.settings import Settings
from whosin.app.web.visitors import Visitor, has_ledger
from whosin.calibration import Plan, read_plan
from whosin.errors import BudgetRefused, InvalidInput, at
from whosin.extras import needs
from whosin.ledger import Ledger, Standing, refusal
from whosin.ledger.budget import Budget
from whosin.release import QUERIES, Offer, Release, Session, Table
from whosin.release.columns.domains import Domain, read_domain
from whosin.release.queries import Marginals, Query, read_query
from whosin.release.registration import binding_of
from whosin.release.scans.fingerprint import fingerprint_of_source
from whosin.release.scenario import Scenario, read_scenario
from whosin.release.session import unnamed
from whosin.release.table import dataset_name
from whosin.release.what_counts import column_behind

MOST_VALUES, MOST_CELLS, MOST_CANDIDATES = 2_000, 20_000, 5_000
"""What a page takes: values of a column, cells of an answer, candidates of a maximum."""
MOST_WHERE = 4_000
"""Letters of all conditions: an engine takes long to plan lists of thousands of numbers."""
MOST_PEOPLE = 5_000
"""Whose doubts a page works out while someone waits."""


def plan_of(
    adversary: Mapping[str, Any], target: Mapping[str, Any], query: str | None = None
) -> Plan:
    """A plan that a page works out while someone waits."""
    _check_people(adversary)
    return read_plan(adversary, target, query)


def _check_people(adversary: Mapping[str, Any]) -> None:
    people = adversary.get("people")
    if isinstance(people, int) and people > MOST_PEOPLE:
        accepted = f"at most {MOST_PEOPLE:,} here; `whosin release` takes more"
        with at("adversary.people"):
            raise InvalidInput("people", accepted, f"{people:,}")


def on_table(body: LookBody) -> ScenarioBody:
    """A scenario on a table, for what needs the table alone: any target and any question will
    do."""
    return ScenarioBody(
        target=TargetBody.model_validate({"epsilon": 1.0}),
        table=body.table,
        domains=body.domains,
        tables=body.tables,
        features=body.features,
        queries=[{"kind": "count"}],
    )


def full_data(settings: Settings, body: ScenarioBody) -> dict[str, Any]:
    """The keys of a scenario file, with the server's ledger, for a person to keep."""
    return data(body) | {"ledger": {"url": ledger_url(settings)}}


def ledger_url(settings: Settings) -> str:
    """Where the server's ledger is, as seen from the served folder, without a password."""
    where = settings.ledger
    if "://" not in where:
        path, home = Path(where).resolve(), settings.folder.resolve()
        return str(path.relative_to(home) if path.is_relative_to(home) else path)
    with Ledger(where, create=False) as ledger:
        return ledger.name


@contextmanager
def opened(
    settings: Settings, body: ScenarioBody, visitor: Visitor
) -> Iterator[tuple[Scenario, Table]]:
    """A scenario and its table, checked by its schema."""
    needs("release")
    given = data(body)
    with at("table.source"):
        folder.find_table(settings.folder, body.table.source, visitor.tables(settings))
    _check_tables(settings, body, visitor)
    _check_people(given.get("adversary", {}))
    letters = 0
    for index, query in enumerate(given["queries"]):
        with at(f"queries[{index}]"):
            where = query.get("where")
            letters += len(where) if isinstance(where, str) else 0
            if letters > MOST_WHERE:
                accepted = f"at most {MOST_WHERE:,} letters here, in all queries together"
                with at("where"):
                    raise InvalidInput("where", accepted, f"{letters:,}")
            if read_query(query, QUERIES).writes_file:
                with at("path"):
                    outputs.plain_name(query["path"])
    given["table"]["memory"] = f"{settings.scan_memory // 2}B"  # beyond it the engine spills
    scenario = read_scenario(given, settings.folder)
    table = _open_table(scenario)
    try:
        yield scenario, table
    finally:
        table.engine.close()


def _check_tables(settings: Settings, body: ScenarioBody, visitor: Visitor) -> None:
    """Further tables are files of the folder. A user who may not decide can only name those that
    the budget is bound to. That is checked before any is opened, since errors about a public table
    may quote rows."""
    seen = visitor.tables(settings)
    bound = None if seen is None else seen.get(dataset_name(body.table.source))
    for index, each in enumerate(body.tables):
        with at(f"tables[{index}].source"):
            source = folder.find_table(settings.folder, each.source)
            if seen is None:
                continue
            prints = fingerprint_of_source(source)
            if bound is None or not bound.has_table(each.name, bool(each.public), prints):
                raise InvalidInput("source", "a table that the budget is bound to", each.source)


def _open_table(scenario: Scenario) -> Table:
    listed = {name: each for name, each in scenario.domains.items() if not _looked_up(each)}
    for column, domain in listed.items():
        with at(f"domains.{column}"):
            _check_domain(read_domain(column, domain))
    table = scenario.open_table()
    try:
        for column in scenario.domains.keys() - listed:
            with at(f"domains.{column}"):
                _check_domain(table.domains[column])
    except BaseException:
        table.engine.close()
        raise
    return table


def _looked_up(domain: object) -> bool:
    """Whether the values are those of a public table, which has to be opened first."""
    values = domain.get("values") if isinstance(domain, Mapping) else domain
    return isinstance(values, str) and ".." not in values


def _check_domain(domain: Domain) -> None:
    size = len(domain.labels)
    if size > MOST_VALUES:
        raise InvalidInput("domain", f"of at most {MOST_VALUES:,} values here", f"{size:,}")


def offers_for(scenario: Scenario, table: Table) -> list[Offer]:
    """The price of a batch that is not too large for a page; errors name the query."""
    for index, query in enumerate(scenario.queries):
        with at(f"queries[{index}]"), query.at_own_key():
            _check_size(query, table)
    return scenario.price(table)


def _check_size(query: Query, table: Table) -> None:
    """Refuse more cells or candidates than a page can show."""
    by = getattr(query, "by", ())
    listed = by if isinstance(by, list | tuple) else [by]  # what is no list, the offer refuses
    names = {name for name in listed if isinstance(name, str)}
    declared = table.domains
    known = [table.grouping(name) for name in names if column_behind(declared, name) in declared]
    if (count := prod(len(domain.labels) for domain in known)) > MOST_CELLS:
        raise InvalidInput("by", f"columns with at most {MOST_CELLS:,} cells in all", f"{count:,}")
    if isinstance(query, Marginals) and (count := query.cells_in_all(table)) > MOST_CELLS:
        accepted = f"tables with at most {MOST_CELLS:,} cells in all"
        raise InvalidInput("columns", accepted, f"{count:,}")
    universe = getattr(query, "universe", ())
    if isinstance(universe, list | tuple) and len(universe) > MOST_CANDIDATES:
        raise InvalidInput("universe", f"at most {MOST_CANDIDATES:,} candidates here", "more")


def standing_of(settings: Settings, dataset: str) -> Standing | None:
    """Where a dataset stands, if its ledger knows it; nothing is made."""
    if not has_ledger(settings):
        return None
    with Ledger(settings.ledger, create=False) as ledger:
        return ledger.standing(dataset) if dataset in ledger.datasets() else None


def refused(
    settings: Settings, scenario: Scenario, table: Table, offers: list[Offer], visitor: Visitor
) -> str | None:
    """Why the ledger would refuse this now."""
    standing = standing_of(settings, table.name)
    try:
        if standing is None:
            decide(settings, table.name, visitor)
            return None
        share = scenario.budget.get("share", 1)
        refusal.session(standing, scenario.plan, Budget.of(scenario.plan), share)
        if standing.bound is None:
            return None if visitor.curator else unnamed(table.name)
        binding = binding_of(table, scenario.queries)
        if visitor.curator and standing.bound.binding.universe is None:
            binding = replace(binding, universe=None)
        standing.bound.check(table.name, binding)
        bare = [replace(offer.charge, binding=binding) for offer in offers]
        refusal.debits(standing, bare)
    except (BudgetRefused, Refused) as error:
        return str(error)
    return None


def decide(settings: Settings, dataset: str, visitor: Visitor) -> None:
    """Only a curator opens a budget, and only where the server lets them."""
    if not settings.register or not visitor.curator:
        raise Refused(
            409,
            f"dataset {dataset!r} has no budget here: its curator opens one with whosin ledger "
            "create",
            "table.source",
        )


def release(
    settings: Settings, body: ScenarioBody, request: str, visitor: Visitor
) -> tuple[Scenario, Release]:
    """Answer a scenario; every debit is on disk before its noise is drawn."""
    request = visitor.request(request)
    with opened(settings, body, visitor) as (scenario, table):
        if standing_of(settings, table.name) is None:
            decide(settings, table.name, visitor)
        with visitor.ledger(settings) as ledger:
            own = _paid(ledger, table.name, request, len(body.queries))
            outputs.check(settings.folder, body, own)
            session = Session(
                table,
                scenario.plan,
                ledger,
                request=request,
                share=scenario.budget.get("share", 1),
                curator=visitor.curator,
                copies="refuse",
                queries=scenario.queries,
            )
            return scenario, scenario.release(session)


def _paid(ledger: Ledger, dataset: str, request: str, count: int) -> list[int]:
    """The queries of a request that were debited before."""
    debited = ledger.requests(dataset, f"{request}/")
    return [index for index in range(count) if f"{request}/{index}" in debited]


def stored(
    settings: Settings, body: ScenarioBody, request: str, visitor: Visitor
) -> tuple[Scenario, Release]:
    """A release that was made before; nothing is paid, nothing is drawn."""
    request = visitor.request(request)
    dataset = dataset_name(body.table.source)
    answered: set[str] = set()
    if standing_of(settings, dataset) is not None:
        with visitor.ledger(settings, create=False) as ledger:
            answered = ledger.requests(dataset, f"{request}/", answered=True)
    if not all(f"{request}/{index}" in answered for index in range(len(body.queries))):
        raise Refused(404, "no release of this id has been answered", "request")
    return release(settings, body, request, visitor)
