"""Singling out and linkability, as anonymeter defines them (Giomi and others 2023), with exact
bounds.

Contract: attacks are made from the synthetic table alone, and tried on the rows that it was made
from and on others like them (the control); attacks that succeed on the control succeed because
people are alike, not because they were in. Guesses are drawn independently, so that successes are
binomial (Clopper and Pearson); the risk is what success on the rows adds, (rows − control) / (1 −
control), bounded below by the lower bound of the one and the upper bound of the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.synthetic.encoding import Encoding, columns_of
from whosin.exact import Array

TRIES = 20
"""Draws for each predicate until it names one synthetic row."""


@dataclass(frozen=True)
class Risk:
    """How often an attack succeeds on the rows, and on others; `low` is the risk, at least."""

    name: str
    hits: int
    control_hits: int
    trials: int
    low: float

    @classmethod
    def of(cls, name: str, hits: int, control: int, trials: int, error: float) -> Risk:
        """The risk, with the error shared by the two bounds."""
        least = exact.lower(hits, trials, error / 2)
        most = exact.upper(control, trials, error / 2)
        return cls(name, hits, control, trials, max(0.0, (least - most) / max(1 - most, 1e-9)))

    def to_dict(self) -> dict[str, object]:
        """The risk for programs."""
        return dict(vars(self))


def singling_out(
    synthetic: Any, train: Any, holdout: Any, guesses: int, error: float, rng: np.random.Generator
) -> Risk:
    """Predicates that name exactly one synthetic row, and whether they name exactly one of the
    rows."""
    tables = [columns_of(table, name) for table, name in _named(synthetic, train, holdout)]
    hits = [0, 0]
    for _ in range(guesses):
        predicate = _predicate(tables[0], rng)
        for side, table in enumerate(tables[1:]):
            hits[side] += int(_matches(table, predicate).sum() == 1)
    return Risk.of("singling out", hits[0], hits[1], guesses, error)


def _named(synthetic: Any, train: Any, holdout: Any) -> list[tuple[Any, str]]:
    return [(synthetic, "synthetic"), (train, "train"), (holdout, "holdout")]


Predicate = list[tuple[int, str, Any]]


def _predicate(columns: list[Array], rng: np.random.Generator) -> Predicate:
    """Conditions that one synthetic row meets, and no other one where that can be had."""
    conditions: Predicate = []
    for _ in range(TRIES):
        row = int(rng.integers(len(columns[0])))
        size = int(rng.integers(1, min(len(columns), 6) + 1))
        conditions = []
        for column in rng.choice(len(columns), size, replace=False).tolist():
            value = columns[column][row]
            if columns[column].dtype.kind == "f":
                above = value >= np.median(columns[column])
                conditions.append((column, "≥" if above else "≤", value))
            else:
                conditions.append((column, "=", value))
        if _matches(columns, conditions).sum() == 1:
            break
    return conditions


def _matches(columns: list[Array], conditions: Predicate) -> Array:
    matches = np.ones(len(columns[0]), dtype=bool)
    for column, sign, value in conditions:
        cells = columns[column]
        if sign == "=" or cells.dtype.kind != "f":
            matches &= cells.astype(str) == str(value)
        else:
            matches &= cells >= value if sign == "≥" else cells <= value
    return matches


def linkability(
    synthetic: Any,
    train: Any,
    holdout: Any,
    guesses: int,
    error: float,
    rng: np.random.Generator,
    neighbours: int = 1,
) -> Risk:
    """Someone has two halves of each person's data: is one synthetic row closest to both?"""
    from sklearn.neighbors import NearestNeighbors

    encode = Encoding.of(synthetic)
    order = rng.permutation(len(encode.columns)).tolist()
    half = max(1, len(order) // 2)
    hits = []
    for table, name in _named(synthetic, train, holdout)[1:]:
        near = []
        for part in (order[:half], order[half:] or order[:half]):
            known = encode(synthetic, "synthetic", part)
            search = NearestNeighbors(n_neighbors=neighbours, metric="manhattan").fit(known)
            near.append(search.kneighbors(encode(table, name, part))[1])
        linked = np.array([bool(set(a) & set(b)) for a, b in zip(*near, strict=True)])
        hits.append(int(linked[rng.integers(len(linked), size=guesses)].sum()))
    return Risk.of("linkability", hits[0], hits[1], guesses, error)
