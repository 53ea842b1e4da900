"""Spreadsheets: read as the CSV file of the same cells, refused by their header alone."""

from __future__ import annotations

import csv
import datetime
import json
import random

import pytest

import whosin as wi
from amounts import cases
from refusals import refused
from spreadsheets import OLD_FORMAT, write_workbook
from whosin.documents import read_csv
from whosin.errors import InvalidInput, MissingExtra, UnknownName, WhosinError
from whosin.release import DuckDB
from whosin.release.engines import files
from whosin.release.table import fingerprint_table

HEADER = ["id", "ward", "age", "score", "day", "seen"]
ROWS = [
    ["p1", "a", 30, 0.1, datetime.date(2024, 1, 31), datetime.datetime(2024, 1, 31, 12, 30, 5)],
    ["p1", "b", 30.0, 2.5, datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 1)],
    ["p2", "a", None, 1e-9, None, None],
    [None] * 6,
    ["p3", "Ä, “b”", 99, -3, datetime.date(1999, 12, 31), datetime.datetime(1999, 1, 1, 0, 0, 1)],
]
TEXTS = [
    ["p1", "a", "30", "0.1", "2024-01-31", "2024-01-31 12:30:05"],
    ["p1", "b", "30", "2.5", "2024-02-29", "2024-02-01"],
    ["p2", "a", "", "1e-09", "", ""],
    ["p3", "Ä, “b”", "99", "-3", "1999-12-31", "1999-01-01 00:00:01"],
]
SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "book.xlsx::Visits"
privacy_unit = "id"
max_rows_per_group = 2
[domains]
ward = { values = ["a", "b"], outside = "drop" }
age = "0..100"
day = "2024-01-01..2024-12-31"
[budget]
share = "1/4"
[[queries]]
kind = "rows"
by = ["ward"]
[[queries]]
kind = "mean"
column = "age"
[[queries]]
kind = "rows"
by = ["month(day)"]
"""


@pytest.fixture
def folder(tmp_path):
    write_workbook(tmp_path / "book.xlsx", {"Notes": [["nothing"]], "Visits": [HEADER, *ROWS]})
    write_workbook(tmp_path / "visits.xlsx", {"Visits": [HEADER, *ROWS]})
    with (tmp_path / "visits.csv").open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *TEXTS])
    return tmp_path


def rows_of(source) -> list[tuple]:
    with DuckDB() as engine:
        found = engine.run(engine.open(str(source)))
        return sorted(zip(*found.to_pydict().values(), strict=True), key=repr)


def test_a_sheet_is_what_its_csv_file_would_be(folder):
    expected = rows_of(folder / "visits.csv")
    assert expected == sorted((tuple(c or None for c in row) for row in TEXTS), key=repr)
    for source in ("visits.xlsx", "visits.xlsx::Visits", "book.xlsx::Visits"):
        assert rows_of(folder / source) == expected
    prints = [
        fingerprint_table(wi.Table(str(folder / source), "id"), rows=True)
        for source in ("visits.csv", "visits.xlsx", "book.xlsx::Visits")
    ]
    assert len({each["rows"] for each in prints}) == 1
    assert prints[0]["bytes"] != prints[1]["bytes"] and "bytes" not in prints[2]


def test_types_do_not_depend_on_rows(folder):
    """A text among numbers, or a number among dates, changes no column's type."""
    schemas = []
    for number, odd in enumerate((None, "unknown", 3.5, True, datetime.date(2024, 1, 1), "#N/A")):
        path = write_workbook(folder / f"{number}.xlsx", {"S": [HEADER, *ROWS, [odd] * 6]})
        with DuckDB() as engine:
            schemas.append(engine.open(str(path)).schema())
    assert all(each == schemas[0] for each in schemas)


def test_it_is_converted_once_while_it_is_open(folder, monkeypatch):
    calls = []
    real = files.isolation.run_isolated
    monkeypatch.setattr(
        files.isolation, "run_isolated", lambda *a, **k: calls.append(a) or real(*a, **k)
    )
    table = wi.Table(str(folder / "visits.xlsx"), "id")
    fingerprint_table(table, rows=True)
    wi.Table(str(folder / "visits.xlsx"), "id")
    assert len(calls) == 1
    write_workbook(folder / "visits.xlsx", {"Visits": [HEADER, *ROWS, ["p9", "a"]]})
    assert len(rows_of(folder / "visits.xlsx")) == len(TEXTS) + 1 and len(calls) == 2


