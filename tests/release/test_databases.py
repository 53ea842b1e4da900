"""Tables in databases: the same answers as from files, whatever the rows hold, and no secrets."""

from __future__ import annotations

import contextlib
import itertools
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import psycopg
import pyarrow as pa
import pytest

import part_oracle
import postgres
import related_oracle
import whosin as wi
from amounts import cases
from engine_rows import (
    ALL,
    QUERIES,
    REFUSED_SELECTS,
    ROWS,
    SELECTS,
    exact,
    fill_postgres,
    people_table,
    preflight_looks,
    sqlite_file,
)
from refusals import refused
from whosin.app.cli.main import main
from whosin.errors import (
    BudgetRefused,
    InvalidInput,
    ScanFailed,
    SourceChanged,
    SourceUnreachable,
    UnknownName,
)
from whosin.release import (
    Count,
    DuckDB,
    Feature,
    FurtherTable,
    LookupTable,
    Mean,
    Session,
    Sum,
    Table,
)
from whosin.release.answer import Release
from whosin.release.contribution_bounds import eligible_rows
from whosin.release.engines.base import is_database
from whosin.release.engines.databases import needed_columns, read_address, row_conditions
from whosin.release.scenario import load_scenario
from whosin.release.sql import parse_queries

PLAN = wi.calibrate(wi.Epsilon(1))


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("rows") / "rows.parquet")
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({ROWS.format(rows=2_000)}) TO '{path}'")
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    postgres.require()
    with pytest.MonkeyPatch.context() as patch, postgres.server() as running:
        patch.setenv("PGPASSWORD", postgres.PASSWORD)
        yield running


@pytest.fixture(scope="module")
def place(server: postgres.Server) -> str:
    """The server's database, without a password."""
    return f"postgresql://whosin@/postgres?host={server.folder}"


