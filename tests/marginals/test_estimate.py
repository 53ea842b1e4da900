"""Estimates agree with each other and with the truth, and sensitivities with every pair of people;
`test_sums` has the comparison with dense least squares."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from marginals_oracle import dense
from whosin.marginals import Measurement, Workload, estimate_residuals, estimate_tables


def test_tables_agree_where_they_share_attributes() -> None:
    rng = np.random.default_rng(5)
    workload = Workload.up_to((3, 2, 4, 5), 3)
    measured = [Measurement(each) for each in workload.sets]
    values = [rng.normal(100, 30, each.shape(workload.sizes)) for each in measured]
    found = estimate_tables(
        workload, estimate_residuals(workload, measured, rng.uniform(1, 9, 14).tolist(), values)
    )
    for one, other in product(range(14), repeat=2):
        shared = set(workload.sets[one]) & set(workload.sets[other])
        sums = [
            found[at].sum(axis=tuple(n for n, i in enumerate(workload.sets[at]) if i not in shared))
            for at in (one, other)
        ]
        np.testing.assert_allclose(sums[0], sums[1], atol=1e-9)


def test_noise_without_error_gives_the_truth() -> None:
    rng = np.random.default_rng(1)
    joint = rng.integers(0, 9, (3, 2, 4))
    workload = Workload.up_to((3, 2, 4), 2)
    measured = [Measurement(part, part) for part in workload.residuals]
    values = []
    for each in measured:
        axes = tuple(axis for axis in range(3) if axis not in each.attributes)
        values.append(each.of_counts(joint.sum(axis=axes)))
        assert values[-1].dtype == joint.dtype  # whole numbers, for whole noise
    found = estimate_tables(
        workload, estimate_residuals(workload, measured, [1.0] * len(measured), values)
    )
    for attributes, table in zip(workload.sets, found, strict=True):
        axes = tuple(axis for axis in range(3) if axis not in attributes)
        np.testing.assert_allclose(table, joint.sum(axis=axes), atol=1e-9)


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rows", [1, 2])
def test_sensitivities_bound_every_pair_of_people(relation: str, rows: int) -> None:
    """What a measurement moves by, over all people (and absence) of small domains: never above what
    is charged, and met in squared L2 and for plain tables."""
    for sizes in ((2,), (3,), (2, 2), (2, 3), (4, 3), (2, 3, 2)):
        every = [
            tuple(at for at in range(len(sizes)) if m >> at & 1) for m in range(2 ** len(sizes))
        ]
        for attributes in every:
            for differences in (part for part in every if set(part) <= set(attributes)):
                measured = Measurement(attributes, differences)
                columns = dense(sizes, attributes, differences).T * rows
                people = [*columns, np.zeros_like(columns[0])]
                moves = [
                    one - other
                    for one, other in product(people, repeat=2)
                    if relation == "replace" or not other.any()
                ]
                most = max(np.abs(move).sum() for move in moves)
                square = max((move**2).sum() for move in moves)
                assert most <= measured.l1_sensitivity(sizes, relation, rows) + 1e-9
                stated = measured.squared_l2_sensitivity(sizes, relation, rows)
                assert square == pytest.approx(float(stated))
                if not differences:
                    assert most == measured.l1_sensitivity(sizes, relation, rows)
