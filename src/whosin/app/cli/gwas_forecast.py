"""`whosin gwas forecast` and `experiment`: what a release gives back, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from whosin.app.cli.main import (
    EXCLUDED_STUDY_WORDS,
    Draw,
    Json,
    add_options,
    plan_study,
    print_result,
    read_numbers,
    refuse_options,
    show_progress,
)
from whosin.errors import InvalidInput, invalid_value

if TYPE_CHECKING:
    from fractions import Fraction

    from whosin.gwas.prospects import Hope, PublicStudy

app = typer.Typer()
Frequencies = Annotated[
    str | None,
    typer.Option(
        help="Allele frequencies: 0.05..0.5, a list, or a public .frq or .afreq file; never the "
        "study's own."
    ),
]
Threshold = Annotated[
    str | None, typer.Option(help="The χ² that the distance is measured from; by default the best.")
]
Share = Annotated[
    str | None, typer.Option(help="How much of ε pays for the choice; by default the best.")
]


@app.command()
@add_options("target", "adversary", without=EXCLUDED_STUDY_WORDS)
def forecast(
    cases: Annotated[int, typer.Option(help="How many cases.")],
    controls: Annotated[int, typer.Option(help="How many controls.")],
    snps: Annotated[int, typer.Option(help="How many SNPs are looked at.")],
    target: Mapping[str, Any],
    adversary: Mapping[str, Any],
    odds_ratio: Annotated[
        str | None, typer.Option(help="The odds ratio of a SNP you hope for; several: 1.5,2.")
    ] = None,
    frequency: Annotated[
        str, typer.Option(help="Its frequency among controls; one, or one for each odds ratio.")
    ] = "0.3",
    chi2: Annotated[
        str | None, typer.Option("--chi2", help="Or the χ² that the study itself shows: 36.")
    ] = None,
    relation: Annotated[
        str | None,
        typer.Option(help="genotype, label-swap or label; with --advise by default all three."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="How many SNPs are chosen; by default one for each hope, with --advise the best."
        ),
    ] = None,
    numbers: Annotated[str, typer.Option(help="counts, chi2 or nothing.")] = "counts",
    score: Annotated[str, typer.Option(help="What SNPs are chosen by.")] = "distance",
    threshold: Threshold = None,
    share: Share = None,
    frequencies: Frequencies = None,
    effective_snps: Annotated[
        int | None,
        typer.Option(help="How many independent SNPs they count for, where they are linked."),
    ] = None,
    advise: Annotated[
        bool, typer.Option("--advise", help="Find the best settings and the smallest study.")
    ] = False,
    json: Json = False,
) -> None:
    """Say how probably a SNP comes back from a release. It reads no study and spends nothing."""
    from whosin.gwas.association import STUDY_RELATIONS
    from whosin.gwas.forecast import ONE_LABEL, StudySettings, advise_study, forecast_study
    from whosin.report import study_forecasts as words

    hopes = _read_hopes(odds_ratio, chi2, frequency)
    study = _public_study(cases, controls, snps, frequencies, effective_snps)
    if advise:
        refuse_options({"--threshold": threshold, "--share": share}, "--advise")
        relations = (*STUDY_RELATIONS, ONE_LABEL) if relation is None else (relation,)
        epsilons = {each: plan_study(target, adversary, each).epsilon for each in relations}
        advice = advise_study(study, hopes, epsilons, numbers, top=top)
        print_result(json, words.advice_data(advice), words.describe_advice, advice)
        return
    if relation is None:
        message = "the relation decides what is protected, and has no default"
        hint = "give --relation genotype or label-swap, or compare them with --advise"
        raise InvalidInput(message, field="--relation", hint=hint)
    plan = plan_study(target, adversary, relation)
    settings = StudySettings(
        relation,
        plan.epsilon,
        len(hopes) if top is None else top,
        score,
        _read_fraction(threshold, "--threshold"),
        numbers,
        _read_fraction(share, "--share"),
    )
    made = forecast_study(study, settings, hopes)
    print_result(json, words.forecast_data(made), words.describe_forecast, made)


def _read_fraction(text: str | None, field: str) -> Fraction | None:
    from whosin.exact import rational

    return None if text is None else rational(text, field)


def _public_study(
    cases: int, controls: int, snps: int, frequencies: str | None, effective_snps: int | None
) -> PublicStudy:
    from whosin.gwas.prospects import AlleleFrequencies, PublicStudy

    if frequencies is None:
        return PublicStudy(cases, controls, snps, effective_snps=effective_snps)
    found = AlleleFrequencies.read(frequencies)
    return PublicStudy(cases, controls, snps, found, effective_snps)


def _read_hopes(odds_ratio: str | None, chi2: str | None, frequency: str) -> list[Hope]:
    """One hope for each odds ratio or χ², with its frequency."""
    from whosin.gwas.prospects import Hope

    if (odds_ratio is None) == (chi2 is None):
        raise InvalidInput(
            "state what you hope for" if chi2 is None else "state an odds ratio or a χ², not both",
            field="--odds-ratio",
            value=odds_ratio,
            hint="for example --odds-ratio 1.5 --frequency 0.3",
        )
    values = [part.strip() for part in str(odds_ratio or chi2).split(",") if part.strip()]
    shares = [part.strip() for part in frequency.split(",") if part.strip()]
    if len(shares) == 1:
        shares *= len(values)
    if len(shares) != len(values) or not values:
        option = "--odds-ratio" if chi2 is None else "--chi2"
        accepted = f"one, or as many as there are values of {option} ({len(values)})"
        raise invalid_value("--frequency", accepted, frequency)
    kind = "odds_ratio" if chi2 is None else "chi2"
    pairs = zip(shares, values, strict=True)
    return [Hope(share, **{kind: value}) for share, value in pairs]  # type: ignore[arg-type]


@app.command()
def experiment(
    gamma: Annotated[str, typer.Option(help="Values of γ.")] = "1.5,2,3",
    top: Annotated[str, typer.Option(help="How many SNPs are asked for.")] = "3,10",
    people: Annotated[
        str, typer.Option(help="Sizes of the study, half of them cases.")
    ] = "1000,2000,5000,10000,20000",
    cases: Annotated[
        str | None, typer.Option(help="Instead of --people: numbers of cases, with --controls.")
    ] = None,
    controls: Annotated[str | None, typer.Option(help="As many numbers of controls.")] = None,
    prior: Annotated[str, typer.Option(help="How sure the adversary is before.")] = "0.5",
    relation: Annotated[
        str | None, typer.Option(help="genotype or label-swap; by default both.")
    ] = None,
    score: Annotated[str, typer.Option(help="distance or chi2.")] = "distance",
    threshold: Annotated[
        str, typer.Option(help="The χ² that the distance is measured from, or best.")
    ] = "4",
    numbers: Annotated[
        str, typer.Option(help="Also pay for counts or chi2; nothing leaves all of ε to choose.")
    ] = "nothing",
    share: Share = None,
    snps: Annotated[int, typer.Option(help="How many SNPs a study has.")] = 5_000,
    frequencies: Frequencies = None,
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
    from whosin.gwas.association import STUDY_RELATIONS
    from whosin.gwas.prospects import AlleleFrequencies
    from whosin.gwas.simulation import Experiment, run_experiment
    from whosin.report import charts
    from whosin.report import study_forecasts as words

    charts.check_path(save)
    asked = Experiment(
        gammas=[part.strip() for part in gamma.split(",") if part.strip()],
        tops=read_numbers(top, "--top"),
        people=read_numbers(people, "--people"),
        cases=read_numbers(cases or "", "--cases"),
        controls=read_numbers(controls or "", "--controls"),
        prior=probability(prior, "--prior"),
        snps=snps,
        causal=causal,
        odds_ratio=odds_ratio,
        studies=studies,
        draws=draws,
        score=score,
        threshold=None if threshold == "best" else _read_fraction(threshold, "--threshold"),
        relations=STUDY_RELATIONS if relation is None else (relation,),
        numbers=numbers,
        share=_read_fraction(share, "--share"),
        frequencies=None if frequencies is None else AlleleFrequencies.read(frequencies),
        seed=seed,
    )
    with show_progress("releasing") as tell:
        outcomes = run_experiment(asked, tell)
    seeds = [asked.seed, asked.seed + asked.studies - 1]
    about = {"seeds": seeds, "snps": snps, "causal": causal, "odds_ratio": odds_ratio}
    data = about | {"outcomes": [*map(asdict, outcomes)]}
    print_result(json, data, words.describe_experiment, outcomes, asked)
    if save is not None:
        title = "How much of the true top comes back"
        charts.save_chart(words.recovery_chart(outcomes, title), save, private=True)
