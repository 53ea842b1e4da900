"""Groups of people who come and go together (Li13 4.1): families, households, copies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from whosin.exact import Array
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Family,
    Worst,
    check_prior,
    independent_beliefs,
    output_columns,
    two_worlds,
)
from whosin.families.independent import Independent
from whosin.priors import Prior, Table
from whosin.spaces.arrays import exceeds_best, first_at_least, largest_ratio
from whosin.spaces.quotients import CountLattice, Lattice, spread_on_grid
from whosin.spaces.worlds import Subsets
from whosin.validation import MAX_POPULATION, read_whole, spelled_whole


@dataclass(frozen=True)
class Cliques(Family):
    """D_NI^k: disjoint groups of at most k entities, each present or absent as one, independent.

    The worst ratio is between T and T with one group added. The largest likelihood over all
    additions of at most j entities follows from that of j − 1, so all groups cost k n 2^n K.
    """

    k: int

    name: ClassVar[str] = "cliques"
    form: ClassVar[str] = "=k"
    example: ClassVar[str] = "cliques=4"
    key: ClassVar[str] = "linked"
    symbol: ClassVar[str] = "D_NI^k"
    definition: ClassVar[str] = "groups of at most k entities present or absent together"
    source: ClassVar[str] = "Li13, section 4.1"
    downward: ClassVar[bool] = True
    upward: ClassVar[bool] = True
    theorems: ClassVar[tuple[str, ...]] = ("T1", "T7")

    def __post_init__(self) -> None:
        read_whole(self.k, "k", 1, MAX_POPULATION)

    def adversary(self) -> Adversary:
        return Adversary(*WHOLE_RANGE, self.relation, group=self.k, theorems=("T7",))

    def includes(self, other: Family) -> bool:
        if isinstance(other, Cliques):
            return other.k <= self.k
        return Independent().includes(other)  # a group of one is a person

    def canonical(self) -> Family:
        return Independent() if self.k == 1 else self

    def words(self) -> str:
        return (
            f"someone who knows that up to {self.k} people are in or out together, and believes "
            "anything at all about that person"
        )

    @property
    def argument(self) -> str:
        return str(self.k)

    @classmethod
    def parse(cls, argument: str) -> Self:
        return cls(spelled_whole(argument, "k in cliques=k"))

    def contains(self, prior: Prior, space: Subsets) -> bool:
        check_prior(prior, space)
        worlds = {w: mass for w, mass in enumerate(prior.probabilities(space)) if mass}
        presence = [tuple(w >> e & 1 for w in worlds) for e in range(space.size)]
        groups: dict[tuple[int, ...], list[int]] = {}
        for entity, pattern in enumerate(presence):
            key = pattern if 0 < sum(pattern) < len(pattern) else (entity, *pattern)
            groups.setdefault(key, []).append(entity)
        leaders = [members[0] for members in groups.values()]
        if max(map(len, groups.values())) > self.k:
            return False
        merged: dict[int, Fraction] = {}
        for world, mass in worlds.items():
            merged[sum(1 << i for i, e in enumerate(leaders) if world >> e & 1)] = mass
        return independent_beliefs(Table(merged), Subsets(len(leaders))) is not None

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        grid, array = spread_on_grid(lattice, likelihoods)
        best: tuple[Any, int, int] | None = None
        for start, piece in output_columns(array, 1 << 24):
            reach = _extreme_reachable(grid, piece, self.k, positive)
            sides = (reach, piece) if positive else (piece, reach)
            ratio = largest_ratio(*sides)
            if best is None or exceeds_best(ratio, best[0]):
                base, output = first_at_least(*sides, ratio)
                best = ratio, int(base), start + int(output)
        assert best is not None
        ratio, base, output = best
        group, world = _find_group(grid, array[:, output], base, self.k, positive)
        known = grid.representative(base)
        yield Worst(
            ratio=ratio,
            entity=group[0],
            output=output,
            low=Fraction(0),
            high=Fraction(1),
            prior=two_worlds(grid.space, (*known, *group), known),
            present=((lattice.class_of(grid.representative(world)), Fraction(1)),),
            absent=((lattice.class_of(known), Fraction(1)),),
        )


def _extreme_reachable(grid: CountLattice, array: Array, k: int, positive: bool) -> Array:
    """The extreme likelihood over all ways to add at most k entities to each class."""
    best = np.maximum if positive else np.minimum
    reach = array
    for _ in range(min(k, grid.space.size)):
        further = reach.copy()
        for kind in range(len(grid.kinds)):
            below = grid.axis(further, kind)[:, :-1]
            best(below, grid.axis(reach, kind)[:, 1:], out=below)
        reach = further
    return reach


def _find_group(
    grid: CountLattice, column: Array, base: int, k: int, positive: bool
) -> tuple[list[int], int]:
    """A group of one to k entities that leads from the base to the extreme likelihood."""
    frontier: dict[int, list[int]] = {base: []}
    seen: dict[int, list[int]] = {}
    for _ in range(min(k, grid.space.size)):
        further: dict[int, list[int]] = {}
        for world, kinds in frontier.items():
            present = grid.counts(world)
            for kind, stride in enumerate(grid.strides):
                if present[kind] + 1 < grid.lengths[kind]:
                    further.setdefault(world + stride, [*kinds, kind])
        seen.update({world: kinds for world, kinds in further.items() if world not in seen})
        frontier = further
    if not seen:  # the base is everyone, reached only when no ratio exceeds 1
        return [grid.kinds[0][0]], base
    pick = max if positive else min
    world = pick(seen, key=lambda candidate: column[candidate])
    counts, group = list(grid.counts(base)), []
    for kind in seen[world]:
        group.append(grid.kinds[kind][counts[kind]])
        counts[kind] += 1
    return group, world
