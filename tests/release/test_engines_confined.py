"""What an engine may reach and leaves behind; sources that change or cannot be one table."""

from __future__ import annotations

import contextlib
import decimal
import gzip
import os
import signal
import sqlite3
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import postgres
import whosin as wi
from amounts import some
from engine_rows import exact
from refusals import refused
from release_oracle import ENGINE
from whosin.errors import InvalidInput, ScanFailed, SourceChanged
from whosin.release import Count, DuckDB, FurtherTable, LookupTable, Rows, Session, Table
from whosin.release.conditions import parse_condition
from whosin.release.engines.base import QUESTION_COLUMN

PLAN = wi.calibrate(wi.Gamma(2), wi.families.Independent("0.05", "0.5"))
FRAME = pa.table({"who": ["a", "b", "c"], "n": [1, 2, 3]})


@pytest.fixture
def engine() -> Any:
    with DuckDB() as opened:
        yield opened


def sources(folder: Path) -> list[object]:
    pq.write_table(FRAME, folder / "t.parquet")
    feather.write_feather(FRAME, folder / "t.arrow")
    (folder / "t.csv").write_text("who,n\na,1\nb,2\nc,3\n", encoding="utf-8")
    with duckdb.connect(folder / "t.duckdb") as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS who, 1 AS n FROM range(3)")
    names = ("t.parquet", "t.arrow", "t.csv", "t.duckdb::t")
    return [*(str(folder / name) for name in names), FRAME, FRAME.to_pandas()]


def test_an_open_source_reaches_nothing_else(tmp_path: Path, engine: DuckDB) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,2\n", encoding="utf-8")
    for source in sources(tmp_path):
        data = engine.open(source)
        assert len(engine.run(data)) == 3
        home = engine._opened[-1].connection
        for attempt in (
            f"SELECT * FROM read_text('{secret}')",
            "SELECT * FROM read_text('/proc/self/environ')",
            f"SELECT * FROM read_csv('{secret}')",
            f"SELECT * FROM '{secret}'",
            f"SELECT * FROM glob('{tmp_path}/*')",
            f"ATTACH '{tmp_path / 'other.duckdb'}'",
            f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
            "INSTALL httpfs",
            "LOAD httpfs",
            "SET enable_external_access = true",
            "SET autoinstall_known_extensions = true",
            "SET memory_limit = '1GB'",
            "SELECT * FROM read_csv('https://localhost/x.csv')",
        ):
            with pytest.raises(duckdb.Error):
                home.execute(attempt).fetchall()
        assert not (tmp_path / "out.csv").exists()
        settings = "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%known%'"
        assert {value for _, value in home.execute(settings).fetchall()} == {"false"}


def test_views_are_opened_only_where_the_curator_says_so(tmp_path: Path) -> None:
    path = tmp_path / "d.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE t(who INT, s VARCHAR)")
        connection.execute("CREATE TABLE g(who INT, h INT GENERATED ALWAYS AS (who + 1))")
        connection.execute("INSERT INTO t VALUES (1, '1'), (2, 'x')")
        connection.execute("CREATE VIEW v AS SELECT who, CAST(s AS INT) AS n FROM t")
        connection.execute("CREATE VIEW w AS SELECT content AS who FROM read_text('/etc/passwd')")
    with DuckDB() as engine:
        assert engine.tables(path) == ["t"]
        for name in "vwg":
            with pytest.raises(InvalidInput):
                engine.open(f"{path}::{name}")
    with DuckDB(views=True) as engine:
        assert engine.tables(path) == ["g", "t", "v", "w"]
        assert len(engine.run(engine.open(f"{path}::g"))) == 0
        with pytest.raises(duckdb.Error):  # allowed, and confined all the same
            engine.run(engine.open(f"{path}::w"))


