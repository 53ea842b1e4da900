"""Which tables a prior treats alike, and which rows are independent of each other (F14, T20)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, reduce
from itertools import accumulate, combinations, product

import numpy as np

from whosin.errors import InvalidInput, Unsupported, invalid_value, spell
from whosin.exact import Array, flint_rational, log_up, rational
from whosin.priors import Blocks, Exchangeable, Independent, Prior, PriorSet, Table, Uniform
from whosin.spaces import Records, Space

# Counting: ways to split a number of rows.


def list_compositions(total: int, parts: int) -> Array:
    """All ways to write `total` as an ordered sum of `parts` whole numbers."""
    count = math.comb(total + parts - 1, parts - 1)
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(count, parts - 1)
    ends = np.full((count, 1), total + parts - 1)
    starts = np.full((count, 1), -1)
    return np.diff(np.hstack([starts, bars, ends]), axis=1) - 1


def numbers_of_rows(numbers: dict[bytes, int], rows: Array) -> Array:
    """The number of each row, by a dictionary of rows' bytes."""
    return np.array([numbers[row.tobytes()] for row in np.ascontiguousarray(rows)], dtype=np.int64)


def outer_combine(combine: np.ufunc, parts: Iterable[Array]) -> Array:
    """One number for each combination of entries of the parts, the last part varying fastest."""
    return reduce(lambda total, part: combine.outer(total, part).ravel(), parts)


@lru_cache(maxsize=64)
def log_factorials(most: int) -> Array:
    """ln k! for k up to `most`."""
    return np.array([math.lgamma(k + 1) for k in range(most + 1)])


def multinomial_coefficient(counts: list[int]) -> int:
    """How many ways there are to arrange these numbers of each kind."""
    totals = accumulate(counts)
    return math.prod(math.comb(total, count) for total, count in zip(totals, counts, strict=True))


# Joint types: tables of pairs (x, y) up to exchanging rows that the prior treats alike (F14).
#
# A group of k exchangeable rows has one type for each m × m table N, N[a][b] counting the rows with
# x_i = a and y_i = b; several groups have the product of their types. One group of all rows is the
# exchangeable case, n groups of one row are the full program, so that both are one algorithm.
#
# A *move* is a pair of neighbours seen through their types: one row changes from x_i = a to a'
# while its y_i = b stays. With M(t) the number of y that have type t with a given x, and w_t = M(t)
# A(y|x),
#
#     A(y|x) / A(y|x') = w_t · N[a][b] (r_a' + 1) / ( w_t' · r_a (N[a'][b] + 1) )
#
# with r the row sums of t.


@dataclass(frozen=True)
class TypeMoves:
    """Neighbours: from type `source` to type `target`, with the integers of the ratio above."""

    source: Array
    target: Array
    above: Array
    below: Array


class Group:
    """The types of k exchangeable rows of m values."""

    def __init__(self, rows: int, values: int) -> None:
        self.rows, self.values = rows, values
        self.tables = list_compositions(rows, values * values).reshape(-1, values, values)
        self.counts = list_compositions(rows, values)
        numbers = {row.tobytes(): index for index, row in enumerate(self.counts)}
        self.inputs = numbers_of_rows(numbers, self.tables.sum(axis=2))
        self.outputs = numbers_of_rows(numbers, self.tables.sum(axis=1))

    @cached_property
    def log_ways(self) -> Array:
        """ln of the number of y with this type, given x."""
        logs = log_factorials(self.rows)
        rows = logs[self.tables.sum(axis=2)].sum(axis=1)
        return np.asarray(rows - logs[self.tables].sum(axis=(1, 2)))

    @cached_property
    def log_arrangements(self) -> Array:
        """ln of the number of x with these counts."""
        logs = log_factorials(self.rows)
        return np.asarray(logs[self.rows] - logs[self.counts].sum(axis=1))

    def ways(self, index: int) -> int:
        """The number of y with this type, given x, exactly."""
        return math.prod(multinomial_coefficient(row) for row in self.tables[index].tolist())

    def arrangements(self, index: int) -> int:
        """The number of x with these counts, exactly."""
        return multinomial_coefficient(self.counts[index].tolist())

    @cached_property
    def moves(self) -> TypeMoves:
        numbers = {table.tobytes(): index for index, table in enumerate(self.tables)}
        sums = self.tables.sum(axis=2)
        result = []
        for b in range(self.values):
            for a in range(self.values):
                source = np.flatnonzero(self.tables[:, a, b])
                for other in range(self.values):
                    if other == a:
                        continue
                    moved = self.tables[source].copy()
                    moved[:, a, b] -= 1
                    moved[:, other, b] += 1
                    above = self.tables[source, a, b] * (sums[source, other] + 1)
                    below = sums[source, a] * (self.tables[source, other, b] + 1)
                    result.append((source, numbers_of_rows(numbers, moved), above, below))
        return TypeMoves(*(np.concatenate(parts) for parts in zip(*result, strict=True)))


