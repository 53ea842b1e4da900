"""`where`: a condition on one row, in SQL's words, translated node by node to Ibis.

Contract: only what is listed here is accepted (no subqueries, aggregates, windows, files, or
functions that are not listed), and every operation is total: arithmetic is in doubles, a division
by zero, a bad cast, a missing value or NaN makes the condition false on that row, without an error.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.casts import cast

LONGEST = 10_000
CASTS = {
    "INT": "int64",
    "BIGINT": "int64",
    "DOUBLE": "float64",
    "FLOAT": "float64",
    "DECIMAL": "float64",
    "VARCHAR": "string",
    "TEXT": "string",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "BOOLEAN": "boolean",
}


def condition(text: object, table: Any) -> Any:
    """An Ibis condition on the rows of a table, false where it cannot be decided.

    Raises:
        InvalidInput: not a row expression, by its text and the schema alone.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise _refused("a condition in words of SQL", repr(text))
    if len(text) > LONGEST:
        raise _refused(f"at most {LONGEST} letters", f"{len(text)}")
    try:
        parsed = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise _refused("a condition such as age >= 65 and ward = 'A'", repr(text)) from None
    if len(parsed) != 1 or parsed[0] is None:
        raise _refused("one condition", repr(text))
    try:
        found = _translate(parsed[0], table)
    except RecursionError:
        raise _refused("a condition of fewer parts", f"{len(text)} letters") from None
    if not found.type().is_boolean():
        raise _refused("a condition, true or false", f"{text!r}, which is a value")
    return found.fill_null(False)


def number(value: Any) -> Any:
    """A column as doubles; what is no number, NaN too, is missing."""
    import ibis

    kind = value.type()
    if kind.is_string():
        value = cast(value, "float64")
    elif kind.is_boolean() or kind.is_numeric():
        value = value.cast("float64")
    else:
        raise _refused("arithmetic on numbers", str(kind))
    return ibis.cases((value.isnan(), ibis.null("float64")), else_=value)


def _translate(node: Any, table: Any) -> Any:
    rule = _rules().get(type(node))
    if rule is None:
        words = "a row expression: comparisons, and/or/not, in, between, like, arithmetic"
        raise _refused(words, _describe(node))
    return rule(node, table)


def _rules() -> dict[type, Callable[[Any, Any], Any]]:
    from sqlglot import exp

    return {
        exp.Column: _column,
        exp.Literal: _literal,
        exp.Boolean: lambda node, _: _ibis().literal(bool(node.this)),
        exp.Null: lambda node, _: _ibis().null("boolean"),
        exp.Paren: lambda node, table: _translate(node.this, table),
        exp.And: lambda node, table: _truth(node.this, table) & _truth(node.expression, table),
        exp.Or: lambda node, table: _truth(node.this, table) | _truth(node.expression, table),
        exp.Not: lambda node, table: ~_truth(node.this, table),
        exp.EQ: _compare(lambda a, b: a == b),
        exp.NEQ: _compare(lambda a, b: a != b),
        exp.GT: _compare(lambda a, b: a > b),
        exp.GTE: _compare(lambda a, b: a >= b),
        exp.LT: _compare(lambda a, b: a < b),
        exp.LTE: _compare(lambda a, b: a <= b),
        exp.Between: _between,
        exp.In: _in,
        exp.Is: _is,
        exp.Like: lambda node, table: _text(node.this, table).like(_pattern(node)),
        exp.ILike: lambda node, table: _text(node.this, table).ilike(_pattern(node)),
        exp.Add: _arithmetic(lambda a, b: a + b),
        exp.Sub: _arithmetic(lambda a, b: a - b),
        exp.Mul: _arithmetic(lambda a, b: a * b),
        exp.Div: _arithmetic(lambda a, b: a / b.nullif(0.0)),
        exp.Neg: lambda node, table: -_translate_number(node.this, table),
        exp.Abs: lambda node, table: _translate_number(node.this, table).abs(),
        exp.Lower: lambda node, table: _text(node.this, table).lower(),
        exp.Upper: lambda node, table: _text(node.this, table).upper(),
        exp.Trim: lambda node, table: _text(node.this, table).strip(),
        exp.Length: lambda node, table: _text(node.this, table).length(),
        exp.Cast: _cast,
        exp.TryCast: _cast,
        exp.Year: lambda node, table: _date(node.this, table).year(),
        exp.Month: lambda node, table: _date(node.this, table).month(),
        exp.Day: lambda node, table: _date(node.this, table).day(),
        exp.Extract: _extract,
    }


def _ibis() -> Any:
    import ibis

    return ibis


def _column(node: Any, table: Any) -> Any:
    if node.table:
        raise _refused("columns of this table", node.sql())
    if node.name not in table.columns:
        raise UnknownName("column in where", node.name, table.columns)
    value = table[node.name]
    return number(value) if value.type().is_floating() else value


