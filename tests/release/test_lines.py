"""Broken CSV files: a release says nothing about them, and the curator's look counts them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import csv_oracle as oracle
from amounts import cases
from whosin.app.cli.main import main
from whosin.errors import InvalidInput
from whosin.release import DuckDB, Table
from whosin.release.engines.confined import BrokenLines, find_broken_lines
from whosin.release.inspection import check_table
from whosin.release.scenario import load_scenario

GOOD = "who,ward,age\nx,a,3\ny,b,50\nz,é,7\n"
FILES = {
    "plain": (GOOD.encode(), BrokenLines(0, 0, 0, 0, 0), 3),
    "none": (b"who,ward,age\n", BrokenLines(0, 0, 0, 0, 0), 0),
    "latin-1": (GOOD.encode("latin-1"), BrokenLines(1, 0, 0, 0, 0), 2),
    "bom": (GOOD.encode("utf-8-sig"), BrokenLines(0, 0, 0, 0, 0), 3),
    "crlf": (GOOD.replace("\n", "\r\n").encode(), BrokenLines(0, 0, 0, 0, 0), 3),
    "quoted": (b'who,ward,age\nx,"a,b",3\ny,"a ""b""",4\n', BrokenLines(0, 0, 0, 0, 0), 2),
    "broken over lines": (b'who,ward,age\nx,"a\nb",3\ny,b,4\n', BrokenLines(0, 0, 2, 0, 2), 3),
    "ragged": (b"who,ward,age\nx\ny,b\nz,b,1,2,3\nw,b,1\n", BrokenLines(0, 0, 2, 1, 0), 4),
    "quotes": (b'who,ward,age\nx,"un"closed,3\ny,b,1\n', BrokenLines(0, 0, 0, 0, 1), 2),
    "both": (b"who,ward,age\nx,\xff\ny,b\n\xfe,a,1,2\nz,b,1\n", BrokenLines(2, 0, 1, 0, 0), 2),
    "long": (
        b"who,ward,age\nx," + b"9" * 3_000_000 + b",1\ny,b,1\n",
        BrokenLines(0, 1, 0, 0, 0),
        1,
    ),
    "longer": (
        b"who,ward,age\nx," + b"9" * 1_000_000 + b",1\ny,b,1\n",
        BrokenLines(0, 1, 0, 0, 0),
        1,
    ),
}


@cases(3, 30)
def test_a_row_is_a_line_whatever_is_on_it(tmp_path: Path, count: int) -> None:
    """Random lines of quotes, NULs, line ends and bytes that are no letters, against the rules."""
    with DuckDB() as engine:
        for seed in range(count):
            content = b"a,b,c\n" + oracle.hostile(seed, 400)
            path = tmp_path / f"{seed}.csv"
            path.write_bytes(content if seed % 2 else b"\xef\xbb\xbf" + content)
            found = [tuple(row.values()) for row in engine.run(engine.open(path)).to_pylist()]
            assert sorted(found, key=repr) == sorted(oracle.rows(path.read_bytes()), key=repr)
        together = engine.run(engine.open(tmp_path))
        assert len(together) == sum(
            len(oracle.rows(file.read_bytes())) for file in tmp_path.iterdir()
        )


@pytest.mark.parametrize(
    "evil", [oracle.EVIL, b'"', b'evil,"', b"evil,\x00", b"\xff", b"x\r", b"\\", b"9" * 3_000_000]
)
def test_one_line_changes_its_own_row_only(tmp_path: Path, evil: bytes) -> None:
    """Everyone after a quote that is not closed used to disappear."""
    lines = [b"p%d,w%d,%d" % (place, place % 3, place) for place in range(3000)]
    lines.insert(99, evil)
    (tmp_path / "t.csv").write_bytes(b"who,ward,age\n" + b"\n".join(lines) + b"\n")
    with DuckDB() as engine:
        data = engine.open(tmp_path / "t.csv")
        kept = data.filter(data["who"].like("p%"))
        found = engine.run(kept.aggregate(rows=kept.count(), people=kept["who"].nunique()))
    assert found.to_pylist() == [{"rows": 3000, "people": 3000}]


@pytest.mark.parametrize("name", FILES)
def test_lines_that_break_the_rules_are_counted(tmp_path: Path, name: str) -> None:
    content, expected, rows = FILES[name]
    path = tmp_path / "it's [1].csv"
    path.write_bytes(content)
    assert find_broken_lines([str(path)]) == expected
    with DuckDB() as engine:  # what is counted as dropped is what a release does not see
        assert len(engine.run(engine.open(path))) == rows


def test_files_are_counted_together(tmp_path: Path) -> None:
    for place in range(3):
        (tmp_path / f"{place}.csv").write_bytes(FILES["latin-1"][0])
    with gzip.open(tmp_path / "4.csv.gz", "wb") as file:
        file.write(FILES["ragged"][0])
    with DuckDB() as engine:
        table = Table(tmp_path, "who", {"ward": ["a", "b"], "age": (0, 10)}, engine=engine)
        found = {each.what: each.rows for each in check_table(table, ["ward = 'a'"])}
    assert found == {
        "rows": 10,
        "privacy units": 4,
        "privacy units with 1 row": 2,
        "privacy units with 2 rows": 0,
        "privacy units with 3 to 5 rows": 2,
        "privacy units with 6 to 10 rows": 0,
        "privacy units with 11 to 100 rows": 0,
        "privacy units with more than 100 rows": 0,
        "the most rows of one privacy unit": 4,
        "privacy units with more rows than count, 1": 2,
        "ward: privacy units in more than one cell": 1,
        "ward: the most cells of one privacy unit": 2,
        "rows without a privacy unit, which are dropped": 0,
        'ward: not a declared value, in "other"': 1,
        "age: no number there": 2,
        "age: outside 0..10, clamped": 3,
        "where ward = 'a'": 3,
        "lines that are not UTF-8, which are dropped": 3,
        "lines of more than a million bytes, which are dropped": 0,
        "lines with too few fields, padded": 2,
        "lines with too many fields, cut": 1,
        "lines with quotes that are not CSV's, read as letters": 0,
    }


