"""Public domains of columns: values, ranges of numbers, and dates.

What a column may hold, declared before anyone looks at the rows. Answers have the shape that the
domains say, whatever the rows hold. A number outside its range is clamped where it is summed. Where
rows are put into cells, a value outside is in the cell "other", or, in a closed domain, where
`outside` says: each row is placed by looking at it alone, so nobody is in more cells than before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias

from whosin.documents import check_keys
from whosin.errors import InvalidInput, LazyModule, UnknownName, at, invalid_value, shorten, spell
from whosin.exact import rational, read_ranged
from whosin.release.row_values import DAY_PATTERN, cast_value, timestamp_value

ibis = LazyModule("ibis")

OTHER_LABEL = "other"
FROM_ROWS = "from_rows"
"""The key of a domain that says that it was chosen by looking at the rows."""
DROP, CLAMP = "drop", "clamp"
"""What a closed domain may do with a value outside, beside counting it as a declared one."""


def check_closed(cells: int) -> None:
    """A closed domain has several cells: with one there would be nothing to ask."""
    if cells < 2:
        message = "outside has no meaning where a domain has one value or bin only"
        raise InvalidInput(message, field="outside", hint="leave it out")


def check_outside(outside: object) -> None:
    """What may be said about bins."""
    if outside not in (None, DROP, CLAMP):
        raise invalid_value("outside", f"{DROP!r} or {CLAMP!r} for a range", repr(outside)[:80])


def check_flag(given: object, field: str) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(given, bool):
        raise invalid_value(field, "true or false", repr(given)[:80])


def other_label(values: Sequence[object]) -> str:
    """What the cell of undeclared values is called: where a value is called "other", in small
    letters or in capitals, nobody should have to tell the two apart by a sign."""
    taken = {str(value).lower() for value in values}
    name = "undeclared" if OTHER_LABEL in taken else OTHER_LABEL
    while name in taken:
        name += "_"
    return name


MAX_GROUP_COUNT = 10**7
MAX_VALUES = 10_000
MAX_STEPS = 10**6
"""How many steps a range has by default, at the most; sums of 10^12 rows still fit 64 bits."""
MAX_BOUND_STEPS = 10**9
"""How many steps from 0 a value may be, at the most; sums of 10^9 rows still fit 64 bits."""
MAX_BOUND = 10**100


# Hierarchies of values: the canton of each municipality, the region of each canton. Every value has
# exactly one parent at every level, so that the counts of an upper level are sums of those of the
# lower one. All of it is declared; nothing here looks at rows.


MAX_LEVELS = 20
Value = str | int
PARENTS_EXAMPLE = 'a table such as { ZH = ["Zürich", "Winterthur"], BE = ["Bern"] }'


@dataclass(frozen=True)
class Parents:
    """One upper level of a domain.

    Attributes:
        name: what the level is called, such as canton.
        labels: the parents, in the order in which they were declared.
        numbers: for each value of the domain the number of its parent among them.
    """

    name: str
    labels: tuple[str, ...]
    numbers: tuple[int, ...]

    def to_dict(self, values: Sequence[Value]) -> dict[str, list[Value]]:
        """Plain data: each parent with its values."""
        result: dict[str, list[Value]] = {label: [] for label in self.labels}
        for value, number in zip(values, self.numbers, strict=True):
            result[self.labels[number]].append(value)
        return result


def lowest_values(data: object) -> tuple[Any, ...]:
    """The values of a domain that are declared by their parents alone: the children of the first
    level that is not about parents of another one."""
    levels = list(data.values()) if isinstance(data, Mapping) else []
    if not levels or not all(isinstance(each, Mapping) for each in levels):
        raise _refuse_levels(data)
    above = {parent for level in levels for parent in level}
    listed = [
        tuple(child for each in level.values() if isinstance(each, list | tuple) for child in each)
        for level in levels
    ]
    lowest = (each for each in listed if not all(isinstance(x, str) and x in above for x in each))
    return next(lowest, listed[0])


def read_parents(values: tuple[Value, ...], data: object) -> tuple[Parents, ...]:
    """The levels as people write them: for each its parents, and for each parent its children,
    which are values of the domain or parents of another level."""
    if isinstance(data, tuple) and all(isinstance(each, Parents) for each in data):
        if any(len(each.numbers) != len(values) for each in data):
            message = "every level of parents needs one parent for each value"
            raise InvalidInput(message, field="parents")
        return data
    if not isinstance(data, Mapping):
        raise _refuse_levels(data)
    if len(data) > MAX_LEVELS:
        raise invalid_value("parents", f"at most {MAX_LEVELS} levels", len(data))
    listed = {}
    for name, level in data.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or "(" in name:
            message = f"parents has a level named {_shorten(name)}"
            hint = "name levels by text without brackets"
            raise InvalidInput(message, field="parents", value=name, hint=hint)
        with at(f"parents.{name}"):
            listed[name] = _read_level(name, level)
    resolved: dict[str, Parents] = {}
    for name in listed:
        _resolve_level(name, values, listed, resolved, ())
    return tuple(resolved[name] for name in listed)


def _refuse_levels(data: object) -> InvalidInput:
    return invalid_value("parents", f"a mapping of levels, each {PARENTS_EXAMPLE}", repr(data)[:80])


def _shorten(value: object) -> str:
    return shorten(repr(value)[:80])


def _read_level(name: str, level: object) -> dict[str, tuple[Value, ...]]:
    if not isinstance(level, Mapping) or not level:
        raise invalid_value(name, PARENTS_EXAMPLE, repr(level)[:80])
    seen: set[Any] = set()
    for parent, children in level.items():
        if not isinstance(parent, str) or not parent.isprintable():
            message = f"{name} has the parent {_shorten(parent)}, which is not printable text"
            raise InvalidInput(message, field=name, value=parent)
        if not isinstance(children, list | tuple) or not children:
            accepted = f"at least one value for {parent}"
            message = f"{name} must list {accepted}, not {_shorten(children)}"
            raise InvalidInput(message, field=name, value=children)
        for child in children:
            if not isinstance(child, str | int):
                raise invalid_value(name, "about texts or whole numbers", _shorten(child))
            if _value_key(child) in seen:
                message = f"{name} lists {child!r} twice; a value has one parent"
                raise InvalidInput(message, field=name, value=child)
            seen.add(_value_key(child))
    return {parent: tuple(children) for parent, children in level.items()}


def _resolve_level(
    name: str,
    values: tuple[Value, ...],
    listed: Mapping[str, Mapping[str, tuple[Value, ...]]],
    resolved: dict[str, Parents],
    above: tuple[str, ...],
) -> Parents:
    """A level over the values, by way of the level that its children are of."""
    if name in resolved:
        return resolved[name]
    with at(f"parents.{name}"):
        if name in above:
            way = " → ".join((*above[above.index(name) :], name))
            raise InvalidInput(f"{name} is its own parent by way of {way}", field=name, value=way)
        level = listed[name]
        numbers = {
            _value_key(child): number
            for number, each in enumerate(level.values())
            for child in each
        }
        lower = _level_below(name, values, listed, numbers)
        below = values if lower is None else tuple(listed[lower])
        known = dict.fromkeys(map(_value_key, below))
        for _, child in (each for each in numbers if each not in known):
            message = f"{name} lists {_shorten(child)}, which is not a value of"
            raise InvalidInput(f"{message} {lower or 'the domain'}", field=name, value=child)
        for _, value in (each for each in known if each not in numbers):
            message = f"{name} has no parent for {_shorten(value)}"
            raise InvalidInput(message, field=name, value=value)
    own = tuple(numbers[_value_key(value)] for value in below)
    if lower is not None:
        inner = _resolve_level(lower, values, listed, resolved, (*above, name))
        own = tuple(own[each] for each in inner.numbers)
    resolved[name] = Parents(name, tuple(level), own)
    return resolved[name]


def _level_below(
    name: str,
    values: tuple[Value, ...],
    listed: Mapping[str, Mapping[str, tuple[Value, ...]]],
    children: Mapping[tuple[type, Value], int],
) -> str | None:
    """What the children are: the values themselves (None), or the parents of another level; where
    neither fits, what most of them are, so that the refusal is about that."""
    candidates: dict[str | None, Sequence[Value]] = {None: values}
    candidates |= {other: tuple(level) for other, level in listed.items() if other != name}
    common = {
        other: sum(_value_key(each) in children for each in level)
        for other, level in candidates.items()
    }
    for other, level in candidates.items():
        if common[other] == len(level) == len(children):
            return other
    best = max(candidates, key=lambda other: common[other])
    return best if common[best] > common[None] else None


def _value_key(value: Value) -> tuple[type, Value]:
    """true and 1 are two values."""
    return type(value), value


class CellDomain:
    """What rows are put into cells by: a domain, or something made of one."""

    @property
    def constant(self) -> bool:
        """Whether it is the same in all rows of a privacy unit."""
        raise NotImplementedError

    @property
    def outside(self) -> object:
        """What becomes of what is outside; None in a domain that is open."""
        raise NotImplementedError

    @property
    def cells(self) -> tuple[str | int, ...]:
        """What the cells are called, without that of what is outside an open domain."""
        raise NotImplementedError

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell: one without a value, at least."""
        return self.outside is not None

    @property
    def beyond(self) -> int:
        """The number of the cell of what is outside; -1 where it does not count."""
        return -1 if self.drops else len(self.cells)

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The cells, in their order, with "other" at the end of a domain that is open."""
        return self.cells if self.outside is not None else (*self.cells, other_label(self.cells))


@dataclass(frozen=True)
class Values(CellDomain):
    """A column with finitely many public values; anything else is in the cell "other".

    Args:
        constant: whether all rows of a privacy unit have the same value, as far as is publicly
            known. Then a privacy unit is in one cell of this column, whatever `max_groups` says;
            one whose rows differ nevertheless is in one of its cells, chosen at random.
        outside: closes the domain: "drop", and rows with any other value do not count in cells, or
            one of the values, and they count as that.
        parents: upper levels that values belong to, by name, each with its parents and their
            children: {"canton": {"ZH": ["Zürich", "Winterthur"], "BE": ["Bern"]}}. The children of
            a level may be the parents of another one.
    """

    values: tuple[str | int, ...]
    constant: bool = False
    outside: object = None
    parents: object = ()
    from_rows: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.values, list | tuple | range) or not self.values:
            raise invalid_value("values", "a list of at least one value", repr(self.values)[:80])
        if len(self.values) > MAX_VALUES:
            count = spell(len(self.values))
            raise invalid_value("values", f"at most {spell(MAX_VALUES)} values", count)
        object.__setattr__(self, "values", tuple(self.values))
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}, {bool}):
            accepted = "all text, all whole numbers, or true and false"
            raise invalid_value("values", accepted, self.values[:5])
        if kinds == {int} and not all(-(2**63) <= int(value) < 2**63 for value in self.values):
            message = "values has a whole number that does not fit into 64 bits"
            raise InvalidInput(message, field="values")
        if any("\ud800" <= letter <= "\udfff" for each in self.values for letter in str(each)):
            raise InvalidInput("values has text that UTF-8 cannot hold", field="values")
        if len(set(self.values)) != len(self.values):
            raise InvalidInput("values has a value twice", field="values", value=self.values[:5])
        check_flag(self.constant, "constant")
        self._check_outside()
        if self.parents != ():
            object.__setattr__(self, "parents", read_parents(self.values, self.parents))

    @property
    def levels(self) -> tuple[Parents, ...]:
        """The upper levels that the domain declares."""
        assert isinstance(self.parents, tuple)
        return self.parents

    def _check_outside(self) -> None:
        if self.outside is None:
            return
        check_closed(len(self.values))
        if self.outside == DROP and DROP in self.values:
            message = f"outside = {DROP!r} is ambiguous, since {DROP!r} is a declared value"
            hint = "name another value, or leave it out"
            raise InvalidInput(message, field="outside", value=DROP, hint=hint)
        if self.outside != DROP and not any(map(self._names, self.values)):
            accepted = f"{DROP!r}, or one of the declared values"
            raise invalid_value("outside", accepted, repr(self.outside)[:80])

    def _names(self, value: object) -> bool:
        """Whether values outside count as this one; true and 1 are two values."""
        return type(value) is type(self.outside) and value == self.outside

    @property
    def cells(self) -> tuple[str | int, ...]:
        """The values, in the declared order."""
        return self.values

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.outside == DROP

    @property
    def beyond(self) -> int:
        """The number of the cell of what was not declared; -1 where it does not count."""
        if self.outside is None or self.drops:
            return super().beyond
        return [*map(self._names, self.values)].index(True)


@dataclass(frozen=True)
class Range(CellDomain):
    """A numeric column, clamped to [lower, upper], rounded to multiples of a step.

    Args:
        step: sums and means are computed in whole multiples of it; by default the power of ten
            that gives up to a million steps.
        edges: where bins end, for histograms and group-by: bins are [a, b), the last one [a, b].
        constant: whether all rows of a privacy unit have the same number; see `Values`.
        outside: closes the bins, and decades: "drop", and rows with a number in none of them do not
            count in cells, or "clamp", and it is in the first or the last one. In both cases rows
            without a number do not count.
    """

    lower: object
    upper: object
    step: object = None
    edges: tuple[object, ...] = ()
    constant: bool = False
    outside: str | None = None
    from_rows: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        check_flag(self.constant, "constant")
        low, high = self.bounds
        if low >= high:
            message = f"lower is {shorten(self.lower)}, not below upper, {shorten(self.upper)}"
            raise InvalidInput(message, field="lower", value=self.lower)
        if max(-low, high) > MAX_BOUND or high - low < Fraction(1, MAX_BOUND):
            message = "lower and upper must lie within ±1e100, and at least 1e-100 apart"
            raise InvalidInput(message, field="lower and upper", value=self.lower)
        if not isinstance(self.edges, list | tuple):
            raise invalid_value("edges", "a list of numbers", repr(self.edges))
        object.__setattr__(self, "edges", tuple(self.edges))
        exact = [rational(edge, "edges") for edge in self.edges]
        if any(abs(edge) > MAX_BOUND for edge in exact):
            raise InvalidInput("edges must lie within ±1e100", field="edges")
        edges = list(map(float, exact))
        if edges and (len(edges) < 2 or edges != sorted(set(edges))):
            raise invalid_value("edges", "at least two numbers in rising order", list(self.edges))
        if len(edges) > MAX_VALUES:
            raise invalid_value("edges", f"at most {spell(MAX_VALUES)} numbers", spell(len(edges)))
        self._check_step()
        if self.outside is not None:
            check_outside(self.outside)
            if edges:
                check_closed(len(edges) - 1)

    def _check_step(self) -> None:
        if self.step is not None:
            read_ranged(self.step, "step", "above 0")
        least, most = self.units
        step = "the default" if self.step is None else self.step
        if least >= most:
            message = f"step is {shorten(step)}, too large for two steps within the range"
            raise InvalidInput(message, field="step", value=step)
        if max(-least, most) > MAX_BOUND_STEPS:
            message = f"step is {shorten(step)}, less than a billionth of the largest value"
            raise InvalidInput(message, field="step", value=step)

    @cached_property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The ends of the clamp as exact rationals."""
        return rational(self.lower, "lower"), rational(self.upper, "upper")

    @cached_property
    def unit(self) -> Fraction:
        """The step of the range as an exact rational."""
        if self.step is not None:
            return rational(self.step, "step")
        low, high = self.bounds
        # Up to a million steps within the range, and a billion from 0.
        needed = max((high - low) / MAX_STEPS, max(-low, high) / MAX_BOUND_STEPS)
        unit = Fraction(1)
        while unit < needed:
            unit *= 10
        while unit / 10 >= needed:
            unit /= 10
        return unit

    @cached_property
    def units(self) -> tuple[int, int]:
        """The clamp in whole steps: the multiples of the step inside [lower, upper]."""
        low, high = self.bounds
        return -(-low // self.unit), high // self.unit

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The bins, as texts."""
        ends = [repr(float(rational(edge))).removesuffix(".0") for edge in self.edges]
        return tuple(f"{a}..{b}" for a, b in pairwise(ends))


MAX_DAYS = 100_000
CALENDAR_UNITS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "isoweek": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.isoformat()[:4]}-Q{(day.month + 2) // 3}",
    "year": lambda day: day.isoformat()[:4],
}
"""The name of a day's bin: days with the same name are in one bin."""
CALENDAR_PARTS: dict[str, Callable[[date], int]] = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month + 2) // 3,
    "month": lambda day: day.month,
    "isoweek": lambda day: day.isocalendar()[1],
    "decade": lambda day: day.year // 10 * 10,
}
"""Functions of a day that an answer may be grouped by."""


