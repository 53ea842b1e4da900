"""The rows of files that audits read: a leak is seen however the same table is written."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest

import whosin as wi
from amounts import some
from whosin.errors import InvalidInput


@pytest.fixture
def run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(line, *more):
        repeat = () if line.split()[0] in ("scores", "run") else ("--seed", "1")
        return run(f"audit {line}", *more, *repeat)

    return call


def people(leak):
    """Rows of numbers and of words with spaces, and a synthetic table: real rows, a little off."""
    rng = np.random.default_rng(1)
    numbers = rng.normal(size=(600, 5))
    towns = np.array(["New York", "San José, CA", "Rome"])[rng.integers(0, 3, 600)]
    rows = [[*map(str, row.round(4)), town] for row, town in zip(numbers, towns, strict=True)]
    off = numbers[:300] if leak else rng.normal(size=(300, 5))
    moved = (off + 0.01 * rng.normal(size=off.shape)).round(4)
    made = [[*map(str, row), town] for row, town in zip(moved, towns, strict=False)]
    return {"train": rows[:300], "holdout": rows[300:], "made": made}


HEADER = ["a", "b b", "c", "d", "e", "home town"]


def write(folder, tables, how):
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            how(file, [list(HEADER), *map(list, rows)])


def plain(file, rows):
    csv.writer(file).writerows(rows)


def with_mark_and_quotes(file, rows):
    file.write("\ufeff")
    csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\r\n").writerows(rows)


def with_semicolons(file, rows):
    rows = [[*(cell.replace(".", ",") for cell in row[:5]), row[5]] for row in rows]
    csv.writer(file, delimiter=";").writerows(rows)


def with_tabs_and_empty_lines(file, rows):
    csv.writer(file, delimiter="\t", lineterminator="\n\n").writerows(rows)


def with_spaces(file, rows):
    file.writelines(", ".join([*row[:5], f'"{row[5]}"']) + "\n" for row in rows)


def with_missing_numbers(file, rows):
    for place, row in enumerate(rows[1:]):
        row[place % 5] = ("", "NA", row[place % 5])[min(place % 20, 2)]
    csv.writer(file).writerows(rows)


def with_lines_in_cells(file, rows):
    csv.writer(file).writerows([*row[:5], row[5].replace(" ", "\n")] for row in rows)


WAYS = [
    plain,
    with_mark_and_quotes,
    with_semicolons,
    with_tabs_and_empty_lines,
    with_spaces,
    with_missing_numbers,
    with_lines_in_cells,
]
LINE = "synthetic train.csv holdout.csv made.csv --at-most 1 --json"


@pytest.mark.parametrize("how", some(WAYS, 3))
def test_a_synthetic_table_that_leaks_is_seen_however_it_is_written(run, tmp_path, how):
    """Rows used to be split at white space, so that a row was one word: nothing was near it."""
    write(tmp_path, people(leak=True), how)
    code, out, err = run(LINE)
    assert (code, err) == (1, "") and json.loads(out)["epsilon"] > 2


def test_an_honest_synthetic_table_is_not_refuted(run, tmp_path):
    write(tmp_path, people(leak=False), plain)
    code, out, _err = run(LINE)
    assert code == 0 and json.loads(out)["columns"] == {"numbers": 5, "words": 1}
    assert "5 of numbers, 1 of words" in run(LINE.replace(" --json", ""))[1]


def test_a_word_among_numbers_hides_no_leak():
    """A column of numbers in the synthetic table, and one word among them in another."""
    rng = np.random.default_rng(2)
    rows = rng.integers(0, 90, size=(600, 4)).astype(object)
    rows[5, :] = rows[400, :] = "unknown"
    found = wi.audit.synthetic(rows[:300], rows[300:], rows[10:290], guesses=20, seed=1)
    assert found.epsilon > 1.5
    found = wi.audit.synthetic(rows[:300], rows[300:], rows[:290], guesses=20, seed=1)
    assert found.epsilon > 1.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n3\n", "line 3 of made.csv has 1 cell"),
        ("a,b\n1,2\n3,4,5\n", "line 3 of made.csv has 3 cells"),
        ("a,b\n", "made.csv has a header and no rows"),
        ("", "made.csv is empty"),
        ("a,a\n1,2\n", "made.csv has the column 'a' more than once"),
        ("a,c\n1,2\n", "made.csv does not have the same columns as train.csv"),
        ('a,b\n1,"secret\n', "made.csv is not CSV"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_by_its_line(run, tmp_path, text, words):
    for name in ("train", "holdout"):
        lines = "".join(f"{place},{name}\n" for place in range(40))
        (tmp_path / f"{name}.csv").write_text("a,b\n" + lines, encoding="utf-8")
    (tmp_path / "made.csv").write_text(text, encoding="utf-8")
    code, out, err = run("synthetic train.csv holdout.csv made.csv")
    assert (code, out) == (2, "") and words in err and "secret" not in err


def test_one_file_for_two_of_the_tables_is_refused(run, tmp_path):
    write(tmp_path, people(leak=True), plain)
    code, _out, err = run("synthetic train.csv train.csv made.csv")
    assert code == 2 and "holdout" in err


@pytest.mark.parametrize(("mark", "header"), [(",", True), (";", False), ("\t", True)])
def test_drawn_outputs_are_read_however_they_are_written(run, tmp_path, mark, header):
    rng = np.random.default_rng(3)
    for name, shift in (("with", 3.0), ("without", 0.0)):
        drawn = rng.laplace(shift, 1, size=(1500, 2)).round(3)
        lines = ["one  x,two"] * header + [f"{a},{b}" for a, b in drawn]
        text = "\ufeff" + "\n".join(lines).replace(",", mark)
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    line = "samples with.csv without.csv --at-most 1"
    assert run(line)[0] == 1


def test_drawn_texts_may_have_lines_and_quotes(run, tmp_path):
    rng = np.random.default_rng(4)
    for name, rate in (("with", 0.9), ("without", 0.1)):
        drawn = [["yes\nyou were", "no, not you"][rng.random() > rate] for _ in range(2000)]
        with (tmp_path / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([text] for text in drawn)
    line = "samples with.csv without.csv --at-most 1 --json"
    code, out, _err = run(line)
    assert code == 1 and json.loads(out)["samples"] == 2000


def scores(rng, flag, mark=",", spaces=""):
    coins = rng.random(300) < 0.5
    told = 4 * coins + rng.normal(size=300).round(3)
    rows = [[flag, "score"], *([f"{c:d}", f"{t}"] for c, t in zip(coins, told, strict=True))]
    return "\n".join(f"{mark}{spaces}".join(row) for row in rows)


@pytest.mark.parametrize(("mark", "spaces"), [(",", " "), (";", ""), ("\t", "")])
def test_scores_are_read_however_they_are_written(run, tmp_path, mark, spaces):
    rng = np.random.default_rng(5)
    for form, flag in (("scores", "member"), ("run", "included")):
        (tmp_path / "told.csv").write_text("\ufeff" + scores(rng, flag, mark, spaces), "utf-8")
        assert run(f"{form} told.csv --at-most 1")[0] == 1


def test_files_of_a_folder_are_all_read_or_named(run, tmp_path):
    """What was not called *.csv used to be left out without a word."""
    rng = np.random.default_rng(6)
    (tmp_path / "runs").mkdir()
    for name in ("a.csv", "B.CSV", ".hidden"):
        (tmp_path / "runs" / name).write_text(scores(rng, "included"), encoding="utf-8")
    code, out, _err = run("run runs --json")
    assert code == 0 and json.loads(out)["canaries"] == 600
    (tmp_path / "runs" / "c.txt").write_text(scores(rng, "included"), encoding="utf-8")
    code, _out, err = run("run runs")
    assert code == 2 and "c.txt" in err
    (tmp_path / "runs" / "c.txt").unlink()
    (tmp_path / "runs" / "more").mkdir()
    code, _out, err = run("run runs")
    assert code == 2 and "more" in err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("member,score\n1,0,5\n", "line 2 of told.csv has 3 cells"),
        ("member,score\n1\n", "line 2 of told.csv has 1 cell"),
        ("Ann Smith,score\n1,2\n", "told.csv has no column 'member'"),
        ("Ann Smith\n", "told.csv"),
        *(
            (f"member,score\n{row}\n", "line 2 of told.csv")
            for row in ("Ann Smith,2", "1,Ann Smith", '1,"0,5"', "1,", "1,nan", ",3")
        ),
    ],
)
@pytest.mark.parametrize(("form", "flag"), [("scores", "member"), ("run", "included")])
def test_a_wrong_score_is_named_by_its_line_and_not_quoted(run, tmp_path, form, flag, text, words):
    (tmp_path / "told.csv").write_text(text.replace("member", flag), encoding="utf-8")
    code, out, err = run(f"{form} told.csv")
    assert (code, out) == (2, "") and words.replace("member", flag) in err
    assert err.count("\n") == 1 and "Smith" not in err


FIT = """
import numpy as np
def fit(rows):
    features, labels = rows
    assert list(features.columns) == ["a b", "c"], features.columns
    return set(features["c"])
