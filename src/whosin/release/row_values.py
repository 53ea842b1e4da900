"""Rows and their values in the engine: casts, comparisons and random choices that no row can make
fail.

What cannot be cast is missing. Engines differ in what they read as a number (1_000, 1d, 0x10,
Infinity), a date or a truth, and in how they round. So text is cast only where it has a plain form,
and fractions are rounded to the nearest whole number, halves up. Refusals name types and what was
asked, never a row.

Contribution bounds are kept by choosing a few rows of each group at random, looking at that group
alone, every set of the allowed size being as likely as any other. A random column, the lots, is
made first and ordered by afterwards, since engines refuse, or repeat, random numbers inside a
window. The columns of `sample_rows` and `sum_sampled_rows` have names of ours, which differ from
the names that are added here; those of `whole_rows` may have any. One row of each group is chosen
while rows are aggregated, by `arg_min(value, lot)`: one pass that holds one row a group. More are
ranked by their lots. DuckDB holds all rows of a group in memory for that, so where a group has very
many, those with large lots, which have no chance, are left out before (`_thin_large_homes`). Spark
spills by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from fractions import Fraction
from functools import cache
from math import sqrt
from typing import Any

from whosin.errors import InvalidInput, LazyModule, UnknownName
from whosin.release.engines.base import ELIGIBLE_ROWS, NUMBER_COLUMN

exp, ibis, sqlglot = map(LazyModule, ("sqlglot.expressions", "ibis", "sqlglot"))

# \z is the end; $ would be so before a last line break too, in some engines. Digits have an end,
# since other engines try all ways to divide a long row of them.
NUMBER_PATTERN = (
    r"^ {0,20}[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})([eE][+-]?[0-9]{1,2})? {0,20}\z"
)
WHOLE_PATTERN = r"^ {0,20}[+-]?[0-9]{1,18} {0,20}\z"
DAY_PATTERN = (
    "([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
)
CLOCK_PATTERN = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
MOMENT_PATTERN = f"{DAY_PATTERN}([ T]{CLOCK_PATTERN})?"
TRUTH_PATTERN = r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])\z"
CAST_PATTERNS = {
    "whole": WHOLE_PATTERN,
    "float64": NUMBER_PATTERN,
    "date": rf"^{DAY_PATTERN}\z",
    "timestamp": rf"^{DAY_PATTERN}([ T]{CLOCK_PATTERN}Z?)?\z",  # Z: the moment in UTC
    "boolean": TRUTH_PATTERN,
}
FIRST_MOMENT = "290309-12-22 (BC) 00:00:00"
"""The first midnight that 64 bits of microseconds reach."""
MAX_WHOLE = 2.0**62
TRUNCATION_UNITS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h"}
"""To what a moment may be truncated, with Ibis' word for it."""
EXACT_DIGITS = 15
"""Digits that a double holds, whatever they are."""


def cast_value(value: Any, kind: str) -> Any:
    """A value as another type; missing where that has no meaning.

    Args:
        kind: an Ibis type; "whole" for a text that spells a whole number of up to 18 digits.
    """
    given = value.type()
    if kind == "int64" and given.is_string():
        return ibis.coalesce(cast_value(value, "whole"), cast_value(double_value(value), "int64"))
    if kind == "int64" and not given.is_integer():
        real = cast_value(value, "float64")
        whole = (real + 0.5).floor()
        fits = (real > -MAX_WHOLE) & (real < MAX_WHOLE)
        return fits.ifelse(whole, ibis.null("float64")).cast("int64")
    if given.is_string() and kind in CAST_PATTERNS:
        plain = value.re_search(CAST_PATTERNS[kind]).ifelse(value, ibis.null("string"))
        if kind == "timestamp":
            plain = plain.replace("Z", "")  # which engines read in different ways
        return plain.try_cast("int64" if kind == "whole" else kind)
    if given.is_decimal() and kind == "float64" and (given.precision or 38) > EXACT_DIGITS:
        return value.cast("string").try_cast("float64")  # engines divide in different ways
    if kind == "string" and (given.is_floating() or given.is_decimal() or given.is_timestamp()):
        raise refuse_condition(
            f"where casts {given} to text, which engines spell differently",
            str(given),
            "whole numbers, dates, true and false can be cast to text",
        )
    return value.try_cast(kind)


