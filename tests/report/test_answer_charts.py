"""The pictures of a report as they are drawn: axes that can be read, headings that stand once."""

from __future__ import annotations

import re

import pytest

import whosin as wi
from whosin.ledger import Cost
from whosin.release import Answer
from whosin.report.charts import belief_chart
from whosin.report.html import chart_svg, release_report
from whosin.report.table_views import answer_chart

COUNTS = (22_723, 9_919, -22, 14_438, 1_765, -7, -10, -5, 1)
CELLS = [
    (sex, income) for sex in ("Male", "Female", "other") for income in ("<=50K", ">50K", "any")
]
ANSWER = Answer(
    "income by sex",
    {"query": "count", "by": ["sex", "income"]},
    ("sex", "income", "value", "low", "high"),
    tuple(
        (*cell, count, count - 21, count + 21) for cell, count in zip(CELLS, COUNTS, strict=True)
    ),
    "Laplace",
    Cost.pure(1),
)
TEXT = re.compile(r'<text[^>]*?transform="([^"]*)"[^>]*>([^<]*)</text>')


@pytest.fixture(scope="module")
def drawn() -> list[tuple[str, str]]:
    """The texts of the answer's chart, with where they stand."""
    return [(text, where) for where, text in TEXT.findall(chart_svg(answer_chart(ANSWER)))]


def test_the_axis_of_an_answer_shows_0(drawn) -> None:
    """It said −2,000, 2,000, 6,000, since labels that would touch are left out."""
    texts = [text for text, _ in drawn]
    assert [text for text in texts if text in ("0", "5,000", "10,000", "20,000")] == [
        *("0", "5,000", "10,000", "20,000")
    ]


def test_the_title_of_an_axis_is_above_its_labels(drawn) -> None:
    """It was printed over labels, since it stood beside them."""
    (where,) = (where for text, where in drawn if text == "sex, income")
    assert "rotate" not in where and where.startswith("translate(0,-")


def test_labels_have_room_in_a_wide_font() -> None:
    """The first letter of Female, <=50K was cut off."""
    moved = re.findall(r'<g[^>]* transform="translate\(([\d.]+),', chart_svg(answer_chart(ANSWER)))
    left = next(float(each) for each in moved if float(each) > 1)
    assert left >= 7 * len("Female, <=50K")


def test_beliefs_have_ticks_that_do_not_touch() -> None:
    chart = chart_svg(belief_chart([("●", "plan", lambda prior: prior)], (0.0, 1.0), "t"))
    ticks = ["0%", "20%", "40%", "60%", "80%", "100%"]
    assert [text for _, text in TEXT.findall(chart) if text.endswith("%")] == ticks * 2


def test_a_heading_of_a_report_stands_once(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("who\na\n", encoding="utf-8")
    plan = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"))
    made = wi.Session(wi.Table(tmp_path / "t.csv", "who"), plan, tmp_path / "l.db").release(
        wi.queries.Count(), share=1
    )
    report = release_report("All", plan, made)
    titles = re.findall(r"<h[123]>(.*?)</h[123]>", report)
    assert "If they know more than assumed" in titles and len(titles) == len(set(titles))
    assert "Anything, such as that all are in or none (D_U): nothing is promised." in report
