"""Domains of dates, and the policies for values outside a domain."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any

from whosin.errors import InvalidInput, UnknownName, invalid_value
from whosin.release.row_values import DAY_PATTERN, cast_value, timestamp_value

# What a domain does with values outside it, in words that all kinds of domains share.


OTHER_LABEL = "other"
DROP, CLAMP = "drop", "clamp"
"""What a closed domain may do with a value outside, beside counting it as a declared one."""


def check_closed(cells: int) -> None:
    """A closed domain has several cells: with one there would be nothing to ask."""
    if cells < 2:
        raise InvalidInput(
            "outside has no meaning where a domain has one value or bin only",
            field="outside",
            hint="leave it out",
        )


def check_outside(outside: object) -> None:
    """What may be said about bins."""
    if outside is not None and outside not in (DROP, CLAMP):
        raise invalid_value("outside", f"{DROP!r} or {CLAMP!r} for a range", repr(outside)[:80])


def check_constant(given: object) -> None:
    """Whether a column is the same in all rows of an entity."""
    if not isinstance(given, bool):
        raise invalid_value("constant", "true or false", repr(given)[:80])


def other_label(values: Sequence[object]) -> str:
    """What the cell of undeclared values is called, where a value may be called "other" too, in
    small letters or in capitals."""
    taken = {str(value).lower() for value in values}
    name = OTHER_LABEL
    while name in taken:
        name += "_"
    return name


# Domains of dates: a first and a last day, and bins that are parts of the calendar.
#
# Contract: which bin a day is in, and its year, month or ISO week, comes from Python's calendar,
# day
# by day, for the declared days alone; engines only say which day a value is. So every engine puts a
# row into the same cell.


MOST_DAYS = 100_000
CALENDAR_UNITS: dict[str, Callable[[date], str]] = {
    "day": lambda day: day.isoformat(),
    "isoweek": lambda day: "{}-W{:02}".format(*day.isocalendar()[:2]),
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
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
class Dates:
    """A column of dates, or of moments, from a first to a last day.

    Args:
        lower, upper: days, such as "2024-01-31"; the last one to its end.
        edges: bins for histograms and group-by: "day", "isoweek", "month", "quarter" or "year", or
            a list of days from lower to upper: bins are [a, b), the last one with its last day.
        constant: whether all rows of an entity have the same date; see `Values`.
        outside: closes the bins, and what is derived: "drop", and rows with another date do not
            count in cells, or "clamp", and they count as the first or the last day. In both cases
            rows without a date do not count.
    """

    lower: object
    upper: object
    edges: str | tuple[object, ...] = ()
    constant: bool = False
    outside: str | None = None

    def __post_init__(self) -> None:
        check_constant(self.constant)
        for field in ("lower", "upper"):
            object.__setattr__(self, field, read_day(getattr(self, field), field).isoformat())
        first, last = self.ends
        if first >= last:
            raise InvalidInput(
                f"lower is {first}, not before upper, {last}", field="lower", value=str(first)
            )
        if (last - first).days >= MOST_DAYS:
            raise InvalidInput(
                f"upper is {last}, more than {MOST_DAYS:,} days after lower",
                field="upper",
                value=str(last),
            )
        if isinstance(self.edges, str):
            if self.edges not in CALENDAR_UNITS:
                raise UnknownName("edges of dates", self.edges, CALENDAR_UNITS)
        elif isinstance(self.edges, list | tuple):
            self._check_edges()
        else:
            raise invalid_value(
                "edges", "a list of days, or a calendar unit such as month", repr(self.edges)[:80]
            )
        check_outside(self.outside)
        if self.outside is not None and self.edges:
            check_closed(len(self.bins))

    def _check_edges(self) -> None:
        days = [read_day(edge, "edges") for edge in self.edges]
        if days and (len(days) < 2 or days != sorted(set(days))):
            raise invalid_value("edges", "at least two days in rising order", list(map(str, days)))
        first, last = self.ends
        if days and (days[0], days[-1]) != (first, last):
            raise InvalidInput(
                f"edges run from {days[0]} to {days[-1]}, and the dates from {first} to {last}",
                field="edges",
                value=[str(days[0]), str(days[-1])],
                hint="begin and end them alike",
            )
        object.__setattr__(self, "edges", tuple(day.isoformat() for day in days))

    @property
    def ends(self) -> tuple[date, date]:
        """The first and the last day."""
        return date.fromisoformat(str(self.lower)), date.fromisoformat(str(self.upper))

    @property
    def bins(self) -> tuple[str, ...]:
        """What the bins are called, in their order."""
        return _names(self)

    @property
    def binned(self) -> tuple[tuple[date, str], ...]:
        """The days that are in a bin, with its name."""
        return _binned(self)

    @property
    def days(self) -> list[date]:
        """All days from the first to the last."""
        first, last = self.ends
        return [first + timedelta(each) for each in range((last - first).days + 1)]

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell: one without a date, at least."""
        return self.outside is not None

    @property
    def beyond(self) -> int:
        """The number of the cell of what is in no bin; -1 where it does not count."""
        return -1 if self.drops else len(self.bins)

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins, with "other" at the end, for what is in none, unless closed."""
        return self.bins if self.outside is not None else (*self.bins, OTHER_LABEL)

    def numbered_days(self) -> tuple[tuple[int, int], ...]:
        """The code of each day that is in a bin, with the bin's number."""
        numbers = {name: index for index, name in enumerate(self.bins)}
        return tuple((date_code(day), numbers[name]) for day, name in self.binned)

    def code(self, value: Any) -> Any:
        """The day of a value as a whole number that rises with it; missing where there is none, and
        moved to the nearer end where days outside are to be."""
        import ibis

        moment = (
            cast_value(value, "timestamp") if value.type().is_string() else timestamp_value(value)
        )
        result = day_code(*(part.cast("int64") for part in date_parts(moment)))
        if self.outside != CLAMP:
            return result
        low, high = map(date_code, self.ends)
        return ibis.cases((result < low, low), (result > high, high), else_=result).cast("int64")


@lru_cache(maxsize=64)
def _binned(domain: Dates) -> tuple[tuple[date, str], ...]:
    if isinstance(domain.edges, str):
        unit = CALENDAR_UNITS[domain.edges]
        return tuple((day, unit(day)) for day in domain.days)
    starts = [date.fromisoformat(str(edge)) for edge in domain.edges]
    names = [f"{a}..{b}" for a, b in pairwise(starts)]
    # The last day is in the last bin, which ends with it.
    bins = (bisect_right(starts, day, hi=len(names)) - 1 for day in domain.days if names)
    return tuple((day, names[at]) for day, at in zip(domain.days, bins, strict=False))


@lru_cache(maxsize=64)
def _names(domain: Dates) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name in domain.binned))


def date_parts(moment: Any) -> tuple[Any, Any, Any]:
    """Year, month and day of a moment, as the engine has them."""
    return moment.year(), moment.month(), moment.day()


def day_code(year: Any, month: Any, day: Any) -> Any:
    """A number for a day of the calendar."""
    return year * 372 + month * 31 + day


def date_code(day: date) -> int:
    """The same for a day that is known."""
    return int(day_code(day.year, day.month, day.day))


def is_day(data: object) -> bool:
    """Whether something is meant as a day."""
    return isinstance(data, date) or (isinstance(data, str) and bool(re.match(r"\d{4}-", data)))


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
