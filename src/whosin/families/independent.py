"""Independent entities: the adversaries of differential privacy (Li13 4.3, 4.4; Tramèr15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from whosin.exact import Array
from whosin.families.base import WHOLE, Bounded, Family, Range, Worst, nested
from whosin.families.crowd import OtherPeople
from whosin.families.prior_kinds import independent_beliefs
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior
from whosin.spaces.count_lattice import counted
from whosin.spaces.lattice import Addition, AdditionCase, Lattice
from whosin.spaces.search import exceeds, first_at_least, largest_ratio, largest_ratios, quiet
from whosin.spaces.subsets import Subsets

ONE = Fraction(1)
BOTH = (True, False)


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
        return within is not None and nested(self.bounds, within)

    def words(self) -> str:
        return f"someone who may know everything about everyone else, {self.band}"

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        """Everyone else is known: what someone knows only helps them."""
        yield OtherPeople(people, 0, 0, *WHOLE, range(people))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        grid = counted(lattice)
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
        return isinstance(other, OneOfTwo) and nested(self.bounds, other.bounds)


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
    directions: tuple[bool, ...] = BOTH,
    bounds: tuple[Fraction, Fraction] = (Fraction(0), Fraction(1)),
) -> tuple[Worst, bool]:
    """The largest ratio between neighbouring worlds (add-remove), and its direction.

    positive (True): Pr[o|T∪t] / Pr[o|T]; negative (False): the inverse.
    """
    best: Any = None
    values: tuple[Any, ...]
    chosen: tuple[Addition, bool] | None = None
    with quiet():
        for addition in lattice.additions(array):
            if len(directions) == 2:
                values = largest_ratios(addition.present, addition.absent)
            else:
                values = (largest_ratio(*_sides(addition, directions[0])),)
            for positive, value in zip(directions, values, strict=True):
                if exceeds(value, best):
                    best, chosen = value, (addition, positive)
    assert chosen is not None
    addition, positive = chosen
    case = addition.case(first_at_least(*_sides(addition, positive), best))
    worst = Worst(
        ratio=best,
        entity=case.entity,
        output=case.output,
        low=bounds[0],
        high=bounds[1],
        prior=one_of_two(lattice.space, case),
        present=((case.present, ONE),),
        absent=((case.absent, ONE),),
    )
    return worst, positive


def _sides(addition: Addition, positive: bool) -> tuple[Array, Array]:
    if positive:
        return addition.present, addition.absent
    return addition.absent, addition.present
