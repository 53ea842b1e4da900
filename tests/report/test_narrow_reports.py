"""Reports on a phone, where nothing is wider than the screen, and on paper."""

from __future__ import annotations

import re

import pytest

import whosin as wi
from whosin.report.document import Document, make_section, make_table
from whosin.report.html import render_page, save_report

PLAN = wi.calibrate(wi.Posterior("0.6"), wi.families.Independent("0.05", "0.5"), query="count")
LONG = "a_name_that_somebody_gave_to_a_column_or_a_question_and_that_has_no_space_anywhere_in_it"
A4_WIDTH, A4_HEIGHT = 665, 1028
"""Pixels of a page without its margins."""
PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")
WIDE = "() => document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("narrow")
    rows = "".join(f"p{n},{'xy'[n % 2]},{n % 90}\n" for n in range(90))
    (folder / "t.csv").write_text(f"who,{LONG},age\n{rows}", encoding="utf-8")
    domains = {LONG: ["x", LONG.upper()], "age": {"edges": list(range(0, 100, 5))}}
    table = wi.Table(folder / "t.csv", "who", domains)
    made = wi.Session(table, PLAN, folder / "ledger.db", share=1).release(
        [
            wi.queries.Count(name=LONG, where="age > 3"),
            wi.queries.Count(by=[LONG]),
            wi.queries.Marginals(columns=[LONG, "age"], order=2, name="tables"),
        ]
    )
    save_report(f"Visits {LONG}", PLAN, made, folder / "out.html")
    save_report("Visits", PLAN, made, folder / "officer.html", reader="officer")
    return folder / "out.html"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_a_report_is_no_wider_than_the_screen(browser, report, width):
    """The head of the ledger, 64 letters without a space, used to push it 258 pixels out."""
    context = browser.new_context(viewport={"width": width, "height": 844}, is_mobile=True)
    page = context.new_page()
    page.goto(report.as_uri())
    wide = page.evaluate(WIDE)
    context.close()
    assert wide <= width


def test_the_pages_for_the_officer_are_two(browser, report):
    page = browser.new_page()
    page.goto(report.with_name("officer.html").as_uri())
    printed = page.pdf(prefer_css_page_size=True)
    page.close()
    assert len(PAGES.findall(printed)) == 2
    assert b"594.9" in printed or b"595" in printed  # A4


def test_a_printed_heading_stays_with_its_table(browser):
    """An actor's heading and two paragraphs, where the page ends: they go on to the next page with
    the table, so that what just fills that page needs a third."""
    words = ("Knows everyone else.", "Family: any.", make_table(("before", "after"), [("1", "2")]))
    page = browser.new_page(viewport={"width": A4_WIDTH, "height": A4_HEIGHT})
    page.set_content(render_page(Document("Actors", (make_section("Insider", *words),))))
    page.emulate_media(media="print")
    page.evaluate(
        """height => {
            const place = (before, room) => {
                const made = document.createElement("div");
                made.style = `height: ${room}px; break-inside: avoid`;
                before.parentNode.insertBefore(made, before);
            };
            const [head, table] = ["h3", ".wide"].map(each => document.querySelector(each));
            const [up, down] = [head, table].map(each => each.getBoundingClientRect());
            place(head, height - up.top - (down.top - up.top) - 16);
            const end = document.createElement("p");
            document.body.append(end);
            place(end, height - down.height - 30);
        }""",
        A4_HEIGHT,
    )
    printed = page.pdf(prefer_css_page_size=True)
    page.close()
    assert len(PAGES.findall(printed)) == 3


def test_a_report_of_a_study_is_no_wider_than_the_screen(browser, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("gwas simulate study --cases 60 --controls 60 --snps 50 --causal 5")[0] == 0
    line = "gwas release study --relation label-swap --top 3 --epsilon 1 --save out.html"
    code, _out, err = run(line)
    assert code == 0, err
    context = browser.new_context(viewport={"width": 390, "height": 844}, is_mobile=True)
    page = context.new_page()
    page.goto((tmp_path / "out.html").as_uri())
    wide = page.evaluate(WIDE)
    context.close()
    assert wide <= 390
