"""SQL as a way to ask: one SELECT becomes the queries that a scenario would name.

A clause that is not read here is refused by name; none is dropped. SELECT lists columns of GROUP BY
and aggregates, and each aggregate is a query; `SELECT DISTINCT column` is the query `keys`, and
`ORDER BY COUNT(DISTINCT privacy_unit) DESC LIMIT k` of columns alone is `top`.
`COUNT(DISTINCT privacy_unit)` counts people and is a `count`; `COUNT(*)` counts rows, at most the
scenario's `max_rows_per_group` of a person, and is `rows`. `VAR_POP` is a `variance`, whose divisor
is the number of rows; the sample's variance is refused, since it is another number.

Joins are those that the scenario declares, and no others. A table of the same people is joined on
the privacy unit, as `[[tables]]` joins it: LEFT JOIN keeps everyone, and JOIN those who have a row
there, which a condition says. A public table is looked up by its key, and keeps every row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput, LazyModule, Mistakes, require_extras
from whosin.exact import rational
from whosin.release import queries as kinds
from whosin.release.column_expressions import base_column
from whosin.release.conditions import (
    TEXT_HINT,
    SqlMistakes,
    check_length,
    check_size,
    unknown_column,
)
from whosin.release.contribution_bounds import eligible_rows
from whosin.release.domains import Dates
from whosin.release.queries import Query
from whosin.release.queries.base import MAX_NAME_LENGTH, Linear
from whosin.release.related_tables import JOIN_REASON, PrivateTable
from whosin.release.row_values import describe_node, describe_parse_failure, short_text
from whosin.release.table import Table

exp, sqlglot = map(LazyModule, ("sqlglot.expressions", "sqlglot"))

__all__ = ["parse_queries"]

POST_PROCESSING_HINT = "the answers are yours to sort, filter and join, which costs nothing"
FEATURES_HINT = "compute what is about each person as a feature: [[features]] in the scenario"
TOP_EXAMPLE = "SELECT ward … GROUP BY ward ORDER BY COUNT(DISTINCT patient) DESC LIMIT 3"
REFUSED_CLAUSES = {
    "with_": ("WITH", FEATURES_HINT),
    "having": ("HAVING", POST_PROCESSING_HINT),
    "order": ("ORDER BY", f"{POST_PROCESSING_HINT}; {TOP_EXAMPLE} asks for the most common"),
    "limit": ("LIMIT", POST_PROCESSING_HINT),
    "offset": ("OFFSET", POST_PROCESSING_HINT),
    "distinct": ("DISTINCT", "SELECT DISTINCT takes one declared column, by itself"),
    "windows": ("WINDOW", FEATURES_HINT),
    "qualify": ("QUALIFY", POST_PROCESSING_HINT),
    "laterals": ("LATERAL", FEATURES_HINT),
    "sample": ("TABLESAMPLE", "ask the whole table: noise is what protects people"),
    "pivots": ("PIVOT", "write GROUP BY with both columns"),
    "locks": ("FOR UPDATE", "nothing is written"),
    "into": ("INTO", "--save writes the answers"),
}
"""Parts of a SELECT that are not taken, by the parser's names for them."""
STATEMENTS_HINT = "write one SELECT: tables are read, never written"
REFUSED_FUNCTIONS = {
    "Min": "MIN and MAX would show one person's value; use QUANTILE_CONT({0}, 0.01)",
    "Max": "MIN and MAX would show one person's value; use QUANTILE_CONT({0}, 0.99)",
    "Variance": "use VAR_POP({0})",
    "Stddev": "use STDDEV_POP({0}), whose divisor is the number of rows",
    "StddevSamp": "use STDDEV_POP({0}), whose divisor is the number of rows",
    "ApproxQuantile": "use QUANTILE_CONT({0}, 0.5)",
    "ApproxDistinct": "COUNT(DISTINCT …) counts people",
    "Mode": "use SELECT {0} … ORDER BY COUNT(DISTINCT …) DESC LIMIT 1",
    "Window": FEATURES_HINT,
    "Subquery": FEATURES_HINT,
    "Case": "use COUNT(*) FILTER (WHERE …)",
    "Star": "select aggregates, such as COUNT(*): nobody's rows are shown",
}
"""Expressions of a SELECT that are not taken, with what is nearest; {0} is the column."""
ANSWERED_AGGREGATES = (
    "COUNT(*), COUNT(DISTINCT …), SUM, AVG, VAR_POP, STDDEV_POP, MEDIAN or QUANTILE_CONT of a "
    "column"
)


