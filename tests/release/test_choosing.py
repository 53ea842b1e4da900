"""Rows are chosen alike, and from the same memory, however many a privacy unit has."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from scipy import stats

from whosin.release import DuckDB, Range, Sum, Table, row_values
from whosin.release.row_values import sample_rows, sum_sampled_rows

PEOPLE = 3000


@pytest.mark.parametrize("held", [1, 3, 100])
def test_every_choice_is_as_likely(monkeypatch: pytest.MonkeyPatch, held: int) -> None:
    """Four rows each for most people, fewer for others: by ranks, by aggregates, and by both."""
    monkeypatch.setattr(row_values, "MAX_RANKED_ROWS", max(held, 2))
    who = [person for person in range(PEOPLE) for _ in range(4 if person % 3 else 1 + person % 2)]
    seen: Counter[int] = Counter()
    place = []
    for person in who:
        place.append(seen[person])
        seen[person] += 1
    texts = [f"{person}-{at}" for person, at in zip(who, place, strict=True)]
    with DuckDB() as engine:
        data = engine.open(pa.table({"unit": who, "place": place, "text": texts}))
        rows = engine.run(sample_rows(data, ["unit"], 2)).to_pylist()
    chosen: dict[int, list[int]] = {}
    for row in rows:
        assert row["text"] == f"{row['unit']}-{row['place']}"  # rows stay whole
        chosen.setdefault(row["unit"], []).append(row["place"])
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
        data = engine.open(pa.table({"unit": who, "place": place}))
        chosen = sample_rows(data, ["unit"], 1)
        rows = engine.run(chosen).to_pylist()
    assert sorted(row["unit"] for row in rows) == list(range(PEOPLE))
    for size in (1, 2, 3, 4):
        places = Counter(row["place"] for row in rows if row["unit"] % 4 == size - 1)
        counts = [places[at] for at in range(size)]
        assert sum(counts) == sum(places.values())
        assert size == 1 or stats.chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_sums_are_of_any_rows_as_likely(most: int) -> None:
    """Rows are powers of two, so that a sum says which were chosen."""
    who = [person for person in range(PEOPLE) for _ in range(person % 5)]
    worth = [2**at for person in range(PEOPLE) for at in range(person % 5)]
    with DuckDB() as engine:
        data = engine.open(pa.table({"unit": who, "worth": worth, "one": [1] * len(who)}))
        rows = engine.run(sum_sampled_rows(data, ["unit"], most, ("worth", "one"))).to_pylist()
    assert sorted(row["unit"] for row in rows) == sorted(set(who))
    for size in range(1, 5):
        found = [row for row in rows if row["unit"] % 5 == size]
        assert {row["one"] for row in found} == {min(size, most)}
        sums = Counter(row["worth"] for row in found)
        sets = [sum(2**at for at in each) for each in combinations(range(size), min(size, most))]
        assert set(sums) <= set(sets)
        if len(sets) > 1:
            assert stats.chisquare([sums[each] for each in sets]).pvalue > 1e-9


def test_rows_without_a_chance_are_left_out_before_they_are_ranked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A person of 40,000 rows, of which 3 are chosen, is thinned to about 120; as many as before
    are chosen, also of someone of whom one row is missing for that."""
    monkeypatch.setattr(row_values, "MAX_RANKED_ROWS", 1000)
    who = [0] * 40_000 + [1] * 1000 + [2] * 2 + [3]
    with DuckDB() as engine:
        data = engine.open(pa.table({"unit": who, "place": list(range(len(who)))}))
        lots = row_values._add_lots(data)
        kept = row_values._thin_large_homes(data, lots, ["unit"], 3)
        sizes = kept.group_by("unit").aggregate(rows=kept.count())
        held = {row["unit"]: row["rows"] for row in engine.run(sizes).to_pylist()}
        chosen = engine.run(sample_rows(data, ["unit"], 3)).to_pylist()
    assert 40 < held[0] < 250 and (held[1], held[2], held[3]) == (1000, 2, 1)
    assert Counter(row["unit"] for row in chosen) == {0: 3, 1: 3, 2: 2, 3: 1}


def test_one_entity_with_very_many_rows_fits(tmp_path: Path) -> None:
    """All its rows at once would not: the engine failed, after the debit, for this table alone."""
    path = tmp_path / "t.parquet"
    with duckdb.connect() as connection:
        person = "CASE WHEN range < 6000000 THEN 0 ELSE range END"
        rows = f"SELECT {person} AS person, range % 100 AS x FROM range(6100000)"
        connection.execute(f"COPY ({rows}) TO '{path}'")
    with DuckDB(memory="60MB", threads=1, spill=tmp_path) as engine:
        table = Table(
            path, "person", {"x": Range(0, 100, step=1)}, max_rows_per_group=2, engine=engine
        )
        query = Sum(column="x")
        [found] = engine.run(query.exact(table, query.cells(table))).to_pylist()
    assert 0 <= found["sum"] - sum(range(100)) * 1000 <= 2 * 99
