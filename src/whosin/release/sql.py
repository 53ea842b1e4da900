"""SQL as a way to ask: one SELECT becomes the queries that a scenario would name.

One SELECT as queries: what is read of it, clause by clause. A clause that is not read here is
refused by name; none is dropped. SELECT lists columns of GROUP BY and aggregates, and each
aggregate is a query; `SELECT DISTINCT column` is the query `keys`, and `ORDER BY COUNT(DISTINCT
privacy_unit) DESC LIMIT k` of columns alone is `top`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from whosin.errors import InvalidInput, at
from whosin.extras import LazyModule, require_extras
from whosin.release.conditions import check_length, check_size
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
    refuse_part,
    refuse_statement,
    resolve_names,
)
from whosin.release.table import Table

exp, sqlglot = map(LazyModule, ("sqlglot.expressions", "sqlglot"))

__all__ = ["parse_queries"]

READ_CLAUSES = frozenset(
    ["expressions", "from_", "joins", "where", "group", "distinct", "order", "limit", "kind"]
)
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
    asked_table = _select_table(select)
    joins = select.args.get("joins") or ()
    names = resolve_names(table, str(asked_table.alias), tuple(known), joins)
    names.require_table(asked_table.name, asked_table.db)
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
        message = f"sql asks for {len(asked)} aggregates, not for 1 to {MAX_AGGREGATES}"
        raise refuse_statement(message, len(asked), f"select {ANSWERED_AGGREGATES}")
    if twice := next((name for name, n in Counter(q.name for q in asked).items() if n > 1), None):
        hint = "leave one out, or name them with AS"  # answers are found by name
        raise refuse_statement(f"sql asks for {twice!r} twice", twice, hint)
    return _check_queries(tuple(asked), table)


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
    if not isinstance(text, str) or not text.strip():
        hint = "for example SELECT COUNT(*) FROM visits"
        raise refuse_statement("sql must be a SELECT", text, hint)
    check_length(text, refuse_statement)
    try:
        words = sqlglot.tokenize(text, read="duckdb")
        if words and (start := words[0].text).upper() not in STATEMENT_STARTS:
            raise refuse_statement(f"sql begins with {short_text(start)}", start, STATEMENTS_HINT)
        parsed = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        message = f"sql cannot be parsed as DuckDB's SQL: {short_text(text)}"
        raise refuse_statement(message, text) from None
    if len(parsed) != 1:
        raise refuse_statement(f"sql must be one statement, not {len(parsed)}", len(parsed))
    statement = parsed[0]
    check_size(statement, refuse_statement)
    name = statement.key.upper()
    if isinstance(statement, exp.SetOperation):
        hint = f"ask each by itself: {POST_PROCESSING_HINT}"
        raise refuse_statement(f"sql combines several SELECTs with {name}", name, hint)
    if not isinstance(statement, exp.Select):
        raise refuse_statement(f"sql has {name}", name, STATEMENTS_HINT)
    if (window := statement.find(exp.Window)) is not None:
        raise refuse_expression(window)
    if statement.find(exp.Placeholder, exp.Parameter) is not None:
        raise refuse_statement("sql has a placeholder such as ? or $1", hint="write the value")
    return statement


def _select_table(select: Any) -> Any:
    source = select.args.get("from_")
    if source is None:
        raise refuse_statement(f"sql has no FROM: {describe_node(select)}")
    table = source.this
    if isinstance(table, exp.Subquery):
        raise refuse_part(source, FEATURES_HINT, more=", which is not the table")
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise refuse_part(source, "write FROM and the name of the table")
    for part, value in table.args.items():
        if value and part not in ("this", "db", "alias"):
            raise refuse_clause(part, value)
    alias = table.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse_part(alias, "keep the names of the columns")
    return table


def _select_item(node: Any) -> tuple[Any, str]:
    """(what is selected, what to call it)."""

    if isinstance(node, exp.Alias):
        return node.this, str(node.alias)
    return node, ""


def _group_columns(select: Any, names: NameScope, items: Sequence[tuple[Any, str]]) -> list[str]:
    """What GROUP BY names: columns, functions of them, positions or aliases in SELECT."""

    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part not in ("expressions", "all"):
            hint = "group by columns or ALL, with one statement for each grouping"
            raise refuse_part(group, hint, more=" with ROLLUP, CUBE or GROUPING SETS")
    if group.args.get("all") and not group.expressions:
        plain = [node for node, _ in items if _is_group_candidate(node)]
        return list(dict.fromkeys(names.cells(node) for node in plain))
    result = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.this) if node.this.isdigit() else 0
            if not 0 < position <= len(items):
                message = f"sql groups by position {node.this}, and SELECT has {len(items)}"
                raise refuse_statement(message, position)
            node = items[position - 1][0]
        elif isinstance(node, exp.Column) and node.name not in names.table.columns:
            node = next((each for each, alias in items if alias == node.name), node)
        result.append(names.cells(node))
    return list(dict.fromkeys(result))


def _is_group_candidate(node: Any) -> bool:
    """Whether GROUP BY ALL groups by something selected: by what is no aggregate or constant."""

    if isinstance(node, exp.Star):
        raise refuse_expression(node)
    return not isinstance(node, exp.Literal) and node.find(exp.AggFunc) is None


def _is_group(node: Any, names: NameScope, by: Sequence[str]) -> bool:
    """Whether something selected is what rows are grouped by."""

    if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Literal):
        return False
    if isinstance(node, exp.Column) and names.column(node, levels=True) not in by:
        message = f"sql selects {describe_node(node)}, which is not in GROUP BY"
        raise refuse_statement(message, node.name, f"group by it, or select {ANSWERED_AGGREGATES}")
    try:
        return names.cells(node) in by
    except InvalidInput:
        return False


def _keys_query(select: Any, names: NameScope, conditions: tuple[str, ...]) -> Query:
    others = [part for part in ("group", "order", "limit") if select.args.get(part)]
    if others:
        raise refuse_clause(others[0], select.args[others[0]])
    listed = [_select_item(each) for each in select.expressions]
    distinct = select.args["distinct"]
    if len(listed) != 1 or not isinstance(listed[0][0], exp.Column) or distinct.args.get("on"):
        raise refuse_clause("distinct", select)
    node, alias = listed[0]
    return Keys(column=names.column(node), name=alias, where=conditions[0] if conditions else None)


def _top_query(
    select: Any,
    names: NameScope,
    items: Sequence[tuple[Any, str]],
    by: Sequence[str],
    conditions: tuple[str, ...],
) -> Query:
    """The most common cells, by how many people are in them."""

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
