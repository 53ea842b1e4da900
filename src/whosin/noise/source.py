"""Where random bits come from: the operating system, and nowhere else in a release.

Contract: the package has one source, `SYSTEM`. It has no state, so nothing can be seeded, and a
forked process does not repeat its parent. Tests pass a `Source` of their own by keyword; an object
that merely looks like one (a NumPy generator) is refused, and a test reads the code to see that no
other room passes one.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array


class Source(ABC):
    """Independent, uniform random bits."""

    @abstractmethod
    def draw(self, count: int) -> bytes:
        """`count` random bytes."""

    def words(self, bits: int, count: int) -> Array:
        """Random words of 8, 16, 32 or 64 bits."""
        return np.frombuffer(self.draw(count * bits // 8), dtype=f"<u{bits // 8}")

    def integer(self, bits: int) -> int:
        """One random integer with this number of bits, a multiple of 8."""
        return int.from_bytes(self.draw(bits // 8), "little")


class SystemSource(Source):
    """The operating system's generator."""

    def draw(self, count: int) -> bytes:
        return os.urandom(count)


SYSTEM = SystemSource()


def checked_source(source: object) -> Source:
    """The source itself, if it is one."""
    if not isinstance(source, Source):
        raise InvalidInput("source", "a whosin.noise.Source", type(source).__name__)
    return source