@pytest.fixture
def run(server: postgres.Server) -> Iterator[Any]:
    """Runs statements."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        yield connection.execute


@pytest.fixture(scope="module")
def on_server(server: postgres.Server, place: str, rows_file: str) -> str:
    """The rows in a table of the server."""
    fill_postgres(server.url, rows_file)
    return f"{place}::rows"


@pytest.fixture(scope="module")
def in_file(rows_file: str) -> str:
    """The rows in an SQLite file."""
    return f"{sqlite_file(rows_file)}::rows"


def test_the_look_before_a_debit_sees_what_it_sees_in_a_file(
    rows_file: str, on_server: str, in_file: str
) -> None:
    with DuckDB(threads=2) as engine:
        seen = preflight_looks(rows_file, engine)
        for source in (on_server, in_file):
            assert preflight_looks(source, engine) == seen
    assert seen.stops and seen.columns[0].empty == ("W0",) and seen.bounds
    assert seen.empty_conditions == ("ward = 'nowhere'",)


MISSPELT = """
[table]
source = "{source}"
privacy_unit = "who"
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[domains]
sex = {sexes}
[ledger]
url = "{ledger}"
[[queries]]
kind = "count"
by = ["sex"]
"""


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.soak)])
def test_a_misspelt_category_in_a_database_stops_the_release(
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [(f"p{index}", ("Male", "Female")[index % 2]) for index in range(20)]
    if kind == "sqlite":
        with contextlib.closing(sqlite3.connect(tmp_path / "h.sqlite")) as connection:
            connection.execute("CREATE TABLE visits (who TEXT, sex TEXT)")
            connection.executemany("INSERT INTO visits VALUES (?, ?)", rows)
            connection.commit()
        source = f"{tmp_path / 'h.sqlite'}::visits"
    else:
        run = request.getfixturevalue("run")
        run("CREATE TABLE visits (who text, sex text)")
        for row in rows:
            run("INSERT INTO visits VALUES (%s, %s)", row)
        source = f"{request.getfixturevalue('place')}::visits"
    path, ledger = tmp_path / "s.toml", tmp_path / "ledger.db"
    for sexes, expected in (('["male", "Female"]', 1), ('["Male", "Female"]', 0)):
        path.write_text(MISSPELT.format(source=source, sexes=sexes, ledger=ledger))
        code = main(["release", str(path), "--json"])
        out, err = capsys.readouterr()
        assert code == expected, err
        assert ledger.exists() is (expected == 0)
        assert ("'Male' (10)" in err) is (expected == 1) and bool(out) is (expected == 0)
    if kind == "postgresql":
        run("DROP TABLE visits")


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.soak)])
def test_answers_before_noise_and_sql_are_those_of_a_file(
    step: int, rows_file: str, on_server: str, in_file: str
) -> None:
    with DuckDB(threads=2) as engine:
        places = (rows_file, on_server, in_file)
        file, *others = (people_table(each, engine) for each in places)
        asked, *same = (
            [query for sql in SELECTS[::step] for query in parse_queries(sql, table)]
            for table in (file, *others)
        )
        assert same == [asked, asked]
        for query in (*ALL[::step], *asked):
            found = exact(query, file)
            assert found not in ([], [[0]]), query
            for other in others:
                assert exact(query, other) == found, query
        for sql in REFUSED_SELECTS[::step]:
            refusals = {_refusal(sql, table) for table in (file, *others)}
            assert len(refusals) == 1 and "" not in refusals, sql


def _refusal(sql: str, table: Table) -> str:
    try:
        for query in parse_queries(sql, table):
            exact(query, table)
    except InvalidInput as refused:
        return str(refused)
    return ""


def test_any_driver_gives_the_same_answers(rows_file: str, tmp_path: Path) -> None:
    """DuckDB's own driver stands for any."""
    pytest.importorskip("adbc_driver_duckdb")
    with duckdb.connect(str(tmp_path / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM '{rows_file}'")
    with DuckDB() as engine:
        places = (rows_file, f"adbc:duckdb:{tmp_path / 'rows.db'}::rows")
        file, other = (people_table(each, engine) for each in places)
        for query in QUERIES[1::4]:
            assert exact(query, other) == exact(query, file), query


HARD = """
CREATE TYPE mood AS ENUM ('well', 'ill');
CREATE DOMAIN positive AS numeric(6, 1) CHECK (value > 0 OR value = 'NaN');
CREATE TABLE hard (
    who int, exact numeric, short numeric(50, 2), money numeric(8, 2), size positive, state mood,
    day date, seen timestamp, zoned timestamptz, id uuid, data jsonb, padded char(4), real4 float4,
    bytes bytea, list int[], span interval, clock time, "Sp.ace ""x" text);
INSERT INTO hard (who, exact, short, money, size, day, seen, zoned) VALUES
    (1, 'NaN', 'NaN', 'NaN', 'NaN', 'infinity', 'infinity', 'infinity'),
    (2, 'Infinity', 1, 1, 1, '-infinity', '-infinity', '-infinity'),
    (3, '1e1000', 1e47, 999999.99, 2.5, '5874897-12-31', '294276-12-31', '294276-12-31'),
    (4, '-1e-1000', -1, -0.01, 3, '4713-01-01 BC', '4713-01-01 BC', '4713-01-02 BC'),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO hard (who, state, id, data, padded, list, span, clock, zoned, "Sp.ace ""x") VALUES
    (5, 'ill', gen_random_uuid(), '{"a": 1}', 'ab', '{1}', '1 month', '12:00',
     '2024-01-01 00:30+02', 'x');
"""


def test_no_value_of_a_server_can_fail(place: str, run: Any) -> None:
    run(HARD)
    table = Table(f"{place}::public.hard", "who", engine=DuckDB())
    data = table.data
    usable = [name for name in table.columns if name not in ("list", "span", "clock")]
    counts = data.aggregate(
        **{f"n_{place}": data[name].count() for place, name in enumerate(usable)}
    )
    found = dict(zip(usable, table.engine.run(counts).to_pylist()[0].values(), strict=True))
    assert found["who"] == 5 and found["exact"] == 4 and found["money"] == found["size"] == 3
    assert found["day"] == 2 and found["seen"] == found["state"] == found['Sp.ace "x'] == 1
    assert (
        str(table.type("money")).startswith("decimal(8, 2)") and table.type("exact").is_floating()
    )
    kept = data.filter(data["who"] == 5).select("zoned", "state", "padded", "data")
    assert table.engine.run(kept.mutate(zoned=kept["zoned"].cast("string"))).to_pylist() == [
        {"zoned": "2023-12-31 22:30:00", "state": "ill", "padded": "ab", "data": '{"a": 1}'}
    ]
    for name in ("list", "span", "clock"):
        with pytest.raises(InvalidInput):
            Table(f"{place}::hard", name)


def test_no_value_of_a_file_can_fail(tmp_path: Path) -> None:
    """Any row of SQLite may hold any type; and its driver takes types from the first rows."""
    path = tmp_path / "loose.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE loose (who INTEGER, x REAL, t TEXT, b BOOLEAN, n, d DATE)")
        rows: list[tuple[Any, ...]] = [(None,) * 6] * 5_000
        rows += [("abc", "def", b"\xff", "yes", 1.5, 20.5), (2, 3, "ok", 1, b"x", "2024-01-01")]
        rows += [(3.0, 1e999, 17, 0, "t", None), (2.5, -1e999, "ok", 7, 2**60, 3)]
        rows += [(-(2**63),) * 6]
        connection.executemany("INSERT INTO loose VALUES (?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO loose (who, t) VALUES (9, CAST(x'ff41' AS TEXT))")
    connection.close()
    with DuckDB() as engine:
        table = Table(f"{path}::loose", "who", engine=engine)
        data = table.data.filter(table.data["who"].notnull())
        found = sorted(engine.run(data).to_pylist(), key=lambda row: row["who"])
    assert [row["who"] for row in found] == [-(2**63), 2, 3, 9]
    assert [row["x"] for row in found] == [-(2.0**63), 3.0, float("inf"), None]
    assert [row["t"] for row in found] == [str(-(2**63)), "ok", "17", None]
    assert [row["b"] for row in found] == [None, True, False, None]
    assert [row["n"] for row in found] == [str(-(2**63)), None, "t", None]
    assert [row["d"] for row in found] == [str(-(2**63)), "2024-01-01", None, None]


@pytest.mark.parametrize("system", ["postgresql", "sqlite"])
def test_texts_are_compared_by_bytes_whatever_their_collation(
    system: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    rows = "INSERT INTO folded VALUES ('p', 'A', 'A'), ('P', 'a', 'a'), ('q', 'b', 'b')"
    if system == "sqlite":
        kinds = "who TEXT COLLATE NOCASE, ward TEXT COLLATE NOCASE, w2 VARCHAR(9) COLLATE NOCASE"
        source = f"{tmp_path / 'folded.sqlite'}::folded"
        with sqlite3.connect(tmp_path / "folded.sqlite") as connection:
            connection.execute(f"CREATE TABLE folded ({kinds})")
            connection.execute(rows)
        connection.close()
    else:
        source, run = f"{request.getfixturevalue('place')}::folded", request.getfixturevalue("run")
        try:
            icu = "provider = icu, locale = 'und-u-ks-level2', deterministic = false"
            run(f"CREATE COLLATION folding ({icu})")
        except psycopg.Error:
            pytest.skip("this PostgreSQL has no ICU")
        kinds = "who text COLLATE folding, ward text COLLATE folding, w2 varchar COLLATE folding"
        run(f"CREATE TABLE folded ({kinds})")
        run(rows)
    with DuckDB() as engine:
        regions = LookupTable("l", pa.table({"ward": ["A", "a"], "x": ["1", "2"]}), "ward")
        domains = {"ward": ["A", "a", "B"], "w2": ["a"], "x": ["1", "2"]}
        table = Table(source, "who", domains, engine=engine, tables=[regions])
        assert exact(Count(), table) == [[3]]
        assert exact(Count(by="ward"), table) == [[1, 1, 0, 1]]
        assert exact(Count(by="x"), table) == [[1, 1, 1]]
        for text in ("ward = 'A'", "w2 in ('a', 'B')", "ward > 'A' and ward <= 'a'"):
            assert exact(Count(where=text), table) == [[1]], text


def test_only_needed_columns_and_rows_are_asked_for(on_server: str, rows_file: str) -> None:
    where = "level >= 3 and ward in ('w1', 'w2') and age > 3 and written = '12' and id <> 4"
    with DuckDB() as engine:
        file, table = (people_table(each, engine) for each in (rows_file, on_server))
        name = table.data.op().name
        query = Sum(column="cost", by="ill", where=where)
        expression = query.exact(table, query.cells(table))
        used = {"person", "level", "ward", "age", "written", "id", "cost", "ill"}
        assert needed_columns(expression) == {name: used}
        pushed = {(each.column, each.operator) for each in row_conditions(expression, name)}
        assert pushed == {("person", "present"), ("level", ">="), ("ward", "in"), ("written", "=")}
        assert needed_columns(table.data.count().as_table()) == {name: set()}
        # What is read twice with different conditions is read whole, where it has a person.
        rows = [eligible_rows(table, text) for text in ("level >= 3", "level < 3")]
        both = rows[0].union(rows[1])
        assert [each.column for each in row_conditions(both, name)] == ["person"]
        for text in (where, "level = 3", "ward = 'w1' or level > 30", "level is null"):
            counted = Count(by="ward", where=text)
            assert exact(counted, table) == exact(counted, file), text


@pytest.mark.parametrize(
    "source",
    [
        "postgresql://me:hunter2@host/db::t",
        "postgresql://me@host/db?password=hunter2::t",
        "postgresql://me@host/db?sslpassword=hunter2::t",
        "postgres://:hunter2@host/db::t",
        "adbc:other:thing://me:hunter2@host/db::t",
        "adbc:other:Server=host;Pwd=hunter2::t",
        "mysql://me:hunter2@host/db::t",
        "postgresql://host/db?options=-chunter2::t",
        "postgresql://host/hunter2",
        "adbc:hunter2",
        "s3://key:hunter2@bucket/x.parquet",
    ],
)
def test_a_source_has_no_password(source: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Table(source, "who")
    assert "hunter2" not in str(caught.value) and caught.value.__context__ is None


def test_addresses() -> None:
    assert not is_database("data.csv") and not is_database("x.duckdb::t")
    address = read_address("postgresql://[::1]:5/db::s.t")
    assert (address.uri, address.table) == ("postgresql://[::1]:5/db", "s.t")


def test_what_could_fail_on_a_row_is_not_opened(place: str, run: Any, on_server: str) -> None:
    run("CREATE VIEW looked AS SELECT person, 1 / (level - 3) AS x FROM rows")
    run("CREATE TABLE watched (who int); ALTER TABLE watched ENABLE ROW LEVEL SECURITY")
    run('CREATE TABLE twice (a int, "A" int)')
    for name in ("looked", "watched"):
        with refused("table"):
            Table(f"{place}::{name}", "person")
    with refused("columns of the table"):
        Table(f"{place}::twice", "a")
    with pytest.raises(UnknownName, match="rows"):
        Table(f"{place}::rovs", "person")
    with DuckDB(views=True) as engine:
        assert Table(f"{place}::looked", "person", engine=engine).columns == ("person", "x")


def test_a_role_sees_its_columns_only(place: str, run: Any, on_server: str) -> None:
    run(f"CREATE ROLE analyst LOGIN PASSWORD '{postgres.PASSWORD}'")
    run("GRANT SELECT (person, level) ON rows TO analyst")
    source = on_server.replace("whosin@", "analyst@")
    with DuckDB() as engine:
        table = Table(source, "person", engine=engine)
        assert table.columns == ("person", "level")
        assert exact(Count(), table)[0][0] == 1_000


def test_a_role_without_rights_is_told_so(place: str, run: Any, tmp_path: Path) -> None:
    """The table was to be one of an empty list."""
    run(f"CREATE ROLE visitor LOGIN PASSWORD '{postgres.PASSWORD}'")
    run("CREATE TABLE purchases (who int, x int)")
    address = f"{place}::purchases".replace("whosin@", "visitor@")
    with pytest.raises(InvalidInput, match="role 'visitor' may read no table of database"):
        Table(address, "who")
    assert main(["draft", address]) == 2
    with contextlib.closing(sqlite3.connect(tmp_path / "empty.sqlite")) as connection:
        connection.execute("VACUUM")
    with pytest.raises(UnknownName, match="'t' is not there, nor is any other"):
        Table(f"{tmp_path / 'empty.sqlite'}::t", "who")


def test_roles_with_other_columns_share_a_budget(place: str, tmp_path: Path, run: Any) -> None:
    """What a role may not read it cannot ask about; kinds and further columns are as registered."""
    rows = "SELECT i AS who, i % 3 AS x, i % 2 AS y FROM generate_series(1, 90) i"
    run(f"CREATE TABLE bought AS {rows}")
    run(f"CREATE ROLE clerk LOGIN PASSWORD '{postgres.PASSWORD}'")
    run("GRANT SELECT (who, x) ON bought TO clerk")
    source, ledger = f"{place}::bought", tmp_path / "ledger.db"
    theirs = source.replace("whosin@", "clerk@")
    with DuckDB() as engine:
        mine = Table(source, "who", {"x": (0, 2), "y": (0, 1)}, engine=engine)
        Session(mine, PLAN, ledger, dataset="shop", share="1/4").ask(Sum(column="y"))
        for curator in (True, False):
            other = Table(theirs, "who", {"x": (0, 2)}, engine=engine)
            asker = Session(other, PLAN, ledger, dataset="shop", share="1/4", curator=curator)
            asker.ask(Sum(column="x", name=f"by {curator}"))
        state = asker.budget_state
        assert state.debits == 3 and set(state.registered.registration.schema) == {"who", "x", "y"}
        assert main(["ledger", "verify", str(ledger)]) == 0
        run("ALTER TABLE bought ALTER x TYPE text")
        with pytest.raises(BudgetRefused, match="'x' was integer, and is string"):
            Session(Table(theirs, "who"), PLAN, ledger, dataset="shop", share="1/4")


def test_a_database_that_does_not_answer(server: Any, place: str, tmp_path: Path, run: Any) -> None:
    run("CREATE TABLE short AS SELECT i AS who, i % 3 AS x FROM generate_series(1, 900) i")
    source, ledger = f"{place}::short", tmp_path / "ledger.db"
    with DuckDB() as engine:
        table = Table(source, "who", {"x": (0, 2)}, engine=engine)
        session, plain = (
            Session(table, PLAN, ledger, share="1/4", request=each) for each in ("job", None)
        )
        server.stop("immediate")
        with pytest.raises(SourceUnreachable) as caught:
            Table(source, "who")
        assert str(server.folder) not in str(caught.value)
        assert "the server cannot be reached" in str(caught.value)
        with pytest.raises(SourceUnreachable):  # whether its rows changed is looked at first
            plain.ask(Count())
        assert not session.budget_state.debits
        with pytest.raises(SourceChanged, match="continues without paying again"):
            session.ask(Count())
        server.start()
        before = session.budget_state.spent
        assert abs(session.ask(Count()).value - 900) < 300
        assert session.budget_state.spent == before and session.budget_state.state == "open"


def test_a_server_that_is_not_there_is_named_without_user_and_password() -> None:
    with pytest.raises(SourceUnreachable) as caught:
        Table("postgresql://ann@127.0.0.1:9/shop::rows", "who")
    assert caught.value.hint.startswith("see that it runs at 127.0.0.1:9, and that host and port")
    assert "ann@" not in str(caught.value)


def test_a_wrong_password_is_no_server_that_is_down(place: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("PGPASSWORD", "guessed-it")
    with pytest.raises(SourceUnreachable, match="refused the user or password") as caught:
        Table(f"{place}::rows", "who")
    assert "runs" not in str(caught.value) and "guessed-it" not in str(caught.value)


def test_a_user_who_is_not_let_in_is_told_so(place: str) -> None:
    with pytest.raises(SourceUnreachable, match="refused the user"):
        Table(place.replace("whosin@", "nobody_here@") + "::rows", "who")


def test_a_connection_that_is_cut_suspends_the_dataset(
    server: Any, place: str, tmp_path: Path, run: Any
) -> None:
    """The server ends the connection while rows arrive: that may be about them."""
    run("CREATE TABLE slow AS SELECT i AS who FROM generate_series(1, 200000) i")
    run(
        "CREATE FUNCTION slowly(int) RETURNS int LANGUAGE sql VOLATILE AS "
        "'SELECT $1 + (pg_sleep(0.0002) IS NULL)::int'"
    )
    run("CREATE VIEW slowed AS SELECT slowly(who) AS who FROM slow")
    with DuckDB(views=True) as engine:
        table = Table(f"{place}::slowed", "who", engine=engine, name="slowed")
        session = Session(table, PLAN, tmp_path / "ledger.db", share="1/4")
        ending = threading.Thread(target=_cut, args=(run,))
        ending.start()
        with pytest.raises(ScanFailed, match="suspended") as caught:
            session.ask(Count())
        ending.join()
    assert not isinstance(caught.value, SourceChanged) and caught.value.__context__ is None


def _cut(run: Any) -> None:
    """End the connection that is copying."""
    for _ in range(600):
        time.sleep(0.05)
        ended = run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE '%slowed%' AND query ILIKE 'copy%' AND pid <> pg_backend_pid()"
        ).fetchall()
        if ended:
            return


def test_a_table_that_was_changed(place: str, tmp_path: Path, run: Any) -> None:
    run("CREATE TABLE moving AS SELECT i AS who, i % 3 AS x FROM generate_series(1, 90) i")
    with DuckDB() as engine:
        table = Table(f"{place}::moving", "who", {"x": (0, 2)}, engine=engine)
        session = Session(table, PLAN, tmp_path / "ledger.db", share="1/4")
        run("ALTER TABLE moving ALTER x TYPE text")
        with pytest.raises(SourceChanged, match="column 'x' is of another type"):
            session.ask(Count())
        run("DROP TABLE moving")
        with pytest.raises(SourceChanged):
            session.ask(Count())


def test_a_budget_is_for_one_table_of_one_server(
    server: Any, place: str, tmp_path: Path, run: Any
) -> None:
    for name in ("mine", "other"):
        run(f"CREATE TABLE {name} AS SELECT i AS who, i % 3 AS x FROM generate_series(1, 50) i")
    run("UPDATE other SET x = 2")
    ledger = tmp_path / "ledger.db"

    def session(source: str, **options: Any) -> Session:
        table = Table(source, "who", {"x": (0, 2)}, engine=DuckDB(), name="mine")
        return Session(table, PLAN, ledger, share="1/9", **options)

    session(f"{place}::mine").ask(Mean(column="x"))
    again = place.replace("postgresql://", "postgres://") + "&application_name=again"
    session(f"{again}::public.mine").ask(Mean(column="x"))  # the same table by another name
    run("INSERT INTO mine VALUES (51, 1)")
    session(f"{place}::mine").ask(Mean(column="x"), again=True)  # a table that lives
    with pytest.raises(BudgetRefused, match="another table"):
        session(f"{place}::other").ask(Count())
    copy = tmp_path / "copy.csv"
    rows = run("SELECT who, x FROM other ORDER BY x, who").fetchall()
    copy.write_text("who,x\n" + "".join(f"{who},{x}\n" for who, x in rows))
    other = Table(f"{place}::other", "who", engine=DuckDB(), name="other")
    Session(other, PLAN, ledger, share="1/9", new_people=True)
    with pytest.raises(BudgetRefused, match="other"):  # a file with the rows of a server's table
        Session(Table(copy, "who", name="new"), PLAN, ledger, share="1/9")


def test_a_table_that_was_renamed_has_no_second_budget(
    place: str, tmp_path: Path, run: Any
) -> None:
    """Nor one that moved to another schema; of a further table neither."""
    run("CREATE TABLE ours AS SELECT i AS who, i % 3 AS x FROM generate_series(1, 50) i")
    run("CREATE TABLE theirs AS SELECT i AS who, i % 5 AS y FROM generate_series(1, 50) i")
    run("CREATE SCHEMA elsewhere")
    ledger = tmp_path / "ledger.db"

    def opened(source: str, further: str, name: str) -> Session:
        tables = [FurtherTable("t", f"{place}::{further}")]
        table = Table(f"{place}::{source}", "who", engine=DuckDB(), name=name, tables=tables)
        return Session(table, PLAN, ledger, share="1/9", new_people=True)

    opened("ours", "theirs", "first").ask(Count())
    run("ALTER TABLE ours RENAME TO renamed")
    run("ALTER TABLE renamed SET SCHEMA elsewhere")
    run("DELETE FROM elsewhere.renamed WHERE who = 50")  # so that its rows are others
    run("CREATE TABLE fresh AS SELECT i AS who FROM generate_series(100, 120) i")
    run("CREATE TABLE more AS SELECT i AS who, i AS y FROM generate_series(100, 120) i")
    run("ALTER TABLE theirs RENAME TO again")
    run("DELETE FROM again WHERE who = 50")
    for source, further in (("elsewhere.renamed", "more"), ("fresh", "again")):
        with pytest.raises(BudgetRefused, match="first"):
            opened(source, further, "second")
    opened("fresh", "more", "second").ask(Count())


@pytest.mark.parametrize("main", ["server", pytest.param("file", marks=pytest.mark.soak)])
def test_tables_of_databases_are_joined(main: str, place: str, tmp_path: Path, run: Any) -> None:
    """The same answers before noise wherever tables lie, each in another place."""
    made: dict[str, list[Any]] = {
        "people": [(who, "fm"[who % 2]) for who in range(40)] + [(3, "m"), (None, "f")],
        "visits": [(number % 47, number % 13, "ABC"[number % 3]) for number in range(300)],
        "wards": [("A", "north"), ("B", "south")],
    }
    columns = {"people": "who int, sex text", "visits": "who int, days int, ward text"}
    columns["wards"] = "ward text, region text"
    file = tmp_path / "clinic.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as lite:
        for name, rows in made.items():
            marks = ", ".join("?" * len(rows[0]))
            lite.execute(f"CREATE TABLE {name} ({columns[name]})")
            lite.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
            run(f"DROP TABLE IF EXISTS {name}")
            run(f"CREATE TABLE {name} ({columns[name]})")
            for row in rows:
                run(f"INSERT INTO {name} VALUES ({', '.join(['%s'] * len(row))})", row)
        lite.commit()
    frames: dict[str, Any] = {
        name: pd.DataFrame(rows, columns=[each.split()[0] for each in columns[name].split(", ")])
        for name, rows in made.items()
    }
    frames["people"]["who"] = frames["people"]["who"].astype("Int64")
    places = {"server": f"{place}::{{}}", "file": f"{file}::{{}}"}
    other = "file" if main == "server" else "server"
    from_databases = [
        places[at].format(name) for at, name in zip((main, other, main), made, strict=True)
    ]
    answers = [_joined_answers(*each) for each in (from_databases, list(frames.values()))]
    assert answers[0] == answers[1]
    assert sum(answers[0][0]["people"]) == 40


def _joined_answers(people: Any, visits: Any, wards: Any) -> list[dict[str, list[Any]]]:
    domains = {
        "sex": {"values": ["f", "m"], "constant": True},
        "total": {"lower": 0, "upper": 100, "step": 1},
        "wards": {"edges": [0, 1, 2, 3, 4]},
        "region": ["north", "south"],
        "days": {"lower": 0, "upper": 30, "step": 1},
    }
    table = Table(
        *(people, "who", domains),
        max_rows_per_group=1000,
        max_groups=9,
        name="people",
        tables=[
            FurtherTable("visits", visits, max_rows=1000),
            LookupTable("regions", wards, "ward", to="visits"),
        ],
        features=[
            Feature("total", "sum", "days", "visits", where="region = 'north'"),
            Feature("wards", "distinct", "ward", "visits"),
        ],
    )
    asked = [
        Count(by=("wards",)),
        Sum(column="total", by=("sex",)),
        Count(by=("region",), where="days > 3"),
        Sum(column="days", by=("region",)),
    ]
    results = []
    for query in asked:
        about = query.restrict_table(table)
        found = table.engine.run(query.exact(about, query.cells(about))).to_pydict()
        keys = [name for name in found if name.startswith("key_")]
        order = sorted(range(len(found[keys[0]])), key=lambda at: [found[key][at] for key in keys])
        results.append({name: [values[at] for at in order] for name, values in found.items()})
    return results


VISITS = (
    "who int8, x float8, n int4, price numeric(12, 2), ward text, text varchar, yes bool, "
    "at timestamptz, day date"
)


@pytest.mark.parametrize("table", [None, "visits"])
@cases(1, 60)
def test_features_of_a_server_are_those_of_the_definitions(
    table: str | None, count: int, place: str, run: Any
) -> None:
    """Random rows on a server, with missing values, NaN, zones, decimals and doubled people."""
    rng = np.random.default_rng(23)
    numbers = itertools.count()

    def put(rows: pa.Table) -> str:
        name = f"visits_{table}_{count}_{next(numbers)}".lower()
        run(f"CREATE TABLE {name} ({VISITS})")
        with run("SELECT 1").connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
        return f"{place}::{name}"

    with DuckDB() as engine:
        for _ in range(count):
            related_oracle.check(rng, table, engine, put=put)


def test_parts_of_a_server_are_those_of_the_definition(
    place: str, run: Any, tmp_path: Path
) -> None:
    """By a column that never changes: rows that may change are in no parts by a rule."""
    numbers = itertools.count()

    def put(name: str, rows: pa.Table) -> str:
        called = f"{name}_of_parts_{next(numbers)}"
        kinds = part_oracle.KINDS[name].items()
        typed = [f"{each} {'text' if kind == pa.string() else 'int8'}" for each, kind in kinds]
        run(f"CREATE TABLE {called} ({', '.join(typed)})")
        with run("SELECT 1").connection.cursor().copy(f"COPY {called} FROM STDIN") as copy:
            for row in rows.to_pylist():
                copy.write_row(list(row.values()))
        return f"{place}::{called}"

    with DuckDB() as engine:
        part_oracle.check_parts(5, engine, put, "region", part_oracle.REGIONS[:2])
        table = Table(
            f"{place}::people_of_parts_0",
            "who",
            {"region": part_oracle.REGIONS},
            name="people",
            engine=engine,
            part="least(region)",
        )
        with refused("part", "region"), Session(table, PLAN, tmp_path / "l.db"):
            pass


def test_folders_of_table_formats_are_refused(tmp_path: Path, rows_file: str) -> None:
    folder = tmp_path / "lake"
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "part.parquet").write_bytes(Path(rows_file).read_bytes())
    with refused("table"):
        Table(str(folder), "person")
    (folder / "_delta_log").rmdir()
    assert "person" in Table(str(folder), "person").columns


@pytest.mark.parametrize("seen", [True, False])
def test_answers_about_rows_that_changed_are_not_passed_off_as_todays(
    seen: bool, place: str, tmp_path: Path, run: Any, monkeypatch: Any
) -> None:
    """Neither where the rows were looked at, nor where the table is too large for that."""
    if not seen:
        monkeypatch.setattr("whosin.release.table.MAX_FINGERPRINTED_BYTES", 0)
    run("DROP TABLE IF EXISTS lives")
    run("CREATE TABLE lives AS SELECT i AS who, i % 3 AS x FROM generate_series(1, 50) i")
    path = tmp_path / "lives.toml"
    path.write_text(
        f'[adversary]\nprior = "0.05..0.5"\n[target]\nposterior = 0.6\n[table]\n'
        f'source = "{place}::lives"\nprivacy_unit = "who"\n[budget]\nshare = "1/8"\n'
        '[[queries]]\nkind = "count"\n'
    )
    scenario = load_scenario(path)

    def ask(**choices: Any) -> Release:
        paid = scenario.find_request(
            request=choices.get("request"), amend=choices.get("amend", False)
        )
        with scenario.open_session(**choices) as session:
            before = session.budget_state.debits if paid else 0
            made = scenario.release(session)
            assert not paid or made.budget_state.debits == before
            return made

    first = ask()
    if seen:
        assert ask().request == first.request and ask(amend=True).budget_state.debits == 1
    run("INSERT INTO lives VALUES (51, 1)")
    for ask_today in (scenario.find_request, lambda: scenario.release(scenario.open_session())):
        with pytest.raises(BudgetRefused, match=first.request) as caught:
            ask_today()
        said = str(caught.value)
        assert said.index("--request") < said.index("--again")  # what costs nothing comes first
        assert ("have changed" in said) is not ("cannot tell" in said) is not seen
    assert ask(request=first.request).answers == first.answers
    assert ask(amend=True).budget_state.debits == 2
    if seen:  # and that is its answer from now on
        assert ask().budget_state.debits == 2 and ask().request != first.request
    run("DELETE FROM lives WHERE who = 51")
    if seen:  # the very rows of the first day
        assert ask().request == first.request
    run("DELETE FROM lives WHERE who = 50")
    requests = {first.request}
    for debits in (3, 4):  # the rows changed, and then they did not: nobody can tell from outside
        with scenario.open_session(again=True) as session:
            assert scenario.release(session).budget_state.debits == debits
            requests.add(session.request)
    assert len(requests) == 3
    assert all(re.fullmatch("[0-9a-f]{32}-[0-9a-f]{24}", each) for each in requests)
