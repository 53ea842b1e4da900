"""Public domains of columns: values, ranges of numbers, and dates.

Public domains: what a column may hold, declared before anyone looks at the rows. Answers have the
shape that the domains say, whatever the rows hold. A number outside its range is clamped where it
is summed. Where rows are put into cells, a value outside is in the cell "other", or, in a closed
domain, where `outside` says: each row is placed by looking at it alone, so nobody is in more cells
than before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

from whosin.documents import check_keys
from whosin.errors import InvalidInput, UnknownName, invalid_value, shorten, spell
from whosin.exact import rational, read_ranged
from whosin.release.hierarchies import Parents, lowest_values, read_parents
from whosin.release.row_values import DAY_PATTERN, cast_value, timestamp_value

OTHER_LABEL = "other"
FROM_ROWS = "from_rows"
"""The key of a domain that says that it was chosen by looking at the rows."""
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


def check_flag(given: object, field: str) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(given, bool):
        raise invalid_value(field, "true or false", repr(given)[:80])


def other_label(values: Sequence[object]) -> str:
    """What the cell of undeclared values is called, where a value may be called "other" too, in
    small letters or in capitals."""
    taken = {str(value).lower() for value in values}
    name = OTHER_LABEL
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


@dataclass(frozen=True)
class Values:
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
            raise invalid_value(
                "values", f"at most {spell(MAX_VALUES)} values", spell(len(self.values))
            )
        object.__setattr__(self, "values", tuple(self.values))
        kinds = {type(value) for value in self.values}
        if kinds not in ({str}, {int}, {bool}):
            raise InvalidInput(
                "values must be all text, all whole numbers, or true and false, not "
                f"{self.values[:5]!r}…",
                field="values",
                value=self.values[:5],
            )
        if kinds == {int} and not all(-(2**63) <= int(value) < 2**63 for value in self.values):
            raise InvalidInput(
                "values has a whole number that does not fit into 64 bits", field="values"
            )
        if kinds == {str} and any(map(_has_lone_surrogate, self.values)):
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
            raise InvalidInput(
                f"outside = {DROP!r} is ambiguous, since {DROP!r} is a declared value",
                field="outside",
                value=DROP,
                hint="name another value, or leave it out",
            )
        if self.outside != DROP and not any(map(self._names, self.values)):
            accepted = f"{DROP!r}, or one of the declared values"
            raise invalid_value("outside", accepted, repr(self.outside)[:80])

    def _names(self, value: object) -> bool:
        """Whether values outside count as this one; true and 1 are two values."""
        return type(value) is type(self.outside) and value == self.outside

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell."""
        return self.outside == DROP

    @property
    def beyond(self) -> int:
        """The number of the cell of what was not declared; -1 where it does not count."""
        if self.outside is None:
            return len(self.values)
        named = [index for index, value in enumerate(self.values) if self._names(value)]
        return -1 if self.drops else named[0]

    @property
    def labels(self) -> tuple[str | int, ...]:
        """The cells, in the declared order, with "other" at the end of a domain that is open."""
        if self.outside is not None:
            return self.values
        return (*self.values, other_label(self.values))


