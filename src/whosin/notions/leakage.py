"""g-leakage, maximal leakage and pointwise maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import Any, ClassVar

import numpy as np

from whosin.errors import UnknownName, Unsupported, invalid_value, read_list
from whosin.exact import Array, exact_fraction, flint_rational, is_exact, log_up, rational, round_up
from whosin.families import AnyPrior, Explicit, Family, FixedProbability
from whosin.mechanisms import Channel, read_channel
from whosin.notions.base import Level, Notion, OfPriors, Witness, exact_or_up
from whosin.notions.certificates import bracket_level
from whosin.notions.gains import GainFunction, Tries, read_gain_function, world_name
from whosin.notions.prior_sets import LeakageOver, SetCorners, enclose_maximum
from whosin.priors import FixedSize, Independent, Prior, PriorSet, Uniform, WorldTable
from whosin.priors.sets import Row, RowSet, member_prior
from whosin.spaces import CountLattice, Records, Space, Subsets
from whosin.spaces.arrays import scaled_products
from whosin.spaces.worlds import need_records


@dataclass(frozen=True)
class MaximalLeakage(Notion):
    """ln Σ_y max_x Pr[y|x], in nats: over all priors and gains no guess becomes better by a larger
    factor (Issa et al. 2020). Worlds that are all alike before, of which one is guessed, attain it.
    """

    unit: ClassVar[str] = "nats"
    averages: ClassVar[bool] = True
    about_records: ClassVar[None] = None  # type: ignore[misc]

    title = "Maximal leakage (any prior, any gain)"

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space)
        channel.need_finite("maximal leakage")
        values, rows = largest_likelihoods(channel)
        factor = max(sum(values, Fraction(0)), Fraction(1))
        share = Fraction(1, channel.likelihoods.shape[0])
        seen = zip(channel.outputs, rows, values, strict=True)
        case = Witness.shown(
            None,
            (share, factor * share, factor),
            channel.exact is not None,
            guess=row_name(channel, 0),
            strategy={name: row_name(channel, row) for name, row, value in seen if value},
            adversary=lambda: WorldTable(dict.fromkeys(row_worlds(channel), share)),
        )
        return Level(log_up(factor), case, True, (), notion=self)


def largest_likelihoods(channel: Channel) -> tuple[list[Fraction], list[int]]:
    """For each output the largest likelihood, exactly, and the row that has it."""
    wide = channel.wide
    near = wide >= wide.max(axis=0) * (1 - 2.0**-50)
    values, rows = [], []
    for output in range(wide.shape[1]):
        listed = np.flatnonzero(near[:, output])
        if channel.exact is None:
            listed = listed[np.argmax(wide[listed, output])][None]
        best = max((channel.entries.at(int(row), output), -int(row)) for row in listed)
        values.append(rational(best[0]))
        rows.append(-best[1])
    return values, rows


def row_name(channel: Channel, row: int) -> Hashable:
    """A world of a channel's row, as people write it."""
    lattice = channel.lattice
    if lattice is None or lattice.is_single:
        return world_name(channel.space, row)
    assert isinstance(channel.space, Subsets)
    return tuple(channel.space.entities[entity] for entity in lattice.representative(row))


def row_worlds(channel: Channel) -> list[int]:
    lattice, rows = channel.lattice, range(channel.likelihoods.shape[0])
    if lattice is None or lattice.is_single:
        return list(rows)
    return [sum(1 << entity for entity in lattice.representative(row)) for row in rows]


# g-leakage: how much an output helps someone who guesses (Alvim et al. 2012).
#
# V(π) = max over guesses w of Σ_x π_x g(w, x) before the output, Σ_y max_w Σ_x π_x A(y|x) g(w, x)
# after it. All in rationals.

LEAKAGE_FORMS = ("multiplicative", "additive")
MAX_TRIED_ENTRIES = 1 << 22
"""All priors of a family are tried up to this many entries of the channel for all of them."""
TRIED_BELIEFS = tuple(Fraction(step, 8) for step in range(1, 8))
"""Beliefs within a family's range that are tried for a lower end."""


