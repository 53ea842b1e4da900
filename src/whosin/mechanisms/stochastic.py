"""Reading tables of probabilities: a row for each world, and names for the outputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from whosin.documents import Spelled
from whosin.errors import InvalidInput
from whosin.exact import Array, flint_array, is_exact, rational

TOLERANCE = 1e-9
MOST_NAMED = 10**18


def stochastic(
    probabilities: object, rows: int, why: str, name: Callable[[int], str]
) -> tuple[Array, Array | None]:
    """Read a table whose rows are distributions: floats, and exact rationals where it has them.

    Args:
        rows: how many there must be; `why` says where that number comes from.
        name: what to call a row in a message.
    """
    floats, exact = _read(probabilities, rows, why)
    _check_rows(floats, exact, name)
    return floats, exact


def _read(probabilities: object, rows: int, why: str) -> tuple[Array, Array | None]:
    """(floats, exact rationals or nothing), both worlds × outputs."""
    try:
        array = np.asarray(probabilities)
    except ValueError:
        raise InvalidInput("probabilities", "rows of equal length", "unequal rows") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInput("probabilities", "a table: worlds × outputs", f"shape {array.shape}")
    if array.shape[0] != rows:
        wanted = f"{rows} ({why})" if rows < MOST_NAMED else why
        raise InvalidInput("number of rows", wanted, array.shape[0])
    if array.dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=np.float64), None
    if array.dtype.kind in "iu":
        exact = flint_array(array.ravel(), array.shape)
        return np.ascontiguousarray(array, dtype=np.float64), exact
    # A list that mixes floats with strings comes out as text: go back to what was given.
    entries = (
        array.ravel() if array.dtype == object else np.array(probabilities, dtype=object).ravel()
    )
    for number, entry in enumerate(entries):
        if isinstance(entry, float) and not np.isfinite(entry):
            row, column = divmod(number, array.shape[1])
            raise InvalidInput(f"probability in row {row}, column {column}", "a number", entry)
    exact = flint_array(entries, array.shape)
    try:
        floats = np.array([float(rational(value)) for value in exact.ravel()]).reshape(array.shape)
    except OverflowError:
        raise InvalidInput("probabilities", "between 0 and 1", "a number above 10^300") from None
    return floats, exact if is_exact(*entries) else None


def _check_rows(floats: Array, exact: Array | None, name: Callable[[int], str]) -> None:
    for bad, wrong in ((np.isnan(floats), "a number"), (floats < 0, "at least 0")):
        if bad.any():
            row, column = np.unravel_index(int(np.argmax(bad)), bad.shape)
            raise InvalidInput(
                f"probability in {name(int(row))}, column {column}", wrong, floats[row, column]
            )
    if exact is not None:
        sums = exact.sum(axis=1)
        off = np.flatnonzero(sums != 1)
        if len(off):
            total = rational(sums[off[0]])
            by = f"{total} (off by {total - 1}, about {float(total - 1):+.3g})"
            raise InvalidInput(f"sum of {name(int(off[0]))}", "1", by)
        return
    totals = floats.sum(axis=1)
    worst = int(np.argmax(np.abs(totals - 1)))
    if not abs(totals[worst] - 1) <= TOLERANCE:
        by = f"{totals[worst]:.12g} (off by {totals[worst] - 1:+.3g})"
        raise InvalidInput(f"sum of {name(worst)}", "1", by)


def output_names(outputs: Sequence[Hashable] | None, count: int) -> tuple[Hashable, ...]:
    if outputs is None:
        return tuple(range(count))
    if isinstance(outputs, str) or not isinstance(outputs, Sequence):
        raise InvalidInput("outputs", "a list of names", repr(outputs))
    names = tuple(map(_output_name, outputs))
    if len(names) != count:
        raise InvalidInput("outputs", f"{count} names, one for each column", len(names))
    try:
        distinct = len(set(names))
    except TypeError:
        accepted = "hashable names: text, numbers, tuples"
        raise InvalidInput("outputs", accepted, "another object") from None
    if distinct != count:
        raise InvalidInput("outputs", "distinct names", "a name twice")
    return names


def _output_name(name: Any) -> Any:
    """A name of a file as Python has it: a list is a tuple, a decimal a float."""
    if isinstance(name, Spelled):
        return float(name)
    return tuple(map(_output_name, name)) if isinstance(name, list) else name
