"""`whosin gwas`: publish an association study, attack it, and compare."""

from __future__ import annotations

import re
import uuid
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    NewPeople,
    Phenotypes,
    StudyAccount,
    StudyDryRun,
    StudyPath,
    Yes,
    add_options,
    confirm_spending,
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
    from whosin.gwas import Snps, Study, StudyFilter
    from whosin.gwas.question import Question, StudyCostEstimate
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


@dataclass(frozen=True)
class FilterOptions:
    """Which people and SNPs of a study are looked at, as options say it."""

    keep: Annotated[
        Path | None,
        typer.Option(help="Only these people: a public file with FID and IID, or IID, a line."),
    ] = None
    extract: Annotated[
        Path | None, typer.Option(help="Only these SNPs: a public file of names.")
    ] = None
    maf: Annotated[
        str | None,
        typer.Option(help="Only SNPs whose rarer allele is at least so frequent, by --read-freq."),
    ] = None
    read_freq: Annotated[
        Path | None,
        typer.Option(help="Public allele frequencies, .frq or .afreq; never those of the study."),
    ] = None
    split_par: Annotated[
        str | None,
        typer.Option(help="The build (hg18, hg19, hg38) whose pseudo-autosomal X is diploid."),
    ] = None

    def read(self) -> StudyFilter:
        """The same as `whosin.gwas` takes it."""
        from whosin.gwas import StudyFilter

        return StudyFilter(self.keep, self.extract, self.maf, self.read_freq, self.split_par)


@app.command()
@add_options("target", "adversary", without=EXCLUDED_STUDY_WORDS, filters=FilterOptions)
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
    *,
    filters: FilterOptions,
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
    crowd = GenotypePanel.of(study, phenotypes, seed, filters.read())
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
@add_options(filters=FilterOptions)
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
    json: Json = False,
    *,
    filters: FilterOptions,
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
    if qq is not None:
        check_writable(qq, "--qq", charts.CHART_SUFFIXES)
        require_extras("charts")
    given: dict[str, Any] = {"processes": processes, "leave_out_no_sex": leave_out_no_sex}
    with show_progress("counting") as tell:
        result = read_study(study, phenotypes, progress=tell, filters=filters.read(), **given)
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


@dataclass(frozen=True)
class QuestionOptions:
    """What is asked of a study, as options say it."""

    top: Annotated[int | None, typer.Option(help="How many SNPs to choose.")] = None
    snps: Annotated[
        str | None, typer.Option(help="Or their names, rs12,rs34, not taken from the data.")
    ] = None
    score: Annotated[
        str | None,
        typer.Option(help="Choose by distance (of χ² from a threshold), chi2 or linear."),
    ] = None
    clump_kb: Annotated[
        str | None, typer.Option(help="Choose windows of so many kilobases instead of SNPs.")
    ] = None
    loci: Annotated[
        Path | None,
        typer.Option(help="Or the loci of a public map: CHR START END NAME, or SNP LOCUS."),
    ] = None
    none_of_them: Annotated[
        bool, typer.Option("--none-of-them", help="Let no SNP win with --top 1 if none stands out.")
    ] = False
    share: Annotated[
        str | None, typer.Option(help="How much of ε the choice gets; by default the best share.")
    ] = None
    numbers: Annotated[
        str | None,
        typer.Option(
            help="Publish counts (and what follows), chi2, or nothing; effects of a trait."
        ),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(help="The χ² that the distance is measured from; by default the best."),
    ] = None
    significance: Annotated[str | None, typer.Option(help="Or the p-value of that χ².")] = None
    families: Annotated[
        str,
        typer.Option(
            help="Relatives: warn, protect (draw more noise), or first (keep one of each family)."
        ),
    ] = "warn"

    def read(self, relation: str, *, trait: bool) -> Question:
        """The question, of a quantitative trait or of cases; loci are those of `place_loci`."""
        from whosin.gwas.question import Question

        named = tuple(part.strip() for part in (self.snps or "").split(",") if part.strip())
        if (self.top is None) == (not named):
            both = "--top and --snps cannot be given together"
            raise InvalidInput(
                "no SNPs are asked for" if self.top is None else both,
                field="--top" if self.top is None else "--snps",
                value=self.snps,
                hint="give --top for the most associated ones, or --snps for those you name",
            )
        if self.clump_kb is not None:
            refuse_options({"--loci": self.loci}, "--clump-kb")
        return Question(
            self.top,
            relation,
            self.score or ("linear" if trait else "distance"),
            self.numbers or ("effects" if trait else "counts"),
            _chi_square_threshold(self.threshold, self.significance),
            families=self.families,
            share=self.share,
            none_of_them=self.none_of_them,
            named=named,
        )

    def place_loci(self, question: Question, snps: Snps) -> Question:
        """The question with its windows or loci among these SNPs."""
        from whosin.gwas.people import read_loci, window_loci

        if self.clump_kb is not None:
            return replace(question, loci=window_loci(snps, self.clump_kb))
        return question if self.loci is None else replace(question, loci=read_loci(self.loci, snps))


