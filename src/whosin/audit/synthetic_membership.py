"""Audit a synthetic table: membership scores, and the audit itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from whosin.audit import confidence as audit_confidence
from whosin.audit.events import AuditBounds
from whosin.audit.model_scores import (
    ATTACK_SCORES_FEWEST,
    Score,
    Scores,
    TrainingRows,
    compare_scores,
)
from whosin.audit.sampling import read_delta, read_seed
from whosin.audit.synthetic_risks import (
    RISK_MEASURES,
    Encoding,
    Risk,
    TableColumns,
    match_columns,
    read_parts,
    read_table,
)
from whosin.errors import InvalidInput, UnknownName
from whosin.exact import Array
from whosin.validation import read_whole

# Scores of rows: how much a synthetic table looks as if it was made from each. A score depends on
# the synthetic table and on the rows that are asked about, never on who was in. Rows are compared
# with each other to know what is usual where they are: a row that is close to the synthetic table
# in an empty place says more than one in a crowd.


NEIGHBOUR_COUNT = 5
QUERIES, CELLS = 60, 10
"""Queries of counts, and the groups that a column of numbers is read in."""
MIN_DISTANCE = 1e-6


def score_nearest(synthetic: Any, rows: Any) -> Array:
    """Minus the distance to the closest synthetic row."""
    encode = Encoding.of(synthetic)
    return -nearest_distances(encode(synthetic, "synthetic"), encode(rows, "rows"), 1)


def score_density(synthetic: Any, rows: Any) -> Array:
    """How much closer synthetic rows are than other rows usually are."""
    encode = Encoding.of(synthetic)
    asked = encode(rows, "rows")
    usual = nearest_distances(asked, asked, min(NEIGHBOUR_COUNT + 1, len(asked)))
    close = nearest_distances(encode(synthetic, "synthetic"), asked, 1)
    return np.asarray(np.log(usual + MIN_DISTANCE) - np.log(close + MIN_DISTANCE))


def score_counts(synthetic: Any, rows: Any) -> Array:
    """How often values of a row come together in the synthetic table, beyond what is usual, over
    queries of two to four columns."""
    encode = Encoding.of(synthetic)
    made = _group_columns(list(encode.columns), encode.columns)
    asked = _group_columns(list(read_table(rows, "rows").cells), encode.columns)
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


def score_exact_values(synthetic: Any, rows: Any) -> Array:
    """Whether the exact values of a row are in the columns of the synthetic table, more than others
    like it would be: ln of (1 + count/λ)/2, summed over columns.

    A value that comes λ times by chance (Poisson), and once more with probability 1/2 where its
    person was in, comes `count` times with this ratio of likelihoods. λ is the share of the value
    among the rows asked about; for values that one row alone has, the share that such values have
    in truth (Good and Turing): 2 N₂/N₁ rows, where N₁ values are in one row and N₂ in two.
    """
    made, asked = read_table(synthetic, "synthetic"), read_table(rows, "rows")
    total = np.zeros(len(asked))
    for known, cells in zip(made.cells, asked.cells, strict=True):
        numbers = known.dtype.kind == cells.dtype.kind == "f"
        both = np.concatenate([known, cells] if numbers else [known.astype(str), cells.astype(str)])
        codes = np.unique(both, return_inverse=True)[1].reshape(-1)
        count, own = (
            np.bincount(each, minlength=codes.max() + 1)
            for each in (codes[: len(known)], codes[len(known) :])
        )
        once, twice = int((own == 1).sum()), int((own == 2).sum())
        usual = np.where(own == 1, min(1.0, (2 * twice + 1) / (once + 1)), own)
        usual = np.maximum(usual, MIN_DISTANCE) * len(known) / len(cells)
        total += np.log((1 + count / usual) / 2)[codes[len(known) :]]
    return total


def score_combined(synthetic: Any, rows: Any) -> Array:
    """Density and values together: both are logarithms of ratios."""
    return score_density(synthetic, rows) + score_exact_values(synthetic, rows)


SYNTHETIC_SCORES: dict[str, Callable[[Any, Any], Array]] = {
    "nearest": score_nearest,
    "density": score_density,
    "counts": score_counts,
    "values": score_exact_values,
}
"""The scores that an audit of three tables tries."""
SCORE_KINDS = SYNTHETIC_SCORES | {"combined": score_combined}


def synthetic_score(kind: str = "combined") -> Score:
    """A score for `training`, where fit(rows) returns a synthetic table.

    Columns are matched by their names, where both the rows and the table have names.

    Args:
        kind: nearest, density, counts, values (exact ones, column by column), or combined: density
            and values.
    """
    if kind not in SCORE_KINDS:
        raise UnknownName("kind", kind, tuple(SCORE_KINDS))

    def score(synthetic: Any, rows: Any) -> Array:
        asked = TrainingRows.read(rows)
        like = read_parts(asked.parts, "rows") if asked.several else read_table(rows, "rows")
        made = match_columns(
            read_table(synthetic, "the synthetic table"), like, "the synthetic table", "the rows"
        )
        return SCORE_KINDS[kind](made, like)

    return score


def nearest_distances(known: Array, asked: Array, rank: int) -> Array:
    """The distance of each row to its nearest known one, or second, third … nearest."""
    from sklearn.neighbors import NearestNeighbors

    rank = min(rank, len(known))
    search = NearestNeighbors(n_neighbors=rank, metric="manhattan").fit(known)
    return np.asarray(search.kneighbors(asked)[0][:, rank - 1])


def _group_columns(columns: list[Array], known: tuple[Array, ...]) -> Array:
    """Columns as words, those of numbers by deciles of the synthetic table."""
    result = []
    for cells, made in zip(columns, known, strict=True):
        if made.dtype.kind == "f" and cells.dtype.kind == "f" and len(np.unique(made)) > CELLS:
            edges = np.quantile(made, np.linspace(0, 1, CELLS + 1)[1:-1], method="lower")
            result.append(np.searchsorted(edges, cells).astype(str))
        else:
            result.append(cells.astype(str))
    return np.array(result)


# Audit a synthetic table by the table it was made from, and a holdout of others like them. Rows of
# train and holdout are draws of one population, which the synthetic table saw only as far as train
# goes; bounds are about replacing a person, as those of `scores` are. The scores of membership that
# differ between rows each have an equal part of the error; the best is taken (`scores` has the
# test). The risks have their own confidence each. The distance to the closest record, by which
# tables are often passed, is shown and proves nothing.


MIN_CONFIDENCE_SHARE = 0.05
"""The quantile of distances that tests of the closest record look at."""


@dataclass(frozen=True)
class SyntheticAudit(AuditBounds):
    """The result of `synthetic`.

    Attributes:
        score: the score that shows most: nearest, density, counts or values.
        membership: what it shows; its bounds are those of this result.
        risks: singling out by one value and by several, linkability, and inference of the column
            that is inferred best.
        closest: the small quantile of distances to the closest row of train, of synthetic rows and
            of the holdout's rows.
        numbers, words: how many columns of the synthetic table are of each kind.
        blind: all synthetic rows are the same, so that nothing could be learnt.
    """

    relation: ClassVar[str | None] = "replace"
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


def synthetic(
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
        train, holdout, synthetic: frames, mappings of columns, arrays of rows, or lists of rows, of
            the same columns, which are matched by their names; train and holdout at random from one
            population.
        guesses: for each risk, at most: nobody is guessed about twice.
        seed: of those guesses, for a repeatable run.
    """
    (level, error), granted = audit_confidence.read_confidence(confidence), read_delta(delta)
    count = read_whole(guesses, "guesses", 20)
    rng = np.random.default_rng(read_seed(seed))
    rows = _read_tables(train, holdout, synthetic)
    together = rows[0].append_rows(rows[1])
    told = {name: score(rows[2], together) for name, score in SYNTHETIC_SCORES.items()}
    # One that is the same for all rows, whoever was in, shows nothing and costs nothing.
    told = {name: each for name, each in told.items() if np.ptp(each) > 0} or told
    results = {
        name: compare_scores(
            each[: len(rows[0])], each[len(rows[0]) :], 1 - error / len(told), granted
        )
        for name, each in told.items()
    }
    best = max(results, key=lambda name: results[name].epsilon)
    risks = tuple(attack(rows[2], rows[0], rows[1], count, error, rng) for attack in RISK_MEASURES)
    encode = Encoding.of(rows[2])
    known = encode(rows[0], "train")
    closest = [
        float(np.quantile(nearest_distances(known, encode(table, name), 1), MIN_CONFIDENCE_SHARE))
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


def _read_tables(train: Any, holdout: Any, synthetic: Any) -> list[TableColumns]:
    """Train, holdout and synthetic, with their columns in train's order."""
    first = read_table(train, "train")
    others = [
        match_columns(read_table(table, name), first, name, "train")
        for table, name in ((holdout, "holdout"), (synthetic, "synthetic"))
    ]
    for table, name in ((first, "train"), (others[0], "holdout")):
        if len(table) < ATTACK_SCORES_FEWEST:
            message = (
                f"{name} has {len(table)} rows, and at least {ATTACK_SCORES_FEWEST} are needed"
            )
            hint = "some 1,000 show most leaks"
            raise InvalidInput(message, field=name, value=len(table), hint=hint)
    one, two = (Counter(zip(*table.cells, strict=True)) for table in (first, others[0]))
    if one == two:
        message = "holdout has the same rows as train, and must have other people"
        raise InvalidInput(message, field="holdout")
    return [first, *others]
