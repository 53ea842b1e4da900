"""Brute force from the definitions, in exact rationals, sharing no code with the engine.

A world is a frozenset of entity numbers; a channel is {world: [probability of each output]}; a
prior is {world: probability}. Everything is enumerated, including sets of outputs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations
from typing import Any

World = frozenset[int]
Prior = Mapping[World, Fraction]
Channel = Mapping[World, list[Fraction]]
Pair = tuple[World, World]
INFINITY = math.inf


def worlds(n: int) -> list[World]:
    """All subsets; number T in the list has bit i set when entity i is present."""
    return [World(i for i in range(n) if number >> i & 1) for number in range(2**n)]


def events(outputs: int) -> Iterator[tuple[int, ...]]:
    """All non-empty sets of outputs."""
    numbers = range(outputs)
    return chain.from_iterable(combinations(numbers, size) for size in range(1, outputs + 1))


def random_distribution(rng: random.Random, size: int, zeros: float = 0.2) -> list[Fraction]:
    while True:
        parts = [0 if rng.random() < zeros else rng.randint(1, 9) for _ in range(size)]
        if sum(parts):
            return [Fraction(part, sum(parts)) for part in parts]


def random_channel(
    rng: random.Random, n: int, outputs: int, zeros: float = 0.2
) -> dict[World, list[Fraction]]:
    return {world: random_distribution(rng, outputs, zeros) for world in worlds(n)}


def table(channel: Channel) -> list[list[Fraction]]:
    return list(channel.values())


def probability(channel: Channel, world: World, event: tuple[int, ...]) -> Fraction:
    return sum((channel[world][output] for output in event), Fraction(0))


def ratio(top: Fraction, bottom: Fraction) -> Fraction | float:
    """x/0 is infinite and 0/0 is 1."""
    if bottom == 0:
        return INFINITY if top else Fraction(1)
    return top / bottom


def beliefs(
    prior: Prior, channel: Channel, t: int, event: tuple[int, ...]
) -> tuple[Fraction, Fraction | None]:
    """(Pr[t], Pr[t | event]); the posterior is None when the event is impossible."""
    before = marginal(prior, t)
    joint = {w: mass * probability(channel, w, event) for w, mass in prior.items()}
    total = sum(joint.values())
    return before, marginal(joint, t) / total if total else None


def marginal(masses: Prior, t: int) -> Fraction:
    return sum((mass for world, mass in masses.items() if t in world), Fraction(0))


def each_belief(prior: Prior, channel: Channel, n: int) -> Iterator[tuple[Fraction, Fraction]]:
    """`beliefs` for every entity and every event, where the event is possible and the prior
    belief is neither 0 nor 1."""
    outputs = len(next(iter(channel.values())))
    unsure = [(t, p) for t in range(n) if 0 < (p := marginal(prior, t)) < 1]
    columns = [{w: mass * channel[w][o] for w, mass in prior.items()} for o in range(outputs)]
    for event in events(outputs):
        joint = {w: sum((columns[o][w] for o in event), Fraction(0)) for w in prior}
        total = sum(joint.values())
        if total:
            yield from ((before, marginal(joint, t) / total) for t, before in unsure)


def positive(prior: Prior, channel: Channel, n: int) -> Fraction | float:
    """The smallest γ of Li13 Definition 3.1 for one prior."""
    worst: Fraction | float = Fraction(1)
    for before, after in each_belief(prior, channel, n):
        worst = max(worst, after / before, ratio(1 - before, 1 - after))
    return worst


def negative(prior: Prior, channel: Channel, n: int) -> Fraction | float:
    """The smallest γ of Li13 Definition 3.8 for one prior."""
    worst: Fraction | float = Fraction(1)
    for before, after in each_belief(prior, channel, n):
        worst = max(worst, (1 - after) / (1 - before), ratio(before, after))
    return worst


def independent(p: Sequence[Fraction]) -> dict[World, Fraction]:
    return {
        world: math.prod([q if i in world else 1 - q for i, q in enumerate(p)], start=Fraction(1))
        for world in worlds(len(p))
    }


def fixed_size(p: Sequence[Fraction], size: int) -> dict[World, Fraction] | None:
    """Independent(p) given |T| = size; None when that is impossible."""
    kept = {world: mass for world, mass in independent(p).items() if len(world) == size and mass}
    total = sum(kept.values())
    return {world: mass / total for world, mass in kept.items()} if total else None


def one_of(known: World, candidates: tuple[int, ...]) -> dict[World, Fraction]:
    return {known | {c}: Fraction(1, len(candidates)) for c in candidates}


def two(first: World, second: World, p: Fraction) -> dict[World, Fraction]:
    return {first: p, second: 1 - p}


# Ratios Pr[S|·]/Pr[S|·] between worlds, over all events: what the scalable families come down to.


def largest(channel: Channel, pairs: Iterable[Pair]) -> Fraction | float:
    outputs = len(next(iter(channel.values())))
    worst: Fraction | float = Fraction(1)
    listed = list(pairs)
    for event in events(outputs):
        chance = {world: probability(channel, world, event) for world in channel}
        for first, second in listed:
            worst = max(worst, ratio(chance[first], chance[second]))
    return worst


def added(n: int) -> list[Pair]:
    """(T ∪ t, T)."""
    return [(w | {t}, w) for w in worlds(n) for t in range(n) if t not in w]


def swapped(n: int) -> list[Pair]:
    """(T ∪ t1, T ∪ t2)."""
    return [
        (w | {a}, w | {b})
        for w in worlds(n)
        for a in range(n)
        for b in range(n)
        if a != b and a not in w and b not in w
    ]


def separated(n: int) -> list[Pair]:
    """(T1, T2) with some entity in T1 and not in T2."""
    return [(a, b) for a in worlds(n) for b in worlds(n) if a - b]


def grouped(n: int, k: int) -> list[Pair]:
    """(T ∪ G, T) for groups of one to k entities outside T."""
    return [
        (w | World(group), w)
        for w in worlds(n)
        for size in range(1, k + 1)
        for group in combinations(sorted(set(range(n)) - w), size)
    ]


def reverse(pairs: Iterable[Pair]) -> list[Pair]:
    return [(b, a) for a, b in pairs]


def family_priors(name: str, n: int, parameter: Any = None) -> list[dict[World, Fraction]]:
    """All priors of the finite families."""
    if name == "uninformed":
        return [independent([Fraction(1, 2)] * n)]
    if name == "one-of":
        return [
            one_of(w, candidates)
            for w in worlds(n)
            for candidates in combinations(sorted(set(range(n)) - w), parameter)
        ]
    if name == "fixed-probability":
        return [
            independent([parameter if i in support else Fraction(0) for i in range(n)])
            for support in worlds(n)
        ]
    raise ValueError(name)


def sample(channel: Channel, n: int, beta: Fraction) -> dict[World, list[Fraction]]:
    """The channel after keeping each present entity with probability β."""
    outputs = len(next(iter(channel.values())))
    mixed = {}
    for world in worlds(n):
        row = [Fraction(0)] * outputs
        for kept in worlds(n):
            if kept <= world:
                weight = beta ** len(kept) * (1 - beta) ** len(world - kept)
                row = [r + weight * c for r, c in zip(row, channel[kept], strict=True)]
        mixed[world] = row
    return mixed