def _find_number(text: Any) -> Any | None:
    """The number that a text spells, where its table has a column of them (`NUMBER_COLUMN`)."""
    from ibis.expr import operations as ops

    field = text.op()
    if not isinstance(field, ops.Field):
        return None
    table = field.rel
    while isinstance(table, ops.Filter):
        table = table.parent
    if not isinstance(table, ops.DatabaseTable) or table.name != ELIGIBLE_ROWS:
        return None
    return field.rel.to_expr()[f"{NUMBER_COLUMN}{field.name}"]


def exact_cast(value: Any, kind: Any) -> Any:
    """A value as another type of its family (whole numbers, decimals, moments, …), for a key that
    is compared with one of that type. It is missing where that type does not hold it exactly:
    there it equals nothing. An engine that compares two types casts to a third one, which fails
    where a row does not fit."""
    kind = kind.copy(nullable=True)
    if value.type().copy(nullable=True) == kind:
        return value
    held = _cast_key(value, kind)
    return (_cast_key(held, value.type()) == value).ifelse(held, ibis.null(kind))


def _cast_key(value: Any, kind: Any) -> Any:
    """A value as another type, missing where that fails; moments by way of microseconds. DuckDB's
    own way from nanoseconds to seconds holds nothing, and the one from microseconds to coarser
    units fails, even tried, on what Arrow has before the first midnight."""
    if not (value.type().is_timestamp() and kind.is_timestamp()):
        return value.try_cast(kind)
    moment = value.try_cast("timestamp(6)")
    early = moment < ibis.literal(FIRST_MOMENT).try_cast("timestamp(6)")
    return early.ifelse(ibis.null("timestamp(6)"), moment).try_cast(kind)


def is_usable(kind: Any) -> bool:
    """Whether anything may be asked of a column of this type. Engines fail on some values of other
    types (a duration of 2^62 s) when they read them."""
    return is_dated(kind) or bool(kind.is_string() or kind.is_numeric() or kind.is_boolean())


def is_dated(kind: Any) -> bool:
    """Whether a type holds dates or moments."""
    return bool(kind.is_date() or kind.is_timestamp())


