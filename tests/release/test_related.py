"""Features, further tables and lookups against plain Python and pandas, on random tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import whosin as wi
from amounts import cases
from refusals import refused
from related_oracle import WARDS, check, visits
from release_oracle import ENGINE, exact, rows_in
from whosin.errors import BudgetRefused, InvalidInput
from whosin.ledger import verify
from whosin.release import (
    Count,
    Feature,
    FurtherTable,
    LookupTable,
    Mean,
    Range,
    Rows,
    Values,
)
from whosin.release.contribution_bounds import ContributionBounds


@pytest.mark.parametrize("table", [None, "visits"])
@cases(2, 200)
def test_features_are_those_of_the_definitions(table: str | None, count: int) -> None:
    rng = np.random.default_rng(20)
    for _ in range(count):
        check(rng, table)


def test_joins_keep_everyone_and_bring_only_their_own() -> None:
    rng = np.random.default_rng(21)
    for most in (1, 2, 5):
        rows = visits(rng, 60, 9).append_column("id", pa.array(range(60)))
        people = pa.table({"who": [*range(11), 3], "ward": ["A"] * 12})
        tables = [FurtherTable("v", rows, max_rows=most), LookupTable("w", WARDS, key="ward")]
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


def hospital(domains: dict[str, Any] | None = None, **more: Any) -> wi.Table:
    rows = pa.table({"who": [1, 1, 1, 2, 3], "days": [1, 2, 3, 40, 5], "ward": list("AABBC")})
    usual_domains = {
        "total": Range(0, 50, edges=(0, 10, 50)),
        "long": [True, False],
        "ward": ["A", "B"],
        "days": (0, 60),
    }
    features = [Feature("total", "sum", "days"), Feature("long", "any", where="days > 30")]
    usual: dict[str, Any] = {
        "name": "h",
        "engine": ENGINE,
        "features": features,
        "max_rows_per_group": 3,
    }
    return wi.Table(rows, "who", domains or usual_domains, **(usual | more))


def test_a_question_about_features_has_one_row_a_person() -> None:
    table = hospital()
    mean = Mean(column="total")
    about = mean.restrict_table(table)
    assert mean.bounds(about).max_rows_per_group == 1 and mean.bounds(table).max_rows_per_group == 3
    assert rows_in(mean, about) == [3]
    in_ward = Mean(column="total", where="ward = 'A'")
    assert in_ward.bounds(in_ward.restrict_table(table)).max_rows_per_group == 3
    assert rows_in(in_ward, in_ward.restrict_table(table)) == [2]
    rows = Rows(by=("long",), max_rows_per_group=3)
    assert rows.bounds(rows.restrict_table(table)).max_rows_per_group == 3
    assert exact(rows, rows.restrict_table(table)) == [[1, 4, 0]]
    people = Count(by=("long",), max_groups=2)
    assert exact(people, people.restrict_table(table)) == [[1, 2, 0]]
    assert (
        people.bounds(people.restrict_table(table)).max_groups == 1
    )  # a feature is the same in all rows


def test_what_a_person_has_one_of_leaves_one_row_a_person() -> None:
    """Beside a feature: a column that was declared constant, also where it is not, and a table of
    which one row is joined. What is joined more often, or not declared, is of rows."""
    wards = pa.table({"who": [1, 1, 2, 2], "home": ["N", "S", "N", None]})
    declared = {
        "total": (0, 50),
        "ward": Values(("A", "B", "C"), constant=True),
        "home": ["N", "S"],
    }

    def opened(rows: int) -> wi.Table:
        return hospital(tables=[FurtherTable("homes", wards, max_rows=rows)], domains=declared)

    by_ward = Mean(column="total", by=("ward",))
    about = by_ward.restrict_table(opened(1))
    assert about.of_people and by_ward.bounds(about) == ContributionBounds(1, 1)
    found = rows_in(by_ward, about)
    assert sum(found) == 3 and found[1] >= 1 and found[2] == 1  # 1 is in A or in B
    by_home = Count(by=("home",), where="total > 0")
    about = by_home.restrict_table(opened(1))
    assert about.of_people and by_home.bounds(about).max_groups == 1
    assert sum(exact(by_home, about)[0]) == 3
    assert not by_home.restrict_table(opened(2)).of_people
    days = Mean(column="total", where="days > 1")
    assert not days.restrict_table(opened(1)).of_people
    wards_alone = Count(by=("ward",))
    assert not wards_alone.restrict_table(opened(1)).of_people


@cases(1, 100)
def test_one_person_in_all_tables_moves_an_answer_by_its_bound(count: int) -> None:
    """Neighbours: one person's rows changed everywhere; the exact answers stay within what is
    priced."""
    rng = np.random.default_rng(22)
    queries = [
        Mean(column="total"),
        Count(by=("kind",)),
        Count(by=("kind",), where="total > 5"),
        Mean(column="total", by=("n",)),
        Rows(by=("kind",), max_rows_per_group=2),
    ]
    for _ in range(count):
        frames = {"p": visits(rng, 20, 6), "v": visits(rng, 40, 6)}
        other = {
            name: pa.concat_tables([frame.filter(pc.not_equal(frame["who"], 2)), part])
            for name, frame in frames.items()
            for part in [_of_two(visits(rng, int(rng.integers(0, 9)), 6))]
        }
        pair = [_two_tables(each) for each in (frames, other)]
        for query in queries:
            tables = [query.restrict_table(each) for each in pair]
            parts, bounds = query.parts(tables[0]), query.bounds(tables[0])
            grouped = bool(query.cells(tables[0]).columns)
            before, after = (exact(query, each) for each in tables)
            for part, one, two in zip(parts, before, after, strict=True):
                moved = sum(abs(a - b) for a, b in zip(one, two, strict=True))
                assert moved <= part.l1_sensitivity("replace", bounds, grouped), query


def _of_two(rows: pa.Table) -> pa.Table:
    return rows.set_column(0, "who", pa.array([2] * rows.num_rows, pa.int64()))


def _two_tables(frames: dict[str, pa.Table]) -> wi.Table:
    return wi.Table(
        frames["p"].select(["who", "n"]),
        "who",
        {
            "total": (0, 50),
            "kind": ["A", "B"],
            "n": Range(0, 10, edges=(0, 3, 5, 10), constant=True),
        },
        name="p",
        max_rows_per_group=2,
        engine=ENGINE,
        tables=[FurtherTable("v", frames["v"], max_rows=3)],
        features=[
            Feature("total", "sum", "x", "v"),
            Feature("kind", "last", "ward", "v", order="at", tie="n"),
        ],
    )


ROWS = pa.table({"who": [1, 2], "x": [1.0, 2.0], "ward": ["A", "B"]})
TWICE = pa.table({"ward": ["A", "B", "A"], "region": ["n", "s", "n"]})


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"features": [Feature("n", "count"), Feature("m", "max", "n")]}, "column"),
        ({"features": [Feature("n", "sum", "x")]}, "domain"),
        ({"features": [Feature("x", "count")]}, "name"),
        ({"features": [{"name": "n", "kind": "median", "column": "x"}]}, "kind"),
        ({"features": [{"name": "n", "kind": "first", "column": "x"}]}, "order"),
        ({"features": [{"name": "n", "kind": "count", "order": "x"}]}, "order"),
        ({"features": [Feature("n", "count", where="n >")]}, "where"),
        ({"features": [Feature("n", "count", table="v")]}, "table"),
        ({"features": [Feature("n", "any", "x")]}, "column"),
        ({"features": [Feature("n", "count")], "privacy_unit": "row"}, "features"),
        ({"features": "n"}, "features"),
        ({"tables": [LookupTable("w", TWICE, key="ward")]}, "key"),
        ({"tables": [LookupTable("w", TWICE, key="region")]}, "key"),
        ({"tables": [{"name": "v", "source": ROWS, "on": "x"}]}, "on"),
        ({"tables": [{"name": "v", "source": ROWS, "privacy_unit": "x"}]}, "privacy_unit"),
        ({"tables": [{"name": "v", "source": ROWS}] * 2}, "name"),
        ({"tables": [{"name": "v", "source": ROWS}], "privacy_unit": "row"}, "table"),
        ({"tables": [{"name": "v", "source": ROWS, "max_rows": 0}]}, "max_rows"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_in_a_sentence(more: dict[str, Any], field: str) -> None:
    usual: dict[str, Any] = {"privacy_unit": "who", "name": "t", "engine": ENGINE}
    with refused(field):
        wi.Table(ROWS, **(usual | more))


def test_errors_about_sources_say_of_which_table(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"nothing")
    for source in ("s3://bucket/v.parquet", str(tmp_path / "broken.parquet"), "v.sheet"):
        tables = [FurtherTable("a", ROWS), FurtherTable("v", source)]
        with pytest.raises(InvalidInput) as caught:
            wi.Table(ROWS, "who", name="t", engine=ENGINE, tables=tables)
        assert caught.value.path.startswith("tables[1]")


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
            tables=[FurtherTable("v", tmp_path / f"v{days}.parquet", max_rows=most)],
            features=[Feature("n", "count", table="v", where=where)],
        )

    plan = wi.calibrate(wi.Epsilon(1.0), wi.families.Independent())
    ledger = tmp_path / "ledger.db"
    wi.Session(opened(), plan, ledger, share="1/4").ask(Mean(column="n"))
    for table, words in (
        (opened(days=7), "another table 'v': the source has changed"),
        (opened(most=2), "max_rows = 1 of 'v'"),
        (opened(where="days > 1"), "another feature 'n'"),
        (wi.Table(tmp_path / "v1.parquet", "who", name="p", engine=ENGINE), "other columns"),
    ):
        with pytest.raises(BudgetRefused, match=words):
            wi.Session(table, plan, ledger, share="1/4")
    wi.Session(opened(days=7), plan, ledger, share="1/4", amend=True).ask(Mean(column="n"))
    verify(wi.Ledger(ledger), "p")
    # The rows of a further table are known again, under another name too.
    alone = wi.Table(tmp_path / "v7.parquet", "who", name="other", engine=ENGINE)
    with pytest.raises(BudgetRefused, match="the rows of 'other' are those of dataset 'p'"):
        wi.Session(alone, plan, ledger, share="1/4")
