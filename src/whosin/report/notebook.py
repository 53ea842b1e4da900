"""Results in notebooks: `html(thing)` is what `_repr_html_` shows."""

from __future__ import annotations

from functools import singledispatch
from html import escape

from whosin.beliefs import format_percent
from whosin.calibration import Plan
from whosin.curves.curve import FALSE_POSITIVE_RATES, TradeOff
from whosin.extras import is_installed
from whosin.ledger import BudgetState
from whosin.notions import Level, Notion
from whosin.release import Answer, Release
from whosin.report import card, charts
from whosin.report.budget import budget_state_card, cost_words
from whosin.report.card import RATES_TITLE, plan_charts
from whosin.report.html import answer_html, chart_svg, html_sections, rows_table
from whosin.report.html import theorem_list as theorem_list
from whosin.report.table_views import answer_chart, describe_agreement
from whosin.report.terminal import format_short, rounding_side


@singledispatch
def html(thing: object) -> str:
    """A result as HTML, without styles of its own: notebooks have theirs."""
    return f"<pre>{escape(repr(thing))}</pre>"


@html.register
def _(plan: Plan) -> str:
    parts = [html_sections(card.plan_card(plan))]
    if is_installed("charts"):
        parts.extend(map(chart_svg, plan_charts(plan)))
    return _html_block(*parts, _theorem_block(plan.theorems))


@html.register
def _(curve: TradeOff) -> str:
    rounded = rounding_side(curve.exact)
    rates = [
        (format_percent(fpr), format_percent(curve.tpr(fpr), rounded))
        for fpr in FALSE_POSITIVE_RATES
    ]
    chart = chart_svg(charts.rates_chart(curve, RATES_TITLE)) if is_installed("charts") else ""
    heads = ("accused by mistake", "recognised" if curve.exact else "recognised, at most")
    advantage = (
        f"<p>Attack advantage {'=' if curve.exact else '≤'} "
        f"{format_short(curve.advantage, rounded)}</p>"
    )
    return _html_block(chart, rows_table(heads, rates), advantage)


@html.register
def _(level: Level) -> str:
    measured = isinstance(level.notion, Notion)
    unit = level.notion.unit if isinstance(level.notion, Notion) else "level"
    value = format_short(level.value, rounding_side(level.exact))
    parts = [
        f"<p>{escape(level.notion.title)}</p>" if isinstance(level.notion, Notion) else "",
        f"<h3>{unit} {'=' if level.exact else '≤'} {escape(value)}</h3>",
    ]
    if level.lower is not None:
        by = "" if level.witness is None else ", by this case"
        parts.append(f"<p>and at least {escape(format_short(level.lower, 'down'))}{by}</p>")
    if level.note:
        parts.append(f"<p>{escape(level.note)}</p>")
    case = level.witness
    if case is not None:
        about = case.entity if case.entity is not None else f"row {case.row}"
        rows = [
            ("about", str(about)),
            ("output", str(case.output)),
            ("belief before", format_percent(case.prior)),
            ("belief after", format_percent(case.posterior)),
            ("likelihood ratio", format_short(case.ratio)),
        ]
        worst = ("the case", "that proves it") if level.exact else ("the worst", "case found")
        parts.append(rows_table(worst, rows))
    elif measured:
        parts.append("<p>No single case stands behind it.</p>")
    return _html_block(*parts, _theorem_block(level.theorems))


@html.register
def _(budget_state: BudgetState) -> str:
    return _html_block(html_sections(budget_state_card(budget_state)))


@html.register
def _(answer: Answer) -> str:
    chart = answer_chart(answer) if is_installed("charts") and not answer.tables else None
    return _html_block(
        f"<h3>{escape(answer.title)}</h3>",
        f"<p>{escape(cost_words(answer.cost))}; {escape(answer.noise)}</p>",
        "" if chart is None else chart_svg(chart),
        *(_table_blocks(answer) or [answer_html(answer)]),
        f"<p>{escape(answer.noisy_note)}</p>" if answer.noisy_note else "",
        f"<p>{escape(answer.statement)}</p>" if answer.statement else "",
    )


@html.register
def _(release: Release) -> str:
    return _html_block(*(html(answer) for answer in release.answers), html(release.budget_state))


def _table_blocks(answer: Answer) -> list[str]:
    """The tables of an answer that has several, each to be opened."""
    agree = [f"<p>{escape(describe_agreement(answer))}</p>"] if answer.tables else []
    return agree + [
        f"<details><summary>{escape(each.title)}</summary>{answer_html(each)}</details>"
        for each in answer.tables
    ]


def _theorem_block(theorems: tuple[str, ...]) -> str:
    return f"<details><summary>Why this holds</summary>{theorem_list(theorems)}</details>"


def _html_block(*parts: str) -> str:
    return "<div>" + "\n".join(part for part in parts if part) + "</div>"