@dataclass(frozen=True)
class Dates(CellDomain):
    """A column of dates, or of moments, from a first to a last day.

    Args:
        lower, upper: days, such as "2024-01-31"; the last one to its end.
        edges: bins for histograms and group-by: "day", "isoweek", "month", "quarter" or "year", or
            a list of days from lower to upper: bins are [a, b), the last one with its last day.
        constant: whether all rows of a privacy unit have the same date; see `Values`.
        outside: closes the bins, and what is derived: "drop", and rows with another date do not
            count in cells, or "clamp", and they count as the first or the last day. In both cases
            rows without a date do not count.
    """

    lower: object
    upper: object
    edges: str | tuple[object, ...] = ()
    constant: bool = False
    outside: str | None = None
    from_rows: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        check_flag(self.constant, "constant")
        for end in ("lower", "upper"):
            object.__setattr__(self, end, read_day(getattr(self, end), end).isoformat())
        first, last = self.ends
        if first >= last:
            message = f"lower is {first}, not before upper, {last}"
            raise InvalidInput(message, field="lower", value=str(first))
        if (last - first).days >= MAX_DAYS:
            message = f"upper is {last}, more than {spell(MAX_DAYS)} days after lower"
            raise InvalidInput(message, field="upper", value=str(last))
        if isinstance(self.edges, str):
            if self.edges not in CALENDAR_UNITS:
                raise UnknownName("edges of dates", self.edges, CALENDAR_UNITS)
        elif isinstance(self.edges, list | tuple):
            self._check_edges()
        else:
            accepted = "a list of days, or a calendar unit such as month"
            raise invalid_value("edges", accepted, repr(self.edges)[:80])
        check_outside(self.outside)
        if self.outside is not None and self.edges:
            check_closed(len(self.cells))

    def _check_edges(self) -> None:
        days = [read_day(edge, "edges") for edge in self.edges]
        if days and (len(days) < 2 or days != sorted(set(days))):
            raise invalid_value("edges", "at least two days in rising order", list(map(str, days)))
        first, last = self.ends
        if days and (days[0], days[-1]) != (first, last):
            ends = [str(days[0]), str(days[-1])]
            message = f"edges run from {' to '.join(ends)}, and the dates from {first} to {last}"
            raise InvalidInput(message, field="edges", value=ends, hint="begin and end them alike")
        object.__setattr__(self, "edges", tuple(day.isoformat() for day in days))

    @property
    def ends(self) -> tuple[date, date]:
        """The first and the last day."""
        return date.fromisoformat(str(self.lower)), date.fromisoformat(str(self.upper))

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """What the bins are called, in their order."""
        return tuple(dict.fromkeys(name for _, name in self.binned))

    @cached_property
    def binned(self) -> tuple[tuple[date, str], ...]:
        """The days that are in a bin, with its name."""
        if isinstance(self.edges, str):
            unit = CALENDAR_UNITS[self.edges]
            return tuple((day, unit(day)) for day in self.days)
        starts = [date.fromisoformat(str(edge)) for edge in self.edges]
        names = [f"{a}..{b}" for a, b in pairwise(starts)]
        # The last day is in the last bin, which ends with it.
        bins = (bisect_right(starts, day, hi=len(names)) - 1 for day in self.days if names)
        return tuple((day, names[at]) for day, at in zip(self.days, bins, strict=False))

    @property
    def days(self) -> list[date]:
        """All days from the first to the last."""
        first, last = self.ends
        return [first + timedelta(each) for each in range((last - first).days + 1)]

    def numbered_days(self) -> tuple[tuple[int, int], ...]:
        """The code of each day that is in a bin, with the bin's number."""
        numbers = {name: index for index, name in enumerate(self.cells)}
        return tuple((date_code(day), numbers[name]) for day, name in self.binned)

    def code(self, value: Any) -> Any:
        """The day of a value as a whole number that rises with it; missing where there is none, and
        moved to the nearer end where days outside are to be."""
        text = value.type().is_string()
        moment = cast_value(value, "timestamp") if text else timestamp_value(value)
        parts = moment.year(), moment.month(), moment.day()
        result = day_code(*(part.cast("int64") for part in parts))
        if self.outside != CLAMP:
            return result
        low, high = map(date_code, self.ends)
        return ibis.cases((result < low, low), (result > high, high), else_=result).cast("int64")


