"""Adversaries who are uncertain about nearly everyone, and the uninformed one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

from whosin.errors import InvalidInput, Unsupported, spell
from whosin.exact import ONE_HALF, Array, number_range
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Bounded,
    Family,
    OtherPeople,
    Range,
    Worst,
    check_prior,
    independent_beliefs,
    is_nested,
    spelled_range,
    sums_given,
)
from whosin.families.explicit import worst_for_prior
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior, Uniform
from whosin.spaces.arrays import exceeds_best, first_at_least, largest_ratio
from whosin.spaces.quotients import CountLattice, Lattice, as_count_lattice, spread_on_grid
from whosin.spaces.worlds import Subsets
from whosin.validation import MAX_POPULATION, read_whole, shorten_value, spelled_whole

# An adversary with no information at all (Li13 5.1).


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
        return ONE_HALF, ONE_HALF

    @property
    def independent_beliefs(self) -> Range:
        return ONE_HALF, ONE_HALF

    def relatives(self) -> Iterator[Family]:
        from whosin.families.fixed_probability import FixedProbability  # which knows this one

        yield FixedProbability(ONE_HALF)

    def words(self) -> str:
        return "someone who knows nothing: every set of people is as likely as any other"

    def contains(self, prior: Prior, space: Subsets) -> bool:
        check_prior(prior, space)
        return isinstance(prior, Uniform) or len(set(prior.probabilities(space))) == 1

    complete: ClassVar[bool] = True

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        yield OtherPeople(people, 0, people - 1, ONE_HALF, ONE_HALF, range(1))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        for kind in as_count_lattice(lattice).kinds:
            yield kind[0], lambda _belief: Uniform()

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        return worst_for_prior(Uniform(), likelihoods, lattice, positive)


# Adversaries who are uncertain about nearly everyone.


MAX_TRIED_PRIORS = 1 << 16
"""How many priors are tried at most for one entity."""


@dataclass(frozen=True)
class AtMostKnown(Bounded):
    """Independent, beliefs in [low, high], except for at most k entities known to be in or out.

    The ratio is linear-fractional in each other entity's belief, so its sup is where each of them
    is low, high, or known; and one more known entity never lowers it, so k are known. On a count
    of n entities that leaves (k+1)(n−k) priors to try.
    """

    k: int
    low: object = 0
    high: object = 1

    name: ClassVar[str] = "at-most-known"
    form: ClassVar[str] = "=k:0.1..0.9"
    example: ClassVar[str] = "at-most-known=10:0.1..0.9"
    key: ClassVar[str] = "known"
    symbol: ClassVar[str] = "D_K^k"
    definition: ClassVar[str] = "independent and bounded, and at most k entities are known"
    source: ClassVar[str] = "ours"
    composes: ClassVar[bool] = False
    hides_others: ClassVar[bool] = True

    def __post_init__(self) -> None:
        read_whole(self.k, "k", 0, MAX_POPULATION)
        if self.bounds[0] == 0 or self.bounds[1] == 1:
            raise InvalidInput(
                f"low and high must be strictly between 0 and 1, not {self.low}..{self.high}",
                field="low and high",
                value=(self.low, self.high),
                hint="a person who is surely in or out is one of the k known people",
            )

    @property
    def independent_beliefs(self) -> Range:
        return self.bounds

    def adversary(self) -> Adversary:
        return Adversary(*self.bounds, self.relation, tight=False, theorems=("T4", "T11"))

    def includes(self, other: Family) -> bool:
        if isinstance(other, AtMostKnown):
            return other.k <= self.k and is_nested(self.bounds, other.bounds)
        return isinstance(other, Uninformed) and is_nested(self.bounds, other.beliefs)

    def canonical(self) -> Family:
        alone = self.k == 0 and self.bounds == (ONE_HALF, ONE_HALF)
        return Uninformed() if alone else super().canonical()

    def words(self) -> str:
        return f"someone who knows at most {self.k} people, {self.band} and of everyone else"

    @property
    def argument(self) -> str:
        return f"{self.k}:{spelled_range(self.bounds)}"

    @classmethod
    def parse(cls, argument: str) -> Self:
        known, colon, beliefs = argument.partition(":")
        if not colon:
            raise InvalidInput(
                f"the family at-most-known={shorten_value(argument)} has no range of beliefs",
                field="family",
                value=argument,
                hint="write at-most-known=k:0.1..0.9",
            )
        number = spelled_whole(known, "k in at-most-known=k:0.1..0.9")
        return cls(number, *number_range(beliefs, "prior range"))

    @classmethod
    def chosen(cls, value: int, prior: Range | None) -> Self:
        return cls(value, *(prior or WHOLE_RANGE))

    def contains(self, prior: Prior, space: Subsets) -> bool:
        beliefs = independent_beliefs(prior, space)
        if beliefs is None:
            return False
        low, high = self.bounds
        unsure = [p for p in beliefs if 0 < p < 1]
        return len(beliefs) - len(unsure) <= self.k and all(low <= p <= high for p in unsure)

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        low, high = self.bounds
        known = min(self.k, people - 1)
        unsure = people - 1 - known
        for at_low in range(unsure + 1 if low < high else 1):
            yield OtherPeople(people, at_low, unsure - at_low, low, high, range(known + 1))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        grid = as_count_lattice(lattice)
        for kind in range(len(grid.kinds)):
            entity = grid.kinds[kind][0]
            for beliefs in self._vertices(grid, kind):
                yield entity, _append_belief(beliefs, entity)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        grid, array = spread_on_grid(lattice, likelihoods)
        largest = array.max(axis=0)
        for kind in range(len(grid.kinds)):
            entity = grid.kinds[kind][0]
            best: tuple[Any, list[Fraction], int] | None = None
            for beliefs in self._vertices(grid, kind):
                prior = IndependentPrior(beliefs)
                sides = sums_given(prior, grid, entity, array, largest)
                sides = sides if positive else sides[::-1]
                ratio = largest_ratio(*sides)
                if best is None or exceeds_best(ratio, best[0]):
                    (output,) = first_at_least(*sides, ratio)
                    best = ratio, beliefs, output
                if ratio == math.inf:
                    break
            assert best is not None
            ratio, beliefs, output = best
            yield Worst(ratio, entity, output, *self.bounds, _append_belief(beliefs, entity))

    def _vertices(self, grid: CountLattice, kind: int) -> Iterator[list[Fraction]]:
        """Beliefs of everyone, the entity itself at low, for all ways to be at an end."""
        others = [len(members) - (each == kind) for each, members in enumerate(grid.kinds)]
        known = min(self.k, sum(others))
        ways = [list(_list_splits(count, known)) for count in others]
        if prod(map(len, ways)) > MAX_TRIED_PRIORS:
            raise Unsupported(
                f"{self.symbol} would have to try {spell(prod(map(len, ways)))} priors for this "
                "mechanism",
                field="family",
                value=self,
                hint="use a count, or fewer entities",
            )
        ends = (Fraction(0), Fraction(1), *self.bounds)
        for split in product(*ways):
            if sum(part[0] + part[1] for part in split) != known:
                continue
            beliefs = [self.bounds[0]] * grid.space.size
            for each, part in enumerate(split):
                members = grid.kinds[each][1:] if each == kind else grid.kinds[each]
                entities = iter(members)
                for value, count in zip(ends, part, strict=True):
                    for _ in range(count):
                        beliefs[next(entities)] = value
            yield beliefs


def _list_splits(count: int, known: int) -> Iterator[tuple[int, int, int, int]]:
    """(out, in, low, high): ways to share a number of like entities, at most `known` certain."""
    for out in range(min(known, count) + 1):
        for inside in range(min(known - out, count - out) + 1):
            rest = count - out - inside
            for low in range(rest + 1):
                yield out, inside, low, rest - low


def _append_belief(beliefs: list[Fraction], entity: int) -> Any:
    def prior(belief: Fraction) -> Prior:
        return IndependentPrior([*beliefs[:entity], belief, *beliefs[entity + 1 :]])

    return prior
