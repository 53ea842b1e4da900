"""Search for the worst pair of neighbouring inputs: vectors of query answers, or tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from whosin.audit.events import Audit
from whosin.audit.neighbouring_inputs import SearchDraws, count_events, explore_outputs, open_inputs
from whosin.audit.sampling import (
    MIN_DRAWS,
    AuditTerms,
    Mechanism,
    MechanismInput,
    Progress,
    vectorise,
)
from whosin.errors import InvalidInput, UnknownName, invalid_value, spell
from whosin.exact import rational
from whosin.validation import read_whole, shorten_value

# Pairs of neighbouring inputs to try: what one person can change in a vector of queries.
#
# Each of `length` queries moves by at most 1 when one person's data does. *add-remove*: a person
# who comes adds to some queries, so all changes have one sign. *replace*: one person for another,
# so every query may move either way. The patterns are those under which known mistakes leak (Ding
# et al. 2018, Bichsel et al. 2021), and steps at several places.


NEIGHBOUR_RELATIONS = ("add-remove", "replace")


@dataclass(frozen=True, eq=False)
class InputPair:
    """Two neighbouring inputs, with a name for the way in which they differ."""

    name: str
    with_: object
    without: object


def neighbouring_vectors(
    length: int, relation: str = "add-remove", base: object = 0
) -> list[InputPair]:
    """Pairs of vectors of `length` query answers around `base`.

    >>> [pair.name for pair in neighbouring_vectors(2)]
    ['first query', 'last query', 'all queries']
    """
    if relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    length = read_whole(length, "length", 1)
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


SHIFT_STEPS = (-20.0, -5.0, -1.0, 1.0, 5.0, 20.0)


def shift_pair(pair: InputPair, rng: np.random.Generator) -> InputPair:
    """A pair nearby for a search that climbs: some answers moved in both inputs by as much, so that
    the two stay neighbours. Inputs that are no numbers stay as they are."""
    try:
        one, two = (np.array(value, dtype=float) for value in (pair.with_, pair.without))
    except (TypeError, ValueError):
        return pair
    if one.shape != two.shape or one.ndim > 1:
        return pair
    move = rng.choice(SHIFT_STEPS)
    name = pair.name.removesuffix(MOVED_SUFFIX) + MOVED_SUFFIX
    if one.ndim == 0:
        return InputPair(name, float(one + move), float(two + move))
    move = np.where(rng.random(one.shape) < rng.choice([0.2, 0.5, 1.0]), move, 0.0)
    return InputPair(name, one + move, two + move)


MOVED_SUFFIX = ", moved"


# A search over pairs of inputs that spends its samples where leakage shows. Pairs compete on
# samples that are not counted afterwards. In each round every pair that is left gets the same
# number of fresh draws, and the half that promises more goes on (successive halving: Jamieson and
# Talwalkar 2016). The one pair that is left is counted on fresh draws, so its bounds are as valid
# as those of `two_worlds`, however many pairs were tried.


COMPETING_SHARE = 0.4
"""The part of the samples on which pairs compete, and the last pair's event is chosen."""
MAX_PAIRS = 1000
"""Pairs that are tried at most."""
NEARBY_PAIRS = 4
"""Pairs that compete at each step of a climb: the best one and others near it."""
Move = Callable[[InputPair, np.random.Generator], InputPair]


