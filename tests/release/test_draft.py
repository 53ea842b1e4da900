"""Drafts of scenarios: every line can be taken as it stands, and nothing of the rows is in them
unless the curator says so."""

from __future__ import annotations

import json
import re
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

import whosin as wi
from refusals import refused
from whosin.documents import toml_text
from whosin.errors import InvalidInput, UnknownName
from whosin.release import Count, DuckDB, Table
from whosin.release.answer import read_releases
from whosin.release.budget_allocation import estimate_batch_cost
from whosin.release.domains import respelled_days
from whosin.release.draft import BLANK_DOMAINS, MISSPELT_NOTE, draft_scenario
from whosin.release.inspection import look_before_debit
from whosin.release.queries import QUERIES
from whosin.release.scenario import load_scenario

ROWS = [
    ("p1", "north", "34", "2024-03-01", "1", "a long remark of its own"),
    ("p2", "south", "71.5", "2024-05-09", "0", "another one"),
    ("p3", "south", "8", "2025-01-31", "1", ""),
]
HEADER = ("patient", "region", "age", "day", "smokes", "remark")


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(",".join(row) for row in (HEADER, *ROWS)) + "\n")
    return path


def uncomment(text: str, *starts: str) -> str:
    """The draft with these lines taken, as an editor would."""
    for start in starts:
        text, count = re.subn(rf"(?m)^# ({re.escape(start)}.*)$", r"\1", text)
        assert count == 1, start
    return text


def test_a_draft_becomes_a_release_by_deciding_and_filling_in(visits: Path) -> None:
    text = draft_scenario(str(visits), "patient", shown="visits.csv")
    assert "north" not in text and "34" not in text and "p1" not in text
    text = uncomment(text, "prior =", "posterior =", "max_rows_per_group", "max_groups")
    text = text.replace('# region = ["…", "…"]', 'region = ["north", "south"]')
    wanted = '# [[queries]]\n# kind = "rows"\n# by = ["region"]\n'
    assert wanted in text
    text = text.replace(wanted, wanted.replace("# ", ""))
    path = visits.with_suffix(".toml")
    path.write_text(text)
    [estimate] = load_scenario(path).estimate_cost()
    assert estimate.query.by == ["region"]


def test_every_question_of_a_draft_can_be_asked_as_it_stands(visits: Path) -> None:
    text = draft_scenario(str(visits), "patient")
    asked = text[text.index("# [[queries]]") :].replace("\n#\n", "\n")
    questions = tomllib.loads(re.sub(r"(?m)^# ?", "", asked))["queries"]
    assert {each["kind"] for each in questions} == QUERIES.keys() - {"maximum"}
    declared = {name: ["a", "b"] for name in ("region", "smokes", "remark")}
    data: dict[str, Any] = {
        "adversary": {"prior": "0.05..0.5"},
        "target": {"posterior": 0.6},
        "table": {"source": visits.name, "privacy_unit": "patient", "max_rows_per_group": 1}
        | {"max_groups": 1},
        "domains": declared | {"age": {"lower": 0, "upper": 80}, "day": "2024-01-01..2024-12-31"},
    }
    needs = {
        "delta in [target]": {"target": data["target"] | {"delta": 1e-6}},
        'noise = "gaussian" in [budget]': {"budget": {"noise": "gaussian"}},
        "size-known = true in [adversary]": {"adversary": data["adversary"] | {"size-known": True}},
    }
    path = visits.with_suffix(".toml")
    for each, block in zip(questions, asked.split("\n\n"), strict=False):
        wanted = data | {"queries": [each]}
        for need, change in needs.items():
            wanted |= change if need in block else {}
        path.write_text(toml_text(wanted))
        [estimate] = load_scenario(path).estimate_cost()
        assert estimate.query.kind == each["kind"]


