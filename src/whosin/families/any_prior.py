"""Every distribution over worlds: against this adversary no useful answer is safe (Li13 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.families.base import Adversary, Family, Weighted, Worst, two_worlds
from whosin.priors import Prior
from whosin.spaces.lattice import Lattice
from whosin.spaces.search import first_at_least, largest_ratio
from whosin.spaces.subsets import Subsets


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
            "no ε between neighbours protects against every prior (T3): the noise would have "
            "to hide everyone at once; say how many people may be linked with cliques=k"
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
                *_worlds(likelihoods, lattice, result.entity, output, positive),
            )


def _worlds(
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
