"""Laplace noise on a statistic (Dwork et al. 2006)."""

from __future__ import annotations

from dataclasses import dataclass

from whosin.mechanisms.base import need_space
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.noise import AdditiveNoise, noise_channel, positive
from whosin.spaces import Space, as_statistic


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """statistic(T) + noise with density e^(−|x|/scale) / (2 scale) in each coordinate.

    With scale Δ/ε, where Δ is the L1 sensitivity, it is ε-differentially private.

    Args:
        statistic: Count(), Sum(…), Histogram(…), Max(…), or a function of the set of entities.
        scale: the scale of the noise, above 0.
    """

    def channel(self, space: Space | None = None) -> Channel:
        return noise_channel(
            as_statistic(self.statistic),
            need_space(space, "Laplace"),
            positive(self.scale, "scale"),
        )