@dataclass(frozen=True)
class StudyOptions:
    """The people of a study and what is public of them, as options say it."""

    filters: FilterOptions
    within: Annotated[
        Path | None, typer.Option(help="Linear scores within these strata: FID, IID, stratum.")
    ] = None
    covar: Annotated[
        Path | None, typer.Option(help="And beside these public covariates: FID, IID, numbers.")
    ] = None
    phenotypes: Phenotypes = None
    trait: Annotated[
        Path | None,
        typer.Option(help="A quantitative trait instead of cases: a file with FID, IID and value."),
    ] = None
    trait_range: Annotated[
        str | None, typer.Option(help="The public range that values are clamped to: 140..210.")
    ] = None
    trait_sd: Annotated[
        str | None, typer.Option(help="A public standard deviation; by default half the range.")
    ] = None
    kinship: Annotated[
        Path | None,
        typer.Option(help="Relatives by KING or plink2 --make-king-table, not by the .fam file."),
    ] = None

    def read(self, study: Path, question: Question) -> Study:
        """A study of cases and controls, or of a quantitative trait."""
        public: dict[str, object] = {"--within": self.within, "--covar": self.covar}
        first = question.families if question.families == "first" else None
        if question.score != "linear":
            refuse_options(public, f"--score {question.score}")
        if self.trait is None:
            ranges = {"--trait-range": self.trait_range, "--trait-sd": self.trait_sd}
            refuse_options(ranges, "cases and controls")
            return self._read_cases(study, first=first is not None)
        others = {"--phenotypes": self.phenotypes, "--kinship": self.kinship, "--families": first}
        refuse_options(others, "--trait")
        return self._read_trait(study, self.trait)

    def _read_cases(self, study: Path, *, first: bool) -> Study:
        """Cases and controls with their relatives, strata and covariates; of relatives perhaps the
        first alone."""
        from whosin.gwas import read_study
        from whosin.gwas.linear import stratify_study
        from whosin.gwas.study import keep_first, replace_relatives

        filters, people = self.filters.read(), (study, self.phenotypes)
        if first:
            filters = replace(filters, keep=keep_first(*people, self.kinship, filters.keep))
        with show_progress("counting") as tell:
            result = read_study(*people, progress=tell, filters=filters)
        result = replace_relatives(result, *people, self.kinship, filters.keep)
        if self.within is None and self.covar is None:
            return result
        return stratify_study(result, *people, filters.keep, self.within, self.covar)

    def _read_trait(self, study: Path, trait: Path) -> Study:
        from whosin.gwas.traits import TraitRange, read_trait_study

        if self.trait_range is None:
            message = "a quantitative trait needs a public range, to which its values are clamped"
            hint = "add --trait-range, such as 140..210, by what is known without these people"
            raise InvalidInput(message, field="--trait-range", hint=hint)
        about: dict[str, Any] = {"within": self.within, "covar": self.covar}
        known = TraitRange.parse(self.trait_range, self.trait_sd)
        with show_progress("counting") as tell:
            about |= {"filters": self.filters.read(), "progress": tell}
            return read_trait_study(study, trait, known, **about)


