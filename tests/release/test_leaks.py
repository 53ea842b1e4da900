"""Nothing about the rows shows outside the ledger's noisy answers.

The attack: two neighbouring tables, one of them with a privacy unit whose rows hold everything that
could trip an engine. All that an onlooker sees besides the answers' numbers (exceptions, messages,
columns, labels, types, ledger entries, warnings, log lines, output) must be the same.
"""

from __future__ import annotations

import datetime
import decimal
import logging
import math
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import release_oracle as oracle
import whosin as wi
from whosin import release
from whosin.release import Range, Session, contribution_bounds

NAN, INF = float("nan"), math.inf
SCHEMA = pa.schema(
    {
        "who": pa.string(),
        "i": pa.int64(),
        "f": pa.float64(),
        "t": pa.string(),
        "d": pa.decimal128(38, 2),
        "day": pa.date32(),
        "sec": pa.timestamp("s"),
        "b": pa.bool_(),
    }
)
PLAIN = [
    (f"p{n}", n, n / 2, str(n), decimal.Decimal(n), datetime.date(2020, 1, 1 + n), n, n % 2 == 0)
    for n in range(5)
]
FAR = decimal.Decimal("9" * 30)
POISON = [
    (None, None, None, None, None, None, None, None),
    ("x", 2**63 - 1, NAN, "abc", FAR, 2**31 - 2, 2**62, None),
    ("x", -(2**63), INF, "1e999", -FAR, -(2**31) + 2, -(2**62), True),
    ("x", 0, -INF, "", None, None, None, False),
    ("x", None, None, "nan", decimal.Decimal("0.01"), 0, 0, None),
    ("x", 7, 0.0, "-9223372036854775809", None, None, 2**55, None),
    ("x", 8, 1e308, "\x00\ud7ff'\"; drop", None, None, None, None),
    ("x", 9, -0.0, "9" * 400, None, None, None, None),
]
DOMAINS = {
    "i": Range(-(10**9), 10**9, step=1),
    "f": Range(-1, 1, edges=(-1, 0, 1)),
    "t": Range(0, 10, edges=(0, 5, 10)),
    "d": Range(0, 10),
    "b": [True, False],
}
QUERIES = [
    release.Count(where="i / (i - 7) > 0 or cast(t as int) / f < 3"),
    release.Count(where="cast(t as date) < '2020-01-01' or year(day) > 2000 or month(sec) = 1"),
    release.Count(where="d * d * d * d > 5 and i * i * i * i * 1e300 > f - f and t like '%a%'"),
    release.Count(where="cast(f as int) = 5 or cast(i as varchar) = t or abs(i) > 1 or -i > 2"),
    release.Count(where="day = sec or sec between '2000-01-01' and '2001-01-01' or b is null"),
    release.Rows(by=("f", "b"), max_rows_per_group=2, max_groups=2),
    release.Sum(column="i", max_rows_per_group=3),
    release.Sum(column="f", by="b"),
    release.Mean(column="t"),
    release.Variance(column="d", max_rows_per_group=2),
    release.Histogram(column="t"),
    release.Quantile(column="f", points=9),
    release.Quantile(column="i", points=9, max_rows_per_group=2),
    release.Top(by="t", k=2),
    release.Marginals(columns=["f", "t", "b"], order=2, max_rows_per_group=2),
]


