"""Conditions drawn at random, and what docs/release.md says each means on a row.

Nothing here is shared with the package. A value is None where it is missing; a condition is True,
False or None (unknown).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Meaning = Callable[[Row], Any]
NAN, INF = float("nan"), math.inf
BIG = 1234567890123456789
TEXTS = [
    *(None, "", "A", "a", "ab", "7", "7\n", " 12 ", "12\t", "+3", ".5", "1e2", "1e400", "nan"),
    *("12345678901234567", "12345678901234568", "12345678901234569", "0x10", "1_000", "9" * 70),
    *("Straße", "STRASSE", "ﬁ", "FI", "İ", "i̇", "ı", "Σ", "σ", "ς", "ÉCOLE", "école", "vfx", "fv"),
    *("\x0bx\x0c", "é%", "A_", "Ж", "ж", "ǅ", "µ", "ÿ", "Ÿ", "true", "FALSE"),
    *("2020-02-29", "2020-02-30", "-0", "a\nb", "\\"),
    *("0000-01-01", "2021-03-01 12:30", "2021-03-01T12:30:15.25", "2021-03-01 24:00"),
]  # fmt: skip
WHOLES = [None, 0, 1, -3, 7, BIG, BIG - 1, BIG + 1, 2**63 - 1, -(2**63), 2**53 + 1, 12, 3]
REALS = [None, 0.0, -0.0, -1.5, NAN, INF, -INF, 2.0, 7.0, 1e300, 0.1, 2.5, -2.5, 12.0]
DECIMALS = [None, "0.000", "10.010", "-3.250", "99999999999999999.999", "7.000", "12345678.905"]
DAYS = [None, date(1970, 1, 1), date(2020, 2, 29), date(1, 1, 1), date(9999, 12, 31)]
MOMENTS = [None, datetime(2021, 3, 1, 12, 30), datetime(1970, 1, 1), datetime(2020, 2, 29, 23, 59)]


def rows(count: int = 120) -> list[Row]:
    """Rows with every value at least once."""
    lists: dict[str, list[Any]] = {
        "s": TEXTS,
        "i": WHOLES,
        "f": REALS,
        "d": DECIMALS,
        "day": DAYS,
        "at": MOMENTS,
    }
    lists["b"] = [None, True, False]
    draw = random.Random(7)
    found = []
    for place in range(count):
        row: Row = {"who": place}
        for name, values in lists.items():
            row[name] = values[place] if place < len(values) else draw.choice(values)
        row["d"] = None if row["d"] is None else Decimal(row["d"])
        row["z"] = row["at"]
        found.append(row)
    return found


def table(given: list[Row]) -> pa.Table:
    kinds = {
        "who": pa.int64(), "s": pa.string(), "i": pa.int64(), "f": pa.float64(),
        "d": pa.decimal128(20, 3), "day": pa.date32(), "at": pa.timestamp("us"), "b": pa.bool_(),
        "z": pa.timestamp("us", "UTC"),
    }  # fmt: skip
    return pa.table({name: pa.array([row[name] for row in given], kinds[name]) for name in kinds})


def real(value: Any) -> float | None:
    """A value as a double."""
    if isinstance(value, str):
        plain = re.fullmatch(
            r" {0,20}[+-]?([0-9]{1,60}\.?[0-9]{0,60}|\.[0-9]{1,60})([eE][+-]?[0-9]{1,2})? {0,20}",
            value,
        )
        return float(value) if plain else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return float(value)


def whole(value: str | None) -> int | None:
    """A text as a whole number of up to 18 digits."""
    if value is None or not re.fullmatch(r" {0,20}[+-]?[0-9]{1,18} {0,20}", value):
        return None
    return int(value)


SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else NAN,
}


def compared(sign: str, a: Any, b: Any) -> bool | None:
    """Two values that are alike, or one of them a text."""
    if a is None or b is None:
        return None
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.encode(), b.encode()
    elif isinstance(a, date | datetime):
        a, b = moment(a), moment(b)
    elif type(a) is str and type(b) is int and whole(a) is not None:
        a = whole(a)
    elif type(b) is str and type(a) is int and whole(b) is not None:
        b = whole(b)
    elif not (type(a) is type(b) is int or type(a) is type(b) is bool):
        a, b = real(a), real(b)
        if a is None or b is None:
            return None
    return SIGNS[sign](a, b)


def moment(value: Any) -> datetime:
    if isinstance(value, str):
        return datetime.fromisoformat(value)
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def cased(text: str | None, capital: bool) -> str | None:
    """Letters with one counterpart each way, Latin, Greek and Cyrillic; others stay."""
    if text is None:
        return None

    def known(letter: str) -> bool:
        return ord(letter) < 0x530 or 0x1E00 <= ord(letter) < 0x1F00

    found = []
    for letter in text:
        other = letter.upper() if capital else letter.lower()
        back = other.lower() if capital else other.upper()
        changes = len(other) == 1 and back == letter and known(letter) and known(other)
        found.append(other if changes else letter)
    return "".join(found)


def like(pattern: str, text: str) -> bool:
    parts = {"%": ".*", "_": "."}
    rule = "".join(parts.get(letter, re.escape(letter)) for letter in pattern)
    return re.fullmatch(rule, text, re.DOTALL) is not None


def both(a: Any, b: Any) -> Any:
    return False if a is False or b is False else None if a is None or b is None else True


def opposite(a: Any) -> Any:
    return None if a is None else not a


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Drawn:
    """Conditions with their meanings, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def condition(self, depth: int = 2) -> tuple[str, Meaning]:
        pick = self.random.random()
        if depth and pick < 0.35:
            (a, f), (b, g) = self.condition(depth - 1), self.condition(depth - 1)
            word = self.random.choice(["and", "or", "not", "is null", "is not null", "is true"])
            if word == "and":
                return f"({a}) and ({b})", lambda r: both(f(r), g(r))
            if word == "or":
                return f"({a}) or ({b})", lambda r: opposite(both(opposite(f(r)), opposite(g(r))))
            if word == "not":
                return f"not ({a})", lambda r: opposite(f(r))
            if word == "is true":
                return f"(not ({a})) is true", lambda r: f(r) is False
            wanted = word == "is null"
            return f"(not ({a})) {word}", lambda r: (f(r) is None) == wanted
        return self.random.choice(
            [self.numbers, self.numbers, self.texts, self.texts, self.moments, self.truths]
        )()

    def sign(self) -> str:
        return self.random.choice(list(SIGNS))

    def number(self, depth: int = 1) -> tuple[str, Meaning]:
        name = self.random.choice(
            [
                "i",
                "f",
                "d",
                "s",
                "cast(s as int)",
                "1",
                "x",
                *["sign"] * 3,
                "abs",
                "%",
                "case",
                "hour",
            ]
        )
        if depth and name == "%":
            (a, f), (b, g) = self.number(0), self.number(0)
            return f"({a} % {b})", lambda r: _remainder(f(r), g(r))
        if depth and name == "case":
            return self.choice(*self.random.choice([WHOLE_CHOICES, REAL_CHOICES]))
        if depth and name == "hour":
            part = self.random.choice(["hour", "minute", "second"])
            return f"{part}(at)", lambda r: getattr(r["at"], part, None)
        if depth and name == "abs":
            a, f = self.number(0)
            return f"abs({a})", lambda r: _apply(lambda x, _: abs(x), f(r), 0.0)
        if depth and name == "sign":
            (a, f), (b, g) = self.number(depth - 1), self.number(0)
            sign = self.random.choice(list(ARITHMETIC))
            return f"({a} {sign} {b})", lambda r: _apply(ARITHMETIC[sign], f(r), g(r))
        if name == "cast(s as int)":
            return name, lambda r: _rounded(r["s"])
        if name in ("i", "f", "d", "s"):
            return name, lambda r: _there(r[name])
        text = self.random.choice(
            ["0", "1", "-3", "7", "2.5", "1e3", str(BIG), "12", "12345678901234568"]
        )
        value = int(text) if text.lstrip("-").isdigit() else float(text)
        return text, lambda r: value

    def numbers(self) -> tuple[str, Meaning]:
        (a, f), (b, g), (c, h) = self.number(), self.number(), self.number(0)
        if a == "s" and b == "s":
            b, g = "7", lambda r: 7
        if a == "s" and c == "s":
            c, h = "12", lambda r: 12
        kind = self.random.randrange(3)
        if kind == 0:
            return f"{a} between {b} and {c}", lambda r: both(
                compared(">=", f(r), g(r)), compared("<=", f(r), h(r))
            )
        if kind == 1:
            more, last = self.random.choice([("", True), (", null", None)])

            def outside(r: Row) -> Any:
                return both(both(compared("<>", f(r), g(r)), compared("<>", f(r), h(r))), last)

            if self.random.random() < 0.5:
                return f"{a} in ({b}, {c}{more})", lambda r: opposite(outside(r))
            return f"{a} not in ({b}, {c}{more})", outside
        sign = self.sign()
        return f"{a} {sign} {b}", lambda r: compared(sign, f(r), g(r))

    def text(self) -> tuple[str, Meaning]:
        name = self.random.choice(["s", "lower", "upper", "trim", "substr", "case", "day"])
        if name == "substr":
            start, size = self.random.randrange(1, 5), self.random.choice([None, 0, 1, 2, 10**8])
            given = f"{start}" if size is None else f"{start}, {size}"
            stop = None if size is None else start - 1 + size
            return (
                f"substring(s, {given})",
                lambda r: None if r["s"] is None else r["s"][start - 1 : stop],
            )
        if name == "case":
            return self.choice(*TEXT_CHOICES)
        if name == "day":
            return "cast(day as varchar)", lambda r: r["day"] and r["day"].isoformat()
        if name == "s":
            return "s", lambda r: r["s"]
        if name == "trim":
            return "trim(s)", lambda r: None if r["s"] is None else r["s"].strip(" \t\n\r\v\f")
        return f"{name}(s)", lambda r: cased(r["s"], name == "upper")

    def choice(
        self, names: list[str], value: Callable[[str, Row], Any]
    ) -> tuple[str, Callable[[Row], Any]]:
        """CASE in its two forms, IF and COALESCE, of values that are alike."""
        a, b, c = (self.random.choice(each) for each in (names[:-1], names, names))
        kind = self.random.randrange(5)
        if kind == 0:
            return f"coalesce({a}, {b}, {c})", lambda r: next(
                (found for each in (a, b, c) if (found := value(each, r)) is not None), None
            )
        if kind == 1:
            condition, meaning = self.condition(0)
            return f"if({condition}, {a}, {b})", lambda r: value(a if meaning(r) else b, r)
        if kind == 2:
            return f"case i when {BIG} then {a} when 7 then {b} when null then {b} else {c} end", (
                lambda r: value({BIG: a, 7: b}.get(r["i"], c), r)
            )
        (first, f), (second, g) = self.condition(0), self.condition(0)
        last = "" if kind == 3 else f"else {c} "
        return (
            f"case when {first} then {a} when {second} then {b} {last}end",
            lambda r: (
                value(a, r) if f(r) else value(b, r) if g(r) else value(c, r) if last else None
            ),
        )

    def texts(self) -> tuple[str, Meaning]:
        a, f = self.text()
        other = self.random.choice([each for each in TEXTS if each and "\x0b" not in each])
        kind = self.random.randrange(4)
        if kind == 0:
            sign = self.sign()
            return f"{a} {sign} {quoted(other)}", lambda r: compared(sign, f(r), other)
        if kind == 1:
            size = self.random.randrange(4)
            return f"length({a}) > {size}", lambda r: None if f(r) is None else len(f(r)) > size
        pattern = other.replace("\\", "")[:2] + self.random.choice(["%", "_", "", "%a"])
        if kind == 2:
            return (
                f"{a} like {quoted(pattern)}",
                lambda r: None if f(r) is None else like(pattern, f(r)),
            )
        small = cased(pattern, False) or ""
        return (
            f"{a} not ilike {quoted(pattern)}",
            lambda r: None if f(r) is None else not like(small, cased(f(r), False) or ""),
        )

    def moments(self) -> tuple[str, Meaning]:
        name, sign = self.random.choice(["day", "at", "z", "cast(s as timestamp)"]), self.sign()
        if self.random.random() < 0.4:
            return self.truncated(name, sign)

        def value(row: Row) -> Any:
            return _spelled(row["s"]) if "cast" in name else row[name]

        if self.random.random() < 0.3:
            part = self.random.choice(["year", "month", "day"])
            return (
                f"{part}({name}) {sign} 2",
                lambda r: compared(sign, getattr(value(r), part, None), 2),
            )
        other = self.random.choice(["2021-03-01 12:30", "1970-01-01", "2020-02-29", "9999-12-31"])
        return f"{name} {sign} {quoted(other)}", lambda r: compared(sign, value(r), other)

    def truncated(self, name: str, sign: str) -> tuple[str, Meaning]:
        """date_trunc, a cast to a date, and choices of moments."""
        other = self.random.choice(["2021-03-01 12:00", "1970-01-01", "2020-02-24", "9999-12-27"])
        if name == "z":
            given, value = self.choice(*MOMENT_CHOICES)
        elif name == "at":
            given, value = "cast(at as date)", lambda r: r["at"] and r["at"].date()
        else:
            unit = self.random.choice(["year", "quarter", "month", "week", "day", "hour"])
            given = f"date_trunc('{unit}', {name})"

            def value(r: Row) -> Any:
                found = _spelled(r["s"]) if "cast" in name else r[name]
                return None if found is None else _begun(unit, moment(found))

        return f"{given} {sign} {quoted(other)}", lambda r: compared(sign, value(r), other)

    def truths(self) -> tuple[str, Meaning]:
        return self.random.choice(
            [
                ("b", lambda r: r["b"]),
                ("b = false", lambda r: opposite(r["b"])),
                ("b is not true", lambda r: r["b"] is not True),
                ("b is false", lambda r: r["b"] is False),
                ("b = (null)", lambda r: None),
                ("s is null", lambda r: r["s"] is None),
                ("f is not null", lambda r: _there(r["f"]) is not None),
                ("i = null", lambda r: None),
                ("coalesce(b, true)", lambda r: r["b"] is not False),
                (
                    "case when b then i > 1 else null end",
                    lambda r: compared(">", r["i"], 1) if r["b"] else None,
                ),
                ("i % 0 is null", lambda r: True),
                ("cast(s as boolean)", lambda r: _truth(r["s"])),
                ("cast(i as varchar) = s", lambda r: compared("=", _text(r["i"]), r["s"])),
            ]
        )


