"""Features and joins beside the same SQL in DuckDB alone: 10^7 visits of 10^6 people."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from measuring import Row, best_of
from whosin.release import Count, Feature, FurtherTable, Mean, Query, Table

VISITS, PEOPLE = 10_000_000, 1_000_000
GOAL = 1.5
SEX = f"CASE WHEN hash(hash(i) % {PEOPLE}) % 2 = 0 THEN 'f' ELSE 'm' END AS sex"
MADE = {
    "patients": f"SELECT i AS patient, CASE WHEN hash(i) % 2 = 0 THEN 'f' ELSE 'm' END AS sex, "
    f"(hash(i * 7) % 90)::INT AS age FROM range({PEOPLE}) t(i) ORDER BY hash(i)",
    "visits": f"SELECT (hash(i) % {PEOPLE})::BIGINT AS patient, {SEX}, "
    f"chr((65 + hash(i * 3) % 8)::INT) AS ward, (hash(i * 5) % 30)::INT AS days "
    f"FROM range({VISITS}) t(i)",
}
EACH = "SELECT patient, COUNT(*) AS stays, SUM(days) AS total FROM '{visits}' GROUP BY patient"
SUMS = "SUM(greatest(least(total, 365), 0)), COUNT(*)"
BESIDE = f"'{{patients}}' LEFT JOIN ({EACH}) USING (patient)"
BOUNDED = """
SELECT ward, SUM(age), COUNT(*) FROM (
  SELECT patient, arg_min(ward, lot) AS ward, arg_min(age, lot) AS age FROM (
    SELECT *, random() AS lot FROM (
      SELECT patient, ward, arg_min(age, lot) AS age FROM (
        SELECT patient, ward, age, random() AS lot
        FROM '{visits}' LEFT JOIN '{patients}' USING (patient)
      ) GROUP BY patient, ward
    )
  ) GROUP BY patient
) GROUP BY ward
"""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as plain:
        files = {name: str(Path(folder) / f"{name}.parquet") for name in MADE}
        for name, sql in MADE.items():
            plain.execute(f"COPY ({sql}) TO '{files[name]}'")
        for work, table, query, sql in _questions(files):
            about = query.restrict_table(table)
            expression = query.exact(about, query.cells(about))  # type: ignore[attr-defined]
            ours = best_of(lambda e=expression, t=table: t.engine.run(e), 3)  # type: ignore[misc]
            peer = best_of(lambda s=sql: plain.execute(s.format(**files)).fetchall(), 3)  # type: ignore[misc]
            met = ours <= GOAL * peer
            yield Row(work, ours, f"<= {GOAL} × SQL", met, "the same SQL in DuckDB", peer)


def _questions(files: dict[str, str]) -> Iterator[tuple[str, Table, Query, str]]:
    domains: dict[str, Any] = {
        "sex": {"values": ["f", "m"], "constant": True},
        "stays": {"lower": 0, "upper": 50},
        "total": {"lower": 0, "upper": 365},
    }
    further = [FurtherTable("visits", files["visits"])]
    two = Table(
        files["patients"],
        "patient",
        domains,
        tables=further,
        features=_features("visits"),
        name="two",
    )
    one = Table(files["visits"], "patient", domains, features=_features(None), name="one")
    total, by_sex = Mean(column="total"), Mean(column="total", by=("sex",))
    people = BESIDE.replace("'{patients}'", "(SELECT DISTINCT patient FROM '{patients}')")
    yield "a person's feature, mean", two, total, f"SELECT {SUMS} FROM {people}"
    grouped = f"SELECT sex, {SUMS} FROM {BESIDE} GROUP BY sex"
    yield "features and a join, mean by group", two, by_sex, grouped
    many = Count(by=("sex",), where="stays >= 10")
    counted = f"SELECT sex, COUNT(*) FROM {BESIDE} WHERE stays >= 10 GROUP BY sex"
    yield "features and a join, count by group", two, many, counted
    alone = EACH.replace("patient,", "patient, any_value(sex) AS sex,")
    grouped = f"SELECT sex, {SUMS} FROM ({alone}) GROUP BY sex"
    yield "features of one table, mean by group", one, by_sex, grouped
    wards = {"ward": list("ABCDEFGH"), "age": {"lower": 0, "upper": 100}}
    patients = [FurtherTable("patients", files["patients"])]
    joined = Table(files["visits"], "patient", wards, tables=patients, name="joined")
    yield "a join, mean of one row a person", joined, Mean(column="age", by=("ward",)), BOUNDED


def _features(table: str | None) -> list[Feature]:
    return [
        Feature("stays", "count", table=table),
        Feature("total", "sum", "days", table=table),
    ]
