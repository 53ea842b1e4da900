"""Privacy against distortion: text and drawing."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console
from rich.markup import escape

from whosin.distortion import Curves, Optimum
from whosin.exact import figures
from whosin.references import THEOREMS
from whosin.report.charts import COLOURS, coloured, of_rows
from whosin.report.numbers import short
from whosin.report.terminal_tables import columns_table, facts_table

TITLES = {
    "dp": "differential privacy",
    "identifiability": "identifiability",
    "mutual-information": "mutual information",
}


def print_optimum(best: Optimum, spread: float, threshold: float | None) -> None:
    """The optimum, its certificate and the closed-form bounds."""
    console = Console(highlight=False)
    space = best.space
    console.print(
        f"[bold]The best mechanism for {space.rows} rows of {space.values} values[/bold] "
        f"under {TITLES[best.notion]}",
        soft_wrap=True,
    )
    by_level = best.given == "epsilon"
    unit = "mutual information" if best.notion == "mutual-information" else "ε"
    optimum, name = (best.distortion, "distortion") if by_level else (best.epsilon, unit)
    table = facts_table()
    given = (unit, best.epsilon) if by_level else ("distortion", best.distortion)
    table.add_row(given[0], f"{_digits(given[1])}")
    table.add_row(f"least {name}", f"[bold]{_digits(optimum)}[/bold]")
    table.add_row("certificate", _certificate(best))
    table.add_row("closed form", f"between {_digits(best.lower)} and {_digits(best.upper)}")
    if best.notion != "mutual-information":
        table.add_row("mutual information", f"{short(best.mutual_information)} nats")
    start = "" if threshold is None else f", ε̃_X = {short(threshold)}"
    table.add_row("of the prior", f"ε_X = {short(spread)}{start}")
    console.print(table)
    if best.note:
        console.print(escape(best.note[0].upper() + best.note[1:] + "."))
    for number in best.theorems:
        console.print(f"[dim]{escape(str(THEOREMS[number]))}[/dim]", soft_wrap=True)


def print_curves(curves: Curves) -> None:
    """A table for each curve."""
    console = Console(highlight=False)
    for notion, points in curves.points.items():
        console.print(f"[bold]{TITLES[notion].capitalize()}[/bold]")
        by_level = notion != "mutual-information"
        names = ["ε", "distortion"] if by_level else ["distortion", "nats"]
        names += ["closed form from", "to", "gap"]
        table = columns_table(*names, right=names)
        for point in points:
            pair = [point.epsilon, point.distortion]
            pair = pair if by_level else pair[::-1]
            cells = [*pair, point.lower, point.upper]
            table.add_row(*(_digits(cell) for cell in cells), f"{point.gap:.1g}")
        console.print(table)
    for notion, reason in curves.skipped.items():
        console.print(f"No curve for {TITLES[notion]}: {reason}.")


def _digits(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.6g}"


def _certificate(best: Optimum) -> str:
    if best.gap == 0:
        return "exact: a closed form that meets its bound"
    checked = "" if best.notion == "mutual-information" else "; the level is checked exactly"
    return f"within {figures(best.gap, 1, 'up')} of the optimum, by a dual bound{checked}"


def chart(curves: Curves, title: str, mark: Optimum | None = None) -> Any:
    """ε against distortion with the bounds of T16, and information beside it."""
    import altair

    panels = []
    privacy: list[str] = [name for name in ("dp", "identifiability") if name in curves.points]
    if privacy:
        panels.append(_panel(curves, privacy, "ε", mark))
    if "mutual-information" in curves.points:
        panels.append(_panel(curves, ["mutual-information"], "mutual information (nats)", mark))
    return altair.hconcat(*panels).resolve_scale(color="independent").properties(title=title)


def _panel(curves: Curves, notions: list[str], axis: str, mark: Optimum | None) -> Any:
    import altair

    rows: list[dict[str, object]] = []
    dashed: list[dict[str, object]] = []
    for notion in notions:
        for order, point in enumerate(curves.points[notion]):
            if not math.isfinite(point.epsilon):
                continue
            about = {"which": TITLES[notion], "at": order}
            rows.append({"distortion": point.distortion, "level": point.epsilon, **about})
            for side, value in (("from", point.lower), ("to", point.upper)):
                by_distortion = point.given == "distortion"
                across = point.distortion if by_distortion else value
                up = value if by_distortion else point.epsilon
                # Before ε̃_X there is no closed form from above for identifiability.
                loose = notion == "identifiability" and side == "to"
                if math.isfinite(across) and math.isfinite(up) and not loose:
                    dashed.append({"distortion": across, "level": up, "side": side, **about})
    names = [TITLES[notion] for notion in notions]
    colours = [COLOURS[list(TITLES).index(notion)] for notion in notions]
    x = altair.X("distortion:Q", title="expected number of changed rows")
    y = altair.Y("level:Q", title=axis)
    colour = coloured("which", names, colours, symbolType="stroke")
    # Bounds are faint and dashed, the optimum runs between them.
    bounds = (
        of_rows(dashed)
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, opacity=0.75)
        .encode(x=x, y=y, color=colour, detail="side:N", order="at:Q")
    )
    lines = (
        of_rows(rows)
        .mark_line(strokeWidth=2.5, point=altair.OverlayMarkDef(size=28))
        .encode(x=x, y=y, color=colour, order="at:Q")
    )
    layers = [bounds, lines]
    if mark is not None and mark.notion in notions and math.isfinite(mark.epsilon):
        layers.append(
            of_rows([{"distortion": mark.distortion, "level": mark.epsilon}])
            .mark_point(size=150, filled=True, shape="diamond", opacity=1, color="#222222")
            .encode(x="distortion:Q", y="level:Q")
        )
    return altair.layer(*layers).properties(
        width=380, height=340, title="optimum (solid), closed-form bounds (dashed)"
    )
