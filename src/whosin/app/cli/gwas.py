"""`whosin gwas`: publish an association study, attack it, and compare."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli import gwas_labels
from whosin.app.cli.options import (
    Continues,
    Draw,
    Json,
    LedgerPlace,
    NewPeople,
    Phenotypes,
    StudyPath,
    add_options,
    print_json,
    print_result,
    print_warning,
    progress_bar,
    refuse_options,
)
from whosin.errors import InvalidInput, UnknownName, invalid_value
from whosin.extras import require_extras
from whosin.plain_files import check_output, check_writable, require_new_file

if TYPE_CHECKING:
    from whosin.calibration import Plan
    from whosin.gwas.release import StudyCostEstimate, StudyRelease


app = typer.Typer(
    help="Association studies: simulate, count, release, attack, experiment; labels and beacons.",
    no_args_is_help=True,
)
app.add_typer(gwas_labels.app)
Relation = Annotated[
    str,
    typer.Option(help="label-swap (hides who is a case) or genotype (hides anyone's genotype)."),
]
EXCLUDED_WORDS = ("size-known", "linked", "known", "uninformed", "family", "people", "delta")
"""Options that a study does not take, since everyone knows how many cases there are."""


def plan_study(target: Mapping[str, Any], adversary: Mapping[str, Any]) -> Plan:
    """The plan: everyone knows how many cases there are."""
    from whosin.calibration import read_plan

    return read_plan({**adversary, "size-known": True}, target)


def read_numbers(text: str, field: str) -> list[int]:
    from whosin.validation import spelled_whole

    return [
        spelled_whole(part.strip().replace("_", ""), field)
        for part in text.split(",")
        if part.strip()
    ]


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that is told how much of a work is done."""
    with progress_bar() as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@app.command()
@add_options("target", "adversary", without=EXCLUDED_WORDS)
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
    published: Annotated[
        list[Path] | None,
        typer.Option(help="Attack this table of plink2, REGENIE or SAIGE; repeat for phenotypes."),
    ] = None,
    reference: Annotated[
        Path | None,
        typer.Option(help="For --published: other people's PLINK files, instead of half of STUDY."),
    ] = None,
    seed: Annotated[int, typer.Option(help="The seed of the choice of SNPs and of the noise.")] = 1,
    save: Draw = None,
    json: Json = False,
) -> None:
    """Try Homer's statistic and the likelihood ratio on exact frequencies and on a release.

    Without a target the release is planned for γ = 2 at prior 0.5. For the curator: it reads the
    exact genotypes of a PLINK study. With --published tables take the place of both; the cases of
    STUDY are people of theirs, the controls are not.
    """
    from whosin.exact import rational
    from whosin.gwas.association import check_relation
    from whosin.gwas.attack import GenotypePanel, attack_tables
    from whosin.gwas.attack import attack_study as run
    from whosin.gwas.results import read_results
    from whosin.report import charts, gwas

    charts.check_path(save)
    check_relation(relation)
    if not target:
        target, adversary = {"gamma": "2"}, {"prior": "0.5", **adversary}
    plan = plan_study(target, adversary)
    if reference is not None and not published:
        message = "--reference has a meaning with --published alone"
        raise InvalidInput(message, field="--reference", hint="leave it out")
    crowd = GenotypePanel.of(study, phenotypes, seed)
    sizes = read_numbers(snps, "--snps") if snps is not None else _snp_numbers(crowd.bed.snps)
    false = float(rational(rate, "--rate"))
    if published:
        tables = [read_results(path) for path in published]
        about = {"reference": reference, "rate": false, "seed": seed}
        points = attack_tables(crowd, tables, sizes, **about)  # type: ignore[arg-type]
    else:
        with progress("attacking") as tell:
            points = run(crowd, sizes, plan.epsilon, relation, rate=false, seed=seed, progress=tell)
    believed = gwas.attack_prior(plan)
    data = {
        "epsilon": plan.epsilon,
        "relation": relation,
        "prior": believed,
        "promised_posterior": gwas.promised_posterior(plan, believed),
        "promised_power": gwas.attack_limit(plan, false),
        "seed": seed,
        "points": [gwas.point_data(point, believed) for point in points],
    }
    print_result(json, data, gwas.describe_attack, points, plan, relation, false)
    if save is not None:
        title = f"Cases recognised at a false-positive rate of {false:g}"
        chart = gwas.attack_chart(points, gwas.attack_limit(plan, false), title)
        charts.save_chart(chart, save, private=True)


def _snp_numbers(most: int) -> list[int]:
    """10, 30, 100, … up to all SNPs."""
    steps = [10**power * factor for power in range(1, 8) for factor in (1, 3)]
    return [size for size in steps if size < most] + [most]


