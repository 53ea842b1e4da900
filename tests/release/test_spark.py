"""Spark beside DuckDB: the same expressions, the same answers before noise."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import csv_oracle
import odd_names
import part_oracle
import postgres
import related_oracle
import where_oracle
import whosin as wi
from amounts import cases
from engine_rows import (
    ALL,
    DOMAINS,
    QUERIES,
    ROWS,
    SELECTS,
    exact,
    fill_postgres,
    people_table,
    preflight_looks,
    sqlite_file,
)
from refusals import refused
from spark_session import QUICK_SETTINGS, require_spark, shared_spark
from spreadsheets import write_workbook
from where_checks import check_where
from whosin.errors import InvalidInput, ScanFailed, SourceChanged, UnknownName
from whosin.plain_files import lock_folder, remove_unlocked_folders
from whosin.release import (
    Count,
    DuckDB,
    FurtherTable,
    LookupTable,
    Marginals,
    Median,
    Quantile,
    Query,
    Range,
    Rows,
    Session,
    Spark,
    Sum,
    Synthetic,
    Table,
    Values,
)
from whosin.release.column_expressions import GroupGrid
from whosin.release.conditions import parse_condition
from whosin.release.cost import Share
from whosin.release.engines import spark as engines_spark
from whosin.release.engines.base import RedrawnFile
from whosin.release.engines.spark import QUOTING_LOGGERS
from whosin.release.engines.spark_workers import can_tally
from whosin.release.sql import parse_queries

pytestmark = [
    # PySpark leaves the closing of its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

CONDITIONS = [
    "age >= 65", "age < 65 or ward = 'w1'", "not (age < 65)", "age = 65.5", "age <> 65.5",
    "age is null", "age is not null and not (age > 1e200)", "100 / age > 2",
    "100 / (level - 3) >= 5", "age / 0 > 1 or level = 3", "age * 1e300 > 1e305", "age - age = 0",
    "-age > 3", "abs(cost) > 50", "cost = 10.01", "cost > 10.01", "cost + 0.1 > 10.11",
    "cost between -3 and 25.5", "written > 50", "written = 12", "written = '12'", "written + 1 > 5",
    "cast(written as int) > 40", "cast(written as double) >= 7", "cast(age as int) = 40",
    "cast(age as bigint) > 0", "cast(cost as int) = 7", "cast(written as boolean)",
    "cast(ill as int) = 1", "cast(level as varchar) = '3'", "cast(written as date) is null",
    "ward in ('w1', 'w2', '')", "ward not in ('w1', 'w2')", "ward = ''", "ward is null",
    "ward > 'w2'", "ward >= 'n' and ward < 'w10'", "ward like 'w1%'", "ward like '_1'",
    "ward like 'N%'", "ward ilike 'N%'", "ward like '%ï%'", "lower(ward) = 'w1'",
    "upper(ward) = 'NÄIVE'", "length(ward) = 5", "trim(written) = '12'", "ill", "not ill",
    "ill is true", "ill is not true", "ill = false", "level in (1, 2, 3)", "level = 3.0",
    "level / 2 = 1.5", "day > '2020-06-01'", "day = '2020-02-29'",
    "day between '2020-03-01' and '2020-03-31'", "year(day) = 2021",
    "month(seen) = 4 and day(seen) <= 3", "extract(year from seen) = 2021",
    "isoweek(day) in (1, 53)", "quarter(seen) = 2 and decade(day) = 2020",
    "decade(age) = 60 or decade(cost) = -20", "seen >= '2021-03-02 00:00:00'",
    "seen < '2021-03-02T06:15'", "seen > day",
    "ward = 'w1' and (age > 30 or cost < 0) and level is not null",
]  # fmt: skip


@pytest.fixture(scope="module")
def spark() -> Spark:
    return shared_spark()


@pytest.fixture(scope="module")
def embedded() -> Iterator[DuckDB]:
    with DuckDB() as engine:
        yield engine


@pytest.fixture(scope="module", params=[4_000, pytest.param(4_000_000, marks=pytest.mark.soak)])
def rows_file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS.format(rows=request.param)}) TO '{path}'")
    return path


def test_answers_before_noise_are_identical(
    spark: Spark, embedded: DuckDB, rows_file: str, request: pytest.FixtureRequest
) -> None:
    ours, theirs = (people_table(rows_file, engine) for engine in (embedded, spark))
    every = "4000000" in request.node.name
    asked, selects = (ALL, SELECTS) if every else (QUERIES[::3], SELECTS[::5])
    asked = [*asked, *(query for sql in selects for query in parse_queries(sql, ours))]
    answers = [(query, exact(query, ours), exact(query, theirs)) for query in asked]
    assert not [query for query, one, other in answers if one != other]
    assert not [query for query, one, _ in answers if one in ([], [[0]])]


def test_the_look_before_a_debit_sees_what_it_sees_on_duckdb(
    spark: Spark, embedded: DuckDB, rows_file: str
) -> None:
    seen = preflight_looks(rows_file, spark)
    assert seen == preflight_looks(rows_file, embedded)
    assert seen.stops and seen.columns[0].empty == ("W0",)


def test_tables_in_databases_give_the_answers_of_a_file(
    spark: Spark, embedded: DuckDB, tmp_path: Path
) -> None:
    postgres.require()
    path = str(tmp_path / "rows.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS.format(rows=500)}) TO '{path}'")
    file = people_table(path, embedded)
    with postgres.server() as server:
        fill_postgres(server.url, path)
        (tmp_path / "pgpass").write_text(f"*:*:*:whosin:{postgres.PASSWORD}\n")
        (tmp_path / "pgpass").chmod(0o600)
        url = f"postgresql://whosin@/postgres?host={server.folder}&passfile={tmp_path}/pgpass"
        for source in (f"{url}::rows", f"{sqlite_file(path)}::rows"):
            query = Sum(column="written", by="ill", where="seen >= '2021-03-20'")
            assert exact(query, people_table(source, spark)) == exact(query, file)
        server.stop()
        with pytest.raises(SourceChanged):
            spark.run(Table(f"{url}::rows", "person", engine=spark).data.count().as_table())
        server.start()


BY_ROW: list[Query] = [
    Sum(column="written", by="ill"),
    Rows(by=("seen", "isoweek(day)", "decade(age)")),
    Median(column="age", points=50),
]


def test_each_row_is_one_person_on_both(spark: Spark, embedded: DuckDB, rows_file: str) -> None:
    ours, theirs = (Table(rows_file, "row", DOMAINS, engine=engine) for engine in (embedded, spark))
    for query in BY_ROW:
        found = exact(query, ours)
        assert found == exact(query, theirs) and found not in ([], [[0]])
    rows = embedded.run(ours.data.count().name("n").as_table()).column("n")[0].as_py()
    assert exact(Count(), theirs) == [[rows]]


@pytest.mark.parametrize("tallied", [2**24, 0])
def test_tables_are_the_same_whoever_counts(
    spark: Spark, embedded: DuckDB, rows_file: str, tallied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark's workers, or Spark itself; of people with several rows as many of these count."""
    assert spark.most_tallied == 2**24
    monkeypatch.setitem(vars(spark), "most_tallied", tallied)
    query = Marginals(columns=["ward", "ill", "age"], order=2, where="level > 3")
    for unit, rows in (("row", 1), ("person", 2)):
        ours, theirs = (
            exact(query, Table(rows_file, unit, DOMAINS, max_rows_per_group=rows, engine=engine))
            for engine in (embedded, spark)
        )
        totals = {int(np.sum(each)) for each in (*ours, *theirs)}
        assert len(totals) == 1 and totals != {0}
        assert ours == theirs or unit == "person"


