"""Small charts for the terminal: of beliefs, and of what tests reach."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from whosin.curves.curve import TradeOff

WIDTH, HEIGHT, LEAST, MARGIN = 61, 16, 21, 7
DECADES = 5
"""Rates are drawn from 10^−5 on; each has three lines, so that they are labelled in place."""
Curve = tuple[str, str, Callable[[float], float]]
"""A mark of one character, a name, and the posterior as a function of the prior."""


def belief_plot(
    curves: Sequence[Curve], band: tuple[float, float] = (0.0, 1.0), most: int = 80
) -> str:
    """Posterior against prior, both from 0 to 1; the beliefs that a plan assumes are underlined.

    Args:
        most: how many columns the terminal has.
    """
    width = max(LEAST, min(WIDTH, most - MARGIN))
    cells = [[" "] * width for _ in range(HEIGHT)]
    for mark, _name, posterior in curves:
        for column in range(width):
            value = posterior(column / (width - 1))
            row = HEIGHT - 1 - round(value * (HEIGHT - 1))
            cells[row][column] = mark
    lines = []
    for row, line in enumerate(cells):
        label = {0: "100%", HEIGHT // 2: " 50%", HEIGHT - 1: "  0%"}.get(row, "    ")
        lines.append(f"{label} │{''.join(line).rstrip()}")
    first, last = (round(end * (width - 1)) for end in band)
    axis = "".join("━" if first <= column <= last else "─" for column in range(width))
    lines.append(f"     └{axis}")
    lines.append(f"      0%{'prior belief'.center(width - 6)}100%")
    lines.extend(f"      {mark} {name}" for mark, name, _ in curves)
    return "\n".join(lines)


def rates_plot(
    curve: TradeOff, promise: tuple[Fraction, Fraction] | None = None, most: int = 80
) -> str:
    """How many a test recognises at most (TPR), by how many it accuses by mistake (FPR), on
    logarithmic axes; a target (FPR, TPR) is a cross."""
    width, height = max(LEAST, min(WIDTH, most - MARGIN - 2)), 3 * DECADES + 1
    cells = [[" "] * width for _ in range(height)]

    def put(mark: str, fpr: float, tpr: float) -> None:
        column, row = (
            round((1 + math.log10(max(rate, 1e-300)) / DECADES) * (steps - 1))
            for rate, steps in ((fpr, width), (tpr, height))
        )
        if 0 <= column < width and 0 <= row < height:
            cells[height - 1 - row][column] = mark

    rates = [10 ** (DECADES * (column / (width - 1) - 1)) for column in range(width)]
    for fpr in rates:
        put("·", fpr, fpr)
    for fpr in rates:
        put("●", fpr, float(curve.tpr(fpr)))
    if promise is not None:
        put("✚", float(promise[0]), float(promise[1]))
    lines = []
    for row, line in enumerate(cells):
        label = f"{100 / 10 ** (row // 3):g}%" if row % 3 == 0 else ""
        lines.append(f"{label:>6} │{''.join(line).rstrip()}")
    lines.append(f"       └{'─' * width}")
    across = "accused by mistake" if width > 2 * LEAST else "accused"
    lines.append(f"        0.001%{across.center(width - 10)}100%")
    lines.append("        · guessing")
    lines.append("        ● the best test")
    if promise is not None:
        lines.append("        ✚ the target")
    return "\n".join(lines)
