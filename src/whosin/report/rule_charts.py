"""Charts about rules: how often a promise fails when people know more, and what a table tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from whosin.extras import needs
from whosin.families import AtMostKnown
from whosin.mechanisms.count_rules import Rule
from whosin.report.charts import COLOURS, LISTED, coloured, of_rows
from whosin.rules import Publication, check_published, failure

STEPS = 25


def failure_chart(
    rules: Mapping[str, Rule], people: int, beliefs: tuple[object, object], ratio: object
) -> Any:
    """The probability that a likelihood ratio is exceeded, against how many others are known: both
    ends of what is proved, for each rule by its name."""
    needs("charts")
    import altair

    known = sorted({round(step * (people - 1) / (STEPS - 1)) for step in range(STEPS)})
    rows = []
    for name, rule in rules.items():
        least = 0.0
        for others in known:
            bracket = failure(rule, people, AtMostKnown(others, *beliefs), ratio)
            least = max(least, float(bracket.lower))  # who knows more may be who knows less
            for end, value in (("at most", bracket.upper), ("at least", least)):
                rows.append({"known": others, "fails": float(value), "rule": name, "end": end})
    return (
        of_rows(rows)
        .mark_line(strokeWidth=2)
        .encode(
            x=altair.X("known:Q", title="how many others they know about"),
            y=altair.Y(
                "fails:Q", title="how often the promise fails", axis=altair.Axis(format="%")
            ),
            color=coloured("rule", list(rules), COLOURS[: len(rules)], **LISTED),
            strokeDash=altair.StrokeDash(
                "end:N",
                title=None,
                sort=["at most", "at least"],
                legend=altair.Legend(orient="bottom"),
            ),
        )
        .properties(width=460, height=280)
    )


def posterior_chart(tables: Mapping[str, Publication], cell: tuple[int, int]) -> Any:
    """How sure someone becomes of a person in a cell, against how sure they were, for several
    ways to publish the same table, by their names."""
    needs("charts")
    import altair

    rows = []
    for name, published in tables.items():
        for step in range(1, 50):
            findings = check_published(published, f"{step}/50")
            (own,) = [each for each in findings if (each.row, each.column) == cell]
            rows.append({"prior": step / 50, "posterior": float(own.posterior), "shown": name})
    percent = altair.Axis(format="%")
    return (
        of_rows(rows)
        .mark_line(strokeWidth=2.5)
        .encode(
            x=altair.X("prior:Q", title="belief before", axis=percent),
            y=altair.Y("posterior:Q", title="belief after", axis=percent),
            color=coloured("shown", list(tables), COLOURS[: len(tables)], **LISTED),
        )
        .properties(width=380, height=300)
    )
