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
    if rng.random() < 0.2:
        return damaged_bytes(seed, rng)
    whole = value = json.loads(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        value = _changed(value, rng, whole)
    text = json.dumps(value, ensure_ascii=rng.random() < 0.9)
    if rng.random() < 0.1:
        text = _spelled_otherwise(text, rng)
    return text.encode("utf-8", "surrogatepass")


def _changed(value: Any, rng: random.Random, whole: Any) -> Any:
    """One place of a value changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        kind = rng.random()
        if kind < 0.8:
            return {**value, key: _changed(value[key], rng, whole)}
        if kind < 0.88:
            return {k: v for k, v in value.items() if k != key}
        return {**value, rng.choice(WORDS): rng.choice(AWKWARD)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        kind = rng.random()
        if kind < 0.75:
            return [*value[:place], _changed(value[place], rng, whole), *value[place + 1 :]]
        if kind < 0.8:
            return value[:place] + value[place + 1 :]
        if kind < 0.85:
            return rng.sample(value, len(value))
        return value * rng.choice((2, 3, 20))
    if rng.random() < 0.35:
        return _near(value, rng, whole)
    return rng.choice(AWKWARD)


def _near(value: Any, rng: random.Random, whole: Any) -> Any:
    """A value that a reader may well take: the same in other letters, one beside it, another of
    the same file."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        return rng.choice(list(_leaves(whole)) or [None])
    kind = rng.randrange(6)
    if kind == 0:
        return str(value)
    if kind == 1:
        return f"{value}e0"
    if kind == 2:
        return value + 1 if isinstance(value, int) else 1 - value
    if kind == 3:
        return "/".join(map(str, value.as_integer_ratio()))
    if kind == 4:
        return float(value)
    return rng.choice((0, 1, value * 2, value / 3, -value))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _leaves(each)
    else:
        yield value


def _spelled_otherwise(text: str, rng: random.Random) -> str:
    """JSON with a key twice, deep nesting, or numbers in letters that Python does not write."""
    kind = rng.randrange(4)
    if kind == 0 and (keys := re.findall(r'"\w+": [^\[{,]+?(?=[,}])', text)):
        return text.replace("{", "{" + rng.choice(keys) + ", ", rng.randrange(1, 3))
    if kind == 1:
        depth = rng.choice((10, 63, 64, 65, 1000, 100_000))
        return text.replace("[", "[" * depth, 1).replace("]", "]" * depth, 1)
    if kind == 2:
        odd = (
            "1E5",
            "0.1e-7",
            "-0",
            "1e400",
            "NaN",
            "-Infinity",
            "00",
            "1" * 1001,
            "1." + "3" * 99,
        )
        return re.sub(r"\b\d+\b", lambda _: rng.choice(odd), text, count=rng.randrange(1, 4))
    return text.replace(" ", rng.choice(("", "\n", "\t\t", "\u00a0", "  ")))


def damaged_text(seed: bytes, rng: random.Random) -> bytes:
    """A text file (TOML, tables) with some of its words, lines or bytes replaced."""
    if rng.random() < 0.3:
        return damaged_bytes(seed, rng)
    text = seed.decode()
    if rng.random() < 0.15:
        lines = text.splitlines(keepends=True)
        place = rng.randrange(len(lines))
        lines[place : place + 1] = rng.choice(
            ([], [lines[place]] * 2, [rng.choice(lines)], lines[place:], [lines[place].upper()])
        )
        text = "".join(lines)
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
                rng.choice(("0", "1", "2", "-9", "0.5", "true", "1e3")),
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