@dataclass(frozen=True)
class PaymentOptions:
    """From which budget a release is paid, and whether it is one that was paid before."""

    account: StudyAccount
    request: Annotated[
        str | None, typer.Option(help="A name for this question: asked again, paid once.")
    ] = None
    again: Again = False
    amend: Annotated[
        bool, typer.Option("--amend", help="Go on under the same budget with a changed study.")
    ] = False
    continues: Continues = None
    new_people: NewPeople = False
    dry_run: StudyDryRun = False
    yes: Yes = False

    def resolve(self) -> PaymentOptions:
        """The same, with the name of the dataset that is gone on with, and of a question that is
        asked again."""
        from whosin.gwas.association import LINEAR_RELATIONS, STUDY_RELATIONS

        request = self.request or (uuid.uuid4().hex if self.again else None)
        if self.continues is None:
            return replace(self, request=request)
        given = {"--dataset": self.account.dataset, "--new-people": self.new_people or None}
        refuse_options(given, "--continues")
        relations = "|".join((*STUDY_RELATIONS, *LINEAR_RELATIONS))
        account = replace(self.account, dataset=re.sub(f":({relations})$", "", self.continues))
        return replace(self, account=account, amend=True, request=request)

    def pay(
        self, study: Path, found: Study, estimate: StudyCostEstimate, *, json: bool
    ) -> StudyRelease:
        """Ask the person at a terminal, and release."""
        from whosin.gwas.release import publish_study
        from whosin.ledger import Ledger
        from whosin.report.card import SECRET_WORDS
        from whosin.report.summary import promise_sentence, spending_words

        plan, question = estimate.plan, estimate.question
        where, name = self.account.find(study)
        if _find_paid(where, name, estimate, found, self.request) is None:
            cost = estimate.spend().cost(plan.relation)
            promise = promise_sentence(plan, SECRET_WORDS[question.relation])
            words = spending_words("This study", cost, plan, promise)
            confirm_spending(words, yes=self.yes, json=json)
        with Ledger(where) as opened, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes say it
            known = opened.datasets()
            if self.continues and not any(each.startswith(f"{name}:") for each in known):
                raise UnknownName("--continues", self.continues, known)
            said = {"amend": self.amend, "new_people": self.new_people}
            return publish_study(found, plan, question, opened, name, self.request, **said)


@app.command()
@add_options(
    "target",
    "adversary",
    without=EXCLUDED_STUDY_WORDS,
    question=QuestionOptions,
    people=add_options(filters=FilterOptions)(StudyOptions),
    payment=add_options(account=StudyAccount)(PaymentOptions),
)
def release(
    study: StudyPath,
    relation: Relation,
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    question: QuestionOptions,
    people: StudyOptions,
    payment: PaymentOptions,
    save: Annotated[
        list[Path] | None,
        typer.Option(help="Write x.tsv, x.html or the GWAS Catalog's x.ssf.tsv; repeat."),
    ] = None,
    json: Json = False,
) -> None:
    """Publish the most associated SNPs and their numbers, with a promise about who is a case."""
    from whosin.gwas.question import estimate_study_cost
    from whosin.report import gwas

    files = save or []
    plan = plan_study(target, adversary, relation)
    asked = question.read(relation, trait=people.trait is not None)
    _check_release_files(files, asked.numbers, payment.dry_run)
    payment = payment.resolve()
    found = people.read(study, asked)
    estimate = estimate_study_cost(plan, question.place_loci(asked, found.snps), found)
    if payment.dry_run:
        _print_estimate(json, estimate)
        return
    made = payment.pay(study, found, estimate, json=json)
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
        message = f"{', '.join(there)} exists already"
        hint = "choose another name, or replace it with --overwrite"
        raise InvalidInput(message, field="OUT", value=str(out), hint=hint)
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
