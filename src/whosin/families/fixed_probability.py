"""Everyone who may be in is in with the same probability β (Li13 5.9): sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import invalid_value
from whosin.exact import Array, chosen_percent, flint_rational, probability, rational
from whosin.families.at_most_known import AtMostKnown, Uninformed
from whosin.families.base import (
    MAX_COINS,
    Family,
    OtherPeople,
    Range,
    Worst,
    independent_beliefs,
    output_columns,
    spelled_number,
)
from whosin.families.explicit import Explicit
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior
from whosin.spaces.arrays import check_underflow, exceeds_best, first_at_least, largest_ratio
from whosin.spaces.quotients import (
    CountLattice,
    Lattice,
    as_count_lattice,
    binomial_rows,
    sample_axis,
    spread_on_grid,
)
from whosin.spaces.worlds import Subsets


@dataclass(frozen=True)
class FixedProbability(Family):
    """D_F^β: independent, every entity with p_t ∈ {0, β}.

    All 2^n supports are handled at once: along each axis the likelihood of a support that admits
    an entity is β times that with it plus 1 − β times that without. The axis of the entity in
    question must stay as it is, so axes are transformed by halves, each axis skipped once in a
    tree of depth log n: O(n log n 2^n K), without the cancellation of undoing a transform.
    """

    beta: object

    name: ClassVar[str] = "fixed-probability"
    form: ClassVar[str] = "=β"
    example: ClassVar[str] = "fixed-probability=0.3"
    symbol: ClassVar[str] = "D_F^β"
    definition: ClassVar[str] = "independent, and everyone who may be in has the same probability β"
    source: ClassVar[str] = "Li13, distribution family 5.9"
    theorems: ClassVar[tuple[str, ...]] = ("T10",)

    def __post_init__(self) -> None:
        if not 0 < probability(self.beta, "beta") < 1:
            raise invalid_value("beta", "strictly between 0 and 1", self.beta)

    @property
    def beliefs(self) -> Range:
        return rational(self.beta), rational(self.beta)

    @property
    def independent_beliefs(self) -> Range:
        return self.beliefs

    def includes(self, other: Family) -> bool:
        if other.independent_beliefs != self.beliefs:
            return False
        match other:
            case FixedProbability() | Uninformed() | AtMostKnown(k=0):
                return True
            case Explicit(priors=listed):  # nobody is known to be in
                return 1 not in [rational(p) for prior in listed for p in prior.parameters]
        return False

    def canonical(self) -> Family:
        return FixedProbability(rational(self.beta))

    def words(self) -> str:
        share = chosen_percent(self.beliefs[0], "nearest")
        return f"someone who believes that {share} of the likely people are in"

    @property
    def argument(self) -> str:
        return spelled_number(self.beta)

    @classmethod
    def parse(cls, argument: str) -> Self:
        return cls(rational(argument, "β in fixed-probability=β"))

    def contains(self, prior: Prior, space: Subsets) -> bool:
        beliefs = independent_beliefs(prior, space)
        beta = probability(self.beta, "beta")
        return beliefs is not None and all(p in (0, beta) for p in beliefs)

    complete: ClassVar[bool] = True

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        beta = rational(self.beta)
        for likely in range(people):
            yield OtherPeople(people, 0, likely, beta, beta, range(1))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        grid, beta = as_count_lattice(lattice), rational(self.beta)
        for world in range(grid.worlds):
            likely = grid.representative(world)
            beliefs = [beta if each in likely else Fraction(0) for each in range(grid.space.size)]
            for kind, count in zip(grid.kinds, grid.counts(world), strict=True):
                if count:
                    yield kind[0], lambda _belief, beliefs=beliefs: IndependentPrior(beliefs)  # type: ignore[misc]

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        grid, array = spread_on_grid(lattice, likelihoods)
        beta = probability(self.beta, "beta")
        number: Any = float(beta) if array.dtype != object else flint_rational(beta)
        best: tuple[Any, int, int, int] | None = None
        for start, piece in output_columns(array, 1 << 20):
            largest = piece.max(axis=0)
            for kind, view in _sample_other_axes(grid, piece, number, 0, len(grid.kinds)):
                present, absent = _sample_with_without(grid, view, kind, number)
                for sums, shift in ((present, 1), (absent, 0)):
                    by_output = sums.reshape(-1, piece.shape[1])
                    check_underflow(
                        by_output, largest, partial(_possible_entries, grid, piece, kind, shift)
                    )
                sides = (present, absent) if positive else (absent, present)
                ratio = largest_ratio(*sides)
                if best is None or exceeds_best(ratio, best[0]):
                    before, count, rest = first_at_least(*sides, ratio)
                    after, output = divmod(rest, piece.shape[1])
                    stride = grid.strides[kind]
                    others = (before * grid.lengths[kind] + count) * stride + after
                    best = ratio, kind, others, start + output
        assert best is not None
        ratio, kind, others, output = best
        entity = grid.kinds[kind][grid.counts(others)[kind]]
        support = {*grid.representative(others), entity}
        prior = IndependentPrior(
            [beta if position in support else Fraction(0) for position in range(grid.space.size)]
        )
        yield Worst(ratio, entity, output, beta, beta, lambda _belief: prior)


def _possible_entries(grid: CountLattice, array: Array, kind: int, shift: int) -> Array:
    """Which entries of `_sample_with_without` are positive in truth: those from which sampling, at
    any rate, leads to a class with a positive likelihood."""
    if max(grid.lengths) > MAX_COINS:
        return np.ones(1, dtype=bool)
    coins = (array > 0).astype(float)
    for other in range(len(grid.kinds)):
        if other != kind:
            sample_axis(grid, coins, other, 0.5)
    result = _sample_with_without(grid, coins, kind, 0.5)[1 - shift]
    return np.asarray(result.reshape(-1, array.shape[1]) > 0)


def _sample_other_axes(
    grid: CountLattice, array: Array, beta: Any, start: int, stop: int
) -> Iterator[tuple[int, Array]]:
    """(kind, likelihoods sampled along every axis but that one), for each kind in start … stop."""
    if stop - start == 1:
        yield start, array
        return
    middle = (start + stop) // 2
    for kept, moved in (((start, middle), (middle, stop)), ((middle, stop), (start, middle))):
        half = array.copy()
        for kind in range(*moved):
            sample_axis(grid, half, kind, beta)
        yield from _sample_other_axes(grid, half, beta, *kept)


def _sample_with_without(
    grid: CountLattice, array: Array, kind: int, beta: Any
) -> tuple[Array, Array]:
    """With and without one entity of the kind, its other members being sampled too."""
    view = grid.axis(array, kind)
    present, absent = view[:, 1:], view[:, :-1]
    if grid.lengths[kind] == 2:
        return present, absent
    weights = binomial_rows(grid.lengths[kind] - 1, beta)
    return np.matmul(weights, present), np.matmul(weights, absent)
