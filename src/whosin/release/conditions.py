"""`where`: conditions on one row, alike on every engine, that no row can make fail.

A condition is written in SQL and translated node by node to Ibis. Only what is listed here is
accepted (no subqueries, aggregates, windows, files, functions that are not listed, or options of a
listed one that its rule does not read), and what engines could read in different ways is refused.
Every operation is total: arithmetic is in doubles, what has no value (a division by zero, a bad
cast, a missing value, NaN) is unknown, as NULL is in SQL, and rows count where the condition is
true.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache, reduce
from itertools import chain
from typing import Any

from whosin.errors import InvalidInput, LazyModule, Mistakes, UnknownName, WhosinError, spell
from whosin.exact import rational
from whosin.release.row_values import (
    CAPITAL,
    MAX_NESTED_OPERATIONS,
    SMALL,
    SPACE_CHARACTERS,
    check_spelled_numbers,
    comparable_values,
    count_operations,
    decade_value,
    describe_node,
    describe_parse_failure,
    describe_position,
    double_value,
    is_dated,
    is_digits,
    is_usable,
    iso_week,
    lower_letters,
    number_value,
    refuse_condition,
    refuse_node,
    short_text,
    sql_cast,
    text_with_whole,
    timestamp_value,
    truncate_moment,
    truncated_remainder,
    unify_values,
    upper_letters,
)

exp, ibis, sqlglot = map(LazyModule, ("sqlglot.expressions", "ibis", "sqlglot"))

Rule = Callable[[Any, Any], Any]
"""Translates a node of a condition on a table."""


def read_literal(node: Any) -> Any:
    """A constant as an Ibis value."""
    if node.is_string:
        return ibis.literal(plain_text(node.this))
    if is_digits(node.this):
        if len(node.this) > 19 or int(node.this) >= 2**63:
            number = f"the whole number {short_text(node.this)}"
            raise refuse_condition(f"where has {number}, which does not fit 64 bits", node.this)
        return ibis.literal(int(node.this), "int64")
    try:
        return ibis.literal(float(node.this), "float64")
    except ValueError:
        raise refuse_node(node, ", which is not a number such as 1.5", node.this) from None


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
    literals = [ibis.literal(constant, target) for constant in plain]
    return [value.isin(literals)] if literals else [], others


def _list_constant(node: Any, target: str) -> Any:
    """A constant of a list, if it is one of the type that it is compared with."""
    sign, bare = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    if not isinstance(bare, exp.Literal) or bare.is_string != (target == "string"):
        return None
    if bare.is_string:
        return plain_text(bare.this) if sign == 1 else None
    whole = is_digits(bare.this)
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
        message = f"where has LIKE {describe_node(pattern)}"
        hint = "write a plain pattern in quotes, without backslashes, such as 'A%'"
        raise refuse_condition(message, pattern.this, hint)
    return plain_text(str(pattern.this))


def plain_text(text: str) -> str:
    """A text of a condition. Engines read some control characters in SQL as letters."""
    if any((ord(letter) < 32 and letter not in "\t\n\r") or letter == "\x7f" for letter in text):
        others = "control characters other than tabs and line breaks"
        raise refuse_condition(f"where has {others} in {short_text(text)}", text)
    return text


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
NAMED_COLUMN = "column in where"
TEXT_HINT = ", or a text in single quotes"
CONDITION_EXAMPLE = "age >= 65 and ward = 'A'"


def parse_condition(text: object, table: Any, declared: Iterable[str] = ()) -> Any:
    """An Ibis condition on the rows of a table, false where it cannot be decided.

    Args:
        table: the table, or those of its columns that may be named.
        declared: names for `unknown_column`.

    Raises:
        InvalidInput: not a row expression, by its text and the schema alone.
    """
    if not isinstance(text, str) or not text.strip():
        hint = f"for example {CONDITION_EXAMPLE}"
        raise refuse_condition("where must be a condition in SQL", text, hint)
    check_length(text, refuse_condition)
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
        if any(token.comments or token.token_type.name == "SEMICOLON" for token in tokens):
            message = f"where has a comment or a semicolon: {short_text(text)}"
            raise refuse_condition(message, text, "leave it out")
        parsed = sqlglot.Dialect.get_or_raise("duckdb").parser().parse(tokens, text)
    except (sqlglot.errors.SqlglotError, RecursionError) as error:
        message = f"where cannot be parsed: {describe_parse_failure(error, text)}"
        hint = f"write a condition such as {CONDITION_EXAMPLE}"
        raise refuse_condition(message, text, hint) from None
    if len(parsed) != 1 or parsed[0] is None:
        raise refuse_condition(f"where must be one condition, not {short_text(text)}", text)
    check_size(parsed[0], refuse_condition)
    try:
        result = _translate_node(parsed[0], table)
    except InvalidInput as error:
        if error.field == NAMED_COLUMN:
            kinds = {each: table[each].type() for each in _column_names(table)}
            levels = {each: ibis.dtype("string") for each in declared if each not in kinds}
            name = str(error.value)
            error = unknown_column(NAMED_COLUMN, name, kinds | levels, declared, TEXT_HINT)
        raise error from None
    if not result.type().is_boolean():
        message = f"where has {short_text(text)}, which is a value and not a condition"
        raise refuse_condition(message, text, "compare it with something, for example age >= 65")
    if count_operations(result) > MAX_OPERATIONS:
        message = f"where takes more than {spell(MAX_OPERATIONS)} operations for each row"
        raise refuse_condition(message, text, "simplify it")
    return result.fill_null(False)


def condition_columns(text: object) -> frozenset[str]:
    """The columns that a condition names; none where the text is no condition."""
    tree = _read_tree(text)
    return frozenset() if tree is None else frozenset(map(_full_name, tree.find_all(exp.Column)))


def _read_tree(text: object) -> Any:
    """A condition as its parser's tree, which nobody may change; None where it is not one."""
    readable = isinstance(text, str) and len(text) <= MAX_CONDITION_LENGTH
    return _parse_tree(text) if readable else None


