"""Search, certificate and witness over records, for every set of known rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.exact import Array, certificate_precision, divide_up, exact_fraction
from whosin.mechanisms import Channel, read_channel
from whosin.notions.base import CLAIM_TOLERANCE, Level, Notion, Witness
from whosin.spaces import Records, Space
from whosin.spaces.arrays import require_memory, scaled_products
from whosin.spaces.worlds import need_records

# Search, certificate and witness over records: what the notions about rows share (F12).
#
# Numbers are FLINT rationals, or Arb balls where e^x enters. A search in floats hands over every
# case within `NEAR_RATIO` of the best; the level is the largest of them. Where there are too many
# to recompute, the best is enlarged by `NEAR_RATIO` instead, more than the rounding of the search;
# where that shows, the level is a bracket.

NEAR_RATIO = 2.0**-40
"""More than the relative error of a search in floats: cases this close are all recomputed."""
MAX_NEAR_CASES = 1 << 12
"""How many near cases are kept."""
MAX_RECOMPUTED_ENTRIES = 1 << 14
"""How many entries may be recomputed for one level, and how many where they are balls."""
MAX_RECOMPUTED_BALLS = 1 << 11


class Certain:
    """Exact likelihoods of a channel's outputs under a prior."""

    def __init__(self, channel: Channel, mass: Array) -> None:
        assert isinstance(channel.space, Records)
        self.channel, self.space, self.mass = channel, channel.space, mass
        shape = (self.space.values,) * self.space.rows
        self._worlds = np.arange(self.space.worlds).reshape(shape)
        self._entries: dict[tuple[int, int], Any] = {}
        self.budget = MAX_RECOMPUTED_BALLS if channel.entries.in_balls else MAX_RECOMPUTED_ENTRIES

    def worlds(self, known: Mapping[int, int]) -> list[int]:
        """The possible worlds in which these rows have these values."""
        selection = tuple(known.get(row, slice(None)) for row in range(self.space.rows))
        return [int(w) for w in np.ravel(self._worlds[selection]) if self.mass[w] != 0]

    def entry(self, world: int, output: int) -> Any:
        """Pr[y | world], up to a factor common to all worlds."""
        if (world, output) not in self._entries:
            self._entries[world, output] = self.channel.entries.at(world, output)
        return self._entries[world, output]

    def given(self, known: Mapping[int, int], entry: Callable[[int], Any]) -> Any | None:
        """Σ Pr[world | these rows] · entry(world); None where the rows are impossible."""
        worlds = self.worlds(known)
        if not worlds:
            return None
        with certificate_precision():
            total = sum((self.mass[w] for w in worlds[1:]), self.mass[worlds[0]])
            terms = [entry(w) * (self.mass[w] / total) for w in worlds]
            return sum(terms[1:], terms[0])

    def likelihood(self, known: Mapping[int, int], output: int) -> Any | None:
        """Pr[y | these rows]."""
        return self.given(known, lambda world: self.entry(world, output))


def bracket_level(value: float, attained: float) -> tuple[bool, float | None]:
    """(whether a level is exact, its lower end where it is not), from the level and from what its
    case attains, both rounded up: exact where no claim can tell them apart."""
    if value <= attained * (1 + CLAIM_TOLERANCE):
        return True, None
    return False, max(0.0, math.nextafter(attained, 0.0))


class Nearest:
    """The cases of a search that are within `NEAR_RATIO` of its best; where some are infinite, the
    first of these."""

    def __init__(self) -> None:
        self.best: Any = None
        self.cases: list[tuple[Any, tuple[int, ...], Callable[[tuple[int, ...]], Any]]] = []

    def add(self, values: Array, name: Callable[[tuple[int, ...]], Any]) -> None:
        """Keep what is near the best so far; `name` turns a position into a case."""
        most = values.max()
        if self.best is not None and not most >= self.best * (1 - NEAR_RATIO):
            return
        if self.best is None or most > self.best:
            self.best = most
            self.cases = [case for case in self.cases if case[0] >= most * (1 - NEAR_RATIO)]
        if np.isinf(most):
            positions = np.array([np.unravel_index(values.argmax(), values.shape)])
        else:
            positions = np.argwhere(values >= self.best * (1 - NEAR_RATIO))
        for result in positions[: max(1, MAX_NEAR_CASES - len(self.cases))]:
            position = tuple(map(int, result))
            self.cases.append((values[position], position, name))

    def certified(
        self,
        recompute: Callable[[Any], tuple[Fraction | float, Any]],
        cost: Callable[[Any], int],
        budget: int,
    ) -> tuple[Fraction | float, Fraction | float, Any]:
        """(a ratio that no case exceeds, the largest ratio recomputed, what came with it).

        Args:
            recompute: the exact ratio of a case, or one just above, and what shows it.
            cost: how many entries that takes.
            budget: how many there may be in all.
        """
        near = self.cases[:1] if np.isinf(self.best) else self.cases
        best: tuple[Fraction | float, Any] | None = None
        work, all_kept = 0, len(near) < MAX_NEAR_CASES
        for _, position, name in near:
            case = name(position)
            work += cost(case)
            if best is not None and work > budget:
                all_kept = False
                break
            result = recompute(case)
            if best is None or result[0] > best[0]:
                best = result
        assert best is not None
        upper = best[0] if all_kept else exact_fraction(self.best) * (1 + Fraction(NEAR_RATIO))
        return max(best[0], upper), *best


