"""What every family of priors can do, the worst case it finds, and recognising priors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from whosin.errors import InvalidInput, Unsupported, check_kind, spell
from whosin.exact import Array, chosen_percent, flint_rational, number_range, rational, read_ranged
from whosin.priors import FixedSize, Independent, Prior, Table, Uniform
from whosin.spaces.arrays import Underflow, check_underflow
from whosin.spaces.quotients import Lattice, two_binomials
from whosin.spaces.statistics import Contributions, CountColumns
from whosin.spaces.worlds import Subsets


# Everyone but one person: some are known, and the others are at one of two beliefs.
#
# These are the priors at which profiles of counts are largest (F21), and some families have no
# other priors. Whoever is known is known to be in or out for certain.
@dataclass(frozen=True)
class OtherPeople:
    """The others: how many are at which belief, and how many known ones may be in.

    Attributes:
        people: how many there are, the person in question included.
        at_low, at_high: how many others are in with probability low, and high.
        inside: the numbers of known people who may be in; all other known ones are out.
    """

    people: int
    at_low: int
    at_high: int
    low: Fraction
    high: Fraction
    inside: range

    @property
    def unsure(self) -> int:
        return self.at_low + self.at_high

    @property
    def known(self) -> int:
        return self.people - 1 - self.unsure

    @property
    def weights(self) -> tuple[int, Array]:
        """(first, weights): how many of the uncertain others are in."""
        return two_binomials(self.at_low, float(self.low), self.at_high, float(self.high))

    @cached_property
    def rationals(self) -> Array:
        """The same, exactly, from 0 on."""
        from flint import fmpq_poly

        low, high = flint_rational(self.low), flint_rational(self.high)
        product = fmpq_poly([1 - low, low]) ** self.at_low
        product *= fmpq_poly([1 - high, high]) ** self.at_high
        values = np.empty(self.unsure + 1, dtype=object)
        values[:] = [product[power] for power in range(self.unsure + 1)]
        return values

    def prior(self, inside: int, belief: Any) -> Prior:
        """The prior with this belief in entity 0 and `inside` of the known others in."""
        known = [Fraction(1)] * inside + [Fraction(0)] * (self.known - inside)
        return Independent([belief, *known, *[self.low] * self.at_low, *[self.high] * self.at_high])

    def words(self, inside: int) -> str:
        """Who is looking, as a clause."""
        said = [(self.known, "knows about", f" ({inside} in, {self.known - inside} out)")]
        for count, p in ((self.at_low, self.low), (self.at_high, self.high)):
            said.append((count, f"is {chosen_percent(p, 'nearest')} sure of", ""))
        parts = [
            f"{verb} {'one other' if count == 1 else f'{count} others'}{more}"
            for count, verb, more in said
            if count
        ]
        return " and ".join(parts) or "has nobody else to think of"


# What every family of priors can do, and the shape of what it finds.
#
# A family never sees a mechanism. It gets an array of likelihoods, with one row per class of
# worlds, and answers with its worst priors on that array; `notions` turns them into levels.

Weighted = tuple[tuple[int, Fraction], ...]
Range = tuple[Fraction, Fraction]
WHOLE_RANGE: Range = (Fraction(0), Fraction(1))
MEMBERSHIP_WORDS, VALUE_WORDS = "that a person is in the data", "of a value of that person"
"""What someone may be sure of, after "sure"."""
PARAMETER_LETTERS = {"m": "m", "k": "k", "β": "beta"}
"""The parameters in symbols, and the fields that hold them."""


@dataclass(frozen=True)
class Adversary:
    """What a family means for ε between neighbouring worlds.

    Attributes:
        low, high: the beliefs that uncertain entities may have.
        relation: "add-remove" or "replace".
        group: how many entities may move together, so that r ≤ e^(group · ε).
        tight: whether no larger ε would do for every mechanism; otherwise a plan is sufficient.
        equivalent: whether a level under the family gives the ε of the same mechanism back.
        theorems: why.
    """

    low: Fraction
    high: Fraction
    relation: str
    group: int = 1
    tight: bool = True
    equivalent: bool = False
    theorems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Worst:
    """The worst case that a family found for one choice of entity.

    Attributes:
        ratio: Pr[o|t]/Pr[o|¬t], or its inverse for negative membership, as the search found it.
        entity, output: where, by position.
        low, high: the beliefs Pr[t] at which the family has a prior with these conditionals.
        prior: the family's prior at a belief between them.
        present, absent: (class, weight) given t and given ¬t, if they are few; else ask the prior.
    """

    ratio: Any
    entity: int
    output: int
    low: Fraction
    high: Fraction
    prior: Callable[[Fraction], Prior]
    present: Weighted | None = None
    absent: Weighted | None = None


@dataclass(frozen=True)
class Shift:
    """The worst case for noise on a sum, whose densities fall with the distance only (F10).

    Attributes:
        entity, low, high, prior: as in `Worst`.
        output: the statistic's value, a vector, at which it is seen.
        present, absent: (distance of the output from the statistic, weight) given t and given ¬t,
            up to a factor common to both.
    """

    entity: int
    output: tuple[Fraction, ...]
    low: Fraction
    high: Fraction
    prior: Callable[[Fraction], Prior]
    present: tuple[tuple[Fraction, Fraction], ...]
    absent: tuple[tuple[Fraction, Fraction], ...]


def far_apart(distance: Fraction, positive: bool) -> tuple[Any, Any]:
    """`Shift.present` and `absent` for two values, the output at the one that is named."""
    sides = ((Fraction(0), Fraction(1)),), ((distance, Fraction(1)),)
    return sides if positive else sides[::-1]


def capped_ratio(growth: float) -> float:
    """A ratio from its logarithm, for comparisons: the largest of all are taken as alike."""
    return math.exp(min(max(growth, 0.0), 700.0)) if growth < math.inf else math.inf


def largest_shift(
    sums: Contributions,
    positive: bool,
    beliefs: Range,
    prior: Callable[[int], Any],
    *,
    alone: bool = False,
) -> Iterator[Shift]:
    """The entity that adds most, for a family of independent priors with these beliefs.

    At an output beyond every value of the sum the ratio is e^(|w|/scale) under every independent
    prior, and by the triangle inequality it is nowhere larger. Where everyone else is known to be
    out (`alone`), the entity's own value is such an output.
    """
    kind = max(range(len(sums.kinds)), key=lambda kind: abs(sums.weights[kind]))
    sides = far_apart(abs(sums.weights[kind]), positive)
    entity = sums.kinds[kind][0]
    point = sums.total({kind: int(positive)}) if alone else sums.corner(kind, positive)
    yield Shift(entity, point, *beliefs, prior(entity), *sides)


class Family(ABC):
    """A set of priors: all the adversaries that one defends against."""

    name: ClassVar[str]
    """How it is called on the command line and in files."""
    form: ClassVar[str] = ""
    """How its parameters follow the name: "=m" must be given, "[=0.05..0.5]" may be."""
    example: ClassVar[str]
    """How one of them is spelled; empty where no text can say which."""
    key: ClassVar[str] = ""
    """The key of `AdversarySection` that chooses it, if it has one."""
    relation: ClassVar[str] = "add-remove"
    """The neighbours that its adversaries compare: "add-remove", or "replace" for a known size."""
    about_records: ClassVar[bool] = False
    """Whether its priors are about the values of rows, and not about who is in."""
    secret: ClassVar[str] = MEMBERSHIP_WORDS
    """What its adversaries want to be sure of, after "sure"."""
    symbol: ClassVar[str]
    definition: ClassVar[str]
    source: ClassVar[str]
    downward: ClassVar[bool] = False
    """For each of its priors it has t-scaled ones with Pr[t] as close to 0 as one likes."""
    upward: ClassVar[bool] = False
    """The same towards 1."""
    theorems: ClassVar[tuple[str, ...]] = ()
    tight: bool = True
    """Whether `worst` finds the sup; otherwise the ratio under `bounding` is a bound."""
    symmetric: bool = True
    """Whether it treats everyone alike, whoever is beside them."""
    composes: ClassVar[bool] = True
    """Whether several releases may share one plan against it; otherwise a plan is for one count."""
    hides_others: ClassVar[bool] = False
    """Whether what its adversaries do not know of others serves as noise, under a δ (F19)."""

    @property
    def parameters(self) -> tuple[object, ...]:
        """The numbers it was built from, to tell exact families from floating-point ones."""
        return tuple(getattr(self, each.name) for each in fields(self))  # type: ignore[arg-type]

    @abstractmethod
    def contains(self, prior: Prior, space: Any) -> bool:
        """Whether a prior belongs to the family on this space."""

    @abstractmethod
    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        """The worst prior for each entity that has to be tried; the level is the worst of them."""

    def worst_shift(self, sums: Contributions, positive: bool) -> Iterator[Shift] | None:
        """The same for noise on a sum, in closed form; None where that is not known."""
        return None

    def worst_count(self, columns: CountColumns, positive: bool) -> Iterator[Worst] | None:
        """The same for what shows a count, from its possible outputs alone."""
        return None

    def bounding(self, people: int) -> Family | None:
        """For families that are not tight: the one whose ratio bounds that of every prior; None
        where `worst` tries them all for so few people."""
        return None

    def narrows(self, people: int) -> bool:
        """Whether `narrow` searches among so few people."""
        return False

    def narrow(
        self, likelihoods: Array, lattice: Lattice, positive: bool, reached: float, most: float
    ) -> tuple[Worst | None, float]:
        """For families that are not tight: a worse prior than one with this γ, if there is one,
        and a bound on γ below `most`."""
        return None, most

    complete: ClassVar[bool] = False
    """Whether `crowds` and `extreme_priors` are all its priors, and not only those at which
    profiles are largest."""

    def crowds(self, people: int) -> Iterator[OtherPeople]:
        """The priors at which the profile of a count is largest, whatever the mechanism (F21)."""
        raise self._unfailing()

    def extreme_priors(self, lattice: Lattice) -> Iterator[tuple[int, Callable[[Fraction], Prior]]]:
        """(entity, its prior at a belief) for the priors at which the profile of any mechanism on
        the lattice is largest.
        """
        raise self._unfailing()

    def _unfailing(self) -> Unsupported:
        return Unsupported(
            f"a failure probability is not known for {self.symbol}",
            field="family",
            value=self,
            hint="use at-most-known, fixed-probability, uninformed, independent or listed priors",
        )

    def check(self, space: Subsets) -> None:  # noqa: B027
        """Raise `InvalidInput` where the family makes no sense on this space."""

    @property
    def beliefs(self) -> Range:
        """The least and the largest belief that an uncertain entity may have."""
        return WHOLE_RANGE

    @property
    def independent_beliefs(self) -> Range | None:
        """The same where all its priors are known to be independent; otherwise None."""
        return None

    def adversary(self) -> Adversary:
        """What ε between neighbouring worlds does against the family.

        Raises:
            Unsupported: no finite ε protects against it, or it is not known which does.
        """
        return Adversary(*self.beliefs, self.relation, tight=False, theorems=("T4", "T11"))

    def includes(self, other: Family) -> bool:
        """Whether it is known to contain another on every space on which both make sense; both in
        canonical spelling."""
        return self == other

    def canonical(self) -> Family:
        """The same family in one spelling, with exact numbers."""
        return self

    def relatives(self) -> Iterator[Family]:
        """Other families that include it, or that it includes, at the same level: chains of
        theorems may pass through them."""
        return iter(())

    @abstractmethod
    def words(self) -> str:
        """Who it is, for people: "someone who …"."""

    @property
    def summary(self) -> str:
        """Its symbol with its parameters, and its definition."""
        symbol = self.symbol
        for letter, name in PARAMETER_LETTERS.items():
            if hasattr(self, name):
                symbol = symbol.replace(f"^{letter}", f"^{getattr(self, name)}")
        return f"{symbol} ({self.definition}{self.limits})"

    @property
    def limits(self) -> str:
        """The end of its definition: which beliefs it leaves out."""
        return ""

    @property
    def argument(self) -> str:
        """Its parameters as `parse` reads them."""
        return ""

    @property
    def spelled(self) -> str:
        """The family as `read_family` reads it: independent=0.05..0.5."""
        argument = self.argument
        return f"{self.name}={argument}" if argument else self.name

    @classmethod
    def parse(cls, argument: str) -> Self:
        """The family from its parameters as they are spelled on the command line and in files."""
        return cls()

    @classmethod
    def chosen(cls, value: int, prior: Range | None) -> Self:
        """The family from its plain word, and the range of beliefs where one was given."""
        if prior is not None:
            message, hint = f"a prior has no meaning with {cls.key}", "leave the prior out"
            raise InvalidInput(message, field=cls.key, value=spelled_range(prior), hint=hint)
        return cls() if value is True else cls(value)  # type: ignore[call-arg]


class Bounded(Family):
    """A family whose uncertain entities have beliefs in [low, high] only."""

    low: object
    high: object

    def __post_init__(self) -> None:
        _ = self.bounds

    form: ClassVar[str] = "[=0.05..0.5]"

    @cached_property
    def bounds(self) -> Range:
        return read_interval(self.low, self.high)

    @property
    def beliefs(self) -> Range:
        return self.bounds

    def adversary(self) -> Adversary:
        reason = "T4" if self.relation == "add-remove" else "T5"
        theorems = (reason,) if self.beliefs == WHOLE_RANGE else (reason, "T11")
        return Adversary(*self.beliefs, self.relation, 1, self.tight, self.tight, theorems)

    def canonical(self) -> Family:
        low, high = self.beliefs
        return replace(self, low=low, high=high)  # type: ignore[type-var]

    @property
    def band(self) -> str:
        """Its beliefs, as the end of a sentence about someone."""
        low, high = self.bounds
        if (low, high) == WHOLE_RANGE:
            return "and believes anything at all about that person"
        if low == high:
            return f"and is {chosen_percent(low, 'nearest')} sure {self.secret}"
        ends = " and ".join(chosen_percent(end, "nearest") for end in (low, high))
        return f"and is between {ends} sure {self.secret}"

    @property
    def limits(self) -> str:
        low, high = map(float, self.bounds)
        return "" if self.bounds == WHOLE_RANGE else f", beliefs {spell(low)} to {spell(high)}"

    @property
    def argument(self) -> str:
        return "" if self.bounds == WHOLE_RANGE else spelled_range(self.bounds)

    @classmethod
    def parse(cls, argument: str) -> Self:
        return cls.within(number_range(argument, "prior range") if argument else WHOLE_RANGE)

    @classmethod
    def within(cls, beliefs: Range) -> Self:
        return cls(*beliefs)  # type: ignore[call-arg]

    @classmethod
    def chosen(cls, value: int, prior: Range | None) -> Self:
        return cls.within(prior or WHOLE_RANGE)


def is_nested(larger: Range, smaller: Range) -> bool:
    return larger[0] <= smaller[0] and smaller[1] <= larger[1]


def spelled_number(value: object) -> str:
    """A number as `rational` reads it: a decimal where that is exact, or a ratio."""
    number = rational(value)
    decimal = f"{spell(number, 12)}"
    return decimal if Fraction(decimal) == number else str(number)


def spelled_range(beliefs: Range) -> str:
    """A range of beliefs as `number_range` reads it."""
    low, high = map(spelled_number, beliefs)
    return low if low == high else f"{low}..{high}"


def read_interval(low: object, high: object) -> Range:
    accepted = "between 0 and 1"
    ends = read_ranged(low, "low", accepted), read_ranged(high, "high", accepted)
    if ends[0] > ends[1]:
        message = f"the range ends at {high}, below its beginning, {low}"
        raise InvalidInput(message, field="low", value=low, hint=f"write {high}..{low}")
    if ends[0] == ends[1] and ends[0] in (0, 1):
        message = f"a belief of {low} is certain, so there is nothing to protect"
        hint = "give a range with some belief strictly between 0 and 1"
        raise InvalidInput(message, field="low and high", value=low, hint=hint)
    return ends


def vary_belief(beliefs: Sequence[Fraction], entity: int) -> Callable[[Fraction], Prior]:
    """The independent prior with these beliefs, by the belief in one entity."""
    return lambda belief: Independent([*beliefs[:entity], belief, *beliefs[entity + 1 :]])


def two_worlds(
    space: Subsets, present: tuple[int, ...], absent: tuple[int, ...]
) -> Callable[[Fraction], Prior]:
    """The prior that puts p on one set of entities and 1 − p on another."""

    def prior(belief: Fraction) -> Prior:
        inside, outside = (sum(1 << entity for entity in world) for world in (present, absent))
        return Table({inside: belief, outside: 1 - belief})

    return prior


def output_columns(array: Array, limit: int = 1 << 25) -> Iterator[tuple[int, Array]]:
    """The outputs in groups small enough to copy, each with the number of its first output."""
    step = max(1, limit // len(array))
    for start in range(0, array.shape[1], step):
        piece = array[:, start : start + step]
        yield start, piece if step >= array.shape[1] else np.ascontiguousarray(piece)


# Recognising what kind of prior a distribution is, exactly, on spaces small enough to list.
def check_prior(prior: Prior, space: Subsets) -> None:
    """Refuse what is not a prior, not a space, or a prior of another space."""
    accepted = "a prior, such as Independent([0.5, 0.2])"
    known: Prior = check_kind(prior, Prior, "prior", accepted)  # type: ignore[type-abstract]
    known.check(check_kind(space, Subsets, "space", "Subsets(…)"))


def independent_beliefs(prior: Prior, space: Subsets) -> tuple[Fraction, ...] | None:
    """p_t for each entity if the prior is independent, otherwise None."""
    check_prior(prior, space)
    if isinstance(prior, Independent | Uniform):
        return tuple(known_beliefs(prior, space))
    beliefs = tuple(prior.belief(space, entity) for entity in range(space.size))
    same = Independent(beliefs).probabilities(space) == prior.probabilities(space)
    return beliefs if same else None


def known_beliefs(prior: Prior, space: Subsets) -> Sequence[Fraction]:
    """p_t for each entity under a prior that is independent, or uniform, by its kind."""
    same = (Fraction(1, 2),) * space.size
    return prior.beliefs(space) if isinstance(prior, Independent) else same


def fixed_size_structure(
    prior: Prior, space: Subsets
) -> tuple[frozenset[int], dict[int, Fraction], int] | None:
    """(entities surely in, odds of the uncertain ones, size) if the prior is independent given a
    size; otherwise nothing."""
    check_prior(prior, space)
    worlds = {
        frozenset(e for e in range(space.size) if number >> e & 1): mass
        for number, mass in enumerate(prior.probabilities(space))
        if mass
    }
    sizes = {len(world) for world in worlds}
    if len(sizes) != 1:
        return None
    size = sizes.pop()
    known = frozenset.intersection(*worlds)
    unsure = sorted(frozenset.union(*worlds) - known)
    if not unsure:
        return known, {}, size
    expected = {known | set(chosen) for chosen in combinations(unsure, size - len(known))}
    if expected != set(worlds):
        return None
    # Odds relative to the first uncertain entity, read off one exchange each, then checked.
    odds = {unsure[0]: Fraction(1)}
    for entity in unsure[1:]:
        with_first = next(w for w in worlds if unsure[0] in w and entity not in w)
        odds[entity] = worlds[with_first - {unsure[0]} | {entity}] / worlds[with_first]
    beliefs = [Fraction(e in known) for e in range(space.size)]
    for entity, share in odds.items():
        beliefs[entity] = share / (1 + share)
    same = FixedSize(beliefs, size).probabilities(space) == prior.probabilities(space)
    return (known, odds, size) if same else None


# Whether sums over a prior were lost to the range of floats (see `spaces.arrays`).
#
# A sum of probabilities times likelihoods that underflows looks like an impossible output, whose
# ratio is 0/0 = 1. So sums that are suspiciously small are compared with what is really possible.

MAX_COINS = 900
"""Up to this many coins the probability of all of them is a float."""


def sums_given(
    prior: Prior, lattice: Lattice, entity: int, array: Array, largest: Array
) -> tuple[Array, Array]:
    """(Pr[o|t], Pr[o|¬t]) for an entity that is uncertain; `Underflow` where floats lost some."""
    exact = array.dtype == object
    present, absent = prior.given(lattice, entity, flint_rational if exact else float)
    sides = present @ array, absent @ array
    if exact:
        return sides
    if not all(abs(side.sum() - 1) < 1e-6 for side in (present, absent)):
        raise Underflow
    for which, sums in enumerate(sides):

        def possible(which: int = which) -> Array:
            return np.asarray(possible_classes(prior, lattice, entity)[which] @ (array > 0))

        check_underflow(sums, largest, possible)
    return sides


def possible_classes(prior: Prior, lattice: Lattice, entity: int) -> tuple[Array, Array]:
    """The classes of worlds that are possible given that the entity is in, and that it is out."""
    same, number = _fair_coins(prior, lattice)
    present, absent = same.given(lattice, entity, number)
    return present != 0, absent != 0


def support_classes(prior: Prior, lattice: Lattice) -> Array:
    same, number = _fair_coins(prior, lattice)
    return np.asarray(same.mass(lattice, number) != 0)


def _fair_coins(prior: Prior, lattice: Lattice) -> tuple[Prior, Any]:
    """A prior with the same worlds, and the kind of number that none of its probabilities is too
    small for: coins in floats, for few independent entities."""
    if not isinstance(prior, Independent | Uniform) or lattice.space.size > MAX_COINS:
        return prior, flint_rational
    beliefs = [prior.belief(lattice.space, other) for other in range(lattice.space.size)]
    return Independent([p if p in (0, 1) else Fraction(1, 2) for p in beliefs]), float