def refuse_statement(message: str, value: object = None, hint: str = "") -> InvalidInput:
    """The error about a statement. A message that begins with "sql" is told with its path."""
    return InvalidInput(message, field="sql", value=value, hint=hint)


def refuse_clause(part: str, node: Any) -> InvalidInput:
    """A part of a SELECT that no query has."""
    name, nearest = REFUSED_CLAUSES.get(part, (part.strip("_").upper(), ANSWERED_AGGREGATES))
    first = node[0] if isinstance(node, list) else node
    clause = name if node is True else describe_node(first)
    return refuse_statement(f"sql has {name}, which is not answered: {clause}", part, nearest)


def refuse_part(node: Any, hint: str = "", value: object = None, more: str = "") -> InvalidInput:
    """A part of a statement that is not read."""
    return refuse_statement(f"sql has {describe_node(node)}{more}", value, hint)


def refuse_expression(node: Any) -> InvalidInput:
    """An expression of a SELECT that no query answers."""
    kind = type(node).__name__
    if kind in REFUSED_FUNCTIONS:
        column = next((each.name for each in node.find_all(exp.Column)), "the column")
        hint = REFUSED_FUNCTIONS[kind].format(column)
        return refuse_part(node, hint, kind, ", which is not answered")
    hint = f"select columns of GROUP BY and {ANSWERED_AGGREGATES}"
    return refuse_statement(f"sql selects {describe_node(node)}", kind, hint)


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
    select, found = _parse_select(text), SqlMistakes(str(text))
    for part, value in select.args.items():
        if value not in (None, False, []) and part not in READ_CLAUSES:
            with found.collect_at(part.strip("_").upper(), value):
                raise refuse_clause(part, value)
    asking = _asked_table(select, table, known, found)
    if select.args.get("kind"):
        raise refuse_statement(f"sql must be a plain SELECT, not SELECT AS {select.args['kind']}")
    where, conditions = select.args.get("where"), [each.condition for each in asking.joined]
    if where is not None:
        with found.collect_at("WHERE", where):
            conditions.insert(0, asking.condition(where.this))
    asking = replace(asking, where=tuple(filter(None, conditions)))
    items = [
        (each.this, str(each.alias)) if isinstance(each, exp.Alias) else (each, "")
        for each in select.expressions
    ]
    if select.args.get("distinct"):
        found.raise_all("sql")
        return _check_queries([_keys_query(select, asking, items)], table)
    with found.collect_at("GROUP BY", select.args.get("group")):
        asking = replace(asking, by=tuple(_group_columns(select, asking, items)))
    if select.args.get("order") or select.args.get("limit"):
        with found.collect_at("ORDER BY", select.args.get("order") or select.args.get("limit")):
            top = [_top_query(select, asking, items)]
        found.raise_all("sql")
        return _check_queries(top, table)
    asked = []
    for number, (node, alias) in enumerate(items, 1):
        with found.collect_at(f"item {number} of SELECT", node):
            if not asking.is_group(node):
                asked.append(aggregate_query(node, asking, alias))
    found.raise_all("sql")
    if not 0 < len(asked) <= MAX_AGGREGATES:
        message = f"sql asks for {len(asked)} aggregates, not for 1 to {MAX_AGGREGATES}"
        raise refuse_statement(message, len(asked), f"select {ANSWERED_AGGREGATES}")
    for name, count in Counter(query.name for query in asked).items():
        if count > 1:  # answers are found by name
            hint = "leave one out, or name them with AS"
            raise refuse_statement(f"sql asks for {name!r} twice", name, hint)
    return _check_queries(asked, table)