def case_along(
    space: Records, row: int, outputs: int, position: tuple[int, ...]
) -> tuple[int, tuple[int, ...], int]:
    """(row, the worlds that differ in it only, output) of a position in the table along a row."""
    before, (after, output) = position[0], divmod(position[1], outputs)
    stride = space.stride(row)
    first = before * space.values * stride + after
    return row, tuple(first + value * stride for value in range(space.values)), output


def largest_pair(sides: Iterable[tuple[int, Any]]) -> tuple[Fraction | float, int, int]:
    """(largest ratio of two likelihoods, the value on top, the value below), from (value,
    likelihood); where all values are equally likely, the first value twice."""
    listed = [(value, likelihood) for value, likelihood in sides if likelihood is not None]
    best: tuple[Fraction | float, int, int] = (Fraction(1), listed[0][0], listed[0][0])
    for high, top in listed:
        for low, bottom in listed:
            ratio = divide_up(top, bottom) if high != low else Fraction(1)
            if ratio > best[0]:
                best = ratio, high, low
    return best


def value_witness(
    output: Hashable,
    ratio: Fraction | float,
    row: int,
    values: tuple[int, int],
    known: Mapping[int, int],
    exact: bool,
    belief: Fraction = Fraction(1, 2),
) -> Witness:
    """Two values of a row, as likely as each other before, and an output that tells them apart."""
    after = Fraction(1) if ratio == math.inf else Fraction(ratio) / (1 + Fraction(ratio))
    numbers = belief, after, ratio
    return Witness.shown(output, numbers, exact, row=row, known=dict(known), values=values)


def level_from_ratio(
    notion: Notion,
    scale: Callable[[Fraction | float], float],
    upper: Fraction | float,
    attained: Fraction | float,
    case: Witness,
    theorems: tuple[str, ...] = (),
    note: str = "",
) -> Level:
    """A level from a ratio that no case exceeds and one that a case attains; `scale` takes a ratio
    to a level, rounded up and at least 0."""
    value = max(scale(upper), 0.0)
    exact, lower = bracket_level(value, max(scale(attained), 0.0))
    return Level(value, case, exact, theorems, lower, notion=notion, note=note)


def record_channel(mechanism: object, space: Space | None) -> tuple[Channel, Records]:
    """The channel of a mechanism and its space, or an error if it is not about records."""
    channel = read_channel(mechanism, space)
    return channel, need_records(channel.space, "this notion")


# Likelihoods for every set of known rows at once.
#
# Each row of a table of records is given one more value, "unknown", whose slice is the sum of the
# others: (m+1)^n entries hold Pr[y, x_i, x_S] and Pr[x_i, x_S] for every set S of known rows.
# Conditioning events of probability 0 become NaN and are passed over. These tables are for
# searching, in floats wide enough that nothing underflows; `certain` recomputes what they find.

MAX_COLUMN_ENTRIES = 1 << 24
"""How many entries of the larger table are held at once."""


def require_conditions(space: Records) -> None:
    """Refuse spaces of whose rows not every set can be looked at as known."""
    fits = "14 rows of two values do; Bayesian DP of noise on a sum needs no such table"
    cells = (space.values + 1) ** space.rows
    require_memory("a table over all sets of known rows", 4 * 8 * cells, fits)


def conditional_likelihoods(
    array: Array, mass: Array, space: Records
) -> Iterator[tuple[int, Array]]:
    """(first output, Pr[y | known rows]) for the outputs, a few at a time: (m+1)^n × outputs.

    Each output's likelihoods are up to a factor of its own, which cancels in every ratio.
    """
    require_conditions(space)
    cells = (space.values + 1) ** space.rows
    weights, array = scaled_products(mass, array)
    known = _add_unknown_values(weights[:, None], space)
    step = max(1, MAX_COLUMN_ENTRIES // cells)
    for start in range(0, array.shape[1], step):
        joint = _add_unknown_values(weights[:, None] * array[:, start : start + step], space)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield start, joint / np.where(known > 0, known, np.nan)


def possible_conditions(mass: Array, space: Records) -> Array:
    """Which conditions have a positive probability: (m+1)^n."""
    return _add_unknown_values((mass != 0).astype(np.float64)[:, None], space)[:, 0] > 0


def _add_unknown_values(table: Array, space: Records) -> Array:
    """Give every row the value "unknown": the sum over its values."""
    columns = table.shape[1]
    for row in reversed(range(space.rows)):
        # Rows after this one are extended already, those before it not yet.
        after = (space.values + 1) ** (space.rows - 1 - row) * columns
        view = table.reshape(-1, space.values, after)
        table = np.concatenate([view, view.sum(axis=1, keepdims=True)], axis=1)
    return table.reshape(-1, columns)


def row_axis(table: Array, space: Records, row: int) -> Array:
    """View the table as (before, values and unknown, after, outputs) along one row."""
    after = (space.values + 1) ** (space.rows - 1 - row)
    return table.reshape(-1, space.values + 1, after, table.shape[1])


def entry_coordinates(index: int, space: Records) -> list[int | None]:
    """The value of each row at an entry of the table; None where it is unknown."""
    digits = np.unravel_index(index, (space.values + 1,) * space.rows)
    return [None if digit == space.values else int(digit) for digit in digits]
