"""What a feature computes over the rows of one entity, in the engine.

Contract: total, and the same on every engine. Missing values, NaN and what cannot be read do not
count. Without any rows `any` is false, `count`, `distinct` and `sum` are 0, and the others are
missing. Numbers are summed as whole steps of the feature's declared range; each value is rounded to
a step that is at most 10^9 steps from 0. Sums of doubles would depend on the order of rows, and
engines differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from whosin.errors import InvalidInput
from whosin.release.columns.dates import Dates
from whosin.release.columns.domains import FARTHEST, Domain, Range, Values
from whosin.release.conditions.casts import cast, usable
from whosin.release.conditions.row_values import ibis_module, number, timestamp, whole_steps, within


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
class Aggregate:
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


def _sum(asked: FeatureInput) -> Any:
    return _worth(_total(asked).fill_null(0).cast("float64"), asked.domain)


def _mean(asked: FeatureInput) -> Any:
    rows = asked.counts.sum().cast("float64").nullif(0.0)
    return _worth(_total(asked).cast("float64") / rows, asked.domain)


def _total(asked: FeatureInput) -> Any:
    assert isinstance(asked.domain, Range)
    step = asked.domain.unit
    farthest = FARTHEST * step
    if asked.value.type().is_signed_integer() and step.numerator == farthest.denominator == 1:
        # The same without rounding, in half the time.
        whole = within(asked.value.cast("int64"), -int(farthest), int(farthest))
        return (whole * step.denominator).sum(where=asked.counts)
    ends = -float(farthest), float(farthest)
    steps = whole_steps(within(number(asked.value), *ends), step)
    return steps.sum(where=asked.counts)


def _worth(steps: Any, domain: Domain | None) -> Any:
    assert isinstance(domain, Range)
    return steps * float(domain.unit.numerator) / float(domain.unit.denominator)


def _first(asked: FeatureInput) -> Any:
    return _in_order(asked).min(where=asked.counts)["value"]


def _last(asked: FeatureInput) -> Any:
    return _in_order(asked).max(where=asked.counts)["value"]


def _in_order(asked: FeatureInput) -> Any:
    """What orders a row, and its value at last: among rows that tie it decides, and where it ties
    too, it is the same."""
    keys = {f"key_{index}": key for index, key in enumerate(asked.keys)}
    return ibis_module().struct({**keys, "value": asked.value})


AGGREGATES = {
    "any": Aggregate(
        "whether there is such a row",
        lambda asked: (asked.counts & (True if asked.value is None else asked.value)).any(),
        "truths",
        needs_column=False,
        empty=False,
    ),
    "count": Aggregate(
        "how many rows there are",
        lambda asked: asked.counts.sum().cast("int64"),
        needs_column=False,
        empty=0,
    ),
    "distinct": Aggregate(
        "how many different values there are",
        lambda asked: asked.value.nunique(where=asked.counts).cast("int64"),
        empty=0,
    ),
    "sum": Aggregate("the sum", _sum, "numbers", empty=0.0),
    "max": Aggregate(
        "the largest", lambda asked: asked.value.max(where=asked.counts), is_a_value=True
    ),
    "min": Aggregate(
        "the least", lambda asked: asked.value.min(where=asked.counts), is_a_value=True
    ),
    "mean": Aggregate("the mean", _mean, "numbers"),
    "first": Aggregate("the first in an order", _first, ordered=True, is_a_value=True),
    "last": Aggregate("the last in an order", _last, ordered=True, is_a_value=True),
}
"""The kinds of features, as scenarios spell them."""


def readable(value: Any, takes: str, domain: Domain | None) -> Any:
    """A column's values as an aggregate takes them: as numbers, truths, moments, or what they are.

    Text files have texts only, so the domain says what is meant.
    """
    kind = value.type()
    if not usable(kind):
        raise InvalidInput("column", "numbers, texts, truths or dates", str(kind))
    if takes == "truths":
        if not kind.is_boolean() and not kind.is_string():
            raise InvalidInput("column", "a column of true and false, or none", str(kind))
        return cast(value, "boolean") if kind.is_string() else value
    if takes == "numbers" or isinstance(domain, Range):
        if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
            raise InvalidInput("column", "a column of numbers", str(kind))
        return value if kind.is_integer() else one_zero(number(value))
    if isinstance(domain, Dates) or kind.is_date() or kind.is_timestamp():
        if not (kind.is_date() or kind.is_timestamp() or kind.is_string()):
            raise InvalidInput("column", "a column of dates", str(kind))
        return cast(value, "timestamp") if kind.is_string() else timestamp(value)
    if isinstance(domain, Values) and kind.is_string() and isinstance(domain.values[0], int):
        return cast(value, "boolean" if isinstance(domain.values[0], bool) else "whole")
    return one_zero(number(value)) if kind.is_floating() else value


def ordering(value: Any) -> Any:
    """A column that orders rows; texts by their letters, so that days such as 2024-01-31 come in
    their order."""
    return readable(value, "any", None)


def breaking(value: Any) -> tuple[Any, Any]:
    """A column that breaks ties: rows without a value come before the others."""
    known = ordering(value)
    return known.notnull().cast("int64"), known.fill_null(_blank(known.type()))


def one_zero(value: Any) -> Any:
    """A number, where 0 and -0 are the same."""
    return ibis_module().cases((value == 0.0, 0.0), else_=value)


def _blank(kind: Any) -> Any:
    if kind.is_string():
        return ""
    if kind.is_boolean():
        return False
    return ibis_module().literal(datetime(2000, 1, 1), kind) if kind.is_timestamp() else 0