def test_draft_inspect_and_release_read_it(folder, run):
    code, out, err = run("draft", f"{folder / 'book.xlsx'}::Visits", "--privacy-unit", "id")
    assert code == 0, err
    assert "# FILL IN: dates" in out and "# FILL IN: numbers" in out and "::Visits" in out
    (folder / "s.toml").write_text(SCENARIO)
    code, out, err = run("inspect", folder / "s.toml", "--json")
    assert code == 0 and json.loads(out)["private"], err
    code, out, err = run("release", folder / "s.toml", "--json", "--no-preflight")
    assert code == 0, err
    assert [len(each["rows"]) for each in json.loads(out)["answers"]] == [2, 1, 13]
    # The same rows as CSV have a budget already.
    (folder / "t.toml").write_text(SCENARIO.replace("book.xlsx::Visits", "visits.csv"))
    code, out, err = run("release", folder / "t.toml", "--new-people", "--no-preflight")
    assert (code, out) == (1, "") and "are those of" in err


REFUSED = {
    "empty": ({"S": []}, "", "empty"),
    "blank": ({"S": [["a", None, "c"], [1, 2, 3]]}, "", "column 2"),
    "merged": ({"S": [["people", None], ["id", "age"], [1, 2]]}, "A1:B1", "merged"),
    "twice": ({"S": [["id", "ID"], [1, 2]]}, "", "capital"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_headers_are_refused_in_one_sentence(folder, run, name):
    sheets, merged, words = REFUSED[name]
    path = write_workbook(folder / f"{name}.xlsx", sheets, merged)
    with pytest.raises(InvalidInput, match=words):
        rows_of(path)
    code, out, err = run("draft", path)
    assert (code, out) == (2, "") and words in err and err.count("\n") == 1


def test_merged_cells_below_the_header_are_missing(folder):
    sheets = {"S": [["id", "ward"], ["p1", "a"], ["p2", None]]}
    path = write_workbook(folder / "m.xlsx", sheets, merged="B2:B3")
    assert rows_of(path) == [("p1", "a"), ("p2", None)]


def test_titles_may_stand_elsewhere(folder):
    """Empty rows and columns before the table are none of it, nor is what stands beside it."""
    rows = [[], [None, "id", "age"], [None, "p1", 3, "a remark"], [None, None, None, "another"]]
    path = write_workbook(folder / "t.xlsx", {"S": rows})
    assert rows_of(path) == [("p1", "3")]


def test_wrong_files_and_sheets_are_refused(folder):
    for content, words in ((b"", "damaged"), (b"PK\x03\x04", "damaged"), (OLD_FORMAT, "password")):
        (folder / "wrong.xlsx").write_bytes(content)
        with pytest.raises(InvalidInput, match=words) as error:
            rows_of(folder / "wrong.xlsx")
        assert error.value.field == "table"
    with pytest.raises(UnknownName, match="Visits"):
        rows_of(folder / "book.xlsx::visits")
    with pytest.raises(FileNotFoundError):
        rows_of(folder / "none.xlsx")
    (folder / "two").mkdir()
    for name in "ab":
        write_workbook(folder / "two" / f"{name}.xlsx", {"S": [["id"], [1]]})
    with refused("table"):
        rows_of(folder / "two" / "*.xlsx")


def test_without_the_reader_one_sentence_says_what_to_install(folder, monkeypatch):
    from whosin import errors

    monkeypatch.setitem(errors.EXTRA_PACKAGES, "spreadsheets", ("x needs", ("no_such_module",)))
    for read in (rows_of, read_csv):
        with pytest.raises(MissingExtra, match="spreadsheets"):
            read(folder / "visits.xlsx")


@cases(4, 400)
def test_damaged_workbooks_never_end_this_process(folder, count):
    chance, whole = random.Random(5), (folder / "visits.xlsx").read_bytes()
    for _ in range(count):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        cut = chance.choice([len(data), chance.randrange(len(data))])
        (folder / "x.xlsx").write_bytes(bytes(data[:cut]))
        said = ""
        try:
            rows_of(folder / "x.xlsx")
        except WhosinError as error:
            said = str(error)
        assert "p1" not in said


def test_dictionaries_and_published_tables_may_be_spreadsheets(folder, run):
    lines = [["column", "values", "lower", "upper"], ["ward", "a | b"], ["age", None, 0, 120]]
    path = write_workbook(folder / "words.xlsx", {"S": lines})
    assert read_csv(path).rows[1] == ("age", "", "0", "120")
    code, out, err = run("draft", folder / "visits.xlsx", "--dictionary", path)
    assert code == 0 and 'ward = ["a", "b"]' in out and "upper = 120" in out, err
