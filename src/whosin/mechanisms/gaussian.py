"""Gaussian noise: no pure level exists, only levels with a failure probability (THEORY 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from whosin.errors import NoPureLevel
from whosin.mechanisms.base import Mechanism
from whosin.mechanisms.noise import positive
from whosin.spaces import Space, as_statistic


@dataclass(frozen=True)
class Gaussian(Mechanism):
    """statistic(T) + normal noise with standard deviation `scale` in each coordinate."""

    statistic: object
    scale: object

    def __post_init__(self) -> None:
        as_statistic(self.statistic)
        positive(self.scale, "scale")

    def channel(self, space: Space | None = None) -> NoReturn:
        raise NoPureLevel(
            "Gaussian noise has unbounded likelihood ratios, so no pure γ or ε holds for it; "
            "allow a small failure probability δ, or use Laplace or geometric noise"
        )
