"""Scores of rows: how much a synthetic table looks as if it was made from each.

Contract: a score depends on the synthetic table and on the rows that are asked about, never on who
was in. Rows are compared with each other to know what is usual where they are: a row that is
close to the synthetic table in an empty place says more than one in a crowd.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from whosin.audit.models.rows import TrainingRows
from whosin.audit.models.scoring import Score
from whosin.audit.synthetic.encoding import Encoding, columns_of
from whosin.errors import UnknownName
from whosin.exact import Array

NEIGHBOURS = 5
QUERIES, CELLS = 60, 10
"""Queries of counts, and the groups that a column of numbers is read in."""
SMALL = 1e-6


def nearest(synthetic: Any, rows: Any) -> Array:
    """Minus the distance to the closest synthetic row."""
    encode = Encoding.of(synthetic)
    return -distances(encode(synthetic, "synthetic"), encode(rows, "rows"), 1)


def density(synthetic: Any, rows: Any) -> Array:
    """How much closer synthetic rows are than other rows usually are."""
    encode = Encoding.of(synthetic)
    asked = encode(rows, "rows")
    usual = distances(asked, asked, min(NEIGHBOURS + 1, len(asked)))
    close = distances(encode(synthetic, "synthetic"), asked, 1)
    return np.asarray(np.log(usual + SMALL) - np.log(close + SMALL))


def counts(synthetic: Any, rows: Any) -> Array:
    """How often values of a row come together in the synthetic table, beyond what is usual, over
    queries of two to four columns."""
    encode = Encoding.of(synthetic)
    made = _groups(list(encode.columns), encode.columns)
    asked = _groups(columns_of(rows, "rows"), encode.columns)
    rng = np.random.default_rng(0)
    total = np.zeros(asked.shape[1])
    for _ in range(QUERIES):
        size = min(int(rng.integers(2, 5)), len(made))
        chosen = rng.choice(len(made), size, replace=False)
        both = np.concatenate([made[chosen], asked[chosen]], axis=1)
        _values, codes = np.unique(both, axis=1, return_inverse=True)
        codes = codes.reshape(-1)
        synthetic_codes, own = codes[: made.shape[1]], codes[made.shape[1] :]
        made_share = np.bincount(synthetic_codes, minlength=codes.max() + 1)[own] / made.shape[1]
        usual = np.bincount(own, minlength=codes.max() + 1)[own] / len(own)
        total += np.log(made_share + 1 / made.shape[1]) - np.log(usual)
    return total / QUERIES


SCORES: dict[str, Callable[[Any, Any], Array]] = {
    "nearest": nearest,
    "density": density,
    "counts": counts,
}


def from_synthetic(kind: str = "density") -> Score:
    """A score for `model`, where fit(rows) returns a synthetic table.

    Args:
        kind: nearest, density or counts.
    """
    if kind not in SCORES:
        raise UnknownName("kind", kind, tuple(SCORES))

    def score(synthetic: Any, rows: Any) -> Array:
        joined = rows
        if TrainingRows.read(rows).several:
            joined = np.column_stack([np.asarray(part, dtype=object) for part in rows])
        return SCORES[kind](synthetic, joined)

    return score


def distances(known: Array, asked: Array, rank: int) -> Array:
    """The distance of each row to its nearest known one, or second, third … nearest."""
    from sklearn.neighbors import NearestNeighbors

    rank = min(rank, len(known))
    search = NearestNeighbors(n_neighbors=rank, metric="manhattan").fit(known)
    return np.asarray(search.kneighbors(asked)[0][:, rank - 1])


def _groups(columns: list[Array], known: tuple[Array, ...]) -> Array:
    """Columns as words, those of numbers by deciles of the synthetic table."""
    result = []
    for cells, made in zip(columns, known, strict=True):
        if made.dtype.kind == "f" and cells.dtype.kind == "f" and len(np.unique(made)) > CELLS:
            edges = np.quantile(made, np.linspace(0, 1, CELLS + 1)[1:-1], method="lower")
            result.append(np.searchsorted(edges, cells).astype(str))
        else:
            result.append(cells.astype(str))
    return np.array(result)
