"""JOIN in a SELECT: the joins that the scenario declares, and no others.

Contract: a table of the same people is joined on the entity, as `[[tables]]` joins it: LEFT JOIN
keeps everyone, and JOIN those who have a row there, which a condition says. A public table is
looked up by its key, and keeps every row. Everything else is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whosin.release.conditions.row_values import describe
from whosin.release.related.database import PrivateTable
from whosin.release.related.further import REASON
from whosin.release.sql.refusals import refused
from whosin.release.table import Table

KINDS = {("", ""): True, ("", "INNER"): True, ("LEFT", ""): False, ("LEFT", "OUTER"): False}
"""Whether a join drops the rows that find nothing, by its side and kind."""


@dataclass(frozen=True)
class JoinedTable:
    """A table that a statement joins.

    Attributes:
        called: what the statement calls it, in small letters.
        columns: what its columns are called beside the others, by their own names.
        condition: what holds for the rows that the join keeps; "" for all.
    """

    called: str
    columns: Mapping[str, str]
    condition: str = ""


def joined_tables(joins: list[Any], table: Table, main: frozenset[str]) -> list[JoinedTable]:
    """The tables that a statement joins to a table.

    Args:
        main: what the statement may call the table itself.
    """
    result: list[JoinedTable] = []
    for join in joins:
        joined = _joined(join, table, main)
        if joined.called in main or any(joined.called == each.called for each in result):
            raise refused("made of tables that are each joined once", describe(join))
        result.append(joined)
    return result


def _joined(join: Any, table: Table, main: frozenset[str]) -> JoinedTable:
    from sqlglot import exp

    people, public = table.database.tables, table.database.lookups
    names = {name.lower(): name for name in (*people, *public)}
    joined, side = join.this, (str(join.side).upper(), str(join.kind).upper())
    plain = isinstance(joined, exp.Table) and isinstance(joined.this, exp.Identifier)
    if not plain or joined.name.lower() not in names or joined.db:
        known = ", ".join(names.values()) or "none"
        accepted = f"joined with tables that the scenario declares in [[tables]]: {known}"
        raise refused(accepted, describe(join))
    if side not in KINDS or join.method:
        raise refused("joined by LEFT JOIN or JOIN", describe(join))
    name, called = names[joined.name.lower()], str(joined.alias_or_name).lower()
    if name in people:
        further = people[name]
        assert further.entity is not None
        if not _on(join, (table.entity, further.entity), main, called):
            raise refused(f"joined on {REASON}", describe(join))
        return JoinedTable(called, further.names, _kept(further, KINDS[side]))
    lookup = public[name]
    if lookup.declared.to is not None or KINDS[side]:
        accepted = f"without {name}, whose columns are there by their names, or with a LEFT JOIN"
        raise refused(accepted, describe(join))
    if not _on(join, (lookup.on, lookup.declared.key), main, called):
        raise refused(f"joined on {lookup.on}, as the scenario declares {name}", describe(join))
    return JoinedTable(called, {**lookup.names, lookup.declared.key: lookup.on})


def _kept(further: PrivateTable, there: bool) -> str:
    """What holds for the rows that a join keeps: those with a row there, or all. Where a person may
    have several rows there, each row is in a join as often, whether a column of it is named or not;
    so one is named."""
    assert further.entity is not None and further.declared is not None
    entity = '"' + further.names[further.entity].replace('"', '""') + '"'
    if there:
        return f"{entity} IS NOT NULL"
    return f"({entity} IS NOT NULL OR {entity} IS NULL)" if further.declared.rows > 1 else ""


def _on(join: Any, wanted: tuple[str, str], main: frozenset[str], called: str) -> bool:
    """Whether a join is on one column of each of two tables, and nothing else. No two columns of a
    table differ in capital letters alone, so these play no part."""
    from sqlglot import exp

    first, second = (each.lower() for each in wanted)
    using, on = join.args.get("using"), join.args.get("on")
    if using:
        return len(using) == 1 and first == second == using[0].name.lower() and on is None
    both: tuple[Any, ...] = on.unnest_operands() if isinstance(on, exp.EQ) else ()
    if not both or not all(isinstance(each, exp.Column) for each in both):
        return False
    compared = {(each.table.lower(), each.name.lower()) for each in both}
    return any(compared == {(own, first), (called, second)} for own in main)
