"""Features, further tables and lookups against pandas and plain Python, on random tables."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.helpers.amounts import amount
from tests.helpers.release_oracle import ENGINE, exact, number

import whosin as wi
from whosin.errors import BudgetRefused, InvalidInput
from whosin.release import Count, Feature, FurtherTable, LookupTable, Mean, Range, Rows

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
                some([date(2024, 1, 1 + int(each)) for each in rng.integers(0, 5, rows)])
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
    values = [told(row, feature.column) if feature.column else None for row in rows]
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


WHERE = {
    None: lambda row: True,
    "n > 0": lambda row: row["n"] is not None and row["n"] > 0,
    "ward in ('A', 'D') or x < 0": lambda row: (
        row["ward"] in ("A", "D") or (number(row["x"]) is not None and row["x"] < 0)
    ),
    "region = 'north'": lambda row: row["ward"] in ("A", "C"),
}


def random_feature(rng: np.random.Generator, place: int, table: str | None) -> Feature:
    kind = str(rng.choice(KINDS))
    columns = {"any": ["yes", None], "count": ["x", None], "sum": ["x", "n", "price"]}
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


def database(rng: np.random.Generator, table: str | None, engine: Any = ENGINE) -> tuple[Any, ...]:
    """A table with random features, beside what it was made of."""
    rows = visits(rng, 80, 12)
    features = [random_feature(rng, place, table) for place in range(8)]
    domains: dict[str, Any] = {
        each.name: (-50, 50) for each in features if each.kind in ("sum", "mean")
    }
    wards = LookupTable("wards", WARDS, key="ward", to=table)
    if table is None:
        made = wi.Table(
            rows, "who", domains, name="v", engine=engine, tables=[wards], features=features
        )
        return made, features, rows.to_pylist(), rows.to_pylist()
    people = pa.table({"who": [*range(12), 3, 20], "sex": ["f", "m"] * 7})
    further = FurtherTable("visits", rows)
    made = wi.Table(
        people, "who", domains, name="p", engine=engine, tables=[further, wards], features=features
    )
    return made, features, rows.to_pylist(), people.to_pylist()


def check(rng: np.random.Generator, table: str | None, engine: Any = ENGINE) -> None:
    made, features, rows, main = database(rng, table, engine)
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
            assert alike(answer[feature.name], expected), (feature, answer[feature.name], expected)
    # Beside the rows themselves the same features, and no row is lost or doubled.
    beside = made.about([features[0].name, "ward" if table is None else "sex"])
    values = {row["who"]: row[features[0].name] for row in answers}
    result = engine.run(beside.data).to_pylist()
    assert sorted(str(row["who"]) for row in result) == sorted(str(row["who"]) for row in main)
    for row in result:
        if row["who"] is not None:
            assert row[features[0].name] == values[row["who"]]


@pytest.mark.parametrize("table", [None, "visits"])
def test_features_are_those_of_the_definitions(table: str | None) -> None:
    rng = np.random.default_rng(20)
    for _ in range(amount(8, 200)):
        check(rng, table)


def test_joins_keep_everyone_and_bring_only_their_own() -> None:
    rng = np.random.default_rng(21)
    for most in (1, 2, 5):
        rows = visits(rng, 60, 9).append_column("id", pa.array(range(60)))
        people = pa.table({"who": [*range(11), 3], "ward": ["A"] * 12})
        tables = [FurtherTable("v", rows, rows=most), LookupTable("w", WARDS, key="ward")]
        made = wi.Table(people, "who", name="p", engine=ENGINE, tables=tables)
        # Both tables have a ward, and both have an owner: the further one's is called v.ward.
        assert {"ward", "v.ward", "region", "id"} <= set(made.columns)
        result = ENGINE.run(made.about(["id", "v.ward", "x"]).data).to_pandas()
        assert set(result["who"]) == set(range(11))
        frame = rows.to_pandas().set_index("id")
        merged = result[result["id"].notna()]
        assert (frame.loc[merged["id"], "who"].to_numpy() == merged["who"].to_numpy()).all()
        wards = frame.loc[merged["id"], "ward"]
        assert wards.fillna("").tolist() == merged["v.ward"].fillna("").tolist()
        x = frame.loc[merged["id"], "x"].to_numpy()
        assert np.array_equal(x, merged["x"].to_numpy(), equal_nan=True)
        sizes = pd.Series(frame["who"].dropna()).value_counts()
        for who, count in result[result["who"] != 3].groupby("who")["id"].count().items():
            assert count == min(most, sizes.get(who, 0))


def test_entities_may_be_spelled_as_texts_in_one_table() -> None:
    texts = pa.table({"who": ["1", " 2", "x", None, "1"], "y": [1, 2, 3, 4, 5]})
    numbers = pa.table({"who": [1, 2, 3], "z": [1, 2, 3]})
    count = [Feature("n", "count", table="t")]
    made = wi.Table(
        numbers, "who", name="a", engine=ENGINE, tables=[FurtherTable("t", texts)], features=count
    )
    result = ENGINE.run(made.about(["n"]).data).to_pylist()
    assert {row["who"]: row["n"] for row in result} == {1: 2, 2: 1, 3: 0}
    made = wi.Table(
        texts, "who", name="a", engine=ENGINE, tables=[FurtherTable("t", numbers)], features=count
    )
    result = ENGINE.run(made.about(["n"]).data).to_pylist()
    assert {row["who"]: row["n"] for row in result} == {"1": 1, " 2": 0, "x": 0}


def hospital(**more: Any) -> wi.Table:
    rows = pa.table({"who": [1, 1, 1, 2, 3], "days": [1, 2, 3, 40, 5], "ward": list("AABBC")})
    domains = {
        "total": Range(0, 50, edges=(0, 10, 50)),
        "long": [True, False],
        "ward": ["A", "B"],
        "days": (0, 60),
    }
    features = [Feature("total", "sum", "days"), Feature("long", "any", where="days > 30")]
    usual: dict[str, Any] = {"name": "h", "engine": ENGINE, "features": features, "rows": 3}
    return wi.Table(rows, "who", domains, **(usual | more))


def test_a_question_about_features_has_one_row_a_person() -> None:
    table = hospital()
    mean = Mean(column="total")
    about = mean.asked_of(table)
    assert mean.bounds(about).rows == 1 and mean.bounds(table).rows == 3
    assert exact(mean, about)[1] == [3]
    in_ward = Mean(column="total", where="ward = 'A'")
    assert in_ward.bounds(in_ward.asked_of(table)).rows == 3
    assert exact(in_ward, in_ward.asked_of(table))[1] == [2]
    rows = Rows(by=("long",), rows=3)
    assert rows.bounds(rows.asked_of(table)).rows == 3
    assert exact(rows, rows.asked_of(table)) == [[1, 4, 0]]
    people = Count(by=("long",), groups=2)
    assert exact(people, people.asked_of(table)) == [[1, 2, 0]]
    assert people.bounds(people.asked_of(table)).groups == 1  # a feature is the same in all rows


def test_one_person_in_all_tables_moves_an_answer_by_its_bound() -> None:
    """Neighbours: one person's rows changed everywhere; the exact answers stay within what is
    priced."""
    rng = np.random.default_rng(22)
    queries = [
        Mean(column="total"),
        Count(by=("kind",)),
        Count(by=("kind",), where="total > 5"),
        Rows(by=("kind",), rows=2),
    ]
    for _ in range(amount(6, 100)):
        frames = {"p": visits(rng, 20, 6), "v": visits(rng, 40, 6)}
        other = {
            name: pa.concat_tables([frame.filter(pa.compute.not_equal(frame["who"], 2)), part])
            for name, frame in frames.items()
            for part in [_of_two(visits(rng, int(rng.integers(0, 9)), 6))]
        }
        pair = [_two_tables(each) for each in (frames, other)]
        for query in queries:
            tables = [query.asked_of(each) for each in pair]
            parts, bounds = query.parts(tables[0]), query.bounds(tables[0])
            grouped = bool(query.cells(tables[0]).columns)
            before, after = (exact(query, each) for each in tables)
            for part, one, two in zip(parts, before, after, strict=True):
                moved = sum(abs(a - b) for a, b in zip(one, two, strict=True))
                assert moved <= part.sensitivity("replace", bounds, grouped), query


def _of_two(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "who", pa.array([2] * rows.num_rows, pa.int64()))


def _two_tables(frames: dict[str, pa.Table]) -> wi.Table:
    return wi.Table(
        frames["p"].select(["who", "n"]),
        "who",
        {"total": (0, 50), "kind": ["A", "B"]},
        name="p",
        rows=2,
        engine=ENGINE,
        tables=[FurtherTable("v", frames["v"], rows=3)],
        features=[
            Feature("total", "sum", "x", "v"),
            Feature("kind", "last", "ward", "v", order="at", tie="n"),
        ],
    )


ROWS = pa.table({"who": [1, 2], "x": [1.0, 2.0], "ward": ["A", "B"]})
TWICE = pa.table({"ward": ["A", "B", "A"], "region": ["n", "s", "n"]})


@pytest.mark.parametrize(
    "more, words",
    [
        ({"features": [Feature("n", "count"), Feature("m", "max", "n")]}, "a feature of a feature"),
        ({"features": [Feature("n", "sum", "x")]}, "as a range"),
        ({"features": [Feature("x", "count")]}, "one that no column has"),
        ({"features": [{"name": "n", "kind": "median", "column": "x"}]}, "kind"),
        ({"features": [{"name": "n", "kind": "first", "column": "x"}]}, "order must be given"),
        ({"features": [{"name": "n", "kind": "count", "order": "x"}]}, "left out, but for first"),
        ({"features": [Feature("n", "count", where="n >")]}, "where"),
        ({"features": [Feature("n", "count", table="v")]}, "a further table of people"),
        ({"features": [Feature("n", "any", "x")]}, "true and false"),
        ({"features": [Feature("n", "count")], "entity": "row"}, "each row is one person"),
        ({"features": "n"}, "a list"),
        ({"tables": [LookupTable("w", TWICE, key="ward")]}, "each value once; got 'A' 2 times"),
        ({"tables": [LookupTable("w", TWICE, key="region")]}, "key must be a column|key"),
        ({"tables": [{"name": "v", "source": ROWS, "on": "x"}]}, "any other join lets one person"),
        ({"tables": [{"name": "v", "source": ROWS, "entity": "ward"}]}, "of the type"),
        ({"tables": [{"name": "v", "source": ROWS}] * 2}, "different from the others"),
        ({"tables": [{"name": "v", "source": ROWS}], "entity": "row"}, "no entity to join on"),
        ({"tables": [{"name": "v", "source": ROWS, "rows": 0}]}, "rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(more: dict[str, Any], words: str) -> None:
    usual: dict[str, Any] = {"entity": "who", "name": "t", "engine": ENGINE}
    with pytest.raises(InvalidInput, match=words):
        wi.Table(ROWS, **(usual | more))


def test_a_budget_is_bound_to_all_tables_and_features(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    def opened(days: int = 1, most: int = 1, where: str = "days > 0", name: str = "p") -> wi.Table:
        pq.write_table(pa.table({"who": [1, 2], "sex": ["f", "m"]}), tmp_path / "p.parquet")
        visits = pa.table({"who": [1, 1], "days": [days, 2]})
        pq.write_table(visits, tmp_path / f"v{days}.parquet")
        return wi.Table(
            tmp_path / "p.parquet",
            "who",
            {"n": (0, 5)},
            name=name,
            engine=ENGINE,
            tables=[FurtherTable("v", tmp_path / f"v{days}.parquet", rows=most)],
            features=[Feature("n", "count", table="v", where=where)],
        )

    plan = wi.calibrate(wi.Epsilon(1.0), wi.families.Independent())
    ledger = tmp_path / "ledger.db"
    wi.Session(opened(), plan, ledger, share="1/4").ask(Mean(column="n"))
    for table, words in (
        (opened(days=7), "another table 'v': the source has changed"),
        (opened(most=2), "rows = 1 of 'v'"),
        (opened(where="days > 1"), "another feature 'n'"),
        (wi.Table(tmp_path / "v1.parquet", "who", name="p", engine=ENGINE), "other columns"),
    ):
        with pytest.raises(BudgetRefused, match=words):
            wi.Session(table, plan, ledger, share="1/4")
    wi.Session(opened(days=7), plan, ledger, share="1/4", amend=True).ask(Mean(column="n"))
    assert wi.Ledger(ledger).verify("p") is not False
    # The rows of a further table are known again, under another name too.
    alone = wi.Table(tmp_path / "v7.parquet", "who", name="other", engine=ENGINE)
    with pytest.warns(UserWarning, match="other"):
        wi.Session(alone, plan, ledger, share="1/4")
