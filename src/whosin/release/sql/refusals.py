"""What SQL has and no query answers: each with the nearest that can be asked."""

from __future__ import annotations

from typing import Any

from whosin.errors import InvalidInput
from whosin.release.conditions.row_values import describe

AFTERWARDS = "the answers are yours to sort, filter and join, which costs nothing"
FEATURES = "what is computed for each person first is a feature: [[features]] in the scenario"
CLAUSES = {
    "with_": ("WITH", FEATURES),
    "having": ("HAVING", AFTERWARDS),
    "order": (
        "ORDER BY",
        f"{AFTERWARDS}; SELECT ward … GROUP BY ward ORDER BY COUNT(DISTINCT patient) DESC LIMIT 3 "
        "asks for the most common",
    ),
    "limit": ("LIMIT", AFTERWARDS),
    "offset": ("OFFSET", AFTERWARDS),
    "distinct": ("DISTINCT", "SELECT DISTINCT of one declared column, by itself"),
    "windows": ("WINDOW", FEATURES),
    "qualify": ("QUALIFY", AFTERWARDS),
    "laterals": ("LATERAL", FEATURES),
    "sample": ("TABLESAMPLE", "the whole table: noise is what protects people"),
    "pivots": ("PIVOT", "GROUP BY both columns"),
    "locks": ("FOR UPDATE", "nothing is written"),
    "into": ("INTO", "--save writes the answers"),
}
"""Parts of a SELECT that are not taken, by the parser's names for them."""
STATEMENTS = "one SELECT: tables are read, never written"
FUNCTIONS = {
    "Min": "MIN and MAX show one person's value: QUANTILE_CONT({0}, 0.01)",
    "Max": "MIN and MAX show one person's value: QUANTILE_CONT({0}, 0.99), or the query maximum",
    "Variance": "VAR_POP({0})",
    "Stddev": "VAR_POP({0}), and its root afterwards",
    "StddevPop": "VAR_POP({0}), and its root afterwards",
    "StddevSamp": "VAR_POP({0}), and its root afterwards",
    "ApproxQuantile": "QUANTILE_CONT({0}, 0.5)",
    "ApproxDistinct": "COUNT(DISTINCT …) of the people",
    "Mode": "SELECT {0} … ORDER BY COUNT(DISTINCT …) DESC LIMIT 1",
    "Window": FEATURES,
    "Subquery": FEATURES,
    "Case": "COUNT(*) FILTER (WHERE …)",
    "Star": "aggregates, such as COUNT(*): nobody's rows are shown",
}
"""Expressions of a SELECT that are not taken, with what is nearest; {0} is the column."""
AGGREGATES = "COUNT(*), COUNT(DISTINCT …), SUM, AVG, VAR_POP, MEDIAN or QUANTILE_CONT of a column"


def refused(accepted: str, got: str) -> InvalidInput:
    """The error about a statement."""
    return InvalidInput("sql", accepted, got)


def refused_clause(part: str, node: Any) -> InvalidInput:
    """A part of a SELECT that no query has."""
    name, nearest = CLAUSES.get(part, (part.strip("_").upper(), AGGREGATES))
    clause = describe(node[0] if isinstance(node, list) else node) if node is not True else name
    return refused(f"free of {name}: {nearest}", clause)


def refused_value(node: Any) -> InvalidInput:
    """An expression of a SELECT that no query answers."""
    kind = type(node).__name__
    if kind in FUNCTIONS:
        inner = node.find_all(type(_column()))
        column = next((each.name for each in inner), "the column")
        return refused(f"asked in another way: {FUNCTIONS[kind].format(column)}", describe(node))
    return refused(f"made of columns of GROUP BY and of {AGGREGATES}", describe(node))


def _column() -> Any:
    from sqlglot import exp

    return exp.Column(this=exp.to_identifier("x"))
