"""`where`: a condition on one row, in SQL's words, translated node by node to Ibis.

Contract: only what is listed here is accepted (no subqueries, aggregates, windows, files, functions
that are not listed, or options of a listed one that its rule does not read), and every operation is
total: arithmetic is in doubles, what has no value (a division by zero, a bad cast, a missing value,
NaN) is unknown, as NULL is in SQL, and rows count where the condition is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any

from whosin.errors import InvalidInput, UnknownName
from whosin.release.conditions import letter_case
from whosin.release.conditions.casts import usable
from whosin.release.conditions.literals import is_number, listed, literal, pattern_of
from whosin.release.conditions.row_values import (
    MOST_NESTED,
    alike,
    decade,
    describe,
    double,
    ibis_module,
    isoweek,
    number,
    refused,
    short,
    sql_cast,
    text_with_whole,
    timestamp,
)

LONGEST = 10_000
DEEPEST = 100
MOST_NODES = 2_000
MOST_CHANGES = 2
SHORT_LIST = 20
TEXT = ", or a text in single quotes"
OPTIONS = {"quoted", "is_string", "nested", "typed", "safe", "requires_string"}
"""What the parser adds by itself, and has no meaning here."""


def condition(text: object, table: Any) -> Any:
    """An Ibis condition on the rows of a table, false where it cannot be decided.

    Raises:
        InvalidInput: not a row expression, by its text and the schema alone.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise refused("a condition in words of SQL", short(str(text)))
    if len(text) > LONGEST:
        raise refused(f"at most {LONGEST} letters", f"{len(text)}")
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        if any(token.comments or token.token_type.name == "SEMICOLON" for token in tokens):
            raise refused("one condition, without comments or semicolons", short(text))
        parsed = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError):
        raise refused("a condition such as age >= 65 and ward = 'A'", short(text)) from None
    if len(parsed) != 1 or parsed[0] is None:
        raise refused("one condition", short(text))
    check_size(parsed[0], refused)
    result = _translate(parsed[0], table)
    if not result.type().is_boolean():
        raise refused("a condition, true or false", f"{short(text)}, which is a value")
    return result.fill_null(False)


def columns_in(text: object) -> frozenset[str]:
    """The columns that a condition names; none where the text is not a condition, which `condition`
    refuses."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or len(text) > LONGEST:
        return frozenset()
    try:
        parsed = sqlglot.parse(text, read="duckdb")
    except (SqlglotError, RecursionError):
        return frozenset()
    nodes = (node for each in parsed if each is not None for node in each.find_all(exp.Column))
    return frozenset(_full_name(node) for node in nodes)


def _full_name(node: Any) -> str:
    """A column's name, with that of its table before it if one is given."""
    return f"{node.table}.{node.name}" if node.table else str(node.name)


def unknown_column(
    field: str, name: str, table: Any, declared: Iterable[str] = (), otherwise: str = ""
) -> InvalidInput:
    """The error about a column that is not in a table, or among types by name. It names those that
    are, unless all are texts: then the table may be a CSV file without a header, whose first line
    is somebody's row.

    Args:
        declared: columns that somebody declared, which may be named in any case.
        otherwise: what else may be meant, as the end of a sentence.
    """
    kinds = table if isinstance(table, Mapping) else table.schema()
    if all(kind.is_string() for kind in kinds.values()):
        nearest = UnknownName(field, name, declared).nearest
        hint = "" if nearest in (None, name) else f" (did you mean {nearest!r}?)"
        accepted = "a column of the table, spelled as in its header" + otherwise
        return InvalidInput(field, accepted, f"{name[:80]!r}{hint}")
    return UnknownName(field, name, tuple(kinds), otherwise=otherwise)


def check_size(root: Any, refused: Callable[[str, str], InvalidInput]) -> None:
    """Engines plan deep expressions slowly, or not at all."""
    level, nodes, depth = [root], 0, 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MOST_NODES or depth > DEEPEST:
            raise refused(f"of at most {DEEPEST} levels and {MOST_NODES} parts", "more")
        level = [child for node in level for child in node.iter_expressions()]


