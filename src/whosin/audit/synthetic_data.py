"""Audit a synthetic table: membership scores; singling out, linkability and inference (Giomi et al.
2023); and the audit itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from whosin.audit.bounds import (
    AuditBounds,
    lower_bound,
    read_confidence,
    read_delta,
    read_seed,
    refuse_few,
    upper_bound,
)
from whosin.audit.model_scores import (
    ATTACK_SCORES_FEWEST,
    Score,
    Scores,
    TrainingRows,
    compare_scores,
)
from whosin.errors import InvalidInput, UnknownName, read_whole
from whosin.exact import Array

# Tables by their columns, and rows as numbers, so that the distance of two rows is their mean
# difference by column. Columns are matched by their names wherever both tables have names, and by
# their order only where one has none. Everything else is learnt from the synthetic table alone,
# which an attacker has: ranges of numbers, words of columns. A column is one of numbers if all of
# its cells are. Equal words are at distance 0, others at distance 1; numbers at their difference
# over the range, at most 1 apart within it.


MISSING_CODE = -np.inf
"""What a missing number is read as."""


@dataclass(frozen=True)
class TableColumns:
    """A table by its columns.

    Attributes:
        names: of the columns; None for each that has none.
        cells: each column, of numbers or of words.
    """

    names: tuple[str | None, ...]
    cells: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.cells[0])

    def describe(self, column: int) -> str:
        """A column by its name, or by its place."""
        name = self.names[column]
        return f"column {column + 1}" if name is None else name

    def take_rows(self, rows: Array) -> TableColumns:
        return TableColumns(self.names, tuple(cells[rows] for cells in self.cells))

    def append_rows(self, other: TableColumns) -> TableColumns:
        """The rows of both tables; a column is of numbers where it is so in both."""
        pairs = zip(self.cells, other.cells, strict=True)
        joined = [np.concatenate([each.astype(object) for each in pair]) for pair in pairs]
        return TableColumns(self.names, tuple(_type_column(column) for column in joined))


def read_table(table: Any, name: str) -> TableColumns:
    """The columns of a table: a frame, a mapping of columns, an array or a list of rows."""
    if isinstance(table, TableColumns):
        return table
    names, cells = _read_cells(table, name)
    if not cells or not len(cells[0]):
        raise InvalidInput(f"{name} is empty", field=name)
    _check_names(names, name)
    return TableColumns(tuple(names), tuple(_type_column(column) for column in cells))


def read_parts(parts: Sequence[Any], name: str) -> TableColumns:
    """One table of parts that stand side by side, such as features and labels; a list of cells is
    a column, which has the name that a series has."""
    names: list[str | None] = []
    cells: list[Array] = []
    for part in parts:
        rows = _column_names(part) is not None or isinstance(next(iter(part), None), Mapping)
        if rows or np.ndim(column := np.asarray(part, dtype=object)) > 1:
            more = _read_cells(part, name)
            names, cells = [*names, *more[0]], [*cells, *more[1]]
        else:
            said = getattr(part, "name", None)
            names, cells = [*names, None if said in (None, "") else str(said)], [*cells, column]
    _check_names(names, name)
    return TableColumns(tuple(names), tuple(_type_column(column) for column in cells))


def match_columns(table: TableColumns, like: TableColumns, name: str, other: str) -> TableColumns:
    """A table with its columns in the order of another's: by name, and by their order where one of
    the two has no names.

    Raises:
        InvalidInput: a column is missing, or there is one more.
    """
    field = f"columns of {name}"
    named = None not in table.names and any(each is not None for each in like.names)
    if not named:
        if len(table.cells) != len(like.cells):
            message = f"there are {len(table.cells)} {field}, and {len(like.cells)} of {other}"
            raise InvalidInput(message, field=field, value=len(table.cells))
        return table
    left = [each for each in table.names if each not in like.names]
    missing = [each for each in like.names if each is not None and each not in table.names]
    unnamed = sum(each is None for each in like.names)
    if missing or len(left) != unnamed:
        said = [f"none called {each!r}" for each in missing]
        if len(left) > unnamed:
            said += [f"one more called {each!r}" for each in left]
        elif not missing:
            said = [f"{len(table.cells)} columns, not {len(like.cells)}"]
        message = f"{field} are not those of {other}: {', '.join(said[:5])}"
        raise InvalidInput(message, field=field)
    rest = iter(left)
    wanted = [next(rest) if each is None else each for each in like.names]
    return TableColumns(
        tuple(wanted), tuple(table.cells[table.names.index(each)] for each in wanted)
    )


def _read_cells(table: Any, name: str) -> tuple[list[str | None], list[Array]]:
    known = _column_names(table)
    if known is not None:
        cells = [table[each] for each in known]
        if len({len(column) for column in cells}) > 1:
            message = f"the columns of {name} have different lengths"
            raise InvalidInput(message, field=name)
        arrays = [np.asarray(each, object if isinstance(each, list) else None) for each in cells]
        return [str(each) for each in known], arrays
    rows = list(table)
    first = rows[0] if rows else ()
    names = list(first) if isinstance(first, Mapping) else getattr(first, "_fields", None)
    if isinstance(first, Mapping):
        if any(not isinstance(row, Mapping) or row.keys() != first.keys() for row in rows):
            message = f"the rows of {name} do not all have the same columns"
            raise InvalidInput(message, field=name)
        rows = [tuple(row[each] for each in first) for row in rows]
    try:
        cells = [np.array(column, dtype=object) for column in zip(*rows, strict=True)]
    except (TypeError, ValueError):
        message = f"the rows of {name} must be sequences of one length"
        raise InvalidInput(message, field=name) from None
    return [None] * len(cells) if names is None else [str(each) for each in names], cells


def _column_names(table: Any) -> list[Any] | None:
    """What a frame, a mapping or an array calls its columns."""
    if not hasattr(table, "__getitem__"):
        return None
    if isinstance(table, Mapping):
        return list(table)
    if hasattr(type(table), "column_names"):  # Arrow, where `columns` are the columns themselves
        return list(table.column_names)
    if hasattr(table, "columns"):
        return list(table.columns)
    said = getattr(getattr(table, "dtype", None), "names", None)
    return None if said is None else list(said)


def _check_names(names: Sequence[str | None], name: str) -> None:
    known = [each for each in names if each is not None]
    twice = next((each for each in known if known.count(each) > 1), None)
    if twice is not None:
        message = f"{name} has two columns called {twice!r}"
        raise InvalidInput(message, field=f"columns of {name}", value=twice)


def _type_column(column: Array) -> Array:
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        # Words; numbers as they are written in a column of numbers alone.
        told = ((cell, _cell_number(cell)) for cell in column)
        return np.array([str(cell if n is None else np.float64(n)) for cell, n in told])
    return np.where(np.isnan(numbers), MISSING_CODE, numbers)


def _cell_number(cell: object) -> float | None:
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return MISSING_CODE if np.isnan(value) else value


def encode_rows(
    synthetic: Any, table: Any, name: str = "synthetic", only: list[int] | None = None
) -> Array:
    """The rows of a table as numbers, by the columns of a synthetic table; of some columns alone,
    where these are given."""
    known, cells = read_table(synthetic, "synthetic").cells, read_table(table, name).cells
    if len(cells) != len(known):
        message = f"{name} has {len(cells)} columns, and the synthetic table {len(known)}"
        raise InvalidInput(message, field=name, value=len(cells))
    chosen = range(len(cells)) if only is None else only
    parts = [_encode_cells(cells[column], known[column]) for column in chosen]
    return np.hstack(parts) / len(parts)


def _encode_cells(cells: Array, known: Array) -> Array:
    if known.dtype.kind == "f":
        if cells.dtype.kind != "f":  # a word among numbers is as one that is missing
            told = (_cell_number(cell) for cell in cells)
            cells = np.array([MISSING_CODE if value is None else value for value in told])
        finite = known[np.isfinite(known)]
        low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
        span = high - low or 1.0
        return np.asarray(np.clip((cells - low) / span, -1.0, 2.0)[:, None])
    words = np.unique(known.astype(str))
    return np.asarray((cells.astype(str)[:, None] == words) / 2)


# Singling out, linkability and inference, as anonymeter defines them (Giomi, Boenisch, Wehmeyer and
# Tasnádi 2023), with exact bounds. Attacks are made from the synthetic table alone, and tried on
# the rows that it was made from and on others like them (the control); attacks that succeed on the
# control succeed because people are alike, not because they were in. Each guess is about another
# person, predicate or synthetic row, and its success is taken for independent (Clopper and
# Pearson); the risk is what success on the rows adds, (rows − control) / (1 − control), bounded
# below by the lower bound of the one and the upper bound of the other. How many rows a predicate
# fits depends on how many there are, so singling out is tried on as many rows of each.


SINGLE_VALUE, SINGLING_OUT, INFERENCE = "singling out by one value", "singling out", "inference"
NUMBER_TOLERANCE = 0.05
"""How far an inferred number may be from the true one, as a part of it."""
PREDICATE_TRIES = 20
"""Draws for each predicate until it names one synthetic row."""


@dataclass(frozen=True)
class Risk:
    """How often an attack succeeds on the rows, and on others; `low` is the risk, at least, and
    `column` the one that was inferred."""

    name: str
    hits: int
    control_hits: int
    trials: int
    low: float
    column: str | None = None

    @classmethod
    def of(cls, name: str, hits: int, control: int, trials: int, error: float) -> Risk:
        """The risk, with the error shared by the two bounds."""
        if not trials:
            return cls(name, 0, 0, 0, 0.0)
        least = lower_bound(hits, trials, error / 2)
        most = upper_bound(control, trials, error / 2)
        return cls(name, hits, control, trials, max(0.0, (least - most) / max(1 - most, 1e-9)))

    def to_dict(self) -> dict[str, object]:
        return dict(vars(self))


Predicate = list[tuple[int, str, Any]]


@dataclass(frozen=True)
class AuditedTables:
    """A synthetic table, the rows behind it, and others like them; and the terms of attacks: how
    many guesses at most, and with which error."""

    synthetic: TableColumns
    train: TableColumns
    holdout: TableColumns
    guesses: int
    error: float
    rng: np.random.Generator

    def draw_people(self, most: int | None = None) -> list[TableColumns]:
        """As many people of both tables, none of them twice."""
        people = self.train, self.holdout
        size = min([len(table) for table in people] + ([] if most is None else [most]))
        return [table.take_rows(self.rng.permutation(len(table))[:size]) for table in people]


def single_out_by_value(tables: AuditedTables) -> Risk:
    """Predicates of one column that fit exactly one synthetic row, and whether they fit exactly one
    of the rows: a value that comes once, the lowest or the highest number. Each synthetic row gives
    one predicate at most, so that columns that say the same do not count twice."""
    found = _rare_values(tables.synthetic)
    predicates: dict[int, Predicate] = {}
    for place in tables.rng.permutation(len(found)).tolist():
        row, predicate = found[place]
        if len(predicates) < tables.guesses:
            predicates.setdefault(row, [predicate])
    return _count_single(SINGLE_VALUE, list(predicates.values()), tables)


def _rare_values(table: TableColumns) -> list[tuple[int, tuple[int, str, Any]]]:
    """Predicates of one column that fit one row alone, and that row."""
    found: list[tuple[int, tuple[int, str, Any]]] = []
    for column, cells in enumerate(table.cells):
        values, rows, counts = np.unique(cells, return_index=True, return_counts=True)
        alone = [(int(row), value) for row, value in zip(rows, values, strict=True)]
        alone = [each for each, count in zip(alone, counts, strict=True) if count == 1]
        found += [(row, (column, "=", value)) for row, value in alone]
        if cells.dtype.kind == "f":
            finite = [(row, value) for row, value in alone if np.isfinite(value)]
            ends = cells[np.isfinite(cells)]
            found += [(row, (column, "≤", value)) for row, value in finite if value == ends.min()]
            found += [(row, (column, "≥", value)) for row, value in finite if value == ends.max()]
    return found


def single_out(tables: AuditedTables) -> Risk:
    """Predicates of up to six columns that fit exactly one synthetic row, and whether they fit
    exactly one of the rows."""
    cells, rng = tables.synthetic.cells, tables.rng
    predicates = [_draw_predicate(cells, rng) for _ in range(tables.guesses)]
    return _count_single(SINGLING_OUT, predicates, tables)


def _count_single(name: str, predicates: list[Predicate], tables: AuditedTables) -> Risk:
    """How many of the predicates fit exactly one row, of as many rows of both tables."""
    hits = [
        sum(int(_match_rows(people.cells, each).sum() == 1) for each in predicates)
        for people in tables.draw_people()
    ]
    return Risk.of(name, hits[0], hits[1], len(predicates), tables.error)


def _draw_predicate(columns: tuple[Array, ...], rng: np.random.Generator) -> Predicate:
    """Conditions that one synthetic row meets, and no other one where that can be had."""
    conditions: Predicate = []
    for _ in range(PREDICATE_TRIES):
        row = int(rng.integers(len(columns[0])))
        size = int(rng.integers(1, min(len(columns), 6) + 1))
        conditions = []
        for column in rng.choice(len(columns), size, replace=False).tolist():
            value = columns[column][row]
            if columns[column].dtype.kind == "f" and np.isfinite(value):
                above = value >= np.median(columns[column])
                conditions.append((column, "≥" if above else "≤", value))
            else:
                conditions.append((column, "=", value))
        if _match_rows(columns, conditions).sum() == 1:
            break
    return conditions


def _match_rows(columns: tuple[Array, ...], conditions: Predicate) -> Array:
    matches = np.ones(len(columns[0]), dtype=bool)
    for column, sign, value in conditions:
        cells = columns[column]
        if cells.dtype.kind != "f" or isinstance(value, str):
            matches &= cells.astype(str) == str(value)
        elif sign == "=":
            matches &= cells == value
        else:
            matches &= (cells >= value if sign == "≥" else cells <= value) & (cells > MISSING_CODE)
    return matches


def measure_linkability(tables: AuditedTables) -> Risk:
    """Someone has two halves of each person's data: is one synthetic row closest to both?"""
    synthetic = tables.synthetic
    order = tables.rng.permutation(len(synthetic.cells)).tolist()
    half = max(1, len(order) // 2)
    both = tables.draw_people(tables.guesses)
    hits = []
    for people in both:
        one = _nearest_rows(synthetic, people, order[:half])
        other = _nearest_rows(synthetic, people, order[half:] or order[:half])
        hits.append(int((one == other).sum()))
    return Risk.of("linkability", hits[0], hits[1], len(both[0]), tables.error)


def measure_inference(tables: AuditedTables) -> Risk:
    """Someone knows all of a person's data but one column, and takes that of the closest synthetic
    row: is it the person's own (numbers: within 5%)? Each column in turn, with an equal part of the
    error; the one of the largest risk is reported."""
    synthetic, people = tables.synthetic, tables.draw_people(tables.guesses)
    count, trials, found = len(synthetic.cells), len(people[0]), []
    for secret in range(count) if count > 1 else ():
        known = [column for column in range(count) if column != secret]
        hits = [
            _count_alike(
                synthetic.cells[secret][_nearest_rows(synthetic, each, known)], each.cells[secret]
            )
            for each in people
        ]
        risk = Risk.of(INFERENCE, hits[0], hits[1], trials, tables.error / count)
        found.append(replace(risk, column=synthetic.describe(secret)))
    gains = [(risk.low, risk.hits - risk.control_hits) for risk in found]
    return found[gains.index(max(gains))] if found else Risk.of(INFERENCE, 0, 0, 0, tables.error)


def _nearest_rows(synthetic: TableColumns, people: TableColumns, columns: list[int]) -> Array:
    """The synthetic row that is closest to each person in some columns."""
    known, asked = (encode_rows(synthetic, each, only=columns) for each in (synthetic, people))
    return find_nearest(known, asked)[1]


def find_nearest(known: Array, asked: Array, rank: int = 1) -> tuple[Array, Array]:
    """The nearest known row of each row, or the second, third … nearest: how far, and which."""
    from sklearn.neighbors import NearestNeighbors

    rank = min(rank, len(known))
    search = NearestNeighbors(n_neighbors=rank, metric="manhattan").fit(known)
    distances, places = search.kneighbors(asked)
    return distances[:, rank - 1], places[:, rank - 1]


def _count_alike(guessed: Array, true: Array) -> int:
    if guessed.dtype.kind == true.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # missing − missing
            close = np.abs(guessed - true) <= NUMBER_TOLERANCE * np.abs(true)
        close[~np.isfinite(true)] = False
        return int((close | (guessed == true)).sum())
    return int((guessed.astype(str) == true.astype(str)).sum())


RISK_MEASURES = (single_out_by_value, single_out, measure_linkability, measure_inference)


# Scores of rows: how much a synthetic table looks as if it was made from each. A score depends on
# the synthetic table and on the rows that are asked about, never on who was in. Rows are compared
# with each other to know what is usual where they are: a row that is close to the synthetic table
# in an empty place says more than one in a crowd.


NEIGHBOUR_COUNT = 5
QUERY_COUNT, DECILE_COUNT = 60, 10
"""Queries of counts, and the groups that a column of numbers is read in."""
MIN_DISTANCE = 1e-6


def score_nearest(synthetic: Any, rows: Any) -> Array:
    """Minus the distance to the closest synthetic row."""
    made, asked = encode_rows(synthetic, synthetic), encode_rows(synthetic, rows, "rows")
    return -find_nearest(made, asked)[0]


def score_density(synthetic: Any, rows: Any) -> Array:
    """How much closer synthetic rows are than other rows usually are."""
    made, asked = encode_rows(synthetic, synthetic), encode_rows(synthetic, rows, "rows")
    usual = find_nearest(asked, asked, min(NEIGHBOUR_COUNT + 1, len(asked)))[0]
    close = find_nearest(made, asked)[0]
    return np.asarray(np.log(usual + MIN_DISTANCE) - np.log(close + MIN_DISTANCE))


def score_counts(synthetic: Any, rows: Any) -> Array:
    """How often values of a row come together in the synthetic table, beyond what is usual, over
    queries of two to four columns."""
    known = read_table(synthetic, "synthetic").cells
    cells = read_table(rows, "rows").cells
    made, asked = _group_columns(known, known), _group_columns(cells, known)
    rng = np.random.default_rng(0)
    total = np.zeros(asked.shape[1])
    for _ in range(QUERY_COUNT):
        size = min(int(rng.integers(2, 5)), len(made))
        chosen = rng.choice(len(made), size, replace=False)
        both = np.concatenate([made[chosen], asked[chosen]], axis=1)
        _values, codes = np.unique(both, axis=1, return_inverse=True)
        codes = codes.reshape(-1)
        synthetic_codes, own = codes[: made.shape[1]], codes[made.shape[1] :]
        made_share = np.bincount(synthetic_codes, minlength=codes.max() + 1)[own] / made.shape[1]
        usual = np.bincount(own, minlength=codes.max() + 1)[own] / len(own)
        total += np.log(made_share + 1 / made.shape[1]) - np.log(usual)
    return total / QUERY_COUNT


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


def _group_columns(columns: tuple[Array, ...], known: tuple[Array, ...]) -> Array:
    """Columns as words, those of numbers by deciles of the synthetic table."""
    result = []
    for cells, made in zip(columns, known, strict=True):
        if (
            made.dtype.kind == "f"
            and cells.dtype.kind == "f"
            and len(np.unique(made)) > DECILE_COUNT
        ):
            edges = np.quantile(made, np.linspace(0, 1, DECILE_COUNT + 1)[1:-1], method="lower")
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


CLOSEST_SHARE = 0.05
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
    (level, error), granted = read_confidence(confidence), read_delta(delta)
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
    tables = AuditedTables(rows[2], rows[0], rows[1], count, error, rng)
    risks = tuple(measure(tables) for measure in RISK_MEASURES)
    known = encode_rows(rows[2], rows[0], "train")
    closest = [
        float(np.quantile(find_nearest(known, encode_rows(rows[2], each))[0], CLOSEST_SHARE))
        for each in (rows[2], rows[1])
    ]
    columns = rows[2].cells
    return SyntheticAudit(
        epsilon=results[best].epsilon,
        log_ratio=max(each.log_ratio for each in results.values()),
        confidence=level,
        delta=granted,
        score=best,
        membership=results[best],
        risks=risks,
        closest=(closest[0], closest[1]),
        numbers=(numbers := sum(column.dtype.kind == "f" for column in columns)),
        words=len(columns) - numbers,
        blind=all(len(np.unique(column)) == 1 for column in columns),
    )


def _read_tables(train: Any, holdout: Any, synthetic: Any) -> list[TableColumns]:
    """Train, holdout and synthetic, with their columns in train's order."""
    first = read_table(train, "train")
    others = [
        match_columns(read_table(table, name), first, name, "train")
        for table, name in ((holdout, "holdout"), (synthetic, "synthetic"))
    ]
    for table, name in ((first, "train"), (others[0], "holdout")):
        refuse_few(name, len(table), ATTACK_SCORES_FEWEST, f"rows of {name}")
    one, two = (Counter(zip(*table.cells, strict=True)) for table in (first, others[0]))
    if one == two:
        message = "holdout has the same rows as train, and must have other people"
        raise InvalidInput(message, field="holdout")
    return [first, *others]
