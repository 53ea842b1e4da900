"""A finite list of priors that a user writes down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import Unsupported, invalid_value, read_list, shorten_value
from whosin.exact import ONE_HALF, Array, flint_rational, rational
from whosin.families.base import (
    WHOLE_RANGE,
    Adversary,
    Family,
    Range,
    Shift,
    Worst,
    check_prior,
    far_apart,
    known_beliefs,
    sums_given,
    support_classes,
)
from whosin.families.maxima import worst_independent_maximum
from whosin.priors import Blocks, Exchangeable, FixedSize, Independent, Prior, Table, Uniform
from whosin.spaces.arrays import (
    MIN_LIKELIHOOD,
    Underflow,
    check_underflow,
    first_at_least,
    largest_ratio,
)
from whosin.spaces.quotients import CountLattice, Lattice, MaximumLattice, spread_on_grid
from whosin.spaces.statistics import Contributions
from whosin.spaces.worlds import Subsets


@dataclass(frozen=True, init=False)
class Explicit(Family):
    """The family that contains exactly the priors listed.

    Pr[o, t] and Pr[o, ¬t] for all entities come from folding the weighted likelihoods kind by
    kind: two passes over the array for each prior.
    """

    priors: tuple[Prior, ...]

    name: ClassVar[str] = "explicit"
    example: ClassVar[str] = ""
    symbol: ClassVar[str] = "explicit"
    definition: ClassVar[str] = "a finite list of priors"
    source: ClassVar[str] = "Li13, Definition 3.1 for any set of distributions"

    def __init__(self, priors: Iterable[Prior] | Prior) -> None:
        accepted = "a list of at least one prior"
        result = (priors,) if isinstance(priors, Prior) else read_list(priors, "priors", accepted)
        if not result or not all(isinstance(prior, Prior) for prior in result):
            raise invalid_value("priors", accepted, shorten_value(priors))
        object.__setattr__(self, "priors", result)

    symmetric: ClassVar[bool] = False  # type: ignore[misc]

    @property
    def beliefs(self) -> Range:
        return self.independent_beliefs or WHOLE_RANGE

    @property
    def independent_beliefs(self) -> Range | None:
        result: list[Fraction] = []
        for prior in self.priors:
            if isinstance(prior, Uniform):
                result.append(ONE_HALF)
            elif isinstance(prior, Independent) and not prior.by_row:
                result += [p for p in map(rational, prior.parameters) if 0 < p < 1]
            else:
                return None
        return (min(result), max(result)) if result else None

    def adversary(self) -> Adversary:
        if all(isinstance(prior, Independent | Uniform) for prior in self.priors):
            if self.independent_beliefs is not None:
                return super().adversary()
            message = "nobody is uncertain under these priors, so there is nothing to protect"
            raise Unsupported(message, field="priors")
        message = "calibration takes lists of independent priors only"
        raise Unsupported(message, field="priors", hint="measure the mechanism instead")

    def includes(self, other: Family) -> bool:
        return isinstance(other, Explicit) and set(other.priors) <= set(self.priors)

    def canonical(self) -> Family:
        result = tuple(dict.fromkeys(prior.canonical() for prior in self.priors))
        if result in ((Uniform(),), (Independent(ONE_HALF),)):
            from whosin.families.uncertain import Uninformed  # which is made from this one

            return Uninformed()
        return Explicit(result)

    def words(self) -> str:
        count = "the one" if len(self.priors) == 1 else f"one of the {len(self.priors)}"
        return f"someone whose belief is {count} listed"

    @classmethod
    def parse(cls, argument: str) -> Self:
        message = "a list of priors cannot be written as text"
        raise Unsupported(message, field="family", hint="give it in Python")

    @property
    def spelled(self) -> str:
        raise Unsupported("a plan for a list of priors cannot be written to a file", field="family")

    def check(self, space: Subsets) -> None:
        for prior in self.priors:
            prior.check(space)

    def contains(self, prior: Prior, space: Subsets) -> bool:
        check_prior(prior, space)
        same = prior.probabilities(space)
        return any(known.probabilities(space) == same for known in self.priors)

    complete: ClassVar[bool] = True

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        self.check(lattice.space)
        for prior in self.priors:
            seen = set()
            for entity in range(lattice.space.size):
                belief = prior.belief(lattice.space, entity)
                alike = isinstance(prior, Independent | Uniform | Exchangeable)
                kind = lattice.kind_of[entity] if isinstance(lattice, CountLattice) else entity
                key = (belief, kind) if alike else entity
                if 0 < belief < 1 and key not in seen:
                    seen.add(key)
                    yield entity, lambda _belief, prior=prior: prior  # type: ignore[misc]

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        self.check(lattice.space)
        for prior in self.priors:
            yield from worst_for_prior(prior, likelihoods, lattice, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift] | None:
        if not all(isinstance(prior, Independent | Uniform) for prior in self.priors):
            return None
        shifts: list[Shift] = []
        # Of the entities about whom one prior believes the same, the one that adds most.
        for prior in self.priors:
            beliefs = known_beliefs(prior, sums.space)
            farthest: dict[Fraction, tuple[Fraction, int, int]] = {}
            for kind, members in enumerate(sums.kinds):
                for entity in members:
                    case = abs(sums.weights[kind]), -kind, -entity
                    if 0 < (belief := beliefs[entity]) < 1:
                        farthest[belief] = max(case, farthest.get(belief, case))
            for belief, (distance, kind, entity) in farthest.items():
                corner, same = sums.corner(-kind, positive), lambda _belief, prior=prior: prior
                sides = far_apart(distance, positive)
                shifts.append(Shift(-entity, corner, belief, belief, same, *sides))
        return iter(shifts)


def worst_for_prior(
    prior: Prior, array: Array, lattice: Lattice, positive: bool
) -> Iterator[Worst]:
    """For each uncertain entity the output with the worst ratio under one prior."""
    if isinstance(lattice, MaximumLattice):
        if isinstance(prior, Independent | Uniform):
            yield from worst_independent_maximum(prior, array, lattice, positive)
            return
        if not isinstance(prior, FixedSize):
            lattice, array = spread_on_grid(lattice, array)
    number: Any = float if array.dtype != object else flint_rational
    if isinstance(lattice, CountLattice) and (lattice.is_single or isinstance(prior, Exchangeable)):
        pairs = _fold_kinds(prior, array, lattice, number)
    else:
        pairs = _conditional_likelihoods(prior, array, lattice)
    for entity, present, absent in pairs:
        belief = prior.belief(lattice.space, entity)
        sides = (present, absent) if positive else (absent, present)
        ratio = largest_ratio(*sides)
        (output,) = first_at_least(*sides, ratio)
        yield Worst(ratio, entity, output, belief, belief, lambda _belief: prior)


def _fold_kinds(
    prior: Prior, array: Array, grid: CountLattice, number: Any
) -> Iterator[tuple[int, Array, Array]]:
    """(entity, Pr[o|t], Pr[o|¬t]) by summing out kinds, the most significant first, for those
    entities that are uncertain."""
    mass = prior.mass(grid, number)
    joint, mass = array * mass[:, None], mass[:, None]
    outputs = array.shape[1]
    largest = array.max(axis=0)
    for kind in reversed(range(len(grid.kinds))):
        entity = grid.kinds[kind][0]
        length, stride = grid.lengths[kind], grid.strides[kind]
        view, weights = joint.reshape(length, -1, outputs), mass.reshape(length, -1)
        if length == 2:
            parts = [(view[side].sum(axis=0), weights[side].sum()) for side in (1, 0)]
        else:
            members, counts = length - 1, np.arange(length)
            sums, totals = view.sum(axis=1), weights.sum(axis=1)
            parts = [
                (np.tensordot(share, sums, 1) / members, (share * totals).sum() / members)
                for share in (counts, members - counts)
            ]
        (inside, in_mass), (outside, out_mass) = parts
        if 0 < prior.belief(grid.space, entity) < 1:
            if number is float and min(in_mass, out_mass) < MIN_LIKELIHOOD:
                raise Underflow
            for sums, first in ((inside, 1), (outside, 0)):
                check_underflow(
                    sums, largest, partial(_possible_outputs, prior, array, grid, kind, first)
                )
            yield entity, inside / in_mass, outside / out_mass
        joint, mass = view.sum(axis=0), weights.sum(axis=0)[:, None]
        assert len(joint) == stride


def _possible_outputs(
    prior: Prior, array: Array, grid: CountLattice, kind: int, first: int
) -> Array:
    """Which outputs are possible in some world with (first = 1) or without (0) a member of a kind
    in it, exactly."""
    count = np.arange(grid.worlds) // grid.strides[kind] % grid.lengths[kind]
    inside = count > 0 if first else count < grid.lengths[kind] - 1
    return np.asarray((array[support_classes(prior, grid) & inside] > 0).any(axis=0))


def _conditional_likelihoods(
    prior: Prior, array: Array, lattice: Lattice
) -> Iterator[tuple[int, Array, Array]]:
    """(entity, Pr[o|t], Pr[o|¬t]) from the prior's conditionals; like entities are done once."""
    seen, largest = set(), array.max(axis=0)
    for entity in range(lattice.space.size):
        belief = prior.belief(lattice.space, entity)
        if not 0 < belief < 1:
            continue
        if isinstance(lattice, CountLattice) and not isinstance(prior, Table):
            key = prior.role(lattice, entity) if isinstance(prior, Blocks) else belief
            key = lattice.kind_of[entity], key
            if key in seen:
                continue
            seen.add(key)
        yield entity, *sums_given(prior, lattice, entity, array, largest)