def day_code(year: Any, month: Any, day: Any) -> Any:
    """A number for a day of the calendar."""
    return year * 372 + month * 31 + day


def date_code(day: date) -> int:
    """The same for a day that is known."""
    return int(day_code(day.year, day.month, day.day))


DAY_LIKE = r"\s*(\d{4}-|\d{1,4}([./-])\d{1,2}\2\d{1,4}\s*$)"
"""What only a day looks like: 2024-…, 31.1.2024, 1/31/24. `read_day` says how to write it."""


def is_day(data: object) -> bool:
    """Whether something is meant as a day, however it is spelled."""
    return isinstance(data, date) or (isinstance(data, str) and bool(re.match(DAY_LIKE, data)))


DAY_FORMATS = (
    *(mark.join(parts) for mark in "/.-" for parts in ("mdY", "dmY", "Ymd", "mdy", "dmy")),
    *("d b Y", "d B Y", "b d, Y", "B d, Y", "d-b-Y", "dbY"),
)
"""Other spellings of days than 2024-01-31, by the letters of `strptime`."""


def respelled_days(text: str) -> list[str]:
    """The days that a text in another spelling may be, as they are to be written; none for what is
    no day."""
    plain, found = re.sub(r"[ T]+\d{1,2}:\d\d.*$", "", text.strip()), set[str]()
    for each in DAY_FORMATS:
        with suppress(ValueError):
            known = datetime.strptime(plain, re.sub("([A-Za-z])", r"%\1", each))
            found.add(known.date().isoformat())
    return sorted(found)


