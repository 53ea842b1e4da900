"""What a channel file holds: its space and its probabilities, as people spell them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from whosin.documents import MOST_SPELLED, Spelled, check_keys
from whosin.errors import InvalidInput
from whosin.exact import rational
from whosin.spaces import Count, Lattice, Records, Space, Subsets
from whosin.validation import excerpt


def space_from(data: dict[str, object]) -> tuple[Space, Lattice | None]:
    """The worlds, and the counts of people where a file has a row for each count."""
    kind = data.get("kind")
    people = {"kind", "entities"}
    fields = {"subsets": people, "counts": people, "records": {"kind", "rows", "values"}}
    if not isinstance(kind, str) or kind not in fields:
        raise InvalidInput("space kind", "'subsets', 'counts' or 'records'", repr(kind))
    check_keys(data, sorted(fields[kind]), "space")
    if kind != "records":
        entities = data.get("entities")
        if not isinstance(entities, list | int):
            raise InvalidInput("entities", "a list of names or a number", repr(entities))
        space = Subsets(entities)
        return space, Count().lattice(space) if kind == "counts" else None
    rows, values = data.get("rows"), data.get("values")
    if not isinstance(rows, int) or not isinstance(values, int):
        raise InvalidInput("rows and values", "whole numbers", f"{rows!r} and {values!r}")
    return Records(rows, values), None


def space_data(space: Space, *, counted: bool = False) -> dict[str, object]:
    """A space as a channel file has it."""
    if isinstance(space, Records):
        return {"kind": "records", "rows": space.rows, "values": space.values}
    plain = space.entities == tuple(range(space.size))
    entities = space.size if plain else named(space.entities, "entities")
    return {"kind": "counts" if counted else "subsets", "entities": entities}


def named(names: Iterable[object], field: str) -> list[object]:
    """Names that JSON has: text, numbers, and tuples of these as lists.

    Raises:
        InvalidInput: there is another one.
    """
    result: list[object] = []
    for name in names:
        if not isinstance(name, str | int | float | tuple | None):
            raise InvalidInput(field, "text, numbers or tuples of these in a file", excerpt(name))
        result.append(named(name, field) if isinstance(name, tuple) else name)
    return result


def decimals(probabilities: object) -> object:
    """Read decimals as the people who wrote them meant them, where every row then sums to 1.

    In a table of more than `MOST_SPELLED` entries decimals are the floats nearest to them."""
    if not isinstance(probabilities, list) or not all(isinstance(r, list) for r in probabilities):
        raise InvalidInput("probabilities", "a list of lists", type(probabilities).__name__)
    for number, row in enumerate(probabilities):
        for column, entry in enumerate(row):
            if isinstance(entry, bool) or not isinstance(entry, int | float | str):
                where = f"probability in row {number}, column {column}"
                raise InvalidInput(where, "a number or a string such as '1/3'", repr(entry))
    if sum(map(len, probabilities)) > MOST_SPELLED:
        return probabilities
    try:
        meant = [[_meant(entry) for entry in row] for row in probabilities]
        sums = [sum(rational(entry) for entry in row) for row in meant]
    except InvalidInput:
        return probabilities
    quoted = any(type(entry) is str for row in probabilities for entry in row)
    if quoted or all(total == 1 for total in sums):
        return meant
    return [[float(v) if isinstance(v, Spelled) else v for v in row] for row in probabilities]


def _meant(entry: int | float | str) -> int | float | str | Fraction:
    if isinstance(entry, float) and np.isfinite(entry):
        return Fraction(repr(entry))
    return rational(str(entry)) if isinstance(entry, Spelled) else entry
