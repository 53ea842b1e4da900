"""Association studies for people: cards, tables with PLINK's columns, plots, page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from whosin import beliefs
from whosin.calibration import Plan
from whosin.exact import Array, format_decimals, format_figures, format_percent
from whosin.gwas import Snps, Study, p_values
from whosin.gwas.association import noisy_chi2_p
from whosin.gwas.attack import AttackPoint
from whosin.gwas.question import StudyCostEstimate
from whosin.gwas.release import StudyRelease
from whosin.gwas.study import PUBLIC_COLUMNS, TABLE_BLOCK_SNPS
from whosin.plain_files import create_file, write_file
from whosin.report.card import SECRET_WORDS, plan_card
from whosin.report.charts import (
    CHART_COLOURS,
    LEGEND_OPTIONS,
    PLOT_CELLS,
    colour_scale,
    rows_chart,
    share_axis,
    size_axis,
    thin_points,
)
from whosin.report.document import (
    Chart,
    Document,
    TextSection,
    TextTable,
    format_epsilon,
    format_plink,
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
    if release.loci is not None:
        places = rows or [{} for _ in release.loci]
        rows = [{"LOCUS": name, **row} for name, row in zip(release.loci, places, strict=True)]
    for name, column in _estimate_columns(release):
        for row, value in zip(rows, column.tolist(), strict=True):
            row[name] = value
    return rows


def _estimate_columns(release: StudyRelease) -> list[tuple[str, Array]]:
    noise = release.estimate.published_noise
    if noise is None or not len(release.snps):
        return []
    if release.estimate.question.numbers == "chi2":
        chi2 = release.numbers[:, 0]
        within = np.full(len(chi2), noise.continuous_quantile(0.95))
        return [("CHISQ", chi2), ("P", noisy_chi2_p(chi2, noise)), ("CHISQ_NOISE95", within)]
    if release.estimate.trait is not None:
        found = release.effects()
        names = ("F", "BETA", "SE", "L95", "U95", "P", "BETA_NOISE95")
        columns = (getattr(found, each.name) for each in fields(found))
        return list(zip(names, columns, strict=True))
    result = release.association()
    low, high = result.interval
    return [
        *(("F_A", result.f_a), ("F_U", result.f_u), ("CHISQ", result.chi2), ("P", result.p)),
        *(("OR", result.odds_ratio), ("SE", result.se), ("L95", low), ("U95", high)),
        *(("F_A_NOISE95", result.f_a_noise), ("F_U_NOISE95", result.f_u_noise)),
    ]


def write_release(release: StudyRelease, path: Path) -> None:
    write_file(path, release_text(release), "--save", private=True)


def release_text(release: StudyRelease) -> str:
    """The published SNPs as a table with tabs."""
    rows = release_rows(release)
    header = rows[0] if rows else PUBLIC_COLUMNS
    cells = [header, *([format_plink(value) for value in row.values()] for row in rows)]
    return "".join("\t".join(row) + "\n" for row in cells)


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
            yield "\t".join((*map(str, names), *map(format_plink, values))) + "\n"


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


GENOME_WIDE = 5e-8
TEST_NAMES = {
    "homer": "Homer's statistic",
    "likelihood-ratio": "likelihood ratio",
    "regression": "regression",
}


def manhattan_plot(
    snps: Snps, p: Array, title: str, genome: Snps | None = None, named: bool = False
) -> Any:
    """−log10 P along the genome; where points would lie on each other, one of them is drawn.

    Args:
        genome: all SNPs of the study, if only some are drawn: they scale the axis, and ticks along
            it show where they are.
        named: write the names beside the points.
    """
    import altair

    everything = snps if genome is None else genome
    starts, ends = _chromosome_offsets(everything)
    positions = np.array(
        [starts[c] + at for c, at in zip(snps.chromosome, snps.position.tolist(), strict=True)]
    )
    height = -np.log10(np.maximum(np.nan_to_num(p, nan=1.0), 1e-300))
    kept = thin_points(positions, height)
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
    if genome is not None:
        layers.insert(0, _position_ticks(genome, starts))
    if named:
        layers.append(
            points.mark_text(dy=-10, fontSize=11, color="#333333").encode(
                text="name:N", color=altair.value("#333333")
            )
        )
    return altair.layer(*layers).properties(title=title, width=760, height=300)


def _position_ticks(snps: Snps, starts: dict[str, int]) -> Any:
    """Where SNPs were looked at, one tick a cell of the picture. Positions are public."""
    import altair

    rows = [{"position": place, "height": 0.0} for place in _shown_positions(snps, starts)]
    ticks = rows_chart(rows).mark_tick(color="#bbbbbb", size=6, thickness=1, orient="vertical")
    return ticks.encode(x=altair.X("position:Q"), y=altair.Y("height:Q"))


def _shown_positions(snps: Snps, starts: dict[str, int]) -> list[float]:
    places = _axis_positions(snps, starts)
    cells = (places / max(places.max(initial=0), 1) * PLOT_CELLS[0]).astype(np.int64)
    return [float(place) for place in places[np.unique(cells, return_index=True)[1]]]


def _axis_positions(snps: Snps, starts: dict[str, int]) -> Array:
    offsets = np.array([starts[chromosome] for chromosome in snps.chromosome], dtype=np.int64)
    return offsets + snps.position


def manhattan_data(release: StudyRelease) -> dict[str, Any]:
    """What the Manhattan plot of a release shows, for a page to draw: chromosomes on one axis,
    where SNPs were looked at, and the published ones. All of it is public."""
    p, title = _released_p(release)
    starts, ends = _chromosome_offsets(release.all_snps)
    height = -np.log10(np.maximum(np.nan_to_num(p, nan=1.0), 1e-300))
    places = _axis_positions(release.snps, starts).tolist()
    points = zip(release.snps.name, places, height.tolist(), strict=True)
    return {
        "title": title,
        "chromosomes": [(name, starts[name], ends[name]) for name in starts],
        "looked_at": _shown_positions(release.all_snps, starts),
        "points": [{"name": name, "position": x, "height": y} for name, x, y in points],
        "line": -math.log10(GENOME_WIDE),
    }


def _released_p(release: StudyRelease) -> tuple[Array, str]:
    """P of the published SNPs, 1 where no numbers are, and the title of their plot."""
    rows = release_rows(release) if release.snps else []
    p = np.array([float(row.get("P", 1.0)) for row in rows])
    if rows and "P" not in rows[0]:
        return p, "Chosen SNPs (no numbers are published)"
    return p, "Released associations"


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
            x=size_axis(
                "snps", "SNPs whose frequencies are known", {point.snps for point in points}
            ),
            y=share_axis("power", "cases that are recognised"),
            color=colour_scale("who", names, colours, **LEGEND_OPTIONS),
            strokeDash=altair.StrokeDash(
                "who:N",
                legend=None,
                scale=altair.Scale(domain=names, range=[[1, 0]] * len(tests) + [[5, 4]]),
            ),
        )
        .properties(title=title, width=460, height=340)
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


SCORE_NAMES = {
    "distance": "the distance of χ² from {:g}",
    "chi2": "the allelic χ²",
    "linear": "the distance of a linear statistic from χ² = {:g}",
}
RELATION_NAMES = {
    "stratum-swap": "a case and a control of the same stratum exchange labels (who is a case?)",
    "label": "one participant's label changes (is this one a case?)",
    "trait": "one participant has another value of the trait (what is someone's value?)",
    "label-swap": "a case and a control exchange labels (who is a case?)",
    "genotype": "one participant has another genotype (what is someone's genotype?)",
}
TEXT_COLUMNS = {"LOCUS", "SNP", "A1", "A2", "frequencies", "test", "protects"}
"""Columns of words; the others are numbers."""
PRINTED_COLUMNS = (
    *("LOCUS", "CHR", "SNP", "BP", "A1", "F", "BETA", "SE"),
    *("F_A", "F_U", "CHISQ", "P", "OR", "L95", "U95"),
)


def estimate_card(estimate: StudyCostEstimate) -> list[TextSection]:
    """The plan's card, with what this release did."""
    sections = plan_card(estimate.plan, SECRET_WORDS[estimate.question.relation])
    return [
        *sections[:2],
        make_section("What is published", *_published_lines(estimate)),
        *relatives_section(estimate),
        *sections[2:],
    ]


