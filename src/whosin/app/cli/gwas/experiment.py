"""`whosin gwas experiment`: what bounding priors buys, and where it buys nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from whosin.app.cli.gwas.shared import numbers, progress
from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_result
from whosin.errors import UnknownName


def experiment(
    gamma: Annotated[str, typer.Option(help="Values of γ.")] = "1.5,2,3",
    top: Annotated[str, typer.Option(help="How many SNPs are asked for.")] = "3,10",
    people: Annotated[
        str, typer.Option(help="Sizes of the study, half of them cases.")
    ] = "1000,2000,5000,10000,20000",
    prior: Annotated[str, typer.Option(help="How sure the adversary is before.")] = "0.5",
    score: Annotated[str, typer.Option(help="distance or chi2.")] = "distance",
    snps: Annotated[int, typer.Option(help="How many SNPs a study has.")] = 5_000,
    causal: Annotated[int, typer.Option(help="How many of them are associated.")] = 10,
    odds_ratio: Annotated[
        float, typer.Option(help="The odds ratio of each copy at a causal SNP.")
    ] = 1.5,
    studies: Annotated[int, typer.Option(help="How many studies of each size.")] = 20,
    draws: Annotated[int, typer.Option(help="How many releases of each study.")] = 20,
    seed: Annotated[int, typer.Option(help="The seed of the first study.")] = 1,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Compare plain DP and bounded priors at the same γ: which of the true top SNPs come back?"""
    from whosin.exact import probability
    from whosin.gwas.experiment import Experiment, run
    from whosin.gwas.scoring import SCORES
    from whosin.report import charts, gwas, gwas_charts

    if save is not None:
        charts.check_path(save)
    if score not in SCORES:
        raise UnknownName("--score", score, SCORES)
    asked = Experiment(
        gammas=[part.strip() for part in gamma.split(",") if part.strip()],
        tops=numbers(top, "--top"),
        people=numbers(people, "--people"),
        prior=probability(prior, "--prior"),
        snps=snps,
        causal=causal,
        odds_ratio=odds_ratio,
        studies=studies,
        draws=draws,
        score=score,
        seed=seed,
    )
    with progress("releasing") as tell:
        outcomes = run(asked, tell)
    seeds = [asked.seed, asked.seed + asked.studies - 1]
    about = {"seeds": seeds, "snps": snps, "causal": causal, "odds_ratio": odds_ratio}
    data = about | {"outcomes": [*map(asdict, outcomes)]}
    print_result(json, data, gwas.print_experiment, outcomes, asked)
    if save is not None:
        title = "How much of the true top comes back"
        charts.save(gwas_charts.recovery_chart(outcomes, title), save)