def _asked_table(select: Any, table: Table, known: Sequence[str], found: SqlMistakes) -> Asking:
    """What FROM and JOIN name."""
    asked_table = _select_table(select)
    own = {table.name, table.name.rpartition(".")[2], str(asked_table.alias), *known} - {""}
    asking = Asking(table, frozenset(map(str.lower, own)))
    for join in select.args.get("joins") or ():
        with found.collect_at("JOIN", join):
            asking = replace(asking, joined=(*asking.joined, _read_join(join, asking)))
    with found.collect_at("FROM", asked_table):
        asking.require_table(asked_table.name, asked_table.db)
    return asking


def _check_queries(queries: list[Query], table: Table) -> tuple[Query, ...]:
    """The queries, if a release takes their conditions and columns: whoever only translates is
    told as well."""
    found = Mistakes()
    for index, query in enumerate(queries):
        with found.collect(f"queries[{index}]"):
            known = query.restrict_table(table)
            eligible_rows(known, query.where)
            with query.at_own_key():
                query.contribution_policy(known)
                if isinstance(query, Linear):
                    query.parts(known)
    found.raise_all("sql")
    return tuple(queries)


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
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        message = f"sql cannot be parsed as DuckDB's SQL: {describe_parse_failure(error, text)}"
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


def _group_columns(select: Any, asking: Asking, items: Sequence[tuple[Any, str]]) -> list[str]:
    """What GROUP BY names: columns, functions of them, positions or aliases in SELECT."""
    group = select.args.get("group")
    if group is None:
        return []
    for part, value in group.args.items():
        if value and part not in ("expressions", "all"):
            hint = "group by columns or ALL, with one statement for each grouping"
            raise refuse_part(group, hint, more=" with ROLLUP, CUBE or GROUPING SETS")
    if group.args.get("all") and not group.expressions:
        if any(isinstance(node, exp.Star) for node, _ in items):
            raise refuse_expression(exp.Star())
        plain = [node for node, _ in items if node.find(exp.AggFunc) is None]
        cells = [asking.cells(node) for node in plain if not isinstance(node, exp.Literal)]
        return list(dict.fromkeys(cells))
    result = []
    for node in group.expressions:
        if isinstance(node, exp.Literal) and not node.is_string:
            position = int(node.this) if node.this.isdigit() else 0
            if not 0 < position <= len(items):
                message = f"sql groups by position {node.this}, and SELECT has {len(items)}"
                raise refuse_statement(message, position)
            node = items[position - 1][0]
        elif isinstance(node, exp.Column) and node.name not in asking.table.columns:
            node = next((each for each, alias in items if alias == node.name), node)
        result.append(asking.cells(node))
    return list(dict.fromkeys(result))


def _keys_query(select: Any, asking: Asking, items: Sequence[tuple[Any, str]]) -> Query:
    for part in ("group", "order", "limit"):
        if select.args.get(part):
            raise refuse_clause(part, select.args[part])
    (node, alias), *others = items
    if others or not isinstance(node, exp.Column) or select.args["distinct"].args.get("on"):
        raise refuse_clause("distinct", select)
    return kinds.Keys(column=asking.column(node), name=alias, where=asking.joined_conditions())


def _top_query(select: Any, asking: Asking, items: Sequence[tuple[Any, str]]) -> Query:
    """The most common cells, by how many people are in them."""
    order, limit = select.args.get("order"), select.args.get("limit")
    part = "order" if order is not None else "limit"
    if order is None or limit is None or len(order.expressions) != 1 or not asking.by:
        raise refuse_clause(part, select.args[part])
    ordered, most = order.expressions[0], limit.expression
    counts = isinstance(ordered.this, exp.Count) and ordered.args.get("desc")
    if not counts or not isinstance(most, exp.Literal) or not most.this.isdigit():
        raise refuse_clause("order", order)
    counted = aggregate_query(ordered.this, asking, "")
    if counted.kind != "count" or not all(asking.is_group(node) for node, _ in items):
        raise refuse_clause("order", order)
    by, where = asking.grouping(), asking.joined_conditions()
    return kinds.Top(by=by, k=int(most.this), where=where)


