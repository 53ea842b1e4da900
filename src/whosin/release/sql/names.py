"""Names in SQL: those of the table, of its columns, and of cells to group by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.columns.derived import column_of
from whosin.release.conditions.predicate import TEXT, unknown_column
from whosin.release.conditions.row_values import describe
from whosin.release.sql.joins import JoinedTable, joined_tables
from whosin.release.sql.refusals import refused
from whosin.release.table import Table

USUAL = ("main", "public")
"""Schemas that need not be named."""
CELLS = "a declared column, or year, quarter, month, isoweek or decade of one"


@dataclass(frozen=True)
class Names:
    """What names mean in one statement.

    Attributes:
        tables: what the table is called, in small letters, and its alias.
        joined: the tables that the statement joins.
    """

    table: Table
    tables: frozenset[str]
    joined: tuple[JoinedTable, ...] = ()

    def column(self, node: Any, *, levels: bool = False) -> str:
        """The column that a node names. SQL does not tell capital letters apart, where one column
        alone is meant.

        Args:
            levels: whether an upper level of a column will do.
        """
        joined = [each for each in self.joined if each.called == node.table.lower()]
        if node.args.get("table") is not None and not joined:
            self.require_table(node.table)
        if any(node.args.get(part) is not None for part in ("db", "catalog", "join_mark")):
            raise refused("made of columns such as age, or visits.age", describe(node))
        if joined:
            known = dict(joined[0].columns)
        else:
            self._require_one(node)
            names = [*self.table.columns, *(self.table.levels if levels else ())]
            known = dict(zip(names, names, strict=True))
        if node.name in known:
            return known[node.name]
        alike = [name for name in known if name.lower() == node.name.lower()]
        if len(alike) == 1 and not node.this.args.get("quoted"):
            return known[alike[0]]
        raise unknown_column("column in sql", node.name, self.table.data, self.table.domains, TEXT)

    def _require_one(self, node: Any) -> None:
        """A name that is in two of the tables needs its table before it; the entity is the same
        in all."""
        own, name = self.table.own, node.name.lower()
        if node.args.get("table") is not None or name == self.table.entity.lower():
            return
        if name in map(str.lower, own) and any(
            name in map(str.lower, each.columns) for each in self.joined
        ):
            raise refused("made of columns of one table, such as visits.age", describe(node))

    def require_table(self, name: str, schema: str = "") -> None:
        """The one table that can be asked."""
        whole = f"{schema}.{name}" if schema.lower() not in ("", *USUAL) else name
        if whole.lower() not in self.tables:
            accepted = f"about the table {self.table.name!r}, which the scenario names"
            raise refused(accepted, repr(whole[:60]))

    def cells(self, node: Any) -> str:
        """What `by` calls the cells of a column, of a level, or of a function of one."""
        from sqlglot import exp

        if isinstance(node, exp.Column):
            name = self.column(node, levels=True)
        elif isinstance(node, exp.Extract) and isinstance(node.expression, exp.Column):
            name = f"{node.this.name.lower()}({self.column(node.expression)})"
        else:
            name = self._function(node)
        try:
            self.table.grouping(name)
        except InvalidInput as error:
            if name == column_of(name):
                raise
            raise refused(f"grouped by {CELLS}", f"{describe(node)} ({error.message})") from None
        return name

    def _function(self, node: Any) -> str:
        from sqlglot import exp

        arguments = list(node.iter_expressions()) if isinstance(node, exp.Func) else []
        called = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
            raise refused(f"grouped by {CELLS}", describe(node))
        return f"{called.lower()}({self.column(arguments[0])})"

    def condition(self, node: Any) -> str:
        """A condition as `where` takes it, which checks everything else."""
        from sqlglot import exp

        if node.find(exp.Select, exp.Subquery, exp.Exists) is not None:
            accepted = "about one row in WHERE, without subqueries: a list, such as ward IN ('A')"
            raise refused(accepted, describe(node))
        if (aggregate := node.find(exp.AggFunc, exp.Window)) is not None:
            raise refused("about one row in WHERE, without aggregates", describe(aggregate))

        def plain(each: Any) -> Any:
            if not isinstance(each, exp.Column):
                return each
            name = self.column(each, levels=True)
            quoted = bool(each.this.args.get("quoted")) or "." in name
            return exp.Column(this=exp.to_identifier(name, quoted=quoted))

        return str(node.copy().transform(plain).sql(dialect="duckdb", comments=False))


def names_of(
    table: Table, alias: str, known: tuple[str, ...] = (), joins: Sequence[Any] = ()
) -> Names:
    """What names mean where the table is called by an alias, or by one of its own names."""
    own = {table.name, table.name.rpartition(".")[2], alias, *known}
    tables = frozenset(name.lower() for name in own if name)
    return Names(table, tables, tuple(joined_tables(list(joins), table, tables)))
