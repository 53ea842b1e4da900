"""g-leakage: how much an output helps someone who guesses (Alvim et al. 2012).

V(π) = max over guesses w of Σ_x π_x g(w, x) before the output, Σ_y max_w Σ_x π_x A(y|x) g(w, x)
after it. All in rationals.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from whosin.errors import InvalidInput, UnknownName, Unsupported
from whosin.exact import Array, flint_rational, is_exact, rational
from whosin.families import AnyPrior, Explicit, Family, FixedProbability
from whosin.mechanisms import Channel, as_channel
from whosin.notions.base import Notion, exact_or_up
from whosin.notions.gains import GainFunction, Tries, gain_of
from whosin.notions.level import Level, Witness
from whosin.notions.maximal_leakage import largest_likelihoods
from whosin.priors import Independent, Prior, Uniform
from whosin.spaces import CountLattice, Records, Space, Subsets
from whosin.spaces.width import products
from whosin.validation import listed

FORMS = ("multiplicative", "additive")
TRIED = tuple(Fraction(step, 8) for step in range(1, 8))
"""Beliefs within a family's range that are tried for a lower end."""


@dataclass(frozen=True, init=False)
class Leakage(Notion):
    """How much better the best guess becomes: V after over V before, or their difference.

    Args:
        gain: what a guess is worth: rows of numbers (guesses × worlds), a `GainFunction`, or its
            spelling, such as "identity", "tries=3" or "singling-out=1/4".
        prior: a prior, a list of priors, or a family; then the largest of their leakages counts,
            exactly for lists, and for any prior where the world itself is guessed in one try.
            For other families it is a bracket.
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
        priors = prior if isinstance(prior, Prior | Family) else listed(prior, "prior", accepted)
        if isinstance(priors, tuple) and not _are_priors(priors):
            raise InvalidInput("prior", accepted, repr(prior))
        if form not in FORMS:
            raise UnknownName("form", str(form), FORMS)
        object.__setattr__(self, "gain", gain_of(gain))
        object.__setattr__(self, "prior", priors)
        object.__setattr__(self, "form", form)

    @property
    def title(self) -> str:
        return f"Leakage ({self.form}) of {self.gain.words}"

    @property
    def priors(self) -> tuple[Prior, ...]:
        if isinstance(self.prior, Family):
            return self.prior.priors if isinstance(self.prior, Explicit) else ()
        return (self.prior,) if isinstance(self.prior, Prior) else self.prior

    def canonical(self) -> Notion:
        if isinstance(self.prior, Family) and not self.priors:
            return Leakage(self.gain, self.prior.canonical(), self.form)
        distinct = tuple(dict.fromkeys(prior.canonical() for prior in self.priors))
        return Leakage(self.gain, distinct[0] if len(distinct) == 1 else distinct, self.form)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space).on_worlds()
        channel.need_finite("leakage")
        self.gain.check(channel.space)
        if self.priors:
            result = self._largest(channel, self.priors)
            return Level(*result, True, (), notion=self)
        assert isinstance(self.prior, Family)
        tried = list(_members(self.prior, channel.space))
        value, case = self._largest(channel, tried) if tried else (None, None)
        if isinstance(self.prior, AnyPrior) and self.gain == Tries(1) and self.form == FORMS[0]:
            assert value is not None  # the uniform prior attains it
            return Level(value, case, True, (), notion=self)
        most = self._most(channel)
        if value is not None and value >= most:
            return Level(value, case, True, (), notion=self)
        note = "Over this family the largest leakage is not known: it is at most that of any prior."
        return Level(most, case, False, (), value, notion=self, note=note)

    def _largest(self, channel: Channel, priors: Iterable[Prior]) -> tuple[Any, Witness]:
        cases = [self._case(channel, prior) for prior in priors]
        return max(cases, key=lambda case: rational(case[0]))

    def _case(self, channel: Channel, prior: Prior) -> tuple[Any, Witness]:
        """The leakage of one prior, and the guesses that attain it."""
        before, guess, after, strategy = vulnerabilities(channel, prior, self.gain)
        exact = channel.exact is not None and is_exact(*prior.parameters) and self.gain.exact
        ratio = after / before if before else Fraction(1)
        least = Fraction(1) if self.form == FORMS[0] else Fraction(0)
        value = max(ratio if self.form == FORMS[0] else after - before, least)
        case = Witness(
            output=None,
            prior=exact_or_up(before, exact),
            posterior=exact_or_up(after, exact),
            ratio=exact_or_up(ratio, exact),
            guess=guess,
            strategy=strategy,
            adversary=lambda: prior,
        )
        return exact_or_up(value, exact), case

    def _most(self, channel: Channel) -> Any:
        """What no prior exceeds: the factor of maximal leakage. With V after ≤ factor · V before
        and V after ≤ M, the largest gain, a difference is at most M(1 − 1/factor)."""
        factor = sum(largest_likelihoods(channel)[0], Fraction(0))
        if self.form == FORMS[0]:
            return exact_or_up(factor, channel.exact is not None)
        matrix = getattr(self.gain, "matrix", ((Fraction(1),),))
        most = max(max(row) for row in matrix)
        return exact_or_up(most * (1 - 1 / factor), channel.exact is not None and self.gain.exact)


def _are_priors(listed: tuple[object, ...]) -> bool:
    return bool(listed) and all(isinstance(each, Prior) for each in listed)


def vulnerabilities(
    channel: Channel, prior: Prior, gain: GainFunction
) -> tuple[Fraction, Hashable, Fraction, dict[Hashable, Hashable]]:
    """(V before, the best guess, V after, the best guess for each possible output), exactly.

    Args:
        channel: one with a row for every world.
    """
    mass = masses(prior, channel.space)
    weights, array = products(mass, channel.wide)
    before, guess = gain.best(weights, mass.__getitem__, channel.space)
    after, strategy = flint_rational(0), {}
    for output, name in enumerate(channel.outputs):
        near = weights * array[:, output]
        if not near.any():
            continue
        value, best = gain.best(near, _weight(channel, mass, output), channel.space)
        after += value
        strategy[name] = best
    return rational(before), guess, rational(after), strategy


def _weight(channel: Channel, mass: Array, output: int) -> Callable[[int], Any]:
    return lambda world: mass[world] * channel.entries.at(world, output)


def masses(prior: Prior, space: Space) -> Array:
    """The probability of each world, as FLINT rationals."""
    if isinstance(space, Records):
        return prior.on_records(space, flint_rational)
    prior.check(space)
    return prior.mass(CountLattice.single(space), flint_rational)


def _members(family: Family, space: Space) -> Iterable[Prior]:
    """Some priors of a family, for the lower end of a bracket."""
    if isinstance(family, AnyPrior):
        yield Uniform()
        return
    if not isinstance(space, Subsets):
        raise Unsupported("on records leakage takes a prior, a list of priors or any prior")
    family.check(space)
    low, high = family.beliefs
    whole = family.canonical()
    for belief in sorted({low, high, *(low + (high - low) * step for step in TRIED)}):
        if 0 < belief < 1 and whole.includes(FixedProbability(belief).canonical()):
            yield Independent(belief)