def test_workers_without_arrow_are_found_before_anything_is_spent(spark: Spark) -> None:
    class Without:
        def range(self, rows: int) -> None:
            raise RuntimeError("no module named pyarrow")

    assert not can_tally(Without())
    other = Spark(session=spark.session)
    assert other.most_tallied == spark.most_tallied


def test_conditions_choose_the_same_rows(
    spark: Spark, embedded: DuckDB, rows_file: str, request: pytest.FixtureRequest
) -> None:
    found, texts = [], CONDITIONS[:: 1 if "4000000" in request.node.name else 2]
    for engine in (embedded, spark):
        data = engine.open(rows_file)
        tests = {f"c{place}": parse_condition(text, data) for place, text in enumerate(texts)}
        chosen = data.filter(data["id"] < 20_000).select("id", **tests)
        result = engine.run(chosen).sort_by("id")
        found.append([result.column(name).to_numpy(zero_copy_only=False) for name in tests])
    different = [
        (text, int(ours.sum()), int(theirs.sum()))
        for text, ours, theirs in zip(texts, *found, strict=True)
        if (ours != theirs).any()
    ]
    assert not different


@pytest.mark.parametrize("people", [6_000, pytest.param(500_000, marks=pytest.mark.soak)])
def test_choices_follow_the_same_law(
    spark: Spark, embedded: DuckDB, people: int, tmp_path: Path
) -> None:
    """Everyone has the same six rows, so chosen cells and rows are draws without replacement."""
    path = str(tmp_path / "excess.parquet")
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT p.range AS person, 'w' || (r.range // 2) AS ward, "
            f"r.range::DOUBLE AS age FROM range({people}) p, range(6) r) TO '{path}'"
        )
    domains = {"ward": ["w0", "w1", "w2"], "age": Range(0, 5, 1, edges=(0, 1, 2, 3, 4, 5))}
    for engine in (embedded, spark):
        table = Table(path, "person", domains, max_rows_per_group=1, max_groups=2, engine=engine)
        [wards] = exact(Count(by="ward"), table)
        assert sum(wards) == 2 * people and wards[3] == 0
        # Who is left out of a ward is uniform: two of three cells for each person.
        left_out = [people - count for count in wards[:3]]
        assert stats.chisquare(left_out).pvalue > 1e-9
        # One row of six each: the places are uniform.
        counts = [dict(each)["rows"] for each in exact(Quantile(column="age", points=6), table)]
        assert len(counts) == 6
        assert sum(counts) == people and stats.chisquare(counts).pvalue > 1e-9
        # In a cell, one of two rows: the sum over wards of the parity of the chosen rows.
        [sums] = exact(Sum(column="age", by="ward", max_groups=3), table)
        for ward, total in enumerate(sums[:3]):
            odd = total - 2 * ward * people
            assert stats.binomtest(odd, people).pvalue > 1e-9
    # The test can fail: shares of 40:30:30 would be seen.
    skewed = [int(people * share) for share in (0.4, 0.3, 0.3)]
    assert stats.chisquare(skewed).pvalue < 1e-9