def other_schemas(folder: Path, kind: str) -> None:
    write = pq.write_table if kind == "parquet" else feather.write_feather
    for place, columns in enumerate(
        (
            {"who": ["a"], "n": [1]},
            {"who": ["a"], "n": ["x"]},
            {"n": [1], "who": ["a"]},
            {"who": ["a"]},
            {"who": ["a"], "n": [1], "m": [1]},
            {"who": ["a"], "N": [1]},
            {"who": ["a"], "n": pa.array([1], pa.int32())},
        )
    ):
        (folder / str(place)).mkdir(parents=True)
        write(FRAME, folder / str(place) / f"a.{kind}")
        write(pa.table(columns), folder / str(place) / f"b.{kind}")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_with_other_columns_are_refused_on_opening(
    tmp_path: Path, engine: DuckDB, kind: str
) -> None:
    other_schemas(tmp_path, kind)
    assert len(engine.run(engine.open(tmp_path / "0"))) == 4
    # Each Arrow file is first read by a process of its own.
    for place in range(1, 7) if kind == "parquet" else (1,):
        with pytest.raises(InvalidInput, match=rf"^b.* has other columns than a\.{kind}: column '"):
            engine.open(tmp_path / str(place))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "csv"])
def test_a_source_that_is_replaced_is_noticed(tmp_path: Path, kind: str) -> None:
    def write(columns: dict[str, Any]) -> None:
        path, table = tmp_path / f"t.{kind}", pa.table(columns)
        if kind == "csv":
            rows = zip(*(map(str, column) for column in columns.values()), strict=True)
            lines = [",".join(columns), *map(",".join, rows)]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        else:
            (pq.write_table if kind == "parquet" else feather.write_feather)(table, path)

    rooms, people = [n % 10 for n in range(1000)], list(range(1000))
    write({"who": rooms, "room": people})
    with DuckDB() as engine:
        table = Table(tmp_path / f"t.{kind}", "who", engine=engine)
        session = Session(table, PLAN, tmp_path / "l.db", amend=True)
        session.ask(Count(), share="1/3")
        write({"who": rooms[:500], "room": people[:500]})
        session.ask(Count(), share="1/3")  # other rows are a matter of the ledger
        assert session.budget_state.debits == 2
        drifts: list[tuple[dict[str, Any], str, str | None]] = [
            ({"who": rooms}, "room", "2"),
            ({"who": rooms, "room": people, "age": people}, "age", "3"),
            ({"who": rooms, "room": [str(each) for each in people]}, "room", None),
            ({"room": people, "who": rooms}, "who", "1"),
        ]
        for columns, name, place in drifts:
            write(columns)
            if kind == "csv" and place is None:  # all of them are texts
                continue
            with pytest.raises(SourceChanged) as caught:
                engine.run(table.data)
            # Without a header the names of a CSV file would be somebody's row.
            assert (name in str(caught.value)) == (kind != "csv")
            assert kind != "csv" or f"column {place} of" in str(caught.value)
        with pytest.raises(ScanFailed):
            session.ask(Count(), share="1/3")


KILLED = """
import sys, time
from whosin.release import DuckDB
engine = DuckDB(memory="60MB", threads=1, spill=sys.argv[1])
data = engine._new().view("SELECT range AS n, 'x' || hash(range) AS t FROM range(20000000)")
print("ready", flush=True)
engine.run(data.aggregate(n=data.t.nunique()))
"""