@lru_cache(maxsize=1_000)
def _parse_tree(text: str) -> Any:
    with suppress(sqlglot.errors.SqlglotError, RecursionError):
        parsed = [each for each in sqlglot.parse(text, read="duckdb") if each is not None]
        return parsed[0] if len(parsed) == 1 else None
    return None


def equal_constants(text: object, column: str) -> set[str]:
    """The constants that a condition is only true with in a column: ward = 'A' and so on."""
    nodes, found = list(filter(None, [_read_tree(text)])), set()
    while nodes:
        node = nodes.pop()
        if isinstance(node, exp.And | exp.Paren):
            nodes += node.iter_expressions()
        elif isinstance(node, exp.EQ):
            found |= {each for name, each, _ in _compared_constants(node) if name == column}
    return found


def compared_constants(text: object) -> list[tuple[str, str, bool]]:
    """(column, constant, whether it is in quotes) of each comparison with =, <>, in or case that a
    condition makes anywhere."""
    tree = _read_tree(text)
    nodes = () if tree is None else tree.find_all(exp.EQ, exp.NEQ, exp.In, exp.Case)
    return [each for node in nodes for each in _compared_constants(node)]


def _compared_constants(node: Any) -> Iterator[tuple[str, str, bool]]:
    others = (each.this for each in node.args["ifs"]) if isinstance(node, exp.Case) else ()
    sides = [node.this, node.args.get("expression"), *node.expressions, *others]
    sides = [each.unnest() for each in sides if each is not None]
    for column in (each for each in sides if isinstance(each, exp.Column) and node.this):
        for side in sides:
            bare, sign = (side.this, "-") if isinstance(side, exp.Neg) else (side, "")
            if isinstance(bare, exp.Literal | exp.Boolean):
                quoted = isinstance(bare, exp.Literal) and bare.is_string
                yield _full_name(column), f"{sign}{bare.this}", quoted


