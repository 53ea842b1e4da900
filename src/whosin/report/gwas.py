"""Association studies for people: cards, tables with PLINK's columns, plots, page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from whosin import beliefs
from whosin.calibration import Plan
from whosin.exact import Array, format_decimals, format_figures, format_percent, rational
from whosin.gwas import Snps, Study, p_values
from whosin.gwas.association import noisy_chi2_p
from whosin.gwas.attack import AttackPoint
from whosin.gwas.release import StudyCostEstimate, StudyRelease
from whosin.gwas.simulation import Experiment, Outcome
from whosin.gwas.study import PUBLIC_COLUMNS, TABLE_BLOCK_SNPS
from whosin.plain_files import create_file, write_file
from whosin.report.card import plan_card
from whosin.report.charts import CHART_COLOURS, LEGEND_OPTIONS, colour_scale, rows_chart
from whosin.report.document import (
    Chart,
    Document,
    TextSection,
    TextTable,
    make_document,
    make_section,
    make_table,
    note,
)
from whosin.report.study_labels import relatives_section
from whosin.report.table_views import format_cell

Row = dict[str, str | int | float]

EXACT_COLUMNS = ("F_A", "F_U", "CHISQ", "P", "OR")


def release_rows(release: StudyRelease) -> list[Row]:
    """The published SNPs, best first. F_A_NOISE95 and F_U_NOISE95 (or CHISQ_NOISE95): 95% of the
    noise is within ± that much. P, OR and SE have the noise in them."""
    public = zip(*release.snps.columns(), strict=True)
    rows: list[Row] = [dict(zip(PUBLIC_COLUMNS, values, strict=True)) for values in public]
    for name, column in _estimate_columns(release):
        for row, value in zip(rows, column.tolist(), strict=True):
            row[name] = value
    return rows


def _estimate_columns(release: StudyRelease) -> list[tuple[str, Array]]:
    noise = release.estimate.published_noise
    if noise is None:
        return []
    if release.estimate.question.numbers == "chi2":
        chi2 = release.numbers[:, 0]
        within = np.full(len(chi2), noise.continuous_quantile(0.95))
        return [("CHISQ", chi2), ("P", noisy_chi2_p(chi2, noise)), ("CHISQ_NOISE95", within)]
    result = release.association()
    low, high = result.interval
    return [
        *(("F_A", result.f_a), ("F_U", result.f_u), ("CHISQ", result.chi2), ("P", result.p)),
        *(("OR", result.odds_ratio), ("SE", result.se), ("L95", low), ("U95", high)),
        *(("F_A_NOISE95", result.f_a_noise), ("F_U_NOISE95", result.f_u_noise)),
    ]


def write_release(release: StudyRelease, path: Path) -> None:
    rows = release_rows(release)
    cells = [rows[0], *([_shorten_cell(value, 6) for value in row.values()] for row in rows)]
    write_file(path, "".join("\t".join(row) + "\n" for row in cells), "--save", private=True)


def write_exact(study: Study, path: Path) -> None:
    """PLINK's association table, exact: for the curator, not for publication. NA is where PLINK
    writes it: χ² of a SNP on which nothing varies, odds ratios without an end."""
    with create_file(path, "--assoc", private=True) as file:
        file.write("\t".join((*PUBLIC_COLUMNS, *EXACT_COLUMNS)) + "\n")
        file.writelines(_exact_lines(study))


def _exact_lines(study: Study) -> Iterator[str]:
    for first in range(0, len(study.snps), TABLE_BLOCK_SNPS):
        part = study.take(np.arange(first, min(first + TABLE_BLOCK_SNPS, len(study.snps))))
        public = zip(*part.snps.columns(), strict=True)
        numbers = zip(*(column.tolist() for column in exact_statistics(part)), strict=True)
        for names, values in zip(public, numbers, strict=True):
            yield "\t".join((*map(str, names), *map(_plink_number, values))) + "\n"


def exact_statistics(study: Study) -> tuple[Array, ...]:
    """F_A, F_U, CHISQ, P and OR of PLINK's `--assoc`, NaN where it has NA: males have one allele on
    X. For the curator."""
    x, w, y, v = study.alleles().T.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap, below = x * v - y * w, (x + w) * (y + v) * (x + y) * (w + v)
        chi2 = (x + w + y + v) * gap * gap / below
        # PLINK prints a χ² of 0 where one group has no genotypes and the other varies.
        chi2 = np.where((below == 0) & (x + y > 0) & (w + v > 0), 0.0, chi2)
        return x / (x + w), y / (y + v), chi2, p_values(chi2), x * v / (y * w)


def _plink_number(value: float) -> str:
    """A number as PLINK writes it: NA where there is none."""
    return _shorten_cell(value, 6) if math.isfinite(value) else "NA"


def _shorten_cell(value: str | int | float, digits: int) -> str:
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


GENOME_WIDE = 5e-8
PLOT_CELLS = (700, 260)
TEST_NAMES = {
    "homer": "Homer's statistic",
    "likelihood-ratio": "likelihood ratio",
    "regression": "regression",
}
SETTING_NAMES = {
    ("genotype", "plain"): "genotypes, plain DP",
    ("genotype", "bounded"): "genotypes, bounded priors",
    ("label-swap", "plain"): "case labels, plain DP",
    ("label-swap", "bounded"): "case labels, bounded priors",
}


def manhattan_plot(
    snps: Snps, p: Array, title: str, genome: Snps | None = None, named: bool = False
) -> Any:
    """−log10 P along the genome; where points would lie on each other, one of them is drawn.

    Args:
        genome: all SNPs of the study, to scale the axis, if only some are drawn.
        named: write the names beside the points.
    """
    import altair

    everything = snps if genome is None else genome
    starts, ends = _chromosome_offsets(everything)
    positions = np.array(
        [starts[c] + at for c, at in zip(snps.chromosome, snps.position.tolist(), strict=True)]
    )
    height = -np.log10(np.maximum(p, 1e-300))
    kept = _thin_points(positions, height)
    order = {name: number for number, name in enumerate(starts)}
    rows = [
        {
            "position": float(positions[i]),
            "height": round(float(height[i]), 3),
            "shade": "even" if order[snps.chromosome[i]] % 2 else "odd",
            "name": snps.name[i],
        }
        for i in kept
    ]
    middles = [(starts[name] + ends[name]) / 2 for name in starts]
    step = max(1, len(middles) // 12)
    labels = {round(m): name for m, name in list(zip(middles, starts, strict=True))[::step]}
    names = "{" + ", ".join(f"'{position}': '{name}'" for position, name in labels.items()) + "}"
    top = max(8.5, float(height.max(initial=0)) * 1.08)
    span = [0, max(ends.values())]
    points = (
        rows_chart(rows)
        .mark_circle(size=70 if named else 14, opacity=0.9)
        .encode(
            x=altair.X(
                "position:Q",
                title="chromosome",
                scale=altair.Scale(domain=span, nice=False),
                axis=altair.Axis(
                    values=list(labels), labelExpr=f"{names}[toString(datum.value)]", grid=False
                ),
            ),
            y=altair.Y("height:Q", title="−log10 P", scale=altair.Scale(domain=[0, top])),
            color=altair.Color(
                "shade:N",
                legend=None,
                scale=altair.Scale(domain=["odd", "even"], range=[CHART_COLOURS[0], "#7fb0d3"]),
            ),
            tooltip=[
                altair.Tooltip("name:N", title="SNP"),
                altair.Tooltip("height:Q", title="−log10 P"),
            ],
        )
    )
    line = (
        rows_chart([{"height": -float(np.log10(GENOME_WIDE))}])
        .mark_rule(color=CHART_COLOURS[1], strokeDash=[5, 4])
        .encode(y="height:Q")
    )
    layers = [line, points]
    if named:
        layers.append(
            points.mark_text(dy=-10, fontSize=11, color="#333333").encode(
                text="name:N", color=altair.value("#333333")
            )
        )
    return altair.layer(*layers).properties(title=title, width=760, height=300)


def _size_axis(field: str, title: str, sizes: set[int]) -> Any:
    """A logarithmic axis with a mark for each size."""
    import altair

    return altair.X(
        f"{field}:Q",
        title=title,
        scale=altair.Scale(type="log", nice=False, padding=10),
        axis=altair.Axis(values=sorted(sizes), format="~s"),
    )


def _share_axis(field: str, title: str) -> Any:
    import altair

    whole = altair.Scale(domain=[0, 1])
    return altair.Y(f"{field}:Q", title=title, axis=altair.Axis(format="%"), scale=whole)


def attack_chart(points: Sequence[AttackPoint], limit: float, title: str) -> Any:
    """Power over the number of SNPs: exact frequencies, released ones, and the promised limit."""
    import altair

    sources = {
        "exact": "exact frequencies",
        "released": "the release",
        "published": "the published table",
    }
    tests = dict.fromkeys((point.source, point.statistic) for point in points)
    names = [f"{sources[source]}, {TEST_NAMES[test]}" for source, test in tests]
    names.append("the most that the plan allows")
    rows: list[dict[str, object]] = [
        {
            "snps": point.snps,
            "power": point.power,
            "who": f"{sources[point.source]}, {TEST_NAMES[point.statistic]}",
        }
        for point in points
    ]
    for size in {point.snps for point in points}:
        rows.append({"snps": size, "power": min(limit, 1.0), "who": names[-1]})
    shades = [CHART_COLOURS[1], "#e39a8f", CHART_COLOURS[0], "#7fb0d3"]
    colours = [*shades[: len(tests)], "#222222"]
    return (
        rows_chart(rows)
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=_size_axis(
                "snps", "SNPs whose frequencies are known", {point.snps for point in points}
            ),
            y=_share_axis("power", "cases that are recognised"),
            color=colour_scale("who", names, colours, **LEGEND_OPTIONS),
            strokeDash=altair.StrokeDash(
                "who:N",
                legend=None,
                scale=altair.Scale(domain=names, range=[[1, 0]] * len(tests) + [[5, 4]]),
            ),
        )
        .properties(title=title, width=460, height=340)
    )


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
        x=_size_axis("people", "people in the study", {each.people for each in outcomes}),
        color=colour_scale("setting", names, colours, columns=2, labelLimit=300),
    )
    share = _share_axis("recovered", "share that comes back")
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


def _chromosome_offsets(snps: Snps) -> tuple[dict[str, int], dict[str, int]]:
    """Where each chromosome starts and ends on one axis, in the order of the file."""
    furthest: dict[str, int] = {}
    for chromosome, at in zip(snps.chromosome, snps.position.tolist(), strict=True):
        furthest[chromosome] = max(furthest.get(chromosome, 0), at)
    starts, ends, total = {}, {}, 0
    for chromosome, length in furthest.items():
        starts[chromosome], total = total, total + max(length, 1)
        ends[chromosome] = total
    return starts, ends


def _thin_points(positions: Array, height: Array) -> Array:
    """One point a cell of the picture."""
    if len(positions) <= 5_000:
        return np.arange(len(positions))
    columns = positions / max(positions.max(), 1) * PLOT_CELLS[0]
    rows = height / max(height.max(), 1e-9) * PLOT_CELLS[1]
    cells = columns.astype(np.int64) * (PLOT_CELLS[1] + 1) + rows.astype(np.int64)
    return np.sort(np.unique(cells, return_index=True)[1])


SCORE_NAMES = {"distance": "the distance of χ² from {:g}", "chi2": "the allelic χ²"}
RELATION_NAMES = {
    "label-swap": "a case and a control exchange labels (who is a case?)",
    "genotype": "one participant has another genotype (what is someone's genotype?)",
}
TEXT_COLUMNS = {"SNP", "A1", "A2", "frequencies", "test", "protects"}
"""Columns of words; the others are numbers."""
PRINTED_COLUMNS = ("CHR", "SNP", "BP", "A1", "F_A", "F_U", "CHISQ", "P", "OR", "L95", "U95")


def estimate_card(estimate: StudyCostEstimate) -> list[TextSection]:
    """The plan's card, with what this release did."""
    sections = plan_card(estimate.plan)
    return [
        *sections[:2],
        make_section("What is published", *_published_lines(estimate)),
        *relatives_section(estimate),
        *sections[2:],
    ]