MAX_NESTED_OPERATIONS = 5
"""Divisions in a divisor, and casts in a cast."""
SQL_CASTS = {
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


def number_value(value: Any) -> Any:
    """A column as doubles; what is no number, NaN too, is missing. No text spells NaN."""
    result, kind = double_value(value), value.type()
    if kind.is_integer() or kind.is_boolean() or kind.is_string():
        return result
    return ibis.cases((result.isnan(), ibis.null("float64")), else_=result)


def double_value(value: Any) -> Any:
    """A value as doubles, NaN among them. Arithmetic keeps NaN to its end, where it is compared:
    to replace it means to name a value twice, which would double the work at each level."""
    kind = value.type()
    known = _find_number(value) if kind.is_string() else None
    if kind.is_string() or kind.is_decimal():
        return cast_value(value, "float64") if known is None else known
    if kind.is_boolean() or kind.is_numeric():
        return value.cast("float64")
    raise refuse_condition(f"where computes with a value of type {kind}, not a number", str(kind))


MAX_EXACT_WHOLE = 2.0**53
"""Doubles hold every whole number below it."""


def whole_value(value: Any) -> Any:
    """A number that is a whole one as 64 bits, however a text spells it (3.0 is 3); what is none is
    missing, and so is one that a double might have rounded. A text of up to 18 digits is exact."""
    if value.type().is_integer():
        return value
    real = number_value(value)
    exact = (real.abs() < MAX_EXACT_WHOLE).ifelse(real, ibis.null("float64"))
    whole = (exact.floor() == exact).ifelse(exact, ibis.null("float64")).cast("int64")
    return ibis.coalesce(cast_value(value, "whole"), whole) if value.type().is_string() else whole


def clamp_value(value: Any, low: float, high: float) -> Any:
    """A value that is not missing, clamped; it is named once, so that no expression doubles."""
    return ibis.greatest(ibis.least(value, high), low)


def whole_steps(value: Any, step: Fraction) -> Any:
    """A number of less than 2^62 steps, rounded to whole ones.

    floor(x + ½) on doubles is the same on every engine, which their rounding functions are not.
    """
    scaled = value * float(step.denominator) / float(step.numerator)
    return (scaled + 0.5).floor().cast("int64")


def rows_with_unit(rows: Any, privacy_unit: str) -> Any:
    """The rows that have a privacy unit; NaN is none."""
    whose = rows[privacy_unit]
    present = whose.notnull()
    if whose.type().is_floating():
        present = present & ~whose.isnan()
    return rows.filter(present)


def timestamp_value(value: Any) -> Any:
    """A date or a moment in microseconds; what is too far away for that is missing."""
    kind = value.type()
    if kind.is_timestamp() and kind.timezone is not None:
        message = f"where needs dates and times without a time zone, not {kind}"
        raise refuse_condition(message, str(kind))
    return value.try_cast("timestamp(6)")


def iso_week(moment: Any) -> Any:
    """The ISO week of a moment in the years 1 to 9999; missing in others: calendars differ."""
    return has_four_digit_year(moment).ifelse(moment.week_of_year(), ibis.null("int32"))


def has_four_digit_year(moment: Any) -> Any:
    """Whether a moment is in the years 1 to 9999, which every engine knows and spells alike."""
    return (moment.year() >= 1) & (moment.year() <= 9999)


def truncate_moment(moment: Any, unit: str) -> Any:
    """The beginning of a moment's year, …, hour; missing outside the years 1 to 9999, of which
    every one begins, as its first week does, in one of them."""
    if unit not in TRUNCATION_UNITS:
        hint = f"take one of {', '.join(TRUNCATION_UNITS)}"
        raise refuse_condition(f"where has date_trunc to {unit!r}", unit, hint)
    known = has_four_digit_year(moment).ifelse(moment, ibis.null("timestamp(6)"))
    return known.truncate(TRUNCATION_UNITS[unit])


def truncated_remainder(value: Any, divisor: Any) -> Any:
    """A remainder with the sign of the value; missing where the divisor is 0. It is exact: whole
    numbers of up to 64 bits with a sign as they are, others as doubles."""
    if all(fits_signed_whole(each.type()) for each in (value, divisor)):
        divisor = divisor.cast("int64")
        # −1 leaves what 1 leaves, but engines fail at −2^63 divided by it.
        safe = ibis.cases((divisor == -1, 1), (divisor == 0, ibis.null("int64")), else_=divisor)
        return value.cast("int64") % safe.cast("int64")
    return double_value(value) % double_value(divisor).nullif(0.0)


def fits_signed_whole(kind: Any) -> bool:
    """Whether 64 bits with a sign hold all values of a type."""
    return bool(kind.is_integer() and not kind.is_uint64())


def unify_values(node: Any, parts: list[Any], values: list[Any]) -> list[Any]:
    """Values of which one is chosen, as values of one type, by rules that cannot fail on a row.

    Args:
        node: where they are, for a message.
        parts: what they were.
    """
    missing = [isinstance(part.unnest(), exp.Null) for part in parts]
    kinds = [value.type() for value, none in zip(values, missing, strict=True) if not none]
    if not kinds:
        return values
    if any(map(is_dated, kinds)):
        plain = all(kind.is_date() for kind in kinds)
        result: list[Any] = [
            value if none or plain else moment_value(part, value)
            for part, value, none in zip(parts, values, missing, strict=True)
        ]
    elif all(kind.is_string() for kind in kinds) or all(kind.is_boolean() for kind in kinds):
        result = list(values)
    elif all(fits_signed_whole(kind) for kind in kinds):
        result = [value.cast("int64") for value in values]
    elif all(kind.is_numeric() or kind.is_string() for kind in kinds) and not any(
        part.unnest().is_string for part in parts
    ):  # columns of texts may hold numbers, as those of CSV files do
        result = [double_value(value) for value in values]
    else:
        given = ", ".join(dict.fromkeys(map(str, kinds)))
        raise refuse_condition(
            f"where has a case with values of several types ({given}): {describe_node(node)}", given
        )
    known = next(value for value, none in zip(result, missing, strict=True) if not none)
    null = ibis.null(known.type().copy(nullable=True))
    return [null if none else value for value, none in zip(result, missing, strict=True)]


def count_operations(value: Any) -> int:
    """How many operations an expression has, each as often as it is named: SQL spells a value
    that is named twice two times, and engines make a CASE of NULLIF, which names it twice."""
    from ibis.expr import operations as ops

    def count(node: Any, results: dict[Any, int], /, **_: Any) -> int:
        if isinstance(node, ops.Relation):
            return 0
        again = results[node.arg] if isinstance(node, ops.NullIf) else 0
        return 1 + again + sum(results[each] for each in node.__children__)

    return int(value.op().map(count)[value.op()])


def decade_value(value: Any) -> Any:
    """A number rounded down to tens, exactly: a remainder is not rounded, a division would be."""
    rest = value % 10.0
    return value - ibis.cases((rest < 0.0, rest + 10.0), else_=rest)


def text_with_whole(operation: Callable[[Any, Any], Any], text: Any, whole: Any) -> Any:
    """A text that spells a whole number of up to 18 digits compares with whole numbers exactly;
    another one as a double. With a constant that doubles hold, below 2^53, that is the same: a
    whole number beyond it is not rounded to it, nor past it."""
    constant = getattr(whole.op(), "value", None)
    if isinstance(constant, int) and abs(constant) < MAX_EXACT_WHOLE:
        return operation(number_value(text), ibis.literal(float(constant)))
    exact = operation(cast_value(text, "whole"), whole)
    return ibis.coalesce(exact, operation(number_value(text), double_value(whole)))


def is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def check_spelled_numbers(*sides: tuple[Any, Any]) -> None:
    """Refuse a word that is compared with a number: it is none, so that this is never true.

    Args:
        sides: of a comparison, what each was, with the value of the other one.
    """
    for node, other in sides:
        word, kind = node.unnest(), other.type()
        if not word.is_string or kind.is_boolean() or not kind.is_numeric():
            continue
        if not re.fullmatch(NUMBER_PATTERN.removesuffix(r"\z"), word.this):
            message = f"where compares a number with {describe_node(node)}, which is none"
            hint = "compare it with a number, or write IS NULL for what is missing"
            raise refuse_condition(message, word.this, hint)


def comparable_values(first: Any, second: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Two sides of a comparison as values of one type, by rules that cannot fail on a row."""
    kinds = left.type(), right.type()
    if any(map(is_dated, kinds)):
        return moment_value(first, left), moment_value(second, right)
    for name in ("is_string", "is_boolean", "is_integer"):
        if all(getattr(kind, name)() for kind in kinds):
            return left, right
    # A truth value is not a number here: 1 < age < 3 would be one compared with the other.
    if all(kind.is_numeric() or kind.is_string() for kind in kinds):
        return number_value(left), number_value(right)
    message = f"where compares {kinds[0]} with {kinds[1]}"
    raise refuse_condition(message, ", ".join(map(str, kinds)), "compare values of the same type")


def moment_value(node: Any, value: Any) -> Any:
    """Dates compare with dates, and with texts that spell one."""
    if is_dated(value.type()):
        return timestamp_value(value)
    if value.type().is_string() and node.is_string and re.fullmatch(MOMENT_PATTERN, node.this):
        with suppress(ValueError):
            return ibis.literal(datetime.fromisoformat(node.this), "timestamp(6)")
    message = f"where compares a date with {describe_node(node)}"
    raise refuse_condition(message, hint="write a date such as '2024-01-31'")


def sql_cast(node: Any, value: Any) -> Any:
    """A value as the type that a `cast_value` of a condition names."""
    name = getattr(node.to.this, "name", str(node.to.this))
    if name not in SQL_CASTS or node.to.expressions:
        hint = f"cast to one of {', '.join(sorted(SQL_CASTS))}"
        raise refuse_condition(f"where casts to {node.to.sql()}", node.to.sql(), hint)
    target, kind = SQL_CASTS[name], value.type()
    if target == "float64":
        return double_value(value)
    if target == "int64":
        if kind.is_string():
            return cast_value(value, "int64")
        return value if kind.is_integer() else _nearest_whole(node, double_value(value))
    if target in ("date", "timestamp") and is_dated(kind):
        return timestamp_value(value).try_cast(target)
    if target == "string" and kind.is_date():
        known = has_four_digit_year(timestamp_value(value))
        return known.ifelse(value.cast("string"), ibis.null("string"))
    # Engines spell doubles, decimals and moments in different ways.
    others = {"boolean": kind.is_boolean(), "string": kind.is_integer()}
    if not (kind.is_string() or others.get(target, False)):
        raise refuse_condition(
            f"where casts {kind} to {target}, which engines do differently: {describe_node(node)}",
            str(kind),
        )
    return cast_value(value, target)


def _nearest_whole(node: Any, value: Any) -> Any:
    """To the nearest, halves up, since engines round in different ways; missing where no 64 bits
    hold it, since Ibis casts what it rounds."""
    if sum(1 for _ in node.this.find_all(exp.Cast, exp.TryCast)) > MAX_NESTED_OPERATIONS:
        raise refuse_condition(
            f"where nests more than {MAX_NESTED_OPERATIONS} casts: {describe_node(node)}"
        )
    fits = (value > -(2.0**62)) & (value < 2.0**62)
    return ibis.cases((fits, value + 0.5), else_=ibis.null("float64")).floor()


def describe_node(node: Any) -> str:
    return short_text(node.sql(dialect="duckdb", unsupported_level=sqlglot.ErrorLevel.IGNORE))


def short_text(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "…")


STATEMENT_WORDS = (
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "ORDER",
    "LIMIT",
    "JOIN",
    "FILTER",
    "DISTINCT",
)


def describe_position(text: str, start: int) -> str:
    """Where a part of a text begins, in words."""
    line, before = text.count("\n", 0, start) + 1, text.rfind("\n", 0, start)
    return f"line {line}, character {start - before}"


def describe_parse_failure(error: Exception, text: str) -> str:
    """Where a parser stopped, by line and character, and what it expected there."""
    found: dict[str, Any] = next(iter(getattr(error, "errors", ())), {})
    word, before = str(found.get("highlight", "")), str(found.get("start_context", ""))
    if quote := re.search(r"Missing (\S+) from \d+:(\d+)", str(error.__cause__)):
        return f"the {quote[1]} at {describe_position(text, int(quote[2]))} is not closed"
    if not word:
        return short_text(text)
    character = max(1, found["col"] - len(word) + 1)
    said = f"line {found['line']}, character {character}: {short_text(word)}"
    last = (before.split() or [""])[-1]
    said += f" after {short_text(last)}" if last else ""
    if expected := re.fullmatch(r"Expecting (\S+)", found["description"]):
        return f"{said}, near which {expected[1]!r} is missing"
    near = (each for each in (last, word) if each.upper() not in STATEMENT_WORDS)
    meant = [UnknownName("sql", each, STATEMENT_WORDS).nearest for each in near]
    likely = next(filter(None, meant), None)
    return f"{said} is not expected" + (f"; did you mean {likely}?" if likely else "")


def refuse_node(node: Any, more: str = "", value: object = None, hint: str = "") -> InvalidInput:
    """The error about a part of a condition."""
    return refuse_condition(f"where has {describe_node(node)}{more}", value, hint)


def refuse_condition(message: str, value: object = None, hint: str = "") -> InvalidInput:
    """The error about a condition. A message that begins with "where" is told with its path."""
    return InvalidInput(message, field="where", value=value, hint=hint)


LOT_COLUMN = "lot"
RANK_COLUMN = "rank"
SIZE_COLUMN = "whosin_rows"
MAX_RANKED_ROWS = 100_000
"""Rows of a group that are ranked together, besides those that are chosen."""


def sample_rows(base: Any, home: Sequence[str], most: int, *, crowded: bool = True) -> Any:
    """At most `most` rows of each home, at random; all where there is no column of privacy units,
    since each row is one person. No other column may have missing values where one row is chosen.

    Args:
        home: columns; rows with the same first one, the privacy unit, may be very many.
        crowded: whether they may be; a set of cells, for example, has an end.
    """
    if home[0] not in base.columns:
        return base
    lots, duckdb = _add_lots(base), _is_duckdb(base)
    if duckdb and most == 1 and len(base.columns) > len(home):
        others = [name for name in base.columns if name not in home]
        kept = {name: lots[name].argmin(lots[LOT_COLUMN]) for name in others}
        return lots.group_by(list(home)).aggregate(**kept).select(*base.columns)
    if duckdb and crowded:
        lots = _thin_large_homes(base, lots, home, most)
    return _rank_lots(lots, home, most, base.columns)


def whole_rows(base: Any, owner: str, most: int) -> Any:
    """At most `most` rows of each owner, at random, as `sample_rows`; values may be missing, and
    columns may be called anything."""
    ours = {name: f"column_{index}" for index, name in enumerate(base.columns)}
    plain = base.select([base[name].name(ours[name]) for name in base.columns])
    if most > 1 or not _is_duckdb(base):
        chosen = sample_rows(plain, [ours[owner]], most)
    else:
        lots = _add_lots(plain)
        others = [lots[ours[name]] for name in base.columns if name != owner]
        kept = [_value_of_smallest_lot(each, lots[LOT_COLUMN]) for each in others]
        chosen = lots.group_by(ours[owner]).aggregate(kept)
    return chosen.select([chosen[ours[name]].name(name) for name in base.columns])


def sum_sampled_rows(base: Any, home: Sequence[str], most: int, names: Sequence[str]) -> Any:
    """For each home the sums of some columns over at most `most` of its rows, at random.

    Most homes have no more rows than that, and are summed as they are: only of the others are rows
    ranked. A home has one row here, with the sum of all its rows where they are few and otherwise
    of the chosen ones; so it never comes to more, even if an engine reads random rows twice.
    """
    if not _is_duckdb(base):
        rows = sample_rows(base, home, most)
        return rows.group_by(list(home)).aggregate(**{name: rows[name].sum() for name in names})
    sums = {name: base[name].sum() for name in names}
    every = base.group_by(list(home)).aggregate(**{SIZE_COLUMN: base.count()}, **sums)
    lots = _add_sizes(_add_lots(base), every.filter(every[SIZE_COLUMN] > most), home)
    rows = _rank_lots(
        _drop_hopeless_lots(lots.filter(lots[SIZE_COLUMN].notnull()), most),
        home,
        most,
        base.columns,
    )
    few = rows.group_by(list(home)).aggregate(**{name: rows[name].sum() for name in names}).view()
    joined = every.left_join(few, [every[name] == few[name] for name in home])
    chosen = {
        name: ibis.cases((every[SIZE_COLUMN] <= most, every[name]), else_=few[name].fill_null(0))
        for name in names
    }
    return joined.select(**{name: every[name] for name in home}, **chosen)


def _is_duckdb(base: Any) -> bool:
    return bool(base.get_backend().name == "duckdb")


def _add_lots(base: Any) -> Any:
    return base.mutate(**{LOT_COLUMN: ibis.random()})


def _rank_lots(lots: Any, home: Sequence[str], most: int, columns: Sequence[str]) -> Any:
    rank = ibis.row_number().over(group_by=list(home), order_by=LOT_COLUMN)
    ranked = lots.mutate(**{RANK_COLUMN: rank})
    return ranked.filter(ranked[RANK_COLUMN] < most).select(*columns)


def _thin_large_homes(base: Any, lots: Any, home: Sequence[str], most: int) -> Any:
    """Rows with their lots, without those of large homes that have no chance."""
    sizes = base.group_by(list(home)).aggregate(**{SIZE_COLUMN: base.count()})
    large = sizes.filter(sizes[SIZE_COLUMN] > MAX_RANKED_ROWS)
    return _drop_hopeless_lots(_add_sizes(lots, large, home), most).select(*lots.columns)


def _add_sizes(lots: Any, sizes: Any, home: Sequence[str]) -> Any:
    """Rows with how many rows their home has, missing where it is not listed."""
    listed = {f"size_{name}": sizes[name] for name in home} | {SIZE_COLUMN: sizes[SIZE_COLUMN]}
    known = sizes.select(**listed).view()
    joined = lots.left_join(known, [lots[name] == known[f"size_{name}"] for name in home])
    return joined.select(*lots.columns, SIZE_COLUMN)


def _drop_hopeless_lots(lots: Any, most: int) -> Any:
    """Rows without those whose lots are too large to be among the chosen ones.

    Of n rows those with lots below t = (most + 10 √most + 100) / n stay: n t of them on average,
    and fewer than `most` with probability below e^-50 (Chernoff).
    """
    enough = most + 10 * sqrt(most) + 100
    return lots.filter(lots[SIZE_COLUMN].isnull() | (lots[LOT_COLUMN] * lots[SIZE_COLUMN] < enough))


def _value_of_smallest_lot(value: Any, lot: Any) -> Any:
    """The value with the smallest lot, missing where that one is."""
    return _arg_min_null(value.type().copy(nullable=True))(value, lot).name(value.get_name())


@cache
def _arg_min_null(held: Any) -> Any:
    """DuckDB's aggregate that keeps missing values, for values of a type."""

    def arg_min_null(value, lot):  # type: ignore[no-untyped-def]
        ...

    arg_min_null.__annotations__ = {"value": held, "lot": ibis.dtype("float64"), "return": held}
    return ibis.udf.agg.builtin(arg_min_null)


# Engines follow different editions of Unicode, and some make two letters of one (ß, ﬁ, İ). Here a
# letter changes case if it and its counterpart are each other's only one and lie in U+0000 to
# U+052F or U+1E00 to U+1EFF: Latin, Greek and Cyrillic, which no edition changes any more. Others
# stay.


LETTER_RANGES = (range(0x0530), range(0x1E00, 0x1F00))
SPACE_CHARACTERS = r" \t\n\r\x0b\x0c"
"""White space as in a pattern: each engine's SQL spells these letters in its own way."""
BLANK_CHARACTERS = f"{SPACE_CHARACTERS}\u00a0"
NON_ASCII_PATTERN = "[^ -~]"
"""A letter beyond plain ASCII, as a pattern."""


def _letter_pairs() -> dict[str, str]:
    """Small letters, each with its capital."""
    result = {}
    for code in (code for each in LETTER_RANGES for code in each):
        small = chr(code)
        capital = small.upper()
        alone = len(capital) == 1 and capital != small and capital.lower() == small
        if alone and any(ord(capital) in each for each in LETTER_RANGES):
            result[small] = capital
    return result


SMALL, CAPITAL = map("".join, zip(*_letter_pairs().items(), strict=True))


def lower_letters(value: Any) -> Any:
    """A text in small letters."""
    return _change_letters(value, value.lower(), CAPITAL, SMALL)


def upper_letters(value: Any) -> Any:
    """A text in capitals."""
    return _change_letters(value, value.upper(), SMALL, CAPITAL)


def _change_letters(value: Any, plain: Any, old: str, new: str) -> Any:
    """Letter by letter only where a text needs it: that is slow."""
    return ibis.cases((value.re_search(NON_ASCII_PATTERN), value.translate(old, new)), else_=plain)


def fold_text(text: str) -> str:
    """A text in small letters and without white space, as `fold_letters` makes it in an engine."""
    return re.sub(f"[{BLANK_CHARACTERS}]+", "", text.translate(str.maketrans(CAPITAL, SMALL)))


def fold_letters(value: Any) -> Any:
    """A text in small letters and without white space: what a slip of the keys leaves alike."""
    return lower_letters(value).re_replace(f"[{BLANK_CHARACTERS}]+", "")
