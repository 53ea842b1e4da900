"""Pictures of association studies: Manhattan plots, the attack's power, recovery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from whosin.exact import Array
from whosin.gwas import Snps
from whosin.gwas.attack import Point
from whosin.gwas.experiment import Outcome
from whosin.report.charts import COLOURS, LISTED, coloured, of_rows

GENOME_WIDE = 5e-8
CELLS = (700, 260)
TESTS = {"homer": "Homer's statistic", "likelihood-ratio": "likelihood ratio"}
SETTINGS = {
    ("genotype", "plain"): "genotypes, plain DP",
    ("genotype", "bounded"): "genotypes, bounded priors",
    ("label-swap", "plain"): "case labels, plain DP",
    ("label-swap", "bounded"): "case labels, bounded priors",
}


def manhattan(
    snps: Snps, p: Array, title: str, genome: Snps | None = None, named: bool = False
) -> Any:
    """−log10 P along the genome; where points would lie on each other, one of them is drawn.

    Args:
        genome: all SNPs of the study, to scale the axis, if only some are drawn.
        named: write the names beside the points.
    """
    import altair

    everything = snps if genome is None else genome
    starts, ends = _chromosomes(everything)
    positions = np.array(
        [starts[c] + at for c, at in zip(snps.chromosome, snps.position.tolist(), strict=True)]
    )
    height = -np.log10(np.maximum(p, 1e-300))
    kept = _thinned(positions, height)
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
        of_rows(rows)
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
                scale=altair.Scale(domain=["odd", "even"], range=[COLOURS[0], "#7fb0d3"]),
            ),
            tooltip=[
                altair.Tooltip("name:N", title="SNP"),
                altair.Tooltip("height:Q", title="−log10 P"),
            ],
        )
    )
    line = (
        of_rows([{"height": -float(np.log10(GENOME_WIDE))}])
        .mark_rule(color=COLOURS[1], strokeDash=[5, 4])
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


def _sizes(field: str, title: str, sizes: set[int]) -> Any:
    """A logarithmic axis with a mark for each size."""
    import altair

    return altair.X(
        f"{field}:Q",
        title=title,
        scale=altair.Scale(type="log", nice=False, padding=10),
        axis=altair.Axis(values=sorted(sizes), format="~s"),
    )


def _share(field: str, title: str) -> Any:
    """An axis from 0% to 100%."""
    import altair

    whole = altair.Scale(domain=[0, 1])
    return altair.Y(f"{field}:Q", title=title, axis=altair.Axis(format="%"), scale=whole)


def attack_chart(points: Sequence[Point], limit: float, title: str) -> Any:
    """Power over the number of SNPs: exact frequencies, released ones, and the promised limit."""
    import altair

    sources = {"exact": "exact frequencies", "released": "the release"}
    names = [f"{source}, {test}" for source in sources.values() for test in TESTS.values()]
    names.append("the most that the plan allows")
    rows: list[dict[str, object]] = [
        {
            "snps": point.snps,
            "power": point.power,
            "who": f"{sources[point.source]}, {TESTS[point.statistic]}",
        }
        for point in points
    ]
    for size in {point.snps for point in points}:
        rows.append({"snps": size, "power": min(limit, 1.0), "who": names[-1]})
    colours = [COLOURS[1], "#e39a8f", COLOURS[0], "#7fb0d3", "#222222"]
    return (
        of_rows(rows)
        .mark_line(point=True, strokeWidth=2.5)
        .encode(
            x=_sizes("snps", "SNPs whose frequencies are known", {point.snps for point in points}),
            y=_share("power", "cases that are recognised"),
            color=coloured("who", names, colours, **LISTED),
            strokeDash=altair.StrokeDash(
                "who:N",
                legend=None,
                scale=altair.Scale(domain=names, range=[[1, 0]] * 4 + [[5, 4]]),
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
            "setting": SETTINGS[each.relation, each.privacy],
            "gamma": f"γ = {each.gamma:g}",
            "top": f"the top {each.top}",
        }
        for each in outcomes
    ]
    names, colours = list(SETTINGS.values()), ["#bbbbbb", "#666666", "#7fb0d3", COLOURS[0]]
    base = altair.Chart().encode(
        x=_sizes("people", "people in the study", {each.people for each in outcomes}),
        color=coloured("setting", names, colours, columns=2, labelLimit=300),
    )
    share = _share("recovered", "share that comes back")
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


def _chromosomes(snps: Snps) -> tuple[dict[str, int], dict[str, int]]:
    """Where each chromosome starts and ends on one axis, in the order of the file."""
    furthest: dict[str, int] = {}
    for chromosome, at in zip(snps.chromosome, snps.position.tolist(), strict=True):
        furthest[chromosome] = max(furthest.get(chromosome, 0), at)
    starts, ends, total = {}, {}, 0
    for chromosome, length in furthest.items():
        starts[chromosome], total = total, total + max(length, 1)
        ends[chromosome] = total
    return starts, ends


def _thinned(positions: Array, height: Array) -> Array:
    """One point a cell of the picture."""
    if len(positions) <= 5_000:
        return np.arange(len(positions))
    columns = positions / max(positions.max(), 1) * CELLS[0]
    rows = height / max(height.max(), 1e-9) * CELLS[1]
    cells = columns.astype(np.int64) * (CELLS[1] + 1) + rows.astype(np.int64)
    return np.sort(np.unique(cells, return_index=True)[1])
