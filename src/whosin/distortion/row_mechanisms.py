"""Mechanisms on rows: by row, by block, by type; exact draws; and what a search returns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise, product
from typing import Any, Protocol

import numpy as np

from whosin.distortion.symmetry import Types
from whosin.errors import InvalidInput, invalid_value, read_list
from whosin.exact import Array, flint_array, probability
from whosin.mechanisms import Channel, Mechanism
from whosin.priors import Independent, Prior
from whosin.spaces import Records, Space
from whosin.spaces.arrays import require_memory

# Exact draws: from rational probabilities, with no rounding of a threshold.
#
# A uniform number is revealed 62 bits at a time: it is below a threshold, above it, or its bits so
# far agree with the threshold's, and only then are more needed. For simulation: the bits come from
# numpy's generator, which is not secure randomness.

WORD_BITS = 62


def checked_table(space: Records, table: Sequence[int] | Array) -> Array:
    """The rows of one table of a space, refused where they are not that."""
    rows = np.asarray(table, dtype=np.int64)
    if rows.shape != (space.rows,) or ((rows < 0) | (rows >= space.values)).any():
        message = f"table must have {space.rows} values from 0 to {space.values - 1}"
        raise InvalidInput(message, field="table", value=rows.shape)
    return rows


def need_pairs(own: Records, space: Space | None) -> None:
    """Refuse another space than the mechanism's own, and one too large to write out."""
    if space is not None and space != own:
        raise InvalidInput(
            f"the mechanism is on {own!r}, not on {space!r}", field="space", value=space
        )
    require_memory("a table of worlds by worlds", 200 * own.worlds**2)