class Types:
    """The product of the types of several groups, the last group varying fastest."""

    def __init__(self, sizes: tuple[int, ...], values: int) -> None:
        self.sizes, self.values = sizes, values
        self.groups = [group(size, values) for size in sizes]
        self.shape = tuple(len(part.tables) for part in self.groups)
        self.counts_shape = tuple(len(part.counts) for part in self.groups)
        self.inputs = self._combined([part.inputs for part in self.groups], self.counts_shape)
        self.outputs = self._combined([part.outputs for part in self.groups], self.counts_shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def _combined(self, parts: list[Array], radix: tuple[int, ...]) -> Array:
        total = np.zeros(1, dtype=np.int64)
        for part, base in zip(parts, radix, strict=True):
            total = (total[:, None] * base + part[None, :]).ravel()
        return total

    def cost(self, matrix: Array) -> Array:
        """Σ N[a][b] · matrix[a][b] for each type."""
        return outer_combine(np.add, [np.tensordot(part.tables, matrix, 2) for part in self.groups])

    @cached_property
    def log_ways(self) -> Array:
        return outer_combine(np.add, [part.log_ways for part in self.groups])

    @cached_property
    def ways(self) -> Array:
        """The number of y with each type, given x, exactly (whole numbers of any size)."""
        ways = ([part.ways(index) for index in range(len(part.tables))] for part in self.groups)
        return outer_combine(np.multiply, (np.array(each, dtype=object) for each in ways))

    @cached_property
    def log_arrangements(self) -> Array:
        """For each combination of counts."""
        return outer_combine(np.add, [part.log_arrangements for part in self.groups])

    @cached_property
    def counts(self) -> list[tuple[tuple[int, ...], ...]]:
        """The counts of each group, for each combination."""
        return list(product(*(map(tuple, part.counts.tolist()) for part in self.groups)))

    @cached_property
    def moves(self) -> TypeMoves:
        result = []
        for position, part in enumerate(self.groups):
            before = np.arange(math.prod(self.shape[:position]))
            after = np.arange(math.prod(self.shape[position + 1 :]))
            move = part.moves
            step = len(after)
            base = before[:, None, None] * (self.shape[position] * step) + after[None, None, :]
            spread = np.ones_like(base)
            places = (base + each[None, :, None] * step for each in (move.source, move.target))
            factors = (spread * each[None, :, None] for each in (move.above, move.below))
            result.append([each.ravel() for each in (*places, *factors)])
        return TypeMoves(*(np.concatenate(parts) for parts in zip(*result, strict=True)))


group = lru_cache(maxsize=32)(Group)
types = lru_cache(maxsize=16)(Types)
"""The types of a partition of the rows, kept for the next call."""


# What is too large, and which structure would make it possible.

MAX_VARIABLES = 20_000
"""Variables of a linear program."""
MAX_INEQUALITIES = 120_000
"""Inequalities of a linear program."""
MAX_UNSTRUCTURED_WORLDS = 4096
"""Worlds of a prior that is written out."""


def check_size(what: str, count: int, unit: str, most: int, field: str, hint: str) -> None:
    """Refuse what is out of reach; the hint says which structure would help."""
    if count > most:
        message = f"{what} {spell(count)} {unit}, more than {spell(most)}"
        raise Unsupported(message, field=field, value=count, hint=hint)


def number_of_types(sizes: tuple[int, ...], values: int) -> int:
    """∏ C(k + m² − 1, m² − 1), without building them."""
    cells = values * values
    return math.prod(math.comb(size + cells - 1, cells - 1) for size in sizes)


def number_of_moves(sizes: tuple[int, ...], values: int) -> int:
    """How many pairs of neighbours there are by type, without building them."""
    total, cells = number_of_types(sizes, values), values * values
    # A move needs a row in its cell: the other rows have any type.
    return sum(
        total
        // number_of_types((size,), values)
        * (cells * (values - 1) * number_of_types((size - 1,), values))
        for size in sizes
    )


def need_types(sizes: tuple[int, ...], values: int, most: int) -> None:
    """Refuse more types than that, and say which structure would help."""
    n, m, needed = sum(sizes), values, number_of_types(sizes, values)
    if needed <= most:
        return
    alike = number_of_types((n,), m)
    fit = next(k for k in range(n, 0, -1) if k == 1 or number_of_types((k,), m) <= MAX_VARIABLES)
    better = (
        f"if the prior treated all rows alike (exchangeable) it would be {spell(alike)}, and "
        if alike <= MAX_VARIABLES
        else f"with rows that the prior treats alike {fit} rows of {m} values fit, and "
    )
    what = f"the best mechanism for {n} rows of {m} values in groups of "
    what += f"{', '.join(map(str, sizes))} needs"
    hint = f"{better}independent rows or blocks are solved one by one, however many"
    check_size(what, needed, "variables", most, "space", hint)


def need_moves(sizes: tuple[int, ...], values: int) -> None:
    """Refuse more inequalities than a program can have."""
    what = f"the best mechanism for {sum(sizes)} rows of {values} values has"
    closed = "independent rows with Hamming distortion have a closed form for any number"
    moves, hint = number_of_moves(sizes, values), f"use fewer values; {closed}"
    check_size(what, moves, "inequalities", MAX_INEQUALITIES, "space", hint)


def need_worlds(worlds: int) -> None:
    """Refuse to write out a prior of more worlds."""
    what = "a prior without declared structure would be written out for"
    small = "Blocks for rows that depend on each other only within small groups"
    hint = f"use Independent, Uniform or Exchangeable, or {small}"
    check_size(what, worlds, "worlds", MAX_UNSTRUCTURED_WORLDS, "prior", hint)


# A prior on records, seen through its symmetry and its independent parts (F14, T20).
#
# Exchanging two rows of one of the `groups` leaves the prior as it is; `independent_blocks` are
# sets of rows that are independent of each other, each with a structure of its own. Everything
# about the prior that a level depends on is kept in exact rationals.

MAX_SUMMED_TYPES = 1 << 20
"""Types of a table that is only summed over."""


@dataclass(frozen=True, eq=False)
class Block:
    """Independent copies of the same few rows: their prior, and the rows of each copy."""

    structure: Structure
    copies: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Structure:
    """A prior on records, seen through its symmetry.

    Args:
        space: the tables.
        prior: the prior.
        groups: rows that can be exchanged, each row in one group.
        rows: the distribution of each row where rows are independent, else nothing.
        table: the exact mass of each world, where the prior was written out.
        blocks: the independent parts of a prior that has several.
    """

    space: Records
    prior: Prior
    groups: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[Fraction, ...], ...] | None = None
    table: tuple[Fraction, ...] | None = None
    blocks: tuple[Block, ...] = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many rows each group has."""
        return tuple(map(len, self.groups))

    @cached_property
    def types(self) -> Types:
        """The joint types of pairs (x, y) under the symmetry."""
        need_types(self.sizes, self.space.values, MAX_SUMMED_TYPES)
        return types(self.sizes, self.space.values)

    @cached_property
    def world_masses(self) -> list[Fraction]:
        """The probability of *one* world with these counts, for each combination of counts; with a
        total that may differ from 1 as the prior's numbers do."""
        if self.rows is not None:
            first = [self.rows[group[0]] for group in self.groups]
            chances = [p for row in first for p in row]
            flat = ([count for part in counts for count in part] for counts in self.types.counts)
            one = Fraction(1)
            return [math.prod(map(pow, chances, counts), start=one) for counts in flat]
        if isinstance(self.prior, Exchangeable):
            return [
                rational(self.prior.sizes[ones]) / math.comb(self.space.rows, ones)
                for ((_zeros, ones),) in self.types.counts
            ]
        assert self.table is not None
        return [self.table[self.space.index(world)] for world in self.representatives]

    @cached_property
    def representatives(self) -> list[tuple[int, ...]]:
        """One world with each combination of counts."""
        result = []
        for counts in self.types.counts:
            world = [0] * self.space.rows
            for group, part in zip(self.groups, counts, strict=True):
                values = [value for value, count in enumerate(part) for _ in range(count)]
                for row, value in zip(group, values, strict=True):
                    world[row] = value
            result.append(tuple(world))
        return result

    @cached_property
    def exact_masses(self) -> list[Fraction]:
        """The probability of each combination of counts, with sum 1."""
        parts, shape = self.types.groups, self.types.counts_shape
        result = [
            mass * math.prod(part.arrangements(i) for part, i in zip(parts, at, strict=True))
            for mass, at in zip(self.world_masses, np.ndindex(*shape), strict=True)
        ]
        total = sum(result, Fraction(0))
        return result if total == 1 else [mass / total for mass in result]

    @cached_property
    def masses(self) -> Array:
        """The same in floats."""
        logs = self.types.log_arrangements
        result = np.array([exact_log(mass) for mass in self.world_masses]) + logs
        return np.asarray(np.exp(result) / np.exp(result).sum())

    @cached_property
    def odds(self) -> Array:
        """p(x)/p(x') for each move, in floats."""
        logs = np.array([exact_log(mass) for mass in self.world_masses])
        moves = self.types.moves
        inputs = self.types.inputs
        return np.asarray(np.exp(logs[inputs[moves.source]] - logs[inputs[moves.target]]))

    @cached_property
    def marginals(self) -> tuple[tuple[Fraction, ...], ...]:
        """The distribution of each row."""
        if self.rows is not None:
            return self.rows
        result: list[tuple[Fraction, ...]] = [()] * self.space.rows
        if self.blocks:
            for block in self.blocks:
                for copy in block.copies:
                    for row, inside in zip(copy, block.structure.marginals, strict=True):
                        result[row] = inside
            return tuple(result)
        for number, group in enumerate(self.groups):
            shares = [Fraction(0)] * self.space.values
            for mass, counts in zip(self.exact_masses, self.types.counts, strict=True):
                for value, count in enumerate(counts[number]):
                    shares[value] += mass * Fraction(count, len(group))
            for row in group:
                result[row] = tuple(shares)
        return tuple(result)

    @cached_property
    def spread(self) -> float:
        """ε_X = max over neighbours of ln p_X(x)/p_X(x'); infinite where the prior has zeros."""
        if self.blocks:
            return max(block.structure.spread for block in self.blocks)
        if self.rows is not None:
            kinds = [self.rows[group[0]] for group in self.groups]
            ratios = [max(row) / min(row) if min(row) else math.inf for row in kinds]
            return log_up(max(ratios))
        masses = self.world_masses if self.table is None else list(self.table)
        if not all(masses):
            return math.inf
        if self.table is not None:
            shape = (self.space.values,) * self.space.rows
            cube = np.array(self.table, dtype=object).reshape(shape)
            sides = (np.moveaxis(cube, a, 0).reshape(len(cube), -1) for a in range(cube.ndim))
            return log_up(max((side.max(axis=0) / side.min(axis=0)).max() for side in sides))
        moves, inputs = self.types.moves, self.types.inputs
        pairs = set(zip(inputs[moves.source].tolist(), inputs[moves.target].tolist(), strict=True))
        return log_up(max(masses[i] / masses[j] for i, j in pairs))

    @cached_property
    def entropy(self) -> float:
        """The entropy H(X) of the prior, in nats."""
        if self.blocks:
            return sum(len(block.copies) * block.structure.entropy for block in self.blocks)
        if self.rows is not None:
            kinds = [(len(group), self.rows[group[0]]) for group in self.groups]
            return sum(many * float(p) * -exact_log(p) for many, row in kinds for p in row if p)
        logs = np.array([exact_log(mass) for mass in self.world_masses])
        seen = self.masses > 0
        return abs(float(np.sum(self.masses[seen] * logs[seen])))


