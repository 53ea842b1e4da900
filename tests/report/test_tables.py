"""Many tables of one answer, as people read them: on a terminal, in a report, in files."""

from __future__ import annotations

import base64
import html as entities
import io
import json
import re
from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest
from pyarrow import csv, parquet
from rich.console import Console

from whosin.ledger.budget import Cost
from whosin.release.answer import Answer
from whosin.report import html, table_views
from whosin.report.document import Document, TableSet, make_document, make_section, margin_decimals
from whosin.report.html import notebook_html, render_page
from whosin.report.table_views import (
    describe_agreement,
    list_table_views,
    page_data,
)
from whosin.report.terminal import print_document

EVIL = "<b>&amp;'\""
DOMAINS = {"sex": ["f", "m"], "ward": ["A", EVIL, "[red]C"], "noisy": [True, False]}
SETS: list[list[str]] = [[], ["sex"], ["ward"], ["sex", "ward"], ["ward", "noisy"], [*DOMAINS]]


def made(sets: list[list[str]] = SETS, domains: dict = DOMAINS, total: float = 1200.4) -> Answer:
    """An answer whose numbers are known: all cells of a table are alike but the first."""
    rows, tables = [], []
    for columns in sets:
        cells = list(product(*(domains[each] for each in columns)))
        reach = 12.25 * len(cells)
        for place, labels in enumerate(cells):
            value = (
                total if len(cells) == 1 else total / 2 / (len(cells) - 1) if place else total / 2
            )
            whole = 1200 if len(cells) == 1 else 1200 - (len(cells) - 1) * 3 if not place else 3
            ends = [value - reach, value + reach, value - 2 * reach, value + 2 * reach]
            title = ", ".join(columns) or "total"
            rows.append((title, ", ".join(map(str, labels)), value, *ends, whole))
        tables.append({"columns": columns, "cells": len(cells), "standard_error": reach / 1.96})
    numbers = ("value", "low", "high", "all_low", "all_high", "whole")
    return Answer(
        "people",
        {"query": "marginals"},
        ("table", "cell", *numbers),
        tuple(rows),
        "Laplace",
        Cost.pure(1),
        {"domains": domains, "tables": tables},
    )


def printed(answer: Answer, width: int = 80) -> str:
    out = io.StringIO()
    shown = Document("", (make_section("people", TableSet(answer, "r-1")),))
    print_document(shown, Console(file=out, width=width, highlight=False))
    return out.getvalue()


def tables_html(answer: Answer) -> str:
    return render_page(make_document("", TableSet(answer))).partition("<body>")[2]


def test_a_table_says_what_is_in_the_answer() -> None:
    total, sex, ward, pair, other, three = list_table_views(made())
    assert (total.keys, total.cells, total.labels) == ((), ((),), ())
    assert total.margin_words == "± 12 with 95% probability"
    assert sex.margin_words == "± 24 for each cell; ± 49 for all 2 at once"
    assert pair.labels == (("f", "m"), ("A", EVIL, "[red]C")) and three.crosstab is None
    assert ward.crosstab is None and other.keys == ("ward", "noisy")
    tab = pair.crosstab
    assert tab is not None and (tab.down, tab.across) == ("ward", "sex")
    shown = [[pair.cells[place] for place in row] for row in tab.indices]
    assert shown == [[(s, w) for s in ("f", "m")] for w in ("A", EVIL, "[red]C")]
    assert pair.noisy == (False, *[True] * 5) and pair.number(0) == "600" and pair.margin(1) == "74"
    margins = (0.012, 0.5, 1, 9.9, 10, 3000, 0)
    assert [*map(margin_decimals, margins)] == [3, 2, 1, 1, 0, 0, 0]
    said = page_data(made())
    assert [each["start"] for each in said] == [0, 1, 3, 6, 12, 18]
    assert sum(each["cells"] for each in said) == len(made().rows)
    assert said[3]["noisy"] == 5 and json.dumps(said)


def test_agreement_is_found_by_adding_up() -> None:
    answer = made()
    words = "each of the 6 tables adds up to 1,200, and in whole numbers, biased, to 1,200."
    assert words in describe_agreement(answer)
    assert describe_agreement(made(SETS[1:2])) == ""
    last = list(answer.rows[-1])
    for place, more in ((2, 0.5), (7, 1)):  # an estimate, a whole number
        wrong = [*last[:place], last[place] + more, *last[place + 1 :]]
        other = replace(answer, rows=(*answer.rows[:-1], tuple(wrong)))
        assert "The totals of the 6 tables differ" in describe_agreement(other)
        assert answer.details is not None
        overlapping = [
            *answer.details["tables"][:-1],
            {**answer.details["tables"][-1], "adds_up": False},
        ]
        other = replace(other, details={**answer.details, "tables": overlapping})
        assert "each of the 5 tables whose cells do not overlap adds up" in describe_agreement(
            other
        )


@pytest.mark.parametrize("width", [80, 40])
def test_on_a_terminal_nothing_is_cut(width: int) -> None:
    text = printed(made(), width)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text and EVIL in text and "[red]C" in text
    squeezed = re.sub(r"\s+", " ", text)
    assert "1,200 ± 12" in squeezed and "600 ± 24" in squeezed
    if width == 80:
        assert re.search(r"ward \\ sex +f +m", text) and re.search(r"A +600 +\*120", text)
        assert re.search(r"f +A +True +600 ± 147 +1,167", text)
    assert "--save" not in text, "all of it is here"