def draw_below(limit: int, rng: np.random.Generator) -> int:
    """A uniform whole number from 0 to limit − 1."""
    bits = limit.bit_length()
    while True:
        drawn = int.from_bytes(rng.bytes((bits + 7) // 8), "little") >> (-bits % 8)
        if drawn < limit:
            return drawn


def drawn_index(ends: Sequence[int], rng: np.random.Generator) -> int:
    """An index drawn with probability proportional to the steps of the cumulative sums `ends`."""
    return bisect_right(ends, draw_below(int(ends[-1]), rng))


def draw_choices(
    tables: Sequence[Sequence[Fraction]], which: Array, rng: np.random.Generator
) -> Array:
    """One draw from `tables[which]` for each entry of `which`, each table a distribution."""
    inner = [list(accumulate(table))[:-1] for table in tables]
    cells = np.array([[int(end * 2**WORD_BITS) for end in ends] for ends in inner], dtype=np.int64)
    cells = cells.reshape(len(tables), -1)
    drawn = rng.integers(0, 1 << WORD_BITS, len(which))
    mine = cells[which]
    result = (drawn[:, None] >= mine).sum(axis=1)
    for number in np.flatnonzero((drawn[:, None] == mine).any(axis=1)):
        result[number] = _reveal_bits(inner[which[number]], int(drawn[number]), rng)
    return np.asarray(result)


def _reveal_bits(ends: list[Fraction], drawn: int, rng: np.random.Generator) -> int:
    """Go on revealing bits of a number that begins with `drawn` until it is certain where the
    number lies."""
    bits = WORD_BITS
    while True:
        low, high = Fraction(drawn, 1 << bits), Fraction(drawn + 1, 1 << bits)
        first, last = bisect_right(ends, low), bisect_right(ends, high)
        # The number is in [low, high): a threshold equal to `high` does not divide it.
        if first == last or all(end == high for end in ends[first:last]):
            return first
        drawn = drawn << WORD_BITS | int(rng.integers(0, 1 << WORD_BITS))
        bits += WORD_BITS


# A mechanism that draws the type of (x, y), then y uniformly among the tables of that type.


@dataclass(frozen=True, eq=False)
class ByType(Mechanism):
    """Pr[y|x] = W_t / (S · M(t)), t the type of (x, y), S the sum of W over the types of x's
    counts, and M(t) the number of y with type t: a rational number.

    Args:
        space: the tables.
        groups: rows that are exchanged freely.
        types: the joint types of these groups.
        shares: W, whole numbers.
    """

    space: Records
    groups: tuple[tuple[int, ...], ...]
    types: Types
    shares: Array

    @cached_property
    def _by_counts(self) -> list[tuple[Array, list[int]]]:
        """For each combination of counts: its types, and their cumulative shares."""
        order = np.argsort(self.types.inputs, kind="stable")
        ends = np.searchsorted(self.types.inputs[order], np.arange(len(self.types.counts) + 1))
        parts = [order[start:end] for start, end in pairwise(ends)]
        return [(chosen, list(accumulate(self.shares[chosen].tolist()))) for chosen in parts]

    @property
    def totals(self) -> Array:
        """S for each combination of counts."""
        return np.array([steps[-1] for _, steps in self._by_counts], dtype=object)

    @property
    def weights(self) -> Array:
        """The probability of each type given the counts of x, in floats."""
        return np.asarray((self.shares / self.totals[self.types.inputs]).astype(float))

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        need_pairs(self.space, space)
        size = self.space.worlds
        from flint import fmpq

        digits = np.array(list(self.space))
        index = np.zeros((size, size), dtype=np.int64)
        for rows, part in zip(self.groups, self.types.groups, strict=True):
            base = len(rows) + 1
            cells = base ** np.arange(part.values**2, dtype=object).reshape(part.values, -1)
            # A table of counts is a number in base k + 1, one digit a cell.
            number = {key: i for i, key in enumerate((part.tables * cells).sum(axis=(1, 2)))}
            seen = np.zeros((size, size), dtype=object)
            for row in rows:
                seen += cells[digits[:, row][:, None], digits[:, row][None, :]]
            mine = np.array([number[key] for key in seen.ravel()]).reshape(size, size)
            index = index * len(part.tables) + mine
        bottoms = self.totals[self.types.inputs] * self.types.ways
        each = np.empty(self.types.size, dtype=object)
        each[:] = [fmpq(top, bottom) for top, bottom in zip(self.shares, bottoms, strict=True)]
        return Channel(self.space, each[index], list(self.space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output for one table without building the m^n worlds, as `channel` has it.

        For simulation, not for release: numpy's generator is not secure randomness.
        """
        rows, m = checked_table(self.space, table), self.space.values
        counts = tuple(
            tuple(np.bincount(rows[list(group)], minlength=m).tolist()) for group in self.groups
        )
        chosen, steps = self._by_counts[self._number_of[counts]]
        out = np.empty_like(rows)
        at = np.unravel_index(int(chosen[drawn_index(steps, rng)]), self.types.shape)
        for group, part, index in zip(self.groups, self.types.groups, at, strict=True):
            positions = np.array(group)
            for a in range(m):
                mine = rng.permutation(positions[rows[positions] == a])
                out[mine] = np.repeat(np.arange(m), part.tables[index, a])
        return out

    @cached_property
    def _number_of(self) -> dict[tuple[tuple[int, ...], ...], int]:
        return {counts: number for number, counts in enumerate(self.types.counts)}


# Mechanisms that treat independent blocks of rows each on its own.


class Drawn(Protocol):
    """A mechanism on records that can be sampled."""

    def channel(self, space: Space | None = None) -> Channel: ...

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array: ...


@dataclass(frozen=True, eq=False)
class PerBlock(Mechanism):
    """Pr[y|x] = ∏ over blocks of Pr[y_B|x_B].

    Args:
        space: the tables.
        parts: for each kind of block its mechanism, and the rows of each block of that kind.
    """

    space: Records
    parts: tuple[tuple[Drawn, tuple[tuple[int, ...], ...]], ...]

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        need_pairs(self.space, space)
        size, m = self.space.worlds, self.space.values
        digits = np.array(list(self.space))
        table = np.full((size, size), flint_array([1], (1,))[0], dtype=object)
        for mechanism, copies in self.parts:
            inside = mechanism.channel(Records(len(copies[0]), m))
            for rows in copies:
                number = digits[:, rows] @ (m ** np.arange(len(rows))[::-1])
                table = table * inside.rationals[np.ix_(number, number)]
        return Channel(self.space, table, list(self.space))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output block by block. For simulation, not for release."""
        rows = checked_table(self.space, table)
        out = np.empty_like(rows)
        for mechanism, copies in self.parts:
            for positions in copies:
                out[list(positions)] = mechanism.sample(rows[list(positions)], rng)
        return out


@dataclass(frozen=True, eq=False)
class ByTable(Mechanism):
    """Pr[y|x] written out for every table x.

    Args:
        space: the tables.
        matrix: a line for each table, in world order.
        outputs: the answers.
    """

    space: Records
    matrix: Matrix
    outputs: tuple[Any, ...]

    def channel(self, space: Space | None = None) -> Channel:
        need_pairs(self.space, space)
        flat = (entry for line in self.matrix for entry in line)
        table = flint_array(flat, (self.space.worlds, len(self.outputs)))
        return Channel(self.space, table, list(self.outputs))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Any:
        """Draw an answer for one table. For simulation, not for release."""
        world = self.space.index(tuple(map(int, checked_table(self.space, table))))
        (drawn,) = draw_choices([self.matrix[world]], np.zeros(1, dtype=np.int64), rng)
        return self.outputs[int(drawn)]


# Mechanisms that treat each row on its own: one matrix a row, of values by what is shown.
#
# Randomised response (E_d, Wang14 eq. 30), the identifiability-optimal E_i of independent rows
# (eq. 29), constants, and the rate–distortion channels of independent rows are all of this kind.

Matrix = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True)
class PerRow(Mechanism):
    """Pr[y|x] = ∏ over rows of matrix_i[x_i][y_i].

    Args:
        matrices: one stochastic matrix for each row; or a single one that serves every row of a
            table of any length.
    """

    matrices: tuple[Matrix, ...]

    def __post_init__(self) -> None:
        seen: set[int] = set()
        accepted = "matrices, each line with sum 1"
        for number, matrix in enumerate(read_list(self.matrices, "matrices", accepted)):
            if id(matrix) in seen:
                continue
            seen.add(id(matrix))
            for row in read_list(matrix, "matrices", accepted):
                read_list(row, "matrices", accepted)
                total = sum((probability(p, f"matrix of row {number}") for p in row), Fraction(0))
                if total != 1 or len(row) != len(self.matrices[0][0]):
                    field = f"matrix of row {number}"
                    message = f"{field} must have lines of one length that each add up to 1"
                    raise InvalidInput(message, field=field, value=total)

    def of_row(self, row: int) -> Matrix:
        return self.matrices[0] if len(self.matrices) == 1 else self.matrices[row]

    def channel(self, space: Space | None = None) -> Channel:
        """Written out over all m^n worlds, exactly."""
        if not isinstance(space, Records):
            raise invalid_value("space", "Records(rows, values)", repr(space))
        self._check(space.rows)
        require_memory("a table of worlds by worlds", 100 * space.worlds**2)
        table = flint_array([1], (1, 1))
        for row in range(space.rows):
            matrix = self.of_row(row)
            if len(matrix) != space.values:
                mine = f"the matrices are for {len(matrix)} values of a row"
                message = f"{mine}, and the space has {space.values}"
                raise InvalidInput(message, field="values", value=space.values)
            flat = (entry for line in matrix for entry in line)
            table = np.kron(table, flint_array(flat, (space.values, len(matrix[0]))))
        return Channel(space, table, list(product(range(len(matrix[0])), repeat=space.rows)))

    def sample(self, table: Sequence[int] | Array, rng: np.random.Generator) -> Array:
        """Draw an output for one table of any number of rows, in linear time, exactly as `channel`
        has it.

        For simulation, not for release: numpy's generator is not secure randomness.
        """
        rows = np.asarray(table, dtype=np.int64)
        self._check(len(rows))
        values = len(self.matrices[0])
        if rows.ndim != 1 or ((rows < 0) | (rows >= values)).any():
            message = f"table must be a list of values from 0 to {values - 1}"
            raise InvalidInput(message, field="table", value=rows.shape)
        kinds = {id(matrix): matrix for matrix in self.matrices}
        number = {key: index for index, key in enumerate(kinds)}
        which = np.array([number[id(matrix)] for matrix in self.matrices], dtype=np.int64)
        lines = [line for matrix in kinds.values() for line in matrix]
        return draw_choices(lines, which * values + rows, rng)

    def _check(self, rows: int) -> None:
        if len(self.matrices) not in (1, rows):
            message = f"there are {len(self.matrices)} matrices for {rows} rows"
            raise InvalidInput(
                message, field="rows", value=rows, hint="give one matrix, or one for each row"
            )


def exact_matrix(values: Array) -> Matrix:
    """A matrix of floats as exact rationals, each line scaled to sum 1."""
    lines = []
    for line in values:
        exact = [Fraction(float(value)) for value in line]
        total = sum(exact, Fraction(0))
        lines.append(tuple(value / total for value in exact))
    return tuple(lines)


def constant_mechanism(table: Sequence[int], values: int, outputs: int) -> PerRow:
    """Always the same table."""
    if len(set(table)) == 1:
        table = table[:1]
    lines = (tuple(Fraction(int(b == value)) for b in range(outputs)) for value in table)
    return PerRow(tuple((line,) * values for line in lines))


def identity_mechanism(values: int, outputs: int | None = None) -> PerRow:
    """Return the mechanism that shows the data themselves."""
    shown = range(values if outputs is None else outputs)
    lines = (tuple(Fraction(int(a == b)) for b in shown) for a in range(values))
    return PerRow((tuple(lines),))


# What the search for a best mechanism returns: at one level, and in all.

NOTION_NAMES = ("dp", "identifiability", "mutual-information")


@dataclass(frozen=True, eq=False)
class BestAtLevel:
    """A mechanism that keeps a level.

    Attributes:
        distortion: of the mechanism, or just above it.
        bound: no mechanism that keeps the level has less.
        form: how it was found: "E_d", "E_i", "likeliest", "constant" (closed forms that are optimal
            by a theorem), or "program".
        basis: for the solver to start from at a nearby level.
        trouble: why the solver stopped, where that was before the optimum.
    """

    distortion: Fraction
    bound: Fraction
    mechanism: Mechanism
    form: str = "program"
    basis: Any = None
    trouble: str = ""

    @property
    def gap(self) -> Fraction:
        return max(self.distortion - self.bound, Fraction(0))


@dataclass(frozen=True, eq=False)
class Optimum:
    """The least distortion for a level of privacy, or the least level for a distortion.

    Attributes:
        distortion: E d(X, Y) of the mechanism.
        epsilon: its guaranteed level under the notion (ε, or nats of mutual information).
        mutual_information: I(X; Y) of the mechanism, in nats.
        mechanism: it can be measured (`channel`) and sampled (`sample`); None where a curve point
            was asked for without one.
        gap: by how much the quantity that was not given may be above the true optimum; certified.
        lower, upper: closed-form bounds for the quantity that was not given (T16, T17).
        given: "epsilon" or "distortion".
        note: what there is to say about this case.
        prior: for a set of priors, the least favourable one found.
    """

    space: Records
    notion: str
    given: str
    distortion: float
    epsilon: float
    mutual_information: float
    mechanism: Mechanism
    gap: float
    lower: float
    upper: float
    theorems: tuple[str, ...] = ()
    note: str = field(default="")
    prior: Prior | None = None

    @property
    def prior_numbers(self) -> list[Any] | None:
        """The least favourable prior in floats: a list for each row, or a number for each table."""
        if isinstance(self.prior, Independent):
            return [[float(p) for p in row] for row in self.prior.rows(self.space)]
        return None if self.prior is None else self.prior.on_records(self.space, float).tolist()

    def to_dict(self) -> dict[str, object]:
        """Return the fields as plain data for JSON."""
        about = {"notion": self.notion, "rows": self.space.rows, "values": self.space.values}
        names = ("given", "distortion", "epsilon", "mutual_information", "gap", "lower", "upper")
        result = {name: getattr(self, name) for name in names}
        result |= {"theorems": list(self.theorems), "note": self.note}
        return {**about, **result, "prior": self.prior_numbers}
