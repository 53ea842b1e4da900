"""A report that stands alone: one HTML file, no scripts, no outside address, charts as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from whosin.calibration import Plan
from whosin.extras import require_extras
from whosin.plain_files import write_file
from whosin.references import THEOREMS
from whosin.release import Answer, Release
from whosin.release.answer import NOISY_MARK
from whosin.release.queries.base import AMOUNT
from whosin.report import card
from whosin.report.budget import budget_state_card, cost_words
from whosin.report.card import plan_charts
from whosin.report.charts import policy_element
from whosin.report.releases import cell_words
from whosin.report.table_views import TABLE_STYLE as TABLES_STYLE
from whosin.report.table_views import answer_chart, column_scales, tables_html
from whosin.report.terminal import AFTER, BEFORE, LINE, MARKS, NEVER, Marks, check_writable

PAGE_STYLE = """
:root { color-scheme: light; --ink: #1c2733; --soft: #5b6875; --line: #d8dfe6; --mark: #1b6ca8; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); margin: 0 auto; max-width: 52rem;
  padding: 2rem 1.25rem 4rem; background: #fff; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .5rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; } p { margin: .3rem 0; } .soft { color: var(--soft); }
table { border-collapse: collapse; margin: .5rem 0; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; } code { font-size: .8rem; word-break: break-all; }
svg { max-width: 100%; height: auto; } .wide { overflow-x: auto; max-width: 100%; }
h1, h2, h3, p, li, summary, label { overflow-wrap: anywhere; }
.many { font-size: .75rem; width: max-content; max-width: calc(100vw - 2.5rem); position: relative;
  left: 50%; transform: translateX(-50%); }
.many th, .many td { padding-right: .6rem; }
@media print { .many { font-size: .5rem; overflow: visible; } .many td { padding-right: .3rem; } }
"""
MOST_ROWS = 200
MANY_COLUMNS = 8


def check_path(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is not None:
        require_extras("charts")
        check_writable(path, "--report", (".html", ".htm"))


def save_report(title: str, plan: Plan, release: Release, path: Path) -> None:
    """Write the report of a release."""
    check_path(path)
    write_file(path, release_report(title, plan, release), "--report", private=True)


def release_report(title: str, plan: Plan, release: Release) -> str:
    """What was asked, whom it protects from whom, the answers, the ledger, the theorems."""
    require_extras("charts")
    body = [
        f"<p class=soft>Released under a promise about what anyone can learn; request "
        f"<code>{escape(release.request)}</code>.</p>",
        html_heading("Whom it protects from whom"),
        html_sections(card.plan_card(plan)[:2]),
        html_sections([part for part in card.plan_card(plan) if part.marks is not None]),
        *map(chart_svg, plan_charts(plan)),
        html_heading("Answers"),
        "<p class=soft>Each number has noise; the interval holds the answer without noise in 95 of "
        "100 cases. What clamping and limiting a person's rows leave out is not in it: each answer "
        "says what counts.</p>",
        *(_answer_section(answer, number) for number, answer in enumerate(release)),
        html_heading("What all answers together allow, and the ledger"),
        html_sections(budget_state_card(release.budget_state)),
        html_heading("If they know more than assumed"),
        *(
            html_paragraphs(part)
            for part in card.plan_card(plan)
            if part.title.startswith("If they know")
        ),
        html_heading("Why this holds"),
        theorem_list(plan.theorems),
    ]
    return html_page(title, body)


def html_page(title: str, body: Iterable[str]) -> str:
    """Return a whole HTML page around a body."""
    return (
        f"<!doctype html>\n<html lang=en>\n<head>\n{policy_element()}\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLE}{TABLES_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def html_heading(text: str) -> str:
    """Return a heading of a section as HTML."""
    return f"<h2>{escape(text)}</h2>"


def html_sections(parts: Sequence[card.Section]) -> str:
    """The sections of a card as HTML."""
    return "\n".join(
        f"<h3>{escape(part.title)}</h3>\n"
        + html_paragraphs(part)
        + ("" if part.marks is None else people_drawing(part.marks))
        for part in parts
    )


def html_paragraphs(part: card.Section) -> str:
    """The sentences of a section as HTML, without its title."""
    return "\n".join(f"<p>{escape(each)}</p>" for each in part.lines)


def people_drawing(marks: Marks) -> str:
    """A hundred marks as a drawing: full before, half at most after."""
    positions = [divmod(at, LINE) for at in range(MARKS)]
    fills = {BEFORE: "#1b6ca8", AFTER: "#a9cbe4", NEVER: "none"}
    dots = "".join(
        f'<circle cx="{8 + 15 * column}" cy="{8 + 15 * row}" r="5.5" stroke="#1b6ca8" '
        f'fill="{fills[kind]}"/>'
        for (row, column), kind in zip(positions, "".join(marks.lines()), strict=True)
    )
    first, then = marks.when
    words = (
        f"Each mark is 10 people: {marks.before} dark {first}, {marks.after} in colour at "
        f"most {then}."
    )
    return (
        f'<svg class=people viewBox="0 0 {15 * LINE + 1} {15 * MARKS // LINE + 1}" width="300" '
        f'role="img" aria-label="{words}">{dots}</svg>\n<p class=soft>{words}</p>'
    )


def theorem_list(numbers: Sequence[str]) -> str:
    """The theorems a promise rests on."""
    return "<ul>" + "".join(f"<li>{escape(str(THEOREMS[n]))}</li>" for n in numbers) + "</ul>"


def rows_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    noisy: Sequence[bool] = (),
    scales: Mapping[str, str] | None = None,
) -> str:
    """A table of values, cut after many rows.

    Args:
        scales: what the values of columns are; amounts where nothing is said.
        noisy: for each row whether its value is too noisy to read, which is marked.
    """
    numeric = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(columns))]
    kinds = [" class=number" if right else "" for right in numeric]
    head = "".join(f"<th{k}>{escape(c)}</th>" for c, k in zip(columns, kinds, strict=True))
    lines = [
        "".join(
            f"<td{kind}>{NOISY_MARK * (name == 'value' and any(marked))}"
            f"{escape(cell_words(v, (scales or {}).get(name, AMOUNT)))}</td>"
            for name, v, kind in zip(columns, row, kinds, strict=True)
        )
        for row, *marked in zip_longest(rows[:MOST_ROWS], noisy[:MOST_ROWS])
    ]
    more = f"<p class=soft>… {len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    wide = "wide many" if len(columns) > MANY_COLUMNS else "wide"
    return f"<div class='{wide}'><table><tr>{head}</tr>{body}</table></div>{more}"


def answer_html(answer: Answer) -> str:
    """The rows of an answer, or of one of its tables."""
    return rows_table(answer.columns, answer.rows, answer.noisy, column_scales(answer))


def chart_svg(chart: Any) -> str:
    """A chart as SVG inside the page."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_json())
    return "<div class=wide>" + re.sub(r"^<\?xml.*?\?>", "", svg) + "</div>"


def _question_value(value: Any) -> str:
    """What was asked under a key, in words."""
    if not isinstance(value, list):
        return str(value)
    inner = (" × ".join(map(str, each)) if isinstance(each, list) else each for each in value)
    return " and ".join(map(str, inner))


def _answer_section(answer: Answer, number: int) -> str:
    paid = f"{cost_words(answer.cost)}; {answer.noise}"
    hidden = {"counted", "name", "universe", "prior"}
    if answer.tables:
        hidden |= {"sets", "ranges"}  # the tables say it themselves
    asked = ", ".join(
        f"{key} {_question_value(value)}"
        for key, value in answer.question.items()
        if key not in hidden
    )
    chart = None if answer.tables else answer_chart(answer)
    return "\n".join(
        [
            f"<h3>{escape(answer.title)}</h3>",
            f"<p class=soft>{escape(asked)} — {escape(paid)}</p>",
            "" if chart is None else chart_svg(chart),
            tables_html(answer, number) if answer.tables else answer_html(answer),
            f"<p class=soft>{escape(answer.noisy_note)}</p>" if answer.noisy_note else "",
            f"<p class=soft>{escape(answer.statement)}</p>" if answer.statement else "",
        ]
    )
