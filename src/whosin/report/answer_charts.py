"""Answers with error bars."""

from __future__ import annotations

from typing import Any

from whosin.release import Answer
from whosin.release.queries.base import POINT
from whosin.report.charts import COLOURS, of_rows
from whosin.report.table_views import keys_of, scales_of

MOST_CELLS = 40
POINTS = "abs(datum.value) < 10000 ? replace(datum.label, ',', '') : datum.label"
"""Commas from five digits on, as `numbers.point_words`."""


def answer_chart(answer: Answer) -> Any | None:
    """Values by cell with their 95% intervals; None where there is nothing to draw."""
    if "low" not in answer.columns or not 2 <= len(answer.rows) <= MOST_CELLS:
        return None
    import altair

    keys = keys_of(answer)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    for row in rows:
        row["cell"] = ", ".join(str(row[key]) for key in keys)
    base = of_rows(rows).encode(y=altair.Y("cell:N", sort=None, title=", ".join(keys)))
    points = scales_of(answer)["value"] == POINT
    axis = altair.Axis(labelExpr=POINTS) if points else altair.Undefined
    bars = base.mark_bar(color=COLOURS[0], opacity=0.35).encode(
        x=altair.X("value:Q", title="with noise; bars: 95% interval", axis=axis)
    )
    errors = base.mark_rule(color=COLOURS[1], strokeWidth=2).encode(x="low:Q", x2="high:Q")
    height = max(120, 22 * len(rows))
    return altair.layer(bars, errors).properties(width=460, height=height)