def _published_lines(estimate: StudyCostEstimate) -> list[str]:
    asked = estimate.question
    score = SCORE_NAMES[asked.score].format(float(estimate.threshold))
    if estimate.trait is not None and not _has_threshold(estimate):
        score = "a linear statistic"
    chosen, numbers = (float(part) for part in estimate.epsilons)
    noise = estimate.published_noise
    within = 0.0 if noise is None else noise.continuous_quantile(0.95)
    whose = "Its" if asked.size == 1 else "Their"
    lines = [
        f"{_candidate_words(estimate)}, chosen by {score} with noise of scale "
        f"{estimate.selection_scale:.4g} (ε = {format_epsilon(chosen)})."
        if asked.top
        else f"Numbers about {asked.size} SNPs among {_group_words(estimate)}, named without "
        "looking at the data.",
    ]
    if asked.loci is not None and noise is not None:
        lines.append("The best SNP of each locus is chosen with a quarter of that ε.")
    if asked.gap:
        lines.append("How far it is ahead of the next one is published with it, at no cost.")
    if asked.none_of_them:
        lines.append(
            '"None of them" competes with the same noise: if no SNP is associated, one is named in '
            "at most 5% of releases."
        )
    if asked.numbers == "counts":
        pooled = asked.relation != "genotype"
        lines.append(
            f"{whose} allele counts with noise of scale {estimate.scale:.4g} "
            f"(ε = {format_epsilon(numbers)}): 95% of case frequencies are within "
            f"±{format_figures(within / (2 * estimate.cases), 4, 'up')}. P, OR and its interval "
            "follow from them, noise included."
            + (" The count of cases and controls together is exact." if pooled else "")
        )
    elif asked.numbers == "chi2":
        lines.append(
            f"{whose} χ² with noise of scale {estimate.scale:.4g} "
            f"(ε = {format_epsilon(numbers)}): 95% are within ±{format_figures(within, 4, 'up')}."
        )
    elif asked.numbers == "effects":
        lines.append(
            f"{whose} {'effect' if asked.size == 1 else 'effects'} with noise of scale "
            f"{estimate.scale:.4g} (ε = {format_epsilon(numbers)}), in units of what one person "
            "can move one by. BETA, its interval and P follow, noise included."
        )
    lines.append(f"Neighbouring studies: {RELATION_NAMES[asked.relation]}.")
    if estimate.trait is not None:
        return [*lines, *_trait_lines(estimate)]
    if asked.relation == "genotype":
        doubled = 2 * estimate.plan.epsilon
        ratio = math.exp(doubled) if doubled < 700 else math.inf
        half = format_percent(beliefs.posterior(ratio, 0.5), "up")
        lines.append(
            f"Exchanging two labels is two of these changes: ε = {format_epsilon(doubled, 'up')}, "
            f"from 50% to at most {half} sure of who is a case."
        )
    else:
        lines.append(
            "Genotypes are not protected by it: participants and their genomes are taken as known."
        )
    lines.append(_missing_words(estimate))
    return lines


