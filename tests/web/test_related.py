"""`/api` with further tables and features of people: columns, SQL, prices and releases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from web_server import PLAN, problem, program, served
from whosin.app.web.server import running

TABLE: dict[str, Any] = {
    "table": {"source": "hospital.parquet", "privacy_unit": "patient"},
    "domains": {
        "stays": {"lower": 0, "upper": 20},
        "sex": ["f", "m"],
        "region": "wards.region",
    },
    "tables": [
        {"name": "people", "source": "people.csv"},
        {"name": "wards", "source": "wards.csv", "public": True, "key": "ward"},
    ],
    "features": [{"name": "stays", "kind": "count", "where": "days > 1"}],
}
QUERIES = [{"kind": "mean", "column": "stays", "by": ["sex"]}, {"kind": "count", "by": ["region"]}]
SCENARIO = {**PLAN, **TABLE, "queries": QUERIES}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder: Path = tmp_path_factory.mktemp("related")
    settings = served(folder, 50)
    people = "".join(f"P{number},{'fm'[number % 2]}\n" for number in range(50))
    (folder / "people.csv").write_text(f"patient,sex\n{people}", encoding="utf-8")
    (folder / "wards.csv").write_text("ward,region\nsurgery,n\nmedicine,s\n", encoding="utf-8")
    with running(settings) as url, program(url) as client:
        yield client


def test_columns_of_all_tables_and_features(server: httpx.Client) -> None:
    found = server.post("/api/columns", json=TABLE).json()["columns"]
    kinds = {each["name"]: each["numeric"] for each in found}
    assert kinds["stays"] and not kinds["sex"] and not kinds["people.patient"]
    assert "region" in kinds and "ward" in kinds
    other = TABLE | {"tables": [{"name": "x", "source": "../etc/passwd"}]}
    problem(server.post("/api/columns", json=other), 422, "tables.0.source")


@pytest.mark.parametrize(
    ("sql", "status"),
    [
        ("SELECT STDDEV_POP(stays) FROM hospital WHERE COALESCE(days, 0) % 2 = 0", 200),
        ("SELECT STDDEV(stays) FROM hospital", 422),
        ("SELECT SUM(stays + 0.0000000001) FROM hospital", 422),
        ("SELECT COUNT(*) FROM hospital WHERE substr(sex, -1) = 'f'", 422),
    ],
)
def test_sql_is_taken_or_refused_as_by_the_command(
    server: httpx.Client, sql: str, status: int
) -> None:
    answer = server.post("/api/sql", json=TABLE | {"sql": sql})
    assert answer.status_code == status
    if status == 200:
        scenario = SCENARIO | {"queries": answer.json()["queries"]}
        assert server.post("/api/estimate", json=scenario).status_code == 200


def test_sql_prices_and_a_release(server: httpx.Client) -> None:
    joined = (
        "SELECT sex, COUNT(DISTINCT patient) FROM hospital JOIN people USING (patient) GROUP BY 1"
    )
    asked = server.post("/api/sql", json=TABLE | {"sql": joined}).json()["queries"]
    assert [each["by"] for each in asked] == ["sex"]
    scenario = SCENARIO | {"queries": [*QUERIES, *asked]}
    estimates = server.post("/api/estimate", json=scenario).json()["estimates"]
    assert len(estimates) == 3
    body = {"scenario": scenario, "request": "related-1", "accept": True}  # bounds bite here
    made = server.post("/api/release", json=body).json()
    assert [len(each["rows"]) for each in made["answers"]] == [3, 3, 3]
    changed = SCENARIO | {"features": [{"name": "stays", "kind": "count"}]}
    body = {"scenario": changed, "request": "related-2", "accept": True}
    assert "feature" in server.post("/api/release", json=body).json()["error"]["message"]
