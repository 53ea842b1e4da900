"""Answers with error bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whosin.release import Answer
from whosin.release.queries.base import POINT
from whosin.report.charts import COLOURS, of_rows
from whosin.report.table_views import keys_of, scales_of

MOST_CELLS = 40
FEW_TICKS = 5
LONGEST_LABEL, WIDEST_LETTER, AROUND = 180, 7, 8
"""Of the labels of an axis: the longest, what a letter takes of it in wide fonts, and the space
around it, in points."""
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
    axis = _named_above(keys, [row["cell"] for row in rows])
    base = of_rows(rows).encode(y=altair.Y("cell:N", sort=None, axis=axis))
    points = scales_of(answer)["value"] == POINT
    # Few ticks, or labels are left out where they would touch: 0 among them.
    ticks = altair.Axis(tickCount=FEW_TICKS, labelExpr=POINTS if points else altair.Undefined)
    bars = base.mark_bar(color=COLOURS[0], opacity=0.35).encode(
        x=altair.X("value:Q", title="with noise; bars: 95% interval", axis=ticks)
    )
    errors = base.mark_rule(color=COLOURS[1], strokeWidth=2).encode(x="low:Q", x2="high:Q")
    height = max(120, 22 * len(rows))
    return altair.layer(bars, errors).properties(width=460, height=height)


def _named_above(keys: Sequence[str], cells: Sequence[str]) -> Any:
    """An axis whose title stands above it, with room for its labels in any font: who draws the
    chart may have a narrower one than who shows it."""
    import altair

    room = min(LONGEST_LABEL, WIDEST_LETTER * max(map(len, cells))) + AROUND
    return altair.Axis(
        title=", ".join(keys),
        titleAngle=0,
        titleAlign="left",
        titleAnchor="start",
        titleX=0,
        titleY=-8,
        labelLimit=LONGEST_LABEL,
        minExtent=room,
    )
