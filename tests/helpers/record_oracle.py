"""Records by brute force from the definitions, sharing no code with the engine.

A world is a tuple of the rows' values; a prior is {world: probability}; a channel is {world: [one
number an output]}. Numbers are fractions wherever the input is, and floats where e^x enters.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from typing import Any, TypeVar

World = tuple[int, ...]
Prior = Mapping[World, Any]
Channel = Mapping[World, Sequence[Any]]
Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
INFINITY = math.inf


def worlds(n: int, m: int) -> list[World]:
    """All tables of n rows with values 0 … m − 1, the first row the most significant."""
    return list(product(range(m), repeat=n))


def random_distribution(rng: random.Random, size: int, zeros: float = 0.2) -> list[Fraction]:
    while True:
        parts = [0 if rng.random() < zeros else rng.randint(1, 9) for _ in range(size)]
        if sum(parts):
            return [Fraction(part, sum(parts)) for part in parts]


def random_prior(rng: random.Random, n: int, m: int, zeros: float) -> dict[World, Fraction]:
    return dict(zip(worlds(n, m), random_distribution(rng, m**n, zeros), strict=True))


def random_channel(
    rng: random.Random, n: int, m: int, outputs: int, zeros: float
) -> dict[World, list[Fraction]]:
    return {world: random_distribution(rng, outputs, zeros) for world in worlds(n, m)}


# Priors, from their definitions.


def independent(rows: Sequence[Sequence[Any]]) -> dict[World, Any]:
    m = len(rows[0])
    return {x: math.prod(rows[i][v] for i, v in enumerate(x)) for x in worlds(len(rows), m)}


def exchangeable(sizes: Sequence[Any], n: int) -> dict[World, Any]:
    return {x: sizes[sum(x)] / math.comb(n, sum(x)) for x in worlds(n, 2)}


def markov(initial: Sequence[Any], steps: Sequence[Any]) -> dict[World, Any]:
    """Pr[x] = initial(x_0) ∏ steps[j](x_j, x_{j+1})."""
    return {
        x: initial[x[0]] * math.prod(step[x[j]][x[j + 1]] for j, step in enumerate(steps))
        for x in worlds(len(steps) + 1, len(initial))
    }


def network(nodes: Sequence[Any], m: int) -> dict[World, Any]:
    return {
        x: math.prod(
            table[tuple(x[parent] for parent in parents)][x[row]]
            for row, (parents, table) in enumerate(nodes)
        )
        for x in worlds(len(nodes), m)
    }


def blocks(listed: Sequence[Any]) -> dict[frozenset[int], Fraction]:
    """Sets of people: {set present: probability}, independent between blocks."""
    whole: dict[frozenset[int], Fraction] = {frozenset(): Fraction(1)}
    for _members, table in listed:
        longer: dict[frozenset[int], Fraction] = {}
        for present, mass in whole.items():
            for more, share in table.items():
                both = present | frozenset(more)
                longer[both] = longer.get(both, Fraction(0)) + mass * share
        whole = longer
    return whole


# Statistics with noise of density base^distance (one base a coordinate).


def noisy_sums(
    n: int, weights: Sequence[Any], bases: Sequence[Any]
) -> tuple[list[tuple[Any, ...]], dict[World, list[Any]]]:
    """(outputs, channel) of sums over rows, at the product grid of the centres' coordinates."""
    centres = {
        x: tuple(sum(weights[v][axis] for v in x) for axis in range(len(bases)))
        for x in worlds(n, len(weights))
    }
    axes = [sorted({centre[axis] for centre in centres.values()}) for axis in range(len(bases))]
    outputs = list(product(*axes))
    channel = {
        x: [
            math.prod(base ** abs(a - b) for base, a, b in zip(bases, centre, output, strict=True))
            for output in outputs
        ]
        for x, centre in centres.items()
    }
    return outputs, channel


# Notions.


def ratio(top: Any, bottom: Any) -> Any:
    """x/0 is infinite and 0/0 is 1."""
    if bottom == 0:
        return INFINITY if top else Fraction(1)
    return top / bottom


def subsets(items: Iterable[Item]) -> list[tuple[Item, ...]]:
    listed = list(items)
    return list(chain.from_iterable(combinations(listed, k) for k in range(len(listed) + 1)))


def conditionals(prior: Prior, channel: Channel, rows: World) -> dict[World, list[Any]]:
    """{values of these rows: Pr[y | these values] for each y}, where they are possible."""
    mass: dict[World, Any] = {}
    joint: dict[World, list[Any]] = {}
    for x, p in prior.items():
        if p == 0:
            continue
        key = tuple(x[row] for row in rows)
        mass[key] = mass.get(key, 0) + p
        terms = joint.setdefault(key, [0] * len(channel[x]))
        for y, likelihood in enumerate(channel[x]):
            terms[y] += p * likelihood
    return {key: [term / mass[key] for term in terms] for key, terms in joint.items()}


def bayesian_ratio(prior: Prior, channel: Channel, n: int) -> Any:
    """max Pr[y | x_i, x_S] / Pr[y | x_i', x_S] over i, S, values and y of positive probability."""
    worst = Fraction(1)
    for rows in subsets(range(n)):
        given = conditionals(prior, channel, rows)
        for place in range(len(rows)):
            groups: dict[World, list[list[Any]]] = {}
            for key, likelihood in given.items():
                groups.setdefault(key[:place] + key[place + 1 :], []).append(likelihood)
            for group in groups.values():
                for column in zip(*group, strict=True):
                    worst = max(worst, ratio(max(column), min(column)))
    return worst