def _published_lines(estimate: StudyCostEstimate) -> list[str]:
    asked = estimate.question
    score = SCORE_NAMES[asked.score].format(float(estimate.threshold))
    chosen, numbers = (float(part) for part in estimate.epsilons)
    noise = estimate.published_noise
    within = 0.0 if noise is None else noise.continuous_quantile(0.95)
    people = f"{estimate.cases:,} cases and {estimate.controls:,} controls"
    lines = [
        f"The {asked.top} most associated of {estimate.snps:,} SNPs among {people}, chosen by "
        f"{score} with noise of scale {estimate.selection_scale:.4g} (ε = {chosen:.4f})."
        if asked.top
        else f"Numbers about {asked.size} SNPs among {people}, named without looking at the data.",
    ]
    if asked.numbers == "counts":
        lines.append(
            f"Their allele counts with noise of scale {estimate.scale:.4g} (ε = {numbers:.4f}): "
            "95% of case frequencies are within "
            f"±{format_figures(within / (2 * estimate.cases), 4, 'up')}. P, OR and its interval "
            "follow from them, noise included."
        )
    elif asked.numbers == "chi2":
        lines.append(
            f"Their χ² with noise of scale {estimate.scale:.4g} (ε = {numbers:.4f}): 95% are "
            f"within ±{format_figures(within, 4, 'up')}."
        )
    lines.append(f"Neighbouring studies: {RELATION_NAMES[asked.relation]}.")
    if asked.relation == "genotype":
        doubled = 2 * estimate.plan.epsilon
        ratio = math.exp(doubled) if doubled < 700 else math.inf
        half = format_percent(beliefs.posterior(ratio, 0.5), "up")
        lines.append(
            f"Exchanging two labels is two of these changes: ε = {doubled:.4f}, from 50% to at "
            f"most {half} sure of who is a case."
        )
    else:
        lines.append(
            "Genotypes are not protected by it: participants and their genomes are taken as known."
        )
    lines.append(
        "Missing genotypes are left out of the choice, and counted like the average person in the "
        "numbers. Which SNPs were looked at, and the sizes of both groups, are public."
    )
    return lines


