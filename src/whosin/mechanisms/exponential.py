"""The exponential mechanism (McSherry and Talwar 2007)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import ranged, rational
from whosin.mechanisms.base import Mechanism, need_space
from whosin.mechanisms.channel import Channel
from whosin.mechanisms.noise import positive
from whosin.spaces import Space
from whosin.spaces.memory import require_table
from whosin.validation import listed


@dataclass(frozen=True)
class Exponential(Mechanism):
    """Pr[o | T] ∝ exp(ε q(T, o) / (2Δ)), which is ε-DP when Δ is q's sensitivity.

    Args:
        score: q, a function of (world, output), or a table worlds × outputs.
        outputs: the candidates.
        epsilon: ε, at least 0.
        sensitivity: Δ, above 0.
        monotone: drop the 2: allowed when adding an entity never lowers any score.
    """

    score: Callable[[Any, Hashable], float] | Sequence[Sequence[float]]
    outputs: Sequence[Hashable]
    epsilon: object
    sensitivity: object = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        ranged(self.epsilon, "epsilon", "at least 0")
        positive(self.sensitivity, "sensitivity")
        if not listed(self.outputs, "outputs", "a list of candidates"):
            raise InvalidInput("outputs", "at least one candidate", "none")

    def channel(self, space: Space | None = None) -> Channel:
        space = need_space(space, "Exponential")
        require_table("a table over all worlds", space.worlds, len(self.outputs))
        if callable(self.score):
            scores = np.array(
                [[self.score(w, o) for o in self.outputs] for w in space], dtype=float
            )
        else:
            scores = np.array(self.score, dtype=float)
        if scores.shape != (space.worlds, len(self.outputs)) or not np.isfinite(scores).all():
            raise InvalidInput(
                "score", f"finite, {space.worlds} worlds × {len(self.outputs)}", scores.shape
            )
        rate = float(rational(self.epsilon)) / float(rational(self.sensitivity))
        logits = scores * (rate if self.monotone else rate / 2)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return Channel(space, weights / weights.sum(axis=1, keepdims=True), list(self.outputs))
