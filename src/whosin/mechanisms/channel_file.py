"""What a channel file holds: its space and its probabilities, as people spell them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.spaces import Records, Space, Subsets


def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """A JSON object whose keys are distinct: of two equal keys one would be lost silently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1)
        raise InvalidInput("keys of an object", "distinct", f"{twice!r} more than once")
    return found


def space_from(data: dict[str, object]) -> Space:
    kind = data.get("kind")
    fields = {"subsets": {"kind", "entities"}, "records": {"kind", "rows", "values"}}
    if not isinstance(kind, str) or kind not in fields:
        raise InvalidInput("space kind", "'subsets' or 'records'", repr(kind))
    for key in data:
        if key not in fields[kind]:
            raise InvalidInput(
                "key of the space", f"one of {', '.join(sorted(fields[kind]))}", repr(key)
            )
    if kind == "subsets":
        entities = data.get("entities")
        if not isinstance(entities, list | int):
            raise InvalidInput("entities", "a list of names or a number", repr(entities))
        return Subsets(entities)
    rows, values = data.get("rows"), data.get("values")
    if not isinstance(rows, int) or not isinstance(values, int):
        raise InvalidInput("rows and values", "whole numbers", f"{rows!r} and {values!r}")
    return Records(rows, values)


def decimals(probabilities: object) -> object:
    """Read decimals as the people who wrote them meant them, where every row then sums to 1."""
    if not isinstance(probabilities, list) or not all(isinstance(r, list) for r in probabilities):
        raise InvalidInput("probabilities", "a list of lists", type(probabilities).__name__)
    for number, row in enumerate(probabilities):
        for column, entry in enumerate(row):
            if isinstance(entry, bool) or not isinstance(entry, int | float | str):
                where = f"probability in row {number}, column {column}"
                raise InvalidInput(where, "a number or a string such as '1/3'", repr(entry))
    if sum(map(len, probabilities)) > 1 << 16:
        return probabilities
    finite = [
        [Fraction(repr(v)) if isinstance(v, float) and np.isfinite(v) else v for v in row]
        for row in probabilities
    ]
    texts = any(isinstance(entry, str) for row in probabilities for entry in row)
    try:
        sums = [sum(rational(v) for v in row) for row in finite]
    except InvalidInput:
        return probabilities
    return finite if texts or all(total == 1 for total in sums) else probabilities