@cases(40, 400)
def test_conditions_mean_what_the_documentation_says(spark: Spark, count: int) -> None:
    check_where(spark, where_oracle.Drawn(101), count)


def test_csv_reads_the_same(spark: Spark, embedded: DuckDB, tmp_path: Path) -> None:
    path = tmp_path / "it's [1].csv"
    long = b'"' * 100_000 + b"\n" + b"9" * 1_100_000 + b"\n"
    path.write_bytes(
        b"\xef\xbb\xbfid,na'me,v\r\n1,a,3\r\n" + csv_oracle.EVIL + b"\n" + long
        + csv_oracle.hostile(5, 800) + b"13,last,\\1"
    )  # fmt: skip
    expected = sorted(csv_oracle.rows(path.read_bytes()), key=repr)
    for engine in (embedded, spark):
        data = engine.open(path)
        assert data.columns == ("id", "na'me", "v")
        found = [tuple(row.values()) for row in engine.run(data).to_pylist()]
        assert sorted(found, key=repr) == expected
    assert ("evil", '"A', "1") in expected and ("13", "last", "\\1") in expected


def test_sources_of_spark(spark: Spark, tmp_path: Path) -> None:
    frame = pa.table({"person": [1, 2, 2], "ward": ["a", "b", None]})
    for ward in ("A", "07"):
        place = tmp_path / "parts" / f"site={ward}"
        place.mkdir(parents=True)
        pq.write_table(frame, place / "a [1],{x}.parquet")
    data = Table(tmp_path / "parts", "person", engine=spark)
    assert data.columns == ("person", "ward", "site") and data.type("site").is_string()
    assert exact(Count(), data) == [[2]]
    spark.session.createDataFrame(frame).createOrReplaceTempView("people")
    for source in ("::people", frame, frame.to_pandas()):
        assert exact(Count(), Table(source, "person", name="people", engine=spark)) == [[2]]
    sheet = write_workbook(tmp_path / "x.xlsx", {"S": [["person", "ward"], [1, "a"], ["b", "b"]]})
    assert exact(Count(), Table(f"{sheet}::S", "person", name="people", engine=spark)) == [[2]]
    with pytest.raises(UnknownName):
        spark.open("::nobody")
    with pytest.raises(FileNotFoundError):
        spark.open(str(tmp_path / "none.parquet"))
    with pytest.raises(InvalidInput):
        spark.open(str(tmp_path / "table.arrow"))
    pq.write_table(pa.table({"person": ["x"], "ward": ["a"]}), tmp_path / "parts" / "b.parquet")
    with refused("table"):
        spark.open(tmp_path / "parts")
    with refused("table"):
        spark.open(data.data.filter(data.data["person"] > 1))


