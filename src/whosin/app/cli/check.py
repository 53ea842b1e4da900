"""`whosin check table`: how sure anyone could become from a table, before it is published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosin.app.cli.options import Json, print_result
from whosin.errors import invalid_value

app = typer.Typer(help="Look at what is about to be published.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Look at what is about to be published."""


@app.command()
def table(
    published: Annotated[Path, typer.Argument(help="The table as it would be shown (CSV).")],
    population: Annotated[
        Path, typer.Option(help="How many people could be in each cell (CSV with the same labels).")
    ],
    prior: Annotated[str, typer.Option(help="How sure someone is of each of them before: 0.1.")],
    rule: Annotated[
        str | None,
        typer.Option(
            help="The rule behind it: suppress=5, suppress=5:hidden (zeros too), round=5, "
            "random-round=3, cell-key=FILE, or several in turn: suppress=8,round=5. Marks such as "
            "<5 say it themselves."
        ),
    ] = None,
    secondary: Annotated[
        bool, typer.Option("--secondary", help="Further cells were suppressed to protect others.")
    ] = False,
    secondary_by: Annotated[
        str | None,
        typer.Option(
            help="How these further cells were chosen, if that is known: next-smallest (where a "
            "row or column with a total has only one suppressed cell, its smallest other cell), "
            "next-smallest:hidden (zeros too)."
        ),
    ] = None,
    totals: Annotated[
        str,
        typer.Option(
            help="How totals were made: counted (the rule was applied to them), exact, or added "
            "(sums of the published cells)."
        ),
    ] = "counted",
    before: Annotated[
        Path | None, typer.Option(help="An earlier table of the same cells, published already.")
    ] = None,
    population_before: Annotated[
        Path | None, typer.Option(help="How many people could be in its cells.")
    ] = None,
    secret: Annotated[
        str,
        typer.Option(help="membership: who is in; attribute: who of the people has the value."),
    ] = "membership",
    json: Json = False,
) -> None:
    """Say how sure anyone could become of each person, cell by cell. Not for publication.

    Everyone behind a cell is taken to be alike, and in with the probability that --prior says.
    Which suppressed cells can be worked out from the totals, and which nearly so, is said too.
    """
    from whosin.report.rules import findings_data, print_findings
    from whosin.report.terminal import secret_words
    from whosin.rules import check_published
    from whosin.rules.publication import (
        compare_labels,
        make_publication,
        read_procedure,
        read_rule,
        read_table,
    )

    secret_words(secret, "--secret")
    if (before is None) != (population_before is None):
        raise invalid_value("--before", "given with --population-before", "one without the other")
    chosen = None if rule is None else read_rule(rule)
    further = read_procedure(secondary_by, "--secondary-by") if secondary_by else secondary
    current = read_table(published, "published")
    frame = read_table(population, "population", totals=False)
    now = make_publication(current, frame, chosen, totals, further)
    then = None
    if before is not None and population_before is not None:
        earlier = read_table(before, "before")
        compare_labels(current, earlier, "--before")
        frame = read_table(population_before, "population", totals=False)
        then = make_publication(earlier, frame, chosen, totals, further)
    findings = check_published(now, prior, then)
    labels = current.rows, current.columns
    data = findings_data(findings, labels, secret)
    print_result(json, data, print_findings, findings, labels, secret)
