"""`whosin notions`: the map of notions and the theorems between them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def notions(
    save: Annotated[Path | None, typer.Option(help="Draw: map.html, map.svg or map.png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show which level of one notion of privacy gives which level of another."""
    from whosin.app.cli.output import print_json
    from whosin.report import charts, text
    from whosin.theorems.map import BARRIERS, EDGES

    if save is not None:
        charts.check_path(save)
    if json:
        print_json(
            {
                "implications": [asdict(edge) for edge in EDGES],
                "counterexamples": [asdict(barrier) for barrier in BARRIERS],
            }
        )
    else:
        text.print_map()
    if save is not None:
        charts.save(charts.notion_chart(), save)
