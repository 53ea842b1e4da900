"""HTML: pages that stand alone and fragments for notebooks, from the templates in this folder.

Contract: every page carries a Content-Security-Policy that allows no outside address and no script
but those that we put in, by their hashes. Everything from a document is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from functools import cache, singledispatch
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from whosin.calibration import Plan
from whosin.curves.curve import TradeOff
from whosin.errors import is_installed, require_extras
from whosin.ledger import BudgetState
from whosin.notions import Level
from whosin.plain_files import check_writable, write_file
from whosin.references import THEOREMS
from whosin.release import Answer, Release
from whosin.report import card, levels, releases, table_views
from whosin.report.document import (
    Chart,
    Document,
    Strong,
    format_count,
    format_fixed,
    format_plural,
)
from whosin.report.terminal import document_text

if TYPE_CHECKING:
    from whosin.release.scenario import Scenario

MAX_PAGE_ROWS = 200
MAX_INSIDE_BYTES = 1_500_000
"""Bytes of a file inside a report: browsers take addresses of two million letters."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("whosin.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.tests["strong"] = lambda words: isinstance(words, Strong)
    made.filters |= {"count": format_count, "fixed": format_fixed, "plural": format_plural}
    made.globals |= {
        "kind": lambda part: type(part).__name__.lower(),
        "svg": lambda part: chart_svg(part.draw()),
        "theorem": lambda number: str(THEOREMS[number]),
        "most_rows": MAX_PAGE_ROWS,
        "zip": zip,
        "data_address": _data_address,
        "plain_name": table_views.plain_name,
        "csv_bytes": table_views.csv_bytes,
        "parquet_bytes": table_views.parquet_bytes,
        "list_table_views": table_views.list_table_views,
        "tables_that_fit": table_views.tables_that_fit,
        "describe_agreement": table_views.describe_agreement,
    }
    return made


def render_page(document: Document) -> str:
    """A document as one HTML file, no scripts, no outside address, charts as SVG."""
    template = _environment().get_template("page.html")
    return template.render(document=document, page=True, policy=content_policy())


def render_fragment(document: Document) -> str:
    """A document as HTML, without styles of its own: notebooks have theirs. Charts are left out
    where the packages for them are missing."""
    shown = document if is_installed("charts") else _leave_out_charts(document)
    return _environment().get_template("fragment.html").render(document=shown, page=False)


def render_chart(spec: dict[str, Any], title: str) -> str:
    """A page that draws one chart, offline."""
    script = _drawing_code()
    template = _environment().get_template("chart.html")
    return template.render(
        title=title, policy=content_policy(script), data=escape_data(spec), script=script
    )


def _leave_out_charts(document: Document) -> Document:
    return replace(
        document,
        sections=tuple(
            replace(each, parts=tuple(part for part in each.parts if not isinstance(part, Chart)))
            for each in document.sections
        ),
    )


DRAW_SCRIPT = """
const spec = JSON.parse(document.getElementById("chart-data").textContent);
vegaEmbed("#chart", spec, {mode: "vega-lite", actions: false, ast: true, renderer: "svg"});
"""
"""`ast`: expressions are interpreted, so that no text is ever run as a program."""


def content_policy(*scripts: str) -> str:
    """What a page may do in a browser: show itself, run these scripts, and nothing else."""
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    ]
    rules = [
        "default-src 'none'",
        f"script-src {' '.join(hashes)}" if hashes else "script-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    return "; ".join(rules)


def escape_data(data: Any) -> str:
    """Data for a script, in an element of its own; no letter of it can end the element."""
    text = json.dumps(data, ensure_ascii=True)
    return text.replace("<", "\\u003c").replace("&", "\\u0026")


@cache
def _drawing_code() -> str:
    import vl_convert

    script: str = vl_convert.javascript_bundle(DRAW_SCRIPT)
    if "</script" in script.lower() or "<!--" in script:
        raise AssertionError("the drawing code must not end its own element")
    return script


def chart_svg(chart: Any) -> Markup:
    """A chart as SVG inside a page. Vega-Lite refuses what it cannot draw; comparing each of our
    charts with its schema first took a sixth of a report's time."""
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(chart.to_json(validate=False))
    return Markup(re.sub(r"^<\?xml.*?\?>", "", svg))


def _data_address(media_type: str, data: bytes) -> str:
    """The address of a file inside a page; empty if it is too large for one."""
    if len(data) > MAX_INSIDE_BYTES:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def check_path(path: Path | None) -> None:
    """Refuse a file that could not be written, before anything is spent."""
    if path is not None:
        require_extras("charts")
        check_writable(path, "--report", (".html", ".htm"))


def release_report(
    title: str,
    plan: Plan,
    release: Release,
    scenario: Scenario | None = None,
    reader: str | None = None,
) -> str:
    """The page of a release; see `releases.describe_report`."""
    require_extras("charts")
    return render_page(releases.describe_report(title, plan, release, scenario, reader))


def save_report(
    title: str,
    plan: Plan,
    release: Release,
    path: Path,
    scenario: Scenario | None = None,
    reader: str | None = None,
) -> None:
    check_path(path)
    page = release_report(title, plan, release, scenario, reader)
    write_file(path, page, "--report", private=True)


# Results in notebooks.


def notebook_html(thing: object) -> str:
    """A result as `_repr_html_` shows it."""
    document = describe_result(thing)
    return f"<pre>{escape(repr(thing))}</pre>" if document is None else render_fragment(document)


def result_text(thing: object) -> str:
    """A result as `print` shows it."""
    document = describe_result(thing)
    return repr(thing) if document is None else document_text(document)


@singledispatch
def describe_result(thing: object) -> Document | None:
    """The document of a result that shows itself; None of anything else."""
    return None


@describe_result.register
def _(answer: Answer) -> Document:
    return Document("", (releases.describe_answer(answer),))


@describe_result.register
def _(release: Release) -> Document:
    return releases.describe_release("", release)


describe_result.register(Plan, card.describe_plan)
describe_result.register(TradeOff, levels.describe_tradeoff)
describe_result.register(Level, levels.describe_level)
describe_result.register(BudgetState, card.describe_budget_state)
