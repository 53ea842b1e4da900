"""SQL as a way to ask: answers before noise are pandas', and what cannot be asked is refused."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import whosin as wi
from amounts import cases
from command import answer, refused
from engine_rows import exact
from release_oracle import ENGINE
from whosin.app.cli.main import main
from whosin.errors import InvalidInput
from whosin.release import Dates, FurtherTable, LookupTable, Range, Session, Table, Values
from whosin.release.conditions import parse_condition
from whosin.release.contribution_bounds import ContributionBounds
from whosin.release.cost import Share, noisy_parts
from whosin.release.queries import QUERIES, Deviation, Mean, Sum, Variance
from whosin.release.queries.base import read_query, scenario_keys
from whosin.release.sql import parse_queries

WARDS = ["A", "B", "C"]
DOMAINS: dict[str, Any] = {
    "ward": Values(tuple(WARDS), parents={"site": {"north": ["A"], "south": ["B", "C"]}}),
    "days": Range(0, 40, 1),
    "age": Range(0, 99, 1),
    "visit": Dates("2020-01-01", "2023-12-31", "month"),
}
PLAN = wi.calibrate(wi.Epsilon(1))


def frame(seed: int, size: int = 400) -> pd.DataFrame:
    """Rows with missing values, within the declared domains, several a person."""
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            "patient": rng.integers(0, size // 3, size),
            "ward": rng.choice(np.array([*WARDS, None], object), size),
            "days": rng.integers(0, 41, size).astype(float),
            "age": rng.integers(0, 100, size),
            "visit": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(rng.integers(0, 1460, size), unit="D"),
            "note": rng.choice(np.array(["x", "yy", None], object), size),
        }
    )
    data.loc[rng.random(size) < 0.1, "days"] = math.nan
    return data


def table(data: pd.DataFrame, unit: str = "patient") -> Table:
    """Every row counts, so that nothing is left to chance."""
    rows = pa.Table.from_pandas(data, preserve_index=False)
    if unit == "row":
        return Table(rows, unit, DOMAINS, name="visits", engine=ENGINE)
    return open_table(rows, DOMAINS, len(data), 1000)


def open_table(rows: pa.Table, domains: Any, most: int, groups: int, **more: Any) -> Table:
    bounds: Any = {"max_rows_per_group": most, "max_groups": groups}
    return Table(rows, "patient", domains, name="visits", engine=ENGINE, **bounds, **more)


@cache
def small() -> Table:
    """A table for what depends on its schema alone."""
    return table(frame(1, 9))


CONDITIONS = [
    ("", lambda d: d["age"] >= 0),
    ("WHERE age >= 65", lambda d: d["age"] >= 65),
    ("WHERE ward = 'A' AND NOT days > 10", lambda d: (d["ward"] == "A") & (d["days"] <= 10)),
    ("WHERE v.ward IN ('A', 'B') OR v.note IS NULL",
     lambda d: d["ward"].isin(["A", "B"]) | d["note"].isna()),
    ("WHERE site = 'south'", lambda d: d["ward"].isin(["B", "C"])),
    ("WHERE visit BETWEEN '2021-01-01' AND '2021-12-31' AND days IS NOT NULL",
     lambda d: d["visit"].between("2021-01-01", "2021-12-31") & d["days"].notna()),
    ("WHERE days / 2 > age - 20", lambda d: d["days"] / 2 > d["age"] - 20),
    ("WHERE CASE WHEN ward = 'A' THEN days ELSE age END > 30",
     lambda d: d["days"].where(d["ward"] == "A", d["age"]) > 30),
    ("WHERE COALESCE(note, 'none') <> 'x' AND age % 3 = 1",
     lambda d: (d["note"] != "x") & (d["age"] % 3 == 1)),
    ("WHERE date_trunc('quarter', visit) = '2021-04-01' OR substr(note, 2) = 'y'",
     lambda d: (d["visit"].dt.to_period("Q") == "2021Q2") | (d["note"] == "yy")),
    ("WHERE CAST(visit AS DATE) < '2022-01-01' AND hour(visit) = 0",
     lambda d: d["visit"] < "2022-01-01"),
    ("WHERE year(visit) = 2022 AND note LIKE 'y%'",
     lambda d: (d["visit"].dt.year == 2022) & d["note"].str.startswith("y", na=False)),
]  # fmt: skip
GROUPS = [
    ((), lambda d: {}),
    (("ward",), lambda d: {"ward": d["ward"]}),
    (("site",), lambda d: {"site": d["ward"].map({"A": "north", "B": "south", "C": "south"})}),
    (("year(visit)",), lambda d: {"y": d["visit"].dt.year}),
    (("ward", "decade(age)"), lambda d: {"ward": d["ward"], "decade": d["age"] // 10 * 10}),
]
AGGREGATES = {
    "COUNT(DISTINCT patient)": lambda d: d["patient"].nunique(),
    "COUNT(*)": len,
    "COUNT(days)": lambda d: d["days"].count(),
    "COUNT(*) FILTER (WHERE age < 50)": lambda d: (d["age"] < 50).sum(),
    "COUNT_IF(note = 'x')": lambda d: (d["note"] == "x").sum(),
    "SUM(days)": lambda d: d["days"].sum(),
    "AVG(days)": lambda d: d["days"].mean(),
    "VAR_POP(days)": lambda d: d["days"].var(ddof=0),
    "AVG(age) FILTER (WHERE ward = 'B')": lambda d: d[d["ward"] == "B"]["age"].mean(),
    "SUM(days * 2)": lambda d: 2 * d["days"].sum(),
    "SUM(1.5 - 2 * days)": lambda d: (1.5 - 2 * d["days"]).sum(),
    "SUM(days + 1)": lambda d: (d["days"] + 1).sum(),
    "AVG((age - 50) / -4)": lambda d: ((d["age"] - 50) / -4).mean(),
    "VAR_POP(-3 * (days + 1))": lambda d: (3 * d["days"]).var(ddof=0),
    "STDDEV_POP(days)": lambda d: d["days"].std(ddof=0),
    "STDDEV_POP(days / -7)": lambda d: (d["days"] / 7).std(ddof=0),
}


@cases(1, 200)
def test_every_form_agrees_with_pandas(count: int) -> None:
    for seed in range(count):
        check_forms(seed)


def check_forms(seed: int) -> None:
    data = frame(seed)
    opened, chance = table(data), random.Random(seed)
    for aggregate, truth in AGGREGATES.items():
        text, chosen = chance.choice(CONDITIONS)
        names, columns = chance.choice(GROUPS)
        listed = ", ".join([*names, f"{aggregate} AS found"])
        sql = f"SELECT {listed} FROM visits v {text}"
        sql += f" GROUP BY {', '.join(names)}" if names else ""
        (query,) = parse_queries(sql, opened)
        kept = data[chosen(data)]
        keys = pd.DataFrame(columns(kept), index=kept.index)
        expected = {"": truth(kept)}
        if names:
            groups = [list(keys[name]) for name in keys]
            inside = keys.notna().all(axis=1)
            labels = pd.Series(list(zip(*groups, strict=True)), index=kept.index)[inside]
            expected = {
                "/".join(map(_label, label)): truth(kept.loc[where.index])
                for label, where in labels.groupby(labels)
            }
        found = _answers(query, opened)
        for label, value in expected.items():
            if value == value:  # no mean of no rows
                assert found[label] == pytest.approx(float(value), abs=1e-3), (sql, label)
        rest = [found[each] for each in found.keys() - expected.keys() if "other" not in each]
        sums = query.kind in ("count", "rows", "sum")
        assert not sums or not any(value for value in rest if value == value)


def _label(value: Any) -> str:
    return value if isinstance(value, str) else str(int(value))


def _answers(query: Any, opened: Table) -> dict[str, float]:
    """What a query answers without noise, by the labels of its cells."""
    sums = [np.asarray(each) for each in exact(query, opened)]
    bounds = query.bounds(opened)
    noisy = noisy_parts(query.parts(opened), Share(PLAN, Fraction(1)), bounds, False)
    with np.errstate(invalid="ignore", divide="ignore"):
        result = query.finish(opened, sums, noisy)[0]
    labels = ["/".join(map(str, each)) for each in query.cells(opened).labels()]
    return dict(zip(labels, result.tolist(), strict=True))


@cases(1, 40)
def test_quantiles_agree_with_pandas(tmp_path: Path, count: int) -> None:
    """With next to no noise: between the order statistics beside the one that is asked for."""
    asked = {"MEDIAN(days)": 0.5, "QUANTILE_CONT(days, 0.9)": 0.9, "QUANTILE_DISC(age, 0.25)": 0.25}
    for seed in range(count):
        data = frame(seed, 300)
        opened = table(data, unit="row")
        plan = wi.calibrate(wi.Epsilon(600))
        session = Session(opened, plan, tmp_path / f"{seed}.db", share="1/4")
        for sql, share in asked.items():
            found = session.sql(f"SELECT {sql} AS found FROM visits WHERE ward = 'A'")["found"]
            column = "age" if "age" in sql else "days"
            low, high = (float(end) for end in opened.range(column).bounds)
            values = np.sort(data[data["ward"] == "A"][column].dropna().clip(low, high))
            at = share * (len(values) - 1)
            ends = values[max(0, int(at) - 1)], values[min(len(values) - 1, int(at) + 2)]
            value = found.rows[0][found.columns.index("value")]
            step = float(opened.range(column).unit) + (high - low) / 100
            assert ends[0] - step <= value <= ends[1] + step, (seed, sql)


def test_rows_that_are_people() -> None:
    opened = table(frame(3), unit="row")
    (query,) = parse_queries("SELECT COUNT(*) FROM visits", opened)
    assert query.kind == "count" and exact(query, opened) == [[400]]
    with pytest.raises(InvalidInput, match="COUNT"):
        parse_queries("SELECT COUNT(DISTINCT patient) FROM visits", opened)


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT MEDIAN(days) m FROM visits", {"kind": "median", "name": "m", "column": "days"}),
        (
            "SELECT ward, QUANTILE_CONT(days, 0.9) q FROM visits GROUP BY 1",
            {"kind": "quantile", "name": "q", "column": "days", "by": "ward", "quantile": "0.9"},
        ),
        (
            "SELECT PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY age) q FROM visits",
            {"kind": "quantile", "name": "q", "column": "age", "quantile": "0.25"},
        ),
        (
            "SELECT DISTINCT ward FROM visits WHERE age > 3",
            {"kind": "keys", "column": "ward", "where": "age > 3"},
        ),
        (
            "SELECT ward FROM visits GROUP BY ward ORDER BY COUNT(DISTINCT patient) DESC LIMIT 2",
            {"kind": "top", "by": "ward", "k": 2},
        ),
        (
            "SELECT EXTRACT(year FROM Visit) AS y, COUNT(*) n FROM main.Visits GROUP BY y",
            {"kind": "rows", "name": "n", "by": "year(visit)"},
        ),
        (
            "SELECT AVG(2 * days - 1) m FROM visits",
            {"kind": "mean", "name": "m", "column": "days", "factor": "2", "offset": "-1"},
        ),
        (
            "SELECT STDDEV_POP(days / 7) d FROM visits",
            {"kind": "deviation", "name": "d", "column": "days", "factor": "1/7"},
        ),
        (
            "SELECT ward, year(visit), COUNT(*) n FROM visits GROUP BY ALL",
            {"kind": "rows", "name": "n", "by": ["ward", "year(visit)"]},
        ),
        ("SELECT COUNT(*) n FROM visits GROUP BY ALL", {"kind": "rows", "name": "n"}),
        (
            "SELECT date_trunc('month', visit) AS at, COUNT(*) n FROM visits GROUP BY at",
            {"kind": "rows", "name": "n", "by": "visit"},
        ),
        ("FROM visits SELECT SUM(days) s -- all", {"kind": "sum", "name": "s", "column": "days"}),
    ],
)
def test_what_a_select_becomes(sql: str, keys: dict[str, Any]) -> None:
    (query,) = parse_queries(sql, small())
    assert scenario_keys(query) == keys
    assert read_query(keys, QUERIES).question() == query.question()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT AVG(dayz) FROM visits", "'days'"),
        ("SELECT COUNT(*) FROM visits WHERE dayz > 3", "'days'"),
        ("SELECT MAX(days) FROM visits", "QUANTILE_CONT(days, 0.99)"),
        ("SELECT MIN(days) FROM visits", "QUANTILE_CONT(days, 0.01)"),
        ("SELECT * FROM visits", "nobody's rows"),
        ("SELECT ward FROM visits", "GROUP BY"),
        ("SELECT ward, COUNT(*) FROM visits", "GROUP BY"),
        ("SELECT STDDEV(days) FROM visits", "STDDEV_POP(days)"),
        ("SELECT STDDEV_SAMP(days) FROM visits", "STDDEV_POP(days)"),
        ("SELECT VAR_SAMP(days) FROM visits", "VAR_POP(days)"),
        ("SELECT AVG(n) FROM (SELECT patient, COUNT(*) n FROM visits GROUP BY 1)", "[[features]]"),
        ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM x", "WITH"),
        ("SELECT ward, COUNT(*) FROM visits GROUP BY ward HAVING COUNT(*) > 3", "HAVING"),
        ("SELECT COUNT(*) FROM visits ORDER BY 1", "ORDER BY"),
        ("SELECT COUNT(*) FROM visits LIMIT 1", "LIMIT"),
        ("SELECT SUM(days) OVER () FROM visits", "[[features]]"),
        ("SELECT COUNT(*) FROM visits JOIN wards USING (ward)", "[[tables]]"),
        ("SELECT COUNT(*) FROM visits, wards", "[[tables]]"),
        ("SELECT COUNT(*) FROM wards", "'visits'"),
        ("SELECT COUNT(*) FROM other.visits", "'visits'"),
        ("SELECT COUNT(*) FROM read_csv('secrets.csv')", "the name of the table"),
        ("SELECT COUNT(*) FROM 'secrets.csv'", "'visits'"),
        ("DROP TABLE visits", "never written"),
        ("EXPLAIN SELECT COUNT(*) FROM visits", "never written"),
        ("INSERT INTO visits VALUES (1)", "never written"),
        ("SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM visits", "one statement"),
        ("SELECT COUNT(*) FROM visits UNION SELECT COUNT(*) FROM visits", "UNION"),
        ("SELECT SUM(days) / COUNT(*) FROM visits", "AVG"),
        ("SELECT SUM(days * age) FROM visits", "declared column"),
        ("SELECT SUM(days * days) FROM visits", "declared column"),
        ("SELECT SUM(2 / days) FROM visits", "declared column"),
        ("SELECT AVG(days / 0) FROM visits", "declared column"),
        ("SELECT AVG(days * 0) FROM visits", "declared column"),
        ("SELECT AVG(2) FROM visits", "declared column"),
        ("SELECT AVG(days % 2) FROM visits", "declared column"),
        ("SELECT MEDIAN(days * 2) FROM visits", "declared column"),
        ("SELECT AVG(days * 1e99999) FROM visits", "sql"),
        ("SELECT AVG(days * 1e30) FROM visits", "factor"),
        ("SELECT SUM(days + 0.0000000001) FROM visits", "offset"),
        ("SELECT SUM(CASE WHEN age > 3 THEN 1 ELSE 0 END) FROM visits", "FILTER"),
        ("SELECT AVG(patient) FROM visits", "patient"),
        ("SELECT *, COUNT(*) FROM visits GROUP BY ALL", "nobody's rows"),
        ("SELECT age + 1, COUNT(*) FROM visits GROUP BY ALL", "decade"),
        ("SELECT CAST(visit AS DATE), COUNT(*) FROM visits GROUP BY 1", 'edges = "day"'),
        ("SELECT date_trunc('week', visit), COUNT(*) FROM visits GROUP BY 1", '"isoweek"'),
        ("SELECT date_trunc('month', age), COUNT(*) FROM visits GROUP BY 1", '"month"'),
        ("SELECT hour(visit), COUNT(*) FROM visits GROUP BY 1", "decade"),
        ("SELECT SUM(DISTINCT days) FROM visits", "DISTINCT"),
        ("SELECT COUNT(DISTINCT ward) FROM visits", "COUNT(DISTINCT patient)"),
        ("SELECT COUNT(CASE WHEN age > 3 THEN 1 END) FROM visits", "FILTER"),
        ("SELECT COUNT(*) FROM visits GROUP BY ROLLUP (ward)", "ROLLUP"),
        ("SELECT COUNT(*) FROM visits GROUP BY age + 1", "decade"),
        ("SELECT COUNT(*) FROM visits WHERE age > (SELECT 3)", "subquery"),
        ("SELECT COUNT(*) FROM visits WHERE COUNT(*) > 3", "aggregate"),
        ("SELECT COUNT(*) FROM visits TABLESAMPLE 10%", "TABLESAMPLE"),
        ("SELECT COUNT(*) FROM visits WHERE age = ?", "placeholder"),
        ("SELECT COUNT(*), COUNT(*) FROM visits", "twice"),
        ("SELECT 3 FROM visits", "GROUP BY"),
        ("SELECT COUNT(*)", "FROM"),
        ("SELECT COUNT(", "parsed"),
        ("", "SELECT"),
        ("SELECT " + "COUNT(*), " * 2000 + "1 FROM visits", "characters"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked_is_refused_by_name(sql: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_queries(sql, small())
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT ward, COUNT(*) FRM visits", ("line 1, character 27", "'visits'", "FROM")),
        ("SELECT COUNT(*)\nFROM visits\nWEHRE age > 3", ("line 3, character 7", "'age'", "WHERE")),
        ("SELECT COUNT(*)\nFROM visits\nWHERE (age > 3", ("line 3, character 14", "'3'", "')'")),
        ("SELECT COUNT(*) FROM visits WHERE ward = 'A", ("line 1, character 42", "not closed")),
    ],
)  # fmt: skip
def test_what_cannot_be_parsed_has_a_place(sql: str, parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_queries(sql, small())
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_a_condition_that_cannot_be_parsed_has_a_place() -> None:
    with pytest.raises(InvalidInput, match="line 1, character 13") as caught:
        parse_condition("age > 3 and or ward", None)
    assert caught.value.field == "where"


@cache
def clinic() -> Table:
    """Visits with a table of the same people, in which some are missing, and a public one."""
    visits = pa.table(
        {"patient": [1, 1, 2, 3, 3, None], "ward": list("ABABAA"), "days": [1, 2, 3, 4, 5, 6]}
    )
    patients = pa.table({"patient": [1, 2, 9, None], "sex": list("fmfm"), "age": [70, None, 30, 1]})
    patients = patients.append_column("days", [[100, 200, 300, 400]])
    wards = pa.table({"ward": ["A", "B"], "region": ["north", "south"]})
    domains = {
        "ward": ["A", "B"], "days": (0, 30), "sex": ["f", "m"], "age": (0, 100),
        "patients.days": (0, 500), "region": ["north", "south"],
    }  # fmt: skip
    further = [FurtherTable("patients", patients), LookupTable("wards", wards, "ward")]
    return open_table(visits, domains, 9, 9, tables=further)


USING = "JOIN patients USING (patient)"


@pytest.mark.parametrize(
    ("sql", "truth"),
    [
        (f"SELECT SUM(days) FROM visits {USING} WHERE ward = 'A' OR ward = 'B'", None),
        (f"SELECT SUM(Days) FROM visits {USING}", None),
        ("SELECT SUM(Visits.Days) FROM visits JOIN patients USING (Patient)", {"": 6}),
        ("SELECT SUM(P.Days) FROM visits v JOIN patients p ON V.Patient = P.patient", {"": 400}),
        (f"SELECT SUM(visits.days) AS x FROM visits {USING}", {"": 1 + 2 + 3}),
        (f"SELECT SUM(visits.days) FROM visits {USING} WHERE age > 0 OR ward = 'A'", {"": 6}),
        (f"SELECT SUM(visits.days) FROM visits {USING} WHERE age > 60", {"": 3}),
        (f"SELECT SUM(p.days) FROM visits {USING.replace('patients', 'patients AS p')}", {"": 400}),
        (f"SELECT COUNT(DISTINCT patient) FROM visits LEFT {USING}", {"": 3}),
        (f"SELECT COUNT(DISTINCT patient) FROM visits {USING}", {"": 2}),
        ("SELECT COUNT(*) FROM visits v LEFT JOIN patients p ON p.patient = v.patient", {"": 5}),
        ("SELECT COUNT(*) FROM visits v INNER JOIN Patients p ON v.patient = p.patient", {"": 3}),
        (f"SELECT sex, COUNT(*) FROM visits {USING} GROUP BY sex", {"f": 2, "m": 1, "other": 0}),
        (f"SELECT region, COUNT(*) FROM visits {USING} LEFT JOIN wards USING (ward) GROUP BY 1",
         {"north": 2, "south": 1, "other": 0}),
    ],
)  # fmt: skip
def test_declared_joins(sql: str, truth: dict[str, float] | None) -> None:
    """JOIN keeps those who have a row there, and LEFT JOIN everyone."""
    if truth is None:
        with pytest.raises(InvalidInput, match=r"visits\.age"):
            parse_queries(sql, clinic())
        return
    (query,) = parse_queries(sql, clinic())
    found = _answers(query, query.restrict_table(clinic()))
    assert found == truth


@pytest.mark.parametrize(
    ("joined", "words"),
    [
        ("JOIN patients USING (ward)", "the privacy unit alone"),
        ("JOIN patients ON visits.days = patients.days", "the privacy unit alone"),
        ("JOIN patients ON visits.patient = patients.patient AND 1 = 1", "the privacy unit alone"),
        ("JOIN patients ON visits.patient < patients.patient", "the privacy unit alone"),
        ("JOIN patients", "the privacy unit alone"),
        (", patients", "the privacy unit alone"),
        ("CROSS JOIN patients", "LEFT JOIN or JOIN"),
        ("NATURAL JOIN patients", "LEFT JOIN or JOIN"),
        ("RIGHT JOIN patients USING (patient)", "LEFT JOIN or JOIN"),
        ("FULL JOIN patients USING (patient)", "LEFT JOIN or JOIN"),
        ("JOIN visits v USING (patient)", "patients, wards"),
        ("JOIN nowhere USING (patient)", "patients, wards"),
        ("JOIN (SELECT 1) x USING (patient)", "patients, wards"),
        ("JOIN patients USING (patient) JOIN patients USING (patient)", "twice"),
        ("JOIN wards USING (ward)", "LEFT JOIN"),
        ("LEFT JOIN wards ON visits.patient = wards.ward", "on ward"),
    ],
)
def test_other_joins_are_refused(joined: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_queries(f"SELECT COUNT(*) FROM visits {joined}", clinic())
    assert words in str(caught.value)


JOINS = {
    "": lambda v, p: v,
    "JOIN patients p USING (patient)": lambda v, p: v.merge(p, on="patient"),
    "LEFT JOIN patients p ON p.patient = v.patient": (
        lambda v, p: v.merge(p, on="patient", how="left")
    ),
    "LEFT OUTER JOIN patients AS p USING (PATIENT)": (
        lambda v, p: v.merge(p, on="patient", how="left")
    ),
}
OVER_JOINS = [
    ("", lambda d: d["stay"] == d["stay"]),
    ("p.fee >= 2.5", lambda d: d["fee"].astype(float) >= 2.5),
    ("p.since < '2021-06-01 12:00:00' AND region = 'north'",
     lambda d: (d["since"] < pd.Timestamp("2021-06-01 12:00")) & (d["ward"] == "A")),
    ("sex = 'f' OR p.fee IS NULL", lambda d: (d["sex"] == "f") | d["fee"].isna()),
    ("v.days > 3 AND NOT p.days = 2",
     lambda d: (d["days_x"] > 3) & d["days_y"].notna() & (d["days_y"] != 2)),
]  # fmt: skip
OF_JOINS = {
    "COUNT(*)": len,
    "COUNT(DISTINCT patient)": lambda d: d["patient"].nunique(),
    "SUM(v.days)": lambda d: d["days_x"].sum(),
    "SUM(p.fee)": lambda d: d["fee"].astype(float).sum(),
    "AVG(p.days)": lambda d: d["days_y"].mean(),
    "COUNT(sex)": lambda d: d["sex"].count(),
}


@cases(1, 100)
def test_every_join_agrees_with_pandas(count: int) -> None:
    """Of random tables with missing and doubled people, decimals and moments of another zone."""
    for seed in range(count):
        rng, chance = np.random.default_rng(seed), random.Random(seed)
        visits, patients = _two_frames(rng)
        opened = _two_tables(visits, patients)
        for aggregate, truth in OF_JOINS.items():
            text, chosen = chance.choice(OVER_JOINS)
            needs_patients = "p." in text + aggregate or "sex" in text + aggregate
            join = chance.choice(list(JOINS)[1 if needs_patients else 0 :])
            if "v.days" in text and not join:
                continue
            data = JOINS[join](visits[visits["patient"].notna()], patients)
            if not join:
                data = data.rename(columns={"days": "days_x"})
            group = chance.choice([None, "ward", "region"])
            sql = f"SELECT {f'{group}, ' if group else ''}{aggregate} AS found FROM visits v {join}"
            sql += f" WHERE {text}" if text else ""
            sql += f" GROUP BY {group}" if group else ""
            (query,) = parse_queries(sql, opened)
            kept = data[chosen(data)]
            expected = {"": truth(kept)}
            if group:
                keys = kept["ward"].map({"A": "north", "B": "south"} if group == "region" else str)
                expected = {label: truth(part) for label, part in kept.groupby(keys)}
            found = _answers(query, query.restrict_table(opened))
            for label, value in expected.items():
                if value == value:
                    assert found[label] == pytest.approx(float(value), abs=1e-3), (sql, label)


def _two_frames(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    def some(values: Any, kind: Any) -> pd.Series:
        return pd.Series([None if rng.random() < 0.15 else each for each in values], dtype=kind)

    visits = pd.DataFrame(
        {
            "patient": some(rng.integers(0, 20, 80).tolist(), "Int64"),
            "ward": rng.choice(["A", "B"], 80),
            "days": rng.integers(0, 9, 80),
            "stay": range(80),
        }
    )
    fees = [Decimal(int(each)) / 4 for each in rng.integers(0, 40, 25)]
    patients = pd.DataFrame(
        {
            "patient": some(rng.integers(0, 25, 25).tolist(), "Int64"),
            "sex": some(rng.choice(["f", "m"], 25).tolist(), object),
            "fee": some(fees, object),
            "since": pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 9000, 25), "h"),
            "days": rng.integers(0, 9, 25),
        }
    )
    return visits, patients[patients["patient"].notna()]


def _two_tables(visits: pd.DataFrame, patients: pd.DataFrame) -> Table:
    """The moments in another zone, and a row of nobody."""
    fields = [("patient", pa.int64()), ("sex", pa.string()), ("fee", pa.decimal128(8, 2))]
    fields += [("since", pa.timestamp("us", "Asia/Tokyo")), ("days", pa.int64())]
    rows = patients.assign(since=patients["since"].dt.tz_localize("UTC"))
    nobody = {"patient": None, "sex": "f", "fee": Decimal(1), "since": None, "days": 1}
    people = pa.Table.from_pylist([*rows.to_dict("records"), nobody], pa.schema(fields))
    wards = pa.table({"ward": ["A", "B"], "region": ["north", "south"]})
    domains = {"ward": ["A", "B"], "region": ["north", "south"], "days": (0, 30)}
    domains |= {"fee": (0, 20), "patients.days": (0, 30)}
    further = [FurtherTable("patients", people, max_rows=1000), LookupTable("wards", wards, "ward")]
    rows = pa.Table.from_pandas(visits, preserve_index=False)
    return open_table(rows, domains, 10_000, 9, tables=further)


def test_a_session_takes_sql(tmp_path: Path) -> None:
    data = pd.DataFrame({"patient": range(3000), "ward": ["A", "B"] * 1500})
    opened = Table(pa.Table.from_pandas(data), "patient", {"ward": ["A", "B"]}, name="visits")
    session = Session(opened, PLAN, tmp_path / "ledger.db", share="1/4")
    sql = "SELECT ward, COUNT(DISTINCT patient) AS patients, COUNT(*) FROM visits GROUP BY ward"
    (first, second) = session.dry_run(session.parse_sql(sql))
    assert first.query.title == "patients" and second.query.kind == "rows"
    answers = session.sql(sql)
    assert abs(answers["patients"].rows[0][1] - 1500) < 400
    assert len(answers) == 2 and session.budget_state.debits == 2
    with pytest.raises(InvalidInput):
        session.sql("SELECT MAX(patient) FROM visits")
    assert session.budget_state.debits == 2


SCENARIO = """
[adversary]
prior = "0.05..0.5"
[target]
posterior = 0.6
[table]
source = "visits.csv"
privacy_unit = "patient"
[domains]
ward = ["A", "B"]
days = { lower = 0, upper = 9 }
"""


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f"{who},{'AB'[who % 2]},{who % 7}\n" for who in range(500))
    (tmp_path / "visits.csv").write_text(f"patient,ward,days\n{rows}")
    file = tmp_path / "visits.toml"
    file.write_text(SCENARIO)
    sql = "SELECT ward, AVG(days) AS stay FROM visits WHERE days > 0 GROUP BY ward"

    def run(*words: str) -> tuple[int, str, str]:
        code = main(["sql", str(file), *words])
        return (code, *capsys.readouterr())

    code, explained, _ = run(sql, "--explain")
    assert code == 0 and 'where = "days > 0"' in explained
    other = tmp_path / "same.toml"
    other.write_text(explained)
    assert main(["release", str(other), "--dry-run", "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    priced = answer(run(sql, "--dry-run", "--json"))
    assert priced["estimates"] == same["estimates"] and len(same["estimates"]) == 1
    refused(run("SELECT MAX(days) FROM visits"), "QUANTILE_CONT")
    for more in ((), ("--dry-run",), ("--explain",)):
        assert run("SELECT COUNT(*) FROM visits WHERE hour(days) > 3", *more)[0] == 2
        assert run("SELECT COUNT(*) FILTER (WHERE days) FROM visits", *more)[0] == 2
        assert run("SELECT SUM(days + 0.0000000001) FROM visits", *more)[0] == 2
        assert run("SELECT AVG(age) FROM visits", *more)[0] == 2
    refused(run(sql, "--share", "2"), "--share must be above 0 and at most 1, not 2")
    assert not (tmp_path / "ledger.db").exists()
    options = ("--share", "1/2", "--request", "r1", "--json")
    code, out, err = run(sql, *options)
    answered = json.loads(out)
    assert code == 0 and err == "whosin: there is no request 'r1' yet: this is a new one\n"
    assert answered["request"] == "r1"
    assert answer(run(sql, *options))["answers"] == answered["answers"]
    refused(run(sql), "left", code=1)  # not all of it is


@cases(8, 2000)
def test_a_linear_function_of_a_column_is_what_is_asked(count: int) -> None:
    """Its sum moves by what a row can add, in units of which it is a whole number; the others are
    what comes after the noise."""
    chance, opened = random.Random(1), small()
    domain = opened.range("days")
    parts = Mean(column="days").parts(opened)
    noisy = noisy_parts(parts, Share(PLAN, Fraction(1)), ContributionBounds(1, 1), False)
    for _ in range(count):
        factor = Fraction(chance.randint(1, 99) * chance.choice([-1, 1]), chance.randint(1, 99))
        offset = Fraction(chance.randint(-99, 99), chance.randint(1, 30))
        told: dict[str, Any] = {"column": "days", "factor": str(factor), "offset": str(offset)}
        (part,) = Sum(**told).parts(opened)
        steps = [factor * step * domain.unit + offset for step in range(*domain.units)]
        steps.append(factor * domain.units[1] * domain.unit + offset)
        assert (part.low * part.unit, part.high * part.unit) == (min(steps), max(steps))
        assert all((each / part.unit).denominator == 1 for each in steps)
        sums = [np.array([chance.randint(0, 500)]) for _ in range(2)]
        plain = Mean(column="days").finish(opened, sums, noisy)
        value, low, high = Mean(**told).finish(opened, sums, noisy)
        moved = [float(factor) * each[0] + float(offset) for each in plain]
        assert [value[0], low[0], high[0]] == pytest.approx([moved[0], *sorted(moved[1:])])


def test_a_deviation_is_the_root_of_a_variance_and_costs_the_same() -> None:
    opened, share = table(frame(2)), Share(PLAN, Fraction(1))
    asked = Variance(column="days", by="ward", factor=-3), Deviation(column="days", by="ward")
    variance, deviation = (query.estimate_cost(opened, share) for query in asked)
    assert variance.spend.costs == deviation.spend.costs
    sums = [np.array(each) for each in ([-40, 300, 2], [90, 50, -3], [9 * 10**6, 4 * 10**6, 0])]
    squares = asked[0].finish(opened, sums, variance.parts)
    roots = asked[1].finish(opened, sums, deviation.parts)
    for square, root in zip(squares, roots, strict=True):
        assert square.tolist() == pytest.approx((9 * root**2).tolist())
    assert (roots[1] <= roots[0]).all() and (roots[0] <= roots[2]).all()


def test_all_mistakes_of_a_select_are_said_at_once():
    """Each with its place in the text, and what to write instead where that is known."""
    from whosin.errors import SeveralMistakes

    frame = pa.table({"who": ["a"], "ward": ["x"], "days": [1]})
    domains = {"ward": ["x", "y"], "days": Range(0, 10)}
    table = Table(frame, "who", name="visits", domains=domains)
    text = (
        "SELECT wrd, MAX(days),\n  SUM(days) FROM vists\nWHERE agee > 3\nGROUP BY wrd HAVING 1 > 0"
    )
    with pytest.raises(SeveralMistakes) as found:
        parse_queries(text, table)
    said = {each.place: each.paste for each in found.value.parts}
    assert said == {
        "HAVING": "",
        "line 2, character 18, FROM": "",
        "line 3, character 7, WHERE": "",
        "line 4, character 10, GROUP BY": "ward",
        "line 1, character 8, item 1 of SELECT": "ward",
        "line 1, character 17, item 2 of SELECT": "QUANTILE_CONT(days, 0.99)",
    }
    with pytest.raises(InvalidInput) as one:
        parse_queries("SELECT MAX(days) FROM visits", table)
    assert one.value.parts == (one.value,) and not one.value.place
