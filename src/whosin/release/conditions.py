"""`where`: conditions on one row, alike on every engine, that no row can make fail.

A condition is written in SQL and translated node by node to Ibis. Only what is listed here is
accepted (no subqueries, aggregates, windows, files, functions that are not listed, or options of a
listed one that its rule does not read), and what engines could read in different ways is refused.
Every operation is total: arithmetic is in doubles, what has no value (a division by zero, a bad
cast, a missing value, NaN) is unknown, as NULL is in SQL, and rows count where the condition is
true.

Engines follow different editions of Unicode, and some make two letters of one (ß, ﬁ, İ). Here a
letter changes case if it and its counterpart are each other's only one and lie in U+0000 to U+052F
or U+1E00 to U+1EFF: Latin, Greek and Cyrillic, which no edition changes any more. Others stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Any

from whosin.errors import InvalidInput, UnknownName, spell
from whosin.release.row_values import (
    MAX_NESTED_OPERATIONS,
    comparable_values,
    count_operations,
    decade_value,
    describe_node,
    double_value,
    ibis_module,
    is_usable,
    iso_week,
    number_value,
    refuse_condition,
    short_text,
    sql_cast,
    text_with_whole,
    timestamp_value,
    truncate_moment,
    truncated_remainder,
    unify_values,
)


def is_number(node: Any) -> bool:
    """Whether a part of a condition is a number as it stands."""
    from sqlglot import exp

    return isinstance(node, exp.Literal) and not node.is_string


def read_literal(node: Any) -> Any:
    """A constant as an Ibis value."""
    if node.is_string:
        return ibis_module().literal(plain_text(node.this))
    if node.this.isascii() and node.this.isdigit():
        if len(node.this) > 19 or int(node.this) >= 2**63:
            raise refuse_condition(
                f"where has the whole number {short_text(node.this)}, which does not fit into "
                "64 bits",
                node.this,
            )
        return ibis_module().literal(int(node.this), "int64")
    try:
        return ibis_module().literal(float(node.this), "float64")
    except ValueError:
        raise refuse_condition(
            f"where has {short_text(node.this)}, which is not a number such as 1.5", node.this
        ) from None


def split_constants(value: Any, nodes: list[Any]) -> tuple[list[Any], list[Any]]:
    """(a condition on the constants that compare with a value as they stand, the other parts of the
    list): one comparison with a list is planned much faster than one with each of its parts."""
    kind = value.type()
    if kind.is_string():
        target = "string"
    elif kind.is_integer():
        target = "int64"
    elif kind.is_floating() or kind.is_decimal():
        value, target = number_value(value), "float64"
    else:
        return [], nodes
    read = [(_list_constant(node, target), node) for node in nodes]
    plain = dict.fromkeys(constant for constant, _ in read if constant is not None)
    others = [node for constant, node in read if constant is None]
    literals = [ibis_module().literal(constant, target) for constant in plain]
    return [value.isin(literals)] if literals else [], others


def _list_constant(node: Any, target: str) -> Any:
    """A constant of a list, if it is one of the type that it is compared with."""
    from sqlglot import exp

    sign, bare = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(bare, exp.Literal) or bare.is_string != (target == "string"):
        return None
    if bare.is_string:
        return plain_text(bare.this) if sign == 1 else None
    whole = bare.this.isascii() and bare.this.isdigit()
    if (whole and len(bare.this) > 18) or (target == "int64" and not whole):
        return None
    try:
        return sign * (int(bare.this) if target == "int64" else float(bare.this))
    except ValueError:
        return None


def read_pattern(node: Any) -> str:
    """The pattern of a `like`."""
    pattern = node.expression
    if not pattern.is_string or "\\" in pattern.this:
        raise refuse_condition(
            f"where has LIKE {describe_node(pattern)}",
            pattern.this,
            "write a plain pattern in quotes, without backslashes, such as 'A%'",
        )
    return plain_text(str(pattern.this))


def plain_text(text: str) -> str:
    """A text of a condition. Engines read some control characters in SQL as letters."""
    if any((ord(letter) < 32 and letter not in "\t\n\r") or letter == "\x7f" for letter in text):
        raise refuse_condition(
            f"where has control characters other than tabs and line breaks in {short_text(text)}",
            text,
        )
    return text


LETTER_RANGES = (range(0x0530), range(0x1E00, 0x1F00))
SPACE_CHARACTERS = r" \t\n\r\x0b\x0c"
"""White space as in a pattern: each engine's SQL spells these letters in its own way."""
NON_ASCII_PATTERN = "[^ -~]"
"""A letter beyond plain ASCII, as a pattern."""