def _full_name(node: Any) -> str:
    """A column's name, with that of its table before it if one is given."""
    return f"{node.table}.{node.name}" if node.table else str(node.name)


def unknown_column(
    field: str, name: str, table: Any, declared: Iterable[str] = (), otherwise: str = ""
) -> InvalidInput:
    """The error about a column that is not in a table, or among types by name. It names those that
    are, unless all are texts: then the table may be a CSV file without a header, whose first line
    is somebody's row, and only what was declared is suggested, or a name of the same letters.

    Args:
        declared: columns that somebody declared.
        otherwise: what else may be meant, as the end of a sentence.
    """
    kinds = table if isinstance(table, Mapping) else table.schema()
    if not all(kind.is_string() for kind in kinds.values()):
        return UnknownName(field, name, tuple(kinds), otherwise=otherwise)
    seen = [each for each in declared if each in kinds]
    nearest = UnknownName(field, name, seen).nearest
    if nearest is None:  # a name in other letters was known to whoever wrote it
        nearest = next(
            (each for each in kinds if _letters_alone(each) == _letters_alone(name)), None
        )
    hint = f"name a column as the header spells it{otherwise}"
    if nearest not in (None, name):
        hint = f"did you mean {nearest!r}?"
    message = f"the table has no column {short_text(name)}"
    error = InvalidInput(message, field=field, value=name, hint=hint)
    error.nearest, error.columns = nearest, tuple(kinds)
    return error


def _letters_alone(name: str) -> str:
    """A name without what people write between its words, in small letters."""
    return re.sub(r"[\s_.-]", "", name).casefold() or name


Refusal = Callable[[str, object, str], InvalidInput]


def check_length(text: str, refused: Refusal) -> None:
    """Refuse a text that is too long to be parsed."""
    if len(text) > MAX_CONDITION_LENGTH:
        hint = f"at most {spell(MAX_CONDITION_LENGTH)} are read"
        raise refused(f"{spell(len(text))} characters are too many", len(text), hint)


def check_size(root: Any, refused: Refusal) -> None:
    """Engines plan deep expressions slowly, or not at all."""
    level, nodes, depth = [root], 0, 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MAX_CONDITION_NODES or depth > MAX_CONDITION_DEPTH:
            most = f"{MAX_CONDITION_DEPTH} levels or {MAX_CONDITION_NODES} terms"
            raise refused(f"more than {most} are not read", None, "simplify it")
        level = [child for node in level for child in node.iter_expressions()]


def _translate_node(node: Any, table: Any) -> Any:
    kind = type(node).__name__
    if kind not in TRANSLATION_RULES:
        raise refuse_node(node, ", which is not read", node.sql(), ROW_EXPRESSIONS)
    for part, value in node.args.items():
        known = part in IGNORED_PARTS or part in PARTS_READ.get(kind, ("this", "expression"))
        if not known and value not in (None, False, []):
            named = "a subquery" if part == "query" else f"the option {part!r}"
            message = f"where has {named}, which is not read: {describe_node(node)}"
            raise refuse_condition(message, part)
    return TRANSLATION_RULES[kind](node, table)


def _translate_like(node: Any, table: Any) -> Any:
    return _negate_like(node, _translate_text(node.this, table).like(read_pattern(node)))


def _translate_ilike(node: Any, table: Any) -> Any:
    pattern = read_pattern(node).translate(str.maketrans(CAPITAL, SMALL))
    return _negate_like(node, lower_letters(_check_shallow(node, table)).like(pattern))


def _negate_like(node: Any, matches: Any) -> Any:
    return ~matches if node.args.get("negate") else matches


def _check_shallow(node: Any, table: Any) -> Any:
    """A text whose letters are about to change: its expression is named three times."""
    if sum(1 for _ in node.this.find_all(exp.Lower, exp.Upper)) > MAX_CASE_CHANGES:
        message = f"where nests lower and upper more than {MAX_CASE_CHANGES} deep"
        raise refuse_condition(f"{message}: {describe_node(node)}")
    return _translate_text(node.this, table)


