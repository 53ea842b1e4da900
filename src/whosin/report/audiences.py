"""The same numbers for three audiences: a resident, an analyst, a data protection officer.

Odds are given as people out of 1,000 (`frequencies`).
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.beliefs import percent
from whosin.errors import UnknownName
from whosin.exact import as_typed, figures
from whosin.report.explanation import Explanation, Reading
from whosin.report.frequencies import AFTER, BEFORE, NEVER, Marks, of_thousand
from whosin.report.sufficiency import Sufficiency

AUDIENCES = ("resident", "analyst", "officer")
EXAMPLE = Fraction(1, 10)
"""How sure someone is before, where nobody says."""


def check(audience: str) -> str:
    """The audience, if it is one."""
    if audience not in AUDIENCES:
        raise UnknownName("--for", audience, AUDIENCES)
    return audience


def words(meaning: Explanation, audience: str) -> list[str]:
    """What an ε allows, for an audience; a paragraph each."""
    check(audience)
    reading = meaning.readings[0]
    prior = EXAMPLE if EXAMPLE in meaning.priors else meaning.priors[0]
    after = meaning.posterior(reading, prior)
    said = {"resident": _resident, "analyst": _analyst, "officer": _officer}[audience]
    result = said(meaning, reading, prior, after)
    if meaning.delta:
        failing = of_thousand(meaning.failure)
        chance = f"at most {failing} in 1,000"
        if audience != "resident":
            chance = as_typed(meaning.failure, "up")
        result.append(f"This may fail with a probability of {chance}.")
    return result


def _resident(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    before, most = of_thousand(float(prior)), of_thousand(after)
    return [
        f"Think of 1,000 people about whom someone is {percent(prior, 'down')} sure that they are "
        f"in the data: for {before} of them that is true.",
        f"After the publication that someone can be as sure as if it were true for {most} of the "
        f"1,000, and no surer. This holds for someone who {reading.words}.",
        *(marks := Marks.of(float(prior), after)).lines(),
        marks.words(),
    ]


def _analyst(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    ratio, most = "without limit", percent(after, "up")
    if reading.ratio < math.inf:
        ratio = f"at most {figures(reading.ratio, 6, 'up')}"
    return [
        f"ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, {meaning.relation}: the likelihood "
        f"ratio of any output is {ratio} for someone who {reading.words} ({reading.theorem}).",
        f"A belief of {percent(prior, 'down')} becomes at most {most}: {of_thousand(after)} of "
        f"1,000 instead of {of_thousand(float(prior))}.",
        "Budgets add: two releases of this kind allow the square of the ratio.",
    ]


def _officer(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    outside = [other for other in meaning.readings if other.ratio == math.inf]
    return [
        f"Risk: someone who {reading.words} and was {percent(prior, 'down')} sure that a person is "
        f"in the data becomes at most {percent(after, 'up')} sure ({of_thousand(after)} of 1,000, "
        f"before {of_thousand(float(prior))}).",
        f"Measure: differential privacy, ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, "
        f"neighbours by {meaning.relation}. Ground: {reading.theorem}.",
        "Not covered: someone who " + ", or who ".join(other.words for other in outside) + ".",
        "Keep the ledger's history, and the list of everything that was published before.",
    ]


def print_words(meaning: Explanation, audience: str, verdict: Sufficiency | None = None) -> None:
    """The words for an audience, in a terminal; then whether it is enough for a target."""
    from textwrap import fill

    for paragraph in [*words(meaning, audience), *([] if verdict is None else verdict.words())]:
        print(paragraph if paragraph[0] in (BEFORE, AFTER, NEVER) else fill(paragraph, 88))
