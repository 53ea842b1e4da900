"""The neighbouring-table attack through `whosin release`: what a shell sees tells no rows apart.

Everything but the answers' numbers is compared: exit code, both streams, the files that are made,
their columns, types and labels. Numbers are masked as a whole: noise changes how long they are.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from whosin.app.cli.main import main

HIDDEN = ("head", "request", "last", "noisy", "noisy_note")  # random, or the time
NAN, INF = float("nan"), float("inf")
PLAIN = [(f"p{n}", "ab"[n % 2], n / 2, n) for n in range(6)]
SCHEMA = pa.schema({"who": pa.string(), "ward": pa.string(), "x": pa.float64(), "n": pa.int64()})
TABLES: dict[str, list[tuple]] = {
    "plain": PLAIN,
    "one fewer": PLAIN[:-1],
    "empty": [],
    "no entity": [*PLAIN, (None, "a", 1.0, 1)],
    "odd": [*PLAIN, ("q", "zz", NAN, 2**63 - 1), ("q", None, INF, -(2**63)), ("q", "", -INF, None)],
    "crowded": [*PLAIN, *[("q", "a", 1e308, 7)] * 20_000],
}
SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "people.{kind}"
privacy_unit = "who"
max_rows_per_group = 2
[domains]
ward = ["a", "b"]
x = {{ edges = [0, 1, 2, 3] }}
n = "0..10"
[[queries]]
kind = "count"
[[queries]]
kind = "rows"
by = ["ward", "x"]
where = "n / (n - 7) > 0 or cast(ward as int) > x"
[[queries]]
kind = "mean"
column = "x"
by = ["ward"]
[[queries]]
kind = "variance"
column = "n"
[[queries]]
kind = "quantile"
column = "n"
points = 11
"""


def masked(text: str) -> list[str]:
    """Words with their numbers hidden, and the marks of those that are too noisy; how wide a table
    is drawn depends on the numbers."""
    text = re.sub(r"\* Too\s+noisy[^*]*?cells\)\.|\* Too\s+noisy[^*]*?%\.|\*", "", text)
    text = re.sub(r"\b[0-9a-f]{32,64}\b", "H", text)
    text = re.sub(r"[-−+±]?\d[\d,.]*(e[-+]?\d+)?", "N", text)
    return re.sub(r"[─━]+", "─", text).split()


def outline(value: Any) -> Any:
    """JSON data with its numbers hidden."""
    if isinstance(value, dict):
        return {key: outline(each) for key, each in value.items() if key not in HIDDEN}
    if isinstance(value, list):
        return [outline(each) for each in value]
    return "N" if isinstance(value, int | float) and not isinstance(value, bool) else value


def cell(text: str) -> str:
    """A cell with its number, or its mark of too much noise, hidden."""
    return "N" if re.fullmatch(r"-?\d+(\.\d+)?(e[-+]?\d+)?|true|false", text) else text


def written(folder: Path) -> dict[str, Any]:
    """The files that a release made, as to shape."""
    found: dict[str, Any] = {}
    for file in sorted(folder.iterdir()):
        if file.name.startswith("people."):
            continue
        found[file.name] = None
        if file.suffix == ".json":
            found[file.name] = outline(json.loads(file.read_text(encoding="utf-8")))
        elif file.suffix == ".csv":
            with file.open(encoding="utf-8", newline="") as lines:
                found[file.name] = [list(map(cell, row)) for row in csv.reader(lines)]
    return found


Seen = Callable[..., dict[str, Any]]


def release(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    rows: list[tuple],
    kind: str,
    *options: str,
) -> dict[str, Any]:
    """All that a shell sees of `whosin release`."""
    folder.mkdir()
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in SCHEMA]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    if kind == "parquet":
        pq.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), folder / "people.parquet")
    else:
        lines = (",".join("" if each is None else str(each) for each in row) for row in rows)
        text = "\n".join(["who,ward,x,n", *lines])
        (folder / "people.csv").write_text(text + "\n", encoding="utf-8")
    (folder / "s.toml").write_text(SCENARIO.format(kind=kind), encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "200")
        code = main(["release", "s.toml", "--no-preflight", *options])
    found = capfd.readouterr()
    out = outline(json.loads(found.out)) if "--json" in options else masked(found.out)
    return {"code": code, "out": out, "err": found.err, "files": written(folder)}


@pytest.fixture
def seen(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Seen:
    return partial(release, capfd, monkeypatch)


SAVED = {"parquet": ("--save", "a.csv"), "csv": ("--json", "--save", "a.json")}


def compare(seen: Seen, folder: Path, kind: str, names: list[str]) -> None:
    truth = seen(folder / "plain", TABLES["plain"], kind, *SAVED[kind])
    assert (truth["code"], truth["err"]) == (0, "")
    assert len(truth["files"]) == (8 if kind == "parquet" else 4)
    for name in names:
        assert seen(folder / name, TABLES[name], kind, *SAVED[kind]) == truth, name


def test_no_row_changes_what_a_shell_sees(tmp_path: Path, seen: Seen) -> None:
    compare(seen, tmp_path, "parquet", ["odd"])


@pytest.mark.soak
@pytest.mark.parametrize("kind", SAVED)
def test_neither_does_any_other_table(tmp_path: Path, seen: Seen, kind: str) -> None:
    compare(seen, tmp_path, kind, [name for name in TABLES if name != "plain"])


def test_the_attack_sees_another_shape(tmp_path: Path) -> None:
    """Another label, column or file is noticed: the masks hide numbers alone."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.csv").write_text('"ward","value"\n"a",1\n', encoding="utf-8")
    one = written(tmp_path / "one")
    (tmp_path / "one" / "a.csv").write_text('"ward","value"\n"a",27.5\n', encoding="utf-8")
    assert written(tmp_path / "one") == one
    for other in (
        '"ward","value"\n"b",1\n',
        '"ward","value"\n"a",1\n"b",1\n',
        '"w","value"\n"a",1\n',
    ):
        (tmp_path / "one" / "a.csv").write_text(other, encoding="utf-8")
        assert written(tmp_path / "one") != one
    assert masked("a 1.5 ±3") == masked("a 22 ±1,000") != masked("b 1.5 ±3")
