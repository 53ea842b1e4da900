"""Casts that mean the same on every engine, and never fail: what cannot be cast is missing.

Engines differ in what they read as a number (1_000, 1d, 0x10, Infinity), a date or a truth, and in
how they round. So texts are cast only where they have a plain form, and fractions are rounded to
the nearest whole number, halves up.
"""

from __future__ import annotations

from typing import Any

from whosin.errors import InvalidInput

# \z is the end; $ would be so before a last line break too, in some engines. Digits have an end,
# since other engines try all ways to divide a long row of them.
NUMBER = r"^ {0,20}[+-]?([0-9]{1,60}[.]?[0-9]{0,60}|[.][0-9]{1,60})([eE][+-]?[0-9]{1,2})? {0,20}\z"
WHOLE = r"^ {0,20}[+-]?[0-9]{1,18} {0,20}\z"
DAY = "([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
MOMENT = f"{DAY}([ T]{CLOCK})?"
TRUTH = r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])\z"
FORMS = {
    "whole": WHOLE,
    "float64": NUMBER,
    "date": rf"^{DAY}\z",
    "timestamp": rf"^{MOMENT}\z",
    "boolean": TRUTH,
}
LARGEST = 2.0**62
EXACT = 15
"""Digits that a double holds, whatever they are."""


def cast(value: Any, kind: str) -> Any:
    """A value as another type; missing where that has no meaning.

    Args:
        kind: an Ibis type; "whole" for a text that spells a whole number of up to 18 digits.
    """
    import ibis

    given = value.type()
    if kind == "int64" and given.is_string():
        return ibis.coalesce(cast(value, "whole"), cast(cast(value, "float64"), "int64"))
    if kind == "int64" and not given.is_integer():
        real = cast(value, "float64")
        whole = (real + 0.5).floor()
        fits = (real > -LARGEST) & (real < LARGEST)
        return fits.ifelse(whole, ibis.null("float64")).cast("int64")
    if given.is_string() and kind in FORMS:
        plain = value.re_search(FORMS[kind]).ifelse(value, ibis.null("string"))
        return plain.try_cast("int64" if kind == "whole" else kind)
    if given.is_decimal() and kind == "float64" and (given.precision or 38) > EXACT:
        return value.cast("string").try_cast("float64")  # engines divide in different ways
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
