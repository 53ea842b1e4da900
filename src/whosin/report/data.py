"""Results as plain data, for JSON."""

from __future__ import annotations

from fractions import Fraction

from whosin.families import Explicit, Family
from whosin.mechanisms import Channel
from whosin.notions import NOTIONS, Level, Notion
from whosin.notions.reading import plain_words
from whosin.refinement import Comparison

OUTCOMES: dict[bool | None, str] = {True: "holds", False: "refuted", None: "undecided"}
"""What a check of a claim can find."""
NAMES = {kind: name for name, kind in NOTIONS.items()}
"""What `--notion` calls each notion."""
LONGEST_BITS = 10_000
"""About 3,000 digits; Python prints at most 4,300."""


def level_data(level: Level, notion: Notion, claim: Fraction | None = None) -> dict[str, object]:
    """The keys others read: value, exact, witness {entity, output, prior, posterior, ratio,
    attained}; beside them what was measured, as the options of `verify` read it, and what became of
    a claim."""
    data: dict[str, object] = {
        "notion": NAMES.get(type(notion), type(notion).__name__),
        "family": _family(notion),
        **plain_words(notion),
        "unit": notion.unit,
        "value": level.value,
        "value_exact": _spelled(level.value),
        "exact": level.exact,
        "lower": level.lower,
        "theorems": list(level.theorems),
        "note": level.note or None,
        "witness": None,
    }
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
        data.update(at_most=claim, holds=holds, outcome=OUTCOMES[holds])
    return data


def comparison_data(result: Comparison, source: Channel, target: Channel) -> dict[str, object]:
    """Whether a channel can be simulated from another: the simulation, or whom it serves better."""
    data: dict[str, object] = {
        "simulated": result.holds,
        "outcome": OUTCOMES[result.holds],
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


def _family(notion: Notion) -> str | None:
    """The adversaries, as `--family` reads them."""
    family = getattr(notion, "family", None)
    if not isinstance(family, Family):
        return None
    return repr(family) if isinstance(family, Explicit) else family.spelled


def _spelled(value: object) -> str | None:
    """A ratio, unless it is too long for anyone to read."""
    if not isinstance(value, Fraction):
        return None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LONGEST_BITS:
        return None
    return str(value)