def describe_misspelt_days(named: Sequence[tuple[str, int]]) -> str:
    """How days are to be written, by one of which nobody can doubt which one it is."""
    sure = ((text, days) for text, _ in named if len(days := respelled_days(text)) == 1)
    text, (day,) = next(sure, (named[0][0], ["days as 2024-01-31"]))
    return f"{shorten(text)!r} is no date; write {day}"


def read_day(data: object, field: str) -> date:
    """A day as people write it."""
    if type(data) is date:
        return data
    if isinstance(data, str) and re.fullmatch(DAY_PATTERN, data):
        try:
            return date.fromisoformat(data)
        except ValueError:
            pass
    raise invalid_value(field, "a day such as 2024-01-31", repr(data)[:80])


Domain: TypeAlias = Values | Range | Dates
MAX_DOMAIN_LETTERS = 60


def describe_domain(domain: Domain) -> str:
    """What a column may hold, in few words."""
    if isinstance(domain, Values):
        text = ", ".join(map(str, domain.values))
        return text if len(text) <= MAX_DOMAIN_LETTERS else f"{text[: MAX_DOMAIN_LETTERS - 1]}…"
    first, last = domain.ends if isinstance(domain, Dates) else (domain.lower, domain.upper)
    return f"{first}..{last}"


def read_domain(column: str, data: object) -> Domain:
    """A domain as people write it: a list of values, (lower, upper), "0..120", or keys; days such
    as 2024-01-31 make a domain of dates."""
    if isinstance(data, Values | Range | Dates):
        return data
    if isinstance(data, str) and ".." in data:
        low, _, high = data.partition("..")
        return Dates(low, high) if is_day(low) or is_day(high) else Range(low, high)
    if isinstance(data, tuple) and len(data) == 2 and not any(isinstance(x, str) for x in data):
        return (Dates if is_day(data[0]) else Range)(data[0], data[1])
    if isinstance(data, list | tuple | range):
        return Values(data)  # type: ignore[arg-type]
    if isinstance(data, Mapping):
        return _domain_from_keys(column, data)
    accepted = "a list of values, or a range such as 0..120"
    raise invalid_value(f"domain of {column}", accepted, repr(data))


