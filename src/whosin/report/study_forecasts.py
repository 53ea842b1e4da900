"""Forecasts of studies, advice and experiments for people: what comes back, before it is paid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from whosin.exact import format_decimals, format_figures
from whosin.gwas import p_values
from whosin.gwas.forecast import (
    GOOD_CHANCE,
    ONE_LABEL,
    Advice,
    Forecast,
    HopeForecast,
    StudySettings,
    weakest_chi2,
)
from whosin.gwas.prospects import Hope, PublicStudy
from whosin.gwas.simulation import Experiment, Outcome
from whosin.report.charts import CHART_COLOURS, colour_scale, share_axis, size_axis
from whosin.report.document import (
    Document,
    TextSection,
    format_epsilon,
    make_document,
    make_section,
    make_table,
    note,
)
from whosin.report.gwas import RELATION_NAMES, SCORE_NAMES

FORECAST_CAVEAT = (
    "This knows public facts alone and takes SNPs as independent. Linked SNPs come back as clumps: "
    "give their number as effective SNPs. On a real study under label swaps the hit came back in "
    "up to 25 of 100 releases fewer than forecast."
)
NUMBER_NAMES = {"counts": "the log odds ratio", "chi2": "χ²"}


def settings_data(settings: StudySettings) -> dict[str, object]:
    """Settings as others read them."""
    names = ("relation", "epsilon", "top", "score", "threshold", "numbers", "share")
    return {name: getattr(settings, name) for name in names}


def forecast_data(made: Forecast) -> dict[str, object]:
    """A forecast as plain data; `chance` is the mean over the hopes."""
    weakest = weakest_chi2(made.study, made.settings)
    return {
        "chance": made.chance,
        "settings": settings_data(made.settings),
        "hopes": [_hope_data(each) for each in made.hopes],
        "weakest_chi2": weakest,
        **_size_data(made.study),
    }


def _hope_data(each: HopeForecast) -> dict[str, object]:
    return {
        "odds_ratio": each.hope.odds_ratio,
        "chi2": each.hope.chi2,
        "frequency": each.hope.frequency,
        "chance": each.chance,
        "noise": each.noise,
        "sampling_error": each.sampling_error,
    }


def _size_data(study: PublicStudy) -> dict[str, object]:
    return {
        "cases": study.cases,
        "controls": study.controls,
        "snps": study.snps,
        "effective_snps": study.independent_snps,
    }


def advice_data(advice: Advice) -> dict[str, object]:
    """Advice as plain data: the best setting as a forecast, and one for each relation."""
    pairs = zip(advice.forecasts, advice.smallest, strict=True)
    listed = [
        forecast_data(made) | {"smallest": None if least is None else forecast_data(least)}
        for made, least in pairs
    ]
    return listed[0] | {"advice": listed}


def format_chance(chance: float) -> str:
    """A chance in whole percent; a forecast knows no more digits."""
    if chance > 0.99:
        return "over 99%"
    return "under 1%" if chance < 0.01 else f"{chance:.0%}"


def _share_words(settings: StudySettings) -> str:
    return f"{float(settings.share or 1):.0%}"


def describe_forecast(made: Forecast) -> Document:
    """What comes back with these settings."""
    lines = [_settings_sentence(made.study, made.settings), _hope_table(made)]
    weakest = weakest_chi2(made.study, made.settings)
    if math.isfinite(weakest):
        p = format_figures(float(p_values([weakest])[0]), 1)
        lines.append(
            f"SNPs whose χ² is {format_decimals(weakest, 0, 'up')} or more (p = {p}) come back in "
            f"{GOOD_CHANCE:.0%} of releases; that is a mean over rare and common alleles."
        )
    else:
        lines.append("No SNP, however strong, comes back in 95% of releases.")
    return Document("What comes back", (make_section("", *lines, note(FORECAST_CAVEAT)),))


def summarise_expectation(made: Forecast, best: Sequence[Forecast]) -> str:
    """The forecast in one sentence; `best` are those of the best settings, for each hope alone."""
    if len(made.hopes) > 1:
        return f"Of these {len(made.hopes)} SNPs {format_chance(made.chance)} come back on average."
    better = f"with the best settings in {format_chance(best[0].chance)}"
    return f"The SNP comes back in {format_chance(made.chance)} of releases, {better}."


def summarise_advice(advice: Advice) -> str:
    """The smallest studies in one sentence."""
    found = [
        f"{_smallest_words(least)} ({made.settings.relation})"
        for made, least in zip(advice.forecasts, advice.smallest, strict=True)
    ]
    return f"The smallest study for {GOOD_CHANCE:.0%}, cases + controls: {', '.join(found)}."


def _settings_sentence(study: PublicStudy, settings: StudySettings) -> str:
    people = f"{study.cases:,} cases and {study.controls:,} controls"
    spent = f"ε = {format_epsilon(settings.epsilon)}"
    how = f"chosen by {score_name(settings)}"
    if settings.numbers == "nothing":
        paid = f"with all of {spent}"
    else:
        share = _share_words(settings)
        paid = f"with {share} of {spent}; the rest pays for {_paid_for(settings)}"
    return (
        f"{_top_words(settings.top)} of {study.snps:,} SNPs among {people}, {how} {paid}. "
        f"Neighbouring studies: {RELATION_NAMES[settings.relation]}."
    )


def _top_words(top: int) -> str:
    return "The most associated" if top == 1 else f"The {top} most associated"


def _paid_for(settings: StudySettings) -> str:
    whose = "its" if settings.top == 1 else "their"
    return f"{whose} allele counts" if settings.numbers == "counts" else f"{whose} χ²"


def score_name(settings: StudySettings) -> str:
    """What SNPs are chosen by."""
    return SCORE_NAMES[settings.score].format(float(settings.threshold or 0))


def _hope_table(made: Forecast) -> Any:
    rows, noisy = [], made.settings.numbers != "nothing"
    for each in made.hopes:
        row = [*_hope_words(each.hope), format_chance(each.chance)]
        if noisy:
            row += [_format_error(each.noise), _format_error(each.sampling_error)]
        rows.append(row)
    heads = [*_hope_heads(made.hopes[0].hope), "comes back"]
    if noisy:
        number = NUMBER_NAMES[made.settings.numbers]
        heads += [f"noise on {number}", "sampling error"]
    return make_table(heads, rows, right=heads)


def _format_error(value: float | None) -> str:
    return "" if value is None else f"±{format_figures(value, 2)}"


def _hope_heads(hope: Hope) -> tuple[str, str]:
    return ("χ²" if hope.odds_ratio is None else "odds ratio"), "frequency"


def _hope_words(hope: Hope) -> tuple[str, str]:
    size = hope.chi2 if hope.odds_ratio is None else hope.odds_ratio
    return f"{size:g}", f"{hope.frequency:g}"


def describe_advice(advice: Advice) -> Document:
    """The best settings for what is hoped for, relation by relation."""
    first = advice.forecasts[0]
    study = first.study
    hopes = ", ".join(
        f"{_hope_heads(each.hope)[0]} {size} at frequency {share}"
        for each in first.hopes
        for size, share in [_hope_words(each.hope)]
    )
    people = f"{study.cases:,} cases, {study.controls:,} controls, {study.snps:,} SNPs"
    about = f"Hoped for: {hopes}. {people}."
    heads = ("relation", "ε", "top", "by", "χ² from", "choice", "comes back", "smallest study")
    rows, noises = [], []
    for made, least in zip(advice.forecasts, advice.smallest, strict=True):
        rows.append([made.settings.relation, *_advice_cells(made), _smallest_words(least)])
        errors = [each.noise for each in made.hopes if each.noise is not None]
        if errors:
            noises.append(f"{made.settings.relation} ±{format_figures(max(errors), 2)}")
    table = make_table(heads, rows, right=("ε", "top", "χ² from", "choice", "comes back"))
    lines: list[Any] = [about, table]
    if noises:
        kinds = {each.settings.numbers for each in advice.forecasts}
        name = NUMBER_NAMES["counts" if "counts" in kinds else "chi2"]
        lines.append(f"Noise on {name}, at most: {', '.join(noises)}.")
    lines.append(
        "The choice has that share of ε, and the numbers the rest. In the smallest study every "
        f"hope comes back in {GOOD_CHANCE:.0%} of releases, cases and controls in these "
        "proportions."
    )
    if any(each.settings.relation == ONE_LABEL for each in advice.forecasts):
        lines.append(
            "The relation label (one label changes) is for people whose beliefs about participants "
            "are independent; it promises nothing to whoever knows how many cases there are."
        )
    if len(advice.forecasts) > 1:
        lines.append("Which relation is right depends on what is secret, not on what is cheap.")
    return Document("Advice", (make_section("", *lines, note(FORECAST_CAVEAT)),))


def _advice_cells(made: Forecast) -> list[str]:
    settings = made.settings
    share = _share_words(settings)
    chances = list(dict.fromkeys(format_chance(each.chance) for each in made.hopes))
    spent = format_epsilon(settings.epsilon)
    threshold = "" if settings.score == "chi2" else f"{float(settings.threshold or 0):g}"
    cells = [spent, str(settings.top), settings.score, threshold, share]
    return [*cells, ", ".join(chances)]


def _smallest_words(least: Forecast | None) -> str:
    if least is None:
        return "above 10,000,000"
    return f"{least.study.cases:,} + {least.study.controls:,}"


def describe_expectation(chosen: Sequence[Forecast], best: Sequence[Forecast]) -> TextSection:
    """The paragraph of a card: the chance of some SNPs with the chosen settings and the best."""
    rows = [
        [
            *_hope_words(made.hopes[0].hope),
            format_chance(made.chance),
            format_chance(better.chance),
            f"top {better.settings.top}, {better.settings.score}, "
            f"χ² from {float(better.settings.threshold or 0):g}, "
            f"{_share_words(better.settings)} of ε to choose",
        ]
        for made, better in zip(chosen, best, strict=True)
    ]
    heads = ("odds ratio", "frequency", "comes back", "at best", "with")
    said = "How probably one SNP comes back, by public facts alone:"
    table = make_table(heads, rows, right=heads[:4])
    return make_section("What to expect", said, table, note(FORECAST_CAVEAT))


# Experiments.

SETTING_NAMES = {
    ("genotype", "plain"): "genotypes, plain DP",
    ("genotype", "bounded"): "genotypes, bounded priors",
    ("label-swap", "plain"): "case labels, plain DP",
    ("label-swap", "bounded"): "case labels, bounded priors",
}


def recovery_chart(outcomes: Sequence[Outcome], title: str) -> Any:
    """The share of the true top M that comes back, over the size of the study."""
    import altair

    rows = [
        {
            "people": each.people,
            "recovered": each.recovered,
            "low": max(each.recovered - 2 * each.error, 0),
            "high": min(each.recovered + 2 * each.error, 1),
            "setting": SETTING_NAMES[each.relation, each.privacy],
            "gamma": f"γ = {each.gamma:g}",
            "top": f"the top {each.top}",
        }
        for each in outcomes
    ]
    names = list(SETTING_NAMES.values())
    colours = ["#bbbbbb", "#666666", "#7fb0d3", CHART_COLOURS[0]]
    base = altair.Chart().encode(
        x=size_axis("people", "people in the study", {each.people for each in outcomes}),
        color=colour_scale("setting", names, colours, columns=2, labelLimit=300),
    )
    share = share_axis("recovered", "share that comes back")
    lines = base.mark_line(point=True, strokeWidth=2.2).encode(y=share)
    bars = base.mark_rule(opacity=0.6).encode(y=altair.Y("low:Q", title=""), y2="high:Q")
    tops = [f"the top {top}" for top in dict.fromkeys(each.top for each in outcomes)]
    gammas = [f"γ = {gamma:g}" for gamma in dict.fromkeys(each.gamma for each in outcomes)]
    return (
        altair.layer(bars, lines, data=altair.Data(values=rows))
        .properties(width=250, height=170)
        .facet(
            row=altair.Row("gamma:N", title=None, sort=gammas),
            column=altair.Column("top:N", title=None, sort=tops),
        )
        .properties(title=title)
    )


def describe_experiment(outcomes: Sequence[Outcome], experiment: Experiment) -> Document:
    """How much of the true top came back, setting by setting."""
    last = experiment.seed + experiment.studies - 1
    best = experiment.threshold is None and experiment.score == "distance"
    threshold = 0.0 if experiment.threshold is None else float(experiment.threshold)
    score = "the best distance" if best else SCORE_NAMES[experiment.score].format(threshold)
    if experiment.numbers != "nothing":
        spent = sorted({f"{each.share:.0%}" for each in outcomes})
        score += f" with {' to '.join(dict.fromkeys((spent[0], spent[-1])))} of ε"
    about = (
        f"The share of the true top M that comes back, by {score}: {experiment.snps:,} SNPs, "
        f"{experiment.causal} of them causal (odds ratio {experiment.odds_ratio:g}), "
        f"{experiment.studies} studies of each size (seeds {experiment.seed} to {last}), "
        f"{experiment.draws} releases of each."
    )
    shares: dict[tuple[Any, ...], list[str]] = {}
    for each in outcomes:
        key = each.gamma, each.top, each.relation, each.epsilon, each.privacy
        shares.setdefault(key, []).append(f"{each.recovered:.0%}")
    lines = [
        (
            f"{gamma:g}",
            str(top),
            SETTING_NAMES[relation, privacy],
            format_epsilon(epsilon),
            *recovered,
        )
        for (gamma, top, relation, epsilon, privacy), recovered in sorted(
            shares.items(), key=lambda item: item[0][:4]
        )
    ]
    heads = ("γ", "M", "protects", "ε", *(_size_name(*sizes) for sizes in experiment.sizes()))
    right = [head for head in heads if head != "protects"]
    return make_document("", about, make_table(heads, lines, right=right))


def _size_name(cases: int, controls: int) -> str:
    """The size of a study; by groups where they differ."""
    if abs(cases - controls) <= 1:
        return f"{cases + controls:,}"
    return f"{cases:,} + {controls:,}"
