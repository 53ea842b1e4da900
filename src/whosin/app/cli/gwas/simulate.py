"""`whosin gwas simulate`: a study to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from whosin.app.cli.options import Json
from whosin.app.cli.output import print_json
from whosin.errors import InvalidInput


def simulate(
    out: Annotated[Path, typer.Argument(help="Writes OUT.bed, OUT.bim and OUT.fam.")],
    cases: Annotated[int, typer.Option(help="How many cases.")] = 1000,
    controls: Annotated[int, typer.Option(help="How many controls.")] = 1000,
    snps: Annotated[int, typer.Option(help="How many SNPs.")] = 10_000,
    causal: Annotated[int, typer.Option(help="How many of them are associated.")] = 10,
    odds_ratio: Annotated[
        float, typer.Option(help="The odds ratio of each copy at a causal SNP.")
    ] = 1.5,
    seed: Annotated[int, typer.Option(help="The seed: another number makes another study.")] = 1,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that are there already.")
    ] = False,
    json: Json = False,
) -> None:
    """Simulate cases and controls, some SNPs causal, and write PLINK files."""
    from whosin.gwas import Simulation
    from whosin.gwas.bed import files_of, prefix

    made = Simulation(cases, controls, snps, causal, odds_ratio, seed=seed)
    base = prefix(out)
    if not base.resolve().parent.is_dir():
        raise InvalidInput("OUT", "in a folder that exists", str(out))
    there = [path.name for path in files_of(base) if path.exists()]
    if there and not overwrite:
        accepted = "a study that is not there yet (--overwrite replaces it)"
        raise InvalidInput("OUT", accepted, ", ".join(there))
    made.write(base)
    names = made.names().take(made.frequencies()[2]).name
    if json:
        print_json(
            {"study": str(base), "cases": cases, "controls": controls, "snps": snps}
            | {"causal": names, "odds_ratio": odds_ratio, "seed": seed}
        )
        return
    print(
        f"{base.name}.bed, .bim, .fam: {cases} cases, {controls} controls, {snps} SNPs, seed {seed}"
    )
    print(f"causal: {' '.join(names)}" if names else "no SNP is causal")