def _letter_pairs() -> tuple[str, str]:
    """Small letters and their capitals, in the same order."""
    result = []
    for code in (code for each in LETTER_RANGES for code in each):
        small = chr(code)
        capital = small.upper()
        alone = len(capital) == 1 and capital != small and capital.lower() == small
        if alone and any(ord(capital) in each for each in LETTER_RANGES):
            result.append((small, capital))
    return "".join(small for small, _ in result), "".join(capital for _, capital in result)


SMALL, CAPITAL = _letter_pairs()


def lower_letters(value: Any) -> Any:
    """A text in small letters."""
    return _change_letters(value, value.lower(), CAPITAL, SMALL)


def upper_letters(value: Any) -> Any:
    """A text in capitals."""
    return _change_letters(value, value.upper(), SMALL, CAPITAL)


def lower_text(text: str) -> str:
    """As `lower_letters`, here and now."""
    return text.translate(str.maketrans(CAPITAL, SMALL))


def trim_text(value: Any) -> Any:
    """A text without spaces, tabs and line ends at its ends."""
    return value.re_replace(rf"^[{SPACE_CHARACTERS}]+", "").re_replace(
        rf"[{SPACE_CHARACTERS}]+\z", ""
    )


def _change_letters(value: Any, plain: Any, old: str, new: str) -> Any:
    """Letter by letter only where a text needs it: that is slow."""
    import ibis

    return ibis.cases((value.re_search(NON_ASCII_PATTERN), value.translate(old, new)), else_=plain)


MAX_CONDITION_LENGTH = 10_000
MAX_CONDITION_DEPTH = 100
MAX_CONDITION_NODES = 2_000
MAX_OPERATIONS = 10_000
"""Operations on a row, each as often as an engine's SQL spells it."""
MAX_SUBSTRING_DIGITS = 9
MOMENT_PARTS = ("year", "quarter", "month", "day", "hour", "minute", "second")
ROW_EXPRESSIONS = "use comparisons, and/or/not, in, between, like, arithmetic, case and coalesce"
MAX_CASE_CHANGES = 2
MAX_SHORT_LIST = 20
TEXT_HINT = ", or a text in single quotes"
IGNORED_OPTIONS = {"quoted", "is_string", "nested", "typed", "safe", "requires_string"}
"""What the parser adds by itself, and has no meaning here."""


