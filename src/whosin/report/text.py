"""Levels, theorems and the privacy–distortion curves in the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from math import log
from textwrap import fill
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from whosin.beliefs import format_percent
from whosin.calibration import Plan, ProcessPlan
from whosin.exact import Rounding, format_decimals, format_figures, format_typed
from whosin.ledger import BudgetState, Entry
from whosin.references import THEOREMS, Paper, Theorem
from whosin.report import budget, card
from whosin.report.terminal import (
    belief_plot,
    columns_table,
    facts_table,
    format_short,
    is_rounded,
    print_table,
    printable_name,
    rates_plot,
    rounding_side,
)

if TYPE_CHECKING:
    from whosin.calibration.planning import ChainPlan
    from whosin.distortion import Curves, Optimum
    from whosin.mechanisms import Channel
    from whosin.notions import Level, Notion, Witness
    from whosin.refinement import Comparison
    from whosin.report.explanation import Explanation, Sufficiency


def print_level(level: Level, notion: Notion, claim: Fraction | None = None) -> None:
    """A level, its witness and its reasons; and what became of a claim."""
    console = Console(highlight=False)
    console.print(f"[bold]{escape(notion.title)}[/bold]")
    console.print(f"{notion.unit} is {_level_text(level)}", soft_wrap=True)
    if level.lower is not None:
        by = "" if level.witness is None else ", by the case below"
        console.print(f"and at least {format_short(level.lower, 'down')}{by}")
    case = level.witness if claim is None else level.refutation(claim) or level.witness
    if case is not None:
        console.print(_witness_table(case))
    elif notion.averages:
        console.print("An average over everything: no single case stands behind it.")
    elif level.exact:
        console.print("Nobody is uncertain under these adversaries, so nothing can be learned.")
    else:
        console.print("No prior of this kind was found among these people; the bound holds anyway.")
    if level.note:
        console.print(escape(level.note), soft_wrap=True)
    for number in level.theorems:
        console.print(f"[dim]{escape(str(THEOREMS[number]))}[/dim]", soft_wrap=True)
    if claim is not None:
        colour = {True: "green", False: "red", None: "yellow"}[level.holds(claim)]
        words = escape(claim_verdict(level, notion, claim))
        console.print(f"[{colour}]{words}[/{colour}]", soft_wrap=True)


def print_comparison(result: Comparison, source: Channel, target: Channel) -> None:
    """Whether a channel can be simulated from another, and what proves it."""
    console = Console(highlight=False)
    if result.holds is None:
        console.print(
            "[yellow]Undecided: neither a simulation nor a gain could be proved.[/yellow]"
        )
        return
    if result.holds:
        console.print("[green]It can be simulated: nobody gains more from it.[/green]")
        assert result.simulation is not None and result.distance is not None
        if result.distance:
            off = format_short(result.distance, "up")
            console.print(f"Up to {off} of probability, within the rounding of floats.")
        table = Table("seen", *(printable_name(name) for name in target.outputs))
        for name, row in list(zip(source.outputs, result.simulation, strict=True))[:MAX_GUESSES]:
            table.add_row(printable_name(name), *(format_short(each) for each in row))
        console.print(table)
        return
    assert result.gain is not None and result.target_value is not None
    assert result.source_value is not None
    console.print("[red]It cannot be simulated: somebody gains more from it.[/red]")
    console.print(
        "If all worlds are equally likely before, the best guess is worth "
        f"{format_short(result.target_value)} with it and {format_short(result.source_value)} "
        "with the other. "
        "What a guess gains in each world:",
        soft_wrap=True,
    )
    table = Table("guess", *(printable_name(world) for world in list(source.space)[:MAX_GUESSES]))
    for name, gains in list(zip(result.gain.guesses, result.gain.matrix, strict=True))[
        :MAX_GUESSES
    ]:
        table.add_row(printable_name(name), *(format_short(each) for each in gains[:MAX_GUESSES]))
    console.print(table)


def _level_text(level: Level) -> str:
    """The level with the word that is true of it: exactly, rounded, or at most."""
    number = f"[bold]{format_short(level.value, rounding_side(level.exact))}[/bold]"
    if not level.exact:
        return f"at most {number}"
    return f"{number}, rounded to six digits" if is_rounded(level.value) else f"exactly {number}"


def claim_verdict(level: Level, notion: Notion, claim: Fraction) -> str:
    """What became of a claim, in a sentence."""
    holds = level.holds(claim)
    rounded: Rounding = "down" if holds is False else "up"  # what is refuted is not said larger
    spelled = f"The claim {notion.unit} ≤ {format_short(claim, rounded)}"
    if holds:
        return f"{spelled} holds."
    if holds is False:
        return f"{spelled} is refuted{' by this case' if level.witness is not None else ''}."
    known = "no case above the claim was found"
    if level.lower is not None:
        known = f"the worst case found reaches {format_short(level.lower, 'down')}"
    return (
        f"{spelled} is undecided: {known}, and the proven bound is "
        f"{format_short(level.value, 'up')}."
    )


MAX_GUESSES = 6
"""Guesses of a strategy that are printed."""


def _strategy_table(case: Witness) -> Table:
    """A guesser: what the best guess is worth before and after, and what it is."""
    table = facts_table()
    assert case.strategy is not None
    table.add_row(
        "worth before", f"{format_short(case.prior)}, by guessing {printable_name(case.guess)}"
    )
    table.add_row("worth after", format_short(case.posterior))
    table.add_row("factor", format_short(case.ratio))
    for output, guess in list(case.strategy.items())[:MAX_GUESSES]:
        table.add_row(f"after {printable_name(output)}", f"guess {printable_name(guess)}")
    if len(case.strategy) > MAX_GUESSES:
        table.add_row("", f"and so on for {len(case.strategy) - MAX_GUESSES:,} other outputs")
    return table


def _witness_table(case: Witness) -> Table:
    if case.strategy is not None:
        return _strategy_table(case)
    table = facts_table()
    if case.entity is not None:
        table.add_row("about", printable_name(case.entity))
    elif case.guess is not None:
        others = "" if case.against is None else f" or {printable_name(case.against)}"
        table.add_row("about", f"the table {printable_name(case.guess)}{others}")
    elif case.group is not None:
        pairs = (f"row {row}: {one} or {two}" for row, (one, two) in case.group.items())
        table.add_row("about", "together " + ", ".join(pairs))
        table.add_row("knowing", _known_rows_text(case.known or {}))
    elif case.values is not None:
        table.add_row("about", f"row {case.row}: value {case.values[0]} or {case.values[1]}")
        table.add_row("knowing", _known_rows_text(case.known or {}))
    else:
        table.add_row("about", f"row {case.row}")
        if case.rows_known is not None:
            table.add_row("knowing", "rows " + ", ".join(map(str, case.rows_known)))
    table.add_row("output", printable_name(case.output))
    table.add_row("belief before", format_percent(case.prior))
    table.add_row("belief after", format_percent(case.posterior))
    alone = case.guess is not None and case.against is None
    table.add_row("factor" if alone else "likelihood ratio", format_short(case.ratio))
    if not case.attained:
        table.add_row("", "the level is a limit; this prior is close to it")
    return table


def _known_rows_text(rows: dict[int, int]) -> str:
    """Known rows, the middle of a long series left out."""
    words = [f"row {row} = {value}" for row, value in rows.items()]
    if len(words) > 8:
        return f"{', '.join(words[:3])}, … {len(words) - 6} more …, {', '.join(words[-3:])}"
    return ", ".join(words) or "no other row"


def print_references(theorems: Sequence[Theorem], papers: Sequence[Paper]) -> None:
    """Theorems with their sources, then the papers."""
    console = Console(highlight=False)
    for theorem in theorems:
        console.print(f"[bold]{theorem.number}[/bold]  {escape(theorem.statement)}")
        console.print(f"     [dim]{theorem.source}[/dim]")
    console.print()
    for paper in papers:
        console.print(escape(str(paper)))


def print_plan(plan: Plan) -> None:
    """A plan's card, its theorems and its chart."""
    from whosin.curves import tradeoff

    console = Console(highlight=False)
    print_sections(card.plan_card(plan))
    console.print()
    if plan.target.averages:
        print(rates_plot(tradeoff(plan), card.promised_rates(plan.target), console.width))
    else:
        print(belief_plot(card.plan_curves(plan), card.belief_band(plan), console.width))
    print_reasons(console, plan.theorems)


