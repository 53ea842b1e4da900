"""Audit a synthetic table by the table it was made from, and a holdout of others like them.

Contract: rows of train and holdout are draws of one population, which the synthetic table saw only
as far as train goes. Three scores of membership each have an equal part of the error; the best is
taken (`scores` has the test). Singling out and linkability have their own confidence each. The
distance to the closest record, by which tables are often passed, is shown and proves nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from whosin.audit import confidence as exact
from whosin.audit.attack_scores import FEWEST, Scores, compare
from whosin.audit.result import AuditBounds
from whosin.audit.synthetic.encoding import Encoding, arranged, columns_of
from whosin.audit.synthetic.guessing import Risk, linkability, singling_out
from whosin.audit.synthetic.membership import SCORES, distances
from whosin.audit.terms import read_delta, read_seed
from whosin.errors import InvalidInput
from whosin.validation import whole

LEAST = 0.05
"""The quantile of distances that tests of the closest record look at."""


@dataclass(frozen=True)
class SyntheticAudit(AuditBounds):
    """The result of `synthetic_table`.

    Attributes:
        score: the score that shows most: nearest, density or counts.
        membership: what it shows; its bounds are those of this result.
        risks: singling out and linkability.
        closest: the small quantile of distances to the closest row of train, of synthetic rows and
            of the holdout's rows.
        numbers, words: how many columns of the synthetic table are of each kind.
        blind: all synthetic rows are the same, so that nothing could be learnt.
    """

    score: str
    membership: Scores
    risks: tuple[Risk, ...]
    closest: tuple[float, float]
    numbers: int
    words: int
    notes: tuple[str, ...] = ()
    blind: bool = False

    @property
    def closest_passes(self) -> bool:
        """Whether the test of the closest record would pass this table: synthetic rows are no
        closer to train than people are who were not in it."""
        return self.closest[0] >= self.closest[1]

    def to_dict(self) -> dict[str, object]:
        """The result for programs."""
        return {
            **super().to_dict(),
            "score": self.score,
            "membership": self.membership.to_dict(),
            "risks": [risk.to_dict() for risk in self.risks],
            "closest": {"synthetic": self.closest[0], "holdout": self.closest[1]},
            "closest_passes": self.closest_passes,
            "columns": {"numbers": self.numbers, "words": self.words},
            "blind": self.blind,
        }


def synthetic_table(
    train: Any,
    holdout: Any,
    synthetic: Any,
    confidence: object = 0.95,
    *,
    delta: object = 0,
    guesses: object = 500,
    seed: object = None,
) -> SyntheticAudit:
    """Bound from below what a synthetic table tells about who was in the table behind it.

    Args:
        train, holdout, synthetic: frames, arrays of rows, or lists of rows, of the same columns;
            train and holdout at random from one population.
        guesses: for singling out and for linkability.
        seed: of those guesses, for a repeatable run.
    """
    (level, error), granted = exact.read_confidence(confidence), read_delta(delta)
    count = whole(guesses, "guesses", 20)
    rng = np.random.default_rng(read_seed(seed))
    rows = _read(train, holdout, synthetic)
    together = np.concatenate(rows[:2])
    results = {}
    for name, score in SCORES.items():
        told = score(rows[2], together)
        inside, outside = told[: len(rows[0])], told[len(rows[0]) :]
        results[name] = compare(inside, outside, 1 - error / len(SCORES), granted)
    best = max(results, key=lambda name: results[name].epsilon)
    risks = tuple(
        attack(rows[2], rows[0], rows[1], count, error, rng)
        for attack in (singling_out, linkability)
    )
    encode = Encoding.of(rows[2])
    known = encode(rows[0], "train")
    closest = [
        float(np.quantile(distances(known, encode(table, name), 1), LEAST))
        for table, name in ((rows[2], "synthetic"), (rows[1], "holdout"))
    ]
    return SyntheticAudit(
        epsilon=results[best].epsilon,
        log_ratio=max(each.log_ratio for each in results.values()),
        confidence=level,
        delta=granted,
        score=best,
        membership=results[best],
        risks=risks,
        closest=(closest[0], closest[1]),
        numbers=(numbers := sum(column.dtype.kind == "f" for column in encode.columns)),
        words=len(encode.columns) - numbers,
        blind=all(len(np.unique(column)) == 1 for column in encode.columns),
    )


def _read(train: Any, holdout: Any, synthetic: Any) -> list[Any]:
    """Three tables as rows of cells, numbers as they are."""
    holdout = arranged(holdout, train, "holdout")
    synthetic = arranged(synthetic, train, "synthetic")
    made = columns_of(synthetic, "synthetic")
    result = []
    for table, name in ((train, "train"), (holdout, "holdout"), (synthetic, "synthetic")):
        columns = columns_of(table, name)
        if len(columns) != len(made):
            accepted = f"a table of {len(made)} columns, as the synthetic one"
            raise InvalidInput(name, accepted, f"{len(columns)} columns")
        rows = np.array([list(row) for row in zip(*columns, strict=True)], dtype=object)
        if name != "synthetic" and len(rows) < FEWEST:
            accepted = f"at least {FEWEST} rows (some 1,000 show most leaks)"
            raise InvalidInput(name, accepted, len(rows))
        result.append(rows)
    if Counter(map(tuple, result[0])) == Counter(map(tuple, result[1])):
        raise InvalidInput("holdout", "other people than train", "the same rows")
    return result