def _literal(node: Any, table: Any) -> Any:
    if node.is_string:
        return _ibis().literal(node.this)
    if node.this.isdigit() and len(node.this) < 19:
        return _ibis().literal(int(node.this), "int64")
    try:
        return _ibis().literal(float(node.this), "float64")
    except ValueError:
        raise _refused("numbers such as 1.5", node.this) from None


def _truth(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_boolean():
        raise _refused("conditions between and, or, not", node.sql())
    return value


def _text(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_string():
        raise _refused("a column of texts for like, lower, …", node.sql())
    return value


def _date(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_temporal() or value.type().is_time():
        raise _refused("a column of dates for year, month, day", node.sql())
    return value


def _translate_number(node: Any, table: Any) -> Any:
    return number(_translate(node, table))


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(node: Any, table: Any) -> Any:
        left = _translate_number(node.this, table)
        # inf − inf and 0 · inf are NaN again, which counts as missing.
        return number(operation(left, _translate_number(node.expression, table)))

    return rule


def _compare(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(node: Any, table: Any) -> Any:
        return operation(*_alike(node.this, node.expression, table))

    return rule


def _alike(first: Any, second: Any, table: Any) -> tuple[Any, Any]:
    """Two sides of a comparison as values of one type, by rules that cannot fail on a row."""
    left, right = _translate(first, table), _translate(second, table)
    kinds = left.type(), right.type()
    if any(kind.is_timestamp() or kind.is_date() for kind in kinds):
        return _moment(first, left, second, right)
    if all(kind.is_string() for kind in kinds) or all(kind.is_boolean() for kind in kinds):
        return left, right
    if all(kind.is_integer() for kind in kinds):
        return left, right
    if all(kind.is_numeric() or kind.is_boolean() or kind.is_string() for kind in kinds):
        return number(left), number(right)
    raise _refused("a comparison of like with like", f"{kinds[0]} with {kinds[1]}")


def _moment(first: Any, left: Any, second: Any, right: Any) -> tuple[Any, Any]:
    """Dates compare with dates, and with texts that spell one."""
    values = []
    for node, value in ((first, left), (second, right)):
        kind = value.type()
        if kind.is_string():
            if not node.is_string:
                raise _refused("a date such as '2024-01-31'", node.sql())
            try:
                moment = datetime.fromisoformat(node.this)
            except ValueError:
                raise _refused("a date such as '2024-01-31'", node.sql()) from None
            values.append(_ibis().literal(moment.replace(tzinfo=None), "timestamp"))
        elif kind.is_timestamp() or kind.is_date():
            values.append(value.cast("timestamp"))
        else:
            raise _refused("dates compared with dates", node.sql())
    return values[0], values[1]


def _between(node: Any, table: Any) -> Any:
    value, low = _alike(node.this, node.args["low"], table)
    other, high = _alike(node.this, node.args["high"], table)
    return (value >= low) & (other <= high)


def _in(node: Any, table: Any) -> Any:
    if not node.expressions or node.args.get("query") is not None:
        raise _refused("in with a list of values", node.sql()[:80])
    found = None
    for each in node.expressions:
        left, right = _alike(node.this, each, table)
        equal = left == right
        found = equal if found is None else found | equal
    return found


def _is(node: Any, table: Any) -> Any:
    from sqlglot import exp

    value = _translate(node.this, table)
    if isinstance(node.expression, exp.Null):
        return value.isnull()
    if isinstance(node.expression, exp.Boolean) and value.type().is_boolean():
        return value.fill_null(not node.expression.this) == bool(node.expression.this)
    raise _refused("is null, is true or is false", node.sql())


def _pattern(node: Any) -> str:
    pattern = node.expression
    if not pattern.is_string or "\\" in pattern.this:
        raise _refused("like with a plain pattern such as 'A%'", pattern.sql())
    return str(pattern.this)


def _cast(node: Any, table: Any) -> Any:
    name = node.to.this.name if hasattr(node.to.this, "name") else str(node.to.this)
    if name not in CASTS:
        raise _refused(f"a cast to one of {', '.join(sorted(CASTS))}", node.to.sql())
    return cast(_translate(node.this, table), CASTS[name])


def _extract(node: Any, table: Any) -> Any:
    part = node.this.name.lower()
    if part not in ("year", "month", "day"):
        raise _refused("year, month or day", part)
    return getattr(_date(node.expression, table), part)()


def _describe(node: Any) -> str:
    text = node.sql()
    return repr(text if len(text) <= 60 else text[:57] + "…")


def _refused(accepted: str, got: str) -> InvalidInput:
    return InvalidInput("where", accepted, got)
