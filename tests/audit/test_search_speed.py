"""Short cuts of the search find what the long way finds."""

from __future__ import annotations

import numpy as np
import pytest

from whosin.audit import classifiers, distinguishers


@pytest.mark.parametrize("size", [300, 20_000, 200_000])
@pytest.mark.parametrize("share", [0.0001, 0.01, 0.049, 0.2, 10])
def test_a_glance_never_loses_a_column_of_codes(size, share):
    rng = np.random.default_rng(1)
    column = rng.integers(0, max(2, int(share * size)), size).astype(float)
    values, counts = np.unique(column, return_counts=True)
    found = distinguishers.code_values(column)
    if len(values) <= distinguishers.REPEATED_SHARE * size:
        assert found is not None
        assert (found[0] == values).all()
        assert (found[1] == counts).all()
    elif found is not None:  # of another column the commonest values alone
        often = max(distinguishers.MIN_SENTINEL_CELLS, distinguishers.SENTINEL_SHARE * size)
        assert (found[1] == [(column == value).sum() for value in found[0]]).all()
        assert (found[1] >= often).all() and len(found[0]) <= distinguishers.MAX_SENTINELS


def linear(*halves):
    both = [np.concatenate(each) for each in zip(*halves, strict=True)]
    fit = classifiers.LinearProjection.fit
    return classifiers.HalfModels(tuple(fit(*rows) for rows in (*halves, both)))


@pytest.mark.parametrize("fit", [linear, classifiers.PiecewiseFeatures.fit])
def test_what_both_halves_teach_is_near_the_truth_and_nearer_than_one(fit):
    """Normal coordinates that are shifted: the log odds are a sum of all of them."""
    rng = np.random.default_rng(3)
    shift, halves = np.array([0.3, 0.1, 0.0]), []
    for _ in "ab":
        labels = np.repeat([1, 0], 12_000)
        halves.append((rng.normal(size=(24_000, 3)) + np.outer(labels, shift), labels))
    fresh = rng.normal(size=(5_000, 3))
    told = fit(*halves).score_halves(fresh).T
    near = [np.corrcoef(column, fresh @ shift)[0, 1] for column in told]
    assert near[2] > 0.9  # the linear one is cut off at quartiles
    assert near[2] > min(near)