def score(model, rows):
    rng = np.random.default_rng(1)
    return np.array([c in model for c in rows[0]["c"]]) + 0.3 * rng.normal(size=len(rows[0]))
"""


@pytest.mark.parametrize("mark", [",", ";"])
def test_rows_of_a_training_are_read_however_they_are_written(run, tmp_path, mark):
    (tmp_path / "train.py").write_text(FIT, encoding="utf-8")
    lines = ["a b,c,label", *(f"x y,{place},{place % 2}" for place in range(200))]
    text = "\ufeff" + "\n".join(lines).replace(",", mark)
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    code, _out, err = run(
        "training train.py:fit --rows rows.csv --label label --at-most 1 --shadows 0"
    )
    assert code == 1, err


def test_rows_from_a_file_without_pandas_name_the_extra(run, tmp_path, monkeypatch):
    from whosin import errors

    real = errors.find_spec
    monkeypatch.setattr(errors, "find_spec", lambda name: None if name == "pandas" else real(name))
    (tmp_path / "train.py").write_text(FIT, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("a,label\n1,2\n", encoding="utf-8")
    code, out, err = run("training train.py:fit --rows rows.csv --label label")
    assert (code, out) == (3, "")
    install = ".venv/bin/pip install -c constraints.txt -e '.[frames]'"  # this is a checkout
    assert err == f"whosin: rows from a CSV file need whosin[frames]: {install}\n"


def test_paths_are_no_samples_in_python(tmp_path):
    with pytest.raises(InvalidInput, match="train"):
        wi.audit.synthetic("train.csv", "holdout.csv", "made.csv")


def test_a_claim_does_not_pass_because_nobody_reads_the_answer(tmp_path):
    rng = np.random.default_rng(1)
    for name, shift in (("a", 9), ("b", 0)):
        np.savetxt(tmp_path / f"{name}.csv", rng.laplace(shift, 1, 500).round(3))
    words = ["audit", "samples", "a.csv", "b.csv", "--at-most", "1"]
    script = f"import sys; from whosin.app.cli.main import main; sys.exit(main({words}))"
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
    assert process.returncode == 141
