"""What every notion can do, `Level` and `Witness`, and certified worst cases (F12)."""

from __future__ import annotations

import contextlib
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from whosin import beliefs
from whosin.errors import Unsupported, check_kind, invalid_value, read_list, shorten_result
from whosin.exact import (
    Array,
    Number,
    Rational,
    exact_fraction,
    flint_rational,
    is_exact,
    rational,
    round_up,
)
from whosin.families import Family, Worst
from whosin.families.base import Shift, possible_classes
from whosin.mechanisms import Channel
from whosin.mechanisms.additive_noise import SumChannel, point_labels
from whosin.mechanisms.channel import ColumnChannel, CountChannel
from whosin.notebook_display import Displayed
from whosin.priors import Prior
from whosin.spaces import Lattice, Space, Subsets
from whosin.spaces.arrays import MIN_LIKELIHOOD, Underflow, scale_columns
from whosin.spaces.worlds import need_subsets

CLAIM_TOLERANCE = 1e-12
INFINITE_WORDS = ("inf", "infinity", "∞")
"""How an infinite claim is written."""


@dataclass(frozen=True)
class Witness:
    """The worst case: who learns what about whom, and how.

    Attributes:
        entity: the person concerned (None on records).
        output: what is seen.
        prior, posterior: the belief that the entity is in the data, before and after.
        ratio: r = Pr[output | in] / Pr[output | out].
        attained: False where the level is a limit; `distribution` is then a prior close to it.
        row, known, values: on records, the row, the other rows' values, and the two values of the
            row that the ratio compares.
        rows_known: for Bayesian semantic privacy, which rows are known.
        guess, strategy: for leakages, the best guess before, and the best one for each output;
            `prior` and `posterior` are then what they are worth. For a ratio of two worlds, the
            likelier one.
        against: the world that it is compared with.
        group: for groups of rows, the two values that each row of the group has.
    """

    output: Hashable
    prior: Number
    posterior: Number
    ratio: Number
    attained: bool = True
    entity: Hashable | None = None
    adversary: Callable[[], Prior] | None = field(default=None, repr=False, compare=False)
    row: int | None = None
    known: dict[int, int] | None = None
    values: tuple[int, int] | None = None
    rows_known: tuple[int, ...] | None = None
    guess: Hashable | None = None
    strategy: dict[Hashable, Hashable] | None = None
    against: Hashable | None = None
    group: dict[int, tuple[int, int]] | None = None

    @classmethod
    def shown(
        cls, output: Hashable, numbers: tuple[Number, Number, Number], exact: bool, **more: Any
    ) -> Witness:
        """A case by its output, (prior, posterior, ratio) and whether these may be fractions."""
        prior, posterior, ratio = (exact_or_up(number, exact) for number in numbers)
        return cls(output, prior, posterior, ratio, **more)

    def __repr__(self) -> str:
        names = ("entity", "row", "output", "prior", "posterior", "ratio", "values", "guess")
        return shorten_result(self, *names, *(() if self.attained else ("attained",)))

    @cached_property
    def distribution(self) -> Prior | None:
        """The adversary's prior, built when it is asked for."""
        return None if self.adversary is None else self.adversary()


@dataclass(frozen=True)
class Level(Displayed):
    """How much a mechanism leaks under a notion.

    Attributes:
        value: γ, ε in nats or ρ; a fraction where all inputs are exact; may be infinite.
        witness: the case behind it; None when the family leaves nobody uncertain, or when the value
            is a bound and no prior of the family was found.
        exact: whether `value` is the tight level; otherwise it is an upper bound.
        theorems: the numbers of the theorems it rests on.
        lower: for a bound, the level that the witness does attain; for averages a lower bound.
        notion: what was measured.
        note: what the level leaves out, in a sentence; empty where it leaves out nothing.
        nearer: where the level is a limit, the case of the same kind that is above a given claim.
        prior: for an average over all priors, the one that attains `lower`.
    """

    value: Number
    witness: Witness | None
    exact: bool
    theorems: tuple[str, ...]
    lower: Number | None = None
    notion: object = field(default=None, repr=False)
    note: str = ""
    nearer: Callable[[Fraction], Witness] | None = field(default=None, repr=False, compare=False)
    prior: Prior | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return shorten_result(self, "value", "exact", "lower", "witness", "theorems", "note")

    def holds(self, at_most: object) -> bool | None:
        """Whether the level is at most a claim: True, False, or None where it is undecided.

        A bound that is above the claim refutes nothing: only a case above the claim does, and
        `refutation` has it. Compared exactly for exact values, and otherwise up to one part in
        10^12, the accuracy of floating-point input.
        """
        claim = _read_claim(at_most)
        if _is_at_most(self.value, claim):
            return True
        if self.exact:
            return False
        return None if self.lower is None or _is_at_most(self.lower, claim) else False

    def refutation(self, at_most: object) -> Witness | None:
        """The case whose level is above the claim; None where the claim is not refuted, and for
        averages, which no single case attains."""
        if self.holds(at_most) is not False or self.witness is None:
            return None
        if self.witness.attained or self.nearer is None:
            return self.witness
        return self.nearer(rational(at_most, "claim"))

    def __float__(self) -> float:
        try:
            return float(self.value)
        except OverflowError:  # a ratio that no float reaches
            return math.inf


