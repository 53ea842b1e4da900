"""Features of a person, computed from that person's rows alone: visits, total days, the last ward.

A feature has one value a person, the same in all of that person's rows. It is total, and the same
on every engine: missing values, NaN and what cannot be read do not count. Without any rows `any` is
false, `count`, `distinct` and `sum` are 0, and the others are missing. Numbers are summed as whole
steps of the feature's declared range, each rounded to a step that is at most 10^9 steps from 0:
sums of doubles would depend on the order of rows, and engines differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import datetime
from typing import Any

from whosin.errors import InvalidInput, LazyModule, UnknownName, at, invalid_value, shorten_value
from whosin.release.domains import MAX_BOUND_STEPS, Dates, Domain, Range, Values
from whosin.release.row_values import (
    cast_value,
    clamp_value,
    is_dated,
    is_usable,
    number_value,
    timestamp_value,
    whole_steps,
    whole_value,
)
from whosin.scenario_model import FeatureSection

ibis = LazyModule("ibis")


@dataclass(frozen=True)
class FeatureInput:
    """What an aggregate is given.

    Attributes:
        value: the column's value, read as the feature's domain says; None without a column.
        counts: which rows count: those that meet the condition and have a value.
        domain: the feature's domain, where one is declared.
        keys: what orders the rows, the most important first.
    """

    value: Any
    counts: Any
    domain: Domain | None
    keys: tuple[Any, ...] = ()


@dataclass(frozen=True)
class FeatureAggregate:
    """One kind of feature.

    Attributes:
        label: what it is, for people who choose one.
        compute: its value over a group of rows.
        takes: "any", "numbers" or "truths": which columns it may be computed from.
        needs_column: whether it is computed from a column, and not from rows as a whole.
        ordered: whether rows need an order.
        is_a_value: whether it is one of the column's values, so that the feature's domain is about
            these.
        empty: what it is where nobody's rows count; None for missing.
    """

    label: str
    compute: Callable[[FeatureInput], Any]
    takes: str = "any"
    needs_column: bool = True
    ordered: bool = False
    is_a_value: bool = False
    empty: object = None


def _sum_feature(asked: FeatureInput, rows: Any = 1.0) -> Any:
    """The sum over a number of rows, in whole steps of the feature's range."""
    assert isinstance(asked.domain, Range)
    step = asked.domain.unit
    farthest = MAX_BOUND_STEPS * step
    if asked.value.type().is_signed_integer() and step.numerator == farthest.denominator == 1:
        # The same without rounding, in half the time.
        whole = clamp_value(asked.value.cast("int64"), -int(farthest), int(farthest))
        steps = whole * step.denominator
    else:
        ends = -float(farthest), float(farthest)
        steps = whole_steps(clamp_value(number_value(asked.value), *ends), step)
    total = steps.sum(where=asked.counts).fill_null(0).cast("float64") / rows
    return total * float(step.numerator) / float(step.denominator)


def _mean_feature(asked: FeatureInput) -> Any:
    return _sum_feature(asked, asked.counts.sum().cast("float64").nullif(0.0))


def _row_order(asked: FeatureInput) -> Any:
    """What orders a row, and its value at last: among rows that tie it decides, and where it ties
    too, it is the same."""
    keys = {f"key_{index}": key for index, key in enumerate(asked.keys)}
    return ibis.struct({**keys, "value": asked.value})


FEATURE_AGGREGATES = {
    "any": FeatureAggregate(
        "whether there is such a row",
        lambda asked: (asked.counts & (True if asked.value is None else asked.value)).any(),
        "truths",
        needs_column=False,
        empty=False,
    ),
    "count": FeatureAggregate(
        "how many rows there are",
        lambda asked: asked.counts.sum().cast("int64"),
        needs_column=False,
        empty=0,
    ),
    "distinct": FeatureAggregate(
        "how many different values there are",
        lambda asked: asked.value.nunique(where=asked.counts).cast("int64"),
        empty=0,
    ),
    "sum": FeatureAggregate("the sum", _sum_feature, "numbers", empty=0.0),
    "max": FeatureAggregate(
        "the largest", lambda asked: asked.value.max(where=asked.counts), is_a_value=True
    ),
    "min": FeatureAggregate(
        "the least", lambda asked: asked.value.min(where=asked.counts), is_a_value=True
    ),
    "mean": FeatureAggregate("the mean", _mean_feature, "numbers"),
    "first": FeatureAggregate(
        "the first in an order",
        lambda asked: _row_order(asked).min(where=asked.counts)["value"],
        ordered=True,
        is_a_value=True,
    ),
    "last": FeatureAggregate(
        "the last in an order",
        lambda asked: _row_order(asked).max(where=asked.counts)["value"],
        ordered=True,
        is_a_value=True,
    ),
}
"""The kinds of features, as scenarios spell them."""