@dataclass(frozen=True, init=False)
class Leakage(Notion):
    """How much better the best guess becomes: V after over V before, or their difference.

    Args:
        gain: what a guess is worth: rows of numbers (guesses × worlds), a `GainFunction`, or its
            spelling, such as "identity", "tries=3" or "singling-out=1/4".
        prior: a prior, a list of priors, or a family; then the largest of their leakages counts,
            exactly for lists, for families of so few priors that all can be tried (uninformed; one
            belief for everyone who is uncertain), and for any prior where the world itself is
            guessed in one try. For other families it is a bracket. Over a set of priors (`Hull`,
            `Box`) it is exact where few corners and guesses have to be combined, else a bracket.
        form: "multiplicative" (a factor of at least 1) or "additive" (a difference).
    """

    gain: GainFunction
    prior: Prior | tuple[Prior, ...] | Family
    form: str = "multiplicative"
    unit: ClassVar[str] = "leakage"
    averages: ClassVar[bool] = True
    about_records: ClassVar[None] = None  # type: ignore[misc]

    def __init__(
        self, gain: object, prior: Prior | Iterable[Prior] | Family, form: str = "multiplicative"
    ) -> None:
        accepted = "a prior, a list of priors or a family"
        priors = prior if isinstance(prior, Prior | Family) else read_list(prior, "prior", accepted)
        if priors == () or any(not isinstance(e, Prior) for e in prior_list(priors)):
            raise invalid_value("prior", accepted, repr(prior))
        if form not in LEAKAGE_FORMS:
            raise UnknownName("form", str(form), LEAKAGE_FORMS)
        object.__setattr__(self, "gain", read_gain_function(gain))
        object.__setattr__(self, "prior", priors)
        object.__setattr__(self, "form", form)

    @property
    def title(self) -> str:
        return f"Leakage ({self.form}) of {self.gain.words}"

    @property
    def is_factor(self) -> bool:
        return self.form == LEAKAGE_FORMS[0]

    @property
    def priors(self) -> tuple[Prior, ...]:
        return prior_list(self.prior)

    def canonical(self) -> Notion:
        if isinstance(self.prior, Family) and not self.priors:
            return Leakage(self.gain, self.prior.canonical(), self.form)
        distinct = tuple(dict.fromkeys(prior.canonical() for prior in self.priors))
        return Leakage(self.gain, distinct[0] if len(distinct) == 1 else distinct, self.form)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space).on_worlds()
        channel.need_finite("leakage")
        self.gain.check(channel.space)
        if isinstance(self.prior, PriorSet):
            return self._over(channel, self.prior)
        listed: Iterable[Prior] = self.priors
        if isinstance(self.prior, Family) and not listed:
            listed = _all_priors(self.prior, channel)
        if listed:
            return Level(*self._largest(channel, listed), True, (), notion=self)
        assert isinstance(self.prior, Family)
        tried = list(_sample_members(self.prior, channel.space))
        value, case = self._largest(channel, tried) if tried else (None, None)
        most = self._most(channel)
        # Of guesses at the world in one try the uniform prior attains the most.
        guessed = isinstance(self.prior, AnyPrior) and self.gain == Tries(1) and self.is_factor
        if value is not None and (guessed or value >= most):
            return Level(value, case, True, (), notion=self)
        note = "Over this family the largest leakage is not known: it is at most that of any prior."
        return Level(most, case, False, (), value, notion=self, note=note)

    def _largest(self, channel: Channel, priors: Iterable[Prior]) -> tuple[Any, Witness]:
        cases = [self._case(channel, prior) for prior in priors]
        return max(cases, key=lambda case: exact_fraction(case[0]))

    def _case(self, channel: Channel, prior: Prior) -> tuple[Any, Witness]:
        """The leakage of one prior, and the guesses that attain it."""
        before, guess, after, strategy = measure_vulnerabilities(channel, prior, self.gain)
        exact = channel.exact is not None and is_exact(*prior.parameters) and self.gain.exact
        ratio = after / before if before else Fraction(1)
        value = max(ratio, Fraction(1)) if self.is_factor else max(after - before, Fraction(0))
        more = {"guess": guess, "strategy": strategy, "adversary": lambda: prior}
        return exact_or_up(value, exact), Witness.shown(None, (before, after, ratio), exact, **more)

    def _over(self, channel: Channel, prior: PriorSet) -> Level:
        """The largest leakage of a member of a set, with that member."""
        known = SetCorners(prior, need_records(channel.space, "a set of priors"))
        search = LeakageOver(self.gain, self.is_factor, known, channel)
        if (found := search.enumerate_vertices()) is not None:
            value, case = self._case(channel, found)
            note = "The least favourable prior is where guesses tie, or at a corner of the set."
            return Level(value, case, True, (), notion=self, note=note)
        upper, weights = enclose_maximum(known, search.bound, search.value)
        value, case = self._largest(channel, [known.mix(weights, plain) for plain in (True, False)])
        high = max(math.nextafter(upper, math.inf), round_up(exact_fraction(value)))
        exact, _ = bracket_level(high, float(value))
        return Level(high, case, exact, (), None if exact else value, notion=self)

    def _most(self, channel: Channel) -> Any:
        """What no prior exceeds: the factor of maximal leakage. With V after ≤ factor · V before
        and V after ≤ M, the largest gain, a difference is at most M(1 − 1/factor)."""
        factor = sum(largest_likelihoods(channel)[0], Fraction(0))
        if self.is_factor:
            return exact_or_up(factor, channel.exact is not None)
        matrix = getattr(self.gain, "matrix", ((Fraction(1),),))
        most = max(max(row) for row in matrix)
        return exact_or_up(most * (1 - 1 / factor), channel.exact is not None and self.gain.exact)


