"""A table as a budget is bound to it: see `whosin.ledger.binding`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.exact import rational
from whosin.ledger import chain
from whosin.ledger.binding import Binding
from whosin.release.columns.domains import Domain, Range, Values
from whosin.release.queries import Query
from whosin.release.related.further import Further, FurtherTable
from whosin.release.scans.bounding import Bounds
from whosin.release.scans.fingerprint import fingerprint
from whosin.release.table import COLUMN, EACH_ROW, ROW, Table

KINDS = ("boolean", "integer", "numeric", "string", "temporal", "nested")
NUMBERS = ("lower", "upper", "step", "edges")


def binding_of(table: Table, queries: Iterable[Query] = (), *, rows: bool = False) -> Binding:
    """What a budget for a table is bound to.

    Args:
        queries: those that will be asked: a `maximum` among them brings its universe, and a query
            with bounds of its own brings these.
        rows: look at the rows too, to recognise them under another name (see `fingerprint`).
    """
    asked = tuple(queries)
    universes = {universe_of(query) for query in asked} - {None}
    if len(universes) > 1:
        raise InvalidInput("universe", "the same for every maximum", f"{len(universes)} of them")
    most = [Bounds(table.rows, table.groups)]
    for number, query in enumerate(asked):
        with at(f"queries[{number}]"), query.at_own_key():
            most.append(query.bounds(query.asked_of(table)))
    return Binding(
        entity=_entity(table),
        rows=max(bounds.rows for bounds in most),
        groups=max(bounds.groups for bounds in most),
        domains={name: _plain(domain) for name, domain in table.domains.items()},
        schema=_schema(table.own),
        source=fingerprint(table, rows=rows),
        tables={each.name: _further(table, each) for each in table.tables},
        features={each.name: each.to_dict() for each in table.features},
        universe=universes.pop() if universes else None,
    )


def question_of(binding: Binding, query: Query, table: Table) -> Binding:
    """What one question is about: the domains of its columns, its own bounds and universe."""
    asked = binding.about(query.names(table), universe_of(query))
    return replace(asked, **vars(query.bounds(query.asked_of(table))))


def universe_of(query: Query) -> str | None:
    """A digest of everyone who could be in, where a query names them."""
    listed = [[str(who), str(value)] for who, value in query.ranked()]
    return chain.digest(chain.canonical(listed)) if listed else None


def _entity(table: Table) -> str:
    """Whose rows they are: a column that is called like "each row" is not each row."""
    mistakable = not table.by_row and table.entity in (ROW, EACH_ROW)
    return COLUMN + table.entity if mistakable else table.entity


def _further(table: Table, declared: Further) -> dict[str, Any]:
    """A further table as plain data; its fingerprints are beside the table's own."""
    opened = table.database.opened[declared.name]
    data = {"public": declared.public, "schema": _schema(dict(opened.schema()))}
    if isinstance(declared, FurtherTable):
        return data | {"entity": declared.entity or table.entity, "rows": declared.rows}
    join = {"key": declared.key, "on": declared.on or declared.key, "to": declared.to}
    return data | {key: value for key, value in join.items() if value is not None}


def _schema(kinds: Mapping[str, Any]) -> dict[str, str]:
    return {name: _kind(kind) for name, kind in kinds.items()}


def _kind(column_type: Any) -> str:
    """A column's type in one word, the same on every engine."""
    for kind in KINDS:
        if getattr(column_type, f"is_{kind}")():
            return kind
    return "other"


def _plain(domain: Domain) -> dict[str, Any]:
    """A domain as data, equal for equal domains however they were spelled. That a column is
    constant makes bounds of questions smaller, which are compared and charged by themselves."""
    names = [each.name for each in fields(domain) if each.name != "constant"]
    data = {name: getattr(domain, name) for name in names}
    if isinstance(domain, Values):
        data["parents"] = {each.name: each.to_dict(domain.values) for each in domain.levels}
    if isinstance(domain, Range):
        data |= {name: _exact(data[name]) for name in NUMBERS if name in data}
    # Not by equality: 0 and false are values that a closed domain may count others as.
    empty: tuple[object, ...] = ((), [], {})
    return {name: value for name, value in data.items() if value is not None and value not in empty}


def _exact(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [str(rational(each)) for each in value]
    return value if value is None else str(Fraction(rational(value)))