def exact_log(value: Fraction) -> float:
    """ln, also of fractions too small for a float."""
    if not value:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)


# Which rows a prior treats alike, and which are independent of each other (F14, T20).
#
# A prior of independent rows, of blocks or of exchangeable rows says so itself; for any other one
# transpositions are tried on its table, with exact rationals. "Can be exchanged" is an equivalence,
# so the groups are its classes.


def find_structure(space: Space, prior: Prior) -> Structure:
    """The symmetry of a prior on records."""
    if not isinstance(space, Records):
        raise invalid_value("space", "Records(rows, values)", repr(space))
    if not isinstance(prior, Prior):
        raise invalid_value("prior", "a prior on records", repr(prior))
    if isinstance(prior, Uniform):
        row = (Fraction(1, space.values),) * space.values
        return Structure(space, prior, (tuple(range(space.rows)),), (row,) * space.rows)
    if isinstance(prior, Independent):
        rows = tuple(prior.rows(space))
        if all(row is rows[0] for row in rows):
            return Structure(space, prior, (tuple(range(space.rows)),), rows)
        alike: dict[tuple[Fraction, ...], list[int]] = {}
        for number, row in enumerate(rows):
            alike.setdefault(row, []).append(number)
        return Structure(space, prior, tuple(map(tuple, alike.values())), rows)
    if isinstance(prior, Exchangeable):
        if space.values != 2 or len(prior.sizes) != space.rows + 1:
            sizes = f"{space.rows + 1} sizes and two values of a row"
            message = f"an exchangeable prior for {space.rows} rows has {sizes}"
            raise InvalidInput(message, field="prior", value=prior)
        return Structure(space, prior, (tuple(range(space.rows)),))
    if isinstance(prior, Blocks):
        return _block_structure(space, prior)
    if not isinstance(prior, PriorSet):  # which is refused at any size
        need_worlds(space.worlds)
    table = prior.on_records(space, flint_rational)
    groups = _exchangeable_rows(table.reshape((space.values,) * space.rows))
    return Structure(space, prior, groups, None, tuple(rational(mass) for mass in table))


