"""Association studies in the terminal: what was released, attacked, compared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from whosin import beliefs
from whosin.beliefs import percent
from whosin.calibration import Plan
from whosin.exact import decimals, figures
from whosin.gwas import Study, allelic_chi2, p_values
from whosin.gwas.attack import Point
from whosin.gwas.experiment import Experiment, Outcome
from whosin.gwas.offer import StudyOffer
from whosin.gwas.release import StudyRelease
from whosin.report.card import Section, card
from whosin.report.gwas_charts import SETTINGS, TESTS, manhattan
from whosin.report.gwas_tables import release_rows
from whosin.report.terminal_tables import columns_table
from whosin.report.text import print_filled, print_sections

RELATIONS = {
    "label-swap": "a case and a control exchange labels (who is a case?)",
    "genotype": "one participant has another genotype (what is someone's genotype?)",
}
SCORES = {
    "distance": "the distance from significance",
    "chi2": "the allelic χ²",
}
WORDS = {"SNP", "A1", "frequencies", "test", "protects"}
"""Columns of words; the others are numbers."""
PRINTED_COLUMNS = ("CHR", "SNP", "BP", "A1", "F_A", "F_U", "CHISQ", "P", "OR", "L95", "U95")


def offer_card(offer: StudyOffer) -> list[Section]:
    """The plan's card, with what this release did."""
    sections = card(offer.plan)
    return [*sections[:2], Section("What is published", tuple(_published(offer))), *sections[2:]]


def _published(offer: StudyOffer) -> list[str]:
    asked = offer.question
    chosen, numbers = (float(part) for part in offer.epsilons)
    within = math.log(20) * offer.scale
    people = f"{offer.cases:,} cases and {offer.controls:,} controls"
    lines = [
        f"The {asked.top} most associated of {offer.snps:,} SNPs among {people}, chosen by "
        f"{SCORES[asked.score]} with noise of scale {offer.selection_scale:.4g} (ε = {chosen:.4f})."
        if asked.top
        else f"Numbers about {asked.size} SNPs among {people}, named without looking at the data.",
    ]
    if asked.numbers == "counts":
        lines.append(
            f"Their allele counts with noise of scale {offer.scale:.4g} (ε = {numbers:.4f}): 95% "
            f"of case frequencies are within ±{figures(within / (2 * offer.cases), 4, 'up')}. P, "
            "OR and its interval follow from them, noise included."
        )
    elif asked.numbers == "chi2":
        lines.append(
            f"Their χ² with noise of scale {offer.scale:.4g} (ε = {numbers:.4f}): 95% are within "
            f"±{figures(within, 4, 'up')}."
        )
    lines.append(f"Neighbouring studies: {RELATIONS[asked.relation]}.")
    if asked.relation == "genotype":
        doubled = 2 * offer.plan.epsilon
        ratio = math.exp(doubled) if doubled < 700 else math.inf
        half = percent(beliefs.posterior(ratio, 0.5), "up")
        lines.append(
            f"Exchanging two labels is two of these changes: ε = {doubled:.4f}, from 50% to at "
            f"most {half} sure of who is a case."
        )
    else:
        lines.append(
            "Genotypes are not protected by it: participants and their genomes are taken as known."
        )
    lines.append(
        "A missing genotype counts as no copy of A1. Which SNPs were looked at, and the sizes of "
        "both groups, are public."
    )
    return lines


def print_offer(offer: StudyOffer) -> None:
    """The card of a release that was not made."""
    print_sections(offer_card(offer))
    print("A dry run: nothing was drawn and nothing was spent.")


def print_release(release: StudyRelease) -> None:
    """The card and the table."""
    console = Console(highlight=False)
    print_sections(offer_card(release.offer))
    console.print()
    rows = release_rows(release)
    names = [name for name in PRINTED_COLUMNS if name in rows[0]]
    console.print(_table(names, [[short_cell(row[name]) for name in names] for row in rows]))


def exact_chart(study: Study) -> Any:
    """The Manhattan plot of exact p-values. Not for publication."""
    p = p_values(allelic_chi2(study.counts))
    return manhattan(study.snps, p, "Exact associations: private, not for publication")


def print_study(study: Study) -> None:
    """Public facts of a study that was counted."""
    console = Console(highlight=False)
    console.print(f"{len(study.snps):,} SNPs, {study.cases:,} cases, {study.controls:,} controls")
    if study.left_out:
        console.print(
            f"{study.left_out:,} SNPs were left out: haploid in some, or of several alleles"
        )