def search(  # noqa: PLR0913 (public parameters, all by name)
    mechanism: Mechanism,
    pairs: Iterable[object],
    samples: int,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    seed: int | None = None,
    progress: Progress | None = None,
    climb: int = 0,
    move: Move = shift_pair,
    timing: bool = False,
    float_bits: bool = True,
) -> Audit:
    """Find the pair of neighbouring inputs that leaks most, and bound its leakage from below.

    Args:
        mechanism: as for `two_worlds`. pairs: of inputs (with, without): from
        `neighbouring_vectors`, or any of your own, also a generator. samples: draws of each input,
        over all pairs and stages together. climb: how many times the best pair competes with pairs
        nearby (hill climbing), on a part
            of the same samples.
        move: makes a pair nearby, `move(pair, rng)`; by default answers of a vector are moved in
            both inputs alike.
        timing, float_bits: as for `two_worlds`.
    """
    terms = AuditTerms.read(samples, confidence, delta, seed, progress, float_bits)
    draw, entrants = vectorise(mechanism), _read_pairs(pairs)
    rounds = max(1, math.ceil(math.log2(len(entrants))))
    climbs = read_whole(climb, "climb", 0)
    share = int(terms.samples * COMPETING_SHARE) // (rounds + climbs)
    if share // max(len(entrants), NEARBY_PAIRS if climbs else 1) < MIN_DRAWS // 4:
        needed = math.ceil(MIN_DRAWS // 4 * len(entrants) * (rounds + climbs) / COMPETING_SHARE)
        raise invalid_value(
            "samples", f"at least {spell(needed)} for {len(entrants)} pairs", samples
        )
    seeds = terms.seeds.spawn(2 * len(entrants))
    quiet = replace(terms, tell=lambda _count: None)
    left: list[tuple[InputPair, tuple[MechanismInput, MechanismInput], SearchDraws | None]] = []
    for index, pair in enumerate(entrants):
        own = seeds[2 * index : 2 * index + 2]
        turn_seed = terms.seeds.spawn(1)[0] if timing else None
        inputs = open_inputs(draw, pair.with_, pair.without, own, pair.name, turn_seed=turn_seed)
        left.append((pair, inputs, None))
    spent = 0
    for step in range(rounds):
        size = share // len(left)
        judged = []
        for pair, inputs, seen in left:
            fresh = explore_outputs(inputs, size, quiet)
            seen = fresh if seen is None else seen.join(fresh)
            chosen = seen.choices(round(terms.samples * (1 - COMPETING_SHARE)), terms)
            judged.append((chosen.promise, (pair, inputs, seen), chosen))
        terms.tell(size * len(left))
        spent += size * len(left)
        judged.sort(key=lambda each: -each[0])
        keep = 1 if step == rounds - 1 else max(2, math.ceil(len(left) / 2))
        left = [each for _promise, each, _chosen in judged[:keep]]
    _promise, (pair, inputs, seen), chosen = judged[0]
    rng = np.random.default_rng(terms.seeds.spawn(1)[0])
    for _ in range(climbs):
        size, judged = share // NEARBY_PAIRS, []
        nearby = [pair, *(move(pair, rng) for _ in range(NEARBY_PAIRS - 1))]
        for each in nearby:
            own = terms.seeds.spawn(2)
            turn_seed = terms.seeds.spawn(1)[0] if timing else None
            around = open_inputs(
                draw, each.with_, each.without, own, each.name, turn_seed=turn_seed
            )
            fresh = explore_outputs(around, size, quiet)
            chosen = fresh.choices(round(terms.samples * (1 - COMPETING_SHARE)), terms)
            judged.append((chosen.promise, (each, around, fresh), chosen))
        terms.tell(size * NEARBY_PAIRS)
        spent += size * NEARBY_PAIRS
        best = max(judged, key=lambda each: each[0])
        if best is judged[0] and seen is not None:  # the old pair, better known
            seen = seen.join(best[1][2])
        else:
            _promise, (pair, inputs, seen), _chosen = best
        chosen = seen.choices(round(terms.samples * (1 - COMPETING_SHARE)), terms)
    return count_events(
        inputs, seen, terms.samples - spent, terms, chosen=chosen, pattern=pair.name
    )


def _read_pairs(pairs: Iterable[object]) -> list[InputPair]:
    """Read the pairs of inputs, each with a name."""
    result = []
    try:
        items = list(islice(pairs, MAX_PAIRS + 1))
    except TypeError:
        accepted = "a list or generator of (with, without) pairs"
        raise invalid_value("pairs", accepted, type(pairs).__name__) from None
    for index, item in enumerate(items):
        if isinstance(item, InputPair):
            result.append(item)
        elif isinstance(item, tuple | list) and len(item) == 2:
            result.append(InputPair(f"pair {index}", item[0], item[1]))
        else:
            raise invalid_value("pairs", "(with, without) pairs of inputs", shorten_value(item))
    if not 1 <= len(result) <= MAX_PAIRS:
        message = f"search takes up to {MAX_PAIRS} pairs, and there are more"
        if not result:
            message = "there are no pairs to search"
        raise InvalidInput(message, field="pairs", value=len(result))
    return result


# Pairs of neighbouring tables to try: a person more, a person less, one person for another.
#
# The people who are most likely to show are tried first: the largest and the smallest of each
# numeric column, those with the rarest values, then others by chance. A table is a data frame, an
# array with a row a person, or a list of rows (mappings, tuples or single values). Names of pairs
# say row numbers, never values.


MAX_PEOPLE = 12


def neighbour_tables(
    table: Any,
    relation: str = "add-remove",
    *,
    person: str | None = None,
    people: int = MAX_PEOPLE,
    seed: int = 0,
) -> list[InputPair]:
    """Pairs of tables that differ in one person.

    Args:
        person: the column that says whose a row is; by default each row is a person of its own.
        people: how many people are tried.

    >>> [pair.name for pair in neighbour_tables([1, 5, 2], people=1)]
    ['row 1 or not', 'row 1 twice or once', 'row 1 alone or nobody']
    """
    if relation not in NEIGHBOUR_RELATIONS:
        raise UnknownName("relation", str(relation), NEIGHBOUR_RELATIONS)
    if not hasattr(table, "__len__") or isinstance(table, str | bytes | dict):
        accepted = "a data frame, an array or a list of rows"
        raise invalid_value("table", accepted, type(table).__name__)
    if len(table) < 2:
        message = f"the table has {len(table)} rows, and neighbouring tables need at least 2"
        raise InvalidInput(message, field="table", value=len(table))
    groups = _rows_by_person(table, person)
    chosen = _telling_people(
        table, groups, read_whole(people, "people", 1), np.random.default_rng(seed)
    )
    result: list[InputPair] = []
    for index, rows in enumerate(chosen):
        result += _table_pairs(table, rows, chosen[index - 1], relation)
    return result


def _table_pairs(
    table: Any, rows: list[int], others: list[int], relation: str
) -> Iterator[InputPair]:
    every = list(range(len(table)))
    rest = [row for row in every if row not in set(rows)]
    name = f"row {rows[0]}" if len(rows) == 1 else f"the person of row {rows[0]}"
    if relation == "add-remove":
        yield InputPair(f"{name} or not", table, _take_rows(table, rest))
        yield InputPair(f"{name} twice or once", _take_rows(table, every + rows), table)
        yield InputPair(f"{name} alone or nobody", _take_rows(table, rows), _take_rows(table, []))
    elif others != rows:
        yield InputPair(f"{name} or row {others[0]} again", table, _take_rows(table, rest + others))


def _take_rows(table: Any, rows: list[int]) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[rows].reset_index(drop=True)
    if isinstance(table, np.ndarray):
        return table[rows]
    if hasattr(table, "columns"):  # a frame without an index
        return table[rows]
    return [table[row] for row in rows]


def _table_columns(table: Any) -> dict[Any, list[Any]]:
    if hasattr(table, "columns") and not callable(table.columns):
        return {name: list(table[name]) for name in table.columns}
    rows = list(table)
    if isinstance(rows[0], dict):
        return {name: [row.get(name) for row in rows] for name in rows[0]}
    if isinstance(rows[0], tuple | list | np.ndarray):
        return {column: [row[column] for row in rows] for column in range(len(rows[0]))}
    return {0: rows}


def _rows_by_person(table: Any, person: str | None) -> list[list[int]]:
    """The rows of each person."""
    if person is None:
        return [[row] for row in range(len(table))]
    columns = _table_columns(table)
    if person not in columns:
        raise UnknownName("person", person, [str(name) for name in columns])
    result: dict[Any, list[int]] = {}
    for row, who in enumerate(columns[person]):
        result.setdefault(who, []).append(row)
    return list(result.values())


def _telling_people(
    table: Any, groups: list[list[int]], people: int, rng: np.random.Generator
) -> list[list[int]]:
    """The people most likely to show."""
    owner = {row: group for group, rows in enumerate(groups) for row in rows}
    chosen: dict[int, None] = {}
    for values in _table_columns(table).values():
        try:
            numbers = np.array(values, dtype=float)
            extremes = [int(np.nanargmax(numbers)), int(np.nanargmin(numbers))]
        except (TypeError, ValueError):
            counts = Counter(map(repr, values))
            rarest = min(counts, key=lambda value: counts[value])
            extremes = [[repr(value) for value in values].index(rarest)]
        for row in extremes:
            chosen[owner[row]] = None
    for group in rng.permutation(len(groups)).tolist():
        chosen[group] = None
    return [groups[group] for group in list(chosen)[:people]]
