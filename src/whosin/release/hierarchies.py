"""Hierarchies of values: the canton of each municipality, the region of each canton.

Contract: every value has exactly one parent at every level, so that the counts of an upper level
are sums of those of the lower one. All of it is declared; nothing here looks at rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.errors import InvalidInput, at, invalid_value, shorten

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
