"""Charts by Altair, and files of them that stand alone offline (HTML, SVG, PNG)."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whosin.errors import require_extras
from whosin.exact import Array, format_figures
from whosin.plain_files import check_writable, write_file
from whosin.references import THEOREMS
from whosin.report.document import format_epsilon

if TYPE_CHECKING:
    from whosin.calibration.planning import ChainPlan
    from whosin.curves.curve import TradeOff
    from whosin.report.terminal import Curve

CHART_SUFFIXES = (".html", ".svg", ".png")
LEGEND_OPTIONS = {"direction": "vertical", "labelLimit": 460}
"""A legend with a line for each name."""
RATES_DRAWN = tuple(min(1.0, 10 ** (-5 + step / 20)) for step in range(101))
"""The false positive rates of a chart on logarithmic axes."""
FEW_CORNERS = 200
"""Up to this many corners of a curve are drawn; with more, single ones cannot be seen."""
WIDEST_TITLE = 64
CHART_COLOURS = ["#1b6ca8", "#c44536", "#3a7d44", "#888888"]
ALLOWED_COLOUR = "#7a4fa3"


def check_path(path: Path | None) -> None:
    """Refuse a file that could not be written, before any work is done."""
    if path is not None:
        require_extras("charts")
        check_writable(path, "--save", CHART_SUFFIXES)


def save_chart(chart: Any, path: Path, *, private: bool = False) -> None:
    """Write a chart in the format that the file's name asks for.

    Args:
        private: it shows exact numbers: a new file is for its owner only.
    """
    from whosin.report.html import render_chart

    check_path(path)
    kind = path.suffix.lower()
    content: io.BytesIO | io.StringIO
    if kind == ".html":
        content = io.StringIO(render_chart(chart.to_dict(), path.stem))
    elif kind == ".png":
        chart.save(content := io.BytesIO(), format="png", scale_factor=2)
    else:
        chart.save(content := io.StringIO(), format="svg")
    write_file(path, content.getvalue(), "--save", private=private)


def rows_chart(rows: Sequence[Mapping[str, object]]) -> Any:
    """A chart of some rows, without marks."""
    import altair

    return altair.Chart(altair.Data(values=rows))


def colour_scale(field: str, names: Sequence[str], colours: Sequence[str], **legend: Any) -> Any:
    """A colour for each name, with a legend below the chart."""
    import altair

    scale = altair.Scale(domain=list(names), range=list(colours))
    below = altair.Legend(orient="bottom", **legend)
    return altair.Color(f"{field}:N", title=None, scale=scale, legend=below)


def rates_drawn(curve: TradeOff) -> list[float]:
    """The false positive rates at which a curve is drawn, its corners among them."""
    from whosin.curves.curve import CornerCurve

    corners = curve.corners if isinstance(curve, CornerCurve) else []
    own = {float(fpr) for fpr, _ in corners} if len(corners) <= FEW_CORNERS else set()
    return sorted({*RATES_DRAWN, *(fpr for fpr in own if fpr > RATES_DRAWN[0])})


def wrap_title(title: str) -> list[str]:
    """A title in lines that are not wider than a chart."""
    return textwrap.wrap(title, WIDEST_TITLE)


def belief_chart(
    curves: Sequence[Curve],
    band: tuple[float, float],
    title: str,
    allowed: Sequence[tuple[Fraction, Fraction]] = (),
) -> Any:
    """Posterior against prior; the beliefs that a plan assumes are shaded.

    Args:
        allowed: the points of a target that is a posterior by the prior.
    """
    import altair

    points = 201
    rows = [
        {"prior": x / (points - 1), "posterior": posterior(x / (points - 1)), "who": name}
        for _mark, name, posterior in curves
        for x in range(points)
    ]
    names = [name for _mark, name, _ in curves]  # the plan comes last and is drawn on top
    colours = CHART_COLOURS[: len(names)][::-1]
    if allowed:
        names, colours = [*names, "what is allowed"], [*colours, ALLOWED_COLOUR]
    percent = altair.Axis(format="%", values=[step / 5 for step in range(6)])
    encoding = {
        "x": altair.X("prior:Q", title="belief before the release", axis=percent),
        "y": altair.Y("posterior:Q", title="largest belief after it", axis=percent),
        "color": colour_scale("who", names, colours, **LEGEND_OPTIONS),
    }
    lines = [rows_chart(rows).mark_line(strokeWidth=2.5).encode(**encoding)]
    if allowed:
        points_ = [
            {"prior": float(prior), "posterior": float(most), "who": names[-1]}
            for prior, most in allowed
        ]
        spots = altair.OverlayMarkDef(size=60)
        lines.append(rows_chart(points_).mark_line(strokeWidth=1.5, point=spots).encode(**encoding))
    shade = (
        rows_chart([{"low": band[0], "high": band[1]}])
        .mark_rect(opacity=0.12, color=CHART_COLOURS[0])
        .encode(x="low:Q", x2="high:Q")
    )
    return altair.layer(shade, *lines).properties(title=wrap_title(title), width=460, height=360)


def rates_chart(
    curve: TradeOff, title: str, promise: tuple[Fraction, Fraction] | None = None
) -> Any:
    """What the best tests reach, on logarithmic axes as the literature on attacks draws it; a
    target (FPR, TPR) is a cross."""
    import altair

    guessing, reached = "guessing", "the best test"
    drawn = rates_drawn(curve)
    rows = [{"fpr": fpr, "tpr": fpr, "who": guessing} for fpr in drawn]
    rows += [{"fpr": fpr, "tpr": float(curve.tpr(fpr)), "who": reached} for fpr in drawn]
    scale = altair.Scale(type="log", domain=[1e-5, 1])
    axis = altair.Axis(format="~%", values=[10.0**-k for k in range(5, -1, -1)])
    across = altair.X("fpr:Q", title="false positive rate", scale=scale, axis=axis)
    up = altair.Y("tpr:Q", title="largest true positive rate", scale=scale, axis=axis)
    names = [guessing, reached]
    lines = (
        rows_chart(rows)
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=across,
            y=up,
            color=colour_scale("who", names, CHART_COLOURS[:2][::-1], **LEGEND_OPTIONS),
        )
    )
    layers = [lines]
    if promise is not None:
        asked = "the target"
        cross = rows_chart([{"fpr": float(promise[0]), "tpr": float(promise[1]), "what": asked}])
        shape = altair.Shape(
            "what:N",
            title=None,
            scale=altair.Scale(domain=[asked], range=["cross"]),
            legend=altair.Legend(orient="bottom", symbolFillColor="black"),
        )
        layers.append(
            cross.mark_point(size=120, filled=True, opacity=1, color="black").encode(
                x=across, y=up, shape=shape
            )
        )
    return altair.layer(*layers).properties(title=wrap_title(title), width=420, height=420)


def leakage_chart(points: Sequence[tuple[float, float]], plan: ChainPlan, rows: int) -> Any:
    """Leakage against noise: what differential privacy promises, what a row really leaks, and what
    group privacy promises."""
    import altair

    span = plan.plain_scale * plan.epsilon
    promises = "what {} privacy promises"
    names = [promises.format("differential"), "what a row really leaks", promises.format("group")]
    data = [
        {"scale": scale, "leakage": value, "which": name}
        for scale, leaks in points
        for name, value in zip(names, (span / scale, leaks, rows * span / scale), strict=True)
    ]
    lines = (
        rows_chart(data)
        .mark_line(point=True, strokeWidth=2.5, clip=True)
        .encode(
            x=altair.X(
                "scale:Q", title="scale of the Laplace noise", scale=altair.Scale(type="log")
            ),
            y=altair.Y("leakage:Q", title="ε of one row", scale=altair.Scale(type="log")),
            color=colour_scale(
                "which",
                names,
                [CHART_COLOURS[3], CHART_COLOURS[0], CHART_COLOURS[1]],
                **LEGEND_OPTIONS,
            ),
        )
    )
    chosen = (
        rows_chart([{"scale": plan.scale, "leakage": plan.leakage}])
        .mark_point(size=140, filled=True, color=CHART_COLOURS[0], shape="diamond", opacity=1)
        .encode(x="scale:Q", y="leakage:Q")
    )
    title = (
        f"A series of {rows} rows: scale {format_figures(plan.scale, 3, 'up')} for ε = "
        f"{format_epsilon(plan.epsilon)}"
    )
    return altair.layer(lines, chosen).properties(title=title, width=460, height=360)


NODE_POSITIONS: dict[str, tuple[float, float]] = {
    "PMP under D_U": (2.0, 6.0),
    "PMP under D_NI^k": (1.0, 5.0),
    "UDP": (0.0, 4.0),
    "positive UDP": (1.0, 3.9),
    "negative UDP": (0.0, 2.9),
    "NMP under D_I": (0.0, 1.9),
    "PMP under D_I": (2.2, 3.3),
    "PMP under D_I^[a,b]": (1.0, 2.9),
    "PMP under D_F^β": (2.2, 2.2),
    "PMP under D_N": (1.4, 1.9),
    "(β, ε)-DPS": (2.2, 1.2),
    "BDP": (3.0, 5.0),
    "PMP under D_B": (3.8, 3.5),
    "PMP under D_B^[a,b]": (4.2, 4.3),
    "(ρ, 2)-DI": (4.2, 5.6),
    "PMP under D_C^m": (3.2, 2.3),
    "(ρ, m)-DI": (3.2, 1.2),
    "Bayesian DP": (5.3, 5.0),
    "Bayesian SP": (6.45, 5.6),
    "PMP under D_*": (5.87, 4.1),
    "DP on records": (5.3, 3.0),
    "semantic privacy": (6.45, 2.2),
    "identifiability": (5.3, 1.4),
    "PMP under D_K^k": (0.7, 1.3),
    "PMP under {p_X}": (4.4, 0.8),
    "mutual information": (6.3, 1.2),
    "mean shift": (6.3, 0.4),
}
"""Where each notion stands on the drawn map."""


SPAN_X, SPAN_Y = (-0.4, 6.9), (0.2, 6.4)
WIDTH, HEIGHT = 980, 660
LINE_KINDS = {
    "both ways": CHART_COLOURS[0],
    "implies": CHART_COLOURS[2],
    "does not imply": CHART_COLOURS[1],
}


def notion_chart() -> Any:
    """The map of notions: solid lines are theorems, dashed ones known counterexamples."""
    import altair

    from whosin.theorems.notion_map import NOTION_BARRIERS, NOTION_EDGES

    lines: list[dict[str, object]] = []
    heads: list[dict[str, object]] = []
    labels: list[dict[str, object]] = []
    for edge in NOTION_EDGES:
        kind = "both ways" if edge.both_ways else "implies"
        start, end = NODE_POSITIONS[edge.source], NODE_POSITIONS[edge.target]
        _draw_line(lines, heads, start, end, kind, edge.both_ways)
        middle = {"x": 0.45 * start[0] + 0.55 * end[0], "y": 0.45 * start[1] + 0.55 * end[1]}
        arrow = "⇔" if edge.both_ways else "⇒"
        tip = f"{edge.source} {arrow} {edge.target}: {edge.formula}"
        held = edge.theorem in ("definition", "subfamily")
        text = edge.theorem if edge.theorem in THEOREMS else "⊇" if held else "⇒"
        labels.append({**middle, "text": text, "tip": tip})
    for barrier in NOTION_BARRIERS:
        start, end = NODE_POSITIONS[barrier.source], NODE_POSITIONS[barrier.target]
        _draw_line(lines, heads, start, end, "does not imply", False, aside=0.12)
    nodes = [{"x": x, "y": y, "text": name} for name, (x, y) in NODE_POSITIONS.items()]
    plain = {
        "x": altair.X("x:Q", axis=None, scale=altair.Scale(domain=list(SPAN_X))),
        "y": altair.Y("y:Q", axis=None, scale=altair.Scale(domain=list(SPAN_Y))),
    }
    colour = colour_scale("kind", list(LINE_KINDS), list(LINE_KINDS.values()), symbolType="stroke")
    dash = altair.Scale(domain=list(LINE_KINDS), range=[[1, 0], [1, 0], [5, 4]])
    rules = (
        rows_chart(lines)
        .mark_rule(strokeWidth=1.6)
        .encode(
            **plain,
            x2="x2:Q",
            y2="y2:Q",
            color=colour,
            strokeDash=altair.StrokeDash("kind:N", scale=dash, legend=None),
        )
    )
    arrows = (
        rows_chart(heads)
        .mark_point(shape="triangle", filled=True, size=70, opacity=1)
        .encode(**plain, color=colour, angle=altair.Angle("angle:Q", scale=None))
    )
    halo = {"stroke": "white", "strokeWidth": 5, "strokeJoin": "round"}
    layers: list[Any] = [rules, arrows]
    for values, size in ((labels, 11), (nodes, 13)):
        base = rows_chart(values)
        for look in (halo, {"color": "#222222"}):
            mark: Any = base.mark_text(fontSize=size, **look)
            layers.append(mark.encode(**plain, text="text:N"))
    layers[3] = layers[3].encode(tooltip=altair.Tooltip("tip:N", title="theorem"))
    title = "Which level of one notion gives which level of another"
    chart = altair.layer(*layers).properties(title=title, width=WIDTH, height=HEIGHT)
    return chart.configure_view(strokeWidth=0)


def _draw_line(
    lines: list[dict[str, object]],
    heads: list[dict[str, object]],
    start: tuple[float, float],
    end: tuple[float, float],
    kind: str,
    both: bool,
    aside: float = 0.0,
) -> None:
    """A line between two notions with its arrowheads, moved aside where another one runs."""
    right, up = WIDTH / (SPAN_X[1] - SPAN_X[0]), HEIGHT / (SPAN_Y[1] - SPAN_Y[0])
    dx, dy = (end[0] - start[0]) * right, (end[1] - start[1]) * up
    length = math.hypot(dx, dy)
    shift = (-dy / length * aside, dx / length * aside * right / up)
    (x, y), (x2, y2) = ((p[0] + shift[0], p[1] + shift[1]) for p in (start, end))
    lines.append({"x": x, "y": y, "x2": x2, "y2": y2, "kind": kind})
    angle = math.degrees(math.atan2(dx, dy))
    inset = 26 / length
    heads.append(
        {"x": x2 + (x - x2) * inset, "y": y2 + (y - y2) * inset, "kind": kind, "angle": angle}
    )
    if both:
        tail = {"x": x + (x2 - x) * inset, "y": y + (y2 - y) * inset}
        heads.append({**tail, "kind": kind, "angle": angle + 180})


PLOT_CELLS = (700, 260)


def size_axis(field: str, title: str, sizes: set[int]) -> Any:
    """A logarithmic axis with a mark for each size."""
    import altair

    return altair.X(
        f"{field}:Q",
        title=title,
        scale=altair.Scale(type="log", nice=False, padding=10),
        axis=altair.Axis(values=sorted(sizes), format="~s"),
    )


def share_axis(field: str, title: str) -> Any:
    import altair

    whole = altair.Scale(domain=[0, 1])
    return altair.Y(f"{field}:Q", title=title, axis=altair.Axis(format="%"), scale=whole)


def thin_points(positions: Array, height: Array) -> Array:
    """One point a cell of the picture."""
    import numpy as np

    if len(positions) <= 5_000:
        return np.arange(len(positions))
    columns = positions / max(positions.max(), 1) * PLOT_CELLS[0]
    rows = height / max(height.max(), 1e-9) * PLOT_CELLS[1]
    cells = columns.astype(np.int64) * (PLOT_CELLS[1] + 1) + rows.astype(np.int64)
    return np.sort(np.unique(cells, return_index=True)[1])
