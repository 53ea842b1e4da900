"""Exact Bayesian-DP leakage of noisy sums over a Markov chain (F13).

**Windows.** Rows beyond the nearest known neighbours of row i are independent of x_i given them, so
leaving them unknown only helps: the worst set of known rows is everything outside a window around
i. Left of i the window ends at a known row at distance a, or at the start; right of it at a known
row at distance b, or at the end.

**Cutting off.** For a window longer than W condition on x_{i−W} = u'. What is beyond then depends
on u' alone, so the leakage is at most that of the window known at i − W plus
η = max ln Pr[u' | x_i = v, beyond] / Pr[u' | x_i = v', beyond], which mixing makes small and which
is computed from powers of the transition matrix. So the level is bracketed; it is exact when no
window is cut off, or when the bracket closes to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from whosin.errors import Unsupported
from whosin.exact import Array
from whosin.notions.chain_windows import Right, WorstWindow, sweep
from whosin.notions.level import Level, Witness
from whosin.notions.sums import NoisySum
from whosin.priors import MarkovChain
from whosin.spaces import Records

WORK = 6e9
"""Element operations that a sweep may take."""
CLOSED = 1e-11
"""A bracket as narrow as this is closed: it is of the order of rounding."""
UNLIKELY = 1e-140
"""Products of two probabilities above it are far above the smallest float."""
FARTHEST = 1000
"""How many steps of one matrix are looked at; a chain that mixes has long done so."""
WINDOWS = (16, 24, 32, 48, 64, 96, 128, 160, 200, 256, 360, 512, 1024)


def leakage(prior: MarkovChain, space: Records, query: NoisySum) -> Level:
    """The Bayesian-DP leakage of the query under the chain, in nats, with its window."""
    prior.check_records(space)
    rows = space.rows
    marginals = prior.marginals(rows)
    if prior.homogeneous:
        _refuse_unlikely_steps(prior, rows)
        reach, (left, right) = _choose(prior, rows, query, marginals)
        result = sweep(prior, rows, query, marginals, reach, None)
    else:
        reach, (left, right) = rows - 1, (0.0, 0.0)
        if _work(reach, query, prior.values) * rows > WORK:
            raise Unsupported(
                f"a chain with a matrix a step over {rows} rows is beyond reach; "
                "one matrix for all steps reaches thousands of rows"
            )
        _refuse_unlikely_steps(prior, rows)
        result = WorstWindow()
        for row in range(rows):
            result.take(sweep(prior, rows, query, marginals, reach, row))
    upper = max(result.value, result.left + left, result.right + right, result.both + left + right)
    case = _witness(prior, space, query, marginals, result)
    if upper - result.value <= CLOSED * max(1.0, upper):
        return Level(upper, case, True, ("T14",))
    return Level(upper, case, False, ("T14",), lower=result.value)


def _refuse_unlikely_steps(prior: MarkovChain, rows: int) -> None:
    """Refuse a chain that gets from one value to another with a probability too small for floats,
    which would pass for impossible: every distance is compared with what is possible."""
    ends = [1] if prior.homogeneous else list(range(rows - 1, 0, -1))
    floats = [np.array(matrix, dtype=float) for matrix in prior.steps]
    possible = [np.array([[p > 0 for p in line] for line in matrix]) for matrix in prior.steps]
    unlikely = min(p for p in prior.start if p > 0) < UNLIKELY
    for last in ends:
        table, reachable = np.eye(prior.values), np.eye(prior.values, dtype=bool)
        distances = min(rows - 1, FARTHEST) if prior.homogeneous else last
        for distance in range(distances):
            step = 0 if prior.homogeneous else last - 1 - distance
            table, reachable = floats[step] @ table, possible[step] @ reachable
            unlikely = unlikely or bool(table[reachable].min() < UNLIKELY)
    if unlikely:
        raise Unsupported(
            "the chain begins somewhere, or gets from one value to another, with a probability of "
            f"less than {UNLIKELY:g}, too small for its leakage to be computed; give it more "
            "probability, or none"
        )


def _work(reach: int, query: NoisySum, values: int) -> int:
    """Element operations of one sweep; a whole number, since many releases have more than a float
    can hold."""
    outputs = math.prod((2 * reach + 1) * span + 1 for span in query.spans)
    return reach * values**3 * (values + 1) * reach * outputs


def _choose(
    prior: MarkovChain, rows: int, query: NoisySum, marginals: Array
) -> tuple[int, tuple[float, float]]:
    """(W, (η left, η right)): the shortest windows whose cut is negligible, or what is in reach."""
    longest = rows - 1
    best: tuple[int, tuple[float, float]] | None = None
    for reach in (*(w for w in WINDOWS if w < longest), longest):
        if _work(reach, query, prior.values) > WORK and best is not None:
            break
        cut = (0.0, 0.0) if reach >= longest else _cut(prior, rows, reach, marginals)
        best = reach, cut
        if sum(cut) <= CLOSED / 10:
            break
    assert best is not None
    if math.isinf(sum(best[1])) or _work(best[0], query, prior.values) > 10 * WORK:
        raise Unsupported(
            f"{rows} rows are beyond reach: the chain does not mix within {best[0]} rows; "
            "fewer rows, fewer values or a narrower query would do"
        )
    return best


def _cut(prior: MarkovChain, rows: int, reach: int, marginals: Array) -> tuple[float, float]:
    """η left and right for windows cut at `reach`, over everything that may lie beyond."""
    step = prior.matrix(0)
    near = np.linalg.matrix_power(step, reach)
    if (near == 0).any():
        return math.inf, math.inf
    log_near = np.log(near)
    power, beyond_left, beyond_right = near, [], [np.zeros(prior.values)]
    for distance in range(reach + 1, rows):
        power = power @ step
        beyond_left.extend(np.log(power))
        beyond_right.extend(np.log(power.T))
        beyond_left.append(np.log(np.where(marginals[distance] > 0, marginals[distance], np.nan)))
    # Pr[u'|v, beyond] ∝ P^W(u', v) / N(v) on the left, P^W(v, w') / N(v) on the right.
    return _largest_gap(log_near, beyond_left), _largest_gap(log_near.T, beyond_right)


def _largest_gap(near: Array, beyond: Sequence[Array]) -> float:
    """max over contexts, u', v, v' of (near(u',v) − N(v)) − (near(u',v') − N(v'))."""
    if not beyond:
        return 0.0
    norms = np.unique(np.round(np.array(beyond), 15), axis=0)
    gaps = near[None] - norms[:, None]
    return float(np.nanmax(np.nanmax(gaps, axis=2) - np.nanmin(gaps, axis=2))) + 1e-14


def _witness(
    prior: MarkovChain, space: Records, query: NoisySum, marginals: Array, worst: WorstWindow
) -> Witness:
    """Place the worst window in the series, with the rows outside it known."""
    window = worst.window
    assert window is not None
    right: Right = window["right"]
    rows, distance = space.rows, window["distance"]
    if window["row"] is not None:
        row = window["row"]
    elif window["left"] is None:
        row = distance
    elif right.value is None:
        row = rows - 1 - right.distance
    else:
        row = int(np.argmax(marginals[:, window["left"]] > 0)) + distance
    known: dict[int, int] = {}
    if window["left"] is not None:
        known[row - distance] = window["left"]
        for other in range(row - distance - 1, -1, -1):
            step = prior.matrix(other)
            known[other] = int(np.argmax(marginals[other] * step[:, known[other + 1]]))
    if right.value is not None:
        known[row + right.distance] = right.value
        for other in range(row + right.distance + 1, rows):
            known[other] = int(np.argmax(prior.matrix(other - 1)[known[other - 1]]))
    output = [
        (int(steps) + sum(int(query.weights[value, axis]) for value in known.values())) * step
        + rows * offset
        for axis, (steps, step, offset) in enumerate(
            zip(window["output"], query.step, query.offset, strict=True)
        )
    ]
    values = tuple(int(v) if v.denominator == 1 else float(v) for v in output)
    ratio = math.exp(worst.value)
    return Witness(
        output=values[0] if len(values) == 1 else values,
        prior=0.5,
        posterior=ratio / (1 + ratio),
        ratio=ratio,
        row=row,
        known=dict(sorted(known.items())),
        values=window["values"],
    )
