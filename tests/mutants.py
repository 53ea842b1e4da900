"""Files that were damaged: by bytes, by values, by structure. Deterministic for a seed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

AWKWARD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 17, 10**9, 2**63, 2**64, -(2**64), 10**30, 10**400,
    0.5, -0.0, 1e-320, 1e-200, 1e308, 1e-9, "", "x", "1/2", "1/0", "-1/3", "nan", "inf", "1e999",
    "1e-999", "0.1..0.9", "0.9..0.1", "9" * 500, "1/" + "9" * 400, "5%", "é", "e\u0301", "\ud800",
    "\x00", "a" * 5000, [], {}, [[]], [None], [[[[[[1]]]]]], {"": {}}, [1] * 300,
)  # fmt: skip
"""Values of every kind and size, for any place."""

WORDS = ("subsets", "records", "posterior", "prior", "linked", "known", "kind", "mean", "count")


def damaged_json(seed: bytes, rng: random.Random) -> bytes:
    """A JSON file with some of its values, keys or bytes replaced."""
    if rng.random() < 0.3:
        return damaged_bytes(seed, rng)
    value = json.loads(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(value, rng)
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(value: Any, rng: random.Random) -> Any:
    """One place of a value changed."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.75:
            return {**value, key: _changed(value[key], rng)}
        if kind < 0.85:
            return {k: v for k, v in value.items() if k != key}
        return {**value, rng.choice(WORDS): rng.choice(AWKWARD)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.75:
            return [*value[:place], _changed(value[place], rng), *value[place + 1 :]]
        if kind < 0.85:
            return value[:place] + value[place + 1 :]
        return value * rng.choice((2, 3, 20))
    return rng.choice(AWKWARD)


def damaged_text(seed: bytes, rng: random.Random) -> bytes:
    """A text file (TOML, tables) with some of its words or bytes replaced."""
    if rng.random() < 0.3:
        return damaged_bytes(seed, rng)
    text = seed.decode()
    for _ in range(rng.choice((1, 1, 2, 4))):
        spans = [match.span() for match in re.finditer(r"[\w.\-/]+|[=\[\]{},\t\"']", text)]
        if not spans:
            return text.encode()
        start, end = rng.choice(spans)
        value = rng.choice(AWKWARD)
        word = rng.choice(
            (
                value if isinstance(value, str) else json.dumps(value),
                text[slice(*rng.choice(spans))],
                ".".join(["a"] * rng.choice((2, 30, 3000))),
                rng.choice(WORDS),
                "",
            )
        )
        text = text[:start] + word + text[end:]
    return text.encode("utf-8", "surrogatepass")


def damaged_bytes(seed: bytes, rng: random.Random) -> bytes:
    """Any file with bytes flipped, cut, repeated or put elsewhere."""
    data = bytearray(seed)
    for _ in range(rng.choice((1, 1, 2, 8, 30))):
        if not data:
            return bytes(rng.randbytes(rng.randrange(9)))
        place = rng.randrange(len(data))
        kind = rng.randrange(7)
        if kind == 0:
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place] = rng.choice(b"\x00\xff\n\r\t \"'[]{},:.0e-\x1b")
        elif kind == 2:
            del data[place : place + rng.choice((1, 2, 10, 1000))]
        elif kind == 3:
            data[place:place] = rng.randbytes(rng.choice((1, 2, 8)))
        elif kind == 4:
            other = rng.randrange(len(data))
            data[place:place] = data[other : other + rng.choice((1, 8, 64))]
        elif kind == 5:
            data[place:place] = bytes([data[place]]) * rng.choice((2, 100, 5000))
        else:
            del data[place:]
    return bytes(data)


DAMAGES = {"json": damaged_json, "text": damaged_text, "bytes": damaged_bytes}


def mutants(seed: bytes, kind: str, count: int, start: int) -> Iterator[bytes]:
    """`count` damaged copies of a file, the same for the same start."""
    for number in range(count):
        yield DAMAGES[kind](seed, random.Random(f"{kind} {start} {number}"))