def test_kinds_come_from_first_rows_or_from_the_schema(visits: Path, tmp_path: Path) -> None:
    text = draft_scenario(str(visits), "patient")
    for line in (
        '# region = ["…"',
        "# age = { lower",
        '# day = { lower = 2024-01-01, upper = 2024-12-31, edges = "month" }',
        '# smokes = ["…"',
    ):
        assert line in text
    database = tmp_path / "clinic.sqlite"
    with sqlite3.connect(database) as connection:
        connection.execute("CREATE TABLE stays (person TEXT, days REAL, ward TEXT)")
        connection.execute("INSERT INTO stays VALUES ('a', 3.5, 'x')")
    connection.close()
    text = draft_scenario(f"{database}::stays", "person")
    assert "# days = { lower" in text and '# ward = ["…"' in text and 'title = "stays"' in text


def test_rows_are_declared_only_where_asked_for_and_marked(visits: Path) -> None:
    text = draft_scenario(str(visits), "patient", from_rows=True)
    domains = tomllib.loads(text)["domains"]
    assert domains["region"] == {"values": ["north", "south"], "from_rows": True}
    assert domains["age"] == {"lower": 0, "upper": 80, "from_rows": True}
    day = {"lower": "2024-01-01", "upper": "2025-12-31", "edges": "month", "from_rows": True}
    assert domains["day"] == day
    assert domains["smokes"]["values"] == [0, 1]
    assert "chosen by looking at the rows" in text
    assert all(each["from_rows"] for each in domains.values())
    assert "from_rows" not in tomllib.loads(draft_scenario(str(visits), "patient"))["table"]
    table = tomllib.loads(text)["table"]
    assert (table["max_rows_per_group"], table["from_rows"]) == (1, True)


def test_bounds_from_the_rows_are_round_and_marked(tmp_path: Path, run) -> None:
    """In the file, and in the report of what is released with them."""
    path = tmp_path / "visits.csv"
    rows = [f"p{unit},{'xy'[unit % 2]}" for unit in range(100) for _ in range(1 + unit % 7)]
    path.write_text("\n".join(["who,ward", *rows, *["p1,x"] * 40, ",y", ""]))
    assert "# max_rows_per_group = 1" in draft_scenario(str(path), "who")
    text = draft_scenario(str(path), "who", from_rows=True)
    table = tomllib.loads(text)["table"]
    assert (table["max_rows_per_group"], table["from_rows"]) == (10, True)
    text = uncomment(text, "prior", "posterior")
    (tmp_path / "s.toml").write_text(f'{text}\n[[queries]]\nkind = "rows"\nby = ["ward"]\n')
    scenario = load_scenario(tmp_path / "s.toml")
    assert scenario.looked_up == ("ward", "max_rows_per_group")
    code, _, _ = run(f"release {tmp_path / 's.toml'} --yes --json --report {tmp_path / 'r.html'}")
    assert code == 0
    page = " ".join((tmp_path / "r.html").read_text().split())
    assert "Chosen by looking at the rows: what was declared of ward; max_rows_per_group" in page
    assert "max_rows_per_group: chosen by looking" in page
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        (made,) = read_releases(ledger, "visits")
    assert made.declared["looked_up"] == ["ward", "max_rows_per_group"]


def test_numbers_that_a_file_spells_with_decimals_are_numbers(tmp_path: Path) -> None:
    """pandas writes 3.0 where a value is missing somewhere; 01 is a code."""
    rows = [f"p{n},{n % 3}.0,0{n % 2 + 1},{n % 4}." for n in range(200)]
    (tmp_path / "marks.csv").write_text("\n".join(["who,mark,code,half", *rows, "p201,,,"]))
    text = draft_scenario(str(tmp_path / "marks.csv"), "row", from_rows=True)
    domains = tomllib.loads(text)["domains"]
    assert domains["mark"]["values"] == [0, 1, 2]
    table = Table(tmp_path / "marks.csv", "row", {**domains, "half": [0, 1, 2, 3]})
    asked = [Count(by="mark"), Count(by="half"), Count(where="mark = 1", by="code")]
    estimates = estimate_batch_cost(table, wi.calibrate(wi.Epsilon(1)), asked)
    found = look_before_debit(table, asked, estimates)
    assert not found.stops and {each.undeclared for each in found.columns} == {0, 1}
    assert domains["code"]["values"] == ["01", "02"]


