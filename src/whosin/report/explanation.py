"""What an ε means, in words for three audiences, in a table and in pictures."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from whosin.calibration.plan import PlannedNoise, PlannedQuery
from whosin.calibration.rate_targets import RateTarget
from whosin.curves.epsilon_meaning import SHOWN_PRIORS, Explanation, Reading, Sufficiency
from whosin.errors import UnknownName
from whosin.exact import (
    exact_fraction,
    format_decimals,
    format_figures,
    format_percent,
    format_typed,
)
from whosin.report.card import EXAMPLE_PRIOR, promised_rates
from whosin.report.document import (
    Chart,
    Document,
    Marks,
    TextTable,
    Theorems,
    format_count,
    format_epsilon,
    format_general,
    format_short,
    make_document,
    make_section,
    make_table,
    per_thousand,
)

if TYPE_CHECKING:
    from whosin.release.accuracy import AccuracyPlan
    from whosin.report.terminal import Curve


def spell_level(meaning: Explanation) -> str:
    """ε, δ if there is one, and between whom."""
    delta = f", δ = {format_general(meaning.delta)}" if meaning.delta else ""
    return f"ε = {format_epsilon(meaning.epsilon, 'up')}{delta} ({meaning.relation})"


def belief_curves(meaning: Explanation) -> list[Curve]:
    """Posterior against prior for each adversary who is held to anything."""
    held = [reading for reading in meaning.readings if reading.ratio < math.inf]
    result: list[Curve] = [
        (mark, f"{r.symbol}: {r.who}", lambda p, r=r: meaning.posterior(r, p))  # type: ignore[misc]
        for mark, r in zip("●+×○", held, strict=False)
    ]
    return [*result, ("·", "no protection", lambda p: float(p > 0))][::-1]


def verdict_lines(verdict: Sufficiency) -> list[str]:
    """The target and the verdict, a sentence each."""
    lines = [f"The target: whoever is looking {verdict.target.words()}."]
    but = f", but for a probability of {format_general(verdict.fails)}" if verdict.fails else ""
    if isinstance(verdict.target, RateTarget):
        said = verdict.target.verdict(exact_fraction(verdict.reached), enough=verdict.enough)
    else:
        reached, limit = format_short(verdict.reached, "up"), format_short(verdict.limit, "down")
        said = f"the {verdict.measured_as} is at most {reached}; up to {limit} would do"
        if not verdict.enough:
            said = f"the {verdict.measured_as} may be {reached}; only {limit} would do"
    lines.append(f"{'Enough' + but if verdict.enough else 'Not enough'}: {said}.")
    if verdict.epsilon is None:
        return [*lines, "At this δ no ε keeps it."]
    return [*lines, f"Any ε up to {format_epsilon(verdict.epsilon)} keeps it{but}."]


def verdict_data(verdict: Sufficiency) -> dict[str, object]:
    data = {"enough": verdict.enough, "promise": verdict.target.words()}
    return data | verdict.to_dict() | {"words": verdict_lines(verdict)}


def describe_explanation(meaning: Explanation, verdict: Sufficiency | None = None) -> Document:
    """An ε in beliefs, as a table and a chart; first, whether it is enough for a target."""
    from whosin.report.charts import belief_chart
    from whosin.report.terminal import belief_plot

    enough = []
    if verdict is not None:
        title = f"Is {spell_level(meaning)} enough?"
        enough.append(make_section(title, *verdict_lines(verdict), level=2))
    title = f"What {spell_level(meaning)} means"
    failing = format_typed(meaning.failure, "up")
    may = [f"Each line may fail with probability {failing} (T18)."] if meaning.delta else []
    theorems = tuple(dict.fromkeys(reading.theorem for reading in meaning.readings))
    picture = Chart(
        lambda: belief_chart(belief_curves(meaning), (0.0, 1.0), title),
        lambda width: belief_plot(belief_curves(meaning), most=width),
    )
    return Document(
        "",
        (
            *enough,
            make_section(
                title,
                "How sure someone can become at most, by what they knew and believed before:",
                _posterior_table(meaning),
                *may,
                level=2,
            ),
            make_section("", *_test_parts(meaning)),
            make_section("", picture, Theorems(theorems)),
        ),
    )


def describe_accuracy(
    query: PlannedQuery,
    within: float,
    noise: PlannedNoise,
    meaning: Explanation,
    verdict: Sufficiency | None = None,
) -> Document:
    """What answers this good cost, and what that means."""
    cost = (
        f"For {query.words()}: {noise.kind.capitalize()} noise of scale "
        f"{format_decimals(noise.scale, 4, 'down')} is the most that leaves them so, and costs "
        f"{spell_level(meaning)}."
    )
    first = make_section(f"95% of answers within ±{format_general(within)}", cost, level=2)
    return Document("", (first, *describe_explanation(meaning, verdict).sections))


def describe_widths(
    widths: AccuracyPlan, promise: str, meaning: Explanation, alone: Explanation
) -> Document:
    """What the widths of a scenario cost, which of them fit its target, and what all would mean:
    of the whole promise, of which the release has its share, and of one that is for it alone."""
    letter = "ρ" if widths.gaussian else "ε"
    rows = [
        (
            title,
            f"±{format_general(width)}{f', of {format_count(held)} rows' if held else ''}",
            f"{letter} = {format_figures(cost, 4, 'up')}",
            "" if alone is None else f"±{format_figures(alone, 3, 'up')}",
            "yes" if fits else "no",
        )
        for title, width, cost, alone, fits, held in zip(
            widths.titles,
            widths.widths,
            widths.costs,
            widths.alone,
            widths.fits,
            widths.rows,
            strict=True,
        )
    ]
    part = widths.allowed < widths.whole
    most = "with all that this release may spend" if part else "with all of the budget"
    heads = ("question", "95% within", "needs", most, "fits")
    total = f"{letter} = {format_figures(widths.total, 4, 'up')}"
    allowed, whole = (
        f"{letter} = {format_figures(each, 4, 'down')}" for each in (widths.allowed, widths.whole)
    )
    spends = f", of which this release may spend {allowed}" if part else ""
    fitting = f"{sum(widths.fits)} of {len(widths.fits)} widths fit at once"
    verdict = f"Whoever is looking {promise}: that allows {whole}{spends}; {fitting}."
    groups = (
        "Where rows are named, that is one a person, spread evenly over the groups: how many more "
        "of a person's rows count nobody knows beforehand, and with more the answer is better."
    )
    needs = f"All of them need {total}."
    if part:
        prior = _example_prior(meaning)
        sure, less = (
            format_percent(each.posterior(each.readings[0], prior), "up")
            for each in (meaning, alone)
        )
        needs += (
            f" With share = {_spell_share(widths.allowed / widths.whole)} the whole promise has to "
            f"allow {letter} = {format_figures(widths.needed, 4, 'up')}: whoever is "
            f"{format_percent(prior)} sure may become {sure} sure; with share = 1, {less}."
        )
    if widths.others:
        named = ", ".join(widths.others)
        rest = f"what is left of {allowed}, {letter} = {format_figures(widths.left, 4, 'down')}"
        rest = rest if widths.left else f"nothing: these widths take all of {allowed}"
        needs += f" Without within, {named}: {rest}."
    first = make_section(
        "What these widths cost",
        make_table(heads, rows),
        needs,
        *([groups] if any(widths.rows) else []),
        verdict,
        level=2,
    )
    return Document("", (first, *describe_explanation(meaning).sections[:1]))


def _spell_share(part: Fraction) -> str:
    """A share as it was given, but for what a budget is rounded by."""
    near = part.limit_denominator(1000)
    return str(near) if abs(near - part) < part / 10**6 else format_figures(part, 4, "down")


def _example_prior(meaning: Explanation) -> Fraction:
    """The belief that an example begins with: the largest that is told, if any was."""
    believed = [each for each in meaning.priors if each < 1] or meaning.priors
    return EXAMPLE_PRIOR if meaning.priors == SHOWN_PRIORS else max(believed)  # the worst case


def _posterior_table(meaning: Explanation) -> TextTable:
    priors = [format_percent(prior, "down") for prior in meaning.priors]
    rows = [
        (
            f"{reading.who} ({reading.symbol})",
            *(format_percent(meaning.posterior(reading, prior), "up") for prior in meaning.priors),
        )
        for reading in meaning.readings
    ]
    return make_table(("someone who", *priors), rows, right=priors)


def _test_parts(meaning: Explanation) -> tuple[str, TextTable]:
    """What tests or guesses reach, on average over all answers."""
    if meaning.secret == "membership":
        words = "How many of those who are in a test recognises, by how many others it accuses:"
        return words, _rate_table(meaning)
    shown = [prior for prior in meaning.priors if 0 < prior < 1]
    heads = [format_percent(prior, "down") for prior in shown]
    right = [format_percent(meaning.right_guesses(prior), "up") for prior in shown]
    row = ("right with them, at most", *right)
    words = "How often a guess of the value is right, on average over all answers (F36):"
    return words, make_table(("right without the answers", *heads), [row], right=heads)


def _rate_table(meaning: Explanation) -> TextTable:
    rates = meaning.rates()
    accused = [format_percent(fpr, "down") for fpr, _ in rates]
    recognised = [format_percent(tpr, "up") for _, tpr in rates]
    row = ("recognised, at most", *recognised)
    return make_table(("accused by mistake", *accused), [row], right=accused)


# The same numbers for three audiences: a resident, an analyst, a data protection officer. Odds are
# given as people out of 1,000.


AUDIENCE_NAMES = ("resident", "analyst", "officer")


def check_audience(audience: str) -> str:
    if audience not in AUDIENCE_NAMES:
        raise UnknownName("--for", audience, AUDIENCE_NAMES)
    return audience


def audience_paragraphs(meaning: Explanation, audience: str) -> list[str | Marks]:
    """What an ε allows, for an audience; a paragraph each, and people out of 1,000."""
    check_audience(audience)
    reading = meaning.readings[0]
    prior = _example_prior(meaning)
    after = meaning.posterior(reading, prior)
    said = {
        "resident": _resident_paragraphs,
        "analyst": _analyst_paragraphs,
        "officer": _officer_paragraphs,
    }[audience]
    result = said(meaning, reading, prior, after)
    if meaning.priors == SHOWN_PRIORS and audience != "resident":
        result.append(
            f"{format_percent(prior)} sure before is an example; give a prior of your own."
        )
    if meaning.delta:
        failing = per_thousand(meaning.failure)
        chance = f"at most {failing} in 1,000"
        if audience != "resident":
            chance = format_typed(meaning.failure, "up")
        result.append(f"This may fail with a probability of {chance}.")
    return result


def _resident_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    before, most = per_thousand(float(prior)), per_thousand(after)
    if meaning.secret == "value":
        return [
            f"Think of 1,000 people who are in the data, of whom someone is "
            f"{format_percent(prior, 'down')} sure of a value: {before} of them have it.",
            f"After the publication that someone can be as sure as if {most} of the 1,000 had it, "
            f"and no surer. This holds for someone who {reading.who}.",
            Marks.of(float(prior), after),
        ]
    return [
        f"Think of 1,000 people about whom someone is {format_percent(prior, 'down')} sure that "
        f"they are in the data: for {before} of them that is true.",
        f"After the publication that someone can be as sure as if it were true for {most} of the "
        f"1,000, and no surer. This holds for someone who {reading.who}.",
        Marks.of(float(prior), after),
    ]


def _analyst_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    ratio, most = "without limit", format_percent(after, "up")
    if reading.ratio < math.inf:
        ratio = f"at most {format_figures(reading.ratio, 6, 'up')}"
    return [
        f"ε = {format_epsilon(meaning.epsilon, 'up')}, δ = {format_general(meaning.delta)}, "
        f"{meaning.relation}: the likelihood ratio of any output is {ratio} for someone who "
        f"{reading.who} ({reading.theorem}).",
        f"A belief of {format_percent(prior, 'down')} becomes at most {most}: "
        f"{per_thousand(after)} of 1,000 instead of {per_thousand(float(prior))}.",
        "Budgets add: two releases of this kind allow the square of the ratio.",
    ]


def _officer_paragraphs(
    meaning: Explanation, reading: Reading, prior: Fraction, after: float
) -> list[str | Marks]:
    outside = [other for other in meaning.readings if other.ratio == math.inf]
    low = min((each for each in meaning.priors if each), default=prior)
    ends = low < prior and meaning.priors != SHOWN_PRIORS

    def least(held: Reading) -> str:
        most = format_percent(meaning.posterior(held, low), "up")
        return f", and from {format_percent(low, 'down')} at most {most}" if ends else ""

    further = [
        f"{'where' if other.symbol.startswith('D_NI') else 'someone who'} {other.who}, at most "
        f"{format_percent(meaning.posterior(other, prior), 'up')}{least(other)}"
        for other in meaning.readings[1:]
        if other.ratio < math.inf
    ]
    more = [f"Others can become surer: {'; '.join(further)}."] if further else []
    of_what = "that a person is in the data" if meaning.secret == "membership" else "of it"
    return [
        f"Risk: someone who {reading.who} and was {format_percent(prior, 'down')} sure {of_what} "
        f"becomes at most {format_percent(after, 'up')} sure "
        f"({per_thousand(after)} of 1,000, before {per_thousand(float(prior))}){least(reading)}.",
        *more,
        f"Measure: differential privacy, ε = {format_epsilon(meaning.epsilon, 'up')}, "
        f"δ = {format_general(meaning.delta)}, neighbours by {meaning.relation}. "
        f"Ground: {reading.theorem} (whosin cite {reading.theorem} shows it).",
        "Not covered: someone who " + ", or who ".join(other.who for other in outside) + ".",
        "Keep the ledger's history, and the list of everything that was published before.",
    ]


def audience_lines(meaning: Explanation, audience: str) -> list[str]:
    """The same as texts; the marks are lines of letters."""
    return [
        line
        for each in audience_paragraphs(meaning, audience)
        for line in ((each,) if isinstance(each, str) else (*each.lines(), each.words()))
    ]


def describe_audience(
    meaning: Explanation, audience: str, verdict: Sufficiency | None = None
) -> Document:
    """The words for an audience; then whether it is enough for a target."""
    enough = [] if verdict is None else verdict_lines(verdict)
    return make_document("", *audience_paragraphs(meaning, audience), *enough)


def explanation_chart(
    meaning: Explanation,
    verdict: Sufficiency | None = None,
    band: tuple[Fraction, Fraction] | None = None,
) -> Any:
    """An ε in beliefs; in rates, where it is held against a target about them."""
    from whosin.report.charts import belief_chart, rates_chart

    title = f"What {spell_level(meaning)} means"
    if verdict is not None and verdict.target.averages:
        return rates_chart(meaning.tests(), title, promised_rates(verdict.target))
    low, high = (float(end) for end in band or (0, 1))
    return belief_chart(belief_curves(meaning), (low, high), title)
