"""Features of people from the definitions, in plain Python, on random tables with all that is
hard: missing values, NaN, infinities, time zones, decimals, ties, doubled and unknown people."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import whosin as wi
from release_oracle import ENGINE, number
from whosin.release import Feature, FurtherTable, LookupTable, Range

WARDS = pa.table({"ward": ["A", "B", "C"], "region": ["north", "south", "north"]})
STEP = Range(-50, 50).unit
KINDS = ("any", "count", "distinct", "sum", "max", "min", "mean", "first", "last")


def visits(rng: np.random.Generator, rows: int, people: int) -> pa.Table:
    """Rows with everything that is hard: missing values, NaN, zones, decimals, ties, strangers."""
    start = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=2)))

    def some(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.2 else value for value in values]

    odd = [0.0, -0.0, math.nan, math.inf, -math.inf, 1e300, 0.5, -7.25]
    floats = [
        odd[rng.integers(len(odd))] if rng.random() < 0.3 else x for x in rng.normal(0, 20, rows)
    ]
    return pa.table(
        {
            "who": pa.array(some(rng.integers(0, people + 2, rows).tolist()), pa.int64()),
            "x": pa.array(some(floats), pa.float64()),
            "n": pa.array(some(rng.integers(-5, 5, rows).tolist()), pa.int32()),
            "price": pa.array(
                some([Decimal(int(each)) / 4 for each in rng.integers(-99, 99, rows)]),
                pa.decimal128(12, 2),
            ),
            "ward": pa.array(some([*rng.choice(list("ABCD"), rows)]), pa.string()),
            "text": pa.array(some([f"{each}" for each in rng.integers(0, 30, rows)]), pa.string()),
            "yes": pa.array(some((rng.random(rows) < 0.5).tolist()), pa.bool_()),
            "at": pa.array(
                some([start + timedelta(hours=int(each)) for each in rng.integers(0, 9, rows)]),
                pa.timestamp("us", "+02:00"),
            ),
            "day": pa.array(
                some([date(2024, 1, 1 + int(each)) for each in rng.integers(0, 5, rows)]),
                pa.date32(),
            ),
        }
    )


def told(row: dict[str, Any], column: str) -> Any:
    """A value, None where it is missing; moments in UTC, without a zone."""
    value = row[column]
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def steps(value: Any) -> int:
    """A number in whole steps, halves up, at most 10^9 of them from 0."""
    most = 10**9
    scaled = float(value) * STEP.denominator / STEP.numerator
    return max(-most, min(most, math.floor(scaled + 0.5))) if math.isfinite(scaled) else (
        most if scaled > 0 else -most
    )  # fmt: skip


def feature_of(feature: Feature, rows: list[dict[str, Any]]) -> Any:
    """The same in plain Python, for the rows of one person that meet the condition."""
    if feature.column is not None:
        rows = [row for row in rows if told(row, feature.column) is not None]
    if feature.order is not None:
        rows = [row for row in rows if told(row, feature.order) is not None]
    values: list[Any] = [told(row, feature.column) if feature.column else None for row in rows]
    if feature.kind == "any":
        return any(values) if feature.column else bool(rows)
    if feature.kind == "count":
        return len(rows)
    if feature.kind == "distinct":
        return len(set(values))
    if feature.kind == "sum":
        return sum(map(steps, values)) * STEP.numerator / STEP.denominator
    if not values:
        return None
    if feature.kind == "mean":
        return float(sum(map(steps, values))) / len(values) * STEP.numerator / STEP.denominator
    if feature.kind in ("max", "min"):
        return {"max": max, "min": min}[feature.kind](values)
    pick = min if feature.kind == "first" else max

    def key(row: dict[str, Any]) -> Any:
        tie = told(row, feature.tie) if feature.tie else None
        return (
            told(row, feature.order or ""),
            (tie is not None, tie or 0),
            told(row, feature.column or ""),
        )

    return told(pick(rows, key=key), feature.column or "")


WHERE: dict[str | None, Callable[[dict[str, Any]], bool]] = {
    None: lambda row: True,
    "n > 0": lambda row: row["n"] is not None and row["n"] > 0,
    "ward in ('A', 'D') or x < 0": lambda row: (
        row["ward"] in ("A", "D") or (number(row["x"]) is not None and row["x"] < 0)
    ),
    "region = 'north'": lambda row: row["ward"] in ("A", "C"),
}


def random_feature(rng: np.random.Generator, place: int, table: str | None) -> Feature:
    kind = str(rng.choice(KINDS))
    columns: dict[str, list[Any]] = {
        "any": ["yes", None],
        "count": ["x", None],
        "sum": ["x", "n", "price"],
    }
    columns["mean"] = columns["sum"]
    others: list[Any] = ["x", "n", "price", "ward", "yes", "at", "day"]
    if kind in ("max", "min"):
        others.remove("yes")
    listed: list[Any] = columns.get(kind, others)
    column = listed[rng.integers(len(listed))]
    ordered = kind in ("first", "last")
    order = str(rng.choice(["at", "day", "n", "ward"])) if ordered else None
    tie = "n" if ordered and rng.random() < 0.5 else None
    where = list(WHERE)[rng.integers(len(WHERE))]
    return Feature(f"f{place}", kind, column, table, where, order, tie)


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, datetime) and type(other) is date:
        return one == datetime(other.year, other.month, other.day)
    return bool(one == other)


def database(
    rng: np.random.Generator,
    table: str | None,
    engine: Any = ENGINE,
    put: Callable[[pa.Table], Any] = lambda rows: rows,
) -> tuple[Any, ...]:
    """A table with random features, beside what it was made of.

    Args:
        put: puts the rows where the engine reads them.
    """
    rows = visits(rng, 80, 12)
    features = [random_feature(rng, place, table) for place in range(8)]
    domains: dict[str, Any] = {
        each.name: (-50, 50) for each in features if each.kind in ("sum", "mean")
    }
    wards = LookupTable("wards", WARDS, key="ward", to=table)
    if table is None:
        made = wi.Table(
            put(rows), "who", domains, name="v", engine=engine, tables=[wards], features=features
        )
        return made, features, rows.to_pylist(), rows.to_pylist()
    people = pa.table({"who": [*range(12), 3, 20], "sex": ["f", "m"] * 7})
    further = FurtherTable("visits", put(rows))
    made = wi.Table(
        people, "who", domains, name="p", engine=engine, tables=[further, wards], features=features
    )
    return made, features, rows.to_pylist(), people.to_pylist()


def check(rng: np.random.Generator, table: str | None, engine: Any = ENGINE, **more: Any) -> None:
    made, features, rows, main = database(rng, table, engine, **more)
    by_person = defaultdict(list)
    for row in rows:
        by_person[row["who"]].append(row)
    persons = {row["who"] for row in main} - {None}
    narrowed = made.about([each.name for each in features])
    assert narrowed.of_people
    answers = engine.run(narrowed.data).to_pylist()
    assert sorted(row["who"] for row in answers) == sorted(persons)
    for answer in answers:
        for feature in features:
            own = [row for row in by_person[answer["who"]] if WHERE[feature.where](row)]
            expected = feature_of(feature, own)
            found = told(answer, feature.name)
            assert alike(found, expected), (feature, found, expected)
    # Beside the rows themselves the same features, and no row is lost or doubled.
    beside = made.about([features[0].name, "ward" if table is None else "sex"])
    values = {row["who"]: row[features[0].name] for row in answers}
    result = engine.run(beside.data).to_pylist()
    assert sorted(str(row["who"]) for row in result) == sorted(str(row["who"]) for row in main)
    for row in result:
        if row["who"] is not None:
            assert row[features[0].name] == values[row["who"]]
