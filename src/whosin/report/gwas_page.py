"""A release on one HTML page that needs nothing else: plot, table, card."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from whosin.gwas.release import StudyRelease
from whosin.report import html
from whosin.report.gwas import offer_card
from whosin.report.gwas_charts import manhattan
from whosin.report.gwas_tables import release_rows


def release_page(release: StudyRelease, path: Path) -> None:
    """Write the Manhattan plot, all columns and the card."""
    rows = release_rows(release)
    asked = release.offer.question
    what = f"The {asked.top} most associated SNPs" if asked.top else f"{asked.size} SNPs"
    body = []
    if "P" in rows[0]:
        p = np.array([float(row["P"]) for row in rows])
        chart = manhattan(release.snps, p, "Released associations", release.all_snps, named=True)
        body.append(html.drawing(chart))
    body.append(html.rows_table(list(rows[0]), [list(row.values()) for row in rows]))
    body.append(html.sections(offer_card(release.offer)))
    body.append(f"<p class=soft>Ledger entry: {escape(release.dataset)}</p>")
    path.touch(0o600)  # a new file is for its owner only
    path.write_text(html.page(f"{what}, released privately", body), encoding="utf-8")
