"""A prior on records, seen through its symmetry and its independent parts (F14, T20).

Contract: exchanging two rows of one of the `groups` leaves the prior as it is;
`blocks` are sets of rows that are independent of each other, each with a structure of its own.
Everything about the prior that a level depends on is kept in exact rationals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from whosin.distortion.symmetry.joint_types import Types, types
from whosin.distortion.symmetry.size_limits import need_types
from whosin.exact import Array, log_up, rational
from whosin.priors import Exchangeable, Prior
from whosin.spaces import Records

MOST_KINDS = 1 << 20
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
        """The joint types."""
        need_types(self.sizes, self.space.values, MOST_KINDS)
        return types(self.sizes, self.space.values)

    @cached_property
    def world_masses(self) -> list[Fraction]:
        """The probability of *one* world with these counts, for each combination of counts; with a
        total that may differ from 1 as the prior's numbers do."""
        if self.rows is not None:
            first = [self.rows[group[0]] for group in self.groups]
            return [
                math.prod(
                    (
                        p**c
                        for row, part in zip(first, counts, strict=True)
                        for p, c in zip(row, part, strict=True)
                    ),
                    start=Fraction(1),
                )
                for counts in self.types.counts
            ]
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
        result = np.array([log(mass) for mass in self.world_masses]) + logs
        return np.asarray(np.exp(result) / np.exp(result).sum())

    @cached_property
    def odds(self) -> Array:
        """p(x)/p(x') for each move, in floats."""
        logs = np.array([log(mass) for mass in self.world_masses])
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
        """H(X) in nats."""
        if self.blocks:
            return sum(len(block.copies) * block.structure.entropy for block in self.blocks)
        if self.rows is not None:
            kinds = [(len(group), self.rows[group[0]]) for group in self.groups]
            return sum(many * float(p) * -log(p) for many, row in kinds for p in row if p)
        logs = np.array([log(mass) for mass in self.world_masses])
        seen = self.masses > 0
        return abs(float(np.sum(self.masses[seen] * logs[seen])))


def log(value: Fraction) -> float:
    """ln, also of fractions too small for a float."""
    if not value:
        return -math.inf
    return math.log(value.numerator) - math.log(value.denominator)