def print_sections(sections: Sequence[card.Section]) -> None:
    """Headings with their sentences, wrapped to the terminal."""
    console = Console(highlight=False)
    for section in sections:
        console.print(f"[bold]{escape(section.title)}[/bold]")
        for line in (*section.lines, *card.draw_section(section)):
            print_wrapped(line)


def print_wrapped(line: str) -> None:
    """A sentence, indented and wrapped to the terminal."""
    console = Console(highlight=False)
    wrapped = fill(line, console.width, initial_indent="  ", subsequent_indent="  ")
    console.print(escape(wrapped), soft_wrap=True)


def print_filled(text: str) -> None:
    """Print sentences, wrapped to the width of the terminal."""
    console = Console(highlight=False)
    console.print(fill(text, console.width))


def print_budget_states(
    records: Sequence[tuple[BudgetState, Sequence[Entry]]], entries: bool = False
) -> None:
    """Where datasets stand, with their histories if asked for."""
    console = Console(highlight=False)
    if not records:
        console.print("The ledger has no datasets.")
    for number, (budget_state, history) in enumerate(records):
        if number:
            console.print()
        print_sections(budget.budget_state_card(budget_state))
        if entries:
            table = Table(box=None, padding=(0, 2, 0, 2), pad_edge=True)
            for name in ("", "when", "who", "what", "cost"):
                table.add_column(name, overflow="fold")
            for entry in history:
                cells = budget.entry_row(entry, budget_state.budget.relation)
                table.add_row(*(escape(cell) for cell in cells))
            console.print(table)


