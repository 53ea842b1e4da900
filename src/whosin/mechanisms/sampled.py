"""Running a mechanism on a random sample of the entities (Li13 Definition 5.8)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb
from typing import Any

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array, ball_sum, flint_rational, is_exact, probability, ranged
from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.entries import Balls, Entries, Rationals
from whosin.spaces import CountLattice, Space, Subsets
from whosin.spaces.sampling import sample
from whosin.spaces.width import FLOOR

EXACT_ENTRIES = 1 << 20
"""Up to this many entries are sampled in rationals where floats do not reach."""


@dataclass(frozen=True)
class Sampled(Mechanism):
    """Keep each present entity with probability β, then run the mechanism on what is left."""

    mechanism: Mechanism
    beta: object

    def __post_init__(self) -> None:
        ranged(self.beta, "beta", "above 0 and at most 1")

    def channel(self, space: Space | None = None) -> Channel:
        before = as_channel(self.mechanism, space)
        subsets = before.space
        if not isinstance(subsets, Subsets):
            raise Unsupported("sampling entities is defined on Subsets")
        if not isinstance(before.lattice, CountLattice):
            before = before.on_worlds()
        grid = before.lattice
        assert isinstance(grid, CountLattice)
        exact: Array | None = None
        if before.exact is not None and is_exact(self.beta):
            exact = sample(grid, before.exact, flint_rational(self.beta))
        floats = sample(grid, before.likelihoods, float(probability(self.beta, "beta")))
        if exact is None and _lost(grid, before.likelihoods, floats):
            # In rationals, then: the entries are the binary fractions that the floats are.
            if before.is_density or before.likelihoods.size > EXACT_ENTRIES:
                raise Unsupported(
                    "with a sampling rate this small some outputs are less likely than the "
                    "smallest number there is; use a larger beta"
                )
            beta = flint_rational(probability(self.beta, "beta"))
            exact = sample(grid, before.rationals, beta)
            exact = exact / exact.sum(axis=1, keepdims=True)
        if before.is_density:
            entries = self._balls(grid, before.entries) if exact is None else Rationals(exact)
            return Channel.from_densities(subsets, grid, floats, before.outputs, entries)
        table = floats if exact is None else exact
        return Channel(subsets, np.asarray(table), before.outputs, lattice=grid)

    def _balls(self, grid: CountLattice, before: Entries) -> Balls:
        """Σ over the samples of a class of Pr[sample] times the ball there."""
        beta = probability(self.beta, "beta")

        def ball(world: int, output: int) -> Any:
            counts = grid.counts(world)
            terms = []
            for kept in product(*(range(count + 1) for count in counts)):
                weight, number = Fraction(1), 0
                for of, j, stride in zip(counts, kept, grid.strides, strict=True):
                    weight *= comb(of, j) * beta**j * (1 - beta) ** (of - j)
                    number += j * stride
                terms.append((before.at(number, output), weight))
            return ball_sum(terms)

        return Balls(ball)


def _lost(grid: CountLattice, before: Array, after: Array) -> bool:
    """Whether an entry that is positive in truth came out too small for floats."""
    if not (after < FLOOR).any():
        return False
    return bool(((after < FLOOR) & (sample(grid, (before > 0).astype(float), 0.5) > 0)).any())
