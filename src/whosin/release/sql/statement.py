"""One SELECT as queries: what is read of it, clause by clause.

Contract: a clause that is not read here is refused by name; none is dropped. SELECT lists columns
of GROUP BY and aggregates, and each aggregate is a query; `SELECT DISTINCT column` is the query
`keys`, and `ORDER BY COUNT(DISTINCT entity) DESC LIMIT k` of columns alone is `top`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whosin.errors import InvalidInput
from whosin.extras import needs
from whosin.release.conditions.predicate import LONGEST, check_size
from whosin.release.conditions.row_values import describe, short
from whosin.release.queries import Keys, Query, Top
from whosin.release.sql.aggregates import Asking, query_of
from whosin.release.sql.names import Names, names_of
from whosin.release.sql.refusals import (
    AFTERWARDS,
    AGGREGATES,
    FEATURES,
    STATEMENTS,
    refused,
    refused_clause,
    refused_value,
)
from whosin.release.table import Table

READ = {"expressions", "from_", "joins", "where", "group", "distinct", "order", "limit", "kind"}
STARTS = ("SELECT", "WITH", "FROM", "(")
"""How a statement begins that may be a SELECT."""
MOST_ASKED = 200
"""Aggregates of one statement."""


def queries_in(text: object, table: Table, known: Sequence[str] = ()) -> tuple[Query, ...]:
    """The queries that a SELECT asks of a table.

    Args:
        known: what the table may also be called.

    Raises:
        InvalidInput: no query answers it; by its text, the schema and the domains alone.
    """
    select = _parse(text)
    for part, value in select.args.items():
        if value not in (None, False, []) and part not in READ:
            raise refused_clause(part, value)
    names = names_of(table, _from(select), tuple(known), select.args.get("joins") or ())
    names.require_table(_table(select).name, _table(select).db)
    if select.args.get("kind"):
        raise refused("a plain SELECT", str(select.args["kind"]))
    where = select.args.get("where")
    kept = [each.condition for each in names.joined if each.condition]
    if where is not None:
        kept.insert(0, f"({names.condition(where.this)})" if kept else names.condition(where.this))
    conditions = (" AND ".join(kept),) if kept else ()
    if select.args.get("distinct"):
        return (_keys(select, names, conditions),)
    items = [_item(each) for each in select.expressions]
    by = _groups(select, names, items)
    if select.args.get("order") or select.args.get("limit"):
        return (_top(select, names, items, by, conditions),)
    asking = Asking(names, tuple(by), conditions)
    asked = [
        query_of(node, asking, alias) for node, alias in items if not _is_group(node, names, by)
    ]
    if not 0 < len(asked) <= MOST_ASKED:
        accepted = f"about 1 to {MOST_ASKED} aggregates: {AGGREGATES}"
        raise refused(accepted, f"{len(asked)} of them")
    return _named_apart(asked)


def _parse(text: object) -> Any:
    """The only statement of a text, if it is a SELECT."""
    needs("release")
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise refused("a SELECT, such as SELECT COUNT(*) FROM visits", short(str(text)))
    if len(text) > LONGEST:
        raise refused(f"at most {LONGEST} letters", f"{len(text)}")
    try:
        words = sqlglot.tokenize(text, read="duckdb")
        if words and words[0].text.upper() not in STARTS:
            raise refused(STATEMENTS, short(words[0].text))
        parsed = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    except (SqlglotError, RecursionError):
        raise refused("a SELECT that can be parsed as DuckDB's SQL", short(text)) from None
    if len(parsed) != 1:
        raise refused("one statement", f"{len(parsed)} of them")
    statement = parsed[0]
    check_size(statement, refused)
    if isinstance(statement, exp.SetOperation):
        accepted = f"one SELECT, without {statement.key.upper()}: ask each, and {AFTERWARDS}"
        raise refused(accepted, short(text))
    if not isinstance(statement, exp.Select):
        raise refused(STATEMENTS, statement.key.upper())
    for kind in (exp.Window, exp.Placeholder, exp.Parameter):
        if (node := statement.find(kind)) is not None:
            known = kind is exp.Window
            raise refused_value(node) if known else refused("complete, without ? or $1", "one")
    return statement


def _table(select: Any) -> Any:
    from sqlglot import exp

    source = select.args.get("from_")
    if source is None:
        raise refused("a SELECT with FROM", describe(select))
    if isinstance(source.this, exp.Subquery):
        raise refused(f"FROM the table itself: {FEATURES}", describe(source.this))
    if not isinstance(source.this, exp.Table) or not isinstance(source.this.this, exp.Identifier):
        raise refused("FROM the table itself, by its name", describe(source))
    for part, value in source.this.args.items():
        if value and part not in ("this", "db", "alias"):
            raise refused_clause(part, value)
    return source.this


def _from(select: Any) -> str:
    """What the statement calls the table."""
    table = _table(select)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refused("FROM the table, its columns by their own names", describe(alias))
    return str(table.alias)


def _item(node: Any) -> tuple[Any, str]:
    """(what is selected, what to call it)."""
    from sqlglot import exp

    if isinstance(node, exp.Alias):
        return node.this, str(node.alias)
    return node, ""


def _groups(select: Any, names: Names, items: Sequence[tuple[Any, str]]) -> list[str]:
    """What GROUP BY names: columns, functions of them, positions or aliases in SELECT."""
    from sqlglot import exp

    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part != "expressions":
            accepted = "grouped by columns, each by its name, without ALL, ROLLUP, CUBE or "
            raise refused(f"{accepted}GROUPING SETS: one statement for each", describe(group))
    result = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.this) if node.this.isdigit() else 0
            if not 0 < position <= len(items):
                raise refused(f"grouped by places from 1 to {len(items)}", describe(node))
            node = items[position - 1][0]
        elif isinstance(node, exp.Column) and node.name not in names.table.columns:
            node = next((each for each, alias in items if alias == node.name), node)
        result.append(names.cells(node))
    return list(dict.fromkeys(result))


def _is_group(node: Any, names: Names, by: Sequence[str]) -> bool:
    """Whether something selected is what rows are grouped by."""
    from sqlglot import exp

    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Literal):
        return False
    if isinstance(node, exp.Column) and names.column(node, levels=True) not in by:
        accepted = f"made of columns of GROUP BY and of {AGGREGATES}"
        raise refused(accepted, describe(node))
    try:
        return names.cells(node) in by
    except InvalidInput:
        return False


def _keys(select: Any, names: Names, conditions: tuple[str, ...]) -> Query:
    from sqlglot import exp

    others = [part for part in ("group", "order", "limit") if select.args.get(part)]
    if others:
        raise refused_clause(others[0], select.args[others[0]])
    listed = [_item(each) for each in select.expressions]
    distinct = select.args["distinct"]
    if len(listed) != 1 or not isinstance(listed[0][0], exp.Column) or distinct.args.get("on"):
        raise refused_clause("distinct", select)
    node, alias = listed[0]
    column = names.column(node)
    return Keys(column=column, name=alias, where=conditions[0] if conditions else None)


def _top(
    select: Any,
    names: Names,
    items: Sequence[tuple[Any, str]],
    by: Sequence[str],
    conditions: tuple[str, ...],
) -> Query:
    """The most common cells, by how many people are in them."""
    from sqlglot import exp

    order, limit = select.args.get("order"), select.args.get("limit")
    part = "order" if order is not None else "limit"
    if order is None or limit is None or len(order.expressions) != 1 or not by:
        raise refused_clause(part, select.args[part])
    ordered, most = order.expressions[0], limit.expression
    counts = isinstance(ordered.this, exp.Count) and ordered.args.get("desc")
    if not counts or not isinstance(most, exp.Literal) or not most.this.isdigit():
        raise refused_clause("order", order)
    counted = query_of(ordered.this, Asking(names, (), ()), "")
    if counted.kind != "count" or not all(_is_group(node, names, by) for node, _ in items):
        raise refused_clause("order", order)
    where = conditions[0] if conditions else None
    return Top(by=by[0] if len(by) == 1 else tuple(by), k=int(most.this), where=where)


def _named_apart(queries: Sequence[Query]) -> tuple[Query, ...]:
    """Answers are found by name, so nothing may be asked twice."""
    seen: set[str] = set()
    for query in queries:
        if query.name in seen:
            raise refused("made of different aggregates, or of different names", repr(query.name))
        seen.add(query.name)
    return tuple(queries)