def _translate_trim(node: Any, table: Any) -> Any:
    """A text without spaces, tabs and line ends at its ends."""
    begun = _translate_text(node.this, table).re_replace(rf"^[{SPACE_CHARACTERS}]+", "")
    return begun.re_replace(rf"[{SPACE_CHARACTERS}]+\z", "")


def _translate_negative(node: Any, table: Any) -> Any:
    value = _translate_node(node.this, table)
    if isinstance(node.this, exp.Literal) and value.type().is_integer():
        return ibis.literal(-int(node.this.this), "int64")
    return -double_value(value)


def _translate_column(node: Any, table: Any) -> Any:
    name = _full_name(node)
    if name not in _column_names(table):  # `parse_condition` says what may be meant
        raise InvalidInput("unknown column", field=NAMED_COLUMN, value=name)
    kind = table[name].type()
    if not is_usable(kind):
        hint = "conditions are about numbers, text, true and false, dates and times of day"
        raise refuse_condition(f"where names the column {name!r} of type {kind}", name, hint)
    return _drop_nan(table[name])


def _column_names(table: Any) -> Iterable[str]:
    names: Iterable[str] = table if isinstance(table, Mapping) else table.columns
    return names


def _drop_nan(value: Any) -> Any:
    return number_value(value) if value.type().is_floating() else value


