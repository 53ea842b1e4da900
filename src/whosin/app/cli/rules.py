"""`whosin rules`: what a published table tells, and the smallest rule that keeps a promise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from whosin.app.cli.main import Json, add_options, print_result
from whosin.errors import InvalidInput

app = typer.Typer(
    help="Disclosure-control rules: check a table before it is published, or plan a rule.",
    no_args_is_help=True,
)


@app.command()
def check(
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
    from whosin.report.rules import describe_findings, findings_data, secret_words
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
        given, missing = "--before", "--population-before"
        if before is None:
            given, missing = missing, given
        raise InvalidInput(f"{given} is given without {missing}", field=missing, hint="give both")
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
    print_result(json, data, describe_findings, findings, labels, secret)


@app.command()
@add_options("target", "adversary", without=("secret", "reserve"))
def plan(
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    rule: Annotated[
        str, typer.Option(help="The kind of rule: suppress, round, random-round or population.")
    ],
    zeros: Annotated[
        str, typer.Option(help="With --rule suppress: whether a count of 0 is shown or hidden.")
    ] = "shown",
    secret: Annotated[
        str,
        typer.Option(
            help="membership: who is in; attribute: who of --people, all known to be in, has the "
            "value that is counted."
        ),
    ] = "membership",
    json: Json = False,
) -> None:
    """Find the smallest threshold, base or population that keeps a promise, and what noise costs.

    A rule keeps a promise only with a failure probability (--delta), against someone who knows at
    most so many people for certain (--known) and has a prior belief (--prior) about the others.
    """
    from rich.console import Console

    from whosin.calibration import read_adversary, read_target
    from whosin.report.rules import describe_rule_plan, secret_words
    from whosin.rules import plan_rule

    secret_words(secret, "--secret")
    wanted = read_target(target)
    family = read_adversary(adversary, wanted)
    if zeros != "shown" and rule != "suppress":
        message = f"--zeros {zeros} has a meaning with --rule suppress only"
        raise InvalidInput(message, field="--zeros", value=zeros, hint="leave it out")
    delta, people = target.get("delta"), adversary.get("people")
    if delta is None:
        message = "no rule keeps a promise for certain"
        hint = "say how likely it may fail, for example --delta 0.01"
        raise InvalidInput(message, field="--delta", hint=hint)
    try:
        with Console(stderr=True).status("looking for the smallest that keeps the promise …"):
            planned = plan_rule(rule, wanted, family, delta, people, zeros)
    except InvalidInput as error:
        paths = {"known": "adversary.known", "people": "adversary.people", "delta": "target.delta"}
        paths["rule"] = "--rule"
        error.path = paths.get(error.field, error.path)
        raise
    print_result(json, planned.to_dict() | {"secret": secret}, describe_rule_plan, planned, secret)
