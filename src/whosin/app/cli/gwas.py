"""`whosin gwas`: publish an association study, attack it, and compare."""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli import gwas_forecast, gwas_labels
from whosin.app.cli.main import (
    EXCLUDED_STUDY_WORDS,
    Again,
    Continues,
    Draw,
    Json,
    LedgerPlace,
    NewPeople,
    Phenotypes,
    StudyDataset,
    StudyDryRun,
    StudyPath,
    Yes,
    add_options,
    confirm_spending,
    find_account,
    plan_study,
    print_json,
    print_result,
    print_warning,
    read_numbers,
    refuse_options,
    show_progress,
)
from whosin.errors import InvalidInput, UnknownName, invalid_value, require_extras
from whosin.plain_files import check_output, check_writable, require_new_file

if TYPE_CHECKING:
    from whosin.gwas import Study, StudyFilter
    from whosin.gwas.question import StudyCostEstimate
    from whosin.gwas.release import StudyRelease


app = typer.Typer(
    help="Association studies: simulate, forecast, count, release, attack, labels, beacons.",
    no_args_is_help=True,
)
app.add_typer(gwas_forecast.app)
app.add_typer(gwas_labels.app)
Relation = Annotated[
    str,
    typer.Option(
        help="label-swap (hides who is a case) or genotype (hides anyone's genotype); with linear "
        "scores also stratum-swap or label; with --trait, trait (hides anyone's value) or genotype."
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option(help="Only these people: a public file with FID and IID, or IID, a line."),
]
Extract = Annotated[Path | None, typer.Option(help="Only these SNPs: a public file of names.")]
Maf = Annotated[
    str | None,
    typer.Option(help="Only SNPs whose rarer allele is at least so frequent, by --read-freq."),
]
ReadFreq = Annotated[
    Path | None,
    typer.Option(help="Public allele frequencies, .frq or .afreq; never those of the study."),
]
SplitPar = Annotated[
    str | None,
    typer.Option(help="The build (hg18, hg19, hg38) whose pseudo-autosomal X is diploid."),
]


@app.command()
@add_options("target", "adversary", without=EXCLUDED_STUDY_WORDS)
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
    keep: Keep = None,
    extract: Extract = None,
    maf: Maf = None,
    read_freq: ReadFreq = None,
    split_par: SplitPar = None,
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
    from whosin.gwas import StudyFilter
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
    filters = StudyFilter(keep, extract, maf, read_freq, split_par)
    crowd = GenotypePanel.of(study, phenotypes, seed, filters)
    sizes = read_numbers(snps, "--snps") if snps is not None else _snp_numbers(crowd.bed.snps)
    false = float(rational(rate, "--rate"))
    if published:
        tables = [read_results(path) for path in published]
        about = {"reference": reference, "rate": false, "seed": seed}
        points = attack_tables(crowd, tables, sizes, **about)  # type: ignore[arg-type]
    else:
        with show_progress("attacking") as tell:
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
    qq: Annotated[
        Path | None,
        typer.Option(help="Draw a QQ plot (x.html, x.svg, x.png) and say λ; both are private."),
    ] = None,
    keep: Keep = None,
    extract: Extract = None,
    maf: Maf = None,
    read_freq: ReadFreq = None,
    split_par: SplitPar = None,
    json: Json = False,
) -> None:
    """Count genotypes of cases and controls. What it writes is exact and private."""
    from whosin.gwas import StudyFilter, read_study
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
    if qq is not None:
        check_writable(qq, "--qq", charts.CHART_SUFFIXES)
        require_extras("charts")
    filters = StudyFilter(keep, extract, maf, read_freq, split_par)
    given = {"processes": processes, "leave_out_no_sex": leave_out_no_sex, "filters": filters}
    with show_progress("counting") as tell:
        result = read_study(study, phenotypes, progress=tell, **given)  # type: ignore[arg-type]
    for path in files:
        if path.suffix.lower() == ".tsv":
            write_table(result, path)
        else:
            charts.save_chart(gwas.exact_chart(result), path, private=True)
    if assoc is not None:
        write_exact(result, assoc)
    data = {key: getattr(result, key) for key in ("cases", "controls", "left_out")}
    inflation = None
    if qq is not None:
        charts.save_chart(gwas.quantile_chart(result), qq, private=True)
        inflation = gwas.genomic_inflation(result)
        data["lambda"] = inflation
    if files or assoc is not None or qq is not None:
        print_warning(
            "exact statistics are private: keep them in the house, or use `whosin gwas release`"
        )
    print_result(json, {"snps": len(result.snps), **data}, gwas.describe_study, result, inflation)


