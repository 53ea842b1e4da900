"""Dates, and cells derived from columns: month(visit), decade(age), against Python's calendar."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timedelta
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import release_oracle as oracle
import whosin as wi
from amounts import some
from refusals import refused
from whosin.errors import BudgetRefused
from whosin.release import Count, Dates, Histogram, Marginals, Range, Rows, Synthetic, Top
from whosin.release.conditions import parse_condition
from whosin.release.domains import date_code, read_domain
from whosin.release.inspection import check_table
from whosin.release.table import register_question, register_table

FIRST, LAST = date(2019, 11, 20), date(2021, 2, 10)
PARTS = {
    "year": lambda day: day.year,
    "quarter": lambda day: (day.month - 1) // 3 + 1,
    "month": lambda day: day.month,
    "isoweek": lambda day: day.isocalendar().week,
    "decade": lambda day: day.year - day.year % 10,
}
NAMES = {
    "day": lambda day: str(day),
    "isoweek": lambda day: f"{day.isocalendar().year}-W{day.isocalendar().week:02d}",
    "month": lambda day: day.strftime("%Y-%m"),
    "quarter": lambda day: f"{day.year}-Q{(day.month - 1) // 3 + 1}",
    "year": lambda day: str(day.year),
}
DAYS: list[date | None] = [FIRST + timedelta(each) for each in range(-40, 500)]
DAYS += [None, date(1, 1, 1), date(9999, 12, 31), date(1969, 12, 31), date(2000, 2, 29)]
AGES: list[Any] = [0.0, -0.0, 9.999999999999998, 10.0, 29.999999999999996, 30.0, 85.0, 89.9]
AGES += [90.0, 91.0, 95.0, -0.1, 1e300, float("inf"), float("-inf"), float("nan"), None]


def held(outside: str | None) -> tuple[pa.Table, dict[str, Any]]:
    """A person for each day: as a date, as a moment at its end, as a text."""
    moments = [None if d is None else datetime(d.year, d.month, d.day, 23, 59, 59) for d in DAYS]
    texts = [None if day is None else f"{day} 00:00:00" for day in DAYS[:-4]]
    table = pa.table(
        {
            "who": [f"p{each}" for each in range(len(DAYS))],
            "visit": pa.array(DAYS, pa.date32()),
            "seen": pa.array(moments, pa.timestamp("us")),
            "text": pa.array([*texts, "2020-02-30", "20200101", "", "2020-1-1"], pa.string()),
        }
    )
    domain = Dates(FIRST, LAST, "month", outside=outside)
    return table, dict.fromkeys(("visit", "seen", "text"), domain)


def inside(day: date | None, outside: str | None) -> date | None:
    """The day that counts; None for none."""
    if day is None or FIRST <= day <= LAST:
        return day
    return {None: None, "drop": None, "clamp": min(max(day, FIRST), LAST)}[outside]


@pytest.mark.parametrize(
    ("outside", "column", "function"),
    some(
        product([None, "drop", "clamp"], ["visit", "seen", "text"], [*PARTS, None]),
        8,
        several=True,
    ),
)
def test_cells_are_those_of_the_calendar(outside, column: str, function: str | None) -> None:
    table, domains = held(outside)
    data = oracle.table(table, domains)
    by = column if function is None else f"{function}({column})"
    query = Count(by=by)
    days = DAYS if column != "text" else [*DAYS[:-4], None, None, None, None]
    counted = [inside(day, outside) for day in days]
    part = NAMES["month"] if function is None else PARTS[function]
    found = Counter("other" if day is None else part(day) for day in counted)
    span = [FIRST + timedelta(each) for each in range((LAST - FIRST).days + 1)]
    labels: list[Any] = sorted({part(day) for day in span})
    wanted = [found[label] for label in labels] + ([] if outside else [found["other"]])
    cells = query.cells(data)
    assert [label for (label,) in cells.labels()] == labels + ([] if outside else ["other"])
    assert oracle.exact(query, data) == [wanted]
    assert sum(wanted) > 400


@pytest.mark.parametrize("unit", NAMES)
def test_bins_are_parts_of_the_calendar(unit: str) -> None:
    domain = Dates(FIRST, LAST, unit)
    wanted = [NAMES[unit](FIRST + timedelta(each)) for each in range((LAST - FIRST).days + 1)]
    assert list(domain.cells) == list(dict.fromkeys(wanted)) == sorted(set(wanted))
    places = dict(domain.numbered_days())
    assert list(places) == sorted(set(places)) and len(places) == len(wanted)  # codes rise
    for each, name in enumerate(wanted):
        assert domain.cells[places[date_code(FIRST + timedelta(each))]] == name


def test_bins_between_listed_days() -> None:
    table, _ = held(None)
    edges = ("2019-11-20", "2020-01-01", "2020-07-01", "2021-02-10")
    data = oracle.table(table, {"visit": read_domain("visit", {"edges": list(edges)})})
    ends = [date.fromisoformat(edge) for edge in edges]
    found = [0, 0, 0, 0]
    for day in DAYS:
        if day is None or not FIRST <= day <= LAST:
            found[3] += 1
        else:
            found[0 if day < ends[1] else 1 if day < ends[2] else 2] += 1
    assert oracle.exact(Histogram(column="visit"), data) == [found]
    labels = [label for (label,) in Histogram(column="visit").cells(data).labels()]
    assert labels[:2] == ["2019-11-20..2020-01-01", "2020-01-01..2020-07-01"]


@pytest.mark.parametrize("outside", [None, "drop", "clamp"])
@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
def test_decades_of_numbers(outside: str | None, kind: pa.DataType) -> None:
    ages = [None if age is None else repr(age) for age in AGES] if kind == pa.string() else AGES
    table = pa.table({"who": [str(i) for i in range(len(AGES))], "age": pa.array(ages, kind)})
    data = oracle.table(table, {"age": Range(5, 91, outside=outside)})
    found = dict.fromkeys([*range(0, 100, 10), "other"], 0)
    for age in ages:
        read = oracle.number(age)
        if kind == pa.string() and age in ("inf", "-inf", "nan", "1e+300"):
            read = None  # texts that spell no number here
        if read is not None and not 5 <= read <= 91:
            read = min(max(read, 5), 91) if outside == "clamp" else None
        found["other" if read is None else int(read // 10) * 10] += 1
    wanted = [found[each] for each in range(0, 100, 10)] + ([] if outside else [found["other"]])
    assert oracle.exact(Count(by="decade(age)"), data) == [wanted]


def test_several_functions_of_one_column_and_tables_of_them() -> None:
    table, domains = held("drop")
    data = oracle.table(table, domains)
    query = Rows(by=("year(visit)", "month(visit)", "quarter(seen)"))
    kept = [day for day in DAYS if day is not None and FIRST <= day <= LAST]
    found: Counter[Any] = Counter((day.year, day.month, (day.month + 2) // 3) for day in kept)
    assert oracle.exact(query, data) == [[found[cell] for cell in query.cells(data).labels()]]
    many = Marginals(columns=["year(visit)", "month(visit)"], order=1)
    details = many.estimate_cost(data, oracle.share()).details
    assert details is not None
    scan = details["scan"]
    for attributes, counts in zip(
        scan.sets, scan.count(data, scan.expression(data, None, 1), None), strict=True
    ):
        if len(attributes) == 1:
            part = (PARTS["year"], PARTS["month"])[attributes[0]]
            own = Counter(map(part, kept))
            assert counts.tolist() == [own[each] for each in sorted(own)]


CONDITIONS = {
    "isoweek(visit) = 53": lambda day: day is not None and day.isocalendar().week == 53,
    "isoweek(seen) in (1, 2)": lambda day: day is not None and day.isocalendar().week in (1, 2),
    "quarter(visit) >= 3": lambda day: day is not None and day.month > 6,
    "decade(visit) = 2020": lambda day: day is not None and 2020 <= day.year < 2030,
    "decade(year(seen)) < 2020": lambda day: day is not None and day.year < 2020,
    "visit >= '2020-02-29' and month(visit) = 3": lambda day: (
        day is not None and day >= date(2020, 2, 29) and day.month == 3
    ),
}


def find_people(data: wi.Table, *texts: str) -> list[set[Any]]:
    """Of whom each condition is true."""
    marks = {f"c{at}": parse_condition(text, data.data) for at, text in enumerate(texts)}
    rows = data.engine.run(data.data.select("who", **marks)).to_pylist()
    return [{row["who"] for row in rows if row[mark]} for mark in marks]


def test_conditions_know_the_same_functions() -> None:
    for text, found in zip(
        CONDITIONS, find_people(oracle.table(*held(None)), *CONDITIONS), strict=True
    ):
        assert found == {f"p{at}" for at, day in enumerate(DAYS) if CONDITIONS[text](day)}, text


def test_decades_in_conditions_are_exact() -> None:
    data = oracle.table({"who": list(range(len(AGES))), "age": AGES}, {})
    starts = (-10, 0, 20, 90)
    decades = find_people(data, *(f"decade(age) = {start}" for start in starts))
    for start, found in zip(starts, decades, strict=True):
        assert found == {
            at for at, age in enumerate(AGES) if age is not None and start <= age < start + 10
        }


@pytest.mark.parametrize(
    "text", ["canton(visit) = 1", "decade(decade(age)) = 1", "isoweek(age) = 1", "isoweek() = 1"]
)
def test_conditions_refuse_others(text: str) -> None:
    data = oracle.table({"who": [1], "age": [1.0], "visit": [date(2020, 1, 1)]}, {})
    with refused("where"):
        parse_condition(text, data.data)


@pytest.mark.parametrize(
    ("domain", "field"),
    [
        ({"lower": "2024-02-30", "upper": "2024-12-31"}, "lower"),
        ({"lower": "2024-01-01", "upper": 7}, "upper"),
        ({"lower": "2024-01-01", "upper": "2024-01-01"}, "lower"),
        ({"lower": "0001-01-01", "upper": "2024-01-01"}, "upper"),
        ({"lower": "2024-01-01", "upper": "2024-12-31", "edges": "months"}, "edges of dates"),
        ({"lower": "2024-01-01", "upper": "2024-12-31", "step": 1}, "domain of visit"),
        ({"lower": "2024-01-01", "upper": "2024-12-31", "outside": "2024"}, "outside"),
        ({"lower": datetime(2024, 1, 1, 5), "upper": "2024-12-31"}, "lower"),
        ({"edges": ["2024-01-01", "2024-01-01"]}, "lower"),
        ({"edges": ["2024-01-01", "2024-05-01"], "upper": "2024-06-01"}, "edges"),
        ({"lower": "2024-01-01", "upper": "2024-01-31", "edges": "month", "outside": "drop"},
         "outside"),
        ({"lower": 0, "upper": 9, "edges": "month"}, "edges"),
    ],
)  # fmt: skip
def test_refused_domains(domain: dict[str, Any], field: str) -> None:
    with refused(field):
        read_domain("visit", domain)


@pytest.mark.parametrize(
    ("by", "field"),
    [
        ("month(nobody)", "column"),
        ("week(visit)", "function of visit"),
        ("month(age)", "function of age"),
        ("decade(ward)", "domain of ward"),
        ("month(other)", "column"),
        ("decade(wide)", "domain of wide"),
        ("visit", "domain of visit"),
        (["month(visit)", "month(visit)"], "by"),
        ("year(short)", "outside"),
    ],
)
def test_refused_functions(by: Any, field: str) -> None:
    day = date(2020, 5, 5)
    held = {"who": ["a"], "visit": [day], "age": [3.0], "ward": ["A"], "other": [day]}
    held |= {"wide": [1.0], "short": [day]}
    domains = {
        "visit": "2020-01-01..2020-12-31",
        "age": Range(0, 90),
        "ward": ["A", "B"],
        "wide": Range(0, 10**6),
        "short": Dates("2020-01-01", "2020-12-31", outside="drop"),
    }
    data = oracle.table(held, domains)
    with refused(field):
        Count(by=by).estimate_cost(data, oracle.share())


def test_a_column_of_numbers_holds_no_dates() -> None:
    with refused("column x"):
        oracle.table({"who": ["a"], "x": [1]}, {"x": "2020-01-01..2020-12-31"})
    data = oracle.table(held(None)[0], held(None)[1])
    with refused("domain of visit"):
        wi.release.Sum(column="visit").estimate_cost(data, oracle.share())


def test_a_column_that_is_called_like_a_function_is_that_column() -> None:
    data = oracle.table({"who": ["a"], "month(x)": ["A"]}, {"month(x)": ["A", "B"]})
    assert oracle.exact(Count(by="month(x)"), data) == [[1, 0, 0]]


def test_a_synthetic_table_drops_no_row(tmp_path) -> None:
    data = oracle.table(*held("clamp"))
    query = Synthetic(columns=["month(visit)"], path=str(tmp_path / "s.parquet"))
    with refused("domain of month(visit)"):
        query.estimate_cost(data, oracle.share(relation="replace"))
    open_one = oracle.table(*held(None))
    query.estimate_cost(open_one, oracle.share(relation="replace"))


def test_constant_and_bounds_follow_the_column() -> None:
    table, _ = held(None)
    for constant, groups in ((True, 1), (False, 4)):
        domains = {"visit": Dates(FIRST, LAST, "year", constant=constant)}
        data = oracle.table(table, domains, max_groups=4)
        assert Count(by="month(visit)").bounds(data).max_groups == groups
    varying = oracle.table(table, {"visit": Dates(FIRST, LAST)})
    [caution] = Count(by=("month(visit)", "year(visit)")).cautions(varying)
    assert caution.columns == ("visit",)


def test_the_budget_is_bound_to_the_column(tmp_path) -> None:
    plan, ledger = oracle.PLANS["add-remove"], tmp_path / "l.db"
    table, domains = held(None)
    first = oracle.table(table, domains)
    answer = wi.Session(first, plan, ledger, preflight=False).ask(
        Count(by="month(visit)"), share="1/4"
    )
    assert answer.columns[0] == "month(visit)" and len(answer.rows) == 13
    assert 'values of month(visit) that were not declared are in "other"' in answer.statement
    question = register_question(register_table(first), Count(by="month(visit)"), first)
    assert "visit" in question.domains and "visit" in Count(by="month(visit)").names(first)
    other = oracle.table(table, domains | {"visit": Dates("2019-01-01", LAST, "month")})
    with pytest.raises(BudgetRefused, match=r"2019-11-20\.\.2021-02-10, edges month"):
        wi.Session(other, plan, ledger)


def test_the_curator_sees_days_outside() -> None:
    found = {each.what: each.rows for each in check_table(oracle.table(*held("clamp")))}
    outside = sum(1 for day in DAYS if day is not None and not FIRST <= day <= LAST)
    assert found["visit: outside 2019-11-20..2021-02-10"] == outside
    assert found["visit: no date there"] == 1 and found["text: no date there"] == 5
    assert found["visit: privacy units in more than one cell"] == 0


def test_top_of_months() -> None:
    data = oracle.table(*held(None))
    assert len(Top(by="month(visit)", k=2)._named(Top(by="month(visit)")._cells(data))) == 12


SCENARIO = """
[target]
epsilon = 1
[table]
source = "visits.parquet"
privacy_unit = "who"
max_groups = 1
[domains]
visit = { lower = 2019-11-20, upper = 2021-02-10, edges = "quarter", outside = "drop" }
[[queries]]
kind = "count"
by = ["year(visit)"]
[[queries]]
kind = "histogram"
column = "visit"
"""


def test_from_a_scenario_file(run, tmp_path) -> None:
    parquet.write_table(held(None)[0], tmp_path / "visits.parquet")
    path = tmp_path / "visits.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    code, out, err = run("release", path, "--json")
    assert code == 0, err
    years, quarters = json.loads(out)["answers"]
    assert [row[0] for row in years["rows"]] == [2019, 2020, 2021]
    assert [row[0] for row in quarters["rows"]][:2] == ["2019-Q4", "2020-Q1"]
    assert "rows whose year(visit) was not declared do not count" in years["statement"]
