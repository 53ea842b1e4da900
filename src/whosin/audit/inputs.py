"""Pairs of neighbouring inputs to try: what one person can change in a vector of queries.

Each of `length` queries moves by at most 1 when one person's data does. *add-remove*: a person who
comes adds to some queries, so all changes have one sign. *replace*: one person for another, so
every query may move either way. The patterns are those under which known mistakes leak (Ding et al.
2018, Bichsel et al. 2021), and steps at several places.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.errors import UnknownName
from whosin.exact import rational
from whosin.validation import whole

RELATIONS = ("add-remove", "replace")


@dataclass(frozen=True, eq=False)
class InputPair:
    """Two neighbouring inputs, with a name for the way in which they differ."""

    name: str
    with_: object
    without: object


def neighbours(length: int, relation: str = "add-remove", base: object = 0) -> list[InputPair]:
    """Pairs of vectors of `length` query answers around `base`.

    >>> [pair.name for pair in neighbours(2)]
    ['first query', 'last query', 'all queries']
    """
    if relation not in RELATIONS:
        raise UnknownName("relation", str(relation), RELATIONS)
    length = whole(length, "length", 1)
    start = float(rational(base, "base"))
    zero, one = np.zeros(length), np.ones(length)
    first, last = zero.copy(), zero.copy()
    first[0] = last[-1] = 1
    half = (np.arange(length) < (length + 1) // 2).astype(float)
    result = [
        ("first query", first, zero),
        ("last query", last, zero),
        ("all queries", one, zero),
        ("half of the queries", half, zero),
        ("all but the first query", one - first, zero),
        ("all but the last query", one - last, zero),
    ]
    if relation == "replace":
        result += [
            ("first query up, the rest down", first, one - first),
            ("last query up, the rest down", last, one - last),
            ("first half up, second half down", half, one - half),
        ]
        for count in (2, 3, length // 4):
            tail = (np.arange(length) >= length - count).astype(float)
            if 1 < count < length:
                result.append((f"last {count} queries up, the rest down", tail, one - tail))
    pairs: dict[tuple[bytes, bytes], InputPair] = {}
    for name, up, down in result:
        key = (up.tobytes(), down.tobytes())
        if key not in pairs and (up != down).any():
            pairs[key] = InputPair(name, up + start, down + start)
    return list(pairs.values())


STEPS = (-20.0, -5.0, -1.0, 1.0, 5.0, 20.0)


def shifted(pair: InputPair, rng: np.random.Generator) -> InputPair:
    """A pair nearby for a search that climbs: some answers moved in both inputs by as much, so that
    the two stay neighbours. Inputs that are no numbers stay as they are."""
    try:
        one, two = (np.array(value, dtype=float) for value in (pair.with_, pair.without))
    except (TypeError, ValueError):
        return pair
    if one.shape != two.shape or one.ndim > 1:
        return pair
    move = rng.choice(STEPS)
    name = pair.name.removesuffix(MOVED) + MOVED
    if one.ndim == 0:
        return InputPair(name, float(one + move), float(two + move))
    move = np.where(rng.random(one.shape) < rng.choice([0.2, 0.5, 1.0]), move, 0.0)
    return InputPair(name, one + move, two + move)


MOVED = ", moved"
