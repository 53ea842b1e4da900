"""Differential privacy under sampling (Li13 Definition 5.8)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from whosin.errors import UnknownName
from whosin.exact import ranged, rational
from whosin.mechanisms import Sampled, as_channel
from whosin.notions.base import Notion
from whosin.notions.differential_privacy import DifferentialPrivacy
from whosin.notions.level import Level
from whosin.spaces import Space


@dataclass(frozen=True)
class SampledDifferentialPrivacy(Notion):
    """(β, ε)-DPS: the mechanism on a β-sample is ε-UDP. The level is ε in nats.

    Args:
        beta: the probability with which each entity is sampled, above 0 and at most 1.
        direction: "both", "positive" or "negative", as for differential privacy.
    """

    beta: object
    direction: str = "both"
    unit: ClassVar[str] = "ε"
    short_names: ClassVar[tuple[str, ...]] = ("dps", "sampled-dp")

    @property
    def title(self) -> str:
        return f"Differential privacy under sampling with probability {self.beta}"

    def __post_init__(self) -> None:
        ranged(self.beta, "beta", "above 0 and at most 1")
        if self.direction not in ("both", "positive", "negative"):
            raise UnknownName("direction", str(self.direction), ("both", "positive", "negative"))

    def canonical(self) -> Notion:
        beta = rational(self.beta)
        if beta == 1:  # a sample of everyone
            return DifferentialPrivacy("add-remove", self.direction)
        return replace(self, beta=beta)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        sampled = Sampled(as_channel(mechanism, space), self.beta)
        level = DifferentialPrivacy("add-remove", self.direction).measure(sampled)
        return replace(level, notion=self)