JOIN_KINDS = {("", ""): True, ("", "INNER"): True, ("LEFT", ""): False, ("LEFT", "OUTER"): False}
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


def _read_join(join: Any, asking: Asking) -> JoinedTable:
    table, main, related = asking.table, asking.tables, asking.table.database
    people, public = ({}, {}) if related is None else (related.tables, related.lookups)
    names = {name.lower(): name for name in (*people, *public)}
    joined, side = join.this, (str(join.side).upper(), str(join.kind).upper())
    plain = isinstance(joined, exp.Table) and isinstance(joined.this, exp.Identifier)
    if not plain or joined.name.lower() not in names or joined.db:
        message = f"sql joins a table that the scenario does not declare: {describe_node(join)}"
        known = ", ".join(names.values()) or "none"
        hint = f"declare it in [[tables]]; declared so far: {known}"
        raise refuse_statement(message, hint=hint)
    if side not in JOIN_KINDS or join.method:
        raise refuse_part(join, "join with LEFT JOIN or JOIN")
    name, called = names[joined.name.lower()], str(joined.alias_or_name).lower()
    if called in main or any(called == each.called for each in asking.joined):
        raise refuse_part(join, "no table is joined twice")
    if name in people:
        further = people[name]
        assert further.privacy_unit is not None
        if not _is_join_on(join, (table.privacy_unit, further.privacy_unit), main, called):
            raise refuse_part(join, f"join on {JOIN_REASON}")
        return JoinedTable(called, further.names, _join_condition(further, JOIN_KINDS[side]))
    lookup = public[name]
    if lookup.declared.to is not None or JOIN_KINDS[side]:
        hint = f"use the columns of {name} by their names without a join, or LEFT JOIN it"
        raise refuse_part(join, hint, name)
    if not _is_join_on(join, (lookup.on, lookup.declared.key), main, called):
        raise refuse_part(join, f"join {name} on {lookup.on}, as the scenario declares it", name)
    return JoinedTable(called, {**lookup.names, lookup.declared.key: lookup.on})


def _join_condition(further: PrivateTable, there: bool) -> str:
    """What holds for the rows that a join keeps: those with a row there, or all. Where a person may
    have several rows there, each row is in a join as often, whether a column of it is named or not;
    so one is named."""
    assert further.privacy_unit is not None
    unit = '"' + further.names[further.privacy_unit].replace('"', '""') + '"'
    if there:
        return f"{unit} IS NOT NULL"
    return f"({unit} IS NOT NULL OR {unit} IS NULL)" if further.max_rows > 1 else ""


def _is_join_on(join: Any, wanted: tuple[str, str], main: frozenset[str], called: str) -> bool:
    """Whether a join is on one column of each of two tables, and nothing else. No two columns of a
    table differ in capital letters alone, so these play no part."""
    first, second = (each.lower() for each in wanted)
    using, on = join.args.get("using"), join.args.get("on")
    if using:
        return len(using) == 1 and first == second == using[0].name.lower() and on is None
    both: tuple[Any, ...] = on.unnest_operands() if isinstance(on, exp.EQ) else ()
    if not both or not all(isinstance(each, exp.Column) for each in both):
        return False
    compared = {(each.table.lower(), each.name.lower()) for each in both}
    return any(compared == {(own, first), (called, second)} for own in main)


DEFAULT_SCHEMAS = ("main", "public")
"""Schemas that need not be named."""
GROUPABLE_COLUMNS = "a declared column, or year, quarter, month, isoweek or decade of one"


