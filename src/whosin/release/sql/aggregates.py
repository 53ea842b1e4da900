"""Aggregates of SQL as queries.

`COUNT(DISTINCT entity)` counts people and is a `count`; `COUNT(*)` counts rows, at most the
scenario's `rows` of a person, and is `rows`. `VAR_POP` is a `variance`, whose divisor is the number
of rows; the sample's variance is refused, since it is another number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.release.conditions.row_values import describe
from whosin.release.queries import Count, Mean, Median, Quantile, Query, Rows, Sum, Variance
from whosin.release.queries.base import LONGEST_NAME
from whosin.release.sql.names import Names
from whosin.release.sql.refusals import refused, refused_value

NOTES = {"big_int", "quoted", "is_string", "safe"}
"""What the parser adds by itself."""


@dataclass(frozen=True)
class Asking:
    """What all aggregates of a statement share."""

    names: Names
    by: tuple[str, ...]
    where: tuple[str, ...]

    def query(self, kind: Callable[..., Query], name: str, *more: str, **options: Any) -> Query:
        """A query of a kind, for the groups and rows of the statement."""
        conditions = [*self.where, *more]
        joined = " AND ".join(f"({each})" for each in conditions)
        where = None if not conditions else conditions[0] if len(conditions) == 1 else joined
        by: Sequence[str] | str = self.by[0] if len(self.by) == 1 else self.by
        return kind(name=name, by=by, where=where, **options)


def query_of(node: Any, asking: Asking, name: str) -> Query:
    """The query that answers an aggregate."""
    from sqlglot import exp

    name = (name or describe(node)[1:-1])[:LONGEST_NAME]
    more: tuple[str, ...] = ()
    if isinstance(node, exp.Filter):
        more, node = (asking.names.condition(node.expression.this),), node.this
    if isinstance(node, exp.CountIf):
        return asking.query(_rows(asking), name, *more, asking.names.condition(node.this))
    if isinstance(node, exp.Count):
        return _count(node, asking, name, more)
    if isinstance(node, exp.WithinGroup):
        column, share = _within_group(node, asking)
        return asking.query(Quantile, name, *more, column=column, quantile=share)
    if isinstance(node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc):
        column = _column(node, asking, "expression", "quantile")
        share = _share(node, node.args.get("quantile") or node.args.get("expression"))
        return asking.query(Quantile, name, *more, column=column, quantile=share)
    kinds = {exp.Sum: Sum, exp.Avg: Mean, exp.VariancePop: Variance, exp.Median: Median}
    for kind, query in kinds.items():
        if type(node) is kind:
            return asking.query(query, name, *more, column=_column(node, asking))
    raise refused_value(node)


def _rows(asking: Asking) -> type[Query]:
    """What counts rows, or people where each person has one row."""
    return Count if asking.names.table.by_row else Rows


def _count(node: Any, asking: Asking, name: str, more: tuple[str, ...]) -> Query:
    from sqlglot import exp

    names, inside = asking.names, node.this
    table = names.table
    if node.args.get("expressions"):
        raise refused("COUNT of one thing", describe(node))
    if isinstance(inside, exp.Distinct):
        listed = inside.expressions
        one = len(listed) == 1 and isinstance(listed[0], exp.Column)
        if one and names.column(listed[0]) == table.entity:
            return asking.query(Count, name, *more)
        counted = "COUNT(*)" if table.by_row else f"COUNT(DISTINCT {table.entity})"
        raise refused(
            f"{counted}, which counts people; the values of a column: SELECT DISTINCT of it, or "
            "GROUP BY it",
            describe(node),
        )
    if isinstance(inside, exp.Star | exp.Literal):
        return asking.query(_rows(asking), name, *more)
    if not isinstance(inside, exp.Column):
        raise refused_value(inside if isinstance(inside, exp.Case) else node)
    column = names.column(inside)
    if column != table.entity:  # rows without an entity count nowhere
        present = exp.Not(this=exp.Is(this=inside.copy(), expression=exp.Null()))
        more = (*more, names.condition(present))
    return asking.query(_rows(asking), name, *more)


def _column(node: Any, asking: Asking, *others: str) -> str:
    """The column that an aggregate is of, which has nothing besides."""
    from sqlglot import exp

    known = {"this", *others, *NOTES}
    extra = next((part for part, value in node.args.items() if value and part not in known), None)
    if isinstance(node.this, exp.Distinct):
        raise refused("about all rows, without DISTINCT in an aggregate", describe(node))
    if extra is not None or not isinstance(node.this, exp.Column):
        accepted = "about a declared column in each aggregate, not an expression: a scenario's "
        accepted += "[[features]] computes one for each person"
        raise refused(accepted, describe(node))
    return asking.names.column(node.this)


def _within_group(node: Any, asking: Asking) -> tuple[str, str]:
    """(column, share) of PERCENTILE_CONT(share) WITHIN GROUP (ORDER BY column)."""
    from sqlglot import exp

    order = node.expression
    ordered = order.expressions if isinstance(order, exp.Order) else []
    percentile = isinstance(node.this, exp.PercentileCont | exp.PercentileDisc)
    plain = len(ordered) == 1 and isinstance(ordered[0].this, exp.Column)
    if not percentile or not plain or ordered[0].args.get("desc"):
        raise refused("PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a column)", describe(node))
    return asking.names.column(ordered[0].this), _share(node, node.this.this)


def _share(node: Any, given: Any) -> str:
    from sqlglot import exp

    if not isinstance(given, exp.Literal) or given.is_string:
        raise refused("one share of a quantile, such as 0.5", describe(node))
    return str(given.this)
