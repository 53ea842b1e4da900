"""`whosin gwas`: publish an association study, attack it, and compare."""

from __future__ import annotations

import typer

from whosin.app.cli.gwas import attack, count, experiment, release, simulate

app = typer.Typer(
    help="Association studies: simulate, count, release, attack, experiment.",
    no_args_is_help=True,
)
app.command("simulate")(simulate.simulate)
app.command("count")(count.count)
app.command("release")(release.release)
app.command("attack")(attack.attack)
app.command("experiment")(experiment.experiment)
