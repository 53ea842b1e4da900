"""Public domains of columns: values, ranges, and hierarchies of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

from whosin.documents import check_keys
from whosin.errors import InvalidInput, at, invalid_value, shorten
from whosin.exact import rational, read_ranged
from whosin.release.dates import (
    DROP,
    OTHER_LABEL,
    Dates,
    check_closed,
    check_constant,
    check_outside,
    is_day,
    other_label,
)

# Parents of the values of a domain: the canton of each municipality, the region of each canton.
#
# Contract: every value has exactly one parent at every level, so that the counts of an upper level
# are sums of those of the lower one. All of it is declared; nothing here looks at rows.


MOST_LEVELS = 20
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
        raise invalid_value(
            "parents", f"a mapping of levels, each {PARENTS_EXAMPLE}", repr(data)[:80]
        )
    above = {parent for level in levels for parent in level}
    result: list[tuple[Any, ...]] = []
    for level in levels:
        lists = [each for each in level.values() if isinstance(each, list | tuple)]
        children = tuple(child for each in lists for child in each)
        result.append(children)
        if any(not isinstance(child, str) or child not in above for child in children):
            return children
    return result[0]


def read_parents(values: tuple[Value, ...], data: object) -> tuple[Parents, ...]:
    """The levels as people write them: for each its parents, and for each parent its children,
    which are values of the domain or parents of another level."""
    if isinstance(data, tuple) and all(isinstance(each, Parents) for each in data):
        if any(len(each.numbers) != len(values) for each in data):
            raise InvalidInput(
                "every level of parents needs one parent for each value", field="parents"
            )
        return data
    if not isinstance(data, Mapping):
        raise invalid_value(
            "parents", f"a mapping of levels, each {PARENTS_EXAMPLE}", repr(data)[:80]
        )
    if len(data) > MOST_LEVELS:
        raise invalid_value("parents", f"at most {MOST_LEVELS} levels", len(data))
    listed = {}
    for name, level in data.items():
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or "(" in name:
            raise InvalidInput(
                f"parents has a level named {shorten(repr(name)[:80])}",
                field="parents",
                value=name,
                hint="name levels by text without brackets",
            )
        with at(f"parents.{name}"):
            listed[name] = _read_levels(name, level)
    resolved: dict[str, Parents] = {}
    for name in listed:
        _resolve_level(name, values, listed, resolved, ())
    return tuple(resolved[name] for name in listed)


def _read_levels(name: str, level: object) -> dict[str, tuple[Value, ...]]:
    if not isinstance(level, Mapping) or not level:
        raise invalid_value(name, PARENTS_EXAMPLE, repr(level)[:80])
    seen: set[Any] = set()
    for parent, children in level.items():
        if not isinstance(parent, str) or not parent.isprintable():
            raise InvalidInput(
                f"{name} has the parent {shorten(repr(parent)[:80])}, which is not printable text",
                field=name,
                value=parent,
            )
        if not isinstance(children, list | tuple) or not children:
            raise InvalidInput(
                f"{name} must list at least one value for {parent}, not "
                f"{shorten(repr(children)[:80])}",
                field=name,
                value=children,
            )
        for child in children:
            key = (type(child), repr(child))
            if key in seen:
                raise InvalidInput(
                    f"{name} lists {child!r} twice; a value has one parent", field=name, value=child
                )
            seen.add(key)
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
        for child in (child for each in level.values() for child in each):
            if _value_key(child) not in set(map(_value_key, below)):
                of = "the domain" if lower is None else lower
                raise InvalidInput(
                    f"{name} lists {shorten(repr(child)[:80])}, which is not a value of {of}",
                    field=name,
                    value=child,
                )
        for value in below:
            if _value_key(value) not in numbers:
                raise InvalidInput(
                    f"{name} has no parent for {shorten(repr(value)[:80])}", field=name, value=value
                )
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


# Public domains: what a column may hold, declared before anyone looks at the rows.
#
# Contract: answers have the shape that the domains say, whatever the rows hold. A number outside
# its
# range is clamped where it is summed. Where rows are put into cells, a value outside is in the cell
# "other", or, in a closed domain, where `outside` says: each row is placed by looking at it alone,
# so
# nobody is in more cells than before.


MOST_CELLS = 10**7
MOST_VALUES = 10_000
MAX_STEPS = 10**6
"""How many steps a range has by default, at the most; sums of 10^12 rows still fit 64 bits."""
MAX_BOUND_STEPS = 10**9
"""How many steps from 0 a value may be, at the most; sums of 10^9 rows still fit 64 bits."""
MAX_BOUND = 10**100


@dataclass(frozen=True)
class Values:
    """A column with finitely many public values; anything else is in the cell "other".

    Args:
        constant: whether all rows of an entity have the same value, as far as is publicly known.
            Then an entity is in one cell of this column, whatever `groups` says; one whose rows
            differ nevertheless is in one of its cells, chosen at random.
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

    def __post_init__(self) -> None:
        if not isinstance(self.values, list | tuple | range) or not self.values:
            raise invalid_value("values", "a list of at least one value", repr(self.values)[:80])
        if len(self.values) > MOST_VALUES:
            raise invalid_value(
                "values", f"at most {MOST_VALUES:,} values", f"{len(self.values):,}"
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
        check_constant(self.constant)
        self._check_outside()
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
        constant: whether all rows of an entity have the same number; see `Values`.
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

    def __post_init__(self) -> None:
        check_constant(self.constant)
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
        if len(edges) > MOST_VALUES:
            raise invalid_value("edges", f"at most {MOST_VALUES:,} numbers", f"{len(edges):,}")
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

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The ends of the clamp as exact rationals."""
        return rational(self.lower, "lower"), rational(self.upper, "upper")

    @property
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

    @property
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
    check_keys(data, known, f"domain of {column}")
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
