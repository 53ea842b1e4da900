"""The same numbers for three audiences: a resident, an analyst, a data protection officer.

Odds are given as people out of 1,000, the form that was understood best in a study with 963 people
(Nanayakkara et al. 2023), with a picture in which each mark stands for ten of them.
"""

from __future__ import annotations

import math
from fractions import Fraction

from whosin.beliefs import percent
from whosin.errors import UnknownName
from whosin.report.explanation import Explanation, Reading

AUDIENCES = ("resident", "analyst", "officer")
EXAMPLE = Fraction(1, 10)
"""How sure someone is before, where nobody says."""
MARKS = 100


def check(audience: str) -> str:
    """The audience, if it is one."""
    if audience not in AUDIENCES:
        raise UnknownName("--for", audience, AUDIENCES)
    return audience


def of_thousand(share: float) -> int:
    """People out of 1,000, rounded up: towards the greater risk."""
    return min(1000, math.ceil(share * 1000 - 1e-9))


def picture(share: float) -> list[str]:
    """A hundred marks in five lines, the full ones a share of them, rounded up."""
    full = min(MARKS, math.ceil(share * MARKS - 1e-9))
    row = "●" * full + "○" * (MARKS - full)
    return [row[start : start + 20] for start in range(0, MARKS, 20)]


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
        chance = f"{meaning.failure:g}" if audience != "resident" else f"at most {failing} in 1,000"
        result.append(f"This may fail with a probability of {chance}.")
    return result


def _resident(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    before, most = of_thousand(float(prior)), of_thousand(after)
    return [
        f"Think of 1,000 people about whom someone is {percent(prior)} sure that they are in the "
        f"data: for {before} of them that is true.",
        f"After the publication that someone can be as sure as if it were true for {most} of the "
        f"1,000, and no surer. This holds for someone who {reading.words}.",
        *picture(after),
        f"Each mark is 10 people; {math.ceil(before / 10)} marks were full before.",
    ]


def _analyst(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    ratio = "without limit" if reading.ratio == math.inf else f"at most {reading.ratio:.6g}"
    return [
        f"ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, {meaning.relation}: the likelihood "
        f"ratio of any output is {ratio} for someone who {reading.words} ({reading.theorem}).",
        f"A belief of {percent(prior)} becomes at most {percent(after)}: {of_thousand(after)} of "
        f"1,000 instead of {of_thousand(float(prior))}.",
        "Budgets add: two releases of this kind allow the square of the ratio.",
    ]


def _officer(meaning: Explanation, reading: Reading, prior: Fraction, after: float) -> list[str]:
    outside = [other for other in meaning.readings if other.ratio == math.inf]
    return [
        f"Risk: someone who {reading.words} and was {percent(prior)} sure that a person is in the "
        f"data becomes at most {percent(after)} sure ({of_thousand(after)} of 1,000, before "
        f"{of_thousand(float(prior))}).",
        f"Measure: differential privacy, ε = {meaning.epsilon:g}, δ = {meaning.delta:g}, "
        f"neighbours by {meaning.relation}. Ground: {reading.theorem}.",
        "Not covered: someone who " + ", or who ".join(other.words for other in outside) + ".",
        "Keep the ledger's history, and the list of everything that was published before.",
    ]


def print_words(meaning: Explanation, audience: str) -> None:
    """The words for an audience, in a terminal."""
    from textwrap import fill

    for paragraph in words(meaning, audience):
        print(paragraph if paragraph[0] in "●○" else fill(paragraph, 88))