def stored(rows: list[tuple]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    arrays = []
    for field, column in zip(SCHEMA, columns, strict=True):
        values = list(column)
        if field.type == pa.date32():
            start = datetime.date(1970, 1, 1)
            values = [(v - start).days if isinstance(v, datetime.date) else v for v in values]
            arrays.append(pa.array(values, pa.int32()).cast(pa.date32()))
        elif field.type == pa.timestamp("s"):
            arrays.append(pa.array(values, pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def crowded(count: int) -> pa.Table:
    """One privacy unit with very many rows."""
    row = stored([("x", 2**63 - 1, INF, "9", FAR, 2**31 - 2, 2**62, True)])
    return pa.concat_tables(
        [stored(PLAIN), row.take(pa.array(np.zeros(count, dtype=np.int64)))]
    ).combine_chunks()


def shape(answer: release.Answer) -> tuple:
    """What shows of an answer but its numbers."""
    numbers = {"value", "low", "high", "all_low", "all_high", "whole"}
    chosen = answer.columns[0] == "rank"
    return (
        answer.title,
        answer.columns,
        answer.noise,
        answer.cost,
        [
            tuple(
                isinstance(cell, int | float) if name in numbers or chosen else cell
                for name, cell in zip(answer.columns, row, strict=True)
            )
            for row in answer.rows
        ]
        if not chosen
        else len(answer.rows),
        answer.question,
        [each["columns"] for each in (answer.details or {}).get("measured", ())],
    )


def observed(source, folder, capfd, caplog, queries=QUERIES, plan=None, domains=DOMAINS) -> dict:
    """All that an onlooker sees of a whole session."""
    folder.mkdir()
    caplog.clear()
    seen: dict = {"answers": [], "errors": []}
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        with wi.Ledger(folder / "ledger.db", who="tests") as ledger:
            try:
                data = (
                    oracle.table(source, domains, max_rows_per_group=3, max_groups=2)
                    if isinstance(source, pa.Table)
                    else wi.Table(source, "who", domains, max_rows_per_group=3, name="people")
                )
                plan = oracle.PLANS["add-remove"] if plan is None else plan
                session = Session(data, plan, ledger, request="r", share=1)
                for estimate in session.dry_run(queries):
                    seen["answers"].append(
                        (estimate.noise, estimate.error, estimate.within, estimate.spend)
                    )
                seen["answers"] += [shape(answer) for answer in session.release(queries)]
            except Exception as error:
                seen["errors"].append((type(error), str(error), repr(error.__context__)))
            for entry in ledger.history("people"):
                apart = ("when", "digest", "table")  # the file's name, which is not of its rows
                body = {key: v for key, v in entry.body.items() if key not in apart}
                if "registration" in body:  # of which the source is a digest under a random key
                    assert len(body["registration"]["source"]) == 64
                    body["registration"] = body["registration"] | {"source": ""}
                if "terms" in body:  # a digest of the dataset's terms, that source among them
                    assert len(body.pop("terms")) == 64
                seen["answers"].append((entry.kind, entry.request, repr(body)))
    seen["warnings"] = sorted({str(each.message) for each in caught})
    seen["log"] = sorted({(record.name, record.levelname) for record in caplog.records})
    output = capfd.readouterr()
    seen["output"] = output.out + output.err
    return seen


@pytest.fixture
def onlooker(tmp_path, capfd, caplog):
    count = iter(range(100))
    return lambda source, **options: observed(
        source, tmp_path / str(next(count)), capfd, caplog, **options
    )


def test_no_row_changes_what_an_onlooker_sees(onlooker) -> None:
    truth = onlooker(stored(PLAIN))
    assert not truth["errors"] and not truth["output"]
    assert len(truth["answers"]) == 4 * len(QUERIES) + 1
    assert onlooker(stored(PLAIN + POISON)) == truth


@pytest.mark.soak
def test_neither_does_any_one_of_them_alone_nor_a_million_rows(onlooker) -> None:
    truth = onlooker(stored(PLAIN))
    assert onlooker(stored([])) == truth
    for row in POISON + PLAIN:
        assert onlooker(stored([*PLAIN, row])) == truth
    assert onlooker(crowded(1_000_000)) == truth


class Broken(release.Count):
    def exact(self, table, cells):
        return table.data.aggregate(people=table.data["t"].cast("int64").sum())


def test_the_attack_would_see_a_difference(onlooker) -> None:
    """A condition whose error shows: the attack must notice."""
    broken = Broken()
    truth = onlooker(stored(PLAIN), queries=[broken])
    assert onlooker(stored(PLAIN + POISON), queries=[broken]) != truth


HEADER = b"who,i,f,t,b\n"
LINES = b"".join(b"p%d,%d,%d.5,%d,true\n" % (n, n, n, n) for n in range(5))
BAD_LINES = [
    b"x\n",
    b"x,1\n",
    b"x,1,2,3,4,5,6,7,8\n",
    b"x,\xff\xfe,1,2,true\n",
    b"\xff,1,1,2,true\n",
    b'x,"a ""b"" c",1,2,true\n',
    b'x,"a\nb",1,2,true\n',
    b"x,abc,1e999,nan,maybe\n",
    b"\n\n,,,,\n",
    b"x;1;2;3;4\n" * 30,
    b"x\t1\t2\n" * 30,
    b"who,i,f,t,b\n",
    b"x,1,2,\x00,true\n",
    b"x,1,2,3,true\r\n",
    b"# x\n",
    b"x," + b"9" * 3_000_000 + b",1,1,true\n",
]
CSV_DOMAINS = {key: DOMAINS[key] for key in ("i", "f", "t")} | {"b": ["true", "false"]}
CSV_QUERIES = [
    release.Count(where="i / f > 0 and cast(t as int) < 3 or cast(b as boolean)"),
    release.Sum(column="i", by="b"),
    release.Quantile(column="f", points=5),
]


@pytest.mark.parametrize(
    "places", [(9,), pytest.param(range(len(BAD_LINES)), marks=pytest.mark.soak)], ids=len
)
def test_no_line_of_a_text_file_does(tmp_path, onlooker, places) -> None:
    """Among others, before others, and, at these places of the list, alone."""

    def file(name: str, *lines: bytes):
        path = tmp_path / f"{name}.csv"
        path.write_bytes(HEADER + b"".join(lines))
        return path

    options = {"queries": CSV_QUERIES, "domains": CSV_DOMAINS}
    truth = onlooker(file("plain", LINES), **options)
    assert not truth["errors"]
    assert onlooker(file("first", *BAD_LINES, LINES), **options) == truth
    if len(places) > 1:
        assert onlooker(file("all", LINES, *BAD_LINES), **options) == truth
        assert onlooker(file("none"), **options) == truth
    for place in places:
        found = onlooker(file(f"only{place}", BAD_LINES[place]), **options)
        assert found == truth, BAD_LINES[place][:30]


def test_no_text_of_a_parquet_file_does(tmp_path, onlooker) -> None:
    bad = pa.array([b"a", b"\xff\xfe", b"\xc3"], pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 3, bad.buffers())
    for name, texts in (("good", pa.array(["a", "b", "c"])), ("bad", broken)):
        table = pa.table({"who": texts, "w": texts, "n": [1, 2, 3]})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    queries = [
        release.Count(by="w"),
        release.Count(where="lower(w) = 'a' or length(w) > 1 or w like '%a' or trim(w) = 'x'"),
        release.Keys(column="w"),
    ]
    options = {
        "queries": queries, "domains": {"w": ["a", "b"]}, "plan": oracle.WITH_DELTA["add-remove"]
    }  # fmt: skip
    truth = onlooker(tmp_path / "good.parquet", **options)
    assert not truth["errors"]
    assert onlooker(tmp_path / "bad.parquet", **options) == truth


def test_a_synthetic_table_shows_its_length_only(tmp_path, onlooker) -> None:
    query = release.Synthetic(columns=["b", "t"], path=str(tmp_path / "o.parquet"))
    options = {"queries": [query], "plan": oracle.PLANS["replace"]}
    truth = onlooker(stored(PLAIN), **options)
    (tmp_path / "o.parquet").unlink()
    changed = onlooker(stored(PLAIN[:4] + POISON), **options)
    for seen in (truth, changed):
        (place,) = (n for n, each in enumerate(seen["answers"]) if each[0] == "synthetic")
        answer = list(seen["answers"][place])
        answer[4] = [row[:2] for row in answer[4]]  # the last column is the file's digest
        seen["answers"][place] = answer
    assert changed == truth and not truth["errors"]


def test_sums_that_no_integer_holds_saturate(monkeypatch) -> None:
    monkeypatch.setattr(contribution_bounds, "MAX_SUM", 100)
    data = oracle.table({"who": [1, 2, 3], "x": [60.0, 60.0, -1.0]}, {"x": Range(-99, 99, step=1)})
    assert oracle.exact(release.Sum(column="x"), data) == [[100]]
