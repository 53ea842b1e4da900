"""Gaussian noise: no pure level exists, only levels with a failure probability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from whosin.errors import NoPureLevel
from whosin.mechanisms.noise import AdditiveNoise
from whosin.spaces import Space


@dataclass(frozen=True)
class Gaussian(AdditiveNoise):
    """statistic(T) + normal noise with standard deviation `scale` in each coordinate."""

    def channel(self, space: Space | None = None) -> NoReturn:
        raise NoPureLevel(
            "Gaussian noise has unbounded likelihood ratios, so no pure γ or ε holds for it; "
            "allow a small failure probability δ, or use Laplace or geometric noise"
        )
