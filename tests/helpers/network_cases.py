"""Random networks and noisy sums over their rows, with their densities by enumeration."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import record_oracle as records
from whosin import statistics
from whosin.mechanisms import Composed, Laplace
from whosin.priors import Network

HALF = Fraction(1, 2)


def random_nodes(rng: random.Random, n: int, m: int, width: int, zeros: float) -> list[Any]:
    """Rows with up to `width` parents; zeros, ties and probabilities down to 10^-12."""
    nodes = []
    for row in range(n):
        parents = tuple(sorted(rng.sample(range(row), rng.randint(0, min(row, width)))))
        table = {}
        for key in itertools.product(range(m), repeat=len(parents)):
            chances = records.random_distribution(rng, m, zeros)
            if rng.random() < 0.2:
                tiny = Fraction(1, 10 ** rng.randint(3, 12))
                chances = [(p + tiny) / (1 + m * tiny) for p in chances]
            table[key] = chances
        if parents and rng.random() < 0.3:
            same = rng.choice(list(table.values()))
            table = {key: rng.choice([same, chances]) for key, chances in table.items()}
        nodes.append((parents, table))
    return nodes


def random_query(rng: random.Random, n: int, m: int) -> tuple[Any, list[Any], list[float]]:
    """(mechanism, what each row's values add, the base of the noise in each coordinate)."""
    scale: Fraction = rng.choice([HALF, Fraction(1), Fraction(7, 3), Fraction(20)])
    base = math.exp(-1 / scale)
    kind = rng.choice(["sum", "weights", "histogram", "among", "twice", "windows"])
    if kind == "sum":
        return Laplace("sum", scale), [[(v,) for v in range(m)]] * n, [base]
    if kind == "weights":
        weights = [Fraction(rng.randint(-4, 4), rng.choice([1, 2])) for _ in range(m)]
        return Laplace(statistics.Sum(weights), scale), [[(w,) for w in weights]] * n, [base]
    if kind == "histogram":
        cells = [tuple(int(v == c) for c in range(m)) for v in range(m)]
        return Laplace("histogram", scale), [cells] * n, [base] * m
    if kind == "among":
        rows = rng.sample(range(n), rng.randint(1, n))
        added = [[(v * (r in rows),) for v in range(m)] for r in range(n)]
        return Laplace(statistics.Among("sum", rows), scale), added, [base]
    if kind == "twice":
        other = rng.choice([scale, Fraction(2)])
        both = Composed([Laplace("sum", scale), Laplace("sum", other)])
        return both, [[(v, v) for v in range(m)]] * n, [base, math.exp(-1 / other)]
    end = rng.randint(1, n)
    first, second = range(end), range(end - rng.randint(0, 1), n) or range(1)
    windows = [Laplace(statistics.Among("sum", first), scale)]
    windows.append(Laplace(statistics.Among("count", second), 1))
    counted: list[Any] = [
        [(v * (r in first), int(v > 0) * (r in second)) for v in range(m)] for r in range(n)
    ]
    return Composed(windows), counted, [base, math.exp(-1)]


def noisy_rows(n: int, m: int, added: list[Any], bases: list[float]) -> tuple[Any, Any]:
    """Outputs (the product grid of all centres) and their densities in each world."""
    centres = {}
    for world in records.worlds(n, m):
        sums = [
            sum((Fraction(added[r][world[r]][c]) for r in range(n)), Fraction(0))
            for c in range(len(bases))
        ]
        centres[world] = tuple(sums)
    outputs = list(
        itertools.product(*(sorted(set(axis)) for axis in zip(*centres.values(), strict=True)))
    )
    channel = {
        world: [
            math.prod(
                Fraction(base ** float(abs(o - c)))
                for base, o, c in zip(bases, output, centre, strict=True)
            )
            for output in outputs
        ]
        for world, centre in centres.items()
    }
    return outputs, channel


def tree(n: int, stay: str) -> Network:
    """Each row is like its parent with probability `stay`; two children a row."""
    stays = Fraction(stay)
    table = {(0,): (stays, 1 - stays), (1,): (1 - stays, stays)}
    return Network([((), {(): (HALF, HALF)}), *((((r - 1) // 2,), table) for r in range(1, n))])
