"""The best mechanism for a distortion, beside cvxpy and plain Blahut–Arimoto."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

import whosin as wi
from measuring import Row, best_of, peer
from whosin.distortion import best
from whosin.distortion.mixture import fit
from whosin.distortion.rate import solve, table_letter
from whosin.distortion.structure import check_cost, structure

CVXPY = """
import itertools, json, math, time
import cvxpy as cp
import numpy as np
import scipy.sparse as sp
n, p, epsilon = 6, 0.7, 1.0
worlds = list(itertools.product(range(2), repeat=n))
size = len(worlds)
d = np.array([[sum(a != b for a, b in zip(x, y)) for y in worlds] for x in worlds])
mass = np.array([math.prod(p if v == 0 else 1 - p for v in x) for x in worlds])
pairs = [(i, j) for i in range(size) for j in range(size) if d[i, j] == 1]
left = sp.csr_matrix((np.ones(len(pairs)), (range(len(pairs)), [i for i, _ in pairs])))
right = sp.csr_matrix((np.ones(len(pairs)), (range(len(pairs)), [j for _, j in pairs])))
start = time.perf_counter()
channel = cp.Variable((size, size), nonneg=True)
limits = [cp.sum(channel, axis=1) == 1, left @ channel <= math.exp(epsilon) * (right @ channel)]
program = cp.Problem(cp.Minimize(cp.sum(cp.multiply(mass[:, None] * d, channel))), limits)
value = program.solve(solver=cp.CLARABEL)
print(json.dumps({"seconds": time.perf_counter() - start, "value": float(value)}))
"""
PATIENCE = 120.0
"""Seconds that Blahut–Arimoto gets."""


def rows() -> Iterator[Row]:
    prior = wi.priors.Independent(("0.7", "0.3"))
    space = wi.Records(6, 2)
    found = peer("cvxpy", ["cvxpy", "clarabel"], CVXPY)
    seconds = best_of(lambda: best(space, prior, epsilon=1), repeats=5, each=3)
    theirs = found["seconds"] if found else 0.7
    ours = best(space, prior, epsilon=1)
    agree = found is None or abs(found["value"] - ours.distortion) < 1e-6
    yield Row(
        f"best mechanism, 64 worlds (distortion {ours.distortion:.7f}, gap {ours.gap:.0e})",
        seconds,
        "100 times",
        theirs / seconds >= 100 and agree,
        "cvxpy/Clarabel",
        theirs,
        recorded=found is None,
    )
    for count in (20, 30):
        start = time.perf_counter()
        large = best(wi.Records(count, 2), prior, epsilon=1)
        seconds = time.perf_counter() - start
        yield Row(
            f"the same, {count} rows (gap {large.gap:.0e})",
            seconds,
            "solved to 1e-9, certified",
            large.gap <= 1e-9,
        )
    yield from rate()


def rate() -> Iterator[Row]:
    """256 worlds, D = 0.1 n. Nearly eight rows of (0.89, 0.11) are almost at the distortion where
    rare outputs leave the optimum, which is where Blahut–Arimoto is slow; on a lognormal prior it
    is quick, and this row says so."""
    space = wi.Records(8, 2)
    rng = np.random.default_rng(1)
    ones = np.array(list(space)).sum(axis=1)
    critical = 0.89 ** (8 - ones) * 0.11**ones * (1 + 1e-3 * rng.random(256))
    for name, mass in (("critical", critical), ("lognormal", rng.lognormal(0, 2.5, 256))):
        yield from rate_of(name, mass, space)


def rate_of(name: str, mass: np.ndarray, space: wi.Records) -> Iterator[Row]:
    """One prior: the whole solve, and one slope beside Blahut–Arimoto at the same slope."""
    known = structure(space, wi.priors.Table((mass / mass.sum()).tolist()))
    letter = table_letter(known.types, known.masses, check_cost(space, None))
    point, gap = solve([letter], distortion=0.8)
    whole = best_of(lambda: solve([letter], distortion=0.8), repeats=1)
    yield Row(
        f"rate–distortion, 256 worlds, {name}, slope found (gap {gap:.0e})", whole, "", gap <= 1e-6
    )
    kernel = letter.kernel(point.slope)
    seconds = best_of(lambda: fit(known.masses, kernel, 1e-6), repeats=3)
    ours = fit(known.masses, kernel, 1e-6)
    theirs, reached = blahut_arimoto(known.masses, kernel)
    yield Row(
        f"the same at a given slope (gap {ours.gap:.0e}; theirs {reached:.0e})",
        seconds,
        "50 times",
        theirs / seconds >= 50 and ours.gap <= 1e-6,
        "Blahut–Arimoto",
        theirs,
    )


def blahut_arimoto(mass: np.ndarray, kernel: np.ndarray) -> tuple[float, float]:
    """Seconds, and the gap reached, when the slope is known; stops at 1e-6 or out of patience."""
    start = time.perf_counter()
    weights = np.full(kernel.shape[1], 1 / kernel.shape[1])
    gap = np.inf
    while gap > 1e-6 and time.perf_counter() - start < PATIENCE:
        for _ in range(50):
            pull = kernel.T @ (mass / (kernel @ weights))
            weights = weights * pull
        gap = float(np.log(pull.max()))
    return time.perf_counter() - start, gap