def test_a_long_answer_is_summarised() -> None:
    domains = {f"c{place}": [f"value {each}" for each in range(20)] for place in range(9)}
    sets = [[each] for each in domains] + [[one, "c8"] for one in list(domains)[:-1]]
    text = printed(made(sets, domains))
    assert max(map(len, text.splitlines())) <= 80 and len(text.splitlines()) < 120
    assert "\n  c2 " in text and "\n  c3 " in text.partition("14 more tables of 3,320 cells")[2]
    squeezed = re.sub(r"\s+", " ", text)
    assert "--request r-1 with --report" in squeezed and "c0, c8 400 4,900 400" in squeezed


def test_files_keep_marks_and_keys() -> None:
    answer = made()
    table = csv.read_csv(io.BytesIO(table_views.csv_bytes(answer.table("ward", "noisy"))))
    numbers = ["value", "low", "high", "all_low", "all_high", "whole"]
    assert table.column_names == ["ward", "noisy", *numbers, "noisy_"], "the key keeps its name"
    assert table["noisy_"].to_pylist() == [False, *[True] * 5]
    every = parquet.read_table(pa.BufferReader(table_views.parquet_bytes(answer)))
    keys = ["sex", "ward", "noisy_"]
    assert every.column_names == ["table", "cell", *keys, *numbers, "noisy"]
    rows = every.to_pylist()
    assert [rows[0][key] for key in keys] == [None] * 3 and rows[0]["table"] == "total"
    pair = [row for row in rows if row["table"] == "sex, ward"]
    assert [(row["sex"], row["ward"], row["noisy_"]) for row in pair[:2]] == [
        ("f", "A", None),
        ("f", EVIL, None),
    ]
    assert [row["noisy"] for row in rows] == list(answer.noisy)
    assert [row["value"] for row in rows] == [row[2] for row in answer.rows]


def test_a_report_has_every_table_and_its_files(monkeypatch) -> None:
    answer = made()
    page = tables_html(answer)
    assert page.count("<details open>") == 6 and "<script" not in page and "<b>&amp;'" not in page
    assert (
        EVIL in entities.unescape(page) and "biased" in page and describe_agreement(answer) in page
    )
    links = re.findall(r'download="([^"]+)" href="data:([^;]+);base64,([^"]+)"', page)
    assert [name for name, *_ in links] == [
        *("total.csv", "sex.csv", "ward.csv", "sex-ward.csv", "ward-noisy.csv"),
        *("sex-ward-noisy.csv", "people.parquet"),
    ]
    for (_, kind, data), one in zip(links[:-1], answer.tables, strict=True):
        assert kind == "text/csv" and base64.b64decode(data) == table_views.csv_bytes(one)
    kept = parquet.read_table(pa.BufferReader(base64.b64decode(links[-1][2])))
    assert kept.num_rows == len(answer.rows)
    # A head stands again on every page that a table goes on to in print.
    assert page.count("<table class=heat><thead>") == 2 == page.count("<table class=heat>")
    assert "--a:100%;--b:100%" in page
    assert ">*120<" in page and ">600<" in page and ">*600<" not in page
    assert "0 or below<span class=bar>" in page
    monkeypatch.setattr(html, "MAX_INSIDE_BYTES", 300)
    short = tables_html(answer)
    assert "people.parquet is too large for this report" in short and ".parquet;base64" not in short
    assert 'download="sex.csv"' in short


def test_a_notebook_has_every_table() -> None:
    page = notebook_html(made())
    assert (
        page.count("<details>") == 6
        and describe_agreement(made()) in page
        and ">*120 ± 74<" in page
    )


def test_many_tables_are_opened_one_at_a_time(monkeypatch) -> None:
    domains = {f"c{place}": list(range(4)) for place in range(14)}
    page = tables_html(made([[each] for each in domains], domains))
    assert page.count('<details name="tables-0">') == 14 and "<details open" not in page
    monkeypatch.setattr(table_views, "MAX_REPORT_CELLS", 10)
    cut = tables_html(made([[each] for each in domains], domains))
    assert cut.count("<details") == 2 and "12 more tables are not in this report" in cut
    assert ".parquet" not in cut


def test_a_report_in_a_browser(browser, tmp_path) -> None:
    """What is chosen is shown, by the style sheet alone, and files come out of the page."""
    file = tmp_path / "report.html"
    file.write_text(render_page(make_document("Tables", TableSet(made()))), encoding="utf-8")
    said: list[str] = []
    seen = browser.new_context(viewport={"width": 375, "height": 800}).new_page()
    seen.on("console", lambda message: said.append(message.text))
    seen.goto(file.as_uri())
    first = seen.locator("details", has_text="sex").first
    assert "± 24 a cell" in first.inner_text() and "49" not in first.inner_text()
    seen.get_by_label("for all cells of a table at once").check()
    assert "± 49 for all at once" in first.inner_text() and "± 24" not in first.inner_text()
    seen.get_by_label("whole numbers from 0 up (biased)").check()
    assert "1,197" in first.inner_text() and "±" not in first.inner_text()
    with seen.expect_download() as waiting:
        seen.get_by_role("link", name="sex.csv").click()
    waiting.value.save_as(tmp_path / "sex.csv")
    assert (tmp_path / "sex.csv").read_bytes() == table_views.csv_bytes(made().table("sex"))
    assert seen.evaluate("document.documentElement.scrollWidth") <= 375 and said == []
    seen.context.close()