@pytest.mark.parametrize(
    "lines",
    [
        "column,values,min,max,description\nRegion,north|south|west,,,Where they live\n"
        "age,,0,120,Years",
        "variable;value;label;lower;upper\nregion;north;N;;\nregion;south;S;;\nregion;west;W;;\n"
        "age;;;0;120",
    ],
)
def test_dictionaries_by_column_or_by_value(visits: Path, tmp_path: Path, lines: str) -> None:
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text(lines)
    domains = tomllib.loads(draft_scenario(str(visits), "patient", dictionary))["domains"]
    assert domains == {"region": ["north", "south", "west"], "age": {"lower": 0, "upper": 120}}


def test_what_does_not_fit_is_refused(visits: Path, tmp_path: Path) -> None:
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text("colour,meaning\nred,warm\n")
    with refused("dictionary", "dictionary.csv"):
        draft_scenario(str(visits), None, dictionary)
    dictionary.write_text("column,values\nheight,1|2\n")
    with refused("dictionary", "dictionary.csv"):
        draft_scenario(str(visits), None, dictionary)
    with refused("privacy_unit", "Patient", hint=True):
        draft_scenario(str(visits), "Patient")
    for content, name in ((b"", "empty.csv"), (b"PAR1 no more", "damaged.parquet")):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(InvalidInput):
            draft_scenario(str(path))


def test_a_domain_from_the_rows_is_the_same_domain(visits: Path) -> None:
    """That somebody looked is said of it, and is no other domain to a budget."""
    from whosin.release import Table
    from whosin.release.table import register_table

    plain, looked = (
        Table(str(visits), "patient", {"region": {"values": ["north", "south"]} | more})
        for more in ({}, {"from_rows": True})
    )
    assert looked.domains["region"].from_rows and not plain.domains["region"].from_rows
    assert register_table(plain).domains == register_table(looked).domains
    with refused("from_rows", hint=False):
        Table(str(visits), "patient", {"region": {"values": ["north"], "from_rows": 1}})


def test_a_boolean_column_is_declared_by_its_type(tmp_path: Path) -> None:
    """No row is looked at for it, so that nothing is marked."""
    import pyarrow as pa
    from pyarrow import parquet

    data = pa.table({"person": ["a", "b"], "smoker": [True, True]})
    parquet.write_table(data, tmp_path / "t.parquet")
    for from_rows in (False, True):
        text = draft_scenario(str(tmp_path / "t.parquet"), "person", from_rows=from_rows)
        assert "\nsmoker = [true, false]\n" in text and 'smoker = ["…"' not in text


def test_numbers_with_gaps_and_moments_in_utc_are_what_they_are(tmp_path):
    """NA made numbers texts, and a Z at the end made each moment an undeclared value."""
    rows = [f"p{n},{'NA' if n % 5 else n},2013-0{1 + n % 2}-01T10:00:00Z" for n in range(200)]
    (tmp_path / "f.csv").write_text("\n".join(["who,delay,at", *rows]) + "\n")
    text = draft_scenario(str(tmp_path / "f.csv"), "who")
    assert "# delay = { lower" in text
    table = Table(tmp_path / "f.csv", "who", {"at": "2013-01-01..2013-12-31"})
    data = table.data
    months = table.engine.run(table.domains["at"].code(data["at"]).name("code").as_table())
    assert len(set(months.column("code").to_pylist())) == 2
    assert months.column("code").null_count == 0


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_a_view_is_opened_where_somebody_says_so(kind: str, tmp_path: Path, run) -> None:
    """The refusal named a key that nothing but a scenario had."""
    made = {"duckdb": duckdb.connect, "sqlite": sqlite3.connect}[kind](tmp_path / f"d.{kind}")
    made.execute("CREATE TABLE t (who VARCHAR, ward VARCHAR)")
    made.execute("INSERT INTO t VALUES ('a', 'x')")
    made.execute("CREATE VIEW seen AS SELECT who, ward FROM t")
    made.commit()
    made.close()
    source, saved = f"{tmp_path / f'd.{kind}'}::seen", tmp_path / "s.toml"
    with pytest.raises(InvalidInput) as refusal:
        Table(source, "who")
    assert not isinstance(refusal.value, UnknownName) and "views" in refusal.value.hint
    assert Table(source, "who", views=True).columns == ("who", "ward")
    with pytest.raises(InvalidInput):
        Table(source, "who", views=True, engine=DuckDB(views=True))
    for wrong in ("sen", "nothing"):
        with pytest.raises(UnknownName):
            Table(source.replace("seen", wrong), "who")
    asked = "draft", source, "--privacy-unit", "who", "--save", saved
    assert run(*asked)[0] == 2 and not saved.exists()
    assert run(*asked, "--views")[0] == 0
    assert tomllib.loads(saved.read_text())["table"]["views"] is True


