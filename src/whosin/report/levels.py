"""Levels, comparisons of channels, the map of notions and privacy–distortion curves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin.exact import MIN_POWER, Rounding, format_figures, format_percent
from whosin.references import Paper, Theorem
from whosin.report.document import (
    Chart,
    Document,
    Paragraph,
    Strong,
    TextTable,
    Theorems,
    Words,
    format_count,
    format_epsilon,
    format_general,
    format_plural,
    format_short,
    is_rounded,
    list_facts,
    make_document,
    make_section,
    make_table,
    rounding_side,
)

if TYPE_CHECKING:
    from whosin.curves.curve import TradeOff
    from whosin.distortion import Curves, Optimum
    from whosin.mechanisms import Channel
    from whosin.notions import Level, Notion, Witness
    from whosin.notions.gaussian_leakage import GaussianLeakage
    from whosin.refinement import Comparison

MAX_GUESSES = 6
"""Guesses of a strategy that are printed."""
VERDICT_TONES: dict[bool | None, Any] = {True: "good", False: "bad", None: "open"}


def describe_level(
    level: Level, notion: Notion | None = None, claim: Fraction | None = None
) -> Document:
    """A level, its witness and its reasons; and what became of a claim."""
    from whosin.notions import Notion

    measured = level.notion if notion is None else notion
    known = measured if isinstance(measured, Notion) else None
    return make_document("" if known is None else known.title, *_level_parts(level, known, claim))


def _level_parts(
    level: Level, notion: Notion | None, claim: Fraction | None
) -> Iterator[Paragraph | TextTable | Theorems]:
    yield Paragraph((f"{'level' if notion is None else notion.unit} is ", *_level_words(level)))
    if level.lower is not None:
        by = "" if level.witness is None else ", by the case below"
        yield Paragraph(f"and at least {format_short(level.lower, 'down')}{by}")
    if (worst := _least_favourable_numbers(level, notion)) is not None:
        yield Paragraph(f"Least favourable prior: {_prior_text(worst)}.")
    case = level.witness if claim is None else level.refutation(claim) or level.witness
    if case is not None:
        yield list_facts(*_witness_facts(case))
    elif notion is not None:
        yield Paragraph(_explain_no_witness(level, notion))
    if level.note:
        yield Paragraph(level.note)
    if level.theorems:
        yield Theorems(level.theorems)
    if claim is not None and notion is not None:
        yield Paragraph(claim_verdict(level, notion, claim), VERDICT_TONES[level.holds(claim)])


def _level_words(level: Level) -> tuple[str, ...]:
    """The level with the word that is true of it: exactly, rounded, or at most."""
    number = Strong(format_short(level.value, rounding_side(level.exact)))
    if not level.exact:
        return "at most ", number
    if MIN_POWER <= level.value < math.inf:
        return (number,)
    return (number, ", rounded to six digits") if is_rounded(level.value) else ("exactly ", number)


def _explain_no_witness(level: Level, notion: Notion) -> str:
    if notion.averages:
        return "An average over everything: no single case stands behind it."
    if level.exact:
        return "Nobody is uncertain under these adversaries, so nothing can be learned."
    return "No prior of this kind was found among these people; the bound holds anyway."


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


def _witness_facts(case: Witness) -> Iterator[tuple[Words, Words]]:
    if case.strategy is not None:
        yield from _strategy_facts(case)
        return
    yield from _describe_subject(case)
    yield "output", str(case.output)
    yield "belief before", format_percent(case.prior)
    yield "belief after", format_percent(case.posterior)
    alone = case.guess is not None and case.against is None
    yield "factor" if alone else "likelihood ratio", format_short(case.ratio)
    if not case.attained:
        yield "", "the level is a limit; this prior is close to it"


def _describe_subject(case: Witness) -> Iterator[tuple[str, str]]:
    """Whom or what a case is about, and what its adversary knows."""
    if case.entity is not None:
        yield "about", str(case.entity)
    elif case.guess is not None:
        others = "" if case.against is None else f" or {case.against}"
        yield "about", f"the table {case.guess}{others}"
    elif case.group is not None:
        pairs = (f"row {row}: {one} or {two}" for row, (one, two) in case.group.items())
        yield "about", "together " + ", ".join(pairs)
        yield "knowing", _known_rows_text(case.known or {})
    elif case.values is not None:
        yield "about", f"row {case.row}: value {case.values[0]} or {case.values[1]}"
        yield "knowing", _known_rows_text(case.known or {})
    else:
        yield "about", f"row {case.row}"
        if case.rows_known is not None:
            yield "knowing", "rows " + ", ".join(map(str, case.rows_known))


def _strategy_facts(case: Witness) -> Iterator[tuple[str, str]]:
    """A guesser: what the best guess is worth before and after, and what it is."""
    assert case.strategy is not None
    yield "worth before", f"{format_short(case.prior)}, by guessing {case.guess}"
    yield "worth after", format_short(case.posterior)
    yield "factor", format_short(case.ratio)
    for output, guess in list(case.strategy.items())[:MAX_GUESSES]:
        yield f"after {output}", f"guess {guess}"
    more = len(case.strategy) - MAX_GUESSES
    if more > 0:
        yield "", f"and so on for {format_count(more)} other outputs"


def _known_rows_text(rows: dict[int, int]) -> str:
    """Known rows, the middle of a long series left out."""
    words = [f"row {row} = {value}" for row, value in rows.items()]
    if len(words) > 8:
        return f"{', '.join(words[:3])}, … {len(words) - 6} more …, {', '.join(words[-3:])}"
    return ", ".join(words) or "no other row"


def describe_tradeoff(curve: TradeOff) -> Document:
    """What the best tests reach, at a few false positive rates."""
    from whosin.curves.curve import FALSE_POSITIVE_RATES
    from whosin.report.card import RATES_TITLE
    from whosin.report.charts import rates_chart
    from whosin.report.terminal import rates_plot

    rounded = rounding_side(curve.exact)
    rates = [
        (format_percent(fpr), format_percent(curve.tpr(fpr), rounded))
        for fpr in FALSE_POSITIVE_RATES
    ]
    heads = ("accused by mistake", "recognised" if curve.exact else "recognised, at most")
    advantage = f"{'=' if curve.exact else '≤'} {format_short(curve.advantage, rounded)}"
    return make_document(
        "",
        Chart(lambda: rates_chart(curve, RATES_TITLE), lambda width: rates_plot(curve, most=width)),
        make_table(heads, rates, right=heads),
        f"Attack advantage {advantage}",
    )


def describe_comparison(result: Comparison, source: Channel, target: Channel) -> Document:
    """Whether a channel can be simulated from another, and what proves it."""
    if result.holds is None:
        said = "Undecided: neither a simulation nor a gain could be proved."
        return make_document("", Paragraph(said, "open"))
    if result.holds:
        said = "It can be simulated: nobody gains more from it."
        assert result.simulation is not None and result.distance is not None
        off = format_short(result.distance, "up")
        loss = f"Up to {off} of probability, within the rounding of floats."
        rows = [
            (str(name), *map(format_short, row))
            for name, row in list(zip(source.outputs, result.simulation, strict=True))[:MAX_GUESSES]
        ]
        table = make_table(("seen", *map(str, target.outputs)), rows)
        return make_document(
            "", Paragraph(said, "good"), *([loss] if result.distance else []), table
        )
    assert result.gain is not None and result.target_value is not None
    assert result.source_value is not None
    worth = (
        "If all worlds are equally likely before, the best guess is worth "
        f"{format_short(result.target_value)} with it and {format_short(result.source_value)} "
        "with the other. What a guess gains in each world:"
    )
    gains = list(zip(result.gain.guesses, result.gain.matrix, strict=True))[:MAX_GUESSES]
    rows = [(str(name), *map(format_short, each[:MAX_GUESSES])) for name, each in gains]
    worlds = [str(world) for world in list(source.space)[:MAX_GUESSES]]
    said = "It cannot be simulated: somebody gains more from it."
    return make_document("", Paragraph(said, "bad"), worth, make_table(("guess", *worlds), rows))


def describe_references(theorems: Sequence[Theorem], papers: Sequence[Paper]) -> Document:
    """Theorems with their sources, then the papers."""
    numbered = [
        make_section(each.number, each.statement, Paragraph(each.source, "soft"))
        for each in theorems
    ]
    return Document("", (*numbered, make_section("", *map(str, papers), level=2)))


def describe_joint_debit(data: Mapping[str, Any]) -> Document:
    """What releases that were measured together have cost, and what is left."""
    paid = "Paid for" if data["new"] else "Paid for before, at no further cost"
    return make_document(
        f"{data['dataset']}: {format_plural(data['releases'], 'release')}, measured together",
        f"Together they leak ε = {format_epsilon(data['epsilon'], 'up')}.",
        f"Left: ε = {format_epsilon(data['left'])}.",
        f"{paid}: request {data['request']}.",
    )


def describe_map() -> Document:
    """Implications and counterexamples, a line each."""
    from whosin.theorems.notion_map import NOTION_BARRIERS, NOTION_EDGES

    edges = [
        (edge.source, "⇔" if edge.both_ways else "⇒", edge.target, edge.formula, edge.theorem)
        for edge in NOTION_EDGES
    ]
    barriers = [(each.source, "⇏", each.target, each.reason, "") for each in NOTION_BARRIERS]
    columns = ("from", "", "to", "level", "by")
    return make_document("", make_table(columns, [*edges, *barriers], lead=3))


NOTION_TITLES = {
    "dp": "differential privacy",
    "identifiability": "identifiability",
    "mutual-information": "mutual information",
}


def describe_optimum(
    best: Optimum, spread: float | None = None, threshold: float | None = None
) -> Document:
    """The optimum, its certificate and the closed-form bounds; of a set of priors the least
    favourable one."""
    space, by_level = best.space, best.given == "epsilon"
    unit = "mutual information" if best.notion == "mutual-information" else "ε"
    level, distortion = (unit, best.epsilon), ("distortion", best.distortion)
    given, (name, optimum) = (level, distortion) if by_level else (distortion, level)
    ends = " and ".join(map(format_general, (best.lower, best.upper)))
    facts: list[tuple[Words, Words]] = [
        (given[0], format_general(given[1])),
        (f"least {name}", (Strong(format_general(optimum)),)),
        ("certificate", _certificate_text(best)),
    ]
    if best.gap == 0 or best.upper - best.lower > 2 * best.gap:
        facts.append(("closed form", f"between {ends}"))
    if best.notion != "mutual-information":
        facts.append(("mutual information", f"{format_short(best.mutual_information)} nats"))
    if spread is not None:
        start = "" if threshold is None else f", ε̃_X = {format_short(threshold)}"
        facts.append(("of the prior", f"ε_X = {format_short(spread)}{start}"))
    if best.prior_numbers is not None:
        facts.append(("least favourable prior", _prior_text(best.prior_numbers)))
    note = [best.note[0].upper() + best.note[1:] + "."] if best.note else []
    title = Strong(f"The best mechanism for {space.rows} rows of {space.values} values")
    return make_document(
        "",
        Paragraph((title, f" under {NOTION_TITLES[best.notion]}")),
        list_facts(*facts),
        *note,
        Theorems(best.theorems),
    )


MAX_SHOWN_ROWS = 8


def _prior_text(numbers: list[Any]) -> str:
    """A distribution for each row, once where they are alike; or a probability for each table."""
    if not isinstance(numbers[0], list):
        return "by table " + ", ".join(map(format_short, numbers))
    rows = [", ".join(map(format_short, row)) for row in numbers]
    if len(set(rows)) == 1:
        return rows[0]
    return "; ".join(rows[:MAX_SHOWN_ROWS]) + (" …" if len(rows) > MAX_SHOWN_ROWS else "")


def describe_curves(curves: Curves) -> Document:
    sections = []
    for notion, points in curves.points.items():
        by_level = notion != "mutual-information"
        names = ["ε", "distortion"] if by_level else ["distortion", "nats"]
        names += ["closed form from", "to", "gap"]
        rows = []
        for point in points:
            pair = [point.epsilon, point.distortion]
            cells = [*(pair if by_level else pair[::-1]), point.lower, point.upper]
            rows.append((*map(format_general, cells), format_general(point.gap, 1)))
        title = NOTION_TITLES[notion].capitalize()
        sections.append(make_section(title, make_table(names, rows, right=names)))
    skipped = [
        f"No curve for {NOTION_TITLES[notion]}: {reason}."
        for notion, reason in curves.skipped.items()
    ]
    return Document("", (*sections, *([make_section("", *skipped)] if skipped else [])))


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


OUTCOME_WORDS: dict[bool | None, str] = {True: "holds", False: "refuted", None: "undecided"}
"""What a check of a claim can find."""
MAX_RATIO_BITS = 10_000
"""About 3,000 digits; Python prints at most 4,300."""


def level_data(level: Level, notion: Notion, claim: Fraction | None = None) -> dict[str, object]:
    """The keys others read: value, exact, witness {entity, output, prior, posterior, ratio,
    attained}; beside them what was measured, as the options of `verify` read it, and what became of
    a claim."""
    from whosin.notions import NOTION_KINDS
    from whosin.notions.reading import plain_words

    names = {kind: name for name, kind in NOTION_KINDS.items()}
    data: dict[str, object] = {
        "notion": names.get(type(notion), type(notion).__name__),
        "family": _family_spelling(notion),
        **plain_words(notion),
        "unit": notion.unit,
        "value": level.value,
        "value_exact": _spell_ratio(level.value),
        "exact": level.exact,
        "lower": level.lower,
        "theorems": list(level.theorems),
        "note": level.note or None,
        "witness": None,
    }
    if (worst := _least_favourable_numbers(level, notion)) is not None:
        data["least_favourable"] = worst
    case = level.witness if claim is None else level.refutation(claim) or level.witness
    if case is not None:
        keys = ["entity", "output", "prior", "posterior", "ratio", "attained"]
        keys += ["row", "known", "values"] if case.row is not None else []
        keys += ["rows_known"] if case.row is not None and case.rows_known is not None else []
        keys += [key for key in ("guess", "against", "group") if getattr(case, key) is not None]
        data["witness"] = {key: getattr(case, key) for key in keys}
        if case.strategy is not None:
            guesses = [{"output": each, "guess": best} for each, best in case.strategy.items()]
            data["witness"] |= {"strategy": guesses}  # type: ignore[operator]
    if claim is not None:
        holds = level.holds(claim)
        data.update(at_most=claim, holds=holds, outcome=OUTCOME_WORDS[holds])
    return data


def gaussian_leakage_data(found: GaussianLeakage, claim: Fraction | None) -> dict[str, Any]:
    """What Gaussian releases leak about normal rows, and what became of a claim."""
    from whosin.notions import Level

    exact, lower = found.exact, None if found.exact else found.lower
    holds = None
    if claim is not None:
        holds = Level(found.epsilon, None, exact, (), lower).holds(claim)
    return {
        "unit": "ε",
        "value": found.epsilon,
        "exact": exact,
        "lower": lower,
        "delta": found.delta,
        "separation": found.separation,
        "row": found.row,
        "unknown": list(found.unknown),
        "at_most": claim,
        "holds": holds,
        "outcome": None if claim is None else OUTCOME_WORDS[holds],
    }


def describe_gaussian_leakage(data: Mapping[str, Any]) -> Document:
    """The same for people."""
    value = format_short(data["value"], "up")
    unknown = ", ".join(map(str, data["unknown"])) or "no other row"
    facts = [
        ("ε between two values of a row", value if data["exact"] else f"at most {value}"),
        ("but for a probability δ of", format_general(data["delta"])),
        ("worst for", f"row {data['row']}, unknown beside it: {unknown}"),
    ]
    if data["lower"] is not None:
        facts.append(("at least", format_short(data["lower"], "down")))
    if data["outcome"] is not None:
        facts.append((f"the claim ε ≤ {format_short(data['at_most'])}", data["outcome"]))
    return make_document("Bayesian differential privacy, normal rows", list_facts(*facts))


def _least_favourable_numbers(level: Level, notion: Notion | None) -> list[Any] | None:
    """The prior of a set that a level is about: a list for each row, or a number for each table."""
    from whosin.priors import Independent, PriorSet, WorldTable

    case = level.witness
    prior = level.prior if case is None else case.distribution
    if not isinstance(getattr(notion, "prior", None), PriorSet):
        return None
    if isinstance(prior, Independent):
        return [[float(p) for p in row] for row in prior.p]  # type: ignore[attr-defined]
    if isinstance(prior, WorldTable) and prior.length is not None:
        return [float(prior.support.get(world, 0)) for world in range(prior.length)]  # type: ignore[arg-type]
    return None


def comparison_data(result: Comparison, source: Channel, target: Channel) -> dict[str, object]:
    """Whether a channel can be simulated from another: the simulation, or whom it serves better."""
    data: dict[str, object] = {
        "simulated": result.holds,
        "outcome": OUTCOME_WORDS[result.holds],
        "exact": result.exact,
        "distance": result.distance,
        "simulation": result.simulation,
        "outputs": {"source": list(source.outputs), "target": list(target.outputs)},
        "gain": None,
    }
    if result.gain is not None:
        gains = {"guesses": list(result.gain.guesses), "matrix": result.gain.matrix}
        values = {"target": result.target_value, "source": result.source_value}
        data |= {"gain": gains, "prior": "uniform", "worth": values}
    return data


def _family_spelling(notion: Notion) -> str | None:
    """The adversaries, as `--family` reads them."""
    from whosin.families import Explicit, Family

    family = getattr(notion, "family", None)
    if not isinstance(family, Family):
        return None
    return repr(family) if isinstance(family, Explicit) else family.spelled


def _spell_ratio(value: object) -> str | None:
    """A ratio, unless it is too long for anyone to read."""
    if not isinstance(value, Fraction) or value >= MIN_POWER:
        return None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > MAX_RATIO_BITS:
        return None
    return str(value)
