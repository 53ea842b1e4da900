"""Independent priors (Li13 4.3, 4.4; Tramèr15), people who come and go together, and all priors."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import MAX_POPULATION, Unsupported, read_whole, spelled_whole
from whosin.exact import Array
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Bounded,
    Family,
    OtherPeople,
    Range,
    Shift,
    Worst,
    capped_ratio,
    check_prior,
    far_apart,
    independent_beliefs,
    is_nested,
    largest_shift,
    output_columns,
    two_worlds,
)
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior, Table
from whosin.spaces.arrays import (
    exceeds_best,
    first_at_least,
    ignore_division,
    largest_ratio,
    largest_ratios,
)
from whosin.spaces.quotients import (
    Addition,
    CountLattice,
    Lattice,
    MaximumLattice,
    Separation,
    as_count_lattice,
    spread_on_grid,
)
from whosin.spaces.statistics import Contributions, CountColumns
from whosin.spaces.worlds import Subsets


@dataclass(frozen=True)
class Independent(Bounded):
    """D_I, or D_I^[low, high] when uncertain entities have beliefs in [low, high] only.

    The worst ratio is between two neighbouring worlds, T with and without one entity: mixing
    pairs cannot raise it (Li13 Theorem 4.5). One pass over the likelihoods for each entity.
    """

    low: object = 0
    high: object = 1

    name: ClassVar[str] = "independent"
    example: ClassVar[str] = "independent=0.05..0.5"
    symbol: ClassVar[str] = "D_I"
    definition: ClassVar[str] = "entities are present independently"
    source: ClassVar[str] = "Li13, distribution family 4.3; Tramèr15 for bounded beliefs"
    theorems: ClassVar[tuple[str, ...]] = ("T1", "T4")

    @property
    def downward(self) -> bool:  # type: ignore[override]
        return self.bounds[0] == 0

    @property
    def upward(self) -> bool:  # type: ignore[override]
        return self.bounds[1] == 1

    def contains(self, prior: Prior, space: Subsets) -> bool:
        beliefs = independent_beliefs(prior, space)
        low, high = self.bounds
        return beliefs is not None and all(p in (0, 1) or low <= p <= high for p in beliefs)

    @property
    def limits(self) -> str:
        return f"{super().limits} unless known" if super().limits else ", each with any probability"

    @property
    def independent_beliefs(self) -> Range:
        return self.bounds

    def includes(self, other: Family) -> bool:
        within = other.independent_beliefs
        return within is not None and is_nested(self.bounds, within)

    def words(self) -> str:
        return f"someone who may know everything about everyone else, {self.band}"

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        """Everyone else is known: what someone knows only helps them."""
        yield OtherPeople(people, 0, 0, *WHOLE_RANGE, range(people))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        grid = as_count_lattice(lattice)
        for world in range(grid.worlds):
            for entity, _ in grid.neighbours(world):
                yield entity, one_of_two(grid.space, entity, grid.representative(world))

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        worst, _ = largest_addition(likelihoods, lattice, (positive,), self.bounds)
        yield worst

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        return largest_shift(
            sums, positive, self.bounds, lambda e: one_of_two(sums.space, e, ()), alone=True
        )

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        yield _largest_step(columns, 1, positive, self.bounds)


@dataclass(frozen=True)
class OneOfTwo(Independent):
    """D_I²: everyone but one entity is known to be in or out. Its level is that of D_I."""

    name: ClassVar[str] = "one-of-two"
    example: ClassVar[str] = "one-of-two=0.1..0.9"
    symbol: ClassVar[str] = "D_I²"
    definition: ClassVar[str] = "independent, and exactly one entity is uncertain"
    source: ClassVar[str] = "Li13, distribution family 4.4"

    def contains(self, prior: Prior, space: Subsets) -> bool:
        beliefs = independent_beliefs(prior, space) or ()
        return super().contains(prior, space) and sum(0 < p < 1 for p in beliefs) == 1

    def includes(self, other: Family) -> bool:
        return isinstance(other, OneOfTwo) and is_nested(self.bounds, other.bounds)


def one_of_two(space: Subsets, entity: int, known: Collection[int]) -> Callable[[Fraction], Prior]:
    """The independent prior in which only the entity is uncertain, and these others are in."""

    def prior(belief: Fraction) -> Prior:
        inside = set(known)
        beliefs = [Fraction(each in inside) for each in range(space.size)]
        beliefs[entity] = belief
        return IndependentPrior(beliefs)

    return prior


def largest_addition(
    array: Array,
    lattice: Lattice,
    directions: tuple[bool, ...] = (True, False),
    bounds: Range = WHOLE_RANGE,
) -> tuple[Worst, bool]:
    """The largest ratio between neighbouring worlds (add-remove), and its direction.

    positive (True): Pr[o|T∪t] / Pr[o|T]; negative (False): the inverse.
    """
    best: Any = None
    values: tuple[Any, ...]
    chosen: tuple[Addition, bool] | None = None
    with ignore_division():
        for addition in lattice.best_additions(array):
            if len(directions) == 2:
                values = largest_ratios(addition.present, addition.absent)
            else:
                values = (largest_ratio(*_order_sides(addition, directions[0])),)
            for positive, value in zip(directions, values, strict=True):
                if exceeds_best(value, best):
                    best, chosen = value, (addition, positive)
    assert chosen is not None
    addition, positive = chosen
    case = addition.case(first_at_least(*_order_sides(addition, positive), best))
    prior = one_of_two(lattice.space, case.entity, case.known)
    sides = [((each, Fraction(1)),) for each in (case.present, case.absent)]
    return Worst(best, case.entity, case.output, *bounds, prior, *sides), positive


def _order_sides(addition: Addition, positive: bool) -> tuple[Array, Array]:
    sides = addition.present, addition.absent
    return sides if positive else sides[::-1]


@dataclass(frozen=True)
class AnyPrior(Family):
    """D_U: all distributions.

    For an entity t the worst prior has two worlds: one with t where the output is most likely, one
    without t where it is least likely (Li13 Proposition 3.7). Folding the array kind by kind finds
    the best pair for all entities in two passes.
    """

    name: ClassVar[str] = "any"
    example: ClassVar[str] = "any"
    symbol: ClassVar[str] = "D_U"
    definition: ClassVar[str] = "every distribution over all subsets"
    source: ClassVar[str] = "Li13, section 3.4"
    downward: ClassVar[bool] = True
    upward: ClassVar[bool] = True
    theorems: ClassVar[tuple[str, ...]] = ("T1", "T3")

    def adversary(self) -> Adversary:
        raise Unsupported(
            "no ε between neighbours protects against every prior (T3): the noise would have to "
            "hide everyone at once",
            field="family",
            hint="say how many people may be linked with cliques=k",
        )

    def includes(self, other: Family) -> bool:
        return True

    def words(self) -> str:
        return "someone who may believe anything, such as that all are in or none"

    def contains(self, prior: Prior, space: Subsets) -> bool:
        prior.check(space)
        return True

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        best: tuple[Any, Separation] | None = None
        for each in lattice.separations(likelihoods, positive):
            ratio = largest_ratio(each.largest, each.smallest)
            if best is None or exceeds_best(ratio, best[0]):
                best = ratio, each
        assert best is not None
        ratio, result = best
        (output,) = first_at_least(result.largest, result.smallest, ratio)
        # The two worlds are found again, now that the entity and the output are known.
        column, worlds = likelihoods[:, output], []
        for inside in (True, False):
            members = lattice.members(result.entity, inside)
            extreme = np.argmax if inside is positive else np.argmin
            worlds.append(int(members[extreme(column[members])]))
        with_it = tuple({*lattice.representative(worlds[0]), result.entity})
        without = lattice.representative(worlds[1], avoid=result.entity)
        prior = two_worlds(lattice.space, with_it, without)
        sides = [((world, Fraction(1)),) for world in worlds]
        yield Worst(ratio, result.entity, output, *WHOLE_RANGE, prior, *sides)

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        """Any count of at least one, with the entity, against any other without it."""
        people, ends = columns.space.size, columns.starts
        top, bottom = (columns.counts > 0), (columns.counts < people)
        top, bottom = (top, bottom) if positive else (bottom, top)
        highest = np.maximum.reduceat(np.where(top, columns.logs, -np.inf), ends[:-1])
        lowest = np.minimum.reduceat(np.where(bottom, columns.logs, np.inf), ends[:-1])
        gaps = np.add.reduceat(bottom.astype(int), ends[:-1]) < people
        output = int(np.argmax(np.where(gaps & (highest > -np.inf), np.inf, highest - lowest)))
        part = columns.column(output)
        counts, logs = columns.counts[part], columns.logs[part]
        likely = int(counts[np.argmax(np.where(top[part], logs, -np.inf))])
        every = np.arange(0 if positive else 1, people + (0 if positive else 1))
        least = columns.log_at(every, np.full(people, output))
        rare = int(every[np.argmin(least)])
        inside, outside = (likely, rare) if positive else (rare, likely)
        growth = float(columns.log_at(*np.array([[likely], [output]]))[0] - least.min())
        prior = two_worlds(columns.space, tuple(range(inside)), tuple(range(1, outside + 1)))
        sides = [((count, Fraction(1)),) for count in (inside, outside)]
        yield Worst(capped_ratio(growth), 0, output, *WHOLE_RANGE, prior, *sides)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        """Everyone who raises the sum against everyone who lowers it."""
        up, down = ([k for k, w in enumerate(sums.weights) if (w > 0) is s] for s in (True, False))
        inside, outside = (up, down) if up else (down, up)
        groups = [[e for kind in side for e in sums.kinds[kind]] for side in (inside, outside)]
        counts = {kind: len(sums.kinds[kind]) for kind in (inside if positive else outside)}
        total = sum(abs(w) * len(k) for w, k in zip(sums.weights, sums.kinds, strict=True))
        prior = two_worlds(sums.space, *map(tuple, groups))
        sides = far_apart(Fraction(total), positive)
        yield Shift(groups[0][0], sums.total(counts), *WHOLE_RANGE, prior, *sides)


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
        if isinstance(lattice, MaximumLattice):  # the largest of a group decides: one is enough
            yield largest_addition(likelihoods, lattice, (positive,))[0]
            return
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
        prior = two_worlds(grid.space, (*known, *group), known)
        classes = map(lattice.class_of, (grid.representative(world), known))
        weighted = [((each, Fraction(1)),) for each in classes]
        yield Worst(ratio, group[0], output, *WHOLE_RANGE, prior, *weighted)

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        yield _largest_step(columns, self.k, positive, WHOLE_RANGE)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        """The group of k who together add, or take away, the most."""
        best: dict[int, int] = {}
        for sign in (1, -1):
            room = self.k
            group: dict[int, int] = {}
            for kind in sorted(range(len(sums.kinds)), key=lambda k: -sign * sums.weights[k]):
                if room and sign * sums.weights[kind] > 0:
                    group[kind] = min(room, len(sums.kinds[kind]))
                    room -= group[kind]
            best = max(best, group, key=lambda g: sum(map(abs, sums.total(g))))
        best = best or {0: 1}
        distance = sum(map(abs, sums.total(best)), Fraction(0))
        entities = tuple(e for kind, count in best.items() for e in sums.kinds[kind][:count])
        prior = two_worlds(sums.space, entities, ())
        point = sums.total(best if positive else {})
        yield Shift(entities[0], point, *WHOLE_RANGE, prior, *far_apart(distance, positive))


def _largest_step(columns: CountColumns, k: int, positive: bool, bounds: Range) -> Worst:
    """The largest ratio between two counts that are at most k apart (add-remove)."""
    best, place, sign = 0.0, (1, 0, int(columns.outputs[0])), -1 if positive else 1
    for step in range(1, min(k, columns.space.size) + 1):
        counts = columns.counts + sign * step
        inside = (counts >= 0) & (counts <= columns.space.size)
        if not inside.any():
            continue
        here, counts, outputs = columns.counts[inside], counts[inside], columns.outputs[inside]
        growth = columns.logs[inside] - columns.log_at(counts, outputs)
        most = int(np.argmax(growth))
        if growth[most] > best:
            best = float(growth[most])
            ends = (int(here[most]), int(counts[most]))
            place = (*(ends if positive else ends[::-1]), int(outputs[most]))
        if best == math.inf:
            break
    present, absent, output = place
    sides = [((count, Fraction(1)),) for count in (present, absent)]
    if k == 1:
        prior = one_of_two(columns.space, absent, range(absent))
    else:
        prior = two_worlds(columns.space, tuple(range(present)), tuple(range(absent)))
    return Worst(capped_ratio(best), absent, output, *bounds, prior, *sides)


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
