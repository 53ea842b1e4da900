"""An adversary with no information at all (Li13 5.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from whosin.exact import Array
from whosin.families.base import HALF, Family, Range, Worst
from whosin.families.crowd import OtherPeople
from whosin.families.explicit import worst_for_prior
from whosin.families.prior_kinds import check_prior
from whosin.priors import Prior, Uniform
from whosin.spaces.count_lattice import counted
from whosin.spaces.lattice import Lattice
from whosin.spaces.subsets import Subsets


@dataclass(frozen=True)
class Uninformed(Family):
    """D_N: the uniform distribution over all subsets, and no other."""

    name: ClassVar[str] = "uninformed"
    example: ClassVar[str] = "uninformed"
    key: ClassVar[str] = "uninformed"
    symbol: ClassVar[str] = "D_N"
    definition: ClassVar[str] = "the one prior under which all subsets are equally likely"
    source: ClassVar[str] = "Li13, distribution family 5.1"

    @property
    def beliefs(self) -> Range:
        return HALF, HALF

    @property
    def independent_beliefs(self) -> Range:
        return HALF, HALF

    def relatives(self) -> Iterator[Family]:
        from whosin.families.fixed_probability import FixedProbability  # which knows this one

        yield FixedProbability(HALF)

    def words(self) -> str:
        return "someone who knows nothing: every set of people is as likely as any other"

    def contains(self, prior: Prior, space: Subsets) -> bool:
        check_prior(prior, space)
        return isinstance(prior, Uniform) or len(set(prior.probabilities(space))) == 1

    complete: ClassVar[bool] = True

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        yield OtherPeople(people, 0, people - 1, HALF, HALF, range(1))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        for kind in counted(lattice).kinds:
            yield kind[0], lambda _belief: Uniform()

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        return worst_for_prior(Uniform(), likelihoods, lattice, positive)