@dataclass(frozen=True)
class Asking:
    """What names mean in one statement, and what all of its aggregates share.

    Attributes:
        tables: what the table is called, in small letters, and its alias.
        joined: the tables that the statement joins.
        by: what rows are grouped by.
        where: conditions that hold all at once.
    """

    table: Table
    tables: frozenset[str]
    joined: tuple[JoinedTable, ...] = ()
    by: tuple[str, ...] = ()
    where: tuple[str, ...] = ()

    def query(self, kind: Callable[..., Query], name: str, *more: str, **options: Any) -> Query:
        """A query of a kind, for the groups and rows of the statement."""
        where = self.joined_conditions(*more)
        return kind(name=name, by=self.grouping(), where=where, **options)

    def joined_conditions(self, *more: str) -> str | None:
        """The conditions of the statement and others as one."""
        conditions = [*self.where, *more]
        if len(conditions) > 1:
            return " AND ".join(f"({each})" for each in conditions)
        return conditions[0] if conditions else None

    def grouping(self) -> str | tuple[str, ...]:
        """What rows are grouped by, as a query takes it."""
        return self.by[0] if len(self.by) == 1 else self.by

    def is_group(self, node: Any) -> bool:
        """Whether something selected is what rows are grouped by."""
        if isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup | exp.Literal):
            return False
        if isinstance(node, exp.Column) and self.column(node, levels=True) not in self.by:
            message = f"sql selects {describe_node(node)}, which is not in GROUP BY"
            hint = f"group by it, or select {ANSWERED_AGGREGATES}"
            raise refuse_statement(message, node.name, hint)
        try:
            return self.cells(node) in self.by
        except InvalidInput:
            return False

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
            raise refuse_part(node, "write age, or visits.age")
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
        raise unknown_column(
            "column in sql", node.name, self.table.data, self.table.declared, TEXT_HINT
        )

    def _require_one(self, node: Any) -> None:
        """A name that is in two of the tables needs its table before it; the privacy unit is the
        same in all."""
        own, name = self.table.own, node.name.lower()
        if node.args.get("table") is not None or name == self.table.privacy_unit.lower():
            return
        others = (column.lower() for each in self.joined for column in each.columns)
        if name in map(str.lower, own) and name in others:
            hint = "put the table before it, such as visits.age"
            raise refuse_part(node, hint, node.name, ", which is a column of several tables")

    def require_table(self, name: str, schema: str = "") -> None:
        """The one table that can be asked."""
        whole = f"{schema}.{name}" if schema.lower() not in ("", *DEFAULT_SCHEMAS) else name
        if whole.lower() not in self.tables:
            own = self.table.name.rpartition(".")[2]
            message = f"sql asks the table {short_text(whole)}, and the scenario's table is {own!r}"
            hint = f"write FROM {exp.to_identifier(own).sql('duckdb')}"
            raise refuse_statement(message, whole, hint)

    def cells(self, node: Any) -> str:
        """What `by` calls the cells of a column, of a level, or of a function of one."""
        if isinstance(node, exp.Column):
            name = self.column(node, levels=True)
        elif isinstance(node, exp.Extract) and isinstance(node.expression, exp.Column):
            name = f"{node.this.name.lower()}({self.column(node.expression)})"
        elif (unit := _truncation_unit(node)) and isinstance(node.this, exp.Column):
            name = self._binned_column(node, unit)
        else:
            name = self._function(node)
        try:
            self.table.grouping(name)
        except InvalidInput as error:
            if name == base_column(name):
                raise
            message = f"sql cannot group by {describe_node(node)}: {error.message}"
            raise refuse_statement(message, name, f"group by {GROUPABLE_COLUMNS}") from None
        return name

    def _binned_column(self, node: Any, unit: str) -> str:
        """The column whose cells are the days, weeks, … that a node asks for."""
        name = self.column(node.this)
        domain = self.table.domains.get(name)
        if not isinstance(domain, Dates) or domain.edges != unit:
            hint = f'give the domain edges = "{unit}", or group by {GROUPABLE_COLUMNS}'
            raise refuse_part(node, hint, name, f", and the domain of {name} has other bins")
        return name

    def _function(self, node: Any) -> str:
        arguments = list(node.iter_expressions()) if isinstance(node, exp.Func) else []
        called = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
        if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
            raise refuse_part(node, f"group by {GROUPABLE_COLUMNS}")
        return f"{called.lower()}({self.column(arguments[0])})"

    def condition(self, node: Any) -> str:
        """A condition as `where` takes it, which checks everything else."""
        if node.find(exp.Select, exp.Subquery, exp.Exists) is not None:
            hint = "a condition is about one row; write a list, such as ward IN ('A')"
            raise refuse_part(node, hint, more=" with a subquery in WHERE")
        if (aggregate := node.find(exp.AggFunc, exp.Window)) is not None:
            hint = "a condition is about one row"
            raise refuse_part(aggregate, hint, more=" in WHERE, an aggregate")

        def plain(each: Any) -> Any:
            if not isinstance(each, exp.Column):
                return each
            name = self.column(each, levels=True)
            quoted = bool(each.this.args.get("quoted")) or "." in name
            return exp.Column(this=exp.to_identifier(name, quoted=quoted))

        return str(node.copy().transform(plain).sql(dialect="duckdb", comments=False))


