"""No way of measuring tables with Laplace noise is better than the bound says."""

from __future__ import annotations

import math
import runpy
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from refusals import refused
from whosin.marginals import Measurement, Workload, allocate_budget, cell_variances

PATH = Path(__file__).parents[2] / "benchmarks" / "laplace_bound.py"
laplace_bound = runpy.run_path(str(PATH))["laplace_bound"]


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_better_than_the_bound(seed: int) -> None:
    """Neither what is chosen, nor tables and differences with parts at random, by F20."""
    rng = np.random.default_rng(seed)
    sizes = tuple(int(size) for size in rng.integers(2, 9, rng.integers(2, 5)))
    workload = Workload.up_to(sizes, int(rng.integers(1, len(sizes) + 1)))
    bound = laplace_bound(workload)
    assert 0 < bound <= allocate_budget(workload).variances.mean() * (1 + 1e-9)
    every = [
        Measurement(table, apart)
        for length in range(len(sizes) + 1)
        for table in combinations(range(len(sizes)), length)
        for size in range(length + 1)
        for apart in combinations(table, size)
    ]
    for _ in range(30):
        parts = rng.exponential(size=len(every)) ** rng.integers(1, 7)
        parts = parts / parts.sum()
        moved = [each.l1_sensitivity(sizes, "add-remove") for each in every]
        variances = [2 * (m / part) ** 2 for m, part in zip(moved, parts, strict=True)]
        assert cell_variances(workload, every, variances).mean() >= bound


def test_one_table_reaches_its_bound() -> None:
    """Of large tables that share nothing but the total, one query each is nearly the best."""
    assert laplace_bound(Workload((7,), ((0,),))) == pytest.approx(2, rel=0.01)
    workload = Workload.up_to((36, 18, 11, 30, 36), 1)
    assert laplace_bound(workload) > 2 * 5**2 / 1.03**2
    assert allocate_budget(workload).variances.mean() < laplace_bound(workload) * 1.02


def test_what_no_spending_can_reach() -> None:
    """The 91 tables of 13 attributes of 6 to 39 values: 1.17 times better than one query each, and
    at most 1.32 times, which is less than 1.4."""
    workload = Workload.up_to((13, 16, 6, 39, 39, 29, 24, 24, 27, 31, 24, 32, 21), 2)
    each = 2 * len(workload.sets) ** 2
    assert math.sqrt(each / laplace_bound(workload)) < 1.32
    assert math.sqrt(each / allocate_budget(workload).variances.mean()) > 1.16


def test_large_workloads_are_refused() -> None:
    with refused("workload", 16):
        laplace_bound(Workload.up_to((2,) * 8, 1))
