"""One of several mechanisms, drawn by a public coin that is then forgotten (Li13 Theorem 3.11)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import flint_rational, is_exact, probability
from whosin.mechanisms.base import Mechanism, as_channel
from whosin.mechanisms.channel import Channel, same_lattice
from whosin.spaces import Space
from whosin.validation import listed


@dataclass(frozen=True)
class Mixture(Mechanism):
    """Run `parts[i]` with probability `weights[i]`; equal outputs are one output.

    Args:
        parts: mechanisms on one space, with finitely many outputs.
        weights: probabilities with sum 1; equal ones by default.
    """

    parts: Sequence[Mechanism]
    weights: Sequence[object] | None = None

    def __post_init__(self) -> None:
        if not listed(self.parts, "parts", "a list of mechanisms"):
            raise InvalidInput("parts", "at least one mechanism", "none")
        if self.weights is not None:
            if len(listed(self.weights, "weights", "a list of numbers")) != len(self.parts):
                raise InvalidInput("weights", f"{len(self.parts)} numbers", len(self.weights))
            total = sum((probability(w, "weights") for w in self.weights), Fraction(0))
            if abs(total - 1) > 1e-9:
                raise InvalidInput("weights", "numbers with sum 1", f"sum {float(total):.12g}")

    def channel(self, space: Space | None = None) -> Channel:
        channels = same_lattice([as_channel(part, space) for part in self.parts])
        for channel in channels:
            channel.need_finite("a mixture")
        weights = self.weights or [flint_rational(1) / len(channels)] * len(channels)
        outputs: list[Hashable] = list(
            dict.fromkeys(name for channel in channels for name in channel.outputs)
        )
        exact = all(c.exact is not None for c in channels) and is_exact(*weights)
        rows = len(channels[0].likelihoods)
        table = np.zeros((rows, len(outputs)), dtype=object if exact else float)
        column = {name: position for position, name in enumerate(outputs)}
        for channel, weight in zip(channels, weights, strict=True):
            where = [column[name] for name in channel.outputs]
            if exact:
                table[:, where] += channel.exact * flint_rational(weight)
            else:
                number = flint_rational(weight)
                table[:, where] += channel.likelihoods * (int(number.p) / int(number.q))
        return Channel(channels[0].space, table, outputs, lattice=channels[0].lattice)