def _has_threshold(estimate: StudyCostEstimate) -> bool:
    """Whether a trait's scores are distances: its deviation is public, and so are genomes."""
    trait = estimate.trait
    known = trait is not None and trait.deviation is not None
    return known and estimate.question.relation == "trait"


def _trait_lines(estimate: StudyCostEstimate) -> list[str]:
    """What happens to the values of a trait, what is public, and whose secrets are not kept."""
    trait, asked = estimate.trait, estimate.question
    assert trait is not None and estimate.trait_deviation is not None
    ends = f"{float(trait.low):g} to {float(trait.high):g}"
    deviation = format_figures(estimate.trait_deviation, 4, "up")
    if trait.deviation is not None:
        why = "which was given as public"
    elif asked.relation == "trait":
        why = "half of the range, the most that it can be; --trait-sd gives a public one"
    else:
        why = "of values that are known"
    known = "Genotypes" if asked.relation == "trait" else "Values of the trait"
    counted = "one copy" if asked.relation == "genotype" else "their fitted value"
    lines = [
        f"Values are clamped to {ends}; intervals do not cover the bias from clamping.",
        f"Standard errors take the trait's standard deviation as {deviation}: {why}.",
        f"{known} are not protected by it: they are taken as known.",
        f"Missing genotypes count as {counted}. Which SNPs were looked at, and who has a value of "
        "the trait, are public.",
    ]
    return lines if asked.numbers == "effects" else [*lines[:1], *lines[2:]]