def print_process(plan: ProcessPlan, delta: float) -> None:
    """The noise of a repeated process."""
    console = Console(highlight=False)
    process = plan.process
    console.print(
        f"{process.steps} steps of {process.noise} noise, each seeing a person with probability "
        f"{process.sample_rate:g}"
    )
    console.print(f"Noise multiplier: [bold]{format_decimals(plan.multiplier, 4, 'up')}[/bold]")
    what = plan.target.measured_as
    console.print(f"An adversary {plan.target.words()}", end="")
    fails = delta and not plan.target.averages
    console.print("." if not fails else f", but for a probability of {delta:g}.")
    where = f" on a grid of {plan.grid:g}" if plan.grid else ""
    console.print(
        f"[dim]certified: {what} at most {format_figures(plan.bound, 6, 'up')}{where}[/dim]"
    )
    print_reasons(console, plan.theorems)


def print_explanation(meaning: Explanation, verdict: Sufficiency | None = None) -> None:
    """An ε in beliefs, as a table and a chart; first, whether it is enough for a target."""
    console = Console(highlight=False)
    numbers = meaning.numbers
    if verdict is not None:
        console.print(f"[bold]Is {numbers} enough?[/bold]")
        for line in verdict.words():
            print_wrapped(line)
        console.print()
    console.print(f"[bold]What {numbers} means[/bold]")
    console.print("How sure someone can become at most, by what they knew and believed before:\n")
    priors = [format_percent(prior, "down") for prior in meaning.priors]
    table = columns_table("someone who", *priors, right=priors)
    for reading in meaning.readings:
        cells = [
            format_percent(meaning.posterior(reading, prior), "up") for prior in meaning.priors
        ]
        table.add_row(f"{reading.words} ({reading.symbol})", *cells)
    print_table(console, table)
    if meaning.delta:
        console.print(
            f"\nEach line may fail with probability {format_typed(meaning.failure, 'up')} (T18)."
        )
    console.print(
        "\nHow many of those who are in a test recognises, by how many others it accuses:\n"
    )
    rates = meaning.rates()
    accused = [format_percent(fpr, "down") for fpr, _ in rates]
    table = columns_table("accused by mistake", *accused, right=accused)
    table.add_row("recognised, at most", *(format_percent(tpr, "up") for _, tpr in rates))
    print_table(console, table)
    console.print()
    print(belief_plot(meaning.curves(), most=console.width))
    print_reasons(console, tuple(dict.fromkeys(r.theorem for r in meaning.readings)))