def replayed(
    prior: Prior,
    channel: Channel,
    row: int,
    known: Mapping[int, int],
    values: tuple[int, int],
    output: int,
) -> Any:
    """Pr[y | x_i = v, known] / Pr[y | x_i = v', known]; both conditions must be possible."""
    sides = []
    for value in values:
        wanted = {**known, row: value}
        kept = {x: p for x, p in prior.items() if all(x[r] == v for r, v in wanted.items())}
        total = sum(kept.values())
        assert total > 0
        sides.append(sum(p * channel[x][output] for x, p in kept.items()) / total)
    return ratio(*sides)


def replaced(x: World, row: int, value: int) -> World:
    return (*x[:row], value, *x[row + 1 :])


def posteriors(
    belief: Mapping[Key, Any], with_row: Mapping[Key, Any], without: Mapping[Key, Any]
) -> list[dict[Key, Any]] | None:
    """The two posteriors of Zhao17 (2), (3): belief reweighted by the likelihoods of one output
    with row i's data and with the default in its place; None where one is undefined."""
    sides = []
    for likelihood in (with_row, without):
        weights = {x: b * likelihood[x] for x, b in belief.items()}
        total = sum(weights.values())
        if total == 0:
            return None
        sides.append({x: w / total for x, w in weights.items()})
    return sides


def total_variation(first: Mapping[Key, Any], second: Mapping[Key, Any]) -> Any:
    return sum(abs(first[x] - second[x]) for x in first) / 2


def semantic_cases(
    prior: Prior | None, channel: Channel, n: int, default: int
) -> Iterator[tuple[int, World, int, dict[World, Any], dict[World, Any]]]:
    """(row, rows known, y, likelihoods with row i, likelihoods with the default): Zhao17
    Definition 2 for every set S, or Definition 1 (all other rows known) where no prior is given.
    A case is a mapping from what may be believed, (x_i, x_S), to a likelihood."""
    outputs = len(next(iter(channel.values())))
    everyone = {x: Fraction(1) for x in channel}
    for row in range(n):
        others = [other for other in range(n) if other != row]
        for known in subsets(others) if prior is not None else [tuple(others)]:
            rows = tuple(sorted((*known, row)))
            place = rows.index(row)
            given = conditionals(everyone if prior is None else prior, channel, rows)
            pairs = {
                key: (likelihood, given[replaced(key, place, default)])
                for key, likelihood in given.items()
                if replaced(key, place, default) in given
            }
            for y in range(outputs):
                yield (
                    row,
                    known,
                    y,
                    {key: one[y] for key, (one, _) in pairs.items()},
                    {key: two[y] for key, (_, two) in pairs.items()},
                )


def best_two_point(with_row: Mapping[Key, Any], without: Mapping[Key, Any]) -> float:
    """sup over beliefs on two points of the total variation of the two posteriors, from these.

    With likelihood ratios R and r at the two points the posteriors are q and qR/(qR + (1−q)r) for a
    free q, and the difference is largest at q = √r/(√R + √r). Where a likelihood is 0 beliefs that
    all but exclude a point are tried instead; and by convention the sup is 1 where something is
    seen that cannot be without row i's data, since then beliefs leave nothing to compare with."""
    if any(with_row[x] and not without[x] for x in with_row):
        return 1.0
    best = 0.0
    points = {(float(with_row[x]), float(without[x])) for x in with_row if without[x]}
    for one, two in combinations(sorted(points), 2):
        if one[0] and two[0]:
            root = math.sqrt(one[1] / one[0] * two[0] / two[1])
            shares = [root / (1 + root)]
        else:
            shares = [1e-15, 1 - 1e-15]
        for q in shares:
            both = posteriors(
                {"a": q / one[1], "b": (1 - q) / two[1]},
                {"a": one[0], "b": two[0]},
                {"a": one[1], "b": two[1]},
            )
            if both is not None:
                best = max(best, total_variation(*both))
    return best


def identifiability(prior: Prior, channel: Channel, n: int, m: int) -> Any:
    """The largest Pr[x|y] / Pr[x'|y] over neighbours x, x' and outputs y that can occur."""
    worst = Fraction(1)
    for y in range(len(next(iter(channel.values())))):
        joint = {x: p * channel[x][y] for x, p in prior.items()}
        total = sum(joint.values())
        if total == 0:
            continue
        for x in joint:
            for row, value in product(range(n), range(m)):
                top, bottom = joint[x] / total, joint[replaced(x, row, value)] / total
                worst = max(worst, ratio(top, bottom))
    return worst


def replace_ratio(channel: Channel, n: int, m: int) -> Any:
    """The largest Pr[y|x] / Pr[y|x'] over neighbours: e^ε of differential privacy (replace)."""
    worst = Fraction(1)
    for x, row, value in product(channel, range(n), range(m)):
        pairs = zip(channel[x], channel[replaced(x, row, value)], strict=True)
        worst = max([worst, *(ratio(top, bottom) for top, bottom in pairs)])
    return worst


def mutual_information(prior: Prior, channel: Channel) -> float:
    total = 0.0
    for y in range(len(next(iter(channel.values())))):
        seen = sum(p * channel[x][y] for x, p in prior.items())
        for x, p in prior.items():
            if p * channel[x][y]:
                total += float(p * channel[x][y]) * math.log(channel[x][y] / seen)
    return total


def positive_pair(prior: Fraction, after: Fraction) -> Fraction | float:
    """The smallest γ of F2 for one belief before and after."""
    other: Fraction | float = ratio(1 - prior, 1 - after)
    return max(after / prior, other)


def log(value: Fraction | float) -> float:
    return INFINITY if value == INFINITY else math.log(value)