def readable_values(value: Any, takes: str, domain: Domain | None) -> Any:
    """A column's values as an aggregate takes them: as numbers, truths, moments, or what they are.

    Text files have texts only, so the domain says what is meant.
    """
    kind = value.type()
    text = kind.is_string()
    if not is_usable(kind):
        message = f"a feature cannot be computed from a column of type {kind}"
        hint = "use numbers, text, true and false, or dates"
        raise InvalidInput(message, field="column", value=str(kind), hint=hint)
    if takes == "truths":
        if not text and not kind.is_boolean():
            raise invalid_value("column", "a column of true and false", f"one of {kind}")
        return cast_value(value, "boolean") if text else value
    if takes == "numbers" or isinstance(domain, Range):
        if not (text or kind.is_numeric() or kind.is_boolean()):
            raise invalid_value("column", "a column of numbers", f"one of {kind}")
        return value if kind.is_integer() else one_zero(number_value(value))
    if isinstance(domain, Dates) or is_dated(kind):
        if not (text or is_dated(kind)):
            raise invalid_value("column", "a column of dates", f"one of {kind}")
        return cast_value(value, "timestamp") if text else timestamp_value(value)
    if isinstance(domain, Values) and text and isinstance(domain.values[0], bool):
        return cast_value(value, "boolean")
    if isinstance(domain, Values) and text and isinstance(domain.values[0], int):
        return whole_value(value)
    return one_zero(number_value(value)) if kind.is_floating() else value


def order_values(value: Any) -> Any:
    """A column that orders rows; texts by their letters, so that days such as 2024-01-31 come in
    their order."""
    return readable_values(value, "any", None)


def tie_values(value: Any) -> tuple[Any, Any]:
    """A column that breaks ties: rows without a value come before the others."""
    known = order_values(value)
    return known.notnull().cast("int64"), known.fill_null(_blank_value(known.type()))


def one_zero(value: Any) -> Any:
    """A number, where 0 and -0 are the same."""
    return ibis.cases((value == 0.0, 0.0), else_=value)


def _blank_value(kind: Any) -> Any:
    if kind.is_string():
        return ""
    if kind.is_boolean():
        return False
    return ibis.literal(datetime(2000, 1, 1), kind) if kind.is_timestamp() else 0


MAX_NAME_LENGTH = 100


def check_texts(entry: Any, *names: str) -> None:
    """Refuse a feature or a table whose name is not printable, or what is not text in one of some
    fields; those with a default may be None."""
    needed = {each.name for each in fields(entry) if each.default is MISSING}
    for name in names:
        value = getattr(entry, name)
        if not isinstance(value, str) and (value is not None or name in needed):
            raise invalid_value(name, "text", repr(value)[:80])
    name = entry.name
    if not 0 < len(name) <= MAX_NAME_LENGTH or not name.isprintable() or name.strip() != name:
        accepted = f"a printable name of 1 to {MAX_NAME_LENGTH} characters"
        raise invalid_value("name", accepted, shorten_value(name))


def read_named(
    given: object, field: str, most: int, kinds: tuple[type, ...], from_keys: Callable[[Any], Any]
) -> tuple[Any, ...]:
    """The entries of a list, each one of the kinds or made from its keys."""
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        written = " or ".join(f"{kind.__name__}(…)" for kind in kinds)
        raise invalid_value(field, f"a list ([[{field}]] or {written})", shorten_value(given))
    if len(given) > most:
        raise invalid_value(field, f"at most {most} entries", len(given))
    result: dict[str, Any] = {}
    for number, each in enumerate(given):
        with at(f"{field}[{number}]"):
            entry: Any = each if isinstance(each, kinds) else from_keys(each)
            if entry.name.lower() in result:
                message = f"name {entry.name!r} is given twice"
                raise InvalidInput(message, field="name", value=entry.name)
            result[entry.name.lower()] = entry
    return tuple(result.values())


MAX_FEATURES = 500


@dataclass(frozen=True)
class Feature:
    """One value for each privacy unit, from its rows.

    Args:
        name: the column's name.
        kind: "any", "count", "distinct", "sum", "max", "min", "mean", "first" or "last".
        column: the column that it is computed from; none to look at rows as such (any, count).
        table: one of the further tables; by default the table itself.
        where: a condition on rows: others do not count.
        order: for first and last, the column that orders a privacy unit's rows.
        tie: a column that orders those of them that `order` does not tell apart. Rows that both
            leave tied are ordered by the value itself, so that the choice never depends on chance
            or on the order in which rows are stored.
    """

    name: str
    kind: str
    column: str | None = None
    table: str | None = None
    where: str | None = None
    order: str | None = None
    tie: str | None = None

    def __post_init__(self) -> None:
        check_texts(self, *(each.name for each in fields(self)))
        if self.kind not in FEATURE_AGGREGATES:
            raise UnknownName("kind", self.kind, FEATURE_AGGREGATES)
        aggregate = FEATURE_AGGREGATES[self.kind]
        for key, needed in (("column", aggregate.needs_column), ("order", aggregate.ordered)):
            if needed and getattr(self, key) is None:
                message = f"a feature of kind {self.kind} needs its {key}"
                raise InvalidInput(message, field=key, hint=f"add {key} = … with a column")
        for key in ("order", "tie"):
            value = getattr(self, key)
            if not aggregate.ordered and value is not None:
                message = f"{key} has a meaning for first and last only, not for {self.kind}"
                raise InvalidInput(message, field=key, value=value, hint="leave it out")

    def to_dict(self) -> dict[str, str]:
        """Plain data, without what was left out."""
        listed = {each.name: getattr(self, each.name) for each in fields(self)}
        return {key: value for key, value in listed.items() if value is not None}


def read_features(given: object) -> tuple[Feature, ...]:
    """Features as people write them: `Feature(…)`, or the keys of a scenario file."""

    def from_keys(data: object) -> Feature:
        return Feature(**FeatureSection.read(data, "feature").given)

    return read_named(given, "features", MAX_FEATURES, (Feature,), from_keys)