def _domain_from_keys(column: str, data: Mapping[Any, Any]) -> Domain:
    known = ("values", "lower", "upper", "step", "edges", "constant", "outside", "parents")
    check_keys(data, (*known, FROM_ROWS), f"domain of {column}")
    field = f"domain of {column}"
    if FROM_ROWS in data:
        check_flag(data[FROM_ROWS], FROM_ROWS)
        rest = {key: value for key, value in data.items() if key != FROM_ROWS}
        return replace(_domain_from_keys(column, rest), from_rows=data[FROM_ROWS])
    constant, outside = data.get("constant", False), data.get("outside")
    if "values" in data or "parents" in data:
        if not data.keys() <= {"values", "constant", "outside", "parents"}:
            message = f"the {field} has both values and a range"
            raise InvalidInput(message, field=field, hint="give one of them")
        parents = data.get("parents", ())
        values = data["values"] if "values" in data else lowest_values(parents)
        return Values(_read_list(values, f"values of {column}"), constant, outside, parents)
    edges = data.get("edges", ())
    if not isinstance(edges, str):
        edges = _read_list(edges, f"edges of {column}")
    if "edges" in data and len(edges) < 2 and not {"lower", "upper"} <= data.keys():
        accepted = "at least two numbers: where the first bin begins and where the last one ends"
        raise invalid_value("edges", accepted, list(edges))
    if edges and not isinstance(edges, str):
        data = {"lower": edges[0], "upper": edges[-1], **data}
    for key in ("lower", "upper"):
        if key not in data:
            hint = "give values, or lower and upper"
            raise InvalidInput(f"the {field} has no {key!r}", field=field, value=key, hint=hint)
    if is_day(data["lower"]) or is_day(data["upper"]):
        if data.get("step") is not None:
            message = f"the {field} has dates, which take no step"
            raise InvalidInput(message, field=field, value=data["step"])
        return Dates(data["lower"], data["upper"], edges, constant, outside)
    return Range(data["lower"], data["upper"], data.get("step"), edges, constant, outside)


def _read_list(data: object, field: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise invalid_value(field, "a list", repr(data))
    return tuple(data)