def print_map() -> None:
    """Implications and counterexamples, a line each."""
    from whosin.theorems.notion_map import NOTION_BARRIERS, NOTION_EDGES

    console = Console(highlight=False)
    table = columns_table("from", "", "to", "level", "by")
    for edge in NOTION_EDGES:
        arrow = "⇔" if edge.both_ways else "⇒"
        row = (edge.source, arrow, edge.target, edge.formula, edge.theorem)
        table.add_row(*map(escape, row))
    for barrier in NOTION_BARRIERS:
        table.add_row(*map(escape, (barrier.source, "⇏", barrier.target, barrier.reason, "")))
    print_table(console, table, lead=3)


def print_reasons(console: Console, theorems: Sequence[str]) -> None:
    console.print()
    for number in theorems:
        console.print(f"[dim]{escape(str(THEOREMS[number]))}[/dim]", soft_wrap=True)


def print_chain_plan(plan: ChainPlan, query: str, rows: int, promise: str) -> None:
    """Noise for a series beside what plain DP and group privacy would add."""
    console = Console(highlight=False)
    console.print(f"[bold]A {query} over {rows} rows that depend on each other[/bold]")
    print_filled(f"Whoever is looking {promise}: ε = {format_decimals(plan.epsilon, 4, 'down')}.")
    numbers = ("Laplace scale", "what a row leaks", "95% of answers within")
    table = columns_table("noise", *numbers, right=numbers)
    most, rounded = "" if plan.exact else "at most ", rounding_side(plan.exact)
    lines = [
        (
            "differential privacy",
            plan.plain_scale,
            f"{most}{format_decimals(plan.plain_leakage, 4, rounded)}",
        ),
        (
            "[bold]this plan[/bold]",
            plan.scale,
            f"{most}{format_decimals(plan.leakage, 4, rounded)}",
        ),
        ("group privacy", plan.group_scale, f"at most {format_decimals(plan.epsilon, 4, 'up')}"),
    ]
    for name, scale, leaks in lines:
        table.add_row(name, format_figures(scale, 4, "up"), leaks, f"±{scale * log(20):.4g}")
    console.print(table)
    print_reasons(console, ("T14",))


NOTION_TITLES = {
    "dp": "differential privacy",
    "identifiability": "identifiability",
    "mutual-information": "mutual information",
}


def print_optimum(best: Optimum, spread: float, threshold: float | None) -> None:
    """The optimum, its certificate and the closed-form bounds."""
    console = Console(highlight=False)
    space = best.space
    console.print(
        f"[bold]The best mechanism for {space.rows} rows of {space.values} values[/bold] "
        f"under {NOTION_TITLES[best.notion]}",
        soft_wrap=True,
    )
    by_level = best.given == "epsilon"
    unit = "mutual information" if best.notion == "mutual-information" else "ε"
    optimum, name = (best.distortion, "distortion") if by_level else (best.epsilon, unit)
    table = facts_table()
    given = (unit, best.epsilon) if by_level else ("distortion", best.distortion)
    table.add_row(given[0], f"{_format_digits(given[1])}")
    table.add_row(f"least {name}", f"[bold]{_format_digits(optimum)}[/bold]")
    table.add_row("certificate", _certificate_text(best))
    table.add_row(
        "closed form", f"between {_format_digits(best.lower)} and {_format_digits(best.upper)}"
    )
    if best.notion != "mutual-information":
        table.add_row("mutual information", f"{format_short(best.mutual_information)} nats")
    start = "" if threshold is None else f", ε̃_X = {format_short(threshold)}"
    table.add_row("of the prior", f"ε_X = {format_short(spread)}{start}")
    console.print(table)
    if best.note:
        console.print(escape(best.note[0].upper() + best.note[1:] + "."))
    for number in best.theorems:
        console.print(f"[dim]{escape(str(THEOREMS[number]))}[/dim]", soft_wrap=True)


