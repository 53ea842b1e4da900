"""Constants of a condition: numbers, texts, patterns, and lists of them.

Contract: as for `predicate`; what engines could read in different ways is refused.
"""

from __future__ import annotations

from typing import Any

from whosin.release.conditions.row_values import describe, ibis_module, number, refused, short


def is_number(node: Any) -> bool:
    """Whether a part of a condition is a number as it stands."""
    from sqlglot import exp

    return isinstance(node, exp.Literal) and not node.is_string


def literal(node: Any) -> Any:
    """A constant as an Ibis value."""
    if node.is_string:
        return ibis_module().literal(plain_text(node.this))
    if node.this.isascii() and node.this.isdigit():
        if len(node.this) > 19 or int(node.this) >= 2**63:
            raise refused("free of whole numbers of more than 64 bits", short(node.this))
        return ibis_module().literal(int(node.this), "int64")
    try:
        return ibis_module().literal(float(node.this), "float64")
    except ValueError:
        raise refused("numbers such as 1.5", short(node.this)) from None


def listed(value: Any, nodes: list[Any]) -> tuple[list[Any], list[Any]]:
    """(a condition on the constants that compare with a value as they stand, the other parts of the
    list): one comparison with a list is planned much faster than one with each of its parts."""
    kind = value.type()
    if kind.is_string():
        target = "string"
    elif kind.is_integer():
        target = "int64"
    elif kind.is_floating() or kind.is_decimal():
        value, target = number(value), "float64"
    else:
        return [], nodes
    read = [(_constant(node, target), node) for node in nodes]
    plain = dict.fromkeys(constant for constant, _ in read if constant is not None)
    others = [node for constant, node in read if constant is None]
    literals = [ibis_module().literal(constant, target) for constant in plain]
    return [value.isin(literals)] if literals else [], others


def _constant(node: Any, target: str) -> Any:
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


def pattern_of(node: Any) -> str:
    """The pattern of a `like`."""
    pattern = node.expression
    if not pattern.is_string or "\\" in pattern.this:
        raise refused("like with a plain pattern such as 'A%'", describe(pattern))
    return plain_text(str(pattern.this))


def plain_text(text: str) -> str:
    """A text of a condition. Engines read some control characters in SQL as letters."""
    if any((ord(letter) < 32 and letter not in "\t\n\r") or letter == "\x7f" for letter in text):
        accepted = "free of control characters other than tabs and line breaks"
        raise refused(accepted, short(text))
    return text
