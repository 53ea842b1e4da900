"""Finite mechanisms: exponential, randomised response, k-Max, and that of Li13 Theorem 5.7."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count, product
from typing import Any

import numpy as np

from whosin.errors import (
    invalid_value,
    read_list,
    read_whole,
    require_exactly_one,
    shorten_value,
    spell,
)
from whosin.exact import (
    Array,
    exp_down,
    flint_rational,
    log_down,
    probability,
    rational,
    read_ranged,
)
from whosin.mechanisms.additive_noise import read_positive
from whosin.mechanisms.channel import Channel, ColumnChannel, Mechanism, need_space
from whosin.mechanisms.entries import Computed, Powers
from whosin.spaces import MaximumLattice, Space, Subsets
from whosin.spaces.arrays import require_memory, require_table, widest_exp
from whosin.spaces.worlds import need_subsets

MAX_EXPONENTIAL_EPSILON = 10**9


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Pr[o | T] ∝ exp(ε q(T, o) / (2Δ)), which is ε-DP when Δ is q's sensitivity (McSherry and
    Talwar 2007).

    Args:
        score: q, a function of (world, output), or a table worlds × outputs.
        outputs: the candidates.
        epsilon: ε, at least 0.
        sensitivity: Δ, above 0.
        monotone: drop the 2: allowed when adding an entity never lowers any score.
    """

    score: Callable[[Any, Hashable], float] | Sequence[Sequence[float]]
    outputs: Sequence[Hashable]
    epsilon: object
    sensitivity: object = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        if read_ranged(self.epsilon, "epsilon", "at least 0") > MAX_EXPONENTIAL_EPSILON:
            accepted = f"at most {spell(MAX_EXPONENTIAL_EPSILON)}"
            raise invalid_value("epsilon", accepted, shorten_value(self.epsilon))
        read_positive(self.sensitivity, "sensitivity")
        if not read_list(self.outputs, "outputs", "a list of candidates"):
            raise invalid_value("outputs", "a list of at least one candidate", "empty")

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, "Exponential")
        require_table("a table over all worlds", space.worlds, len(self.outputs))
        score = self.score
        given = [[score(w, o) for o in self.outputs] for w in space] if callable(score) else score
        scores = np.array(given, dtype=float)
        if scores.shape != (space.worlds, len(self.outputs)) or not np.isfinite(scores).all():
            accepted = f"a finite number for each of {space.worlds} worlds and each output"
            raise invalid_value("score", accepted, f"a table of shape {scores.shape}")
        rate = float(rational(self.epsilon)) / float(rational(self.sensitivity))
        logits = scores * (rate if self.monotone else rate / 2)
        weights = widest_exp(logits - logits.max(axis=1, keepdims=True))
        return Channel(space, weights / weights.sum(axis=1, keepdims=True), list(self.outputs))


MAX_RESPONSE_EPSILON = 5_000
"""Above, the probability of changing one row is below what floats reach."""


@dataclass(frozen=True)
class RandomizedResponse(Mechanism):
    """Each row keeps its value with some probability, else takes one of the m − 1 others (Warner
    1965; Wang14 eq. 30, E_d).

    On Subsets the value of an entity is whether it is present, and outputs are tuples of 0 and 1
    in the entities' order.

    Args:
        epsilon: keep with probability e^ε / (e^ε + m − 1), where e^ε is rounded down by less than
            2^−60 of it, to a rational; or
        keep: that probability itself. A rational one gives an exact channel.
    """

    epsilon: object = None
    keep: object = None

    def __post_init__(self) -> None:
        require_exactly_one(epsilon=self.epsilon, keep=self.keep)
        if self.keep is not None:
            probability(self.keep, "keep")
        else:
            level = read_ranged(self.epsilon, "epsilon", "at least 0")
            if level > MAX_RESPONSE_EPSILON:
                accepted = f"at most {spell(MAX_RESPONSE_EPSILON)}"
                raise invalid_value("epsilon", accepted, self.epsilon)

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, "RandomizedResponse")
        subsets = isinstance(space, Subsets)
        rows, values = (space.size, 2) if isinstance(space, Subsets) else (space.rows, space.values)

        def fits(limit: int) -> str:
            fit = next(n for n in count() if 8 * values ** (2 * (n + 1)) > limit)
            return f"{fit} rows or entities of {values} values fit"

        require_memory("a table of worlds by worlds", 8 * space.worlds**2, fits)
        # Kronecker products put row 0 in the most significant place. For Subsets entity 0 is the
        # least significant bit of a world, so outputs are listed in the worlds' own order.
        outputs = [
            world[::-1] if subsets else world for world in product(range(values), repeat=rows)
        ]
        if self.keep is None:
            return self._of_odds(space, rows, values, outputs)
        floats = isinstance(self.keep, float)
        keep = self.keep if floats else flint_rational(probability(self.keep, "keep"))
        move = (1 - keep) / (values - 1)  # type: ignore[operator]
        letter = [[keep if i == j else move for j in range(values)] for i in range(values)]
        one, table = np.array(letter), np.array([[keep * 0 + 1]])  # type: ignore[operator]
        for _ in range(rows):
            table = np.kron(one, table)
        return Channel(space, table, outputs)

    def _of_odds(
        self, space: Space, rows: int, values: int, outputs: Sequence[Hashable]
    ) -> Channel:
        """A row keeps its value with probability odds/(odds + m − 1), and takes each other one with
        probability 1/(odds + m − 1): without the difference 1 − keep, which floats lose."""
        level = rational(self.epsilon)
        odds = exp_down(level) if level else Fraction(1)  # e^ε, rounded down
        keep, move = odds / (odds + values - 1), 1 / (odds + values - 1)
        apart, moved = 1 - np.eye(values, dtype=np.int16), np.zeros((1, 1), dtype=np.int16)
        for _ in range(rows):
            size = len(moved) * values
            moved = (apart[:, None, :, None] + moved[None, :, None, :]).reshape(size, size)
        logs = np.array([log_down(keep), log_down(move)])
        floats = widest_exp(logs[0] * (rows - moved) + logs[1] * moved)
        powers = Powers(moved, (flint_rational(keep), flint_rational(move)), rows)
        return Channel.from_entries(space, None, floats, powers, outputs)


