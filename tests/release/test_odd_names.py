"""Columns may be called anything: what the package calls its own columns never gets in their way,
and names that an engine takes for one are refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import whosin as wi
from amounts import some
from odd_names import ROWS, WORDS, check_names, check_word, inside, opened
from refusals import refused
from release_oracle import ENGINE
from whosin.release import Feature, LookupTable, Values

OLD = ("lot", "rank", "whosin_owner", "whosin_rows", "whosin_key", "whosin_value", "whosin_number")
"""What columns of ours were called where rows have columns of any name."""


@cache
def words() -> list[str]:
    """Every name that an expression of ours has for a column of its own, and the others."""
    found = {name for most in ROWS for name in inside(opened(ENGINE, ["y"], most))}
    theirs = {"who", "ward", "at", "y", "v.y", "w.y", "y_of", "v.who", "region"}
    ours = found - theirs
    assert {"lot", "rank", "owner", "key_0", "joined_0"} <= ours
    return sorted({*ours, *OLD, *WORDS})


@pytest.mark.parametrize(("change", "most"), [(str, 1), (str.upper, 5)])
def test_no_column_is_taken_for_one_of_ours(change: type[str], most: int) -> None:
    check_names(ENGINE, [change(name) for name in words()], most)


@pytest.mark.parametrize(
    "name", some([*OLD, "self", "by", "owner", "joined_0", "column_0", "privacy_unit"], 4)
)
def test_names_of_ours_may_be_those_of_entities_features_levels_and_keys(name: str) -> None:
    check_word(ENGINE, name)


def test_made_names_are_taken_as_well() -> None:
    """A name that is made because another one is taken may be taken too."""
    names = [name + "_" * count for name in ("owner", "joined_0", "LOT") for count in range(4)]
    check_names(ENGINE, names, 2)


@pytest.mark.parametrize("name", ["ward", "WARD", "Days", "N", "Region"])
def test_a_level_is_not_called_like_a_column_in_any_letters(name: str) -> None:
    """Of the table, a feature or a public table: an engine would take it for that column."""
    rows = pa.table({"who": [1], "ward": ["a"], "days": [1]})
    public = pa.table({"ward": ["a"], "region": ["north"]})
    with refused("domains.ward.parents", name):
        wi.Table(
            rows,
            "who",
            {"ward": Values(("a", "b"), parents={name: {"n": ["a"], "s": ["b"]}})},
            name="p",
            engine=ENGINE,
            tables=[LookupTable("w", public, key="ward")],
            features=[Feature("n", "count")],
        )


def test_two_levels_differ_by_more_than_letters() -> None:
    rows = pa.table({"who": [1], "ward": ["a"], "home": ["a"]})
    domains = {
        "ward": Values(("a", "b"), parents={"site": {"n": ["a"], "s": ["b"]}}),
        "home": Values(("a", "b"), parents={"Site": {"n": ["a"], "s": ["b"]}}),
    }
    with refused("domains.home.parents", "Site"):
        wi.Table(rows, "who", domains, name="p", engine=ENGINE)
    parents = {"site": {"n": ["a"], "s": ["b"]}, "SITE": {"all": ["n", "s"]}}
    with refused("domains.ward.parents", "SITE"):
        wi.Table(rows, "who", {"ward": Values(("a", "b"), parents=parents)}, name="p")


def test_columns_that_an_engine_takes_for_one_are_refused(tmp_path: Path) -> None:
    table = pa.table({"who": [1, 2], "Ward": ["A", "B"], "ward": ["c", "d"]})
    inner = pa.array([{"Ward": 1}, {"Ward": 2}], pa.struct([("Ward", pa.int64())]))
    nested = pa.table({"who": [1, 2], "both": inner, "ward": ["c", "d"]})
    for name, rows in (("twice", table), ("nested", nested)):
        pq.write_table(rows, tmp_path / f"{name}.parquet")
        with pa.ipc.new_file(tmp_path / f"{name}.arrow", rows.schema) as file:
            file.write_table(rows)
    for ending in ("parquet", "arrow"):
        with refused("columns of the table"):
            wi.Table(tmp_path / f"twice.{ending}", "who", engine=ENGINE)
        wi.Table(tmp_path / f"nested.{ending}", "who", engine=ENGINE)
    with refused("columns of the table"):
        wi.Table(table, "who", name="p", engine=ENGINE)