def parse_condition(text: object, table: Any) -> Any:
    """An Ibis condition on the rows of a table, false where it cannot be decided.

    Raises:
        InvalidInput: not a row expression, by its text and the schema alone.
    """
    import sqlglot
    from sqlglot import Dialect
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or not text.strip():
        raise refuse_condition(
            "where must be a condition in SQL", text, "for example age >= 65 and ward = 'A'"
        )
    if len(text) > MAX_CONDITION_LENGTH:
        raise refuse_condition(
            f"where has {spell(len(text))} characters; at most {spell(MAX_CONDITION_LENGTH)} are "
            "read",
            len(text),
        )
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        if any(token.comments or token.token_type.name == "SEMICOLON" for token in tokens):
            raise refuse_condition(
                f"where has a comment or a semicolon: {short_text(text)}", text, "leave it out"
            )
        parsed = Dialect.get_or_raise("duckdb").parser().parse(tokens, text)
    except (SqlglotError, RecursionError):
        raise refuse_condition(
            f"where cannot be parsed: {short_text(text)}",
            text,
            "write a condition such as age >= 65 and ward = 'A'",
        ) from None
    if len(parsed) != 1 or parsed[0] is None:
        raise refuse_condition(f"where must be one condition, not {short_text(text)}", text)
    check_size(parsed[0], refuse_condition)
    result = _translate_node(parsed[0], table)
    if not result.type().is_boolean():
        raise refuse_condition(
            f"where has {short_text(text)}, which is a value and not a condition",
            text,
            "compare it with something, for example age >= 65",
        )
    if count_operations(result) > MAX_OPERATIONS:
        raise refuse_condition(
            f"where takes more than {spell(MAX_OPERATIONS)} operations for each row",
            text,
            "simplify it",
        )
    return result.fill_null(False)


