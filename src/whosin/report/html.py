"""A report that stands alone: one HTML file, no scripts, no outside address, charts as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import zip_longest
from pathlib import Path
from typing import Any

from whosin.calibration import Plan
from whosin.extras import needs
from whosin.references import THEOREMS
from whosin.release import Answer, Release
from whosin.release.noisy_cells import MARK
from whosin.release.queries.base import AMOUNT
from whosin.report import card
from whosin.report.answer_charts import answer_chart
from whosin.report.budget import cost_words, standing_card
from whosin.report.files import check_writable
from whosin.report.frequencies import AFTER, BEFORE, LINE, MARKS, NEVER, Marks
from whosin.report.plan_charts import plan_charts
from whosin.report.policy import policy
from whosin.report.releases import cell_words
from whosin.report.table_pages import STYLE as TABLES_STYLE
from whosin.report.table_pages import tables_html
from whosin.report.table_views import scales_of

STYLE = """
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
        needs("charts")
        check_writable(path, "--report", (".html", ".htm"))


def save_report(title: str, plan: Plan, release: Release, path: Path) -> None:
    """Write the report of a release."""
    check_path(path)
    path.touch(0o600)  # a new file is for its owner only
    path.write_text(release_report(title, plan, release), encoding="utf-8")


def release_report(title: str, plan: Plan, release: Release) -> str:
    """What was asked, whom it protects from whom, the answers, the ledger, the theorems."""
    needs("charts")
    body = [
        f"<p class=soft>Released under a promise about what anyone can learn; request "
        f"<code>{escape(release.request)}</code>.</p>",
        heading("Whom it protects from whom"),
        sections(card.card(plan)[:2]),
        sections([part for part in card.card(plan) if part.marks is not None]),
        *map(drawing, plan_charts(plan)),
        heading("Answers"),
        "<p class=soft>Each number has noise; the interval holds the answer without noise in 95 of "
        "100 cases. What clamping and limiting a person's rows leave out is not in it: each answer "
        "says what counts.</p>",
        *(_answer(answer, number) for number, answer in enumerate(release)),
        heading("What all answers together allow, and the ledger"),
        sections(standing_card(release.standing)),
        heading("If they know more than assumed"),
        *(paragraphs(part) for part in card.card(plan) if part.title.startswith("If they know")),
        heading("Why this holds"),
        theorems(plan.theorems),
    ]
    return page(title, body)


def page(title: str, body: Iterable[str]) -> str:
    """A whole page."""
    return (
        f"<!doctype html>\n<html lang=en>\n<head>\n{policy()}\n<meta charset=utf-8>\n"
        '<meta name=viewport content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}{TABLES_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def heading(text: str) -> str:
    """A heading."""
    return f"<h2>{escape(text)}</h2>"


def sections(parts: Sequence[card.Section]) -> str:
    """Sections of a card."""
    return "\n".join(
        f"<h3>{escape(part.title)}</h3>\n"
        + paragraphs(part)
        + ("" if part.marks is None else people(part.marks))
        for part in parts
    )


def paragraphs(part: card.Section) -> str:
    """A section without its title."""
    return "\n".join(f"<p>{escape(each)}</p>" for each in part.lines)


def people(marks: Marks) -> str:
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


def theorems(numbers: Sequence[str]) -> str:
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
            f"<td{kind}>{MARK * (name == 'value' and any(marked))}"
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
    return rows_table(answer.columns, answer.rows, answer.noisy, scales_of(answer))


def drawing(chart: Any) -> str:
    """A chart as SVG inside the page."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_json())
    return "<div class=wide>" + re.sub(r"^<\?xml.*?\?>", "", svg) + "</div>"


def _said(value: Any) -> str:
    """What was asked under a key, in words."""
    if not isinstance(value, list):
        return str(value)
    inner = (" × ".join(map(str, each)) if isinstance(each, list) else each for each in value)
    return " and ".join(map(str, inner))


def _answer(answer: Answer, number: int) -> str:
    paid = f"{cost_words(answer.cost)}; {answer.noise}"
    hidden = {"counted", "name", "universe", "prior"}
    if answer.tables:
        hidden |= {"sets", "ranges"}  # the tables say it themselves
    asked = ", ".join(
        f"{key} {_said(value)}" for key, value in answer.question.items() if key not in hidden
    )
    chart = None if answer.tables else answer_chart(answer)
    return "\n".join(
        [
            f"<h3>{escape(answer.title)}</h3>",
            f"<p class=soft>{escape(asked)} — {escape(paid)}</p>",
            "" if chart is None else drawing(chart),
            tables_html(answer, number) if answer.tables else answer_html(answer),
            f"<p class=soft>{escape(answer.noisy_note)}</p>" if answer.noisy_note else "",
            f"<p class=soft>{escape(answer.statement)}</p>" if answer.statement else "",
        ]
    )