def _value(name: str, row: Row) -> Any:
    """A column or a constant of a choice, as it stands."""
    if name == "null":
        return None
    if name.startswith("'"):
        return name[1:-1]
    return row[name] if name in row else int(name) if name.isdigit() else float(name)


def _moment_or_day(name: str, row: Row) -> Any:
    found = _value(name, row)
    return None if found is None else moment(found)


WHOLE_CHOICES = (["i", "7", "0", "null"], _value)
REAL_CHOICES = (["i", "f", "d", "2.5", "s", "null"], lambda name, row: real(_value(name, row)))
TEXT_CHOICES = (["s", "''", "'ab'", "null"], _value)
MOMENT_CHOICES = (["day", "at", "'2020-02-29 12:00'", "null"], _moment_or_day)
"""Values of one kind, and what each is on a row."""


def _remainder(a: Any, b: Any) -> Any:
    """With the sign of what is divided."""
    if type(a) is int and type(b) is int:
        return None if b == 0 else abs(a) % abs(b) * (-1 if a < 0 else 1)
    one, other = real(a), real(b)
    if one is None or not other or math.isinf(one):
        return None
    return math.fmod(one, other)


def _begun(unit: str, at: datetime) -> datetime:
    """When the year, …, hour began in which a moment is."""
    day = datetime(at.year, at.month, at.day)
    return {
        "year": datetime(at.year, 1, 1),
        "quarter": datetime(at.year, (at.month - 1) // 3 * 3 + 1, 1),
        "month": datetime(at.year, at.month, 1),
        "week": day - timedelta(at.weekday()),
        "day": day,
        "hour": day + timedelta(hours=at.hour),
    }[unit]


def _there(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _apply(operation: Callable[[float, float], float], a: Any, b: Any) -> float | None:
    one, other = real(a), real(b)
    if one is None or other is None:
        return None
    found: float | None = _there(operation(one, other))
    return found


def _rounded(text: str | None) -> int | None:
    found = real(text)
    if whole(text) is not None or found is None:
        return whole(text)
    return math.floor(found + 0.5) if abs(found) < 2.0**62 else None


def _spelled(text: str | None) -> datetime | None:
    form = r"\d{4}-\d\d-\d\d([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?"
    try:
        return datetime.fromisoformat(text) if text and re.fullmatch(form, text) else None
    except ValueError:
        return None


def _truth(text: str | None) -> bool | None:
    return {"true": True, "false": False}.get((text or "").lower())


def _text(value: int | None) -> str | None:
    return None if value is None else str(value)
