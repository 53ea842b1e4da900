"""Differential identifiability (Lee and Clifton 2012; Li13 Definition 5.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from whosin.families import OneOf
from whosin.mechanisms import as_channel
from whosin.notions.base import Notion, witness, worst_case
from whosin.notions.level import Level
from whosin.spaces import Space


@dataclass(frozen=True)
class DifferentialIdentifiability(Notion):
    """(ρ, m)-DI: with one of m equally likely candidates in, Pr[t|S] ≤ ρ. The level is ρ.

    Args:
        m: the number of candidates, at least 2.
        literal: the paper's own reading of the family (erratum E2).
    """

    m: int
    literal: bool = False
    unit: ClassVar[str] = "ρ"
    short_names: ClassVar[tuple[str, ...]] = ("di",)

    @property
    def title(self) -> str:
        return f"{super().title} with {self.m} candidates"

    def __post_init__(self) -> None:
        OneOf(self.m, self.literal)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = as_channel(mechanism, space)
        result = worst_case(channel, OneOf(self.m, self.literal), positive=True)
        assert result is not None
        worst, certificate, _ = result
        case = witness(channel, worst, certificate, worst.low, positive=True)
        return Level(case.posterior, case, True, (), notion=self)
