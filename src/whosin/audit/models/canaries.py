"""Canaries: rows whose presence is decided by coins, planted where a model remembers them best.

Contract: which rows become canaries, and what they become, depends on the generator alone. The
other rows are always in. Kinds: `rows` as they are; `mislabelled`: with another label than their
own; `outlying`: far from all others, with a label at random.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from whosin.audit.models.rows import TrainingRows
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import Array

ROWS, MISLABELLED, OUTLYING = "rows", "mislabelled", "outlying"
KINDS = (ROWS, MISLABELLED, OUTLYING)
FAR = 5.0
"""How many standard deviations from the mean an outlying number is, up to twice as many."""


def plant(
    rows: TrainingRows, count: int | None, kind: str, rng: np.random.Generator
) -> tuple[TrainingRows, Array]:
    """The rows with canaries in place of some, and where these are; without a count all rows are
    canaries, as they are."""
    if kind not in KINDS:
        raise UnknownName("kind of canaries", kind, KINDS)
    if count is None:
        if kind != ROWS:
            raise InvalidInput("canaries", f"a number of {kind} canaries", "nothing")
        return rows, np.arange(len(rows))
    places = np.sort(rng.choice(len(rows), count, replace=False))
    if kind == ROWS:
        return rows, places
    *features, labels = rows.parts
    if not features:
        accepted = "a tuple (features, labels) for canaries that are not rows as they are"
        raise InvalidInput("rows", accepted, "one part")
    if kind == OUTLYING:
        features = [_far_away(part, places, rng) for part in features]
    changed = _relabelled(labels, places, rng, other=kind == MISLABELLED)
    return TrainingRows((*features, changed), rows.several), places


def _relabelled(labels: Any, places: Array, rng: np.random.Generator, *, other: bool) -> Any:
    known = np.asarray(labels)
    values = np.unique(known)
    if known.ndim != 1 or len(values) < 2:
        raise InvalidInput("labels", "a list of at least two different labels", "something else")
    drawn = values[rng.integers(len(values), size=len(places))]
    if other:
        step = rng.integers(1, len(values), size=len(places))
        drawn = values[(np.searchsorted(values, known[places]) + step) % len(values)]
    return _put(labels, places, drawn)


def _far_away(part: Any, places: Array, rng: np.random.Generator) -> Any:
    try:
        known = np.asarray(part, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("features", "numbers, for outlying canaries", "others") from None
    shape = len(places), *known.shape[1:]
    steps = rng.choice([-FAR, FAR], size=shape) * rng.uniform(1, 2, size=shape)
    drawn = known.mean(axis=0) + steps * np.maximum(known.std(axis=0), 1e-6)
    return _put(part, places, drawn.astype(getattr(part, "dtype", np.float64)))


def _put(part: Any, places: Array, values: Array) -> Any:
    """A copy with other rows at some places."""
    changed = part.copy() if hasattr(part, "copy") else copy.copy(part)
    if hasattr(changed, "iloc"):
        if getattr(changed, "ndim", 1) > 1:
            changed = changed.astype(float)
        changed.iloc[places] = values
    elif isinstance(changed, list):
        for row, value in zip(places.tolist(), values.tolist(), strict=True):
            changed[row] = value
    elif hasattr(changed, "clone"):  # a tensor
        changed = changed.clone()
        changed[places] = changed.new_tensor(values)
    else:
        changed[places] = values
    return changed
