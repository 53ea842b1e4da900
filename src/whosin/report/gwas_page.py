"""A release on one HTML page that needs nothing else: plot, table, card."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whosin.gwas.release import Release
from whosin.report.gwas import offer_card, short_cell
from whosin.report.gwas_charts import manhattan
from whosin.report.gwas_tables import Row, release_rows

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
h1 { font-size: 1.5rem; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 .2rem; }
p { margin: .2rem 0; }
table { border-collapse: collapse; font-size: .85rem; margin: 1rem 0; display: block;
        overflow-x: auto; }
th, td { padding: .25rem .6rem; text-align: right; border-bottom: 1px solid #ddd;
         white-space: nowrap; }
svg { max-width: 100%; height: auto; }
.small { color: #666; font-size: .85rem; margin-top: 2rem; }
"""


def release_page(release: Release, path: Path) -> None:
    """One HTML file that needs nothing else: the card, the Manhattan plot, all columns."""
    rows = release_rows(release)
    asked = release.offer.question
    what = f"The {asked.top} most associated SNPs" if asked.top else f"{asked.size} SNPs"
    title = f"{what}, released privately"
    parts = [f"<h1>{html.escape(title)}</h1>"]
    if "P" in rows[0]:
        parts.append(
            _svg(
                manhattan(
                    release.snps,
                    np.array([float(row["P"]) for row in rows]),
                    "Released associations",
                    release.all_snps,
                    named=True,
                )
            )
        )
    parts.append(_html_table(rows))
    for section in offer_card(release.offer):
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in section.lines)
        parts.append(f"<h2>{html.escape(section.title)}</h2>{lines}")
    parts.append(f"<p class=small>Ledger entry: {html.escape(release.dataset)}</p>")
    head = (
        f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    )
    body = "\n".join(parts)
    text = f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
    path.write_text(text, encoding="utf-8")


def _svg(chart: Any) -> str:
    import vl_convert

    svg: str = vl_convert.vegalite_to_svg(chart.to_json())
    return svg


def _html_table(rows: Sequence[Row]) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(short_cell(v))}</td>" for v in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
