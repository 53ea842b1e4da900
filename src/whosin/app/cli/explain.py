"""`whosin explain`: what an ε means for beliefs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explain(
    epsilon: Annotated[str, typer.Option(help="ε in nats.")],
    delta: Annotated[str | None, typer.Option(help="δ of an (ε, δ) guarantee.")] = None,
    prior: Annotated[
        str | None, typer.Option(help="Priors to show: 0.05..0.5, or one such as 0.3.")
    ] = None,
    relation: Annotated[
        str, typer.Option(help="What ε is about: add-remove or replace.")
    ] = "add-remove",
    save: Annotated[Path | None, typer.Option(help="Draw: x.html, x.svg or x.png.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say in beliefs what an ε allows: for each prior the largest posterior, by adversary."""
    from whosin.app.cli.output import print_json
    from whosin.exact import number_range, rational
    from whosin.report import charts, text
    from whosin.report.explanation import explanation

    if save is not None:
        charts.check_path(save)
    band = number_range(prior, "--prior") if prior is not None else None
    failing = rational(delta, "--delta") if delta is not None else rational(0)
    found = explanation(rational(epsilon, "--epsilon"), failing, relation, band)
    if json:
        print_json(found.to_dict())
    else:
        text.print_explanation(found)
    if save is not None:
        low, high = (float(end) for end in band or (0, 1))
        title = f"What ε = {found.epsilon:g} ({relation}) means"
        charts.save(charts.belief_chart(found.curves(), (low, high), title), save)