def describe_estimate(estimate: StudyCostEstimate) -> Document:
    """The card of a release that was not made."""
    said = make_section("", "A dry run: nothing was drawn and nothing was spent.")
    return Document("", (*estimate_card(estimate), said))


def describe_study_release(release: StudyRelease) -> Document:
    """A release: its card, and the table of SNPs."""
    rows = release_rows(release)
    names = [name for name in PRINTED_COLUMNS if name in rows[0]]
    cells = [[_shorten_cell(row[name], 3) for name in names] for row in rows]
    table = _make_table(names, cells)
    return Document("", (*estimate_card(release.estimate), make_section("", table, level=2)))


def exact_chart(study: Study) -> Any:
    """The Manhattan plot of exact p-values. Not for publication."""
    p = np.nan_to_num(exact_statistics(study)[3], nan=1.0)
    return manhattan_plot(study.snps, p, "Exact associations: private, not for publication")


def describe_study(study: Study) -> Document:
    lines = [f"{len(study.snps):,} SNPs, {study.cases:,} cases, {study.controls:,} controls"]
    if study.left_out:
        lines.append(
            f"{study.left_out:,} SNPs were left out: haploid in some, or of several alleles"
        )
    return make_document("", *lines)


def describe_attack(
    points: Sequence[AttackPoint], plan: Plan, relation: str, rate: float
) -> Document:
    """Power and posterior, from exact frequencies and from the release."""
    prior, limit = attack_prior(plan), attack_limit(plan, rate)
    released = f"ε = {format_decimals(plan.epsilon, 3, 'down')}"
    lines = [
        (
            f"{point.snps:,}",
            released if point.source == "released" else point.source,
            TEST_NAMES[point.statistic],
            format_percent(point.power),
            " to ".join(map(format_percent, point.power_interval)),
            format_percent(point.posterior(prior)),
            format_percent(limit, "up"),
        )
        for point in points
    ]
    header = ("M", "frequencies", "test", "recognised", "95% interval", "then sure", "plan")
    above = [point for point in points if point.source == "released" and point.power > limit]
    planned = f"The plan ({relation})"
    if all(point.source == "published" for point in points):
        planned = "The table has no noise, as far as is known here. A release planned for this"
    return make_document(
        "Can a known genome be placed among the cases?",
        f"At a false-positive rate of {format_percent(rate)}: the share of cases that are "
        "recognised by the frequencies of M SNPs, and how sure one then is, from "
        f"{format_percent(prior)}.",
        _make_table(header, lines),
        f"{planned} allows nobody to recognise more than "
        f"{format_percent(limit, 'up')} of the cases on average, nor to become more than "
        f"{format_percent(promised_posterior(plan, prior), 'up')} sure.",
        *([_excess_reason(above, limit)] if above else []),
    )


