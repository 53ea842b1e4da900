"""Whether one channel can be simulated from another, with a proof of either answer."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from whosin.errors import InvalidInput
from whosin.exact import Array, flint_rational, rational
from whosin.extras import needs
from whosin.mechanisms import Channel, as_channel
from whosin.notions.gains import GainMatrix
from whosin.notions.leakage import vulnerabilities
from whosin.priors import Prior, Uniform
from whosin.refinement import program
from whosin.refinement.linear_systems import pivots, product, solved
from whosin.spaces import Space

ROUNDED = Fraction(1, 10**12)
"""How far a simulation of channels of floats may be off: the accuracy of floats."""


@dataclass(frozen=True)
class Comparison:
    """Whether a target can be simulated from a source.

    Attributes:
        holds: True with `simulation`, False with `gain`; None where neither was proved.
        exact: False where the channels are floats and the simulation is within their rounding.
        simulation: Pr[output of the target | output of the source], a row for each output of the
            source.
        distance: how far the simulation is from the target, at the worst world: half the sum of
            the differences of probabilities; 0 where it is exact.
        prior, gain: someone whom the target serves better than the source; guesses are called as
            the target's outputs.
        target_value, source_value: what the best guess is worth to them with either.
    """

    holds: bool | None
    exact: bool = True
    simulation: tuple[tuple[Fraction, ...], ...] | None = None
    distance: Fraction | None = None
    prior: Prior | None = None
    gain: GainMatrix | None = None
    target_value: Fraction | None = None
    source_value: Fraction | None = None


def simulates(source: object, target: object, space: Space | None = None) -> Comparison:
    """Whether what the target shows can be simulated from what the source shows: A = B·R.

    Then nobody gains more from the target, whatever they believe and whatever they guess (it is
    *refined* by the source); otherwise somebody does.

    Args:
        source, target: channels, or mechanisms together with their space.

    Raises:
        InvalidInput: they are on different spaces.
        MissingExtra: whosin[tradeoff] is not installed, and a linear program is needed.
    """
    one, two = (as_channel(each, space).on_worlds() for each in (source, target))
    for channel in (one, two):
        channel.need_finite("refinement")
    if one.space != two.space:
        raise InvalidInput("target", f"on the source's space, {one.space!r}", repr(two.space))
    b, a = _table(one), _table(two)
    exact = one.exact is not None and two.exact is not None
    distinct = _distinct(np.hstack([b, a]))
    merged, shares = _merged(b[distinct])
    outcome = _decide(merged, a[distinct])
    if outcome.simulation is not None:
        simulation = np.array(outcome.simulation, dtype=object)
        return _simulated(_unmerged(simulation, shares), b, a)
    if not exact and outcome.nearly is not None:
        near = _unmerged(outcome.nearly, shares)
        result = _simulated(near, b, a)
        if result.distance is not None and result.distance <= ROUNDED:
            return result
    if outcome.weights is None:
        return Comparison(None)
    return _refuted(one, two, distinct, outcome.weights)


@dataclass(frozen=True, eq=False)
class _Outcome:
    """A simulation, or weights W that separate, both FLINT rationals; or one that is near."""

    simulation: Any = None
    weights: Any = None
    nearly: Any = None


def _decide(b: Array, a: Array) -> _Outcome:
    """Decide A = B·R in rationals."""
    rows, columns = pivots(b)
    square = b[np.ix_(rows, columns)]
    solution = solved(square, a[rows])
    off = product(b[:, columns], solution) - a
    wrong = np.argwhere(off != 0)
    if len(wrong):
        x, y = wrong[0]
        weights = _outside(b, rows, columns, int(x), int(y), bool(off[x, y] > 0), a.shape[1])
        return _Outcome(None, weights, solution if len(columns) == b.shape[1] else None)
    if len(columns) == b.shape[1]:
        negative = np.argwhere(solution < 0)
        if not len(negative):
            return _Outcome(solution)
        worst = min(negative.tolist(), key=lambda entry: solution[tuple(entry)])
        weights = _negative(square, rows, worst[0], worst[1], a.shape)
        return _Outcome(None, weights, solution)
    return _by_program(b, a, rows)


def _outside(
    b: Array, rows: list[int], columns: list[int], x: int, y: int, above: bool, outputs: int
) -> Array:
    """W on column y alone: a combination u of worlds with uᵀB = 0 and uᵀA_y > 0."""
    zero = flint_rational(0)
    weights = np.full((b.shape[0], outputs), zero, dtype=object)
    combination = solved(b[np.ix_(rows, columns)].T, b[x : x + 1, columns].T)
    sign = -1 if above else 1
    weights[x, y] += sign
    for position, row in enumerate(rows):
        weights[row, y] -= sign * combination[position, 0]
    return weights


def _negative(square: Array, rows: list[int], b: int, y: int, shape: tuple[int, ...]) -> Array:
    """W on column y alone: u with uᵀB = −e_b, so that uᵀA_y = −R_by > 0."""
    unit = np.full((len(rows), 1), flint_rational(0), dtype=object)
    unit[b, 0] = flint_rational(-1)
    combination = solved(square.T, unit)
    weights = np.full(shape, flint_rational(0), dtype=object)
    for position, row in enumerate(rows):
        weights[row, y] = combination[position, 0]
    return weights


def _by_program(b: Array, a: Array, rows: list[int]) -> _Outcome:
    """Where outputs of the source are combinations of others: a linear program."""
    needs("tradeoff")
    source, target = b[rows], a[rows]
    near, duals = program.solve(
        *(
            np.array([[float(rational(e)) for e in row] for row in each])
            for each in (source, target)
        )
    )
    for simulation in program.exact_simulations(near, source, target):
        sums = (simulation.sum(axis=1) == 1).all()
        if sums and not (simulation < 0).any() and (product(b, simulation) == a).all():
            return _Outcome(simulation)
    for sign in (1, -1):
        weights = np.full(a.shape, flint_rational(0), dtype=object)
        for position, row in enumerate(rows):
            weights[row] = [flint_rational(sign * float(each)) for each in duals[position]]
        if _separates(weights, b, a):
            return _Outcome(None, weights, _stochastic(near))
    return _Outcome(None, None, _stochastic(near))


def _separates(weights: Array, b: Array, a: Array) -> bool:
    best = product(b.T, weights)
    return bool((weights * a).sum() > sum(max(row) for row in best))


def _stochastic(near: Array) -> Array:
    """Floats as rationals of at least 0 whose rows sum to 1."""
    positive = [[flint_rational(max(float(each), 0.0)) for each in row] for row in near]
    return np.array(
        [[each / sum(row) if sum(row) else flint_rational(0) for each in row] for row in positive],
        dtype=object,
    )


def _simulated(simulation: Array, b: Array, a: Array) -> Comparison:
    """A simulation, and how far it is from the target."""
    if (simulation < 0).any() or not (simulation.sum(axis=1) == 1).all():
        simulation = _stochastic(
            np.array([[float(rational(e)) for e in row] for row in simulation])
        )
        if not (simulation.sum(axis=1) == 1).all():
            return Comparison(None)
    off = product(b, simulation) - a
    distance = max(rational(sum(abs(each) for each in row)) / 2 for row in off)
    rows = tuple(tuple(rational(each) for each in row) for row in simulation)
    return Comparison(True, distance == 0, rows, distance)


def _refuted(source: Channel, target: Channel, distinct: list[int], weights: Array) -> Comparison:
    """The prior and the gain of weights, measured again by the definition of leakage."""
    count, outputs = source.space.worlds, target.outputs
    gains = [[Fraction(0)] * count for _ in outputs]
    for index, world in enumerate(distinct):
        least = min(weights[index])  # the same for all guesses: no difference to a comparison
        for y in range(len(outputs)):
            gains[y][world] = rational(weights[index, y] - least)
    gain, prior = GainMatrix(gains, outputs), Uniform()
    values = [vulnerabilities(channel, prior, gain)[2] for channel in (target, source)]
    holds = False if values[0] > values[1] else None
    exact = source.exact is not None and target.exact is not None
    return Comparison(holds, exact, None, None, prior, gain, *values)


def _table(channel: Channel) -> Array:
    """The entries as rationals; rows of floats are scaled to sum to 1."""
    table = channel.rationals
    if channel.exact is not None:
        return table
    return np.asarray(table / table.sum(axis=1)[:, None])


def _distinct(table: Array) -> list[int]:
    """One row of each kind."""
    seen: dict[tuple[Hashable, ...], int] = {}
    for number, row in enumerate(table):
        seen.setdefault(tuple(row), number)
    return list(seen.values())


def _merged(table: Array) -> tuple[Array, list[tuple[int, Any]]]:
    """Columns that are multiples of each other as one, and for each column which one it is in; −1
    where it is never shown."""
    kinds: dict[tuple[Hashable, ...], int] = {}
    shares: list[tuple[int, Any]] = []
    for column in table.T:
        total = column.sum()
        if total == 0:
            shares.append((-1, flint_rational(0)))
            continue
        kind = kinds.setdefault(tuple(column / total), len(kinds))
        shares.append((kind, total))
    sums = [
        sum((t for p, t in shares if p == kind), flint_rational(0)) for kind in range(len(kinds))
    ]
    result = np.array(
        [[each * size for each in shape] for shape, size in zip(kinds, sums, strict=True)]
    )
    return result.T.reshape(table.shape[0], len(kinds)), shares


def _unmerged(simulation: Array, shares: list[tuple[int, Any]]) -> Array:
    """A row of R for every output of the source."""
    never = [flint_rational(1), *([flint_rational(0)] * (simulation.shape[1] - 1))]
    return np.array(
        [never if kind < 0 else list(simulation[kind]) for kind, _ in shares], dtype=object
    )
