"""Values of rows in conditions: numbers, moments, comparisons, by rules that no row can fail.

Contract: as for `predicate`; what has no value is missing, and refusals name types and what was
asked, never a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.conditions.casts import MOMENT, cast

MOST_NESTED = 5
"""Divisions in a divisor, and casts in a cast."""
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
    "TIMESTAMPNTZ": "timestamp",
    "BOOLEAN": "boolean",
}


def number(value: Any) -> Any:
    """A column as doubles; what is no number, NaN too, is missing."""
    result = double(value)
    if value.type().is_integer() or value.type().is_boolean():
        return result
    return ibis_module().cases((result.isnan(), ibis_module().null("float64")), else_=result)


def double(value: Any) -> Any:
    """A value as doubles, NaN among them. Arithmetic keeps NaN to its end, where it is compared:
    to replace it means to name a value twice, which would double the work at each level."""
    kind = value.type()
    if kind.is_string() or kind.is_decimal():
        return cast(value, "float64")
    if kind.is_boolean() or kind.is_numeric():
        return value.cast("float64")
    raise refused("arithmetic on numbers", str(kind))


def within(value: Any, low: float, high: float) -> Any:
    """A value that is not missing, clamped; it is named once, so that no expression doubles."""
    return ibis_module().greatest(ibis_module().least(value, high), low)


def whole_steps(value: Any, step: Fraction) -> Any:
    """A number of less than 2^62 steps, rounded to whole ones.

    floor(x + ½) on doubles is the same on every engine, which their rounding functions are not.
    """
    scaled = value * float(step.denominator) / float(step.numerator)
    return (scaled + 0.5).floor().cast("int64")


def owned(rows: Any, entity: str) -> Any:
    """The rows that have an entity; NaN is none."""
    whose = rows[entity]
    present = whose.notnull()
    if whose.type().is_floating():
        present = present & ~whose.isnan()
    return rows.filter(present)


def timestamp(value: Any) -> Any:
    """A date or a moment in microseconds; what is too far away for that is missing."""
    if value.type().is_timestamp() and value.type().timezone is not None:
        raise refused("dates and times without a time zone", str(value.type()))
    return value.try_cast("timestamp(6)")


def isoweek(moment: Any) -> Any:
    """The ISO week of a moment in the years 1 to 9999; missing in others: calendars differ."""
    known = (moment.year() >= 1) & (moment.year() <= 9999)
    return ibis_module().cases((known, moment.week_of_year()), else_=ibis_module().null("int32"))


def decade(value: Any) -> Any:
    """A number rounded down to tens, exactly: a remainder is not rounded, a division would be."""
    rest = value % 10.0
    down = ibis_module().cases((rest < 0.0, rest + 10.0), else_=rest)
    return value - down


def text_with_whole(operation: Callable[[Any, Any], Any], text: Any, whole: Any) -> Any:
    """A text that spells a whole number of up to 18 digits compares with whole numbers exactly;
    another one as a double."""
    exact = operation(cast(text, "whole"), whole)
    return ibis_module().coalesce(exact, operation(number(text), double(whole)))


def alike(first: Any, second: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Two sides of a comparison as values of one type, by rules that cannot fail on a row."""
    kinds = left.type(), right.type()
    if any(kind.is_timestamp() or kind.is_date() for kind in kinds):
        return moment_of(first, left), moment_of(second, right)
    if all(kind.is_string() for kind in kinds) or all(kind.is_boolean() for kind in kinds):
        return left, right
    if all(kind.is_integer() for kind in kinds):
        return left, right
    # A truth value is not a number here: 1 < age < 3 would be one compared with the other.
    if all(kind.is_numeric() or kind.is_string() for kind in kinds):
        return number(left), number(right)
    raise refused("a comparison of two values of the same kind", f"{kinds[0]} with {kinds[1]}")


def moment_of(node: Any, value: Any) -> Any:
    """Dates compare with dates, and with texts that spell one."""
    kind = value.type()
    if kind.is_timestamp() or kind.is_date():
        return timestamp(value)
    try:
        if not kind.is_string() or not node.is_string or not re.fullmatch(MOMENT, node.this):
            raise ValueError
        moment = datetime.fromisoformat(node.this)
        if moment.tzinfo is not None:
            raise ValueError
    except ValueError:
        raise refused("a date such as '2024-01-31'", describe(node)) from None
    return ibis_module().literal(moment, "timestamp(6)")


def sql_cast(node: Any, value: Any) -> Any:
    """A value as the type that a `cast` of a condition names."""
    name = getattr(node.to.this, "name", str(node.to.this))
    if name not in CASTS or node.to.expressions:
        raise refused(f"a cast to one of {', '.join(sorted(CASTS))}", node.to.sql())
    target, kind = CASTS[name], value.type()
    if target == "float64":
        return double(value)
    if target == "int64":
        if kind.is_string():
            return cast(value, "int64")
        return value if kind.is_integer() else _whole(node, double(value))
    if target in ("date", "timestamp") and (kind.is_date() or kind.is_timestamp()):
        return timestamp(value).try_cast(target)
    # Engines spell doubles, decimals and moments in different ways.
    others = {"boolean": kind.is_boolean(), "string": kind.is_integer()}
    if not (kind.is_string() or others.get(target, False)):
        raise refused(f"something other than a cast from {kind} to {target}", describe(node))
    return cast(value, target)


def _whole(node: Any, value: Any) -> Any:
    """To the nearest, halves up, since engines round in different ways; missing where no 64 bits
    hold it, since Ibis casts what it rounds."""
    from sqlglot import exp

    if sum(1 for _ in node.this.find_all(exp.Cast, exp.TryCast)) > MOST_NESTED:
        raise refused(f"of at most {MOST_NESTED} casts in a cast", describe(node))
    fits = (value > -(2.0**62)) & (value < 2.0**62)
    return ibis_module().cases((fits, value + 0.5), else_=ibis_module().null("float64")).floor()


def describe(node: Any) -> str:
    import sqlglot

    return short(node.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE))


def short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


def refused(accepted: str, got: str) -> InvalidInput:
    return InvalidInput("where", accepted, got)


def ibis_module() -> Any:
    import ibis

    return ibis