@app.command()
def count(
    study: StudyPath,
    phenotypes: Phenotypes = None,
    processes: Annotated[
        int | None,
        typer.Option(help="How many; by default one below 2 GiB, else one for each core."),
    ] = None,
    leave_out_no_sex: Annotated[
        bool,
        typer.Option(
            "--leave-out-no-sex",
            help="Leave out people of unknown sex, as PLINK does without --allow-no-sex.",
        ),
    ] = False,
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Write the counts (x.tsv), or draw: x.html, x.svg, x.png; repeat."),
    ] = None,
    assoc: Annotated[
        Path | None, typer.Option(help="Write PLINK's association table, tab-separated.")
    ] = None,
    json: Json = False,
) -> None:
    """Count genotypes of cases and controls. What it writes is exact and private."""
    from whosin.gwas import read_study
    from whosin.gwas.study import write_table
    from whosin.report import charts, gwas
    from whosin.report.gwas import write_exact

    files = save or []
    for path in files:
        check_writable(path, "--save", (".tsv", *charts.CHART_SUFFIXES))
        if path.suffix.lower() != ".tsv":
            require_extras("charts")
    if assoc is not None:
        check_output(assoc, "--assoc")
    given = {"processes": processes, "leave_out_no_sex": leave_out_no_sex}
    with progress("counting") as tell:
        result = read_study(study, phenotypes, progress=tell, **given)  # type: ignore[arg-type]
    for path in files:
        if path.suffix.lower() == ".tsv":
            write_table(result, path)
        else:
            charts.save_chart(gwas.exact_chart(result), path, private=True)
    if assoc is not None:
        write_exact(result, assoc)
    if files or assoc is not None:
        print_warning(
            "exact statistics are private: keep them in the house, or use `whosin gwas release`"
        )
    sizes = {key: getattr(result, key) for key in ("cases", "controls", "left_out")}
    print_result(json, {"snps": len(result.snps), **sizes}, gwas.describe_study, result)


