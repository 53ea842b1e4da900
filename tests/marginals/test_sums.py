"""Sums of cells (ranges, cumulative counts, upper levels) against dense least squares."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest

from amounts import cases
from marginals_oracle import dense
from refusals import refused
from whosin.exact import Array
from whosin.marginals import (
    BudgetAllocation,
    Measurement,
    Sums,
    Workload,
    allocate_budget,
    cell_variances,
    estimate_residuals,
    estimate_tables,
    interval_radii,
    sum_variances,
)


def matrix_of(sums: Sums | None, size: int) -> Array:
    """A row of zeros and ones for each sum, by the definition."""
    if sums is None:
        return np.eye(size)
    order = sums.order or tuple(range(size))
    rows = np.zeros((len(sums.spans), size))
    for number, (start, end) in enumerate(sums.spans):
        rows[number, [order[at] for at in range(start, end)]] = 1
    return rows


def asked_of(workload: Workload, number: int) -> Array:
    """The matrix that takes the counts of all combinations to what a table asks."""
    matrix: Array = np.ones((1, 1))
    own = dict(zip(workload.sets[number], workload.sums[number], strict=True))
    for each, size in enumerate(workload.sizes):
        factor = matrix_of(own[each], size) if each in own else np.ones((1, size))
        matrix = np.kron(matrix, factor)
    return matrix


def random_sums(rng: np.random.Generator, size: int) -> Sums:
    """Some runs, in an order of the cells or in their own; not only whole ones."""
    while True:
        ends = rng.integers(0, size + 1, (int(rng.integers(1, 5)), 2))
        spans = tuple((int(min(a, b)), int(max(a, b))) for a, b in ends if a != b)
        order = tuple(rng.permutation(size).tolist()) if rng.random() < 0.5 else ()
        if spans and set(spans) != {(0, size)}:
            return Sums(size, spans, order)


def random_workload(rng: np.random.Generator) -> Workload:
    count = int(rng.integers(1, 4))
    sizes = tuple(int(size) for size in rng.integers(2, 6 if count < 3 else 4, count))
    every = [tuple(at for at in range(count) if mask >> at & 1) for mask in range(2**count)]
    asked: dict[Any, None] = {}
    for _ in range(int(rng.integers(1, 5))):
        attributes = every[int(rng.integers(len(every)))]
        sums = tuple(
            random_sums(rng, sizes[each]) if rng.random() < 0.6 else None for each in attributes
        )
        asked[attributes, sums] = None
    return Workload(sizes, tuple(each for each, _ in asked), (), tuple(each for _, each in asked))


def random_measurements(rng: np.random.Generator, workload: Workload) -> list[Measurement]:
    """Residuals alone, as Gaussian noise has them; or all tables, and some with differences."""
    if rng.random() < 0.5:
        return [Measurement(part, part) for part in workload.residuals]
    result = [Measurement(each) for each in dict.fromkeys(workload.sets)]
    for _ in range(int(rng.integers(0, 4))):
        attributes = tuple(at for at in range(len(workload.sizes)) if rng.random() < 0.6)
        chosen = tuple(each for each in attributes if rng.random() < 0.5)
        result.append(Measurement(attributes, chosen))
    return result


@cases(100, 1000)
def test_tables_and_sums_are_those_of_generalised_least_squares(count: int) -> None:
    """F20: values, the variance of every cell and sum, and the mean of a table."""
    rng = np.random.default_rng(5)
    for _ in range(count):
        workload = random_workload(rng)
        sizes, measured = workload.sizes, random_measurements(rng, workload)
        variances = rng.uniform(0.2, 5, len(measured)).tolist()
        rows = [dense(sizes, each.attributes, each.differences) for each in measured]
        truth = rng.integers(0, 50, prod(sizes)).astype(float)
        values = [one @ truth + rng.normal(size=len(one)) for one in rows]
        shaped = [v.reshape(m.shape(sizes)) for v, m in zip(values, measured, strict=True)]
        found = estimate_tables(workload, estimate_residuals(workload, measured, variances, shaped))
        means = cell_variances(workload, measured, variances)
        each_one = sum_variances(workload, measured, variances)

        scale = np.repeat(np.asarray(variances) ** -0.5, [len(one) for one in rows])
        solving = np.linalg.pinv(scale[:, None] * np.concatenate(rows))
        best, inverse = solving @ (scale * np.concatenate(values)), solving @ solving.T
        for number in range(len(workload.sets)):
            matrix = asked_of(workload, number)
            assert found[number].shape == workload.asked(number)
            np.testing.assert_allclose(found[number].ravel(), matrix @ best, rtol=0, atol=1e-9)
            spread = np.diag(matrix @ inverse @ matrix.T)
            np.testing.assert_allclose(means[number], spread.mean(), rtol=1e-9)
            assert (number in each_one) != workload.alike(number)
            if number in each_one:
                np.testing.assert_allclose(each_one[number].ravel(), spread, rtol=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("relation", ["add-remove", "replace"])
def test_the_budget_goes_where_sums_need_it(noise: str, relation: str) -> None:
    """What was spent for the sums is better for them than what was spent for the cells."""
    cumulative = Sums(40, tuple((0, end) for end in range(1, 41)))
    sets = ((0,), (0, 1), (1, 2))
    sums = ((cumulative,), (None, None), (None, None))
    asked, plain = Workload((40, 3, 4), sets, (), sums), Workload((40, 3, 4), sets)
    spending, other = (allocate_budget(each, noise, relation) for each in (asked, plain))

    def mean(given: BudgetAllocation) -> float:
        told = [each.l1_sensitivity(asked.sizes, relation) for each in given.measurements]
        squared = [
            each.squared_l2_sensitivity(asked.sizes, relation) for each in given.measurements
        ]
        variances = [
            float(square) / (2 * part) if noise == "gaussian" else 2 * (one / part) ** 2
            for one, square, part in zip(told, squared, given.parts, strict=True)
        ]
        return float(cell_variances(asked, given.measurements, variances).mean())

    assert mean(spending) == pytest.approx(float(spending.variances.mean()), rel=1e-6)
    assert mean(spending) < 0.97 * mean(other)


@pytest.mark.parametrize(("noise", "copies"), [("laplace", 99), ("gaussian", 199), ("laplace", 39)])
def test_intervals_cover(noise: str, copies: int) -> None:
    """Over 1,000 releases with copies of their own: each sum of a kind and each cell, and all of a
    table at once, never fewer than promised but for six standard deviations."""
    cumulative = Sums(6, tuple((0, end) for end in range(1, 7)))
    pairs = Sums(6, ((0, 2), (2, 4), (4, 6), (1, 3)), (5, 3, 1, 0, 2, 4))
    workload = Workload(
        (6, 3), ((0,), (0, 1), (0, 1)), (), ((cumulative,), (pairs, None), (None, None))
    )
    spending = allocate_budget(workload, noise)
    rng, rounds, each_round = np.random.default_rng(7), 200, 5
    scales = [3.0 / part for part in spending.parts]
    sampler = rng.laplace if noise == "laplace" else rng.normal
    variances = [(2 if noise == "laplace" else 1) * scale**2 for scale in scales]

    def draw(number: int, shape: tuple[int, ...]) -> np.ndarray:
        return np.rint(sampler(0, scales[number], shape)).astype(np.int64)

    inside = [np.zeros(workload.asked(number)) for number in range(3)]
    together = np.zeros(3)
    for _ in range(rounds):
        found = interval_radii(workload, spending.measurements, variances, draw, copies=copies)
        values = [
            draw(number, (each_round, *each.shape(workload.sizes)))
            for number, each in enumerate(spending.measurements)
        ]
        tables = estimate_tables(
            workload, estimate_residuals(workload, spending.measurements, variances, values)
        )
        for number, table in enumerate(tables):
            inside[number] += (np.abs(table) <= found[number].cell).sum(axis=0)
            close = np.abs(table) <= found[number].table
            together[number] += close.reshape(each_round, -1).all(axis=1).sum()
    releases = rounds * each_round
    slack = 6 * (0.05 * 0.95 * 2 / rounds) ** 0.5
    for number in range(3):
        assert (inside[number] / releases >= 0.95 - slack).all()
        assert inside[number].mean() / releases <= 0.985
    assert (together / releases >= 0.95 - slack).all()
    assert copies < 99 or (together / releases <= 0.99).all()
    assert np.shape(found[0].cell) == (6,) and (np.diff(found[0].table) != 0).all()


def test_too_few_copies_promise_nothing() -> None:
    workload = Workload((3,), ((0,),), (), ((Sums(3, ((0, 2),)),),))
    found = interval_radii(
        workload, [Measurement((0,))], [1.0], lambda _, shape: np.ones(shape), copies=5
    )
    assert np.isinf(found[0].cell).all() and np.isinf(found[0].table).all()


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: Sums(3, ()), "spans"),
    (lambda: Sums(3, ((1, 1),)), "spans"),
    (lambda: Sums(3, ((0, 4),)), "spans"),
    (lambda: Sums(3, ((0, 1),), (0, 0, 1)), "order"),
    (lambda: Workload((3,), ((0,),), (), ((Sums(4, ((0, 1),)),),)), "sums"),
    (lambda: Workload((3,), ((0,),), (), ((Sums(3, ((0, 3),)),),)), "sums"),
    (lambda: Workload((3, 2), ((0, 1),), (), ((None,),)), "sums"),
    (lambda: Workload((3, 2), ((0,), (0,)), (), ((None,), (None,))), "sets"),
]


def test_refusals() -> None:
    for make, field in REFUSED:
        with refused(field):
            make()