def independent_blocks(known: Structure) -> tuple[Block, ...]:
    """The independent parts: single rows where rows are independent, or the whole table."""
    if known.blocks:
        return known.blocks
    if known.rows is None:
        return (Block(known, (tuple(range(known.space.rows)),)),)
    result: dict[tuple[Fraction, ...], list[tuple[int, ...]]] = {}
    for group in known.groups:
        result.setdefault(known.rows[group[0]], []).extend((row,) for row in group)
    return tuple(Block(one_row(row), tuple(copies)) for row, copies in result.items())


@lru_cache(maxsize=256)
def one_row(row: tuple[Fraction, ...]) -> Structure:
    """One row on its own."""
    return Structure(Records(1, len(row)), Independent([row]), ((0,),), (row,))


def _block_structure(space: Records, prior: Blocks) -> Structure:
    prior.check_records(space)
    result: dict[tuple[Fraction, ...], list[tuple[int, ...]]] = {}
    for positions, masses in prior.tables():
        need_worlds(len(masses))
        result.setdefault(masses, []).append(positions)
    if len(prior.blocks) == 1:
        return find_structure(space, Table(next(iter(result))))
    made, groups = [], []
    for masses, copies in result.items():
        small = Records(len(copies[0]), 2)
        inside = find_structure(small, Table(masses))
        made.append(Block(inside, tuple(copies)))
        for copy in copies:
            groups += [tuple(copy[row] for row in group) for group in inside.groups]
    return Structure(space, prior, tuple(groups), blocks=tuple(made))


def _exchangeable_rows(table: Array) -> tuple[tuple[int, ...], ...]:
    """Classes of rows that can be exchanged."""
    groups: list[list[int]] = []
    for row in range(table.ndim):
        for group in groups:
            if bool((np.swapaxes(table, group[0], row) == table).all()):
                group.append(row)
                break
        else:
            groups.append([row])
    return tuple(map(tuple, groups))
