"""Bayesian semantic privacy of noise on sums, by the definition, at given outputs or many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import record_oracle as records

Table = dict[Any, Any]


def spread(
    prior: Table, centres: Table, n: int, default: int, fall: Any, rows: Any = None
) -> Iterator[tuple[int, Any, Any]]:
    """max r / min r by the definition, at outputs whose likelihoods `fall(centre)` gives (an array
    over outputs, or a list of fractions), as a list over (row, known rows)."""
    for row in range(n) if rows is None else rows:
        for known in records.subsets([other for other in range(n) if other != row]):
            mass: Table = {}
            joint: Table = {}
            for x, p in prior.items():
                if p:
                    key = x[row], tuple(x[other] for other in known)
                    mass[key] = mass.get(key, 0) + p
                    joint[key] = joint.get(key, 0) + p * fall(centres[x])
            given = {key: total / mass[key] for key, total in joint.items()}
            ratios = [
                likelihood / given[default, others]
                for (_value, others), likelihood in given.items()
                if (default, others) in given
            ]
            if len(ratios) > 1:
                yield row, known, np.max(ratios, axis=0) / np.min(ratios, axis=0)


def level(k: float) -> float:
    return (math.sqrt(k) - 1) / (math.sqrt(k) + 1)


def dense(prior: Table, centres: Table, n: int, default: int, scale: float) -> float:
    """The largest spread on a fine grid, refined around its best points."""
    ends = [float(c) for c in centres.values()]
    outputs = np.linspace(min(ends) - 1, max(ends) + 1, 4001)
    floats = {x: float(p) for x, p in prior.items()}
    for _ in range(3):
        best, at = 0.0, 0.0
        for _row, _known, found in spread(
            floats, centres, n, default, lambda c, y=outputs: np.exp(-abs(y - float(c)) / scale)
        ):
            if found.max() > best:
                best, at = float(found.max()), float(outputs[found.argmax()])
        step = outputs[1] - outputs[0]
        outputs = np.linspace(at - step, at + step, 2001)
    return best