SPELLINGS = {
    "01/31/2013": "2013-01-31",
    "31.1.2013": "2013-01-31",
    "31-Jan-2013 10:15": "2013-01-31",
    "January 31, 2013": "2013-01-31",
    "2013/01/31": "2013-01-31",
    "2013-1-5": "2013-01-05",
    "01/02/2013": None,  # one of two days
}


@pytest.mark.parametrize("spelled", SPELLINGS)
def test_days_in_another_spelling_are_recognised(spelled: str, tmp_path: Path, run) -> None:
    """All rows had "no declared value", and the draft took days for a long text."""
    lines = [f"p{n};{spelled}" for n in range(60)]
    (tmp_path / "v.csv").write_text("\n".join(["who;day", *lines]) + "\n")
    day = SPELLINGS[spelled] or "days as 2024-01-31"
    path = tmp_path / "v.toml"
    path.write_text(
        '[adversary]\nprior = 0.5\n[target]\nposterior = 0.6\n[table]\nsource = "v.csv"\n'
        'privacy_unit = "who"\n[domains]\nday = "2013-01-01..2013-12-31"\n'
        '[[queries]]\nkind = "count"\nwhere = "day > \'2013-01-01\'"\n'
    )
    findings = json.loads(run("inspect", path, "--json")[1])["findings"]
    said = {each["what"]: each["rows"] for each in findings}
    assert said[f"day: {spelled!r} is no date; write {day}"] == 60
    code, out, err = run("release", path)
    assert (code, out) == (1, "") and f"{spelled!r} is no date; write {day}" in err
    for more in ((), ("--from-rows",)):
        text = run("draft", tmp_path / "v.csv", "--privacy-unit", "who", *more)[1]
        assert "# day = " in text and BLANK_DOMAINS["dates"] in text and MISSPELT_NOTE in text
        assert spelled not in text


@pytest.mark.parametrize("text", ["", "north", "1.5", "13/13/2013", "2013", "1-2", "10:15", "."])
def test_what_is_no_day_is_not_taken_for_one(text: str) -> None:
    assert respelled_days(text) == []


def test_no_question_is_drafted_about_names_and_lists(tmp_path: Path) -> None:
    """Sums of visit numbers were suggested, and lists were taken for categories."""
    path, columns = tmp_path / "v.parquet", "visit_id, cityCode, tags, age, ward"
    with duckdb.connect() as connection:
        rows = "(1, 1, ['x', 'y'], 30, 'a'), (2, 2, NULL, 40, 'b')"
        connection.execute(f"COPY (FROM (VALUES {rows}) t({columns})) TO '{path}'")
    for from_rows in (False, True):
        text = draft_scenario(str(path), "row", from_rows=from_rows)
        domains, questions = text.split("[ledger]")
        for name in ("visit_id", "cityCode", "tags"):
            assert f"# {name}  # leave it out" in domains and name not in questions
        assert ('column = "age"' in questions and 'by = ["ward"]' in questions) or not from_rows