def _truncation_unit(node: Any) -> str:
    """The calendar unit to which a node takes a moment, as `edges` names it; "" for none."""
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc):
        unit = str(node.args["unit"].name).lower()
        return {"week": "isoweek"}.get(unit, unit)
    return "day" if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE else ""


IGNORED_OPTIONS = {"big_int", "quoted", "is_string", "safe"}
"""What the parser adds by itself."""
LINEAR_QUERIES = {
    "Sum": kinds.Sum,
    "Avg": kinds.Mean,
    "VariancePop": kinds.Variance,
    "StddevPop": kinds.Deviation,
}
"""Queries of a linear function of a column, by the parser's name for the aggregate."""


def aggregate_query(node: Any, asking: Asking, name: str) -> Query:
    """The query that answers an aggregate."""
    name = (name or describe_node(node)[1:-1])[:MAX_NAME_LENGTH]
    more: tuple[str, ...] = ()
    if isinstance(node, exp.Filter):
        more, node = (asking.condition(node.expression.this),), node.this
    if isinstance(node, exp.CountIf):
        return asking.query(_row_query(asking), name, *more, asking.condition(node.this))
    if isinstance(node, exp.Count):
        return _count_query(node, asking, name, more)
    if isinstance(node, exp.WithinGroup):
        column, share = _percentile_column(node, asking)
        return asking.query(kinds.Quantile, name, *more, column=column, quantile=share)
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
        column = _aggregate_column(node, asking, "expression", "quantile")
        share = _read_share(node, node.args.get("quantile") or node.args.get("expression"))
        return asking.query(kinds.Quantile, name, *more, column=column, quantile=share)
    if isinstance(node, exp.Median):
        return asking.query(kinds.Median, name, *more, column=_aggregate_column(node, asking))
    kind = LINEAR_QUERIES.get(type(node).__name__)
    if kind is None:
        raise refuse_expression(node)
    return asking.query(kind, name, *more, **_linear_options(node, asking))


def _row_query(asking: Asking) -> type[Query]:
    """What counts rows, or people where each person has one row."""
    return kinds.Count if asking.table.by_row else kinds.Rows


def _count_query(node: Any, asking: Asking, name: str, more: tuple[str, ...]) -> Query:
    table, inside = asking.table, node.this
    if node.args.get("expressions"):
        raise refuse_statement(f"sql counts several things at once: {describe_node(node)}")
    if isinstance(inside, exp.Distinct):
        listed = inside.expressions
        one = len(listed) == 1 and isinstance(listed[0], exp.Column)
        if one and asking.column(listed[0]) == table.privacy_unit:
            return asking.query(kinds.Count, name, *more)
        counted = "COUNT(*)" if table.by_row else f"COUNT(DISTINCT {table.privacy_unit})"
        hint = f"{counted} counts people; SELECT DISTINCT or GROUP BY the column lists its values"
        raise refuse_part(node, hint, more=", which counts the values of a column")
    if isinstance(inside, exp.Star | exp.Literal):
        return asking.query(_row_query(asking), name, *more)
    if not isinstance(inside, exp.Column):
        raise refuse_expression(inside if isinstance(inside, exp.Case) else node)
    column = asking.column(inside)
    if column != table.privacy_unit:  # rows without a privacy unit count nowhere
        present = exp.Not(this=exp.Is(this=inside.copy(), expression=exp.Null()))
        more = (*more, asking.condition(present))
    return asking.query(_row_query(asking), name, *more)