def test_the_command_counts_them(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "t.csv").write_bytes(FILES["both"][0])
    (tmp_path / "s.toml").write_text(
        '[target]\nepsilon = 1\n[table]\nsource = "t.csv"\nprivacy_unit = "who"\n[[queries]]\n'
        'kind = "count"\n',
        encoding="utf-8",
    )
    assert main(["inspect", str(tmp_path / "s.toml"), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["private"] is True
    what = "lines that are not UTF-8, which are dropped"
    assert {"what": what, "rows": 2} in data["findings"]
    assert {"what": "lines with too few fields, padded", "rows": 1} in data["findings"]


def test_no_cell_of_a_first_line_is_quoted(tmp_path, run):
    """A file without a header: its first line is somebody's row."""
    (tmp_path / "people.csv").write_text("Ann,4711,surgery\nBob,4712,medicine\n")
    scenario = tmp_path / "ask.toml"
    asked = 'where = "ward = 1"', 'where = "Ana = 1"'
    for unit, where in (("patient", ""), ("Ann", asked[0]), ("An", ""), ("An", asked[1])):
        text = "[target]\nepsilon = 1\n[table]\nsource = 'people.csv'\n"
        scenario.write_text(
            f"{text}privacy_unit = '{unit}'\n[[queries]]\nkind = 'count'\n{where}\n"
        )
        for command in ("release --dry-run", "release"):
            code, out, err = run(command, scenario)
            assert code == 2 and "name a column as the header spells it" in err, err
            assert not any(cell in out + err.replace(f"'{unit}'", "") for cell in ("Ann", "4711"))


def test_a_declared_column_is_suggested(tmp_path, run):
    """Its name is in the scenario; the file's own first line stays unsaid."""
    (tmp_path / "people.csv").write_text("who,ward,wart\nAnn,x,y\n")
    text = "[target]\nepsilon = 1\n[table]\nsource = 'people.csv'\nprivacy_unit = 'who'\n"
    text += "[domains]\nward = ['x', 'y']\n[[queries]]\nkind = 'count'\n"
    (tmp_path / "ask.toml").write_text(f"{text}by = ['wrad']\n")
    code, _out, err = run("release --dry-run", tmp_path / "ask.toml")
    assert code == 2 and "no column 'wrad'; did you mean 'ward'?" in err and "wart" not in err
    (tmp_path / "ask.toml").write_text(text)
    code, _out, err = run("sql", tmp_path / "ask.toml", "SELECT COUNT(*) FROM people GROUP BY wrad")
    assert code == 2 and "no column 'wrad'; did you mean 'ward'?" in err and "wart" not in err


@pytest.mark.parametrize(
    ("question", "nearest"),
    [
        ("where = \"tail_num = 'x'\"", "tailnum"),  # the same letters
        ('by = ["Tail Num"]', "tailnum"),
        ('where = "agee > 3"', "age"),
        ("where = \"coutry = 'x'\"", "country"),  # a level
        ('by = ["orign"]', None),  # nobody declared it
        ('where = "zzz = 1"', None),
    ],
)
def test_declared_columns_are_suggested_beside_a_first_line(tmp_path, question, nearest):
    """All columns are texts, so that the names may be the cells of somebody's row."""
    (tmp_path / "t.csv").write_text("who,tailnum,origin,age,dest\nAnn,N1,JFK,seven,LAX\n")
    text = "[target]\nepsilon = 1\n[table]\nsource = 't.csv'\nprivacy_unit = 'who'\n[domains]\n"
    dest = "{ values = ['LAX', 'BOS'], parents = { country = { US = ['LAX', 'BOS'] } } }"
    text += f"age = '0..9'\ndest = {dest}\n[[queries]]\nkind = 'count'\n"
    (tmp_path / "ask.toml").write_text(text + question)
    with pytest.raises(InvalidInput) as caught:
        load_scenario(tmp_path / "ask.toml").estimate_cost()
    assert caught.value.nearest == nearest


def test_files_of_a_folder_that_are_not_read_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.csv", "sub/b.csv", "_c.csv", "notes.md"):
        (folder / name).write_text("who\nx\n", encoding="utf-8")
    with gzip.open(folder / "d.csv.gz", "wt", encoding="utf-8") as file:
        file.write("who\ny\n")
    packed = tmp_path / "packed"  # a hidden file of another kind does not make it unknown
    packed.mkdir()
    (packed / "d.csv.gz").write_bytes((folder / "d.csv.gz").read_bytes())
    (packed / "_old.parquet").write_bytes(b"PAR1")
    with DuckDB() as engine:
        found = check_table(Table(folder, "who", engine=engine))
        assert len(engine.run(engine.open(packed))) == 1
    findings = {each.what: each.rows for each in found}
    assert findings["rows"] == 3
    assert findings["files of the folder that are not read, such as _c.csv"] == 2
