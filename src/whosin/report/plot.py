"""A small chart of beliefs for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

WIDTH, HEIGHT, LEAST, MARGIN = 61, 16, 21, 7
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