def _excess_reason(points: Sequence[AttackPoint], limit: float) -> str:
    """Why a measured share may be above what the plan allows."""
    largest = max(points, key=lambda point: point.power)
    low, high = largest.power_interval
    who = f"{largest.recognised} of {largest.cases} cases, tried against {largest.outsiders} others"
    seen = f"The release shows {format_percent(largest.power)} ({who})"
    between = f"{format_percent(low)} to {format_percent(high)}"
    if low <= limit:
        return (
            f"{seen}. Sampling explains what is above {format_percent(limit)}: from this number "
            f"of people the share is only known to lie between {between}."
        )
    return (
        f"{seen}, and its interval, {between}, lies above {format_percent(limit)}. One draw of the "
        "noise and one choice of outsiders can do that; repeat with other seeds before concluding."
    )


def point_data(point: AttackPoint, prior: float) -> dict[str, object]:
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


def promised_posterior(plan: Plan, prior: float) -> float:
    """How sure one may become at most, from a prior."""
    return float(beliefs.posterior(math.exp(plan.epsilon), prior))


def describe_experiment(outcomes: Sequence[Outcome], experiment: Experiment) -> Document:
    """How much of the true top came back, setting by setting."""
    last = experiment.seed + experiment.studies - 1
    score = SCORE_NAMES[experiment.score].format(float(rational(experiment.threshold)))
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
            format_decimals(epsilon, 3, "down"),
            *recovered,
        )
        for (gamma, top, relation, epsilon, privacy), recovered in sorted(
            shares.items(), key=lambda item: item[0][:4]
        )
    ]
    sizes = dict.fromkeys(each.people for each in outcomes)
    heads = ("γ", "M", "protects", "ε", *(f"{size:,}" for size in sizes))
    return make_document("", about, _make_table(heads, lines))


def _make_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    return make_table(names, rows, right=[name for name in names if name not in TEXT_COLUMNS])


def describe_study_page(release: StudyRelease) -> Document:
    """The Manhattan plot, all columns and the card."""
    rows = release_rows(release)
    asked = release.estimate.question
    what = f"The {asked.top} most associated SNPs" if asked.top else f"{asked.size} SNPs"
    charts = []
    if "P" in rows[0]:
        p = np.array([float(row["P"]) for row in rows])
        genome, title = release.all_snps, "Released associations"
        charts.append(Chart(lambda: manhattan_plot(release.snps, p, title, genome, named=True)))
    cells = [[format_cell(value) for value in row.values()] for row in rows]
    return Document(
        f"{what}, released privately",
        (
            make_section("", *charts, _make_table(list(rows[0]), cells)),
            *estimate_card(release.estimate),
            make_section("", note(f"Ledger entry: {release.dataset}")),
        ),
    )


def save_study_page(release: StudyRelease, path: Path) -> None:
    from whosin.report.html import render_page

    write_file(path, render_page(describe_study_page(release)), "--save", private=True)