def prior_list(prior: Any) -> tuple[Prior, ...]:
    """One prior, a list of them or those of an explicit family; none for other families."""
    if isinstance(prior, Family):
        return prior.priors if isinstance(prior, Explicit) else ()
    return (prior,) if isinstance(prior, Prior) else prior


def measure_vulnerabilities(
    channel: Channel, prior: Prior, gain: GainFunction
) -> tuple[Fraction, Hashable, Fraction, dict[Hashable, Hashable]]:
    """(V before, the best guess, V after, the best guess for each possible output), exactly."""
    mass = world_masses(prior, channel.space)
    weights, array = scaled_products(mass, channel.wide)
    before, guess = gain.best(weights, mass.__getitem__, channel.space)
    after, strategy = flint_rational(0), {}
    for output, name in enumerate(channel.outputs):
        near = weights * array[:, output]
        if not near.any():
            continue

        def weight(world: int, output: int = output) -> Any:
            return mass[world] * channel.entries.at(world, output)

        value, strategy[name] = gain.best(near, weight, channel.space)
        after += value
    return rational(before), guess, rational(after), strategy


def world_masses(prior: Prior, space: Space) -> Array:
    if isinstance(space, Records):
        return prior.on_records(space, flint_rational)
    prior.check(space)
    return prior.mass(CountLattice.single(space), flint_rational)


def _all_priors(family: Family, channel: Channel) -> list[Prior]:
    """All priors of a family; none where they are too many, or not finitely many."""
    space, most = channel.space, max(1, MAX_TRIED_ENTRIES // channel.likelihoods.size)
    if not isinstance(space, Subsets):
        return []
    family.check(space)
    low, high = family.beliefs
    if family.complete:
        cases = family.extreme_priors(CountLattice.single(space))
        found = dict.fromkeys(prior(low) for _, prior in islice(cases, space.size * most + 1))
        return list(found) if len(found) <= most else []
    if low != high or 3**space.size > most:
        return []
    # Whoever is uncertain is as likely as anyone else who is, and everyone else is known.
    listed: list[Prior] = []
    for beliefs in product((Fraction(0), Fraction(1), low), repeat=space.size):
        if family.relation == "add-remove":
            listed.append(Independent(list(beliefs)))
        else:
            sure, unsure = beliefs.count(1), sum(0 < belief < 1 for belief in beliefs)
            listed += [FixedSize(list(beliefs), sure + chosen) for chosen in range(unsure + 1)]
    return [prior for prior in listed if family.contains(prior, space)]


def _sample_members(family: Family, space: Space) -> Iterable[Prior]:
    """Some priors of a family, for the lower end of a bracket."""
    if isinstance(family, AnyPrior):
        yield Uniform()
        return
    if not isinstance(space, Subsets):
        message = "on records the leakage of this family is not known"
        hint = "give a prior, a list of priors or AnyPrior()"
        raise Unsupported(message, field="prior", value=family, hint=hint)
    family.check(space)
    low, high = family.beliefs
    whole = family.canonical()
    for belief in sorted({low, high, *(low + (high - low) * step for step in TRIED_BELIEFS)}):
        if 0 < belief < 1 and whole.includes(FixedProbability(belief).canonical()):
            yield Independent(belief)


Case = tuple[Fraction, int, int, Any]
"""(ratio, world, output, the world's mass)."""


@dataclass(frozen=True, init=False)
class PointwiseLeakage(OfPriors):
    """max over outputs y of ln max over possible worlds x of Pr[y|x] / Pr[y], in nats: after no
    output has any guess of any secret become better by a larger factor (Saeidian et al. 2023).

    Args:
        prior: a prior, or a list of them; then the largest of their levels counts. Over a set
            (`Hull`, `Box`) an output is least likely at a corner, and any world that some member
            allows can be made possible there: the level is a limit where the corner excludes it.
    """

    unit: ClassVar[str] = "nats"
    about_records: ClassVar[None] = None  # type: ignore[assignment, misc]

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space).on_worlds()
        channel.need_finite("pointwise leakage")
        if isinstance(self.prior, PriorSet):
            return _pointwise_over(self, channel, self.prior)
        cases = (
            (_largest_likelihood_ratio(channel, world_masses(prior, channel.space)), prior)
            for prior in self.priors
        )
        (ratio, world, output, mass), prior = max(cases, key=lambda case: case[0][0])
        exact = channel.exact is not None and is_exact(*prior.parameters)
        before, guess = rational(mass), world_name(channel.space, world)
        numbers = before, before * ratio, ratio
        case = Witness.shown(
            channel.outputs[output], numbers, exact, guess=guess, adversary=lambda: prior
        )
        return Level(log_up(max(ratio, Fraction(1))), case, True, (), notion=self)