def _read_claim(value: object) -> Fraction | float:
    if isinstance(value, float) and math.isnan(value):
        raise invalid_value("claim", "a number", value)
    if isinstance(value, str) and value.strip().lower() in INFINITE_WORDS:
        return math.inf
    return math.inf if value == math.inf else rational(value, "claim")


def _is_at_most(level: Number, claim: Fraction | float) -> bool:
    if claim == math.inf or level == math.inf:
        return claim == math.inf
    if isinstance(level, float):
        return Fraction(level) <= Fraction(claim) * (1 + Fraction(CLAIM_TOLERANCE))
    return bool(level <= claim)


MAX_EXACT_WORLDS = 1 << 16
"""Above this many worlds a certificate sums in floats, with a bound on the rounding."""
MAX_EXACT_SEARCHED_ENTRIES = 1 << 20
"""Up to this many likelihoods are searched in rationals where floats do not reach."""
SEARCH_SLACK = Fraction(1, 2**48)


class Notion(ABC):
    """A definition of privacy with a parameter to measure."""

    unit: ClassVar[str]
    """What the level is: γ, ε or ρ."""
    label: ClassVar[str] = ""
    """What it is, for people; its name with spaces by default."""
    short_names: ClassVar[tuple[str, ...]] = ()
    """Other names for it on the command line."""
    spelled_as: ClassVar[Mapping[str, str]] = {"m": "candidates", "prior": "prior-file"}
    """Fields whose word in files and options is another one."""
    averages: ClassVar[bool] = False
    """Whether the level is an average, so that no single case stands behind it."""
    about_records: bool | None = False
    """True for notions about the values of rows, False for those about who is in, None for both."""

    @property
    def title(self) -> str:
        """What is measured, in words, with its parameters; by default its name."""
        return " ".join(re.findall("[A-Z][a-z]+", type(self).__name__)).capitalize()

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The priors on records that it is about."""
        return ()

    def canonical(self) -> Notion:
        """The same notion in one spelling, with exact numbers, so that equal ones compare equal."""
        return self

    @abstractmethod
    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        """The smallest parameter for which the mechanism satisfies the definition.

        Args:
            mechanism: a channel, or a mechanism together with its space.
        """


@dataclass(frozen=True)
class OfOnePrior(Notion):
    prior: Prior
    about_records: ClassVar[bool] = True  # type: ignore[misc]

    def __post_init__(self) -> None:
        check_kind(self.prior, Prior, "prior", "a prior on records, such as Uniform()")  # type: ignore[type-abstract]

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,)

    def canonical(self) -> Notion:
        return replace(self, prior=self.prior.canonical())


@dataclass(frozen=True, init=False)
class OfPriors(Notion):
    """A notion about rows that follow one of several priors.

    Args:
        prior: a prior on records, or a list of them; then the largest of their levels counts.
    """

    prior: Prior | tuple[Prior, ...]
    about_records: ClassVar[bool] = True  # type: ignore[misc]

    def __init__(self, prior: Prior | Iterable[Prior]) -> None:
        accepted = "a prior on records, or a list of them"
        priors = prior if isinstance(prior, Prior) else read_list(prior, "prior", accepted)
        object.__setattr__(self, "prior", priors)
        if not self.priors or not all(isinstance(each, Prior) for each in self.priors):
            raise invalid_value("prior", accepted, repr(prior))

    @property
    def title(self) -> str:
        many = "" if isinstance(self.prior, Prior) else f" (the worst of {len(self.prior)} priors)"
        return super().title + many

    @property
    def priors(self) -> tuple[Prior, ...]:
        return (self.prior,) if isinstance(self.prior, Prior) else self.prior

    def canonical(self) -> Self:
        distinct = tuple(dict.fromkeys(prior.canonical() for prior in self.priors))
        others = [getattr(self, each.name) for each in fields(self)[1:]]
        return type(self)(distinct[0] if len(distinct) == 1 else distinct, *others)

    def worst_prior(self, measure: Callable[[Prior], Level]) -> Level:
        """The largest of the priors' levels."""
        levels = [measure(prior) for prior in self.priors]
        worst = max(levels, key=lambda level: level.value)
        if worst.exact:
            return replace(worst, notion=self)
        # The witness is the case that attains most, which another prior than the worst may have.
        attaining = max(levels, key=_attained_level)
        lower = _attained_level(attaining)
        return replace(worst, witness=attaining.witness, lower=lower, notion=self)