# The k-Max mechanism: a maximum blurred upwards (Li13 Definition 5.2), as published and repaired.
#
# Entities are ranked 1 … n in the space's order, the value of rank j being c_j. Both are constant
# on worlds of equal maximum, so they work on the lattice of maxima, and n can be in the thousands.
@dataclass(frozen=True)
class KMax(Mechanism):
    """k-Max repaired (erratum E1): a true maximum of rank below k, or none, counts as rank k.

    Draws uniformly from c_j', …, c_{j'+k−1} with j' = max(j, k), or from the last k values where
    that would run over the end. Against the uninformed adversary γ = (2^k − 1)/(2^k − 2), attained
    for n ≥ 2k. It satisfies no negative membership privacy.

    Args:
        k: how many values to draw from, at least 2 and at most n.
    """

    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", read_whole(self.k, "k", 2))

    def lowest(self, maximum: int, size: int) -> int:
        """The smallest rank that may be output when the true maximum has this rank (0: empty)."""
        return max(maximum, self.k)

    def channel(self, space: Space | None = None) -> Channel:
        space = need_subsets(need_space(space, type(self).__name__), "k-Max")
        size = space.size
        if self.k > size:
            raise invalid_value("k", f"at most the number of entities, {size}", self.k)
        firsts = [min(self.lowest(j, size), size - self.k + 1) - 1 for j in range(size + 1)]
        share, none = flint_rational(Fraction(1, self.k)), flint_rational(0)

        def columns(numbers: Sequence[int]) -> Array:
            table = np.full((size + 1, len(numbers)), none, dtype=object)
            apart = np.subtract.outer(np.array(numbers), np.array(firsts)).T
            table[(apart >= 0) & (apart < self.k)] = share
            return table

        def tabulate() -> Channel:
            require_table("the table of maxima by outputs", size + 1, size)
            return Channel(space, columns(range(size)), names, lattice=lattice)

        def entry(maximum: int, output: int) -> Any:
            return share if 0 <= output - firsts[maximum] < self.k else none

        lattice = MaximumLattice(space, tuple(range(size)))
        names = [f"c{rank}" for rank in range(1, size + 1)]
        # From c_2k on, k neighbouring maxima lead to an output, with others below and above them.
        upper = max(2 * self.k + 1, size - self.k - 2)
        alike = [range(min(2 * self.k + 1, size)), range(min(upper, size - 1), size)]
        every = [range(start, min(start + 64, size)) for start in range(0, size, 64)]
        entries = Computed(entry, lambda: columns(range(size)))
        lazy = space, lattice, tabulate, False
        return ColumnChannel(lazy, entries, names, columns, every, alike)


@dataclass(frozen=True)
class KMaxAsPublished(KMax):
    """k-Max as Li13 Definition 5.2 has it. Its Proposition 5.3 is false: output c_1 happens only
    when T = {1}, so the posterior is 1. The empty set has no largest element and so falls under
    the definition's "otherwise": the last k values."""

    def lowest(self, maximum: int, size: int) -> int:
        return maximum or size


@dataclass(frozen=True)
class ExceptFirst(Mechanism):
    """Draws uniformly from 1 … n whatever the data, but from 2 … n when T = {the first entity}
    (Li13 Theorem 5.7).

    Output 1 rules out one world only, so with n = m candidates it is (ρ, m)-DI for every
    ρ ≥ 1/(m−1); yet that world has probability 0, so no ε-BDP holds.
    """

    def channel(self, space: Space | None = None) -> Channel:
        space = need_subsets(need_space(space, "ExceptFirst"), "this mechanism")
        size = space.size
        if size < 2:
            raise invalid_value("entities", "at least 2", size)
        require_table("a table over all subsets", space.worlds, size)
        everything = [Fraction(1, size)] * size
        exception = [Fraction(0)] + [Fraction(1, size - 1)] * (size - 1)
        rows = [exception if world == 1 else everything for world in range(space.worlds)]
        return Channel(space, rows, list(range(1, size + 1)))
