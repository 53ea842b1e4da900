"""`whosin gwas attack`: how well a known genome can be placed among the cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from whosin.app.cli.gwas.shared import (
    WITHOUT,
    Phenotypes,
    Relation,
    StudyPath,
    numbers,
    plan_of,
    progress,
)
from whosin.app.cli.options import Draw, Json
from whosin.app.cli.output import print_result
from whosin.app.cli.vocabulary_options import with_words


@with_words("target", "adversary", without=WITHOUT)
def attack(
    study: StudyPath,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    snps: Annotated[
        str | None, typer.Option(help="Numbers of SNPs: 10,100,1000; by default up to all.")
    ] = None,
    relation: Relation = "label-swap",
    rate: Annotated[str, typer.Option(help="The false-positive rate of the tests.")] = "0.01",
    phenotypes: Phenotypes = None,
    seed: Annotated[int, typer.Option(help="The seed of the choice of SNPs and of the noise.")] = 1,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Try Homer's statistic and the likelihood ratio on exact frequencies and on a release.

    Without a target the release is planned for γ = 2 at prior 0.5. For the curator: it reads the
    exact genotypes of a PLINK study.
    """
    from whosin.exact import rational
    from whosin.gwas.attack import Crowd
    from whosin.gwas.attack import attack as run
    from whosin.gwas.sensitivities import check_relation
    from whosin.report import charts, gwas, gwas_charts

    if save is not None:
        charts.check_path(save)
    check_relation(relation)
    if not target:
        target, adversary = {"gamma": "2"}, {"prior": "0.5", **adversary}
    plan = plan_of(target, adversary)
    crowd = Crowd.of(study, phenotypes, seed)
    sizes = numbers(snps, "--snps") if snps is not None else _sizes(crowd.bed.snps)
    false = float(rational(rate, "--rate"))
    with progress("attacking") as tell:
        points = run(crowd, sizes, plan.epsilon, relation, rate=false, seed=seed, progress=tell)
    believed = gwas.attack_prior(plan)
    data = {
        "epsilon": plan.epsilon,
        "relation": relation,
        "prior": believed,
        "promised_posterior": gwas.promised(plan, believed),
        "promised_power": gwas.attack_limit(plan, false),
        "seed": seed,
        "points": [gwas.point_data(point, believed) for point in points],
    }
    print_result(json, data, gwas.print_attack, points, plan, relation, false)
    if save is not None:
        title = f"Cases recognised at a false-positive rate of {false:g}"
        charts.save(gwas_charts.attack_chart(points, gwas.attack_limit(plan, false), title), save)


def _sizes(most: int) -> list[int]:
    """10, 30, 100, … up to all SNPs."""
    steps = [10**power * factor for power in range(1, 8) for factor in (1, 3)]
    return [size for size in steps if size < most] + [most]