def _attained_level(level: Level) -> Number:
    return level.value if level.lower is None else level.lower


@dataclass(frozen=True)
class Certificate:
    """The likelihood ratio of a worst case, recomputed; `log` where it is e to a known power."""

    ratio: Fraction | float
    exact: bool
    log: Fraction | None = None


def subset_lattice(channel: Channel, notion: str) -> Lattice:
    """The lattice of a channel about subsets, or an error that says what is missing."""
    need_subsets(channel.space, notion)
    assert channel.lattice is not None
    return channel.lattice


def certify_worst(channel: Channel, worst: Worst, positive: bool) -> Certificate:
    """Recompute the ratio of a worst case from the channel's own entries, in exact arithmetic.

    positive: Pr[o|t] / Pr[o|¬t]; otherwise the inverse.
    """
    lattice, exact = subset_lattice(channel, "membership privacy"), channel.is_exact
    if worst.present is not None and worst.absent is not None:
        top, bottom = (worst.present, worst.absent) if positive else (worst.absent, worst.present)
        log = None
        if len(top) == len(bottom) == 1:
            log = channel.entries.log_ratio(top[0][0], bottom[0][0], worst.output)
        return Certificate(channel.ratio(top, bottom, worst.output), exact, log)
    prior = worst.prior(worst.low)
    if exact and hasattr(worst.ratio, "p") and worst.ratio > 1:  # as it was searched
        return Certificate(exact_fraction(worst.ratio), is_exact(*prior.parameters))
    if lattice.worlds > MAX_EXACT_WORLDS:
        with contextlib.suppress(Underflow):
            return Certificate(_float_ratio(channel, prior, worst, positive), False)
    masses = [
        [(int(world), mass[world]) for world in np.flatnonzero(mass != 0)]
        for mass in prior.given(lattice, worst.entity, flint_rational)
    ]
    inside, outside = masses if positive else masses[::-1]
    ratio = channel.ratio(inside, outside, worst.output)
    return Certificate(ratio, exact and is_exact(*prior.parameters))


def _float_ratio(channel: Channel, prior: Prior, worst: Worst, positive: bool) -> Fraction | float:
    """Sums of products of non-negative floats, correctly rounded (fsum). A prior's mass is a
    product of n factors or a convolution of n steps, each rounded once or twice, so each sum is
    within (2n + 8) units of 2^−53 of the truth; the ratio is enlarged by more than twice that."""
    assert channel.lattice is not None
    present, absent = prior.given(channel.lattice, worst.entity, float)
    column = channel.likelihoods[:, worst.output]
    inside, outside = (math.fsum(mass * column) for mass in (present, absent))
    least = MIN_LIKELIHOOD * min(1.0, float(column.max()))
    if min(inside, outside) < least:
        worlds = possible_classes(prior, channel.lattice, worst.entity)
        for total, some in zip((inside, outside), worlds, strict=True):
            if total < least and (column[some] > 0).any():
                raise Underflow
    top, bottom = (inside, outside) if positive else (outside, inside)
    if bottom == 0:
        return math.inf if top else Fraction(1)
    return Fraction(top) / Fraction(bottom) * (1 + _rounding_bound(channel.lattice))


def _rounding_bound(lattice: Lattice) -> Fraction:
    """More than the relative error of a ratio of two sums over the worlds of a lattice."""
    return Fraction(4 * lattice.space.size + 32, 2**53)


def certify_shifts(
    channel: Channel, family: Family, positive: bool
) -> list[tuple[Shift, Certificate]] | None:
    """The family's worst cases for noise on a sum; None for other channels and families."""
    if not isinstance(channel, SumChannel):
        return None
    shifts = family.worst_shift(channel.sums, positive)
    if shifts is None:
        return None
    result = []
    for shift in shifts:
        sides = (shift.present, shift.absent) if positive else (shift.absent, shift.present)
        log = None
        if channel.noise.scale is not None and max(map(len, sides)) == 1:
            log = (sides[1][0][0] - sides[0][0][0]) / channel.noise.scale
        ratio = channel.distance_ratio(*sides)
        result.append((shift, Certificate(ratio, channel.noise.alpha is not None, log)))
    return result


WorstCase = tuple[Worst | Shift, Certificate, beliefs.WorstBelief]