def _aggregate_column(node: Any, asking: Asking, *others: str) -> str:
    """The column that an aggregate is of, which has nothing besides."""
    _check_options(node, *others)
    if not isinstance(node.this, exp.Column):
        raise _refuse_aggregated(node)
    return asking.column(node.this)


def _linear_options(node: Any, asking: Asking) -> dict[str, Any]:
    """The column that an aggregate is of, with what multiplies it and what is added to it."""
    _check_options(node)
    if isinstance(node.this, exp.Case | exp.If):
        raise refuse_expression(node.this)
    column, factor, offset = _read_linear(node, node.this)
    if column is None or factor == 0:
        raise _refuse_aggregated(node)
    result: dict[str, Any] = {"column": asking.column(column)}
    if factor != 1:
        result["factor"] = str(factor)
    if offset != 0:
        result["offset"] = str(offset)
    return result


def _read_linear(whole: Any, node: Any) -> tuple[Any, Fraction, Fraction]:
    """(column, factor, offset) of factor · column + offset; no column where it is a constant."""
    if isinstance(node, exp.Column):
        return node, Fraction(1), Fraction(0)
    if isinstance(node, exp.Literal) and not node.is_string:
        return None, Fraction(0), rational(str(node.this), "sql")
    if isinstance(node, exp.Paren | exp.Neg):
        sign = -1 if isinstance(node, exp.Neg) else 1
        column, factor, offset = _read_linear(whole, node.this)
        return column, sign * factor, sign * offset
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        raise _refuse_aggregated(whole)
    (first, *left), (second, *right) = (
        _read_linear(whole, each) for each in (node.this, node.expression)
    )
    if isinstance(node, exp.Add | exp.Sub) and (first is None or second is None):
        sign = -1 if isinstance(node, exp.Sub) else 1
        return first or second, left[0] + sign * right[0], left[1] + sign * right[1]
    if isinstance(node, exp.Mul) and second is None:
        return first, left[0] * right[1], left[1] * right[1]
    if isinstance(node, exp.Mul) and first is None:
        return second, left[1] * right[0], left[1] * right[1]
    if isinstance(node, exp.Div) and second is None and right[1] != 0:
        return first, left[0] / right[1], left[1] / right[1]
    raise _refuse_aggregated(whole)


def _check_options(node: Any, *others: str) -> None:
    """An aggregate of all rows, with no option that is not read."""
    if isinstance(node.this, exp.Distinct):
        raise refuse_part(node, "leave DISTINCT out")
    known = {"this", *others, *IGNORED_OPTIONS}
    if any(value and part not in known for part, value in node.args.items()):
        raise _refuse_aggregated(node)


def _refuse_aggregated(node: Any) -> InvalidInput:
    """An aggregate of what no query is about."""
    more = ", and aggregates are of a declared column; SUM, AVG, VAR_POP and STDDEV_POP also of a "
    return refuse_part(node, FEATURES_HINT, more=f"{more}multiple of it plus a constant")


def _percentile_column(node: Any, asking: Asking) -> tuple[str, str]:
    """(column, share) of PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column)."""
    order = node.expression
    ordered = order.expressions if isinstance(order, exp.Order) else []
    percentile = isinstance(node.this, exp.PercentileCont | exp.PercentileDisc)
    plain = len(ordered) == 1 and isinstance(ordered[0].this, exp.Column)
    if not percentile or not plain or ordered[0].args.get("desc"):
        raise refuse_part(node, "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY column)")
    return asking.column(ordered[0].this), _read_share(node, node.this.this)


def _read_share(node: Any, given: Any) -> str:
    if not isinstance(given, exp.Literal) or given.is_string:
        raise refuse_part(node, "give one share of a quantile, such as 0.5")
    return str(given.this)