def test_what_a_kill_leaves_is_removed_at_the_next_start(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 300
        while not _spilled(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert _spilled(tmp_path) > 0
    [left] = tmp_path.iterdir()
    assert left.stat().st_mode & 0o777 == 0o700
    with DuckDB(spill=tmp_path):
        [own] = tmp_path.iterdir()
        assert own != left and own.stat().st_mode & 0o777 == 0o700
        with DuckDB(spill=tmp_path):  # one that is in use stays
            assert own.exists() and len(list(tmp_path.iterdir())) == 2
    assert not list(tmp_path.iterdir())


def _spilled(folder: Path) -> int:
    found = 0
    for file in folder.glob("whosin-spill-*/*"):
        with contextlib.suppress(FileNotFoundError):
            found += file.stat().st_size
    return found


def test_pandas_columns_without_a_type_are_texts(engine: DuckDB) -> None:
    """What pandas calls object is guessed from values, and a guess that fails quotes one."""
    objects = ["HIV positive", 1, 2.5, None, float("nan"), b"x", [1], "\ud800", True]
    frame = pd.DataFrame({"who": range(9), "x": pd.Series(objects, dtype=object)})
    data = engine.open(frame)
    assert data.columns == ("who", "x") and data.schema()["x"].is_string()
    found = engine.run(data).sort_by("who").column("x").to_pylist()
    assert found == ["HIV positive", "1", "2.5", None, None, None, None, None, "True"]
    whole = pd.DataFrame({"who": [1], "x": pd.Series([decimal.Decimal(3)], dtype=object)})
    assert engine.open(whole).schema()["x"].is_string()
    mixed = pd.DataFrame({"who": [1, 2], "x": pd.Categorical(["HIV positive", 2])})
    found = engine.run(engine.open(mixed)).sort_by("who").column("x").to_pylist()
    assert found == ["HIV positive", "2"]
    with refused("table") as caught:
        engine.open(pd.DataFrame({"who": [1, 2], "x": pd.Series([1 + 2j, 2j])}))
    assert caught.value.__context__ is None
    twice = pd.DataFrame([[1, 2]], columns=["who", "who"])
    with refused("columns of the table"):
        engine.open(twice)


def bad_texts() -> pa.Array:
    raw = pa.array([b"a", b"\xff\xfe", None, b"\xc3", b"B "], pa.binary())
    return pa.Array.from_buffers(pa.string(), 5, raw.buffers())


def test_arrow_texts_that_are_not_utf8_are_missing(tmp_path: Path, engine: DuckDB) -> None:
    """lower, upper, trim and ilike killed the engine."""
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, 4]), bad_texts())
    frame = pa.table({"who": range(5), "t": bad_texts(), "c": coded, "l": bad_texts()})
    feather.write_feather(frame, tmp_path / "t.arrow", compression="uncompressed")
    texts = ["lower(t) = 'a'", "upper(t) = 'A'", "trim(t) = 'B'", "t ilike '%b%'", "c is null"]
    for source in (frame, tmp_path / "t.arrow", frame.to_batches()[0]):
        data = engine.open(source)
        marks = {f"m{place}": parse_condition(text, data) for place, text in enumerate(texts)}
        found = engine.run(data.select("who", "t", "c", **marks)).sort_by("who")
        assert found.column("t").to_pylist() == ["a", None, None, None, "B "]
        assert found.column("c").to_pylist() == ["a", None, None, None, "B "]
        kept = [found.column(f"m{place}").to_pylist().count(True) for place in range(len(texts))]
        assert kept == [1, 1, 1, 1, 3]


@pytest.mark.filterwarnings("ignore")  # pandas warns of how Ibis asks it
def test_ibis_expressions_are_refused(engine: DuckDB, tmp_path: Path) -> None:
    """They can hold anything, such as a cast that fails on one row."""
    data = engine.open(FRAME)
    assert engine.open(data) is data
    foreign = ibis.duckdb.connect()
    foreign.create_table("t", FRAME)
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("CREATE TABLE t (who INTEGER)")
    connection.close()
    lite = ibis.sqlite.connect(tmp_path / "t.sqlite").table("t")
    for other in (
        data.mutate(n=data["who"].cast("int64")),
        data.filter(data["n"] > 1),
        ibis.memtable({"who": [1]}),
        foreign.table("t"),
        lite,
        data["n"],
    ):
        with refused("table"):
            engine.open(other)
    lite.get_backend().disconnect()
    foreign.disconnect()


