"""`whosin cite`: the papers and theorems that guarantees rest on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from whosin.app.cli.options import Json
from whosin.app.cli.output import print_result
from whosin.errors import UnknownName


def cite(
    numbers: Annotated[
        list[str] | None, typer.Argument(help="Theorems such as T4; all by default.")
    ] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print bibliography entries.")] = False,
    json: Json = False,
) -> None:
    """Print the theorems whosin relies on, where they are proved, and the papers."""
    from whosin.references import PAPERS, THEOREMS
    from whosin.report import text

    for number in numbers or []:
        if number not in THEOREMS:
            raise UnknownName("theorem", number, THEOREMS)
    theorems = [THEOREMS[number] for number in numbers or THEOREMS]
    keys = dict.fromkeys(key for theorem in theorems for key in theorem.papers)
    papers = [PAPERS[key] for key in (keys if numbers else PAPERS)]
    if bibtex and not json:
        print("\n".join(paper.bibtex() for paper in papers))
        return
    data = {"theorems": [*map(asdict, theorems)], "papers": [*map(asdict, papers)]}
    print_result(json, data, text.print_references, theorems, papers)
