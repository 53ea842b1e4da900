"""Households: any dependence inside a block of people, none between blocks."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational, probability
from whosin.priors.base import TOLERANCE, AsNumber, Prior
from whosin.spaces.count_lattice import CountLattice, as_grid
from whosin.spaces.lattice import Lattice
from whosin.spaces.memory import require_table
from whosin.spaces.records import Records
from whosin.spaces.subsets import Subsets
from whosin.validation import listed, tables

Block = tuple[Sequence[Hashable], Mapping[Any, object]]


@dataclass(frozen=True, eq=False)
class Blocks(Prior):
    """Pr[T] = ∏ over blocks of Pr[T ∩ block].

    On a count, a sum or a histogram the blocks' numbers add up, so thousands of blocks are a few
    thousand shifts of an array.

    Args:
        blocks: for each block its members and a mapping from the set of those present to its
            probability; sets left out have probability 0. Everyone belongs to exactly one block.
    """

    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        seen: set[Hashable] = set()
        accepted = "pairs of the members and a mapping from sets of them to probabilities"
        for number, (members, table) in enumerate(tables(self.blocks, "blocks", accepted)):
            twice = seen & set(members)
            if twice or len(set(members)) != len(members):
                raise InvalidInput(
                    f"block {number}", "people of no other block", sorted(map(str, twice))
                )
            seen |= set(members)
            for present in table:
                outside = set(listed(present, f"block {number}", "sets of its members"))
                outside -= set(members)
                if outside:
                    raise InvalidInput(
                        f"block {number}", "sets of its members", sorted(map(str, outside))
                    )
        for number, table in enumerate(self._exact):
            total = sum(table.values(), Fraction(0))
            if abs(total - 1) > TOLERANCE:
                by = f"sum {float(total):.12g} (off by {float(total - 1):+.3g})"
                raise InvalidInput(f"block {number}", "probabilities with sum 1", by)

    @classmethod
    def cliques(cls, groups: Sequence[Sequence[Hashable]], p: object) -> Blocks:
        """Each group is present as a whole with probability p, else absent as a whole."""
        out, accepted = 1 - probability(p, "p"), "lists of the members of each"
        result = [listed(group, "groups", accepted) for group in listed(groups, "groups", accepted)]
        return cls([(group, {group: p, (): out}) for group in result])

    @cached_property
    def _exact(self) -> list[dict[frozenset[Hashable], Fraction]]:
        tables = []
        for _members, table in self.blocks:
            merged: dict[frozenset[Hashable], Fraction] = {}
            for present, mass in table.items():
                key = frozenset(present)
                merged[key] = merged.get(key, Fraction(0)) + probability(mass, "probabilities")
            tables.append(merged)
        return tables

    @cached_property
    def _block_of(self) -> dict[Hashable, int]:
        return {
            member: number for number, (members, _) in enumerate(self.blocks) for member in members
        }

    @property
    def parameters(self) -> tuple[object, ...]:
        return tuple(mass for _, table in self.blocks for mass in table.values())

    def check(self, space: Subsets) -> None:
        if set(self._block_of) != set(space.entities):
            raise InvalidInput("blocks", "every entity in exactly one block", "not so")

    def mass(self, lattice: Lattice, number: AsNumber) -> Array:
        self.check(lattice.space)
        return self._sum(lattice, self._exact, number)

    def given(self, lattice: Lattice, entity: int, number: AsNumber) -> tuple[Array, Array]:
        self.check(lattice.space)
        name = lattice.space.entities[entity]
        own, belief = self._block_of[name], self.belief(lattice.space, entity)
        sides = []
        for inside in (True, False):
            share = belief if inside else 1 - belief
            kept = (
                {s: m / share for s, m in self._exact[own].items() if (name in s) is inside}
                if share
                else {}
            )
            tables = [*self._exact[:own], kept, *self._exact[own + 1 :]]
            sides.append(self._sum(lattice, tables, number))
        return sides[0], sides[1]

    def role(self, grid: CountLattice, entity: int) -> Hashable:
        """What the entity's conditionals depend on: how its block moves the class with and
        without it. The other blocks' part is the same for all blocks that move it alike."""
        name = grid.space.entities[entity]
        moves: dict[tuple[int, bool], Fraction] = {}
        for present, mass in self._exact[self._block_of[name]].items():
            key = grid.class_of(grid.space.position(member) for member in present), name in present
            moves[key] = moves.get(key, Fraction(0)) + mass
        return frozenset(moves.items())

    def _sum(
        self,
        lattice: Lattice,
        tables: list[dict[frozenset[Hashable], Fraction]],
        number: AsNumber,
    ) -> Array:
        """The distribution over classes: shift and add, block by block."""
        kind = float if number is float else object
        if not isinstance(lattice, CountLattice):
            grid, _ = as_grid(lattice, np.zeros((lattice.worlds, 1)))
            spread = np.zeros(lattice.worlds, dtype=kind)
            np.add.at(spread, lattice.labels(), self._sum(grid, tables, number))
            return spread
        positions = {name: position for position, name in enumerate(lattice.space.entities)}
        moves: list[dict[int, Fraction]] = []
        for table in tables:
            move: dict[int, Fraction] = {}
            for present, mass in table.items():
                shift = lattice.class_of(positions[name] for name in present)
                move[shift] = move.get(shift, Fraction(0)) + mass
            moves.append(move)
        total = np.zeros(lattice.worlds, dtype=kind)
        if number is float:
            total[0], reached = 1.0, 1
            for move in moves:
                moved = np.zeros_like(total)
                for shift, mass in move.items():
                    moved[shift : shift + reached] += total[:reached] * float(mass)
                total, reached = moved, reached + max(move, default=0)
            return total
        for index, weight in enumerate(_product(moves)):
            total[index] = number(weight)
        return total

    def check_records(self, space: Records) -> None:
        """On records a row is a person, by number, and its value whether they are present."""
        if space.values != 2:
            raise InvalidInput("values", "2 for blocks: absent, present", space.values)
        if set(self._block_of) != set(range(space.rows)):
            raise InvalidInput("blocks", f"rows 0 to {space.rows - 1}, each in one block", "not so")

    def tables(self) -> list[tuple[tuple[int, ...], tuple[Fraction, ...]]]:
        """For each block its rows, and the probability of each of their worlds, first row first."""
        result = []
        for (members, _), table in zip(self.blocks, self._exact, strict=True):
            rows = tuple(sorted(members))  # type: ignore[type-var]
            require_table("a table over a block", 1 << len(rows), 16)
            masses = [Fraction(0)] * (1 << len(rows))
            for present, mass in table.items():
                masses[sum(1 << (len(rows) - 1 - rows.index(who)) for who in present)] = mass
            result.append((rows, tuple(masses)))
        return result  # type: ignore[return-value]

    def on_records(self, space: Records, number: AsNumber) -> Array:
        """With two values: row i is 1 where person i is present."""
        self.check_records(space)
        require_table("a table over all records", space.worlds, 1)
        order: list[int] = []
        mass = np.array([number(1)], dtype=float if number is float else object)
        for rows, masses in self.tables():
            order += rows
            mass = np.multiply.outer(
                mass, np.array([number(p) for p in masses], mass.dtype)
            ).ravel()
        axes = mass.reshape((2,) * space.rows).transpose(np.argsort(order))
        return np.ascontiguousarray(axes).reshape(-1)

    def belief(self, space: Subsets, entity: int) -> Fraction:
        name = space.entities[entity]
        table = self._exact[self._block_of[name]]
        return sum((m for s, m in table.items() if name in s), Fraction(0)) / sum(table.values())


def _product(moves: list[dict[int, Fraction]]) -> list[Any]:
    """The coefficients of ∏ over blocks of Σ mass · x^shift, by halves."""
    from flint import fmpq_poly

    factors = []
    for move in moves:
        entries = [flint_rational(0)] * (max(move, default=0) + 1)
        for shift, mass in move.items():
            entries[shift] = flint_rational(mass)
        factors.append(fmpq_poly(entries))
    while len(factors) > 1:
        pairs = [factors[start : start + 2] for start in range(0, len(factors), 2)]
        factors = [pair[0] * pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
    return list(factors[0].coeffs())
