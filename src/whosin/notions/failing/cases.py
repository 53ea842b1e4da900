"""Pr[output | in] and Pr[output | out] under every prior at which a profile may be largest.

Contract: with `exact` the probabilities are FLINT rationals; else floats, each with a relative
error of at most `Cases.rounding`, and less than `binomials.CUT` in all is left out. Counts may be
of thousands of people: their crowds (`families.crowd`) are convolved in blocks, and known people
who shift a rule by one of its periods make no difference and are tried once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from whosin.errors import InvalidInput, Unsupported
from whosin.exact import Array, flint_rational
from whosin.families import AtMostKnown, Family
from whosin.families.crowd import OtherPeople
from whosin.mechanisms import Channel, Mechanism, as_channel
from whosin.mechanisms.count_table import CountTable
from whosin.priors import Prior
from whosin.spaces import Lattice, Space, Subsets
from whosin.spaces.binomials import BLOCK, block_of_binomials, rounding

EXACT_WORK = 1 << 22
"""Up to this much work, in priors × entries × people, probabilities are rationals."""
FEW = 33
"""How many crowds a first look takes."""


class Case(NamedTuple):
    """One prior: which entity it is about, the beliefs in it that it may have, the prior at one of
    them, and who that is, in words where there are any."""

    entity: int
    low: Fraction
    high: Fraction
    prior: Callable[[Fraction], Prior]
    words: str = ""


class Likelihoods(NamedTuple):
    """The probabilities of some outputs, from the first of them on, a row for each prior: given
    that the entity is in and that it is out, or the reverse for negative membership. `case` has the
    prior of a row."""

    top: Array
    bottom: Array
    first: int
    case: Callable[[int], Case]


class Cases(ABC):
    """All priors of a family at which the profile of one mechanism may be largest."""

    family: Family
    outputs: tuple[Hashable, ...]
    space: Subsets
    is_small: bool
    """Whether the work is little enough for rationals."""

    @property
    def people(self) -> int:
        """How many people there are."""
        return self.space.size

    @property
    def rounding(self) -> float:
        """The largest relative error of probabilities in floats."""
        return rounding(self.people)

    @abstractmethod
    def pairs(self, *, exact: bool = False, few: int | None = None) -> Iterator[Likelihoods]:
        """Each prior's probabilities.

        Args:
            few: try at most this many of the crowds, and, where it is at most `FEW`, at most this
                many numbers of known people who are in: evenly, and more of them near both ends.
        """


@dataclass(frozen=True)
class CrowdCases(Cases):
    """A count of many people, under the crowds of a family."""

    table: CountTable
    space: Subsets
    family: Family
    positive: bool

    @property
    def outputs(self) -> tuple[Hashable, ...]:  # type: ignore[override]
        return self.table.outputs

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        priors = sum(len(crowd.inside) for crowd in self._crowds)
        return priors * len(self.table.weights) * self.people <= EXACT_WORK

    @cached_property
    def _crowds(self) -> list[OtherPeople]:
        return list(self.family.crowds(self.people))

    def pairs(self, *, exact: bool = False, few: int | None = None) -> Iterator[Likelihoods]:
        crowds = self._crowds
        if few is not None and len(crowds) > few:
            crowds = [crowds[index] for index in _some(len(crowds), few)]
        for block in _blocks(crowds, 1 if exact else BLOCK):
            first, weights = (0, block[0].rationals[None, :]) if exact else _weights(block)
            known = block[0].inside
            if few is not None and few <= FEW and len(known) > few:
                known = [known[index] for index in _some(len(known), few)]  # type: ignore[assignment]
            for inside in distinct_shifts(self.table, known, first, weights.shape[1]):
                yield self._pair(block, inside, first + inside, weights)

    def _pair(
        self, block: list[OtherPeople], inside: int, first: int, weights: Array
    ) -> Likelihoods:
        absent = outcomes(self.table, first, weights)
        present = outcomes(self.table, first + 1, weights)
        low = min(absent[0], present[0])
        high = max(side[0] + side[1].shape[1] for side in (absent, present))
        sides = [_widened(side, low, high) for side in (present, absent)]
        if not self.positive:
            sides.reverse()

        def case(row: int) -> Case:
            crowd, ends = block[row], self.family.beliefs
            words = crowd.words(inside)
            return Case(0, *ends, lambda belief: crowd.prior(inside, belief), words)

        return Likelihoods(sides[0], sides[1], low, case)


@dataclass(frozen=True)
class PriorCases(Cases):
    """Any mechanism with finitely many outputs, under the priors of a family one by one."""

    channel: Channel
    family: Family
    positive: bool

    @property
    def outputs(self) -> tuple[Hashable, ...]:  # type: ignore[override]
        return self.channel.outputs

    @property
    def space(self) -> Subsets:  # type: ignore[override]
        assert isinstance(self.channel.space, Subsets)
        return self.channel.space

    @property
    def is_small(self) -> bool:  # type: ignore[override]
        return self.channel.likelihoods.size * self.people**2 <= EXACT_WORK

    def pairs(self, *, exact: bool = False, few: int | None = None) -> Iterator[Likelihoods]:
        lattice = self._lattice
        array = self.channel.rationals if exact else self.channel.likelihoods
        number = flint_rational if exact else float
        low, high = self.family.beliefs
        middle = (low + high) / 2
        for entity, prior in self.family.extreme_priors(lattice):
            sides = [mass @ array for mass in prior(middle).given(lattice, entity, number)]
            if not self.positive:
                sides.reverse()
            ends = low, high
            if self.family.complete:
                ends = (prior(middle).belief(self.space, entity),) * 2
            case = Case(entity, *ends, prior)
            yield Likelihoods(sides[0][None], sides[1][None], 0, lambda _, case=case: case)  # type: ignore[misc]

    @property
    def _lattice(self) -> Lattice:
        assert self.channel.lattice is not None
        return self.channel.lattice


def cases_of(mechanism: object, space: Space | None, family: Family, positive: bool) -> Cases:
    """The cases of a mechanism against a family.

    Raises:
        InvalidInput: the family knows more people than there are.
        Unsupported: a density, or a family for which nobody knows the worst priors.
    """
    if not isinstance(mechanism, Mechanism):
        raise InvalidInput("mechanism", "a mechanism or a channel", repr(mechanism))
    if isinstance(mechanism, Channel):
        space = mechanism.channel(space).space
    if not isinstance(space, Subsets):
        raise Unsupported("a failure probability is about entities being in or out: give Subsets")
    family.check(space)
    if isinstance(family, AtMostKnown) and family.k > space.size:
        raise InvalidInput("k", f"at most the number of people, {space.size}", family.k)
    table = mechanism.on_counts(space.size)
    if table is not None and type(family).crowds is not Family.crowds:
        return CrowdCases(table, space, family, positive)
    channel = table.channel(space) if table is not None else as_channel(mechanism, space)
    channel.need_finite("a failure probability")
    next(iter(family.extreme_priors(channel.lattice)), None)  # type: ignore[arg-type]
    return PriorCases(channel, family, positive)


def outcomes(table: CountTable, first: int, weights: Array) -> tuple[int, Array]:
    """(first, probabilities): the probabilities of the outputs from the first on, a row for each
    row of weights, when the count is `first` plus a number with these weights."""
    start, stop = table.starts[first], table.starts[first + weights.shape[1]]
    columns = table.columns[start:stop]
    order = np.argsort(columns, kind="stable")
    entries = (table.rationals if weights.dtype == object else table.floats)[start:stop][order]
    shares = weights[:, table.counts[start:stop][order] - first] * entries
    columns = columns[order]
    begins = np.flatnonzero(np.diff(columns, prepend=-1))
    low, high = int(columns[0]), int(columns[-1]) + 1
    sums = shares if len(begins) == len(columns) else np.add.reduceat(shares, begins, axis=1)
    if len(begins) == high - low:
        return low, sums
    result = _zeros((len(weights), high - low), weights)
    result[:, columns[begins] - low] = sums
    return low, result


def _some(count: int, few: int) -> list[int]:
    """At most `few` of 0 … count − 1: half of them evenly apart, the others near either end."""
    even = np.linspace(0, count - 1, few - few // 2)
    ends = np.geomspace(1, count / 2, few // 4) if few >= 8 else np.zeros(0)
    return sorted({round(x) for x in (*even, *ends, *(count - 1 - ends))})


def _blocks(crowds: list[OtherPeople], most: int) -> Iterator[list[OtherPeople]]:
    """Crowds that differ in who is at low and who at high only, one more at low each, together."""
    block: list[OtherPeople] = []
    for crowd in crowds:
        same = block and replace(block[-1], at_low=0, at_high=0) == replace(
            crowd, at_low=0, at_high=0
        )
        follows = block and crowd.at_low == block[-1].at_low + 1
        if block and (len(block) == most or not same or not follows):
            yield block
            block = []
        block.append(crowd)
    yield block


def _weights(block: list[OtherPeople]) -> tuple[int, Array]:
    """(first, weights) of how many uncertain others are in, a row for each crowd."""
    if len(block) == 1:
        first, weights = block[0].weights
        return first, weights[None, :]
    start = block[0]
    low, high = float(start.low), float(start.high)
    return block_of_binomials(start.at_low, low, start.at_high, high, len(block))


def distinct_shifts(table: CountTable, shifts: Iterable[int], first: int, length: int) -> list[int]:
    """One of the shifts for each way in which the rows that they lead to look different.

    Shifted by s, the rows first + s … first + s + length matter. For two shifts they look alike
    where a shift of the columns is all that differs: then all probabilities are the same.
    """
    result: dict[tuple[int, int], int] = {}
    for shift in shifts:
        result.setdefault(table.looks(first + shift, length + 1), shift)
    return list(result.values())


def _widened(side: tuple[int, Array], low: int, high: int) -> Array:
    """The probabilities of outputs low … high − 1."""
    first, values = side
    if first == low and values.shape[1] == high - low:
        return values
    wide = _zeros((len(values), high - low), values)
    wide[:, first - low : first - low + values.shape[1]] = values
    return wide


def _zeros(shape: tuple[int, int], like: Array) -> Array:
    if like.dtype == object:
        return np.full(shape, flint_rational(0), dtype=object)
    return np.zeros(shape)