def worst_case(channel: Channel, family: Family, positive: bool) -> WorstCase | None:
    """The family's worst case on a channel, certified, at the worst belief it allows."""
    lattice = subset_lattice(channel, "membership privacy")
    family.check(lattice.space)

    def believe(worst: Worst | Shift, ratio: Fraction | float) -> beliefs.WorstBelief:
        return beliefs.worst_belief(ratio, *beliefs.sides(worst.low, worst.high, positive))

    if (shifts := certify_shifts(channel, family, positive)) is not None:
        cases = [(*case, believe(case[0], case[1].ratio)) for case in shifts]
        return max(cases, key=lambda case: case[2].gamma, default=None)
    if (found := _worst_count(channel, family, positive)) is not None:
        tried = [(worst, certify_worst(channel, worst, positive)) for worst in found]
        seen = [(*case, believe(case[0], case[1].ratio)) for case in tried]
        return max(seen, key=lambda case: case[2].gamma, default=None)
    result: list[Worst] = []
    for numbers, array in channel.searched(symmetric=family.symmetric):
        found = _search_trusted(
            channel, array, lambda array: list(family.worst(array, lattice, positive))
        )
        result += [replace(worst, output=int(numbers[worst.output])) for worst in found]
        if any(worst.ratio == math.inf for worst in found):
            break

    def searched(worst: Worst) -> Fraction | float:
        return math.inf if worst.ratio == math.inf else exact_fraction(worst.ratio)

    best = max(result, key=lambda worst: believe(worst, searched(worst)).gamma, default=None)
    if best is None:
        return None
    certificate, ratio = certify_worst(channel, best, positive), searched(best)
    if best.present is None and not certificate.exact and 1 < ratio < math.inf:
        # Sums were searched in floats: another output may be worse by their rounding.
        return (
            best,
            certificate,
            believe(best, max(certificate.ratio, ratio * (1 + _rounding_bound(lattice)))),
        )
    return best, certificate, believe(best, certificate.ratio)


def _worst_count(channel: Channel, family: Family, positive: bool) -> list[Worst] | None:
    """The family's worst cases for what shows a count; None for other channels and families."""
    if not isinstance(channel, CountChannel):
        return None
    numbers, columns = channel.columns
    try:
        found = family.worst_count(columns, positive)
        if found is None:
            return None
        return [replace(worst, output=int(numbers[worst.output])) for worst in found]
    except Underflow:
        if channel.counts.people <= MAX_TABULATED_PEOPLE:
            return None
        raise too_unlikely() from None


MAX_TABULATED_PEOPLE = 1_000
"""Above, a family that has to try a prior for each number of people does not try all worlds."""


def too_unlikely() -> Unsupported:
    return Unsupported(
        "under these priors some outputs are less likely than the smallest float",
        field="family",
        hint="give very unlikely entities more probability, or use fewer of them",
    )


def _search_trusted(
    channel: Channel, array: Array, search: Callable[[Array], list[Worst]]
) -> list[Worst]:
    """Search the likelihoods as they are; where a sum underflows, with scaled columns; and where
    that does not help, in exact rationals.
    """
    with contextlib.suppress(Underflow):
        return search(array)
    with contextlib.suppress(Underflow):
        return search(scale_columns(array))
    if isinstance(channel, ColumnChannel) or array.size > MAX_EXACT_SEARCHED_ENTRIES:
        raise too_unlikely()
    return search(channel.rationals)


def make_witness(
    channel: Channel,
    worst: Worst | Shift,
    certificate: Certificate,
    belief: Fraction,
    *,
    positive: bool,
    attained: bool = True,
) -> Witness:
    """Name the entity, the output and the beliefs of a worst case at one prior belief in t."""
    assert isinstance(channel.space, Subsets)
    ratio = certificate.ratio if positive else invert_ratio(certificate.ratio)
    where = worst.output
    return Witness.shown(
        channel.outputs[where] if isinstance(where, int) else point_labels([where])[0],
        (belief, beliefs.posterior(ratio, belief), ratio),
        certificate.exact,
        entity=channel.space.entities[worst.entity],
        adversary=lambda: worst.prior(belief),
        attained=attained,
    )


def invert_ratio(ratio: Fraction | float) -> Fraction | float:
    """1/r, where r may be 0 or infinite."""
    return Fraction(0) if ratio == math.inf else 1 / ratio if ratio else math.inf


def exact_or_up(value: Number, exact: bool) -> Number:
    """A number on its way out: a fraction where everything was exact, else a float rounded up, or
    a whole number where no float is large enough."""
    if isinstance(value, float):
        return value
    shown = Rational(value) if exact else round_up(Fraction(value))
    return Rational(math.ceil(value)) if shown == math.inf else shown
