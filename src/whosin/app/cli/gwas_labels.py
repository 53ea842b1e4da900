"""`whosin gwas randomise`, `correct` and `beacon`: labels drawn once, and yes-or-no questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    EXCLUDED_STUDY_WORDS,
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
    print_result,
    print_warning,
)
from whosin.errors import InvalidInput, at
from whosin.plain_files import check_writable, require_new_file

if TYPE_CHECKING:
    from whosin.calibration import Plan
    from whosin.gwas.beacons import BeaconAnswer
    from whosin.gwas.labels import LabelledPeople, LabelPlan

app = typer.Typer()
LABEL_EXCLUSIONS = tuple(word for word in EXCLUDED_STUDY_WORDS if word != "size-known")
BEACON_EXCLUSIONS = (*LABEL_EXCLUSIONS, "size-known")
PHENOTYPE_SUFFIXES = (".txt", ".tsv", ".pheno", ".phen")


@app.command()
@add_options("target", "adversary", without=LABEL_EXCLUSIONS, account=StudyAccount)
def randomise(
    study: StudyPath,
    save: Annotated[
        Path, typer.Option(help="Write the labels: FID, IID, PHENO, for plink2, REGENIE, SAIGE.")
    ],
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    one_sided: Annotated[
        bool, typer.Option("--one-sided", help="Cases stay; promises nothing of who is none.")
    ] = False,
    coding: Annotated[
        str, typer.Option(help="1/2 for controls and cases (PLINK), or 0/1 (REGENIE, SAIGE).")
    ] = "1/2",
    priors: Annotated[
        Path | None,
        typer.Option(help="Everyone's own prior from public facts: FID, IID, 0.01..0.2."),
    ] = None,
    strata: Annotated[
        Path | None, typer.Option(help="Priors of strata, where --priors names each one's stratum.")
    ] = None,
    phenotypes: Phenotypes = None,
    own_budget: Annotated[
        bool,
        typer.Option(
            "--own-budget", help="This phenotype says nothing of others with a budget here."
        ),
    ] = False,
    new_people: NewPeople = False,
    dry_run: StudyDryRun = False,
    yes: Yes = False,
    json: Json = False,
    *,
    account: StudyAccount,
) -> None:
    """Randomise who is called a case, once; then analyse with any program, at no further cost."""
    from whosin.gwas.labels import LabelledPeople, draw_path, randomise_labels, read_coding
    from whosin.ledger import Cost, Ledger
    from whosin.report import study_labels
    from whosin.report.summary import spending_words

    check_writable(save, "--save", PHENOTYPE_SUFFIXES)
    for path in (save, draw_path(save)):
        if not dry_run:
            require_new_file(path, "--save")
    read_coding(coding)
    people = LabelledPeople.read(study, phenotypes)
    plan, own = _plan_people(target, adversary, one_sided, people, (priors, strata))
    if dry_run:
        data = {"epsilon": plan.epsilon, "ratios": plan.ratios, "labels": plan.method}
        size = len(people.order)
        print_result(json, data, study_labels.describe_label_plan, plan, size)
        return
    where, name = account.find(study)

    def confirm() -> None:
        spent = Cost.pure(plan.epsilon), plan.plan, study_labels.label_promise_words(plan)
        confirm_spending(spending_words("Drawing these labels", *spent), yes=yes, json=json)

    if new := "://" not in where and not Path(where).exists():
        confirm()  # before a ledger is made
    asked = None if new else confirm
    with Ledger(where) as opened:
        said = {"own_budget": own_budget, "new_people": new_people}
        made = randomise_labels(people, plan, opened, name, own=own, confirm=asked, **said)
    for note in made.notes:
        print_warning(note)
    made.write(save, coding)
    files = [save, draw_path(save)]
    print_result(json, study_labels.label_data(made), study_labels.describe_labels, made, files)


def _plan_people(
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    one_sided: bool,
    people: LabelledPeople,
    files: tuple[Path | None, Path | None],
) -> tuple[LabelPlan, Any]:
    """The plan, and whose range of priors is which."""
    from whosin.calibration import read_plan
    from whosin.calibration.planning import read_target
    from whosin.families import Independent
    from whosin.gwas.labels import plan_labels, read_priors

    method = "one-sided" if one_sided else "symmetric"
    priors, strata = files
    if priors is None:
        if strata is not None:
            message = "--strata gives priors of strata, and nothing says who is in which"
            raise InvalidInput(message, field="--strata", hint="give --priors, too")
        asked = read_plan(adversary, target)
        return plan_labels(asked.target, asked.family, method), None
    if "prior" in adversary:
        message = "--prior is for everybody, and --priors for each one"
        raise InvalidInput(message, field="--prior", hint="leave one of them out")
    if "size-known" in adversary:
        message = "priors of single people are independent beliefs, and the size is known here"
        raise InvalidInput(message, field="--size-known", hint="leave out one of the two")
    promise = read_target(target)
    names = [people.names[place] for place in people.order.tolist()]
    ranges, own = read_priors(priors, names, strata)
    with at("target"):
        return plan_labels(promise, Independent(), method, ranges), own


@app.command()
def correct(
    results: Annotated[
        Path, typer.Argument(metavar="RESULTS", help="A table of plink2, REGENIE or SAIGE.")
    ],
    labels: Annotated[
        Path, typer.Option(help="How the labels were drawn: the .labels.json of randomise.")
    ],
    save: Annotated[Path | None, typer.Option(help="Write the corrected table: x.tsv.")] = None,
    json: Json = False,
) -> None:
    """Correct odds ratios and standard errors for labels that were randomised."""
    from whosin.gwas.labels import LabelDraw
    from whosin.gwas.results import correct_results, read_results
    from whosin.report import study_labels

    if save is not None:
        check_writable(save, "--save", (".tsv", ".txt"))
        require_new_file(save, "--save")
    draw = LabelDraw.load(labels)
    made = correct_results(read_results(results), draw)
    if save is not None:
        study_labels.write_corrected(made, save)
    kept = {key: each for key, each in asdict(made.purity).items() if key != "covariance"}
    rows = study_labels.corrected_rows(made) if json else []
    data = {"program": made.table.program, "labels": draw.method, **kept, "snps": rows}
    print_result(json, data, study_labels.describe_corrected, made, draw)


@app.command()
@add_options("target", "adversary", without=BEACON_EXCLUSIONS, account=StudyAccount)
def beacon(
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    study: Annotated[
        Path | None,
        typer.Argument(metavar="[STUDY]", help="The study that answers; else a look ahead."),
    ] = None,
    ask: Annotated[
        str | None, typer.Option(help="Alleles: rs12:A,rs34:G; one of each SNP.")
    ] = None,
    frequencies: Annotated[
        Path | None,
        typer.Option(help="Public frequencies: SNP, allele, one number or several a line."),
    ] = None,
    people: Annotated[int | None, typer.Option(help="For a look ahead: how many people.")] = None,
    frequency: Annotated[
        str, typer.Option(help="For a look ahead: frequencies of alleles.")
    ] = "0.0001,0.001,0.01",
    answers: Annotated[int, typer.Option(help="For a look ahead: how many answers.")] = 10,
    known: Annotated[
        int, typer.Option(help="How many of the people's genomes are known to others, at most.")
    ] = 0,
    calling_error: Annotated[
        str, typer.Option(help="How probably the allele of someone who has it is missed.")
    ] = "0",
    json: Json = False,
    *,
    account: StudyAccount,
) -> None:
    """Say whether anyone in a study has an allele, within a budget; or how far one would go."""
    from whosin.errors import read_whole
    from whosin.exact import rational
    from whosin.gwas.beacons import Beacon, check_one_sided
    from whosin.report import study_labels

    plan = plan_study(target, adversary)
    check_one_sided(plan)
    if study is not None:
        terms = (ask, frequencies), (known, calling_error)
        made, left = _answer_questions(study, plan, *terms, account)
        given = {"answers": [asdict(each) for each in made], "left": left}
        print_result(json, given, study_labels.describe_beacon_answers, made, left)
        return
    if people is None:
        message = "a look ahead needs the number of people"
        raise InvalidInput(message, field="--people", hint="give --people, or a study and --ask")
    read_whole(answers, "--answers", 1, 100_000)
    about = Beacon(people, known, rational(calling_error, "--calling-error"))
    listed = [rational(part.strip(), "--frequency") for part in frequency.split(",")]
    data = {
        **asdict(about),
        "epsilon": plan.epsilon,
        "alleles": [
            {
                "frequency": f,
                "cost_yes": about.cost([f], answer=True),
                "cost_no": about.cost([f], answer=False),
                "yes_answers": about.most_answers(plan.epsilon, f, answer=True),
                "belief": about.belief(
                    plan.beliefs[1] if plan.beliefs[1] < 1 else "0.5", [(f, True, True)] * answers
                ),
            }
            for f in listed
        ],
    }
    print_result(json, data, study_labels.describe_beacon, about, plan, listed, answers)


def _answer_questions(
    study: Path,
    plan: Plan,
    asked: tuple[str | None, Path | None],
    terms: tuple[int, str],
    account: StudyAccount,
) -> tuple[list[BeaconAnswer], float]:
    """The answers, and what is left of the budget."""
    from whosin.exact import rational
    from whosin.gwas import read_study
    from whosin.gwas.beacons import Beacon, answer_beacon, read_allele_frequencies
    from whosin.ledger import Ledger

    words, file = asked
    if words is None or file is None:
        option = "--ask" if words is None else "--frequencies"
        message = "a study answers questions about alleles whose public frequencies are given"
        raise InvalidInput(message, field=option, hint="give --ask rs12:A and --frequencies FILE")
    alleles = []
    for word in filter(None, (part.strip() for part in words.split(","))):
        snp, colon, allele = word.rpartition(":")
        if not colon or not snp or not allele:
            message = f"{word!r} is not a SNP and an allele"
            raise InvalidInput(message, field="--ask", value=word, hint="write rs12:A")
        alleles.append((snp, allele))
    public = read_allele_frequencies(file)
    found = read_study(study)
    about = Beacon(found.people, terms[0], rational(terms[1], "--calling-error"))
    where, name = account.find(study)
    with Ledger(where) as opened:
        made = answer_beacon(found, plan, about, alleles, public, opened, name)
        return made, opened.budget_state(f"{name}:beacon").spendable