@app.command()
@add_options("target", "adversary", without=EXCLUDED_STUDY_WORDS)
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
        str | None,
        typer.Option(help="Choose by distance (of χ² from a threshold), chi2 or linear."),
    ] = None,
    within: Annotated[
        Path | None, typer.Option(help="Linear scores within these strata: FID, IID, stratum.")
    ] = None,
    covar: Annotated[
        Path | None, typer.Option(help="And beside these public covariates: FID, IID, numbers.")
    ] = None,
    clump_kb: Annotated[
        str | None, typer.Option(help="Choose windows of so many kilobases instead of SNPs.")
    ] = None,
    loci: Annotated[
        Path | None,
        typer.Option(help="Or the loci of a public map: CHR START END NAME, or SNP LOCUS."),
    ] = None,
    none_of_them: Annotated[
        bool, typer.Option("--none-of-them", help="Let no SNP win with --top 1 if none stands out.")
    ] = False,
    share: Annotated[
        str | None, typer.Option(help="How much of ε the choice gets; by default the best share.")
    ] = None,
    numbers: Annotated[
        str | None,
        typer.Option(
            help="Publish counts (and what follows), chi2, or nothing; effects of a trait."
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(help="The χ² that the distance is measured from; by default the best."),
    ] = None,
    significance: Annotated[str | None, typer.Option(help="Or the p-value of that χ².")] = None,
    phenotypes: Phenotypes = None,
    trait: Annotated[
        Path | None,
        typer.Option(help="A quantitative trait instead of cases: a file with FID, IID and value."),
    ] = None,
    trait_range: Annotated[
        str | None, typer.Option(help="The public range that values are clamped to: 140..210.")
    ] = None,
    trait_sd: Annotated[
        str | None, typer.Option(help="A public standard deviation; by default half the range.")
    ] = None,
    ledger: LedgerPlace = None,
    dataset: StudyDataset = None,
    request: Annotated[
        str | None, typer.Option(help="A name for this question: asked again, paid once.")
    ] = None,
    again: Again = False,
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
    dry_run: StudyDryRun = False,
    yes: Yes = False,
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Write x.tsv, x.html or the GWAS Catalog's x.ssf.tsv; repeat."),
    ] = None,
    keep: Keep = None,
    extract: Extract = None,
    maf: Maf = None,
    read_freq: ReadFreq = None,
    split_par: SplitPar = None,
    json: Json = False,
) -> None:
    """Publish the most associated SNPs and their numbers, with a promise about who is a case."""
    from whosin.gwas import StudyFilter
    from whosin.gwas.association import LINEAR_RELATIONS, STUDY_RELATIONS
    from whosin.gwas.people import read_loci, window_loci
    from whosin.gwas.question import Question, estimate_study_cost
    from whosin.gwas.release import publish_study
    from whosin.ledger import Ledger
    from whosin.report import gwas
    from whosin.report.card import SECRET_WORDS
    from whosin.report.summary import promise_sentence, spending_words

    files = save or []
    score = score or ("distance" if trait is None else "linear")
    numbers = numbers or ("counts" if trait is None else "effects")
    _check_release_files(files, numbers, dry_run)
    if continues is not None:
        refuse_options({"--dataset": dataset, "--new-people": new_people or None}, "--continues")
        relations = "|".join((*STUDY_RELATIONS, *LINEAR_RELATIONS))
        dataset, amend = re.sub(f":({relations})$", "", continues), True
    plan = plan_study(target, adversary, relation)
    named = tuple(part.strip() for part in (snps or "").split(",") if part.strip())
    if (top is None) == (not named):
        raise InvalidInput(
            "no SNPs are asked for" if top is None else "--top and --snps cannot be given together",
            field="--top" if top is None else "--snps",
            value=snps,
            hint="give --top for the most associated ones, or --snps for those you name",
        )
    chosen_by = _chi_square_threshold(threshold, significance)
    free: dict[str, Any] = {"share": share, "none_of_them": none_of_them, "named": named}
    asked = Question(top, relation, score, numbers, chosen_by, families=families, **free)
    if score != "linear":
        refuse_options({"--within": within, "--covar": covar}, f"--score {score}")
    if clump_kb is not None:
        refuse_options({"--loci": loci}, "--clump-kb")
    filters = StudyFilter(keep, extract, maf, read_freq, split_par)
    first = families == "first"
    if trait is None:
        refuse_options({"--trait-range": trait_range, "--trait-sd": trait_sd}, "cases and controls")
        result = _read_cases(study, phenotypes, filters, kinship, first, (within, covar))
    else:
        others = {"--phenotypes": phenotypes, "--kinship": kinship, "--families": first or None}
        refuse_options(others, "--trait")
        result = _read_trait(study, trait, (trait_range, trait_sd), filters, (within, covar))
    if clump_kb is not None:
        asked = replace(asked, loci=window_loci(result.snps, clump_kb))
    elif loci is not None:
        asked = replace(asked, loci=read_loci(loci, result.snps))
    estimate = estimate_study_cost(plan, asked, result)
    if dry_run:
        _print_estimate(json, estimate)
        return
    where, name = find_account(study, ledger, dataset)
    request = request or (uuid.uuid4().hex if again else None)
    if _find_paid(where, name, estimate, result, request) is None:
        cost = estimate.spend().cost(plan.relation)
        promise = promise_sentence(plan, SECRET_WORDS[relation])
        words = spending_words("This study", cost, plan, promise)
        confirm_spending(words, yes=yes, json=json)
    with Ledger(where) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the notes say it
        known = opened.datasets()
        if continues is not None and not any(each.startswith(f"{name}:") for each in known):
            raise UnknownName("--continues", continues, known)
        said = {"amend": amend, "new_people": new_people}
        made = publish_study(result, plan, asked, opened, name, request, **said)
    for note in made.notes:
        print_warning(note)
    _write_release_files(made, files)
    print_result(json, _estimate_data(estimate, made), gwas.describe_study_release, made)


