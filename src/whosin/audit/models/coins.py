"""Fair coins.

Contract: from the system's secure randomness, unless a seed asks for a run that repeats itself.
"""

from __future__ import annotations

import secrets

import numpy as np

from whosin.exact import Array


def toss(count: int, rng: np.random.Generator | None) -> Array:
    """This many fair coins."""
    if rng is not None:
        return rng.random(count) < 0.5
    drawn = np.frombuffer(secrets.token_bytes((count + 7) // 8), dtype=np.uint8)
    return np.unpackbits(drawn)[:count].astype(bool)


def spell(coins: Array) -> str:
    """Coins as text."""
    return np.packbits(coins).tobytes().hex()


def read(text: str, count: int) -> Array:
    """Coins from text."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(text), dtype=np.uint8))[:count].astype(bool)