def _translate(node: Any, table: Any) -> Any:
    rule = _rules().get(type(node))
    if rule is None:
        words = "a row expression: comparisons, and/or/not, in, between, like, arithmetic"
        raise refused(words, describe(node))
    known = _reads().get(type(node), {"this", "expression"}) | OPTIONS
    for option, value in node.args.items():
        if option not in known and value not in (None, False, []):
            raise refused(f"free of {_part(option)}", describe(node))
    return rule(node, table)


def _reads() -> dict[type, set[str]]:
    """The parts that a rule reads, where they are not the usual ones. What no rule reads is
    refused: dropping it could turn a condition into another one."""
    from sqlglot import exp

    return {
        exp.Column: {"this", "table"},
        exp.Between: {"this", "low", "high"},
        exp.In: {"this", "expressions"},
        exp.Like: {"this", "expression", "negate"},
        exp.ILike: {"this", "expression", "negate"},
        exp.Cast: {"this", "to"},
        exp.TryCast: {"this", "to"},
        exp.Trim: {"this"},
        exp.Anonymous: {"this", "expressions"},
    }


def _rules() -> dict[type, Callable[[Any, Any], Any]]:
    from sqlglot import exp

    return {
        exp.Column: _column,
        exp.Literal: lambda node, _: literal(node),
        exp.Boolean: lambda node, _: ibis_module().literal(bool(node.this)),
        exp.Null: lambda node, _: ibis_module().null("boolean"),
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
        exp.Like: lambda node, table: _like(node, _text(node.this, table).like(pattern_of(node))),
        exp.ILike: _ilike,
        exp.Add: _arithmetic(lambda a, b: a + b),
        exp.Sub: _arithmetic(lambda a, b: a - b),
        exp.Mul: _arithmetic(lambda a, b: a * b),
        exp.Div: _quotient,
        exp.Neg: _negative,
        exp.Abs: lambda node, table: double(_translate(node.this, table)).abs(),
        exp.Lower: lambda node, table: letter_case.lower(_shallow(node, table)),
        exp.Upper: lambda node, table: letter_case.upper(_shallow(node, table)),
        exp.Trim: lambda node, table: letter_case.trimmed(_text(node.this, table)),
        exp.Length: lambda node, table: _text(node.this, table).length(),
        exp.Cast: lambda node, table: sql_cast(node, _translate(node.this, table)),
        exp.TryCast: lambda node, table: sql_cast(node, _translate(node.this, table)),
        exp.Year: lambda node, table: _date(node.this, table).year(),
        exp.Month: lambda node, table: _date(node.this, table).month(),
        exp.Day: lambda node, table: _date(node.this, table).day(),
        exp.Quarter: lambda node, table: _date(node.this, table).quarter(),
        exp.Anonymous: _named,
        exp.Extract: _extract,
    }


def _like(node: Any, matches: Any) -> Any:
    return ~matches if node.args.get("negate") else matches


def _ilike(node: Any, table: Any) -> Any:
    pattern = letter_case.lower_text(pattern_of(node))
    return _like(node, letter_case.lower(_shallow(node, table)).like(pattern))


def _shallow(node: Any, table: Any) -> Any:
    """A text whose letters are about to change: its expression is named three times."""
    from sqlglot import exp

    if sum(1 for _ in node.this.find_all(exp.Lower, exp.Upper)) > MOST_CHANGES:
        raise refused(f"of at most {MOST_CHANGES} of lower and upper in another", describe(node))
    return _text(node.this, table)


def _negative(node: Any, table: Any) -> Any:
    value = _translate(node.this, table)
    if is_number(node.this) and value.type().is_integer():
        return ibis_module().literal(-int(node.this.this), "int64")
    return -double(value)


def _column(node: Any, table: Any) -> Any:
    name = _full_name(node)
    if name not in table.columns:
        raise unknown_column("column in where", name, table, otherwise=TEXT)
    value = table[name]
    if not usable(value.type()):
        raise refused("about numbers, texts, truths, dates and times of day", str(value.type()))
    return number(value) if value.type().is_floating() else value


