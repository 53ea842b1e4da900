"""Independent priors (Li13 4.3, 4.4; Tramèr15), and the family of all priors (Li13 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Bounded,
    Family,
    OtherPeople,
    Range,
    Weighted,
    Worst,
    independent_beliefs,
    is_nested,
    two_worlds,
)
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior
from whosin.spaces.arrays import (
    exceeds_best,
    first_at_least,
    ignore_division,
    largest_ratio,
    largest_ratios,
)
from whosin.spaces.quotients import Addition, AdditionCase, Lattice, as_count_lattice
from whosin.spaces.worlds import Subsets

# Independent entities: the adversaries of differential privacy (Li13 4.3, 4.4; Tramèr15).


UNIT_BELIEF = Fraction(1)
BOTH_DIRECTIONS = (True, False)


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
    definition: ClassVar[str] = "entities are present independently, each with any probability"
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
                known = grid.representative(world)
                yield entity, one_of_two(grid.space, AdditionCase(entity, known, 0, 0, 0))

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        worst, _ = largest_addition(likelihoods, lattice, (positive,), self.bounds)
        yield worst


@dataclass(frozen=True)
class OneOfTwo(Independent):
    """D_I²: everyone but one entity is known to be in or out. Its level is that of D_I."""

    name: ClassVar[str] = "one-of-two"
    example: ClassVar[str] = "one-of-two=0.1..0.9"
    symbol: ClassVar[str] = "D_I²"
    definition: ClassVar[str] = "independent, and exactly one entity is uncertain"
    source: ClassVar[str] = "Li13, distribution family 4.4"

    def contains(self, prior: Prior, space: Subsets) -> bool:
        beliefs = independent_beliefs(prior, space)
        return (
            super().contains(prior, space)
            and beliefs is not None
            and sum(0 < p < 1 for p in beliefs) == 1
        )

    def includes(self, other: Family) -> bool:
        return isinstance(other, OneOfTwo) and is_nested(self.bounds, other.bounds)


def one_of_two(space: Subsets, case: AdditionCase) -> Callable[[Fraction], Prior]:
    """The independent prior in which only the entity at this position is uncertain."""
    known = set(case.known)

    def prior(belief: Fraction) -> Prior:
        beliefs = [Fraction(entity in known) for entity in range(space.size)]
        beliefs[case.entity] = belief
        return IndependentPrior(beliefs)

    return prior


def largest_addition(
    array: Array,
    lattice: Lattice,
    directions: tuple[bool, ...] = BOTH_DIRECTIONS,
    bounds: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
) -> tuple[Worst, bool]:
    """The largest ratio between neighbouring worlds (add-remove), and its direction.

    positive (True): Pr[o|T∪t] / Pr[o|T]; negative (False): the inverse.
    """
    best: Any = None
    values: tuple[Any, ...]
    chosen: tuple[Addition, bool] | None = None
    with ignore_division():
        for addition in lattice.additions(array):
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
    worst = Worst(
        ratio=best,
        entity=case.entity,
        output=case.output,
        low=bounds[0],
        high=bounds[1],
        prior=one_of_two(lattice.space, case),
        present=((case.present, UNIT_BELIEF),),
        absent=((case.absent, UNIT_BELIEF),),
    )
    return worst, positive


def _order_sides(addition: Addition, positive: bool) -> tuple[Array, Array]:
    if positive:
        return addition.present, addition.absent
    return addition.absent, addition.present


# Every distribution over worlds: against this adversary no useful answer is safe (Li13 3.4).


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
        for result in lattice.separations(likelihoods, positive):
            ratio = largest_ratio(result.largest, result.smallest)
            (output,) = first_at_least(result.largest, result.smallest, ratio)
            yield Worst(
                ratio,
                result.entity,
                output,
                Fraction(0),
                Fraction(1),
                *_two_world_prior(likelihoods, lattice, result.entity, output, positive),
            )


def _two_world_prior(
    array: Array, lattice: Lattice, entity: int, output: int, positive: bool
) -> tuple[Callable[[Fraction], Prior], Weighted, Weighted]:
    """The two-world prior and its classes, found again once the entity and the output are known."""
    column = array[:, output]
    inside, outside = lattice.members(entity, True), lattice.members(entity, False)
    best, least = (np.argmax, np.argmin) if positive else (np.argmin, np.argmax)
    present, absent = int(inside[best(column[inside])]), int(outside[least(column[outside])])
    with_it = tuple({*lattice.representative(present), entity})
    without = lattice.representative(absent, avoid=entity)
    return (
        two_worlds(lattice.space, with_it, without),
        ((present, Fraction(1)),),
        ((absent, Fraction(1)),),
    )
