"""Adversaries unsure of others: at most k known, one probability, uninformed; or of a value."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import (
    MAX_POPULATION,
    InvalidInput,
    UnknownName,
    Unsupported,
    invalid_value,
    read_whole,
    shorten_value,
    spell,
    spelled_whole,
)
from whosin.exact import (
    ONE_HALF,
    Array,
    chosen_percent,
    flint_rational,
    number_range,
    rational,
    read_ranged,
)
from whosin.families.base import (
    MAX_COINS,
    VALUE_WORDS,
    WHOLE_RANGE,
    Adversary,
    Bounded,
    Family,
    OtherPeople,
    Range,
    Shift,
    Worst,
    capped_ratio,
    check_prior,
    independent_beliefs,
    is_nested,
    largest_shift,
    output_columns,
    spelled_number,
    spelled_range,
    sums_given,
    vary_belief,
)
from whosin.families.count_search import CountSearch, largest_sampled, worst_known_count
from whosin.families.explicit import Explicit, worst_for_prior
from whosin.families.independent import one_of_two
from whosin.families.maxima import worst_known_maximum, worst_sampled_maximum
from whosin.priors import Independent as IndependentPrior
from whosin.priors import Prior, Uniform
from whosin.spaces.arrays import (
    MIN_LIKELIHOOD,
    check_underflow,
    exceeds_best,
    first_at_least,
    ignore_division,
    largest_ratio,
)
from whosin.spaces.quotients import (
    CountLattice,
    Lattice,
    MaximumLattice,
    as_count_lattice,
    binomial_rows,
    sample_axis,
    spread_on_grid,
)
from whosin.spaces.statistics import Contributions, CountColumns
from whosin.spaces.worlds import Subsets, need_records


@dataclass(frozen=True)
class Uninformed(Family):
    """D_N: the uniform distribution over all subsets, and no other."""

    name: ClassVar[str] = "uninformed"
    example: ClassVar[str] = "uninformed"
    key: ClassVar[str] = "uninformed"
    symbol: ClassVar[str] = "D_N"
    definition: ClassVar[str] = "the one prior under which all subsets are equally likely"
    source: ClassVar[str] = "Li13, distribution family 5.1"

    beliefs = independent_beliefs = (ONE_HALF, ONE_HALF)

    def relatives(self) -> Iterator[Family]:
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

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        return largest_shift(
            sums, positive, self.beliefs, lambda _entity: lambda _belief: Uniform()
        )

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        yield replace(
            worst_known_count(columns, 0, self.beliefs, positive), prior=lambda _belief: Uniform()
        )


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
            accepted, given = "strictly between 0 and 1", f"{self.low}..{self.high}"
            hint = "a person who is surely in or out is one of the k known people"
            raise invalid_value("low and high", accepted, given, hint)

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
        others = self.band.replace("a person", "any other person")
        return f"someone who knows at most {self.k} people, {others}"

    @property
    def argument(self) -> str:
        return f"{self.k}:{spelled_range(self.bounds)}"

    @classmethod
    def parse(cls, argument: str) -> Self:
        known, colon, beliefs = argument.partition(":")
        if not colon:
            message = f"the family at-most-known={shorten_value(argument)} has no range of beliefs"
            hint = "write at-most-known=k:0.1..0.9"
            raise InvalidInput(message, field="family", value=argument, hint=hint)
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
                yield entity, vary_belief(beliefs, entity)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        if isinstance(lattice, MaximumLattice):
            yield worst_known_maximum(likelihoods, lattice, self.k, self.bounds, positive)
            return
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
            yield Worst(ratio, entity, output, *self.bounds, vary_belief(beliefs, entity))

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst]:
        yield worst_known_count(columns, self.k, self.bounds, positive)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        beliefs = [self.bounds[0]] * sums.space.size
        return largest_shift(sums, positive, self.bounds, lambda e: vary_belief(beliefs, e))

    def _vertices(self, grid: CountLattice, kind: int) -> Iterator[list[Fraction]]:
        """Beliefs of everyone, the entity itself at low, for all ways to be at an end."""
        others = [len(members) - (each == kind) for each, members in enumerate(grid.kinds)]
        known = min(self.k, sum(others))
        ways = [list(_list_splits(count, known)) for count in others]
        if (tried := prod(map(len, ways))) > MAX_TRIED_PRIORS:
            message = f"{self.symbol} would have to try {spell(tried)} priors for this mechanism"
            hint = "use a count, or fewer entities"
            raise Unsupported(message, field="family", value=self, hint=hint)
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
        read_ranged(self.beta, "beta", "strictly between 0 and 1")

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
        return beliefs is not None and all(p in (0, rational(self.beta)) for p in beliefs)

    complete: ClassVar[bool] = True

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        beta = rational(self.beta)
        for likely in range(people):
            yield OtherPeople(people, 0, likely, beta, beta, range(1))

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        grid, beta = as_count_lattice(lattice), rational(self.beta)
        for world in range(grid.worlds):
            likely = grid.representative(world)
            beliefs = [beta * (each in likely) for each in range(grid.space.size)]
            for kind, count in zip(grid.kinds, grid.counts(world), strict=True):
                if count:
                    yield kind[0], lambda _belief, beliefs=beliefs: IndependentPrior(beliefs)  # type: ignore[misc]

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        beta = rational(self.beta)
        if isinstance(lattice, MaximumLattice):
            yield worst_sampled_maximum(likelihoods, lattice, beta, positive)
            return
        grid, array = spread_on_grid(lattice, likelihoods)
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
        prior = IndependentPrior([beta * (each in support) for each in range(grid.space.size)])
        yield Worst(ratio, entity, output, beta, beta, lambda _belief: prior)

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift]:
        return largest_shift(
            sums, positive, self.beliefs, lambda e: one_of_two(sums.space, e, ()), alone=True
        )

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst] | None:
        """If nobody but a few may be in, an output that begins at some count gives the last of
        them away; so does, negatively, one that only the empty set has. None without either."""
        people, beta = columns.space.size, rational(self.beta)
        if positive:
            found = (columns.before < 0) & (columns.counts > 0)
        else:
            after = columns.log_at(columns.counts + 1, columns.outputs)
            found = (columns.counts == 0) & (after == -np.inf)
        if found.any():
            place = int(np.argmax(found))
            growth, output = math.inf, int(columns.outputs[place])
            unsure = int(columns.counts[place]) - 1 if positive else 0
        elif (best := self._largest_growth(columns, positive)) is not None:
            growth, output, unsure = best
        else:
            return None
        search = CountSearch(columns, people - 1 - unsure, beta, beta)
        search.output = output
        beliefs = [beta] * (unsure + 1) + [Fraction(0)] * (people - 1 - unsure)
        prior = vary_belief(beliefs, 0)
        return iter([Worst(capped_ratio(growth), 0, output, beta, beta, prior, *search.sides())])

    def _largest_growth(
        self, columns: CountColumns, positive: bool
    ) -> tuple[float, int, int] | None:
        """(logarithm of the ratio, output, others who may be in), for not too many outputs: with
        one more who may be in, each count's mean is that of two neighbours; or where these leave
        the floats, or some output is impossible, in logarithms."""
        if columns.space.size**2 * (len(columns.starts) - 1) > MAX_SAMPLED_OPERATIONS or (
            len(columns.counts) < (columns.space.size + 1) * (len(columns.starts) - 1)
        ):
            return largest_sampled(columns, rational(self.beta), positive)
        beta, means, best = float(rational(self.beta)), columns.table, (0.0, 0, 0)
        for unsure in range(columns.space.size):
            if unsure:
                means = beta * means[1:] + (1 - beta) * means[:-1]
            below, above = means[:2] if positive else means[1::-1]
            if below.min() < MIN_LIKELIHOOD:
                return largest_sampled(columns, rational(self.beta), positive)
            with ignore_division():
                growth = np.log(above / below)
            output = int(np.argmax(growth))
            best = max(best, (float(growth[output]), output, unsure))
        return best


MAX_SAMPLED_OPERATIONS = 1 << 31


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


@dataclass(frozen=True)
class ValueOfOne(Bounded):
    """D_*: someone is known to be in, and the secret is what their rows say: one value of a row
    against another, all other rows being known (Zhao17, section III-B).

    Beliefs are those in the value in question; nothing is assumed of the other values. Unknown rows
    that do not depend on the person's average over cases in which they are known, so they change
    nothing; for rows that do, see `RecordMembership`.
    """

    low: object = 0
    high: object = 1

    name: ClassVar[str] = "value"
    example: ClassVar[str] = "value=0.05..0.5"
    key: ClassVar[str] = "secret"
    relation: ClassVar[str] = "replace"
    secret: ClassVar[str] = VALUE_WORDS
    symbol: ClassVar[str] = "D_*"
    definition: ClassVar[str] = "one value against another of someone who is in, others known"
    source: ClassVar[str] = "Zhao17, section III-B"
    theorems: ClassVar[tuple[str, ...]] = ("T14",)
    about_records: ClassVar[bool] = True

    @property
    def downward(self) -> bool:  # type: ignore[override]
        return self.bounds == WHOLE_RANGE

    upward = downward

    def adversary(self) -> Adversary:
        return replace(super().adversary(), theorems=("T14", "T11"))

    def contains(self, prior: Prior, space: Any) -> bool:
        space = need_records(space, "a value")
        listed = enumerate(map(rational, prior.on_records(space, flint_rational)))
        masses = {space.world(world): mass for world, mass in listed if mass}
        if len(masses) != 2 or sum(a != b for a, b in zip(*masses, strict=True)) != 1:
            return False
        return any(self.bounds[0] <= mass <= self.bounds[1] for mass in masses.values())

    def includes(self, other: Family) -> bool:
        return isinstance(other, ValueOfOne) and is_nested(self.bounds, other.bounds)

    def words(self) -> str:
        return (
            "someone who knows that a person is in the data, may know everything about everyone "
            f"else, {self.band}"
        )

    @classmethod
    def chosen(cls, value: object, prior: Range | None) -> Self:
        if value != cls.name:
            raise UnknownName("secret", str(value), ("membership", cls.name))
        return cls.within(prior or WHOLE_RANGE)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        need_records(lattice.space, "a value")
        return iter(())