def _candidate_words(estimate: StudyCostEstimate) -> str:
    asked = estimate.question
    among = f"{estimate.candidates:,} {'SNPs' if asked.loci is None else 'loci'}"
    most = "The most associated" if asked.top == 1 else f"The {asked.top} most associated"
    return f"{most} of {among} among {_group_words(estimate)}"


def _group_words(estimate: StudyCostEstimate) -> str:
    if estimate.question.relation == "label" or estimate.trait is not None:
        return f"{estimate.cases + estimate.controls:,} people"
    return f"{estimate.cases:,} cases and {estimate.controls:,} controls"


def _missing_words(estimate: StudyCostEstimate) -> str:
    """How missing genotypes count, and what is public."""
    asked = estimate.question
    counted = "one copy" if asked.relation == "genotype" else "the mean of their SNP"
    choice = "are left out of the choice" if asked.score == "distance" else f"count as {counted}"
    if asked.score == "linear" and asked.relation != "genotype":
        choice = "count as their fitted value"
    numbers = "" if asked.numbers == "nothing" else f"; in the numbers they count as {counted}"
    sizes = {
        "label": "how many people there are, are",
        "stratum-swap": "how many cases and controls each stratum has, are",
    }.get(asked.relation, "the sizes of both groups, are")
    return f"Missing genotypes {choice}{numbers}. Which SNPs were looked at, and {sizes} public."


def describe_estimate(estimate: StudyCostEstimate, *sections: TextSection) -> Document:
    """The card of a release that was not made, with what else is to be said."""
    said = make_section("", "A dry run: nothing was drawn and nothing was spent.")
    return Document("", (*estimate_card(estimate), *sections, said))


def describe_study_release(release: StudyRelease) -> Document:
    """A release: its card, and the table of SNPs."""
    rows = release_rows(release)
    found: list[str | TextTable] = []
    if rows:
        names = [name for name in PRINTED_COLUMNS if name in rows[0]]
        cells = [[format_plink(row[name], 3) for name in names] for row in rows]
        found.append(_make_table(names, cells))
    found += _outcome_words(release)
    return Document("", (*estimate_card(release.estimate), make_section("", *found, level=2)))


def _outcome_words(release: StudyRelease) -> list[str]:
    """What a table of SNPs does not say: that there is none, and how far ahead the first one is."""
    words = []
    if not release.snps and not release.loci:
        words.append("None of them: no SNP stands out.")
    if release.gap is not None:
        unit = "χ²" if release.estimate.question.score == "chi2" else "changes"
        ahead = f"{release.gap:.3g} {unit}"
        scale = release.estimate.selection_scale
        sure = release.gap - scale * math.log(20 * release.estimate.candidates)
        words.append(
            f"It is {ahead} ahead of the next one, noise of scale {scale:.3g} included"
            + (
                f"; with 95% certainty its own score is at least {sure:.3g} {unit} ahead."
                if sure > 0
                else ", which noise may explain."
            )
        )
    return words


def exact_chart(study: Study) -> Any:
    """The Manhattan plot of exact p-values. Not for publication."""
    p = np.nan_to_num(exact_statistics(study)[3], nan=1.0)
    return manhattan_plot(study.snps, p, "Exact associations: private, not for publication")


def genomic_inflation(study: Study) -> float:
    """λ: the median χ² over that of the χ² distribution with one degree. For the curator."""
    chi2 = exact_statistics(study)[2]
    known = chi2[np.isfinite(chi2)]
    return float(np.median(known)) / CHI2_MEDIAN if len(known) else math.nan


