"""Whole tables are whole and agree; ranks of radii. `test_sums` has how often intervals hold."""

from __future__ import annotations

import numpy as np

from whosin.marginals import Measurement, Workload, cell_variances, interval_radii, whole_tables


def test_ranks() -> None:
    """Of 99 copies of one cell the 95th covers it with 95 of 100."""
    workload = Workload((2,), ((),))
    for copies, radius in ((99, 95), (19, 19), (18, np.inf)):
        [found] = interval_radii(
            workload,
            [Measurement(())],
            [1.0],
            lambda _, shape: np.arange(*shape) + 1,
            copies=copies,
        )
        assert found.cell == found.table == radius


def test_whole_tables_have_one_total_and_no_negative_cell() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.normal(3, 20, shape) for shape in ((4,), (4, 5), (40, 30))]
    found = whole_tables(tables, [400.0] * 3, 1234.4)
    assert [each.shape for each in found] == [(4,), (4, 5), (40, 30)]
    for each in found:
        assert each.dtype == np.int64 and each.min() >= 0 and each.sum() == 1234
    for exact in (rng.integers(0, 50, (6, 7)), rng.integers(0, 2, (5, 4, 3))):
        assert (whole_tables([exact.astype(float)], [1e-9], exact.sum())[0] == exact).all()
    assert (whole_tables([np.array([-3.0, 1.0])], [1.0], -2.0)[0] == 0).all()
    assert (whole_tables([np.array([[-3.0, 1.0]])], [1.0], 0.0)[0] == 0).all()


def test_a_large_sparse_table_follows_the_noise_less() -> None:
    """Most cells empty: nearer to the truth than the estimate, and than its closest whole table."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.full(40, 0.2)), rng.dirichlet(np.full(30, 0.2))
    truth = rng.poisson(20_000 * np.multiply.outer(*shares))
    noisy = truth + rng.laplace(0, 50, truth.shape)
    found = whole_tables([noisy], [5000.0], truth.sum())[0]
    flat = whole_tables([noisy.ravel()], [5000.0], truth.sum())[0].reshape(truth.shape)
    errors = [np.abs(each - truth).mean() for each in (found, flat, noisy)]
    assert errors[0] < 0.85 * errors[1] < 0.85 * errors[2]


def test_the_whole_table_is_the_closest_one() -> None:
    """Against every whole table of the same total, up to the rounding of a cell."""
    rng = np.random.default_rng(4)
    for _ in range(50):
        cells, total = rng.normal(1, 3, 3), int(rng.integers(0, 7))
        found = whole_tables([cells], [1.0], total)[0]
        every = [(a, b, total - a - b) for a in range(total + 1) for b in range(total + 1 - a)]
        least = min(float(((cells - each) ** 2).sum()) for each in every)
        assert float(((cells - found) ** 2).sum()) <= least + 1e-9


def test_measuring_more_makes_no_table_worse() -> None:
    workload = Workload.up_to((3, 4, 2), 2)
    measured = [Measurement(each) for each in workload.sets]
    before = cell_variances(workload, measured, [2.0] * len(measured))
    after = cell_variances(workload, [*measured, Measurement((0, 1, 2))], [2.0] * 7)
    assert (after < before).all()
