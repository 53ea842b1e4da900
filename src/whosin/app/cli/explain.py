"""`whosin explain`: what an ε means for beliefs."""

from __future__ import annotations

from typing import Annotated

import typer

from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_result


def explain(
    epsilon: Annotated[str, typer.Option(help="ε in nats.")],
    delta: Annotated[str, typer.Option(help="δ of an (ε, δ) guarantee.")] = "0",
    prior: Annotated[
        str | None, typer.Option(help="Priors to show: 0.05..0.5, or one such as 0.3.")
    ] = None,
    relation: Annotated[
        str, typer.Option(help="What ε is about: add-remove or replace.")
    ] = "add-remove",
    save: Draw = None,
    json: Json = False,
) -> None:
    """Say in beliefs what an ε allows: for each prior the largest posterior, by adversary."""
    from whosin.exact import number_range, rational
    from whosin.report import charts, text
    from whosin.report.explanation import explanation

    if save is not None:
        charts.check_path(save)
    band = number_range(prior, "--prior") if prior is not None else None
    level, failing = rational(epsilon, "--epsilon"), rational(delta, "--delta")
    explained = explanation(level, failing, relation, band)
    print_result(json, explained.to_dict(), text.print_explanation, explained)
    if save is not None:
        low, high = (float(end) for end in band or (0, 1))
        title = f"What ε = {explained.epsilon:g} ({relation}) means"
        charts.save(charts.belief_chart(explained.curves(), (low, high), title), save)