@dataclass(frozen=True)
class Range:
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
            raise InvalidInput(
                f"lower is {shorten(self.lower)}, not below upper, {shorten(self.upper)}",
                field="lower",
                value=self.lower,
            )
        if max(-low, high) > MAX_BOUND or high - low < Fraction(1, MAX_BOUND):
            raise InvalidInput(
                "lower and upper must lie within ±1e100, and at least 1e-100 apart",
                field="lower and upper",
                value=self.lower,
            )
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
            raise InvalidInput(
                f"step is {shorten(step)}, too large for two steps within the range",
                field="step",
                value=step,
            )
        if max(-least, most) > MAX_BOUND_STEPS:
            raise InvalidInput(
                f"step is {shorten(step)}, less than a billionth of the largest value",
                field="step",
                value=step,
            )

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

    @property
    def drops(self) -> bool:
        """Whether a row may be in no cell: one without a number, at least."""
        return self.outside is not None

    @property
    def beyond(self) -> int:
        """The number of the cell of what is in no bin; -1 where it does not count."""
        return -1 if self.drops else len(self.edges) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The bins, as texts, with "other" at the end, for what is in none, unless closed."""
        ends = [repr(float(rational(edge))).removesuffix(".0") for edge in self.edges]
        bins = tuple(f"{a}..{b}" for a, b in pairwise(ends))
        return bins if self.outside is not None else (*bins, OTHER_LABEL)


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
class Dates:
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
            raise InvalidInput(
                f"lower is {first}, not before upper, {last}", field="lower", value=str(first)
            )
        if (last - first).days >= MAX_DAYS:
            raise InvalidInput(
                f"upper is {last}, more than {spell(MAX_DAYS)} days after lower",
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
        return _bin_names(self)

    @property
    def binned(self) -> tuple[tuple[date, str], ...]:
        """The days that are in a bin, with its name."""
        return _bin_days(self)

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
def _bin_days(domain: Dates) -> tuple[tuple[date, str], ...]:
    if isinstance(domain.edges, str):
        unit = CALENDAR_UNITS[domain.edges]
        return tuple((day, unit(day)) for day in domain.days)
    starts = [date.fromisoformat(str(edge)) for edge in domain.edges]
    names = [f"{a}..{b}" for a, b in pairwise(starts)]
    # The last day is in the last bin, which ends with it.
    bins = (bisect_right(starts, day, hi=len(names)) - 1 for day in domain.days if names)
    return tuple((day, names[at]) for day, at in zip(domain.days, bins, strict=False))


@lru_cache(maxsize=64)
def _bin_names(domain: Dates) -> tuple[str, ...]:
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


Domain: TypeAlias = Values | Range | Dates


def read_domain(column: str, data: object) -> Domain:
    """A domain as people write it: a list of values, (lower, upper), "0..120", or keys; days such
    as 2024-01-31 make a domain of dates."""
    if isinstance(data, Values | Range | Dates):
        return data
    if isinstance(data, str) and ".." in data:
        low, _, high = data.partition("..")
        return Dates(low, high) if is_day(low) else Range(low, high)
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
    if FROM_ROWS in data:
        check_flag(data[FROM_ROWS], FROM_ROWS)
        rest = {key: value for key, value in data.items() if key != FROM_ROWS}
        return replace(_domain_from_keys(column, rest), from_rows=data[FROM_ROWS])
    constant, outside = data.get("constant", False), data.get("outside")
    if "values" in data or "parents" in data:
        if not data.keys() <= {"values", "constant", "outside", "parents"}:
            raise InvalidInput(
                f"the domain of {column} has both values and a range",
                field=f"domain of {column}",
                hint="give one of them",
            )
        parents = data.get("parents", ())
        values = data["values"] if "values" in data else lowest_values(parents)
        return Values(_read_list(values, f"values of {column}"), constant, outside, parents)
    edges = data.get("edges", ())
    if not isinstance(edges, str):
        edges = _read_list(edges, f"edges of {column}")
    if "edges" in data and len(edges) < 2 and not {"lower", "upper"} <= data.keys():
        raise InvalidInput(
            f"edges is {list(edges)!r}, and needs at least two numbers: where the first bin "
            "begins and "
            "where the last one ends",
            field="edges",
            value=list(edges),
        )
    if edges and not isinstance(edges, str):
        data = {"lower": edges[0], "upper": edges[-1], **data}
    for key in ("lower", "upper"):
        if key not in data:
            raise InvalidInput(
                f"the domain of {column} has no {key!r}",
                field=f"domain of {column}",
                value=key,
                hint="give values, or lower and upper",
            )
    if is_day(data["lower"]):
        if data.get("step") is not None:
            raise InvalidInput(
                f"the domain of {column} has dates, which take no step",
                field=f"domain of {column}",
                value=data["step"],
            )
        return Dates(data["lower"], data["upper"], edges, constant, outside)
    return Range(data["lower"], data["upper"], data.get("step"), edges, constant, outside)


def _has_lone_surrogate(text: object) -> bool:
    """Whether a text has half of a pair of UTF-16, which is no letter."""
    return any("\ud800" <= letter <= "\udfff" for letter in str(text))


def _read_list(data: object, field: str) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple):
        raise invalid_value(field, "a list", repr(data))
    return tuple(data)
