"""Singling out, linkability and inference (Giomi et al. 2023), on encoded rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from whosin.audit import confidence
from whosin.errors import InvalidInput
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
        """Some of the rows."""
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
        return [str(each) for each in known], [_read_column(column) for column in cells]
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


def _read_column(cells: Any) -> Array:
    return np.array(cells, dtype=object) if isinstance(cells, list) else np.asarray(cells)


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
        return np.array([_cell_word(cell) for cell in column])
    return np.where(np.isnan(numbers), MISSING_CODE, numbers)


def _cell_word(cell: object) -> str:
    """A cell as a word; numbers as they are written in a column of numbers alone."""
    value = _cell_number(cell)
    return str(cell) if value is None else str(np.float64(value))


def _cell_number(cell: object) -> float | None:
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return MISSING_CODE if np.isnan(value) else value


@dataclass(frozen=True)
class Encoding:
    """How rows become numbers.

    Attributes:
        columns: of the synthetic table.
    """

    columns: tuple[Array, ...]

    @classmethod
    def of(cls, synthetic: Any) -> Encoding:
        """Learnt from a synthetic table."""
        return cls(read_table(synthetic, "synthetic").cells)

    def __call__(self, table: Any, name: str, only: list[int] | None = None) -> Array:
        """The rows of a table; of some columns alone, where these are given."""
        cells = read_table(table, name).cells
        if len(cells) != len(self.columns):
            message = (
                f"{name} has {len(cells)} columns, and the synthetic table {len(self.columns)}"
            )
            raise InvalidInput(message, field=name, value=len(cells))
        chosen = range(len(cells)) if only is None else only
        parts = [_encode_cells(cells[column], self.columns[column]) for column in chosen]
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
        least = confidence.lower_bound(hits, trials, error / 2)
        most = confidence.upper_bound(control, trials, error / 2)
        return cls(name, hits, control, trials, max(0.0, (least - most) / max(1 - most, 1e-9)))

    def to_dict(self) -> dict[str, object]:
        """The risk for programs."""
        return dict(vars(self))


Predicate = list[tuple[int, str, Any]]


def single_out_by_value(
    synthetic: TableColumns,
    train: TableColumns,
    holdout: TableColumns,
    guesses: int,
    error: float,
    rng: np.random.Generator,
) -> Risk:
    """Predicates of one column that fit exactly one synthetic row, and whether they fit exactly one
    of the rows: a value that comes once, the lowest or the highest number. Each synthetic row gives
    one predicate at most, so that columns that say the same do not count twice."""
    found = _rare_values(synthetic)
    rows: set[int] = set()
    predicates: list[Predicate] = []
    for place in rng.permutation(len(found)).tolist():
        row, predicate = found[place]
        if row not in rows and len(rows) < guesses:
            rows.add(row)
            predicates.append([predicate])
    return _count_single(SINGLE_VALUE, predicates, train, holdout, error, rng)


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


def single_out(
    synthetic: TableColumns,
    train: TableColumns,
    holdout: TableColumns,
    guesses: int,
    error: float,
    rng: np.random.Generator,
) -> Risk:
    """Predicates of up to six columns that fit exactly one synthetic row, and whether they fit
    exactly one of the rows."""
    predicates = [_draw_predicate(synthetic.cells, rng) for _ in range(guesses)]
    return _count_single(SINGLING_OUT, predicates, train, holdout, error, rng)


def _count_single(
    name: str,
    predicates: list[Predicate],
    train: TableColumns,
    holdout: TableColumns,
    error: float,
    rng: np.random.Generator,
) -> Risk:
    """How many of the predicates fit exactly one row, of as many rows of both tables."""
    size = min(len(train), len(holdout))
    hits = []
    for table in (train, holdout):
        part = table.take_rows(rng.permutation(len(table))[:size]).cells
        hits.append(sum(int(_match_rows(part, each).sum() == 1) for each in predicates))
    return Risk.of(name, hits[0], hits[1], len(predicates), error)


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


def measure_linkability(
    synthetic: TableColumns,
    train: TableColumns,
    holdout: TableColumns,
    guesses: int,
    error: float,
    rng: np.random.Generator,
) -> Risk:
    """Someone has two halves of each person's data: is one synthetic row closest to both?"""
    encode = Encoding.of(synthetic)
    order = rng.permutation(len(encode.columns)).tolist()
    half = max(1, len(order) // 2)
    hits = []
    for people in _draw_people(train, holdout, guesses, rng):
        one, other = (
            _nearest_rows(encode, synthetic, people, part)
            for part in (order[:half], order[half:] or order[:half])
        )
        hits.append(int((one == other).sum()))
    trials = min(guesses, len(train), len(holdout))
    return Risk.of("linkability", hits[0], hits[1], trials, error)


def measure_inference(
    synthetic: TableColumns,
    train: TableColumns,
    holdout: TableColumns,
    guesses: int,
    error: float,
    rng: np.random.Generator,
) -> Risk:
    """Someone knows all of a person's data but one column, and takes that of the closest synthetic
    row: is it the person's own (numbers: within 5%)? Each column in turn, with an equal part of the
    error; the one of the largest risk is reported."""
    encode = Encoding.of(synthetic)
    count = len(encode.columns)
    people = _draw_people(train, holdout, guesses, rng)
    trials, found = len(people[0]), []
    for secret in range(count) if count > 1 else ():
        known = [column for column in range(count) if column != secret]
        hits = [
            _count_alike(
                synthetic.cells[secret][_nearest_rows(encode, synthetic, each, known)],
                each.cells[secret],
            )
            for each in people
        ]
        risk = Risk.of(INFERENCE, hits[0], hits[1], trials, error / count)
        found.append(replace(risk, column=synthetic.describe(secret)))
    gains = [(risk.low, risk.hits - risk.control_hits) for risk in found]
    return found[gains.index(max(gains))] if found else Risk.of(INFERENCE, 0, 0, 0, error)


def _draw_people(
    train: TableColumns, holdout: TableColumns, guesses: int, rng: np.random.Generator
) -> list[TableColumns]:
    """As many people of both tables, none of them twice."""
    size = min(guesses, len(train), len(holdout))
    return [table.take_rows(rng.permutation(len(table))[:size]) for table in (train, holdout)]


def _nearest_rows(
    encode: Encoding, synthetic: TableColumns, people: TableColumns, columns: list[int]
) -> Array:
    """The synthetic row that is closest to each person in some columns."""
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1, metric="manhattan")
    search.fit(encode(synthetic, "synthetic", columns))
    return np.asarray(search.kneighbors(encode(people, "rows", columns))[1][:, 0])


def _count_alike(guessed: Array, true: Array) -> int:
    if guessed.dtype.kind == true.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # missing − missing
            close = np.abs(guessed - true) <= NUMBER_TOLERANCE * np.abs(true)
        close[~np.isfinite(true)] = False
        return int((close | (guessed == true)).sum())
    return int((guessed.astype(str) == true.astype(str)).sum())


RISK_MEASURES = (single_out_by_value, single_out, measure_linkability, measure_inference)