CHI2_MEDIAN = 0.45493642311957283
"""Of the χ² distribution with one degree."""


def quantile_chart(study: Study) -> Any:
    """The QQ plot of exact p-values, with the band that holds 95% of each rank's under no
    association. Not for publication."""
    import altair
    from scipy.special import betaincinv

    p = exact_statistics(study)[3]
    observed = -np.log10(np.maximum(np.sort(p[np.isfinite(p)]), 1e-300))
    ranks = np.arange(1, len(observed) + 1)
    expected = -np.log10((ranks - 0.5) / max(len(observed), 1))
    kept = thin_points(expected, observed)
    low, high = (
        -np.log10(betaincinv(ranks[kept], len(observed) + 1 - ranks[kept], share))
        for share in (0.975, 0.025)
    )
    columns = zip(expected[kept], observed[kept], low, high, strict=True)
    names = ("expected", "observed", "low", "high")
    rows = [dict(zip(names, (round(float(v), 3) for v in each), strict=True)) for each in columns]
    base = rows_chart(rows).encode(x=altair.X("expected:Q", title="expected −log10 P"))
    title = altair.Y("low:Q", title="observed −log10 P")
    band = base.mark_area(opacity=0.25, color="#999999").encode(y=title, y2="high:Q")
    line = base.mark_line(color="#666666", strokeDash=[5, 4]).encode(y="expected:Q")
    points = base.mark_circle(size=14, color=CHART_COLOURS[0], opacity=0.9).encode(y="observed:Q")
    inflation = format_decimals(genomic_inflation(study), 3)
    said = f"Exact p-values, λ = {inflation}: private, not for publication"
    return altair.layer(band, line, points).properties(title=said, width=360, height=360)


def describe_study(study: Study, inflation: float | None = None) -> Document:
    """How large a study is; and λ, which is private, where it was asked for."""
    lines = [f"{len(study.snps):,} SNPs, {study.cases:,} cases, {study.controls:,} controls"]
    if study.origin is not None:
        lines.append(f"chosen by lists from {len(study.origin.snps):,} SNPs")
    if study.left_out:
        lines.append(
            f"{study.left_out:,} SNPs were left out: on Y or MT, on X where no sexes are known, or "
            "with several alternate alleles"
        )
    if inflation is not None:
        lines.append(f"λ = {format_decimals(inflation, 3)} (private)")
    return make_document("", *lines)


def describe_attack(
    points: Sequence[AttackPoint], plan: Plan, relation: str, rate: float
) -> Document:
    """Power and posterior, from exact frequencies and from the release."""
    prior, limit = attack_prior(plan), attack_limit(plan, rate)
    released = f"ε = {format_epsilon(plan.epsilon)}"
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


def _make_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> TextTable:
    return make_table(names, rows, right=[name for name in names if name not in TEXT_COLUMNS])


def describe_study_page(release: StudyRelease) -> Document:
    """The Manhattan plot, all columns and the card."""
    rows = release_rows(release)
    asked = release.estimate.question
    kind = "SNPs" if asked.loci is None else "loci"
    what = f"The {asked.top} most associated {kind}" if asked.top else f"{asked.size} SNPs"
    genome, (p, title) = release.all_snps, _released_p(release)
    charts: list[Any] = []
    if release.snps:
        charts.append(Chart(lambda: manhattan_plot(release.snps, p, title, genome, named=True)))
    if rows:
        cells = [[format_cell(value) for value in row.values()] for row in rows]
        charts.append(_make_table(list(rows[0]), cells))
    charts += _outcome_words(release)
    return Document(
        f"{what}, released privately",
        (
            make_section("", *charts),
            *estimate_card(release.estimate),
            make_section("", note(f"Ledger entry: {release.dataset}")),
        ),
    )


def save_study_page(release: StudyRelease, path: Path) -> None:
    from whosin.report.html import render_page

    write_file(path, render_page(describe_study_page(release)), "--save", private=True)