def test_workers_write_the_synthetic_table(spark: Spark, tmp_path: Path) -> None:
    people = 8_000
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT r.range // 2 AS person, CASE WHEN r.range % 8 < 2 THEN 'a' ELSE 'b' END "
            f"AS ward FROM range({2 * people}) r) TO '{source}'"
        )
    table = Table(source, "person", {"ward": ["a", "b"]}, max_rows_per_group=1, engine=spark)
    plan = wi.calibrate(wi.Gamma(2), wi.families.FixedSize("0.1", "0.5"))
    query = Synthetic(columns=["ward"], path=str(target))
    answer = Session(table, plan, tmp_path / "one.db", share=1).ask(query)
    [[name, rows, digest]] = answer.rows
    found = pq.read_table(target)
    assert (name, rows, len(digest)) == ("out.parquet", people, 64)
    assert found.num_rows == people
    counts = {row["values"]: row["counts"] for row in found["ward"].value_counts().to_pylist()}
    kept = float(query.estimate_cost(table, _share(plan)).details.kept)
    for ward, true in (("a", people // 4), ("b", people * 3 // 4), ("other", 0)):
        expected = true * kept + (people - true) * (1 - kept) / 2
        assert abs(counts[ward] - expected) < 6 * people**0.5
    with pytest.raises(InvalidInput):  # nothing is replaced, and nothing is paid for it
        Session(table, plan, tmp_path / "two.db", share=1).ask(query)
    with wi.Ledger(tmp_path / "two.db") as ledger:
        assert ledger.budget_state("in").debits == 0
    assert {path.name for path in tmp_path.glob("*parquet*")} == {"in.parquet", "out.parquet"}


def test_rows_that_were_drawn_here_are_written_as_a_draft(spark: Spark, tmp_path: Path) -> None:
    cells = GroupGrid(("ward",), (Values(("a", "b")),))
    batches = [cells.labelled([np.array(each)]) for each in ([0, 2, 1], [1])]
    target = str(tmp_path / "out.parquet")
    written = spark.write_batches(batches, batches[0].schema, target)
    assert written.rows == 4 and not Path(target).exists()
    assert spark.publish(target, written.digest)
    assert sorted(pq.read_table(target)["ward"].to_pylist()) == ["a", "b", "b", "other"]


def _modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(each.lstat().st_mode) & 0o077 for each in (folder, *folder.rglob("*"))}


def test_a_draft_is_for_its_owner_only_and_replaces_nothing(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody else can reach it while Spark writes it, either, whatever Spark's own files say."""
    cells = GroupGrid(("ward",), (Values(("a", "b")),))
    batch = cells.labelled([np.array([0, 2, 1])])
    target, look = tmp_path / "out.parquet", Spark._digest
    seen: list[int] = []

    def looked(self: Spark, folder: str) -> Any:
        seen.extend(stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir())
        return look(self, folder)

    before = os.umask(0o022)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Spark, "_digest", looked)
            written = spark.write_batches([batch], batch.schema, str(target), owner="f" * 16)
    finally:
        os.umask(before)
    assert seen == [0o700]
    (draft,) = tmp_path.iterdir()
    assert _modes(draft) == {0}
    remove_unlocked_folders([draft])  # this process holds it
    assert draft.exists()

    target.mkdir()
    (target / "theirs").write_text("theirs")
    assert not spark.publish(str(target), written.digest)
    assert (target / "theirs").read_text() == "theirs" and draft.exists()
    lock = lock_folder(draft)
    assert lock is not None, "the ledger knows it: this process need not hold it"
    os.close(lock)
    (target / "theirs").unlink()
    target.rmdir()
    target.symlink_to(tmp_path / "nowhere")
    assert not spark.publish(str(target), written.digest)
    with pytest.raises(InvalidInput):
        spark.require_place(str(target))
    target.unlink()
    target.write_text("theirs")
    assert not spark.publish(str(target), written.digest)
    with pytest.raises(InvalidInput):
        spark.require_place(str(target))
    target.unlink()

    assert spark.publish(str(target), written.digest)
    assert list(tmp_path.iterdir()) == [target] and _modes(target) == {0}
    assert spark.publish(str(target), written.digest)  # it is there
    assert not spark.publish(str(target), "0" * 64)  # it is another one
    spark.require_place(str(target))


def test_a_broken_write_leaves_nothing(spark: Spark, tmp_path: Path) -> None:
    data = spark.open(pa.table({"code": list(range(100))}))

    def draw(codes: Any) -> Any:
        raise ValueError("private")

    def batch(codes: Any) -> Any:
        return pa.RecordBatch.from_arrays([pa.array(codes)], names=["code"])

    with pytest.raises(Exception, match="private"):
        spark.write_rows(RedrawnFile(data, 100, draw, batch), str(tmp_path / "x.parquet"))
    assert not list(tmp_path.iterdir())


def test_failures_show_nothing_of_the_rows(
    spark: Spark, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "broken.parquet"
    secrets = [f"secret-{place}" for place in range(20_000)]
    frame = pa.table({"person": secrets})
    pq.write_table(frame, path, compression="none", use_dictionary=False)
    table = Table(path, "person", engine=spark)
    content = bytearray(path.read_bytes())
    content[100:5000] = b"\xff" * 4900
    path.write_bytes(content)
    plan = wi.calibrate(wi.Gamma(2), wi.families.Independent("0.05", "0.5"))
    with pytest.raises(ScanFailed) as raised:
        Session(table, plan, tmp_path / "ledger.db", share=1).ask(Count())
    shown = "".join(capfd.readouterr()) + str(raised.value) + repr(raised.value.__cause__)
    assert "secret" not in shown and "parquet" not in shown


def test_pyspark_itself_writes_nothing_of_the_rows(
    spark: Spark, caplog: pytest.LogCaptureFixture
) -> None:
    """Its own loggers quote the value that a failed expression had."""
    from pyspark.logger import PySparkLogger
    from pyspark.sql import functions

    frame = spark.session.createDataFrame([("secret",)], ["x"])
    loggers = [PySparkLogger.getLogger(name) for name in QUOTING_LOGGERS]

    def seen() -> str:
        for logger in loggers:
            logger.addHandler(caplog.handler)
        try:
            with pytest.raises(Exception, match="secret"):
                frame.select(functions.col("x").cast("int")).collect()
        finally:
            for logger in loggers:
                logger.removeHandler(caplog.handler)
        return caplog.text

    assert "secret" not in seen()
    for logger in loggers:
        logger.disabled = False
    try:
        assert "secret" in seen()  # unless they are silenced
    finally:
        for logger in loggers:
            logger.disabled = True


def test_progress_and_interruption(spark: Spark) -> None:
    spark.session.range(0, 3_000_000_000, numPartitions=60).createOrReplaceTempView("long")
    data = spark.open("::long")
    slow = data.filter((data["id"] * 3 % 7).cast("string").length() > 3)
    told: list[float] = []
    # SIGINT to the process as soon as some tasks are done.
    timer = threading.Thread(target=_interrupt_after, args=(told,), daemon=True)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        spark.run(slow.aggregate(n=slow.count()), told.append)
    timer.join()
    assert told == sorted(told) and told[-1] < 1
    deadline = time.monotonic() + 300
    while spark.session.sparkContext.statusTracker().getActiveJobsIds():
        assert time.monotonic() < deadline, "the job goes on"
        time.sleep(0.1)


def _interrupt_after(told: list[float]) -> None:
    deadline = time.monotonic() + 300
    while len(told) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


def _share(plan: wi.Plan) -> Share:
    return Share(plan, Fraction(plan.epsilon))


FOREIGN = {
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY",
    "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.parser.escapedStringLiterals": "true",
    "spark.sql.legacy.charVarcharAsString": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
}


@pytest.fixture
def foreign(spark: Spark) -> Iterator[Any]:
    """A program's own session with settings that change answers, some of them since Spark was
    started, as by spark-defaults.conf."""
    assert spark._own is not None
    started = spark.session.sparkContext._jsc.sc().conf()
    early = list(FOREIGN)[::2]
    for key in early:
        started.set(key, FOREIGN[key])
    try:
        session = spark._own.session.newSession()
    finally:
        for key in early:
            started.remove(key)
    for key, value in FOREIGN.items():
        session.conf.set(key, value)
    yield session
    assert {key: session.conf.get(key) for key in FOREIGN} == FOREIGN  # it is as it was


def test_settings_of_a_program_change_no_answer(
    foreign: Any, embedded: DuckDB, rows_file: str, tmp_path: Path
) -> None:
    old = tmp_path / "old.parquet"  # days before 1582 differ between two calendars
    days = ["0911-03-01", "1500-02-28", "1582-10-04", "2020-02-29", None]
    pq.write_table(
        pa.table(
            {
                "who": range(5),
                "day": pa.array(days).cast(pa.date32()),
                "at": pa.array(days).cast(pa.timestamp("us")),
                "text": ["a\\b", "a\\\\b", "${spark.app.name}", "it's", "\t"],
            }
        ),
        old,
    )
    asked = {
        rows_file: [text for text in CONDITIONS if "ward" in text or "seen" in text][::2],
        str(old): [
            *("day = '0911-03-01'", "at < '1500-03-01'", "year(at) = 1582 and day(day) = 4"),
            *("text = 'a\\b'", "text = 'a\\\\b'", "text = '${spark.app.name}'", "text = 'it''s'"),
        ],
    }
    engine = Spark(session=foreign)
    for source, conditions in asked.items():
        counts = []
        for each in (engine, embedded):
            data = each.open(source)
            marks = {
                f"n{at}": parse_condition(text, data).sum() for at, text in enumerate(conditions)
            }
            counts.append(each.run(data.aggregate(**marks)).to_pylist()[0])
        assert counts[0] == counts[1] and any(counts[0].values()), source
    query = Sum(column="written", by=("ward", "day"))
    ours, theirs = (exact(query, people_table(rows_file, each)) for each in (engine, embedded))
    assert ours == theirs
    engine.close()
    assert foreign.range(3).count() == 3


def test_a_damaged_or_missing_part_is_never_left_out(foreign: Any, tmp_path: Path) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    for name in ("a", "b"):
        pq.write_table(pa.table({"who": range(1_000), "name": [name] * 1_000}), tmp_path / name)
        (tmp_path / name).rename(tmp_path / f"{name}.parquet")
    with Spark(session=foreign) as engine:
        data = engine.open(str(tmp_path))
        total = data.aggregate(n=data["who"].sum())
        assert engine.run(total).to_pylist() == [{"n": 999_000}]
        whole = (tmp_path / "b.parquet").read_bytes()
        (tmp_path / "b.parquet").write_bytes(whole[:4] + bytes(60) + whole[64:])
        with pytest.raises((Py4JError, PySparkException)):
            engine.run(total)


def test_texts_are_compared_by_bytes_whatever_their_collation(foreign: Any) -> None:
    rows = "SELECT * FROM VALUES (1, 'A'), (2, 'a'), (3, 'b') AS t(who, ward)"
    collated = f"SELECT who, collate(ward, 'UTF8_LCASE') AS ward FROM ({rows})"
    foreign.sql(collated).createOrReplaceTempView("collated")
    with Spark(session=foreign) as engine:
        table = Table("::collated", "who", {"ward": ["A", "a", "B"]}, engine=engine)
        assert exact(Count(by="ward"), table)[0] == [1, 1, 0, 1]
        assert exact(Count(where="ward = 'A'"), table)[0] == [1]
        lookup = LookupTable("l", pa.table({"ward": ["A", "a"], "x": ["1", "2"]}), "ward")
        table = Table("::collated", "who", {"x": ["1", "2"]}, engine=engine, tables=[lookup])
        assert exact(Count(by="x"), table)[0] == [1, 1, 1]


def test_a_programs_own_spark_is_neither_taken_nor_stopped(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark._own is not None
    with Spark("local[2]", settings=QUICK_SETTINGS) as second:  # ours is shared
        assert second.session.sparkContext is spark.session.sparkContext
    assert spark.session.range(2).count() == 2
    with pytest.raises(InvalidInput) as caught:
        Spark("local[1]")
    assert caught.value.field == "settings"
    monkeypatch.setattr(engines_spark, "_OUR_SESSIONS", [])
    with pytest.raises(InvalidInput) as caught:
        Spark("local[2]", settings=QUICK_SETTINGS)
    assert caught.value.field == "session"
    with Spark(session=spark._own.session) as third:
        assert third.session is not spark._own.session
    assert spark.session.range(2).count() == 2


@pytest.mark.parametrize(
    "setting",
    [
        {"spark.sql.ansi.enabled": "false"},
        {"spark.sql.legacy.charVarcharAsString": "true"},
        {"spark.files.ignoreCorruptFiles": "true"},
    ],
)
def test_settings_that_change_answers_are_refused(setting: dict[str, str]) -> None:
    require_spark()
    with pytest.raises(InvalidInput) as caught:
        Spark(settings=setting)
    assert caught.value.field == "settings"


TWO_SESSIONS = """
from pathlib import Path
from tempfile import gettempdir

from whosin.errors import InvalidInput
from whosin.release import Spark
from whosin.plain_files import remove_abandoned

for _ in range(2):
    with Spark("local[1]", settings={"spark.driver.memory": "1g"}) as engine:
        remove_abandoned(Path(gettempdir()))  # as any other process does when it starts
        print(engine.session.sparkContext.parallelize([1, 2]).count())
try:
    Spark("local[1]", spill=".")
except InvalidInput as error:
    print(error)
"""


@pytest.mark.soak
def test_a_second_session_keeps_its_folder(tmp_path):
    """Spark's Java process spills where its first session did; nobody may take that away."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    python, quiet = [sys.executable, "-c", TWO_SESSIONS], {"capture_output": True, "text": True}
    done = subprocess.run(python, env=environment, check=True, timeout=900, **quiet)
    *counts, refusal = done.stdout.split("\n")[:3]
    assert counts == ["2", "2"] and "first Spark session" in refusal
    assert not list(tmp_path.glob("whosin-spill-*"))


LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000")
"""127.0.0.1, the same in IPv6, and ::1, as Linux writes them."""


def addresses_of(process: Path) -> list[tuple[str, str]]:
    """The (local, remote) addresses of a process' sockets, without ports."""
    own = set()
    for each in (process / "fd").iterdir():
        with contextlib.suppress(OSError):
            own.add(os.readlink(each))
    lines = []
    for name in ("tcp", "tcp6"):
        lines += (process / "net" / name).read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    ends = [each[1:3] for each in fields if f"socket:[{each[9]}]" in own]
    return [(one.partition(":")[0], two.partition(":")[0]) for one, two in ends]


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="Linux lists sockets there")
def test_spark_listens_and_talks_on_this_machine_only(spark: Spark, tmp_path: Path) -> None:
    path = str(tmp_path / "rows.parquet")
    pq.write_table(pa.table({"who": [1, 2], "x": [1, 2]}), path)
    table = Table(path, "who", {"x": (0, 5)}, engine=spark)
    assert exact(Count(), table) == [[2]]
    running = int(spark.session.sparkContext._jvm.java.lang.ProcessHandle.current().pid())
    found = addresses_of(Path(f"/proc/{running}"))
    assert found
    for local, remote in found:
        assert local in LOOPBACK and (remote in LOOPBACK or not remote.strip("0"))


def test_features_and_joins_are_those_of_the_definitions_on_spark_too(
    spark: Spark, embedded: DuckDB
) -> None:
    rng = np.random.default_rng(23)
    for table in (None, "visits"):
        related_oracle.check(rng, table, spark)
    people = pa.table({"who": [*range(9), 3], "sex": ["f", "m"] * 5})
    visits = related_oracle.visits(rng, 60, 9)
    answers = []
    for engine in (spark, embedded):
        further = FurtherTable("v", visits, max_rows=100)
        made = Table(people, "who", name="p", engine=engine, tables=[further])
        joined = engine.run(made.about(["x", "ward", "sex"]).data).to_pylist()
        answers.append(sorted(map(str, joined)))
    assert answers[0] == answers[1]


def test_parts_on_spark_are_those_of_the_definition(spark: Spark) -> None:
    part_oracle.check_parts(3, spark, named=part_oracle.REGIONS[1:2])


def test_no_column_is_taken_for_one_of_ours(spark: Spark) -> None:
    names = ["lot", "RANK", "Joined_0", "joined_0_", "value"]
    odd_names.check_names(spark, names, 2)
    odd_names.check_word(spark, "Owner")


def test_a_table_that_spark_reads_by_a_connector_of_its_own(
    spark: Spark, embedded: DuckDB, tmp_path: Path
) -> None:
    """By JDBC, as a table of the catalogue; Derby, which comes with Spark, stands for a server."""
    path = str(tmp_path / "rows.parquet")
    columns = "person, ward, cost, level, day, id"
    with duckdb.connect() as connection:
        rows = f"SELECT {columns} FROM ({ROWS.format(rows=500)})"
        connection.execute(f"COPY ({rows}) TO '{path}'")
    java = spark.session.sparkContext._jvm.java.lang.System
    java.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:{tmp_path / 'derby'};create=true"
    frame = spark.session.read.parquet(path)
    frame.write.format("jdbc").option("url", url).option("dbtable", "visits").save()
    options = f"OPTIONS (url '{url}', dbtable 'visits')"
    spark.session.sql(f"CREATE TEMPORARY VIEW by_jdbc USING org.apache.spark.sql.jdbc {options}")
    domains = {name: each for name, each in DOMAINS.items() if name in columns.split(", ")}
    query = Sum(column="cost", by=("level", "ward"), where="day >= '2020-06-01'")
    places = ((path, embedded), ("::by_jdbc", spark))
    ours, theirs = (exact(query, people_table(path, engine, domains)) for path, engine in places)
    assert ours == theirs