def print_curves(curves: Curves) -> None:
    """Print the points of each curve as a table."""
    console = Console(highlight=False)
    for notion, points in curves.points.items():
        console.print(f"[bold]{NOTION_TITLES[notion].capitalize()}[/bold]")
        by_level = notion != "mutual-information"
        names = ["ε", "distortion"] if by_level else ["distortion", "nats"]
        names += ["closed form from", "to", "gap"]
        table = columns_table(*names, right=names)
        for point in points:
            pair = [point.epsilon, point.distortion]
            pair = pair if by_level else pair[::-1]
            cells = [*pair, point.lower, point.upper]
            table.add_row(*(_format_digits(cell) for cell in cells), f"{point.gap:.1g}")
        console.print(table)
    for notion, reason in curves.skipped.items():
        console.print(f"No curve for {NOTION_TITLES[notion]}: {reason}.")


def _format_digits(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.6g}"


def _certificate_text(best: Optimum) -> str:
    if best.gap == 0:
        return "exact: a closed form that meets its bound"
    checked = "" if best.notion == "mutual-information" else "; the level is checked exactly"
    return f"within {format_figures(best.gap, 1, 'up')} of the optimum, by a dual bound{checked}"


def distortion_chart(curves: Curves, title: str, mark: Optimum | None = None) -> Any:
    """ε against distortion with the bounds of T16, and information beside it."""
    import altair

    panels = []
    privacy: list[str] = [name for name in ("dp", "identifiability") if name in curves.points]
    if privacy:
        panels.append(_chart_panel(curves, privacy, "ε", mark))
    if "mutual-information" in curves.points:
        panels.append(
            _chart_panel(curves, ["mutual-information"], "mutual information (nats)", mark)
        )
    return altair.hconcat(*panels).resolve_scale(color="independent").properties(title=title)


def _chart_panel(curves: Curves, notions: list[str], axis: str, mark: Optimum | None) -> Any:
    import altair

    from whosin.report.charts import CHART_COLOURS, colour_scale, rows_chart

    rows: list[dict[str, object]] = []
    dashed: list[dict[str, object]] = []
    for notion in notions:
        for order, point in enumerate(curves.points[notion]):
            if not math.isfinite(point.epsilon):
                continue
            about = {"which": NOTION_TITLES[notion], "at": order}
            rows.append({"distortion": point.distortion, "level": point.epsilon, **about})
            for side, value in (("from", point.lower), ("to", point.upper)):
                by_distortion = point.given == "distortion"
                across = point.distortion if by_distortion else value
                up = value if by_distortion else point.epsilon
                # Before ε̃_X there is no closed form from above for identifiability.
                loose = notion == "identifiability" and side == "to"
                if math.isfinite(across) and math.isfinite(up) and not loose:
                    dashed.append({"distortion": across, "level": up, "side": side, **about})
    names = [NOTION_TITLES[notion] for notion in notions]
    colours = [CHART_COLOURS[list(NOTION_TITLES).index(notion)] for notion in notions]
    x = altair.X("distortion:Q", title="expected number of changed rows")
    y = altair.Y("level:Q", title=axis)
    colour = colour_scale("which", names, colours, symbolType="stroke")
    # Bounds are faint and dashed, the optimum runs between them.
    bounds = (
        rows_chart(dashed)
        .mark_line(strokeDash=[5, 4], strokeWidth=1.4, opacity=0.75)
        .encode(x=x, y=y, color=colour, detail="side:N", order="at:Q")
    )
    lines = (
        rows_chart(rows)
        .mark_line(strokeWidth=2.5, point=altair.OverlayMarkDef(size=28))
        .encode(x=x, y=y, color=colour, order="at:Q")
    )
    layers = [bounds, lines]
    if mark is not None and mark.notion in notions and math.isfinite(mark.epsilon):
        layers.append(
            rows_chart([{"distortion": mark.distortion, "level": mark.epsilon}])
            .mark_point(size=150, filled=True, shape="diamond", opacity=1, color="#222222")
            .encode(x="distortion:Q", y="level:Q")
        )
    return altair.layer(*layers).properties(
        width=380, height=340, title="optimum (solid), closed-form bounds (dashed)"
    )