def _largest_likelihood_ratio(channel: Channel, mass: Array) -> Case:
    """The largest ratio of a likelihood to its output's probability. Which output has it is
    searched in floats; those within their rounding are computed again."""
    possible = np.array([bool(each != 0) for each in mass])
    weights, array = scaled_products(mass, channel.wide)
    used = array[possible]
    sums = (weights[possible, None] * used).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        near = np.where(sums > 0, used.max(axis=0) / sums, 0.0)
    rounding = (len(mass) + 16) * 2.0**-50
    worlds, cases = [int(world) for world in np.flatnonzero(possible)], []
    for output in map(int, np.flatnonzero(near >= near.max() * (1 - rounding))):
        entries = {world: channel.entries.at(world, output) for world in worlds}
        total = sum((mass[world] * entries[world] for world in worlds), flint_rational(0))
        world = max(worlds, key=entries.__getitem__)
        cases.append((rational(entries[world] / total), world, output, mass[world]))
    return max(cases, key=lambda case: case[0])


def _pointwise_over(notion: Notion, channel: Channel, prior: PriorSet) -> Level:
    """max over outputs of the largest likelihood of a world that is possible, over the least
    probability of the output, which is linear in each part."""
    space = need_records(channel.space, "a set of priors")
    parts = prior.parts(space)
    widest = member_prior([each.widest() for each in parts], space)
    possible = [x for x, mass in enumerate(widest.on_records(space, rational)) if mass]
    best: tuple[Fraction | float, int, int, list[Row]] | None = None
    for output in range(len(channel.outputs)):
        entries = {x: rational(channel.entries.at(x, output)) for x in possible}
        world = max(entries, key=entries.__getitem__)
        if not entries[world]:
            continue
        total, rows = _least_probability(
            parts, [entries.get(x, Fraction(0)) for x in range(space.worlds)]
        )
        ratio = entries[world] / total if total else math.inf
        if best is None or ratio > best[0]:
            best = ratio, output, world, rows
    assert best is not None
    ratio, output, world, rows = best
    exact = channel.exact is not None and is_exact(*prior.parameters)

    def case_at(share: Fraction) -> Witness:
        """At the corner, moved by this share towards where all is possible."""
        near = [
            tuple((1 - share) * p + share * q for p, q in zip(row, each.widest(), strict=True))
            for row, each in zip(rows, parts, strict=True)
        ]
        member = member_prior(near, space)
        mass = member.on_records(space, flint_rational)
        total = sum(mass[x] * channel.entries.at(x, output) for x in possible)
        factor = rational(channel.entries.at(world, output) / total)
        before = rational(mass[world])
        return Witness.shown(
            channel.outputs[output],
            (before, before * factor, factor),
            exact,
            guess=world_name(space, world),
            adversary=lambda: member,
            attained=share in (0, 1),
        )

    corner = member_prior(rows, space).on_records(space, rational)
    if corner[world] or ratio == 1:  # a factor of 1 is that of any member
        case = case_at(Fraction(not corner[world]))
        return Level(log_up(ratio), case, True, (), notion=notion)

    def nearer(claim: Fraction) -> Witness:
        share = LIMIT_SHARE
        while (case := case_at(share)).ratio != math.inf and log_up(rational(case.ratio)) <= claim:
            share *= LIMIT_SHARE
        return case

    case = case_at(LIMIT_SHARE)
    return Level(log_up(ratio), case, True, (), notion=notion, nearer=nearer)


LIMIT_SHARE = Fraction(1, 2**20)
"""How near to a limit the case is that is shown."""


def _least_probability(
    parts: Sequence[RowSet], entries: list[Fraction]
) -> tuple[Fraction, list[Row]]:
    """The least mean of these entries over products of members, and the members: all corners of the
    parts but the last, and for the last the best answer to them."""
    if len(parts) == 1:
        row = parts[0].worst([-entry for entry in entries])
        return sum((p * entry for p, entry in zip(row, entries, strict=True)), Fraction(0)), [row]
    best: tuple[Fraction, list[Row]] | None = None
    width = len(entries) // parts[0].values
    for corner in parts[0].corners():
        rest = [
            sum((p * entries[v * width + x] for v, p in enumerate(corner) if p), Fraction(0))
            for x in range(width)
        ]
        total, rows = _least_probability(parts[1:], rest)
        if best is None or total < best[0]:
            best = total, [corner, *rows]
    assert best is not None
    return best
