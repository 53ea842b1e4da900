"""Rows are chosen alike, and from the same memory, however many an entity has."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from scipy import stats

from whosin.release import DuckDB, Range, Sum, Table, row_choice
from whosin.release.row_choice import first

PEOPLE = 3000


@pytest.mark.parametrize("held", [1, 3, 100])
def test_every_choice_is_as_likely(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """Four rows each for most people, fewer for others: by ranks, by aggregates, and by both."""
    monkeypatch.setattr(row_choice, "MOST_HELD", max(held, 2))
    who = [person for person in range(PEOPLE) for _ in range(4 if person % 3 else 1 + person % 2)]
    seen: Counter[int] = Counter()
    place = []
    for person in who:
        place.append(seen[person])
        seen[person] += 1
    texts = [f"{person}-{at}" for person, at in zip(who, place, strict=True)]
    with DuckDB() as engine:
        data = engine.open(pa.table({"entity": who, "place": place, "text": texts}))
        rows = engine.run(first(data, ["entity"], 2)).to_pylist()
    chosen: dict[int, list[int]] = {}
    for row in rows:
        assert row["text"] == f"{row['entity']}-{row['place']}"  # rows stay whole
        chosen.setdefault(row["entity"], []).append(row["place"])
    assert {person: len(set(places)) for person, places in chosen.items()} == {
        person: min(2, count) for person, count in seen.items()
    }
    pairs = Counter(tuple(sorted(chosen[person])) for person in seen if seen[person] == 4)
    counts = [pairs[pair] for pair in combinations(range(4), 2)]
    assert sum(counts) == sum(1 for count in seen.values() if count == 4)
    assert stats.chisquare(counts).pvalue > 1e-9


def test_one_row_of_one_value_each_is_as_likely_as_another() -> None:
    """Chosen while rows are aggregated, in one pass."""
    who = [person for person in range(PEOPLE) for _ in range(1 + person % 4)]
    place = [at for person in range(PEOPLE) for at in range(1 + person % 4)]
    with DuckDB() as engine:
        data = engine.open(pa.table({"entity": who, "place": place}))
        chosen = first(data, ["entity"], 1)
        rows = engine.run(chosen).to_pylist()
    assert sorted(row["entity"] for row in rows) == list(range(PEOPLE))
    for size in (1, 2, 3, 4):
        places = Counter(row["place"] for row in rows if row["entity"] % 4 == size - 1)
        counts = [places[at] for at in range(size)]
        assert sum(counts) == sum(places.values())
        assert size == 1 or stats.chisquare(counts).pvalue > 1e-9


def test_one_entity_with_very_many_rows_fits(tmp_path: Path) -> None:
    """All its rows at once would not: the engine failed, after the debit, for this table alone."""
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        person = "CASE WHEN range < 6000000 THEN 0 ELSE range END"
        rows = f"SELECT {person} AS person, range % 100 AS x FROM range(6100000)"
        connection.execute(f"COPY ({rows}) TO '{path}'")
    with DuckDB(memory="60MB", threads=1, spill=tmp_path) as engine:
        table = Table(path, "person", {"x": Range(0, 100, step=1)}, rows=2, engine=engine)
        query = Sum(column="x")
        [found] = engine.run(query.exact(table, query.cells(table))).to_pylist()
    assert 0 <= found["sum"] - sum(range(100)) * 1000 <= 2 * 99
