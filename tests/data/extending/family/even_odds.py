"""Adversaries to whom everyone is about as likely in as out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

from whosin.exact import ONE_HALF, Array, probability, rational
from whosin.families.base import Family, Range, Worst, spelled_number
from whosin.families.independent import Independent
from whosin.priors import Prior
from whosin.spaces.quotients import Lattice
from whosin.spaces.worlds import Subsets


@dataclass(frozen=True)
class EvenOdds(Family):
    """Independent priors within `apart` of one half."""

    apart: object

    name: ClassVar[str] = "even-odds"
    form: ClassVar[str] = "=0.1"
    example: ClassVar[str] = "even-odds=0.1"
    symbol: ClassVar[str] = "D_E"
    definition: ClassVar[str] = "independent, each about as likely in as out"
    source: ClassVar[str] = "Li13, as an example"
    downward: ClassVar[bool] = False
    upward: ClassVar[bool] = False

    def __post_init__(self) -> None:
        probability(self.apart, "apart")

    @property
    def beliefs(self) -> Range:
        apart = Fraction(rational(self.apart))
        return ONE_HALF - apart, ONE_HALF + apart

    @property
    def independent_beliefs(self) -> Range:
        return self.beliefs

    def contains(self, prior: Prior, space: Subsets) -> bool:
        return Independent(*self.beliefs).contains(prior, space)

    def worst(self, likelihoods: Array, lattice: Lattice, positive: bool = True) -> Iterator[Worst]:
        return Independent(*self.beliefs).worst(likelihoods, lattice, positive)

    def words(self) -> str:
        return "someone who thinks everyone about as likely in as out"

    @property
    def argument(self) -> str:
        return spelled_number(self.apart)

    @classmethod
    def parse(cls, argument: str) -> Self:
        return cls(rational(argument, "apart"))
