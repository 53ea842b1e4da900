"""What a target is: how sure an adversary may become, as a bound on likelihood ratios.

A target answers one question: given that prior beliefs lie in [low, high], how large may the
likelihood ratio r = Pr[S|t]/Pr[S|¬t] be? Answers are exact where they can be; the caller rounds
down.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import ClassVar

from whosin.errors import invalid_value
from whosin.exact import Number, exact_fraction, read_ranged
from whosin.families import Adversary, Family, Independent


class Target(ABC):
    """How sure an adversary may become."""

    name: ClassVar[str]
    words_taken: ClassVar[tuple[str, ...]]
    """Its words in files, options and requests (see `scenario_model`), one for each attribute; the
    first one chooses it."""
    spelled_as: ClassVar[Mapping[str, str]] = {}
    """The word of an attribute, where it is not the attribute's name."""
    theorems: ClassVar[tuple[str, ...]] = ()
    stated_epsilon: Fraction | None = None
    """The ε between neighbours, where the target is one and no belief: with a δ it is (ε, δ)-DP."""
    measured_as: ClassVar[str] = "failure probability"
    """What of it is certified where noise is searched for, in words."""
    averages: ClassVar[bool] = False
    """Whether it bounds rates, averages over all outputs that do not fail with a probability: then
    it is a `RateTarget`, and a δ is the one of (ε, δ)-DP, counted in."""

    def __init_subclass__(cls) -> None:
        if "name" in cls.__dict__ and "words_taken" not in cls.__dict__:
            cls.words_taken = (cls.name,)

    @abstractmethod
    def ratio(self, low: Fraction, high: Fraction) -> Number:
        """The largest likelihood ratio that meets the target at every prior in [low, high].

        Raises:
            ImpossibleTarget: no ratio above 1 does; the message names the nearest possible one.
        """

    @abstractmethod
    def met(self, ratio: Number, low: Fraction, high: Fraction) -> bool:
        """Whether a ratio meets the target, checked from the definition, not from `ratio`."""

    def one_sided_ratio(self, low: Fraction, high: Fraction) -> Number:
        """The largest Pr[S|t]/Pr[S|¬t] that meets the target where its inverse may be anything: a
        mechanism such as k-Max bounds how much presence can show, and absence may show all.

        Raises:
            InvalidInput: the target speaks of both directions.
        """
        return self.ratio(low, high)

    def baseline(self) -> Number | None:
        """The ratio that plain DP needs for the same target against any prior, where one exists."""
        return None

    def default_family(self) -> Family:
        """The adversaries of a plan that names none: anyone with independent beliefs."""
        return Independent()

    def against(self, family: Family) -> Adversary:
        """The adversary of a family as the target sees it.

        Raises:
            Unsupported: no finite ε protects against the family.
            InvalidInput: the target does not fit the family.
        """
        if not isinstance(family, Family):
            raise invalid_value("family", "a family of priors", repr(family))
        return family.adversary()

    @abstractmethod
    def words(self) -> str:
        """The promise, completing "an adversary …"."""


class NumberTarget(Target):
    """A target whose first attribute is its number, in an accepted range."""

    accepted: ClassVar[str] = "strictly between 0 and 1"

    def __post_init__(self) -> None:
        _ = self.number

    @property
    def number(self) -> Fraction:
        """The number of the target, as an exact rational."""
        name = fields(self)[0].name  # type: ignore[arg-type]
        return read_ranged(getattr(self, name), name, self.accepted)


def exact_ratio(ratio: Number) -> Fraction | float:
    """A ratio as a rational, or infinite."""
    return math.inf if ratio == math.inf else exact_fraction(ratio)