def print_attack(points: Sequence[Point], plan: Plan, relation: str, rate: float) -> None:
    """Power and posterior, from exact frequencies and from the release."""
    console = Console(highlight=False)
    prior = attack_prior(plan)
    console.print("[bold]Can a known genome be placed among the cases?[/bold]")
    print_filled(
        f"At a false-positive rate of {percent(rate)}: the share of cases that are recognised "
        f"by the frequencies of M SNPs, and how sure one then is, from {percent(prior)}."
    )
    lines = [
        [
            f"{point.snps:,}",
            "exact" if point.source == "exact" else f"ε = {decimals(plan.epsilon, 3, 'down')}",
            TESTS[point.statistic],
            percent(point.power),
            " to ".join(map(percent, point.power_interval)),
            percent(point.posterior(prior)),
        ]
        for point in points
    ]
    header = ["M", "frequencies", "test", "recognised", "95% interval", "then sure"]
    console.print(_table(header, lines))
    limit = attack_limit(plan, rate)
    print_filled(
        f"The plan ({relation}) allows nobody to recognise more than {percent(limit, 'up')} of the "
        f"cases on average, nor to become more than {percent(promised(plan, prior), 'up')} sure."
    )
    above = [point for point in points if point.source == "released" and point.power > limit]
    if above:
        print_filled(_excess(above, limit))


def _excess(points: Sequence[Point], limit: float) -> str:
    """Why a measured share may be above what the plan allows."""
    largest = max(points, key=lambda point: point.power)
    low, high = largest.power_interval
    who = f"{largest.recognised} of {largest.cases} cases, tried against {largest.outsiders} others"
    seen = f"The release shows {percent(largest.power)} ({who})"
    between = f"{percent(low)} to {percent(high)}"
    if low <= limit:
        return (
            f"{seen}. Sampling explains what is above {percent(limit)}: from this number of people "
            f"the share is only known to lie between {between}."
        )
    return (
        f"{seen}, and its interval, {between}, lies above {percent(limit)}. One draw of the "
        "noise and one choice of outsiders can do that; repeat with other seeds before concluding."
    )


def point_data(point: Point, prior: float) -> dict[str, object]:
    """A point of the attack as data."""
    return {
        **asdict(point),
        "power": point.power,
        "power_interval": list(point.power_interval),
        "false_positives": point.false_positives,
        "posterior": point.posterior(prior),
    }


def attack_prior(plan: Plan) -> float:
    """The prior at which the attack is judged: the largest that the plan allows below 1."""
    low, high = plan.beliefs
    return float(high) if high < 1 else 0.5 if low < Fraction(1, 2) else float(low)


def attack_limit(plan: Plan, rate: float) -> float:
    """No test recognises more than e^ε times its false-positive rate, or more than 1 − e^(−ε)(1 −
    rate)."""
    ratio = math.exp(plan.epsilon)
    return min(ratio * rate, 1 - (1 - rate) / ratio)


def promised(plan: Plan, prior: float) -> float:
    """How sure one may become at most, from a prior."""
    return float(beliefs.posterior(math.exp(plan.epsilon), prior))


def print_experiment(outcomes: Sequence[Outcome], experiment: Experiment) -> None:
    """Recovery in every setting."""
    console = Console(highlight=False)
    last = experiment.seed + experiment.studies - 1
    print_filled(
        f"The share of the true top M that comes back, by {SCORES[experiment.score]}: "
        f"{experiment.snps:,} SNPs, {experiment.causal} of them causal (odds ratio "
        f"{experiment.odds_ratio:g}), {experiment.studies} studies of each size (seeds "
        f"{experiment.seed} to {last}), {experiment.draws} releases of each."
    )
    sizes = list(dict.fromkeys(each.people for each in outcomes))
    lines = []
    keys = dict.fromkeys((o.gamma, o.top, o.relation, o.privacy, o.epsilon) for o in outcomes)
    for gamma, top, relation, privacy, epsilon in sorted(keys, key=lambda key: (*key[:3], key[4])):
        shares = [
            f"{each.recovered:.0%}"
            for each in outcomes
            if (each.gamma, each.top, each.relation, each.privacy)
            == (gamma, top, relation, privacy)
        ]
        setting = SETTINGS[relation, privacy]
        lines.append([f"{gamma:g}", str(top), setting, decimals(epsilon, 3, "down"), *shares])
    heads = ["γ", "M", "protects", "ε", *(f"{size:,}" for size in sizes)]
    console.print(_table(heads, lines))


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = columns_table(*names, right=set(names) - WORDS)
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    return table


def short_cell(value: str | int | float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
