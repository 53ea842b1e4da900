"""Casts that mean the same on every engine, and never fail: what cannot be cast is missing.

Engines differ in what they read as a number (1_000, 1d, 0x10, Infinity), a date or a truth, and in
how they round. So texts are cast only where they have a plain form, and fractions are rounded to
the nearest whole number, halves up.
"""

from __future__ import annotations

from typing import Any

from whosin.errors import InvalidInput

NUMBER = r"^ *[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,2})? *$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
MOMENT = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?)?$"
TRUTH = r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"
FORMS = {"float64": NUMBER, "date": DATE, "timestamp": MOMENT, "boolean": TRUTH}
LARGEST = 2.0**62


def cast(value: Any, kind: str) -> Any:
    """A value as another type; missing where that has no meaning."""
    import ibis

    given = value.type()
    if kind == "int64" and not given.is_integer():
        real = cast(value, "float64")
        whole = (real + 0.5).floor()
        fits = (real > -LARGEST) & (real < LARGEST)
        return fits.ifelse(whole, ibis.null("float64")).cast("int64")
    if given.is_string() and kind in FORMS:
        plain = value.re_search(FORMS[kind]).ifelse(value, ibis.null("string"))
        return plain.try_cast(kind)
    if kind == "string" and (given.is_floating() or given.is_decimal() or given.is_timestamp()):
        accepted = "a cast to text of whole numbers, dates or truths"
        raise InvalidInput("where", accepted, str(given))
    return value.try_cast(kind)


def usable(kind: Any) -> bool:
    """Whether anything may be asked of a column of this type. Engines fail on some values of other
    types (a duration of 2^62 s) when they read them."""
    return bool(
        kind.is_string()
        or kind.is_numeric()
        or kind.is_boolean()
        or kind.is_date()
        or kind.is_timestamp()
    )