@app.command()
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
    from whosin.gwas.scores import SNP_SCORE_KINDS
    from whosin.gwas.simulation import Experiment, run_experiment
    from whosin.report import charts, gwas

    charts.check_path(save)
    if score not in SNP_SCORE_KINDS:
        raise UnknownName("--score", score, SNP_SCORE_KINDS)
    asked = Experiment(
        gammas=[part.strip() for part in gamma.split(",") if part.strip()],
        tops=read_numbers(top, "--top"),
        people=read_numbers(people, "--people"),
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
        outcomes = run_experiment(asked, tell)
    seeds = [asked.seed, asked.seed + asked.studies - 1]
    about = {"seeds": seeds, "snps": snps, "causal": causal, "odds_ratio": odds_ratio}
    data = about | {"outcomes": [*map(asdict, outcomes)]}
    print_result(json, data, gwas.describe_experiment, outcomes, asked)
    if save is not None:
        title = "How much of the true top comes back"
        charts.save_chart(gwas.recovery_chart(outcomes, title), save, private=True)


@app.command()
@add_options("target", "adversary", without=EXCLUDED_WORDS)
def release(
    study: StudyPath,
    relation: Relation,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    top: Annotated[int | None, typer.Option(help="How many SNPs to choose.")] = None,
    snps: Annotated[
        str | None, typer.Option(help="Or their names, rs12,rs34, not taken from the data.")
    ] = None,
    score: Annotated[
        str, typer.Option(help="Choose by distance (of χ² from a threshold) or by chi2.")
    ] = "distance",
    numbers: Annotated[
        str, typer.Option(help="Publish counts (and what follows), chi2, or nothing.")
    ] = "counts",
    threshold: Annotated[
        str | None,
        typer.Option(help="The χ² that the distance is measured from; by default 4."),
    ] = None,
    significance: Annotated[str | None, typer.Option(help="Or the p-value of that χ².")] = None,
    phenotypes: Phenotypes = None,
    ledger: LedgerPlace = None,
    dataset: Annotated[
        str | None, typer.Option(help="The study's name in the ledger; by default its file's.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="A name for this question: asked again, paid once.")
    ] = None,
    amend: Annotated[
        bool, typer.Option("--amend", help="Go on under the same budget with a changed study.")
    ] = False,
    continues: Continues = None,
    new_people: NewPeople = False,
    families: Annotated[
        str,
        typer.Option(
            help="Relatives: warn, protect (draw more noise), or first (keep one of each family)."
        ),
    ] = "warn",
    kinship: Annotated[
        Path | None,
        typer.Option(help="Relatives by KING or plink2 --make-king-table, not by the .fam file."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the card; draw and spend nothing.")
    ] = False,
    save: Annotated[
        list[Path] | None, typer.Option(help="Write a table (x.tsv) or a page (x.html); repeat.")
    ] = None,
    json: Json = False,
) -> None:
    """Publish the most associated SNPs and their numbers, with a promise about who is a case."""
    from whosin.gwas import read_study
    from whosin.gwas.bed import study_prefix
    from whosin.gwas.people import StudyFilter
    from whosin.gwas.release import Question, estimate_study_cost, publish_study
    from whosin.gwas.study import keep_first, read_relatives
    from whosin.ledger import Ledger
    from whosin.report import gwas
    from whosin.report.gwas import save_study_page, write_release

    files = save or []
    for path in files:
        check_writable(path, "--save", (".tsv", ".html"))
        if path.suffix.lower() == ".html":
            require_extras("charts")
        if not dry_run:
            require_new_file(path, "--save")
    if continues is not None:
        refuse_options({"--dataset": dataset}, "--continues")
        dataset, amend = continues.removesuffix(":genotype").removesuffix(":label-swap"), True
    plan = plan_study(target, adversary)
    named = tuple(part.strip() for part in (snps or "").split(",") if part.strip())
    if (top is None) == (not named):
        raise InvalidInput(
            "no SNPs are asked for" if top is None else "--top and --snps cannot be given together",
            field="--top" if top is None else "--snps",
            value=snps,
            hint="give --top for the most associated ones, or --snps for those you name",
        )
    chosen_by = _chi_square_threshold(threshold, significance)
    asked = Question(top, relation, score, numbers, chosen_by, named=named, families=families)
    with progress("counting") as tell:
        keep = keep_first(study, phenotypes, kinship) if families == "first" else None
        result = read_study(study, phenotypes, filters=StudyFilter(keep=keep), progress=tell)
    if kinship is not None:
        result = replace(result, related=read_relatives(study, phenotypes, kinship, keep))
    estimate = estimate_study_cost(plan, asked, result)
    if dry_run:
        print_result(json, _estimate_data(estimate), gwas.describe_estimate, estimate)
        return
    base = study_prefix(study)
    where, name = ledger or str(base.with_name(base.name + ".ledger")), dataset or base.name
    with Ledger(where) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes say it
        known = opened.datasets()
        if continues is not None and not {f"{name}:genotype", f"{name}:label-swap"} & {*known}:
            raise UnknownName("--continues", continues, known)
        said = {"amend": amend, "new_people": new_people}
        made = publish_study(result, plan, asked, opened, name, request, **said)
    for note in made.notes:
        print_warning(note)
    for path in files:
        if path.suffix.lower() == ".tsv":
            write_release(made, path)
        else:
            save_study_page(made, path)
    print_result(json, _estimate_data(estimate, made), gwas.describe_study_release, made)


def _chi_square_threshold(threshold: str | None, significance: str | None) -> object:
    """The χ² that distances are measured from, as it is or by its p-value."""
    from scipy.special import chdtri

    from whosin.exact import rational

    if significance is None:
        return None if threshold is None else rational(threshold, "--threshold")
    refuse_options({"--threshold": threshold}, "--significance")
    value = float(rational(significance, "--significance"))
    if not 1e-300 <= value < 1:
        raise invalid_value("--significance", "a p-value above 0 and below 1", significance)
    return float(chdtri(1, value))


def _estimate_data(
    estimate: StudyCostEstimate, made: StudyRelease | None = None
) -> dict[str, object]:
    from whosin.report.gwas import release_rows

    asked = ("top", "named", "relation", "score", "numbers")
    data: dict[str, object] = {
        **{key: getattr(estimate.question, key) for key in asked},
        "threshold": estimate.threshold,
        "epsilon": sum(estimate.epsilons),
        "epsilon_selection": estimate.epsilons[0],
        "epsilon_numbers": estimate.epsilons[1],
        "selection_scale": estimate.selection_scale,
        "noise_scale": estimate.scale,
        "cases": estimate.cases,
        "controls": estimate.controls,
        "snps_in_study": estimate.snps,
        "plan": estimate.plan.to_dict(),
    }
    if made is not None:
        data |= {"dataset": made.dataset, "request": made.request, "snps": release_rows(made)}
    return data


@app.command()
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
    from whosin.gwas.bed import study_files, study_prefix

    made = Simulation(cases, controls, snps, causal, odds_ratio, seed=seed)
    base = study_prefix(out)
    if not base.resolve().parent.is_dir():
        raise InvalidInput(
            f"there is no folder {base.parent}", field="OUT", value=str(out), hint="make it first"
        )
    for path in study_files(base):
        check_output(path, "OUT")
    there = [path.name for path in study_files(base) if path.exists()]
    if there and not overwrite:
        raise InvalidInput(
            f"{', '.join(there)} exists already",
            field="OUT",
            value=str(out),
            hint="choose another name, or replace it with --overwrite",
        )
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