def _translate_truth(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not value.type().is_boolean():
        raise refuse_node(node, " beside and, or or not, and it is not a condition")
    return value


def _translate_text(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not value.type().is_string():
        raise refuse_node(node, ", which is not text as like, lower, … need")
    return value


def _translate_date(node: Any, table: Any) -> Any:
    value = _translate_node(node, table)
    if not is_dated(value.type()):
        raise refuse_node(node, ", which is not a date as year, month, … need")
    return timestamp_value(value)


def _logical_rule(operation: Rule) -> Rule:
    return lambda node, table: operation(
        _translate_truth(node.this, table), _translate_truth(node.expression, table)
    )


def _arithmetic_rule(operation: Rule) -> Rule:
    return lambda node, table: operation(
        double_value(_translate_node(node.this, table)),
        double_value(_translate_node(node.expression, table)),
    )


def _translate_quotient(node: Any, table: Any) -> Any:
    if sum(1 for _ in node.expression.find_all(exp.Div)) > MAX_NESTED_OPERATIONS:
        message = f"where nests more than {MAX_NESTED_OPERATIONS} divisions in a divisor"
        raise refuse_condition(f"{message}: {describe_node(node)}")
    return _arithmetic_rule(lambda a, b: a / b.nullif(0.0))(node, table)


def _translate_remainder(node: Any, table: Any) -> Any:
    left, right = (_translate_node(each, table) for each in (node.this, node.expression))
    return truncated_remainder(left, right)


def _comparison_rule(operation: Rule) -> Rule:
    return lambda node, table: _compare_values(
        operation, (node.this, _translate_node(node.this, table)), node.expression, table
    )


def _compare_values(operation: Rule, known: tuple[Any, Any], second: Any, table: Any) -> Any:
    """A comparison of a part that is translated already, with what it was, and another one."""
    (first, left), right = known, _translate_node(second, table)
    check_spelled_numbers((first, right), (second, left))
    if any(isinstance(side.unnest(), exp.Null) for side in (first, second)):
        return ibis.null("boolean")  # Ibis would make it "is null"
    if left.type().is_string() and right.type().is_integer():
        return text_with_whole(operation, left, right)
    if left.type().is_integer() and right.type().is_string():
        return text_with_whole(lambda a, b: operation(b, a), right, left)
    return operation(*comparable_values(first, second, left, right))


def _translate_between(node: Any, table: Any) -> Any:
    known = (node.this, _translate_node(node.this, table))
    low = _compare_values(operator.ge, known, node.args["low"], table)
    return low & _compare_values(operator.le, known, node.args["high"], table)


def _translate_in(node: Any, table: Any) -> Any:
    if not node.expressions:
        raise refuse_node(node, hint="write IN with a list of values, such as ('A', 'B')")
    if len(node.expressions) > MAX_SHORT_LIST and not isinstance(node.this, exp.Column):
        message = f"where has a list of more than {MAX_SHORT_LIST} values after "
        hint = "a list that long needs a plain column before it"
        raise refuse_condition(message + describe_node(node.this), hint=hint)
    known = (node.this, _translate_node(node.this, table))
    result, others = split_constants(known[1], node.expressions)
    result += [_compare_values(operator.eq, known, each, table) for each in others]
    while len(result) > 1:  # in pairs, so that a long list is not deep
        result = [reduce(operator.or_, result[at : at + 2]) for at in range(0, len(result), 2)]
    return result[0]


def _translate_is(node: Any, table: Any) -> Any:
    value = _translate_node(node.this, table)
    if isinstance(node.expression, exp.Null):
        # sqlglot writes "not x is null" for (not x) is null, which means something else.
        return (value.cast("int64") if value.type().is_boolean() else _drop_nan(value)).isnull()
    if isinstance(node.expression, exp.Boolean) and value.type().is_boolean():
        return value.fill_null(not node.expression.this) == bool(node.expression.this)
    raise refuse_node(node, hint="write IS NULL, IS TRUE or IS FALSE")


def _translate_function(node: Any, table: Any) -> Any:
    """A function that SQL does not have."""
    name, given = str(node.this).lower(), node.expressions
    if name not in ("isoweek", "decade") or len(given) != 1:
        raise refuse_node(node, ", which is not read", node.sql(), ROW_EXPRESSIONS)
    if name == "isoweek":
        return iso_week(_translate_date(given[0], table))
    if given[0].find(exp.Anonymous):  # its expression is named three times
        raise refuse_node(node, hint="take the decade of a simpler expression")
    value = _translate_node(given[0], table)
    dated = is_dated(value.type())
    return decade_value(double_value(timestamp_value(value).year() if dated else value))


def _translate_extract(node: Any, table: Any) -> Any:
    part = node.this.name.lower()
    if part not in MOMENT_PARTS:
        hint = f"take one of {', '.join(MOMENT_PARTS)}"
        raise refuse_condition(f"where extracts {part!r} from a date", part, hint)
    return getattr(_translate_date(node.expression, table), part)()


def _translate_moment_part(node: Any, table: Any) -> Any:
    return getattr(_translate_date(node.this, table), type(node).__name__.lower())()


def _translate_truncation(node: Any, table: Any) -> Any:
    return truncate_moment(_translate_date(node.this, table), node.args["unit"].name.lower())


def _translate_substring(node: Any, table: Any) -> Any:
    """Engines count from 0 or below in different ways, so places are constants from 1 up."""
    text = _translate_text(node.this, table)
    places = []
    for option, least in (("start", 1), ("length", 0)):
        part = node.args.get(option)
        digits = str(part.this) if isinstance(part, exp.Literal) and not part.is_string else ""
        whole = is_digits(digits) and len(digits) <= MAX_SUBSTRING_DIGITS
        if part is not None and (not whole or int(digits) < least):
            hint = "write substr with a start from 1 up and a length, both whole numbers"
            raise refuse_node(node, hint=hint)
        places.append(None if part is None else int(digits))
    if places[0] is None:
        raise refuse_node(node, ", a substr without its start")
    return text.substr(places[0] - 1, places[1])


def _translate_case(node: Any, table: Any) -> Any:
    operand, branches = node.args.get("this"), node.args["ifs"]
    if operand is None:
        tests = [_translate_truth(each.this, table) for each in branches]
    else:
        known = (operand, _translate_node(operand, table))
        tests = [_compare_values(operator.eq, known, each.this, table) for each in branches]
    return _choose_value(tests, [each.args["true"] for each in branches], node, table)


def _translate_if(node: Any, table: Any) -> Any:
    return _choose_value([_translate_truth(node.this, table)], [node.args["true"]], node, table)


def _choose_value(tests: list[Any], chosen: list[Any], node: Any, table: Any) -> Any:
    """The value of the first test that is true; otherwise that of ELSE, missing without one."""
    otherwise = node.args.get("default") or node.args.get("false") or exp.Null()
    parts = [*chosen, otherwise]
    *values, last = unify_values(node, parts, [_translate_node(each, table) for each in parts])
    return ibis.cases(*zip(tests, values, strict=True), else_=last)


def _translate_coalesce(node: Any, table: Any) -> Any:
    parts = [node.this, *node.expressions]
    values = unify_values(node, parts, [_translate_node(each, table) for each in parts])
    return ibis.coalesce(*map(_drop_nan, values))


TRANSLATION_RULES: dict[str, Rule] = {
    "Column": _translate_column,
    "Literal": lambda node, _: read_literal(node),
    "Boolean": lambda node, _: ibis.literal(bool(node.this)),
    "Null": lambda node, _: ibis.null("boolean"),
    "Paren": lambda node, table: _translate_node(node.this, table),
    "And": _logical_rule(operator.and_),
    "Or": _logical_rule(operator.or_),
    "Not": lambda node, table: ~_translate_truth(node.this, table),
    "EQ": _comparison_rule(operator.eq),
    "NEQ": _comparison_rule(operator.ne),
    "GT": _comparison_rule(operator.gt),
    "GTE": _comparison_rule(operator.ge),
    "LT": _comparison_rule(operator.lt),
    "LTE": _comparison_rule(operator.le),
    "Between": _translate_between,
    "In": _translate_in,
    "Is": _translate_is,
    "Like": _translate_like,
    "ILike": _translate_ilike,
    "Add": _arithmetic_rule(operator.add),
    "Sub": _arithmetic_rule(operator.sub),
    "Mul": _arithmetic_rule(operator.mul),
    "Div": _translate_quotient,
    "Mod": _translate_remainder,
    "Neg": _translate_negative,
    "Abs": lambda node, table: double_value(_translate_node(node.this, table)).abs(),
    "Lower": lambda node, table: lower_letters(_check_shallow(node, table)),
    "Upper": lambda node, table: upper_letters(_check_shallow(node, table)),
    "Trim": _translate_trim,
    "Length": lambda node, table: _translate_text(node.this, table).length(),
    "Cast": lambda node, table: sql_cast(node, _translate_node(node.this, table)),
    "TryCast": lambda node, table: sql_cast(node, _translate_node(node.this, table)),
    **dict.fromkeys(map(str.capitalize, MOMENT_PARTS), _translate_moment_part),
    "Extract": _translate_extract,
    "TimestampTrunc": _translate_truncation,
    "DateTrunc": _translate_truncation,
    "Substring": _translate_substring,
    "Case": _translate_case,
    "If": _translate_if,
    "Coalesce": _translate_coalesce,
    "Anonymous": _translate_function,
}
"""How each kind of node is translated, by the parser's name for it."""
IGNORED_PARTS = {"quoted", "is_string", "nested", "typed", "safe", "requires_string"}
"""What the parser adds by itself, and has no meaning here."""
PARTS_READ = {
    "Column": ("this", "table"),
    "Between": ("this", "low", "high"),
    "In": ("this", "expressions"),
    "Like": ("this", "expression", "negate"),
    "ILike": ("this", "expression", "negate"),
    "Cast": ("this", "to"),
    "TryCast": ("this", "to"),
    "Trim": ("this",),
    "Anonymous": ("this", "expressions"),
    "Case": ("this", "ifs", "default"),
    "If": ("this", "true", "false"),
    "Coalesce": ("this", "expressions"),
    "Substring": ("this", "start", "length"),
    "TimestampTrunc": ("this", "unit"),
    "DateTrunc": ("this", "unit"),
}
"""The parts that a rule reads, where they are not this and expression. What no rule reads is
refused: dropping it could turn a condition into another one."""

PASTE_PATTERN = re.compile(r"\buse ([A-Z_]+\([^…]*\))(?:,|$)|did you mean '(.+)'\?$")
"""What a message says to write instead."""


class SqlMistakes(Mistakes):
    """Mistakes of a SELECT, each with its place in the text and what to write instead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    @contextmanager
    def collect_at(self, clause: str, node: Any) -> Iterator[None]:
        """Keep what is wrong in this block, which is about a part of the statement."""
        before = len(self.found)
        with self.collect():
            yield
        for error in self.found[before:]:
            error.place = ", ".join(filter(None, [self._position(node), clause]))
            if nearest := PASTE_PATTERN.search(error.message):
                error.paste = nearest[1] or nearest[2]

    def raise_all(self, what: str = "") -> None:
        """As `Mistakes.raise_all`; one mistake quotes its part, and needs no place."""
        if len(self.found) == 1:
            self.found[0].place = self.found[0].paste = ""
        super().raise_all(what)

    def _position(self, node: Any) -> str:
        """Where a part begins, by the first name in it."""
        first = node[0] if isinstance(node, list) and node else node
        names = first.find_all(exp.Identifier) if isinstance(first, exp.Expression) else ()
        starts = [each.meta["start"] for each in names if "start" in each.meta]
        return describe_position(self._text, min(starts)) if starts else ""


def add_condition(title: str, question: Mapping[str, Any]) -> str:
    """A title with the condition of its question, unless it says it: "rows where age >= 65"."""
    said = f" where {question['where']}" if question.get("where") else ""
    return title if title.endswith(said) else title + said


EXACT_DEFAULTS = {"within": "", "factor": "1", "offset": "0", "quantile": "1/2"}
"""Keys of a question that are exact numbers, with what they are where nobody says it."""


def canonical_question(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What a question asks, as plain data: the same however it is written and called."""
    result: dict[str, Any] = {}
    for key, value in asked.items():
        if key == "where":
            tree = _read_tree(value)
            result[key] = value if tree is None else _describe_tree(tree)
        elif key in ("by", "columns"):
            result |= {key: [value] if isinstance(value, str) else value} if value else {}
        elif key == "queries":  # those that are measured at once
            result[key] = list(map(canonical_question, value))
        elif key in EXACT_DEFAULTS:
            with suppress(WhosinError):  # its estimate refuses it
                value = str(rational(value))
            result |= {} if value == EXACT_DEFAULTS[key] else {key: value}
        elif key != "name":
            result[key] = value
    return result


def _describe_tree(part: Any) -> Any:
    """A tree of a condition as plain data, without what has no meaning: quotes, letters of words of
    SQL, the order of what AND, OR and a list combine, sides of a comparison, and parentheses around
    what has parts of its own. (Around a constant: -(5) is a double, and -5 is not.)"""
    if isinstance(part, list):
        return list(map(_describe_tree, part))
    if not isinstance(part, exp.Expression):
        return part if isinstance(part, str | bool | int) else str(part)
    kind, inner = type(part).__name__, part.this
    if isinstance(part, exp.Paren) and not isinstance(
        inner, exp.Literal | exp.Neg | exp.Column | exp.Boolean | exp.Null
    ):
        return _describe_tree(inner)
    told = {
        key: _describe_tree(value)
        for key, value in sorted(part.args.items())
        if key != "quoted" and value not in (None, False, [])
    }
    if kind in ("And", "Or", "EQ", "NEQ"):
        sides = (told["this"], told["expression"])
        flat = (each[1:] if each[0] == kind in ("And", "Or") else [each] for each in sides)
        return [kind, *sorted(chain.from_iterable(flat), key=repr)]
    if kind in ("LT", "LTE"):
        return [kind.replace("L", "G"), {"expression": told["this"], "this": told["expression"]}]
    if kind == "In":
        told["expressions"] = sorted(told.get("expressions", []), key=repr)
    if isinstance(part, exp.Var | exp.Anonymous):
        told["this"] = str(inner).lower()
    return [kind, told]