def _truth(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_boolean():
        raise refused("conditions between and, or, not", describe(node))
    return value


def _text(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_string():
        raise refused("a column of texts for like, lower, …", describe(node))
    return value


def _date(node: Any, table: Any) -> Any:
    value = _translate(node, table)
    if not value.type().is_timestamp() and not value.type().is_date():
        raise refused("a column of dates for year, month, day", describe(node))
    return timestamp(value)


def _arithmetic(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(node: Any, table: Any) -> Any:
        left = double(_translate(node.this, table))
        return operation(left, double(_translate(node.expression, table)))

    return rule


def _quotient(node: Any, table: Any) -> Any:
    from sqlglot import exp

    if sum(1 for _ in node.expression.find_all(exp.Div)) > MOST_NESTED:
        raise refused(f"of at most {MOST_NESTED} divisions in a divisor", describe(node))
    return _arithmetic(lambda a, b: a / b.nullif(0.0))(node, table)


def _compare(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda node, table: _compared(operation, node.this, node.expression, table)


def _compared(operation: Callable[[Any, Any], Any], first: Any, second: Any, table: Any) -> Any:
    from sqlglot import exp

    if any(isinstance(side.unnest(), exp.Null) for side in (first, second)):
        _translate(first, table), _translate(second, table)
        return ibis_module().null("boolean")  # Ibis would make it "is null"
    left, right = _translate(first, table), _translate(second, table)
    if left.type().is_string() and right.type().is_integer():
        return text_with_whole(operation, left, right)
    if left.type().is_integer() and right.type().is_string():
        return text_with_whole(lambda a, b: operation(b, a), right, left)
    return operation(*alike(first, second, left, right))


def _between(node: Any, table: Any) -> Any:
    low = _compared(lambda a, b: a >= b, node.this, node.args["low"], table)
    return low & _compared(lambda a, b: a <= b, node.this, node.args["high"], table)


def _in(node: Any, table: Any) -> Any:
    from sqlglot import exp

    if not node.expressions:
        raise refused("in with a list of values", describe(node))
    if len(node.expressions) > SHORT_LIST and not isinstance(node.this, exp.Column):
        raise refused(f"a column before a list of more than {SHORT_LIST}", describe(node.this))
    result, others = listed(_translate(node.this, table), node.expressions)
    result += [_compared(lambda a, b: a == b, node.this, each, table) for each in others]
    while len(result) > 1:  # in pairs, so that a long list is not deep
        result = [reduce(or_, result[at : at + 2]) for at in range(0, len(result), 2)]
    return result[0]


def _is(node: Any, table: Any) -> Any:
    from sqlglot import exp

    value = _translate(node.this, table)
    if isinstance(node.expression, exp.Null):
        if value.type().is_boolean():
            # sqlglot writes "not x is null" for (not x) is null, which means something else.
            return value.cast("int64").isnull()
        return (number(value) if value.type().is_floating() else value).isnull()
    if isinstance(node.expression, exp.Boolean) and value.type().is_boolean():
        return value.fill_null(not node.expression.this) == bool(node.expression.this)
    raise refused("is null, is true or is false", describe(node))


def _named(node: Any, table: Any) -> Any:
    """A function that SQL does not have."""
    from sqlglot import exp

    name, given = str(node.this).lower(), node.expressions
    if name not in ("isoweek", "decade") or len(given) != 1:
        words = "a row expression: comparisons, and/or/not, in, between, like, arithmetic"
        raise refused(words, describe(node))
    if name == "isoweek":
        return isoweek(_date(given[0], table))
    if given[0].find(exp.Anonymous):  # its expression is named three times
        raise refused("the decade of a simpler expression", describe(node))
    value = _translate(given[0], table)
    dated = value.type().is_date() or value.type().is_timestamp()
    return decade(double(timestamp(value).year() if dated else value))


def _extract(node: Any, table: Any) -> Any:
    part = node.this.name.lower()
    if part not in ("year", "month", "day"):
        raise refused("year, month or day", part)
    return getattr(_date(node.expression, table), part)()


def _part(option: str) -> str:
    """A part of an expression that no rule reads, in words."""
    return {"query": "queries of its own"}.get(option, f"the option {option!r}")
