"""Charts that stand alone offline: HTML with the drawing code inside, SVG, or PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from whosin.errors import InvalidInput
from whosin.report.plot import Curve
from whosin.theorems.map import BARRIERS, EDGES

SUFFIXES = (".html", ".svg", ".png")
COLOURS = ["#1b6ca8", "#c44536", "#888888", "#3a7d44"]


def check_path(path: Path) -> None:
    """Refuse a file that could not be written, before any work is done."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput("--save", "a file ending in .html, .svg or .png", path.name)
    if not path.resolve().parent.is_dir():
        raise InvalidInput("--save", "in a folder that exists", str(path))


def save(chart: Any, path: Path) -> None:
    """Write a chart in the format that the file's name asks for."""
    check_path(path)
    kind = path.suffix.lower()
    if kind == ".html":
        chart.save(str(path), inline=True)
    elif kind == ".png":
        chart.save(str(path), scale_factor=2)
    else:
        chart.save(str(path))


def belief_chart(curves: Sequence[Curve], band: tuple[float, float], title: str) -> Any:
    """Posterior against prior; the beliefs that a plan assumes are shaded."""
    import altair

    points = 201
    rows = [
        {"prior": x / (points - 1), "posterior": posterior(x / (points - 1)), "who": name}
        for _mark, name, posterior in curves
        for x in range(points)
    ]
    names = [name for _mark, name, _ in curves]
    percent = altair.Axis(format="%")
    lines = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(strokeWidth=2.5)
        .encode(
            x=altair.X("prior:Q", title="belief before the release", axis=percent),
            y=altair.Y("posterior:Q", title="largest belief after it", axis=percent),
            color=altair.Color(
                "who:N",
                title=None,
                scale=altair.Scale(domain=names, range=COLOURS[: len(names)]),
                legend=altair.Legend(orient="bottom", direction="vertical", labelLimit=460),
            ),
        )
    )
    shade = (
        altair.Chart(altair.Data(values=[{"low": band[0], "high": band[1]}]))
        .mark_rect(opacity=0.12, color=COLOURS[0])
        .encode(x="low:Q", x2="high:Q")
    )
    return altair.layer(shade, lines).properties(title=title, width=460, height=360)


PLACES: dict[str, tuple[float, float]] = {
    "PMP under D_U": (2.0, 6.0),
    "PMP under D_NI^k": (1.0, 5.0),
    "UDP": (0.0, 4.0),
    "positive UDP": (1.0, 3.9),
    "negative UDP": (0.0, 2.9),
    "NMP under D_I": (0.0, 1.9),
    "PMP under D_I": (2.0, 3.9),
    "PMP under D_I^[a,b]": (1.0, 2.9),
    "PMP under D_F^β": (2.0, 2.5),
    "PMP under D_N": (1.4, 1.9),
    "(β, ε)-DPS": (2.0, 1.2),
    "BDP": (3.0, 5.0),
    "PMP under D_B": (3.2, 3.6),
    "PMP under D_B^[a,b]": (4.2, 4.3),
    "(ρ, 2)-DI": (4.2, 5.6),
    "PMP under D_C^m": (3.2, 2.3),
    "(ρ, m)-DI": (3.2, 1.2),
    "Bayesian DP": (5.3, 5.0),
    "Bayesian SP": (6.3, 5.6),
    "PMP under D_*": (6.3, 4.3),
    "DP on records": (5.3, 3.0),
    "semantic privacy": (6.3, 3.0),
    "identifiability": (5.3, 1.4),
}
"""Where each notion stands on the drawn map."""


def notion_chart() -> Any:
    """The map of notions: solid lines are theorems, dashed ones known counterexamples."""
    import altair

    lines, labels = [], []
    for edge in EDGES:
        (x, y), (x2, y2) = PLACES[edge.source], PLACES[edge.target]
        kind = "equivalent" if edge.both_ways else "implies"
        lines.append({"x": x, "y": y, "x2": x2, "y2": y2, "kind": kind})
        arrow = "↔" if edge.both_ways else "→"
        text = edge.theorem if edge.theorem.startswith("T") else "⊇"
        middle = {"x": 0.45 * x + 0.55 * x2, "y": 0.45 * y + 0.55 * y2}
        tip = f"{edge.source} {arrow} {edge.target}: {edge.formula}"
        labels.append({**middle, "text": text, "tip": tip})
    for barrier in BARRIERS:
        (x, y), (x2, y2) = PLACES[barrier.source], PLACES[barrier.target]
        lines.append({"x": x, "y": y, "x2": x2, "y2": y2, "kind": "does not imply"})
    nodes = [{"x": x, "y": y, "name": name} for name, (x, y) in PLACES.items()]
    kinds = ["equivalent", "implies", "does not imply"]
    plain = {
        "x": altair.X("x:Q", axis=None, scale=altair.Scale(domain=[-0.4, 6.9])),
        "y": altair.Y("y:Q", axis=None, scale=altair.Scale(domain=[0.7, 6.4])),
    }
    rules = (
        altair.Chart(altair.Data(values=lines))
        .mark_rule(strokeWidth=1.6)
        .encode(
            **plain,
            x2="x2:Q",
            y2="y2:Q",
            color=altair.Color(
                "kind:N",
                title=None,
                scale=altair.Scale(domain=kinds, range=[COLOURS[0], COLOURS[3], COLOURS[1]]),
                legend=altair.Legend(orient="bottom"),
            ),
            strokeDash=altair.StrokeDash(
                "kind:N",
                scale=altair.Scale(domain=kinds, range=[[1, 0], [1, 0], [5, 4]]),
                legend=None,
            ),
        )
    )
    box = altair.Chart(altair.Data(values=nodes))
    boxes = box.mark_point(shape="square", size=1, opacity=0).encode(**plain)
    names = box.mark_text(fontSize=13, fontWeight="bold", dy=-9).encode(**plain, text="name:N")
    dots = box.mark_circle(size=60, color="#333333", opacity=1).encode(**plain)
    tags = (
        altair.Chart(altair.Data(values=labels))
        .mark_text(fontSize=11, color="#555555", dx=11)
        .encode(**plain, text="text:N", tooltip=altair.Tooltip("tip:N", title="theorem"))
    )
    chart = altair.layer(rules, boxes, dots, names, tags)
    title = "Which level of one notion gives which level of another"
    return chart.properties(title=title, width=980, height=620).configure_view(strokeWidth=0)
