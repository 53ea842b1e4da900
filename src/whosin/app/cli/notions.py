"""`whosin notions`: the map of notions and the theorems between them."""

from __future__ import annotations

from dataclasses import asdict

from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_result


def notions(save: Draw = None, json: Json = False) -> None:
    """Show which level of one notion of privacy gives which level of another."""
    from whosin.report import charts, text
    from whosin.theorems.map import BARRIERS, EDGES

    if save is not None:
        charts.check_path(save)
    implications, counterexamples = map(asdict, EDGES), map(asdict, BARRIERS)
    data = {"implications": [*implications], "counterexamples": [*counterexamples]}
    print_result(json, data, text.print_map)
    if save is not None:
        charts.save(charts.notion_chart(), save)
