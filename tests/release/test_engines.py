"""The embedded engine: what it opens, how it lets go, and tables larger than its memory."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import whosin as wi
from refusals import refused
from whosin.errors import InvalidInput, UnknownName
from whosin.release import Count, DuckDB, Session, Synthetic, Table
from whosin.release.engines.base import parse_header
from whosin.release.engines.files import write_draft

FRAME = pa.table({"person": [1, 2, 3, 3, None], "ward": ["a", "b", "c", "a", None]})


@pytest.fixture
def engine() -> Any:
    with DuckDB() as opened:
        yield opened


def size(engine: Any, source: object) -> tuple[int, int]:
    """(rows, entities), scanned twice: the second scan must see the rows as well."""
    data = engine.open(source)
    expression = data.aggregate(rows=data.count(), people=data["person"].nunique())
    first, second = (engine.run(expression).to_pylist()[0] for _ in range(2))
    assert first == second
    return first["rows"], first["people"]


def test_arrow_files_can_be_scanned_again(engine: DuckDB, tmp_path: Path) -> None:
    for name, compression in (("a.arrow", "uncompressed"), ("b.feather", "lz4")):
        feather.write_feather(FRAME, tmp_path / name, compression=compression)
    assert size(engine, tmp_path / "a.arrow") == (5, 3)
    assert size(engine, tmp_path) == (10, 3)
    assert size(engine, f"{tmp_path}/*.arrow") == (5, 3)


def test_odd_names_are_only_names(engine: DuckDB, tmp_path: Path) -> None:
    place = tmp_path / "it's [odd] * ?"
    place.mkdir()
    pq.write_table(FRAME, place / "a'b[1].parquet")
    pq.write_table(FRAME, place / "a'b1.parquet")
    (place / "_SUCCESS").touch()
    (place / ".x.parquet.crc").touch()
    assert size(engine, place / "a'b[1].parquet") == (5, 3)
    assert size(engine, place) == (10, 3)


def test_folders_named_by_a_column(engine: DuckDB, tmp_path: Path) -> None:
    for site in ("A", "07"):
        (tmp_path / f"site={site}").mkdir()
        pq.write_table(FRAME, tmp_path / f"site={site}" / "1.parquet")
    table = Table(tmp_path, "person", {"site": ["A", "07"]}, engine=engine)
    assert table.type("site").is_string()
    assert size(engine, tmp_path) == (10, 3)


def test_databases_side_by_side(engine: DuckDB, tmp_path: Path) -> None:
    for place, name in enumerate(("one.duckdb", "it's two.db")):
        with duckdb.connect(tmp_path / name) as connection:
            connection.execute("CREATE SCHEMA s")
            connection.execute(f"CREATE TABLE t AS SELECT range AS person FROM range({place + 1})")
            connection.execute('CREATE TABLE s."a ""b" AS SELECT 5 AS person')
    one, two = tmp_path / "one.duckdb", tmp_path / "it's two.db"
    assert size(engine, f"{one}::t") == (1, 1)
    assert size(engine, f"{two}::t") == (2, 2)
    assert size(engine, f'{one}::s.a "b') == (1, 1)
    with DuckDB() as other:
        assert size(other, f"{one}::t") == (1, 1)
    with pytest.raises(Exception, match="read-only"):
        engine._opened[0].connection.execute("DELETE FROM whosin_data_0.main.t")
    for missing in ("u", "q.t"):
        with pytest.raises(UnknownName):
            engine.open(f"{one}::{missing}")


def test_sources_that_are_opened_together_can_be_joined(engine: DuckDB, tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "one.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS person FROM range(3)")
        connection.execute("CREATE TABLE u AS SELECT range AS other FROM range(2)")
    (tmp_path / "lines.csv").write_text("number,name\n1,a\n")
    inside = [f"{tmp_path / 'one.duckdb'}::{name}" for name in ("t", "u")]
    one, two, frame, lines = engine.open_together([*inside, FRAME, tmp_path / "lines.csv"])
    pairs = one.join(two, one["person"] == two["other"])
    pairs = pairs.join(lines, pairs["person"].cast("string") == lines["number"])
    pairs = pairs.join(frame.select(whose=frame["person"]), pairs["person"] == 1)
    assert engine.run(pairs.aggregate(n=pairs.count()))["n"].to_pylist() == [FRAME.num_rows]
    opened = len(engine._opened)
    with refused("table"):
        engine.open_together([FRAME, one])
    with pytest.raises(FileNotFoundError):
        engine.open_together([FRAME, tmp_path / "missing.csv"])
    assert len(engine._opened) == opened


def test_frames_in_memory(engine: DuckDB) -> None:
    frames = (FRAME, FRAME.to_batches()[0], pd.DataFrame({"person": [1, 2]}), pl.DataFrame(FRAME))
    assert [size(engine, frame) for frame in frames] == [(5, 3), (5, 3), (2, 2), (5, 3)]
    with refused("table"):
        engine.open(42)


def test_csv_lines_never_raise_nor_change_the_columns(engine: DuckDB, tmp_path: Path) -> None:
    lines = b'person,name\n1,a\n2\n3,b,c,d\n4,"x\ny"\n5,\xff\n6,""\n\n7,"q"r\n8,z'
    (tmp_path / "a.csv").write_bytes(lines)
    assert size(engine, tmp_path / "a.csv")[1] >= 7
    data = engine.open(tmp_path / "a.csv")
    assert data.columns == ("person", "name")
    clean = data.filter(data["person"].isin(["1", "2", "3", "4", "6"]))
    found = {row["person"]: row["name"] for row in engine.run(clean).to_pylist()}
    assert found == {"1": "a", "2": None, "3": "b", "4": '"x', "6": None}
    (tmp_path / "b.csv").write_bytes(b"other,name\n")
    with refused("table"):
        engine.open(tmp_path)
    for broken in (b"", b"\n1,2\n", b"a,A\n", b'a,"b\nc"\n1,2\n'):
        (tmp_path / "c.csv").write_bytes(broken)
        with pytest.raises(InvalidInput):
            engine.open(tmp_path / "c.csv")


def test_a_header_says_the_separator() -> None:
    assert parse_header("a;b, c;d").columns == ("a", "b, c", "d")
    assert parse_header("a\tb").separator == "\t"
    assert parse_header(',"x,y"').columns == ("column0", "x,y")


@pytest.mark.parametrize("setting", [{"memory": "lots"}, {"threads": 0}, {"spill": "nowhere"}])
def test_wrong_settings(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(setting))):
        DuckDB(**setting)


def test_spill_folders_are_removed(tmp_path: Path) -> None:
    with DuckDB(spill=tmp_path):
        assert len(list(tmp_path.iterdir())) == 1
    assert not list(tmp_path.iterdir())
    forgotten = DuckDB(spill=tmp_path)
    assert list(tmp_path.iterdir())
    del forgotten
    gc.collect()
    assert not list(tmp_path.iterdir())
    script = f"from whosin.release import DuckDB; kept = DuckDB(spill={str(tmp_path)!r})"
    python = [sys.executable, "-W", "error", "-c", script]
    run = subprocess.run(python, capture_output=True, check=True)
    assert run.stderr == b"" and not list(tmp_path.iterdir())


@pytest.mark.soak
def test_a_table_larger_than_the_memory(tmp_path: Path) -> None:
    """3·10^6 entities of two wards each take over 100 MB; the engine may use 60."""
    path = tmp_path / "large.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT range % 3000000 AS person, 'w' || (hash(range) % 3) AS ward "
            f"FROM range(6000000)) TO '{path}'"
        )
    wards = {"ward": ["w0", "w1", "w2"]}
    spilled: list[int] = []
    with DuckDB(memory="60MB", threads=1, spill=tmp_path) as engine:
        table = Table(path, "person", wards, max_groups=1, engine=engine)
        query = Count(by="ward")
        cells = query.cells(table)

        def watch(_: float) -> None:
            folders = tmp_path.glob("whosin-spill-*/*")
            spilled.append(sum(file.stat().st_size for file in folders if file.exists()))

        result = engine.run(query.exact(table, cells), watch)
        assert cells.dense(result, ["people"])[0].sum() == 3_000_000
        home = engine._opened[0].connection
        used = home.execute("SELECT current_setting('memory_limit')").fetchone()
    assert used and used[0].startswith("57")  # MiB
    assert max(spilled) > 10_000_000


def test_progress_is_told(engine: DuckDB) -> None:
    """Every .2 s: a fast machine answers a small question before that, so a larger one is asked."""
    told: list[float] = []
    for doublings in range(26, 36):
        data = engine._new().view(f"SELECT range AS id FROM range({2**doublings})")
        engine.run(data.aggregate(n=(data["id"] * 3 % 7).nunique()), told.append)
        if told:
            break
    assert told and all(0 <= share <= 1 for share in told)


@pytest.mark.parametrize("delay", [0.1, 0.6])
def test_interruption_is_an_interruption(engine: DuckDB, delay: float) -> None:
    """Whenever it comes: DuckDB itself misses some."""
    data = engine._new().view("SELECT range AS id FROM range(1000000000000)")
    expression = data.aggregate(n=(data["id"] * 3 % 7).nunique())
    engine.check(expression)
    timer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGINT))

    def run() -> None:
        timer.start()  # here, since it may come at once on a busy machine
        engine.run(expression)

    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()
    assert size(engine, FRAME) == (5, 3)


def test_a_broken_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    path.write_bytes(b"old")

    def batches() -> Any:
        yield pa.record_batch({"code": list(range(100))})
        raise ValueError("private")

    with pytest.raises(ValueError, match="private"):
        write_draft(batches(), pa.schema([("code", pa.int64())]), path)
    assert path.read_bytes() == b"old" and len(list(tmp_path.iterdir())) == 1


def test_synthetic_tables_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whosin.release.engines.duckdb.BATCH_ROWS", 100_000)
    path, rows = tmp_path / "people.parquet", "SELECT range AS person, 'w0' AS ward"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows} FROM range(250000)) TO '{path}'")
    plan = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.1", "0.5"))
    with DuckDB(memory="200MB", spill=tmp_path) as engine:
        table = Table(path, "person", {"ward": ["w0", "w1"]}, engine=engine)
        query = Synthetic(columns=["ward"], path=str(tmp_path / "out.parquet"))
        answer = Session(table, plan, tmp_path / "ledger.db", share=1).ask(query)
    found = pq.ParquetFile(tmp_path / "out.parquet").metadata
    assert answer.rows[0][1] == found.num_rows == 250_000 and found.num_row_groups == 3