def condition_columns(text: object) -> frozenset[str]:
    """The columns that a condition names; none where the text is not a condition, which
    `parse_condition` refuses."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not isinstance(text, str) or len(text) > MAX_CONDITION_LENGTH:
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
        guess = "" if nearest in (None, name) else f"did you mean {nearest!r}?"
        return InvalidInput(
            f"the table has no column {short_text(name)}",
            field=field,
            value=name,
            hint=guess or f"name a column as the header spells it{otherwise}",
        )
    return UnknownName(field, name, tuple(kinds), otherwise=otherwise)


def check_size(root: Any, refused: Callable[[str, object, str], InvalidInput]) -> None:
    """Engines plan deep expressions slowly, or not at all."""
    level, nodes, depth = [root], 0, 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MAX_CONDITION_NODES or depth > MAX_CONDITION_DEPTH:
            raise refused(
                f"more than {MAX_CONDITION_DEPTH} levels or {MAX_CONDITION_NODES} terms are not "
                "read",
                None,
                "simplify it",
            )
        level = [child for node in level for child in node.iter_expressions()]


def _translate_node(node: Any, table: Any) -> Any:
    rule = _translation_rules().get(type(node))
    if rule is None:
        raise refuse_condition(
            f"where has {describe_node(node)}, which is not read", node.sql(), ROW_EXPRESSIONS
        )
    known = _parts_read().get(type(node), {"this", "expression"}) | IGNORED_OPTIONS
    for option, value in node.args.items():
        if option not in known and value not in (None, False, []):
            raise refuse_condition(
                f"where has {_describe_option(option)}, which is not read: {describe_node(node)}",
                option,
            )
    return rule(node, table)


def _parts_read() -> dict[type, set[str]]:
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
        exp.Case: {"this", "ifs", "default"},
        exp.If: {"this", "true", "false"},
        exp.Coalesce: {"this", "expressions"},
        exp.Substring: {"this", "start", "length"},
        exp.TimestampTrunc: {"this", "unit"},
        exp.DateTrunc: {"this", "unit"},
    }


def _translation_rules() -> dict[type, Callable[[Any, Any], Any]]:
    from sqlglot import exp

    return {
        exp.Column: _translate_column,
        exp.Literal: lambda node, _: read_literal(node),
        exp.Boolean: lambda node, _: ibis_module().literal(bool(node.this)),
        exp.Null: lambda node, _: ibis_module().null("boolean"),
        exp.Paren: lambda node, table: _translate_node(node.this, table),
        exp.And: lambda node, table: (
            _translate_truth(node.this, table) & _translate_truth(node.expression, table)
        ),
        exp.Or: lambda node, table: (
            _translate_truth(node.this, table) | _translate_truth(node.expression, table)
        ),
        exp.Not: lambda node, table: ~_translate_truth(node.this, table),
        exp.EQ: _comparison_rule(lambda a, b: a == b),
        exp.NEQ: _comparison_rule(lambda a, b: a != b),
        exp.GT: _comparison_rule(lambda a, b: a > b),
        exp.GTE: _comparison_rule(lambda a, b: a >= b),
        exp.LT: _comparison_rule(lambda a, b: a < b),
        exp.LTE: _comparison_rule(lambda a, b: a <= b),
        exp.Between: _translate_between,
        exp.In: _translate_in,
        exp.Is: _translate_is,
        exp.Like: lambda node, table: _translate_like(
            node, _translate_text(node.this, table).like(read_pattern(node))
        ),
        exp.ILike: _translate_ilike,
        exp.Add: _arithmetic_rule(lambda a, b: a + b),
        exp.Sub: _arithmetic_rule(lambda a, b: a - b),
        exp.Mul: _arithmetic_rule(lambda a, b: a * b),
        exp.Div: _translate_quotient,
        exp.Neg: _translate_negative,
        exp.Abs: lambda node, table: double_value(_translate_node(node.this, table)).abs(),
        exp.Lower: lambda node, table: lower_letters(_check_shallow(node, table)),
        exp.Upper: lambda node, table: upper_letters(_check_shallow(node, table)),
        exp.Trim: lambda node, table: trim_text(_translate_text(node.this, table)),
        exp.Length: lambda node, table: _translate_text(node.this, table).length(),
        exp.Cast: lambda node, table: sql_cast(node, _translate_node(node.this, table)),
        exp.TryCast: lambda node, table: sql_cast(node, _translate_node(node.this, table)),
        exp.Year: _moment_part_rule("year"),
        exp.Quarter: _moment_part_rule("quarter"),
        exp.Month: _moment_part_rule("month"),
        exp.Day: _moment_part_rule("day"),
        exp.Hour: _moment_part_rule("hour"),
        exp.Minute: _moment_part_rule("minute"),
        exp.Second: _moment_part_rule("second"),
        exp.TimestampTrunc: _translate_truncation,
        exp.DateTrunc: _translate_truncation,
        exp.Substring: _translate_substring,
        exp.Case: _translate_case,
        exp.If: _translate_if,
        exp.Coalesce: _translate_coalesce,
        exp.Mod: _translate_remainder,
        exp.Anonymous: _translate_function,
        exp.Extract: _translate_extract,
    }


def _translate_like(node: Any, matches: Any) -> Any:
    return ~matches if node.args.get("negate") else matches


def _translate_ilike(node: Any, table: Any) -> Any:
    pattern = lower_text(read_pattern(node))
    return _translate_like(node, lower_letters(_check_shallow(node, table)).like(pattern))


def _check_shallow(node: Any, table: Any) -> Any:
    """A text whose letters are about to change: its expression is named three times."""
    from sqlglot import exp

    if sum(1 for _ in node.this.find_all(exp.Lower, exp.Upper)) > MAX_CASE_CHANGES:
        raise refuse_condition(
            f"where nests lower and upper more than {MAX_CASE_CHANGES} deep: {describe_node(node)}"
        )
    return _translate_text(node.this, table)


def _translate_negative(node: Any, table: Any) -> Any:
    value = _translate_node(node.this, table)
    if is_number(node.this) and value.type().is_integer():
        return ibis_module().literal(-int(node.this.this), "int64")
    return -double_value(value)


def _translate_column(node: Any, table: Any) -> Any:
    name = _full_name(node)
    if name not in table.columns:
        raise unknown_column("column in where", name, table, otherwise=TEXT_HINT)
    value = table[name]
    if not is_usable(value.type()):
        raise refuse_condition(
            f"where names the column {name!r} of type {value.type()}",
            name,
            "conditions are about numbers, text, true and false, dates and times of day",
        )
    return number_value(value) if value.type().is_floating() else value


def _translate_truth(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not value.type().is_boolean():
        raise refuse_condition(
            f"where has {describe_node(node)} beside and, or or not, and it is not a condition"
        )
    return value


def _translate_text(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not value.type().is_string():
        raise refuse_condition(
            f"where has {describe_node(node)}, which is not text as like, lower, … need"
        )
    return value


def _translate_date(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not value.type().is_timestamp() and not value.type().is_date():
        raise refuse_condition(
            f"where has {describe_node(node)}, which is not a date as year, month, … need"
        )
    return timestamp_value(value)


def _arithmetic_rule(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(node: Any, table: Any) -> Any:
        left = double_value(_translate_node(node.this, table))
        return operation(left, double_value(_translate_node(node.expression, table)))

    return rule


def _translate_quotient(node: Any, table: Any) -> Any:
    from sqlglot import exp

    if sum(1 for _ in node.expression.find_all(exp.Div)) > MAX_NESTED_OPERATIONS:
        raise refuse_condition(
            f"where nests more than {MAX_NESTED_OPERATIONS} divisions in a divisor: "
            f"{describe_node(node)}"
        )
    return _arithmetic_rule(lambda a, b: a / b.nullif(0.0))(node, table)


def _translate_remainder(node: Any, table: Any) -> Any:
    return truncated_remainder(
        _translate_node(node.this, table), _translate_node(node.expression, table)
    )


def _comparison_rule(operation: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def rule(node: Any, table: Any) -> Any:
        left = _translate_node(node.this, table)
        return _compare_values(operation, (node.this, left), node.expression, table)

    return rule


def _compare_values(
    operation: Callable[[Any, Any], Any], known: tuple[Any, Any], second: Any, table: Any
) -> Any:
    """A comparison of a part that is translated already, with what it was, and another one."""
    from sqlglot import exp

    (first, left), right = known, _translate_node(second, table)
    if any(isinstance(side.unnest(), exp.Null) for side in (first, second)):
        return ibis_module().null("boolean")  # Ibis would make it "is null"
    if left.type().is_string() and right.type().is_integer():
        return text_with_whole(operation, left, right)
    if left.type().is_integer() and right.type().is_string():
        return text_with_whole(lambda a, b: operation(b, a), right, left)
    return operation(*comparable_values(first, second, left, right))


def _translate_between(node: Any, table: Any) -> Any:
    known = (node.this, _translate_node(node.this, table))
    low = _compare_values(lambda a, b: a >= b, known, node.args["low"], table)
    return low & _compare_values(lambda a, b: a <= b, known, node.args["high"], table)


def _translate_in(node: Any, table: Any) -> Any:
    from sqlglot import exp

    if not node.expressions:
        raise refuse_condition(
            f"where has {describe_node(node)}",
            hint="write IN with a list of values, such as ('A', 'B')",
        )
    if len(node.expressions) > MAX_SHORT_LIST and not isinstance(node.this, exp.Column):
        raise refuse_condition(
            f"where has a list of more than {MAX_SHORT_LIST} values after "
            f"{describe_node(node.this)}",
            hint="a list that long needs a plain column before it",
        )
    known = (node.this, _translate_node(node.this, table))
    result, others = split_constants(known[1], node.expressions)
    result += [_compare_values(lambda a, b: a == b, known, each, table) for each in others]
    while len(result) > 1:  # in pairs, so that a long list is not deep
        result = [reduce(or_, result[at : at + 2]) for at in range(0, len(result), 2)]
    return result[0]


def _translate_is(node: Any, table: Any) -> Any:
    from sqlglot import exp

    value = _translate_node(node.this, table)
    if isinstance(node.expression, exp.Null):
        if value.type().is_boolean():
            # sqlglot writes "not x is null" for (not x) is null, which means something else.
            return value.cast("int64").isnull()
        return (number_value(value) if value.type().is_floating() else value).isnull()
    if isinstance(node.expression, exp.Boolean) and value.type().is_boolean():
        return value.fill_null(not node.expression.this) == bool(node.expression.this)
    raise refuse_condition(
        f"where has {describe_node(node)}", hint="write IS NULL, IS TRUE or IS FALSE"
    )


def _translate_function(node: Any, table: Any) -> Any:
    """A function that SQL does not have."""
    from sqlglot import exp

    name, given = str(node.this).lower(), node.expressions
    if name not in ("isoweek", "decade") or len(given) != 1:
        raise refuse_condition(
            f"where has {describe_node(node)}, which is not read", node.sql(), ROW_EXPRESSIONS
        )
    if name == "isoweek":
        return iso_week(_translate_date(given[0], table))
    if given[0].find(exp.Anonymous):  # its expression is named three times
        raise refuse_condition(
            f"where has {describe_node(node)}", hint="take the decade of a simpler expression"
        )
    value = _translate_node(given[0], table)
    dated = value.type().is_date() or value.type().is_timestamp()
    return decade_value(double_value(timestamp_value(value).year() if dated else value))


def _translate_extract(node: Any, table: Any) -> Any:
    part = node.this.name.lower()
    if part not in MOMENT_PARTS:
        raise refuse_condition(
            f"where extracts {part!r} from a date", part, f"take one of {', '.join(MOMENT_PARTS)}"
        )
    return getattr(_translate_date(node.expression, table), part)()


def _moment_part_rule(part: str) -> Callable[[Any, Any], Any]:
    return lambda node, table: getattr(_translate_date(node.this, table), part)()


def _translate_truncation(node: Any, table: Any) -> Any:
    return truncate_moment(_translate_date(node.this, table), node.args["unit"].name.lower())


def _translate_substring(node: Any, table: Any) -> Any:
    """Engines count from 0 or below in different ways, so places are constants from 1 up."""
    text = _translate_text(node.this, table)
    places = []
    for option, least in (("start", 1), ("length", 0)):
        part = node.args.get(option)
        digits = str(part.this) if is_number(part) else ""
        whole = digits.isascii() and digits.isdigit() and len(digits) <= MAX_SUBSTRING_DIGITS
        if part is not None and (not whole or int(digits) < least):
            raise refuse_condition(
                f"where has {describe_node(node)}",
                hint="write substr with a start from 1 up and a length, both whole numbers",
            )
        places.append(None if part is None else int(digits))
    if places[0] is None:
        raise refuse_condition(f"where has {describe_node(node)}, a substr without its start")
    return text.substr(places[0] - 1, places[1])


def _translate_case(node: Any, table: Any) -> Any:
    operand = node.args.get("this")
    if operand is None:
        tests = [_translate_truth(each.this, table) for each in node.args["ifs"]]
    else:
        known = (operand, _translate_node(operand, table))
        tests = [
            _compare_values(lambda a, b: a == b, known, each.this, table)
            for each in node.args["ifs"]
        ]
    return _choose_value(tests, [each.args["true"] for each in node.args["ifs"]], node, table)


def _translate_if(node: Any, table: Any) -> Any:
    return _choose_value([_translate_truth(node.this, table)], [node.args["true"]], node, table)


def _choose_value(tests: list[Any], chosen: list[Any], node: Any, table: Any) -> Any:
    """The value of the first test that is true; otherwise that of ELSE, missing without one."""
    from sqlglot import exp

    otherwise = node.args.get("default") or node.args.get("false") or exp.Null()
    parts = [*chosen, otherwise]
    *values, last = unify_values(node, parts, [_translate_node(each, table) for each in parts])
    return ibis_module().cases(*zip(tests, values, strict=True), else_=last)


def _translate_coalesce(node: Any, table: Any) -> Any:
    parts = [node.this, *node.expressions]
    values = unify_values(node, parts, [_translate_node(each, table) for each in parts])
    there = [number_value(each) if each.type().is_floating() else each for each in values]
    return ibis_module().coalesce(*there)


def _describe_option(option: str) -> str:
    """A part of an expression that no rule reads, in words."""
    return {"query": "a subquery"}.get(option, f"the option {option!r}")
