"""Total variation between neighbouring worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from whosin.mechanisms import read_channel
from whosin.notions.base import Level, Notion
from whosin.spaces import Space, Subsets


@dataclass(frozen=True)
class TotalVariation(Notion):
    """How far apart the outputs of two worlds are that differ in one entity."""

    unit: ClassVar[str] = "level"
    short_names: ClassVar[tuple[str, ...]] = ("tv",)

    def measure(self, mechanism: object, space: Space | None = None) -> Level:
        channel = read_channel(mechanism, space).on_worlds()
        assert isinstance(channel.space, Subsets)
        rows, size = channel.likelihoods, channel.space.size
        far = [
            float(np.abs(rows[world] - rows[world ^ (1 << who)]).sum()) / 2
            for world in range(len(rows))
            for who in range(size)
        ]
        return Level(max(far), witness=None, theorems=(), exact=False)
