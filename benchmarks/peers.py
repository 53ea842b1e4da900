"""MST and AIM as mbi's repository has them (mechanisms/mst.py and aim.py), at an ε and a δ.

Ports, with noise of NumPy: the budgets, scores, rounds, sizes and the last model are theirs. Two
things differ. MST's merging of rare values is left out, as we have none. AIM's models between two
rounds are those of `whosin.release.synthetic_models`, which solve the same problem: its own are
compiled anew in every round and take hours for a table such as these. The limit on the size of the
model is ours, 2^17 cells or 1 MB, in place of its 80 MB, for the same reason.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from whosin.exact import Array
from whosin.release.synthetic_models import AveragedMarginal, MarginalEstimate, model_cells

MOST_CELLS = 2**17
ITERATIONS = 1000
Tables = dict[tuple[int, ...], Array]


def table(places: list[Array], sizes: tuple[int, ...], columns: tuple[int, ...]) -> Array:
    """The counts of some columns."""
    shape = tuple(sizes[each] for each in columns)
    codes = np.ravel_multi_index(tuple(places[each] for each in columns), shape)
    return np.bincount(codes, minlength=math.prod(shape)).reshape(shape)


def rho_of(epsilon: float, delta: float) -> float:
    """The largest ρ that allows an ε and a δ (Canonne, Kamath and Steinke 2020, as cdp2adp.py)."""
    orders = 1 + np.geomspace(1e-3, 1e5, 20_000)

    def least_delta(rho: float) -> float:
        logs = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders)
        return float(np.exp(np.min(logs - np.log(orders - 1))))

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if least_delta(middle) <= delta else (low, middle)
    return low


def drawn(
    sizes: tuple[int, ...],
    measured: list[tuple[tuple[int, ...], Array, float]],
    length: int,
    iterations: int,
    start: Tables | None = None,
) -> list[Array]:
    """Rows of mbi's model."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    from mbi import CliqueVector, Domain, Factor, LinearMeasurement
    from mbi.estimation import MirrorDescent

    domain = Domain(tuple(range(len(sizes))), sizes)
    given = [LinearMeasurement(values.ravel(), each, sigma) for each, values, sigma in measured]
    warm = None
    if start:
        factors = {each: Factor(domain.project(each), values) for each, values in start.items()}
        warm = CliqueVector(domain, tuple(factors), factors)
    model = MirrorDescent().estimate(domain, given, iters=iterations, warm_start=warm)
    rows = model.synthetic_data(length).data
    return [np.asarray(rows[each]) for each in range(len(sizes))]


def mst(truth: list[Array], sizes: tuple[int, ...], rho: float) -> list[Array]:
    """A third of ρ for single columns, for choosing and for pairs."""
    rng, count = np.random.default_rng(), len(sizes)
    names = range(count)

    def noisy(sets: list[tuple[int, ...]]) -> list[tuple[tuple[int, ...], Array, float]]:
        sigma = math.sqrt(3 * len(sets) / (2 * rho))
        counts = [table(truth, sizes, each) for each in sets]
        return [
            (each, known + rng.normal(0, sigma, known.shape), sigma)
            for each, known in zip(sets, counts, strict=True)
        ]

    ones = noisy([(each,) for each in names])
    margins = [np.maximum(values, 0) for _, values, _ in ones]
    total = float(np.mean([each.sum() for each in margins]))
    scores = {
        pair: np.abs(
            table(truth, sizes, pair)
            - np.outer(margins[pair[0]] / margins[pair[0]].sum(), margins[pair[1]])
            * (total / margins[pair[1]].sum())
        ).sum()
        for pair in combinations(names, 2)
    }
    epsilon, group, chosen = math.sqrt(8 * rho / 3 / (count - 1)), list(names), []
    while len(chosen) < count - 1:
        joining = [pair for pair in scores if group[pair[0]] != group[pair[1]]]
        gumbel = [epsilon / 2 * scores[pair] + rng.gumbel() for pair in joining]
        one, other = joining[int(np.argmax(gumbel))]
        chosen.append((one, other))
        group = [group[one] if each == group[other] else each for each in group]
    return drawn(sizes, ones + noisy(list(chosen)), len(truth[0]), 5 * ITERATIONS)


def aim(truth: list[Array], sizes: tuple[int, ...], rho: float, order: int) -> list[Array]:
    """Rounds of choosing and measuring, for all tables of `order` columns."""
    rng, count = np.random.default_rng(), len(sizes)
    wanted = [set(each) for each in combinations(range(count), order)]
    sets = [each for size in range(1, order + 1) for each in combinations(range(count), size)]
    cells = {each: math.prod(sizes[at] for at in each) for each in sets}
    sets = [each for each in sets if cells[each] <= 10_000]
    weights = {each: sum(len(one.intersection(each)) for one in wanted) for each in sets}
    answers = {each: table(truth, sizes, each) for each in sets}
    rounds = 16 * count
    sigma, epsilon = math.sqrt(rounds / (2 * 0.9 * rho)), math.sqrt(8 * 0.1 * rho / rounds)
    measured: list[tuple[tuple[int, ...], Array, float]] = []
    known: dict[tuple[int, ...], AveragedMarginal] = {}

    def measure(each: tuple[int, ...]) -> None:
        values = answers[each] + rng.normal(0, sigma, answers[each].shape)
        measured.append((each, values, sigma))
        before = known.get(each)
        new = AveragedMarginal(values, sigma**-2.0)
        known[each] = new if before is None else before.and_then(values, sigma**2)

    for at in range(count):
        measure((at,))
    used = count * 0.5 / sigma**2
    model, last = MarginalEstimate(sizes, known, None, ITERATIONS), False
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + epsilon**2 / 8):
            last, left = True, rho - used
            sigma, epsilon = math.sqrt(1 / (2 * 0.9 * left)), math.sqrt(8 * 0.1 * left)
        used += epsilon**2 / 8 + 0.5 / sigma**2
        free = {part for each in known for part in _parts(each)}
        most = MOST_CELLS * used / rho
        small = [
            each for each in sets if each in free or model_cells(sizes, [*known, each]) <= most
        ]
        expected = model.tables(small)
        noise = math.sqrt(2 / math.pi) * sigma
        scores = [
            weights[each] * (np.abs(answers[each] - expected[each]).sum() - noise * cells[each])
            for each in small
        ]
        factor = epsilon / 2 / max(weights[each] for each in small)
        chosen = small[int(np.argmax(factor * np.array(scores) + rng.gumbel(size=len(small))))]
        measure(chosen)
        model = MarginalEstimate(sizes, known, model.potentials, ITERATIONS)
        moved = np.abs(model.tables([chosen])[chosen] - expected[chosen]).sum()
        if moved <= noise * cells[chosen]:
            sigma, epsilon = sigma / 2, epsilon * 2
    return drawn(sizes, measured, len(truth[0]), ITERATIONS, model.potentials)


def _parts(columns: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [part for size in range(1, len(columns) + 1) for part in combinations(columns, size)]
