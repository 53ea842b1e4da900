"""Results as plain data, for JSON."""

from __future__ import annotations

from fractions import Fraction

from whosin.notions import Level, Notion

LONGEST_BITS = 10_000
"""About 3,000 digits; Python prints at most 4,300."""


def level_data(
    level: Level,
    notion: Notion,
    *,
    claim: Fraction | None = None,
    holds: bool | None = None,
) -> dict[str, object]:
    """The keys others read: value, exact, witness {entity, output, prior, posterior, ratio,
    attained}; and beside them what was measured."""
    data: dict[str, object] = {
        "notion": type(notion).__name__,
        "family": repr(notion.family) if hasattr(notion, "family") else None,
        "unit": notion.unit,
        "value": level.value,
        "value_exact": _spelled(level.value),
        "exact": level.exact,
        "lower": level.lower,
        "theorems": list(level.theorems),
        "witness": None,
    }
    if level.witness is not None:
        case = level.witness
        witness: dict[str, object] = {
            "entity": case.entity,
            "output": case.output,
            "prior": case.prior,
            "posterior": case.posterior,
            "ratio": case.ratio,
            "attained": case.attained,
        }
        if case.row is not None:
            records = {"row": case.row, "known": case.known, "values": case.values}
            witness.update(records)
        data["witness"] = witness
    if claim is not None:
        data.update(at_most=claim, holds=holds)
    return data


def _spelled(value: object) -> str | None:
    """A ratio, unless it is too long for anyone to read."""
    if not isinstance(value, Fraction):
        return None
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > LONGEST_BITS:
        return None
    return str(value)
