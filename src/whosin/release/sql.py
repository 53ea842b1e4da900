"""SQL as a way to ask: one SELECT becomes the queries that a scenario would name.

One SELECT as queries: what is read of it, clause by clause. A clause that is not read here is
refused by name; none is dropped. SELECT lists columns of GROUP BY and aggregates, and each
aggregate is a query; `SELECT DISTINCT column` is the query `keys`, and `ORDER BY COUNT(DISTINCT
privacy_unit) DESC LIMIT k` of columns alone is `top`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whosin.errors import InvalidInput, at, spell
from whosin.extras import require_extras
from whosin.release.conditions import MAX_CONDITION_LENGTH, check_size
from whosin.release.contribution_bounds import eligible_rows
from whosin.release.queries import Keys, Query, Top
from whosin.release.queries.base import Linear
from whosin.release.row_values import describe_node, short_text
from whosin.release.sql_names import (
    ANSWERED_AGGREGATES,
    FEATURES_HINT,
    POST_PROCESSING_HINT,
    STATEMENTS_HINT,
    AggregateRequest,
    NameScope,
    aggregate_query,
    refuse_clause,
    refuse_expression,
    refuse_statement,
    resolve_names,
)
from whosin.release.table import Table

__all__ = [
    "parse_queries",
]


READ_CLAUSES = {
    "expressions",
    "from_",
    "joins",
    "where",
    "group",
    "distinct",
    "order",
    "limit",
    "kind",
}
STATEMENT_STARTS = ("SELECT", "WITH", "FROM", "(")
"""How a statement begins that may be a SELECT."""
MAX_AGGREGATES = 200
"""Aggregates of one statement."""


def parse_queries(text: object, table: Table, known: Sequence[str] = ()) -> tuple[Query, ...]:
    """The queries that a SELECT asks of a table.

    Args:
        known: what the table may also be called.

    Raises:
        InvalidInput: no query answers it; by its text, the schema and the domains alone.
    """
    select = _parse_select(text)
    for part, value in select.args.items():
        if value not in (None, False, []) and part not in READ_CLAUSES:
            raise refuse_clause(part, value)
    names = resolve_names(table, _table_alias(select), tuple(known), select.args.get("joins") or ())
    names.require_table(_select_table(select).name, _select_table(select).db)
    if select.args.get("kind"):
        raise refuse_statement(f"sql must be a plain SELECT, not SELECT AS {select.args['kind']}")
    where = select.args.get("where")
    kept = [each.condition for each in names.joined if each.condition]
    if where is not None:
        kept.insert(0, f"({names.condition(where.this)})" if kept else names.condition(where.this))
    conditions = (" AND ".join(kept),) if kept else ()
    if select.args.get("distinct"):
        return _check_queries((_keys_query(select, names, conditions),), table)
    items = [_select_item(each) for each in select.expressions]
    by = _group_columns(select, names, items)
    if select.args.get("order") or select.args.get("limit"):
        return _check_queries((_top_query(select, names, items, by, conditions),), table)
    asking = AggregateRequest(names, tuple(by), conditions)
    asked = [
        aggregate_query(node, asking, alias)
        for node, alias in items
        if not _is_group(node, names, by)
    ]
    if not 0 < len(asked) <= MAX_AGGREGATES:
        raise refuse_statement(
            f"sql asks for {len(asked)} aggregates; one statement may ask for 1 to "
            f"{MAX_AGGREGATES}",
            len(asked),
            f"select {ANSWERED_AGGREGATES}",
        )
    return _check_queries(_require_different_names(asked), table)


def _check_queries(queries: tuple[Query, ...], table: Table) -> tuple[Query, ...]:
    """The queries, if a release takes their conditions and columns: whoever only translates is
    told as well."""
    for index, query in enumerate(queries):
        with at(f"queries[{index}]"):
            known = query.restrict_table(table)
            eligible_rows(known, query.where)
            with query.at_own_key():
                query.contribution_policy(known)
                if isinstance(query, Linear):
                    query.parts(known)
    return queries


def _parse_select(text: object) -> Any:
    """The only statement of a text, if it is a SELECT."""
    require_extras("release")
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise refuse_statement(
            "sql must be a SELECT", text, "for example SELECT COUNT(*) FROM visits"
        )
    if len(text) > MAX_CONDITION_LENGTH:
        raise refuse_statement(
            f"sql has {spell(len(text))} characters; at most {spell(MAX_CONDITION_LENGTH)} are "
            "read",
            len(text),
        )
    try:
        words = sqlglot.tokenize(text, read="duckdb")
        if words and words[0].text.upper() not in STATEMENT_STARTS:
            raise refuse_statement(
                f"sql begins with {short_text(words[0].text)}", words[0].text, STATEMENTS_HINT
            )
        parsed = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    except (SqlglotError, RecursionError):
        raise refuse_statement(
            f"sql cannot be parsed as DuckDB's SQL: {short_text(text)}", text
        ) from None
    if len(parsed) != 1:
        raise refuse_statement(f"sql must be one statement, not {len(parsed)}", len(parsed))
    statement = parsed[0]
    check_size(statement, refuse_statement)
    if isinstance(statement, exp.SetOperation):
        raise refuse_statement(
            f"sql combines several SELECTs with {statement.key.upper()}",
            statement.key.upper(),
            f"ask each by itself: {POST_PROCESSING_HINT}",
        )
    if not isinstance(statement, exp.Select):
        raise refuse_statement(
            f"sql has {statement.key.upper()}", statement.key.upper(), STATEMENTS_HINT
        )
    for kind in (exp.Window, exp.Placeholder, exp.Parameter):
        if (node := statement.find(kind)) is not None:
            if kind is exp.Window:
                raise refuse_expression(node)
            raise refuse_statement("sql has a placeholder such as ? or $1", hint="write the value")
    return statement


def _select_table(select: Any) -> Any:
    from sqlglot import exp

    source = select.args.get("from_")
    if source is None:
        raise refuse_statement(f"sql has no FROM: {describe_node(select)}")
    if isinstance(source.this, exp.Subquery):
        raise refuse_statement(
            f"sql selects FROM {describe_node(source.this)}, which is not the table",
            hint=FEATURES_HINT,
        )
    if not isinstance(source.this, exp.Table) or not isinstance(source.this.this, exp.Identifier):
        raise refuse_statement(
            f"sql has {describe_node(source)}", hint="write FROM and the name of the table"
        )
    for part, value in source.this.args.items():
        if value and part not in ("this", "db", "alias"):
            raise refuse_clause(part, value)
    return source.this


def _table_alias(select: Any) -> str:
    """What the statement calls the table."""
    table = _select_table(select)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse_statement(
            f"sql renames the columns of the table: {describe_node(alias)}", hint="keep their names"
        )
    return str(table.alias)


def _select_item(node: Any) -> tuple[Any, str]:
    """(what is selected, what to call it)."""
    from sqlglot import exp

    if isinstance(node, exp.Alias):
        return node.this, str(node.alias)
    return node, ""


def _group_columns(select: Any, names: NameScope, items: Sequence[tuple[Any, str]]) -> list[str]:
    """What GROUP BY names: columns, functions of them, positions or aliases in SELECT."""
    from sqlglot import exp

    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part not in ("expressions", "all"):
            raise refuse_statement(
                f"sql has ROLLUP, CUBE or GROUPING SETS: {describe_node(group)}",
                hint="group by columns or ALL, with one statement for each grouping",
            )
    if group.args.get("all") and not group.expressions:
        plain = [node for node, _ in items if _is_group_candidate(node)]
        return list(dict.fromkeys(names.cells(node) for node in plain))
    result = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.this) if node.this.isdigit() else 0
            if not 0 < position <= len(items):
                raise refuse_statement(
                    f"sql groups by position {describe_node(node)}, and SELECT has {len(items)}",
                    position,
                )
            node = items[position - 1][0]
        elif isinstance(node, exp.Column) and node.name not in names.table.columns:
            node = next((each for each, alias in items if alias == node.name), node)
        result.append(names.cells(node))
    return list(dict.fromkeys(result))


def _is_group_candidate(node: Any) -> bool:
    """Whether GROUP BY ALL groups by something selected: by what is no aggregate or constant."""
    from sqlglot import exp

    if isinstance(node, exp.Star):
        raise refuse_expression(node)
    return not isinstance(node, exp.Literal) and node.find(exp.AggFunc) is None


def _is_group(node: Any, names: NameScope, by: Sequence[str]) -> bool:
    """Whether something selected is what rows are grouped by."""
    from sqlglot import exp

    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Literal):
        return False
    if isinstance(node, exp.Column) and names.column(node, levels=True) not in by:
        raise refuse_statement(
            f"sql selects {describe_node(node)}, which is not in GROUP BY",
            node.name,
            f"group by it, or select {ANSWERED_AGGREGATES}",
        )
    try:
        return names.cells(node) in by
    except InvalidInput:
        return False


def _keys_query(select: Any, names: NameScope, conditions: tuple[str, ...]) -> Query:
    from sqlglot import exp

    others = [part for part in ("group", "order", "limit") if select.args.get(part)]
    if others:
        raise refuse_clause(others[0], select.args[others[0]])
    listed = [_select_item(each) for each in select.expressions]
    distinct = select.args["distinct"]
    if len(listed) != 1 or not isinstance(listed[0][0], exp.Column) or distinct.args.get("on"):
        raise refuse_clause("distinct", select)
    node, alias = listed[0]
    column = names.column(node)
    return Keys(column=column, name=alias, where=conditions[0] if conditions else None)


def _top_query(
    select: Any,
    names: NameScope,
    items: Sequence[tuple[Any, str]],
    by: Sequence[str],
    conditions: tuple[str, ...],
) -> Query:
    """The most common cells, by how many people are in them."""
    from sqlglot import exp

    order, limit = select.args.get("order"), select.args.get("limit")
    part = "order" if order is not None else "limit"
    if order is None or limit is None or len(order.expressions) != 1 or not by:
        raise refuse_clause(part, select.args[part])
    ordered, most = order.expressions[0], limit.expression
    counts = isinstance(ordered.this, exp.Count) and ordered.args.get("desc")
    if not counts or not isinstance(most, exp.Literal) or not most.this.isdigit():
        raise refuse_clause("order", order)
    counted = aggregate_query(ordered.this, AggregateRequest(names, (), ()), "")
    if counted.kind != "count" or not all(_is_group(node, names, by) for node, _ in items):
        raise refuse_clause("order", order)
    where = conditions[0] if conditions else None
    return Top(by=by[0] if len(by) == 1 else tuple(by), k=int(most.this), where=where)


def _require_different_names(queries: Sequence[Query]) -> tuple[Query, ...]:
    """Answers are found by name, so nothing may be asked twice."""
    seen: set[str] = set()
    for query in queries:
        if query.name in seen:
            raise refuse_statement(
                f"sql asks for {query.name!r} twice",
                query.name,
                "leave one out, or name them with AS",
            )
        seen.add(query.name)
    return tuple(queries)