def _find_paid(ledger: str, name: str, *asked: Any) -> str | None:
    """The request under which this was paid for before, in a ledger, which is not made."""
    from whosin.gwas.release import find_paid_request
    from whosin.ledger import Ledger

    if "://" not in ledger and not Path(ledger).exists():
        return None
    with Ledger(ledger) as opened:
        return find_paid_request(opened, name, *asked)


def _read_cases(
    study: Path,
    phenotypes: Path | None,
    filters: StudyFilter,
    kinship: Path | None,
    first: bool,
    public: tuple[Path | None, Path | None],
) -> Study:
    """A study of cases and controls with its relatives, strata and covariates; of relatives perhaps
    the first alone."""
    from whosin.gwas import read_study
    from whosin.gwas.linear import stratify_study
    from whosin.gwas.study import keep_first, replace_relatives

    kept = keep_first(study, phenotypes, kinship, filters.keep) if first else filters.keep
    with show_progress("counting") as tell:
        chosen = replace(filters, keep=kept)
        result = read_study(study, phenotypes, progress=tell, filters=chosen)
    result = replace_relatives(result, study, phenotypes, kinship, kept)
    if public != (None, None):
        return stratify_study(result, study, phenotypes, kept, *public)
    return result


def _read_trait(
    study: Path,
    trait: Path,
    about: tuple[str | None, str | None],
    filters: StudyFilter,
    public: tuple[Path | None, Path | None],
) -> Study:
    """A study of a quantitative trait, by its range and deviation as they were written."""
    from whosin.gwas.traits import TraitRange, read_trait_study

    ends, deviation = about
    if ends is None:
        message = "a quantitative trait needs a public range, to which its values are clamped"
        hint = "add --trait-range, such as 140..210, by what is known without these people"
        raise InvalidInput(message, field="--trait-range", hint=hint)
    known = TraitRange.parse(ends, deviation)
    within, covar = public
    with show_progress("counting") as tell:
        return read_trait_study(
            study, trait, known, filters=filters, within=within, covar=covar, progress=tell
        )


def _check_release_files(files: list[Path], numbers: str, dry_run: bool) -> None:
    """Refuse what could not be written, or would be overwritten, before anything is spent."""
    from whosin.report.summary_statistics import check_ssf, is_ssf, metadata_path

    for path in files:
        check_writable(path, "--save", (".tsv", ".html"))
        if path.suffix.lower() == ".html":
            require_extras("charts")
        if is_ssf(path):
            check_ssf(path, numbers)
        for made in (path, metadata_path(path)) if is_ssf(path) else (path,):
            if not dry_run:
                require_new_file(made, "--save")


def _write_release_files(made: StudyRelease, files: list[Path]) -> None:
    from whosin.report.gwas import save_study_page, write_release
    from whosin.report.summary_statistics import is_ssf, write_ssf

    for path in files:
        if is_ssf(path):
            write_ssf(made, path)
        elif path.suffix.lower() == ".tsv":
            write_release(made, path)
        else:
            save_study_page(made, path)


def _print_estimate(json: bool, estimate: StudyCostEstimate) -> None:
    """The card of a dry run, with the chance of some SNPs to come back where they are chosen."""
    from whosin.gwas.forecast import compare_settings
    from whosin.report import gwas, study_forecasts

    data, sections = _estimate_data(estimate), []
    if estimate.question.top is not None and estimate.trait is None:
        pairs = compare_settings(estimate.public_study, estimate.settings)
        data["forecast"] = [
            study_forecasts.forecast_data(made) | {"best": study_forecasts.forecast_data(best)}
            for made, best in pairs
        ]
        sections.append(study_forecasts.describe_expectation(*zip(*pairs, strict=True)))
    print_result(json, data, gwas.describe_estimate, estimate, *sections)


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

    hidden = estimate.question.relation == "label" or estimate.trait is not None
    asked = ("top", "named", "relation", "score", "numbers")
    data: dict[str, object] = {
        **{key: getattr(estimate.question, key) for key in asked},
        "threshold": estimate.threshold,
        "epsilon": sum(estimate.epsilons),
        "epsilon_selection": estimate.epsilons[0],
        "epsilon_numbers": estimate.epsilons[1],
        "selection_scale": estimate.selection_scale,
        "noise_scale": estimate.scale,
        "cases": None if hidden else estimate.cases,
        "controls": None if hidden else estimate.controls,
        "people": estimate.cases + estimate.controls,
        "snps_in_study": estimate.snps,
        "candidates": estimate.candidates,
        "plan": estimate.plan.to_dict(),
    }
    if made is not None:
        data |= {"dataset": made.dataset, "request": made.request, "snps": release_rows(made)}
        data |= {"gap": made.gap, "loci": made.loci}
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