EXTREMES = [0, 1, -1, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]
KINDS = [
    *(pa.int8(), pa.int64(), pa.uint8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_()),
    *(pa.decimal128(38, 10), pa.decimal128(18, 0), pa.date32(), pa.date64(), pa.time64("us")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp(unit, "UTC") for unit in ("s", "us", "ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.string(), pa.large_string(), pa.binary(), pa.list_(pa.int64())),
]
CONDITIONS = [
    "x is null", "x = 1", "x > '2020-01-01'", "year(x) = 2020", "x = x", "cast(x as int) = 1",
    "cast(x as varchar) = '1'", "cast(x as timestamp) > '2020-01-01'", "abs(x) > 1",
    "lower(x) = 'a'",
    "x in (1, 2)", "cast(x as double) > 1", "cast(x as date) = '2020-01-01'", "x is not true",
]  # fmt: skip


def extremes(kind: pa.DataType) -> pa.Array:
    """Arrow values at the ends of a type, made from their bits."""
    try:
        width = {8: "int8", 16: "int16", 32: "int32", 64: "int64"}.get(kind.bit_width)
    except ValueError:
        width = None
    if pa.types.is_floating(kind):
        return pa.array([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e30], kind)
    if pa.types.is_decimal(kind):
        most = decimal.Decimal(10) ** (kind.precision - kind.scale) - 1
        return pa.array([most, -most, decimal.Decimal(0)], kind)
    if width is None:
        return pa.nulls(3, kind)
    bits = np.array(EXTREMES, np.int64).astype(width)
    return pa.Array.from_buffers(kind, len(bits), [None, pa.py_buffer(bits.tobytes())])


@pytest.mark.parametrize("kind", some(KINDS, 4), ids=str)
def test_the_ends_of_a_type_change_no_outcome(kind: pa.DataType) -> None:
    """Whatever can be asked of a column of some type can be asked of its extreme values."""
    values = extremes(kind)
    outcomes = []
    for column in (pa.nulls(0, kind), values):
        seen: list[object] = []
        frame = pa.table({"who": pa.array(range(len(column)), pa.int64()), "x": column})
        for unit in ("who", "x"):
            try:
                table = Table(frame, unit, {}, name="t", engine=ENGINE)
                seen += _asked(table, [Count(), Rows(max_rows_per_group=2)])
                if unit == "who":
                    seen += _asked(table, [Count(where=text) for text in CONDITIONS])
            except InvalidInput as error:
                seen.append(str(error))
        outcomes.append(seen)
    assert outcomes[0] == outcomes[1]


def _asked(table: Table, queries: list[Any]) -> list[object]:
    seen: list[object] = []
    for query in queries:
        try:
            expression = table.check(query.exact(table, query.cells(table)))
            seen.append(table.engine.run(expression).num_rows)
        except InvalidInput as error:
            seen.append(str(error))
    return seen


def test_lazy_frames_of_polars_are_collected_once(tmp_path: Path, engine: DuckDB) -> None:
    frame = pl.DataFrame({"who": [1, 2, 3], "n": [1.5, None, 4.0], "d": ["a", "b", "a"]})
    frame = frame.with_columns(pl.col("d").cast(pl.Categorical))
    ran = []

    def watched(each: pl.DataFrame) -> pl.DataFrame:
        ran.append(each.height)
        return each

    lazy = frame.lazy().filter(pl.col("who") > 1).map_batches(watched)
    further = FurtherTable("f", frame.lazy().rename({"n": "m"}).drop("d"))
    domains = {"d": ["a", "b"], "m": (0, 9)}
    table = Table(lazy, "who", domains, name="t", engine=engine, tables=[further])
    assert exact(Count(by="d"), table) == [[1, 1, 0]]
    assert exact(Count(where="m > 3 and n > 3"), table) == [[1]]
    session = Session(table, PLAN, tmp_path / "l.db")
    session.ask(Count(), share="1/3")
    assert len(ran) == 1
    bad = frame.lazy().with_columns(pl.col("d").cast(pl.String).cast(pl.Int64))
    with pytest.raises(InvalidInput) as caught:
        Table(bad, "who", name="t", engine=engine)
    assert caught.value.__context__ is None
    assert len(engine.run(engine.open(frame.lazy()))) == 3


KEYS = [
    *(pa.int8(), pa.int64(), pa.uint64(), pa.float32(), pa.float64()),
    *(pa.decimal128(38, 37), pa.decimal128(5, 2), pa.decimal128(38, 0)),
    *(pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("ns", "UTC")),
]
NUMBERS: list[str | int] = [
    *(0, 1, 100, 2**31, 2**63 - 1, -(2**63), "0.5", "0.1", "1e-37", "1e28", "999.99", "1.005")
]


def keys(kind: pa.DataType) -> list[Any]:
    """Values of a type, among them its ends, as Arrow holds them."""
    if pa.types.is_timestamp(kind):
        return list(EXTREMES)
    result = []
    for each in (decimal.Decimal(number) for number in NUMBERS):
        with contextlib.suppress(pa.ArrowInvalid, OverflowError, TypeError):
            if pa.types.is_floating(kind):
                result.append(float(each))
            elif pa.types.is_decimal(kind):
                result.append(pa.scalar(each, kind).as_py())
            elif each == int(each):
                result.append(pa.scalar(int(each), kind).as_py())
    return result


def held(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(pa.timestamp(kind.unit)).cast(kind)
    return pa.array(values, kind)


def meaning(kind: pa.DataType, value: Any) -> Fraction:
    """What a key is, exactly: a number, or the seconds since 1970."""
    if value == 2**63 - 1 and pa.types.is_timestamp(kind):
        return Fraction(10**40)  # what DuckDB calls infinity, in all units
    if pa.types.is_timestamp(kind):
        return Fraction(value, {"s": 1, "us": 10**6, "ns": 10**9}[kind.unit])
    return Fraction(float(np.float32(value)) if kind == pa.float32() else value)


@pytest.mark.parametrize("own", some(KEYS, 3), ids=str)
def test_keys_of_unlike_types_are_compared_exactly_and_never_fail(own: pa.DataType) -> None:
    """Which rows meet is what their exact values say; whether a release runs is what types say."""
    ran = 0
    for other in KEYS:
        answers: list[dict[int, Any] | None] = []
        for mine, theirs in (([], []), (keys(own), keys(other))):
            people = pa.table({"who": held(own, mine), "x": pa.array(range(len(mine)), pa.int64())})
            ones = pa.array([1] * len(theirs), pa.int64())
            further = FurtherTable("f", pa.table({"who": held(other, theirs), "y": ones}))
            feature = {"name": "n", "table": "f", "kind": "count"}
            joined: dict[str, Any] = {"tables": [further], "features": [feature]}
            try:
                table = Table(people, "who", {"n": (0, 9)}, name="t", engine=ENGINE, **joined)
            except InvalidInput:
                answers.append(None)
                continue
            rows = ENGINE.run(table.data.select("x", "y", "n")).to_pylist()
            answers.append({each["x"]: (each["y"], each["n"]) for each in rows})
            there = [meaning(other, each) for each in theirs]
            met = [there.count(meaning(own, each)) for each in mine]
            expected = {at: (1 if count else None, count) for at, count in enumerate(met)}
            assert answers[-1] == expected, (own, other)
            ran += 1
        assert (answers[0] is None) == (answers[1] is None)
    assert ran >= 4


def collated_file(folder: Path) -> str:
    with duckdb.connect(folder / "c.duckdb") as connection:
        kinds = "who VARCHAR COLLATE NOCASE, ward VARCHAR COLLATE NOCASE, mood ENUM('z', 'a')"
        connection.execute(f"CREATE TABLE t ({kinds})")
        connection.execute("CREATE VIEW v AS SELECT * FROM t")
        rows = "('p', 'A', 'z'), ('P', 'a', 'a'), ('q', 'É', NULL), ('r', 'b', 'a')"
        connection.execute(f"INSERT INTO t VALUES {rows}")
    return str(folder / "c.duckdb")


@pytest.mark.parametrize("name", ["t", pytest.param("v", marks=pytest.mark.soak)])
def test_texts_are_compared_by_bytes_whatever_their_collation(tmp_path: Path, name: str) -> None:
    source = f"{collated_file(tmp_path)}::{name}"
    regions = pa.table({"ward": ["A", "a", "É", "e"], "region": ["1", "2", "3", "4"]})
    further = pa.table({"who": ["p", "P", "Q"], "y": [1, 2, 3]})
    with DuckDB(views=True) as engine:
        table = Table(
            source, "who", {"ward": ["A", "a", "B", "É"], "region": ["1", "2", "3", "4"],
                            "mood": ["a", "z"], "top": ["a", "z"]},
            max_groups=4, engine=engine,
            tables=[LookupTable("l", regions, "ward"), FurtherTable("f", further)],
            features=[{"name": "top", "kind": "max", "column": "mood"}],
        )  # fmt: skip
        assert exact(Count(), table) == [[4]]
        assert exact(Count(by="ward"), table) == [[1, 1, 0, 1, 1]]
        assert exact(Count(by="region"), table) == [[1, 1, 1, 0, 1]]
        assert exact(Count(by="mood"), table) == exact(Count(by="top"), table) == [[2, 1, 1]]
        ones = ("ward = 'A'", "ward in ('A', 'B')", "ward like 'a%'", "ward < 'a'")
        texts = dict.fromkeys(ones, 1) | {"ward <> 'A'": 3, "mood < 'b'": 2, "y is not null": 2}
        for text, count in texts.items():
            assert exact(Count(where=text), table) == [[count]], text


def test_geometry_and_other_strange_types_are_columns_that_nobody_asks_about(
    tmp_path: Path, engine: DuckDB
) -> None:
    with duckdb.connect(tmp_path / "g.duckdb") as connection:
        strange = ["GEOMETRY", "GEOMETRY[]", "STRUCT(a GEOMETRY)", "VARIANT", "BIGNUM", "BIT"]
        kinds = ", ".join(f"c{at} {kind}" for at, kind in enumerate(strange))
        connection.execute(f"CREATE TABLE g (who INT, {kinds}, h HUGEINT)")
        connection.execute(
            "INSERT INTO g (who, c0, h) VALUES (1, 'POINT(1 2)', -(2::HUGEINT**126))"
        )
    table = Table(f"{tmp_path / 'g.duckdb'}::g", "who", {"h": (0, 1)}, engine=engine)
    assert exact(Count(where="h < 0"), table) == [[1]]
    for at in range(len(strange)):
        with pytest.raises(InvalidInput):
            Table(f"{tmp_path / 'g.duckdb'}::g", f"c{at}", engine=engine)
        with pytest.raises(InvalidInput):
            exact(Count(where=f"c{at} = 1"), table)


WITHOUT_NETWORK = """
import os, socket, sys, threading
from pathlib import Path

folder = Path(sys.argv[1])
listening = socket.create_server(("127.0.0.1", 0))
asked = []

def listen():
    while True:
        one, _ = listening.accept()
        asked.append(one.recv(100))
        one.close()

threading.Thread(target=listen, daemon=True).start()
for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
    os.environ[name] = f"http://127.0.0.1:{listening.getsockname()[1]}"
os.environ["HOME"] = str(folder / "home")
(folder / "home").mkdir()

import duckdb
import pyarrow as pa
import pyarrow.feather as feather
from ibis.backends.duckdb import Backend

loads = []
Backend._load_extensions = lambda self, names, **_: loads.append(names)

from whosin.release import Count, DuckDB, Table
from whosin.release.engines.confined import find_broken_lines
from whosin.release.inspection import check_table
from whosin.release.table import fingerprint_table

shape = pa.field("shape", pa.binary(), metadata={
    "ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"})
frame = pa.table([pa.array([1, 2]), pa.array([None, None], pa.binary())],
                 schema=pa.schema([pa.field("who", pa.int64()), shape]))
feather.write_feather(frame, folder / "t.arrow")
(folder / "t.csv").write_text("who,shape\\n1,POINT(1 2)\\n")
with duckdb.connect(folder / "t.duckdb") as made:
    made.execute("CREATE TABLE t AS SELECT 1 AS who, 'POINT(1 2)'::GEOMETRY AS shape")
    made.execute("CREATE VIEW v AS SELECT * FROM t")
    made.execute(f"COPY t TO '{folder / 't.parquet'}'")
import sqlite3
with sqlite3.connect(folder / "t.sqlite") as made:
    made.execute("CREATE TABLE t (who INTEGER, shape GEOMETRY)")
made.close()
names = ["t.parquet", "t.arrow", "t.csv", "t.duckdb::t", "t.duckdb::v", "t.sqlite::t"]
sources = [frame, frame.to_pandas(), *(str(folder / name) for name in names)]
sources += [f"adbc:duckdb:{folder / 't.duckdb'}::t", *sys.argv[2:]]
opened = 0
for source in sources:
    with DuckDB(views=True) as engine:
        table = Table(source, "who", {}, name="t", engine=engine)
        engine.run(Count().exact(table, Count().cells(table)))
        check_table(table)
        fingerprint_table(table, rows=True)
        opened += 1
find_broken_lines([str(folder / "t.csv")])
assert not loads and not asked and not list((folder / "home").iterdir()), (loads, asked)
try:  # would it be noticed?
    duckdb.connect().execute("INSTALL spatial")
except duckdb.Error:
    pass
assert asked
print(opened, len(sources))
"""


def test_no_opening_installs_or_loads_anything(tmp_path: Path) -> None:
    """Every kind of source has a column of shapes; a proxy of ours is all the network there is."""
    postgres.require()
    with postgres.server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (who int8, shape point, flat polygon)")
        on_server = f"postgresql://whosin@/postgres?host={server.folder}::t"
        python = [sys.executable, "-c", WITHOUT_NETWORK, str(tmp_path), on_server]
        secret = os.environ | {"PGPASSWORD": postgres.PASSWORD}
        done = subprocess.run(python, capture_output=True, text=True, timeout=300, env=secret)
    assert done.returncode == 0, done.stderr
    opened, sources = done.stdout.split()
    assert opened == sources


def test_frames_of_types_that_duckdb_has_not_are_refused(engine: DuckDB) -> None:
    for values in ([], [decimal.Decimal(1)]):
        frame = pa.table({"who": pa.array(values, pa.decimal256(50, 3))})
        with pytest.raises(InvalidInput) as caught:
            Table(frame, "who", name="t", engine=engine)
        assert caught.value.field == "table"


def test_wrong_flags() -> None:
    with pytest.raises(InvalidInput, match="views"):
        DuckDB(views="yes")  # type: ignore[arg-type]


def test_a_small_file_may_hold_many_rows(tmp_path):
    """What questions share depends on what is read, not on how well it is packed."""
    rows = pa.table({"who": np.arange(100_000), "x": np.zeros(100_000, np.int64)})
    pq.write_table(rows, tmp_path / "t.parquet", use_dictionary=False, compression="zstd")
    pq.write_table(rows[:10], tmp_path / "few.parquet")
    (tmp_path / "t.csv").write_text("who,x\n1,2\n")
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(b"who,x\n1,2\n"))
    shared = {}
    for name in ("t.parquet", "few.parquet", "t.csv", "z.csv.gz"):
        with DuckDB() as engine:
            (opened,) = engine.open_together([str(tmp_path / name)])
            split = engine.split_source(opened, grouped=True)
            shared[name] = QUESTION_COLUMN in split.columns
    assert shared == {"t.parquet": False, "few.parquet": True, "t.csv": True, "z.csv.gz": False}
