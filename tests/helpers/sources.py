"""Sources of bits for tests: seeded, or scripted word by word. The package itself has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whosin.noise import Source


class Seeded(Source):
    """Reproducible bits."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)

    def draw(self, count: int) -> bytes:
        return self.generator.bytes(count)


class Scripted(Source):
    """Words of given widths, then 64-bit integers, in the order they are asked for."""

    def __init__(self, words: list[object], integers: Sequence[int] = ()) -> None:
        self.scripts, self.integers, self.asked = list(words), list(integers), 0

    def draw(self, count: int) -> bytes:
        raise AssertionError("nothing scripted")

    def words(self, bits: int, count: int) -> np.ndarray:
        script = np.asarray(self.scripts.pop(0))
        assert script.size == count, (script.size, count)
        return script.astype(f"<u{bits // 8}")

    def integer(self, bits: int) -> int:
        self.asked += 1
        return self.integers.pop(0) % (1 << bits)
