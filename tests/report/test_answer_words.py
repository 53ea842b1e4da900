"""Labels and numbers of answers are the same in every mouth: years, postal codes, "other"."""

from __future__ import annotations

import csv
import math
import re

import pytest

import whosin as wi
from whosin.release.answer import read_releases
from whosin.release.domains import other_label
from whosin.release.queries.base import AMOUNT, NAME, POINT
from whosin.report.document import format_point
from whosin.report.html import release_report
from whosin.report.releases import describe_release, describe_releases, describe_report
from whosin.report.table_views import column_scales, format_cell, save_answers
from whosin.report.terminal import document_text, print_document

PLAN = wi.calibrate(wi.Posterior("0.9999"), wi.families.Independent("0.05", "0.5"), query="count")
WARDS = ["north", "other"]
DOMAINS = {
    "year": [2024, 2025],
    "code": [10115, 80331],
    "ward": WARDS,
    "born": {"lower": 1900, "upper": 2024, "edges": [1900, 2000, 2025]},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    lines = [
        f"p{n},{2024 + n % 3},{[10115, 80331][n % 2]},{['north', 'other', 'south'][n % 3]},1987"
        for n in range(60)
    ]
    text = "\n".join(["who,year,code,ward,born", *lines])
    (folder / "people.csv").write_text(text, encoding="utf-8")
    table = wi.Table(folder / "people.csv", "who", DOMAINS)
    queries = [
        wi.queries.Count(by=["year", "code"], name="by year"),
        wi.queries.Count(by=["ward"], name="by ward"),
        wi.queries.Marginals(sets=[["year", "ward"]], name="tables"),
        wi.queries.Quantile(column="born", name="middle"),
    ]
    return wi.Session(table, PLAN, folder / "ledger.db", share=1).release(queries)


def test_labels_have_no_thousands_separator(made, run, capsys):
    print_document(describe_release("it", made))
    told = [capsys.readouterr().out, made._repr_html_(), release_report("it", PLAN, made)]
    for text in told:
        assert "2024" in text and "10115" in text
        assert not re.search(r"2,02[45]|10,115|80,331", text)


def test_points_have_separators_from_five_digits_on(made):
    """As typesetters do it, so that the median of years is no number of people."""
    assert [format_point(each) for each in (0, 2024, -2024, 9999, 10000, -1234567)] == [
        *("0", "2024", "-2024", "9999", "10,000", "-1,234,567")
    ]
    assert format_point(2024.5, ".1f") == "2024.5" and format_point(12024.5, ".1f") == "12,024.5"
    assert (
        format_point(9999.96, ".1f") == "10,000.0" and format_point(-9999.96, ".1f") == "-10,000.0"
    )
    assert format_cell(2024.0, POINT) == "2024" and format_cell(1234567.25, POINT) == "1,234,567.2"
    assert format_cell(2024) == "2,024" and format_cell(20240, NAME) == "20240"
    assert format_cell(None) == "–" and format_cell(True) == "True"
    assert set(column_scales(made[3]).values()) == {POINT}
    assert column_scales(made[0]) | {"year": NAME, "value": AMOUNT} == column_scales(made[0])


def test_the_cell_for_undeclared_values_has_one_name(made, tmp_path):
    answer = made[1]
    labels = [row[0] for row in answer.rows]
    assert labels == ["north", "other", "undeclared"]
    said = 'ward that were not declared are in "undeclared", which no declared value is called'
    assert said in answer.statement and said in made[2].statement
    assert 'values of year and code that were not declared are in "other"' in made[0].statement
    save_answers(made, tmp_path / "x.csv")
    with (tmp_path / "x-2-by-ward.csv").open(encoding="utf-8") as file:
        assert [row["ward"] for row in csv.DictReader(file)] == labels
    for text in (made._repr_html_(), release_report("it", PLAN, made)):
        assert "undeclared" in text and said.replace('"', "&#34;") in text


def test_stored_answers_of_older_ledgers_still_say_what_they_said():
    from whosin.release.contribution_bounds import bounds_statement

    old = {
        "privacy_unit": "who",
        "max_rows_per_group": None,
        "max_groups": None,
        "ranges": {},
        "others": ["ward"],
    }
    said = bounds_statement({**old, "by_row": False}, False)
    assert said.endswith('values of ward that were not declared are in "other".')


def test_a_name_for_other_values_is_free_in_any_spelling():
    assert other_label(["a"]) == "other"
    assert other_label(["a", "other", "undeclared"]) == "undeclared_"
    assert other_label(["Other"]) == "undeclared" and other_label([1, 2]) == "other"


def test_the_curators_look_names_the_same_cell(tmp_path):
    from whosin.release.inspection import check_table

    (tmp_path / "t.csv").write_text("who,ward\na,south\n", encoding="utf-8")
    table = wi.Table(tmp_path / "t.csv", "who", {"ward": WARDS})
    findings = {each.what: each.rows for each in check_table(table)}
    assert findings['ward: not a declared value, in "undeclared"'] == 1


def test_a_condition_goes_with_its_answer(tmp_path):
    """Whoever reads the number learns of which rows it is: beside every title, and in what counts,
    which goes into files."""
    (tmp_path / "t.csv").write_text(
        "who,ward,age\n" + "".join(f"p{n},{'xy'[n % 2]},{n % 90}\n" for n in range(60)), "utf-8"
    )
    domains = {"ward": ["x", "y"], "age": {"lower": 0, "upper": 90}}
    table = wi.Table(tmp_path / "t.csv", "who", domains)
    where = "ward = 'x' and age > 3"
    queries = [
        wi.queries.Mean(column="age", name="mean age", where=where),
        wi.queries.Count(where="age < 50"),
        wi.queries.Count(by="ward"),
    ]
    with wi.Session(table, PLAN, tmp_path / "ledger.db", share=1) as session:
        made = session.release(queries)
    with wi.Ledger(tmp_path / "ledger.db") as ledger:
        (stored,) = read_releases(ledger, "t")
    for each in (made, stored):
        officer = describe_report("t", PLAN, each, None, "officer")
        for document in (describe_release("t", each), describe_releases("t", [each]), officer):
            text = " ".join(document_text(document).split())
            assert f"mean age where {where}" in text
            assert "where age < 50" in text and "where age < 50 where" not in text
        assert each["mean age"].statement.startswith(f"Only rows where {where} count; privacy unit")
        assert "where" not in each[2].statement
        named = "mean age where ward = &#39;x&#39;"  # on page 1, with its noise, as a heading
        assert release_report("t", PLAN, each).count(named) == 3
        about = each["mean age"].to_pandas().attrs["whosin"]
        assert f"Only rows where {where}" in about["statement"]


@pytest.mark.parametrize(("groups", "said"), [(9, False), (12, True), (40, True)])
def test_many_intervals_say_how_many_tables_have_one_that_misses(tmp_path, groups, said):
    """Of 12 intervals at 95% one misses in nearly every second table; counted by enumeration."""
    (tmp_path / "t.csv").write_text("who,g\na,0\n", "utf-8")
    domains = {"g": {"values": list(range(groups)), "outside": "drop"}}
    table = wi.Table(tmp_path / "t.csv", "who", domains)
    with wi.Session(table, PLAN, tmp_path / "ledger.db", share=1) as session:
        made = session.release([wi.queries.Count(by=["g"])])
    assert len(made[0].rows) == groups
    chances = (math.comb(groups, k) * 0.05**k * 0.95 ** (groups - k) for k in range(1, groups + 1))
    words = f"up to {math.ceil(100 * sum(chances))} of 100 such tables"
    page = release_report("t", PLAN, made)
    assert (words in page and f"Each of these {groups} intervals" in page) is said
    assert said or "such tables" not in page
